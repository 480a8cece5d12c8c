//! Servers that run as children: what they may do to us, and what must not come of it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use tools::foreign::{CallError, Era, Phase, Servers, Settings, Transport};

use crate::{arguments, find, logged, memory, names, start, state, until, until_ready};

const SECRET: &str = "tok-4f9a8b7c6d5e";

struct Notes {
    _directory: TempDir,
    file: PathBuf,
}

impl Notes {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { file: directory.path().join("notes"), _directory: directory }
    }

    fn argument(&self) -> String {
        format!("notes={}", self.file.display())
    }

    fn all(&self, start: &str) -> Vec<String> {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        text.lines().filter_map(|line| line.strip_prefix(start)).map(str::to_owned).collect()
    }

    fn alive(&self) -> Vec<String> {
        let is_alive = |pid: &String| {
            let status = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
            // A zombie is not alive, but it would be ours to bury.
            !status.is_empty()
        };
        self.all("pid ").into_iter().filter(is_alive).collect()
    }
}

fn double(name: &str, args: &[&str]) -> Settings {
    let transport = Transport::Child {
        command: env!("CARGO_BIN_EXE_mcp-double").to_owned(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        variables: vec![("DOUBLE_TOKEN".to_owned(), SECRET.into())],
        directory: None,
    };
    let mut settings = Settings::new(name, transport);
    settings.start_timeout = Duration::from_secs(20);
    settings.call_timeout = Duration::from_secs(30);
    settings
}

async fn ready(args: &[&str]) -> Servers {
    let servers = start([double("double", args)]);
    servers.settled(Duration::from_secs(30)).await;
    assert_eq!(state(&servers, "double").phase, Phase::Ready, "{:?}", state(&servers, "double"));
    servers
}

#[tokio::test]
async fn both_eras_are_spoken() {
    for (args, era, protocol, implementation) in [
        (&[][..], Era::Modern, "2026-07-28", "double 2"),
        (&["legacy"], Era::Legacy, "2025-06-18", "double 1"),
        (&["legacy", "leaves"], Era::Legacy, "2025-06-18", "double 1"),
        (&["banner"], Era::Modern, "2026-07-28", "double 2"),
        (&["legacy", "banner"], Era::Legacy, "2025-06-18", "double 1"),
    ] {
        let servers = ready(args).await;
        let state = state(&servers, "double");
        assert_eq!((state.era, state.protocol.as_deref()), (Some(era), Some(protocol)), "{args:?}");
        assert_eq!(state.implementation.as_deref(), Some(implementation));
        assert_eq!((state.tools, state.left_out[0].name.as_str()), (18, "bad"), "both pages");
        let echo = find(&servers, "echo");
        assert_eq!((echo.annotations.read_only, echo.title.as_deref()), (Some(true), Some("Echo")));
        let called = servers.call(&echo, arguments(json!({"text": "hello"}))).await.unwrap();
        assert_eq!((called.text.as_str(), called.structured), ("hello", Some(json!({"said": "hello"}))));
        servers.stop().await;
    }
}

#[tokio::test]
async fn a_server_that_ignores_the_newer_era_is_spoken_to_in_the_older() {
    let mut settings = double("double", &["legacy", "ignores"]);
    settings.start_timeout = Duration::from_secs(2);
    let servers = start([settings.clone()]);
    servers.settled(Duration::from_secs(30)).await;
    assert_eq!(state(&servers, "double").era, Some(Era::Legacy));
    servers.stop().await;
    settings.era = Some(Era::Legacy);
    let servers = start([settings]);
    let began = Instant::now();
    servers.settled(Duration::from_secs(30)).await;
    assert!(state(&servers, "double").phase == Phase::Ready && began.elapsed() < Duration::from_secs(2));
    servers.stop().await;
}

#[tokio::test]
async fn a_slow_start_delays_nobody_else() {
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
    assert_ne!(down.phase, Phase::Ready);
    let error = down.last_error.unwrap();
    assert!(error.contains("exit status: 3") && error.contains("cannot go on"), "{error}");
    assert!(!error.contains(SECRET), "{error}");
    let order: Vec<_> = servers.tools().iter().map(|found| found.server.to_string()).collect();
    let mut unique = order.clone();
    unique.dedup();
    assert_eq!(unique, ["quick", "slow", "slow-legacy"], "in the order of the configuration");
    servers.stop().await;
}

#[tokio::test]
async fn a_server_that_hangs_at_the_start_is_given_up_in_time() {
    for args in [&["hangs-at-start", "ignores", "legacy"][..], &["hangs-at-list"], &["endless"]] {
        let notes = Notes::new();
        let mut settings = double("double", &[args, &[notes.argument().as_str()]].concat());
        settings.start_timeout = Duration::from_secs(1);
        let servers = start([settings]);
        let began = Instant::now();
        servers.settled(Duration::from_secs(30)).await;
        assert!(began.elapsed() < Duration::from_secs(8), "{args:?}: {:?}", began.elapsed());
        let state = state(&servers, "double");
        assert!(state.phase == Phase::Down && state.next_try_in.is_some(), "{state:?}");
        let error = state.last_error.unwrap();
        assert!(error.contains("time") || error.contains("16 MiB"), "{error}");
        let call = servers.call(&found(), arguments(json!({}))).await;
        assert!(matches!(call, Err(CallError::Unavailable(_))), "{call:?}");
        servers.stop().await;
        assert_eq!(notes.alive(), [""; 0]);
    }
}

fn found() -> tools::foreign::Found {
    tools::foreign::Found {
        server: "double".into(),
        name: "echo".to_owned(),
        title: None,
        description: None,
        schema: serde_json::Map::new(),
        annotations: tools::foreign::Annotations::default(),
    }
}

#[tokio::test]
async fn a_child_that_dies_in_a_call_comes_back_and_the_call_is_not_repeated() {
    for args in [&[][..], &["legacy"]] {
        let notes = Notes::new();
        let servers = ready(&[args, &[notes.argument().as_str()]].concat()).await;
        let die = find(&servers, "die");
        let echo = find(&servers, "echo");
        let died = servers.call(&die, arguments(json!({}))).await;
        assert!(matches!(died, Err(CallError::Unavailable(_))), "{died:?}");
        until("the tools vanish", || names(&servers).is_empty() || notes.all("pid ").len() > 1).await;
        until_ready(&servers, "double").await;
        let state = state(&servers, "double");
        assert!(state.last_error.unwrap().contains("exit status: 7"));
        assert_eq!(servers.call(&echo, arguments(json!({"text": "again"}))).await.unwrap().text, "again");
        assert_eq!(notes.all("call "), ["\"die\"", "\"echo\""]);
        assert_eq!((state.breaker.failure_count, notes.alive().len()), (1, 1));
        servers.stop().await;
        assert_eq!(notes.alive(), [""; 0]);
    }
}

#[tokio::test]
async fn a_call_that_hangs_is_cancelled_and_says_so() {
    let notes = Notes::new();
    let mut settings = double("double", &[notes.argument().as_str()]);
    settings.call_timeout = Duration::from_millis(700);
    let servers = start([settings]);
    servers.settled(Duration::from_secs(30)).await;
    let hang = find(&servers, "hang");
    let slow = find(&servers, "slow");
    assert_eq!(servers.call(&hang, arguments(json!({}))).await, Err(CallError::TimedOut));
    until("it is told", || notes.all("cancelled ").len() == 1).await;
    // Progress gives it more time than it would have.
    let called = servers.call(&slow, arguments(json!({"steps": 8}))).await.unwrap();
    assert_eq!(called.text, "done");
    // Who does not wait any more has it cancelled, and nobody is blamed.
    let before = state(&servers, "double").breaker.failure_count;
    let given_up = tokio::time::timeout(Duration::from_millis(100), servers.call(&hang, arguments(json!({})))).await;
    assert!(given_up.is_err());
    until("it is told again", || notes.all("cancelled ").len() == 2).await;
    assert_eq!(state(&servers, "double").breaker.failure_count, before);
    assert_eq!((notes.all("pid ").len(), state(&servers, "double").phase), (1, Phase::Ready), "still the same child");
    servers.stop().await;
}

#[tokio::test]
async fn what_is_no_result_is_told_apart() {
    let servers = ready(&[]).await;
    let call = async |name: &str, given| servers.call(&find(&servers, name), arguments(given)).await;
    let fail = call("fail", json!({})).await.unwrap();
    assert!(fail.is_error && fail.text == "it did not work");
    for name in ["ask", "task"] {
        let asked = call(name, json!({})).await;
        assert_eq!(asked, Err(CallError::Refused("asks for input that cannot be given here".to_owned())), "{name}");
    }
    let Err(CallError::Refused(why)) = call("refuse", json!({})).await else { panic!() };
    assert!(why.contains("bad arguments") && !why.contains(SECRET), "{why}");
    assert!(matches!(call("odd", json!({})).await, Err(CallError::Refused(_))));
    let large = call("large", json!({"size": 8_000_000})).await.unwrap();
    assert!(large.text.len() <= 50_000 && large.text.contains("left out"));
    let missing = tools::foreign::Found { name: "missing".to_owned(), ..found() };
    assert!(matches!(servers.call(&missing, arguments(json!({}))).await, Err(CallError::Refused(_))));
    assert_eq!(state(&servers, "double").breaker.failure_count, 0, "the service itself works");
    servers.stop().await;
}

#[tokio::test]
async fn a_child_sees_little_of_our_environment_and_does_not_give_its_secrets_away() {
    let servers = ready(&[]).await;
    let env = servers.call(&find(&servers, "env"), arguments(json!({}))).await.unwrap().text;
    assert!(env.contains("PATH=") && env.contains("DOUBLE_TOKEN=[redacted]"), "{env}");
    assert!(!env.contains("CARGO") && !env.contains(SECRET), "{env}");
    servers.stop().await;
}

#[tokio::test]
async fn a_message_without_end_costs_the_connection_and_nothing_else() {
    let notes = Notes::new();
    let servers = ready(&[notes.argument().as_str()]).await;
    let before = memory();
    let endless = servers.call(&find(&servers, "endless"), arguments(json!({}))).await;
    let why = "sent a message of more than 16 MiB".to_owned();
    assert_eq!(endless, Err(CallError::Unavailable(why.clone())));
    assert!(memory() < before + 300, "{before} MB before, {} MB after", memory());
    until("it is started again", || notes.all("pid ").len() == 2).await;
    until_ready(&servers, "double").await;
    assert_eq!(state(&servers, "double").last_error, Some(why));
    assert_eq!(notes.alive().len(), 1);
    servers.stop().await;
}

#[tokio::test]
async fn a_message_of_too_many_parts_is_not_read() {
    let notes = Notes::new();
    let servers = ready(&[notes.argument().as_str()]).await;
    let dense = find(&servers, "dense");
    let called = servers.call(&dense, arguments(json!({"count": 400_000}))).await.unwrap();
    assert!(called.structured.is_none() && called.text.len() <= 50_000);
    let called = servers.call(&dense, arguments(json!({"count": 700_000}))).await;
    assert_eq!(called, Err(CallError::Unavailable("sent a message of more than 500 000 values".to_owned())));
    until("it is started again", || notes.all("pid ").len() == 2).await;
    servers.stop().await;
}

#[tokio::test]
async fn a_server_that_hangs_altogether_is_started_again() {
    let notes = Notes::new();
    let mut settings = double("double", &[notes.argument().as_str()]);
    (settings.call_timeout, settings.start_timeout) = (Duration::from_millis(500), Duration::from_secs(3));
    let servers = start([settings]);
    servers.settled(Duration::from_secs(30)).await;
    let frozen = servers.call(&find(&servers, "freeze"), arguments(json!({}))).await;
    assert_eq!(frozen, Err(CallError::TimedOut));
    until("it is started again", || notes.all("pid ").len() == 2).await;
    until_ready(&servers, "double").await;
    assert_eq!(state(&servers, "double").last_error.as_deref(), Some("does not answer any more"));
    assert_eq!(notes.alive().len(), 1);
    servers.stop().await;
}

#[tokio::test]
async fn what_a_child_says_goes_to_the_log_in_measure_and_without_secrets() {
    let servers = start([double("chatty", &["noisy", "banner", "legacy"])]);
    servers.settled(Duration::from_secs(30)).await;
    let _ = servers.call(&find(&servers, "refuse"), arguments(json!({}))).await;
    servers.stop().await;
    let entries = logged();
    let said: Vec<_> =
        entries.iter().filter(|entry| entry.contains("mcp_server_log") && entry.contains("chatty")).collect();
    assert!(said.iter().any(|entry| entry.contains("line 1 with the token [redacted]")), "{said:?}");
    assert!(said.len() < 1000 && said.iter().all(|entry| entry.len() < 1000), "{}", said.len());
    assert!(entries.iter().any(|entry| entry.contains("mcp_server_noise") && entry.contains("Welcome")));
    assert!(!entries.iter().any(|entry| entry.contains(SECRET)));
}

#[tokio::test]
async fn floods_and_noise_are_survived() {
    let servers = ready(&["noisy", "banner"]).await;
    let before = memory();
    let mut settings = double("patient", &[]);
    settings.call_timeout = Duration::from_secs(60);
    servers.replace(vec![settings]);
    until_ready(&servers, "patient").await;
    let flood = servers.call(&find(&servers, "flood"), arguments(json!({}))).await.unwrap();
    assert_eq!(flood.text, "flooded");
    let pings = servers.call(&find(&servers, "pings"), arguments(json!({}))).await.unwrap();
    assert_eq!(pings.text, "pinged");
    assert!(memory() < before + 300, "{before} MB before, {} MB after", memory());
    servers.stop().await;
}

#[tokio::test]
async fn changed_tools_are_noticed() {
    for args in [&[][..], &["legacy"]] {
        let servers = ready(args).await;
        let before = servers.tools();
        assert!(std::sync::Arc::ptr_eq(&before, &servers.tools()));
        // A subscription takes a moment.
        tokio::time::sleep(Duration::from_millis(300)).await;
        servers.call(&find(&servers, "grow"), arguments(json!({}))).await.unwrap();
        until("it has grown", || names(&servers).contains(&"grown".to_owned())).await;
        assert_eq!(servers.tools().len(), before.len() + 1);
        assert!(names(&servers).is_sorted());
        servers.stop().await;
        assert!(servers.tools().is_empty());
    }
}

#[tokio::test]
async fn lists_have_an_end() {
    let servers = start([double("circle", &["circle"]), double("many", &["many"])]);
    servers.settled(Duration::from_secs(30)).await;
    let circle = state(&servers, "circle");
    let many = state(&servers, "many");
    assert_eq!((circle.tools, many.tools), (1, 1000));
    assert!(many.left_out[0].reason.contains("1000"), "{:?}", many.left_out);
    servers.stop().await;
}

#[tokio::test]
async fn nothing_is_left_of_a_child_that_does_not_want_to_end() {
    let notes = Notes::new();
    let servers = ready(&["stubborn", "stays", notes.argument().as_str()]).await;
    until("both are there", || notes.alive().len() == 2).await;
    let began = Instant::now();
    servers.stop().await;
    assert_eq!(notes.alive(), [""; 0]);
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_child_that_leaves_another_holding_its_pipes_is_noticed_at_once() {
    let notes = Notes::new();
    let servers = ready(&["stubborn", notes.argument().as_str()]).await;
    until("both are there", || notes.alive().len() == 2).await;
    let began = Instant::now();
    let died = servers.call(&find(&servers, "die"), arguments(json!({}))).await;
    assert!(matches!(died, Err(CallError::Unavailable(_))), "{died:?}");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    until("it is started again", || notes.all("pid ").len() >= 3).await;
    until_ready(&servers, "double").await;
    servers.stop().await;
    assert_eq!(notes.alive(), [""; 0]);
}

#[tokio::test]
async fn stopping_in_the_middle_of_a_start_leaves_nothing() {
    let notes = Notes::new();
    let servers = start([double("double", &["slow=60000", notes.argument().as_str()])]);
    until("it has begun", || notes.alive().len() == 1).await;
    servers.stop().await;
    assert_eq!(notes.alive(), [""; 0]);
}

#[tokio::test]
async fn whoever_forgets_to_stop_leaves_nothing_either() {
    let notes = Notes::new();
    let servers = ready(&[notes.argument().as_str()]).await;
    drop(servers);
    until("it is gone", || notes.alive().is_empty()).await;
}

#[tokio::test]
async fn new_settings_touch_only_what_changed() {
    let one = Notes::new();
    let two = Notes::new();
    let settings = |name: &str, notes: &Notes| double(name, &[notes.argument().as_str()]);
    let servers = start([settings("one", &one), settings("two", &two)]);
    servers.settled(Duration::from_secs(30)).await;
    let mut changed = settings("two", &two);
    changed.deny = vec!["*".to_owned()];
    changed.allow = vec!["echo".to_owned()];
    servers.replace(vec![changed, double("three", &[]), settings("one", &one)]);
    servers.settled(Duration::from_secs(30)).await;
    assert_eq!((one.all("pid ").len(), two.all("pid ").len()), (1, 2));
    let states: Vec<_> = servers.states().into_iter().map(|state| (state.name, state.tools)).collect();
    assert_eq!(states, [("two".to_owned(), 0), ("three".to_owned(), 18), ("one".to_owned(), 18)]);
    servers.replace(vec![]);
    until("all are gone", || one.alive().is_empty() && two.alive().is_empty()).await;
    let gone = servers.call(&found(), arguments(json!({}))).await;
    assert_eq!(gone, Err(CallError::Unavailable("is not configured any more".to_owned())));
    servers.stop().await;
}

#[tokio::test]
async fn a_server_that_keeps_failing_is_left_alone() {
    // RES-1
    let servers = ready(&[]).await;
    let die = find(&servers, "die");
    let mut failures = 0;
    while failures < 5 {
        let _ = servers.call(&die, arguments(json!({}))).await;
        failures += 1;
    }
    let alone = servers.call(&die, arguments(json!({}))).await;
    let why = "failed too often and is left alone for a while".to_owned();
    assert_eq!(alone, Err(CallError::Unavailable(why)));
    assert_eq!(state(&servers, "double").breaker.state, model::breaker::State::Open);
    servers.stop().await;
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let mut settings = double("double", &[]);
    settings.transport = Transport::Child {
        command: "no-such-program".to_owned(),
        args: Vec::new(),
        variables: Vec::new(),
        directory: None,
    };
    let servers = start([settings]);
    servers.settled(Duration::from_secs(10)).await;
    let error = state(&servers, "double").last_error.unwrap();
    assert!(error.contains("no-such-program") && error.contains("No such file"), "{error}");
    servers.stop().await;
}
