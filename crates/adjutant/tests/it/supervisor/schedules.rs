//! Schedules of the configuration file and their executions (SCHED-2, SCHED-4).

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

/// Returns the completed executions with this input.
async fn completed_executions(server: &Server, input: &str) -> Vec<Value> {
    let list = get(server, "/api/executions?agent_id=echo&state=completed&limit=200").await;
    let all = list["executions"].as_array().unwrap().iter();
    all.filter(|execution| execution["input"] == input).cloned().collect()
}

/// Waits until this many executions with this input are completed.
async fn wait_for_executions(server: &Server, input: &str, count: usize) {
    for _ in 0..1000 {
        if completed_executions(server, input).await.len() >= count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("'{input}' did not run {count} times");
}

#[tokio::test]
async fn schedules_of_the_configuration_file_run_and_follow_changes() {
    // SCHED-2
    let home = home().with_config(&format!("{AGENT}{}", schedule("one", "first")));
    let mut server = home.serve();
    wait_for_executions(&server, "first", 2).await;
    let executions = completed_executions(&server, "first").await;
    assert!(executions.iter().all(|execution| execution["schedule_id"] == executions[0]["schedule_id"]));
    assert_eq!(executions[0]["context"]["schedule"]["name"], "one");
    // The new file replaces the schedule.
    home.write_config(&format!("{AGENT}{}", schedule("two", "second")));
    server.signal(Signal::SIGHUP);
    server.wait_for_event("configuration_reloaded").await;
    let before = completed_executions(&server, "first").await.len();
    wait_for_executions(&server, "second", 2).await;
    assert!(completed_executions(&server, "first").await.len() <= before + 1, "a queued execution may still run");
    server.kill();
    let server = home.serve();
    let before = completed_executions(&server, "second").await.len();
    wait_for_executions(&server, "second", before + 1).await;
}
