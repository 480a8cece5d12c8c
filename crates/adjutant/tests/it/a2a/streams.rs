//! Whoever follows a task is told of everything that happens to it, once, in order, to its end, however many others follow it
//! and whoever goes away (A2A-1).

use std::time::Duration;

use serde_json::{Value, json};

use super::speak::{Speaker, Stream, Version, WAYS, Way};
use super::{Conformance, message, state};

/// The state that an event tells of.
fn told(event: &Value) -> Option<&str> {
    let of = if event["task"].is_object() { &event["task"] } else { &event["statusUpdate"] };
    of.is_object().then(|| state(of))
}

fn is_final(state: &str) -> bool {
    ["COMPLETED", "FAILED", "CANCELED", "REJECTED"].contains(&state)
}

/// Begins a task and does not wait for it.
async fn begin(speaker: &Speaker, way: Way, kind: &str) -> String {
    let params = json!({"message": message(kind, "go"), "configuration": {"returnImmediately": true}});
    let begun = speaker.ask(way, "SendMessage", params).await.unwrap();
    assert!(!is_final(state(&begun["task"])), "{way:?}: {begun}");
    begun["task"]["id"].as_str().unwrap().to_owned()
}

async fn ask_something(speaker: &Speaker, way: Way) -> String {
    let asked = speaker.ask(way, "SendMessage", json!({"message": message("tck-input-required", "go")})).await.unwrap();
    assert_eq!(state(&asked["task"]), "INPUT_REQUIRED", "{way:?}: {asked}");
    asked["task"]["id"].as_str().unwrap().to_owned()
}

fn answer_to(task: &str) -> Value {
    let mut message = message("tck-complete-task", "here you are");
    message["taskId"] = json!(task);
    json!({"message": message})
}

async fn rest(mut stream: Stream) -> Vec<Value> {
    let all = async {
        let mut events = Vec::new();
        while let Some(event) = stream.next().await.unwrap() {
            events.push(event);
        }
        events
    };
    tokio::time::timeout(Duration::from_secs(20), all).await.unwrap()
}

