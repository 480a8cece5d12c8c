//! The firing of reminders and due tasks.

use std::time::Duration;

use model::task::{TaskChange, TaskDraft, TaskPatch};
use notify::{Notifier, NotifySettings};
use store::undo::UndoStep;
use uuid::Uuid;

use crate::{Bench, settle, until, user};

const MINUTE: Duration = Duration::from_secs(60);

async fn change(bench: &Bench, id: Uuid, change: TaskChange) {
    let owner = bench.alice;
    let now = bench.clock.now();
    let changed = bench.store.owner_transaction(owner, async move |tx| {
        let mut step = UndoStep::begin(tx, owner).await?;
        store::tasks::change(tx, &mut step, id, &change, now).await
    });
    changed.await.unwrap();
}

async fn undo(bench: &Bench) {
    let owner = bench.alice;
    bench.store.owner_transaction(owner, async move |tx| store::undo::undo(tx, owner).await).await.unwrap();
}

#[tokio::test]
async fn a_reminder_fires_once() {
    // TASK-4
    let bench = Bench::sqlite().await;
    bench.run();
    let task = bench.task_titled("dentist").await;
    bench.remind(task.id, "2026-01-10T12:30:00Z", None, None).await;
    bench.advance(30 * MINUTE - Duration::from_micros(1));
    settle().await;
    assert!(bench.titles_received().await.is_empty(), "the reminder is not early");
    bench.advance(Duration::from_micros(1));
    until("the reminder fires", async || bench.titles_received().await == ["Reminder: dentist"]).await;
    let note = bench.notes().await.remove(0);
    assert_eq!((note.task_id, note.created_at.to_string().as_str()), (Some(task.id), "2026-01-10T12:30:00Z"));
    bench.advance(600 * MINUTE);
    settle().await;
    assert_eq!(bench.titles_received().await.len(), 1);
    assert_eq!(bench.notifier.fired_count(), 1);
}

#[tokio::test]
async fn a_reminder_repeats_until_its_count_or_completion() {
    // TASK-4
    let bench = Bench::sqlite().await;
    bench.run();
    let counted = bench.task_titled("counted").await;
    let endless = bench.task_titled("endless").await;
    bench.remind(counted.id, "2026-01-10T12:30:00Z", Some(15), Some(3)).await;
    bench.remind(endless.id, "2026-01-10T12:30:00Z", Some(15), None).await;
    bench.advance(30 * MINUTE);
    for round in 1..=5_usize {
        let expected = round + round.min(3);
        until("both fire", async || bench.titles_received().await.len() == expected).await;
        bench.advance(15 * MINUTE);
    }
    until("the reminder repeats", async || bench.titles_received().await.len() == 9).await;
    change(&bench, endless.id, TaskChange::complete()).await;
    bench.advance(600 * MINUTE);
    settle().await;
    assert_eq!(bench.titles_received().await.len(), 9, "a completed task has no reminders");
    undo(&bench).await;
    until("the late reminder fires once", async || bench.titles_received().await.len() == 10).await;
    settle().await;
    assert_eq!(bench.titles_received().await.len(), 10);
}

#[tokio::test]
async fn a_late_reminder_fires_once_and_continues() {
    // TASK-4
    let bench = Bench::sqlite().await;
    let task = bench.task_titled("water").await;
    bench.remind(task.id, "2026-01-10T13:00:00Z", Some(60), None).await;
    bench.advance(60 * 24 * MINUTE);
    bench.run();
    until("the reminder fires", async || bench.titles_received().await.len() == 1).await;
    settle().await;
    assert_eq!(bench.titles_received().await.len(), 1, "missed repetitions are not caught up");
    assert!(bench.notes().await[0].text.contains("late"), "{:?}", bench.notes().await[0]);
    bench.advance(60 * MINUTE - Duration::from_secs(1));
    settle().await;
    assert_eq!(bench.titles_received().await.len(), 1);
    bench.advance(Duration::from_secs(1));
    until("the reminder repeats", async || bench.titles_received().await.len() == 2).await;
}

#[tokio::test]
async fn a_reminder_fires_on_time() {
    // TASK-4
    // The loop sleeps until the due time, and a new reminder wakes it.
    let mut bench = Bench::sqlite().await;
    bench.clock = model::Clock::system();
    bench.notifier = Notifier::new(bench.store.clone(), bench.clock.clone());
    bench.run();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let task = bench.task_titled("soon").await;
    let at = bench.clock.now() + Duration::from_millis(1500);
    bench.remind(task.id, &at.to_string(), None, None).await;
    until("the reminder fires", async || bench.titles_received().await.len() == 1).await;
    // Reminders have a resolution of one second.
    let at = jiff::Timestamp::from_second(at.as_second()).unwrap();
    let late = bench.notes().await[0].created_at.duration_since(at);
    assert!(!late.is_negative() && late < jiff::SignedDuration::from_millis(500), "{late}");
}

