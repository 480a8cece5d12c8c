//! Every subscriber of a task receives all of its events once, in order and to the end, independent of other subscribers
//! (A2A-1).

use std::time::Duration;

use serde_json::{Value, json};

use super::client::{A2aClient, PROTOCOLS, Protocol, Stream, Version};
use super::{Conformance, message, state};

/// Returns the state in an event.
fn event_state(event: &Value) -> Option<&str> {
    let object = if event["task"].is_object() { &event["task"] } else { &event["statusUpdate"] };
    object.is_object().then(|| state(object))
}

fn is_final(state: &str) -> bool {
    ["COMPLETED", "FAILED", "CANCELED", "REJECTED"].contains(&state)
}

/// Starts a task without waiting for it.
async fn start(client: &A2aClient, protocol: Protocol, kind: &str) -> String {
    let params = json!({"message": message(kind, "go"), "configuration": {"returnImmediately": true}});
    let initial = client.call(protocol, "SendMessage", params).await.unwrap();
    assert!(!is_final(state(&initial["task"])), "{protocol:?}: {initial}");
    initial["task"]["id"].as_str().unwrap().to_owned()
}

/// Creates a task that requires input.
async fn start_question(client: &A2aClient, protocol: Protocol) -> String {
    let asked =
        client.call(protocol, "SendMessage", json!({"message": message("tck-input-required", "go")})).await.unwrap();
    assert_eq!(state(&asked["task"]), "INPUT_REQUIRED", "{protocol:?}: {asked}");
    asked["task"]["id"].as_str().unwrap().to_owned()
}

fn answer_to(task: &str) -> Value {
    let mut message = message("tck-complete-task", "here you are");
    message["taskId"] = json!(task);
    json!({"message": message})
}

async fn remaining_events(mut stream: Stream) -> Vec<Value> {
    let all = async {
        let mut events = Vec::new();
        while let Some(event) = stream.next().await.unwrap() {
            events.push(event);
        }
        events
    };
    tokio::time::timeout(Duration::from_secs(20), all).await.unwrap()
}

