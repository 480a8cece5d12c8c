//! Tests that the types round-trip through query strings and JSON.

use model::agent::{Agent as ConfiguredAgent, AgentDraft};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::agents::{Agent, AgentConfiguration, AgentSource, AgentSummary};
use crate::executions::ListExecutions;
use crate::tasks::{ChangedTask, ListTasks, TaskPatch};
use crate::{ListParams, Problem};

#[test]
fn list_parameters_round_trip_through_the_query_string() {
    let list = ListExecutions {
        agent_id: Some("a&b=c ü".to_owned()),
        schedule_id: Some(Uuid::max()),
        reference: Some("ff".to_owned()),
        ..ListExecutions::default()
    };
    let list = list.with_page(Some(7), Some("2b".to_owned()));
    let text = serde_urlencoded::to_string(&list).unwrap();
    assert!(text.contains("ref=ff") && !text.contains("session_id"), "{text}");
    assert_eq!(query::parse::<ListExecutions>(&text).unwrap(), list);
    assert_eq!((list.limit(), list.cursor()), (Some(7), Some("2b")));
}

#[test]
fn unknown_and_malformed_parameters_are_rejected_by_name() {
    for (text, parameter) in [("stauts=all", "stauts"), ("limit=many", "limit"), ("status=a&status=b", "status")] {
        assert_eq!(query::parse::<ListTasks>(text).unwrap_err().parameter, parameter);
    }
    let wrong = query::parse::<ListExecutions>("schedule_id=7").unwrap_err();
    assert_eq!(wrong.to_string(), "schedule_id must be a UUID");
}

fn agent() -> ConfiguredAgent {
    let draft = json!({"id": "echo", "executable_path": "/bin/echo", "exit_codes": {"3": "transient"}});
    let draft: AgentDraft = serde_json::from_value(draft).unwrap();
    draft.check().unwrap()
}

#[test]
fn a_configuration_and_a_summary_round_trip() {
    let source = AgentSource::Api;
    let whole = AgentConfiguration { agent: agent(), source, created_at: None, updated_at: None };
    let whole = Agent::Configuration(Box::new(whole));
    let read: Agent = serde_json::from_value(serde_json::to_value(&whole).unwrap()).unwrap();
    assert_eq!(read.configuration(), Some(&agent()), "map keys may be numbers");
    let summary = Agent::Summary(AgentSummary::new(&agent(), source));
    let read: Agent = serde_json::from_value(serde_json::to_value(&summary).unwrap()).unwrap();
    assert_eq!((read.id(), read.source(), read.configuration()), ("echo", source, None));
}

#[test]
fn null_and_absent_fields_differ() {
    let patch = TaskPatch { due_date: Some(None), title: Some("a".to_owned()), ..TaskPatch::default() };
    let text = serde_json::to_value(&patch).unwrap();
    assert_eq!(text, json!({"title": "a", "due_date": null}));
    assert_eq!(serde_json::from_value::<TaskPatch>(text).unwrap(), patch);

    let task = json!({
        "id": Uuid::nil(), "title": "a", "description": null, "status": "completed", "priority": "low",
        "due_date": null, "recurrence": "FREQ=DAILY;COUNT=1", "tags": [], "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z", "completed_at": "2026-01-01T00:00:00Z",
    });
    let next = |next: Option<Value>| {
        let mut task = task.clone();
        task.as_object_mut().unwrap().extend(next.map(|next| ("next_task".to_owned(), next)));
        serde_json::from_value::<ChangedTask>(task).unwrap().next_task
    };
    assert_eq!(next(None), None);
    assert_eq!(next(Some(Value::Null)), Some(None));
    assert!(next(Some(task.clone())).unwrap().is_some());
}

#[test]
fn the_type_of_a_problem_has_a_short_form() {
    let body = json!({
        "type": "urn:adjutant:problem:busy", "title": "Too Many Requests", "status": 429, "detail": "the queue is full",
        "request_id": "req_1",
    });
    let problem: Problem<'_> = serde_json::from_value(body.clone()).unwrap();
    assert_eq!((problem.short_type(), problem.errors.len()), ("busy", 0));
    assert_eq!(serde_json::to_value(&problem).unwrap(), body);
}
