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
    assert_eq!(answer["response"], "Okay! I've set 'Tidy' to work.");
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
