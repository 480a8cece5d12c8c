//! Every failure is retried or replaced by the fallback, opens the circuit breaker and stays within the time limit (MODEL-3,
//! RES-1, RES-2).

use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::json;
use testkit::llm::{LlmFailure, Reply, RetryAfter};

use super::{Fixture, Provider, all_failures};

/// The expected handling of a failure.
struct Expected {
    /// Retried within the turn: the failure is transient and there is no output yet.
    retried: bool,
    /// Counts for the circuit breaker: the cause is the provider, not the request.
    counts: bool,
    /// The failure occurs after a part of the reply.
    has_output: bool,
}

fn expected(failure: &LlmFailure) -> Expected {
    let hangs = matches!(
        failure,
        LlmFailure::HangBeforeHeaders | LlmFailure::HangAfterHeaders | LlmFailure::HangMidway | LlmFailure::EndlessLine
    );
    let has_output = matches!(
        failure,
        LlmFailure::HangMidway
            | LlmFailure::CutMidway
            | LlmFailure::EndMidway
            | LlmFailure::BrokenJson
            | LlmFailure::ErrorEvent
    );
    let refused = matches!(failure, LlmFailure::Status(400 | 401 | 403 | 404 | 413));
    let counts = !matches!(failure, LlmFailure::Status(400 | 413));
    Expected { retried: !(hangs || has_output || refused), counts, has_output }
}

/// The time limit of a turn, in seconds.
const LIMIT_SECONDS: u64 = 4;

async fn start(provider: Provider) -> Fixture {
    Fixture::with_config(provider, &format!("[server]\nrequest_timeout_seconds = {LIMIT_SECONDS}\n")).await
}

#[tokio::test]
async fn every_failure_of_openai_is_handled() {
    // MODEL-3, RES-1, RES-2
    for batch in all_failures().chunks(9) {
        join_all(batch.iter().map(|failure| check_failure(Provider::OpenAi, failure.clone()))).await;
    }
}

#[tokio::test]
async fn typical_failures_of_other_providers_are_handled() {
    // MODEL-3
    let typical = [
        LlmFailure::Status(503),
        LlmFailure::RateLimited(RetryAfter::Absent),
        LlmFailure::CutAtStart,
        LlmFailure::CutMidway,
        LlmFailure::EndAtStart,
        LlmFailure::EndMidway,
        LlmFailure::BrokenJson,
        LlmFailure::ErrorEvent,
        LlmFailure::EmptyBody,
    ];
    let each = |provider| typical.iter().map(move |failure| check_failure(provider, failure.clone()));
    join_all(each(Provider::Gemini).chain(each(Provider::Anthropic))).await;
}

/// Checks the handling of a failure.
async fn check_failure(provider: Provider, failure: LlmFailure) {
    let fixture = start(provider).await;
    let expected = expected(&failure);
    let context = format!("{provider:?} {failure:?}");
    check_recovery(&fixture, &failure, &expected, &context).await;
    check_fallback(&fixture, &failure, &expected, &context).await;
    if expected.counts {
        check_open_breaker(&fixture, provider, &context).await;
    }
}

/// The failure occurs once.
async fn check_recovery(fixture: &Fixture, failure: &LlmFailure, expected: &Expected, context: &str) {
    let before = fixture.request_count();
    fixture.llm.script([Reply::failure(failure.clone())]);
    fixture.llm.always(Reply::text("All is well again."));
    let turn = within_limit(context, fixture.send("add water the plants")).await;
    if expected.retried {
        assert_eq!(turn.output(), "All is well again.", "{context}");
        assert!(turn.succeeded() && turn.errors().is_empty(), "{context} {turn:?}");
        assert_eq!(fixture.request_count(), before + 2, "{context}");
    } else {
        turn.assert_fell_back();
        assert_eq!(fixture.request_count(), before + 1, "{context}: not retried");
        assert_eq!(fixture.titles().await, ["water the plants"], "{context}");
    }
    assert_eq!(fixture.send("hello").await.output(), "All is well again.", "{context}: the next turn succeeds");
}

