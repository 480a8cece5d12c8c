//! The quotas of users (SEC-5). Functions that add rows of a user check them first, in the same transaction.
//!
//! Counting 100,000 rows for each new one would be slow. So the store remembers an upper bound of each number, and
//! counts only if the bound does not exclude that the limit is reached. Only the count refuses a request. The count is
//! exact, because transactions that count hold the lock of the owner.
//!
//! With SQLite, all writes pass through this process, and additions raise the bound. A rollback of the transaction that
//! has counted removes it. With PostgreSQL, other nodes add
//! rows too. A bound is then used only for [`SHARED_LIFETIME`], and only if [`SHARED_MARGIN`] more rows are allowed.
//! Other nodes cannot add as many in this time, because each row needs several statements.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use jiff::civil::Time;
use jiff::{SignedDuration, Timestamp};
use model::UserId;
use model::quota::{QuotaKind, QuotaReached, Quotas};
use uuid::Uuid;

use crate::Result;
use crate::conn::{Conn, args};

/// The time for which a bound is valid if other nodes write to the database.
const SHARED_LIFETIME: Duration = Duration::from_millis(500);
/// The number of rows that other nodes may add in that time.
const SHARED_MARGIN: i64 = 10_000;
/// The number of bounds above which all are forgotten.
const MAX_BOUNDS: usize = 100_000;
/// The period of [`Quotas::runs_per_day`].
const RUN_PERIOD: SignedDuration = SignedDuration::from_hours(24);
/// The time after which a refused run is repeated, in seconds, if a slot may be free by then.
const QUEUE_RETRY_SECONDS: u64 = 5;

/// A quota for the number of rows of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RowQuota {
    Tasks,
    Reminders,
    Schedules,
    Conversations,
}

impl RowQuota {
    const ALL: [Self; 4] = [Self::Tasks, Self::Reminders, Self::Schedules, Self::Conversations];

    fn kind(self) -> QuotaKind {
        match self {
            Self::Tasks => QuotaKind::Tasks,
            Self::Reminders => QuotaKind::Reminders,
            Self::Schedules => QuotaKind::Schedules,
            Self::Conversations => QuotaKind::Conversations,
        }
    }

    fn limit(self, quotas: &Quotas) -> Option<i64> {
        match self {
            Self::Tasks => quotas.tasks,
            Self::Reminders => quotas.reminders,
            Self::Schedules => quotas.schedules,
            Self::Conversations => quotas.conversations,
        }
    }

    /// Returns the statement that counts the rows of the owner, up to a limit.
    fn count_statement(self) -> &'static str {
        match self {
            Self::Tasks => "SELECT COUNT(*) FROM (SELECT 1 FROM tasks WHERE owner = $1 LIMIT $2) counted",
            Self::Reminders => {
                "SELECT COUNT(*) FROM (SELECT 1 FROM reminders WHERE owner = $1 AND status = 'scheduled' LIMIT $2) counted"
            }
            Self::Schedules => {
                "SELECT COUNT(*) FROM (SELECT 1 FROM schedules WHERE owner = $1 AND source <> 'file' LIMIT $2) counted"
            }
            Self::Conversations => {
                "SELECT COUNT(*) FROM (SELECT 1 FROM conversations WHERE owner = $1 LIMIT $2) counted"
            }
        }
    }
}

/// The quotas, the upper bounds of the numbers of rows, and the time of day of reminders. Clones share one state.
#[derive(Clone, Debug)]
pub(crate) struct QuotaLedger(Arc<LedgerState>);

#[derive(Debug)]
struct LedgerState {
    quotas: RwLock<Quotas>,
    bounds: Mutex<HashMap<(UserId, RowQuota), RowBound>>,
    /// The number of counts since the start.
    counts: AtomicU64,
    /// The time of day of reminders for a day.
    reminder_time: RwLock<Time>,
}

/// An upper bound of the number of rows of a user.
#[derive(Clone, Copy, Debug)]
struct RowBound {
    rows: i64,
    counted_at: Instant,
}

impl Default for QuotaLedger {
    /// Returns a ledger without limits.
    fn default() -> Self {
        let quotas = RwLock::new(Quotas::UNLIMITED);
        let reminder_time = RwLock::new(model::reminder::DEFAULT_TIME);
        Self(Arc::new(LedgerState { quotas, bounds: Mutex::default(), counts: AtomicU64::new(0), reminder_time }))
    }
}

impl QuotaLedger {
    /// Replaces the quotas. Forgets all bounds, because rows without a limit do not raise them.
    pub(crate) fn set(&self, quotas: Quotas) {
        *self.0.quotas.write().unwrap_or_else(PoisonError::into_inner) = quotas;
        self.forget_all();
    }

