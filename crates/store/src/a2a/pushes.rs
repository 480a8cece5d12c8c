//! Who wants to be told of a task by a call of theirs, and how far they were told.
//!
//! One configuration has at most one delivery under way: what comes next waits until that has ended, so that everything
//! arrives in order, and what has happened meanwhile is told together. A step swaps how far it was told and adds the
//! delivery in one transaction: of any number of nodes one does it. What concerns those who only tell works on
//! everyone's rows.

use jiff::Timestamp;
use model::UserId;
use model::execution::Standing;
use uuid::Uuid;

use super::task;
use crate::conn::{Conn, Row, Statement, args};
use crate::executions::without_nul;
use crate::outbox;
use crate::page::{Cursor, Page};
use crate::{Error, Result};

/// A task may have so many.
pub const MOST: i64 = 20;

const COLUMNS: &str = "p.task_id, p.id, p.owner, p.agent_id, p.url, p.sealed, p.scheme, p.version, p.dead, p.last_error, \
                       p.created_at";

/// What is to be told to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Push {
    pub task_id: Uuid,
    pub id: String,
    pub owner: UserId,
    pub agent_id: String,
    /// Scheme, host and port.
    pub url: String,
    /// The whole address, and what has to be shown there.
    pub sealed: String,
    /// Of the credentials.
    pub scheme: Option<String>,
    /// Of the protocol, in which it is told.
    pub version: String,
    /// It was given up.
    pub dead: bool,
    pub last_error: Option<String>,
    pub created_at: Timestamp,
}

/// What a client wants, ready to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct New {
    pub id: String,
    pub url: String,
    pub sealed: String,
    pub scheme: Option<String>,
    pub version: String,
}

/// How far somebody was told of a task: of which execution, and what of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    pub execution: Uuid,
    /// Ascends from [`Told::NOTHING`].
    pub seq: i64,
}

impl Told {
    pub const NOTHING: i64 = 0;
    /// That it is at work. What came of it is counted from here, a number each.
    pub const WORKING: i64 = 1;
    /// That it has asked something, and all before.
    pub const ASKED: i64 = i64::MAX - 1;
    /// That it has ended for good, and all before.
    pub const END: i64 = i64::MAX;
}

/// Somebody for whom there may be something to do: nothing is under way to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    pub task_id: Uuid,
    pub id: String,
    pub owner: UserId,
    pub agent_id: String,
    pub url: String,
    pub version: String,
    pub created_at: Timestamp,
    pub told: Told,
    /// The last execution of the task; `None`: it is gone.
    pub execution: Option<Uuid>,
    /// Why the last delivery was given up, if it was.
    pub given_up: Option<String>,
    open: i64,
    waiting: Option<String>,
}

