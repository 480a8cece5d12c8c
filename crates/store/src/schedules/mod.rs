//! Schedules of users and the decisions about their occurrences. A change names the version of the row that it is based
//! on, so that only one of several concurrent changes succeeds.

mod decisions;
mod firing;
mod row;

use jiff::Timestamp;
use model::UserId;
use model::schedule::{Schedule, ScheduleSettings, ScheduleSource};
use uuid::Uuid;

use crate::conn::{Conn, Statement, args};
use crate::executions::OwnerScope;
use crate::page::{Cursor, Page};
use crate::quotas::{self, RowQuota};
use crate::{Error, Result};

pub use decisions::{
    decisions_around, discard_queued, forget_missed_after, history, is_decided, queued_decisions, record_decision,
    resolve_queued,
};
pub use firing::{
    DueSchedule, advance, due_schedules, limit_last_start, lock_due, next_due_at, pause_unreadable, ready_with_queued,
    record_run_end, record_start, running_executions, schedules_ahead,
};
pub use row::ScheduleRow;

use row::{COLUMNS, read};

/// The next occurrence of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextOccurrence {
    pub due_at: Timestamp,
    /// The time at which it fires: `due_at` plus the jitter.
    pub fire_at: Timestamp,
}

/// A schedule that is not stored yet.
#[derive(Clone, Debug)]
pub struct NewSchedule {
    pub id: Uuid,
    pub settings: ScheduleSettings,
    pub source: ScheduleSource,
    /// The reason of the pause, if the schedule starts paused.
    pub paused_reason: Option<String>,
    /// `None` if the schedule has no future occurrence.
    pub next: Option<NextOccurrence>,
}

/// The filter of a list of schedules.
#[derive(Clone, Debug, Default)]
pub struct ScheduleFilter {
    pub agent_id: Option<String>,
    pub source: Option<ScheduleSource>,
    pub enabled: Option<bool>,
    /// A complete name, or a prefix or a suffix of an id.
    pub reference: Option<String>,
}

/// The number of schedules of all users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScheduleCounts {
    pub all: i64,
    pub paused: i64,
    /// The number of due schedules.
    pub due: i64,
}

/// Adds a schedule and returns it. With a reason of the pause it is disabled and does not fire. Fails with
/// [`Error::AlreadyExists`] for `name` if its name is in use by any user, ignoring case, or if its id exists. Fails
/// without a change with [`Error::QuotaReached`] if the owner has too many. Schedules of the configuration file have no
/// limit.
pub async fn create(conn: &mut Conn, owner: UserId, new: &NewSchedule, now: Timestamp) -> Result<Schedule> {
    if new.source != ScheduleSource::File {
        quotas::check_new(conn, owner, RowQuota::Schedules).await?;
    }
    let sql = "INSERT INTO schedules (id, owner, name_key, agent_id, source, enabled, due_at, next_at, version, failures, \
               paused_at, paused_reason, created_at, updated_at, settings) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1, 0, $9, $10, $11, $11, $12) ON CONFLICT DO NOTHING";
    let enabled = new.paused_reason.is_none();
    let values = args![
        new.id,
        owner,
        new.settings.name.to_lowercase(),
        new.settings.agent_id.as_str(),
        new.source.as_str(),
        i64::from(enabled),
        new.next.map(|next| next.due_at),
        new.next.filter(|_| enabled).map(|next| next.fire_at),
        new.paused_reason.as_ref().map(|_| now),
        new.paused_reason.as_deref(),
        now,
        json(&new.settings)?,
    ];
    if conn.run((sql, values)).await? == 0 {
        return Err(Error::AlreadyExists("name"));
    }
    get(conn, OwnerScope::User(owner), new.id, now).await
}

/// Returns a schedule. Fails with [`Error::NotFound`] if it does not exist in the scope.
pub async fn get(conn: &mut Conn, scope: OwnerScope, id: Uuid, now: Timestamp) -> Result<Schedule> {
    get_row(conn, scope, id, now).await.map(|row| row.schedule)
}

/// Returns a schedule with its internal columns, without a lock. Fails with [`Error::NotFound`] if it does not exist in
/// the scope.
pub async fn get_row(conn: &mut Conn, scope: OwnerScope, id: Uuid, now: Timestamp) -> Result<ScheduleRow> {
    select_row(conn, scope, id, now, false).await
}

/// Like [`get_row`], and locks the row until the transaction ends.
pub async fn lock_row(conn: &mut Conn, scope: OwnerScope, id: Uuid, now: Timestamp) -> Result<ScheduleRow> {
    select_row(conn, scope, id, now, true).await
}

