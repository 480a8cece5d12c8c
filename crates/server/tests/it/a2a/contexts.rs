//! What the tasks of a context have in common: with the assistant it is a conversation.

use server::Settings;

use super::*;

/// What the assistant said.
fn said(task: &Value) -> &str {
    let artifacts = task["artifacts"].as_array().unwrap();
    artifacts.last().unwrap()["parts"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn the_assistant_remembers_a_context() {
    // A2A-1
    let (bench, _) = started(Settings::default()).await;
    let client = Client::of(&bench, "assistant");
    let first = client.send(text("add a task to buy milk")).await;
    assert_eq!(state_of(&first), "COMPLETED", "{first}");
    assert_eq!(bench.titles(model::UserId::LOCAL).await, ["buy milk"]);
    let mut next = text("mark it as done");
    next["contextId"] = first["contextId"].clone();
    let next = client.send(next).await;
    assert!(said(&next).contains("milk"), "it knows what is meant: {next}");
    assert_ne!(next["id"], first["id"], "each message is a task");
    let conversations: Value =
        bench.client.get(format!("{}/api/conversations", bench.url)).send().await.unwrap().json().await.unwrap();
    assert_eq!(conversations["conversations"][0]["message_count"], 4, "{conversations}");
    let elsewhere = client.send(text("mark it as done")).await;
    assert_ne!(elsewhere["contextId"], first["contextId"]);
    assert!(!said(&elsewhere).contains("milk"), "{elsewhere}");
}

#[tokio::test]
async fn a_confirmation_is_a_question() {
    // A2A-1, AGENT-7
    let (bench, _) = started(Settings::default()).await;
    let client = Client::of(&bench, "assistant");
    for title in ["one", "two"] {
        bench.add(model::UserId::LOCAL, title).await;
    }
    let task = client.send(text("delete all my tasks")).await;
    assert_eq!(state_of(&task), "INPUT_REQUIRED", "{task}");
    let question = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert_eq!(question, said(&task).trim());
    assert_eq!(bench.titles(model::UserId::LOCAL).await.len(), 2, "nothing is done yet");
    let phrase = question.rsplit('\'').nth(1).unwrap();
    let done = client.send(to(&task, text(phrase))).await;
    assert_eq!((state_of(&done), &done["id"]), ("COMPLETED", &task["id"]), "{done}");
    assert!(bench.titles(model::UserId::LOCAL).await.is_empty());
}

#[tokio::test]
async fn what_the_assistant_cannot_read_is_named() {
    // A2A-4
    let (bench, _) = started(Settings::default()).await;
    let client = Client::of(&bench, "assistant");
    let (code, words) = client.error("SendMessage", json!({"message": text(&"x".repeat(5001))})).await;
    assert_eq!((code, words.contains("message.parts")), (-32602, true), "{words}");
    let data = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"a": 1}}]});
    let (code, words) = client.error("SendMessage", json!({ "message": data })).await;
    assert_eq!(code, -32005, "{words}");
}
