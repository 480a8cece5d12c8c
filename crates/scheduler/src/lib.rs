//! Runs agents at the times of their schedules: each time once, however many nodes there are, and with a decision on
//! record that says what became of it and why.
//!
//! Nobody leads. Whoever sees that a schedule is due swaps its next time for the one behind it; in the transaction in which
//! that succeeds, the execution is put into the queue and the decision is written. The table is the truth; everything here
//! can be killed at any moment and goes on from there. Nothing is kept in memory for a schedule that is not due.

mod explain;
mod fire;
mod firing;
mod follow;
mod manage;
mod notices;
mod plan;
mod run;
mod sync;
pub mod when;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use model::schedule::Kind;
use model::{Clock, User, UserId};
use store::{Store, Transaction};
use supervisor::Supervisor;
use tokio::sync::Notify;

pub use manage::{Checked, check_written};
pub use notices::{Event, News, Notices, Silent};
pub use sync::Synced;

/// Why a schedule is paused that has no more times.
pub const FINISHED: &str = "finished: it has no more times";

/// What the scheduler is made of.
pub struct Options {
    pub supervisor: Supervisor,
    pub notices: Arc<dyn Notices>,
    /// Is told where a firing is; tests end the process there.
    pub witness: Option<Witness>,
}

pub type Witness = Arc<dyn Fn(Point) + Send + Sync>;

/// Where a firing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// It was seen that a schedule is due.
    Seen,
    /// The execution could be put into the queue.
    Prepared,
    /// Its next time is another one, in a transaction that goes on.
    Advanced,
    /// Everything is written, in a transaction that goes on.
    Written,
    /// The transaction is committed.
    Committed,
}

/// A cheap handle.
#[derive(Clone)]
pub struct Scheduler(Arc<Inner>);

struct Inner {
    supervisor: Supervisor,
    notices: Arc<dyn Notices>,
    witness: Option<Witness>,
    /// Something may be due earlier than it was.
    call: Notify,
    /// Decisions of this node, by [`Kind::ALL`].
    decided: [AtomicU64; Kind::ALL.len()],
}

impl std::fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scheduler").finish_non_exhaustive()
    }
}

impl Scheduler {
    pub fn new(options: Options) -> Self {
        let Options { supervisor, notices, witness } = options;
        Self(Arc::new(Inner { supervisor, notices, witness, call: Notify::new(), decided: Default::default() }))
    }

    /// Has the scheduler read the next due time again.
    pub fn wake(&self) {
        self.0.call.notify_one();
    }

    /// Wakes the scheduler once the transaction is committed: a schedule may be due earlier than before.
    fn wake_after_commit(&self, tx: &mut Transaction) {
        let scheduler = self.clone();
        tx.after_commit(move || scheduler.wake());
    }

    /// Counts a decision once the transaction is committed.
    fn count_after_commit(&self, tx: &mut Transaction, kind: Kind) {
        let scheduler = self.clone();
        tx.after_commit(move || {
            scheduler.0.decided[kind as usize].fetch_add(1, Ordering::Relaxed);
        });
    }

    /// How often this node has decided what.
    pub fn decided(&self) -> impl Iterator<Item = (Kind, u64)> {
        Kind::ALL.iter().map(|kind| (*kind, self.0.decided[*kind as usize].load(Ordering::Relaxed)))
    }

    pub fn supervisor(&self) -> &Supervisor {
        &self.0.supervisor
    }

    fn store(&self) -> &Store {
        self.0.supervisor.store()
    }

    fn clock(&self) -> &Clock {
        self.0.supervisor.clock()
    }

    /// How many transactions are under way at once. On SQLite they share one wait for the disk; on PostgreSQL each has a
    /// connection, and others need some too.
    fn together(&self) -> usize {
        if self.store().is_shared() { 8 } else { 128 }
    }

    fn at(&self, point: Point) {
        if let Some(witness) = &self.0.witness {
            witness(point);
        }
    }
}

/// Whoever owns a schedule had the right to make it (OPS-6), and its runs have that right.
fn owner(id: UserId) -> User {
    User { id, scopes: vec![model::user::ADMIN_SCOPE.to_owned()], time_zone: jiff::tz::TimeZone::UTC }
}
