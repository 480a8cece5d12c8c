//! Tests of the assistant as an agent, with a slow model.

use std::sync::Arc;
use std::time::Duration;

use assistant::Prompt;
use model::Clock;
use serde_json::{Value, json};
use server::ServerSettings;
use tokio::sync::Notify;

use crate::follow_up::tidy;
use crate::{ReplyStep, ScriptedModel, TestServer, call, say};

async fn start_server(script: impl Fn(&Prompt<'_>) -> Vec<ReplyStep> + Send + Sync + 'static) -> TestServer {
    let agents = vec![tidy(Ok("All sorted."), None)];
    TestServer::with_agents(ServerSettings::default(), Clock::system(), ScriptedModel::new(script), agents).await
}

async fn execute(server: &TestServer, input: &str, wait: bool) -> Value {
    let parameters = json!({"conversation_id": "conv_1"});
    let body = json!({"input": input, "parameters": parameters, "wait": wait});
    let answer = server.post("/api/agents/assistant/executions", &body).await;
    assert!(answer.status().is_success(), "{}", answer.status());
    answer.json().await.unwrap()
}

async fn get(server: &TestServer, path: &str) -> Value {
    server.client.get(format!("{}{path}", server.url)).send().await.unwrap().json().await.unwrap()
}

async fn wait_for_state(server: &TestServer, id: &Value, state: &str) -> Value {
    let path = format!("/api/executions/{}", id.as_str().unwrap());
    for _ in 0..500 {
        let execution = get(server, &path).await;
        if execution["state"] == state {
            return execution;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the execution never becomes {state}: {}", get(server, &path).await);
}

#[tokio::test]
async fn one_turn_is_one_execution() {
    // AGENT-1
    let server = start_server(|prompt| match prompt.steps.len() {
        0 => vec![call("add_task", json!({"title": "buy milk"}))],
        _ => vec![say("Added 'buy milk'.")],
    })
    .await;
    let ran = execute(&server, "milk, please", true).await;
    assert_eq!((&ran["status"], &ran["output"]), (&json!("success"), &json!("Added 'buy milk'.")), "{ran}");
    assert_eq!(server.titles(model::UserId::LOCAL).await, ["buy milk"]);
    let messages = server.messages().await;
    assert_eq!(
        (&messages[0]["content"], &messages[1]["content"]),
        (&json!("milk, please"), &json!("Added 'buy milk'."))
    );
    assert_eq!(messages[1]["tool_calls"][0]["tool_name"], "add_task");
}

#[tokio::test]
async fn the_assistant_cannot_run_itself() {
    // TASK-6
    let server = start_server(|prompt| match prompt.steps.len() {
        0 => vec![call("list_agents", json!({})), call("run_agent", json!({"agent": "assistant", "input": "again"}))],
        _ => vec![say("No.")],
    })
    .await;
    let ran = execute(&server, "run yourself", true).await;
    assert!(ran["output"].as_str().unwrap().starts_with("No."), "{ran}");
    let calls = server.messages().await[1]["tool_calls"].clone();
    assert_eq!(calls[0]["result"]["agents"].as_array().unwrap().len(), 1, "it is not in its own list: {calls}");
    assert_eq!(calls[0]["result"]["agents"][0]["id"], "tidy");
    assert!(calls[1]["error"].as_str().unwrap().starts_with("NOT_FOUND"), "{calls}");
    assert_eq!(get(&server, "/api/executions").await["count"], 1, "only the first execution exists");
}

#[tokio::test]
async fn a_cancelled_turn_stores_a_reply() {
    // SUP-7, CHAT-7
    let server = start_server(|_| vec![say("I am "), ReplyStep::Hang]).await;
    let started = execute(&server, "take your time", false).await;
    wait_for_state(&server, &started["id"], "running").await;
    let path = format!("/api/executions/{}/cancel", started["id"].as_str().unwrap());
    assert_eq!(server.post(&path, &json!({})).await.status(), 200);
    wait_for_state(&server, &started["id"], "cancelled").await;
    let messages = server.messages().await;
    assert_eq!(messages[1]["content"], "I was stopped before I had finished.");
}

#[tokio::test]
async fn turns_of_chat_and_executions_are_serialized() {
    // CHAT-7
    let go = Arc::new(Notify::new());
    let wait = go.clone();
    let server = start_server(move |prompt| match prompt.context.history.len() {
        0 => vec![say("first "), ReplyStep::Wait(wait.clone()), say("answer")],
        _ => vec![say("second answer")],
    })
    .await;
    let first = server.chat("first");
    let second = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let started = execute(&server, "second", false).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        go.notify_one();
        wait_for_state(&server, &started["id"], "completed").await
    };
    tokio::join!(first, second);
    let contents: Vec<_> = server.messages().await.iter().map(|message| message["content"].clone()).collect();
    assert_eq!(contents, ["first", "first answer", "second", "second answer"]);
}

#[tokio::test]
async fn a_failing_model_fails_the_execution() {
    // AGENT-1
    let server = start_server(|_| vec![ReplyStep::Fail]).await;
    let ran = execute(&server, "hello", true).await;
    assert_eq!((&ran["status"], &ran["error_category"]), (&json!("failure"), &json!("transient")), "{ran}");
    assert!(!ran.to_string().contains("hunter22"), "{ran}");
}
