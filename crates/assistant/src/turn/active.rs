//! The turns that are running on this node. Each conversation runs one turn at a time. Turns with a key can be joined.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use model::UserId;
use model::conversation::ConversationId;
use store::idempotency::IdempotencyKey;
use tokio::sync::OwnedMutexGuard;

use super::stream::EventLog;

/// Prevents other turns of a conversation from starting on this node.
pub type ConversationLock = OwnedMutexGuard<()>;

#[derive(Default)]
pub(super) struct ActiveTurns {
    /// The events of the running turns that have a key.
    keyed: Mutex<HashMap<(UserId, String), Arc<EventLog>>>,
    /// The locks of conversations. An entry without a holder is removed later.
    conversations: Mutex<HashMap<ConversationId, Weak<tokio::sync::Mutex<()>>>>,
}

impl ActiveTurns {
    /// Waits until no other turn of this conversation runs on this node, then returns its lock.
    pub(super) async fn lock(&self, id: &ConversationId) -> ConversationLock {
        self.conversation(id).lock_owned().await
    }

    /// Returns the lock of the conversation, or `None` if a turn holds it.
    pub(super) fn try_lock(&self, id: &ConversationId) -> Option<ConversationLock> {
        self.conversation(id).try_lock_owned().ok()
    }

    /// Returns the lock of a conversation, and creates it if no turn holds or awaits it. Does not acquire it. Removes
    /// unused locks before the map grows.
    fn conversation(&self, id: &ConversationId) -> Arc<tokio::sync::Mutex<()>> {
        let mut conversations = self.conversations.lock().unwrap_or_else(PoisonError::into_inner);
        // Removes entries of ended turns before the map grows.
        if conversations.len() == conversations.capacity() {
            conversations.retain(|_, lock| lock.strong_count() > 0);
        }
        let lock = conversations.get(id).and_then(Weak::upgrade).unwrap_or_default();
        conversations.insert(id.clone(), Arc::downgrade(&lock));
        lock
    }

    /// Returns the events of the turn with this key, or `None` if none is running on this node.
    pub(super) fn find(&self, user: UserId, key: &IdempotencyKey) -> Option<Arc<EventLog>> {
        self.keyed().get(&(user, key.key.clone())).cloned()
    }

    pub(super) fn insert(&self, user: UserId, key: &IdempotencyKey, log: &Arc<EventLog>) {
        self.keyed().insert((user, key.key.clone()), log.clone());
    }

    pub(super) fn remove(&self, user: UserId, key: &IdempotencyKey) {
        self.keyed().remove(&(user, key.key.clone()));
    }

    fn keyed(&self) -> MutexGuard<'_, HashMap<(UserId, String), Arc<EventLog>>> {
        self.keyed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_conversation_has_one_turn_at_a_time() {
        // CHAT-7
        let active = ActiveTurns::default();
        let one: ConversationId = "conv_1".parse().unwrap();
        let other: ConversationId = "conv_2".parse().unwrap();
        let held = active.lock(&one).await;
        assert!(active.try_lock(&one).is_none());
        assert!(active.try_lock(&other).is_some());
        drop(held);
        assert!(active.try_lock(&one).is_some());
        for n in 0..1000 {
            active.lock(&format!("conv_n{n}").parse().unwrap()).await;
        }
        assert!(active.conversations.lock().unwrap().len() < 10, "entries of ended turns must be removed");
    }
}
