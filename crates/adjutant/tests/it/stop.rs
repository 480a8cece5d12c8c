//! The stop of a server: running executions may finish, and a second signal ends it at once (OPS-4).

use std::time::Duration;

use nix::sys::signal::Signal;
use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::app::{CommandOutput, Home, Server};

use crate::home;
use crate::supervisor::{get, start, wait_for_exit, wait_until};

/// `gated` runs until the file `gate` exists, one at a time.
fn with_gated_agent(home: Home, server: &str) -> Home {
    let gate = home.shared().join("gate");
    home.with_config(&format!(
        "[server]\n{server}\n[[agents]]\nid = \"gated\"\nexecutable_path = \"sh\"\n\
         args = [\"-c\", \"until [ -e {} ]; do sleep 0.02; done\"]\naccess_type = \"read-write\"\ngrace = 0.2\n",
        gate.display()
    ))
}

async fn wait_for_status(server: &Server, path: &str, expected: StatusCode) {
    for _ in 0..3000 {
        if server.get(path).await.status() == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{path} does not respond with {expected}");
}

fn is_running(execution: &Value) -> bool {
    execution["state"] == "running"
}

async fn state(server: &Server, execution: &str) -> Value {
    get(server, &format!("/api/executions/{execution}")).await["state"].clone()
}

#[tokio::test]
async fn running_executions_finish_before_a_drained_server_stops() {
    // OPS-4
    for by_signal in [true, false] {
        let home = with_gated_agent(home(), if by_signal { "drain_seconds = 60" } else { "" });
        let mut server = home.serve();
        let running = start(&server, "gated", "").await;
        wait_until(&server, &running, "running", is_running).await;
        let queued = start(&server, "gated", "").await;
        let mut command = None;
        match by_signal {
            true => server.signal(Signal::SIGTERM),
            false => command = Some(home.command(&["stop", "--drain", "--timeout", "60"]).spawn().unwrap()),
        }
        wait_for_status(&server, "/health/ready", StatusCode::SERVICE_UNAVAILABLE).await;
        assert_eq!(state(&server, &running).await, "running");
        assert_eq!(server.get("/api/tasks").await.status(), StatusCode::OK, "requests are answered");
        let late = start(&server, "gated", "").await;
        std::fs::write(home.shared().join("gate"), "").unwrap();
        assert_eq!(server.wait(), 0);
        if let Some(command) = command {
            assert_eq!(CommandOutput::from(command.wait_with_output().unwrap()).code(), 0);
        }
        std::fs::remove_file(home.shared().join("gate")).unwrap();
        let mut server = home.serve();
        assert_eq!(state(&server, &running).await, "completed");
        wait_until(&server, &queued, "running", is_running).await;
        assert_eq!(state(&server, &late).await, "idle", "it was queued during the drain");
        server.kill();
    }
}

#[tokio::test]
async fn a_drain_ends_at_its_limit_and_at_a_second_signal() {
    // OPS-4
    for by_signal in [true, false] {
        let home = with_gated_agent(home(), "");
        let mut server = home.serve();
        let running = start(&server, "gated", "").await;
        wait_until(&server, &running, "running", is_running).await;
        let limit = json!({"drain_seconds": if by_signal { 3600 } else { 1 }});
        let answer = server.post("/api/stop", &limit).await;
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.json::<Value>().await.unwrap(), json!({"running": 1}));
        if by_signal {
            wait_for_status(&server, "/health/ready", StatusCode::SERVICE_UNAVAILABLE).await;
            server.signal(Signal::SIGTERM);
        }
        assert_eq!(server.wait(), 0);
        let expected = if by_signal { "drain_interrupted" } else { "server_not_drained" };
        assert!(server.log().iter().any(|entry| entry["event"] == expected), "{}", server.raw_log());
        let server = home.serve();
        assert_eq!(state(&server, &running).await, "failed");
    }
}

#[tokio::test]
async fn a_second_signal_ends_a_stop_that_waits_for_an_agent() {
    // OPS-4
    let home = home().with_config(
        "[[agents]]\nid = \"stubborn\"\nexecutable_path = \"sh\"\n\
         args = [\"-c\", \"trap '' TERM; while :; do sleep 0.0741; done\"]\naccess_type = \"read-write\"\ngrace = 3600\n",
    );
    let mut server = home.serve();
    let running = start(&server, "stubborn", "").await;
    wait_until(&server, &running, "running", is_running).await;
    server.signal(Signal::SIGTERM);
    server.wait_for_event("server_stopping").await;
    server.signal(Signal::SIGTERM);
    assert_eq!(server.wait(), 130);
    wait_for_exit("0.0741").await;
}

#[tokio::test]
async fn only_a_running_server_can_be_stopped() {
    // OPS-4, OPS-6
    let home = home();
    let refused = home.run(&["stop"]);
    assert_eq!(refused.code(), 3);
    assert!(refused.err().contains("no server is running"), "{}", refused.err());
    let mut server = home.serve();
    let invalid = server.post("/api/stop", &json!({"drain_seconds": 86401})).await;
    assert_eq!(invalid.status(), StatusCode::UNPROCESSABLE_ENTITY);
    home.run(&["stop"]).ok();
    assert_eq!(server.wait(), 0);
    let audited = home.run(&["audit", "--json"]).ok();
    assert!(audited.contains("server_stopped"), "{audited}");
}
