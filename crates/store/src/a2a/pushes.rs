//! Push configurations of A2A tasks, and the progress of each.
//!
//! A configuration has at most one delivery in progress. The next one waits for its end, so that updates arrive in
//! order and several updates are combined. One transaction advances the progress and adds the delivery, with a
//! compare-and-swap, so that only one node does it. [`find`], [`all_after`],
//! [`replace_sealed`], [`due_pushes`] and the functions that take a [`DuePush`] work for all users.

use jiff::Timestamp;
use model::UserId;
use model::execution::PublicStatus;
use uuid::Uuid;

use super::current_run;
use crate::conn::{Conn, DbRow, Statement, args};
use crate::executions::replace_nul;
use crate::outbox;
use crate::page::{Cursor, Page};
use crate::{Error, Result};

/// The largest number of configurations of a task.
pub const MAX_PER_TASK: i64 = 20;

const COLUMNS: &str = "p.task_id, p.id, p.owner, p.agent_id, p.url, p.sealed, p.scheme, p.version, p.dead, p.last_error, \
                       p.created_at";

/// A push configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushConfig {
    pub task_id: Uuid,
    pub id: String,
    pub owner: UserId,
    pub agent_id: String,
    /// The scheme, host and port of the URL.
    pub url: String,
    /// The encrypted URL and credentials.
    pub sealed: String,
    /// The authentication scheme of the credentials.
    pub scheme: Option<String>,
    /// The protocol version of the notifications.
    pub version: String,
    /// True if notifications to it were given up.
    pub dead: bool,
    pub last_error: Option<String>,
    pub created_at: Timestamp,
}

/// A push configuration that is not stored yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPushConfig {
    pub id: String,
    pub url: String,
    pub sealed: String,
    pub scheme: Option<String>,
    pub version: String,
}

/// The part of a task that a client has been notified about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushProgress {
    pub execution: Uuid,
    /// The position inside the execution. It ascends from [`PushProgress::NONE`].
    pub seq: i64,
}

impl PushProgress {
    /// The client was not notified yet.
    pub const NONE: i64 = 0;
    /// The client was notified that the task is working. Each later update adds one.
    pub const WORKING: i64 = 1;
    /// The client was notified that the task requests input, and about all before.
    pub const INPUT_REQUIRED: i64 = i64::MAX - 1;
    /// The client was notified about the end of the task.
    pub const ENDED: i64 = i64::MAX;
}

/// A push configuration that may need a notification. It has no delivery in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuePush {
    pub task_id: Uuid,
    pub id: String,
    pub owner: UserId,
    pub agent_id: String,
    pub url: String,
    pub version: String,
    pub created_at: Timestamp,
    pub progress: PushProgress,
    /// The last execution of the task. `None` if the task was deleted.
    pub execution: Option<Uuid>,
    /// The error of the last delivery, if it was given up.
    pub delivery_error: Option<String>,
    /// Counts the changes of the task that may need a notification. Zero if none is needed.
    open: i64,
    /// The id of the last delivery.
    waiting: Option<String>,
}

