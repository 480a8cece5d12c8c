//! The assistant and MCP clients can run agents, within the permissions of the user (TASK-6, OPS-6).

use reqwest::Method;
use serde_json::{Value, json};
use testkit::app::Server;

use super::{get, wait_until};
use crate::{ALICE, BOB, SECRET, home, token};

async fn send(server: &Server, token: Option<&str>, input: &str) -> Value {
    let mut request = server.request(Method::POST, "/chat").json(&json!({"input": input}));
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    request.send().await.unwrap().json().await.unwrap()
}

fn tool_names(answer: &Value) -> Vec<&str> {
    answer["tool_calls"].as_array().unwrap().iter().map(|call| call["tool_name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn agents_can_be_run_in_chat() {
    // TASK-6
    let home = home().with_config(
        "[[agents]]\nid = \"tidy\"\nname = \"Tidy\"\ndescription = \"sorts things\"\nexecutable_path = \"cat\"\n",
    );
    let server = home.serve();
    let answer = send(&server, None, "Which agents are there?").await;
    assert_eq!(answer["response"], "You can have these agents do something:\n1. Tidy: sorts things");
    let answer = send(&server, None, "run the tidy agent on the changelog").await;
    assert_eq!(answer["response"], "Okay! I've set 'Tidy' to work. I'll tell you here when it's done.");
    assert_eq!(tool_names(&answer), ["list_agents", "run_agent"]);
    let list = get(&server, "/api/executions?agent_id=tidy").await;
    let id = list["executions"][0]["id"].as_str().unwrap();
    wait_until(&server, id, "completed", |execution| execution["state"] == "completed").await;
    let result = get(&server, &format!("/api/executions/{id}/result")).await;
    assert_eq!(result["output"], "the changelog");
    // A sentence without an agent creates a task as usual.
    let answer = send(&server, None, "remind me to run five miles tomorrow").await;
    assert!(!tool_names(&answer).contains(&"run_agent"), "{answer}");
}

#[tokio::test]
async fn users_without_permission_cannot_run_agents_in_chat() {
    // TASK-6
    let agents = "[auth]\njwt_secret = \"env:TEST_SECRET\"\n[[agents]]\nid = \"tidy\"\nexecutable_path = \"cat\"\n";
    let home = home().with_env("TEST_SECRET", SECRET).with_config(agents);
    let server = home.serve();
    let alice = token(&home, ALICE, &[]);
    let answer = send(&server, Some(&alice), "run the tidy agent on the changelog").await;
    assert!(!tool_names(&answer).iter().any(|tool| tool.contains("agent")), "{answer}");
    let admin = token(&home, BOB, &["--scope", "adjutant:admin"]);
    let list = server.request(Method::GET, "/api/executions").bearer_auth(&admin).send().await.unwrap();
    assert_eq!(list.json::<Value>().await.unwrap()["count"], 0);
}

async fn run_assistant(server: &Server, body: Value) -> (u16, Value) {
    let answer = server.post("/api/agents/assistant/executions", &body).await;
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test]
async fn the_assistant_can_be_run_as_an_agent() {
    // AGENT-1, SUP-1: the assistant uses the same path as other agents
    let home = home();
    let server = home.serve();
    let listed = get(&server, "/api/agents/assistant").await;
    assert_eq!((&listed["source"], &listed["max_concurrent_executions"]), (&json!("built_in"), &json!(10)));
    let (status, ran) = run_assistant(&server, json!({"input": "add a task to buy milk", "wait": true})).await;
    assert_eq!((status, &ran["status"]), (200, &json!("success")), "{ran}");
    assert_eq!(ran["output"], "Got it! Added 'buy milk' to your list. Anything else?");
    let id = ran["id"].as_str().unwrap();
    let events = server.get(&format!("/api/executions/{id}/events?follow=false")).await.text().await.unwrap();
    assert!(events.contains("add_task completed"), "{events}");
    // Without a conversation id, the execution id becomes the id of a new conversation.
    let conversation = get(&server, &format!("/api/conversations/{id}")).await;
    assert_eq!(conversation["messages"].as_array().unwrap().len(), 2);

    // A destructive call is held, and confirmed in the same conversation.
    let parameters = json!({"conversation_id": id});
    let (_, held) = run_assistant(&server, json!({"input": "delete it", "parameters": parameters, "wait": true})).await;
    let question = "Do you really want to delete 'buy milk'? Reply 'yes delete' to confirm.";
    assert_eq!((&held["status"], &held["output"]), (&json!("success"), &json!(question)));
    let confirmed = json!({"input": "yes delete", "conversation_id": id});
    let confirmed: Value = server.post("/chat", &confirmed).await.json().await.unwrap();
    assert_eq!(confirmed["response"], "I've removed 'buy milk' from your tasks.");

    // The assistant cannot be changed.
    let put = server.request(Method::PUT, "/api/agents/assistant").json(&json!({"executable_path": "cat"}));
    let delete = server.request(Method::DELETE, "/api/agents/assistant");
    for request in [put, delete] {
        assert_eq!(request.send().await.unwrap().status(), 409);
    }
    let output = home.run(&["run", "assistant", "which tasks are there?"]);
    assert_eq!(output.code(), 0, "{}", output.err());
}

#[tokio::test]
async fn invalid_input_of_the_assistant_names_the_field() {
    // AGENT-1
    let home = home();
    let server = home.serve();
    for (body, field) in [
        (json!({"input": " "}), "input"),
        (json!({"input": "x".repeat(5001)}), "input"),
        (json!({"input": "hi", "parameters": {"conversation_id": "nonsense"}}), "parameters.conversation_id"),
        (json!({"input": "hi", "parameters": {"conversation_id": 7}}), "parameters.conversation_id"),
        (json!({"input": "hi", "parameters": {"tone": "kind"}}), "parameters.tone"),
    ] {
        let (status, problem) = run_assistant(&server, body.clone()).await;
        assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!(field)), "{body}: {problem}");
    }
    let answer = server.post("/api/sessions", &json!({"agent_id": "assistant"})).await;
    assert_eq!(answer.status(), 422);
}

