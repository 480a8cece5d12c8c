//! Sessions: agent processes that answer several messages. A session uses a slot of its agent.

use jiff::Timestamp;
use model::UserId;
use model::session::{Session, SessionState};
use uuid::Uuid;

use crate::conn::{Conn, DbRow, Statement, args};
use crate::executions::OwnerScope;
use crate::hints::Hint;
use crate::page::{Cursor, Page};
use crate::{Error, Result, nodes, quotas, slots, stop_state};

const COLUMNS: &str = "id, agent_id, state, created_at, last_activity, expires_at, ended_at, error_message";

/// Stores a new session of `node` and takes a slot of its agent, which has `slots` of them. Fails with
/// [`Error::NoFreeSlot`] if no slot is free or the node was declared dead, with [`Error::Stopped`] while everything is
/// stopped, and with [`Error::QuotaReached`] if the owner has too many open sessions. All failures leave the database
/// unchanged.
pub async fn open(conn: &mut Conn, owner: UserId, session: &Session, node: Uuid, slots: i64) -> Result<()> {
    let is_alive = nodes::is_alive(conn, node).await?;
    stop_state::check(conn).await?;
    quotas::check_new_session(conn, owner, &session.agent_id, slots).await?;
    let (_, mut free) = slots::free(conn, &session.agent_id, slots).await?;
    if !is_alive || !slots::take(conn, &session.agent_id, &mut free, session.id, node).await? {
        return Err(Error::NoFreeSlot);
    }
    let sql = "INSERT INTO sessions (id, owner, agent_id, state, node, created_at, last_activity, expires_at) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let values = args![
        session.id,
        owner,
        session.agent_id.as_str(),
        session.state.as_str(),
        node,
        session.created_at,
        session.last_activity,
        session.expires_at,
    ];
    conn.run((sql, values)).await.map(drop)
}

/// Returns a session. Fails with [`Error::NotFound`] if it does not exist in the scope.
pub async fn get(conn: &mut Conn, scope: OwnerScope, id: Uuid) -> Result<Session> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM sessions WHERE id = ").bind(id);
    restrict_to_scope(&mut select, scope);
    read(&conn.first(select).await?.ok_or(Error::NotFound)?)
}

/// Returns a session of any user before a claim of its next message. On PostgreSQL, also takes the shared lock of
/// [`stop_state`] in the same statement. Fails with [`Error::NotFound`] if it does not exist.
pub async fn get_for_claim(conn: &mut Conn, id: Uuid) -> Result<Session> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS);
    if !conn.is_sqlite() {
        select.push(", ").push(stop_state::SHARED_LOCK);
    }
    select.push(" FROM sessions WHERE id = ").bind(id);
    read(&conn.first(select).await?.ok_or(Error::NotFound)?)
}

/// Returns one page of the sessions in the scope, newest first. Ended sessions are included only if `ended` is true.
pub async fn list(
    conn: &mut Conn,
    scope: OwnerScope,
    ended: bool,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<Page<Session>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM sessions WHERE 1 = 1");
    restrict_to_scope(&mut select, scope);
    if !ended {
        select.push(" AND ended_at IS NULL");
    }
    if let Some(cursor) = after {
        select.push(" AND (created_at, id) < (").bind(cursor.sort).push(", ").bind(cursor.id.as_str()).push(")");
    }
    select.push(" ORDER BY created_at DESC, id DESC LIMIT ").bind(limit + 1);
    let sessions = conn.all(select).await?.iter().map(read).collect::<Result<Vec<_>>>()?;
    let cursor = |session: &Session| Cursor { sort: session.created_at.as_microsecond(), id: session.id.to_string() };
    Ok(Page::from_rows(sessions, limit, cursor))
}

