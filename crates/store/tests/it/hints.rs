//! Hints between nodes: one NOTIFY a transaction, heard by whoever shares the database; and none with SQLite.

use std::time::Duration;

use model::execution::{Exit, Status};
use store::executions::{append, cancel, save};
use store::hints::{Hint, Listener};
use store::{Durability, Store, executions};

use crate::executions::said;
use crate::{Bench, on_postgres, write};

on_postgres!(
    what_happens_to_an_execution_is_hinted_at,
    a_transaction_tells_everything_at_once_or_nothing,
    a_listener_that_was_cut_off_listens_again,
);

/// What is heard next; it must come soon.
async fn heard(listener: &mut Listener) -> Vec<Hint> {
    tokio::time::timeout(Duration::from_secs(10), listener.next()).await.unwrap()
}

/// One on another node, which listens already.
async fn elsewhere(bench: &Bench) -> Listener {
    let other = Store::open(&bench.location, Durability::Normal).await.unwrap();
    let mut listener = other.listener().unwrap();
    assert_eq!(heard(&mut listener).await, [Hint::Everything], "what came before was missed");
    listener
}

async fn what_happens_to_an_execution_is_hinted_at(bench: Bench) {
    // OPS-5
    let mut listener = elsewhere(&bench).await;
    let id = bench.submit(bench.run(bench.alice, "a")).await.unwrap();
    assert_eq!(heard(&mut listener).await, [Hint::Queue("a".into())]);
    let node = bench.node().await;
    let claimed = bench.claim(node, "a", 1, 1).await.remove(0);
    assert_eq!(heard(&mut listener).await, [Hint::Execution(id)]);

    // However much is said, it is one hint.
    let mut execution = claimed.stored.execution;
    let fence = claimed.fence;
    let now = bench.now();
    execution.start(None, now).unwrap();
    let kept = execution.clone();
    let lines: Vec<_> = (0..500).map(|n| said(claimed.seq + 1 + n, "stdout", n, "line\n")).collect();
    let written = bench.transaction(async move |tx| {
        save(tx, fence, &kept, None).await?;
        append(tx, id, &lines).await
    });
    written.await.unwrap();
    assert_eq!(heard(&mut listener).await, [Hint::Execution(id)]);

    let alice = executions::Whose::Users(bench.alice);
    write!(bench, tx => cancel(tx, alice, id, now)).unwrap();
    assert_eq!(heard(&mut listener).await, [Hint::Cancel(id)]);
    execution.end(Status::Cancelled, Exit::default(), now).unwrap();
    write!(bench, tx => save(tx, fence, &execution, None)).unwrap();
    assert_eq!(heard(&mut listener).await, [Hint::Ended(id)]);
}

async fn a_transaction_tells_everything_at_once_or_nothing(bench: Bench) {
    let mut listener = elsewhere(&bench).await;
    let a = bench.run(bench.alice, "a");
    let b = bench.run(bench.alice, "b");
    let again = bench.run(bench.alice, "a");
    let failed: store::Result<()> = bench
        .transaction(async move |tx| {
            executions::submit(tx, &a).await?;
            Err(store::Error::NotFound)
        })
        .await;
    assert!(failed.is_err());
    let a = bench.run(bench.alice, "a");
    let written = [b, again];
    let submitted = bench.transaction(async move |tx| {
        executions::submit(tx, &a).await?;
        for new in &written {
            executions::submit(tx, new).await?;
        }
        Ok(())
    });
    submitted.await.unwrap();
    assert_eq!(heard(&mut listener).await, [Hint::Queue("a".into()), Hint::Queue("b".into())]);
}

async fn a_listener_that_was_cut_off_listens_again(bench: Bench) {
    let mut listener = elsewhere(&bench).await;
    let killed = bench.count(
        "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity \
         WHERE datname = current_database() AND query LIKE 'LISTEN%'",
    );
    assert_eq!(killed.await, 1);
    assert_eq!(heard(&mut listener).await, [Hint::Everything], "something may have been missed");
    bench.submit(bench.run(bench.alice, "a")).await.unwrap();
    assert_eq!(heard(&mut listener).await, [Hint::Queue("a".into())]);
}

#[tokio::test]
async fn one_node_alone_hints_at_nothing() {
    let bench = Bench::sqlite().await;
    assert!(bench.store.listener().is_none());
    bench.submit(bench.run(bench.alice, "a")).await.unwrap();
}
