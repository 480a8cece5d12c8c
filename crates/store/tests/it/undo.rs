//! Undo: newest first, as it was before, fifty steps deep, one's own only.

use model::UserId;
use model::task::{Change, Filter, Task};
use store::undo::{Kind, Undone, undo};
use store::{Error, tasks};
use uuid::Uuid;

use crate::{Bench, on_both, write};

on_both!(every_kind_of_change, several_tasks_are_one_step, fifty_steps, others_have_their_own);

async fn take_back(bench: &Bench, owner: UserId) -> store::Result<Undone> {
    write!(bench, tx => undo(tx, owner))
}

async fn all(bench: &Bench, owner: UserId) -> Vec<Task> {
    let mut reader = bench.store.reader().await.unwrap();
    tasks::list(&mut reader, owner, &Filter::default(), None, 200).await.unwrap().rows
}

async fn complete(bench: &Bench, owner: UserId, id: Uuid, step: Uuid) -> Task {
    let now = bench.now();
    write!(bench, tx => tasks::change(tx, owner, id, &Change::complete(), now, step)).unwrap()
}

async fn every_kind_of_change(bench: Bench) {
    // AGENT-13
    let alice = bench.alice;
    let task = bench.add(alice, bench.titled("a")).await;
    complete(&bench, alice, task.id, bench.clock.id()).await;
    let nothing_new = bench.clock.id();
    complete(&bench, alice, task.id, nothing_new).await;
    let step = bench.clock.id();
    write!(bench, tx => tasks::delete(tx, alice, task.id, step)).unwrap();

    let undone = take_back(&bench, alice).await.unwrap();
    assert_eq!((undone.undone, undone.count), (Kind::Deleted, 1));
    assert!(undone.tasks[0].completed_at.is_some());
    assert_eq!(take_back(&bench, alice).await.unwrap().undone, Kind::Completed);
    assert_eq!(all(&bench, alice).await, std::slice::from_ref(&task), "as it was, times included");
    let undone = take_back(&bench, alice).await.unwrap();
    assert_eq!((undone.undone, undone.tasks), (Kind::Created, vec![task]));
    assert_eq!(all(&bench, alice).await, []);
    assert!(matches!(take_back(&bench, alice).await, Err(Error::NotFound)));
}

async fn several_tasks_are_one_step(bench: Bench) {
    // AGENT-13
    let (one, two) = (bench.add(bench.alice, bench.titled("1")).await, bench.add(bench.alice, bench.titled("2")).await);
    let step = bench.clock.id();
    complete(&bench, bench.alice, one.id, step).await;
    complete(&bench, bench.alice, two.id, step).await;
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
