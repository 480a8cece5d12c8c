//! What the tasks of one context have in common: with the assistant a conversation, with an interactive agent a session.

use model::UserId;
use model::agent::{ASSISTANT, Mode};
use model::conversation::Id;
use model::session::State;
use sha2::{Digest, Sha256};
use store::Transaction;
use store::a2a::contexts;
use store::executions::Whose;
use supervisor::{Entry, NewSession, Refused};
use uuid::Uuid;

use super::send::NotSent;
use crate::App;

/// Longer ids of contexts are not taken.
const LONGEST: usize = 256;
pub(crate) const RULE: &str = "must have at most 256 bytes and no control characters";

/// Whether this can be the id of a context.
pub(crate) fn is_one(id: &str) -> bool {
    id.len() <= LONGEST && !id.contains(char::is_control)
}

/// The conversation of a user with the assistant in a context. It follows from both: whoever comes back with the context
/// finds it again.
pub(crate) fn conversation(entry: &Entry, owner: UserId, context: &str) -> Option<Id> {
    if entry.agent.id != ASSISTANT {
        return None;
    }
    let digest = Sha256::digest(format!("adjutant:a2a:conversation:{owner}:{context}"));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    Some(uuid::Builder::from_custom_bytes(bytes).into_uuid().into())
}

pub(crate) fn needs_session(entry: &Entry) -> bool {
    entry.agent.mode == Mode::Interactive
}

/// Returns the open session of a context, or opens the `spare` one for it.
pub(crate) async fn session(
    tx: &mut Transaction,
    app: &App,
    owner: UserId,
    agent_id: &str,
    context: &str,
    spare: Result<NewSession, Refused>,
) -> Result<Uuid, NotSent> {
    let entered = contexts::enter(tx, owner, agent_id, context, app.clock().now()).await?;
    if let Some(id) = entered.link.session_id {
        match store::sessions::get(tx, Whose::Users(owner), id).await {
            Ok(session) if session.ended_at.is_none() && session.state != State::Closing => return Ok(id),
            // It has ended: another one takes its place.
            Ok(_) | Err(store::Error::NotFound) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let session = app.supervisor().open_session(tx, spare?).await?;
    let link = contexts::Link { session_id: Some(session.id), ..entered.link };
    contexts::link(tx, owner, agent_id, context, &link).await?;
    Ok(session.id)
}