    pub(crate) fn quotas(&self) -> Quotas {
        *self.0.quotas.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the time of day of reminders for a day.
    pub(crate) fn set_reminder_time(&self, time: Time) {
        *self.0.reminder_time.write().unwrap_or_else(PoisonError::into_inner) = time;
    }

    pub(crate) fn reminder_time(&self) -> Time {
        *self.0.reminder_time.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of counts since the start.
    pub(crate) fn counts(&self) -> u64 {
        self.0.counts.load(Ordering::Relaxed)
    }

    /// Forgets the bounds of a user, because rows were added without a check.
    pub(crate) fn forget(&self, owner: UserId) {
        let mut bounds = self.bounds();
        for quota in RowQuota::ALL {
            bounds.remove(&(owner, quota));
        }
    }

    /// Forgets all bounds.
    pub(crate) fn forget_all(&self) {
        self.bounds().clear();
    }

    /// Raises the bound for rows that are added without a check.
    pub(crate) fn add(&self, owner: UserId, quota: RowQuota, added: i64) {
        if let Some(bound) = self.bounds().get_mut(&(owner, quota)) {
            bound.rows = bound.rows.saturating_add(added);
        }
    }

    /// Adds `added` rows to the bound and returns true if they are certainly within the limit.
    fn reserve(&self, owner: UserId, quota: RowQuota, added: i64, limit: i64, shared: bool) -> bool {
        let mut bounds = self.bounds();
        let Some(bound) = bounds.get_mut(&(owner, quota)) else { return false };
        if shared && bound.counted_at.elapsed() > SHARED_LIFETIME {
            return false;
        }
        let margin = if shared { SHARED_MARGIN } else { 0 };
        let rows = bound.rows.saturating_add(added);
        let fits = rows.saturating_add(margin) <= limit;
        if fits {
            bound.rows = rows;
        }
        fits
    }

    /// Records the result of a count.
    fn record(&self, owner: UserId, quota: RowQuota, rows: i64) {
        self.0.counts.fetch_add(1, Ordering::Relaxed);
        let mut bounds = self.bounds();
        if bounds.len() >= MAX_BOUNDS {
            bounds.clear();
        }
        bounds.insert((owner, quota), RowBound { rows, counted_at: Instant::now() });
    }

    fn bounds(&self) -> MutexGuard<'_, HashMap<(UserId, RowQuota), RowBound>> {
        self.0.bounds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes sure that the transaction holds the lock of the owner, which serializes changes of tasks and counts. A transaction
/// that was begun for this owner holds it from the start, see [`crate::Store::owner_transaction`]. Takes the lock if an
/// operator acts for another user. Debug builds reject a transaction that was begun for no owner, because it would wait for
/// the lock with a connection. SQLite has only one writer and needs no lock, and
/// readers take none.
pub(crate) async fn lock_owner(conn: &mut Conn, owner: UserId) -> Result<()> {
    if conn.owner() == Some(owner) || conn.is_reader() {
        return Ok(());
    }
    debug_assert!(
        conn.owner().is_some(),
        "a transaction that changes data of a user must use Store::owner_transaction"
    );
    if conn.is_postgres_transaction() {
        let lock = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
        conn.first((lock, args![owner])).await?;
    }
    Ok(())
}

/// Checks that the owner may add one row, before it is added. Fails with [`crate::Error::QuotaReached`] if not.
pub(crate) async fn check_new(conn: &mut Conn, owner: UserId, quota: RowQuota) -> Result<()> {
    check(conn, owner, quota, 1, 1).await
}

/// Checks the number of rows after `added` rows were added. Fails with [`crate::Error::QuotaReached`] if the owner has
/// too many; the caller must roll back.
pub(crate) async fn check_added(conn: &mut Conn, owner: UserId, quota: RowQuota, added: usize) -> Result<()> {
    match i64::try_from(added).unwrap_or(i64::MAX) {
        0 => Ok(()),
        added => check(conn, owner, quota, added, 0).await,
    }
}

/// Checks the number of rows. `added` rows are new, and `pending` of them are not in the table yet.
async fn check(conn: &mut Conn, owner: UserId, quota: RowQuota, added: i64, pending: i64) -> Result<()> {
    let ledger = conn.quotas().clone();
    let Some(limit) = quota.limit(&ledger.quotas()) else { return Ok(()) };
    if ledger.reserve(owner, quota, added, limit, !conn.is_sqlite()) {
        return Ok(());
    }
    lock_owner(conn, owner).await?;
    let values = args![owner, limit.saturating_add(1)];
    let counted = conn.first((quota.count_statement(), values)).await?.map_or(Ok(0), |row| row.int(0))?;
    let total = counted.saturating_add(pending);
    let fits = total <= limit;
    ledger.record(owner, quota, if fits { total } else { counted });
    conn.mark_counted(owner);
    if fits { Ok(()) } else { Err(QuotaReached::new(quota.kind(), limit).into()) }
}

/// Checks the number of scheduled reminders of a task. `pending` of them are not in the table yet. Fails with
/// [`crate::Error::QuotaReached`] if it has too many.
pub(crate) async fn check_reminders_of_task(conn: &mut Conn, owner: UserId, task: Uuid, pending: i64) -> Result<()> {
    let Some(limit) = conn.quotas().quotas().reminders_per_task else { return Ok(()) };
    let sql = "SELECT COUNT(*) FROM reminders WHERE owner = $1 AND task_id = $2 AND status = 'scheduled'";
    let counted = conn.first((sql, args![owner, task])).await?.map_or(Ok(0), |row| row.int(0))?;
    if counted.saturating_add(pending) <= limit {
        return Ok(());
    }
    Err(QuotaReached::new(QuotaKind::RemindersPerTask, limit).into())
}

/// Checks that the owner may have another execution. Fails with [`crate::Error::QuotaReached`] if not, with the time at
/// which the first of the counted ones is a day old.
pub(crate) async fn check_new_run(conn: &mut Conn, owner: UserId, now: Timestamp) -> Result<()> {
    let Some(limit) = conn.quotas().quotas().runs_per_day else { return Ok(()) };
    lock_owner(conn, owner).await?;
    // Ids begin with the time of their creation, so the index on owner and id is also one on time.
    let from = first_id_at(now - RUN_PERIOD);
    let sql = "SELECT created_at FROM executions WHERE owner = $1 AND id >= $2 ORDER BY id DESC LIMIT 1 OFFSET $3";
    let Some(row) = conn.first((sql, args![owner, from, limit - 1])).await? else { return Ok(()) };
    let wait = (row.time(0)? + RUN_PERIOD).duration_since(now).as_secs().max(0);
    let retry_after = Some(wait.unsigned_abs() + 1);
    Err(QuotaReached { kind: QuotaKind::RunsPerDay, limit, retry_after }.into())
}

/// Checks the share of the owner in the queue of an agent, in which `waiting` executions of all users wait. Executions
/// that will use a free slot do not count. Fails with [`crate::Error::QuotaReached`] if the owner has too many queued
/// executions.
pub(crate) async fn check_queue_share(
    conn: &mut Conn,
    owner: UserId,
    agent_id: &str,
    depth: i64,
    free_slots: i64,
    waiting: i64,
) -> Result<()> {
    let quotas = conn.quotas().quotas();
    let limit = quotas.share_of(depth);
    if quotas.queue_share.is_none() || waiting < limit.saturating_add(free_slots) {
        return Ok(());
    }
    let sql =
        "SELECT COUNT(*) FROM executions WHERE state = 'idle' AND session_id IS NULL AND agent_id = $1 AND owner = $2";
    let own = conn.first((sql, args![agent_id, owner])).await?.map_or(Ok(0), |row| row.int(0))?;
    if own < limit.saturating_add(free_slots) {
        return Ok(());
    }
    Err(QuotaReached { kind: QuotaKind::QueueShare, limit, retry_after: Some(QUEUE_RETRY_SECONDS) }.into())
}

/// Checks that the owner may open another session with an agent, which has `slots` slots. Fails with
/// [`crate::Error::QuotaReached`] if not.
pub(crate) async fn check_new_session(conn: &mut Conn, owner: UserId, agent_id: &str, slots: i64) -> Result<()> {
    let quotas = conn.quotas().quotas();
    if quotas.sessions.is_none() && quotas.queue_share.is_none() {
        return Ok(());
    }
    lock_owner(conn, owner).await?;
    let sql = "SELECT COUNT(*), COUNT(CASE WHEN agent_id = $2 THEN 1 END) FROM sessions WHERE owner = $1 AND ended_at IS NULL";
    let Some(row) = conn.first((sql, args![owner, agent_id])).await? else { return Ok(()) };
    if let Some(limit) = quotas.sessions
        && row.int(0)? >= limit
    {
        return Err(QuotaReached::new(QuotaKind::Sessions, limit).into());
    }
    let limit = quotas.share_of(slots);
    if quotas.queue_share.is_some() && row.int(1)? >= limit {
        return Err(QuotaReached::new(QuotaKind::SessionShare, limit).into());
    }
    Ok(())
}

/// Returns the smallest id that [`model::Clock::id`] creates at this time.
fn first_id_at(time: Timestamp) -> String {
    let millis = u64::try_from(time.as_millisecond()).unwrap_or_default();
    Uuid::from_u64_pair(millis << 16, 0).to_string()
}
