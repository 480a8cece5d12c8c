//! Schedules under their owners, the swap by which one of several acts, and what became of each of their times.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use model::UserId;
use model::execution::Status;
use model::schedule::{Decision, Draft, Kind, Schedule, Settings, Source, State};
use store::executions::Whose;
use store::schedules::{
    Counts, Filter, Kept, New, Next, advance, around, change, counts, create, decide, due, first_due, followed, get,
    give_up, history, is_decided, list, lock, lock_due, look, named, pause, queued, queued_and_free, redecide, remove,
    resume, running, started,
};
use store::{Error, Store, data};
use uuid::Uuid;

use crate::{Bench, on_both, write};

on_both!(
    read_as_written,
    of_one_owner,
    names_are_unique,
    listed_and_paged,
    due_in_their_order,
    swapped_once,
    left_to_whoever_has_it,
    decided_once,
    waiting_and_free,
    erased_with_their_owner,
    old_decisions_go
);

fn settings(name: &str) -> Settings {
    let draft =
        Draft { name: Some(name.into()), agent_id: Some("a".into()), every: Some("1h".into()), ..Draft::default() };
    draft.check(&TimeZone::UTC).unwrap()
}

impl Bench {
    fn minutes(&self, minutes: i64) -> Timestamp {
        self.now() + SignedDuration::from_mins(minutes)
    }

    fn schedule(&self, name: &str, minutes: i64) -> New {
        let at = self.minutes(minutes);
        let next = Some(Next { due_at: at - SignedDuration::from_secs(1), at });
        New { id: self.clock.id(), settings: settings(name), source: Source::Api, paused: None, next }
    }

    pub(crate) async fn scheduled(&self, owner: UserId, name: &str, minutes: i64) -> Schedule {
        let new = self.schedule(name, minutes);
        let now = self.now();
        write!(self, tx => create(tx, owner, &new, now)).unwrap()
    }

    async fn kept(&self, id: Uuid) -> Kept {
        look(&mut self.store.reader().await.unwrap(), Whose::Everyones, id, self.now()).await.unwrap()
    }

    async fn decided(&self, decision: Decision) -> bool {
        write!(self, tx => decide(tx, &decision)).unwrap()
    }
}

fn decision(schedule_id: Uuid, due_at: Timestamp, kind: Kind) -> Decision {
    Decision { schedule_id, due_at, decided_at: due_at, kind, reason: None, execution_id: None, until: None }
}

