//! A transaction returns the error of its job, and its effects follow its outcome.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use store::{Error, Transaction, tasks};

use crate::Bench;

crate::on_both!(
    effects_follow_the_outcome,
    a_panic_counts_as_a_rollback,
    a_job_fails_with_its_own_error,
    effects_run_after_the_caller_is_dropped,
);

#[derive(Clone, Default)]
struct Counters {
    committed: Arc<AtomicUsize>,
    rolled_back: Arc<AtomicUsize>,
}

impl Counters {
    fn register(&self, tx: &mut Transaction) {
        let committed = self.committed.clone();
        let rolled_back = self.rolled_back.clone();
        tx.after_commit(move || {
            committed.fetch_add(1, Ordering::SeqCst);
        });
        tx.on_rollback(move || {
            rolled_back.fetch_add(1, Ordering::SeqCst);
        });
    }

    fn seen(&self) -> (usize, usize) {
        (self.committed.load(Ordering::SeqCst), self.rolled_back.load(Ordering::SeqCst))
    }
}

async fn effects_follow_the_outcome(bench: Bench) {
    let counters = Counters::default();
    for (fails, expected) in [(false, (1, 0)), (true, (1, 1)), (false, (2, 1))] {
        let registered = counters.clone();
        let result = bench.transaction(async move |tx| {
            registered.register(tx);
            if fails { Err(Error::NotFound) } else { Ok(()) }
        });
        assert_eq!(result.await.is_err(), fails);
        assert_eq!(counters.seen(), expected, "effects run before the transaction returns");
    }
}

async fn a_panic_counts_as_a_rollback(bench: Bench) {
    let counters = Counters::default();
    let registered = counters.clone();
    let result: store::Result<()> = bench
        .transaction(async move |tx| {
            registered.register(tx);
            panic!("on purpose")
        })
        .await;
    assert!(matches!(result, Err(Error::Unavailable(_))), "{result:?}");
    assert_eq!(counters.seen(), (0, 1));
}

#[derive(Debug)]
enum OwnError {
    Refused,
    Store(Error),
}

impl From<Error> for OwnError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

async fn a_job_fails_with_its_own_error(bench: Bench) {
    let task = bench.titled("rolled back");
    let owner = bench.alice;
    let id = task.id;
    let refused = bench.store.owner_transaction(owner, async move |tx| {
        let mut step = store::undo::UndoStep::begin(tx, owner).await?;
        tasks::create(tx, &mut step, &task).await?;
        Err::<(), _>(OwnError::Refused)
    });
    assert!(matches!(refused.await, Err(OwnError::Refused)));
    let missing = bench.store.transaction(async move |tx| tasks::get(tx, owner, id).await.map_err(OwnError::from));
    assert!(matches!(missing.await, Err(OwnError::Store(Error::NotFound))));
}

async fn effects_run_after_the_caller_is_dropped(bench: Bench) {
    let (entered, has_entered) = tokio::sync::oneshot::channel();
    let (proceed, may_proceed) = tokio::sync::oneshot::channel::<()>();
    let (ran, has_run) = mpsc::channel();
    let transaction = bench.transaction(async move |tx| {
        tx.after_commit(move || ran.send(()).unwrap());
        entered.send(()).unwrap();
        may_proceed.await.unwrap();
        Ok(())
    });
    tokio::select! {
        _ = transaction => panic!("the transaction ended before it was allowed to"),
        entered = has_entered => entered.unwrap(),
    }
    proceed.send(()).unwrap();
    let waited = tokio::task::spawn_blocking(move || has_run.recv_timeout(std::time::Duration::from_secs(30)));
    assert!(waited.await.unwrap().is_ok(), "the effect did not run");
}
