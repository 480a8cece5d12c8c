//! Tests of the validation of agents.

use serde_json::json;

use super::*;
use crate::{Invalid, UserId};

fn check(value: Value) -> Result<Agent, Invalid> {
    crate::json::from_value::<AgentDraft>(value)?.check()
}

/// Returns the field and the rule of each violation.
fn violated_rules(value: Value) -> Vec<String> {
    let violations = check(value).unwrap_err().violations;
    violations.into_iter().map(|violation| format!("{} {}", violation.field, violation.rule)).collect()
}

#[test]
fn missing_fields_have_defaults() {
    // SUP-1
    let agent = check(json!({"id": "cat", "executable_path": "/bin/cat"})).unwrap();
    assert_eq!(agent.name, "cat");
    assert_eq!(agent.agent_type, "stdin-stdout");
    assert_eq!((agent.mode, agent.access_type, agent.max_concurrency()), (AgentMode::Task, AccessType::ReadOnly, 10));
    assert_eq!(serde_json::to_value(agent.timeout).unwrap(), json!(1800));
    assert_eq!((agent.queue_depth, agent.max_retries), (10, 0));
    assert_eq!((agent.max_input_size, agent.max_output_size), (1_048_576, 10_485_760));
    let named = check(json!({"name": "My Agent, v2", "executable_path": "x"})).unwrap();
    assert_eq!(named.id, "my-agent-v2");
}

#[test]
fn an_agent_round_trips_through_json() {
    let agent = check(json!({
        "id": "a", "executable_path": "x", "timeout": 0.25, "envs": {"TOKEN": "env:T"}, "exit_codes": {"75": "transient"},
        "session": {"marker": "EOT"}, "limits": {"open_files": 10},
    }));
    let agent = agent.unwrap();
    let again: Agent = serde_json::from_str(&serde_json::to_string(&agent).unwrap()).unwrap();
    assert_eq!(again, agent);
}

#[test]
fn the_type_and_the_patterns_must_agree() {
    let draft = |extra: Value| {
        let mut value = json!({"id": "a", "executable_path": "x"});
        value.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        value
    };
    for (agent_type, input) in [("file-input", InputPattern::File), ("args", InputPattern::Args)] {
        let agent = check(draft(json!({"agent_type": agent_type}))).unwrap();
        assert_eq!((agent.input_pattern, agent.output_pattern), (input, OutputPattern::Stdout));
        // These types define only the input, so every output is accepted.
        for output in ["stdout", "file", "json-rpc"] {
            let agent = check(draft(json!({"agent_type": agent_type, "output_pattern": output}))).unwrap();
            assert_eq!((agent.agent_type.as_str(), agent.input_pattern), (agent_type, input));
            assert_eq!(agent.output_pattern.as_str(), output);
        }
    }
    assert_eq!(
        check(draft(json!({"input_pattern": "file", "output_pattern": "file"}))).unwrap().agent_type,
        "file-file"
    );
    let both = draft(json!({"agent_type": "stdin-file", "input_pattern": "file", "output_pattern": "stdout"}));
    let violations = check(both).unwrap_err().violations;
    let messages: Vec<_> = violations.iter().map(|violation| violation.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "'stdin-file' requires input_pattern 'stdin', but input_pattern is 'file'",
            "'stdin-file' requires output_pattern 'file', but output_pattern is 'stdout'"
        ]
    );
    assert_eq!(check(draft(json!({"input_pattern": "json-rpc"}))).unwrap().output_pattern, OutputPattern::JsonRpc);
    assert_eq!(check(draft(json!({"input_pattern": "json-rpc"}))).unwrap().protocol, AgentProtocol::Acp);
    assert_eq!(violated_rules(draft(json!({"agent_type": "telepathy"}))), ["agent_type one_of"]);
    assert_eq!(
        violated_rules(draft(json!({"agent_type": "args", "input_pattern": "file"}))),
        ["agent_type consistent"]
    );
    let stdout = draft(json!({"input_pattern": "json-rpc", "output_pattern": "stdout"}));
    assert_eq!(violated_rules(stdout), ["output_pattern one_of"]);
}

#[test]
fn all_violations_are_reported_by_field() {
    // SUP-1
    let fields = violated_rules(json!({
        "id": "Not A Slug", "timeout": 0, "access_type": "read-write", "max_concurrent_executions": 2,
        "allow": ["everyone"], "args": ["{{input"], "envs": {"A=B": "x", "ADJUTANT_X": "y"}, "limits": {"open_files": 0},
    }));
    let expected = [
        "id slug",
        "executable_path required",
        "args[0] template",
        "envs name",
        "envs.ADJUTANT_X reserved",
        "max_concurrent_executions range",
        "timeout range",
        "limits.open_files range",
        "allow[0] uuid",
    ];
    assert_eq!(fields, expected);
    assert_eq!(violated_rules(json!({"id": "assistant", "executable_path": "x"})), ["id reserved"]);
    assert_eq!(violated_rules(json!({"id": "a", "executable": "x"})), ["executable unknown"]);
}

#[test]
fn secrets_in_a_configuration_are_rejected() {
    // SUP-9
    let draft = |extra: Value| {
        let mut value = json!({"id": "a", "executable_path": "x"});
        value.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        value
    };
    let key = format!("sk-{}", "a1B2".repeat(10));
    assert_eq!(violated_rules(draft(json!({"envs": {"OPENAI_API_KEY": "abc"}}))), ["envs.OPENAI_API_KEY secret"]);
    assert_eq!(violated_rules(draft(json!({"envs": {"X": key}}))), ["envs.X secret"]);
    assert_eq!(violated_rules(draft(json!({"args": ["--token", "abcdef"]}))), ["args[1] secret"]);
    assert_eq!(violated_rules(draft(json!({"cli_args": {"api-key": "abcdef"}}))), ["cli_args.api-key secret"]);
    for reference in ["${OPENAI_API_KEY}", "env:OPENAI_API_KEY", "file:/run/secrets/key"] {
        assert!(check(draft(json!({"envs": {"OPENAI_API_KEY": reference}}))).is_ok(), "{reference}");
    }
    assert!(check(draft(json!({"args": ["--max-tokens", "5"]}))).is_ok());
}

#[test]
fn only_allowed_users_may_run_an_agent() {
    // OPS-6
    let closed = check(json!({"id": "a", "executable_path": "x"})).unwrap();
    let open = Agent { allow: vec!["*".to_owned()], ..closed.clone() };
    let user = |id: u128, scopes: &[&str]| User {
        id: UserId::new(uuid::Uuid::from_u128(id)),
        scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
        time_zone: jiff::tz::TimeZone::UTC,
    };
    let shared = Agent { allow: vec![user(7, &[]).id.to_string()], ..closed.clone() };
    assert!(!closed.is_allowed_for(&user(7, &[])));
    assert!(closed.is_allowed_for(&user(7, &[crate::user::ADMIN_SCOPE])));
    assert!(open.is_allowed_for(&user(8, &[])));
    assert!(shared.is_allowed_for(&user(7, &[])) && !shared.is_allowed_for(&user(8, &[])));
}

#[test]
fn a_preset_provides_the_missing_fields() {
    // SUP-1
    let preset =
        AgentDraft { executable_path: Some("codex".into()), timeout: Some(Seconds::new(60)), ..AgentDraft::default() };
    let own = AgentDraft { id: Some("mine".into()), timeout: Some(Seconds::new(5)), ..AgentDraft::default() };
    let agent = own.with_preset(preset).check().unwrap();
    assert_eq!((agent.executable_path.as_str(), agent.timeout), ("codex", Seconds::new(5)));
}
