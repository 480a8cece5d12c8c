//! The stop of everything: one row holds the state. While it is set, the statements of the queue claim and accept
//! nothing, on any node.
//!
//! On PostgreSQL, transactions that accept or claim work hold a shared lock, and [`stop`] takes the lock exclusively.
//! So a claim is committed before the stop, or it sees the stop. [`stop`] locks no row of an execution: a claim may hold
//! one while it waits for the lock. [`request_ends`] therefore belongs to a later transaction.

use jiff::Timestamp;
use model::UserId;
use model::stop_state::StopState;
use uuid::Uuid;

use crate::conn::{Conn, DbRow, Statement, args};
use crate::hints::Hint;
use crate::{Error, Result};

/// True while everything is stopped.
pub(crate) const IS_STOPPED: &str = "EXISTS (SELECT 1 FROM stop_state st WHERE st.resumed_at IS NULL)";
/// The number of the lock. No other lock of this database uses it.
pub(crate) const SHARED_LOCK: &str = "pg_advisory_xact_lock_shared(7717000003)";
const EXCLUSIVE_LOCK: &str = "SELECT pg_advisory_xact_lock(7717000003)";

/// The result of [`stop`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopChange {
    /// The state before, if everything was stopped already.
    pub before: Option<StopState>,
    pub after: StopState,
}

impl StopChange {
    /// Returns true if the state differs from the one before.
    pub fn is_change(&self) -> bool {
        self.before.as_ref() != Some(&self.after)
    }
}

/// The work that a stop affects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AffectedWork {
    /// The number of running executions.
    pub executions: i64,
    /// The number of open sessions.
    pub sessions: i64,
    /// The number of queued executions.
    pub queued: i64,
    /// The number of enabled schedules.
    pub schedules: i64,
}

/// The executions and sessions that were requested to end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestedEnds {
    pub executions: Vec<Uuid>,
    pub sessions: Vec<Uuid>,
}

/// Stops everything and sends a hint to all nodes. After the commit, no node claims an execution. If everything is
/// stopped already, the time and the user stay, and a given `reason` replaces the earlier one.
pub async fn stop(conn: &mut Conn, by: UserId, reason: Option<&str>, now: Timestamp) -> Result<StopChange> {
    if !conn.is_sqlite() {
        conn.batch(EXCLUSIVE_LOCK).await?;
    }
    let before = current(conn).await?;
    let after = match &before {
        Some(state) => {
            StopState { reason: reason.map(str::to_owned).or_else(|| state.reason.clone()), ..state.clone() }
        }
        None => StopState { stopped_at: now, reason: reason.map(str::to_owned), by, resumed_at: None },
    };
    let sql = "INSERT INTO stop_state (id, stopped_at, reason, stopped_by) VALUES (1, $1, $2, $3) \
               ON CONFLICT (id) DO UPDATE SET stopped_at = excluded.stopped_at, reason = excluded.reason, \
               stopped_by = excluded.stopped_by, resumed_at = NULL";
    conn.run((sql, args![after.stopped_at, after.reason.as_deref(), after.by])).await?;
    conn.add_hint(Hint::Stop);
    Ok(StopChange { before, after })
}

/// Ends the stop, sends a hint to all nodes, and returns the state with the end. The queue timeouts of queued executions
/// continue: the time of the stop does not count. Returns `None` without a change if nothing is stopped.
pub async fn resume(conn: &mut Conn, now: Timestamp) -> Result<Option<StopState>> {
    let sql = "UPDATE stop_state SET resumed_at = $1 WHERE resumed_at IS NULL";
    if conn.run((sql, args![now])).await? == 0 {
        return Ok(None);
    }
    conn.add_hint(Hint::Stop);
    let state = last(conn).await?;
    if let Some(state) = &state {
        let sql = "UPDATE executions SET wait_until = wait_until + $1 WHERE state = 'idle' AND wait_until > $2";
        let length = now.as_microsecond().saturating_sub(state.stopped_at.as_microsecond()).max(0);
        conn.run((sql, args![length, state.stopped_at])).await?;
    }
    Ok(state)
}

