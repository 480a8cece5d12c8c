//! Recurring tasks: completion creates the next task, and undo removes it.

use jiff::tz::TimeZone;
use model::UserId;
use model::reminder::Reminder;
use model::task::{ChangedTask, Task, TaskChange, TaskDraft, TaskFilter, TaskLimits, TaskPatch, TaskStatus};
use store::{Error, recurring, reminders, tasks};
use uuid::Uuid;

use crate::{Bench, on_both, write};

on_both!(
    completing_creates_the_next_task,
    undo_removes_the_next_task,
    only_completing_creates_the_next_task,
    reminders_are_carried_over,
    several_tasks_are_completed_in_one_step,
    tasks_of_other_users_are_not_found,
);

fn berlin() -> TimeZone {
    TimeZone::get("Europe/Berlin").unwrap()
}

async fn add(bench: &Bench, rule: &str, due: &str) -> Task {
    let draft = TaskDraft {
        title: "water the plants".into(),
        due_date: Some(due.into()),
        recurrence: Some(rule.into()),
        ..TaskDraft::default()
    };
    bench.add(bench.alice, bench.draft(draft)).await
}

async fn change(bench: &Bench, owner: UserId, ids: Vec<Uuid>, change: TaskChange) -> store::Result<Vec<ChangedTask>> {
    let clock = bench.clock.clone();
    let work = bench.change(owner, move |tx, step| {
        Box::pin(async move {
            let mut changed = Vec::new();
            for id in ids {
                changed.push(recurring::change(tx, step, id, &change, &clock, &berlin()).await?);
            }
            Ok(changed)
        })
    });
    work.await
}

async fn complete(bench: &Bench, task: &Task) -> ChangedTask {
    change(bench, bench.alice, vec![task.id], TaskChange::complete()).await.unwrap().remove(0)
}

async fn patch(bench: &Bench, task: &Task, patch: TaskPatch) -> ChangedTask {
    let user = model::User::local(berlin());
    let patch = patch.check(TaskLimits::default(), &user).unwrap();
    change(bench, bench.alice, vec![task.id], patch).await.unwrap().remove(0)
}

async fn all(bench: &Bench) -> Vec<Task> {
    let mut reader = bench.store.reader().await.unwrap();
    tasks::list(&mut reader, bench.alice, &TaskFilter::default(), None, 200).await.unwrap().rows
}

async fn reminded(bench: &Bench) -> Vec<Reminder> {
    let mut reader = bench.store.reader().await.unwrap();
    reminders::list(&mut reader, bench.alice, &Default::default(), None, 50).await.unwrap().rows
}

fn due(task: &Task) -> String {
    task.due_date.unwrap().to_string()
}

async fn completing_creates_the_next_task(bench: Bench) {
    // TASK-1
    let task = add(&bench, "FREQ=DAILY;COUNT=2", "2026-01-10").await;
    let ChangedTask { task: done, next_task: Some(Some(next)), changed: true, .. } = complete(&bench, &task).await
    else {
        panic!("no next task")
    };
    assert_eq!(
        (done.status, due(&next), next.status),
        (TaskStatus::Completed, "2026-01-11".to_owned(), TaskStatus::Pending)
    );
    assert_eq!(next.recurrence.as_deref(), Some("FREQ=DAILY;COUNT=1"));
    assert_eq!(all(&bench).await, [done, next.clone()]);
    let last = complete(&bench, &next).await;
    assert_eq!((last.task.status, last.next_task), (TaskStatus::Completed, Some(None)), "this was the last occurrence");
    assert_eq!(all(&bench).await.len(), 2);
}

async fn undo_removes_the_next_task(bench: Bench) {
    // AGENT-13
    let task = add(&bench, "FREQ=DAILY", "2026-01-10").await;
    let next = complete(&bench, &task).await.next_task.unwrap().unwrap();
    complete(&bench, &next).await;
    assert_eq!(all(&bench).await.len(), 3);
    let alice = bench.alice;
    let undone = write!(bench, alice, tx => store::undo::undo(tx, alice)).unwrap();
    assert_eq!((undone.undone, undone.tasks), (model::task::TaskChangeKind::Completed, vec![next]));
    let undone = write!(bench, alice, tx => store::undo::undo(tx, alice)).unwrap();
    assert_eq!((undone.undone, undone.count), (model::task::TaskChangeKind::Completed, 1));
    assert_eq!(all(&bench).await, [task], "the original task is restored");
}

