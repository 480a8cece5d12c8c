//! Runs agents at the occurrences of their schedules. Each occurrence runs once, on any number of nodes, and gets a
//! recorded decision with a reason.
//!
//! No node is the leader. A node that finds a due schedule replaces its next occurrence by the one after it. The same
//! transaction enqueues the execution and writes the decision. The table is the only state: a node can be killed at any
//! time, and any node continues from the table. A schedule that is not due uses no memory.

mod clock_steps;
mod explain;
mod fire;
mod firing;
mod follow_up;
mod manage;
mod notices;
pub mod occurrences;
mod plan;
mod run;
mod sync;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use model::clock::StepDetector;
use model::schedule::DecisionKind;
use model::{Clock, User, UserId};
use store::{Store, Transaction};
use supervisor::Supervisor;
use tokio::sync::Notify;

pub use manage::{CheckedSchedule, ScheduleChange, check_draft};
pub use notices::{DiscardNotices, ScheduleEvent, ScheduleNotice, ScheduleNoticeSink};
pub use sync::SyncReport;

/// The pause reason of a schedule without future occurrences. Stored in rows and compared with them.
pub const FINISHED_REASON: &str = "finished: it has no more times";

/// The dependencies of a scheduler.
pub struct SchedulerOptions {
    pub supervisor: Supervisor,
    pub notices: Arc<dyn ScheduleNoticeSink>,
    /// Called at each crash point of a firing. Tests end the process there.
    pub crash_hook: Option<CrashHook>,
}

/// A function that is called at each [`CrashPoint`].
pub type CrashHook = Arc<dyn Fn(CrashPoint) + Send + Sync>;

/// A step of a firing at which tests end the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashPoint {
    /// The schedule was found to be due.
    Due,
    /// The executions are ready to be enqueued.
    Prepared,
    /// The next occurrence is replaced. The transaction is still open.
    Advanced,
    /// Everything is written. The transaction is still open.
    Written,
    /// The transaction is committed.
    Committed,
}

/// Fires schedules and handles the ends of their executions. Cheap to clone.
#[derive(Clone)]
pub struct Scheduler(Arc<SchedulerShared>);

struct SchedulerShared {
    supervisor: Supervisor,
    notices: Arc<dyn ScheduleNoticeSink>,
    crash_hook: Option<CrashHook>,
    /// Wakes the firing loop: a schedule may be due earlier than before.
    wake: Notify,
    /// Determines when the next occurrences are compared with the clock.
    steps: Mutex<StepDetector>,
    /// The decisions of this node, indexed by [`DecisionKind`].
    decision_counts: [AtomicU64; DecisionKind::ALL.len()],
}

impl std::fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scheduler").finish_non_exhaustive()
    }
}

impl Scheduler {
    /// Creates a scheduler. It does nothing until [`Scheduler::run`] is polled.
    pub fn new(options: SchedulerOptions) -> Self {
        let SchedulerOptions { supervisor, notices, crash_hook } = options;
        Self(Arc::new(SchedulerShared {
            supervisor,
            notices,
            crash_hook,
            wake: Notify::new(),
            steps: Mutex::default(),
            decision_counts: Default::default(),
        }))
    }

    /// Makes the firing loop read the next due time again.
    pub fn wake(&self) {
        self.0.wake.notify_one();
    }

    /// Wakes the firing loop after the commit, because a schedule may be due earlier than before.
    fn wake_after_commit(&self, tx: &mut Transaction) {
        let scheduler = self.clone();
        tx.after_commit(move || scheduler.wake());
    }

    /// Counts a decision after the commit.
    fn count_after_commit(&self, tx: &mut Transaction, kind: DecisionKind) {
        let scheduler = self.clone();
        tx.after_commit(move || {
            scheduler.0.decision_counts[kind as usize].fetch_add(1, Ordering::Relaxed);
        });
    }

    /// Yields the number of decisions of each kind that this node has made.
    pub fn decision_counts(&self) -> impl Iterator<Item = (DecisionKind, u64)> {
        DecisionKind::ALL.iter().map(|kind| (*kind, self.0.decision_counts[*kind as usize].load(Ordering::Relaxed)))
    }

    /// Returns the supervisor that runs the executions.
    pub fn supervisor(&self) -> &Supervisor {
        &self.0.supervisor
    }

    fn store(&self) -> &Store {
        self.0.supervisor.store()
    }

    fn clock(&self) -> &Clock {
        self.0.supervisor.clock()
    }

    /// Returns the maximum number of concurrent transactions. On SQLite they share one sync to disk. On PostgreSQL each
    /// needs a connection, and other components need connections as well.
    fn max_concurrent_transactions(&self) -> usize {
        if self.store().is_shared() { 8 } else { 128 }
    }

    /// Calls the crash hook, if one is set.
    fn reach(&self, point: CrashPoint) {
        if let Some(crash_hook) = &self.0.crash_hook {
            crash_hook(point);
        }
    }
}

/// Returns the owner of a schedule as a user in UTC. Only administrators create schedules (OPS-6), so the user is one.
fn schedule_owner(id: UserId) -> User {
    User { id, scopes: vec![model::user::ADMIN_SCOPE.to_owned()], time_zone: jiff::tz::TimeZone::UTC }
}