/// The failure occurs in three turns, one for each endpoint.
async fn check_fallback(fixture: &Fixture, failure: &LlmFailure, expected: &Expected, context: &str) {
    let before = fixture.request_count();
    let had = fixture.titles().await.len();
    fixture.llm.always(Reply::failure(failure.clone()));
    let turn = within_limit(context, fixture.send("add call the plumber")).await;
    turn.assert_fell_back();
    assert_eq!(turn.calls(), [("add_task", "completed")], "{context}");
    assert!(
        turn.output().ends_with("Got it! Added 'call the plumber' to your list. Anything else?"),
        "{context} {turn:?}"
    );
    assert_eq!(turn.output().starts_with("Hello"), expected.has_output, "{context}: earlier output is kept {turn:?}");
    let times = if expected.retried { 3 } else { 1 };
    assert_eq!(fixture.request_count() - before, times, "{context}");
    let chat = within_limit(context, fixture.chat("add feed the cat")).await;
    assert!(chat["success"] == true && chat["model"] == "offline", "{context} {chat}");
    assert!(chat["response"].as_str().unwrap().contains("Added 'feed the cat'"), "{context} {chat}");
    assert!(
        chat["warnings"][0].as_str().unwrap().starts_with("AI service temporarily unavailable"),
        "{context} {chat}"
    );
    let ran = within_limit(context, fixture.run("add walk the dog")).await;
    assert!(ran["response_text"].as_str().unwrap().contains("Added 'walk the dog'"), "{context} {ran}");
    assert_eq!(ran["metadata"]["model"], "offline", "{context} {ran}");
    assert!(ran["metadata"]["warnings"][0].as_str().unwrap().starts_with("AI service temporarily"), "{context} {ran}");
    assert_eq!(fixture.request_count() - before, 3 * times, "{context}");
    assert_eq!(fixture.titles().await[had..], ["call the plumber", "feed the cat", "walk the dog"], "{context}");
}

/// After three failures the model is not called any more.
async fn check_open_breaker(fixture: &Fixture, provider: Provider, context: &str) {
    let health = fixture.health().await;
    assert_eq!(health["status"], "unavailable", "{context} {health}");
    let breaker = &health["circuit_breaker"];
    assert_eq!((&breaker["state"], &breaker["failure_count"]), (&json!("open"), &json!(3)), "{context} {breaker}");
    assert!(
        breaker["last_failure_time"].is_string() && breaker["last_state_change"].is_string(),
        "{context} {breaker}"
    );
    assert_eq!(breaker["consecutive_successes"], 0, "{context} {breaker}");
    let before = fixture.request_count();
    let started = Instant::now();
    let turn = fixture.send("add ring the bell").await;
    assert!(started.elapsed() < Duration::from_secs(2), "{context}: no wait");
    turn.assert_fell_back();
    assert_eq!(turn.output(), "Got it! Added 'ring the bell' to your list. Anything else?", "{context}");
    assert_eq!(fixture.request_count(), before, "{context}: the model is not called");
    let opened = fixture.server.wait_for_event("circuit_breaker_opened").await;
    assert_eq!(opened["details"]["failure_count"], 3, "{context} {opened}");
    let changed = fixture.server.wait_for_event("circuit_breaker_state_change").await;
    let states = (&changed["details"]["old_state"], &changed["details"]["new_state"]);
    assert_eq!(states, (&json!("closed"), &json!("open")), "{context} {changed}");
    let line = format!("adjutant_circuit_breaker_state{{service=\"{}\"}} 2", provider.label());
    let metrics = fixture.metrics().await;
    assert!(metrics.contains(&line), "{context} {metrics}");
}

