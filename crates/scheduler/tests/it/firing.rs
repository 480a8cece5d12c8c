//! Decisions on due occurrences: they depend on the lateness, the running executions and the policies of the schedule.

use model::execution::StateName;
use model::schedule::{DecisionKind, ScheduleState};
use scheduler::ScheduleEvent;
use serde_json::json;

use crate::bench::Bench;
use crate::on_both;

on_both!(
    a_due_schedule_fires_once_per_occurrence,
    overlap_and_missed_policies_are_applied,
    missed_runs_are_caught_up_within_the_window,
    missed_runs_are_caught_up_in_order,
    many_missed_occurrences_share_a_decision,
    the_newest_missed_runs_are_caught_up,
    refused_runs_are_recorded_with_a_reason,
    a_schedule_without_future_occurrences_is_finished,
    concurrent_schedulers_fire_each_occurrence_once,
    occurrences_during_a_stop_follow_the_missed_policy
);

async fn a_due_schedule_fires_once_per_occurrence(bench: Bench) {
    // SCHED-2, SCHED-4
    let schedule =
        bench.create(json!({"cron_expression": "*/5 * * * *", "input_parameters": {"input": "ok", "n": 1}})).await;
    let id = schedule.id;
    assert_eq!((schedule.state, schedule.active, schedule.enabled), (ScheduleState::Active, true, true));
    assert_eq!(schedule.next_execution.unwrap().to_string(), "2026-01-10T12:05:00Z");
    bench.advance_and_fire(299).await;
    assert!(bench.history(id).await.is_empty(), "one second early");
    bench.advance_and_fire(1).await;
    bench.advance_and_fire(0).await;
    let history = bench.history(id).await;
    assert_eq!(history.len(), 1);
    let decision = &history[0];
    assert_eq!((decision.kind, decision.due_at, decision.decided_at), (DecisionKind::Fired, bench.now(), bench.now()));
    let executions = bench.executions(id).await;
    assert_eq!(executions.iter().map(|e| Some(e.id)).collect::<Vec<_>>(), [decision.execution_id]);
    assert_eq!((executions[0].input.as_str(), &executions[0].context["parameters"]), ("ok", &json!({"n": 1})));
    assert_eq!(executions[0].context["schedule"]["due_at"], "2026-01-10T12:05:00Z");
    let after = bench.get(id).await;
    assert_eq!((after.state, after.active), (ScheduleState::Executing, true));
    assert_eq!(after.last_execution, Some(bench.now()));
    assert_eq!(after.next_execution.unwrap().to_string(), "2026-01-10T12:10:00Z");
}

async fn overlap_and_missed_policies_are_applied(bench: Bench) {
    // SCHED-3: the first run is in progress when the second is due. Then three occurrences pass, the last one half a
    // minute ago. All executions stay in the queue of the agent, so a cancelled one ends immediately.
    use DecisionKind::{CaughtUp, Fired, Missed, Queued, Skipped};
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
    bench.advance_and_fire(60).await;
    bench.advance_and_fire(60).await;
    bench.advance_and_fire(210).await;
    for ((overlap, missed, expected, open, total), id) in cases.into_iter().zip(schedules) {
        assert_eq!(bench.decision_kinds(id).await, expected, "{overlap} {missed}");
        let is_open = |e: &model::execution::Execution| !e.is_ended();
        assert_eq!(bench.executions(id).await.iter().filter(|e| is_open(e)).count(), open, "{overlap} {missed}");
        // As each execution ends, the next queued occurrence starts.
        loop {
            let running = bench.executions(id).await.into_iter().find(is_open);
            let Some(running) = running else { break };
            bench.cancel(running.id).await;
            bench.scheduler.follow_up().await.unwrap();
            let open = bench.executions(id).await.iter().filter(|e| is_open(e)).count();
            assert!(overlap == "allow" || open <= 1, "{overlap} {missed}: {open} at once");
        }
        let executions = bench.executions(id).await;
        assert_eq!(executions.len(), total, "{overlap} {missed}");
        let history = bench.history(id).await;
        assert!(history.iter().all(|decision| decision.kind != Queued), "{overlap} {missed}");
        let ran: Vec<_> = history.iter().filter_map(|decision| decision.execution_id).collect();
        assert_eq!(ran, executions.iter().map(|e| e.id).collect::<Vec<_>>(), "in order, each once");
        assert!(history.iter().all(|d| d.execution_id.is_some() == matches!(d.kind, Fired | CaughtUp)), "{history:?}");
    }
}

