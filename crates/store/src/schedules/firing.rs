//! Whose time has come, and the swap by which one of those who see it acts upon it. Works on everyone's rows, for the
//! scheduler.

use jiff::Timestamp;
use model::execution::Status;
use uuid::Uuid;

use super::row::{COLUMNS, Kept, read};
use super::{Next, one};
use crate::conn::{Conn, Statement, args};
use crate::{Error, Result};

/// A schedule whose time has come; an error where its row cannot be read.
pub type Row = (Uuid, Result<Kept>);

/// When the next schedule is due, whichever that is.
pub async fn first_due(conn: &mut Conn) -> Result<Option<Timestamp>> {
    let sql = "SELECT next_at FROM schedules WHERE next_at IS NOT NULL ORDER BY next_at LIMIT 1";
    conn.first((sql, [])).await?.map_or(Ok(None), |row| row.maybe_time(0))
}

/// Those whose time has come, the most urgent first. Only a look: whoever acts says so with [`advance`].
pub async fn due(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<Vec<Row>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM schedules s WHERE s.next_at <= ").bind(now);
    select.push(" ORDER BY s.next_at LIMIT ").bind(limit);
    let rows = conn.all(select).await?;
    rows.iter().map(|row| Ok((row.parsed(0, Uuid::try_parse)?, read(row, now)))).collect()
}

/// Takes a schedule whose time has come, unless somebody else is at it: then it is left to them. `false`: it is not as
/// the caller has seen it.
pub async fn lock_due(conn: &mut Conn, kept: &Kept) -> Result<bool> {
    let mut select = Statement::default();
    select.push("SELECT id FROM schedules WHERE id = ").bind(kept.schedule.id);
    select.push(" AND version = ").bind(kept.version).push(" AND enabled = 1 AND next_at = ");
    select.bind(kept.schedule.next_execution);
    if !conn.is_sqlite() {
        select.push(" FOR UPDATE SKIP LOCKED");
    }
    Ok(conn.first(select).await?.is_some())
}

/// Goes on to the next of its times, if it is as the caller has seen it. `false`: somebody else did, or has changed it.
pub async fn advance(conn: &mut Conn, kept: &Kept, next: Option<Next>) -> Result<bool> {
    let sql = "UPDATE schedules SET due_at = $4, next_at = $5, version = version + 1 \
               WHERE id = $1 AND version = $2 AND next_at = $3 AND enabled = 1";
    let due_at = next.map(|next| next.due_at);
    let at = next.map(|next| next.at);
    let values = args![kept.schedule.id, kept.version, kept.schedule.next_execution, due_at, at];
    Ok(conn.run((sql, values)).await? == 1)
}

/// It was run.
pub async fn started(conn: &mut Conn, id: Uuid, at: Timestamp) -> Result<()> {
    let sql = "UPDATE schedules SET last_at = $2 WHERE id = $1 AND (last_at IS NULL OR last_at < $2)";
    conn.run((sql, args![id, at])).await.map(drop)
}

/// How a run of it ended, and how many have failed in a row with that. The caller has locked it.
pub async fn followed(conn: &mut Conn, kept: &Kept, status: Option<Status>, failures: i64) -> Result<()> {
    let sql = "UPDATE schedules SET last_status = COALESCE($2, last_status), failures = $3 WHERE id = $1";
    one(conn, (sql, args![kept.schedule.id, status.map(Status::as_str), failures])).await
}

/// The executions of a schedule that have not ended, the oldest first.
pub async fn running(conn: &mut Conn, id: Uuid) -> Result<Vec<Uuid>> {
    let sql = "SELECT id FROM executions WHERE schedule_id = $1 AND ended_at IS NULL ORDER BY created_at, id";
    conn.all((sql, args![id])).await?.iter().map(|row| row.parsed(0, Uuid::try_parse)).collect()
}

/// Schedules for which something waits although nothing of theirs runs: whatever it waited for is gone without a word.
pub async fn queued_and_free(conn: &mut Conn, limit: i64) -> Result<Vec<Uuid>> {
    let sql = "SELECT DISTINCT d.schedule_id FROM decisions d WHERE d.kind = 'queued' AND NOT EXISTS \
               (SELECT 1 FROM executions e WHERE e.schedule_id = d.schedule_id AND e.ended_at IS NULL) LIMIT $1";
    conn.all((sql, args![limit])).await?.iter().map(|row| row.parsed(0, Uuid::try_parse)).collect()
}

/// Pauses a schedule that cannot be read, so that it is not tried for ever.
pub async fn give_up(conn: &mut Conn, id: Uuid, reason: &str, now: Timestamp) -> Result<()> {
    let sql = "UPDATE schedules SET enabled = 0, next_at = NULL, paused_at = $2, paused_reason = $3, \
               version = version + 1 WHERE id = $1";
    match conn.run((sql, args![id, now, reason])).await? {
        0 => Err(Error::NotFound),
        _ => super::drop_queued(conn, id, now).await.map(drop),
    }
}
