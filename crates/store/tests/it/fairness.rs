//! Fairness between users: many requests of one user neither use up the connections nor delay another user for long.

use std::sync::{Arc, Mutex};

use model::UserId;
use store::Store;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::{Bench, on_both};

on_both!(a_write_waits_for_few_writes_of_another_user);

const WRITES: usize = 60;

/// The owners in the order in which their writes ran.
type Order = Arc<Mutex<Vec<UserId>>>;

/// Starts a write that waits for the gate inside its transaction. Its subscription to the gate marks the start of the
/// transaction.
fn gated_write(store: &Store, owner: UserId, order: &Order, gate: &watch::Sender<bool>) -> JoinHandle<()> {
    let store = store.clone();
    let order = order.clone();
    let gate = gate.clone();
    tokio::spawn(async move {
        let write = store.owner_transaction(owner, async move |_| {
            gate.subscribe().wait_for(|open| *open).await.unwrap();
            order.lock().unwrap().push(owner);
            Ok::<_, store::Error>(())
        });
        write.await.unwrap();
    })
}

async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}

async fn a_write_waits_for_few_writes_of_another_user(bench: Bench) {
    // OPS-5
    let store = &bench.store;
    let order = Order::default();
    let gate = watch::Sender::new(false);
    let mut writes: Vec<_> = (0..WRITES).map(|_| gated_write(store, bench.alice, &order, &gate)).collect();
    // SQLite does not count the running one.
    until(|| store.waiting_writes() >= WRITES - 1).await;
    writes.push(gated_write(store, bench.bob, &order, &gate));
    until(|| store.waiting_writes() >= WRITES + usize::from(store.is_shared())).await;
    // PostgreSQL runs a transaction of each user at the same time.
    until(|| gate.receiver_count() > usize::from(store.is_shared())).await;
    gate.send_replace(true);
    for write in writes {
        write.await.unwrap();
    }
    let position = order.lock().unwrap().iter().position(|owner| *owner == bench.bob).unwrap();
    assert!(position <= 2, "{position} writes of the other user ran before");
    assert_eq!(store.waiting_writes(), 0);
}

mod connections {
    use super::{a_user_holds_few_connections, health_is_checked_while_all_connections_are_in_use};
    crate::on_postgres!(a_user_holds_few_connections, health_is_checked_while_all_connections_are_in_use);
}

async fn a_user_holds_few_connections(bench: Bench) {
    // OPS-5
    let order = Order::default();
    let gate = watch::Sender::new(false);
    let writes: Vec<_> = (0..WRITES).map(|_| gated_write(&bench.store, bench.alice, &order, &gate)).collect();
    until(|| bench.store.waiting_writes() == WRITES).await;
    let mut readers = Vec::new();
    for _ in 0..4 {
        readers.push(bench.store.owner_reader(bench.alice).await.unwrap());
    }
    let fifth = bench.store.owner_reader(bench.alice);
    assert!(futures::FutureExt::now_or_never(fifth).is_none(), "four connections for reads");
    // Another user can read and write.
    bench.add(bench.bob, bench.titled("a task")).await;
    assert_eq!(bench.titles(bench.bob).await, ["a task"]);
    let open = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                AND xact_start IS NOT NULL AND pid <> pg_backend_pid()";
    let open = bench.count(open).await;
    assert!((1..=2).contains(&open), "{open} transactions are open");
    drop(readers);
    gate.send_replace(true);
    for write in writes {
        write.await.unwrap();
    }
    assert_eq!(order.lock().unwrap().len(), WRITES);
}

async fn health_is_checked_while_all_connections_are_in_use(bench: Bench) {
    // OPS-2, OPS-5
    let mut readers = Vec::new();
    for _ in 0..16 {
        readers.push(bench.store.reader().await.unwrap());
    }
    assert!(futures::FutureExt::now_or_never(bench.store.reader()).is_none(), "the pool is in use");
    bench.store.ping().await.unwrap();
    bench.store.test_write().await.unwrap();
}
