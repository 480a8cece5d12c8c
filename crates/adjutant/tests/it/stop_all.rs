//! `stop-all` and `resume-all`: everything ends and waits, on all nodes and after a restart (SEC-6).

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use testkit::app::{Home, Server};

use crate::supervisor::{get, start, wait_for_exit, wait_until};
use crate::{ALICE, BOB, home, home_with_auth, token};

/// `slow` runs until it is stopped, one at a time. `cat` prints its input. `talk` is interactive.
fn agents(seconds: &str) -> String {
    format!(
        "[[agents]]\nid = \"slow\"\nexecutable_path = \"sleep\"\nargs = [\"{seconds}\"]\naccess_type = \"read-write\"\n\
         grace = 0.2\n[[agents]]\nid = \"cat\"\nexecutable_path = \"cat\"\nallow = [\"*\"]\n\
         [[agents]]\nid = \"talk\"\nmode = \"interactive\"\nexecutable_path = \"cat\"\nsession = {{ quiet = 0.2 }}\n"
    )
}

async fn stop(server: &Server, body: &Value) -> Value {
    let answer = server.post("/api/stop-all", body).await;
    assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
    answer.json().await.unwrap()
}

async fn resume(server: &Server) -> Value {
    let answer = server.request(Method::POST, "/api/resume-all").send().await.unwrap();
    assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
    answer.json().await.unwrap()
}

fn is_running(execution: &Value) -> bool {
    execution["state"] == "running"
}

#[tokio::test]
async fn everything_ends_and_waits_until_it_is_resumed() {
    // SEC-6
    let home = home().with_config(&agents("60.0931"));
    let mut server = home.serve();
    let running = start(&server, "slow", "").await;
    wait_until(&server, &running, "running", is_running).await;
    let queued = start(&server, "slow", "").await;
    let session: Value = server.post("/api/sessions", &json!({"agent_id": "talk"})).await.json().await.unwrap();
    let session = format!("/api/sessions/{}", session["id"].as_str().unwrap());
    let summary = stop(&server, &json!({"reason": "a prompt injection"})).await;
    assert_eq!(
        (&summary["executions"], &summary["sessions"], &summary["queued"], &summary["reason"]),
        (&json!(1), &json!(1), &json!(1), &json!("a prompt injection")),
        "{summary}"
    );
    let ended = wait_until(&server, &running, "ended", |execution| execution["end_time"].is_string()).await;
    assert_eq!(
        (&ended["state"], &ended["error_message"]),
        (&json!("cancelled"), &json!("everything is stopped: a prompt injection"))
    );
    wait_for_exit("60.0931").await;
    for _ in 0..500 {
        if get(&server, &session).await["state"] == "closed" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(get(&server, &session).await["state"], "closed");

    // New work is refused, and the rest of the product responds.
    let refused = server.post("/api/agents/cat/executions", &json!({"input": "x"})).await;
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().get("retry-after").is_none());
    let problem: Value = refused.json().await.unwrap();
    assert_eq!(
        (&problem["type"], &problem["detail"]),
        (&json!("urn:adjutant:problem:stopped"), &json!("everything is stopped: a prompt injection"))
    );
    assert_eq!(server.post("/api/sessions", &json!({"agent_id": "talk"})).await.status(), 503);
    assert_eq!(server.post("/api/tasks", &json!({"title": "still works"})).await.status(), 201);
    let chat: Value = server.post("/chat", &json!({"input": "run the cat agent on hello"})).await.json().await.unwrap();
    assert_eq!(chat["response"], "No agent can run: everything is stopped: a prompt injection.", "{chat}");
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message":
        {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}}});
    let request = server.request(Method::POST, "/agents/cat").header("A2A-Version", "1.0").json(&message);
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["error"]["message"], "everything is stopped: a prompt injection", "{answer}");

    // The state survives a restart, and nothing starts.
    server.kill();
    let server = home.serve();
    let health = get(&server, "/health").await;
    assert_eq!((&health["status"], &health["stopped"]["reason"]), (&json!("ok"), &json!("a prompt injection")));
    let logged = server.wait_for_event("started_while_stopped").await;
    assert_eq!(logged["details"]["reason"], "a prompt injection", "{logged}");
    server.wait_for_event("everything_stopped").await;
    let metrics = server.get("/metrics").await.text().await.unwrap();
    assert!(metrics.contains("adjutant_everything_stopped 1"), "{metrics}");
    assert_eq!(get(&server, &format!("/api/executions/{queued}")).await["queue_position"], 1);

    let resumed = resume(&server).await;
    assert_eq!((&resumed["stop"]["reason"], &resumed["queued"]), (&json!("a prompt injection"), &json!(1)));
    wait_until(&server, &queued, "running", is_running).await;
    assert_eq!(get(&server, "/health").await["stopped"], Value::Null);
    assert_eq!(resume(&server).await["stop"], Value::Null, "a second resumption changes nothing");
    server.post(&format!("/api/executions/{queued}/cancel"), &json!({})).await;
    wait_for_exit("60.0931").await;
}

