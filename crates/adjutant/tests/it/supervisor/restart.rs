//! Accepted executions survive a kill, and no process is left (SUP-7, SUP-11).

use super::{count_processes, start, wait_for_exit, wait_until};
use crate::home;

const AGENTS: &str = r#"
[[agents]]
id = "once"
executable_path = "sh"
args = ["-c", "echo began; sleep 50.0931 & setsid sleep 50.0931 & sleep 50.0931"]
access_type = "read-write"
[[agents]]
id = "again"
executable_path = "sh"
args = ["-c", "if [ -e SECOND ]; then echo done; else touch SECOND; sleep 50.0932; fi"]
access_type = "read-write"
max_retries = 1
retry_delay = 0.1
"#;

#[tokio::test]
async fn a_killed_server_leaves_no_process_and_loses_no_execution() {
    // SUP-7, SUP-11
    let home = home();
    let second = home.shared().join("second");
    let home = home.with_config(&AGENTS.replace("SECOND", second.to_str().unwrap()));
    let mut server = home.serve();
    let once = start(&server, "once", "").await;
    let waiting = start(&server, "once", "").await;
    let again = start(&server, "again", "").await;
    for id in [&once, &again] {
        wait_until(&server, id, "running", |execution| execution["state"] == "running").await;
    }
    for _ in 0..500 {
        if count_processes("50.0931") >= 3 && count_processes("50.0932") >= 1 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    server.kill();
    wait_for_exit("sleep\x0050.0931").await;
    wait_for_exit("sleep\x0050.0932").await;

    let mut server = home.serve();
    let ended = wait_until(&server, &once, "failed", |execution| execution["state"] == "failed").await;
    assert_eq!(ended["error_category"], "system_error", "{ended}");
    let done = wait_until(&server, &again, "completed", |execution| execution["state"] == "completed").await;
    assert_eq!(
        (&done["retry_count"], &done["previous_retries"][0]["error_category"]),
        (&1.into(), &"system_error".into())
    );
    wait_until(&server, &waiting, "running", |execution| execution["state"] == "running").await;
    assert_eq!(server.stop(), 0);
    wait_for_exit("sleep\x0050.0931").await;
    let server = home.serve();
    let stopped = wait_until(&server, &waiting, "failed", |execution| execution["state"] == "failed").await;
    assert_eq!(stopped["error_category"], "system_error");
}
