//! The circuit breaker of a model, as seen by clients (RES-1). Unit tests cover its rules.

use futures::future::join_all;
use serde_json::json;
use testkit::llm::{LlmFailure, Reply};

use super::{Fixture, Provider};

#[tokio::test]
async fn one_success_resets_the_failure_count() {
    let fixture = Fixture::new(Provider::OpenAi).await;
    for _ in 0..2 {
        fixture.llm.always(Reply::failure(LlmFailure::Status(401)));
        fixture.send("hello").await.assert_fell_back();
        fixture.send("hello").await.assert_fell_back();
        assert_eq!(fixture.health().await["circuit_breaker"]["failure_count"], 2);
        fixture.llm.always(Reply::text("Hello."));
        assert!(fixture.send("hello").await.errors().is_empty());
        let breaker = &fixture.health().await["circuit_breaker"];
        assert_eq!((&breaker["state"], &breaker["failure_count"]), (&json!("closed"), &json!(0)));
    }
    assert!(!fixture.server.raw_log().contains("circuit_breaker_opened"));
}

#[tokio::test]
async fn invalid_requests_do_not_count_as_failures() {
    let fixture = Fixture::new(Provider::OpenAi).await;
    fixture.llm.always(Reply::failure(LlmFailure::Status(400)));
    for _ in 0..4 {
        fixture.send("hello").await.assert_fell_back();
    }
    assert_eq!(fixture.health().await["circuit_breaker"]["state"], "closed");
}

#[tokio::test]
async fn each_model_has_its_own_circuit_breaker() {
    // RES-1
    let fixture = Fixture::with_config(Provider::OpenAi, "fallback = [\"openai:gpt-4o-mini\", \"offline\"]\n").await;
    let rule = |request: &testkit::llm::Request| match request.model.as_str() {
        "gpt-4o" => Reply::failure(LlmFailure::Status(403)),
        _ => Reply::text("The small one answers."),
    };
    fixture.llm.reply_with(rule);
    // All concurrent requests get a reply.
    for turn in join_all((0..20).map(|_| fixture.send("hello"))).await {
        assert_eq!(turn.output(), "The small one answers.", "{turn:?}");
        assert_eq!(turn.done()["model"], "openai:gpt-4o-mini");
    }
    let asked = fixture.llm.requests();
    let first = asked.iter().filter(|request| request.model == "gpt-4o").count();
    assert!((3..=20).contains(&first), "{first}");
    let before = asked.len();
    assert_eq!(fixture.send("hello").await.output(), "The small one answers.");
    assert_eq!(fixture.request_count(), before + 1);
    let health: serde_json::Value = fixture.server.get("/health").await.json().await.unwrap();
    let states: Vec<_> = (0..3).map(|n| &health["dependencies"]["models"][n]["status"]).collect();
    assert_eq!(states, ["unavailable", "ok", "ok"], "{health}");
    assert_eq!(health["status"], "ok", "a failed model does not affect the health of the server");
    let metrics = fixture.metrics().await;
    assert!(metrics.contains("adjutant_circuit_breaker_state{service=\"openai:gpt-4o\"} 2"), "{metrics}");
    assert!(metrics.contains("adjutant_circuit_breaker_state{service=\"openai:gpt-4o-mini\"} 0"), "{metrics}");
}