#[tokio::test]
async fn schedules_wait_and_catch_up() {
    // SEC-6, SCHED-3
    let home = home().with_config(&agents("60.0932"));
    let server = home.serve();
    stop(&server, &json!({"reason": "maintenance"})).await;
    let draft = json!({"name": "often", "agent_id": "cat", "every": "1s", "input_parameters": {"input": "hello"}});
    let schedule: Value = server.post("/api/schedules", &draft).await.json().await.unwrap();
    let path = format!("/api/schedules/{}", schedule["id"].as_str().unwrap());
    // The occurrence passes while everything is stopped.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert_eq!(get(&server, &format!("{path}/executions")).await["count"], 0);
    let explained = get(&server, &format!("{path}/explain")).await;
    assert!(explained["text"].as_str().unwrap().contains("everything is stopped: maintenance"), "{explained}");
    assert_eq!(server.post(&format!("{path}/run"), &json!({})).await.status(), 503);
    resume(&server).await;
    let mut history = Value::Null;
    for _ in 0..500 {
        history = get(&server, &format!("{path}/history")).await;
        if history["count"].as_i64() > Some(1) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let first = history["decisions"].as_array().unwrap().last().unwrap();
    assert_eq!(first["kind"], "missed", "{history}");
    assert!(
        first["reason"].as_str().unwrap().starts_with("everything was stopped at that time: maintenance"),
        "{first}"
    );
}

#[tokio::test]
async fn another_node_is_stopped_too() {
    // SEC-6, OPS-5
    let database = testkit::postgres::create_database().await.unwrap();
    let node = || home().with_env("ADJUTANT_DATABASE__URL", &database).with_config(&agents("60.0933"));
    let homes = [node(), node()];
    let worker = homes[1].serve();
    let id = start(&worker, "slow", "").await;
    wait_until(&worker, &id, "running", is_running).await;
    let server = homes[0].serve_with(&["--listen", "127.0.0.1:0", "--no-work"]);
    assert_eq!(stop(&server, &json!({"reason": "far away"})).await["executions"], 1);
    let ended = wait_until(&server, &id, "ended", |execution| execution["end_time"].is_string()).await;
    assert_eq!(ended["error_message"], "everything is stopped: far away");
    wait_for_exit("60.0933").await;
    let refused = worker.post("/api/agents/cat/executions", &json!({"input": "x"})).await;
    assert_eq!(refused.status(), 503, "{}", refused.text().await.unwrap());
    assert_eq!(get(&worker, "/health").await["stopped"]["reason"], "far away");
    resume(&server).await;
    let done = worker.post("/api/agents/cat/executions", &json!({"input": "x", "wait": true})).await;
    assert_eq!(done.json::<Value>().await.unwrap()["output"], "x");
}

#[test]
fn commands_stop_and_resume_without_a_server() {
    // SEC-6
    let home = home().with_config(&agents("60.0934"));
    let stopped = home.run(&["stop-all", "--reason", "holidays"]).ok();
    assert_eq!(
        stopped,
        "Stopped 0 runs and 0 sessions. 0 queued runs and 0 schedules are held. `adjutant resume-all` takes that back.\n"
    );
    let refused = home.run(&["run", "cat", "hello"]);
    assert_eq!(
        (refused.code(), refused.err().contains("everything is stopped: holidays")),
        (7, true),
        "{}",
        refused.err()
    );
    let doctor = home.run(&["doctor"]);
    assert_eq!(
        (doctor.code(), doctor.out().contains("everything is stopped: holidays")),
        (1, true),
        "{}",
        doctor.out()
    );
    let again = home.run(&["stop-all", "--json"]).json();
    assert_eq!((&again["reason"], &again["queued"]), (&json!("holidays"), &json!(0)));
    assert_eq!(home.run(&["resume-all"]).ok(), "Resumed. 0 queued runs and 0 schedules continue.\n");
    assert_eq!(home.run(&["resume-all"]).ok(), "Nothing was stopped.\n");
    assert_eq!(home.run(&["run", "cat", "hello"]).ok(), "hello");
}

#[tokio::test]
async fn only_administrators_stop_everything() {
    // SEC-6, OPS-6
    let home: Home = home_with_auth();
    let server = home.serve();
    let bob = token(&home, BOB, &[]);
    for path in ["/api/stop-all", "/api/resume-all"] {
        let refused = server.request(Method::POST, path).bearer_auth(&bob).send().await.unwrap();
        assert_eq!(refused.status(), 403, "{path}");
    }
    let alice = token(&home, ALICE, &["--scope", "adjutant:admin"]);
    let health = server.request(Method::GET, "/health").bearer_auth(&alice).send().await.unwrap();
    assert_eq!(health.json::<Value>().await.unwrap()["stopped"], Value::Null);
    let records = server.request(Method::GET, "/api/audit").bearer_auth(&alice).send().await.unwrap();
    assert_eq!(records.json::<Value>().await.unwrap()["count"], 0, "a refused change has no record");
}
