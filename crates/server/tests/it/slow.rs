//! Turns that take their time: told while they happen, kept whether or not anybody listens, picked up again.

use std::sync::Arc;

use futures::StreamExt;
use model::UserId;
use serde_json::json;
use tokio::sync::Notify;

use crate::{Bench, Piece, call, done, events, say};

const FIRST: &str = "I'm going to look at this right now, one moment please. ";

/// A model that says something, waits for the test, and ends.
async fn waiting() -> (Bench, Arc<Notify>) {
    let go = Arc::new(Notify::new());
    let wait = go.clone();
    let bench = Bench::with(move |prompt| match prompt.steps.len() {
        0 => vec![call("add_task", json!({"title": prompt.request.message.clone()}))],
        _ => vec![say(FIRST), Piece::Wait(wait.clone()), say("There it is.")],
    })
    .await;
    (bench, go)
}

/// Reads until something has come, and gives all of it.
async fn until(stream: &mut (impl StreamExt<Item = reqwest::Result<bytes::Bytes>> + Unpin), text: &str) -> String {
    let mut read = String::new();
    while !read.contains(text) {
        read.push_str(std::str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap());
    }
    read
}

async fn begin(bench: &Bench, input: &str, key: Option<(&str, usize)>) -> reqwest::Response {
    let body = json!({"input": input, "conversation_id": "conv_1"});
    let mut request = bench.client.post(format!("{}/chat/stream", bench.url)).json(&body);
    if let Some((key, seen)) = key {
        request = request.header("Idempotency-Key", key).header("Last-Event-ID", seen);
    }
    request.send().await.unwrap()
}

#[tokio::test]
async fn events_come_when_they_happen() {
    // CHAT-1
    let (bench, go) = waiting().await;
    let answer = begin(&bench, "milk", None).await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let request_id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
    let mut stream = answer.bytes_stream();
    let mut read = until(&mut stream, "response_delta").await;
    assert!(!read.contains("event: done"));
    go.notify_one();
    read.push_str(&until(&mut stream, "event: done").await);
    let events = events(&read);
    let names: Vec<_> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names[..3], ["thinking", "tool_call", "tool_call"]);
    assert!(events.iter().all(|(_, data)| data["request_id"] == request_id.as_str()), "{events:?}");
    assert_eq!(done(&events)["final_output"], format!("{FIRST}There it is."));
    let ids: Vec<_> = read.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    assert_eq!(ids, (1..=events.len()).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[tokio::test]
async fn who_goes_away_ends_the_stream_and_not_the_turn() {
    // CHAT-6
    let (bench, go) = waiting().await;
    let mut stream = begin(&bench, "milk", None).await.bytes_stream();
    until(&mut stream, "response_delta").await;
    drop(stream);
    go.notify_one();
    // The next turn of the conversation waits for this one.
    go.notify_one();
    bench.chat("bread").await;
    let messages = bench.messages().await;
    assert_eq!(messages.len(), 4);
    assert_eq!(messages[1]["content"], format!("{FIRST}There it is."));
    assert_eq!(bench.titles(UserId::LOCAL).await, ["milk", "bread"]);
}

#[tokio::test]
async fn a_stream_is_picked_up_where_it_was_left() {
    // CHAT-6
    let (bench, go) = waiting().await;
    let mut stream = begin(&bench, "milk", Some(("k1", 0))).await.bytes_stream();
    let first = until(&mut stream, "response_delta").await;
    let seen = events(&first).len();
    drop(stream);
    // While it is under way …
    let mut again = begin(&bench, "milk", Some(("k1", 2))).await.bytes_stream();
    let second = until(&mut again, "response_delta").await;
    assert_eq!(events(&second), events(&first)[2..]);
    go.notify_one();
    let rest = until(&mut again, "event: done").await;
    // … and after its end.
    let after = begin(&bench, "milk", Some(("k1", seen))).await.text().await.unwrap();
    assert_eq!(events(&after), events(&rest));
    let whole = begin(&bench, "milk", Some(("k1", 0))).await.text().await.unwrap();
    assert_eq!(whole, format!("{first}{rest}"));
    assert_eq!(bench.titles(UserId::LOCAL).await, ["milk"], "once");
    assert_eq!(bench.messages().await.len(), 2);
    let other = begin(&bench, "bread", Some(("k1", 0))).await;
    assert_eq!(other.status(), 422, "the same key for something else");
}

#[tokio::test]
async fn turns_of_one_conversation_follow_one_another() {
    // CHAT-7
    let go = Arc::new(Notify::new());
    let wait = go.clone();
    let bench = Arc::new(
        Bench::with(move |prompt| {
            let said = format!("I have heard {} messages before this one.", prompt.context.history.len());
            vec![Piece::Wait(wait.clone()), say(&said)]
        })
        .await,
    );
    let turns: Vec<_> = (0..5)
        .map(|_| {
            let bench = bench.clone();
            tokio::spawn(async move { bench.chat("hello").await["response"].as_str().unwrap().to_owned() })
        })
        .collect();
    for _ in 0..5 {
        go.notify_one();
        while go_is_taken(&go).await {}
    }
    let mut heard = Vec::new();
    for turn in turns {
        heard.push(turn.await.unwrap());
    }
    heard.sort();
    let expected: Vec<_> = (0..5).map(|n| format!("I have heard {} messages before this one.", n * 2)).collect();
    assert_eq!(heard, expected, "each one sees all that went before");
}

/// Gives the one who waits a chance; a permit that nobody has taken yet is put back.
async fn go_is_taken(go: &Notify) -> bool {
    tokio::task::yield_now().await;
    if futures::FutureExt::now_or_never(go.notified()).is_some() {
        go.notify_one();
        tokio::task::yield_now().await;
        return true;
    }
    false
}

#[tokio::test]
async fn another_users_conversation_is_not_there() {
    // CHAT-7
    let bench = Bench::with(|_| vec![say("Hello, how can I help you today?")]).await;
    let id: model::conversation::Id = "conv_1".parse().unwrap();
    let message = model::conversation::Message {
        id: bench.clock.id(),
        role: model::conversation::Role::User,
        content: "mine".to_owned(),
        timestamp: bench.clock.now(),
        tool_calls: Vec::new(),
        pending: None,
    };
    let now = bench.clock.now();
    let write = bench
        .store
        .transaction(async move |tx| store::conversations::append(tx, crate::BOB, &id, &[message], now).await);
    write.await.unwrap();
    for path in ["/chat", "/chat/stream"] {
        for key in [None, Some("k1")] {
            let mut request = bench.client.post(format!("{}{path}", bench.url));
            if let Some(key) = key {
                request = request.header("Idempotency-Key", format!("{key}{path}"));
            }
            let answer = request.json(&json!({"input": "hi", "conversation_id": "conv_1"})).send().await.unwrap();
            assert_eq!(answer.status(), 404, "{path}");
        }
    }
}
