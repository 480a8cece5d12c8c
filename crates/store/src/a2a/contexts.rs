//! What the tasks of one context have in common: the conversation, the session, or what an agent elsewhere calls it.

use jiff::Timestamp;
use model::UserId;
use uuid::Uuid;

use crate::conn::{Conn, Row, args};
use crate::{Error, Result};

/// A context in which a user and an agent have something in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    pub id: String,
    pub link: Link,
    pub created_at: Timestamp,
    pub used_at: Timestamp,
}

/// What that is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    pub conversation_id: Option<String>,
    pub session_id: Option<Uuid>,
    /// What an agent elsewhere calls the context.
    pub remote_context: Option<String>,
}

pub async fn get(conn: &mut Conn, owner: UserId, agent_id: &str, id: &str) -> Result<Option<Context>> {
    let sql = "SELECT id, conversation_id, session_id, remote_context, created_at, used_at FROM a2a_contexts \
               WHERE owner = $1 AND agent_id = $2 AND id = $3";
    conn.first((sql, args![owner, agent_id, id])).await?.as_ref().map(read).transpose()
}

/// The context, which begins here where it was not there before. Nobody else uses it until the transaction ends.
pub async fn enter(conn: &mut Conn, owner: UserId, agent_id: &str, id: &str, now: Timestamp) -> Result<Context> {
    let sql = "INSERT INTO a2a_contexts (owner, agent_id, id, created_at, used_at) VALUES ($1, $2, $3, $4, $4) \
               ON CONFLICT (owner, agent_id, id) DO UPDATE SET used_at = excluded.used_at \
               RETURNING id, conversation_id, session_id, remote_context, created_at, used_at";
    let row = conn.first((sql, args![owner, agent_id, id, now])).await?;
    read(&row.ok_or_else(|| Error::Database("a context was not written".to_owned()))?)
}

/// Says what the tasks of a context have in common from now on. `false`: there is no such context.
pub async fn link(conn: &mut Conn, owner: UserId, agent_id: &str, id: &str, link: &Link) -> Result<bool> {
    let sql = "UPDATE a2a_contexts SET conversation_id = $4, session_id = $5, remote_context = $6 \
               WHERE owner = $1 AND agent_id = $2 AND id = $3";
    let session = link.session_id.map(|id| id.to_string());
    let conversation = link.conversation_id.as_deref();
    let remote = link.remote_context.as_deref();
    Ok(conn.run((sql, args![owner, agent_id, id, conversation, session, remote])).await? == 1)
}

fn read(row: &Row) -> Result<Context> {
    let session = row.maybe_text(2)?.map(|id| Uuid::try_parse(&id)).transpose();
    let link = Link {
        conversation_id: row.maybe_text(1)?,
        session_id: session.map_err(|error| Error::Corrupt(error.to_string()))?,
        remote_context: row.maybe_text(3)?,
    };
    Ok(Context { id: row.text(0)?, link, created_at: row.time(4)?, used_at: row.time(5)? })
}