async fn missed_runs_are_caught_up_within_the_window(bench: Bench) {
    // SCHED-3: by default, one run is caught up within a day
    let daily = bench.create(json!({"cron_expression": "0 13 * * *"})).await.id;
    let short = bench.create(json!({"cron_expression": "0 13 * * *", "missed_window": "1h"})).await.id;
    let weekly = bench.create(json!({"cron_expression": "0 13 * * SAT"})).await.id;
    // 2026-01-10 is a Saturday. No node runs until 15:00 on the next Monday.
    bench.advance_and_fire(2 * 86_400 + 3 * 3600).await;
    assert_eq!(bench.decision_kinds(daily).await, [DecisionKind::Missed, DecisionKind::Missed, DecisionKind::CaughtUp]);
    assert_eq!(bench.decision_kinds(short).await, [DecisionKind::Missed, DecisionKind::Missed, DecisionKind::Missed]);
    assert_eq!(bench.decision_kinds(weekly).await, [DecisionKind::Missed]);
    let reasons: Vec<_> =
        bench.history(daily).await.into_iter().map(|decision| decision.reason.unwrap_or_default()).collect();
    assert_eq!(reasons[0], "it was 2d2h late; the limit is 1d");
    assert_eq!(reasons[1], "it was 1d2h late; the limit is 1d");
    assert_eq!(bench.history(short).await[2].reason.as_deref(), Some("it was 2h late; the limit is 1h"));
    let schedule = bench.get(weekly).await;
    assert_eq!(schedule.next_execution.unwrap().to_string(), "2026-01-17T13:00:00Z");
    assert_eq!((schedule.last_execution, bench.executions(weekly).await.len()), (None, 0));
}

async fn missed_runs_are_caught_up_in_order(bench: Bench) {
    // SCHED-3
    let id =
        bench.create(json!({"every": "1h", "missed": "all", "missed_window": "3h", "overlap": "queue_all"})).await.id;
    bench.advance_and_fire(5 * 3600 + 1800).await;
    use DecisionKind::{CaughtUp, Missed, Queued};
    assert_eq!(bench.decision_kinds(id).await, [Missed, Missed, CaughtUp, Queued, Queued]);
    let due: Vec<_> = bench.history(id).await.iter().map(|decision| decision.due_at.to_string()).collect();
    assert_eq!(due[0], "2026-01-10T13:00:00Z");
    assert!(due.is_sorted());
}

async fn many_missed_occurrences_share_a_decision(bench: Bench) {
    // SCHED-3: one occurrence per second, for a day
    for missed in ["none", "once"] {
        let id = bench.create(json!({"every": "1s", "missed": missed})).await.id;
        bench.advance_and_fire(86_400).await;
        let history = bench.history(id).await;
        assert_eq!(history.len(), 1001, "{missed}");
        let summary = &history[0];
        let first = summary.due_at;
        let last = summary.until.unwrap();
        assert_eq!(last.duration_since(first).as_secs(), 86_400 - 1000 - 1);
        assert_eq!(history[1000].kind, DecisionKind::Fired);
        assert_eq!(bench.executions(id).await.len(), 1);
        assert_eq!(bench.get(id).await.next_execution.unwrap(), bench.now() + jiff::SignedDuration::from_secs(1));
        bench.pause(id, "enough").await;
    }
}

