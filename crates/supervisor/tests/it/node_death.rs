//! Tests that no agent outlives its node, also if the node or the guardian dies or hangs.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio as ProcessStdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use supervisor::guardian::{ChildEvent, ExitReason, Guardian, GuardianOptions};

use crate::{DOUBLE, alive, double, eventually, guardian, pid_in, scratch, shell, spawn_null, text};

/// A node in a separate process, with an agent that ignores TERM.
struct NodeWithAgent {
    process: Child,
    stdout: BufReader<ChildStdout>,
    guardian: i32,
    agent: i32,
    runaway: i32,
    _dir: tempfile::TempDir,
}

impl NodeWithAgent {
    async fn start(lease: &str) -> Self {
        let (dir, path) = scratch();
        let file = path.join("pid");
        let mut process = Command::new(DOUBLE)
            .args(["node", text(testkit::agent::program()), text(&file), lease])
            .stdin(ProcessStdio::piped())
            .stdout(ProcessStdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let mut pids = line.split_whitespace().map(|pid| pid.parse().unwrap());
        let guardian = pids.next().unwrap();
        let agent = pids.next().unwrap();
        let runaway = pid_in(&file).await;
        Self { process, stdout, guardian, agent, runaway, _dir: dir }
    }

    fn signal(&self, signal: Signal) {
        send(self.process.id() as i32, signal);
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn agents_live(&self) -> bool {
        alive(self.agent) || alive(self.runaway)
    }
}

impl Drop for NodeWithAgent {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn send(pid: i32, signal: Signal) {
    kill(Pid::from_raw(pid), signal).unwrap();
}

// SUP-7
#[tokio::test]
async fn killing_a_node_ends_its_agents() {
    let node = NodeWithAgent::start("0").await;
    node.signal(Signal::SIGKILL);
    eventually("all processes have ended", Duration::from_secs(6), || !node.agents_live() && !alive(node.guardian))
        .await;
}

// SUP-7
#[tokio::test]
async fn a_frozen_node_loses_its_agents_and_recovers() {
    let mut node = NodeWithAgent::start("600").await;
    node.signal(Signal::SIGSTOP);
    eventually("the agents have ended", Duration::from_secs(5), || !node.agents_live()).await;
    assert!(alive(node.guardian));
    node.signal(Signal::SIGCONT);
    assert_eq!(node.line(), "LeaseLost");
    assert_eq!(node.line(), "Code(0)");
}

#[tokio::test]
async fn a_renewed_lease_stays_valid() {
    let node = NodeWithAgent::start("300").await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(alive(node.agent) && alive(node.runaway));
}

#[tokio::test]
async fn signals_do_not_end_the_guardian() {
    let node = NodeWithAgent::start("0").await;
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1] {
        send(node.guardian, signal);
    }
    let guardian = guardian().await;
    spawn_null(&guardian, shell("true")).await.wait().await;
    assert!(alive(node.guardian) && alive(node.agent));
}

// SUP-7, SUP-11
#[tokio::test]
async fn a_dead_guardian_is_replaced() {
    let guardian = guardian().await;
    let own = guardian.pid().await.unwrap() as i32;
    let (_dir, path) = scratch();
    let file = path.join("pid");
    let mut child = spawn_null(&guardian, double(&["runaway", text(&file)])).await;
    let pid = pid_in(&file).await;
    let other = crate::guardian().await;
    let mut bystander = spawn_null(&other, shell("sleep 100")).await;
    send(own, Signal::SIGKILL);
    let exit = child.wait().await;
    assert_eq!(exit.reason, ExitReason::GuardianDied);
    assert!(!alive(pid) && !alive(child.pid as i32), "the end is reported after all processes have ended");
    assert_eq!(spawn_null(&guardian, shell("exit 4")).await.wait().await.reason, ExitReason::Code(4));
    assert_ne!(guardian.pid().await.unwrap() as i32, own);
    assert!(alive(bystander.pid as i32), "programs of another guardian are not ended");
    bystander.kill().await;
    bystander.wait().await;
}

// SUP-7
#[tokio::test]
async fn processes_without_marker_end_with_their_guardian() {
    let guardian = guardian().await;
    let (_dir, path) = scratch();
    let file = path.join("pid");
    let mut child = spawn_null(&guardian, double(&["hidden-runaway", text(&file)])).await;
    let pid = pid_in(&file).await;
    // Wait for the sample that contains the process.
    while !matches!(child.next().await.unwrap(), ChildEvent::Usage(usage) if usage.processes == 2) {}
    send(guardian.pid().await.unwrap() as i32, Signal::SIGKILL);
    assert_eq!(child.wait().await.reason, ExitReason::GuardianDied);
    assert!(!alive(pid));
}

#[tokio::test]
async fn an_unresponsive_guardian_is_replaced() {
    let response_timeout = Duration::from_millis(300);
    let options = GuardianOptions { program: DOUBLE.into(), response_timeout, ..GuardianOptions::default() };
    let guardian = Guardian::start(options).await.unwrap();
    let own = guardian.pid().await.unwrap() as i32;
    let mut child = spawn_null(&guardian, shell("sleep 100")).await;
    send(own, Signal::SIGSTOP);
    guardian.renew(Duration::from_secs(60)).await;
    assert_eq!(child.wait().await.reason, ExitReason::GuardianDied);
    assert!(!alive(own) && !alive(child.pid as i32));
    assert_eq!(spawn_null(&guardian, shell("exit 4")).await.wait().await.reason, ExitReason::Code(4));
}