/// Returns the texts of all artifact updates.
fn chunks(events: &[Value]) -> Vec<&str> {
    let texts = events.iter().filter_map(|event| event["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str());
    texts.filter(|text| !text.is_empty()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_to_a_running_task_ends_with_the_task() {
    // A2A-1
    let server = Conformance::start().await;
    let client = server.client();
    for protocol in PROTOCOLS {
        let task = start(&client, protocol, "tck-slow-chunks").await;
        let events =
            remaining_events(client.stream(protocol, "SubscribeToTask", json!({"id": task})).await.unwrap()).await;
        assert_eq!(events[0]["task"]["id"], task, "{protocol:?}: {events:?}");
        assert_eq!(events.last().and_then(event_state), Some("COMPLETED"), "{protocol:?}: {events:?}");
        assert!(chunks(&events).contains(&"two"), "{protocol:?}: {events:?}");
        // Earlier output is in the first event or in an update, but not in both.
        let before = events[0]["task"]["artifacts"].to_string().contains("one ");
        assert_eq!(chunks(&events).contains(&"one "), !before, "{protocol:?}: {events:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_continues_after_input_was_required() {
    // A2A-1
    let server = Conformance::start().await;
    let client = server.client();
    for protocol in PROTOCOLS {
        let task = start_question(&client, protocol).await;
        let mut stream = client.stream(protocol, "SubscribeToTask", json!({"id": task})).await.unwrap();
        assert_eq!(event_state(&stream.expect().await), Some("INPUT_REQUIRED"), "{protocol:?}");
        let answered = client.call(protocol, "SendMessage", answer_to(&task)).await.unwrap();
        assert_eq!((&answered["task"]["id"], state(&answered["task"])), (&json!(task), "COMPLETED"), "{protocol:?}");
        let events = remaining_events(stream).await;
        assert_eq!(events.last().and_then(event_state), Some("COMPLETED"), "{protocol:?}: {events:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_subscribers_receive_the_same_events() {
    // A2A-1
    let server = Conformance::start().await;
    let client = server.client();
    for protocol in PROTOCOLS {
        let task = start_question(&client, protocol).await;
        let follow = || client.stream(protocol, "SubscribeToTask", json!({"id": task}));
        let mut first = follow().await.unwrap();
        let mut second = follow().await.unwrap();
        let mut third = follow().await.unwrap();
        let initial = [first.expect().await, second.expect().await];
        assert_eq!(initial[0], initial[1], "{protocol:?}");
        third.expect().await;
        drop(third);
        client.call(protocol, "SendMessage", answer_to(&task)).await.unwrap();
        let first = remaining_events(first).await;
        let second = remaining_events(second).await;
        assert!(!first.is_empty(), "{protocol:?}");
        assert_eq!(first, second, "{protocol:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disconnected_client_does_not_end_the_task() {
    // A2A-1
    let server = Conformance::start().await;
    let client = server.client();
    for protocol in PROTOCOLS {
        let params = json!({"message": message("tck-long-running", "go")});
        let mut stream = client.stream(protocol, "SendStreamingMessage", params).await.unwrap();
        let task = stream.expect().await["task"]["id"].as_str().unwrap().to_owned();
        drop(stream);
        let ended = wait_for_end(&client, protocol, &task).await;
        assert_eq!(state(&ended), "COMPLETED", "{protocol:?}");
    }
}

async fn wait_for_end(client: &A2aClient, protocol: Protocol, task: &str) -> Value {
    for _ in 0..200 {
        let found = client.call(protocol, "GetTask", json!({"id": task})).await.unwrap();
        if is_final(state(&found)) {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{protocol:?}: {task} does not end");
}

#[tokio::test(flavor = "multi_thread")]
async fn states_progress_and_the_last_event_has_the_final_state() {
    // A2A-1
    let server = Conformance::start().await;
    let client = server.client();
    for protocol in PROTOCOLS {
        for (kind, last) in [
            ("tck-stream-ordering-001", "COMPLETED"),
            ("tck-stream-002", "COMPLETED"),
            ("tck-two-words", "COMPLETED"),
            ("tck-task-failure", "FAILED"),
            ("tck-reject-task", "REJECTED"),
            ("tck-input-required", "INPUT_REQUIRED"),
        ] {
            let params = json!({"message": message(kind, "go")});
            let events = remaining_events(client.stream(protocol, "SendStreamingMessage", params).await.unwrap()).await;
            let states: Vec<_> = events.iter().filter_map(event_state).collect();
            let rank = |state: &&str| match *state {
                "SUBMITTED" => 0,
                "WORKING" => 1,
                _ => 2,
            };
            assert!(states.is_sorted_by_key(rank), "{protocol:?} {kind}: {states:?}");
            assert_eq!(
                (events.last().and_then(event_state), &events[0]["task"].is_object()),
                (Some(last), &true),
                "{protocol:?} {kind}: {events:?}"
            );
            if protocol.1 == Version::V03 {
                let finals: Vec<_> = events
                    .iter()
                    .filter(|event| event["statusUpdate"].is_object())
                    .map(|event| &event["final"])
                    .collect();
                let (last, before) = finals.split_last().unwrap();
                assert!(*last == true && before.iter().all(|is| **is == false), "{protocol:?} {kind}: {finals:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_direct_message_is_the_only_event() {
    // A2A-1
    let server = Conformance::start().await;
    let client = server.client();
    for protocol in PROTOCOLS {
        let params = json!({"message": message("tck-message-response", "go")});
        let events = remaining_events(client.stream(protocol, "SendStreamingMessage", params).await.unwrap()).await;
        assert_eq!(events.len(), 1, "{protocol:?}: {events:?}");
        assert_eq!(events[0]["message"]["parts"][0]["text"], "Direct message response", "{protocol:?}");
        assert_eq!(events[0]["message"]["role"], "ROLE_AGENT", "{protocol:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn chunks_are_joined_in_the_task() {
    // A2A-1
    let server = Conformance::start().await;
    let client = server.client();
    for protocol in PROTOCOLS {
        let params = json!({"message": message("tck-stream-artifact-chunked", "go")});
        let events = remaining_events(client.stream(protocol, "SendStreamingMessage", params).await.unwrap()).await;
        let updates: Vec<_> =
            events.iter().map(|event| &event["artifactUpdate"]).filter(|update| update.is_object()).collect();
        assert_eq!(chunks(&events).concat(), "chunk-1 chunk-2", "{protocol:?}: {events:?}");
        assert_ne!(updates[0]["append"], true, "the first chunk is not appended: {protocol:?}");
        assert!(updates[1..].iter().all(|update| update["append"] == true), "{protocol:?}: {updates:?}");
        assert_eq!(updates.iter().filter(|update| update["lastChunk"] == true).count(), 1, "{protocol:?}: {updates:?}");
        let task = events[0]["task"]["id"].clone();
        let found = client.call(protocol, "GetTask", json!({"id": task})).await.unwrap();
        let artifacts = found["artifacts"].as_array().unwrap();
        let texts: String =
            artifacts[0]["parts"].as_array().unwrap().iter().filter_map(|part| part["text"].as_str()).collect();
        assert_eq!((artifacts.len(), texts.as_str()), (1, "chunk-1 chunk-2"), "{protocol:?}: {found}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_updates_arrive_exactly_once() {
    // A2A-1
    let server = Conformance::start().await;
    let client = server.client();
    let expected: Vec<_> = (1..=1000).map(|n| format!("{n}\n")).collect();
    for protocol in PROTOCOLS {
        let params = json!({"message": message("tck-count-1000", "go")});
        let events = remaining_events(client.stream(protocol, "SendStreamingMessage", params).await.unwrap()).await;
        assert_eq!(chunks(&events), expected, "{protocol:?}");
    }
}
