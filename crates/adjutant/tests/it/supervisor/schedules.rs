//! Schedules of the configuration, from the file to what they run (SCHED-2, SCHED-4).

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use testkit::app::Server;

use super::get;
use crate::home;

const AGENT: &str = "[[agents]]\nid = \"echo\"\nexecutable_path = \"cat\"\n";

fn schedule(name: &str, input: &str) -> String {
    let parameters = format!("input_parameters = {{ input = \"{input}\" }}");
    format!("[[schedules]]\nname = \"{name}\"\nagent_id = \"echo\"\nevery = \"1s\"\n{parameters}\n")
}

/// What was run with this input and has ended.
async fn ran(server: &Server, input: &str) -> Vec<Value> {
    let list = get(server, "/api/executions?agent_id=echo&state=completed&limit=200").await;
    let all = list["executions"].as_array().unwrap().iter();
    all.filter(|execution| execution["input"] == input).cloned().collect()
}

async fn until(server: &Server, input: &str, count: usize) {
    for _ in 0..1000 {
        if ran(server, input).await.len() >= count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("'{input}' is not run {count} times");
}

#[tokio::test]
async fn run_by_the_file_alone() {
    let home = home().configured(&format!("{AGENT}{}", schedule("one", "first")));
    let mut server = home.serve();
    until(&server, "first", 2).await;
    let executions = ran(&server, "first").await;
    assert!(executions.iter().all(|execution| execution["schedule_id"] == executions[0]["schedule_id"]));
    assert_eq!(executions[0]["context"]["schedule"]["name"], "one");
    // The file changes: one goes, another comes.
    home.write_config(&format!("{AGENT}{}", schedule("two", "second")));
    server.signal(Signal::SIGHUP);
    server.logged("configuration_reloaded").await;
    let before = ran(&server, "first").await.len();
    until(&server, "second", 2).await;
    assert!(ran(&server, "first").await.len() <= before + 1, "what was in the queue may still have run");
    server.kill();
    let server = home.serve();
    let before = ran(&server, "second").await.len();
    until(&server, "second", before + 1).await;
}
