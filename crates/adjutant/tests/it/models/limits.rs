//! Limits for providers and models: retry delays, tool calls, and time and memory for replies (MODEL-3, AGENT-4).

use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::json;
use testkit::llm::{LlmFailure, Reply, RetryAfter, StopReason, invalid_tool_names};

use super::{Fixture, Provider, add_task};

#[tokio::test]
async fn retry_after_is_respected() {
    // MODEL-3
    let cases = [
        (Provider::OpenAi, RetryAfter::Seconds(2)),
        (Provider::Anthropic, RetryAfter::Seconds(2)),
        (Provider::Gemini, RetryAfter::Date(Duration::from_millis(3500))),
    ];
    join_all(cases.map(async |(provider, after)| {
        let fixture = Fixture::new(provider).await;
        fixture.llm.script([Reply::failure(LlmFailure::RateLimited(after.clone())), Reply::text("Now.")]);
        let started = Instant::now();
        assert_eq!(fixture.send("hello").await.output(), "Now.", "{provider:?}");
        let waited = started.elapsed();
        // Without the header, the delay is at most half a second. A date has no fractions of a second.
        assert!(waited > Duration::from_millis(1900) && waited < Duration::from_secs(8), "{after:?}: {waited:?}");
        assert_eq!(fixture.request_count(), 2, "{provider:?}");
    }))
    .await;
}

#[tokio::test]
async fn long_retry_delays_are_not_awaited() {
    let fixture = Fixture::new(Provider::OpenAi).await;
    let hour = RetryAfter::Seconds(3600);
    let day = RetryAfter::Date(Duration::from_secs(86_400));
    for after in [hour, day, RetryAfter::Seconds(u64::MAX / 3 * 2), RetryAfter::Seconds(u64::MAX)] {
        fixture.llm.script([Reply::failure(LlmFailure::RateLimited(after.clone()))]);
        let before = fixture.request_count();
        let started = Instant::now();
        fixture.send("add buy milk").await.assert_fell_back();
        assert!(started.elapsed() < Duration::from_secs(5), "{after:?}");
        assert_eq!(fixture.request_count(), before + 1, "{after:?}");
        fixture.send("hello").await;
    }
}

#[tokio::test]
async fn calls_of_unknown_tools_are_reported_to_the_model() {
    for provider in Provider::ONE_PER_PROTOCOL {
        let fixture = Fixture::new(provider).await;
        for name in invalid_tool_names() {
            let before = fixture.request_count();
            fixture.llm.script([Reply::call(&name, json!({"title": "x"})), Reply::text("I was mistaken.")]);
            let turn = fixture.send("hello").await;
            let shown: String = name.chars().take(20).collect();
            assert!(turn.output().ends_with("I was mistaken."), "{provider:?} {shown:?} {turn:?}");
            assert!(turn.calls().iter().all(|(_, status)| *status == "failed"), "{provider:?} {shown:?} {turn:?}");
            assert_eq!(fixture.request_count(), before + 2, "{provider:?} {shown:?}");
            assert_eq!(fixture.llm.requests()[before + 1].tool_results().len(), 1, "{provider:?} {shown:?}");
        }
        assert!(fixture.titles().await.is_empty(), "{provider:?}");
        assert_eq!(fixture.health().await["circuit_breaker"]["failure_count"], 0);
    }
}

#[tokio::test]
async fn invalid_arguments_are_reported_to_the_model() {
    // Arguments of Gemini are part of the JSON document and cannot be invalid by themselves.
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        let fixture = Fixture::new(provider).await;
        for arguments in
            ["{\"title\": \"mi", "[1, 2]", "\"milk\"", "milk", "null", "{}", "{\"title\": 7}", "{\"titel\": \"x\"}"]
        {
            let before = fixture.request_count();
            fixture.llm.script([Reply::call("add_task", arguments), Reply::text("I was mistaken.")]);
            let turn = fixture.send("hello").await;
            assert_eq!(turn.calls(), [("add_task", "failed")], "{provider:?} {arguments} {turn:?}");
            assert!(turn.output().ends_with("I was mistaken."), "{provider:?} {arguments} {turn:?}");
            let results = fixture.llm.requests()[before + 1].tool_results();
            assert_eq!(results.len(), 1, "{provider:?} {arguments} {results:?}");
        }
        // A corrected mistake does not fail the turn.
        fixture.llm.script([
            Reply::call("add_task", "{\"title\""),
            add_task("buy milk"),
            Reply::text("Added the milk."),
        ]);
        let turn = fixture.send("milk").await;
        assert!(turn.succeeded(), "{provider:?} {turn:?}");
        assert_eq!(
            (turn.output(), fixture.titles().await),
            ("Added the milk.", vec!["buy milk".to_owned()]),
            "{provider:?}"
        );
    }
}

