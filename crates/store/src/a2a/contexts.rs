//! A2A contexts. The tasks of a context share a conversation, a session or the context of a remote agent.

use jiff::Timestamp;
use model::UserId;
use uuid::Uuid;

use crate::conn::{Conn, DbRow, args};
use crate::{Error, Result};

/// A context between a user and an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct A2aContext {
    pub id: String,
    pub link: ContextLink,
    pub created_at: Timestamp,
    pub used_at: Timestamp,
}

/// The resources that the tasks of a context share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextLink {
    pub conversation_id: Option<String>,
    pub session_id: Option<Uuid>,
    /// The id of the context at the remote agent.
    pub remote_context: Option<String>,
}

/// Returns a context, or `None` if it does not exist.
pub async fn get(conn: &mut Conn, owner: UserId, agent_id: &str, id: &str) -> Result<Option<A2aContext>> {
    let sql = "SELECT id, conversation_id, session_id, remote_context, created_at, used_at FROM a2a_contexts \
               WHERE owner = $1 AND agent_id = $2 AND id = $3";
    conn.first((sql, args![owner, agent_id, id])).await?.as_ref().map(read).transpose()
}

/// Returns the context and creates it, without a link, if it does not exist. Sets the time of its last use to `now`.
/// The context is locked until the transaction ends.
pub async fn get_or_create(
    conn: &mut Conn,
    owner: UserId,
    agent_id: &str,
    id: &str,
    now: Timestamp,
) -> Result<A2aContext> {
    let sql = "INSERT INTO a2a_contexts (owner, agent_id, id, created_at, used_at) VALUES ($1, $2, $3, $4, $4) \
               ON CONFLICT (owner, agent_id, id) DO UPDATE SET used_at = excluded.used_at \
               RETURNING id, conversation_id, session_id, remote_context, created_at, used_at";
    let row = conn.first((sql, args![owner, agent_id, id, now])).await?;
    read(&row.ok_or_else(|| Error::Database("the database did not return the context".to_owned()))?)
}

/// Replaces the link of a context. Returns false if the context does not exist.
pub async fn set_link(conn: &mut Conn, owner: UserId, agent_id: &str, id: &str, link: &ContextLink) -> Result<bool> {
    let sql = "UPDATE a2a_contexts SET conversation_id = $4, session_id = $5, remote_context = $6 \
               WHERE owner = $1 AND agent_id = $2 AND id = $3";
    let session = link.session_id.map(|id| id.to_string());
    let conversation = link.conversation_id.as_deref();
    let remote = link.remote_context.as_deref();
    Ok(conn.run((sql, args![owner, agent_id, id, conversation, session, remote])).await? == 1)
}

/// Reads a context. Fails with [`Error::Corrupt`] if the id of the session is not a UUID, or if another column is
/// invalid.
fn read(row: &DbRow) -> Result<A2aContext> {
    let session = row.maybe_text(2)?.map(|id| Uuid::try_parse(&id)).transpose();
    let link = ContextLink {
        conversation_id: row.maybe_text(1)?,
        session_id: session.map_err(|error| Error::Corrupt(error.to_string()))?,
        remote_context: row.maybe_text(3)?,
    };
    Ok(A2aContext { id: row.text(0)?, link, created_at: row.time(4)?, used_at: row.time(5)? })
}