#[tokio::test]
async fn a_due_task_causes_one_notification() {
    // TASK-1
    let bench = Bench::sqlite().await;
    bench.run();
    let due = |at: &str| TaskDraft { title: "call".into(), due_date: Some(at.into()), ..TaskDraft::default() };
    let task = bench.task(due("2026-01-10T13:00:00Z")).await;
    bench.task(due("2026-01-10")).await;
    let later = TaskPatch { due_date: Some(Some("2026-01-10T14:00:00Z".into())), ..TaskPatch::default() };
    change(&bench, task.id, later.check(Default::default(), &user()).unwrap()).await;
    bench.advance(60 * MINUTE);
    settle().await;
    assert!(bench.titles_received().await.is_empty(), "it was moved");
    bench.advance(60 * MINUTE);
    until("the user is notified", async || bench.titles_received().await == ["Due now: call"]).await;
    // Delete and undo cause no second notification.
    let owner = bench.alice;
    let id = task.id;
    let deleted = bench.store.owner_transaction(owner, async move |tx| {
        let mut step = UndoStep::begin(tx, owner).await?;
        store::tasks::delete(tx, &mut step, id).await
    });
    deleted.await.unwrap();
    undo(&bench).await;
    settle().await;
    assert_eq!(bench.titles_received().await.len(), 1);
    assert_eq!(bench.notifier.fired_count(), 1);
}

#[tokio::test]
async fn due_notifications_can_be_disabled() {
    let bench = Bench::sqlite().await;
    bench.notifier.reload(NotifySettings { notify_due: false, ..NotifySettings::default() });
    bench.run();
    let draft =
        TaskDraft { title: "call".into(), due_date: Some("2026-01-10T13:00:00Z".into()), ..TaskDraft::default() };
    bench.task(draft).await;
    bench.advance(60 * MINUTE);
    settle().await;
    bench.notifier.reload(NotifySettings { notify_due: true, ..NotifySettings::default() });
    settle().await;
    assert!(bench.titles_received().await.is_empty(), "enabling notifications later does not send it");
}

#[tokio::test]
async fn a_reminder_at_the_due_time_causes_one_notification() {
    let bench = Bench::sqlite().await;
    bench.run();
    let draft =
        TaskDraft { title: "call".into(), due_date: Some("2026-01-10T13:00:00Z".into()), ..TaskDraft::default() };
    let task = bench.task(draft).await;
    bench.remind(task.id, "2026-01-10T13:00:00Z", None, None).await;
    bench.advance(60 * MINUTE);
    until("the reminder fires", async || bench.titles_received().await == ["Reminder: call"]).await;
    settle().await;
    assert_eq!(bench.titles_received().await.len(), 1);
}

#[tokio::test]
async fn several_nodes_fire_each_reminder_once() {
    // TASK-4, OPS-5: without a leader; the first node notifies
    let bench = Bench::postgres().await;
    for n in 0..150 {
        let due = (n % 3 == 0).then(|| "2026-01-10T12:30:30Z".to_owned());
        let task = bench.task(TaskDraft { title: n.to_string(), due_date: due, ..TaskDraft::default() }).await;
        bench.remind(task.id, "2026-01-10T12:30:00Z", Some(1), Some(2)).await;
    }
    bench.advance(30 * MINUTE);
    let mut nodes = vec![bench.notifier.clone()];
    for _ in 0..2 {
        let store = store::Store::open(&bench.location, store::Durability::Full).await.unwrap();
        let node = Notifier::new(store, bench.clock.clone());
        node.reload(NotifySettings { notify_due: true, ..NotifySettings::default() });
        nodes.push(node);
    }
    nodes.iter().for_each(|node| bench.run_node(node.clone()));
    until("all have fired", async || bench.titles_received().await.len() == 150).await;
    bench.clock.advance(MINUTE);
    nodes.iter().for_each(Notifier::wake);
    until("all have fired again", async || bench.titles_received().await.len() == 150 + 150 + 50).await;
    settle().await;
    let titles = bench.titles_received().await;
    assert_eq!(titles.len(), 350);
    for n in 0..150 {
        let times = titles.iter().filter(|title| **title == format!("Reminder: {n}")).count();
        assert_eq!(times, 2, "{n}");
    }
    assert_eq!(nodes.iter().map(Notifier::fired_count).sum::<u64>(), 350);
}
