//! Schedules: access, the compare-and-swap of due schedules, and the decisions about occurrences.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use model::UserId;
use model::execution::ExecutionStatus;
use model::schedule::{
    Decision, DecisionKind, Schedule, ScheduleDraft, ScheduleSettings, ScheduleSource, ScheduleState,
};
use store::executions::OwnerScope;
use store::schedules::{
    NewSchedule, NextOccurrence, ScheduleCounts, ScheduleFilter, ScheduleRow, advance, counts, create,
    decisions_around, due_schedules, get, get_by_name, get_row, history, is_decided, list, lock_due, lock_row,
    next_due_at, pause, pause_unreadable, queued_decisions, ready_with_queued, record_decision, record_run_end,
    record_start, remove, resolve_queued, resume, running_executions, update,
};
use store::{Error, Store, data};
use uuid::Uuid;

use crate::{Bench, on_both, write};

on_both!(
    schedules_are_read_as_written,
    schedules_are_visible_only_to_their_owner,
    names_are_unique,
    schedules_are_filtered_and_paged,
    due_schedules_are_returned_in_order,
    only_one_node_advances_a_schedule,
    a_locked_schedule_is_skipped,
    an_occurrence_has_one_decision,
    queued_occurrences_are_resolved,
    erasing_a_user_removes_schedules,
    old_decisions_are_removed
);

fn settings(name: &str) -> ScheduleSettings {
    let draft = ScheduleDraft {
        name: Some(name.into()),
        agent_id: Some("a".into()),
        every: Some("1h".into()),
        ..ScheduleDraft::default()
    };
    draft.check(&TimeZone::UTC).unwrap()
}

impl Bench {
    fn minutes(&self, minutes: i64) -> Timestamp {
        self.now() + SignedDuration::from_mins(minutes)
    }

    fn schedule(&self, name: &str, minutes: i64) -> NewSchedule {
        let fire_at = self.minutes(minutes);
        let next = Some(NextOccurrence { due_at: fire_at - SignedDuration::from_secs(1), fire_at });
        NewSchedule {
            id: self.clock.id(),
            settings: settings(name),
            source: ScheduleSource::Api,
            paused_reason: None,
            next,
        }
    }

    pub(crate) async fn scheduled(&self, owner: UserId, name: &str, minutes: i64) -> Schedule {
        let new = self.schedule(name, minutes);
        let now = self.now();
        write!(self, tx => create(tx, owner, &new, now)).unwrap()
    }

    async fn row(&self, id: Uuid) -> ScheduleRow {
        get_row(&mut self.store.reader().await.unwrap(), OwnerScope::AllUsers, id, self.now()).await.unwrap()
    }

    async fn add_decision(&self, decision: Decision) -> bool {
        write!(self, tx => record_decision(tx, &decision)).unwrap()
    }
}

fn decision(schedule_id: Uuid, due_at: Timestamp, kind: DecisionKind) -> Decision {
    Decision { schedule_id, due_at, decided_at: due_at, kind, reason: None, execution_id: None, until: None }
}