/// Returns a schedule with its internal columns. `now` determines its state. With `lock`, locks the row until the
/// transaction ends; SQLite needs no lock. Fails with [`Error::NotFound`] if it does not exist in the scope.
async fn select_row(conn: &mut Conn, scope: OwnerScope, id: Uuid, now: Timestamp, lock: bool) -> Result<ScheduleRow> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM schedules s WHERE s.id = ").bind(id);
    restrict_to_scope(&mut select, scope);
    if lock && !conn.is_sqlite() {
        select.push(" FOR UPDATE");
    }
    read(&conn.first(select).await?.ok_or(Error::NotFound)?, now)
}

/// Returns the schedule with this name, ignoring case. Fails with [`Error::NotFound`] if it does not exist in the
/// scope.
pub async fn get_by_name(conn: &mut Conn, scope: OwnerScope, name: &str, now: Timestamp) -> Result<Schedule> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM schedules s WHERE s.name_key = ").bind(name.trim().to_lowercase());
    restrict_to_scope(&mut select, scope);
    read(&conn.first(select).await?.ok_or(Error::NotFound)?, now).map(|row| row.schedule)
}

/// Returns one page of the schedules in the scope that match all conditions of the filter, oldest first. A condition
/// that is `None` selects all. A reference matches a complete name, or a prefix or a suffix of an id, ignoring case and
/// outer spaces. `now` determines the states. Fails with [`Error::Corrupt`] if a row is invalid.
pub async fn list(
    conn: &mut Conn,
    scope: OwnerScope,
    filter: &ScheduleFilter,
    after: Option<&Cursor>,
    limit: i64,
    now: Timestamp,
) -> Result<Page<Schedule>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM schedules s WHERE 1 = 1");
    restrict_to_scope(&mut select, scope);
    if let Some(agent) = &filter.agent_id {
        select.push(" AND s.agent_id = ").bind(agent.as_str());
    }
    if let Some(source) = filter.source {
        select.push(" AND s.source = ").bind(source.as_str());
    }
    if let Some(enabled) = filter.enabled {
        select.push(" AND s.enabled = ").bind(i64::from(enabled));
    }
    if let Some(reference) = &filter.reference {
        let key = reference.trim().to_lowercase();
        let part = crate::tasks::escape_like(&key);
        select.push(" AND (s.name_key = ").bind(key);
        select.push(" OR s.id LIKE ").bind(format!("{part}%")).push(" ESCAPE '\\'");
        select.push(" OR s.id LIKE ").bind(format!("%{part}")).push(" ESCAPE '\\')");
    }
    if let Some(cursor) = after {
        select.push(" AND (s.created_at, s.id) > (").bind(cursor.sort).push(", ").bind(cursor.id.as_str()).push(")");
    }
    select.push(" ORDER BY s.created_at, s.id LIMIT ").bind(limit + 1);
    let rows = conn.all(select).await?;
    let found = rows.iter().map(|row| read(row, now).map(|row| row.schedule)).collect::<Result<Vec<_>>>()?;
    Ok(Page::from_rows(found, limit, |s| Cursor { sort: s.created_at.as_microsecond(), id: s.id.to_string() }))
}

/// Replaces the settings of a schedule that the caller has locked, and its next occurrence by `next`. A paused schedule
/// stays paused and does not fire. Returns the schedule. Fails with [`Error::AlreadyExists`] if another schedule of any
/// user has the name, ignoring case. Fails with [`Error::Database`] if the version of the row has changed.
pub async fn update(
    conn: &mut Conn,
    row: &ScheduleRow,
    settings: &ScheduleSettings,
    next: Option<NextOccurrence>,
    now: Timestamp,
) -> Result<Schedule> {
    let id = row.schedule.id;
    let other = "SELECT id FROM schedules WHERE name_key = $1 AND id <> $2";
    let name = settings.name.to_lowercase();
    lock_names(conn).await?;
    if conn.first((other, args![name.as_str(), id])).await?.is_some() {
        return Err(Error::AlreadyExists("name"));
    }
    let sql = "UPDATE schedules SET name_key = $3, agent_id = $4, due_at = $5, next_at = $6, settings = $7, \
               updated_at = $8, version = version + 1 WHERE id = $1 AND version = $2";
    let fire_at = next.filter(|_| row.schedule.enabled).map(|next| next.fire_at);
    let due_at = next.map(|next| next.due_at);
    let agent = settings.agent_id.as_str();
    run_on_one_row(conn, (sql, args![id, row.version, name, agent, due_at, fire_at, json(settings)?, now])).await?;
    get(conn, OwnerScope::User(row.owner), id, now).await
}

