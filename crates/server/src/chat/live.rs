//! Turns that are under way on this node: what they have told so far, and whose turn is next.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::body::{Body, Bytes};
use model::UserId;
use model::conversation::Id;
use store::idempotency::Reply;
use tokio::sync::{OwnedMutexGuard, watch};

use super::sse::KEEP_ALIVE;

const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(15);

/// All turns under way.
#[derive(Default)]
pub(crate) struct Turns {
    /// Those that can be joined by the key of their request.
    keyed: Mutex<HashMap<(UserId, String), Arc<Live>>>,
    /// One turn of a conversation at a time.
    queues: Mutex<HashMap<Id, Weak<tokio::sync::Mutex<()>>>>,
}

impl Turns {
    /// Waits until no other turn of this conversation is under way.
    pub(super) async fn take(&self, id: &Id) -> OwnedMutexGuard<()> {
        let queue = {
            let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
            queues.retain(|_, queue| queue.strong_count() > 0);
            let queue = queues.get(id).and_then(Weak::upgrade).unwrap_or_default();
            queues.insert(id.clone(), Arc::downgrade(&queue));
            queue
        };
        queue.lock_owned().await
    }

    pub(super) fn find(&self, user: UserId, key: &str) -> Option<Arc<Live>> {
        self.keyed.lock().unwrap_or_else(PoisonError::into_inner).get(&(user, key.to_owned())).cloned()
    }

    pub(super) fn add(&self, user: UserId, key: &str, live: &Arc<Live>) {
        self.keyed.lock().unwrap_or_else(PoisonError::into_inner).insert((user, key.to_owned()), live.clone());
    }

    /// The answer is in the store now, and is given from there.
    pub(super) fn remove(&self, user: UserId, key: &str) {
        self.keyed.lock().unwrap_or_else(PoisonError::into_inner).remove(&(user, key.to_owned()));
    }
}

/// What a turn has told so far; anybody may listen from any point.
pub(super) struct Live {
    /// Events as they go over the wire.
    told: Mutex<Vec<Bytes>>,
    /// How many there are.
    count: watch::Sender<usize>,
    /// Set once: the whole answer.
    ended: watch::Sender<Option<Reply>>,
}

impl Live {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { told: Mutex::default(), count: watch::Sender::new(0), ended: watch::Sender::new(None) })
    }

    pub(super) fn tell(&self, block: String) {
        let count = {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            told.push(block.into());
            told.len()
        };
        self.count.send_replace(count);
    }

    pub(super) fn count(&self) -> usize {
        *self.count.borrow()
    }

    pub(super) fn everything(&self) -> String {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.iter().map(|block| String::from_utf8_lossy(block)).collect()
    }

    pub(super) fn end(&self, reply: Reply) {
        self.ended.send_replace(Some(reply));
    }

    /// The answer, once it is there. `None`: the turn was lost.
    pub(super) async fn reply(&self) -> Option<Reply> {
        let mut ended = self.ended.subscribe();
        ended.wait_for(Option::is_some).await.ok().and_then(|reply| reply.clone())
    }

    /// The events after the first `seen`, as they come.
    pub(super) fn listen(self: Arc<Self>, seen: usize) -> Body {
        let listener = Listener { count: self.count.subscribe(), ended: self.ended.subscribe(), live: self, seen };
        Body::from_stream(futures::stream::unfold(listener, |mut listener| async move {
            let bytes = listener.next().await?;
            Some((Ok::<_, std::convert::Infallible>(bytes), listener))
        }))
    }
}

struct Listener {
    live: Arc<Live>,
    count: watch::Receiver<usize>,
    ended: watch::Receiver<Option<Reply>>,
    seen: usize,
}

impl Listener {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            // Looked at first: what was told before the end is still to be sent.
            let ended = self.ended.borrow_and_update().is_some();
            self.count.mark_unchanged();
            let block = self.live.told.lock().unwrap_or_else(PoisonError::into_inner).get(self.seen).cloned();
            if let Some(block) = block {
                self.seen += 1;
                return Some(block);
            }
            if ended {
                return None;
            }
            tokio::select! {
                _ = self.count.changed() => {}
                _ = self.ended.changed() => {}
                () = tokio::time::sleep(KEEP_ALIVE_EVERY) => return Some(Bytes::from_static(KEEP_ALIVE.as_bytes())),
            }
        }
    }
}
