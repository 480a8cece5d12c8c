//! What was taken survives, and nothing is left running (SUP-7, SUP-11).

use super::{begin, gone, processes, until};
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
args = ["-c", "if [ -e ../../second ]; then echo done; else touch ../../second; sleep 50.0932; fi"]
access_type = "read-write"
max_retries = 1
retry_delay = 0.1
"#;

#[tokio::test]
async fn a_killed_server_leaves_nothing_and_loses_nothing() {
    let home = home().configured(AGENTS);
    let mut server = home.serve();
    let once = begin(&server, "once", "").await;
    let waiting = begin(&server, "once", "").await;
    let again = begin(&server, "again", "").await;
    for id in [&once, &again] {
        until(&server, id, "running", |execution| execution["state"] == "running").await;
    }
    for _ in 0..500 {
        if processes("50.0931") >= 3 && processes("50.0932") >= 1 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    server.kill();
    gone("sleep\x0050.0931").await;
    gone("sleep\x0050.0932").await;

    let mut server = home.serve();
    let ended = until(&server, &once, "failed", |execution| execution["state"] == "failed").await;
    assert_eq!(ended["error_category"], "system_error", "{ended}");
    let done = until(&server, &again, "completed", |execution| execution["state"] == "completed").await;
    assert_eq!(
        (&done["retry_count"], &done["previous_retries"][0]["error_category"]),
        (&1.into(), &"system_error".into())
    );
    until(&server, &waiting, "running", |execution| execution["state"] == "running").await;
    assert_eq!(server.stop(), 0);
    gone("sleep\x0050.0931").await;
    let server = home.serve();
    let stopped = until(&server, &waiting, "failed", |execution| execution["state"] == "failed").await;
    assert_eq!(stopped["error_category"], "system_error");
}