/// Stores a push configuration of a task and makes it due. A new one causes no notification about an end or a request
/// for input that has already happened. A configuration with the same id is replaced, keeps its progress and creation
/// time, and is no longer given up. Fails with [`Error::NotFound`] if the user and the agent have no such task. Fails
/// with [`Error::TooMany`] if it already has [`MAX_PER_TASK`] configurations with other ids.
pub async fn set(
    conn: &mut Conn,
    owner: UserId,
    agent_id: &str,
    task_id: Uuid,
    new: &NewPushConfig,
    now: Timestamp,
) -> Result<()> {
    lock_task(conn, task_id).await?;
    let run = current_run(conn, owner, agent_id, task_id).await?;
    let sql = "SELECT COUNT(*) FROM a2a_pushes WHERE task_id = $1 AND owner = $2 AND id <> $3";
    let other_count =
        conn.first((sql, args![task_id, owner, new.id.as_str()])).await?.map_or(Ok(0), |row| row.int(0))?;
    if other_count >= MAX_PER_TASK {
        return Err(Error::TooMany { limit: MAX_PER_TASK });
    }
    // The client knows the current status already.
    let seq = match run.public_status() {
        PublicStatus::Waiting | PublicStatus::Working => PushProgress::NONE,
        status if status.awaits_input() => PushProgress::INPUT_REQUIRED,
        _ => PushProgress::ENDED,
    };
    let sql = "INSERT INTO a2a_pushes (task_id, id, owner, agent_id, url, sealed, scheme, version, told_execution, \
               told_seq, open, dead, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1, 0, $11) \
               ON CONFLICT (task_id, id) DO UPDATE SET url = excluded.url, sealed = excluded.sealed, \
               scheme = excluded.scheme, version = excluded.version, open = a2a_pushes.open + 1, dead = 0, \
               last_error = NULL";
    let id = new.id.as_str();
    let url = new.url.as_str();
    let sealed = new.sealed.as_str();
    let scheme = new.scheme.as_deref();
    let version = new.version.as_str();
    let execution = run.execution.id;
    let values = args![task_id, id, owner, agent_id, url, sealed, scheme, version, execution, seq, now];
    conn.run((sql, values)).await.map(drop)
}

/// Returns a push configuration. Fails with [`Error::NotFound`] if it does not exist.
pub async fn get(conn: &mut Conn, owner: UserId, agent_id: &str, task_id: Uuid, id: &str) -> Result<PushConfig> {
    let mut select = select_for_task(owner, agent_id, task_id);
    select.push(" AND p.id = ").bind(id);
    read(&conn.first(select).await?.ok_or(Error::NotFound)?)
}

/// Returns one page of the configurations of a task, oldest first. Empty if the task does not exist.
pub async fn list(
    conn: &mut Conn,
    owner: UserId,
    agent_id: &str,
    task_id: Uuid,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<Page<PushConfig>> {
    let mut select = select_for_task(owner, agent_id, task_id);
    if let Some(cursor) = after {
        select.push(" AND (p.created_at, p.id) > (").bind(cursor.sort).push(", ").bind(cursor.id.as_str()).push(")");
    }
    select.push(" ORDER BY p.created_at, p.id LIMIT ").bind(limit + 1);
    let rows = conn.all(select).await?.iter().map(read).collect::<Result<Vec<_>>>()?;
    Ok(Page::from_rows(rows, limit, |push| Cursor { sort: push.created_at.as_microsecond(), id: push.id.clone() }))
}

/// Deletes a configuration. Returns false if it does not exist. Its pending delivery is dropped when it is claimed.
pub async fn remove(conn: &mut Conn, owner: UserId, agent_id: &str, task_id: Uuid, id: &str) -> Result<bool> {
    let sql = "DELETE FROM a2a_pushes WHERE task_id = $1 AND id = $2 AND owner = $3 AND agent_id = $4";
    Ok(conn.run((sql, args![task_id, id, owner, agent_id])).await? == 1)
}

/// Returns a live configuration by its creation time. Returns `None` if it was deleted, also if one with the same id
/// was created later, or if it was given up. For all users.
pub async fn find(conn: &mut Conn, task_id: Uuid, id: &str, created_at: Timestamp) -> Result<Option<PushConfig>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM a2a_pushes p WHERE p.task_id = ").bind(task_id);
    select.push(" AND p.id = ").bind(id).push(" AND p.created_at = ").bind(created_at).push(" AND p.dead = 0");
    conn.first(select).await?.as_ref().map(read).transpose()
}

