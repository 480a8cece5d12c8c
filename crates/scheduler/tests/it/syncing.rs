//! The schedules of the configuration file come, change and go with it.

use jiff::tz::TimeZone;
use model::schedule::{Kind, Source, State};
use scheduler::{Checked, Synced, check_written};
use serde_json::{Value, json};
use store::executions::Whose;
use store::{Error, schedules};

use crate::bench::Bench;
use crate::on_both;

on_both!(the_table_says_what_the_file_says, nodes_that_start_together);

fn file(entries: Value) -> Vec<Checked> {
    let entries = entries.as_array().unwrap().iter().cloned();
    entries.map(|entry| check_written(model::json::from_value(entry).unwrap(), &TimeZone::UTC).unwrap()).collect()
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|name| (*name).to_owned()).collect()
}

async fn the_table_says_what_the_file_says(bench: Bench) {
    // SCHED-2
    bench.create(json!({"name": "Mine", "every": "1h"})).await;
    let first = json!([
        {"name": "a", "agent_id": "many", "every": "1h"},
        {"name": "b", "agent_id": "many", "cron_expression": "@daily", "enabled": false},
        {"name": "mine", "agent_id": "many", "every": "2h"},
        {"name": "past", "agent_id": "many", "at": "2020-01-01T00:00:00Z"},
    ]);
    let synced = bench.scheduler.sync(file(first.clone())).await.unwrap();
    assert_eq!(synced, Synced { added: names(&["a", "b", "past"]), taken: names(&["mine"]), ..Synced::default() });
    let named = async |name: &str| {
        schedules::named(&mut bench.store().reader().await.unwrap(), Whose::Everyones, name, bench.now()).await
    };
    let a = named("A").await.unwrap();
    assert_eq!((a.source, a.state), (Source::File, State::Active));
    assert_eq!(named("b").await.unwrap().state, State::Paused);
    assert_eq!(named("past").await.unwrap().paused_reason.as_deref(), Some(scheduler::FINISHED));
    assert_eq!(named("mine").await.unwrap().source, Source::Api);

    // The same again changes nothing, whatever became of them meanwhile.
    bench.pause(a.id, "a rest").await;
    bench.advance(1800);
    assert_eq!(
        bench.scheduler.sync(file(first)).await.unwrap(),
        Synced { taken: names(&["mine"]), ..Synced::default() }
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
    let synced = bench.scheduler.sync(file(second)).await.unwrap();
    let wanted = Synced { changed: names(&["A", "b"]), removed: names(&["past"]), ..Synced::default() };
    assert_eq!(synced, wanted);
    assert_eq!(bench.get(a.id).await.next_execution, next, "its times are the same");
    assert_eq!(named("b").await.unwrap().state, State::Active);
    assert!(matches!(named("past").await, Err(Error::NotFound)));

    // Over the API it can be run and paused, but not changed.
    let scheduler = bench.scheduler.clone();
    let id = a.id;
    let removed = bench.transaction(async move |tx| scheduler.remove(tx, Whose::Everyones, id).await);
    assert!(matches!(removed.await, Err(Error::Configured)));
    let checked = bench.scheduler.check_change(
        &bench.user,
        &bench.get(id).await,
        model::json::from_value(json!({"every": "2h"})).unwrap(),
    );
    let scheduler = bench.scheduler.clone();
    let checked = checked.unwrap();
    let changed = bench.transaction(async move |tx| scheduler.change(tx, Whose::Everyones, id, &checked).await);
    assert!(matches!(changed.await, Err(Error::Configured)));
    bench.run_now(id).await.unwrap();
    bench.after(1800).await;
    assert_eq!(bench.kinds(id).await, [Kind::Run, Kind::Fired]);
}

async fn nodes_that_start_together(bench: Bench) {
    // OPS-5
    let entries =
        json!([{"name": "a", "agent_id": "many", "every": "1h"}, {"name": "b", "agent_id": "many", "every": "1h"}]);
    let syncs = futures::future::join_all((0..4).map(|_| bench.scheduler.sync(file(entries.clone())))).await;
    let added: Vec<_> = syncs.into_iter().flat_map(|synced| synced.unwrap().added).collect();
    assert_eq!(added, ["a", "b"]);
}
