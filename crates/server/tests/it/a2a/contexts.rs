//! Tests of A2A contexts: for the assistant a context is a conversation.

use server::ServerSettings;

use super::*;

/// Returns the reply of the assistant.
fn reply(task: &Value) -> &str {
    let artifacts = task["artifacts"].as_array().unwrap();
    artifacts.last().unwrap()["parts"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn a_context_is_a_conversation_with_the_assistant() {
    // A2A-1
    let (server, _) = start_server(ServerSettings::default()).await;
    let client = RpcClient::new(&server, "assistant");
    let first = client.send(text("add a task to buy milk")).await;
    assert_eq!(state_of(&first), "COMPLETED", "{first}");
    assert_eq!(server.titles(model::UserId::LOCAL).await, ["buy milk"]);
    let mut next = text("mark it as done");
    next["contextId"] = first["contextId"].clone();
    let next = client.send(next).await;
    assert!(reply(&next).contains("milk"), "the reference is resolved: {next}");
    assert_ne!(next["id"], first["id"], "each message is a task");
    let conversations: Value =
        server.client.get(format!("{}/api/conversations", server.url)).send().await.unwrap().json().await.unwrap();
    assert_eq!(conversations["conversations"][0]["message_count"], 4, "{conversations}");
    let new_context = client.send(text("mark it as done")).await;
    assert_ne!(new_context["contextId"], first["contextId"]);
    assert!(!reply(&new_context).contains("milk"), "{new_context}");
}

#[tokio::test]
async fn a_confirmation_requires_input() {
    // A2A-1, AGENT_ID-7
    let (server, _) = start_server(ServerSettings::default()).await;
    let client = RpcClient::new(&server, "assistant");
    for title in ["one", "two"] {
        server.add(model::UserId::LOCAL, title).await;
    }
    let task = client.send(text("delete all my tasks")).await;
    assert_eq!(state_of(&task), "INPUT_REQUIRED", "{task}");
    let question = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert_eq!(question, reply(&task).trim());
    assert_eq!(server.titles(model::UserId::LOCAL).await.len(), 2, "nothing is deleted yet");
    let phrase = question.rsplit('\'').nth(1).unwrap();
    let done = client.send(to_task(&task, text(phrase))).await;
    assert_eq!((state_of(&done), &done["id"]), ("COMPLETED", &task["id"]), "{done}");
    assert!(server.titles(model::UserId::LOCAL).await.is_empty());
}

#[tokio::test]
async fn unsupported_content_is_rejected() {
    // A2A-4
    let (server, _) = start_server(ServerSettings::default()).await;
    let client = RpcClient::new(&server, "assistant");
    let (code, message) = client.error("SendMessage", json!({"message": text(&"x".repeat(5001))})).await;
    assert_eq!((code, message.contains("message.parts")), (-32602, true), "{message}");
    let data = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"a": 1}}]});
    let (code, message) = client.error("SendMessage", json!({ "message": data })).await;
    assert_eq!(code, -32005, "{message}");
}
