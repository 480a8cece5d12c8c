//! Tests of requests: parameters, overrides, limits and their errors.

use model::User;
use model::execution::{ErrorCategory, ExecutionStatus};
use serde_json::{Value, json};
use supervisor::{RunDraft, SubmitError};

use crate::bench::{Bench, BenchBuilder, error, input_draft, script, succeeded};

fn parameters(value: Value) -> RunDraft {
    RunDraft { parameters: value.as_object().cloned(), ..input_draft("in") }
}

// SUP-2
#[tokio::test]
async fn templates_and_parameters_are_expanded() {
    let bench = Bench::new(json!([
        {"id": "templates", "executable_path": "printf", "agent_type": "args",
            "args": ["%s|%s|%s|%s", "{{input}}", "{{model}}", "{{agent_id}}", "{{execution_id}}"],
            "parameters": {"model": "small"}},
        {"id": "unknown", "executable_path": "printf", "args": ["{{missing}}"]},
        {"id": "options", "executable_path": "printf", "agent_type": "args", "args": ["%s"]},
        script("here", "pwd; cat", json!({"working_directory": "/usr"})),
        script("scratch", "pwd; echo ${TMPDIR#$PWD}", json!({})),
    ]))
    .await;
    let result = bench.run_with("templates", input_draft("in")).await;
    assert_eq!(succeeded(&result), format!("in|small|templates|{}", result.id));
    let result = bench.run_with("templates", parameters(json!({"model": 7}))).await;
    assert_eq!(succeeded(&result), format!("in|7|templates|{}", result.id));
    let unknown = bench.run("unknown", "x").await;
    assert_eq!((unknown.status, unknown.error_category), (ExecutionStatus::Failure, Some(ErrorCategory::Permanent)));
    assert!(error(&unknown).contains("missing"), "{unknown:#?}");
    let option = bench.run("options", "--help").await;
    assert!(error(&option).contains("taken for an option"), "{option:#?}");
    assert_eq!(succeeded(&bench.run("here", "x").await), "/usr\nx");
    let scratch = bench.run("scratch", "").await;
    let dir = succeeded(&scratch).lines().next().unwrap().to_owned();
    assert!(dir.starts_with(bench.file("runs").to_str().unwrap()), "{dir}");
    assert_eq!(succeeded(&scratch), format!("{dir}\n/tmp\n"));
    bench.stop().await;
    assert!(!std::path::Path::new(&dir).exists(), "scratch directories are removed");
}

// SUP-1
#[tokio::test]
async fn overrides_need_an_administrator_and_a_permission() {
    let bench = Bench::new(json!([
        script("closed", "pwd", json!({"allow": ["*"]})),
        script(
            "open",
            "pwd; echo $WHAT $FIXED",
            json!({
            "allow": ["*"], "overrides": ["working_directory", "envs"], "envs": {"FIXED": "as it was"}})
        ),
    ]))
    .await;
    let envs = |value: Value| RunDraft { envs: serde_json::from_value(value).unwrap(), ..input_draft("") };
    let draft = RunDraft { working_directory: Some("/usr".to_owned()), ..envs(json!({"WHAT": "mine"})) };
    let forbidden = |result| match result {
        Err(SubmitError::Forbidden(message)) => message,
        other => panic!("{other:?}"),
    };
    assert!(forbidden(bench.prepare("closed", draft.clone())).contains("its `overrides`"));
    let plain_user = User { scopes: Vec::new(), ..bench.user.clone() };
    let refused = bench.supervisor.prepare(&plain_user, "open", draft.clone(), supervisor::RunOrigin::default());
    assert!(forbidden(refused).contains("adjutant:admin"));
    let result = bench.run_with("open", draft).await;
    assert_eq!(succeeded(&result), "/usr\nmine as it was\n");
    let invalid = |draft| match bench.prepare("open", draft) {
        Err(SubmitError::Invalid(invalid)) => format!("{invalid:?}"),
        other => panic!("{other:?}"),
    };
    assert!(invalid(envs(json!({"ADJUTANT_X": "1"}))).contains("envs.ADJUTANT_X"));
    assert!(
        invalid(RunDraft { working_directory: Some("/gone".into()), ..input_draft("") }).contains("working_directory")
    );
    let timeout = serde_json::from_value(json!(0)).unwrap();
    assert!(invalid(RunDraft { timeout: Some(timeout), ..input_draft("") }).contains("timeout"));
    bench.stop().await;
}

// SUP-1, SUP-6
#[tokio::test]
async fn requests_that_cannot_run_name_the_problem() {
    let bench = Bench::new(json!([
        {"id": "gone", "executable_path": "/gone/away"},
        {"id": "small", "executable_path": "cat", "max_input_size": 4},
        {"id": "off", "executable_path": "cat", "enabled": false},
        {"id": "unset", "executable_path": "cat", "envs": {"A": "${NOBODY_SET_THIS}"}},
        {"id": "nowhere", "executable_path": "cat", "working_directory": "/gone/away"},
        {"id": "no-file", "executable_path": "true", "agent_type": "stdin-file", "args": ["{{output_file}}"]},
        {"id": "private", "executable_path": "cat"},
    ]))
    .await;
    assert!(matches!(bench.prepare("missing", input_draft("")), Err(SubmitError::AgentNotFound)));
    assert!(matches!(bench.prepare("off", input_draft("")), Err(SubmitError::AgentDisabled(_))));
    assert!(matches!(bench.prepare("small", input_draft("12345")), Err(SubmitError::InputTooLarge { limit: 4 })));
    let plain_user = User { scopes: Vec::new(), ..bench.user.clone() };
    let refused = bench.supervisor.prepare(&plain_user, "private", input_draft(""), supervisor::RunOrigin::default());
    assert!(matches!(refused, Err(SubmitError::AgentNotFound)), "agents of other users are not visible");
    for (agent, category, message) in [
        ("gone", ErrorCategory::Permanent, "/gone/away cannot be run"),
        ("unset", ErrorCategory::Permanent, "NOBODY_SET_THIS, which is not set"),
        ("nowhere", ErrorCategory::Permanent, "the working directory /gone/away cannot be used"),
        ("no-file", ErrorCategory::AgentError, "wrote no output file"),
    ] {
        let result = bench.run(agent, "").await;
        assert_eq!((result.status, result.error_category), (ExecutionStatus::Failure, Some(category)), "{agent}");
        assert!(error(&result).contains(message), "{agent}: {result:#?}");
    }
    bench.stop().await;
}

#[tokio::test]
async fn a_run_can_shorten_but_not_extend_the_timeout() {
    let agents = json!([{"id": "slow", "executable_path": "sleep", "args": ["60"], "timeout": 50}]);
    let bench = BenchBuilder::new(agents).start().await;
    let seconds = |value: f64| serde_json::from_value(json!(value)).unwrap();
    let short = bench.run_with("slow", RunDraft { timeout: Some(seconds(0.2)), ..input_draft("") }).await;
    assert_eq!((short.status, error(&short)), (ExecutionStatus::Timeout, "took longer than 0.2 s"));
    let long = bench.prepare("slow", RunDraft { timeout: Some(seconds(500.0)), ..input_draft("") }).unwrap();
    assert_eq!(long.new_execution.execution.timeout, seconds(50.0));
    bench.stop().await;
}
