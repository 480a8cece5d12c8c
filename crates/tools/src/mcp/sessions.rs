//! The sessions of clients of the older protocol revisions. A session belongs to the user that opened it. The number of
//! sessions is limited, and an unused session expires.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ::http::request::Parts;
use futures::Stream;
use model::UserId;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, LocalSessionManagerError};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};

use super::McpCaller;

/// A session without a message for this long is closed. The client has to open a new one.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30 * 60);
const MAX_SESSIONS_PER_USER: usize = 64;
const MAX_SESSIONS: usize = 1024;

/// All sessions of this node, with their owners.
pub(super) struct McpSessions {
    local: LocalSessionManager,
    owners: Mutex<HashMap<SessionId, SessionOwner>>,
}

struct SessionOwner {
    user: UserId,
    last_used: Instant,
}

impl Default for McpSessions {
    fn default() -> Self {
        let mut local = LocalSessionManager::default();
        local.session_config.keep_alive = Some(IDLE_TIMEOUT);
        Self { local, owners: Mutex::default() }
    }
}

impl McpSessions {
    /// Returns true if the session belongs to the user, and marks it as used. Returns false for a missing session and
    /// for a session of another user.
    pub(super) fn is_owned_by(&self, id: &str, user: UserId) -> bool {
        match self.owners().get_mut(id) {
            Some(owner) if owner.user == user => {
                owner.last_used = Instant::now();
                true
            }
            _ => false,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.owners().is_empty()
    }

    /// Records the owner of a new session. If the user now has more than [`MAX_SESSIONS_PER_USER`], returns the least
    /// recently used session of the user. Otherwise, if the node has more than [`MAX_SESSIONS`], returns the least
    /// recently used one of all users. The caller must close it. Returns an empty list within the limits.
    fn register(&self, id: &SessionId, user: UserId) -> Vec<SessionId> {
        let mut owners = self.owners();
        owners.insert(id.clone(), SessionOwner { user, last_used: Instant::now() });
        let mut evicted = Vec::new();
        if owners.values().filter(|owner| owner.user == user).count() > MAX_SESSIONS_PER_USER {
            evicted.extend(least_recently_used(&owners, |owner| owner.user == user));
        } else if owners.len() > MAX_SESSIONS {
            evicted.extend(least_recently_used(&owners, |_| true));
        }
        evicted
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<SessionId, SessionOwner>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the least recently used session among those that pass the filter, or `None` if there are none.
fn least_recently_used(
    owners: &HashMap<SessionId, SessionOwner>,
    filter: impl Fn(&SessionOwner) -> bool,
) -> Option<SessionId> {
    owners.iter().filter(|(_, owner)| filter(owner)).min_by_key(|(_, owner)| owner.last_used).map(|(id, _)| id.clone())
}

/// Returns the user of a request, which [`super::http`] has put into it. Returns `None` for other messages.
fn sender(message: &ClientJsonRpcMessage) -> Option<UserId> {
    let JsonRpcMessage::Request(request) = message else { return None };
    let caller = request.request.extensions().get::<Parts>()?.extensions.get::<Arc<McpCaller>>()?;
    Some(caller.user.id)
}

impl SessionManager for McpSessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        self.local.create_session().await
    }

    /// Records the owner and closes the session that exceeds a limit. Fails if the message has no sender.
    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        let Some(user) = sender(&message) else { return Err(LocalSessionManagerError::SessionNotFound(id.clone())) };
        for evicted in self.register(id, user) {
            self.close_session(&evicted).await?;
        }
        self.local.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.local.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.owners().remove(id);
        self.local.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.create_stream(id, message).await
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.local.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.resume(id, last_event_id).await
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_user_with_many_sessions_does_not_evict_other_users() {
        let sessions = McpSessions::default();
        let alice = UserId::new(Uuid::from_u128(1));
        let bob = UserId::new(Uuid::from_u128(2));
        let register = |name: String, user| {
            let evicted = sessions.register(&name.into(), user);
            for id in &evicted {
                sessions.owners().remove(id);
            }
            evicted
        };
        register("alice's".to_owned(), alice);
        for n in 0..MAX_SESSIONS_PER_USER {
            assert!(register(format!("bob's {n}"), bob).is_empty(), "{n}");
        }
        assert!(sessions.is_owned_by("bob's 0", bob), "used again, so the second one is evicted");
        assert_eq!(register("one more".to_owned(), bob), ["bob's 1".into()]);
        assert!(sessions.is_owned_by("alice's", alice));
        assert!(
            !sessions.is_owned_by("alice's", bob)
                && !sessions.is_owned_by("bob's 1", bob)
                && !sessions.is_owned_by("none", bob)
        );
    }
}
