//! What the end of a run means to its schedule.

use model::execution::{StateName, Status};
use model::schedule::{Kind, State};
use scheduler::Event::{Failed, Paused, Recovered};
use serde_json::json;

use crate::bench::{Bench, until};
use crate::on_both;

on_both!(
    failures_are_counted_and_told,
    too_many_failures_pause_it,
    what_waited_starts_at_the_end,
    cancelled_to_make_room,
    nothing_of_a_schedule_that_is_gone,
    one_that_lost_what_it_waited_for
);

async fn failures_are_counted_and_told(bench: Bench) {
    // SCHED-2
    let bench = bench.working().await;
    let id = bench.create(json!({"every": "1m", "input_parameters": {"input": "fail"}})).await.id;
    for n in 1..=3 {
        bench.after(60).await;
        bench.ended(id).await;
        let schedule = bench.get(id).await;
        assert_eq!((schedule.failures, schedule.last_status), (n, Some(Status::Failure)));
        assert_eq!(schedule.state, State::Active);
    }
    assert_eq!(bench.news.take(), [(Failed, "it would not work".to_owned())], "the first of them only");
    // Somebody who cancels it says nothing about it.
    bench.change(id, json!({"input_parameters": {"input": "hold"}})).await;
    bench.after(60).await;
    let last = bench.executions(id).await.pop().unwrap();
    bench.cancel(last.id).await;
    bench.ended(id).await;
    assert_eq!((bench.get(id).await.failures, bench.get(id).await.last_status), (3, Some(Status::Cancelled)));
    bench.change(id, json!({"input_parameters": {"input": "ok"}})).await;
    bench.after(60).await;
    bench.ended(id).await;
    bench.ended(id).await;
    assert_eq!((bench.get(id).await.failures, bench.get(id).await.last_status), (0, Some(Status::Success)));
    assert_eq!(bench.news.take(), [(Recovered, "it works again after 3 failures".to_owned())]);
}

async fn too_many_failures_pause_it(bench: Bench) {
    // SCHED-2
    let bench = bench.working().await;
    let fields = json!({"every": "1m", "pause_after_failures": 2, "input_parameters": {"input": "fail"}});
    let id = bench.create(fields).await.id;
    for _ in 0..2 {
        bench.after(60).await;
        bench.ended(id).await;
    }
    let schedule = bench.get(id).await;
    let why = "it failed 2 times in a row: it would not work";
    assert_eq!((schedule.state, schedule.paused_reason.as_deref()), (State::Paused, Some(why)));
    assert_eq!((schedule.paused_at, schedule.next_execution), (Some(bench.now()), None));
    assert_eq!(bench.news.take(), [(Failed, "it would not work".to_owned()), (Paused, why.to_owned())]);
    bench.after(600).await;
    assert_eq!(bench.kinds(id).await, [Kind::Fired; 2]);
    let schedule = bench.resume(id).await.unwrap();
    assert_eq!((schedule.failures, schedule.state), (0, State::Active));
    assert_eq!(bench.history(id).await.len(), 12, "what fell into the pause is on record");
}

async fn what_waited_starts_at_the_end(bench: Bench) {
    // SCHED-3
    let bench = bench.working().await;
    let fields = json!({"every": "1m", "overlap": "queue_one", "input_parameters": {"input": "hold"}});
    let id = bench.create(fields).await.id;
    bench.after(60).await;
    bench.after(60).await;
    bench.after(60).await;
    assert_eq!(bench.kinds(id).await, [Kind::Fired, Kind::Queued, Kind::Skipped]);
    until("it runs", async || bench.executions(id).await[0].state_name() == StateName::Running).await;
    bench.gate.notify_waiters();
    until("the other runs", async || {
        bench.scheduler.follow_up().await.unwrap();
        bench.executions(id).await.len() == 2
    })
    .await;
    let history = bench.history(id).await;
    assert_eq!(history[1].kind, Kind::Fired);
    assert_eq!(history[1].reason.as_deref(), Some("waited for the run before it to end"));
    assert_eq!(history[1].execution_id, Some(bench.executions(id).await[1].id));
    // Paused while one waits: that one is not run.
    bench.after(60).await;
    assert_eq!(bench.kinds(id).await[3], Kind::Queued);
    bench.pause(id, "a rest").await;
    bench.gate.notify_waiters();
    until("it has ended", async || {
        bench.gate.notify_waiters();
        bench.executions(id).await.iter().all(|e| e.is_ended())
    })
    .await;
    bench.scheduler.follow_up().await.unwrap();
    assert_eq!(bench.kinds(id).await[3], Kind::Paused);
    assert_eq!(bench.executions(id).await.len(), 2);
}

async fn cancelled_to_make_room(bench: Bench) {
    // SCHED-3: one at work has to end before the next one starts
    let bench = bench.working().await;
    let fields = json!({"every": "1m", "overlap": "cancel", "input_parameters": {"input": "hold"}});
    let id = bench.create(fields).await.id;
    bench.after(60).await;
    until("it runs", async || bench.executions(id).await[0].state_name() == StateName::Running).await;
    bench.after(60).await;
    assert_eq!(bench.history(id).await[1].reason.as_deref(), Some("waits until the run before it is cancelled"));
    bench.after(60).await;
    until("the last runs", async || {
        bench.scheduler.follow_up().await.unwrap();
        bench.executions(id).await.last().is_some_and(|e| e.state_name() == StateName::Running)
            && bench.executions(id).await.len() > 1
    })
    .await;
    let states: Vec<_> = bench.executions(id).await.iter().map(|e| e.state_name()).collect();
    assert_eq!(states[0], StateName::Cancelled);
    assert_eq!(states.iter().filter(|state| !state.is_end()).count(), 1);
    // The second either ran and was cancelled, or a later one took its place while it waited.
    let kinds = bench.kinds(id).await;
    assert!(kinds[1] == Kind::Fired || kinds[1] == Kind::Skipped, "{kinds:?}");
    assert_eq!((kinds[0], kinds[2]), (Kind::Fired, Kind::Fired));
    assert_eq!(bench.get(id).await.failures, 0);
}

async fn nothing_of_a_schedule_that_is_gone(bench: Bench) {
    let bench = bench.working().await;
    let id = bench.create(json!({"every": "1m", "input_parameters": {"input": "fail"}})).await.id;
    bench.after(60).await;
    let scheduler = bench.scheduler.clone();
    let job = bench.transaction(async move |tx| scheduler.remove(tx, store::executions::Whose::Everyones, id).await);
    job.await.unwrap();
    bench.ended(id).await;
    assert_eq!(bench.scheduler.follow_up().await.unwrap(), 0);
    assert!(bench.news.take().is_empty());
    assert_eq!(bench.executions(id).await.len(), 1, "what it ran stays on record");
}

async fn one_that_lost_what_it_waited_for(bench: Bench) {
    // Its owner has erased the executions, or they ended where nobody was told.
    let fields = json!({"every": "1m", "overlap": "queue_all"});
    let id = bench.create(fields).await.id;
    bench.after(60).await;
    bench.after(60).await;
    let running = bench.executions(id).await[0].id;
    let now = bench.now();
    let job = bench.transaction(async move |tx| {
        store::executions::cancel(tx, store::executions::Whose::Everyones, running, now).await?;
        store::executions::followed_up(tx, running).await
    });
    assert!(job.await.unwrap());
    assert_eq!(bench.kinds(id).await, [Kind::Fired, Kind::Queued]);
    assert_eq!(bench.scheduler.follow_up().await.unwrap(), 0);
    assert_eq!(bench.kinds(id).await, [Kind::Fired, Kind::Fired]);
}
