//! Sessions with interactive agents (SUP-3).

use reqwest::Method;
use serde_json::{Value, json};
use testkit::app::Server;

use super::{get, wait_for_exit};
use crate::home;

const AGENTS: &str = r#"
[[agents]]
id = "counter"
mode = "interactive"
executable_path = "sh"
args = ["-c", "n=0; while read line; do n=$((n+1)); echo \"$n: $line\"; echo EOT; done; sleep 0.0733"]
access_type = "read-write"
session = { marker = "EOT" }
[[agents]]
id = "quiet"
mode = "interactive"
executable_path = "cat"
session = { quiet = 0.3 }
session_timeout = 2
[[agents]]
id = "screen"
mode = "interactive"
executable_path = "sh"
args = ["-c", "while read line; do if [ -t 0 ]; then echo \"tty $line\"; else echo pipe; fi; echo EOT; done"]
session = { marker = "EOT", terminal = true }
[[agents]]
id = "dies"
mode = "interactive"
executable_path = "sh"
args = ["-c", "read line; exit 9"]
session = { marker = "EOT" }
"#;

async fn open(server: &Server, agent: &str) -> String {
    let answer = server.post("/api/sessions", &json!({"agent_id": agent})).await;
    assert_eq!(answer.status(), 201, "{}", answer.text().await.unwrap());
    let session: Value = answer.json().await.unwrap();
    session["id"].as_str().unwrap().to_owned()
}

async fn send(server: &Server, session: &str, input: &str) -> Value {
    let answer = server.post(&format!("/api/sessions/{session}/messages"), &json!({"input": input})).await;
    assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
    answer.json().await.unwrap()
}

async fn wait_for_state(server: &Server, session: &str, state: &str) -> Value {
    for _ in 0..500 {
        let found = get(server, &format!("/api/sessions/{session}")).await;
        if found["state"] == state {
            return found;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("never {state}: {}", get(server, &format!("/api/sessions/{session}")).await);
}

#[tokio::test]
async fn a_session_is_one_process() {
    // SUP-3
    let home = home().with_config(AGENTS);
    let server = home.serve();
    let session = open(&server, "counter").await;
    assert_eq!(send(&server, &session, "hello").await["output"], "1: hello\n");
    let second = send(&server, &session, "again").await;
    assert_eq!((&second["output"], &second["session_id"]), (&json!("2: again\n"), &json!(session)));
    assert_eq!(get(&server, &format!("/api/executions?session_id={session}")).await["count"], 2);
    // The session holds the only slot of its agent.
    let taken = server.post("/api/sessions", &json!({"agent_id": "counter"})).await;
    assert_eq!(taken.status(), 429);
    let closed = server.request(Method::DELETE, &format!("/api/sessions/{session}")).send().await.unwrap();
    assert_eq!(closed.status(), 204);
    wait_for_state(&server, &session, "closed").await;
    let late = server.post(&format!("/api/sessions/{session}/messages"), &json!({"input": "x"})).await;
    assert_eq!(late.status(), 409);
    wait_for_exit("0.0733").await;
    assert_eq!(send(&server, &open(&server, "counter").await, "new").await["output"], "1: new\n");
}

#[tokio::test]
async fn silence_ends_a_reply_and_then_the_session() {
    // SUP-3
    let home = home().with_config(AGENTS);
    let server = home.serve();
    let session = open(&server, "quiet").await;
    assert_eq!(send(&server, &session, "echo").await["output"], "echo\n");
    let expired = wait_for_state(&server, &session, "expired").await;
    assert!(expired["ended_at"].is_string());
}

#[tokio::test]
async fn an_agent_can_have_a_terminal() {
    // SUP-3
    let home = home().with_config(AGENTS);
    let server = home.serve();
    let session = open(&server, "screen").await;
    let output = send(&server, &session, "hello").await["output"].as_str().unwrap().replace('\r', "");
    assert_eq!(output, "tty hello\n");
}

#[tokio::test]
async fn a_process_that_dies_ends_its_session() {
    // SUP-3
    let home = home().with_config(AGENTS);
    let server = home.serve();
    let session = open(&server, "dies").await;
    let exchange = send(&server, &session, "go").await;
    assert_eq!((&exchange["state"], &exchange["exit_code"]), (&json!("failed"), &json!(9)), "{exchange}");
    wait_for_state(&server, &session, "failed").await;
}

#[tokio::test]
async fn only_interactive_agents_have_sessions() {
    let home = home().with_config("[[agents]]\nid = \"cat\"\nexecutable_path = \"cat\"\n");
    let server = home.serve();
    let answer = server.post("/api/sessions", &json!({"agent_id": "cat"})).await;
    assert_eq!(answer.status(), 422);
}
