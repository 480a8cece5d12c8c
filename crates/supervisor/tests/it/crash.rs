//! A node that is killed in the middle of its work, and the one that comes after it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use model::execution::{Category, ExecutionResult, StateName, Status};
use serde_json::{Value, json};
use store::executions::Whose;
use uuid::Uuid;

use crate::bench::{Bench, Setting, doubled, error, legal, script, succeeded, until};
use crate::{DOUBLE, alive, eventually, pid_in, text};

/// A node that is a process of its own, and a supervisor beside it that only asks and reads.
pub(crate) struct Node {
    pub(crate) bench: Bench,
    process: Child,
}

impl Node {
    pub(crate) async fn start(agents: Value) -> Self {
        let bench = Setting::new(agents.clone()).resting().await;
        std::fs::write(bench.file("agents.json"), agents.to_string()).unwrap();
        let process = launch(&bench);
        Self { bench, process }
    }

    /// Without a warning.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub(crate) fn restart(&mut self) {
        self.process = launch(&self.bench);
    }

    pub(crate) async fn result(&self, id: Uuid) -> ExecutionResult {
        until("its end", async || self.bench.get(id).await.is_ended()).await;
        let mut reader = self.bench.store().reader().await.unwrap();
        let result = store::executions::result(&mut reader, Whose::Everyones, id).await.unwrap();
        legal(&result.state_transitions);
        result
    }

    pub(crate) fn peak_memory_kb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// How often each of its threads of this name went to sleep.
    pub(crate) fn sleeps_of(&self, name: &str) -> Vec<u64> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.process.id())).unwrap();
        let of = |task: std::fs::DirEntry| {
            let status = std::fs::read_to_string(task.path().join("status")).ok()?;
            let find = |field| status.lines().find_map(|line: &str| line.strip_prefix(field)).map(str::trim);
            (find("Name:") == Some(name)).then(|| find("voluntary_ctxt_switches:").unwrap().parse().unwrap())
        };
        tasks.filter_map(|task| of(task.ok()?)).collect()
    }

    /// Stops in good order, in this time.
    pub(crate) async fn stop(mut self, within: Duration) {
        drop(self.process.stdin.take());
        eventually("the node ends", within, || self.process.try_wait().unwrap().is_some()).await;
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn launch(bench: &Bench) -> Child {
    let mut process = Command::new(DOUBLE)
        .args(["work", text(bench.dir())])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    process
}

// SUP-7, SUP-11
#[tokio::test]
async fn what_a_killed_node_had_at_work_fails_or_is_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let gate = dir.path().join("gate");
    let again = "echo try; [ -e \"$GATE\" ] || sleep 60; cat";
    let mut node = Node::start(json!([
        doubled("runaway", &["runaway", text(&pid)], json!({"access_type": "read-write"})),
        script("again", again, json!({"max_retries": 3, "retry_delay": 0.01, "envs": {"GATE": text(&gate)}})),
        script("once", "touch $TMPDIR/left; cat; sleep 60", json!({"access_type": "read-write"})),
    ]))
    .await;
    let secret = format!("{}{}Aq1Sw2De3Fr4Gt5Hy6Ju7Ki8Lo9Zx0Cv1Bn2", "gh", "p_");
    let runaway = node.bench.ask("runaway", "").await;
    let again = node.bench.ask("again", &secret).await;
    let once = node.bench.ask("once", "said\n").await;
    let waits = node.bench.ask("once", "").await;
    let stubborn = pid_in(&pid).await;
    for id in [runaway, again, once] {
        node.bench.reaches(id, StateName::Running).await;
    }
    until("it has said something", async || node.bench.output(once, "stdout").await == "said\n").await;
    node.kill();
    std::fs::write(&gate, "").unwrap();
    node.restart();
    assert!(!alive(stubborn), "nothing is left when the next one works");
    for id in [runaway, once] {
        let result = node.result(id).await;
        assert_eq!((result.status, result.error_category), (Status::Failure, Some(Category::SystemError)));
        assert_eq!(error(&result), "adjutant was stopped while it ran");
    }
    assert_eq!(node.bench.output(once, "stdout").await, "said\n", "what was said before is kept");
    // The secret came from the spool, and is gone from there.
    let result = node.result(again).await;
    assert_eq!(succeeded(&result), "try\n[redacted]");
    assert_eq!(result.previous_retries.len(), 1);
    let file = node.bench.file("spool").join(format!("{again}.json"));
    until("the request is gone", async || !file.exists()).await;
    node.bench.reaches(waits, StateName::Running).await;
    let left = Command::new("find").arg(node.bench.file("runs")).args(["-type", "f"]).output().unwrap();
    let left = String::from_utf8(left.stdout).unwrap();
    assert_eq!(left.lines().count(), 1, "only what runs has files: {left}");
    // One that is cancelled through another process.
    node.bench.cancel(waits).await.unwrap();
    assert_eq!(node.result(waits).await.status, Status::Cancelled);
    node.stop(Duration::from_secs(20)).await;
}
