//! Nothing is carried out twice, whatever fails in between (MODEL-3).

use futures::future::join_all;
use serde_json::json;
use testkit::llm::{Entry, Fault, Llm, Reply, RetryAfter};

use super::{KEY, Kind, Stage, Turn, adding, home_with_keys};

const AFTERWARDS: [Fault; 6] = [
    Fault::Status(500),
    Fault::RateLimited(RetryAfter::Unsaid),
    Fault::CutAtStart,
    Fault::CutMidway,
    Fault::CloseBeforeHeaders,
    Fault::BrokenJson,
];

#[tokio::test]
async fn what_was_done_before_a_fault_is_done_once_and_told() {
    join_all(Kind::WIRES.map(async |kind| {
        let stage = Stage::new(kind).await;
        for (n, fault) in AFTERWARDS.into_iter().enumerate() {
            let title = format!("task number {n}");
            stage.llm.script([adding(&title)]);
            stage.llm.always(Reply::fault(fault.clone()));
            let turn = stage.say(&format!("add {title}")).await;
            assert_eq!(turn.calls(), [("add_task", "completed")], "{kind:?} {fault:?} {turn:?}");
            assert_eq!(turn.errors(), [("model_unavailable", false)], "{kind:?} {fault:?}");
            assert!(!turn.succeeded() && turn.output().contains(&format!("'{title}'")), "{fault:?} {turn:?}");
            assert_eq!(stage.titles().await.len(), n + 1, "{kind:?} {fault:?}");
            // One reply in between, so that the breaker stays closed.
            stage.llm.always(Reply::text("Hello."));
            stage.say("hello").await;
        }
    }))
    .await;
}

#[tokio::test]
async fn a_fault_after_a_tool_is_tried_again_without_the_tool() {
    let stage = Stage::new(Kind::OpenAi).await;
    let replies =
        [adding("buy milk"), Reply::fault(Fault::Status(503)), Reply::fault(Fault::CutAtStart), Reply::text("Added.")];
    stage.llm.script(replies);
    let turn = stage.say("add buy milk").await;
    assert!(turn.succeeded() && turn.errors().is_empty(), "{turn:?}");
    assert_eq!((turn.output(), stage.titles().await), ("Added.", vec!["buy milk".to_owned()]));
    assert!(stage.llm.requests()[1..].iter().all(|request| request.tool_results().len() == 1));
}

#[tokio::test]
async fn another_model_goes_on_where_the_first_one_stopped() {
    for kind in [Kind::OpenAi, Kind::Gemini] {
        let first = Llm::start().await;
        let second = Llm::start().await;
        let config = format!("[model]\n{}fallback = [\"anthropic\", \"offline\"]\n", kind.configured(&first.url()));
        let home = home_with_keys().configured(&config);
        let home = home.with("ANTHROPIC_API_KEY", KEY).with("ANTHROPIC_BASE_URL", &second.url());
        let stage = Stage { server: home.serve(), llm: first, home };
        stage.llm.script([adding("buy milk").thinking("Milk it is."), Reply::fault(Fault::CutMidway)]);
        second.script([adding("buy eggs"), Reply::text("Milk and eggs are on your list.")]);
        let turn = stage.say("add buy milk and buy eggs").await;
        assert_eq!(turn.errors(), [("model_unavailable", true)], "{turn:?}");
        let message = turn.of("error").next().unwrap()["message"].as_str().unwrap();
        assert!(message.contains("another model"), "{message}");
        assert_eq!(turn.done()["model"], Kind::Anthropic.label());
        assert!(turn.succeeded() && turn.output().ends_with("\nMilk and eggs are on your list."), "{turn:?}");
        assert_eq!(stage.titles().await, ["buy milk", "buy eggs"]);
        // It was shown what had been done, as a call with its result.
        let asked = &second.requests()[0];
        let transcript = asked.transcript();
        let call = Entry::Call { name: "add_task".to_owned(), arguments: json!({"title": "buy milk"}) };
        assert!(transcript.contains(&call), "{kind:?} {transcript:?}");
        let results = asked.tool_results();
        assert!(results.len() == 1 && results[0].contains("buy milk"), "{kind:?} {results:?}");
        assert!(asked.signatures().is_empty(), "another's signature is nothing to it");
        // Both gone: what was done is told.
        stage.llm.script([adding("buy bread")]);
        stage.llm.always(Reply::fault(Fault::Status(500)));
        second.always(Reply::fault(Fault::Status(529)));
        let turn = stage.say("bread").await;
        assert_eq!(turn.errors(), [("model_unavailable", true), ("model_unavailable", false)], "{turn:?}");
        assert!(turn.output().contains("'buy bread'") && !turn.succeeded(), "{turn:?}");
        assert_eq!(stage.titles().await, ["buy milk", "buy eggs", "buy bread"]);
    }
}

#[tokio::test]
async fn an_answer_that_has_begun_is_not_asked_for_again() {
    let stage = Stage::new(Kind::OpenAi).await;
    for fault in [Fault::CutMidway, Fault::EndMidway] {
        let before = stage.count();
        stage
            .llm
            .script([Reply::text("Let me see what is on your list for today, one moment.").failing(fault.clone())]);
        let turn = stage.say("show my tasks").await;
        turn.assert_fell_back();
        assert_eq!(stage.count(), before + 1, "{fault:?}");
        assert!(turn.output().starts_with("Let me see what") && turn.output().contains('\n'), "{turn:?}");
        stage.say("hello").await;
    }
    // Nor is a call that was only begun carried out.
    stage.llm.script([adding("half a task, of which the end never came").failing(Fault::CutMidway)]);
    stage.say("hello").await.assert_fell_back();
    assert!(stage.titles().await.is_empty());
}

#[tokio::test]
async fn a_request_that_is_sent_again_is_answered_from_what_was_kept() {
    // CHAT-6
    let stage = Stage::new(Kind::OpenAi).await;
    stage.llm.script([adding("buy milk"), Reply::text("Added.")]);
    let send = async || {
        let request = stage.server.request(reqwest::Method::POST, "/chat/stream").header("Idempotency-Key", "once");
        let answer = request.json(&json!({"input": "add milk", "conversation_id": "conv_1"})).send().await.unwrap();
        answer.text().await.unwrap()
    };
    let first = send().await;
    assert_eq!(send().await, first);
    let id = first.split("\"request_id\":\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(Turn::read(&first, id).output(), "Added.");
    assert_eq!((stage.count(), stage.titles().await.len()), (2, 1));
}
