//! Due times are claimed once each, also after they were moved.

use std::time::Duration;

use model::User;
use model::reminder;
use model::task::{Task, TaskDraft, TaskLimits, TaskPatch};
use store::due::{DueTask, claim, due_tasks, next_due_at};
use store::undo::undo;
use store::{data, reminders, tasks};

use crate::{Bench, on_both, write};

on_both!(
    a_due_time_is_claimed_once,
    a_moved_due_time_is_claimed_again,
    past_due_times_are_not_reported,
    a_reminder_at_the_due_time_replaces_the_notification
);

const AT: &str = "2026-01-10T13:00:00Z";

async fn task_due(bench: &Bench, at: &str) -> Task {
    let draft = TaskDraft { title: "call".into(), due_date: Some(at.into()), ..TaskDraft::default() };
    bench.add(bench.alice, bench.draft(draft)).await
}

async fn current_due(bench: &Bench) -> Vec<DueTask> {
    due_tasks(&mut bench.store.reader().await.unwrap(), bench.now(), 50).await.unwrap()
}

async fn claim_task(bench: &Bench, due: DueTask) -> Option<Task> {
    let now = bench.now();
    write!(bench, tx => claim(tx, &due, now, &jiff::tz::TimeZone::UTC)).unwrap()
}

async fn change(bench: &Bench, task: &Task, patch: TaskPatch) -> Task {
    let user = User::local(jiff::tz::TimeZone::UTC);
    let change = patch.check(TaskLimits::default(), &user).unwrap();
    let id = task.id;
    let now = bench.now();
    bench
        .change(bench.alice, move |tx, step| Box::pin(async move { tasks::change(tx, step, id, &change, now).await }))
        .await
        .unwrap()
}

fn due_at(at: &str) -> TaskPatch {
    TaskPatch { due_date: Some(Some(at.to_owned())), ..TaskPatch::default() }
}

async fn a_due_time_is_claimed_once(bench: Bench) {
    // TASK-1
    let task = task_due(&bench, AT).await;
    task_due(&bench, "2026-01-10").await;
    assert_eq!(current_due(&bench).await, []);
    assert_eq!(next_due_at(&mut bench.store.reader().await.unwrap()).await.unwrap(), Some(AT.parse().unwrap()));
    bench.clock.advance(Duration::from_secs(3600));
    let due = current_due(&bench).await.remove(0);
    assert_eq!((due.task_id, due.owner, due.at.to_string().as_str()), (task.id, bench.alice, AT));
    assert_eq!(claim_task(&bench, due).await, Some(task.clone()));
    assert_eq!(claim_task(&bench, due).await, None);
    change(&bench, &task, TaskPatch { title: Some("phone".into()), ..TaskPatch::default() }).await;
    assert_eq!(current_due(&bench).await, []);

    // After delete and undo it may be due again, but with the same notification id.
    bench.delete(bench.alice, task.id).await.unwrap();
    let alice = bench.alice;
    write!(bench, alice, tx => undo(tx, alice)).unwrap();
    for again in current_due(&bench).await {
        assert_eq!(again.notification_id(), due.notification_id());
    }
    assert_eq!(due.notification_id().get_version_num(), 8);
    let moved = DueTask { at: due.at + Duration::from_secs(1), ..due };
    assert_ne!(moved.notification_id(), due.notification_id());
}

async fn a_moved_due_time_is_claimed_again(bench: Bench) {
    // TASK-1
    let task = task_due(&bench, AT).await;
    let later = "2026-01-10T14:00:00Z";
    change(&bench, &task, due_at(later)).await;
    bench.clock.advance(Duration::from_secs(3600));
    assert_eq!(current_due(&bench).await, [], "it was moved");
    bench.clock.advance(Duration::from_secs(3600));
    let due = current_due(&bench).await.remove(0);
    assert_eq!(due.at.to_string(), later);
    let stale = DueTask { at: AT.parse().unwrap(), ..due };
    assert_eq!(claim_task(&bench, stale).await, None);
    assert!(claim_task(&bench, due).await.is_some());
    change(&bench, &task, due_at("2026-01-10T15:00:00Z")).await;
    bench.clock.advance(Duration::from_secs(3600));
    assert_eq!(current_due(&bench).await.len(), 1);

    bench.complete(bench.alice, task.id).await.unwrap();
    assert_eq!(current_due(&bench).await, [], "the task is completed");
    assert_eq!(next_due_at(&mut bench.store.reader().await.unwrap()).await.unwrap(), None);
    let alice = bench.alice;
    write!(bench, alice, tx => undo(tx, alice)).unwrap();
    assert_eq!(current_due(&bench).await.len(), 1);
}

async fn past_due_times_are_not_reported(bench: Bench) {
    task_due(&bench, "2026-01-10T11:59:59Z").await;
    bench.clock.advance(Duration::from_secs(3600));
    let task = task_due(&bench, "2026-01-10T15:00:00Z").await;
    change(&bench, &task, due_at("2026-01-10T12:30:00Z")).await;
    assert_eq!(current_due(&bench).await, []);
    // Imported from another system, which may have sent the notification.
    let draft =
        |at: &str| bench.draft(TaskDraft { title: "moved".into(), due_date: Some(at.into()), ..TaskDraft::default() });
    let old = draft("2026-01-10T13:30:00Z");
    let ahead = draft("2026-01-10T15:30:00Z");
    bench.clock.advance(Duration::from_secs(3600));
    let list = vec![old, ahead];
    let now = bench.now();
    let imported = bench
        .change(bench.alice, move |tx, step| Box::pin(async move { data::import_tasks(tx, step, &list, now).await }));
    assert_eq!(imported.await.unwrap().added, 2);
    bench.clock.advance(Duration::from_secs(7200));
    assert_eq!(
        current_due(&bench).await.iter().map(|due| due.at.to_string()).collect::<Vec<_>>(),
        ["2026-01-10T15:30:00Z"]
    );
}

async fn a_reminder_at_the_due_time_replaces_the_notification(bench: Bench) {
    let task = task_due(&bench, AT).await;
    let draft =
        reminder::ReminderDraft { task_id: task.id.to_string(), remind_at: Some(AT.into()), ..Default::default() };
    let user = User::local(jiff::tz::TimeZone::UTC);
    let reminder = draft.check(&bench.clock, &user, reminder::DEFAULT_TIME).unwrap();
    let now = bench.now();
    let set = bench.change(bench.alice, move |tx, step| {
        Box::pin(async move { reminders::create(tx, step, &reminder, now).await })
    });
    set.await.unwrap();
    bench.clock.advance(Duration::from_secs(3600));
    let due = current_due(&bench).await.remove(0);
    assert_eq!(claim_task(&bench, due).await, None);
    assert_eq!(current_due(&bench).await, []);
}
