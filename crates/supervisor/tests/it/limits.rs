//! The limits of all processes of a run together, and its isolation from other processes (SEC-2, SEC-3).

use std::time::Duration;

use supervisor::guardian::{ExceededLimit, ExitReason, Launch, TreeLimits, signals_are_confined};

use crate::{double, guardian, output, shell, spawn_null};

/// Starts at most 255 pipelines of shells, which all end as `sleep 30`. A test that fails cannot exhaust the machine.
const BOUNDED_FORK_BOMB: &str = "f() { [ $1 -gt 0 ] || exec sleep 30; f $(($1-1)) | f $(($1-1)) & wait; }; f 8";

fn limited(mut launch: Launch, limits: TreeLimits) -> Launch {
    launch.tree_limits = limits;
    launch
}

/// Returns the pids of the processes with this argument.
fn processes_with(argument: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().into_string().ok());
    pids.filter(|pid| {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).any(|found| found == argument.as_bytes())
    })
    .collect()
}

#[tokio::test]
async fn a_run_with_too_many_processes_is_killed() {
    // SEC-3
    let guardian = guardian().await;
    let limits = TreeLimits { processes: Some(40), ..TreeLimits::default() };
    let bomb = BOUNDED_FORK_BOMB.replace("sleep 30", "sleep 30.0040");
    let exit = spawn_null(&guardian, limited(shell(&bomb), limits)).await.wait().await;
    assert_eq!(exit.reason, ExitReason::LimitExceeded(ExceededLimit::Processes(40)));
    assert_eq!(processes_with("30.0040"), Vec::<String>::new(), "all processes have ended");
    // The guardian still works.
    let (exit, printed) = output(&guardian, shell("echo works")).await;
    assert_eq!((exit.reason, printed.as_str()), (ExitReason::Code(0), "works\n"));
}

#[tokio::test]
async fn processes_that_leave_their_session_count_too() {
    // SEC-3
    let guardian = guardian().await;
    let limits = TreeLimits { processes: Some(20), ..TreeLimits::default() };
    // Each child leaves its session and its parent.
    let script = "for i in $(seq 60); do (env -i setsid sleep 30.0020 &) ; done; sleep 30.0020";
    let exit = spawn_null(&guardian, limited(shell(script), limits)).await.wait().await;
    assert_eq!(exit.reason, ExitReason::LimitExceeded(ExceededLimit::Processes(20)));
    assert_eq!(processes_with("30.0020"), Vec::<String>::new(), "all processes have ended");
}

#[tokio::test]
async fn memory_cpu_time_and_lifetime_are_limited() {
    // SEC-3
    let guardian = guardian().await;
    let none = TreeLimits::default();
    let limits = TreeLimits { memory: Some(64 << 20), ..none };
    let exit = spawn_null(&guardian, limited(double(&["hog", "200"]), limits)).await.wait().await;
    assert_eq!(exit.reason, ExitReason::LimitExceeded(ExceededLimit::Memory(64 << 20)));

    let limits = TreeLimits { cpu_seconds: Some(1), ..none };
    let exit = spawn_null(&guardian, limited(double(&["burn", "60000"]), limits)).await.wait().await;
    assert_eq!(exit.reason, ExitReason::LimitExceeded(ExceededLimit::CpuSeconds(1)));

    let limits = TreeLimits { lifetime: Some(Duration::from_secs(1)), ..none };
    let exit = spawn_null(&guardian, limited(shell("sleep 60"), limits)).await.wait().await;
    assert_eq!(exit.reason, ExitReason::LimitExceeded(ExceededLimit::LifetimeSeconds(1)));
}

#[tokio::test]
async fn a_run_within_its_limits_is_not_affected() {
    // SEC-3
    let guardian = guardian().await;
    let limits = TreeLimits {
        processes: Some(64),
        memory: Some(1 << 30),
        cpu_seconds: Some(60),
        lifetime: Some(Duration::from_secs(60)),
    };
    let script = "for i in $(seq 40); do sleep 1.5 & done; wait; echo done";
    let (exit, printed) = output(&guardian, limited(shell(script), limits)).await;
    assert_eq!((exit.reason, printed.as_str()), (ExitReason::Code(0), "done\n"));
}

#[tokio::test]
#[expect(clippy::print_stderr, reason = "a test that cannot run must not be silent")]
async fn agents_cannot_signal_other_processes() {
    // SEC-2
    if !signals_are_confined() {
        eprintln!("not run: this kernel does not confine signals (Landlock version 6)");
        return;
    }
    let guardian = guardian().await;
    let node = std::process::id();
    let guard = guardian.pid().await.unwrap();
    let script = format!(
        "kill -0 {node} 2>/dev/null && echo node; kill -0 {guard} 2>/dev/null && echo guardian
         sleep 30 & kill $! && wait $! 2>/dev/null; echo own $?"
    );
    let (exit, printed) = output(&guardian, shell(&script)).await;
    assert_eq!((exit.reason, printed.as_str()), (ExitReason::Code(0), "own 143\n"));
}
