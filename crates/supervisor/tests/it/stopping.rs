//! Tests of ending a run early, with all its processes.

use std::time::Duration;

use model::execution::{ExecutionStatus, StateName};
use serde_json::json;
use store::Error;

use crate::bench::{Bench, doubled, error, script};
use crate::{alive, eventually, pid_in, text};

/// Starts an agent that forks, leaves its session and ignores TERM.
async fn start_stubborn(timeout: f64) -> (Bench, uuid::Uuid, i32, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let more = json!({"access_type": "read-write", "timeout": timeout});
    let bench = Bench::new(json!([doubled("runaway", &["runaway", text(&file)], more)])).await;
    let id = bench.enqueue("runaway", "").await;
    let pid = pid_in(&file).await;
    (bench, id, pid, dir)
}

// SUP-7
#[tokio::test]
async fn timeouts_end_the_process_tree() {
    let (bench, id, pid, _dir) = start_stubborn(1.0).await;
    let result = bench.result(id).await;
    assert_eq!((result.status, error(&result)), (ExecutionStatus::Timeout, "took longer than 1 s"));
    assert!(
        !alive(pid) && !alive(result.process_id.unwrap() as i32),
        "the end is recorded after all processes have ended"
    );
    bench.stop().await;
}

// SUP-7
#[tokio::test]
async fn cancellations_end_the_process_tree() {
    let (bench, id, pid, _dir) = start_stubborn(60.0).await;
    bench.cancel(id).await.unwrap();
    let result = bench.result(id).await;
    assert_eq!((result.status, error(&result)), (ExecutionStatus::Cancelled, "cancelled"));
    assert!(!alive(pid));
    assert!(matches!(bench.cancel(id).await, Err(Error::AlreadyEnded)));
    bench.stop().await;
}

// SUP-7
#[tokio::test]
async fn stopping_the_supervisor_ends_all_processes() {
    let (bench, id, pid, _dir) = start_stubborn(60.0).await;
    let agent = bench.get(id).await.state().started().and_then(|started| started.process_id);
    bench.stop().await;
    assert!(!alive(pid) && agent.is_none_or(|pid| !alive(pid as i32)));
}

// SUP-7
#[tokio::test]
async fn queued_and_starting_executions_can_be_cancelled() {
    // SUP-5
    let more = json!({"access_type": "read-write"});
    let bench = Bench::new(json!([script("alone", "sleep 60", more)])).await;
    let first = bench.enqueue("alone", "").await;
    let waits = bench.enqueue("alone", "").await;
    let waiting = bench.cancel(waits).await.unwrap();
    assert_eq!(waiting.state_name(), StateName::Cancelled);
    let result = bench.result(waits).await;
    assert_eq!((result.status, result.process_id), (ExecutionStatus::Cancelled, None));
    // The first execution may be in any state.
    bench.cancel(first).await.unwrap();
    assert_eq!(bench.result(first).await.status, ExecutionStatus::Cancelled);
    // Cancel at different times of the start.
    for micros in [0, 200, 500, 1000, 2000, 4000, 8000, 16_000] {
        let id = bench.enqueue("alone", "").await;
        tokio::time::sleep(Duration::from_micros(micros)).await;
        bench.cancel(id).await.unwrap();
        assert_eq!(bench.result(id).await.status, ExecutionStatus::Cancelled, "after {micros} µs");
    }
    bench.stop().await;
}

// SUP-7
#[tokio::test]
async fn daemons_end_with_their_run() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let more = json!({"access_type": "read-write"});
    let bench = Bench::new(json!([doubled("daemon", &["daemon", text(&file)], more)])).await;
    let result = bench.run("daemon", "").await;
    assert_eq!(result.status, ExecutionStatus::Success, "{result:#?}");
    let pid = pid_in(&file).await;
    eventually("the daemon has ended", Duration::from_secs(1), || !alive(pid)).await;
    bench.stop().await;
}

// SUP-7
#[tokio::test]
async fn a_clean_exit_after_a_cancellation_counts_as_cancelled() {
    let text = "trap 'echo bye; exit 0' TERM; echo up; sleep 60 & wait";
    let bench = Bench::new(json!([script("polite", text, json!({"grace": 20}))])).await;
    let id = bench.enqueue("polite", "").await;
    crate::bench::wait_until("it is up", async || bench.output(id, "stdout").await == "up\n").await;
    bench.cancel(id).await.unwrap();
    let result = bench.result(id).await;
    assert_eq!((result.status, result.output.as_str()), (ExecutionStatus::Cancelled, "up\nbye\n"));
    bench.stop().await;
}

// SUP-11
#[tokio::test]
async fn the_supervisor_can_stop_at_any_time() {
    let more = json!({"access_type": "read-write", "queue_depth": 100});
    for micros in [0, 300, 1000, 3000, 10_000] {
        let bench = Bench::new(json!([script("quick", "sleep 0.01", more.clone())])).await;
        for _ in 0..10 {
            bench.enqueue("quick", "").await;
        }
        tokio::time::sleep(Duration::from_micros(micros)).await;
        bench.stop().await;
    }
}
