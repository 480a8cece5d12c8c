//! Clock changes, and the sleep of the firing loop until the next occurrence.

use std::time::Duration;

use jiff::SignedDuration;
use model::schedule::DecisionKind;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, until};
use crate::on_both;

on_both!(
    an_occurrence_fires_once_if_the_clock_is_set_back,
    a_clock_jump_ahead_counts_as_missed,
    the_loop_sleeps_until_a_schedule_is_due
);

async fn an_occurrence_fires_once_if_the_clock_is_set_back(bench: Bench) {
    // SCHED-4
    let id = bench.create(json!({"cron_expression": "*/10 * * * *", "overlap": "allow"})).await.id;
    for _ in 0..6 {
        bench.advance_and_fire(600).await;
    }
    bench.clock.set(bench.now() - SignedDuration::from_mins(30));
    for _ in 0..3 {
        bench.advance_and_fire(600).await;
    }
    assert_eq!(bench.decision_kinds(id).await, [DecisionKind::Fired; 6]);
    bench.advance_and_fire(600).await;
    assert_eq!(bench.decision_kinds(id).await, [DecisionKind::Fired; 7]);
    // This also holds if the schedule is resumed at the earlier time.
    bench.clock.set(bench.now() - SignedDuration::from_mins(30));
    bench.pause(id, "a moment").await;
    bench.resume(id).await.unwrap();
    for _ in 0..4 {
        bench.advance_and_fire(600).await;
    }
    let history = bench.history(id).await;
    assert_eq!((history.len(), bench.executions(id).await.len()), (8, 8));
    assert!(
        history.windows(2).all(|pair| pair[1].due_at.duration_since(pair[0].due_at) == SignedDuration::from_mins(10))
    );
}

async fn a_clock_jump_ahead_counts_as_missed(bench: Bench) {
    // SCHED-3: the occurrences within the jump are missed
    let id = bench.create(json!({"cron_expression": "*/10 * * * *", "overlap": "allow"})).await.id;
    bench.advance_and_fire(600).await;
    bench.advance_and_fire(3600 * 24 * 400).await;
    let history = bench.history(id).await;
    assert_eq!(history.len(), 1 + 1000 + 1);
    assert_eq!(history.last().unwrap().kind, DecisionKind::Fired);
    assert_eq!(bench.executions(id).await.len(), 2);
    assert_eq!(bench.get(id).await.next_execution.unwrap(), bench.now() + SignedDuration::from_mins(10));
}

async fn the_loop_sleeps_until_a_schedule_is_due(bench: Bench) {
    // SCHED-4
    let bench = bench.with_running_agents().await;
    let shutdown = CancellationToken::new();
    let scheduler = bench.scheduler.clone();
    let stop = shutdown.clone();
    let work = tokio::spawn(async move { scheduler.run(stop).await });
    let id = bench.create(json!({"every": "1h", "overlap": "allow", "input_parameters": {"input": "fail"}})).await.id;
    bench.scheduler.wake();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(bench.history(id).await.is_empty());
    bench.advance(3600);
    bench.scheduler.wake();
    until("it ran and its end was handled", async || bench.get(id).await.failures == 1).await;
    assert_eq!(bench.decision_kinds(id).await, [DecisionKind::Fired]);
    let decided: Vec<_> = bench.scheduler.decision_counts().filter(|(_, count)| *count > 0).collect();
    assert_eq!(decided, [(DecisionKind::Fired, 1)]);
    shutdown.cancel();
    tokio::time::timeout(Duration::from_secs(10), work).await.unwrap().unwrap();
}
