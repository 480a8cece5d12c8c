//! No tool call runs twice after a failure (MODEL-3).

use futures::future::join_all;
use serde_json::json;
use testkit::llm::{Llm, LlmFailure, Reply, RetryAfter, TranscriptEntry};

use super::{Fixture, KEY, Provider, Turn, add_task, home_with_keys};

const LATER_FAILURES: [LlmFailure; 6] = [
    LlmFailure::Status(500),
    LlmFailure::RateLimited(RetryAfter::Absent),
    LlmFailure::CutAtStart,
    LlmFailure::CutMidway,
    LlmFailure::CloseBeforeHeaders,
    LlmFailure::BrokenJson,
];

#[tokio::test]
async fn completed_calls_are_reported_after_a_failure() {
    join_all(Provider::ONE_PER_PROTOCOL.map(async |provider| {
        let fixture = Fixture::new(provider).await;
        for (n, failure) in LATER_FAILURES.into_iter().enumerate() {
            let title = format!("task number {n}");
            fixture.llm.script([add_task(&title)]);
            fixture.llm.always(Reply::failure(failure.clone()));
            let turn = fixture.send(&format!("add {title}")).await;
            assert_eq!(turn.calls(), [("add_task", "completed")], "{provider:?} {failure:?} {turn:?}");
            assert_eq!(turn.errors(), [("model_unavailable", false)], "{provider:?} {failure:?}");
            assert!(!turn.succeeded() && turn.output().contains(&format!("'{title}'")), "{failure:?} {turn:?}");
            assert_eq!(fixture.titles().await.len(), n + 1, "{provider:?} {failure:?}");
            // A success in between keeps the circuit breaker closed.
            fixture.llm.always(Reply::text("Hello."));
            fixture.send("hello").await;
        }
    }))
    .await;
}

#[tokio::test]
async fn a_retry_does_not_repeat_tool_calls() {
    let fixture = Fixture::new(Provider::OpenAi).await;
    let replies = [
        add_task("buy milk"),
        Reply::failure(LlmFailure::Status(503)),
        Reply::failure(LlmFailure::CutAtStart),
        Reply::text("Added the milk."),
    ];
    fixture.llm.script(replies);
    let turn = fixture.send("add buy milk").await;
    assert!(turn.succeeded() && turn.errors().is_empty(), "{turn:?}");
    assert_eq!((turn.output(), fixture.titles().await), ("Added the milk.", vec!["buy milk".to_owned()]));
    assert!(fixture.llm.requests()[1..].iter().all(|request| request.tool_results().len() == 1));
}

#[tokio::test]
async fn the_fallback_continues_after_the_completed_calls() {
    // MODEL-3
    for provider in [Provider::OpenAi, Provider::Gemini] {
        let first = Llm::start().await;
        let second = Llm::start().await;
        let config =
            format!("[model]\n{}fallback = [\"anthropic\", \"offline\"]\n", provider.config_lines(&first.url()));
        let home = home_with_keys().with_config(&config);
        let home = home.with_env("ANTHROPIC_API_KEY", KEY).with_env("ANTHROPIC_BASE_URL", &second.url());
        let fixture = Fixture { server: home.serve(), llm: first, home };
        fixture.llm.script([add_task("buy milk").thinking("Milk it is."), Reply::failure(LlmFailure::CutMidway)]);
        second.script([add_task("buy eggs"), Reply::text("Milk and eggs are on your list.")]);
        let turn = fixture.send("add buy milk and buy eggs").await;
        assert_eq!(turn.errors(), [("model_unavailable", true)], "{turn:?}");
        let message = turn.events_named("error").next().unwrap()["message"].as_str().unwrap();
        assert!(message.contains("another model"), "{message}");
        assert_eq!(turn.done()["model"], Provider::Anthropic.label());
        assert!(turn.succeeded() && turn.output().ends_with("\nMilk and eggs are on your list."), "{turn:?}");
        assert_eq!(fixture.titles().await, ["buy milk", "buy eggs"]);
        // The fallback received the completed call with its result.
        let asked = &second.requests()[0];
        let transcript = asked.transcript();
        let call = TranscriptEntry::Call { name: "add_task".to_owned(), arguments: json!({"title": "buy milk"}) };
        assert!(transcript.contains(&call), "{provider:?} {transcript:?}");
        let results = asked.tool_results();
        assert!(results.len() == 1 && results[0].contains("buy milk"), "{provider:?} {results:?}");
        assert!(asked.thought_signatures().is_empty(), "signatures of another provider are not sent");
        // If both models fail, the completed call is reported.
        fixture.llm.script([add_task("buy bread")]);
        fixture.llm.always(Reply::failure(LlmFailure::Status(500)));
        second.always(Reply::failure(LlmFailure::Status(529)));
        let turn = fixture.send("bread").await;
        assert_eq!(turn.errors(), [("model_unavailable", true), ("model_unavailable", false)], "{turn:?}");
        assert!(turn.output().contains("'buy bread'") && !turn.succeeded(), "{turn:?}");
        assert_eq!(fixture.titles().await, ["buy milk", "buy eggs", "buy bread"]);
    }
}

#[tokio::test]
async fn a_partial_reply_is_not_retried() {
    let fixture = Fixture::new(Provider::OpenAi).await;
    for failure in [LlmFailure::CutMidway, LlmFailure::EndMidway] {
        let before = fixture.request_count();
        fixture
            .llm
            .script([Reply::text("Let me see what is on your list for today, one moment.").failing(failure.clone())]);
        let turn = fixture.send("show my tasks").await;
        turn.assert_fell_back();
        assert_eq!(fixture.request_count(), before + 1, "{failure:?}");
        assert!(turn.output().starts_with("Let me see what") && turn.output().contains('\n'), "{turn:?}");
        fixture.send("hello").await;
    }
    // An incomplete call is not executed.
    fixture.llm.script([add_task("half a task without its end").failing(LlmFailure::CutMidway)]);
    fixture.send("hello").await.assert_fell_back();
    assert!(fixture.titles().await.is_empty());
}

#[tokio::test]
async fn a_repeated_request_gets_the_stored_reply() {
    // CHAT-6
    let fixture = Fixture::new(Provider::OpenAi).await;
    fixture.llm.script([add_task("buy milk"), Reply::text("Added the milk.")]);
    let send = async || {
        let request = fixture.server.request(reqwest::Method::POST, "/chat/stream").header("Idempotency-Key", "once");
        let answer = request.json(&json!({"input": "add milk", "conversation_id": "conv_1"})).send().await.unwrap();
        answer.text().await.unwrap()
    };
    let first = send().await;
    assert_eq!(send().await, first);
    let id = first.split("\"request_id\":\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(Turn::read(&first, id).output(), "Added the milk.");
    assert_eq!((fixture.request_count(), fixture.titles().await.len()), (2, 1));
}
