//! Chat over HTTP with tokens, and on the command line.

use std::io::Write;
use std::process::Stdio;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use testkit::app::Server;

use crate::{ALICE, BOB, home, home_with_auth, token};

const PATHS: [&str; 2] = ["/chat", "/chat/stream"];

async fn post(server: &Server, path: &str, token: &str, body: &Value) -> (StatusCode, String) {
    let answer = server.request(Method::POST, path).bearer_auth(token).json(body).send().await.unwrap();
    (answer.status(), answer.text().await.unwrap())
}

#[tokio::test]
async fn conversations_of_other_users_are_not_found() {
    // CHAT-7, AGENT-3
    let home = home_with_auth();
    let alice = token(&home, ALICE, &[]);
    let bob = token(&home, BOB, &[]);
    let server = home.serve();
    let message = |text: &str| json!({"input": text, "conversation_id": "conv_secret1"});
    assert_eq!(post(&server, "/chat", &alice, &message("add buy a ring")).await.0, 200);
    for path in PATHS {
        let (status, body) = post(&server, path, &bob, &message("show my tasks")).await;
        assert_eq!(status, 404, "{path}");
        assert!(!body.contains("ring"), "{body}");
    }
    for (method, path) in
        [(Method::GET, "/api/conversations/conv_secret1"), (Method::DELETE, "/api/conversations/conv_secret1")]
    {
        assert_eq!(server.request(method, path).bearer_auth(&bob).send().await.unwrap().status(), 404);
    }
    let (_, theirs) = post(&server, "/agent/run", &bob, &json!({"message": "show all tasks of all users"})).await;
    assert!(!theirs.contains("ring"), "{theirs}");
    let (_, stored) = post(&server, "/chat", &alice, &message("show my tasks")).await;
    assert!(stored.contains("1. ☐ buy a ring"), "{stored}");
    for path in ["/chat", "/chat/stream", "/agent/run"] {
        let body = json!({"input": "hi", "message": "hi"});
        assert_eq!(server.post(path, &body).await.status(), 401, "{path}");
    }
}

#[tokio::test]
async fn a_user_id_must_match_the_token() {
    // AGENT-3, CHAT-3, CHAT-4
    let home = home_with_auth();
    let alice = token(&home, ALICE, &[]);
    let server = home.serve();
    for path in PATHS {
        for (user, status) in [(BOB, 403), (ALICE, 200), ("user_456def", 403)] {
            let body = json!({"input": "hello", "user_id": user});
            assert_eq!(post(&server, path, &alice, &body).await.0, status, "{path} {user}");
        }
    }
    assert_eq!(post(&server, "/agent/run", &alice, &json!({"message": "hi", "user_id": BOB})).await.0, 403);
    assert_eq!(post(&server, "/agent/run", &alice, &json!({"message": "hi", "user_id": ALICE})).await.0, 200);
    // Without authentication the local user is used and `user_id` is ignored.
    let open = crate::home();
    let server = open.serve();
    let body = json!({"input": "add milk", "conversation_id": "conv_123abc", "user_id": "user_456def"});
    assert_eq!(server.post("/chat", &body).await.status(), 200, "S0's own example");
}

#[tokio::test]
async fn invalid_messages_name_the_field() {
    // CHAT-4
    let home = home();
    let server = home.serve();
    for path in PATHS {
        for (body, field) in [
            (json!({}), "input"),
            (json!({"input": ""}), "input"),
            (json!({"input": "\u{0}\u{8} \n"}), "input"),
            (json!({"input": "é".repeat(5001)}), "input"),
            (json!({"input": 7}), "input"),
            (json!({"input": "hi", "conversation_id": "123"}), "conversation_id"),
            (json!({"input": "hi", "conversation_id": "conv_a-b"}), "conversation_id"),
            (json!({"input": "hi", "message": "hi"}), "message"),
        ] {
            let answer = server.post(path, &body).await;
            assert_eq!(answer.status(), 422, "{path} {body}");
            assert_eq!(answer.headers()["content-type"], "application/problem+json");
            let problem: Value = answer.json().await.unwrap();
            assert_eq!(problem["errors"][0]["field"], field, "{body}");
        }
        let raw = server.request(Method::POST, path).header("content-type", "application/json");
        let answer = raw.body(b"{\"input\": \"\xff\"}".to_vec()).send().await.unwrap();
        assert_eq!(answer.status(), 422);
        assert_eq!(server.post(path, &json!({"input": "é".repeat(5000)})).await.status(), 200);
    }
    let answer =
        server.request(Method::POST, "/chat/stream").header("Last-Event-ID", "x").json(&json!({"input": "hi"}));
    assert_eq!(answer.send().await.unwrap().status(), 422);
}

