//! Effects of the end of a run on its schedule.

use model::execution::{ExecutionStatus, StateName};
use model::schedule::{DecisionKind, ScheduleState};
use scheduler::ScheduleEvent::{Failed, Paused, Recovered};
use serde_json::json;

use crate::bench::{Bench, until};
use crate::on_both;

on_both!(
    failures_are_counted_and_notified,
    too_many_failures_pause_the_schedule,
    a_queued_occurrence_starts_when_the_run_ends,
    a_running_execution_is_cancelled_for_the_next_one,
    ends_of_a_removed_schedule_have_no_effect,
    a_queued_occurrence_starts_without_a_running_execution
);

async fn failures_are_counted_and_notified(bench: Bench) {
    // SCHED-2
    let bench = bench.with_running_agents().await;
    let id = bench.create(json!({"every": "1m", "input_parameters": {"input": "fail"}})).await.id;
    for n in 1..=3 {
        bench.advance_and_fire(60).await;
        bench.wait_until_ended(id).await;
        let schedule = bench.get(id).await;
        assert_eq!((schedule.failures, schedule.last_status), (n, Some(ExecutionStatus::Failure)));
        assert_eq!(schedule.state, ScheduleState::Active);
    }
    assert_eq!(bench.notices.take(), [(Failed, "it would not work".to_owned())], "only for the first failure");
    // A cancelled run is neither a failure nor a success.
    bench.change(id, json!({"input_parameters": {"input": "hold"}})).await;
    bench.advance_and_fire(60).await;
    let last = bench.executions(id).await.pop().unwrap();
    bench.cancel(last.id).await;
    bench.wait_until_ended(id).await;
    assert_eq!((bench.get(id).await.failures, bench.get(id).await.last_status), (3, Some(ExecutionStatus::Cancelled)));
    bench.change(id, json!({"input_parameters": {"input": "ok"}})).await;
    bench.advance_and_fire(60).await;
    bench.wait_until_ended(id).await;
    bench.wait_until_ended(id).await;
    assert_eq!((bench.get(id).await.failures, bench.get(id).await.last_status), (0, Some(ExecutionStatus::Success)));
    assert_eq!(bench.notices.take(), [(Recovered, "it succeeded after 3 failures".to_owned())]);
}

async fn too_many_failures_pause_the_schedule(bench: Bench) {
    // SCHED-2
    let bench = bench.with_running_agents().await;
    let fields = json!({"every": "1m", "pause_after_failures": 2, "input_parameters": {"input": "fail"}});
    let id = bench.create(fields).await.id;
    for _ in 0..2 {
        bench.advance_and_fire(60).await;
        bench.wait_until_ended(id).await;
    }
    let schedule = bench.get(id).await;
    let why = "it failed 2 times in a row: it would not work";
    assert_eq!((schedule.state, schedule.paused_reason.as_deref()), (ScheduleState::Paused, Some(why)));
    assert_eq!((schedule.paused_at, schedule.next_execution), (Some(bench.now()), None));
    assert_eq!(bench.notices.take(), [(Failed, "it would not work".to_owned()), (Paused, why.to_owned())]);
    bench.advance_and_fire(600).await;
    assert_eq!(bench.decision_kinds(id).await, [DecisionKind::Fired; 2]);
    let schedule = bench.resume(id).await.unwrap();
    assert_eq!((schedule.failures, schedule.state), (0, ScheduleState::Active));
    assert_eq!(bench.history(id).await.len(), 12, "occurrences during the pause are recorded");
}