async fn read_as_written(bench: Bench) {
    // SCHED-1, SCHED-2
    let alice = bench.alice;
    let now = bench.now();
    let mut new = bench.schedule("Tidy", 60);
    new.settings.start_at = Some(bench.minutes(30));
    let id = new.id;
    let wanted = Schedule {
        id,
        settings: new.settings.clone(),
        enabled: true,
        active: false,
        state: State::Created,
        paused_reason: None,
        paused_at: None,
        last_execution: None,
        last_status: None,
        next_execution: Some(bench.minutes(60)),
        failures: 0,
        source: Source::Api,
        created_at: now,
        updated_at: now,
    };
    assert_eq!(write!(bench, tx => create(tx, alice, &new, now)).unwrap(), wanted);
    let kept = bench.kept(id).await;
    assert_eq!((&kept.schedule, kept.owner, kept.version), (&wanted, alice, 1));
    assert_eq!(kept.due_at, Some(bench.minutes(60) - SignedDuration::from_secs(1)));

    bench.clock.advance(Duration::from_secs(1800));
    let now = bench.now();
    let active = get(&mut bench.store.reader().await.unwrap(), Whose::Users(alice), id, now).await.unwrap();
    assert_eq!((active.state, active.active), (State::Active, true), "its start has come");
    let mut run = bench.run(alice, "a");
    run.execution.schedule_id = Some(id);
    let execution = bench.submit(run).await.unwrap();
    write!(bench, tx => started(tx, id, now)).unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    let executing = get(&mut reader, Whose::Users(alice), id, now).await.unwrap();
    assert_eq!((executing.state, executing.active, executing.last_execution), (State::Executing, true, Some(now)));
    assert_eq!(running(&mut reader, id).await.unwrap(), [execution]);
    drop(reader);

    let changed = Settings { name: "Other".into(), ..settings("Other") };
    let next = Next { due_at: bench.minutes(5), at: bench.minutes(6) };
    let shown = write!(bench, tx => async {
        let kept = lock(tx, Whose::Users(alice), id, now).await?;
        followed(tx, &kept, Some(Status::Failure), 2).await?;
        change(tx, &kept, &changed, Some(next), now).await
    })
    .unwrap();
    assert_eq!((shown.settings.name.as_str(), shown.next_execution), ("Other", Some(next.at)));
    assert_eq!((shown.failures, shown.last_status, shown.updated_at), (2, Some(Status::Failure), now));
    let paused = write!(bench, tx => async {
        let kept = lock(tx, Whose::Users(alice), id, now).await?;
        pause(tx, &kept, "a rest", now).await
    })
    .unwrap();
    assert_eq!((paused.enabled, paused.state, paused.next_execution), (false, State::Paused, None));
    assert_eq!((paused.paused_reason.as_deref(), paused.paused_at), (Some("a rest"), Some(now)));
    assert_eq!(bench.kept(id).await.due_at, Some(next.due_at), "what it will have missed is known");
    let resumed = write!(bench, tx => async {
        let kept = lock(tx, Whose::Users(alice), id, now).await?;
        resume(tx, &kept, Some(next), now).await
    })
    .unwrap();
    assert_eq!((resumed.state, resumed.paused_reason, resumed.paused_at), (State::Executing, None, None));
    assert_eq!((resumed.next_execution, resumed.failures), (Some(next.at), 0));
    let stale = Kept { version: 1, ..kept };
    assert!(write!(bench, tx => pause(tx, &stale, "too late", now)).is_err());
    write!(bench, tx => give_up(tx, id, "unreadable", now)).unwrap();
    assert_eq!(bench.kept(id).await.schedule.paused_reason.as_deref(), Some("unreadable"));
}

async fn of_one_owner(bench: Bench) {
    // OPS-6: theirs alone, but for administrators
    let alice = bench.alice;
    let bob = bench.bob;
    let now = bench.now();
    let id = bench.scheduled(alice, "hers", 1).await.id;
    bench.decided(decision(id, now, Kind::Fired)).await;
    let mut reader = bench.store.reader().await.unwrap();
    for whose in [Whose::Users(alice), Whose::Everyones] {
        assert_eq!(get(&mut reader, whose, id, now).await.unwrap().id, id);
        assert_eq!(named(&mut reader, whose, " HERS ", now).await.unwrap().id, id);
        assert_eq!(history(&mut reader, whose, id, None, 9).await.unwrap().rows.len(), 1);
        assert!(around(&mut reader, whose, id, now).await.unwrap().0.is_some());
    }
    let theirs = Whose::Users(bob);
    assert!(matches!(get(&mut reader, theirs, id, now).await, Err(Error::NotFound)));
    assert!(matches!(named(&mut reader, theirs, "hers", now).await, Err(Error::NotFound)));
    assert!(matches!(history(&mut reader, theirs, id, None, 9).await, Err(Error::NotFound)));
    assert!(matches!(around(&mut reader, theirs, id, now).await, Err(Error::NotFound)));
    assert!(list(&mut reader, theirs, &Filter::default(), None, 9, now).await.unwrap().rows.is_empty());
    assert!(matches!(write!(bench, tx => lock(tx, theirs, id, now)), Err(Error::NotFound)));
    assert!(matches!(write!(bench, tx => remove(tx, theirs, id)), Err(Error::NotFound)));
    write!(bench, tx => remove(tx, Whose::Users(alice), id)).unwrap();
    assert_eq!(bench.count("SELECT COUNT(*) FROM decisions").await, 0);
}