#[tokio::test]
async fn the_assistant_acts_for_the_caller() {
    // AGENT-1, AGENT-3, OPS-6
    let home = home().with_env("TEST_SECRET", SECRET).with_config("[auth]\njwt_secret = \"env:TEST_SECRET\"\n");
    let server = home.serve();
    let alice = token(&home, ALICE, &[]);
    let bob = token(&home, BOB, &[]);
    let run = async |token: &str, body: Value| -> Value {
        let request = server.request(Method::POST, "/api/agents/assistant/executions").bearer_auth(token);
        request.json(&body).send().await.unwrap().json().await.unwrap()
    };
    let hers = run(&alice, json!({"input": "add a task to buy milk", "wait": true})).await;
    assert_eq!(hers["status"], "success", "{hers}");
    let list = async |token: &str| -> Value {
        let request = server.request(Method::GET, "/api/tasks").bearer_auth(token);
        request.send().await.unwrap().json::<Value>().await.unwrap()["count"].clone()
    };
    assert_eq!((list(&alice).await, list(&bob).await), (json!(1), json!(0)));
    let parameters = json!({"conversation_id": hers["id"]});
    let his = run(&bob, json!({"input": "what did I say?", "parameters": parameters, "wait": true})).await;
    assert_eq!((&his["status"], &his["error_category"]), (&json!("failure"), &json!("permanent")), "{his}");
}

#[tokio::test]
async fn the_assistant_runs_without_a_server() {
    // AGENT-1
    let home = home();
    let output = home.run(&["run", "assistant", "add a task to buy milk"]);
    assert_eq!(
        (output.code(), output.out().trim()),
        (0, "Got it! Added 'buy milk' to your list. Anything else?"),
        "{}",
        output.err()
    );
    assert!(home.run(&["tasks", "list"]).ok().contains("buy milk"));
}
