//! What is taken for an agent, and what is said about the rest.

use serde_json::json;

use super::*;
use crate::{Invalid, UserId};

fn check(value: Value) -> Result<Agent, Invalid> {
    crate::json::from_value::<Draft>(value)?.check()
}

/// Which fields are wrong, and why.
fn wrong(value: Value) -> Vec<String> {
    let violations = check(value).unwrap_err().violations;
    violations.into_iter().map(|violation| format!("{} {}", violation.field, violation.rule)).collect()
}

#[test]
fn little_is_needed_and_the_rest_has_its_default() {
    // SUP-1
    let agent = check(json!({"id": "cat", "executable_path": "/bin/cat"})).unwrap();
    assert_eq!(agent.name, "cat");
    assert_eq!(agent.agent_type, "stdin-stdout");
    assert_eq!((agent.mode, agent.access_type, agent.places()), (Mode::Task, AccessType::ReadOnly, 10));
    assert_eq!(serde_json::to_value(agent.timeout).unwrap(), json!(1800));
    assert_eq!((agent.queue_depth, agent.max_retries), (10, 0));
    assert_eq!((agent.max_input_size, agent.max_output_size), (1_048_576, 10_485_760));
    let named = check(json!({"name": "My Agent, v2", "executable_path": "x"})).unwrap();
    assert_eq!(named.id, "my-agent-v2");
}

#[test]
fn what_is_kept_reads_back_as_it_was() {
    let agent = check(json!({
        "id": "a", "executable_path": "x", "timeout": 0.25, "envs": {"TOKEN": "env:T"}, "exit_codes": {"75": "transient"},
        "session": {"marker": "EOT"}, "limits": {"open_files": 10},
    }));
    let agent = agent.unwrap();
    let again: Agent = serde_json::from_str(&serde_json::to_string(&agent).unwrap()).unwrap();
    assert_eq!(again, agent);
}

#[test]
fn the_type_and_the_patterns_belong_together() {
    let of = |extra: Value| {
        let mut value = json!({"id": "a", "executable_path": "x"});
        value.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        value
    };
    for (agent_type, input) in [("file-input", InputPattern::File), ("args", InputPattern::Args)] {
        let agent = check(of(json!({"agent_type": agent_type}))).unwrap();
        assert_eq!((agent.input_pattern, agent.output_pattern), (input, OutputPattern::Stdout));
        // They name the input alone, so that they go with any output.
        for output in ["stdout", "file", "json-rpc"] {
            let agent = check(of(json!({"agent_type": agent_type, "output_pattern": output}))).unwrap();
            assert_eq!((agent.agent_type.as_str(), agent.input_pattern), (agent_type, input));
            assert_eq!(agent.output_pattern.as_str(), output);
        }
    }
    assert_eq!(check(of(json!({"input_pattern": "file", "output_pattern": "file"}))).unwrap().agent_type, "file-file");
    let both = of(json!({"agent_type": "stdin-file", "input_pattern": "file", "output_pattern": "stdout"}));
    let violations = check(both).unwrap_err().violations;
    let messages: Vec<_> = violations.iter().map(|violation| violation.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "'stdin-file' stands for input_pattern 'stdin', but input_pattern is 'file'",
            "'stdin-file' stands for output_pattern 'file', but output_pattern is 'stdout'"
        ]
    );
    assert_eq!(check(of(json!({"input_pattern": "json-rpc"}))).unwrap().output_pattern, OutputPattern::JsonRpc);
    assert_eq!(check(of(json!({"input_pattern": "json-rpc"}))).unwrap().protocol, Protocol::Acp);
    assert_eq!(wrong(of(json!({"agent_type": "telepathy"}))), ["agent_type one_of"]);
    assert_eq!(wrong(of(json!({"agent_type": "args", "input_pattern": "file"}))), ["agent_type consistent"]);
    let stdout = of(json!({"input_pattern": "json-rpc", "output_pattern": "stdout"}));
    assert_eq!(wrong(stdout), ["output_pattern one_of"]);
}

#[test]
fn every_mistake_is_named_by_its_field() {
    let fields = wrong(json!({
        "id": "Not A Slug", "timeout": 0, "access_type": "read-write", "max_concurrent_executions": 2,
        "allow": ["somebody"], "args": ["{{input"], "envs": {"A=B": "x", "ADJUTANT_X": "y"}, "limits": {"open_files": 0},
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
    assert_eq!(wrong(json!({"id": "assistant", "executable_path": "x"})), ["id reserved"]);
    assert_eq!(wrong(json!({"id": "a", "executable": "x"})), ["executable unknown"]);
}

#[test]
fn no_secret_stands_in_a_configuration() {
    // SUP-9
    let of = |extra: Value| {
        let mut value = json!({"id": "a", "executable_path": "x"});
        value.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        value
    };
    let key = format!("sk-{}", "a1B2".repeat(10));
    assert_eq!(wrong(of(json!({"envs": {"OPENAI_API_KEY": "abc"}}))), ["envs.OPENAI_API_KEY secret"]);
    assert_eq!(wrong(of(json!({"envs": {"X": key}}))), ["envs.X secret"]);
    assert_eq!(wrong(of(json!({"args": ["--token", "abcdef"]}))), ["args[1] secret"]);
    assert_eq!(wrong(of(json!({"cli_args": {"api-key": "abcdef"}}))), ["cli_args.api-key secret"]);
    for fine in ["${OPENAI_API_KEY}", "env:OPENAI_API_KEY", "file:/run/secrets/key"] {
        assert!(check(of(json!({"envs": {"OPENAI_API_KEY": fine}}))).is_ok(), "{fine}");
    }
    assert!(check(of(json!({"args": ["--max-tokens", "5"]}))).is_ok());
}

#[test]
fn whoever_is_not_named_may_not_run_it() {
    // OPS-6
    let nobody = check(json!({"id": "a", "executable_path": "x"})).unwrap();
    let all = Agent { allow: vec!["*".to_owned()], ..nobody.clone() };
    let user = |id: u128, scopes: &[&str]| User {
        id: UserId::new(uuid::Uuid::from_u128(id)),
        scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
        time_zone: jiff::tz::TimeZone::UTC,
    };
    let one = Agent { allow: vec![user(7, &[]).id.to_string()], ..nobody.clone() };
    assert!(!nobody.lets(&user(7, &[])));
    assert!(nobody.lets(&user(7, &[crate::user::ADMIN_SCOPE])));
    assert!(all.lets(&user(8, &[])));
    assert!(one.lets(&user(7, &[])) && !one.lets(&user(8, &[])));
}

#[test]
fn a_preset_fills_what_is_left_open() {
    let preset = Draft { executable_path: Some("codex".into()), timeout: Some(Seconds::new(60)), ..Draft::default() };
    let own = Draft { id: Some("mine".into()), timeout: Some(Seconds::new(5)), ..Draft::default() };
    let agent = own.over(preset).check().unwrap();
    assert_eq!((agent.executable_path.as_str(), agent.timeout), ("codex", Seconds::new(5)));
}