async fn names_are_unique(bench: Bench) {
    // SCHED-2
    let alice = bench.alice;
    let bob = bench.bob;
    let now = bench.now();
    bench.scheduled(alice, "Émile", 1).await;
    let other = bench.scheduled(bob, "other", 1).await.id;
    let same = bench.schedule("éMILE", 1);
    assert!(matches!(write!(bench, tx => create(tx, bob, &same, now)), Err(Error::Taken("name"))));
    let renamed = write!(bench, tx => async {
        let kept = lock(tx, Whose::Users(bob), other, now).await?;
        change(tx, &kept, &settings("émile"), None, now).await
    });
    assert!(matches!(renamed, Err(Error::Taken("name"))));
    let rename = |store: Store, name: String| async move {
        let job = store.transaction(async move |tx| {
            let kept = lock(tx, Whose::Everyones, other, now).await?;
            change(tx, &kept, &settings(&name), None, now).await
        });
        job.await
    };
    let all = futures::future::join_all((0..4).map(|n| rename(bench.store.clone(), format!("n{n}")))).await;
    assert!(all.iter().all(Result::is_ok), "one after the other");
}

async fn listed_and_paged(bench: Bench) {
    let alice = bench.alice;
    let now = bench.now();
    let mut ids = Vec::new();
    for n in 0..7 {
        let mut new = bench.schedule(&format!("s{n}"), 1);
        new.source = if n % 2 == 0 { Source::File } else { Source::Api };
        new.paused = (n == 3).then(|| "off".to_owned());
        new.settings.agent_id = if n < 2 { "x".into() } else { "y".into() };
        ids.push(new.id);
        write!(bench, tx => create(tx, alice, &new, now)).unwrap();
    }
    let mut reader = bench.store.reader().await.unwrap();
    let mut found = async |filter: Filter| {
        let mut found = Vec::new();
        let mut cursor = None;
        loop {
            let page = list(&mut reader, Whose::Users(alice), &filter, cursor.as_ref(), 3, now).await.unwrap();
            found.extend(page.rows.iter().map(|schedule| schedule.id));
            cursor = page.next;
            if cursor.is_none() {
                return found;
            }
        }
    };
    assert_eq!(found(Filter::default()).await, ids);
    assert_eq!(found(Filter { agent_id: Some("x".into()), ..Filter::default() }).await, ids[..2]);
    assert_eq!(found(Filter { source: Some(Source::Api), ..Filter::default() }).await, [ids[1], ids[3], ids[5]]);
    assert_eq!(found(Filter { enabled: Some(false), ..Filter::default() }).await, [ids[3]]);
    let named = |text: &str| Filter { reference: Some(text.to_owned()), ..Filter::default() };
    assert_eq!(found(named(" S4 ")).await, [ids[4]]);
    assert_eq!(found(named("s")).await, [] as [Uuid; 0], "a name is named in full");
    let id = ids[5].to_string();
    assert_eq!(found(named(&id)).await, [ids[5]]);
    assert_eq!(found(named(&id[28..].to_uppercase())).await, [ids[5]]);
    assert_eq!(found(named("%")).await, [] as [Uuid; 0]);
    assert_eq!(counts(&mut reader, now).await.unwrap(), Counts { all: 7, paused: 1, due: 0 });
    assert_eq!(counts(&mut reader, bench.minutes(1)).await.unwrap(), Counts { all: 7, paused: 1, due: 6 });
}

