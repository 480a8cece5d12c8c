//! The breaker of a model, as seen from outside (RES-1); its rules are tested beside its code.

use futures::future::join_all;
use serde_json::json;
use testkit::llm::{Fault, Reply};

use super::{Kind, Stage};

#[tokio::test]
async fn one_good_reply_makes_up_for_two_failures() {
    let stage = Stage::new(Kind::OpenAi).await;
    for _ in 0..2 {
        stage.llm.always(Reply::fault(Fault::Status(401)));
        stage.say("hello").await.assert_fell_back();
        stage.say("hello").await.assert_fell_back();
        assert_eq!(stage.health().await["circuit_breaker"]["failure_count"], 2);
        stage.llm.always(Reply::text("Hello."));
        assert!(stage.say("hello").await.errors().is_empty());
        let breaker = &stage.health().await["circuit_breaker"];
        assert_eq!((&breaker["state"], &breaker["failure_count"]), (&json!("closed"), &json!(0)));
    }
    assert!(!stage.server.raw_log().contains("circuit_breaker_opened"));
}

#[tokio::test]
async fn what_is_wrong_with_a_request_says_nothing_about_the_provider() {
    let stage = Stage::new(Kind::OpenAi).await;
    stage.llm.always(Reply::fault(Fault::Status(400)));
    for _ in 0..4 {
        stage.say("hello").await.assert_fell_back();
    }
    assert_eq!(stage.health().await["circuit_breaker"]["state"], "closed");
}

#[tokio::test]
async fn each_model_has_its_own() {
    let stage = Stage::with(Kind::OpenAi, "fallback = [\"openai:gpt-4o-mini\", \"offline\"]\n").await;
    let rule = |request: &testkit::llm::Request| match request.model.as_str() {
        "gpt-4o" => Reply::fault(Fault::Status(403)),
        _ => Reply::text("The small one answers."),
    };
    stage.llm.decide(rule);
    // Many at once: all of them get an answer.
    for turn in join_all((0..20).map(|_| stage.say("hello"))).await {
        assert_eq!(turn.output(), "The small one answers.", "{turn:?}");
        assert_eq!(turn.done()["model"], "openai:gpt-4o-mini");
    }
    let asked = stage.llm.requests();
    let first = asked.iter().filter(|request| request.model == "gpt-4o").count();
    assert!((3..=20).contains(&first), "{first}");
    let before = asked.len();
    assert_eq!(stage.say("hello").await.output(), "The small one answers.");
    assert_eq!(stage.count(), before + 1);
    let health: serde_json::Value = stage.server.get("/health").await.json().await.unwrap();
    let states: Vec<_> = (0..3).map(|n| &health["dependencies"]["models"][n]["status"]).collect();
    assert_eq!(states, ["unavailable", "ok", "ok"], "{health}");
    assert_eq!(health["status"], "ok", "the server as a whole is well without it");
    let metrics = stage.metrics().await;
    assert!(metrics.contains("adjutant_circuit_breaker_state{service=\"openai:gpt-4o\"} 2"), "{metrics}");
    assert!(metrics.contains("adjutant_circuit_breaker_state{service=\"openai:gpt-4o-mini\"} 0"), "{metrics}");
}
