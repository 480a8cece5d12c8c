//! Schedules under their owners, and the decision that each of their times leaves. Whoever acts upon a schedule says with
//! its version what it has seen: of several who would act, one does.

mod decisions;
mod firing;
mod row;

use jiff::Timestamp;
use model::UserId;
use model::schedule::{Schedule, Settings, Source};
use uuid::Uuid;

use crate::conn::{Conn, Statement, args};
use crate::executions::Whose;
use crate::page::{Cursor, Page};
use crate::{Error, Result};

pub use decisions::{around, decide, drop_queued, history, is_decided, queued, redecide};
pub use firing::{Row as Due, advance, due, first_due, followed, give_up, lock_due, queued_and_free, running, started};
pub use row::Kept;

use row::{COLUMNS, read};

/// The next of a schedule's times, and when it is acted upon: later by its jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    pub due_at: Timestamp,
    pub at: Timestamp,
}

/// A schedule to be.
#[derive(Clone, Debug)]
pub struct New {
    pub id: Uuid,
    pub settings: Settings,
    pub source: Source,
    /// Why it begins as a paused one, if it does.
    pub paused: Option<String>,
    pub next: Option<Next>,
}

/// Which schedules a list has.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub agent_id: Option<String>,
    pub source: Option<Source>,
    pub enabled: Option<bool>,
    /// The whole name, or the beginning or the end of an id: what people type to name a schedule.
    pub reference: Option<String>,
}

/// How many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub all: i64,
    pub paused: i64,
    /// Whose time has come.
    pub due: i64,
}

/// Adds a schedule; its name must be new.
pub async fn create(conn: &mut Conn, owner: UserId, new: &New, now: Timestamp) -> Result<Schedule> {
    let sql = "INSERT INTO schedules (id, owner, name_key, agent_id, source, enabled, due_at, next_at, version, failures, \
               paused_at, paused_reason, created_at, updated_at, settings) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1, 0, $9, $10, $11, $11, $12) ON CONFLICT DO NOTHING";
    let enabled = new.paused.is_none();
    let values = args![
        new.id,
        owner,
        new.settings.name.to_lowercase(),
        new.settings.agent_id.as_str(),
        new.source.as_str(),
        i64::from(enabled),
        new.next.map(|next| next.due_at),
        new.next.filter(|_| enabled).map(|next| next.at),
        new.paused.as_ref().map(|_| now),
        new.paused.as_deref(),
        now,
        json(&new.settings)?,
    ];
    if conn.run((sql, values)).await? == 0 {
        return Err(Error::Taken("name"));
    }
    get(conn, Whose::Users(owner), new.id, now).await
}

pub async fn get(conn: &mut Conn, whose: Whose, id: Uuid, now: Timestamp) -> Result<Schedule> {
    look(conn, whose, id, now).await.map(|kept| kept.schedule)
}

/// A schedule with what only those need who act upon it. Only a look: whoever acts locks it, or swaps its next time.
pub async fn look(conn: &mut Conn, whose: Whose, id: Uuid, now: Timestamp) -> Result<Kept> {
    kept(conn, whose, id, now, false).await
}

/// The same, and nobody else changes it until this transaction ends.
pub async fn lock(conn: &mut Conn, whose: Whose, id: Uuid, now: Timestamp) -> Result<Kept> {
    kept(conn, whose, id, now, true).await
}

async fn kept(conn: &mut Conn, whose: Whose, id: Uuid, now: Timestamp, to_change: bool) -> Result<Kept> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM schedules s WHERE s.id = ").bind(id);
    belonging(&mut select, whose);
    if to_change && !conn.is_sqlite() {
        select.push(" FOR UPDATE");
    }
    read(&conn.first(select).await?.ok_or(Error::NotFound)?, now)
}

/// The schedule of this name, in any case.
pub async fn named(conn: &mut Conn, whose: Whose, name: &str, now: Timestamp) -> Result<Schedule> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM schedules s WHERE s.name_key = ").bind(name.trim().to_lowercase());
    belonging(&mut select, whose);
    read(&conn.first(select).await?.ok_or(Error::NotFound)?, now).map(|kept| kept.schedule)
}

/// One page, oldest first.
pub async fn list(
    conn: &mut Conn,
    whose: Whose,
    filter: &Filter,
    after: Option<&Cursor>,
    limit: i64,
    now: Timestamp,
) -> Result<Page<Schedule>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM schedules s WHERE 1 = 1");
    belonging(&mut select, whose);
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
        let part = crate::tasks::escaped(&key);
        select.push(" AND (s.name_key = ").bind(key);
        select.push(" OR s.id LIKE ").bind(format!("{part}%")).push(" ESCAPE '\\'");
        select.push(" OR s.id LIKE ").bind(format!("%{part}")).push(" ESCAPE '\\')");
    }
    if let Some(cursor) = after {
        select.push(" AND (s.created_at, s.id) > (").bind(cursor.sort).push(", ").bind(cursor.id.as_str()).push(")");
    }
    select.push(" ORDER BY s.created_at, s.id LIMIT ").bind(limit + 1);
    let rows = conn.all(select).await?;
    let found = rows.iter().map(|row| read(row, now).map(|kept| kept.schedule)).collect::<Result<Vec<_>>>()?;
    Ok(Page::cut(found, limit, |s| Cursor { sort: s.created_at.as_microsecond(), id: s.id.to_string() }))
}