#[tokio::test]
async fn the_number_of_tool_calls_is_limited() {
    // AGENT-4
    let fixture = Fixture::new(Provider::Gemini).await;
    fixture.llm.always(Reply::call("list_tasks", json!({})));
    let turn = fixture.send("hello").await;
    assert_eq!((turn.errors(), turn.calls().len()), (vec![("limit_reached", false)], 10), "{turn:?}");
    fixture.llm.always(Reply::calls((0..200).map(|n| ("add_task", json!({"title": format!("task {n}")})))));
    let turn = fixture.send("hello").await;
    assert_eq!((turn.errors(), turn.calls().len()), (vec![("limit_reached", false)], 10), "{turn:?}");
    assert_eq!(fixture.titles().await.len(), 10);
}

#[tokio::test]
async fn truncated_replies_are_returned() {
    for provider in Provider::ONE_PER_PROTOCOL {
        let fixture = Fixture::new(provider).await;
        fixture.llm.script([Reply::text("This is as far as I may").with_stop_reason(StopReason::Length)]);
        let turn = fixture.send("hello").await;
        assert!(turn.output().starts_with("This is as far as I may"), "{provider:?} {turn:?}");
        // A filter that blocks the whole reply is a failure.
        fixture.llm.always(Reply::empty().with_stop_reason(StopReason::Filter));
        fixture.send("add buy milk").await.assert_fell_back();
    }
}

#[tokio::test]
async fn endless_replies_are_cut_off() {
    // AGENT-4
    for provider in Provider::ONE_PER_PROTOCOL {
        let fixture = Fixture::new(provider).await;
        fixture.llm.always(Reply::failure(LlmFailure::EndlessText));
        let started = Instant::now();
        let turn = fixture.send("hello").await;
        assert!(turn.succeeded() && turn.output().starts_with("more more"), "{provider:?} {turn:?}");
        assert!(turn.output().chars().count() < 900, "{provider:?}");
        assert!(started.elapsed() < Duration::from_secs(5), "{provider:?}: the reply is cut off");
        fixture.llm.wait_until_idle().await;
        let peak = peak_memory_kib(fixture.server.pid());
        assert!(peak < 200 * 1024, "{provider:?}: {peak} KiB");
    }
}

#[tokio::test]
async fn endless_lines_are_abandoned() {
    // RES-2
    for provider in Provider::ONE_PER_PROTOCOL {
        let fixture = Fixture::with_config(provider, "[server]\nrequest_timeout_seconds = 5\n").await;
        fixture.llm.always(Reply::failure(LlmFailure::EndlessLine));
        let started = Instant::now();
        let turn = fixture.send("add buy milk").await;
        turn.assert_fell_back();
        assert_eq!(turn.calls(), [("add_task", "completed")], "{provider:?} {turn:?}");
        let (chat, ran) = tokio::join!(fixture.chat("add buy eggs"), fixture.run("add buy bread"));
        assert!(started.elapsed() < Duration::from_secs(10), "{provider:?}: {:?}", started.elapsed());
        assert_eq!((&chat["model"], &ran["metadata"]["model"]), (&json!("offline"), &json!("offline")), "{provider:?}");
        assert_eq!(fixture.titles().await.len(), 3, "{provider:?}");
        fixture.llm.wait_until_idle().await;
        let peak = peak_memory_kib(fixture.server.pid());
        assert!(peak < 200 * 1024, "{provider:?}: {peak} KiB");
    }
}

#[tokio::test]
async fn large_call_indexes_do_not_allocate_memory() {
    // RES-2
    let fixture = Fixture::new(Provider::OpenAi).await;
    for first in [4_000_000_000, u64::MAX - 1] {
        let both = "Added first of two and second of two.";
        let two = [("add_task", json!({"title": "first of two"})), ("add_task", json!({"title": "second of two"}))];
        fixture.llm.script([Reply::calls(two).numbered_from(first), Reply::text(both)]);
        let turn = fixture.send("add two things").await;
        assert_eq!(turn.calls(), [("add_task", "completed"), ("add_task", "completed")], "{first} {turn:?}");
        assert_eq!((turn.output(), turn.errors().len()), (both, 0), "{first} {turn:?}");
        assert_eq!(fixture.llm.requests().last().unwrap().tool_results().len(), 2, "{first}");
    }
    let peak = peak_memory_kib(fixture.server.pid());
    assert!(peak < 200 * 1024, "{peak} KiB");
}

/// Returns the peak memory of a process in KiB.
fn peak_memory_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
