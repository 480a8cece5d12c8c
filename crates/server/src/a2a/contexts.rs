//! A2A contexts. A context is a conversation with the assistant, or a session of an interactive agent.

use model::UserId;
use model::agent::{ASSISTANT_ID, AgentMode};
use model::conversation::ConversationId;
use model::session::SessionState;
use sha2::{Digest, Sha256};
use store::Transaction;
use store::a2a::contexts;
use store::executions::OwnerScope;
use supervisor::{AgentEntry, NewSession, SubmitError};
use uuid::Uuid;

use super::send::EnqueueError;
use crate::App;

/// The maximum length of a context id, in bytes.
const MAX_CONTEXT_ID_BYTES: usize = 256;
pub(crate) const CONTEXT_ID_RULE: &str = "must have at most 256 bytes and no control characters";

/// Returns whether this is a valid context id. An empty id is valid.
pub(crate) fn is_valid_id(id: &str) -> bool {
    id.len() <= MAX_CONTEXT_ID_BYTES && !id.contains(char::is_control)
}

/// Returns the conversation of a context with the assistant, or `None` for other agents. The id is derived from the
/// user and the context, so that later messages find it again. Nothing is read or stored.
pub(crate) fn conversation_id(entry: &AgentEntry, owner: UserId, context: &str) -> Option<ConversationId> {
    if entry.agent.id != ASSISTANT_ID {
        return None;
    }
    let digest = Sha256::digest(format!("adjutant:a2a:conversation:{owner}:{context}"));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    Some(uuid::Builder::from_custom_bytes(bytes).into_uuid().into())
}

/// Returns whether the agent requires a session.
pub(crate) fn needs_session(entry: &AgentEntry) -> bool {
    entry.agent.mode == AgentMode::Interactive
}

/// Returns the open session of a context. If there is none, or it has ended, is closing or was deleted, opens
/// `new_session` and links it to the context. The context is created if necessary.
///
/// Fails with the error in `new_session`, or if the agent has no free slot, but only if a new session is needed. Fails
/// if the database fails.
pub(crate) async fn open_session(
    tx: &mut Transaction,
    app: &App,
    owner: UserId,
    agent_id: &str,
    context: &str,
    new_session: Result<NewSession, SubmitError>,
) -> Result<Uuid, EnqueueError> {
    let current = contexts::get_or_create(tx, owner, agent_id, context, app.clock().now()).await?;
    if let Some(id) = current.link.session_id {
        match store::sessions::get(tx, OwnerScope::User(owner), id).await {
            Ok(session) if session.ended_at.is_none() && session.state != SessionState::Closing => return Ok(id),
            // The session has ended, so a new one replaces it.
            Ok(_) | Err(store::Error::NotFound) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let session = app.supervisor().open_session(tx, new_session?).await?;
    let link = contexts::ContextLink { session_id: Some(session.id), ..current.link };
    contexts::set_link(tx, owner, agent_id, context, &link).await?;
    Ok(session.id)
}
