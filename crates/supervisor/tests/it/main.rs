//! Integration tests of the supervisor with real processes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bench;
mod chaos;
mod confinement;
mod guardian;
mod isolation;
mod limits;
mod node_death;
mod node_restart;
mod output;
mod patterns;
mod queue;
mod requests;
mod retries;
mod rich_output;
mod secrets;
mod stopping;
mod usage;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use supervisor::guardian::{AgentPipes, Child, ChildExit, Guardian, GuardianOptions, Launch, Stdio};
use tokio::io::AsyncReadExt;
use uuid::Uuid;

pub(crate) const DOUBLE: &str = env!("CARGO_BIN_EXE_guardian-double");

pub(crate) async fn guardian() -> Guardian {
    Guardian::start(GuardianOptions { program: DOUBLE.into(), ..GuardianOptions::default() }).await.unwrap()
}

/// Returns an id that is unique in this process.
pub(crate) fn id() -> Uuid {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    Uuid::from_u128(NEXT.fetch_add(1, Ordering::Relaxed).into())
}

/// Returns a launch of the test agent.
pub(crate) fn double(arguments: &[&str]) -> Launch {
    let mut launch = Launch::new(id(), testkit::agent::program(), "/");
    launch.args = arguments.iter().map(Into::into).collect();
    launch
}

pub(crate) fn shell(script: &str) -> Launch {
    let mut launch = Launch::new(id(), "/bin/sh", "/");
    launch.args = vec!["-c".into(), script.into()];
    launch.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    launch
}

/// Runs a program to its end. Returns its exit and its output.
pub(crate) async fn output(guardian: &Guardian, launch: Launch) -> (ChildExit, String) {
    let (stdio, pipes) = Stdio::piped().unwrap();
    let mut child = guardian.spawn(launch, stdio).await.unwrap();
    let text = read_all(pipes).await;
    (child.wait().await, text)
}

async fn read_all(pipes: AgentPipes) -> String {
    let AgentPipes { stdin, mut stdout, mut stderr } = pipes;
    drop(stdin);
    let mut text = String::new();
    stdout.read_to_string(&mut text).await.unwrap();
    stderr.read_to_string(&mut text).await.unwrap();
    text
}

/// Starts a program without input and output.
pub(crate) async fn spawn_null(guardian: &Guardian, launch: Launch) -> Child {
    guardian.spawn(launch, Stdio::null().unwrap()).await.unwrap()
}

pub(crate) fn alive(pid: i32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
    !matches!(state, Some('Z' | 'X') | None)
}

/// Waits for a condition and returns the elapsed time. Panics after the time limit.
pub(crate) async fn eventually(condition: &str, within: Duration, mut is_met: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !is_met() {
        assert!(start.elapsed() < within, "not within {within:?}: {condition}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    start.elapsed()
}

/// Returns the pid that a test process writes to a file once it is ready.
pub(crate) async fn pid_in(file: &Path) -> i32 {
    let mut pid = None;
    eventually("the process has written its pid", Duration::from_secs(20), || {
        pid = std::fs::read_to_string(file).ok().and_then(|text| text.parse().ok());
        pid.is_some()
    })
    .await;
    pid.unwrap()
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

pub(crate) fn scratch() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap();
    (dir, path)
}
