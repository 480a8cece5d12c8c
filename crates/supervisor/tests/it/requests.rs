//! What a run may be given, and what is said where it may not or cannot be.

use model::User;
use model::execution::{Category, Status};
use serde_json::{Value, json};
use supervisor::{Draft, Refused};

use crate::bench::{Bench, Setting, asking, error, script, succeeded};

fn parameters(value: Value) -> Draft {
    Draft { parameters: value.as_object().cloned(), ..asking("in") }
}

// SUP-2
#[tokio::test]
async fn templates_parameters_and_the_agents_own() {
    let bench = Bench::new(json!([
        {"id": "templates", "executable_path": "printf", "agent_type": "args",
            "args": ["%s|%s|%s|%s", "{{input}}", "{{model}}", "{{agent_id}}", "{{execution_id}}"],
            "parameters": {"model": "small"}},
        {"id": "unknown", "executable_path": "printf", "args": ["{{nobody}}"]},
        {"id": "options", "executable_path": "printf", "agent_type": "args", "args": ["%s"]},
        script("here", "pwd; cat", json!({"working_directory": "/usr"})),
        script("scratch", "pwd; echo ${TMPDIR#$PWD}", json!({})),
    ]))
    .await;
    let result = bench.run_with("templates", asking("in")).await;
    assert_eq!(succeeded(&result), format!("in|small|templates|{}", result.id));
    let result = bench.run_with("templates", parameters(json!({"model": 7}))).await;
    assert_eq!(succeeded(&result), format!("in|7|templates|{}", result.id));
    let unknown = bench.run("unknown", "x").await;
    assert_eq!((unknown.status, unknown.error_category), (Status::Failure, Some(Category::Permanent)));
    assert!(error(&unknown).contains("nobody"), "{unknown:#?}");
    let option = bench.run("options", "--help").await;
    assert!(error(&option).contains("taken for an option"), "{option:#?}");
    assert_eq!(succeeded(&bench.run("here", "x").await), "/usr\nx");
    let scratch = bench.run("scratch", "").await;
    let folder = succeeded(&scratch).lines().next().unwrap().to_owned();
    assert!(folder.starts_with(bench.file("runs").to_str().unwrap()), "{folder}");
    assert_eq!(succeeded(&scratch), format!("{folder}\n/tmp\n"));
    bench.stop().await;
    assert!(!std::path::Path::new(&folder).exists(), "what a run works with is gone in the end");
}

// SUP-1
#[tokio::test]
async fn what_is_changed_for_one_run_needs_an_administrator_and_consent() {
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
    let envs = |value: Value| Draft { envs: serde_json::from_value(value).unwrap(), ..asking("") };
    let draft = Draft { working_directory: Some("/usr".to_owned()), ..envs(json!({"WHAT": "mine"})) };
    let forbidden = |refused| match refused {
        Err(Refused::Forbidden(why)) => why,
        other => panic!("{other:?}"),
    };
    assert!(forbidden(bench.prepare("closed", draft.clone())).contains("its `overrides`"));
    let nobody = User { scopes: Vec::new(), ..bench.user.clone() };
    let refused = bench.supervisor.prepare(&nobody, "open", draft.clone(), supervisor::Origin::default());
    assert!(forbidden(refused).contains("adjutant:admin"));
    let result = bench.run_with("open", draft).await;
    assert_eq!(succeeded(&result), "/usr\nmine as it was\n");
    let invalid = |draft| match bench.prepare("open", draft) {
        Err(Refused::Invalid(invalid)) => format!("{invalid:?}"),
        other => panic!("{other:?}"),
    };
    assert!(invalid(envs(json!({"ADJUTANT_X": "1"}))).contains("envs.ADJUTANT_X"));
    assert!(invalid(Draft { working_directory: Some("/gone".into()), ..asking("") }).contains("working_directory"));
    let timeout = serde_json::from_value(json!(0)).unwrap();
    assert!(invalid(Draft { timeout: Some(timeout), ..asking("") }).contains("timeout"));
    bench.stop().await;
}

// SUP-1, SUP-6
#[tokio::test]
async fn what_cannot_be_run_says_why() {
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
    assert!(matches!(bench.prepare("nobody", asking("")), Err(Refused::NoAgent)));
    assert!(matches!(bench.prepare("off", asking("")), Err(Refused::Disabled(_))));
    assert!(matches!(bench.prepare("small", asking("12345")), Err(Refused::TooLarge { limit: 4 })));
    let nobody = User { scopes: Vec::new(), ..bench.user.clone() };
    let refused = bench.supervisor.prepare(&nobody, "private", asking(""), supervisor::Origin::default());
    assert!(matches!(refused, Err(Refused::NoAgent)), "what is not theirs is not there");
    for (agent, category, message) in [
        ("gone", Category::Permanent, "/gone/away cannot be run"),
        ("unset", Category::Permanent, "NOBODY_SET_THIS, which is not set"),
        ("nowhere", Category::Permanent, "the working directory /gone/away cannot be used"),
        ("no-file", Category::AgentError, "wrote no output file"),
    ] {
        let result = bench.run(agent, "").await;
        assert_eq!((result.status, result.error_category), (Status::Failure, Some(category)), "{agent}");
        assert!(error(&result).contains(message), "{agent}: {result:#?}");
    }
    bench.stop().await;
}

#[tokio::test]
async fn a_run_may_be_shorter_than_the_agent_but_not_longer() {
    let agents = json!([{"id": "slow", "executable_path": "sleep", "args": ["60"], "timeout": 50}]);
    let bench = Setting::new(agents).work().await;
    let seconds = |value: f64| serde_json::from_value(json!(value)).unwrap();
    let short = bench.run_with("slow", Draft { timeout: Some(seconds(0.2)), ..asking("") }).await;
    assert_eq!((short.status, error(&short)), (Status::Timeout, "took longer than 0.2 s"));
    let long = bench.prepare("slow", Draft { timeout: Some(seconds(500.0)), ..asking("") }).unwrap();
    assert_eq!(long.new.execution.timeout, seconds(50.0));
    bench.stop().await;
}
