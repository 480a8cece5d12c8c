//! Providers and models that overdo it: they are waited for as they ask, and not longer than there is time, and take no
//! more memory than there is (MODEL-3, AGENT-4).

use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::json;
use testkit::llm::{Fault, Reply, RetryAfter, Stop, bad_tool_names};

use super::{Kind, Stage, adding};

#[tokio::test]
async fn retry_after_is_honoured() {
    let cases = [
        (Kind::OpenAi, RetryAfter::Seconds(2)),
        (Kind::Anthropic, RetryAfter::Seconds(2)),
        (Kind::Gemini, RetryAfter::Date(Duration::from_millis(3500))),
    ];
    join_all(cases.map(async |(kind, after)| {
        let stage = Stage::new(kind).await;
        stage.llm.script([Reply::fault(Fault::RateLimited(after.clone())), Reply::text("Now.")]);
        let started = Instant::now();
        assert_eq!(stage.say("hello").await.output(), "Now.", "{kind:?}");
        let waited = started.elapsed();
        // Without being asked to it would wait for half a second at most; a date has no fractions.
        assert!(waited > Duration::from_millis(1900) && waited < Duration::from_secs(8), "{after:?}: {waited:?}");
        assert_eq!(stage.count(), 2, "{kind:?}");
    }))
    .await;
}

#[tokio::test]
async fn what_would_take_too_long_is_not_waited_for() {
    let stage = Stage::new(Kind::OpenAi).await;
    let hour = RetryAfter::Seconds(3600);
    let day = RetryAfter::Date(Duration::from_secs(86_400));
    for after in [hour, day, RetryAfter::Seconds(u64::MAX / 3 * 2), RetryAfter::Seconds(u64::MAX)] {
        stage.llm.script([Reply::fault(Fault::RateLimited(after.clone()))]);
        let before = stage.count();
        let started = Instant::now();
        stage.say("add buy milk").await.assert_fell_back();
        assert!(started.elapsed() < Duration::from_secs(5), "{after:?}");
        assert_eq!(stage.count(), before + 1, "{after:?}");
        stage.say("hello").await;
    }
}

#[tokio::test]
async fn calls_that_make_no_sense_are_errors_for_the_model() {
    for kind in Kind::WIRES {
        let stage = Stage::new(kind).await;
        for name in bad_tool_names() {
            let before = stage.count();
            stage.llm.script([Reply::call(&name, json!({"title": "x"})), Reply::text("I was mistaken.")]);
            let turn = stage.say("hello").await;
            let shown: String = name.chars().take(20).collect();
            assert!(turn.output().ends_with("I was mistaken."), "{kind:?} {shown:?} {turn:?}");
            assert!(turn.calls().iter().all(|(_, status)| *status == "failed"), "{kind:?} {shown:?} {turn:?}");
            assert_eq!(stage.count(), before + 2, "{kind:?} {shown:?}");
            assert_eq!(stage.llm.requests()[before + 1].tool_results().len(), 1, "{kind:?} {shown:?}");
        }
        assert!(stage.titles().await.is_empty(), "{kind:?}");
        assert_eq!(stage.health().await["circuit_breaker"]["failure_count"], 0);
    }
}

#[tokio::test]
async fn broken_arguments_are_errors_for_the_model() {
    // Gemini's are part of the JSON and cannot be broken.
    for kind in [Kind::OpenAi, Kind::Anthropic] {
        let stage = Stage::new(kind).await;
        for arguments in
            ["{\"title\": \"mi", "[1, 2]", "\"milk\"", "milk", "null", "{}", "{\"title\": 7}", "{\"titel\": \"x\"}"]
        {
            let before = stage.count();
            stage.llm.script([Reply::call("add_task", arguments), Reply::text("I was mistaken.")]);
            let turn = stage.say("hello").await;
            assert_eq!(turn.calls(), [("add_task", "failed")], "{kind:?} {arguments} {turn:?}");
            assert!(turn.output().ends_with("I was mistaken."), "{kind:?} {arguments} {turn:?}");
            let results = stage.llm.requests()[before + 1].tool_results();
            assert_eq!(results.len(), 1, "{kind:?} {arguments} {results:?}");
        }
        // A mistake that is made good is none.
        stage.llm.script([Reply::call("add_task", "{\"title\""), adding("buy milk"), Reply::text("Added.")]);
        let turn = stage.say("milk").await;
        assert!(turn.succeeded(), "{kind:?} {turn:?}");
        assert_eq!((turn.output(), stage.titles().await), ("Added.", vec!["buy milk".to_owned()]), "{kind:?}");
    }
}

