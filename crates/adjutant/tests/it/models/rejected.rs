//! What a provider does not take: a tool or the temperature is left out from then on, and the turn goes well (MODEL-2).

use serde_json::json;
use testkit::llm::Reply;

use super::{Kind, Stage, adding};

const ALL: [Kind; 5] = [Kind::OpenAi, Kind::Azure, Kind::Gemini, Kind::GeminiAsOpenAi, Kind::Anthropic];

#[tokio::test]
async fn a_tool_is_set_aside_with_the_reason() {
    for kind in ALL {
        let stage = Stage::new(kind).await;
        // Named by one wire, counted by the others.
        let rejected = "schedule_reminder";
        stage.llm.reject_tool(rejected);
        stage.llm.script([adding("buy milk"), Reply::text("Added.")]);
        let turn = stage.say("add buy milk").await;
        assert_eq!((turn.output(), turn.errors().len()), ("Added.", 0), "{kind:?} {turn:?}");
        let requests = stage.llm.requests();
        assert_eq!(requests.len(), 3, "{kind:?}");
        let offered = requests[0].tools();
        let rest: Vec<_> = offered.iter().filter(|tool| *tool != rejected).cloned().collect();
        assert_eq!((offered.len(), requests[1].tools()), (rest.len() + 1, rest.clone()), "{kind:?}");
        stage.say("hello").await;
        assert_eq!(stage.llm.requests().last().unwrap().tools(), rest, "{kind:?}: the next turn does not offer it");
        assert_eq!(stage.count(), 4, "{kind:?}");
        let health = stage.health().await;
        let aside = &health["tools_set_aside"][0];
        assert_eq!(aside["tool"], rejected, "{kind:?} {health}");
        assert!(aside["reason"].as_str().unwrap().contains("HTTP 400"), "{kind:?} {health}");
        assert_eq!(health["circuit_breaker"]["failure_count"], 0, "{kind:?} {health}");
        assert_eq!(stage.server.logged("tool_set_aside").await["details"]["tool_name"], rejected);
    }
}

#[tokio::test]
async fn one_tool_after_the_other() {
    let stage = Stage::new(Kind::Gemini).await;
    let rejected = ["update_task", "add_task", "delete_task"];
    rejected.iter().for_each(|tool| stage.llm.reject_tool(tool));
    stage.llm.script([Reply::text("What is left is enough.")]);
    assert_eq!(stage.say("hello").await.output(), "What is left is enough.");
    let health = stage.health().await;
    let aside: Vec<_> = health["tools_set_aside"].as_array().unwrap().iter().map(|aside| &aside["tool"]).collect();
    assert_eq!(aside.len(), 3, "{health}");
    assert!(rejected.iter().all(|tool| aside.contains(&&json!(tool))), "{health}");
    let tools = stage.llm.requests().last().unwrap().tools();
    assert!(rejected.iter().all(|tool| !tools.contains(&(*tool).to_owned())), "{tools:?}");
}

#[tokio::test]
async fn a_temperature_is_left_out_once_it_is_known() {
    for kind in ALL {
        let stage = Stage::new(kind).await;
        stage.llm.reject_temperature();
        for expected in [2, 3] {
            let turn = stage.say("hello").await;
            assert_eq!((turn.output(), turn.errors().len()), ("Hello.", 0), "{kind:?}");
            let requests = stage.llm.requests();
            assert_eq!((requests.len(), requests.last().unwrap().temperature()), (expected, None), "{kind:?}");
        }
        let health = stage.health().await;
        assert!(health.get("tools_set_aside").is_none(), "{kind:?} {health}");
    }
}

#[tokio::test]
async fn both_at_once() {
    let stage = Stage::new(Kind::OpenAi).await;
    stage.llm.reject_temperature();
    stage.llm.reject_tool("list_tasks");
    assert_eq!(stage.say("hello").await.output(), "Hello.");
    assert_eq!(stage.health().await["tools_set_aside"][0]["tool"], "list_tasks");
}