async fn a_queued_occurrence_starts_when_the_run_ends(bench: Bench) {
    // SCHED-3
    let bench = bench.with_running_agents().await;
    let fields = json!({"every": "1m", "overlap": "queue_one", "input_parameters": {"input": "hold"}});
    let id = bench.create(fields).await.id;
    bench.advance_and_fire(60).await;
    bench.advance_and_fire(60).await;
    bench.advance_and_fire(60).await;
    assert_eq!(bench.decision_kinds(id).await, [DecisionKind::Fired, DecisionKind::Queued, DecisionKind::Skipped]);
    until("it runs", async || bench.executions(id).await[0].state_name() == StateName::Running).await;
    bench.gate.notify_waiters();
    until("the queued occurrence has started", async || {
        bench.scheduler.follow_up().await.unwrap();
        bench.executions(id).await.len() == 2
    })
    .await;
    let history = bench.history(id).await;
    assert_eq!(history[1].kind, DecisionKind::Fired);
    assert_eq!(history[1].reason.as_deref(), Some("waited for the previous run to end"));
    assert_eq!(history[1].execution_id, Some(bench.executions(id).await[1].id));
    // The schedule is paused while an occurrence is queued. The occurrence does not run.
    bench.advance_and_fire(60).await;
    assert_eq!(bench.decision_kinds(id).await[3], DecisionKind::Queued);
    bench.pause(id, "a rest").await;
    bench.gate.notify_waiters();
    until("it has ended", async || {
        bench.gate.notify_waiters();
        bench.executions(id).await.iter().all(|e| e.is_ended())
    })
    .await;
    bench.scheduler.follow_up().await.unwrap();
    assert_eq!(bench.decision_kinds(id).await[3], DecisionKind::Paused);
    assert_eq!(bench.executions(id).await.len(), 2);
}

async fn a_running_execution_is_cancelled_for_the_next_one(bench: Bench) {
    // SCHED-3: the running execution has to end before the next one starts
    let bench = bench.with_running_agents().await;
    let fields = json!({"every": "1m", "overlap": "cancel", "input_parameters": {"input": "hold"}});
    let id = bench.create(fields).await.id;
    bench.advance_and_fire(60).await;
    until("it runs", async || bench.executions(id).await[0].state_name() == StateName::Running).await;
    bench.advance_and_fire(60).await;
    assert_eq!(bench.history(id).await[1].reason.as_deref(), Some("waits for the previous run to be cancelled"));
    bench.advance_and_fire(60).await;
    until("the last occurrence runs", async || {
        bench.scheduler.follow_up().await.unwrap();
        bench.executions(id).await.last().is_some_and(|e| e.state_name() == StateName::Running)
            && bench.executions(id).await.len() > 1
    })
    .await;
    let states: Vec<_> = bench.executions(id).await.iter().map(|e| e.state_name()).collect();
    assert_eq!(states[0], StateName::Cancelled);
    assert_eq!(states.iter().filter(|state| !state.is_end()).count(), 1);
    // The second occurrence either ran and was cancelled, or was replaced while it was queued.
    let kinds = bench.decision_kinds(id).await;
    assert!(kinds[1] == DecisionKind::Fired || kinds[1] == DecisionKind::Skipped, "{kinds:?}");
    assert_eq!((kinds[0], kinds[2]), (DecisionKind::Fired, DecisionKind::Fired));
    assert_eq!(bench.get(id).await.failures, 0);
}

async fn ends_of_a_removed_schedule_have_no_effect(bench: Bench) {
    let bench = bench.with_running_agents().await;
    let id = bench.create(json!({"every": "1m", "input_parameters": {"input": "fail"}})).await.id;
    bench.advance_and_fire(60).await;
    let scheduler = bench.scheduler.clone();
    let job =
        bench.transaction(async move |tx| scheduler.remove(tx, store::executions::OwnerScope::AllUsers, id).await);
    job.await.unwrap();
    bench.wait_until_ended(id).await;
    assert_eq!(bench.scheduler.follow_up().await.unwrap(), 0);
    assert!(bench.notices.take().is_empty());
    assert_eq!(bench.executions(id).await.len(), 1, "the execution stays stored");
}

async fn a_queued_occurrence_starts_without_a_running_execution(bench: Bench) {
    // SCHED-3
    // The owner has deleted the executions, or their end was handled before the occurrence was queued.
    let fields = json!({"every": "1m", "overlap": "queue_all"});
    let id = bench.create(fields).await.id;
    bench.advance_and_fire(60).await;
    bench.advance_and_fire(60).await;
    let running = bench.executions(id).await[0].id;
    let now = bench.now();
    let job = bench.transaction(async move |tx| {
        store::executions::cancel(tx, store::executions::OwnerScope::AllUsers, running, now).await?;
        store::executions::mark_followed_up(tx, running).await
    });
    assert!(job.await.unwrap());
    assert_eq!(bench.decision_kinds(id).await, [DecisionKind::Fired, DecisionKind::Queued]);
    assert_eq!(bench.scheduler.follow_up().await.unwrap(), 0);
    assert_eq!(bench.decision_kinds(id).await, [DecisionKind::Fired, DecisionKind::Fired]);
}