async fn schedules_are_read_as_written(bench: Bench) {
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
        state: ScheduleState::Created,
        paused_reason: None,
        paused_at: None,
        last_execution: None,
        last_status: None,
        next_execution: Some(bench.minutes(60)),
        failures: 0,
        source: ScheduleSource::Api,
        created_at: now,
        updated_at: now,
    };
    assert_eq!(write!(bench, alice, tx => create(tx, alice, &new, now)).unwrap(), wanted);
    let row = bench.row(id).await;
    assert_eq!((&row.schedule, row.owner, row.version), (&wanted, alice, 1));
    assert_eq!(row.due_at, Some(bench.minutes(60) - SignedDuration::from_secs(1)));

    bench.clock.advance(Duration::from_secs(1800));
    let now = bench.now();
    let active = get(&mut bench.store.reader().await.unwrap(), OwnerScope::User(alice), id, now).await.unwrap();
    assert_eq!((active.state, active.active), (ScheduleState::Active, true), "its start time has passed");
    let mut run = bench.new_execution(alice, "a");
    run.execution.schedule_id = Some(id);
    let execution = bench.enqueue(run).await.unwrap();
    write!(bench, tx => record_start(tx, id, now)).unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    let executing = get(&mut reader, OwnerScope::User(alice), id, now).await.unwrap();
    assert_eq!(
        (executing.state, executing.active, executing.last_execution),
        (ScheduleState::Executing, true, Some(now))
    );
    assert_eq!(running_executions(&mut reader, id).await.unwrap(), [execution]);
    drop(reader);

    let changed = ScheduleSettings { name: "Other".into(), ..settings("Other") };
    let next = NextOccurrence { due_at: bench.minutes(5), fire_at: bench.minutes(6) };
    let shown = write!(bench, tx => async {
        let row = lock_row(tx, OwnerScope::User(alice), id, now).await?;
        record_run_end(tx, &row, Some(ExecutionStatus::Failure), 2).await?;
        update(tx, &row, &changed, Some(next), now).await
    })
    .unwrap();
    assert_eq!((shown.settings.name.as_str(), shown.next_execution), ("Other", Some(next.fire_at)));
    assert_eq!((shown.failures, shown.last_status, shown.updated_at), (2, Some(ExecutionStatus::Failure), now));
    let paused = write!(bench, tx => async {
        let row = lock_row(tx, OwnerScope::User(alice), id, now).await?;
        pause(tx, &row, "a rest", now).await
    })
    .unwrap();
    assert_eq!((paused.enabled, paused.state, paused.next_execution), (false, ScheduleState::Paused, None));
    assert_eq!((paused.paused_reason.as_deref(), paused.paused_at), (Some("a rest"), Some(now)));
    assert_eq!(bench.row(id).await.due_at, Some(next.due_at), "the next occurrence stays known");
    let resumed = write!(bench, tx => async {
        let row = lock_row(tx, OwnerScope::User(alice), id, now).await?;
        resume(tx, &row, Some(next), now).await
    })
    .unwrap();
    assert_eq!((resumed.state, resumed.paused_reason, resumed.paused_at), (ScheduleState::Executing, None, None));
    assert_eq!((resumed.next_execution, resumed.failures), (Some(next.fire_at), 0));
    let stale = ScheduleRow { version: 1, ..row };
    assert!(write!(bench, tx => pause(tx, &stale, "too late", now)).is_err());
    write!(bench, tx => pause_unreadable(tx, id, "unreadable", now)).unwrap();
    assert_eq!(bench.row(id).await.schedule.paused_reason.as_deref(), Some("unreadable"));
}

async fn schedules_are_visible_only_to_their_owner(bench: Bench) {
    // OPS-6: only their owner and administrators see them
    let alice = bench.alice;
    let bob = bench.bob;
    let now = bench.now();
    let id = bench.scheduled(alice, "hers", 1).await.id;
    bench.add_decision(decision(id, now, DecisionKind::Fired)).await;
    let mut reader = bench.store.reader().await.unwrap();
    for scope in [OwnerScope::User(alice), OwnerScope::AllUsers] {
        assert_eq!(get(&mut reader, scope, id, now).await.unwrap().id, id);
        assert_eq!(get_by_name(&mut reader, scope, " HERS ", now).await.unwrap().id, id);
        assert_eq!(history(&mut reader, scope, id, None, 9).await.unwrap().rows.len(), 1);
        assert!(decisions_around(&mut reader, scope, id, now).await.unwrap().0.is_some());
    }
    let theirs = OwnerScope::User(bob);
    assert!(matches!(get(&mut reader, theirs, id, now).await, Err(Error::NotFound)));
    assert!(matches!(get_by_name(&mut reader, theirs, "hers", now).await, Err(Error::NotFound)));
    assert!(matches!(history(&mut reader, theirs, id, None, 9).await, Err(Error::NotFound)));
    assert!(matches!(decisions_around(&mut reader, theirs, id, now).await, Err(Error::NotFound)));
    assert!(list(&mut reader, theirs, &ScheduleFilter::default(), None, 9, now).await.unwrap().rows.is_empty());
    assert!(matches!(write!(bench, tx => lock_row(tx, theirs, id, now)), Err(Error::NotFound)));
    assert!(matches!(write!(bench, tx => remove(tx, theirs, id)), Err(Error::NotFound)));
    write!(bench, tx => remove(tx, OwnerScope::User(alice), id)).unwrap();
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
    assert!(matches!(write!(bench, bob, tx => create(tx, bob, &same, now)), Err(Error::AlreadyExists("name"))));
    let renamed = write!(bench, tx => async {
        let row = lock_row(tx, OwnerScope::User(bob), other, now).await?;
        update(tx, &row, &settings("émile"), None, now).await
    });
    assert!(matches!(renamed, Err(Error::AlreadyExists("name"))));
    let rename = |store: Store, name: String| async move {
        let job = store.transaction(async move |tx| {
            let row = lock_row(tx, OwnerScope::AllUsers, other, now).await?;
            update(tx, &row, &settings(&name), None, now).await
        });
        job.await
    };
    let all = futures::future::join_all((0..4).map(|n| rename(bench.store.clone(), format!("n{n}")))).await;
    assert!(all.iter().all(Result::is_ok), "one after the other");
}