/// Returns up to `limit` configurations of all users after `after`, ordered by task and id.
pub async fn all_after(conn: &mut Conn, after: Option<&PushConfig>, limit: i64) -> Result<Vec<PushConfig>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM a2a_pushes p");
    if let Some(push) = after {
        select.push(" WHERE (p.task_id, p.id) > (").bind(push.task_id).push(", ").bind(push.id.as_str()).push(")");
    }
    select.push(" ORDER BY p.task_id, p.id LIMIT ").bind(limit);
    conn.all(select).await?.iter().map(read).collect()
}

/// Replaces the sealed text of a configuration. Returns false, without a change, if it was changed or deleted since
/// `push` was read.
pub async fn replace_sealed(conn: &mut Conn, push: &PushConfig, sealed: &str) -> Result<bool> {
    let sql = "UPDATE a2a_pushes SET sealed = $1 WHERE task_id = $2 AND id = $3 AND sealed = $4";
    Ok(conn.run((sql, args![sealed, push.task_id, push.id.as_str(), push.sealed.as_str()])).await? == 1)
}

/// Returns up to `limit` configurations of all users that may need a notification, after `after`, ordered by task and
/// id. None has a delivery in progress, and none is idle or given up (see [`mark_idle`] and [`give_up`]). The last
/// delivery has failed for good, the task was deleted or has ended, or it has started and the client does not know it.
pub async fn due_pushes(conn: &mut Conn, after: Option<&DuePush>, limit: i64) -> Result<Vec<DuePush>> {
    let mut select = Statement::default();
    select.push(
        "SELECT p.task_id, p.id, p.owner, p.agent_id, p.url, p.version, p.created_at, p.told_execution, p.told_seq, \
         e.id, CASE WHEN d.dead = 1 THEN COALESCE(d.last_error, '') END, p.open, p.waiting FROM a2a_pushes p \
         LEFT JOIN executions e ON e.task_id = p.task_id AND e.superseded = 0 \
         LEFT JOIN deliveries d ON d.id = p.waiting \
         WHERE p.open > 0 AND (d.id IS NULL OR d.ended_at IS NOT NULL) \
         AND (d.dead = 1 OR e.id IS NULL OR e.ended_at IS NOT NULL \
         OR ((e.state <> 'idle' OR e.retry_count > 0 OR e.id <> e.task_id) AND (p.told_execution <> e.id OR p.told_seq < ",
    );
    select.bind(PushProgress::WORKING).push(")))");
    if let Some(due) = after {
        select.push(" AND (p.task_id, p.id) > (").bind(due.task_id).push(", ").bind(due.id.as_str()).push(")");
    }
    select.push(" ORDER BY p.task_id, p.id LIMIT ").bind(limit);
    conn.all(select).await?.iter().map(read_due).collect()
}

/// Adds `delivery` to the outbox as the delivery in progress of the configuration, and sets its progress to `progress`.
/// Returns false, without a change, if the row was changed or deleted since `due` was read.
pub async fn enqueue_delivery(
    conn: &mut Conn,
    due: &DuePush,
    progress: PushProgress,
    delivery: &outbox::NewDelivery,
    now: Timestamp,
) -> Result<bool> {
    let mut update = Statement::default();
    update.push("UPDATE a2a_pushes SET told_execution = ").bind(progress.execution);
    update.push(", told_seq = ").bind(progress.seq).push(", waiting = ").bind(delivery.id);
    push_unchanged(&mut update, due);
    if conn.run(update).await? != 1 {
        return Ok(false);
    }
    outbox::add(conn, delivery, now).await?;
    Ok(true)
}

/// Marks a configuration as idle until the task changes. Returns false if the task has changed since `due` was read, or
/// another node was faster.
pub async fn mark_idle(conn: &mut Conn, due: &DuePush) -> Result<bool> {
    let mut update = Statement::default();
    update.push("UPDATE a2a_pushes SET open = 0, waiting = NULL");
    push_unchanged(&mut update, due);
    Ok(conn.run(update).await? == 1)
}

