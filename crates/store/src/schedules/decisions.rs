//! The decisions about the occurrences of schedules. [`history`] and [`decisions_around`] check access; the other
//! functions work for the scheduler.

use jiff::Timestamp;
use model::schedule::{Decision, DecisionKind};
use uuid::Uuid;

use crate::conn::{Conn, DbRow, Statement, args};
use crate::executions::OwnerScope;
use crate::page::{Cursor, Page};
use crate::{Error, Result};

const COLUMNS: &str = "schedule_id, due_at, decided_at, kind, reason, execution_id, until_at";

/// Records a decision. Returns false, without a change, if the schedule already has one with the same `due_at`.
pub async fn record_decision(conn: &mut Conn, decision: &Decision) -> Result<bool> {
    let sql = "INSERT INTO decisions (schedule_id, due_at, decided_at, kind, reason, execution_id, until_at) \
               VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING";
    let values = args![
        decision.schedule_id,
        decision.due_at,
        decision.decided_at,
        decision.kind.as_str(),
        decision.reason.as_deref(),
        decision.execution_id.map(|id| id.to_string()),
        decision.until,
    ];
    Ok(conn.run((sql, values)).await? == 1)
}

/// Returns true if the last decision at or before `due_at` covers this occurrence. A decision can cover several
/// occurrences.
pub async fn is_decided(conn: &mut Conn, schedule_id: Uuid, due_at: Timestamp) -> Result<bool> {
    let sql = "SELECT COALESCE(until_at, due_at) FROM decisions WHERE schedule_id = $1 AND due_at <= $2 \
               ORDER BY due_at DESC LIMIT 1";
    let last = conn.first((sql, args![schedule_id, due_at])).await?.map(|row| row.time(0)).transpose()?;
    Ok(last.is_some_and(|last| last >= due_at))
}

/// Removes the decisions about occurrences after `now` that did not run: the clock was ahead when they were made.
/// Shortens a series that ends after `now`. Decisions about started or queued occurrences stay.
pub async fn forget_missed_after(conn: &mut Conn, schedule_id: Uuid, now: Timestamp) -> Result<()> {
    let sql = "DELETE FROM decisions WHERE schedule_id = $1 AND due_at > $2 AND kind IN ('missed', 'paused')";
    conn.run((sql, args![schedule_id, now])).await?;
    let sql = "UPDATE decisions SET until_at = $2 WHERE schedule_id = $1 AND due_at <= $2 AND until_at > $2";
    conn.run((sql, args![schedule_id, now])).await.map(drop)
}

/// Replaces the kind, time, reason and execution of a queued decision by its outcome. Its `until` stays. Returns false,
/// without a change, if it is no longer queued or does not exist.
pub async fn resolve_queued(conn: &mut Conn, decision: &Decision) -> Result<bool> {
    let sql = "UPDATE decisions SET decided_at = $3, kind = $4, reason = $5, execution_id = $6 \
               WHERE schedule_id = $1 AND due_at = $2 AND kind = 'queued'";
    let values = args![
        decision.schedule_id,
        decision.due_at,
        decision.decided_at,
        decision.kind.as_str(),
        decision.reason.as_deref(),
        decision.execution_id.map(|id| id.to_string()),
    ];
    Ok(conn.run((sql, values)).await? == 1)
}

/// Returns up to `limit` queued decisions in order. They wait for the end of the previous execution.
pub async fn queued_decisions(conn: &mut Conn, schedule_id: Uuid, limit: i64) -> Result<Vec<Decision>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM decisions WHERE kind = 'queued' AND schedule_id = ");
    select.bind(schedule_id).push(" ORDER BY due_at LIMIT ").bind(limit);
    conn.all(select).await?.iter().map(read).collect()
}

/// Turns the queued decisions of a schedule into `paused` ones. Returns their number.
pub async fn discard_queued(conn: &mut Conn, schedule_id: Uuid, now: Timestamp) -> Result<u64> {
    let sql = "UPDATE decisions SET kind = 'paused', decided_at = $2, reason = 'paused while it was queued' \
               WHERE schedule_id = $1 AND kind = 'queued'";
    conn.run((sql, args![schedule_id, now])).await
}

/// Returns one page of decisions, the latest occurrence first. Fails with [`Error::NotFound`] if the schedule does not
/// exist in the scope.
pub async fn history(
    conn: &mut Conn,
    scope: OwnerScope,
    schedule_id: Uuid,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<Page<Decision>> {
    check_access(conn, scope, schedule_id).await?;
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM decisions WHERE schedule_id = ").bind(schedule_id);
    if let Some(cursor) = after {
        select.push(" AND due_at < ").bind(cursor.sort);
    }
    select.push(" ORDER BY due_at DESC LIMIT ").bind(limit + 1);
    let rows = conn.all(select).await?.iter().map(read).collect::<Result<Vec<_>>>()?;
    Ok(Page::from_rows(rows, limit, |d| Cursor { sort: d.due_at.as_microsecond(), id: d.schedule_id.to_string() }))
}

/// Returns the last decision with `due_at` at or before `at`, and the first one after it. Each is `None` if there is
/// none. Fails with [`Error::NotFound`] if the schedule does not exist in the scope.
pub async fn decisions_around(
    conn: &mut Conn,
    scope: OwnerScope,
    schedule_id: Uuid,
    at: Timestamp,
) -> Result<(Option<Decision>, Option<Decision>)> {
    check_access(conn, scope, schedule_id).await?;
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM decisions WHERE schedule_id = ").bind(schedule_id);
    select.push(" AND due_at <= ").bind(at).push(" ORDER BY due_at DESC LIMIT 1");
    let before = conn.first(select).await?.as_ref().map(read).transpose()?;
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM decisions WHERE schedule_id = ").bind(schedule_id);
    select.push(" AND due_at > ").bind(at).push(" ORDER BY due_at LIMIT 1");
    let after = conn.first(select).await?.as_ref().map(read).transpose()?;
    Ok((before, after))
}

/// Fails with [`Error::NotFound`] if the schedule does not exist in the scope.
async fn check_access(conn: &mut Conn, scope: OwnerScope, schedule_id: Uuid) -> Result<()> {
    let mut select = Statement::default();
    select.push("SELECT s.id FROM schedules s WHERE s.id = ").bind(schedule_id);
    super::restrict_to_scope(&mut select, scope);
    conn.first(select).await?.map(drop).ok_or(Error::NotFound)
}

/// Reads [`COLUMNS`]. Fails with [`Error::Corrupt`] if a column is invalid.
fn read(row: &DbRow) -> Result<Decision> {
    let execution = row.maybe_text(5)?.map(|id| Uuid::try_parse(&id)).transpose();
    Ok(Decision {
        schedule_id: row.parsed(0, Uuid::try_parse)?,
        due_at: row.time(1)?,
        decided_at: row.time(2)?,
        kind: row.parsed(3, |word| DecisionKind::parse("kind", word))?,
        reason: row.maybe_text(4)?,
        execution_id: execution.map_err(|error| Error::Corrupt(error.to_string()))?,
        until: row.maybe_time(6)?,
    })
}