async fn schedules_are_filtered_and_paged(bench: Bench) {
    let alice = bench.alice;
    let now = bench.now();
    let mut ids = Vec::new();
    for n in 0..7 {
        let mut new = bench.schedule(&format!("s{n}"), 1);
        new.source = if n % 2 == 0 { ScheduleSource::File } else { ScheduleSource::Api };
        new.paused_reason = (n == 3).then(|| "off".to_owned());
        new.settings.agent_id = if n < 2 { "x".into() } else { "y".into() };
        ids.push(new.id);
        write!(bench, alice, tx => create(tx, alice, &new, now)).unwrap();
    }
    let mut reader = bench.store.reader().await.unwrap();
    let mut found = async |filter: ScheduleFilter| {
        let mut found = Vec::new();
        let mut cursor = None;
        loop {
            let page = list(&mut reader, OwnerScope::User(alice), &filter, cursor.as_ref(), 3, now).await.unwrap();
            found.extend(page.rows.iter().map(|schedule| schedule.id));
            cursor = page.next;
            if cursor.is_none() {
                return found;
            }
        }
    };
    assert_eq!(found(ScheduleFilter::default()).await, ids);
    assert_eq!(found(ScheduleFilter { agent_id: Some("x".into()), ..ScheduleFilter::default() }).await, ids[..2]);
    assert_eq!(
        found(ScheduleFilter { source: Some(ScheduleSource::Api), ..ScheduleFilter::default() }).await,
        [ids[1], ids[3], ids[5]]
    );
    assert_eq!(found(ScheduleFilter { enabled: Some(false), ..ScheduleFilter::default() }).await, [ids[3]]);
    let named = |text: &str| ScheduleFilter { reference: Some(text.to_owned()), ..ScheduleFilter::default() };
    assert_eq!(found(named(" S4 ")).await, [ids[4]]);
    assert_eq!(found(named("s")).await, [] as [Uuid; 0], "a name must be complete");
    let id = ids[5].to_string();
    assert_eq!(found(named(&id)).await, [ids[5]]);
    assert_eq!(found(named(&id[28..].to_uppercase())).await, [ids[5]]);
    assert_eq!(found(named("%")).await, [] as [Uuid; 0]);
    assert_eq!(counts(&mut reader, now).await.unwrap(), ScheduleCounts { all: 7, paused: 1, due: 0 });
    assert_eq!(counts(&mut reader, bench.minutes(1)).await.unwrap(), ScheduleCounts { all: 7, paused: 1, due: 6 });
}

