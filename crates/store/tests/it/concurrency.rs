//! Concurrent writers: acknowledged writes are stored, and changes of one task do not overwrite each other.

use model::User;
use model::task::{TaskFilter, TaskLimits, TaskPatch};
use store::tasks;

use crate::{Bench, on_both};

on_both!(all_acknowledged_writes_are_stored, concurrent_changes_are_not_lost, a_failing_job_does_not_affect_other_jobs);

async fn all_acknowledged_writes_are_stored(bench: Bench) {
    // TASK-5
    let writes = (0..300).map(|n| bench.add(bench.alice, bench.titled(&format!("{n}"))));
    let mut written = futures::future::join_all(writes).await;
    written.sort_by_key(|task| (task.created_at, task.id));
    let mut reader = bench.store.reader().await.unwrap();
    let rows = tasks::list(&mut reader, bench.alice, &TaskFilter::default(), None, 1000).await.unwrap().rows;
    assert_eq!(rows, written);
    assert_eq!(bench.store.waiting_writes(), 0);
}

async fn concurrent_changes_are_not_lost(bench: Bench) {
    // TASK-5
    let task = bench.add(bench.alice, bench.titled("0")).await;
    let user = User::local(jiff::tz::TimeZone::UTC);
    let patches = [
        TaskPatch { title: Some("new".into()), ..TaskPatch::default() },
        TaskPatch { description: Some(Some("words".into())), ..TaskPatch::default() },
        TaskPatch { priority: Some("high".into()), ..TaskPatch::default() },
        TaskPatch { due_date: Some(Some("2026-02-01".into())), ..TaskPatch::default() },
        TaskPatch { tags: Some(vec!["t".into()]), ..TaskPatch::default() },
        TaskPatch { status: Some("completed".into()), ..TaskPatch::default() },
    ];
    let changes = patches.map(|patch| patch.check(TaskLimits::default(), &user).unwrap()).map(|change| {
        let id = task.id;
        let now = bench.now();
        bench.change(bench.alice, move |tx, step| {
            Box::pin(async move { tasks::change(tx, step, id, &change, now).await })
        })
    });
    for changed in futures::future::join_all(changes).await {
        changed.unwrap();
    }
    let after = tasks::get(&mut bench.store.reader().await.unwrap(), bench.alice, task.id).await.unwrap();
    assert_eq!(after.title, "new");
    assert_eq!(after.description.as_deref(), Some("words"));
    assert_eq!((after.priority, after.tags.len()), (model::task::Priority::High, 1));
    assert!(after.due_date.is_some() && after.completed_at.is_some());
}

async fn a_failing_job_does_not_affect_other_jobs(bench: Bench) {
    // TASK-5
    let bad = (0..20).map(|n| {
        let bench = &bench;
        async move {
            let job: store::Result<()> = bench
                .transaction(async move |_| {
                    assert!(n % 2 == 0, "a job that panics");
                    Err(store::Error::NotFound)
                })
                .await;
            assert!(job.is_err());
        }
    });
    let good = (0..20).map(|n| bench.add(bench.alice, bench.titled(&format!("{n}"))));
    let (_, good) = futures::join!(futures::future::join_all(bad), futures::future::join_all(good));
    let mut reader = bench.store.reader().await.unwrap();
    let rows = tasks::list(&mut reader, bench.alice, &TaskFilter::default(), None, 50).await.unwrap().rows;
    assert_eq!(rows.len(), good.len());
}