/// The pieces of artifacts, as text.
fn pieces(events: &[Value]) -> Vec<&str> {
    let texts = events.iter().filter_map(|event| event["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str());
    texts.filter(|text| !text.is_empty()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_runs_is_followed_to_its_end() {
    // A2A-1
    let server = Conformance::start().await;
    let speaker = server.speaker();
    for way in WAYS {
        let task = begin(&speaker, way, "tck-slow-chunks").await;
        let events = rest(speaker.follow(way, "SubscribeToTask", json!({"id": task})).await.unwrap()).await;
        assert_eq!(events[0]["task"]["id"], task, "{way:?}: {events:?}");
        assert_eq!(events.last().and_then(told), Some("COMPLETED"), "{way:?}: {events:?}");
        assert!(pieces(&events).contains(&"two"), "{way:?}: {events:?}");
        // What was said before is in the first event or comes again, but not both.
        let before = events[0]["task"]["artifacts"].to_string().contains("one ");
        assert_eq!(pieces(&events).contains(&"one "), !before, "{way:?}: {events:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_asks_is_followed_until_it_was_answered_and_has_ended() {
    // A2A-1
    let server = Conformance::start().await;
    let speaker = server.speaker();
    for way in WAYS {
        let task = ask_something(&speaker, way).await;
        let mut stream = speaker.follow(way, "SubscribeToTask", json!({"id": task})).await.unwrap();
        assert_eq!(told(&stream.expect().await), Some("INPUT_REQUIRED"), "{way:?}");
        let answered = speaker.ask(way, "SendMessage", answer_to(&task)).await.unwrap();
        assert_eq!((&answered["task"]["id"], state(&answered["task"])), (&json!(task), "COMPLETED"), "{way:?}");
        let events = rest(stream).await;
        assert_eq!(events.last().and_then(told), Some("COMPLETED"), "{way:?}: {events:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_who_follow_hear_the_same_also_when_one_goes_away() {
    // A2A-1
    let server = Conformance::start().await;
    let speaker = server.speaker();
    for way in WAYS {
        let task = ask_something(&speaker, way).await;
        let follow = || speaker.follow(way, "SubscribeToTask", json!({"id": task}));
        let mut first = follow().await.unwrap();
        let mut second = follow().await.unwrap();
        let mut third = follow().await.unwrap();
        let begun = [first.expect().await, second.expect().await];
        assert_eq!(begun[0], begun[1], "{way:?}");
        third.expect().await;
        drop(third);
        speaker.ask(way, "SendMessage", answer_to(&task)).await.unwrap();
        let first = rest(first).await;
        let second = rest(second).await;
        assert!(!first.is_empty(), "{way:?}");
        assert_eq!(first, second, "{way:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_hangs_up_does_not_end_the_task() {
    // A2A-1
    let server = Conformance::start().await;
    let speaker = server.speaker();
    for way in WAYS {
        let params = json!({"message": message("tck-long-running", "go")});
        let mut stream = speaker.follow(way, "SendStreamingMessage", params).await.unwrap();
        let task = stream.expect().await["task"]["id"].as_str().unwrap().to_owned();
        drop(stream);
        let ended = ended(&speaker, way, &task).await;
        assert_eq!(state(&ended), "COMPLETED", "{way:?}");
    }
}

async fn ended(speaker: &Speaker, way: Way, task: &str) -> Value {
    for _ in 0..200 {
        let found = speaker.ask(way, "GetTask", json!({"id": task})).await.unwrap();
        if is_final(state(&found)) {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{way:?}: {task} does not end");
}

#[tokio::test(flavor = "multi_thread")]
async fn states_never_go_back_and_the_last_event_tells_the_end() {
    // A2A-1
    let server = Conformance::start().await;
    let speaker = server.speaker();
    for way in WAYS {
        for (kind, last) in [
            ("tck-stream-ordering-001", "COMPLETED"),
            ("tck-stream-002", "COMPLETED"),
            ("tck-two-words", "COMPLETED"),
            ("tck-task-failure", "FAILED"),
            ("tck-reject-task", "REJECTED"),
            ("tck-input-required", "INPUT_REQUIRED"),
        ] {
            let params = json!({"message": message(kind, "go")});
            let events = rest(speaker.follow(way, "SendStreamingMessage", params).await.unwrap()).await;
            let states: Vec<_> = events.iter().filter_map(told).collect();
            let rank = |state: &&str| match *state {
                "SUBMITTED" => 0,
                "WORKING" => 1,
                _ => 2,
            };
            assert!(states.is_sorted_by_key(rank), "{way:?} {kind}: {states:?}");
            assert_eq!(
                (events.last().and_then(told), &events[0]["task"].is_object()),
                (Some(last), &true),
                "{way:?} {kind}: {events:?}"
            );
            if way.1 == Version::V03 {
                let finals: Vec<_> = events
                    .iter()
                    .filter(|event| event["statusUpdate"].is_object())
                    .map(|event| &event["final"])
                    .collect();
                let (last, before) = finals.split_last().unwrap();
                assert!(*last == true && before.iter().all(|is| **is == false), "{way:?} {kind}: {finals:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_a_message_is_all_that_comes() {
    // A2A-1
    let server = Conformance::start().await;
    let speaker = server.speaker();
    for way in WAYS {
        let params = json!({"message": message("tck-message-response", "go")});
        let events = rest(speaker.follow(way, "SendStreamingMessage", params).await.unwrap()).await;
        assert_eq!(events.len(), 1, "{way:?}: {events:?}");
        assert_eq!(events[0]["message"]["parts"][0]["text"], "Direct message response", "{way:?}");
        assert_eq!(events[0]["message"]["role"], "ROLE_AGENT", "{way:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_in_pieces_is_whole_in_the_task() {
    // A2A-1
    let server = Conformance::start().await;
    let speaker = server.speaker();
    for way in WAYS {
        let params = json!({"message": message("tck-stream-artifact-chunked", "go")});
        let events = rest(speaker.follow(way, "SendStreamingMessage", params).await.unwrap()).await;
        let updates: Vec<_> =
            events.iter().map(|event| &event["artifactUpdate"]).filter(|update| update.is_object()).collect();
        assert_eq!(pieces(&events).concat(), "chunk-1 chunk-2", "{way:?}: {events:?}");
        assert_ne!(updates[0]["append"], true, "the first piece has nothing to go on from: {way:?}");
        assert!(updates[1..].iter().all(|update| update["append"] == true), "{way:?}: {updates:?}");
        assert_eq!(updates.iter().filter(|update| update["lastChunk"] == true).count(), 1, "{way:?}: {updates:?}");
        let task = events[0]["task"]["id"].clone();
        let found = speaker.ask(way, "GetTask", json!({"id": task})).await.unwrap();
        let artifacts = found["artifacts"].as_array().unwrap();
        let texts: String =
            artifacts[0]["parts"].as_array().unwrap().iter().filter_map(|part| part["text"].as_str()).collect();
        assert_eq!((artifacts.len(), texts.as_str()), (1, "chunk-1 chunk-2"), "{way:?}: {found}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_updates_all_arrive_once() {
    // A2A-1
    let server = Conformance::start().await;
    let speaker = server.speaker();
    let wanted: Vec<_> = (1..=1000).map(|n| format!("{n}\n")).collect();
    for way in WAYS {
        let params = json!({"message": message("tck-count-1000", "go")});
        let events = rest(speaker.follow(way, "SendStreamingMessage", params).await.unwrap()).await;
        assert_eq!(pieces(&events), wanted, "{way:?}");
    }
}
