//! Reminders: access, firing, and their relation to tasks.

use std::time::Duration;

use model::reminder::{DEFAULT_TIME, Reminder, ReminderDraft, ReminderStatus};
use model::task::{Task, TaskFilter};
use model::{User, UserId};
use store::reminders::{DueReminder, ReminderFilter};
use store::undo::undo;
use store::{Error, data, reminders, tasks};

use crate::{Bench, on_both, write};

on_both!(
    a_reminder_needs_a_task_of_its_owner,
    tasks_are_counted_by_filter,
    each_firing_is_claimed_once,
    a_late_reminder_fires_once_and_continues,
    reminders_are_dropped_and_restored_with_their_task,
    a_completed_task_accepts_no_reminder,
    only_the_owner_can_delete_a_reminder,
    imported_reminders_without_a_task_are_dropped,
);

fn reminder(bench: &Bench, task: uuid::Uuid) -> Reminder {
    let draft = ReminderDraft {
        task_id: task.to_string(),
        remind_at: Some("2026-01-11T09:00:00Z".to_owned()),
        repeat_interval_minutes: Some(30),
        repeat_count: Some(3),
        ..ReminderDraft::default()
    };
    draft.check(&bench.clock, &User::local(jiff::tz::TimeZone::UTC), DEFAULT_TIME).unwrap()
}

async fn listed(bench: &Bench, owner: UserId) -> Vec<Reminder> {
    let mut reader = bench.store.reader().await.unwrap();
    reminders::list(&mut reader, owner, &ReminderFilter::default(), None, 50).await.unwrap().rows
}

async fn a_reminder_needs_a_task_of_its_owner(bench: Bench) {
    // AGENT-13, TASK-1
    let alice = bench.alice;
    let bob = bench.bob;
    let now = bench.now();
    let task = bench.add(alice, bench.titled("dentist")).await;
    let expected = reminder(&bench, task.id);
    let set = async |owner| {
        let expected = expected.clone();
        bench
            .change(owner, move |tx, step| Box::pin(async move { reminders::create(tx, step, &expected, now).await }))
            .await
    };
    assert!(matches!(set(bob).await, Err(Error::NotFound)));
    assert_eq!(set(alice).await.unwrap().1.title, "dentist");
    assert_eq!(listed(&bench, alice).await, std::slice::from_ref(&expected));
    assert_eq!(listed(&bench, bob).await, []);
    let undone = write!(bench, alice, tx => undo(tx, alice)).unwrap();
    assert_eq!((undone.undone, undone.tasks.len()), (model::task::TaskChangeKind::Reminded, 1));
    assert_eq!(listed(&bench, alice).await, [], "AGENT-13: undo removes the reminder and keeps the task");
    assert_eq!(bench.titles(alice).await, ["dentist"]);
    set(alice).await.unwrap();
    write!(bench, alice, tx => data::erase(tx, alice)).unwrap();
    assert_eq!(listed(&bench, alice).await, []);
}

async fn tasks_are_counted_by_filter(bench: Bench) {
    for n in 0..7 {
        bench.add(bench.alice, bench.titled(&format!("task {n}"))).await;
    }
    let mut reader = bench.store.reader().await.unwrap();
    let filter = TaskFilter { text: Some("task".into()), ..TaskFilter::default() };
    assert_eq!(tasks::count(&mut reader, bench.alice, &filter).await.unwrap(), 7);
    assert_eq!(tasks::count(&mut reader, bench.bob, &filter).await.unwrap(), 0);
    let page = tasks::list(&mut reader, bench.alice, &filter, None, 3).await.unwrap();
    assert_eq!((page.rows.len(), page.next.is_some()), (3, true));
}

/// Adds a task of Alice and a reminder for it: at 09:00 on the next day, three times, every 30 minutes.
async fn reminded(bench: &Bench) -> (Task, Reminder) {
    let task = bench.add(bench.alice, bench.titled("dentist")).await;
    let expected = reminder(bench, task.id);
    let now = bench.now();
    let set = expected.clone();
    let set = bench
        .change(bench.alice, move |tx, step| Box::pin(async move { reminders::create(tx, step, &set, now).await }));
    set.await.unwrap();
    (task, expected)
}

async fn due(bench: &Bench) -> Vec<DueReminder> {
    reminders::due_reminders(&mut bench.store.reader().await.unwrap(), bench.now(), 50).await.unwrap()
}

async fn next(bench: &Bench) -> Option<String> {
    let next = reminders::next_due_at(&mut bench.store.reader().await.unwrap()).await.unwrap();
    next.map(|at| at.to_string())
}

