//! Turns that are under way on this node: what they have told so far, and whose turn is next.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use axum::body::{Body, Bytes};
use model::UserId;
use model::conversation::Id;
use store::idempotency::Reply;
use tokio::sync::{Notify, OwnedMutexGuard};

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
        self.queue(id).lock_owned().await
    }

    /// Nothing where a turn is under way.
    pub(crate) fn try_take(&self, id: &Id) -> Option<OwnedMutexGuard<()>> {
        self.queue(id).try_lock_owned().ok()
    }

    fn queue(&self, id: &Id) -> Arc<tokio::sync::Mutex<()>> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        // Before it would grow, those that have ended make room.
        if queues.len() == queues.capacity() {
            queues.retain(|_, queue| queue.strong_count() > 0);
        }
        let queue = queues.get(id).and_then(Weak::upgrade).unwrap_or_default();
        queues.insert(id.clone(), Arc::downgrade(&queue));
        queue
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
#[derive(Default)]
pub(super) struct Live {
    state: Mutex<State>,
    /// Rung when something was added.
    bell: Notify,
}

#[derive(Default)]
struct State {
    /// Events as they go over the wire.
    told: Vec<Bytes>,
    /// Set once: the whole answer.
    reply: Option<Reply>,
}

impl Live {
    pub(super) fn new() -> Arc<Self> {
        Arc::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell(&self, block: String) {
        self.state().told.push(block.into());
        self.bell.notify_waiters();
    }

    pub(super) fn count(&self) -> usize {
        self.state().told.len()
    }

    pub(super) fn everything(&self) -> String {
        self.state().told.iter().map(|block| String::from_utf8_lossy(block)).collect()
    }

    /// The last event, where there is one, goes out together with the end.
    pub(super) fn end(&self, last: Option<String>, reply: Reply) {
        let mut state = self.state();
        state.told.extend(last.map(Bytes::from));
        state.reply = Some(reply);
        drop(state);
        self.bell.notify_waiters();
    }

    /// The answer, once it is there.
    pub(super) async fn reply(&self) -> Reply {
        loop {
            // Listened for before it is looked for: nothing can come in between.
            let rung = self.bell.notified();
            if let Some(reply) = self.state().reply.clone() {
                return reply;
            }
            rung.await;
        }
    }

    /// The events after the first `seen`, as they come.
    pub(super) fn listen(self: Arc<Self>, seen: usize) -> Body {
        let listener = Listener { live: self, seen };
        Body::from_stream(futures::stream::unfold(listener, |mut listener| async move {
            let bytes = listener.next(KEEP_ALIVE_EVERY).await?;
            Some((Ok::<_, std::convert::Infallible>(bytes), listener))
        }))
    }
}

struct Listener {
    live: Arc<Live>,
    seen: usize,
}

impl Listener {
    /// The next events, or a sign of life after so much silence.
    async fn next(&mut self, silence: Duration) -> Option<Bytes> {
        loop {
            let rung = self.live.bell.notified();
            {
                let state = self.live.state();
                let news = state.told.get(self.seen..).unwrap_or_default();
                if !news.is_empty() {
                    self.seen += news.len();
                    return Some(if let [one] = news { one.clone() } else { news.concat().into() });
                }
                if state.reply.is_some() {
                    return None;
                }
            }
            if tokio::time::timeout(silence, rung).await.is_err() {
                return Some(Bytes::from_static(KEEP_ALIVE.as_bytes()));
            }
            // What is told in the same breath goes out together.
            tokio::task::yield_now().await;
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
        let mut listener = Listener { live: live.clone(), seen: 0 };
        assert_eq!(listener.next(long).await.unwrap(), "id: 1\n\n");
        assert_eq!(listener.next(short).await.unwrap(), KEEP_ALIVE);
        let late = tokio::spawn({
            let live = live.clone();
            async move {
                live.tell("id: 2\n\n".to_owned());
                live.end(Some("id: 3\n\n".to_owned()), Reply { status: 200, body: String::new() });
            }
        });
        assert_eq!(listener.next(long).await.unwrap(), "id: 2\n\nid: 3\n\n", "in the same breath");
        assert_eq!(listener.next(long).await, None);
        late.await.unwrap();
        assert_eq!(
            Listener { live, seen: 2 }.next(long).await.unwrap(),
            "id: 3\n\n",
            "whoever comes later hears it too"
        );
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
        for n in 0..1000 {
            turns.take(&format!("conv_n{n}").parse().unwrap()).await;
        }
        assert!(turns.queues.lock().unwrap().len() < 10, "nothing is kept for long of those that ended");
    }
}
