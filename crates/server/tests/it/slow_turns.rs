//! Tests of slow turns: events are streamed at once, turns finish without a client, and streams can be resumed.

use std::sync::Arc;

use futures::StreamExt;
use model::UserId;
use serde_json::json;
use tokio::sync::Notify;

use crate::{ReplyStep, TestServer, call, done, events, say};

const FIRST_SENTENCE: &str = "I'm going to look at this right now, one moment please. ";

/// Starts a server with a model that replies in two parts. The second part waits for the returned signal.
async fn start_waiting() -> (TestServer, Arc<Notify>) {
    let go = Arc::new(Notify::new());
    let wait = go.clone();
    let server = TestServer::with_script(move |prompt| match prompt.steps.len() {
        0 => vec![call("add_task", json!({"title": prompt.request.message.clone()}))],
        _ => vec![say(FIRST_SENTENCE), ReplyStep::Wait(wait.clone()), say("There is the milk.")],
    })
    .await;
    (server, go)
}

/// Reads until the text arrives. Returns everything that was read.
async fn read_until(stream: &mut (impl StreamExt<Item = reqwest::Result<bytes::Bytes>> + Unpin), text: &str) -> String {
    let mut read = String::new();
    while !read.contains(text) {
        read.push_str(std::str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap());
    }
    read
}

async fn start_stream(server: &TestServer, input: &str, key: Option<(&str, usize)>) -> reqwest::Response {
    let body = json!({"input": input, "conversation_id": "conv_1"});
    let mut request = server.client.post(format!("{}/chat/stream", server.url)).json(&body);
    if let Some((key, seen)) = key {
        request = request.header("Idempotency-Key", key).header("Last-Event-ID", seen);
    }
    request.send().await.unwrap()
}

#[tokio::test]
async fn events_are_streamed_immediately() {
    // CHAT-1, CHAT-5, MODEL-1
    let (server, go) = start_waiting().await;
    let answer = start_stream(&server, "milk", None).await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let request_id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
    let mut stream = answer.bytes_stream();
    let mut read = read_until(&mut stream, "response_delta").await;
    assert!(!read.contains("event: done"));
    go.notify_one();
    read.push_str(&read_until(&mut stream, "event: done").await);
    let events = events(&read);
    let names: Vec<_> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names[..3], ["thinking", "tool_call", "tool_call"]);
    assert!(events.iter().all(|(_, data)| data["request_id"] == request_id.as_str()), "{events:?}");
    assert_eq!(done(&events)["final_output"], format!("{FIRST_SENTENCE}There is the milk."));
    let ids: Vec<_> = read.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    assert_eq!(ids, (1..=events.len()).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_disconnect_does_not_end_the_turn() {
    // CHAT-6
    let (server, go) = start_waiting().await;
    let mut stream = start_stream(&server, "milk", None).await.bytes_stream();
    read_until(&mut stream, "response_delta").await;
    drop(stream);
    go.notify_one();
    // The next turn of the conversation waits for this one.
    go.notify_one();
    server.chat("bread").await;
    let messages = server.messages().await;
    assert_eq!(messages.len(), 4);
    assert_eq!(messages[1]["content"], format!("{FIRST_SENTENCE}There is the milk."));
    assert_eq!(server.titles(UserId::LOCAL).await, ["milk", "bread"]);
}

#[tokio::test]
async fn a_stream_can_be_resumed() {
    // CHAT-6
    let (server, go) = start_waiting().await;
    let mut stream = start_stream(&server, "milk", Some(("k1", 0))).await.bytes_stream();
    let first = read_until(&mut stream, "response_delta").await;
    let seen = events(&first).len();
    drop(stream);
    // Resumed while the turn is running.
    let mut again = start_stream(&server, "milk", Some(("k1", 2))).await.bytes_stream();
    let second = read_until(&mut again, "response_delta").await;
    assert_eq!(events(&second), events(&first)[2..]);
    go.notify_one();
    let rest = read_until(&mut again, "event: done").await;
    // Resumed after its end.
    let after = start_stream(&server, "milk", Some(("k1", seen))).await.text().await.unwrap();
    assert_eq!(events(&after), events(&rest));
    let whole = start_stream(&server, "milk", Some(("k1", 0))).await.text().await.unwrap();
    assert_eq!(whole, format!("{first}{rest}"));
    assert_eq!(server.titles(UserId::LOCAL).await, ["milk"], "the task is added once");
    assert_eq!(server.messages().await.len(), 2);
    let other = start_stream(&server, "bread", Some(("k1", 0))).await;
    assert_eq!(other.status(), 422, "the same key for a different request");
}

#[tokio::test]
async fn turns_of_one_conversation_are_serialized() {
    // CHAT-7
    let go = Arc::new(Notify::new());
    let wait = go.clone();
    let server = Arc::new(
        TestServer::with_script(move |prompt| {
            let reply = format!("The history has {} messages.", prompt.context.history.len());
            vec![ReplyStep::Wait(wait.clone()), say(&reply)]
        })
        .await,
    );
    let turns: Vec<_> = (0..5)
        .map(|_| {
            let server = server.clone();
            tokio::spawn(async move { server.chat("hello").await["response"].as_str().unwrap().to_owned() })
        })
        .collect();
    for _ in 0..5 {
        go.notify_one();
        while is_unused(&go).await {}
    }
    let mut replies = Vec::new();
    for turn in turns {
        replies.push(turn.await.unwrap());
    }
    replies.sort();
    let expected: Vec<_> = (0..5).map(|n| format!("The history has {} messages.", n * 2)).collect();
    assert_eq!(replies, expected, "each turn sees all earlier messages");
}

/// Lets the waiting turn run. Returns `true` if the permit is still unused; it is then restored.
async fn is_unused(go: &Notify) -> bool {
    tokio::task::yield_now().await;
    if futures::FutureExt::now_or_never(go.notified()).is_some() {
        go.notify_one();
        tokio::task::yield_now().await;
        return true;
    }
    false
}

#[tokio::test]
async fn conversations_of_other_users_are_not_found() {
    // CHAT-7
    let server = TestServer::with_script(|_| vec![say("Hello, how can I help you today?")]).await;
    let id: model::conversation::ConversationId = "conv_1".parse().unwrap();
    let message = model::conversation::Message {
        id: server.clock.id(),
        role: model::conversation::MessageRole::User,
        content: "mine".to_owned(),
        timestamp: server.clock.now(),
        tool_calls: Vec::new(),
        pending: None,
    };
    let now = server.clock.now();
    let write = server
        .store
        .transaction(async move |tx| store::conversations::append(tx, crate::BOB, &id, &[message], now).await);
    write.await.unwrap();
    for path in ["/chat", "/chat/stream"] {
        for key in [None, Some("k1")] {
            let mut request = server.client.post(format!("{}{path}", server.url));
            if let Some(key) = key {
                request = request.header("Idempotency-Key", format!("{key}{path}"));
            }
            let answer = request.json(&json!({"input": "hi", "conversation_id": "conv_1"})).send().await.unwrap();
            assert_eq!(answer.status(), 404, "{path}");
        }
    }
}
