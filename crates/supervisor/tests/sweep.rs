//! Tests the sweep of processes that outlive both their node and their guardian. It is a separate test binary, because every
//! supervisor sweeps at its start and would remove the processes of this test.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use supervisor::guardian::{Guardian, GuardianOptions, Launch, sweep};
use uuid::Uuid;

const DOUBLE: &str = env!("CARGO_BIN_EXE_guardian-double");

fn alive(pid: i32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
    !matches!(state, Some('Z' | 'X') | None)
}

fn send(pid: i32, signal: Signal) {
    kill(Pid::from_raw(pid), signal).unwrap();
}

fn eventually(condition: &str, mut is_met: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_met() {
        assert!(start.elapsed() < Duration::from_secs(20), "not met in time: {condition}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn pid_in(file: &Path) -> i32 {
    let read = || std::fs::read_to_string(file).ok().and_then(|text| text.parse().ok());
    eventually("the process has written its pid", || read().is_some());
    read().unwrap()
}

// SUP-7, SUP-11
#[tokio::test]
async fn processes_of_a_dead_node_and_guardian_are_swept() {
    let living =
        Guardian::start(GuardianOptions { program: DOUBLE.into(), ..GuardianOptions::default() }).await.unwrap();
    let mut launch = Launch::new(Uuid::from_u128(1), "/bin/sleep", "/");
    launch.args = vec!["100".into()];
    let mut bystander = living.spawn(launch, supervisor::guardian::Stdio::null().unwrap()).await.unwrap();

    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let agent = testkit::agent::program().to_str().unwrap();
    let file_name = file.to_str().unwrap();
    let mut node = Command::new(DOUBLE);
    node.args(["node", agent, file_name, "0"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut node = node.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(node.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let pids: Vec<i32> = line.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    let guardian = pids[0];
    let agent = pids[1];
    let runaway = pid_in(&file);

    // Freeze the node and kill the guardian first, so that neither can end the agents.
    let own = i32::try_from(node.id()).unwrap();
    send(own, Signal::SIGSTOP);
    send(guardian, Signal::SIGKILL);
    send(own, Signal::SIGKILL);
    node.wait().unwrap();
    eventually("the guardian is dead", || !alive(guardian));
    assert!(alive(agent) && alive(runaway), "no process is left to end them");
    assert!(sweep().await >= 2);
    // A process that has released its memory is not found any more, but it may not be a zombie yet.
    eventually("the processes are dead", || !alive(agent) && !alive(runaway));
    let guardian = i32::try_from(living.pid().await.unwrap()).unwrap();
    assert!(alive(i32::try_from(bystander.pid).unwrap()) && alive(guardian), "a living node keeps its processes");
    assert_eq!(sweep().await, 0, "no process is left");
    bystander.kill().await;
    bystander.wait().await;
}
