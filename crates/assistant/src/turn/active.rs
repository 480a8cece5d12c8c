//! The turns that are running on this node: one at a time for each conversation, and those that can be joined by their key.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use model::UserId;
use model::conversation::Id;
use store::idempotency::Key;
use tokio::sync::OwnedMutexGuard;

use super::stream::EventLog;

/// Keeps other turns of a conversation from starting on this node.
pub type ConversationLock = OwnedMutexGuard<()>;

#[derive(Default)]
pub(super) struct ActiveTurns {
    keyed: Mutex<HashMap<(UserId, String), Arc<EventLog>>>,
    conversations: Mutex<HashMap<Id, Weak<tokio::sync::Mutex<()>>>>,
}

impl ActiveTurns {
    /// Waits until no other turn of this conversation runs on this node.
    pub(super) async fn lock(&self, id: &Id) -> ConversationLock {
        self.conversation(id).lock_owned().await
    }

    pub(super) fn try_lock(&self, id: &Id) -> Option<ConversationLock> {
        self.conversation(id).try_lock_owned().ok()
    }

    fn conversation(&self, id: &Id) -> Arc<tokio::sync::Mutex<()>> {
        let mut conversations = self.conversations.lock().unwrap_or_else(PoisonError::into_inner);
        // Entries of ended turns are removed before the map would grow.
        if conversations.len() == conversations.capacity() {
            conversations.retain(|_, lock| lock.strong_count() > 0);
        }
        let lock = conversations.get(id).and_then(Weak::upgrade).unwrap_or_default();
        conversations.insert(id.clone(), Arc::downgrade(&lock));
        lock
    }

    pub(super) fn find(&self, user: UserId, key: &Key) -> Option<Arc<EventLog>> {
        self.keyed().get(&(user, key.key.clone())).cloned()
    }

    pub(super) fn insert(&self, user: UserId, key: &Key, log: &Arc<EventLog>) {
        self.keyed().insert((user, key.key.clone()), log.clone());
    }

    pub(super) fn remove(&self, user: UserId, key: &Key) {
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
        let one: Id = "conv_1".parse().unwrap();
        let other: Id = "conv_2".parse().unwrap();
        let held = active.lock(&one).await;
        assert!(active.try_lock(&one).is_none());
        assert!(active.try_lock(&other).is_some());
        drop(held);
        assert!(active.try_lock(&one).is_some());
        for n in 0..1000 {
            active.lock(&format!("conv_n{n}").parse().unwrap()).await;
        }
        assert!(active.conversations.lock().unwrap().len() < 10, "entries of ended turns stay");
    }
}