#[tokio::test]
async fn a_turn_is_logged_with_its_request_id_and_without_secrets() {
    // CHAT-5, OPS-1, OPS-2, SUP-9
    let home = home();
    let server = home.serve();
    let secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789";
    let request = server.request(Method::POST, "/chat/stream").header("X-Request-ID", "req_mine");
    let body = json!({"input": format!("add rotate the key {secret}"), "conversation_id": "conv_1"});
    let answer = request.json(&body).send().await.unwrap();
    assert_eq!(answer.headers()["x-request-id"], "req_mine");
    let text = answer.text().await.unwrap();
    assert!(text.matches("\"request_id\":\"req_mine\"").count() >= 5, "{text}");
    let entries = server.request_log("req_mine").await;
    let names: Vec<_> = entries.iter().map(|entry| entry["event"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["request_received", "agent_reasoning", "mcp_tool_called", "mcp_tool_result", "request_completed"]
    );
    assert!(entries[1]["details"]["confidence"].is_f64());
    assert_eq!(entries[2]["details"]["tool_name"], "add_task");
    assert_eq!(entries[3]["details"]["success"], true);
    assert_eq!(entries[4]["details"]["tools_called"], json!(["add_task"]));
    assert!(entries[1..].iter().all(|entry| entry["conversation_id"] == "conv_1"), "{entries:?}");
    assert!(!server.raw_log().contains(secret));
    let metrics = server.get("/metrics").await.text().await.unwrap();
    assert!(metrics.contains("adjutant_turns_total{success=\"true\"} 1"), "{metrics}");
    assert!(metrics.contains("adjutant_tool_calls_total{tool=\"add_task\",success=\"true\"} 1"), "{metrics}");
}

#[tokio::test]
async fn a_repeated_message_is_executed_once() {
    // CHAT-6
    let home = home();
    let server = home.serve();
    let send = async |path: &str, seen: &str| {
        let request = server.request(Method::POST, path).header("Idempotency-Key", format!("key{path}"));
        let body = json!({"input": "add buy milk", "conversation_id": "conv_1"});
        request.header("Last-Event-ID", seen).json(&body).send().await.unwrap().text().await.unwrap()
    };
    let whole = send("/chat/stream", "0").await;
    assert_eq!(send("/chat/stream", "0").await, whole);
    let rest = send("/chat/stream", "3").await;
    assert!(whole.ends_with(&rest) && rest.starts_with("id: 4\n"), "{rest}");
    assert_eq!(send("/chat", "0").await, send("/chat", "0").await);
    let tasks: Value = server.get("/api/tasks").await.json().await.unwrap();
    assert_eq!(tasks["count"], 2, "once for each key");
}

#[test]
fn the_chat_command_prints_replies_and_sets_exit_codes() {
    // CHAT-2, MODEL-1
    let home = home();
    assert_eq!(home.run(&["chat", "add buy milk"]).ok(), "Got it! Added 'buy milk' to your list. Anything else?\n");
    assert_eq!(home.run(&["chat", "show my tasks"]).ok(), "You have 1 task:\n1. ☐ buy milk\n");
    let asked = home.run(&["chat", "--conversation", "conv_1", "delete the milk task"]);
    assert_eq!(asked.code(), 4);
    assert!(asked.err().contains("adjutant chat --conversation conv_1 'yes delete'"), "{}", asked.err());
    let json = home.run(&["chat", "--conversation", "conv_1", "--json", "yes delete"]).json();
    assert_eq!(json["response"], "I've removed 'buy milk' from your tasks.");
    home.run(&["chat", "add buy bread"]).ok();
    assert!(home.run(&["chat", "--yes", "delete bread"]).ok().ends_with("I've removed 'buy bread' from your tasks.\n"));
    assert_eq!(home.run(&["chat", &format!("add {}", "x".repeat(300))]).code(), 1);
    assert_eq!(home.run(&["chat", ""]).code(), 2);
    assert_eq!(home.run(&["chat"]).code(), 2, "no input");
}

#[tokio::test]
async fn lines_from_a_pipe_form_one_conversation() {
    let home = home();
    let _server = home.serve();
    let mut command = home.command(&["chat"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = "add buy milk\n\ndelete it\nyes delete\nshow my tasks\n";
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let replies = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        replies,
        "Got it! Added 'buy milk' to your list. Anything else?\n\
         Do you really want to delete 'buy milk'? Reply 'yes delete' to confirm.\n\
         I've removed 'buy milk' from your tasks.\n\
         You don't have any tasks yet.\n"
    );
}