/// Keeps what a client wants of a task; one of the same id takes the place of the one before and is told what that was
/// not. [`Error::NotFound`]: there is no such task; [`Error::TooMany`]: it has enough of them.
pub async fn set(
    conn: &mut Conn,
    owner: UserId,
    agent_id: &str,
    task_id: Uuid,
    new: &New,
    now: Timestamp,
) -> Result<()> {
    alone(conn, task_id).await?;
    let run = task(conn, owner, agent_id, task_id).await?;
    let sql = "SELECT COUNT(*) FROM a2a_pushes WHERE task_id = $1 AND owner = $2 AND id <> $3";
    let others = conn.first((sql, args![task_id, owner, new.id.as_str()])).await?.map_or(Ok(0), |row| row.int(0))?;
    if others >= MOST {
        return Err(Error::TooMany { limit: MOST });
    }
    // What was before is known to whoever asks now.
    let told = match run.standing() {
        Standing::Waiting | Standing::Working => Told::NOTHING,
        standing if standing.is_asking() => Told::ASKED,
        _ => Told::END,
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
    let values = args![task_id, id, owner, agent_id, url, sealed, scheme, version, execution, told, now];
    conn.run((sql, values)).await.map(drop)
}

pub async fn get(conn: &mut Conn, owner: UserId, agent_id: &str, task_id: Uuid, id: &str) -> Result<Push> {
    let mut select = of_task(owner, agent_id, task_id);
    select.push(" AND p.id = ").bind(id);
    read(&conn.first(select).await?.ok_or(Error::NotFound)?)
}

/// One page, the oldest first.
pub async fn list(
    conn: &mut Conn,
    owner: UserId,
    agent_id: &str,
    task_id: Uuid,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<Page<Push>> {
    let mut select = of_task(owner, agent_id, task_id);
    if let Some(cursor) = after {
        select.push(" AND (p.created_at, p.id) > (").bind(cursor.sort).push(", ").bind(cursor.id.as_str()).push(")");
    }
    select.push(" ORDER BY p.created_at, p.id LIMIT ").bind(limit + 1);
    let rows = conn.all(select).await?.iter().map(read).collect::<Result<Vec<_>>>()?;
    Ok(Page::cut(rows, limit, |push| Cursor { sort: push.created_at.as_microsecond(), id: push.id.clone() }))
}

/// Says whether there was one. What is on its way to it is dropped by whoever finds that it is gone.
pub async fn remove(conn: &mut Conn, owner: UserId, agent_id: &str, task_id: Uuid, id: &str) -> Result<bool> {
    let sql = "DELETE FROM a2a_pushes WHERE task_id = $1 AND id = $2 AND owner = $3 AND agent_id = $4";
    Ok(conn.run((sql, args![task_id, id, owner, agent_id])).await? == 1)
}

/// Everyone's, for whoever delivers: the one that was made then.
pub async fn find(conn: &mut Conn, task_id: Uuid, id: &str, created_at: Timestamp) -> Result<Option<Push>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM a2a_pushes p WHERE p.task_id = ").bind(task_id);
    select.push(" AND p.id = ").bind(id).push(" AND p.created_at = ").bind(created_at).push(" AND p.dead = 0");
    conn.first(select).await?.as_ref().map(read).transpose()
}

/// Everyone's for whom there may be something to do, behind `after`, in the order of their tasks.
pub async fn due(conn: &mut Conn, after: Option<&Due>, limit: i64) -> Result<Vec<Due>> {
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
    select.bind(Told::WORKING).push(")))");
    if let Some(due) = after {
        select.push(" AND (p.task_id, p.id) > (").bind(due.task_id).push(", ").bind(due.id.as_str()).push(")");
    }
    select.push(" ORDER BY p.task_id, p.id LIMIT ").bind(limit);
    conn.all(select).await?.iter().map(read_due).collect()
}

/// They are told so far once `delivery` has arrived. `false`: another node was faster.
pub async fn tell(conn: &mut Conn, due: &Due, told: Told, delivery: &outbox::New, now: Timestamp) -> Result<bool> {
    let mut update = Statement::default();
    update.push("UPDATE a2a_pushes SET told_execution = ").bind(told.execution);
    update.push(", told_seq = ").bind(told.seq).push(", waiting = ").bind(delivery.id);
    unchanged(&mut update, due);
    if conn.run(update).await? != 1 {
        return Ok(false);
    }
    outbox::add(conn, delivery, now).await?;
    Ok(true)
}

/// There is nothing to tell until the task goes on. `false`: it has, or another node was faster.
pub async fn rest(conn: &mut Conn, due: &Due) -> Result<bool> {
    let mut update = Statement::default();
    update.push("UPDATE a2a_pushes SET open = 0, waiting = NULL");
    unchanged(&mut update, due);
    Ok(conn.run(update).await? == 1)
}

/// They are not told any more, until they say again where they are. `false`: another node was faster.
pub async fn give_up(conn: &mut Conn, due: &Due, error: &str) -> Result<bool> {
    let mut update = Statement::default();
    update.push("UPDATE a2a_pushes SET open = 0, waiting = NULL, dead = 1, last_error = ").bind(without_nul(error));
    unchanged(&mut update, due);
    Ok(conn.run(update).await? == 1)
}

/// Two who see the last free place would both take it; and whoever changes many rows waits here, not for one of them.
async fn alone(conn: &mut Conn, task_id: Uuid) -> Result<()> {
    if !conn.is_sqlite() {
        // The second number keeps these locks apart from others.
        conn.first(("SELECT pg_advisory_xact_lock(hashtextextended($1, 6))", args![task_id])).await?;
    }
    Ok(())
}

/// The task goes on: in the transaction in which it does.
pub(super) async fn reopen(conn: &mut Conn, task_id: Uuid) -> Result<()> {
    alone(conn, task_id).await?;
    let sql = "UPDATE a2a_pushes SET open = open + 1 WHERE task_id = $1 AND dead = 0";
    conn.run((sql, args![task_id])).await.map(drop)
}

/// Nobody has done anything about it since it was read.
fn unchanged<'a>(update: &mut Statement<'a>, due: &'a Due) {
    update.push(" WHERE task_id = ").bind(due.task_id).push(" AND id = ").bind(due.id.as_str());
    update.push(" AND created_at = ").bind(due.created_at).push(" AND open = ").bind(due.open);
    update.push(" AND told_execution = ").bind(due.told.execution).push(" AND told_seq = ").bind(due.told.seq);
    update.push(" AND COALESCE(waiting, '') = ").bind(due.waiting.as_deref().unwrap_or_default());
}

fn of_task<'a>(owner: UserId, agent_id: &'a str, task_id: Uuid) -> Statement<'a> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM a2a_pushes p WHERE p.task_id = ").bind(task_id);
    select.push(" AND p.owner = ").bind(owner).push(" AND p.agent_id = ").bind(agent_id);
    select
}

fn read(row: &Row) -> Result<Push> {
    Ok(Push {
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

fn read_due(row: &Row) -> Result<Due> {
    let execution = row.maybe_text(9)?.map(|id| Uuid::try_parse(&id)).transpose();
    Ok(Due {
        task_id: row.parsed(0, Uuid::try_parse)?,
        id: row.text(1)?,
        owner: row.parsed(2, str::parse)?,
        agent_id: row.text(3)?,
        url: row.text(4)?,
        version: row.text(5)?,
        created_at: row.time(6)?,
        told: Told { execution: row.parsed(7, Uuid::try_parse)?, seq: row.int(8)? },
        execution: execution.map_err(|error| Error::Corrupt(error.to_string()))?,
        given_up: row.maybe_text(10)?,
        open: row.int(11)?,
        waiting: row.maybe_text(12)?,
    })
}
