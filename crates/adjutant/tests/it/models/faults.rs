//! Every fault × {recovers, falls back, opens the breaker, stays within the time limit} (MODEL-3, RES-1, RES-2).

use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::json;
use testkit::llm::{Fault, Reply, RetryAfter};

use super::{Kind, Stage, all_faults};

/// What is to be expected of a provider with a fault.
struct Expected {
    /// Asked again within the turn: the fault passes, and nothing was said yet.
    retried: bool,
    /// It says something about the provider, and not about the request.
    counts: bool,
    /// Words of the answer before it broke.
    says: bool,
}

fn expected(fault: &Fault) -> Expected {
    let hangs =
        matches!(fault, Fault::HangBeforeHeaders | Fault::HangAfterHeaders | Fault::HangMidway | Fault::EndlessLine);
    let says = matches!(
        fault,
        Fault::HangMidway | Fault::CutMidway | Fault::EndMidway | Fault::BrokenJson | Fault::ErrorEvent
    );
    let refused = matches!(fault, Fault::Status(400 | 401 | 403 | 404 | 413));
    let counts = !matches!(fault, Fault::Status(400 | 413));
    Expected { retried: !(hangs || says || refused), counts, says }
}

/// As long as a turn may take, in seconds.
const LIMIT: u64 = 4;

async fn stage(kind: Kind) -> Stage {
    Stage::with(kind, &format!("[server]\nrequest_timeout_seconds = {LIMIT}\n")).await
}

#[tokio::test]
async fn every_fault_on_the_wire_of_openai() {
    for some in all_faults().chunks(9) {
        join_all(some.iter().map(|fault| endure(Kind::OpenAi, fault.clone()))).await;
    }
}

#[tokio::test]
async fn telling_faults_on_the_other_wires() {
    let telling = [
        Fault::Status(503),
        Fault::RateLimited(RetryAfter::Unsaid),
        Fault::CutAtStart,
        Fault::CutMidway,
        Fault::EndAtStart,
        Fault::EndMidway,
        Fault::BrokenJson,
        Fault::ErrorEvent,
        Fault::EmptyBody,
    ];
    let each = |kind| telling.iter().map(move |fault| endure(kind, fault.clone()));
    join_all(each(Kind::Gemini).chain(each(Kind::Anthropic))).await;
}

/// All that a fault can do to one server.
async fn endure(kind: Kind, fault: Fault) {
    let stage = stage(kind).await;
    let expected = expected(&fault);
    let what = format!("{kind:?} {fault:?}");
    recovers(&stage, &fault, &expected, &what).await;
    falls_back(&stage, &fault, &expected, &what).await;
    if expected.counts {
        is_left_alone(&stage, kind, &what).await;
    }
}

/// The fault comes once.
async fn recovers(stage: &Stage, fault: &Fault, expected: &Expected, what: &str) {
    let before = stage.count();
    stage.llm.script([Reply::fault(fault.clone())]);
    stage.llm.always(Reply::text("All is well again."));
    let turn = within_limit(what, stage.say("add water the plants")).await;
    if expected.retried {
        assert_eq!(turn.output(), "All is well again.", "{what}");
        assert!(turn.succeeded() && turn.errors().is_empty(), "{what} {turn:?}");
        assert_eq!(stage.count(), before + 2, "{what}");
    } else {
        turn.assert_fell_back();
        assert_eq!(stage.count(), before + 1, "{what}: not asked again");
        assert_eq!(stage.titles().await, ["water the plants"], "{what}");
    }
    assert_eq!(stage.say("hello").await.output(), "All is well again.", "{what}: the next turn is well");
}

/// The fault comes every time: three turns, by each of the doors.
async fn falls_back(stage: &Stage, fault: &Fault, expected: &Expected, what: &str) {
    let before = stage.count();
    let had = stage.titles().await.len();
    stage.llm.always(Reply::fault(fault.clone()));
    let turn = within_limit(what, stage.say("add call the plumber")).await;
    turn.assert_fell_back();
    assert_eq!(turn.calls(), [("add_task", "completed")], "{what}");
    assert!(
        turn.output().ends_with("Got it! Added 'call the plumber' to your list. Anything else?"),
        "{what} {turn:?}"
    );
    assert_eq!(turn.output().starts_with("Hello"), expected.says, "{what}: what was said stays said {turn:?}");
    let times = if expected.retried { 3 } else { 1 };
    assert_eq!(stage.count() - before, times, "{what}");
    let chat = within_limit(what, stage.chat("add feed the cat")).await;
    assert!(chat["success"] == true && chat["model"] == "offline", "{what} {chat}");
    assert!(chat["response"].as_str().unwrap().contains("Added 'feed the cat'"), "{what} {chat}");
    assert!(chat["warnings"][0].as_str().unwrap().starts_with("AI service temporarily unavailable"), "{what} {chat}");
    let ran = within_limit(what, stage.run("add walk the dog")).await;
    assert!(ran["response_text"].as_str().unwrap().contains("Added 'walk the dog'"), "{what} {ran}");
    assert_eq!(ran["metadata"]["model"], "offline", "{what} {ran}");
    assert!(ran["metadata"]["warnings"][0].as_str().unwrap().starts_with("AI service temporarily"), "{what} {ran}");
    assert_eq!(stage.count() - before, 3 * times, "{what}");
    assert_eq!(stage.titles().await[had..], ["call the plumber", "feed the cat", "walk the dog"], "{what}");
}

