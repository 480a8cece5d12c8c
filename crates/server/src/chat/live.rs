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
        let listener = self.listener(seen);
        Body::from_stream(futures::stream::unfold(listener, |mut listener| async move {
            let bytes = listener.next(KEEP_ALIVE_EVERY).await?;
            Some((Ok::<_, std::convert::Infallible>(bytes), listener))
        }))
    }

    fn listener(self: Arc<Self>, seen: usize) -> Listener {
        Listener { count: self.count.subscribe(), ended: self.ended.subscribe(), live: self, seen }
    }
}

struct Listener {
    live: Arc<Live>,
    count: watch::Receiver<usize>,
    ended: watch::Receiver<Option<Reply>>,
    seen: usize,
}

impl Listener {
    /// The next event, or a sign of life after so much silence.
    async fn next(&mut self, silence: Duration) -> Option<Bytes> {
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
                () = tokio::time::sleep(silence) => return Some(Bytes::from_static(KEEP_ALIVE.as_bytes())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn silence_is_broken_and_nothing_is_missed() {
        // CHAT-6
        let (live, short, long) = (Live::new(), Duration::from_millis(5), Duration::from_secs(60));
        live.tell("id: 1\n\n".to_owned());
        let mut listener = live.clone().listener(0);
        assert_eq!(listener.next(long).await.unwrap(), "id: 1\n\n");
        assert_eq!(listener.next(short).await.unwrap(), KEEP_ALIVE);
        let late = tokio::spawn({
            let live = live.clone();
            async move {
                live.tell("id: 2\n\n".to_owned());
                live.tell("id: 3\n\n".to_owned());
                live.end(Reply { status: 200, body: String::new() });
            }
        });
        assert_eq!(listener.next(long).await.unwrap(), "id: 2\n\n");
        assert_eq!(listener.next(long).await.unwrap(), "id: 3\n\n");
        assert_eq!(listener.next(long).await, None);
        late.await.unwrap();
        assert_eq!(live.listener(2).next(long).await.unwrap(), "id: 3\n\n", "whoever comes later hears it too");
    }

    #[tokio::test]
    async fn one_turn_of_a_conversation_at_a_time() {
        // CHAT-7
        let turns = Turns::default();
        let (one, other): (Id, Id) = ("conv_1".parse().unwrap(), "conv_2".parse().unwrap());
        let first = turns.take(&one).await;
        let elsewhere = turns.take(&other).await;
        assert!(futures::FutureExt::now_or_never(turns.take(&one)).is_none(), "it waits");
        drop((first, elsewhere));
        drop(turns.take(&one).await);
        turns.take(&other).await;
        assert_eq!(turns.queues.lock().unwrap().len(), 1, "nothing is kept of those that ended");
    }
}
