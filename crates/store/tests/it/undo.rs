//! Undo: newest step first, up to 50 steps, separate for each user.

use model::UserId;
use model::task::{Task, TaskChange, TaskChangeKind, TaskFilter, UndoneChange};
use store::undo::undo;
use store::{Error, tasks};

use crate::{Bench, on_both, write};

on_both!(
    every_kind_of_change_can_be_undone,
    several_tasks_are_one_step,
    undo_keeps_50_steps,
    users_have_separate_undo_steps,
    steps_follow_the_order_of_commits,
);

async fn undo_last(bench: &Bench, owner: UserId) -> store::Result<UndoneChange> {
    write!(bench, owner, tx => undo(tx, owner))
}

async fn all(bench: &Bench, owner: UserId) -> Vec<Task> {
    let mut reader = bench.store.reader().await.unwrap();
    tasks::list(&mut reader, owner, &TaskFilter::default(), None, 200).await.unwrap().rows
}

async fn every_kind_of_change_can_be_undone(bench: Bench) {
    // AGENT-13
    let alice = bench.alice;
    let task = bench.add(alice, bench.titled("a")).await;
    bench.complete(alice, task.id).await.unwrap();
    bench.complete(alice, task.id).await.unwrap();
    bench.delete(alice, task.id).await.unwrap();

    let undone = undo_last(&bench, alice).await.unwrap();
    assert_eq!((undone.undone, undone.count), (TaskChangeKind::Deleted, 1));
    assert!(undone.tasks[0].completed_at.is_some());
    assert_eq!(undo_last(&bench, alice).await.unwrap().undone, TaskChangeKind::Completed);
    assert_eq!(all(&bench, alice).await, std::slice::from_ref(&task), "including its times");
    let undone = undo_last(&bench, alice).await.unwrap();
    assert_eq!((undone.undone, undone.tasks), (TaskChangeKind::Created, vec![task]));
    assert_eq!(all(&bench, alice).await, []);
    assert!(matches!(undo_last(&bench, alice).await, Err(Error::NotFound)));
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
                tasks::change(tx, step, id, &TaskChange::complete(), now).await?;
            }
            Ok(())
        })
    });
    both.await.unwrap();
    assert_eq!(undo_last(&bench, bench.alice).await.unwrap().count, 2);
    assert_eq!(all(&bench, bench.alice).await, [one, two]);
}

async fn undo_keeps_50_steps(bench: Bench) {
    // TASK-1
    for n in 0..55 {
        bench.add(bench.alice, bench.titled(&n.to_string())).await;
    }
    for _ in 0..50 {
        undo_last(&bench, bench.alice).await.unwrap();
    }
    assert!(undo_last(&bench, bench.alice).await.is_err());
    assert_eq!(all(&bench, bench.alice).await.len(), 5);
}

async fn users_have_separate_undo_steps(bench: Bench) {
    // AGENT-3, TASK-1
    bench.add(bench.alice, bench.titled("a")).await;
    assert!(matches!(undo_last(&bench, bench.bob).await, Err(Error::NotFound)));
    assert_eq!(all(&bench, bench.alice).await.len(), 1);
}

async fn steps_follow_the_order_of_commits(bench: Bench) {
    // AGENT-13
    // Concurrent changes of one task: undoing all must visit every state in reverse order.
    let task = bench.add(bench.alice, bench.titled("start")).await;
    let user = model::User::local(jiff::tz::TimeZone::UTC);
    let changes = (0..40).map(|n| {
        let patch = model::task::TaskPatch { title: Some(n.to_string()), ..model::task::TaskPatch::default() };
        let change = patch.check(model::task::TaskLimits::default(), &user).unwrap();
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
        let undone = undo_last(&bench, bench.alice).await.unwrap();
        if undone.undone == TaskChangeKind::Created {
            break;
        }
        assert!(titles.insert(undone.tasks[0].title.clone()), "a state occurs twice");
    }
    assert_eq!((titles.len(), titles.contains("start")), (40, true));
    assert!(all(&bench, bench.alice).await.is_empty());
}
