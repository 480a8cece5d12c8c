//! Programs: told by their input and their variables, killed with all they started.

use std::path::Path;
use std::time::Duration;

use notify::{Program, Way};

use crate::{Bench, until};

fn shell(script: &str, limit: u64) -> Way {
    let mut program = Program::new("sh", vec!["-c".to_owned(), script.to_owned()]);
    program.limit = Duration::from_millis(limit);
    Way::Command(program)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[tokio::test]
async fn it_is_told_by_input_and_variables() {
    // TASK-4
    let bench = Bench::sqlite().await;
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("input");
    let variables = dir.path().join("variables");
    let script = format!("cat > {}; env > {}.part; mv {1}.part {1}", input.display(), variables.display());
    bench.with([("say", shell(&script, 10_000))]);
    bench.run();
    let note = bench.tell("two words; $(touch /tmp/never) \"quoted\"").await;
    until("it was delivered", async || bench.counts("say").delivered == 1).await;
    assert_eq!(serde_json::from_str::<model::notification::Notification>(&read(&input)).unwrap(), note);
    let variables = read(&variables);
    let has = |line: &str| variables.lines().any(|other| other == line);
    assert!(has(&format!("ADJUTANT_NOTIFICATION_ID={}", note.id)), "{variables}");
    assert!(has("ADJUTANT_NOTIFICATION_KIND=execution") && has("ADJUTANT_NOTIFICATION_TEXT=what happened"));
    assert!(has("ADJUTANT_NOTIFICATION_TITLE=two words; $(touch /tmp/never) \"quoted\""), "{variables}");
    assert!(variables.contains("ADJUTANT_DELIVERY_ID=") && variables.contains("PATH="));
    assert!(!variables.contains("CARGO"), "our own variables are none of its business");
}

#[tokio::test]
async fn one_that_fails_is_tried_again() {
    let bench = Bench::sqlite().await;
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("mark");
    // Fails the first time, does not read its input, and says much.
    let script = format!("head -c 200000 /dev/zero >&2; test -e {0} || {{ touch {0}; exit 3; }}", mark.display());
    bench.with([("say", shell(&script, 10_000))]);
    bench.run();
    bench.tell(&"long ".repeat(50)).await;
    until("it failed", async || bench.counts("say").failed == 1).await;
    until("that is noted", async || bench.standing("say").await == (1, 0)).await;
    bench.advance(Duration::from_secs(1));
    until("it was delivered", async || bench.counts("say").delivered == 1).await;
}

#[tokio::test]
async fn one_that_hangs_is_killed_with_its_children() {
    let bench = Bench::sqlite().await;
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let script = format!("sleep 1000 & echo $! > {}; wait", pid.display());
    bench.with([("say", shell(&script, 500))]);
    bench.run();
    bench.tell("x").await;
    until("it was killed", async || bench.counts("say").failed == 1).await;
    let child = read(&pid).trim().to_owned();
    assert!(!child.is_empty());
    until("its child is gone", async || {
        let state = read(Path::new(&format!("/proc/{child}/stat")));
        // A zombie waits for whoever adopted it.
        state.is_empty() || state.contains(") Z ")
    })
    .await;
}

#[tokio::test]
async fn one_that_is_not_there_is_named() {
    let bench = Bench::sqlite().await;
    bench.with([("say", Way::Command(Program::new("/no/such/program", Vec::new())))]);
    bench.run();
    bench.tell("x").await;
    until("it failed", async || bench.counts("say").failed == 1).await;
}
