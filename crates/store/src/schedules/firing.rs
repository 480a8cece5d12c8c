//! The due schedules. A compare-and-swap ensures that only one node handles an occurrence. These functions work on the
//! rows of all users, for the scheduler.

use jiff::Timestamp;
use model::execution::ExecutionStatus;
use uuid::Uuid;

use super::row::{COLUMNS, ScheduleRow, read};
use super::{NextOccurrence, run_on_one_row};
use crate::conn::{Conn, Statement, args};
use crate::stop_state::IS_STOPPED;
use crate::{Error, Result};

/// A due schedule, or an error if its row cannot be read.
pub type DueSchedule = (Uuid, Result<ScheduleRow>);

/// Returns the earliest firing time of all schedules, or `None` if no enabled schedule has one or everything is stopped.
pub async fn next_due_at(conn: &mut Conn) -> Result<Option<Timestamp>> {
    let mut select = Statement::default();
    select.push("SELECT next_at FROM schedules WHERE next_at IS NOT NULL AND NOT ").push(IS_STOPPED);
    select.push(" ORDER BY next_at LIMIT 1");
    conn.first(select).await?.map_or(Ok(None), |row| row.maybe_time(0))
}

/// Returns up to `limit` due schedules, the earliest first. An unreadable row does not affect the rest. The rows are
/// not locked; the caller calls [`lock_due`] and [`advance`]. Returns none while everything is stopped.
pub async fn due_schedules(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<Vec<DueSchedule>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM schedules s WHERE s.next_at <= ").bind(now);
    select.push(" AND NOT ").push(IS_STOPPED).push(" ORDER BY s.next_at LIMIT ").bind(limit);
    let rows = conn.all(select).await?;
    rows.iter().map(|row| Ok((row.parsed(0, Uuid::try_parse)?, read(row, now)))).collect()
}

/// Returns up to `limit` schedules whose next occurrence is after `now`, and those paused with `finished_reason`, in order
/// of their ids, from `after` on. An unreadable row does not affect the rest.
pub async fn schedules_ahead(
    conn: &mut Conn,
    finished_reason: &str,
    now: Timestamp,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<DueSchedule>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM schedules s WHERE (s.next_at > ").bind(now);
    select.push(" OR (s.enabled = 0 AND s.paused_reason = ").bind(finished_reason).push("))");
    if let Some(after) = after {
        select.push(" AND s.id > ").bind(after);
    }
    select.push(" ORDER BY s.id LIMIT ").bind(limit);
    let rows = conn.all(select).await?;
    rows.iter().map(|row| Ok((row.parsed(0, Uuid::try_parse)?, read(row, now)))).collect()
}

/// Replaces a last start that is after `now` by `now`: the clock was ahead.
pub async fn limit_last_start(conn: &mut Conn, id: Uuid, now: Timestamp) -> Result<()> {
    conn.run(("UPDATE schedules SET last_at = $2 WHERE id = $1 AND last_at > $2", args![id, now])).await.map(drop)
}

/// Locks a due schedule until the transaction ends. Returns false, without waiting, if another transaction has locked
/// it, or if it was changed, advanced, paused or removed since `row` was read. On SQLite, only checks the latter.
pub async fn lock_due(conn: &mut Conn, row: &ScheduleRow) -> Result<bool> {
    let mut select = Statement::default();
    select.push("SELECT id FROM schedules WHERE id = ").bind(row.schedule.id);
    select.push(" AND version = ").bind(row.version).push(" AND enabled = 1 AND next_at = ");
    select.bind(row.schedule.next_execution);
    if !conn.is_sqlite() {
        select.push(" FOR UPDATE SKIP LOCKED");
    }
    Ok(conn.first(select).await?.is_some())
}

/// Advances a schedule to its next occurrence, or to none. Returns false, without a change, if it was changed,
/// advanced, paused or removed since `row` was read.
pub async fn advance(conn: &mut Conn, row: &ScheduleRow, next: Option<NextOccurrence>) -> Result<bool> {
    let sql = "UPDATE schedules SET due_at = $4, next_at = $5, version = version + 1 \
               WHERE id = $1 AND version = $2 AND next_at = $3 AND enabled = 1";
    let due_at = next.map(|next| next.due_at);
    let fire_at = next.map(|next| next.fire_at);
    let values = args![row.schedule.id, row.version, row.schedule.next_execution, due_at, fire_at];
    Ok(conn.run((sql, values)).await? == 1)
}

/// Records the start of an execution of the schedule. A later start stays.
pub async fn record_start(conn: &mut Conn, id: Uuid, at: Timestamp) -> Result<()> {
    let sql = "UPDATE schedules SET last_at = $2 WHERE id = $1 AND (last_at IS NULL OR last_at < $2)";
    conn.run((sql, args![id, at])).await.map(drop)
}

/// Records the end of an execution of the schedule and the number of consecutive failures. `None` keeps the last
/// status. The caller has locked the row.
pub async fn record_run_end(
    conn: &mut Conn,
    row: &ScheduleRow,
    status: Option<ExecutionStatus>,
    failures: i64,
) -> Result<()> {
    let sql = "UPDATE schedules SET last_status = COALESCE($2, last_status), failures = $3 WHERE id = $1";
    run_on_one_row(conn, (sql, args![row.schedule.id, status.map(ExecutionStatus::as_str), failures])).await
}

/// Returns the executions of a schedule that have not ended, the oldest first.
pub async fn running_executions(conn: &mut Conn, id: Uuid) -> Result<Vec<Uuid>> {
    let sql = "SELECT id FROM executions WHERE schedule_id = $1 AND ended_at IS NULL ORDER BY created_at, id";
    conn.all((sql, args![id])).await?.iter().map(|row| row.parsed(0, Uuid::try_parse)).collect()
}

/// Returns up to `limit` schedules that have a queued occurrence but no running execution. The execution may have been
/// erased. Returns none while everything is stopped.
pub async fn ready_with_queued(conn: &mut Conn, limit: i64) -> Result<Vec<Uuid>> {
    let mut select = Statement::default();
    select.push(
        "SELECT DISTINCT d.schedule_id FROM decisions d WHERE d.kind = 'queued' AND NOT EXISTS \
               (SELECT 1 FROM executions e WHERE e.schedule_id = d.schedule_id AND e.ended_at IS NULL) AND NOT ",
    );
    select.push(IS_STOPPED).push(" LIMIT ").bind(limit);
    conn.all(select).await?.iter().map(|row| row.parsed(0, Uuid::try_parse)).collect()
}

/// Pauses a schedule that cannot be read, so that the scheduler does not retry it forever. Turns its queued decisions
/// into `paused` ones. Fails with [`Error::NotFound`] if it does not exist.
pub async fn pause_unreadable(conn: &mut Conn, id: Uuid, reason: &str, now: Timestamp) -> Result<()> {
    let sql = "UPDATE schedules SET enabled = 0, next_at = NULL, paused_at = $2, paused_reason = $3, \
               version = version + 1 WHERE id = $1";
    match conn.run((sql, args![id, now, reason])).await? {
        0 => Err(Error::NotFound),
        _ => super::discard_queued(conn, id, now).await.map(drop),
    }
}
