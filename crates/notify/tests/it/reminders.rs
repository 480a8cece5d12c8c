//! Reminders and due tasks as they fire, with time moved by hand.

use std::time::Duration;

use model::task::{Change, Draft, Patch};
use notify::{Notifier, Settings};
use store::undo::Step;
use uuid::Uuid;

use crate::{Bench, a_while, until, user};

const MINUTE: Duration = Duration::from_secs(60);

async fn change(bench: &Bench, id: Uuid, change: Change) {
    let owner = bench.alice;
    let now = bench.clock.now();
    let changed = bench.store.transaction(async move |tx| {
        let mut step = Step::begin(tx, owner).await?;
        store::tasks::change(tx, &mut step, id, &change, now).await
    });
    changed.await.unwrap();
}

async fn undo(bench: &Bench) {
    let owner = bench.alice;
    bench.store.transaction(async move |tx| store::undo::undo(tx, owner).await).await.unwrap();
}

#[tokio::test]
async fn once() {
    // TASK-4
    let bench = Bench::sqlite().await;
    bench.run();
    let task = bench.titled("dentist").await;
    bench.remind(task.id, "2026-01-10T12:30:00Z", None, None).await;
    bench.advance(30 * MINUTE - Duration::from_micros(1));
    a_while().await;
    assert!(bench.told().await.is_empty(), "not before its time");
    bench.advance(Duration::from_micros(1));
    until("it fires", async || bench.told().await == ["Reminder: dentist"]).await;
    let note = bench.notes().await.remove(0);
    assert_eq!((note.task_id, note.created_at.to_string().as_str()), (Some(task.id), "2026-01-10T12:30:00Z"));
    bench.advance(600 * MINUTE);
    a_while().await;
    assert_eq!(bench.told().await.len(), 1);
    assert_eq!(bench.notifier.fired(), 1);
}

#[tokio::test]
async fn again_and_again_until_enough_or_done() {
    let bench = Bench::sqlite().await;
    bench.run();
    let counted = bench.titled("counted").await;
    let endless = bench.titled("endless").await;
    bench.remind(counted.id, "2026-01-10T12:30:00Z", Some(15), Some(3)).await;
    bench.remind(endless.id, "2026-01-10T12:30:00Z", Some(15), None).await;
    bench.advance(30 * MINUTE);
    for round in 1..=5_usize {
        let expected = round + round.min(3);
        until("both fire", async || bench.told().await.len() == expected).await;
        bench.advance(15 * MINUTE);
    }
    until("it goes on", async || bench.told().await.len() == 9).await;
    change(&bench, endless.id, Change::complete()).await;
    bench.advance(600 * MINUTE);
    a_while().await;
    assert_eq!(bench.told().await.len(), 9, "a completed task is silent");
    undo(&bench).await;
    until("it is late, and fires once", async || bench.told().await.len() == 10).await;
    a_while().await;
    assert_eq!(bench.told().await.len(), 10);
}

#[tokio::test]
async fn late_after_a_restart_it_fires_once_and_goes_on() {
    // TASK-4
    let bench = Bench::sqlite().await;
    let task = bench.titled("water").await;
    bench.remind(task.id, "2026-01-10T13:00:00Z", Some(60), None).await;
    bench.advance(60 * 24 * MINUTE);
    bench.run();
    until("it fires", async || bench.told().await.len() == 1).await;
    a_while().await;
    assert_eq!(bench.told().await.len(), 1, "what was missed is not made up for");
    assert!(bench.notes().await[0].text.contains("late"), "{:?}", bench.notes().await[0]);
    bench.advance(60 * MINUTE - Duration::from_secs(1));
    a_while().await;
    assert_eq!(bench.told().await.len(), 1);
    bench.advance(Duration::from_secs(1));
    until("it goes on", async || bench.told().await.len() == 2).await;
}

#[tokio::test]
async fn on_time_by_the_system_s_clock() {
    // The loop sleeps until the very time, and a new reminder wakes it.
    let mut bench = Bench::sqlite().await;
    bench.clock = model::Clock::system();
    bench.notifier = Notifier::new(bench.store.clone(), bench.clock.clone());
    bench.run();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let task = bench.titled("soon").await;
    let at = bench.clock.now() + Duration::from_millis(1500);
    bench.remind(task.id, &at.to_string(), None, None).await;
    until("it fires", async || bench.told().await.len() == 1).await;
    // Reminders are to the second.
    let at = jiff::Timestamp::from_second(at.as_second()).unwrap();
    let late = bench.notes().await[0].created_at.duration_since(at);
    assert!(!late.is_negative() && late < jiff::SignedDuration::from_millis(500), "{late}");
}

