//! Whoever dies or freezes, no agent outlives its node.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio as ProcessStdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use supervisor::guardian::{Guardian, How, Options, Sign};

use crate::{DOUBLE, alive, double, eventually, guardian, pid_in, quiet, scratch, shell, text};

/// A node of its own, with an agent that does not want to end.
struct Node {
    process: Child,
    said: BufReader<ChildStdout>,
    guardian: i32,
    agent: i32,
    runaway: i32,
    _dir: tempfile::TempDir,
}

impl Node {
    async fn start(lease: &str) -> Self {
        let (dir, path) = scratch();
        let file = path.join("pid");
        let mut process = Command::new(DOUBLE)
            .args(["node", text(testkit::agent::program()), text(&file), lease])
            .stdin(ProcessStdio::piped())
            .stdout(ProcessStdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let mut pids = line.split_whitespace().map(|pid| pid.parse().unwrap());
        let guardian = pids.next().unwrap();
        let agent = pids.next().unwrap();
        let runaway = pid_in(&file).await;
        Self { process, said, guardian, agent, runaway, _dir: dir }
    }

    fn signal(&self, signal: Signal) {
        send(self.process.id() as i32, signal);
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn agents_live(&self) -> bool {
        alive(self.agent) || alive(self.runaway)
    }
}

impl Drop for Node {
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
async fn a_node_that_is_killed_leaves_nothing() {
    let node = Node::start("0").await;
    node.signal(Signal::SIGKILL);
    eventually("all are gone", Duration::from_secs(6), || !node.agents_live() && !alive(node.guardian)).await;
}

// SUP-7
#[tokio::test]
async fn a_frozen_node_loses_its_agents_with_its_lease_and_goes_on_when_it_thaws() {
    let mut node = Node::start("600").await;
    node.signal(Signal::SIGSTOP);
    eventually("the agents are gone", Duration::from_secs(5), || !node.agents_live()).await;
    assert!(alive(node.guardian));
    node.signal(Signal::SIGCONT);
    assert_eq!(node.line(), "LeaseLost");
    assert_eq!(node.line(), "Code(0)");
}

#[tokio::test]
async fn a_lease_that_is_renewed_holds() {
    let node = Node::start("300").await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(alive(node.agent) && alive(node.runaway));
}

#[tokio::test]
async fn signals_do_not_end_a_guardian() {
    let node = Node::start("0").await;
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1] {
        send(node.guardian, signal);
    }
    let guardian = guardian().await;
    quiet(&guardian, shell("true")).await.wait().await;
    assert!(alive(node.guardian) && alive(node.agent));
}

// SUP-7, SUP-11
#[tokio::test]
async fn a_dead_guardian_is_noticed_and_replaced() {
    let guardian = guardian().await;
    let own = guardian.pid().await.unwrap() as i32;
    let (_dir, path) = scratch();
    let file = path.join("pid");
    let mut child = quiet(&guardian, double(&["runaway", text(&file)])).await;
    let pid = pid_in(&file).await;
    let other = crate::guardian().await;
    let mut bystander = quiet(&other, shell("sleep 100")).await;
    send(own, Signal::SIGKILL);
    let exit = child.wait().await;
    assert_eq!(exit.how, How::GuardianDied);
    assert!(!alive(pid) && !alive(child.pid as i32), "nothing is told before nothing is left");
    assert_eq!(quiet(&guardian, shell("exit 4")).await.wait().await.how, How::Code(4));
    assert_ne!(guardian.pid().await.unwrap() as i32, own);
    assert!(alive(bystander.pid as i32), "what another guardian holds lives");
    bystander.kill().await;
    bystander.wait().await;
}

// SUP-7
#[tokio::test]
async fn a_dead_guardian_leaves_nothing_that_has_lost_its_mark() {
    let guardian = guardian().await;
    let (_dir, path) = scratch();
    let file = path.join("pid");
    let mut child = quiet(&guardian, double(&["hidden-runaway", text(&file)])).await;
    let pid = pid_in(&file).await;
    // Once it has been seen, it is known.
    while !matches!(child.next().await.unwrap(), Sign::Usage(usage) if usage.processes == 2) {}
    send(guardian.pid().await.unwrap() as i32, Signal::SIGKILL);
    assert_eq!(child.wait().await.how, How::GuardianDied);
    assert!(!alive(pid));
}

#[tokio::test]
async fn a_guardian_that_does_not_answer_is_replaced() {
    let options = Options { program: DOUBLE.into(), patience: Duration::from_millis(300) };
    let guardian = Guardian::start(options).await.unwrap();
    let own = guardian.pid().await.unwrap() as i32;
    let mut child = quiet(&guardian, shell("sleep 100")).await;
    send(own, Signal::SIGSTOP);
    guardian.renew(Duration::from_secs(60)).await;
    assert_eq!(child.wait().await.how, How::GuardianDied);
    assert!(!alive(own) && !alive(child.pid as i32));
    assert_eq!(quiet(&guardian, shell("exit 4")).await.wait().await.how, How::Code(4));
}