async fn only_completing_creates_the_next_task(bench: Bench) {
    let task = add(&bench, "FREQ=DAILY", "2026-01-10").await;
    let renamed = patch(&bench, &task, TaskPatch { title: Some("water them".into()), ..TaskPatch::default() }).await;
    assert!(renamed.next_task.is_none() && renamed.changed);
    let open = TaskPatch { status: Some("pending".into()), ..TaskPatch::default() };
    assert!(!patch(&bench, &task, open.clone()).await.changed);
    let next = complete(&bench, &task).await.next_task.unwrap().unwrap();
    assert!(complete(&bench, &task).await.next_task.is_none(), "the task is already completed");
    // After reopening and completing again, the next task already exists.
    patch(&bench, &task, open).await;
    assert_eq!(complete(&bench, &task).await.next_task, Some(Some(next)));
    assert_eq!(all(&bench).await.len(), 2);
    // Other fields of the same change are applied first.
    let task = add(&bench, "FREQ=DAILY", "2026-02-01").await;
    let stops = TaskPatch { status: Some("completed".into()), recurrence: Some(None), ..TaskPatch::default() };
    assert!(patch(&bench, &task, stops).await.next_task.is_none());
    let task = add(&bench, "FREQ=DAILY", "2026-02-01").await;
    let moved = TaskPatch {
        status: Some("completed".into()),
        due_date: Some(Some("2026-03-01".into())),
        ..TaskPatch::default()
    };
    assert_eq!(due(&patch(&bench, &task, moved).await.next_task.unwrap().unwrap()), "2026-03-02");
}

async fn reminders_are_carried_over(bench: Bench) {
    // AGENT-13, TASK-4
    let task = add(&bench, "FREQ=WEEKLY", "2026-01-12T10:00").await;
    let alice = bench.alice;
    let now = bench.now();
    let user = model::User::local(berlin());
    for at in ["2026-01-12T09:00", "2026-01-12T11:00"] {
        let draft = model::reminder::ReminderDraft {
            task_id: task.id.to_string(),
            remind_at: Some(at.into()),
            repeat_interval_minutes: Some(5),
            repeat_count: Some(2),
            ..Default::default()
        };
        let reminder = draft.check(&bench.clock, &user, model::reminder::DEFAULT_TIME).unwrap();
        let work = bench
            .change(alice, move |tx, step| Box::pin(async move { reminders::create(tx, step, &reminder, now).await }));
        work.await.unwrap();
    }
    let before = reminded(&bench).await;
    let next = complete(&bench, &task).await.next_task.unwrap().unwrap();
    let of_next: Vec<_> = reminded(&bench).await.into_iter().filter(|reminder| reminder.task_id == next.id).collect();
    let [carried, after_due] = of_next.as_slice() else { panic!("{of_next:?}") };
    assert_eq!(after_due.remind_at.to_string(), "2026-01-19T10:00:00Z", "a repeating reminder does not end");
    assert_eq!(carried.remind_at.to_string(), "2026-01-19T08:00:00Z");
    assert_eq!((carried.repeat_interval_minutes, carried.repeat_count), (Some(5), Some(2)));
    write!(bench, alice, tx => store::undo::undo(tx, alice)).unwrap();
    assert_eq!(reminded(&bench).await, before, "AGENT-13");
}

async fn several_tasks_are_completed_in_one_step(bench: Bench) {
    // AGENT-13
    let one = add(&bench, "FREQ=DAILY", "2026-01-10").await;
    let two = add(&bench, "FREQ=WEEKLY;COUNT=1", "2026-01-10").await;
    let three = bench.add(bench.alice, bench.titled("once")).await;
    let ids = vec![one.id, two.id, three.id];
    let done = change(&bench, bench.alice, ids, TaskChange::complete()).await.unwrap();
    let next: Vec<_> = done.iter().map(|done| done.next_task.as_ref().map(|next| next.as_ref().map(due))).collect();
    assert_eq!(next, [Some(Some("2026-01-11".to_owned())), Some(None), None]);
    let alice = bench.alice;
    let undone = write!(bench, alice, tx => store::undo::undo(tx, alice)).unwrap();
    assert_eq!((undone.undone, undone.count), (model::task::TaskChangeKind::Completed, 3));
    assert_eq!(all(&bench).await, [one, two, three]);
}

async fn tasks_of_other_users_are_not_found(bench: Bench) {
    // AGENT-3
    let task = add(&bench, "FREQ=DAILY", "2026-01-10").await;
    let tried = change(&bench, bench.bob, vec![task.id], TaskChange::complete()).await;
    assert!(matches!(tried, Err(Error::NotFound)));
    assert_eq!(all(&bench).await, [task]);
}
