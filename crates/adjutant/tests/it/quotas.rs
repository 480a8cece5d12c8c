//! Quotas of users over every interface (SEC-5).

use nix::sys::signal::Signal;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use testkit::app::Server;

use crate::{ALICE, BOB, home, home_with_auth, mcp, token};

/// Asserts that a response is the refusal of a quota. Returns its detail.
async fn refusal(response: Response) -> String {
    assert_eq!(response.status(), 429);
    let problem: Value = response.json().await.unwrap();
    assert_eq!(problem["type"], "urn:adjutant:problem:quota", "{problem}");
    problem["detail"].as_str().unwrap().to_owned()
}

async fn send(server: &Server, token: &str, path: &str, body: Value) -> Response {
    server.request(Method::POST, path).bearer_auth(token).json(&body).send().await.unwrap()
}

#[tokio::test]
async fn the_limit_of_tasks_holds_for_every_interface() {
    // SEC-5, TASK-1, AGENT-6
    let home = home().with_config("[quotas]\ntasks = 2\n");
    let mut server = home.serve();
    let add = async |title: &str| server.post("/api/tasks", &json!({"title": title})).await;
    let first: Value = add("one").await.json().await.unwrap();
    // Of several tasks in one message, those within the limit are created.
    let reply: Value =
        server.post("/chat", &json!({"input": "add task two and add task three"})).await.json().await.unwrap();
    let text = reply["response"].as_str().unwrap();
    assert!(text.contains("You have reached the limit of 2 tasks. Delete some, then try again."), "{text}");
    assert!(!text.contains("quotas"), "{text}");
    let tasks: Value = server.get("/api/tasks").await.json().await.unwrap();
    assert_eq!(tasks["count"], 2, "{tasks}");

    let refused = add("three").await;
    assert!(!refused.headers().contains_key("retry-after"), "waiting does not help");
    let detail = refusal(refused).await;
    assert_eq!(detail, "you have reached the limit of 2 tasks (quotas.tasks); delete some or raise the limit");
    let call = json!({"name": "add_task", "arguments": {"title": "three"}});
    let answer = mcp::request_result(&server, None, "tools/call", call).await;
    let error = &answer["structuredContent"]["error"];
    assert_eq!(error["code"], "LIMIT_REACHED", "{answer}");
    let command = home.run(&["tasks", "add", "three"]);
    assert_eq!(command.code(), 7, "{}", command.err());
    assert!(command.err().contains("quotas.tasks"), "{}", command.err());

    // Changes are never refused. A deletion makes room.
    let path = format!("/api/tasks/{}", first["id"].as_str().unwrap());
    let changed = server.request(Method::PATCH, &path).json(&json!({"title": "other"})).send().await.unwrap();
    assert_eq!(changed.status(), 200);
    assert_eq!(server.request(Method::DELETE, &path).send().await.unwrap().status(), 204);
    assert_eq!(add("three").await.status(), 201);
    refusal(add("four").await).await;

    home.write_config("[quotas]\ntasks = 0\n");
    server.signal(Signal::SIGHUP);
    server.wait_for_event("configuration_reloaded").await;
    assert_eq!(add("four").await.status(), 201);
    server.stop();
    // The limit also holds for commands without a server.
    home.write_config("[quotas]\ntasks = 3\n");
    assert_eq!(home.run(&["tasks", "add", "five"]).code(), 7);
}

const AGENTS: &str = r#"
[[agents]]
id = "slow"
executable_path = "sleep"
args = ["1000"]
access_type = "read-write"
queue_depth = 4
allow = ["*"]
[[agents]]
id = "talk"
mode = "interactive"
executable_path = "cat"
session = { quiet = 0.3 }
max_concurrent_executions = 3
allow = ["*"]
"#;

#[tokio::test]
async fn one_user_cannot_fill_the_queue_and_the_slots_of_an_agent() {
    // SEC-5, SUP-4
    let home = home_with_auth().with_config(AGENTS);
    let server = home.serve();
    let alice = token(&home, ALICE, &[]);
    let bob = token(&home, BOB, &[]);
    let run = async |user: &str| send(&server, user, "/api/agents/slow/executions", json!({"input": ""})).await;
    for _ in 0..3 {
        assert_eq!(run(&alice).await.status(), 202, "one runs, two wait");
    }
    let refused = run(&alice).await;
    assert!(refused.headers().contains_key("retry-after"), "waiting helps");
    let detail = refusal(refused).await;
    assert!(detail.contains("limit of 2 runs that wait for this agent (quotas.queue_share)"), "{detail}");
    for _ in 0..2 {
        assert_eq!(run(&bob).await.status(), 202);
    }
    let full: Value = run(&bob).await.json().await.unwrap();
    assert_eq!(full["type"], "urn:adjutant:problem:busy", "{full}");

    let open = async |user: &str| send(&server, user, "/api/sessions", json!({"agent_id": "talk"})).await;
    for _ in 0..2 {
        assert_eq!(open(&alice).await.status(), 201);
    }
    let detail = refusal(open(&alice).await).await;
    assert!(detail.contains("limit of 2 open sessions with this agent (quotas.queue_share)"), "{detail}");
    assert_eq!(open(&bob).await.status(), 201);
}

#[tokio::test]
async fn a_single_user_has_no_share() {
    // SEC-5: without [auth] there is one user.
    let home = home().with_config(AGENTS);
    let server = home.serve();
    let run = async || server.post("/api/agents/slow/executions", &json!({"input": ""})).await.status();
    for _ in 0..5 {
        assert_eq!(run().await, 202);
    }
    assert_eq!(run().await, 429);
    for _ in 0..3 {
        assert_eq!(server.post("/api/sessions", &json!({"agent_id": "talk"})).await.status(), 201);
    }
}

#[tokio::test]
async fn the_open_streams_of_a_user_are_limited() {
    // SEC-5, A2A-3
    let home = home_with_auth().with_config("[quotas]\nstreams = 2\n");
    let server = home.serve();
    let alice = token(&home, ALICE, &[]);
    let bob = token(&home, BOB, &[]);
    let follow = async |user: &str| {
        server.request(Method::GET, "/api/notifications/stream").bearer_auth(user).send().await.unwrap()
    };
    let first = follow(&alice).await;
    let second = follow(&alice).await;
    assert_eq!([first.status().as_u16(), second.status().as_u16()], [200, 200]);
    let detail = refusal(follow(&alice).await).await;
    assert!(detail.contains("limit of 2 open event streams (quotas.streams); close one of them"), "{detail}");
    refusal(send(&server, &alice, "/chat/stream", json!({"input": "add task x"})).await).await;
    let tasks = server.request(Method::GET, "/api/tasks").bearer_auth(&alice).send().await.unwrap();
    assert_eq!(tasks.json::<Value>().await.unwrap()["count"], 0, "the turn did not start");
    let a2a = json!({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": {"message": {
        "kind": "message", "role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "hello"}],
    }}});
    let refused = send(&server, &alice, "/agents/assistant", a2a).await.text().await.unwrap();
    assert!(refused.contains("\"code\":-32000") && refused.contains("quotas.streams"), "{refused}");
    let other = follow(&bob).await;
    assert_eq!(other.status(), 200);
    // A stream that has ended does not count.
    for _ in 0..3 {
        let chat = send(&server, &bob, "/chat/stream", json!({"input": "show my tasks"})).await;
        assert_eq!(chat.status(), 200);
        assert!(chat.text().await.unwrap().contains("event: done"));
    }
}