async fn fire(bench: &Bench, due: &DueReminder) -> Option<(Reminder, Task)> {
    let due = due.clone();
    let now = bench.now();
    write!(bench, tx => reminders::fire(tx, &due, now)).unwrap()
}

/// Advances the clock to 09:00 on the next day.
fn advance_to_due(bench: &Bench) {
    let due: jiff::Timestamp = "2026-01-11T09:00:00Z".parse().unwrap();
    bench.clock.advance(due.duration_since(bench.now()).unsigned_abs());
}

async fn each_firing_is_claimed_once(bench: Bench) {
    // TASK-4: by compare-and-swap
    let (task, expected) = reminded(&bench).await;
    assert_eq!(due(&bench).await, []);
    advance_to_due(&bench);
    let found = due(&bench).await;
    assert_eq!(found, [DueReminder { owner: bench.alice, reminder: expected.clone(), at: expected.remind_at }]);
    let tries = (0..8).map(|_| fire(&bench, &found[0]));
    let fired: Vec<_> = futures::future::join_all(tries).await.into_iter().flatten().collect();
    let next_at = Some("2026-01-11T09:30:00Z".parse().unwrap());
    let once = Reminder { fired_count: 1, next_at, ..expected };
    assert_eq!(fired, [(once.clone(), task)]);
    assert_eq!(next(&bench).await.as_deref(), Some("2026-01-11T09:30:00Z"));
    for expected in [2, 3] {
        bench.clock.advance(Duration::from_secs(1800));
        let (now, _) = fire(&bench, &due(&bench).await[0]).await.unwrap();
        assert_eq!(now.fired_count, expected);
    }
    assert_eq!(
        listed(&bench, bench.alice).await,
        [Reminder { fired_count: 3, status: ReminderStatus::Done, next_at: None, ..once }]
    );
    assert_eq!(next(&bench).await, None);
}

async fn a_late_reminder_fires_once_and_continues(bench: Bench) {
    // TASK-4
    reminded(&bench).await;
    advance_to_due(&bench);
    bench.clock.advance(Duration::from_secs(45 * 60));
    let late = due(&bench).await;
    assert_eq!(late.len(), 1);
    assert_eq!(fire(&bench, &late[0]).await.unwrap().0.fired_count, 1);
    assert_eq!(due(&bench).await, [], "missed repetitions are not caught up");
    assert_eq!(next(&bench).await.as_deref(), Some("2026-01-11T10:00:00Z"));
}

async fn reminders_are_dropped_and_restored_with_their_task(bench: Bench) {
    // TASK-4, AGENT-13
    let alice = bench.alice;
    let (task, expected) = reminded(&bench).await;
    let dropped = Reminder { status: ReminderStatus::Dropped, next_at: None, ..expected.clone() };
    bench.complete(alice, task.id).await.unwrap();
    assert_eq!(listed(&bench, alice).await, std::slice::from_ref(&dropped));
    advance_to_due(&bench);
    assert_eq!(due(&bench).await, []);
    write!(bench, alice, tx => undo(tx, alice)).unwrap();
    assert_eq!(listed(&bench, alice).await, std::slice::from_ref(&expected));
    let found = due(&bench).await;
    assert_eq!(found.len(), 1, "late, but not lost");

    bench.delete(alice, task.id).await.unwrap();
    assert_eq!(listed(&bench, alice).await, std::slice::from_ref(&dropped));
    assert_eq!(fire(&bench, &found[0]).await, None, "it was dropped meanwhile");
    write!(bench, alice, tx => undo(tx, alice)).unwrap();
    assert!(fire(&bench, &found[0]).await.is_some());
    // A reminder that was dropped before the deletion stays dropped.
    let id = task.id;
    bench.complete(alice, id).await.unwrap();
    bench.delete(alice, id).await.unwrap();
    write!(bench, alice, tx => undo(tx, alice)).unwrap();
    assert_eq!(listed(&bench, alice).await[0].status, ReminderStatus::Dropped, "the task is completed");
    write!(bench, alice, tx => undo(tx, alice)).unwrap();
    assert_eq!(listed(&bench, alice).await[0].status, ReminderStatus::Scheduled);
    // Undoing the reopening completes the task again.
    bench.complete(alice, id).await.unwrap();
    let reopened = model::task::TaskPatch { status: Some("pending".into()), ..model::task::TaskPatch::default() };
    let reopened = reopened.check(model::task::TaskLimits::default(), &User::local(jiff::tz::TimeZone::UTC)).unwrap();
    let now = bench.now();
    let change =
        bench.change(alice, move |tx, step| Box::pin(async move { tasks::change(tx, step, id, &reopened, now).await }));
    change.await.unwrap();
    let mut more = reminder_in(&bench, id);
    more.remind_at = bench.now();
    let set = more.clone();
    let set =
        bench.change(alice, move |tx, step| Box::pin(async move { reminders::create(tx, step, &set, now).await }));
    set.await.unwrap();
    assert_eq!(due(&bench).await.len(), 1);
    for _ in 0..2 {
        write!(bench, alice, tx => undo(tx, alice)).unwrap();
    }
    assert_eq!(due(&bench).await, []);
}

