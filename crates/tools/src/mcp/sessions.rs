//! The sessions of clients of the older revisions. A session belongs to the user who opened it; there are only so many,
//! and one that nobody uses ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ::http::request::Parts;
use futures::Stream;
use model::UserId;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, LocalSessionManagerError};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};

use super::Asker;

/// A session without a message for so long is over. A client that comes back later begins a new one.
const IDLE: Duration = Duration::from_secs(30 * 60);
const MAX_OF_USER: usize = 64;
const MAX: usize = 1024;

pub(super) struct Sessions {
    local: LocalSessionManager,
    owners: Mutex<HashMap<SessionId, Owner>>,
}

struct Owner {
    user: UserId,
    used: Instant,
}

impl Default for Sessions {
    fn default() -> Self {
        let mut local = LocalSessionManager::default();
        local.session_config.keep_alive = Some(IDLE);
        Self { local, owners: Mutex::default() }
    }
}

impl Sessions {
    /// False for a session of somebody else and for one that is not there: nobody learns which.
    pub(super) fn admits(&self, id: &str, user: UserId) -> bool {
        match self.owners().get_mut(id) {
            Some(owner) if owner.user == user => {
                owner.used = Instant::now();
                true
            }
            _ => false,
        }
    }

    pub(super) fn are_none(&self) -> bool {
        self.owners().is_empty()
    }

    /// Notes whose session it is, and names those that must make room for it: the user's own first.
    fn admit(&self, id: &SessionId, user: UserId) -> Vec<SessionId> {
        let mut owners = self.owners();
        owners.insert(id.clone(), Owner { user, used: Instant::now() });
        let mut leaving = Vec::new();
        if owners.values().filter(|owner| owner.user == user).count() > MAX_OF_USER {
            leaving.extend(longest_unused(&owners, |owner| owner.user == user));
        } else if owners.len() > MAX {
            leaving.extend(longest_unused(&owners, |_| true));
        }
        leaving
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<SessionId, Owner>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn longest_unused(owners: &HashMap<SessionId, Owner>, of: impl Fn(&Owner) -> bool) -> Option<SessionId> {
    owners.iter().filter(|(_, owner)| of(owner)).min_by_key(|(_, owner)| owner.used).map(|(id, _)| id.clone())
}

/// Who sent a message: the door has put that into the request.
fn sender(message: &ClientJsonRpcMessage) -> Option<UserId> {
    let JsonRpcMessage::Request(request) = message else { return None };
    let asker = request.request.extensions().get::<Parts>()?.extensions.get::<Arc<Asker>>()?;
    Some(asker.user.id)
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        self.local.create_session().await
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        let Some(user) = sender(&message) else { return Err(LocalSessionManagerError::SessionNotFound(id.clone())) };
        for leaving in self.admit(id, user) {
            self.close_session(&leaving).await?;
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
    fn nobody_is_pushed_out_by_another_users_many_sessions() {
        let sessions = Sessions::default();
        let alice = UserId::new(Uuid::from_u128(1));
        let bob = UserId::new(Uuid::from_u128(2));
        let admit = |name: String, user| {
            let leaving = sessions.admit(&name.into(), user);
            for id in &leaving {
                sessions.owners().remove(id);
            }
            leaving
        };
        admit("alice's".to_owned(), alice);
        for n in 0..MAX_OF_USER {
            assert!(admit(format!("bob's {n}"), bob).is_empty(), "{n}");
        }
        assert!(sessions.admits("bob's 0", bob), "used again, so the next is the longest unused");
        assert_eq!(admit("one more".to_owned(), bob), ["bob's 1".into()]);
        assert!(sessions.admits("alice's", alice));
        assert!(!sessions.admits("alice's", bob) && !sessions.admits("bob's 1", bob) && !sessions.admits("none", bob));
    }
}