#[tokio::test]
async fn a_model_that_never_stops_calling_is_stopped() {
    // AGENT-4
    let stage = Stage::new(Kind::Gemini).await;
    stage.llm.always(Reply::call("list_tasks", json!({})));
    let turn = stage.say("hello").await;
    assert_eq!((turn.errors(), turn.calls().len()), (vec![("limit_reached", false)], 10), "{turn:?}");
    stage.llm.always(Reply::calls((0..200).map(|n| ("add_task", json!({"title": format!("task {n}")})))));
    let turn = stage.say("hello").await;
    assert_eq!((turn.errors(), turn.calls().len()), (vec![("limit_reached", false)], 10), "{turn:?}");
    assert_eq!(stage.titles().await.len(), 10);
}

#[tokio::test]
async fn an_answer_that_was_cut_short_by_the_provider_is_an_answer() {
    for kind in Kind::WIRES {
        let stage = Stage::new(kind).await;
        stage.llm.script([Reply::text("This is as far as I may").stopped(Stop::Length)]);
        let turn = stage.say("hello").await;
        assert!(turn.output().starts_with("This is as far as I may"), "{kind:?} {turn:?}");
        // A filter that lets nothing through leaves nothing to say.
        stage.llm.always(Reply::empty().stopped(Stop::Filter));
        stage.say("add buy milk").await.assert_fell_back();
    }
}

#[tokio::test]
async fn endless_answers_end() {
    // AGENT-4
    for kind in Kind::WIRES {
        let stage = Stage::new(kind).await;
        stage.llm.always(Reply::fault(Fault::EndlessText));
        let started = Instant::now();
        let turn = stage.say("hello").await;
        assert!(turn.succeeded() && turn.output().starts_with("more more"), "{kind:?} {turn:?}");
        assert!(turn.output().chars().count() < 900, "{kind:?}");
        assert!(started.elapsed() < Duration::from_secs(5), "{kind:?}: enough is enough");
        stage.llm.idle().await;
        let peak = memory(stage.server.pid());
        assert!(peak < 200 * 1024, "{kind:?}: {peak} KiB");
    }
}

#[tokio::test]
async fn a_line_that_never_ends_is_left() {
    // RES-2
    for kind in Kind::WIRES {
        let stage = Stage::with(kind, "[server]\nrequest_timeout_seconds = 5\n").await;
        stage.llm.always(Reply::fault(Fault::EndlessLine));
        let started = Instant::now();
        let turn = stage.say("add buy milk").await;
        turn.assert_fell_back();
        assert_eq!(turn.calls(), [("add_task", "completed")], "{kind:?} {turn:?}");
        let (chat, ran) = tokio::join!(stage.chat("add buy eggs"), stage.run("add buy bread"));
        assert!(started.elapsed() < Duration::from_secs(10), "{kind:?}: {:?}", started.elapsed());
        assert_eq!((&chat["model"], &ran["metadata"]["model"]), (&json!("offline"), &json!("offline")), "{kind:?}");
        assert_eq!(stage.titles().await.len(), 3, "{kind:?}");
        stage.llm.idle().await;
        let peak = memory(stage.server.pid());
        assert!(peak < 200 * 1024, "{kind:?}: {peak} KiB");
    }
}

#[tokio::test]
async fn a_number_of_a_call_is_no_size() {
    // RES-2
    let stage = Stage::new(Kind::OpenAi).await;
    for first in [4_000_000_000, u64::MAX - 1] {
        let two = [("add_task", json!({"title": "first of two"})), ("add_task", json!({"title": "second of two"}))];
        stage.llm.script([Reply::calls(two).numbered_from(first), Reply::text("Both added.")]);
        let turn = stage.say("add two things").await;
        assert_eq!(turn.calls(), [("add_task", "completed"), ("add_task", "completed")], "{first} {turn:?}");
        assert_eq!((turn.output(), turn.errors().len()), ("Both added.", 0), "{first} {turn:?}");
        assert_eq!(stage.llm.requests().last().unwrap().tool_results().len(), 2, "{first}");
    }
    let peak = memory(stage.server.pid());
    assert!(peak < 200 * 1024, "{peak} KiB");
}

/// The most memory that a process has had, in KiB.
fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