/// Returns a reminder in one hour.
fn reminder_in(bench: &Bench, task: uuid::Uuid) -> Reminder {
    let remind_at = bench.now() + Duration::from_secs(3600);
    Reminder { remind_at, id: bench.clock.id(), task_id: task, ..template() }
}

fn template() -> Reminder {
    Reminder {
        id: uuid::Uuid::nil(),
        task_id: uuid::Uuid::nil(),
        remind_at: jiff::Timestamp::UNIX_EPOCH,
        repeat_interval_minutes: None,
        repeat_count: None,
        fired_count: 0,
        status: ReminderStatus::Scheduled,
        recurrence: None,
        before_minutes: None,
        time_zone: None,
        snoozed_until: None,
        next_at: None,
    }
}

async fn a_completed_task_accepts_no_reminder(bench: Bench) {
    let (task, _) = reminded(&bench).await;
    bench.complete(bench.alice, task.id).await.unwrap();
    let more = reminder_in(&bench, task.id);
    let now = bench.now();
    let set = bench
        .change(bench.alice, move |tx, step| Box::pin(async move { reminders::create(tx, step, &more, now).await }));
    assert!(matches!(set.await, Err(Error::AlreadyEnded)));
}

async fn only_the_owner_can_delete_a_reminder(bench: Bench) {
    let alice = bench.alice;
    let bob = bench.bob;
    let (task, expected) = reminded(&bench).await;
    let filter = ReminderFilter { status: Some(ReminderStatus::Scheduled), task_id: Some(task.id) };
    let mut reader = bench.store.reader().await.unwrap();
    assert_eq!(reminders::list(&mut reader, alice, &filter, None, 50).await.unwrap().rows.len(), 1);
    for none in [
        ReminderFilter { status: Some(ReminderStatus::Done), ..ReminderFilter::default() },
        ReminderFilter { task_id: Some(expected.id), ..ReminderFilter::default() },
    ] {
        assert_eq!(reminders::list(&mut reader, alice, &none, None, 50).await.unwrap().rows, []);
    }
    let id = expected.id;
    let delete = async |owner| {
        bench.change(owner, move |tx, step| Box::pin(async move { reminders::delete(tx, step, id).await })).await
    };
    assert!(matches!(delete(bob).await, Err(Error::NotFound)));
    assert_eq!(reminders::get(&mut reader, alice, id).await.unwrap(), expected);
    assert!(matches!(reminders::get(&mut reader, bob, id).await, Err(Error::NotFound)));
    delete(alice).await.unwrap();
    assert!(matches!(delete(alice).await, Err(Error::NotFound)));
    assert_eq!(listed(&bench, alice).await, []);
    write!(bench, alice, tx => undo(tx, alice)).unwrap();
    assert_eq!(listed(&bench, alice).await, [expected], "AGENT-13");
    delete(alice).await.unwrap();
    assert_eq!(listed(&bench, alice).await, []);
}

async fn imported_reminders_without_a_task_are_dropped(bench: Bench) {
    // OPS-7
    let alice = bench.alice;
    let now = bench.now();
    let task = bench.add(alice, bench.titled("here")).await;
    let fired = Reminder {
        repeat_interval_minutes: Some(60),
        fired_count: 4,
        remind_at: now - Duration::from_secs(4 * 3600),
        id: bench.clock.id(),
        ..reminder_in(&bench, task.id)
    };
    let list = vec![fired, reminder_in(&bench, bench.clock.id())];
    write!(bench, alice, tx => data::import_reminders(tx, alice, &list, now)).unwrap();
    let states: Vec<_> = listed(&bench, alice).await.into_iter().map(|reminder| reminder.status).collect();
    assert_eq!(states, [ReminderStatus::Scheduled, ReminderStatus::Dropped]);
    assert_eq!(next(&bench).await.as_deref(), Some("2026-01-10T13:00:00Z"), "it continues from the current time");
}
