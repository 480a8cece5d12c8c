//! Synchronization of the schedules of the configuration file with the table.

use jiff::tz::TimeZone;
use model::schedule::{DecisionKind, ScheduleSource, ScheduleState};
use scheduler::{CheckedSchedule, SyncReport, check_draft};
use serde_json::{Value, json};
use store::executions::OwnerScope;
use store::{Error, schedules};

use crate::bench::Bench;
use crate::on_both;

on_both!(the_table_matches_the_file_after_a_sync, concurrent_syncs_add_each_schedule_once);

fn file(entries: Value) -> Vec<CheckedSchedule> {
    let entries = entries.as_array().unwrap().iter().cloned();
    entries.map(|entry| check_draft(model::json::from_value(entry).unwrap(), &TimeZone::UTC).unwrap()).collect()
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|name| (*name).to_owned()).collect()
}

async fn the_table_matches_the_file_after_a_sync(bench: Bench) {
    // SCHED-2
    bench.create(json!({"name": "Mine", "every": "1h"})).await;
    let first = json!([
        {"name": "a", "agent_id": "many", "every": "1h"},
        {"name": "b", "agent_id": "many", "cron_expression": "@daily", "enabled": false},
        {"name": "mine", "agent_id": "many", "every": "2h"},
        {"name": "past", "agent_id": "many", "at": "2020-01-01T00:00:00Z"},
    ]);
    let report = bench.scheduler.sync(file(first.clone())).await.unwrap();
    let expected =
        SyncReport { added: names(&["a", "b", "past"]), name_conflicts: names(&["mine"]), ..SyncReport::default() };
    assert_eq!(report, expected);
    let named = async |name: &str| {
        schedules::get_by_name(&mut bench.store().reader().await.unwrap(), OwnerScope::AllUsers, name, bench.now())
            .await
    };
    let a = named("A").await.unwrap();
    assert_eq!((a.source, a.state), (ScheduleSource::File, ScheduleState::Active));
    assert_eq!(named("b").await.unwrap().state, ScheduleState::Paused);
    assert_eq!(named("past").await.unwrap().paused_reason.as_deref(), Some(scheduler::FINISHED_REASON));
    assert_eq!(named("mine").await.unwrap().source, ScheduleSource::Api);

    // Syncing the same file again changes nothing, even if schedules were paused in the meantime.
    bench.pause(a.id, "a rest").await;
    bench.advance(1800);
    assert_eq!(
        bench.scheduler.sync(file(first)).await.unwrap(),
        SyncReport { name_conflicts: names(&["mine"]), ..SyncReport::default() }
    );
    let paused = named("a").await.unwrap();
    assert_eq!((paused.id, paused.paused_reason.as_deref()), (a.id, Some("a rest")));
    bench.resume(a.id).await.unwrap();
    let next = bench.get(a.id).await.next_execution;
    assert_eq!(next.unwrap().to_string(), "2026-01-10T13:00:00Z");

    let second = json!([
        {"name": "A", "agent_id": "many", "every": "1h", "overlap": "allow"},
        {"name": "b", "agent_id": "many", "cron_expression": "@daily"},
    ]);
    let report = bench.scheduler.sync(file(second)).await.unwrap();
    let expected = SyncReport { changed: names(&["A", "b"]), removed: names(&["past"]), ..SyncReport::default() };
    assert_eq!(report, expected);
    assert_eq!(bench.get(a.id).await.next_execution, next, "its timing is the same");
    assert_eq!(named("b").await.unwrap().state, ScheduleState::Active);
    assert!(matches!(named("past").await, Err(Error::NotFound)));

    // A schedule of the file can be run and paused over the API, but not changed or removed.
    let scheduler = bench.scheduler.clone();
    let id = a.id;
    let removed = bench.transaction(async move |tx| scheduler.remove(tx, OwnerScope::AllUsers, id).await);
    assert!(matches!(removed.await, Err(Error::DefinedInConfig)));
    let checked = bench.scheduler.check_change(
        &bench.user,
        &bench.get(id).await,
        model::json::from_value(json!({"every": "2h"})).unwrap(),
    );
    let scheduler = bench.scheduler.clone();
    let checked = checked.unwrap();
    let changed = bench.transaction(async move |tx| scheduler.change(tx, OwnerScope::AllUsers, id, &checked).await);
    assert!(matches!(changed.await, Err(Error::DefinedInConfig)));
    bench.run_now(id).await.unwrap();
    bench.advance_and_fire(1800).await;
    assert_eq!(bench.decision_kinds(id).await, [DecisionKind::Run, DecisionKind::Fired]);
}

async fn concurrent_syncs_add_each_schedule_once(bench: Bench) {
    // OPS-5
    let entries =
        json!([{"name": "a", "agent_id": "many", "every": "1h"}, {"name": "b", "agent_id": "many", "every": "1h"}]);
    let syncs = futures::future::join_all((0..4).map(|_| bench.scheduler.sync(file(entries.clone())))).await;
    let added: Vec<_> = syncs.into_iter().flat_map(|report| report.unwrap().added).collect();
    assert_eq!(added, ["a", "b"]);
}
