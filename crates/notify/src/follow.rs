//! Followers of notifications. A follower returns the existing notifications and then the new ones. One loop polls the
//! table and wakes all followers: after each commit on this node and, with a shared database, at intervals.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use background::reconcile;
use model::UserId;
use store::notifications::{self, NumberedNotification};
use tokio::sync::{Mutex, broadcast};
use tokio_util::sync::CancellationToken;

use crate::Notifier;

/// The number of notifications in one read. A follower whose client reads nothing holds so many.
const BATCH_SIZE: i64 = 10;
/// The longest time between two rounds if other nodes write.
const POLL_INTERVAL_SHARED: Duration = Duration::from_millis(500);
/// The age of notifications that the loop reads. It exceeds the clock difference of nodes.
const LOOKBACK: Duration = Duration::from_secs(60);
/// The longest time between two reads of a follower, because it may miss a wake-up.
const FOLLOWER_POLL_INTERVAL: Duration = Duration::from_secs(10);

/// A subscriber to the notifications of a user.
pub struct NotificationFollower {
    notifier: Notifier,
    owner: UserId,
    /// The number of the last returned notification.
    after: i64,
    wake_ups: broadcast::Receiver<UserId>,
    /// The notifications that were read but not returned yet.
    ready: VecDeque<NumberedNotification>,
}

impl Notifier {
    /// Returns a follower of the notifications of a user after the number `after`.
    pub fn follow(&self, owner: UserId, after: i64) -> NotificationFollower {
        let wake_ups = self.0.new_notifications.subscribe();
        NotificationFollower { notifier: self.clone(), owner, after, wake_ups, ready: VecDeque::new() }
    }
}

impl NotificationFollower {
    /// Waits for the next notification of the user and returns it, in order of the numbers. Existing ones after the
    /// number given to [`Notifier::follow`] come first, also if they are read. Reads the table after each wake-up, and
    /// at least every ten seconds. Never ends by itself. Fails if the database fails; a later call continues after the
    /// last returned notification. The method is cancel safe.
    pub async fn next(&mut self) -> store::Result<NumberedNotification> {
        loop {
            if let Some(next) = self.ready.pop_front() {
                self.after = next.seq;
                return Ok(next);
            }
            let mut reader = self.notifier.0.store.reader().await?;
            self.ready = notifications::list_after(&mut reader, self.owner, self.after, BATCH_SIZE).await?.into();
            drop(reader);
            if self.ready.is_empty() {
                let _ = tokio::time::timeout(FOLLOWER_POLL_INTERVAL, self.woken()).await;
            }
        }
    }

    /// Waits for a wake-up of this user; those of other users are ignored. Also returns if wake-ups were missed or the
    /// sender is gone.
    async fn woken(&mut self) {
        while let Ok(owner) = self.wake_ups.recv().await {
            if owner == self.owner {
                return;
            }
        }
    }
}

/// Wakes followers until the token is cancelled: after each commit on this node and, with a shared database, every half
/// second. While there are no followers, the table is not read. Errors are logged, and the round is repeated.
pub(crate) async fn run(notifier: &Notifier, shutdown: &CancellationToken) {
    let known = Mutex::new(HashMap::new());
    let poll_interval = if notifier.0.store.is_shared() { POLL_INTERVAL_SHARED } else { Duration::MAX };
    let wake = || notifier.committed();
    let work = || async {
        let mut known = known.lock().await;
        if notifier.0.new_notifications.receiver_count() == 0 {
            known.clear();
            return Ok(None);
        }
        wake_followers(notifier, &mut known).await.map(|()| None)
    };
    reconcile::run("followers_not_woken", poll_interval, shutdown, wake, work).await;
}

/// Wakes the followers of all users with a different newest number than in `known`, which contains those of the last
/// round. Replaces `known`. Only notifications of the last [`LOOKBACK`] are considered. Fails if the database fails;
/// then `known` is unchanged and no follower is woken.
async fn wake_followers(notifier: &Notifier, known: &mut HashMap<UserId, i64>) -> store::Result<()> {
    let since = notifier.0.clock.now() - LOOKBACK;
    let latest = notifications::latest_since(&mut notifier.0.store.reader().await?, since).await?;
    let current: HashMap<_, _> = latest.into_iter().collect();
    for (owner, seq) in &current {
        if known.get(owner) != Some(seq) {
            let _ = notifier.0.new_notifications.send(*owner);
        }
    }
    *known = current;
    Ok(())
}