async fn due_schedules_are_returned_in_order(bench: Bench) {
    // SCHED-4
    let alice = bench.alice;
    let now = bench.now();
    let late = bench.scheduled(alice, "late", 3).await;
    let soon = bench.scheduled(alice, "soon", 1).await;
    let mut new = bench.schedule("never", 1);
    new.next = None;
    write!(bench, alice, tx => create(tx, alice, &new, now)).unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    assert_eq!(next_due_at(&mut reader).await.unwrap(), Some(bench.minutes(1)));
    let mut ids = async |at: Timestamp, limit: i64| {
        let rows = due_schedules(&mut reader, at, limit).await.unwrap();
        rows.iter()
            .map(|(id, row)| (row.as_ref().unwrap().schedule.id == *id).then_some(*id).unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(bench.minutes(1) - SignedDuration::from_micros(1), 9).await, [] as [Uuid; 0]);
    assert_eq!(ids(bench.minutes(1), 9).await, [soon.id]);
    assert_eq!(ids(bench.minutes(9), 9).await, [soon.id, late.id]);
    assert_eq!(ids(bench.minutes(9), 1).await, [soon.id]);
}

async fn only_one_node_advances_a_schedule(bench: Bench) {
    // SCHED-4: of many concurrent readers, one acts
    let id = bench.scheduled(bench.alice, "s", 0).await.id;
    let row = bench.row(id).await;
    let next = NextOccurrence { due_at: bench.minutes(60), fire_at: bench.minutes(61) };
    let swap = |store: Store, row: ScheduleRow| async move {
        let job = store.transaction(async move |tx| -> store::Result<bool> {
            Ok(lock_due(tx, &row).await? && advance(tx, &row, Some(next)).await?)
        });
        job.await.unwrap()
    };
    let all = futures::future::join_all((0..10).map(|_| swap(bench.store.clone(), row.clone()))).await;
    assert_eq!(all.iter().filter(|acted| **acted).count(), 1);
    let after = bench.row(id).await;
    assert_eq!((after.schedule.next_execution, after.due_at), (Some(next.fire_at), Some(next.due_at)));
    assert_eq!(after.schedule.updated_at, row.schedule.updated_at, "advancing is not an update");
    // A schedule that was paused or changed meanwhile is not advanced.
    let stale = after.clone();
    let again = after.clone();
    let now = bench.now();
    write!(bench, tx => pause(tx, &after, "off", now)).unwrap();
    assert!(!write!(bench, tx => advance(tx, &stale, Some(next))).unwrap());
    assert!(!write!(bench, tx => lock_due(tx, &again)).unwrap());
}

async fn a_locked_schedule_is_skipped(bench: Bench) {
    // SCHED-4: a suspended node does not block other nodes
    let id = bench.scheduled(bench.alice, "s", 0).await.id;
    let row = bench.row(id).await;
    let store = bench.store.clone();
    let (holds, held) = tokio::sync::oneshot::channel();
    let (release, released) = tokio::sync::oneshot::channel::<()>();
    let mine = row.clone();
    let first = tokio::spawn(async move {
        let job = store.transaction(async move |tx| {
            assert!(lock_due(tx, &mine).await?);
            holds.send(()).unwrap();
            if !matches!(tokio::time::timeout(Duration::from_millis(300), released).await, Ok(Ok(()))) {
                // SQLite has one writer, so the second transaction runs later.
            }
            advance(tx, &mine, None).await
        });
        job.await.unwrap()
    });
    held.await.unwrap();
    let second = write!(bench, tx => lock_due(tx, &row)).unwrap();
    drop(release);
    assert!(!second);
    assert!(first.await.unwrap());
}

async fn an_occurrence_has_one_decision(bench: Bench) {
    // SCHED-2: each occurrence has one decision
    let id = bench.scheduled(bench.alice, "s", 0).await.id;
    let now = bench.now();
    let first = Decision {
        reason: Some("because".into()),
        execution_id: Some(Uuid::from_u128(7)),
        ..decision(id, now, DecisionKind::Fired)
    };
    assert!(bench.add_decision(first.clone()).await);
    assert!(!bench.add_decision(decision(id, now, DecisionKind::Missed)).await);
    let summary = Decision { until: Some(bench.minutes(30)), ..decision(id, bench.minutes(10), DecisionKind::Missed) };
    assert!(bench.add_decision(summary.clone()).await);
    let last = decision(id, bench.minutes(40), DecisionKind::Skipped);
    assert!(bench.add_decision(last.clone()).await);
    let mut reader = bench.store.reader().await.unwrap();
    for (minutes, wanted) in [(-1, false), (0, true), (5, false), (10, true), (30, true), (31, false), (40, true)] {
        assert_eq!(is_decided(&mut reader, id, bench.minutes(minutes)).await.unwrap(), wanted, "{minutes}");
    }
    let scope = OwnerScope::AllUsers;
    assert_eq!(
        decisions_around(&mut reader, scope, id, bench.minutes(20)).await.unwrap(),
        (Some(summary.clone()), Some(last.clone()))
    );
    assert_eq!(decisions_around(&mut reader, scope, id, bench.minutes(-1)).await.unwrap(), (None, Some(first.clone())));
    let page = history(&mut reader, scope, id, None, 2).await.unwrap();
    assert_eq!(page.rows, [last, summary], "the latest first");
    let page = history(&mut reader, scope, id, page.next.as_ref(), 2).await.unwrap();
    assert_eq!((page.rows, page.next), (vec![first], None));
}

async fn queued_occurrences_are_resolved(bench: Bench) {
    // SCHED-3
    let alice = bench.alice;
    let now = bench.now();
    let id = bench.scheduled(alice, "s", 0).await.id;
    let mut run = bench.new_execution(alice, "a");
    run.execution.schedule_id = Some(id);
    let execution = bench.enqueue(run).await.unwrap();
    bench.add_decision(decision(id, bench.minutes(2), DecisionKind::Queued)).await;
    bench.add_decision(decision(id, bench.minutes(1), DecisionKind::Queued)).await;
    let mut reader = bench.store.reader().await.unwrap();
    let waiting: Vec<_> = queued_decisions(&mut reader, id, 9).await.unwrap().into_iter().map(|d| d.due_at).collect();
    assert_eq!(waiting, [bench.minutes(1), bench.minutes(2)]);
    assert!(ready_with_queued(&mut reader, 9).await.unwrap().is_empty());
    write!(bench, tx => store::executions::cancel(tx, OwnerScope::AllUsers, execution, now)).unwrap();
    assert_eq!(ready_with_queued(&mut reader, 9).await.unwrap(), [id]);
    drop(reader);
    let fired = Decision {
        execution_id: Some(execution),
        decided_at: bench.minutes(5),
        ..decision(id, bench.minutes(1), DecisionKind::Fired)
    };
    let again = fired.clone();
    assert!(write!(bench, tx => resolve_queued(tx, &fired)).unwrap());
    assert!(!write!(bench, tx => resolve_queued(tx, &again)).unwrap(), "it is no longer queued");
    let row = bench.row(id).await;
    write!(bench, tx => pause(tx, &row, "off", now)).unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    let kinds: Vec<_> =
        history(&mut reader, OwnerScope::AllUsers, id, None, 9).await.unwrap().rows.iter().map(|d| d.kind).collect();
    assert_eq!(kinds, [DecisionKind::Paused, DecisionKind::Fired]);
    assert!(ready_with_queued(&mut reader, 9).await.unwrap().is_empty());
}

async fn erasing_a_user_removes_schedules(bench: Bench) {
    // OPS-7
    let alice = bench.alice;
    let bob = bench.bob;
    for (owner, name) in [(alice, "hers"), (bob, "his")] {
        let id = bench.scheduled(owner, name, 1).await.id;
        bench.add_decision(decision(id, bench.now(), DecisionKind::Fired)).await;
    }
    let mut file = bench.schedule("from the file", 1);
    let now = bench.now();
    file.source = ScheduleSource::File;
    write!(bench, alice, tx => create(tx, alice, &file, now)).unwrap();
    write!(bench, alice, tx => data::erase(tx, alice)).unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    let left =
        list(&mut reader, OwnerScope::AllUsers, &ScheduleFilter::default(), None, 9, bench.now()).await.unwrap().rows;
    assert_eq!(
        left.iter().map(|schedule| schedule.settings.name.as_str()).collect::<Vec<_>>(),
        ["his", "from the file"]
    );
    assert_eq!(bench.count("SELECT COUNT(*) FROM decisions").await, 1);
}

async fn old_decisions_are_removed(bench: Bench) {
    // OPS-7: in more than one batch; queued decisions stay
    use store::housekeeping::{RemovedRows, Retention, sweep};
    let id = bench.scheduled(bench.alice, "s", 0).await.id;
    let start = bench.now();
    let old: Vec<_> =
        (0..600).map(|n| decision(id, start + SignedDuration::from_secs(n), DecisionKind::Fired)).collect();
    write!(bench, tx => async {
        for decision in &old {
            record_decision(tx, decision).await?;
        }
        record_decision(tx, &decision(id, start - SignedDuration::from_secs(1), DecisionKind::Queued)).await
    })
    .unwrap();
    bench.clock.advance(Duration::from_secs(30 * 24 * 3600 + 599));
    let removed = sweep(&bench.store, Retention::default(), bench.now()).await.unwrap();
    assert_eq!(removed, RemovedRows { decisions: 600, ..RemovedRows::default() });
    assert_eq!(bench.count("SELECT COUNT(*) FROM decisions").await, 1);
    let keep = Retention { executions: None, ..Retention::default() };
    bench.add_decision(decision(id, start, DecisionKind::Fired)).await;
    assert_eq!(sweep(&bench.store, keep, bench.now()).await.unwrap(), RemovedRows::default());
}