/// Saves the state, the times and the error of a session of this node. A session that is closing stays in this state
/// until it ends. Returns false, without a change, if the stored session has already ended, does not exist or belongs
/// to another node. If `session` has ended, sends a hint to all nodes in both cases. Does not release the slot.
pub async fn save(conn: &mut Conn, node: Uuid, session: &Session) -> Result<bool> {
    let sql = "UPDATE sessions SET state = CASE WHEN state = 'closing' AND $6 IS NULL THEN state ELSE $3 END, \
               last_activity = $4, expires_at = $5, ended_at = $6, error_message = $7 \
               WHERE id = $1 AND node = $2 AND ended_at IS NULL";
    let values = args![
        session.id,
        node,
        session.state.as_str(),
        session.last_activity,
        session.expires_at,
        session.ended_at,
        session.error_message.as_deref(),
    ];
    if session.ended_at.is_some() {
        conn.add_hint(Hint::Session(session.id));
    }
    Ok(conn.run((sql, values)).await? == 1)
}

/// Requests that the node of a session closes it, and sends a hint to all nodes. Returns the session in the state
/// `Closing`. A second request changes nothing. Fails with [`Error::NotFound`] if it does not exist in the scope, and
/// with [`Error::AlreadyEnded`] if it has ended.
pub async fn request_close(conn: &mut Conn, scope: OwnerScope, id: Uuid) -> Result<Session> {
    let mut session = get(conn, scope, id).await?;
    if session.ended_at.is_some() {
        return Err(Error::AlreadyEnded);
    }
    session.state = SessionState::Closing;
    conn.add_hint(Hint::Session(id));
    let sql = "UPDATE sessions SET state = 'closing' WHERE id = $1 AND ended_at IS NULL";
    match conn.run((sql, args![id])).await? {
        0 => Err(Error::AlreadyEnded),
        _ => Ok(session),
    }
}

/// Returns the sessions of this node that are closing or have a queued message. Also returns the holders of slots of
/// this node that no longer exist because their user has erased them.
pub async fn needing_attention(conn: &mut Conn, node: Uuid) -> Result<Vec<Uuid>> {
    let sql = "SELECT s.id FROM sessions s WHERE s.node = $1 AND s.ended_at IS NULL AND (s.state = 'closing' OR EXISTS \
               (SELECT 1 FROM executions e WHERE e.session_id = s.id AND e.state = 'idle')) \
               UNION ALL SELECT p.holder FROM places p WHERE p.node = $1 \
               AND NOT EXISTS (SELECT 1 FROM executions e WHERE e.id = p.holder) \
               AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = p.holder)";
    conn.all((sql, args![node])).await?.iter().map(|row| row.parsed(0, Uuid::try_parse)).collect()
}

/// Fails the open sessions of removed nodes. Returns their number.
pub async fn fail_abandoned(conn: &mut Conn, now: Timestamp) -> Result<u64> {
    let sql = "UPDATE sessions SET state = 'failed', ended_at = $1, error_message = 'adjutant was stopped' \
               WHERE ended_at IS NULL AND node NOT IN (SELECT id FROM nodes)";
    conn.run((sql, args![now])).await
}

/// Removes the nodes of all open sessions after a restore, so that they become abandoned.
pub(crate) async fn invalidate_claims(conn: &mut Conn) -> Result<()> {
    conn.run(("UPDATE sessions SET node = '' WHERE ended_at IS NULL", [])).await.map(drop)
}

/// Adds a condition that restricts the rows to the scope.
fn restrict_to_scope(select: &mut Statement<'_>, scope: OwnerScope) {
    if let OwnerScope::User(owner) = scope {
        select.push(" AND owner = ").bind(owner);
    }
}

/// Reads [`COLUMNS`]. Fails with [`Error::Corrupt`] if a column is invalid.
fn read(row: &DbRow) -> Result<Session> {
    Ok(Session {
        id: row.parsed(0, Uuid::try_parse)?,
        agent_id: row.text(1)?,
        state: row.parsed(2, |word| SessionState::parse("state", word))?,
        created_at: row.time(3)?,
        last_activity: row.time(4)?,
        expires_at: row.time(5)?,
        ended_at: row.maybe_time(6)?,
        error_message: row.maybe_text(7)?,
    })
}