/// Writes new settings over those of a schedule that the caller has locked.
pub async fn change(
    conn: &mut Conn,
    kept: &Kept,
    settings: &Settings,
    next: Option<Next>,
    now: Timestamp,
) -> Result<Schedule> {
    let id = kept.schedule.id;
    let other = "SELECT id FROM schedules WHERE name_key = $1 AND id <> $2";
    let name = settings.name.to_lowercase();
    alone(conn).await?;
    if conn.first((other, args![name.as_str(), id])).await?.is_some() {
        return Err(Error::Taken("name"));
    }
    let sql = "UPDATE schedules SET name_key = $3, agent_id = $4, due_at = $5, next_at = $6, settings = $7, \
               updated_at = $8, version = version + 1 WHERE id = $1 AND version = $2";
    let at = next.filter(|_| kept.schedule.enabled).map(|next| next.at);
    let due_at = next.map(|next| next.due_at);
    let agent = settings.agent_id.as_str();
    one(conn, (sql, args![id, kept.version, name, agent, due_at, at, json(settings)?, now])).await?;
    get(conn, Whose::Users(kept.owner), id, now).await
}

/// Pauses a schedule that the caller has locked. What waits for its last run to end is not run.
pub async fn pause(conn: &mut Conn, kept: &Kept, reason: &str, now: Timestamp) -> Result<Schedule> {
    let sql = "UPDATE schedules SET enabled = 0, next_at = NULL, paused_at = $3, paused_reason = $4, updated_at = $3, \
               version = version + 1 WHERE id = $1 AND version = $2";
    one(conn, (sql, args![kept.schedule.id, kept.version, now, reason])).await?;
    drop_queued(conn, kept.schedule.id, now).await?;
    get(conn, Whose::Users(kept.owner), kept.schedule.id, now).await
}

/// Lets a schedule that the caller has locked go on, with a clean record.
pub async fn resume(conn: &mut Conn, kept: &Kept, next: Option<Next>, now: Timestamp) -> Result<Schedule> {
    let sql = "UPDATE schedules SET enabled = 1, due_at = $3, next_at = $4, paused_at = NULL, paused_reason = NULL, \
               failures = 0, updated_at = $5, version = version + 1 WHERE id = $1 AND version = $2";
    let due_at = next.map(|next| next.due_at);
    let at = next.map(|next| next.at);
    one(conn, (sql, args![kept.schedule.id, kept.version, due_at, at, now])).await?;
    get(conn, Whose::Users(kept.owner), kept.schedule.id, now).await
}

/// Removes a schedule with its history; what it ran stays on record.
pub async fn remove(conn: &mut Conn, whose: Whose, id: Uuid) -> Result<()> {
    let mut delete = Statement::default();
    delete.push("DELETE FROM schedules WHERE id = ").bind(id);
    if let Whose::Users(owner) = whose {
        delete.push(" AND owner = ").bind(owner);
    }
    if conn.run(delete).await? == 0 {
        return Err(Error::NotFound);
    }
    conn.run(("DELETE FROM decisions WHERE schedule_id = $1", args![id])).await.map(drop)
}

/// Of everyone's.
pub async fn counts(conn: &mut Conn, now: Timestamp) -> Result<Counts> {
    let sql = "SELECT (SELECT COUNT(*) FROM schedules), (SELECT COUNT(*) FROM schedules WHERE enabled = 0), \
               (SELECT COUNT(*) FROM schedules WHERE next_at <= $1)";
    let row = conn.first((sql, args![now])).await?;
    row.map_or(Ok(Counts::default()), |row| Ok(Counts { all: row.int(0)?, paused: row.int(1)?, due: row.int(2)? }))
}

/// Until the transaction ends nobody else renames schedules: a name that is free now could be taken by then.
pub async fn alone(conn: &mut Conn) -> Result<()> {
    if !conn.is_sqlite() {
        // Any number will do that nothing else in the database uses.
        conn.batch("SELECT pg_advisory_xact_lock(7717000003)").await?;
    }
    Ok(())
}

async fn one<'a>(conn: &mut Conn, statement: impl Into<Statement<'a>>) -> Result<()> {
    match conn.run(statement).await? {
        1 => Ok(()),
        // Only those call who hold the row.
        _ => Err(Error::Database("a schedule was changed by two at once".to_owned())),
    }
}

fn belonging(select: &mut Statement<'_>, whose: Whose) {
    if let Whose::Users(owner) = whose {
        select.push(" AND s.owner = ").bind(owner);
    }
}

fn json(settings: &Settings) -> Result<String> {
    serde_json::to_string(settings).map_err(|error| Error::Corrupt(error.to_string()))
}
