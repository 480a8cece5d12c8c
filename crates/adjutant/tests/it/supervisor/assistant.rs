//! The assistant, and whoever comes by MCP, can run agents: within the user's rights (TASK-6, OPS-6).

use reqwest::Method;
use serde_json::{Value, json};
use testkit::app::Server;

use super::{get, until};
use crate::{ALICE, BOB, SECRET, home, token};

async fn say(server: &Server, token: Option<&str>, input: &str) -> Value {
    let mut request = server.request(Method::POST, "/chat").json(&json!({"input": input}));
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    request.send().await.unwrap().json().await.unwrap()
}

fn called(answer: &Value) -> Vec<&str> {
    answer["tool_calls"].as_array().unwrap().iter().map(|call| call["tool_name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn run_by_a_sentence() {
    let home = home().configured(
        "[[agents]]\nid = \"tidy\"\nname = \"Tidy\"\ndescription = \"sorts things\"\nexecutable_path = \"cat\"\n",
    );
    let server = home.serve();
    let answer = say(&server, None, "Which agents are there?").await;
    assert_eq!(answer["response"], "You can have these agents do something:\n1. Tidy: sorts things");
    let answer = say(&server, None, "run the tidy agent on the changelog").await;
    assert_eq!(answer["response"], "Okay! I've set 'Tidy' to work. I'll tell you here when it's done.");
    assert_eq!(called(&answer), ["list_agents", "run_agent"]);
    let list = get(&server, "/api/executions?agent_id=tidy").await;
    let id = list["executions"][0]["id"].as_str().unwrap();
    until(&server, id, "completed", |execution| execution["state"] == "completed").await;
    let result = get(&server, &format!("/api/executions/{id}/result")).await;
    assert_eq!(result["output"], "the changelog");
    // What is no agent is a task, as ever.
    let answer = say(&server, None, "remind me to run five miles tomorrow").await;
    assert!(!called(&answer).contains(&"run_agent"), "{answer}");
}

#[tokio::test]
async fn nobody_is_talked_into_it() {
    let agents = "[auth]\njwt_secret = \"env:TEST_SECRET\"\n[[agents]]\nid = \"tidy\"\nexecutable_path = \"cat\"\n";
    let home = home().with("TEST_SECRET", SECRET).configured(agents);
    let server = home.serve();
    let alice = token(&home, ALICE, &[]);
    let answer = say(&server, Some(&alice), "run the tidy agent on the changelog").await;
    assert!(!called(&answer).iter().any(|tool| tool.contains("agent")), "{answer}");
    let admin = token(&home, BOB, &["--scope", "adjutant:admin"]);
    let list = server.request(Method::GET, "/api/executions").bearer_auth(&admin).send().await.unwrap();
    assert_eq!(list.json::<Value>().await.unwrap()["count"], 0);
}

async fn ask(server: &Server, body: Value) -> (u16, Value) {
    let answer = server.post("/api/agents/assistant/executions", &body).await;
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test]
async fn the_assistant_is_an_agent_too() {
    // AGENT-1, SUP-1: one path for whoever is asked
    let home = home();
    let server = home.serve();
    let listed = get(&server, "/api/agents/assistant").await;
    assert_eq!((&listed["source"], &listed["max_concurrent_executions"]), (&json!("built_in"), &json!(10)));
    let (status, ran) = ask(&server, json!({"input": "add a task to buy milk", "wait": true})).await;
    assert_eq!((status, &ran["status"]), (200, &json!("success")), "{ran}");
    assert_eq!(ran["output"], "Got it! Added 'buy milk' to your list. Anything else?");
    let id = ran["id"].as_str().unwrap();
    let events = server.get(&format!("/api/executions/{id}/events?follow=false")).await.text().await.unwrap();
    assert!(events.contains("add_task completed"), "{events}");
    // Where no conversation is named, one begins under the id of the execution.
    let kept = get(&server, &format!("/api/conversations/{id}")).await;
    assert_eq!(kept["messages"].as_array().unwrap().len(), 2);

    // What destroys is held, and confirmed where it is held.
    let parameters = json!({"conversation_id": id});
    let (_, held) = ask(&server, json!({"input": "delete it", "parameters": parameters, "wait": true})).await;
    let question = "Do you really want to delete 'buy milk'? Reply 'yes delete' to confirm.";
    assert_eq!((&held["status"], &held["output"]), (&json!("success"), &json!(question)));
    let confirmed = json!({"input": "yes delete", "conversation_id": id});
    let confirmed: Value = server.post("/chat", &confirmed).await.json().await.unwrap();
    assert_eq!(confirmed["response"], "I've removed 'buy milk' from your tasks.");

    // It stays as it is.
    let put = server.request(Method::PUT, "/api/agents/assistant").json(&json!({"executable_path": "cat"}));
    let delete = server.request(Method::DELETE, "/api/agents/assistant");
    for request in [put, delete] {
        assert_eq!(request.send().await.unwrap().status(), 409);
    }
    let said = home.run(&["run", "assistant", "which tasks are there?"]);
    assert_eq!(said.code(), 0, "{}", said.err());
}

#[tokio::test]
async fn what_the_assistant_cannot_be_asked_is_named() {
    let home = home();
    let server = home.serve();
    for (body, field) in [
        (json!({"input": " "}), "input"),
        (json!({"input": "x".repeat(5001)}), "input"),
        (json!({"input": "hi", "parameters": {"conversation_id": "nonsense"}}), "parameters.conversation_id"),
        (json!({"input": "hi", "parameters": {"conversation_id": 7}}), "parameters.conversation_id"),
        (json!({"input": "hi", "parameters": {"tone": "kind"}}), "parameters.tone"),
    ] {
        let (status, problem) = ask(&server, body.clone()).await;
        assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!(field)), "{body}: {problem}");
    }
    let answer = server.post("/api/sessions", &json!({"agent_id": "assistant"})).await;
    assert_eq!(answer.status(), 422);
}

#[tokio::test]
async fn the_assistant_acts_for_whoever_asks() {
    // AGENT-3, OPS-6
    let home = home().with("TEST_SECRET", SECRET).configured("[auth]\njwt_secret = \"env:TEST_SECRET\"\n");
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
    let home = home();
    let said = home.run(&["run", "assistant", "add a task to buy milk"]);
    assert_eq!(
        (said.code(), said.out().trim()),
        (0, "Got it! Added 'buy milk' to your list. Anything else?"),
        "{}",
        said.err()
    );
    assert!(home.run(&["tasks", "list"]).ok().contains("buy milk"));
}
