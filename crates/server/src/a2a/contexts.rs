//! What the tasks of one context have in common: with the assistant a conversation, with an interactive agent a session.

use model::agent::{ASSISTANT, Mode};
use model::conversation::Id;
use model::session::{Session, State};
use model::{Clock, UserId};
use sha2::{Digest, Sha256};
use store::Conn;
use store::a2a::contexts;
use store::executions::Whose;
use supervisor::{Entry, Supervisor};
use uuid::Uuid;

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

/// A session for a context that has none that is open.
pub(crate) struct Spare {
    pub(crate) session: Session,
    pub(crate) node: Uuid,
    pub(crate) places: i64,
}

impl Spare {
    pub(crate) fn new(supervisor: &Supervisor, session: Session, entry: &Entry) -> Self {
        Self { session, node: supervisor.node(), places: i64::from(entry.agent.places()) }
    }
}

pub(crate) fn needs_session(entry: &Entry) -> bool {
    entry.agent.mode == Mode::Interactive
}

/// The session of a context, and whether it is the spare one, which is opened then. `None`: it would need one, and there is
/// none.
pub(crate) async fn session(
    conn: &mut Conn,
    owner: UserId,
    agent_id: &str,
    context: &str,
    spare: Option<&Spare>,
    clock: &Clock,
) -> store::Result<Option<(Uuid, bool)>> {
    let entered = contexts::enter(conn, owner, agent_id, context, clock.now()).await?;
    if let Some(id) = entered.link.session_id {
        match store::sessions::get(conn, Whose::Users(owner), id).await {
            Ok(session) if session.ended_at.is_none() && session.state != State::Closing => {
                return Ok(Some((id, false)));
            }
            // It has ended: another one goes on in its place.
            Ok(_) | Err(store::Error::NotFound) => {}
            Err(error) => return Err(error),
        }
    }
    let Some(Spare { session, node, places }) = spare else { return Ok(None) };
    store::sessions::open(conn, owner, session, *node, *places).await?;
    let link = contexts::Link { session_id: Some(session.id), ..entered.link };
    contexts::link(conn, owner, agent_id, context, &link).await?;
    Ok(Some((session.id, true)))
}
