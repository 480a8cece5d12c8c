//! Clock changes, and the sleep of the firing loop until the next occurrence.

use std::time::Duration;

use jiff::SignedDuration;
use model::schedule::DecisionKind;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, until};
use crate::explain::explanation;
use crate::on_both;

on_both!(
    an_occurrence_fires_once_if_the_clock_is_set_back,
    a_clock_jump_ahead_counts_as_missed,
    a_schedule_goes_on_after_the_clock_was_ahead,
    a_finished_schedule_runs_if_the_clock_was_ahead,
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

async fn a_schedule_goes_on_after_the_clock_was_ahead(bench: Bench) {
    // SCHED-3, SCHED-4
    let id = bench.create(json!({"every": "5s", "overlap": "allow"})).await.id;
    let once_a_day = bench.create(json!({"cron_expression": "0 0 * * *", "jitter": "1h"})).await.id;
    bench.advance_and_fire(5).await;
    let before = bench.now();
    bench.clock.set(before + SignedDuration::from_hours(10 * 365 * 24));
    bench.advance_and_fire(5).await;
    bench.advance_and_fire(5).await;
    let ran = bench.executions(id).await.len();
    assert_eq!(bench.scheduler.correct_schedules().await.unwrap(), 0, "the clock is still ahead");
    bench.clock.set(before + SignedDuration::from_secs(1));
    let nothing_due = bench.scheduler.fire_due().await.unwrap();
    assert_eq!(nothing_due.due, 0);
    assert_eq!(bench.scheduler.correct_schedules().await.unwrap(), 2);
    assert_eq!(bench.scheduler.correct_schedules().await.unwrap(), 0);
    let schedule = bench.get(id).await;
    assert!(schedule.next_execution.unwrap().duration_since(bench.now()) <= SignedDuration::from_secs(5));
    assert!(schedule.last_execution.unwrap() <= bench.now());
    assert!(bench.get(once_a_day).await.next_execution.unwrap().duration_since(bench.now()).as_hours() < 25);
    let correction = bench.history(id).await.into_iter().find(|decision| decision.kind == DecisionKind::Recomputed);
    let correction = correction.unwrap();
    assert_eq!(correction.due_at, bench.now());
    assert!(correction.reason.unwrap().contains("because the clock was ahead"));
    let text = explanation(&bench, id, &bench.now().to_string()).await;
    assert!(text.contains("later than the schedule allows, because the clock was ahead"), "{text}");
    for round in 1..=3 {
        bench.advance_and_fire(5).await;
        assert_eq!(bench.executions(id).await.len(), ran + round);
    }
}

async fn a_finished_schedule_runs_if_the_clock_was_ahead(bench: Bench) {
    // SCHED-3
    let start = bench.now();
    let at = (start + SignedDuration::from_hours(48)).to_string();
    let missed = bench.create(json!({"at": at, "missed": "none"})).await.id;
    let caught_up = bench.create(json!({"at": at, "missed_window": "3660d"})).await.id;
    let paused = bench.create(json!({"at": at, "enabled": false})).await.id;
    bench.advance_and_fire(3600 * 24 * 365).await;
    assert_eq!((bench.executions(missed).await.len(), bench.executions(caught_up).await.len()), (0, 1));
    bench.clock.set(start);
    assert_eq!(bench.scheduler.correct_schedules().await.unwrap(), 1);
    assert_eq!(bench.get(caught_up).await.next_execution, None, "it has run");
    assert!(!bench.get(paused).await.enabled);
    bench.advance_and_fire(3600 * 48).await;
    assert_eq!((bench.executions(missed).await.len(), bench.executions(caught_up).await.len()), (1, 1));
    assert_eq!(bench.decision_kinds(missed).await, [DecisionKind::Recomputed, DecisionKind::Fired]);
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
