//! Reminders belong to their owner's tasks.

use model::reminder::{Draft, Reminder};
use model::task::Filter;
use model::{User, UserId};
use store::{Error, reminders, tasks};

use crate::{Bench, on_both, write};

on_both!(a_reminder_needs_a_task_of_its_owner, a_list_has_its_total);

fn reminder(bench: &Bench, task: uuid::Uuid) -> Reminder {
    let draft = Draft {
        task_id: task.to_string(),
        remind_at: "2026-01-11T09:00:00Z".to_owned(),
        repeat_interval_minutes: Some(30),
        repeat_count: Some(3),
    };
    draft.check(&bench.clock, &User::local(jiff::tz::TimeZone::UTC)).unwrap()
}

async fn listed(bench: &Bench, owner: UserId) -> Vec<Reminder> {
    let mut reader = bench.store.reader().await.unwrap();
    reminders::list(&mut reader, owner, None, 50).await.unwrap().rows
}

async fn a_reminder_needs_a_task_of_its_owner(bench: Bench) {
    // TASK-1
    let (alice, bob, now) = (bench.alice, bench.bob, bench.now());
    let task = bench.add(alice, bench.titled("dentist")).await;
    let wanted = reminder(&bench, task.id);
    let set = async |owner| {
        let wanted = wanted.clone();
        bench
            .change(owner, move |tx, step| Box::pin(async move { reminders::create(tx, step, &wanted, now).await }))
            .await
    };
    assert!(matches!(set(bob).await, Err(Error::NotFound)));
    assert_eq!(set(alice).await.unwrap().title, "dentist");
    assert_eq!(listed(&bench, alice).await, std::slice::from_ref(&wanted));
    assert_eq!(listed(&bench, bob).await, []);
    let undone = write!(bench, tx => store::undo::undo(tx, alice)).unwrap();
    assert_eq!((undone.undone, undone.tasks.len()), (store::undo::Kind::Reminded, 1));
    assert_eq!(listed(&bench, alice).await, [], "AGENT-13: the reminder goes, the task stays");
    assert_eq!(bench.titles(alice).await, ["dentist"]);
    set(alice).await.unwrap();
    write!(bench, tx => store::data::erase(tx, alice)).unwrap();
    assert_eq!(listed(&bench, alice).await, []);
}

async fn a_list_has_its_total(bench: Bench) {
    for n in 0..7 {
        bench.add(bench.alice, bench.titled(&format!("task {n}"))).await;
    }
    let mut reader = bench.store.reader().await.unwrap();
    let filter = Filter { text: Some("task".into()), ..Filter::default() };
    assert_eq!(tasks::count(&mut reader, bench.alice, &filter).await.unwrap(), 7);
    assert_eq!(tasks::count(&mut reader, bench.bob, &filter).await.unwrap(), 0);
    let page = tasks::list(&mut reader, bench.alice, &filter, None, 3).await.unwrap();
    assert_eq!((page.rows.len(), page.next.is_some()), (3, true));
}