/// Pauses a schedule that the caller has locked, and discards its queued occurrences. Returns the schedule.
pub async fn pause(conn: &mut Conn, row: &ScheduleRow, reason: &str, now: Timestamp) -> Result<Schedule> {
    let sql = "UPDATE schedules SET enabled = 0, next_at = NULL, paused_at = $3, paused_reason = $4, updated_at = $3, \
               version = version + 1 WHERE id = $1 AND version = $2";
    run_on_one_row(conn, (sql, args![row.schedule.id, row.version, now, reason])).await?;
    discard_queued(conn, row.schedule.id, now).await?;
    get(conn, OwnerScope::User(row.owner), row.schedule.id, now).await
}

/// Resumes a schedule that the caller has locked, with `next` as its next occurrence, and resets its failures. Also
/// sets both if it was not paused. Returns the schedule. Fails with [`Error::Database`] if the version of the row has
/// changed.
pub async fn resume(
    conn: &mut Conn,
    row: &ScheduleRow,
    next: Option<NextOccurrence>,
    now: Timestamp,
) -> Result<Schedule> {
    let sql = "UPDATE schedules SET enabled = 1, due_at = $3, next_at = $4, paused_at = NULL, paused_reason = NULL, \
               failures = 0, updated_at = $5, version = version + 1 WHERE id = $1 AND version = $2";
    let due_at = next.map(|next| next.due_at);
    let fire_at = next.map(|next| next.fire_at);
    run_on_one_row(conn, (sql, args![row.schedule.id, row.version, due_at, fire_at, now])).await?;
    get(conn, OwnerScope::User(row.owner), row.schedule.id, now).await
}

/// Deletes a schedule with its decisions. Its executions stay. Fails with [`Error::NotFound`] if it does not exist in
/// the scope.
pub async fn remove(conn: &mut Conn, scope: OwnerScope, id: Uuid) -> Result<()> {
    let mut delete = Statement::default();
    delete.push("DELETE FROM schedules WHERE id = ").bind(id);
    if let OwnerScope::User(owner) = scope {
        delete.push(" AND owner = ").bind(owner);
    }
    if conn.run(delete).await? == 0 {
        return Err(Error::NotFound);
    }
    conn.run(("DELETE FROM decisions WHERE schedule_id = $1", args![id])).await.map(drop)
}

/// Returns the numbers of all schedules, of the paused ones, and of those that are due at `now`, of all users.
pub async fn counts(conn: &mut Conn, now: Timestamp) -> Result<ScheduleCounts> {
    let sql = "SELECT (SELECT COUNT(*) FROM schedules), (SELECT COUNT(*) FROM schedules WHERE enabled = 0), \
               (SELECT COUNT(*) FROM schedules WHERE next_at <= $1)";
    let row = conn.first((sql, args![now])).await?;
    row.map_or(Ok(ScheduleCounts::default()), |row| {
        Ok(ScheduleCounts { all: row.int(0)?, paused: row.int(1)?, due: row.int(2)? })
    })
}

/// Locks the names of all schedules until the transaction ends, so that a free name stays free.
pub async fn lock_names(conn: &mut Conn) -> Result<()> {
    if !conn.is_sqlite() {
        // An arbitrary number that no other lock of this database uses.
        conn.batch("SELECT pg_advisory_xact_lock(7717000003)").await?;
    }
    Ok(())
}

/// Runs a statement that must affect exactly one row. Fails with [`Error::Database`] otherwise.
async fn run_on_one_row<'a>(conn: &mut Conn, statement: impl Into<Statement<'a>>) -> Result<()> {
    match conn.run(statement).await? {
        1 => Ok(()),
        // The caller holds the lock of the row, so this is a bug.
        _ => Err(Error::Database("a locked schedule was changed by another transaction".to_owned())),
    }
}

/// Adds a condition that restricts the rows to the scope.
fn restrict_to_scope(select: &mut Statement<'_>, scope: OwnerScope) {
    if let OwnerScope::User(owner) = scope {
        select.push(" AND s.owner = ").bind(owner);
    }
}

fn json(settings: &ScheduleSettings) -> Result<String> {
    serde_json::to_string(settings).map_err(|error| Error::Corrupt(error.to_string()))
}