#[tokio::test]
async fn due_tasks_are_told_once_wherever_they_move() {
    // TASK-1
    let bench = Bench::sqlite().await;
    bench.run();
    let due = |at: &str| Draft { title: "call".into(), due_date: Some(at.into()), ..Draft::default() };
    let task = bench.task(due("2026-01-10T13:00:00Z")).await;
    bench.task(due("2026-01-10")).await;
    let later = Patch { due_date: Some(Some("2026-01-10T14:00:00Z".into())), ..Patch::default() };
    change(&bench, task.id, later.check(Default::default(), &user()).unwrap()).await;
    bench.advance(60 * MINUTE);
    a_while().await;
    assert!(bench.told().await.is_empty(), "it was moved");
    bench.advance(60 * MINUTE);
    until("it is told", async || bench.told().await == ["Due now: call"]).await;
    // Deleted and brought back it is not told again.
    let owner = bench.alice;
    let id = task.id;
    let deleted = bench.store.transaction(async move |tx| {
        let mut step = Step::begin(tx, owner).await?;
        store::tasks::delete(tx, &mut step, id).await
    });
    deleted.await.unwrap();
    undo(&bench).await;
    a_while().await;
    assert_eq!(bench.told().await.len(), 1);
    assert_eq!(bench.notifier.fired(), 1);
}

#[tokio::test]
async fn due_tasks_can_be_left_out() {
    let bench = Bench::sqlite().await;
    bench.notifier.reload(Settings { notify_due: false, ..Settings::default() });
    bench.run();
    let draft = Draft { title: "call".into(), due_date: Some("2026-01-10T13:00:00Z".into()), ..Draft::default() };
    bench.task(draft).await;
    bench.advance(60 * MINUTE);
    a_while().await;
    bench.notifier.reload(Settings { notify_due: true, ..Settings::default() });
    a_while().await;
    assert!(bench.told().await.is_empty(), "nor is it told later, when that is switched on");
}

#[tokio::test]
async fn a_reminder_at_the_due_moment_is_one_notification() {
    let bench = Bench::sqlite().await;
    bench.run();
    let draft = Draft { title: "call".into(), due_date: Some("2026-01-10T13:00:00Z".into()), ..Draft::default() };
    let task = bench.task(draft).await;
    bench.remind(task.id, "2026-01-10T13:00:00Z", None, None).await;
    bench.advance(60 * MINUTE);
    until("it fires", async || bench.told().await == ["Reminder: call"]).await;
    a_while().await;
    assert_eq!(bench.told().await.len(), 1);
}

#[tokio::test]
async fn many_nodes_fire_each_once() {
    // TASK-4, OPS-5: no leader; whoever is first tells
    let bench = Bench::postgres().await;
    for n in 0..150 {
        let due = (n % 3 == 0).then(|| "2026-01-10T12:31:00Z".to_owned());
        let task = bench.task(Draft { title: n.to_string(), due_date: due, ..Draft::default() }).await;
        bench.remind(task.id, "2026-01-10T12:30:00Z", Some(1), Some(2)).await;
    }
    bench.advance(30 * MINUTE);
    let mut nodes = vec![bench.notifier.clone()];
    for _ in 0..2 {
        let store = store::Store::open(&bench.location, store::Durability::Full).await.unwrap();
        let node = Notifier::new(store, bench.clock.clone());
        node.reload(Settings { notify_due: true, ..Settings::default() });
        nodes.push(node);
    }
    nodes.iter().for_each(|node| bench.run_too(node.clone()));
    until("all have fired", async || bench.told().await.len() == 150).await;
    bench.clock.advance(MINUTE);
    nodes.iter().for_each(Notifier::wake);
    until("all have fired again", async || bench.told().await.len() == 150 + 150 + 50).await;
    a_while().await;
    let told = bench.told().await;
    assert_eq!(told.len(), 350);
    for n in 0..150 {
        let times = told.iter().filter(|title| **title == format!("Reminder: {n}")).count();
        assert_eq!(times, 2, "{n}");
    }
    assert_eq!(nodes.iter().map(Notifier::fired).sum::<u64>(), 350);
}