async fn due_in_their_order(bench: Bench) {
    // SCHED-4
    let alice = bench.alice;
    let now = bench.now();
    let late = bench.scheduled(alice, "late", 3).await;
    let soon = bench.scheduled(alice, "soon", 1).await;
    let mut new = bench.schedule("never", 1);
    new.next = None;
    write!(bench, tx => create(tx, alice, &new, now)).unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    assert_eq!(first_due(&mut reader).await.unwrap(), Some(bench.minutes(1)));
    let mut ids = async |at: Timestamp, limit: i64| {
        let rows = due(&mut reader, at, limit).await.unwrap();
        rows.iter()
            .map(|(id, kept)| (kept.as_ref().unwrap().schedule.id == *id).then_some(*id).unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(bench.minutes(1) - SignedDuration::from_micros(1), 9).await, [] as [Uuid; 0]);
    assert_eq!(ids(bench.minutes(1), 9).await, [soon.id]);
    assert_eq!(ids(bench.minutes(9), 9).await, [soon.id, late.id]);
    assert_eq!(ids(bench.minutes(9), 1).await, [soon.id]);
}

async fn swapped_once(bench: Bench) {
    // SCHED-4: of many who have seen the same, one acts
    let id = bench.scheduled(bench.alice, "s", 0).await.id;
    let kept = bench.kept(id).await;
    let next = Next { due_at: bench.minutes(60), at: bench.minutes(61) };
    let swap = |store: Store, kept: Kept| async move {
        let job = store.transaction(async move |tx| -> store::Result<bool> {
            Ok(lock_due(tx, &kept).await? && advance(tx, &kept, Some(next)).await?)
        });
        job.await.unwrap()
    };
    let all = futures::future::join_all((0..10).map(|_| swap(bench.store.clone(), kept.clone()))).await;
    assert_eq!(all.iter().filter(|acted| **acted).count(), 1);
    let after = bench.kept(id).await;
    assert_eq!((after.schedule.next_execution, after.due_at), (Some(next.at), Some(next.due_at)));
    assert_eq!(after.schedule.updated_at, kept.schedule.updated_at, "nobody has changed it");
    // One that was paused or changed meanwhile is not as it was seen.
    let stale = after.clone();
    let again = after.clone();
    let now = bench.now();
    write!(bench, tx => pause(tx, &after, "off", now)).unwrap();
    assert!(!write!(bench, tx => advance(tx, &stale, Some(next))).unwrap());
    assert!(!write!(bench, tx => lock_due(tx, &again)).unwrap());
}

async fn left_to_whoever_has_it(bench: Bench) {
    // SCHED-4: a node that is frozen in the middle keeps nobody waiting
    let id = bench.scheduled(bench.alice, "s", 0).await.id;
    let kept = bench.kept(id).await;
    let store = bench.store.clone();
    let (holds, held) = tokio::sync::oneshot::channel();
    let (release, released) = tokio::sync::oneshot::channel::<()>();
    let mine = kept.clone();
    let first = tokio::spawn(async move {
        let job = store.transaction(async move |tx| {
            assert!(lock_due(tx, &mine).await?);
            holds.send(()).unwrap();
            if !matches!(tokio::time::timeout(Duration::from_millis(300), released).await, Ok(Ok(()))) {
                // SQLite has one writer: the other can only come afterwards.
            }
            advance(tx, &mine, None).await
        });
        job.await.unwrap()
    });
    held.await.unwrap();
    let second = write!(bench, tx => lock_due(tx, &kept)).unwrap();
    drop(release);
    assert!(!second);
    assert!(first.await.unwrap());
}

async fn decided_once(bench: Bench) {
    // SCHED-2: each time has one decision
    let id = bench.scheduled(bench.alice, "s", 0).await.id;
    let now = bench.now();
    let first = Decision {
        reason: Some("because".into()),
        execution_id: Some(Uuid::from_u128(7)),
        ..decision(id, now, Kind::Fired)
    };
    assert!(bench.decided(first.clone()).await);
    assert!(!bench.decided(decision(id, now, Kind::Missed)).await);
    let summary = Decision { until: Some(bench.minutes(30)), ..decision(id, bench.minutes(10), Kind::Missed) };
    assert!(bench.decided(summary.clone()).await);
    let last = decision(id, bench.minutes(40), Kind::Skipped);
    assert!(bench.decided(last.clone()).await);
    let mut reader = bench.store.reader().await.unwrap();
    for (minutes, wanted) in [(-1, false), (0, true), (5, false), (10, true), (30, true), (31, false), (40, true)] {
        assert_eq!(is_decided(&mut reader, id, bench.minutes(minutes)).await.unwrap(), wanted, "{minutes}");
    }
    let whose = Whose::Everyones;
    assert_eq!(
        around(&mut reader, whose, id, bench.minutes(20)).await.unwrap(),
        (Some(summary.clone()), Some(last.clone()))
    );
    assert_eq!(around(&mut reader, whose, id, bench.minutes(-1)).await.unwrap(), (None, Some(first.clone())));
    let page = history(&mut reader, whose, id, None, 2).await.unwrap();
    assert_eq!(page.rows, [last, summary], "the latest first");
    let page = history(&mut reader, whose, id, page.next.as_ref(), 2).await.unwrap();
    assert_eq!((page.rows, page.next), (vec![first], None));
}

async fn waiting_and_free(bench: Bench) {
    // SCHED-3
    let alice = bench.alice;
    let now = bench.now();
    let id = bench.scheduled(alice, "s", 0).await.id;
    let mut run = bench.run(alice, "a");
    run.execution.schedule_id = Some(id);
    let execution = bench.submit(run).await.unwrap();
    bench.decided(decision(id, bench.minutes(2), Kind::Queued)).await;
    bench.decided(decision(id, bench.minutes(1), Kind::Queued)).await;
    let mut reader = bench.store.reader().await.unwrap();
    let waiting: Vec<_> = queued(&mut reader, id, 9).await.unwrap().into_iter().map(|d| d.due_at).collect();
    assert_eq!(waiting, [bench.minutes(1), bench.minutes(2)]);
    assert!(queued_and_free(&mut reader, 9).await.unwrap().is_empty());
    write!(bench, tx => store::executions::cancel(tx, Whose::Everyones, execution, now)).unwrap();
    assert_eq!(queued_and_free(&mut reader, 9).await.unwrap(), [id]);
    drop(reader);
    let fired = Decision {
        execution_id: Some(execution),
        decided_at: bench.minutes(5),
        ..decision(id, bench.minutes(1), Kind::Fired)
    };
    let again = fired.clone();
    assert!(write!(bench, tx => redecide(tx, &fired)).unwrap());
    assert!(!write!(bench, tx => redecide(tx, &again)).unwrap(), "it waits no more");
    let kept = bench.kept(id).await;
    write!(bench, tx => pause(tx, &kept, "off", now)).unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    let kinds: Vec<_> =
        history(&mut reader, Whose::Everyones, id, None, 9).await.unwrap().rows.iter().map(|d| d.kind).collect();
    assert_eq!(kinds, [Kind::Paused, Kind::Fired]);
    assert!(queued_and_free(&mut reader, 9).await.unwrap().is_empty());
}

async fn erased_with_their_owner(bench: Bench) {
    // OPS-7
    let alice = bench.alice;
    let bob = bench.bob;
    for (owner, name) in [(alice, "hers"), (bob, "his")] {
        let id = bench.scheduled(owner, name, 1).await.id;
        bench.decided(decision(id, bench.now(), Kind::Fired)).await;
    }
    let mut file = bench.schedule("of the file", 1);
    let now = bench.now();
    file.source = Source::File;
    write!(bench, tx => create(tx, alice, &file, now)).unwrap();
    write!(bench, tx => data::erase(tx, alice)).unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    let left = list(&mut reader, Whose::Everyones, &Filter::default(), None, 9, bench.now()).await.unwrap().rows;
    assert_eq!(left.iter().map(|schedule| schedule.settings.name.as_str()).collect::<Vec<_>>(), ["his", "of the file"]);
    assert_eq!(bench.count("SELECT COUNT(*) FROM decisions").await, 1);
}

async fn old_decisions_go(bench: Bench) {
    // OPS-7: in more than one batch; what waits stays
    use store::housekeeping::{Removed, Retention, sweep};
    let id = bench.scheduled(bench.alice, "s", 0).await.id;
    let start = bench.now();
    let old: Vec<_> = (0..600).map(|n| decision(id, start + SignedDuration::from_secs(n), Kind::Fired)).collect();
    write!(bench, tx => async {
        for decision in &old {
            decide(tx, decision).await?;
        }
        decide(tx, &decision(id, start - SignedDuration::from_secs(1), Kind::Queued)).await
    })
    .unwrap();
    bench.clock.advance(Duration::from_secs(30 * 24 * 3600 + 599));
    let removed = sweep(&bench.store, Retention::default(), bench.now()).await.unwrap();
    assert_eq!(removed, Removed { decisions: 600, ..Removed::default() });
    assert_eq!(bench.count("SELECT COUNT(*) FROM decisions").await, 1);
    let keep = Retention { executions: None, ..Retention::default() };
    bench.decided(decision(id, start, Kind::Fired)).await;
    assert_eq!(sweep(&bench.store, keep, bench.now()).await.unwrap(), Removed::default());
}