/// Gives up notifications until the client sets the configuration again. Returns false if the task has changed since
/// `due` was read, or another node was faster.
pub async fn give_up(conn: &mut Conn, due: &DuePush, error: &str) -> Result<bool> {
    let mut update = Statement::default();
    update.push("UPDATE a2a_pushes SET open = 0, waiting = NULL, dead = 1, last_error = ").bind(replace_nul(error));
    push_unchanged(&mut update, due);
    Ok(conn.run(update).await? == 1)
}

/// Locks the configurations of a task, so that concurrent calls cannot exceed the limit. The lock also prevents
/// deadlocks with transactions that change several rows.
async fn lock_task(conn: &mut Conn, task_id: Uuid) -> Result<()> {
    if !conn.is_sqlite() {
        // The second number separates these locks from other advisory locks.
        conn.first(("SELECT pg_advisory_xact_lock(hashtextextended($1, 6))", args![task_id])).await?;
    }
    Ok(())
}

/// Marks all configurations of a task as due, except those that were given up. Called in the transaction that changes
/// the task.
pub(super) async fn reopen(conn: &mut Conn, task_id: Uuid) -> Result<()> {
    lock_task(conn, task_id).await?;
    let sql = "UPDATE a2a_pushes SET open = open + 1 WHERE task_id = $1 AND dead = 0";
    conn.run((sql, args![task_id])).await.map(drop)
}

/// Adds the condition that the row has not changed since it was read.
fn push_unchanged<'a>(update: &mut Statement<'a>, due: &'a DuePush) {
    update.push(" WHERE task_id = ").bind(due.task_id).push(" AND id = ").bind(due.id.as_str());
    update.push(" AND created_at = ").bind(due.created_at).push(" AND open = ").bind(due.open);
    update.push(" AND told_execution = ").bind(due.progress.execution).push(" AND told_seq = ").bind(due.progress.seq);
    update.push(" AND COALESCE(waiting, '') = ").bind(due.waiting.as_deref().unwrap_or_default());
}

/// Returns the beginning of a query for the configurations of a task.
fn select_for_task<'a>(owner: UserId, agent_id: &'a str, task_id: Uuid) -> Statement<'a> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM a2a_pushes p WHERE p.task_id = ").bind(task_id);
    select.push(" AND p.owner = ").bind(owner).push(" AND p.agent_id = ").bind(agent_id);
    select
}

/// Reads [`COLUMNS`]. Fails with [`Error::Corrupt`] if a column is invalid.
fn read(row: &DbRow) -> Result<PushConfig> {
    Ok(PushConfig {
        task_id: row.parsed(0, Uuid::try_parse)?,
        id: row.text(1)?,
        owner: row.parsed(2, str::parse)?,
        agent_id: row.text(3)?,
        url: row.text(4)?,
        sealed: row.text(5)?,
        scheme: row.maybe_text(6)?,
        version: row.text(7)?,
        dead: row.int(8)? != 0,
        last_error: row.maybe_text(9)?,
        created_at: row.time(10)?,
    })
}

/// Reads a row of [`due_pushes`]. Fails with [`Error::Corrupt`] if a column is invalid.
fn read_due(row: &DbRow) -> Result<DuePush> {
    let execution = row.maybe_text(9)?.map(|id| Uuid::try_parse(&id)).transpose();
    Ok(DuePush {
        task_id: row.parsed(0, Uuid::try_parse)?,
        id: row.text(1)?,
        owner: row.parsed(2, str::parse)?,
        agent_id: row.text(3)?,
        url: row.text(4)?,
        version: row.text(5)?,
        created_at: row.time(6)?,
        progress: PushProgress { execution: row.parsed(7, Uuid::try_parse)?, seq: row.int(8)? },
        execution: execution.map_err(|error| Error::Corrupt(error.to_string()))?,
        delivery_error: row.maybe_text(10)?,
        open: row.int(11)?,
        waiting: row.maybe_text(12)?,
    })
}
