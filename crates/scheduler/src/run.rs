//! The background loops of a node. One sleeps until the next schedule is due and fires it. The other handles the ends
//! of executions.

use std::time::Duration;

use background::reconcile;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::Scheduler;

/// The longest sleep of the firing loop on a single node. The clock may be set forward.
const FIRE_POLL_INTERVAL: Duration = Duration::from_secs(30);
/// The longest sleep of the firing loop with several nodes. Another node may create a schedule that is due earlier.
const SHARED_FIRE_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The delay after a round that found due schedules but fired none: another node is firing them.
const CONTENDED_DELAY: Duration = Duration::from_millis(250);
/// The delay of the follow-up loop after the end of an execution. It combines frequent ends into one round.
const END_DEBOUNCE: Duration = Duration::from_millis(5);
/// The longest time between two rounds of the follow-up loop.
const FOLLOW_UP_POLL_INTERVAL: Duration = Duration::from_secs(3);

impl Scheduler {
    /// Runs both loops until `shutdown` is cancelled. A round in progress is completed first.
    pub async fn run(&self, shutdown: CancellationToken) {
        tokio::join!(self.fire_until(&shutdown), self.follow_until(&shutdown));
    }

    /// Fires due schedules until `shutdown` is cancelled. Failures are logged and retried.
    async fn fire_until(&self, shutdown: &CancellationToken) {
        let poll_interval = if self.store().is_shared() { SHARED_FIRE_POLL_INTERVAL } else { FIRE_POLL_INTERVAL };
        let wake = || self.0.wake.notified();
        reconcile::run("schedules_not_fired", poll_interval, shutdown, wake, || self.fire_once()).await;
    }

    /// Corrects schedules after the clock was ahead, and fires the due ones. Returns the time until the next one is due, zero if it is due already, or `None` if no
    /// schedule has a next occurrence. If schedules are still due and none was fired, returns [`CONTENDED_DELAY`].
    /// Fails if a transaction or a read fails.
    async fn fire_once(&self) -> store::Result<Option<Duration>> {
        self.correct_if_due().await?;
        let report = self.fire_due().await?;
        let first = store::schedules::next_due_at(&mut self.store().reader().await?).await?;
        let wait = first.map(|first| until(first, self.clock().now()));
        // Without the delay, a row that another node has locked would be read in a busy loop.
        Ok(wait.map(|wait| if wait.is_zero() && report.fired == 0 { CONTENDED_DELAY } else { wait }))
    }

    /// Handles the ends of executions until `shutdown` is cancelled. Runs after each end on this node and at intervals.
    /// Failures are logged and retried.
    async fn follow_until(&self, shutdown: &CancellationToken) {
        let wake = || {
            let ended = self.0.supervisor.next_end();
            async move {
                ended.await;
                tokio::time::sleep(END_DEBOUNCE).await;
            }
        };
        let work = || async { self.follow_up().await.map(|_| None) };
        reconcile::run("schedules_not_followed_up", FOLLOW_UP_POLL_INTERVAL, shutdown, wake, work).await;
    }
}

/// Returns the time from `now` to `time`, or zero if `time` has passed.
fn until(time: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(time.duration_since(now)).unwrap_or_default()
}
