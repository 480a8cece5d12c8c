//! The supervisor over real processes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bench;
mod chaos;
mod confinement;
mod crash;
mod death;
mod ends;
mod guardian;
mod output;
mod patterns;
mod queue;
mod requests;
mod retries;
mod said;
mod secrets;
mod usage;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use supervisor::guardian::{Child, Exit, Guardian, Launch, Options, Pipes, Stdio};
use tokio::io::AsyncReadExt;
use uuid::Uuid;

pub(crate) const DOUBLE: &str = env!("CARGO_BIN_EXE_guardian-double");

pub(crate) async fn guardian() -> Guardian {
    Guardian::start(Options { program: DOUBLE.into(), ..Options::default() }).await.unwrap()
}

/// Ids only have to differ within one guardian.
pub(crate) fn id() -> Uuid {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    Uuid::from_u128(NEXT.fetch_add(1, Ordering::Relaxed).into())
}

/// The scripted agent.
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

/// Runs to the end, and what it said.
pub(crate) async fn output(guardian: &Guardian, launch: Launch) -> (Exit, String) {
    let (stdio, pipes) = Stdio::piped().unwrap();
    let mut child = guardian.spawn(launch, stdio).await.unwrap();
    let text = said(pipes).await;
    (child.wait().await, text)
}

async fn said(pipes: Pipes) -> String {
    let Pipes { stdin, mut stdout, mut stderr } = pipes;
    drop(stdin);
    let mut text = String::new();
    stdout.read_to_string(&mut text).await.unwrap();
    stderr.read_to_string(&mut text).await.unwrap();
    text
}

pub(crate) async fn quiet(guardian: &Guardian, launch: Launch) -> Child {
    guardian.spawn(launch, Stdio::null().unwrap()).await.unwrap()
}

pub(crate) fn alive(pid: i32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
    !matches!(state, Some('Z' | 'X') | None)
}

/// Waits for something that must come, and says how long it took.
pub(crate) async fn eventually(what: &str, within: Duration, mut happened: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < within, "not within {within:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    start.elapsed()
}

/// The number a stubborn process writes once it is one.
pub(crate) async fn pid_in(file: &Path) -> i32 {
    let mut pid = None;
    eventually("the process has said who it is", Duration::from_secs(20), || {
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
