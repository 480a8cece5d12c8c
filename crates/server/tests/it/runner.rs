//! The assistant as an agent among others, with a model that takes its time.

use std::sync::Arc;
use std::time::Duration;

use assistant::Prompt;
use model::Clock;
use serde_json::{Value, json};
use server::Settings;
use tokio::sync::Notify;

use crate::results::tidy;
use crate::{Bench, Piece, Scripted, call, say};

async fn bench(script: impl Fn(&Prompt<'_>) -> Vec<Piece> + Send + Sync + 'static) -> Bench {
    let agents = vec![tidy(Ok("All sorted."), None)];
    Bench::with_agents(Settings::default(), Clock::system(), Scripted::new(script), agents).await
}

async fn ask(bench: &Bench, input: &str, wait: bool) -> Value {
    let parameters = json!({"conversation_id": "conv_1"});
    let body = json!({"input": input, "parameters": parameters, "wait": wait});
    let answer = bench.post("/api/agents/assistant/executions", &body).await;
    assert!(answer.status().is_success(), "{}", answer.status());
    answer.json().await.unwrap()
}

async fn get(bench: &Bench, path: &str) -> Value {
    bench.client.get(format!("{}{path}", bench.url)).send().await.unwrap().json().await.unwrap()
}

async fn until(bench: &Bench, id: &Value, state: &str) -> Value {
    let path = format!("/api/executions/{}", id.as_str().unwrap());
    for _ in 0..500 {
        let execution = get(bench, &path).await;
        if execution["state"] == state {
            return execution;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never {state}: {}", get(bench, &path).await);
}

#[tokio::test]
async fn one_turn_is_one_execution() {
    // AGENT-1
    let bench = bench(|prompt| match prompt.steps.len() {
        0 => vec![call("add_task", json!({"title": "buy milk"}))],
        _ => vec![say("Added it.")],
    })
    .await;
    let ran = ask(&bench, "milk, please", true).await;
    assert_eq!((&ran["status"], &ran["output"]), (&json!("success"), &json!("Added it.")), "{ran}");
    assert_eq!(bench.titles(model::UserId::LOCAL).await, ["buy milk"]);
    let messages = bench.messages().await;
    assert_eq!((&messages[0]["content"], &messages[1]["content"]), (&json!("milk, please"), &json!("Added it.")));
    assert_eq!(messages[1]["tool_calls"][0]["tool_name"], "add_task");
}

#[tokio::test]
async fn the_assistant_does_not_run_itself() {
    let bench = bench(|prompt| match prompt.steps.len() {
        0 => vec![call("list_agents", json!({})), call("run_agent", json!({"agent": "assistant", "input": "again"}))],
        _ => vec![say("No.")],
    })
    .await;
    let ran = ask(&bench, "run yourself", true).await;
    assert!(ran["output"].as_str().unwrap().starts_with("No."), "{ran}");
    let calls = bench.messages().await[1]["tool_calls"].clone();
    assert_eq!(calls[0]["result"]["agents"].as_array().unwrap().len(), 1, "it does not offer itself: {calls}");
    assert_eq!(calls[0]["result"]["agents"][0]["id"], "tidy");
    assert!(calls[1]["error"].as_str().unwrap().starts_with("NOT_FOUND"), "{calls}");
    assert_eq!(get(&bench, "/api/executions").await["count"], 1, "only the one that was asked for");
}

#[tokio::test]
async fn a_turn_that_is_cancelled_says_so() {
    // SUP-7, CHAT-7
    let bench = bench(|_| vec![say("I am "), Piece::Hang]).await;
    let begun = ask(&bench, "take your time", false).await;
    until(&bench, &begun["id"], "running").await;
    let path = format!("/api/executions/{}/cancel", begun["id"].as_str().unwrap());
    assert_eq!(bench.post(&path, &json!({})).await.status(), 200);
    until(&bench, &begun["id"], "cancelled").await;
    let messages = bench.messages().await;
    assert_eq!(messages[1]["content"], "I was stopped before I had finished.");
}

#[tokio::test]
async fn turns_follow_one_another_whoever_began_them() {
    // CHAT-7
    let go_on = Arc::new(Notify::new());
    let waits = go_on.clone();
    let bench = bench(move |prompt| match prompt.context.history.len() {
        0 => vec![say("first "), Piece::Wait(waits.clone()), say("answer")],
        _ => vec![say("second answer")],
    })
    .await;
    let first = bench.chat("first");
    let second = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let begun = ask(&bench, "second", false).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        go_on.notify_one();
        until(&bench, &begun["id"], "completed").await
    };
    tokio::join!(first, second);
    let said: Vec<_> = bench.messages().await.iter().map(|message| message["content"].clone()).collect();
    assert_eq!(said, ["first", "first answer", "second", "second answer"]);
}

#[tokio::test]
async fn a_model_that_fails_is_told() {
    let bench = bench(|_| vec![Piece::Fail]).await;
    let ran = ask(&bench, "hello", true).await;
    assert_eq!((&ran["status"], &ran["error_category"]), (&json!("failure"), &json!("transient")), "{ran}");
    assert!(!ran.to_string().contains("hunter22"), "{ran}");
}
