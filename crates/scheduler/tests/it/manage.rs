//! Management of schedules: creation, changes, pauses, manual runs and previews.

use jiff::SignedDuration;
use model::schedule::{DecisionKind, ScheduleState};
use serde_json::json;
use store::Error;
use store::executions::OwnerScope;

use crate::bench::Bench;
use crate::on_both;

on_both!(
    invalid_schedules_are_rejected,
    changes_take_effect_immediately,
    a_pause_lasts_until_it_is_resumed,
    a_schedule_can_be_run_manually,
    previews_match_the_actual_runs
);

async fn invalid_schedules_are_rejected(bench: Bench) {
    // SCHED-1, SCHED-2
    let violated_fields = |fields| {
        let refused = bench.scheduler.check(&bench.user, bench.draft(fields)).unwrap_err();
        refused.violations.into_iter().map(|violation| violation.field).collect::<Vec<_>>()
    };
    let all = json!({"name": "", "agent_id": "missing", "cron_expression": "61 * * * *", "jitter": "never"});
    assert_eq!(violated_fields(all), ["name", "jitter", "cron_expression", "agent_id"]);
    assert_eq!(violated_fields(json!({"agent_id": "off", "every": "1h"})), ["agent_id"], "the agent must be enabled");
    assert_eq!(violated_fields(json!({"cron_expression": "0 0 31 2 *"})), ["cron_expression"]);
    assert_eq!(violated_fields(json!({"every": "1h", "end_at": "2026-01-10T12:30:00Z"})), ["end_at"]);
    let before = json!({"name": "Tidy", "every": "1h", "start_at": "2026-02-01T00:00:00Z"});
    let schedule = bench.create(before.clone()).await;
    assert_eq!((schedule.state, schedule.active), (ScheduleState::Created, false), "until its start");
    assert_eq!(schedule.next_execution.unwrap().to_string(), "2026-02-01T00:00:00Z");
    let checked = bench.scheduler.check(&bench.user, bench.draft(json!({"name": "TIDY", "every": "2h"}))).unwrap();
    let scheduler = bench.scheduler.clone();
    let owner = bench.user.id;
    let again = bench.transaction(async move |tx| scheduler.create(tx, owner, &checked).await);
    assert!(matches!(again.await, Err(Error::AlreadyExists("name"))));
    let off = bench.create(json!({"every": "1h", "enabled": false})).await;
    assert_eq!((off.state, off.next_execution), (ScheduleState::Paused, None));
    assert_eq!(bench.resume(off.id).await.unwrap().state, ScheduleState::Active);
}

async fn changes_take_effect_immediately(bench: Bench) {
    // SCHED-2
    let id = bench.create(json!({"cron_expression": "@daily"})).await.id;
    let changed = bench.change(id, json!({"cron_expression": "*/10 * * * *"})).await;
    assert_eq!(changed.next_execution.unwrap().to_string(), "2026-01-10T12:10:00Z");
    bench.advance_and_fire(600).await;
    assert_eq!(bench.decision_kinds(id).await, [DecisionKind::Fired]);
    // A change of other settings keeps the next occurrence.
    let next = bench.get(id).await.next_execution;
    bench.advance(599);
    assert_eq!(bench.change(id, json!({"overlap": "allow", "name": "other"})).await.next_execution, next);
    bench.advance_and_fire(1).await;
    assert_eq!(bench.decision_kinds(id).await, [DecisionKind::Fired; 2]);
    // A due schedule is changed to a later time before it is fired.
    bench.advance(600);
    bench.change(id, json!({"every": "1h", "start_at": "2026-01-11T00:00:00Z"})).await;
    bench.advance_and_fire(0).await;
    assert_eq!(bench.decision_kinds(id).await.len(), 2);
    assert_eq!(bench.change(id, json!({"enabled": false})).await.state, ScheduleState::Paused);
    assert!(bench.change(id, json!({"enabled": true})).await.enabled);
    // Other settings can be changed even if the agent no longer exists.
    bench.set_agent(id, "missing").await;
    assert_eq!(bench.change(id, json!({"name": "third"})).await.settings.name, "third");
}

