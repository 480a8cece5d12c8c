//! What becomes of a time that has come: by how late it is, by what runs, and by what the schedule says to both.

use model::execution::StateName;
use model::schedule::{Kind, State};
use scheduler::Event;
use serde_json::json;

use crate::bench::Bench;
use crate::on_both;

on_both!(
    run_once_and_then_at_its_next_time,
    every_policy_for_overlaps_and_missed_runs,
    made_up_for_within_its_window,
    missed_ones_in_their_order,
    more_than_anybody_wants_to_read,
    refused_with_a_reason,
    a_single_time_and_then_no_more,
    several_schedulers_and_one_run
);

async fn run_once_and_then_at_its_next_time(bench: Bench) {
    // SCHED-2, SCHED-4
    let schedule =
        bench.create(json!({"cron_expression": "*/5 * * * *", "input_parameters": {"input": "ok", "n": 1}})).await;
    let id = schedule.id;
    assert_eq!((schedule.state, schedule.active, schedule.enabled), (State::Active, true, true));
    assert_eq!(schedule.next_execution.unwrap().to_string(), "2026-01-10T12:05:00Z");
    bench.after(299).await;
    assert!(bench.history(id).await.is_empty(), "not a second too early");
    bench.after(1).await;
    bench.after(0).await;
    let history = bench.history(id).await;
    assert_eq!(history.len(), 1);
    let decision = &history[0];
    assert_eq!((decision.kind, decision.due_at, decision.decided_at), (Kind::Fired, bench.now(), bench.now()));
    let executions = bench.executions(id).await;
    assert_eq!(executions.iter().map(|e| Some(e.id)).collect::<Vec<_>>(), [decision.execution_id]);
    assert_eq!((executions[0].input.as_str(), &executions[0].context["parameters"]), ("ok", &json!({"n": 1})));
    assert_eq!(executions[0].context["schedule"]["due_at"], "2026-01-10T12:05:00Z");
    let after = bench.get(id).await;
    assert_eq!((after.state, after.active), (State::Executing, true));
    assert_eq!(after.last_execution, Some(bench.now()));
    assert_eq!(after.next_execution.unwrap().to_string(), "2026-01-10T12:10:00Z");
}

async fn every_policy_for_overlaps_and_missed_runs(bench: Bench) {
    // SCHED-3. The first run goes on while the second is due; then three times pass, of which the last is half a minute ago.
    // Everything waits in the queue of its agent, so what is cancelled ends at once.
    use Kind::{CaughtUp, Fired, Missed, Queued, Skipped};
    let cases = [
        ("skip", "none", [Fired, Skipped, Missed, Missed, Skipped], 1, 1),
        ("skip", "once", [Fired, Skipped, Missed, Missed, Skipped], 1, 1),
        ("skip", "all", [Fired, Skipped, Skipped, Skipped, Skipped], 1, 1),
        ("queue_one", "none", [Fired, Queued, Missed, Missed, Skipped], 1, 2),
        ("queue_one", "once", [Fired, Queued, Missed, Missed, Skipped], 1, 2),
        ("queue_one", "all", [Fired, Queued, Skipped, Skipped, Skipped], 1, 2),
        ("queue_all", "none", [Fired, Queued, Missed, Missed, Queued], 1, 3),
        ("queue_all", "once", [Fired, Queued, Missed, Missed, Queued], 1, 3),
        ("queue_all", "all", [Fired, Queued, Queued, Queued, Queued], 1, 5),
        ("cancel", "none", [Fired, Fired, Missed, Missed, Fired], 1, 3),
        ("cancel", "once", [Fired, Fired, Missed, Missed, Fired], 1, 3),
        ("cancel", "all", [Fired, Fired, Skipped, Skipped, Fired], 1, 3),
        ("allow", "none", [Fired, Fired, Missed, Missed, Fired], 3, 3),
        ("allow", "once", [Fired, Fired, Missed, Missed, Fired], 3, 3),
        ("allow", "all", [Fired, Fired, CaughtUp, CaughtUp, Fired], 5, 5),
    ];
    let mut schedules = Vec::new();
    for (overlap, missed, ..) in cases {
        schedules.push(bench.create(json!({"every": "1m", "overlap": overlap, "missed": missed})).await.id);
    }
    bench.after(60).await;
    bench.after(60).await;
    bench.after(210).await;
    for ((overlap, missed, wanted, open, in_all), id) in cases.into_iter().zip(schedules) {
        assert_eq!(bench.kinds(id).await, wanted, "{overlap} {missed}");
        let is_open = |e: &model::execution::Execution| !e.is_ended();
        assert_eq!(bench.executions(id).await.iter().filter(|e| is_open(e)).count(), open, "{overlap} {missed}");
        // When each has ended what waited for it starts, one after the other.
        loop {
            let running = bench.executions(id).await.into_iter().find(is_open);
            let Some(running) = running else { break };
            bench.cancel(running.id).await;
            bench.scheduler.follow_up().await.unwrap();
            let many = bench.executions(id).await.iter().filter(|e| is_open(e)).count();
            assert!(overlap == "allow" || many <= 1, "{overlap} {missed}: {many} at once");
        }
        let executions = bench.executions(id).await;
        assert_eq!(executions.len(), in_all, "{overlap} {missed}");
        let history = bench.history(id).await;
        assert!(history.iter().all(|decision| decision.kind != Queued), "{overlap} {missed}");
        let ran: Vec<_> = history.iter().filter_map(|decision| decision.execution_id).collect();
        assert_eq!(ran, executions.iter().map(|e| e.id).collect::<Vec<_>>(), "in their order, each once");
        assert!(history.iter().all(|d| d.execution_id.is_some() == matches!(d.kind, Fired | CaughtUp)), "{history:?}");
    }
}

