//! Tests of a node that is killed while it runs executions, and of its restart.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use model::execution::{ErrorCategory, ExecutionResult, ExecutionStatus, StateName};
use serde_json::{Value, json};
use store::executions::OwnerScope;
use uuid::Uuid;

use crate::bench::{Bench, BenchBuilder, assert_legal, doubled, error, script, succeeded, wait_until};
use crate::{DOUBLE, alive, eventually, pid_in, text};

/// A node in a separate process, and a supervisor in this process that only enqueues and reads.
pub(crate) struct Node {
    pub(crate) bench: Bench,
    process: Child,
}

impl Node {
    pub(crate) async fn start(agents: Value) -> Self {
        let bench = BenchBuilder::new(agents.clone()).build().await;
        std::fs::write(bench.file("agents.json"), agents.to_string()).unwrap();
        let process = launch(&bench);
        Self { bench, process }
    }

    /// Kills the node with SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub(crate) fn restart(&mut self) {
        self.process = launch(&self.bench);
    }

    pub(crate) async fn result(&self, id: Uuid) -> ExecutionResult {
        wait_until("its end", async || self.bench.get(id).await.is_ended()).await;
        let mut reader = self.bench.store().reader().await.unwrap();
        let result = store::executions::result(&mut reader, OwnerScope::AllUsers, id).await.unwrap();
        assert_legal(&result.state_transitions);
        result
    }

    pub(crate) fn peak_memory_kb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Returns the number of voluntary context switches of each thread with this name.
    pub(crate) fn context_switches_of(&self, name: &str) -> Vec<u64> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.process.id())).unwrap();
        let of = |task: std::fs::DirEntry| {
            let status = std::fs::read_to_string(task.path().join("status")).ok()?;
            let find = |field| status.lines().find_map(|line: &str| line.strip_prefix(field)).map(str::trim);
            (find("Name:") == Some(name)).then(|| find("voluntary_ctxt_switches:").unwrap().parse().unwrap())
        };
        tasks.filter_map(|task| of(task.ok()?)).collect()
    }

    /// Stops the node regularly. Panics after the time limit.
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
async fn executions_of_a_killed_node_fail_or_are_retried() {
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
    let runaway = node.bench.enqueue("runaway", "").await;
    let again = node.bench.enqueue("again", &secret).await;
    let once = node.bench.enqueue("once", "said\n").await;
    let waits = node.bench.enqueue("once", "").await;
    let stubborn = pid_in(&pid).await;
    for id in [runaway, again, once] {
        node.bench.reaches(id, StateName::Running).await;
    }
    wait_until("it has written output", async || node.bench.output(once, "stdout").await == "said\n").await;
    node.kill();
    std::fs::write(&gate, "").unwrap();
    node.restart();
    assert!(!alive(stubborn), "no process is left after the restart");
    for id in [runaway, once] {
        let result = node.result(id).await;
        assert_eq!(
            (result.status, result.error_category),
            (ExecutionStatus::Failure, Some(ErrorCategory::SystemError))
        );
        assert_eq!(error(&result), "adjutant was stopped while it ran");
    }
    assert_eq!(node.bench.output(once, "stdout").await, "said\n", "earlier output is kept");
    // The secret came from the spool and was removed.
    let result = node.result(again).await;
    assert_eq!(succeeded(&result), "try\n[redacted]");
    assert_eq!(result.previous_retries.len(), 1);
    let file = node.bench.file("spool").join(format!("{again}.json"));
    wait_until("the request is removed", async || !file.exists()).await;
    node.bench.reaches(waits, StateName::Running).await;
    let left = Command::new("find").arg(node.bench.file("runs")).args(["-type", "f"]).output().unwrap();
    let left = String::from_utf8(left.stdout).unwrap();
    assert_eq!(left.lines().count(), 1, "only running executions have files: {left}");
    // A cancellation through another process.
    node.bench.cancel(waits).await.unwrap();
    assert_eq!(node.result(waits).await.status, ExecutionStatus::Cancelled);
    node.stop(Duration::from_secs(20)).await;
}