async fn a_pause_lasts_until_it_is_resumed(bench: Bench) {
    // SCHED-2, SCHED-3: occurrences during a pause are not caught up
    let id = bench.create(json!({"every": "1h", "missed": "all"})).await.id;
    let paused = bench.pause(id, "holidays").await;
    assert_eq!((paused.state, paused.enabled, paused.active), (ScheduleState::Paused, false, false));
    assert_eq!((paused.paused_reason.as_deref(), paused.next_execution), (Some("holidays"), None));
    assert_eq!(bench.pause(id, "again").await.paused_reason.as_deref(), Some("holidays"));
    bench.advance_and_fire(3 * 3600 + 600).await;
    assert!(bench.history(id).await.is_empty());
    let resumed = bench.resume(id).await.unwrap();
    assert_eq!((resumed.state, resumed.paused_reason, resumed.paused_at), (ScheduleState::Active, None, None));
    assert_eq!(resumed.next_execution.unwrap().to_string(), "2026-01-10T16:00:00Z");
    bench.advance_and_fire(0).await;
    let history = bench.history(id).await;
    assert_eq!(bench.decision_kinds(id).await, [DecisionKind::Paused; 3]);
    assert_eq!(history[0].reason.as_deref(), Some("holidays"));
    bench.advance_and_fire(3000).await;
    assert_eq!(bench.decision_kinds(id).await[3..], [DecisionKind::Fired]);
    assert_eq!(bench.resume(id).await.unwrap().state, ScheduleState::Executing, "it was not paused");
}

async fn a_schedule_can_be_run_manually(bench: Bench) {
    // SCHED-2
    let id = bench.create(json!({"every": "1h", "input_parameters": {"input": "ok"}})).await.id;
    bench.pause(id, "by hand only").await;
    let one = bench.run_now(id).await.unwrap();
    let two = bench.run_now(id).await.unwrap();
    let history = bench.history(id).await;
    assert_eq!(bench.decision_kinds(id).await, [DecisionKind::Run; 2]);
    assert_eq!(history.iter().map(|d| d.execution_id.unwrap()).collect::<Vec<_>>(), [one, two]);
    assert_eq!(bench.get(id).await.last_execution, Some(bench.now()));
    assert_eq!(bench.get(id).await.state, ScheduleState::Paused);
    let few = bench.create(json!({"every": "1h", "agent_id": "few"})).await.id;
    bench.run_now(few).await.unwrap();
    bench.run_now(few).await.unwrap();
    assert!(matches!(bench.run_now(few).await, Err(Error::QueueFull { .. })));
    assert_eq!(bench.decision_kinds(few).await, [DecisionKind::Run; 2], "a refused run leaves no decision");
    let scheduler = bench.scheduler.clone();
    let scope = OwnerScope::User(model::UserId::new(uuid::Uuid::from_u128(7)));
    let paused = bench.transaction(async move |tx| scheduler.pause(tx, scope, few, None).await);
    assert!(matches!(paused.await, Err(Error::NotFound)));
}

async fn previews_match_the_actual_runs(bench: Bench) {
    // SCHED-1, SCHED-2: jitter is deterministic, so the preview is exact
    let schedule = bench.create(json!({"cron_expression": "0 * * * *", "jitter": "30m"})).await;
    let next = bench.scheduler.upcoming(&schedule, 3).unwrap();
    assert_eq!(Some(next[0]), schedule.next_execution);
    for (n, at) in next.iter().enumerate() {
        bench.clock.set(*at - SignedDuration::from_micros(1));
        bench.advance_and_fire(0).await;
        assert_eq!(bench.decision_kinds(schedule.id).await.len(), n);
        bench.clock.set(*at);
        bench.advance_and_fire(0).await;
        let last = bench.history(schedule.id).await.pop().unwrap();
        assert_eq!((last.decided_at, last.due_at.as_second() % 3600), (*at, 0));
    }
}
