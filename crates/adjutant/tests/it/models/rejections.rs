//! A tool or a temperature that a provider rejects is omitted from then on, and the turn succeeds (MODEL-2).

use serde_json::json;
use testkit::llm::Reply;

use super::{Fixture, Provider, add_task};

const ALL: [Provider; 5] =
    [Provider::OpenAi, Provider::Azure, Provider::Gemini, Provider::GeminiAsOpenAi, Provider::Anthropic];

#[tokio::test]
async fn a_rejected_tool_is_omitted_and_reported() {
    // MODEL-2
    for provider in ALL {
        let fixture = Fixture::new(provider).await;
        // One protocol names the tool in its error, the other two give its index.
        let rejected = "schedule_reminder";
        fixture.llm.reject_tool(rejected);
        fixture.llm.script([add_task("buy milk"), Reply::text("Added the milk.")]);
        let turn = fixture.send("add buy milk").await;
        assert_eq!((turn.output(), turn.errors().len()), ("Added the milk.", 0), "{provider:?} {turn:?}");
        let requests = fixture.llm.requests();
        assert_eq!(requests.len(), 3, "{provider:?}");
        let offered = requests[0].tool_names();
        let rest: Vec<_> = offered.iter().filter(|tool| *tool != rejected).cloned().collect();
        assert_eq!((offered.len(), requests[1].tool_names()), (rest.len() + 1, rest.clone()), "{provider:?}");
        fixture.send("hello").await;
        assert_eq!(
            fixture.llm.requests().last().unwrap().tool_names(),
            rest,
            "{provider:?}: the next turn does not offer it"
        );
        assert_eq!(fixture.request_count(), 4, "{provider:?}");
        let health = fixture.health().await;
        let omitted = &health["tools_set_aside"][0];
        assert_eq!(omitted["tool"], rejected, "{provider:?} {health}");
        assert!(omitted["reason"].as_str().unwrap().contains("HTTP 400"), "{provider:?} {health}");
        assert_eq!(health["circuit_breaker"]["failure_count"], 0, "{provider:?} {health}");
        assert_eq!(fixture.server.wait_for_event("tool_set_aside").await["details"]["tool_name"], rejected);
    }
}

#[tokio::test]
async fn several_tools_can_be_rejected() {
    let fixture = Fixture::new(Provider::Gemini).await;
    let rejected = ["update_task", "add_task", "delete_task"];
    rejected.iter().for_each(|tool| fixture.llm.reject_tool(tool));
    fixture.llm.script([Reply::text("What is left is enough.")]);
    assert_eq!(fixture.send("hello").await.output(), "What is left is enough.");
    let health = fixture.health().await;
    let omitted: Vec<_> =
        health["tools_set_aside"].as_array().unwrap().iter().map(|omitted| &omitted["tool"]).collect();
    assert_eq!(omitted.len(), 3, "{health}");
    assert!(rejected.iter().all(|tool| omitted.contains(&&json!(tool))), "{health}");
    let tools = fixture.llm.requests().last().unwrap().tool_names();
    assert!(rejected.iter().all(|tool| !tools.contains(&(*tool).to_owned())), "{tools:?}");
}

#[tokio::test]
async fn a_rejected_temperature_is_omitted() {
    for provider in ALL {
        let fixture = Fixture::new(provider).await;
        fixture.llm.reject_temperature();
        for expected in [2, 3] {
            let turn = fixture.send("hello").await;
            assert_eq!((turn.output(), turn.errors().len()), ("Hello.", 0), "{provider:?}");
            let requests = fixture.llm.requests();
            assert_eq!((requests.len(), requests.last().unwrap().temperature()), (expected, None), "{provider:?}");
        }
        let health = fixture.health().await;
        assert!(health.get("tools_set_aside").is_none(), "{provider:?} {health}");
    }
}

#[tokio::test]
async fn a_tool_and_the_temperature_can_be_rejected_together() {
    let fixture = Fixture::new(Provider::OpenAi).await;
    fixture.llm.reject_temperature();
    fixture.llm.reject_tool("list_tasks");
    assert_eq!(fixture.send("hello").await.output(), "Hello.");
    assert_eq!(fixture.health().await["tools_set_aside"][0]["tool"], "list_tasks");
}
