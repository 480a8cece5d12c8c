//! What people do with schedules takes effect at once, and only what they may do.

use jiff::SignedDuration;
use model::schedule::{Kind, State};
use serde_json::json;
use store::Error;
use store::executions::Whose;

use crate::bench::Bench;
use crate::on_both;

on_both!(checked_before_it_is_kept, changed_at_once, paused_and_resumed, run_by_hand, previewed_as_they_will_be);

async fn checked_before_it_is_kept(bench: Bench) {
    // SCHED-1, SCHED-2
    let wrong = |fields| {
        let refused = bench.scheduler.check(&bench.user, bench.draft(fields)).unwrap_err();
        refused.violations.into_iter().map(|violation| violation.field).collect::<Vec<_>>()
    };
    let all = json!({"name": "", "agent_id": "nobody", "cron_expression": "61 * * * *", "jitter": "never"});
    assert_eq!(wrong(all), ["name", "jitter", "cron_expression", "agent_id"]);
    assert_eq!(wrong(json!({"agent_id": "off", "every": "1h"})), ["agent_id"], "it must be enabled");
    assert_eq!(wrong(json!({"cron_expression": "0 0 31 2 *"})), ["cron_expression"]);
    assert_eq!(wrong(json!({"every": "1h", "end_at": "2026-01-10T12:30:00Z"})), ["end_at"]);
    let before = json!({"name": "Tidy", "every": "1h", "start_at": "2026-02-01T00:00:00Z"});
    let schedule = bench.create(before.clone()).await;
    assert_eq!((schedule.state, schedule.active), (State::Created, false), "until it begins");
    assert_eq!(schedule.next_execution.unwrap().to_string(), "2026-02-01T00:00:00Z");
    let checked = bench.scheduler.check(&bench.user, bench.draft(json!({"name": "TIDY", "every": "2h"}))).unwrap();
    let scheduler = bench.scheduler.clone();
    let owner = bench.user.id;
    let again = bench.transaction(async move |tx| scheduler.create(tx, owner, &checked).await);
    assert!(matches!(again.await, Err(Error::Taken("name"))));
    let off = bench.create(json!({"every": "1h", "enabled": false})).await;
    assert_eq!((off.state, off.next_execution), (State::Paused, None));
    assert_eq!(bench.resume(off.id).await.unwrap().state, State::Active);
}

async fn changed_at_once(bench: Bench) {
    // SCHED-2
    let id = bench.create(json!({"cron_expression": "@daily"})).await.id;
    let changed = bench.change(id, json!({"cron_expression": "*/10 * * * *"})).await;
    assert_eq!(changed.next_execution.unwrap().to_string(), "2026-01-10T12:10:00Z");
    bench.after(600).await;
    assert_eq!(bench.kinds(id).await, [Kind::Fired]);
    // What has nothing to do with times leaves them alone.
    let next = bench.get(id).await.next_execution;
    bench.advance(599);
    assert_eq!(bench.change(id, json!({"overlap": "allow", "name": "other"})).await.next_execution, next);
    bench.after(1).await;
    assert_eq!(bench.kinds(id).await, [Kind::Fired; 2]);
    // One that is due, and is put off before anybody has acted.
    bench.advance(600);
    bench.change(id, json!({"every": "1h", "start_at": "2026-01-11T00:00:00Z"})).await;
    bench.after(0).await;
    assert_eq!(bench.kinds(id).await.len(), 2);
    assert_eq!(bench.change(id, json!({"enabled": false})).await.state, State::Paused);
    assert!(bench.change(id, json!({"enabled": true})).await.enabled);
    // An agent that is gone does not keep anybody from changing the rest.
    bench.repoint(id, "nobody").await;
    assert_eq!(bench.change(id, json!({"name": "third"})).await.settings.name, "third");
}

async fn paused_and_resumed(bench: Bench) {
    // SCHED-2, SCHED-3: what falls into a pause is not made up for
    let id = bench.create(json!({"every": "1h", "missed": "all"})).await.id;
    let paused = bench.pause(id, "holidays").await;
    assert_eq!((paused.state, paused.enabled, paused.active), (State::Paused, false, false));
    assert_eq!((paused.paused_reason.as_deref(), paused.next_execution), (Some("holidays"), None));
    assert_eq!(bench.pause(id, "again").await.paused_reason.as_deref(), Some("holidays"));
    bench.after(3 * 3600 + 600).await;
    assert!(bench.history(id).await.is_empty());
    let resumed = bench.resume(id).await.unwrap();
    assert_eq!((resumed.state, resumed.paused_reason, resumed.paused_at), (State::Active, None, None));
    assert_eq!(resumed.next_execution.unwrap().to_string(), "2026-01-10T16:00:00Z");
    bench.after(0).await;
    let history = bench.history(id).await;
    assert_eq!(bench.kinds(id).await, [Kind::Paused; 3]);
    assert_eq!(history[0].reason.as_deref(), Some("holidays"));
    bench.after(3000).await;
    assert_eq!(bench.kinds(id).await[3..], [Kind::Fired]);
    assert_eq!(bench.resume(id).await.unwrap().state, State::Executing, "it was not paused");
}

async fn run_by_hand(bench: Bench) {
    // SCHED-2
    let id = bench.create(json!({"every": "1h", "input_parameters": {"input": "ok"}})).await.id;
    bench.pause(id, "by hand only").await;
    let one = bench.run_now(id).await.unwrap();
    let two = bench.run_now(id).await.unwrap();
    let history = bench.history(id).await;
    assert_eq!(bench.kinds(id).await, [Kind::Run; 2]);
    assert_eq!(history.iter().map(|d| d.execution_id.unwrap()).collect::<Vec<_>>(), [one, two]);
    assert_eq!(bench.get(id).await.last_execution, Some(bench.now()));
    assert_eq!(bench.get(id).await.state, State::Paused);
    let few = bench.create(json!({"every": "1h", "agent_id": "few"})).await.id;
    bench.run_now(few).await.unwrap();
    bench.run_now(few).await.unwrap();
    assert!(matches!(bench.run_now(few).await, Err(Error::QueueFull { .. })));
    assert_eq!(bench.kinds(few).await, [Kind::Run; 2], "what was refused has left nothing");
    let scheduler = bench.scheduler.clone();
    let whose = Whose::Users(model::UserId::new(uuid::Uuid::from_u128(7)));
    let theirs = bench.transaction(async move |tx| scheduler.pause(tx, whose, few, None).await);
    assert!(matches!(theirs.await, Err(Error::NotFound)));
}

async fn previewed_as_they_will_be(bench: Bench) {
    // SCHED-1: with jitter, which is no chance: what is shown is what happens
    let schedule = bench.create(json!({"cron_expression": "0 * * * *", "jitter": "30m"})).await;
    let next = bench.scheduler.next(&schedule, 3).unwrap();
    assert_eq!(Some(next[0]), schedule.next_execution);
    for (n, at) in next.iter().enumerate() {
        bench.clock.set(*at - SignedDuration::from_micros(1));
        bench.after(0).await;
        assert_eq!(bench.kinds(schedule.id).await.len(), n);
        bench.clock.set(*at);
        bench.after(0).await;
        let last = bench.history(schedule.id).await.pop().unwrap();
        assert_eq!((last.decided_at, last.due_at.as_second() % 3600), (*at, 0));
    }
}