/// Fails if a turn exceeds its time limit, with an allowance for a busy machine.
async fn within_limit<T>(context: &str, turn: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(LIMIT_SECONDS) + Duration::from_secs(3);
    tokio::time::timeout(limit, turn).await.unwrap_or_else(|_| panic!("{context}: takes too long"))
}

#[tokio::test]
async fn without_a_fallback_the_turn_ends_with_an_error_message() {
    // CHAT-1, RES-2
    let fixture = Fixture::with_config(Provider::OpenAi, "fallback = []\n").await;
    for failure in [LlmFailure::Status(500), LlmFailure::Status(401), LlmFailure::CutMidway] {
        fixture.llm.always(Reply::failure(failure.clone()));
        let turn = fixture.send("add buy milk").await;
        assert_eq!(turn.errors(), [("model_unavailable", false)], "{failure:?}");
        let message = turn.events_named("error").next().unwrap()["message"].as_str().unwrap();
        assert!(message.starts_with("AI service temporarily unavailable"), "{message}");
        assert_eq!((turn.succeeded(), &turn.done()["model"]), (false, &json!(Provider::OpenAi.label())), "{failure:?}");
        let words = "I'm having a bit of trouble right now. Please try again.";
        assert!(turn.output().ends_with(words), "{failure:?} {turn:?}");
    }
    let chat = fixture.chat("add buy milk").await;
    assert!(chat["success"] == false && chat["error_type"] == "model_unavailable", "{chat}");
    let ran = fixture.run("add buy milk").await;
    assert!(!ran["response_text"].as_str().unwrap().is_empty(), "{ran}");
    assert!(ran["metadata"]["error_type"].is_string(), "{ran}");
    assert!(fixture.titles().await.is_empty());
}

#[tokio::test]
async fn an_unreachable_provider_is_replaced_by_the_fallback() {
    // RES-2: the port is closed and then open again.
    let fixture = Fixture::new(Provider::OpenAi).await;
    fixture.llm.stop().await;
    fixture.send("add buy milk").await.assert_fell_back();
    fixture.llm.restart().await;
    assert_eq!(fixture.send("hello").await.output(), "Hello.");
}

#[tokio::test]
async fn empty_replies_are_retried_and_then_replaced() {
    // MODEL-3
    join_all(Provider::ONE_PER_PROTOCOL.map(async |provider| {
        let fixture = Fixture::new(provider).await;
        fixture.llm.script([Reply::empty(), Reply::text("Here I am.")]);
        assert_eq!(fixture.send("hello").await.output(), "Here I am.", "{provider:?}");
        fixture.llm.always(Reply::empty());
        fixture.send("add buy milk").await.assert_fell_back();
        assert_eq!(fixture.titles().await, ["buy milk"], "{provider:?}");
        // After a tool call, the reply reports it.
        fixture.llm.always(Reply::empty());
        fixture.llm.script([super::add_task("buy eggs")]);
        let turn = fixture.send("eggs").await;
        assert_eq!(turn.output(), "Done! I've taken care of 'buy eggs'.", "{provider:?}");
        assert!(turn.succeeded(), "{provider:?} {turn:?}");
    }))
    .await;
}

#[tokio::test]
async fn the_time_limit_holds_if_the_provider_hangs() {
    // CHAT-6: without a fallback the turn ends with an error message.
    let more = format!("fallback = []\n[server]\nrequest_timeout_seconds = {LIMIT_SECONDS}\n");
    let fixture = Fixture::with_config(Provider::OpenAi, &more).await;
    for failure in [LlmFailure::HangBeforeHeaders, LlmFailure::HangMidway] {
        fixture.llm.always(Reply::failure(failure.clone()));
        let turn = within_limit("alone", fixture.send("hello")).await;
        assert!(!turn.succeeded() && turn.errors().len() == 1, "{failure:?} {turn:?}");
        assert!(!turn.errors()[0].1, "{failure:?} {turn:?}");
    }
}
