//! Commands: they get input and variables, and are killed with their children after the timeout.

use std::path::Path;
use std::time::Duration;

use notify::{ChannelTransport, CommandTransport};

use crate::{Bench, until};

fn shell(script: &str, timeout_ms: u64) -> ChannelTransport {
    let mut command = CommandTransport::new("sh", vec!["-c".to_owned(), script.to_owned()]);
    command.timeout = Duration::from_millis(timeout_ms);
    ChannelTransport::Command(command)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[tokio::test]
async fn a_command_gets_input_and_variables() {
    // TASK-4
    let bench = Bench::sqlite().await;
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("input");
    let variables = dir.path().join("variables");
    let script = format!("cat > {}; env > {}.part; mv {1}.part {1}", input.display(), variables.display());
    bench.set_channels([("command", shell(&script, 10_000))]);
    bench.run();
    let note = bench.notify("two words; $(touch /tmp/never) \"quoted\"").await;
    until("the delivery succeeded", async || bench.counts("command").delivered == 1).await;
    assert_eq!(serde_json::from_str::<model::notification::Notification>(&read(&input)).unwrap(), note);
    let variables = read(&variables);
    let has = |line: &str| variables.lines().any(|other| other == line);
    assert!(has(&format!("ADJUTANT_NOTIFICATION_ID={}", note.id)), "{variables}");
    assert!(has("ADJUTANT_NOTIFICATION_KIND=execution") && has("ADJUTANT_NOTIFICATION_TEXT=details"));
    assert!(has("ADJUTANT_NOTIFICATION_TITLE=two words; $(touch /tmp/never) \"quoted\""), "{variables}");
    assert!(variables.contains("ADJUTANT_DELIVERY_ID=") && variables.contains("PATH="));
    assert!(!variables.contains("CARGO"), "other variables are not inherited");
}

#[tokio::test]
async fn a_failing_command_is_retried() {
    let bench = Bench::sqlite().await;
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("mark");
    // Fails the first time, ignores its input and writes much to standard error.
    let script = format!("head -c 200000 /dev/zero >&2; test -e {0} || {{ touch {0}; exit 3; }}", mark.display());
    bench.set_channels([("command", shell(&script, 10_000))]);
    bench.run();
    bench.notify(&"long ".repeat(50)).await;
    until("the command failed", async || bench.counts("command").failed == 1).await;
    until("the failure is recorded", async || bench.backlog("command").await == (1, 0)).await;
    bench.advance(Duration::from_secs(1));
    until("the delivery succeeded", async || bench.counts("command").delivered == 1).await;
}

#[tokio::test]
async fn a_hanging_command_is_killed_with_its_children() {
    // TASK-4
    let bench = Bench::sqlite().await;
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let script = format!("sleep 1000 & echo $! > {}; wait", pid.display());
    bench.set_channels([("command", shell(&script, 500))]);
    bench.run();
    bench.notify("x").await;
    until("the command was killed", async || bench.counts("command").failed == 1).await;
    let child = read(&pid).trim().to_owned();
    assert!(!child.is_empty());
    until("the child has ended", async || {
        let state = read(Path::new(&format!("/proc/{child}/stat")));
        // A zombie has ended and waits for its new parent.
        state.is_empty() || state.contains(") Z ")
    })
    .await;
}

#[tokio::test]
async fn a_missing_program_is_a_failure() {
    let bench = Bench::sqlite().await;
    bench.set_channels([("command", ChannelTransport::Command(CommandTransport::new("/no/such/program", Vec::new())))]);
    bench.run();
    bench.notify("x").await;
    until("the command failed", async || bench.counts("command").failed == 1).await;
}