/// After three failures nobody asks any more.
async fn is_left_alone(stage: &Stage, kind: Kind, what: &str) {
    let health = stage.health().await;
    assert_eq!(health["status"], "unavailable", "{what} {health}");
    let breaker = &health["circuit_breaker"];
    assert_eq!((&breaker["state"], &breaker["failure_count"]), (&json!("open"), &json!(3)), "{what} {breaker}");
    assert!(breaker["last_failure_time"].is_string() && breaker["last_state_change"].is_string(), "{what} {breaker}");
    assert_eq!(breaker["consecutive_successes"], 0, "{what} {breaker}");
    let before = stage.count();
    let started = Instant::now();
    let turn = stage.say("add ring the bell").await;
    assert!(started.elapsed() < Duration::from_secs(2), "{what}: it waits for nothing");
    turn.assert_fell_back();
    assert_eq!(turn.output(), "Got it! Added 'ring the bell' to your list. Anything else?", "{what}");
    assert_eq!(stage.count(), before, "{what}: it is left alone");
    let opened = stage.server.logged("circuit_breaker_opened").await;
    assert_eq!(opened["details"]["failure_count"], 3, "{what} {opened}");
    let changed = stage.server.logged("circuit_breaker_state_change").await;
    let states = (&changed["details"]["old_state"], &changed["details"]["new_state"]);
    assert_eq!(states, (&json!("closed"), &json!("open")), "{what} {changed}");
    let line = format!("adjutant_circuit_breaker_state{{service=\"{}\"}} 2", kind.label());
    let metrics = stage.metrics().await;
    assert!(metrics.contains(&line), "{what} {metrics}");
}

/// With some time for a busy machine.
async fn within_limit<T>(what: &str, turn: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(LIMIT) + Duration::from_secs(3);
    tokio::time::timeout(limit, turn).await.unwrap_or_else(|_| panic!("{what}: takes too long"))
}

#[tokio::test]
async fn with_nobody_to_take_its_place_the_turn_ends_with_words() {
    // CHAT-1, RES-2
    let stage = Stage::with(Kind::OpenAi, "fallback = []\n").await;
    for fault in [Fault::Status(500), Fault::Status(401), Fault::CutMidway] {
        stage.llm.always(Reply::fault(fault.clone()));
        let turn = stage.say("add buy milk").await;
        assert_eq!(turn.errors(), [("model_unavailable", false)], "{fault:?}");
        let message = turn.of("error").next().unwrap()["message"].as_str().unwrap();
        assert!(message.starts_with("AI service temporarily unavailable"), "{message}");
        assert_eq!((turn.succeeded(), &turn.done()["model"]), (false, &json!(Kind::OpenAi.label())), "{fault:?}");
        let words = "I'm having a bit of trouble right now. Please try again.";
        assert!(turn.output().ends_with(words), "{fault:?} {turn:?}");
    }
    let chat = stage.chat("add buy milk").await;
    assert!(chat["success"] == false && chat["error_type"] == "model_unavailable", "{chat}");
    let ran = stage.run("add buy milk").await;
    assert!(!ran["response_text"].as_str().unwrap().is_empty(), "{ran}");
    assert!(ran["metadata"]["error_type"].is_string(), "{ran}");
    assert!(stage.titles().await.is_empty());
}

#[tokio::test]
async fn a_provider_that_is_gone_is_made_up_for() {
    // RES-2: nobody listens there, and then somebody does again.
    let stage = Stage::new(Kind::OpenAi).await;
    stage.llm.stop().await;
    stage.say("add buy milk").await.assert_fell_back();
    stage.llm.resume().await;
    assert_eq!(stage.say("hello").await.output(), "Hello.");
}

#[tokio::test]
async fn a_model_that_says_nothing_is_asked_again_and_then_made_up_for() {
    // MODEL-3
    join_all(Kind::WIRES.map(async |kind| {
        let stage = Stage::new(kind).await;
        stage.llm.script([Reply::empty(), Reply::text("Here I am.")]);
        assert_eq!(stage.say("hello").await.output(), "Here I am.", "{kind:?}");
        stage.llm.always(Reply::empty());
        stage.say("add buy milk").await.assert_fell_back();
        assert_eq!(stage.titles().await, ["buy milk"], "{kind:?}");
        // After something was done there is something to say.
        stage.llm.always(Reply::empty());
        stage.llm.script([super::adding("buy eggs")]);
        let turn = stage.say("eggs").await;
        assert_eq!(turn.output(), "Done! I've taken care of 'buy eggs'.", "{kind:?}");
        assert!(turn.succeeded(), "{kind:?} {turn:?}");
    }))
    .await;
}

#[tokio::test]
async fn the_time_limit_holds_whatever_hangs() {
    // CHAT-6: with nobody else to ask, time runs out in words.
    let more = format!("fallback = []\n[server]\nrequest_timeout_seconds = {LIMIT}\n");
    let stage = Stage::with(Kind::OpenAi, &more).await;
    for fault in [Fault::HangBeforeHeaders, Fault::HangMidway] {
        stage.llm.always(Reply::fault(fault.clone()));
        let turn = within_limit("alone", stage.say("hello")).await;
        assert!(!turn.succeeded() && turn.errors().len() == 1, "{fault:?} {turn:?}");
        assert!(!turn.errors()[0].1, "{fault:?} {turn:?}");
    }
}