async fn the_newest_missed_runs_are_caught_up(bench: Bench) {
    // SCHED-3: 1,440 occurrences were missed
    let id =
        bench.create(json!({"every": "1m", "missed": "all", "missed_window": "2d", "overlap": "queue_all"})).await.id;
    bench.advance_and_fire(86_400 + 120).await;
    let history = bench.history(id).await;
    assert_eq!(history.len(), 1001);
    assert_eq!((history[0].kind, history[0].until.is_some()), (DecisionKind::Missed, true));
    assert!(history[1..].iter().all(|decision| decision.kind != DecisionKind::Missed), "{:?}", history[1]);
    assert_eq!(history[1].due_at.duration_since(history[0].until.unwrap()).as_secs(), 60);
    assert_eq!(history[1000].due_at, bench.now());
}

async fn refused_runs_are_recorded_with_a_reason(bench: Bench) {
    // SCHED-2: the agent is disabled, removed or busy. The owner is notified.
    let full = bench.create(json!({"every": "1m", "agent_id": "few", "overlap": "allow", "missed": "all"})).await.id;
    let gone = bench.create(json!({"every": "1m", "pause_after_failures": 2})).await.id;
    let off = bench.create(json!({"every": "1m", "overlap": "queue_all", "missed": "all"})).await.id;
    bench.set_agent(gone, "missing").await;
    bench.set_agent(off, "off").await;
    bench.advance_and_fire(60).await;
    assert_eq!(bench.decision_kinds(full).await, [DecisionKind::Fired]);
    for (id, why) in [(gone, "there is no such agent"), (off, "the agent 'off' is disabled")] {
        let history = bench.history(id).await;
        assert_eq!((history[0].kind, history[0].reason.as_deref()), (DecisionKind::Refused, Some(why)));
        assert_eq!(bench.get(id).await.failures, 1);
    }
    let mut notices = bench.notices.take();
    notices.sort_by_key(|(_, text)| text.clone());
    let expected =
        [(ScheduleEvent::Failed, "the agent 'off' is disabled"), (ScheduleEvent::Failed, "there is no such agent")];
    assert_eq!(notices, expected.map(|(event, text)| (event, text.to_owned())));
    bench.advance_and_fire(120).await;
    assert_eq!(
        bench.decision_kinds(full).await,
        [DecisionKind::Fired, DecisionKind::CaughtUp, DecisionKind::Refused],
        "one runs, one is queued"
    );
    let why = bench.history(full).await[2].reason.clone().unwrap();
    assert_eq!(why, "the queue of the agent is full: 2 executions are already waiting, and the queue limit is 1");
    assert_eq!(bench.decision_kinds(off).await, [DecisionKind::Refused; 3]);
    let paused = bench.get(gone).await;
    assert_eq!((paused.state, paused.enabled, paused.next_execution), (ScheduleState::Paused, false, None));
    assert_eq!(paused.paused_reason.as_deref(), Some("it failed 2 times in a row: there is no such agent"));
    assert_eq!(bench.decision_kinds(gone).await, [DecisionKind::Refused, DecisionKind::Missed, DecisionKind::Refused]);
    assert!(bench.notices.take().iter().any(|(event, _)| *event == ScheduleEvent::Paused));
    assert_eq!(bench.scheduler.fire_due().await.unwrap().due, 0, "no occurrence is tried twice");
    assert_eq!(bench.spool_file_count(), 0);
}

