//! How a run is ended before its time, with everything it began.

use std::time::Duration;

use model::execution::{StateName, Status};
use serde_json::json;
use store::Error;

use crate::bench::{Bench, doubled, error, script};
use crate::{alive, eventually, pid_in, text};

/// Forks, leaves its session, ignores TERM.
async fn stubborn(timeout: f64) -> (Bench, uuid::Uuid, i32, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let more = json!({"access_type": "read-write", "timeout": timeout});
    let bench = Bench::new(json!([doubled("runaway", &["runaway", text(&file)], more)])).await;
    let id = bench.ask("runaway", "").await;
    let pid = pid_in(&file).await;
    (bench, id, pid, dir)
}

// SUP-7
#[tokio::test]
async fn a_timeout_ends_the_whole_tree() {
    let (bench, id, pid, _dir) = stubborn(1.0).await;
    let result = bench.result(id).await;
    assert_eq!((result.status, error(&result)), (Status::Timeout, "took longer than 1 s"));
    assert!(!alive(pid) && !alive(result.process_id.unwrap() as i32), "it is told when nothing is left");
    bench.stop().await;
}

// SUP-7
#[tokio::test]
async fn a_cancellation_ends_the_whole_tree() {
    let (bench, id, pid, _dir) = stubborn(60.0).await;
    bench.cancel(id).await.unwrap();
    let result = bench.result(id).await;
    assert_eq!((result.status, error(&result)), (Status::Cancelled, "cancelled"));
    assert!(!alive(pid));
    assert!(matches!(bench.cancel(id).await, Err(Error::Ended)));
    bench.stop().await;
}

// SUP-7
#[tokio::test]
async fn a_supervisor_that_stops_leaves_nothing() {
    let (bench, id, pid, _dir) = stubborn(60.0).await;
    let agent = bench.get(id).await.state().started().and_then(|started| started.process_id);
    bench.stop().await;
    assert!(!alive(pid) && agent.is_none_or(|pid| !alive(pid as i32)));
}

// SUP-7
#[tokio::test]
async fn cancelled_while_it_waits_and_before_it_runs() {
    let more = json!({"access_type": "read-write"});
    let bench = Bench::new(json!([script("alone", "sleep 60", more)])).await;
    let first = bench.ask("alone", "").await;
    let waits = bench.ask("alone", "").await;
    let waiting = bench.cancel(waits).await.unwrap();
    assert_eq!(waiting.state_name(), StateName::Cancelled);
    let result = bench.result(waits).await;
    assert_eq!((result.status, result.process_id), (Status::Cancelled, None));
    // Whatever it was doing just then.
    bench.cancel(first).await.unwrap();
    assert_eq!(bench.result(first).await.status, Status::Cancelled);
    // In every moment of its beginning.
    for micros in [0, 200, 500, 1000, 2000, 4000, 8000, 16_000] {
        let id = bench.ask("alone", "").await;
        tokio::time::sleep(Duration::from_micros(micros)).await;
        bench.cancel(id).await.unwrap();
        assert_eq!(bench.result(id).await.status, Status::Cancelled, "after {micros} µs");
    }
    bench.stop().await;
}

// SUP-7
#[tokio::test]
async fn what_a_program_leaves_behind_is_ended_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let more = json!({"access_type": "read-write"});
    let bench = Bench::new(json!([doubled("daemon", &["daemon", text(&file)], more)])).await;
    let result = bench.run("daemon", "").await;
    assert_eq!(result.status, Status::Success, "{result:#?}");
    let pid = pid_in(&file).await;
    eventually("the daemon is gone", Duration::from_secs(1), || !alive(pid)).await;
    bench.stop().await;
}

// SUP-7
#[tokio::test]
async fn one_that_ends_in_good_order_when_it_is_cancelled_was_cancelled() {
    let text = "trap 'echo bye; exit 0' TERM; echo up; sleep 60 & wait";
    let bench = Bench::new(json!([script("polite", text, json!({"grace": 20}))])).await;
    let id = bench.ask("polite", "").await;
    crate::bench::until("it is up", async || bench.output(id, "stdout").await == "up\n").await;
    bench.cancel(id).await.unwrap();
    let result = bench.result(id).await;
    assert_eq!((result.status, result.output.as_str()), (Status::Cancelled, "up\nbye\n"));
    bench.stop().await;
}

// SUP-11
#[tokio::test]
async fn stopping_at_any_moment_stops() {
    let more = json!({"access_type": "read-write", "queue_depth": 100});
    for micros in [0, 300, 1000, 3000, 10_000] {
        let bench = Bench::new(json!([script("quick", "sleep 0.01", more.clone())])).await;
        for _ in 0..10 {
            bench.ask("quick", "").await;
        }
        tokio::time::sleep(Duration::from_micros(micros)).await;
        bench.stop().await;
    }
}
