//! Undo: newest first, as it was before, fifty steps deep, one's own only.

use model::UserId;
use model::task::{Change, Filter, Task};
use model::task::{ChangeKind, Undone};
use store::undo::undo;
use store::{Error, tasks};

use crate::{Bench, on_both, write};

on_both!(
    every_kind_of_change,
    several_tasks_are_one_step,
    fifty_steps,
    others_have_their_own,
    steps_follow_the_order_of_commits,
);

async fn take_back(bench: &Bench, owner: UserId) -> store::Result<Undone> {
    write!(bench, tx => undo(tx, owner))
}

async fn all(bench: &Bench, owner: UserId) -> Vec<Task> {
    let mut reader = bench.store.reader().await.unwrap();
    tasks::list(&mut reader, owner, &Filter::default(), None, 200).await.unwrap().rows
}

async fn every_kind_of_change(bench: Bench) {
    // AGENT-13
    let alice = bench.alice;
    let task = bench.add(alice, bench.titled("a")).await;
    bench.complete(alice, task.id).await.unwrap();
    bench.complete(alice, task.id).await.unwrap();
    bench.delete(alice, task.id).await.unwrap();

    let undone = take_back(&bench, alice).await.unwrap();
    assert_eq!((undone.undone, undone.count), (ChangeKind::Deleted, 1));
    assert!(undone.tasks[0].completed_at.is_some());
    assert_eq!(take_back(&bench, alice).await.unwrap().undone, ChangeKind::Completed);
    assert_eq!(all(&bench, alice).await, std::slice::from_ref(&task), "as it was, times included");
    let undone = take_back(&bench, alice).await.unwrap();
    assert_eq!((undone.undone, undone.tasks), (ChangeKind::Created, vec![task]));
    assert_eq!(all(&bench, alice).await, []);
    assert!(matches!(take_back(&bench, alice).await, Err(Error::NotFound)));
}

async fn several_tasks_are_one_step(bench: Bench) {
    // AGENT-13
    let one = bench.add(bench.alice, bench.titled("1")).await;
    let two = bench.add(bench.alice, bench.titled("2")).await;
    let now = bench.now();
    let ids = [one.id, two.id];
    let both = bench.change(bench.alice, move |tx, step| {
        Box::pin(async move {
            for id in ids {
                tasks::change(tx, step, id, &Change::complete(), now).await?;
            }
            Ok(())
        })
    });
    both.await.unwrap();
    assert_eq!(take_back(&bench, bench.alice).await.unwrap().count, 2);
    assert_eq!(all(&bench, bench.alice).await, [one, two]);
}

async fn fifty_steps(bench: Bench) {
    // TASK-1
    for n in 0..55 {
        bench.add(bench.alice, bench.titled(&n.to_string())).await;
    }
    for _ in 0..50 {
        take_back(&bench, bench.alice).await.unwrap();
    }
    assert!(take_back(&bench, bench.alice).await.is_err());
    assert_eq!(all(&bench, bench.alice).await.len(), 5);
}

async fn others_have_their_own(bench: Bench) {
    bench.add(bench.alice, bench.titled("a")).await;
    assert!(matches!(take_back(&bench, bench.bob).await, Err(Error::NotFound)));
    assert_eq!(all(&bench, bench.alice).await.len(), 1);
}

async fn steps_follow_the_order_of_commits(bench: Bench) {
    // Many clients at one task: taking everything back must lead through every state in reverse.
    let task = bench.add(bench.alice, bench.titled("start")).await;
    let user = model::User::local(jiff::tz::TimeZone::UTC);
    let changes = (0..40).map(|n| {
        let patch = model::task::Patch { title: Some(n.to_string()), ..model::task::Patch::default() };
        let change = patch.check(model::task::Limits::default(), &user).unwrap();
        let id = task.id;
        let now = bench.now();
        bench.change(bench.alice, move |tx, step| {
            Box::pin(async move { tasks::change(tx, step, id, &change, now).await })
        })
    });
    for changed in futures::future::join_all(changes).await {
        changed.unwrap();
    }
    let mut titles = std::collections::HashSet::new();
    loop {
        let undone = take_back(&bench, bench.alice).await.unwrap();
        if undone.undone == ChangeKind::Created {
            break;
        }
        assert!(titles.insert(undone.tasks[0].title.clone()), "a state that was there before");
    }
    assert_eq!((titles.len(), titles.contains("start")), (40, true));
    assert!(all(&bench, bench.alice).await.is_empty());
}