async fn a_schedule_without_future_occurrences_is_finished(bench: Bench) {
    // SCHED-1, SCHED-2
    let bench = bench.with_running_agents().await;
    let id = bench.create(json!({"at": "2026-01-10T12:30:00Z", "input_parameters": {"input": "hold"}})).await.id;
    let refused = bench.scheduler.check(&bench.user, bench.draft(json!({"at": "2026-01-10T11:59:59Z"}))).unwrap_err();
    assert_eq!(refused.violations[0].field, "at");
    bench.advance_and_fire(1800).await;
    let schedule = bench.get(id).await;
    assert_eq!((schedule.state, schedule.next_execution), (ScheduleState::Executing, None));
    crate::bench::until("it runs", async || bench.executions(id).await[0].state_name() == StateName::Running).await;
    bench.gate.notify_waiters();
    bench.wait_until_ended(id).await;
    let schedule = bench.get(id).await;
    assert_eq!(
        (schedule.state, schedule.paused_reason.as_deref()),
        (ScheduleState::Paused, Some(scheduler::FINISHED_REASON))
    );
    assert_eq!(schedule.last_status, Some(model::execution::ExecutionStatus::Success));
    assert!(matches!(bench.resume(id).await, Err(store::Error::AlreadyEnded)));
    // The end date of this schedule passes while no node is running.
    let id = bench.create(json!({"every": "1h", "end_at": "2026-01-10T14:00:00Z", "missed": "none"})).await.id;
    bench.advance_and_fire(86_400).await;
    assert_eq!(bench.decision_kinds(id).await, [DecisionKind::Missed]);
    assert_eq!(bench.get(id).await.paused_reason.as_deref(), Some(scheduler::FINISHED_REASON));
    // A new end date reactivates it.
    bench.change(id, json!({"end_at": null})).await;
    assert_eq!(bench.get(id).await.state, ScheduleState::Active);
}

async fn concurrent_schedulers_fire_each_occurrence_once(bench: Bench) {
    // SCHED-4: several schedulers fire at the same time
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(bench.create(json!({"every": "1m", "overlap": "allow"})).await.id);
    }
    let other_nodes = match &bench.location {
        // SQLite is used by a single process, which may still fire concurrently.
        store::Location::Sqlite(_) => vec![],
        store::Location::Postgres(_) => vec![bench.second_node(None).await, bench.second_node(None).await],
    };
    for _ in 0..5 {
        bench.advance(60);
        other_nodes.iter().for_each(|other| other.clock.set(bench.now()));
        let own = [&bench, &bench].into_iter().chain(&other_nodes).map(|bench| bench.scheduler.fire_due());
        let fired = futures::future::join_all(own).await;
        assert_eq!(fired.into_iter().map(|fired| fired.unwrap().fired).sum::<usize>(), 20);
    }
    for id in ids {
        assert_eq!(bench.decision_kinds(id).await, [DecisionKind::Fired; 5]);
        assert_eq!(bench.executions(id).await.len(), 5);
    }
}

async fn occurrences_during_a_stop_follow_the_missed_policy(bench: Bench) {
    // SEC-6, SCHED-3
    let mut ids = Vec::new();
    for missed in ["none", "all"] {
        ids.push(bench.create(json!({"every": "1m", "overlap": "allow", "missed": missed})).await.id);
    }
    let user = bench.user.id;
    let now = bench.now();
    bench.transaction(async move |tx| store::stop_state::stop(tx, user, Some("why"), now).await).await.unwrap();
    bench.advance_and_fire(330).await;
    for id in &ids {
        assert!(bench.history(*id).await.is_empty(), "nothing fires and nothing is decided");
    }
    assert!(matches!(bench.run_now(ids[0]).await, Err(store::Error::Stopped { .. })));
    let now = bench.now();
    bench.transaction(async move |tx| store::stop_state::resume(tx, now).await).await.unwrap();
    bench.advance_and_fire(0).await;
    for (id, kind) in ids.iter().zip([DecisionKind::Missed, DecisionKind::CaughtUp]) {
        let history = bench.history(*id).await;
        let late: Vec<_> = history.iter().filter(|decision| decision.kind == kind).collect();
        assert_eq!((history.len(), late.len()), (5, 4), "the last occurrence is on time: {history:?}");
        for decision in late {
            let reason = decision.reason.as_deref().unwrap();
            assert!(reason.starts_with("everything was stopped at that time: why"), "{reason}");
        }
    }
    assert_eq!(bench.executions(ids[1]).await.len(), 5);
}
