//! Hints between nodes: all nodes of a PostgreSQL database receive them. SQLite sends none.

use std::time::Duration;

use model::execution::{AttemptExit, ExecutionStatus};
use store::executions::{append_events, cancel, save};
use store::hints::{Hint, HintListener};
use store::{Durability, Store, executions};

use crate::executions::output_event;
use crate::{Bench, on_postgres, write};

on_postgres!(execution_changes_send_hints, hints_are_sent_once_per_committed_transaction, a_listener_reconnects,);

/// Returns the next hints. Fails after a timeout.
async fn next_hints(listener: &mut HintListener) -> Vec<Hint> {
    tokio::time::timeout(Duration::from_secs(10), listener.next()).await.unwrap()
}

/// Returns a connected listener of another node.
async fn remote_listener(bench: &Bench) -> HintListener {
    let other = Store::open(&bench.location, Durability::Normal).await.unwrap();
    let mut listener = other.hint_listener().unwrap();
    assert_eq!(next_hints(&mut listener).await, [Hint::Everything], "earlier hints are lost");
    listener
}

async fn execution_changes_send_hints(bench: Bench) {
    // OPS-5
    let mut listener = remote_listener(&bench).await;
    let id = bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    assert_eq!(next_hints(&mut listener).await, [Hint::Queue("a".into())]);
    let node = bench.node().await;
    let claimed = bench.claim(node, "a", 1, 1).await.remove(0);
    assert_eq!(next_hints(&mut listener).await, [Hint::Execution(id)]);

    // Many events cause one hint.
    let mut execution = claimed.row.execution;
    let fence = claimed.fence;
    let now = bench.now();
    execution.start(None, now).unwrap();
    let saved = execution.clone();
    let lines: Vec<_> = (0..500).map(|n| output_event(claimed.seq + 1 + n, "stdout", n, "line\n")).collect();
    let written = bench.transaction(async move |tx| {
        save(tx, fence, &saved, None).await?;
        append_events(tx, id, &lines).await
    });
    written.await.unwrap();
    assert_eq!(next_hints(&mut listener).await, [Hint::Execution(id)]);

    let alice = executions::OwnerScope::User(bench.alice);
    write!(bench, tx => cancel(tx, alice, id, now)).unwrap();
    assert_eq!(next_hints(&mut listener).await, [Hint::Cancel(id)]);
    execution.end(ExecutionStatus::Cancelled, AttemptExit::default(), now).unwrap();
    write!(bench, tx => save(tx, fence, &execution, None)).unwrap();
    assert_eq!(next_hints(&mut listener).await, [Hint::Ended(id)]);
}

async fn hints_are_sent_once_per_committed_transaction(bench: Bench) {
    // OPS-5
    let mut listener = remote_listener(&bench).await;
    let a = bench.new_execution(bench.alice, "a");
    let b = bench.new_execution(bench.alice, "b");
    let again = bench.new_execution(bench.alice, "a");
    let failed: store::Result<()> = bench
        .transaction(async move |tx| {
            executions::enqueue(tx, &a).await?;
            Err(store::Error::NotFound)
        })
        .await;
    assert!(failed.is_err());
    let a = bench.new_execution(bench.alice, "a");
    let written = [b, again];
    let submitted = bench.transaction(async move |tx| {
        executions::enqueue(tx, &a).await?;
        for new in &written {
            executions::enqueue(tx, new).await?;
        }
        Ok(())
    });
    submitted.await.unwrap();
    assert_eq!(next_hints(&mut listener).await, [Hint::Queue("a".into()), Hint::Queue("b".into())]);
}

async fn a_listener_reconnects(bench: Bench) {
    // OPS-5
    let mut listener = remote_listener(&bench).await;
    let killed = bench.count(
        "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity \
         WHERE datname = current_database() AND query LIKE 'LISTEN%'",
    );
    assert_eq!(killed.await, 1);
    assert_eq!(next_hints(&mut listener).await, [Hint::Everything], "hints may be lost");
    bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    assert_eq!(next_hints(&mut listener).await, [Hint::Queue("a".into())]);
}

#[tokio::test]
async fn sqlite_sends_no_hints() {
    // OPS-5
    let bench = Bench::sqlite().await;
    assert!(bench.store.hint_listener().is_none());
    bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
}