/// Returns the state while everything is stopped, otherwise `None`.
pub async fn current(conn: &mut Conn) -> Result<Option<StopState>> {
    Ok(last(conn).await?.filter(|state| state.resumed_at.is_none()))
}

/// Returns the last stop, also if it has ended.
pub async fn last(conn: &mut Conn) -> Result<Option<StopState>> {
    let sql = "SELECT stopped_at, reason, stopped_by, resumed_at FROM stop_state WHERE id = 1";
    conn.first((sql, [])).await?.as_ref().map(read).transpose()
}

/// Fails with [`Error::Stopped`] while everything is stopped. The transaction must hold the shared lock.
pub(crate) async fn check(conn: &mut Conn) -> Result<()> {
    match current(conn).await? {
        Some(StopState { reason, .. }) => Err(Error::Stopped { reason }),
        None => Ok(()),
    }
}

/// Counts the work that a stop affects.
pub async fn affected_work(conn: &mut Conn) -> Result<AffectedWork> {
    let sql = "SELECT (SELECT COUNT(*) FROM executions WHERE ended_at IS NULL AND state <> 'idle'), \
               (SELECT COUNT(*) FROM sessions WHERE ended_at IS NULL), \
               (SELECT COUNT(*) FROM executions WHERE state = 'idle'), \
               (SELECT COUNT(*) FROM schedules WHERE enabled = 1)";
    let Some(row) = conn.first((sql, [])).await? else { return Ok(AffectedWork::default()) };
    Ok(AffectedWork { executions: row.int(0)?, sessions: row.int(1)?, queued: row.int(2)?, schedules: row.int(3)? })
}

/// Returns true if an execution or a session runs that was not requested to end.
pub async fn has_running(conn: &mut Conn) -> Result<bool> {
    let sql = "SELECT 1 WHERE EXISTS (SELECT 1 FROM executions WHERE ended_at IS NULL AND state <> 'idle' \
               AND cancel_asked IS NULL) OR EXISTS (SELECT 1 FROM sessions WHERE ended_at IS NULL AND state <> 'closing')";
    Ok(conn.first((sql, [])).await?.is_some())
}

/// Requests the end of all running executions and open sessions, with hints to their nodes. `error` becomes the error of
/// the executions. Requests that exist stay unchanged.
pub async fn request_ends(conn: &mut Conn, error: &str, now: Timestamp) -> Result<RequestedEnds> {
    // The rows are locked in order, because several nodes may do this at the same time.
    let lock = if conn.is_sqlite() { "" } else { " FOR UPDATE" };
    let mut update = Statement::default();
    update.push("UPDATE executions SET cancel_asked = ").bind(now).push(", cancel_reason = ").bind(error);
    update.push(" WHERE id IN (SELECT id FROM executions WHERE ended_at IS NULL AND state <> 'idle' ");
    update.push("AND cancel_asked IS NULL ORDER BY id").push(lock).push(") RETURNING id");
    let executions = ids(&conn.all(update).await?)?;
    executions.iter().for_each(|id| conn.add_hint(Hint::Cancel(*id)));
    let mut update = Statement::default();
    update.push("UPDATE sessions SET state = 'closing' WHERE id IN (SELECT id FROM sessions WHERE ended_at IS NULL ");
    update.push("AND state <> 'closing' ORDER BY id").push(lock).push(") RETURNING id");
    let sessions = ids(&conn.all(update).await?)?;
    sessions.iter().for_each(|id| conn.add_hint(Hint::Session(*id)));
    Ok(RequestedEnds { executions, sessions })
}

fn ids(rows: &[DbRow]) -> Result<Vec<Uuid>> {
    rows.iter().map(|row| row.parsed(0, Uuid::try_parse)).collect()
}

/// Reads the columns of [`last`]. Fails with [`Error::Corrupt`] if a column is invalid.
fn read(row: &DbRow) -> Result<StopState> {
    Ok(StopState {
        stopped_at: row.time(0)?,
        reason: row.maybe_text(1)?,
        by: row.parsed(2, str::parse)?,
        resumed_at: row.maybe_time(3)?,
    })
}
