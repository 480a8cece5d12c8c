//! Following one's notifications: what came, then what comes. One look at the table wakes all who follow: it is taken when
//! something was committed here, and on a shared database every now and then.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use background::reconcile;
use model::UserId;
use store::notifications::{self, Numbered};
use tokio::sync::{Mutex, broadcast};
use tokio_util::sync::CancellationToken;

use crate::Notifier;

/// Notifications read at once.
const AT_ONCE: i64 = 100;
/// How often the table is looked at where other nodes write.
const LOOK: Duration = Duration::from_millis(500);
/// How far back news are looked for: more than the clocks of nodes may differ.
const WINDOW: Duration = Duration::from_secs(60);
/// A follower looks by itself now and then: what woke it may have been missed.
const OWN_LOOK: Duration = Duration::from_secs(10);

/// Somebody who follows their notifications.
pub struct Follower {
    notifier: Notifier,
    owner: UserId,
    after: i64,
    news: broadcast::Receiver<UserId>,
    ready: VecDeque<Numbered>,
}

impl Notifier {
    /// Follows a user's notifications from behind the one with this number.
    pub fn follow(&self, owner: UserId, after: i64) -> Follower {
        let news = self.0.news.subscribe();
        Follower { notifier: self.clone(), owner, after, news, ready: VecDeque::new() }
    }
}

impl Follower {
    /// The next one, however long that takes. Nothing is lost when this is given up half way.
    pub async fn next(&mut self) -> store::Result<Numbered> {
        loop {
            if let Some(next) = self.ready.pop_front() {
                self.after = next.seq;
                return Ok(next);
            }
            let mut reader = self.notifier.0.store.reader().await?;
            self.ready = notifications::after(&mut reader, self.owner, self.after, AT_ONCE).await?.into();
            drop(reader);
            if self.ready.is_empty() {
                let _ = tokio::time::timeout(OWN_LOOK, self.woken()).await;
            }
        }
    }

    /// News of this user's, or so many of others' that some were missed.
    async fn woken(&mut self) {
        while let Ok(owner) = self.news.recv().await {
            if owner == self.owner {
                return;
            }
        }
    }
}

pub(crate) async fn run(notifier: &Notifier, shutdown: &CancellationToken) {
    let known = Mutex::new(HashMap::new());
    let poll_interval = if notifier.0.store.is_shared() { LOOK } else { Duration::MAX };
    let wake = || notifier.committed();
    let work = || async {
        let mut known = known.lock().await;
        if notifier.0.news.receiver_count() == 0 {
            known.clear();
            return Ok(None);
        }
        look(notifier, &mut known).await.map(|()| None)
    };
    reconcile::run("followers_not_woken", poll_interval, shutdown, wake, work).await;
}

async fn look(notifier: &Notifier, known: &mut HashMap<UserId, i64>) -> store::Result<()> {
    let since = notifier.0.clock.now() - WINDOW;
    let news = notifications::news(&mut notifier.0.store.reader().await?, since).await?;
    let now: HashMap<_, _> = news.into_iter().collect();
    for (owner, seq) in &now {
        if known.get(owner) != Some(seq) {
            let _ = notifier.0.news.send(*owner);
        }
    }
    *known = now;
    Ok(())
}
