//! External servers as child processes, including servers that misbehave.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use tools::mcp_client::{ExternalCallError, McpServerPhase, McpServerSettings, McpServers, McpTransport, ProtocolEra};

use crate::{arguments, find, logged, memory_mb, names, start, state, until, until_ready};

const SECRET: &str = "tok-4f9a8b7c6d5e";

/// The file in which a double records its process id, its calls and its cancellations.
struct DoubleLog {
    _directory: TempDir,
    file: PathBuf,
}

impl DoubleLog {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { file: directory.path().join("log"), _directory: directory }
    }

    fn argument(&self) -> String {
        format!("notes={}", self.file.display())
    }

    fn entries(&self, prefix: &str) -> Vec<String> {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        text.lines().filter_map(|line| line.strip_prefix(prefix)).map(str::to_owned).collect()
    }

    fn running_pids(&self) -> Vec<String> {
        let is_running = |pid: &String| {
            let status = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
            // A zombie counts as running, because we must reap it.
            !status.is_empty()
        };
        self.entries("pid ").into_iter().filter(is_running).collect()
    }
}

fn double(name: &str, args: &[&str]) -> McpServerSettings {
    let transport = McpTransport::Child {
        command: env!("CARGO_BIN_EXE_mcp-double").to_owned(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        variables: vec![("DOUBLE_TOKEN".to_owned(), SECRET.into())],
        directory: None,
    };
    let mut settings = McpServerSettings::new(name, transport);
    settings.start_timeout = Duration::from_secs(20);
    settings.call_timeout = Duration::from_secs(30);
    settings
}

pub(crate) async fn ready(args: &[&str]) -> McpServers {
    let servers = start([double("double", args)]);
    servers.wait_until_settled(Duration::from_secs(30)).await;
    assert_eq!(state(&servers, "double").phase, McpServerPhase::Ready, "{:?}", state(&servers, "double"));
    servers
}

#[tokio::test]
async fn both_eras_are_supported() {
    for (args, era, protocol, implementation) in [
        (&[][..], ProtocolEra::Modern, "2026-07-28", "double 2"),
        (&["legacy"], ProtocolEra::Legacy, "2025-06-18", "double 1"),
        (&["legacy", "leaves"], ProtocolEra::Legacy, "2025-06-18", "double 1"),
        (&["banner"], ProtocolEra::Modern, "2026-07-28", "double 2"),
        (&["legacy", "banner"], ProtocolEra::Legacy, "2025-06-18", "double 1"),
    ] {
        let servers = ready(args).await;
        let state = state(&servers, "double");
        assert_eq!((state.era, state.protocol.as_deref()), (Some(era), Some(protocol)), "{args:?}");
        assert_eq!(state.implementation.as_deref(), Some(implementation));
        assert_eq!((state.tools, state.rejected_tools[0].name.as_str()), (18, "bad"), "both pages");
        let echo = find(&servers, "echo");
        assert_eq!((echo.hints.read_only, echo.title.as_deref()), (Some(true), Some("Echo")));
        let result = servers.call(&echo, arguments(json!({"text": "hello"}))).await.unwrap();
        assert_eq!((result.text.as_str(), result.structured), ("hello", Some(json!({"said": "hello"}))));
        servers.stop().await;
    }
}

#[tokio::test]
async fn the_older_era_is_used_if_the_server_ignores_the_newer_one() {
    let mut settings = double("double", &["legacy", "ignores"]);
    settings.start_timeout = Duration::from_secs(2);
    let servers = start([settings.clone()]);
    servers.wait_until_settled(Duration::from_secs(30)).await;
    assert_eq!(state(&servers, "double").era, Some(ProtocolEra::Legacy));
    servers.stop().await;
    settings.era = Some(ProtocolEra::Legacy);
    let servers = start([settings]);
    let began = Instant::now();
    servers.wait_until_settled(Duration::from_secs(30)).await;
    assert!(state(&servers, "double").phase == McpServerPhase::Ready && began.elapsed() < Duration::from_secs(2));
    servers.stop().await;
}

#[tokio::test]
async fn a_slow_start_delays_no_other_server() {
    let began = Instant::now();
    let slow = [double("slow", &["slow=12000"]), double("slow-legacy", &["slow=3000", "legacy"])];
    let bad = [double("hangs", &["hangs-at-start", "ignores"]), double("hangs-at-list", &["hangs-at-list"])];
    let servers = start([double("quick", &[]), double("dies", &["dies"])].into_iter().chain(slow).chain(bad));
    assert!(began.elapsed() < Duration::from_millis(100), "starting does not wait");
    until_ready(&servers, "quick").await;
    assert!(began.elapsed() < Duration::from_secs(5));
    assert!(servers.call(&find(&servers, "echo"), arguments(json!({"text": "x"}))).await.is_ok());
    until_ready(&servers, "slow-legacy").await;
    until_ready(&servers, "slow").await;
    assert!(began.elapsed() < Duration::from_secs(25));
    let down = state(&servers, "dies");
    assert_ne!(down.phase, McpServerPhase::Ready);
    let error = down.last_error.unwrap();
    assert!(error.contains("exit status: 3") && error.contains("cannot go on"), "{error}");
    assert!(!error.contains(SECRET), "{error}");
    let order: Vec<_> = servers.tools().iter().map(|tool| tool.server.to_string()).collect();
    let mut unique = order.clone();
    unique.dedup();
    assert_eq!(unique, ["quick", "slow", "slow-legacy"], "in the order of the configuration");
    servers.stop().await;
}

#[tokio::test]
async fn a_server_that_hangs_at_the_start_times_out() {
    for args in [&["hangs-at-start", "ignores", "legacy"][..], &["hangs-at-list"], &["endless"]] {
        let log = DoubleLog::new();
        let mut settings = double("double", &[args, &[log.argument().as_str()]].concat());
        settings.start_timeout = Duration::from_secs(1);
        let servers = start([settings]);
        let began = Instant::now();
        servers.wait_until_settled(Duration::from_secs(30)).await;
        assert!(began.elapsed() < Duration::from_secs(8), "{args:?}: {:?}", began.elapsed());
        let state = state(&servers, "double");
        assert!(state.phase == McpServerPhase::Down && state.next_try_in.is_some(), "{state:?}");
        let error = state.last_error.unwrap();
        assert!(error.contains("time") || error.contains("16 MiB"), "{error}");
        let call = servers.call(&echo_tool(), arguments(json!({}))).await;
        assert!(matches!(call, Err(ExternalCallError::Unavailable(_))), "{call:?}");
        servers.stop().await;
        assert_eq!(log.running_pids(), [""; 0]);
    }
}

fn echo_tool() -> tools::mcp_client::DiscoveredTool {
    tools::mcp_client::DiscoveredTool {
        server: "double".into(),
        name: "echo".to_owned(),
        title: None,
        description: None,
        schema: serde_json::Map::new(),
        hints: tools::mcp_client::ToolHints::default(),
    }
}

#[tokio::test]
async fn a_child_that_exits_during_a_call_is_restarted_without_repeating_the_call() {
    for args in [&[][..], &["legacy"]] {
        let log = DoubleLog::new();
        let servers = ready(&[args, &[log.argument().as_str()]].concat()).await;
        let die = find(&servers, "die");
        let echo = find(&servers, "echo");
        let died = servers.call(&die, arguments(json!({}))).await;
        assert!(matches!(died, Err(ExternalCallError::Unavailable(_))), "{died:?}");
        until("the tools are removed", || names(&servers).is_empty() || log.entries("pid ").len() > 1).await;
        until_ready(&servers, "double").await;
        let state = state(&servers, "double");
        assert!(state.last_error.unwrap().contains("exit status: 7"));
        assert_eq!(servers.call(&echo, arguments(json!({"text": "again"}))).await.unwrap().text, "again");
        assert_eq!(log.entries("call "), ["\"die\"", "\"echo\""]);
        assert_eq!((state.breaker.failure_count, log.running_pids().len()), (1, 1));
        servers.stop().await;
        assert_eq!(log.running_pids(), [""; 0]);
    }
}

#[tokio::test]
async fn a_call_that_hangs_times_out_and_is_cancelled() {
    let log = DoubleLog::new();
    let mut settings = double("double", &[log.argument().as_str()]);
    settings.call_timeout = Duration::from_millis(700);
    let servers = start([settings]);
    servers.wait_until_settled(Duration::from_secs(30)).await;
    let hang = find(&servers, "hang");
    let slow = find(&servers, "slow");
    assert_eq!(servers.call(&hang, arguments(json!({}))).await, Err(ExternalCallError::TimedOut));
    until("the server gets the cancellation", || log.entries("cancelled ").len() == 1).await;
    // Progress extends the timeout.
    let result = servers.call(&slow, arguments(json!({"steps": 8}))).await.unwrap();
    assert_eq!(result.text, "done");
    // Dropping the future cancels the call and is not counted as a failure.
    let before = state(&servers, "double").breaker.failure_count;
    let dropped = tokio::time::timeout(Duration::from_millis(100), servers.call(&hang, arguments(json!({})))).await;
    assert!(dropped.is_err());
    until("the server gets the second cancellation", || log.entries("cancelled ").len() == 2).await;
    assert_eq!(state(&servers, "double").breaker.failure_count, before);
    assert_eq!(
        (log.entries("pid ").len(), state(&servers, "double").phase),
        (1, McpServerPhase::Ready),
        "the child is still the same"
    );
    servers.stop().await;
}

#[tokio::test]
async fn errors_and_unsupported_results_are_distinguished() {
    let servers = ready(&[]).await;
    let call = async |name: &str, given| servers.call(&find(&servers, name), arguments(given)).await;
    let fail = call("fail", json!({})).await.unwrap();
    assert!(fail.is_error && fail.text == "it did not work");
    for name in ["ask", "task"] {
        let asked = call(name, json!({})).await;
        assert_eq!(
            asked,
            Err(ExternalCallError::Refused("requires user input, which this client does not support".to_owned())),
            "{name}"
        );
    }
    let Err(ExternalCallError::Refused(why)) = call("refuse", json!({})).await else { panic!() };
    assert!(why.contains("bad arguments") && !why.contains(SECRET), "{why}");
    assert!(matches!(call("odd", json!({})).await, Err(ExternalCallError::Refused(_))));
    let large = call("large", json!({"size": 8_000_000})).await.unwrap();
    assert!(large.text.len() <= 50_000 && large.text.contains("left out"));
    let missing = tools::mcp_client::DiscoveredTool { name: "missing".to_owned(), ..echo_tool() };
    assert!(matches!(servers.call(&missing, arguments(json!({}))).await, Err(ExternalCallError::Refused(_))));
    assert_eq!(state(&servers, "double").breaker.failure_count, 0, "the server itself works");
    servers.stop().await;
}

#[tokio::test]
async fn a_child_gets_a_minimal_environment_and_its_secrets_are_redacted() {
    let servers = ready(&[]).await;
    let env = servers.call(&find(&servers, "env"), arguments(json!({}))).await.unwrap().text;
    assert!(env.contains("PATH=") && env.contains("DOUBLE_TOKEN=[redacted]"), "{env}");
    assert!(!env.contains("CARGO") && !env.contains(SECRET), "{env}");
    servers.stop().await;
}

#[tokio::test]
async fn an_oversized_message_closes_only_the_connection() {
    let log = DoubleLog::new();
    let servers = ready(&[log.argument().as_str()]).await;
    let before = memory_mb();
    let endless = servers.call(&find(&servers, "endless"), arguments(json!({}))).await;
    let why = "sent a message of more than 16 MiB".to_owned();
    assert_eq!(endless, Err(ExternalCallError::Unavailable(why.clone())));
    assert!(memory_mb() < before + 300, "{before} MB before, {} MB after", memory_mb());
    until("the server is restarted", || log.entries("pid ").len() == 2).await;
    until_ready(&servers, "double").await;
    assert_eq!(state(&servers, "double").last_error, Some(why));
    assert_eq!(log.running_pids().len(), 1);
    servers.stop().await;
}

#[tokio::test]
async fn a_message_with_too_many_values_is_rejected() {
    let log = DoubleLog::new();
    let servers = ready(&[log.argument().as_str()]).await;
    let dense = find(&servers, "dense");
    let result = servers.call(&dense, arguments(json!({"count": 400_000}))).await.unwrap();
    assert!(result.structured.is_none() && result.text.len() <= 50_000);
    let result = servers.call(&dense, arguments(json!({"count": 700_000}))).await;
    assert_eq!(result, Err(ExternalCallError::Unavailable("sent a message of more than 500 000 values".to_owned())));
    until("the server is restarted", || log.entries("pid ").len() == 2).await;
    servers.stop().await;
}

#[tokio::test]
async fn a_frozen_server_is_restarted() {
    let log = DoubleLog::new();
    let mut settings = double("double", &[log.argument().as_str()]);
    (settings.call_timeout, settings.start_timeout) = (Duration::from_millis(500), Duration::from_secs(3));
    let servers = start([settings]);
    servers.wait_until_settled(Duration::from_secs(30)).await;
    let frozen = servers.call(&find(&servers, "freeze"), arguments(json!({}))).await;
    assert_eq!(frozen, Err(ExternalCallError::TimedOut));
    until("the server is restarted", || log.entries("pid ").len() == 2).await;
    until_ready(&servers, "double").await;
    assert_eq!(state(&servers, "double").last_error.as_deref(), Some("no longer answers"));
    assert_eq!(log.running_pids().len(), 1);
    servers.stop().await;
}

#[tokio::test]
async fn stderr_is_logged_with_a_limit_and_without_secrets() {
    let servers = start([double("chatty", &["noisy", "banner", "legacy"])]);
    servers.wait_until_settled(Duration::from_secs(30)).await;
    let _ = servers.call(&find(&servers, "refuse"), arguments(json!({}))).await;
    servers.stop().await;
    let entries = logged();
    let lines: Vec<_> =
        entries.iter().filter(|entry| entry.contains("mcp_server_log") && entry.contains("chatty")).collect();
    assert!(lines.iter().any(|entry| entry.contains("line 1 with the token [redacted]")), "{lines:?}");
    assert!(lines.len() < 1000 && lines.iter().all(|entry| entry.len() < 1000), "{}", lines.len());
    assert!(entries.iter().any(|entry| entry.contains("mcp_server_noise") && entry.contains("Welcome")));
    assert!(!entries.iter().any(|entry| entry.contains(SECRET)));
}

#[tokio::test]
async fn floods_and_invalid_lines_are_tolerated() {
    let servers = ready(&["noisy", "banner"]).await;
    let before = memory_mb();
    let mut settings = double("patient", &[]);
    settings.call_timeout = Duration::from_secs(60);
    servers.replace(vec![settings]);
    until_ready(&servers, "patient").await;
    let flood = servers.call(&find(&servers, "flood"), arguments(json!({}))).await.unwrap();
    assert_eq!(flood.text, "flooded");
    let pings = servers.call(&find(&servers, "pings"), arguments(json!({}))).await.unwrap();
    assert_eq!(pings.text, "pinged");
    assert!(memory_mb() < before + 300, "{before} MB before, {} MB after", memory_mb());
    servers.stop().await;
}

#[tokio::test]
async fn changed_tools_are_detected() {
    for args in [&[][..], &["legacy"]] {
        let servers = ready(args).await;
        let before = servers.tools();
        assert!(std::sync::Arc::ptr_eq(&before, &servers.tools()));
        // Wait for the subscription.
        tokio::time::sleep(Duration::from_millis(300)).await;
        servers.call(&find(&servers, "grow"), arguments(json!({}))).await.unwrap();
        until("the new tool is listed", || names(&servers).contains(&"grown".to_owned())).await;
        assert_eq!(servers.tools().len(), before.len() + 1);
        assert!(names(&servers).is_sorted());
        servers.stop().await;
        assert!(servers.tools().is_empty());
    }
}

#[tokio::test]
async fn tool_lists_are_limited() {
    let servers = start([double("circle", &["circle"]), double("many", &["many"])]);
    servers.wait_until_settled(Duration::from_secs(30)).await;
    let circle = state(&servers, "circle");
    let many = state(&servers, "many");
    assert_eq!((circle.tools, many.tools), (1, 1000));
    assert!(many.rejected_tools[0].reason.contains("1000"), "{:?}", many.rejected_tools);
    servers.stop().await;
}

#[tokio::test]
async fn a_child_that_ignores_sigterm_is_killed() {
    let log = DoubleLog::new();
    let servers = ready(&["stubborn", "stays", log.argument().as_str()]).await;
    until("both processes run", || log.running_pids().len() == 2).await;
    let began = Instant::now();
    servers.stop().await;
    assert_eq!(log.running_pids(), [""; 0]);
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
}

#[tokio::test]
async fn the_exit_of_a_child_is_detected_even_if_another_process_holds_its_pipes() {
    let log = DoubleLog::new();
    let servers = ready(&["stubborn", log.argument().as_str()]).await;
    until("both processes run", || log.running_pids().len() == 2).await;
    let began = Instant::now();
    let died = servers.call(&find(&servers, "die"), arguments(json!({}))).await;
    assert!(matches!(died, Err(ExternalCallError::Unavailable(_))), "{died:?}");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    until("the server is restarted", || log.entries("pid ").len() >= 3).await;
    until_ready(&servers, "double").await;
    servers.stop().await;
    assert_eq!(log.running_pids(), [""; 0]);
}

#[tokio::test]
async fn stopping_during_a_start_leaves_no_process() {
    let log = DoubleLog::new();
    let servers = start([double("double", &["slow=60000", log.argument().as_str()])]);
    until("the process runs", || log.running_pids().len() == 1).await;
    servers.stop().await;
    assert_eq!(log.running_pids(), [""; 0]);
}

#[tokio::test]
async fn dropping_the_servers_leaves_no_process() {
    let log = DoubleLog::new();
    let servers = ready(&[log.argument().as_str()]).await;
    drop(servers);
    until("the process has ended", || log.running_pids().is_empty()).await;
}

#[tokio::test]
async fn new_settings_restart_only_changed_servers() {
    let one = DoubleLog::new();
    let two = DoubleLog::new();
    let settings = |name: &str, log: &DoubleLog| double(name, &[log.argument().as_str()]);
    let servers = start([settings("one", &one), settings("two", &two)]);
    servers.wait_until_settled(Duration::from_secs(30)).await;
    let mut changed = settings("two", &two);
    changed.deny = vec!["*".to_owned()];
    changed.allow = vec!["echo".to_owned()];
    servers.replace(vec![changed, double("three", &[]), settings("one", &one)]);
    servers.wait_until_settled(Duration::from_secs(30)).await;
    assert_eq!((one.entries("pid ").len(), two.entries("pid ").len()), (1, 2));
    let states: Vec<_> = servers.states().into_iter().map(|state| (state.name, state.tools)).collect();
    assert_eq!(states, [("two".to_owned(), 0), ("three".to_owned(), 18), ("one".to_owned(), 18)]);
    servers.replace(vec![]);
    until("all processes have ended", || one.running_pids().is_empty() && two.running_pids().is_empty()).await;
    let removed = servers.call(&echo_tool(), arguments(json!({}))).await;
    assert_eq!(removed, Err(ExternalCallError::Unavailable("is no longer configured".to_owned())));
    servers.stop().await;
}

#[tokio::test]
async fn repeated_failures_open_the_circuit_breaker() {
    // RES-1
    let servers = ready(&[]).await;
    let die = find(&servers, "die");
    let mut failures = 0;
    while failures < 5 {
        let _ = servers.call(&die, arguments(json!({}))).await;
        failures += 1;
    }
    let rejected = servers.call(&die, arguments(json!({}))).await;
    let why = "failed repeatedly and is not called for some time".to_owned();
    assert_eq!(rejected, Err(ExternalCallError::Unavailable(why)));
    assert_eq!(state(&servers, "double").breaker.state, model::breaker::BreakerState::Open);
    servers.stop().await;
}

#[tokio::test]
async fn a_missing_program_is_reported_by_name() {
    let mut settings = double("double", &[]);
    settings.transport = McpTransport::Child {
        command: "no-such-program".to_owned(),
        args: Vec::new(),
        variables: Vec::new(),
        directory: None,
    };
    let servers = start([settings]);
    servers.wait_until_settled(Duration::from_secs(10)).await;
    let error = state(&servers, "double").last_error.unwrap();
    assert!(error.contains("no-such-program") && error.contains("No such file"), "{error}");
    servers.stop().await;
}