async fn made_up_for_within_its_window(bench: Bench) {
    // SCHED-3: by default one, within a day
    let daily = bench.create(json!({"cron_expression": "0 13 * * *"})).await.id;
    let short = bench.create(json!({"cron_expression": "0 13 * * *", "missed_window": "1h"})).await.id;
    let weekly = bench.create(json!({"cron_expression": "0 13 * * SAT"})).await.id;
    // 2026-01-10 is a Saturday. Nobody is there until 15:00 on the next Monday.
    bench.after(2 * 86_400 + 3 * 3600).await;
    assert_eq!(bench.kinds(daily).await, [Kind::Missed, Kind::Missed, Kind::CaughtUp]);
    assert_eq!(bench.kinds(short).await, [Kind::Missed, Kind::Missed, Kind::Missed]);
    assert_eq!(bench.kinds(weekly).await, [Kind::Missed]);
    let reasons: Vec<_> =
        bench.history(daily).await.into_iter().map(|decision| decision.reason.unwrap_or_default()).collect();
    assert_eq!(reasons[0], "it was 2d2h late, more than the 1d it may be");
    assert_eq!(reasons[1], "it was 1d2h late, more than the 1d it may be");
    assert_eq!(bench.history(short).await[2].reason.as_deref(), Some("it was 2h late, more than the 1h it may be"));
    let schedule = bench.get(weekly).await;
    assert_eq!(schedule.next_execution.unwrap().to_string(), "2026-01-17T13:00:00Z");
    assert_eq!((schedule.last_execution, bench.executions(weekly).await.len()), (None, 0));
}

async fn missed_ones_in_their_order(bench: Bench) {
    // SCHED-3
    let id =
        bench.create(json!({"every": "1h", "missed": "all", "missed_window": "3h", "overlap": "queue_all"})).await.id;
    bench.after(5 * 3600 + 1800).await;
    use Kind::{CaughtUp, Missed, Queued};
    assert_eq!(bench.kinds(id).await, [Missed, Missed, CaughtUp, Queued, Queued]);
    let due: Vec<_> = bench.history(id).await.iter().map(|decision| decision.due_at.to_string()).collect();
    assert_eq!(due[0], "2026-01-10T13:00:00Z");
    assert!(due.is_sorted());
}

async fn more_than_anybody_wants_to_read(bench: Bench) {
    // SCHED-3: a day of seconds
    for missed in ["none", "once"] {
        let id = bench.create(json!({"every": "1s", "missed": missed})).await.id;
        bench.after(86_400).await;
        let history = bench.history(id).await;
        assert_eq!(history.len(), 1002, "{missed}");
        let summary = &history[1000];
        let first = summary.due_at;
        let last = summary.until.unwrap();
        assert_eq!(last.duration_since(first).as_secs(), 86_400 - 1000 - 2);
        assert_eq!(history[1001].kind, Kind::Fired);
        assert_eq!(bench.executions(id).await.len(), 1);
        assert_eq!(bench.get(id).await.next_execution.unwrap(), bench.now() + jiff::SignedDuration::from_secs(1));
        bench.pause(id, "enough").await;
    }
}

