//! Conversations with one live process of an agent. A session holds a place of its agent like any run.

use jiff::Timestamp;
use model::UserId;
use model::session::{Session, State};
use uuid::Uuid;

use crate::conn::{Conn, Row, Statement, args};
use crate::executions::Whose;
use crate::hints::Hint;
use crate::page::{Cursor, Page};
use crate::{Error, Result, nodes, places};

const COLUMNS: &str = "id, agent_id, state, created_at, last_activity, expires_at, ended_at, error_message";

/// Opens a session in a free place of its agent.
pub async fn open(conn: &mut Conn, owner: UserId, session: &Session, node: Uuid, places: i64) -> Result<()> {
    let (_, mut free) = places::free(conn, &session.agent_id, places).await?;
    if !nodes::is_alive(conn, node).await?
        || !places::take(conn, &session.agent_id, &mut free, session.id, node).await?
    {
        return Err(Error::NoPlace);
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

pub async fn get(conn: &mut Conn, whose: Whose, id: Uuid) -> Result<Session> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM sessions WHERE id = ").bind(id);
    belonging(&mut select, whose);
    read(&conn.first(select).await?.ok_or(Error::NotFound)?)
}

/// One page, newest first; those that have ended only if asked for.
pub async fn list(
    conn: &mut Conn,
    whose: Whose,
    ended: bool,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<Page<Session>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM sessions WHERE 1 = 1");
    belonging(&mut select, whose);
    if !ended {
        select.push(" AND ended_at IS NULL");
    }
    if let Some(cursor) = after {
        select.push(" AND (created_at, id) < (").bind(cursor.sort).push(", ").bind(cursor.id.as_str()).push(")");
    }
    select.push(" ORDER BY created_at DESC, id DESC LIMIT ").bind(limit + 1);
    let sessions = conn.all(select).await?.iter().map(read).collect::<Result<Vec<_>>>()?;
    let cursor = |session: &Session| Cursor { sort: session.created_at.as_microsecond(), id: session.id.to_string() };
    Ok(Page::cut(sessions, limit, cursor))
}

/// Writes down where a session is. `false`: it is not this node's, or has ended. What somebody wants closed stays so
/// until it has ended.
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
        conn.hint(Hint::Session(session.id));
    }
    Ok(conn.run((sql, values)).await? == 1)
}

/// Asks for a session to be closed; its node does it.
pub async fn ask_to_close(conn: &mut Conn, whose: Whose, id: Uuid) -> Result<Session> {
    let mut session = get(conn, whose, id).await?;
    if session.ended_at.is_some() {
        return Err(Error::Ended);
    }
    session.state = State::Closing;
    conn.hint(Hint::Session(id));
    let sql = "UPDATE sessions SET state = 'closing' WHERE id = $1 AND ended_at IS NULL";
    match conn.run((sql, args![id])).await? {
        0 => Err(Error::Ended),
        _ => Ok(session),
    }
}

/// This node's sessions that somebody wants closed, or for which a message waits; and whatever holds a place of this
/// node and is not there any more, because its user has erased it.
pub async fn to_look_at(conn: &mut Conn, node: Uuid) -> Result<Vec<Uuid>> {
    let sql = "SELECT s.id FROM sessions s WHERE s.node = $1 AND s.ended_at IS NULL AND (s.state = 'closing' OR EXISTS \
               (SELECT 1 FROM executions e WHERE e.session_id = s.id AND e.state = 'idle')) \
               UNION ALL SELECT p.holder FROM places p WHERE p.node = $1 \
               AND NOT EXISTS (SELECT 1 FROM executions e WHERE e.id = p.holder) \
               AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = p.holder)";
    conn.all((sql, args![node])).await?.iter().map(|row| row.parsed(0, Uuid::try_parse)).collect()
}

/// Ends the sessions of nodes that are no more.
pub async fn abandon(conn: &mut Conn, now: Timestamp) -> Result<u64> {
    let sql = "UPDATE sessions SET state = 'failed', ended_at = $1, error_message = 'adjutant was stopped meanwhile' \
               WHERE ended_at IS NULL AND node NOT IN (SELECT id FROM nodes)";
    conn.run((sql, args![now])).await
}

/// After a restore no session is anybody's: those that were open in the backup are abandoned.
pub(crate) async fn disown(conn: &mut Conn) -> Result<()> {
    conn.run(("UPDATE sessions SET node = '' WHERE ended_at IS NULL", [])).await.map(drop)
}

fn belonging(select: &mut Statement<'_>, whose: Whose) {
    if let Whose::Users(owner) = whose {
        select.push(" AND owner = ").bind(owner);
    }
}

fn read(row: &Row) -> Result<Session> {
    Ok(Session {
        id: row.parsed(0, Uuid::try_parse)?,
        agent_id: row.text(1)?,
        state: row.parsed(2, |word| State::parse("state", word))?,
        created_at: row.time(3)?,
        last_activity: row.time(4)?,
        expires_at: row.time(5)?,
        ended_at: row.maybe_time(6)?,
        error_message: row.maybe_text(7)?,
    })
}