async fn refused_with_a_reason(bench: Bench) {
    // SCHED-2: an agent that is disabled, gone, or too busy later; and nobody is left without a word
    let full = bench.create(json!({"every": "1m", "agent_id": "few", "overlap": "allow", "missed": "all"})).await.id;
    let gone = bench.create(json!({"every": "1m", "pause_after_failures": 2})).await.id;
    let off = bench.create(json!({"every": "1m", "overlap": "queue_all", "missed": "all"})).await.id;
    bench.repoint(gone, "nobody").await;
    bench.repoint(off, "off").await;
    bench.after(60).await;
    assert_eq!(bench.kinds(full).await, [Kind::Fired]);
    for (id, why) in [(gone, "there is no such agent"), (off, "the agent 'off' is disabled")] {
        let history = bench.history(id).await;
        assert_eq!((history[0].kind, history[0].reason.as_deref()), (Kind::Refused, Some(why)));
        assert_eq!(bench.get(id).await.failures, 1);
    }
    let mut told = bench.news.take();
    told.sort_by_key(|(_, text)| text.clone());
    let wanted = [(Event::Failed, "the agent 'off' is disabled"), (Event::Failed, "there is no such agent")];
    assert_eq!(told, wanted.map(|(event, text)| (event, text.to_owned())));
    bench.after(120).await;
    assert_eq!(bench.kinds(full).await, [Kind::Fired, Kind::CaughtUp, Kind::Refused], "one runs, one waits");
    let why = bench.history(full).await[2].reason.clone().unwrap();
    assert_eq!(why, "the queue of the agent is full: 2 are waiting already, and no more than 1 may");
    assert_eq!(bench.kinds(off).await, [Kind::Refused; 3]);
    let paused = bench.get(gone).await;
    assert_eq!((paused.state, paused.enabled, paused.next_execution), (State::Paused, false, None));
    assert_eq!(paused.paused_reason.as_deref(), Some("it failed 2 times in a row: there is no such agent"));
    assert_eq!(bench.kinds(gone).await, [Kind::Refused, Kind::Missed, Kind::Refused]);
    assert!(bench.news.take().iter().any(|(event, _)| *event == Event::Paused));
    assert_eq!(bench.scheduler.fire_due().await.unwrap().seen, 0, "no time is tried twice");
    assert_eq!(bench.spooled(), 0);
}

async fn a_single_time_and_then_no_more(bench: Bench) {
    // SCHED-1, SCHED-2
    let bench = bench.working().await;
    let id = bench.create(json!({"at": "2026-01-10T12:30:00Z", "input_parameters": {"input": "hold"}})).await.id;
    let refused = bench.scheduler.check(&bench.user, bench.draft(json!({"at": "2026-01-10T11:59:59Z"}))).unwrap_err();
    assert_eq!(refused.violations[0].field, "at");
    bench.after(1800).await;
    let schedule = bench.get(id).await;
    assert_eq!((schedule.state, schedule.next_execution), (State::Executing, None));
    crate::bench::until("it runs", async || bench.executions(id).await[0].state_name() == StateName::Running).await;
    bench.gate.notify_waiters();
    bench.ended(id).await;
    let schedule = bench.get(id).await;
    assert_eq!((schedule.state, schedule.paused_reason.as_deref()), (State::Paused, Some(scheduler::FINISHED)));
    assert_eq!(schedule.last_status, Some(model::execution::Status::Success));
    assert!(matches!(bench.resume(id).await, Err(store::Error::Ended)));
    // One whose end comes while nobody is there.
    let id = bench.create(json!({"every": "1h", "end_at": "2026-01-10T14:00:00Z", "missed": "none"})).await.id;
    bench.after(86_400).await;
    assert_eq!(bench.kinds(id).await, [Kind::Missed]);
    assert_eq!(bench.get(id).await.paused_reason.as_deref(), Some(scheduler::FINISHED));
    // Another time makes it go on.
    bench.change(id, json!({"end_at": null})).await;
    assert_eq!(bench.get(id).await.state, State::Active);
}

async fn several_schedulers_and_one_run(bench: Bench) {
    // SCHED-4: whoever else looks at the same moment
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(bench.create(json!({"every": "1m", "overlap": "allow"})).await.id);
    }
    let others = match &bench.location {
        // One process has a SQLite database for itself, but nothing keeps it from looking twice at once.
        store::Location::Sqlite(_) => vec![],
        store::Location::Postgres(_) => vec![bench.beside(None).await, bench.beside(None).await],
    };
    for _ in 0..5 {
        bench.advance(60);
        others.iter().for_each(|other| other.clock.set(bench.now()));
        let own = [&bench, &bench].into_iter().chain(&others).map(|bench| bench.scheduler.fire_due());
        let fired = futures::future::join_all(own).await;
        assert_eq!(fired.into_iter().map(|fired| fired.unwrap().acted).sum::<usize>(), 20);
    }
    for id in ids {
        assert_eq!(bench.kinds(id).await, [Kind::Fired; 5]);
        assert_eq!(bench.executions(id).await.len(), 5);
    }
}
