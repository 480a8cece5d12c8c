//! The work of a node: sleeps until the next schedule is due, and acts upon what has ended.

use std::time::Duration;

use background::reconcile;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::Scheduler;

/// The longest sleep: the clock may be put forward, and where several nodes share the data, another may have made a
/// schedule that is due before ours.
const ALONE: Duration = Duration::from_secs(30);
const SHARED: Duration = Duration::from_secs(1);
/// The pause after a round that found something due and did nothing: another node is working on it.
const PAUSE: Duration = Duration::from_millis(250);
/// The longest time between two rounds of following up ends.
const POLL_INTERVAL: Duration = Duration::from_secs(3);

impl Scheduler {
    /// Works until it is told to stop; what has begun by then is finished.
    pub async fn run(&self, shutdown: CancellationToken) {
        tokio::join!(self.fire_until(&shutdown), self.follow_until(&shutdown));
    }

    async fn fire_until(&self, shutdown: &CancellationToken) {
        let poll_interval = if self.store().is_shared() { SHARED } else { ALONE };
        let wake = || self.0.call.notified();
        reconcile::run("schedules_not_fired", poll_interval, shutdown, wake, || self.fire_and_look()).await;
    }

    /// Fires what is due. Returns how long nothing is due after that.
    async fn fire_and_look(&self) -> store::Result<Option<Duration>> {
        let fired = self.fire_due().await?;
        let first = store::schedules::first_due(&mut self.store().reader().await?).await?;
        let wait = first.map(|first| until(first, self.clock().now()));
        // Without the pause a row that another node holds would be read without end.
        Ok(wait.map(|wait| if wait.is_zero() && fired.acted == 0 { PAUSE } else { wait }))
    }

    async fn follow_until(&self, shutdown: &CancellationToken) {
        let wake = || self.0.supervisor.next_end();
        let work = || async { self.follow_up().await.map(|_| None) };
        reconcile::run("schedules_not_followed_up", POLL_INTERVAL, shutdown, wake, work).await;
    }
}

fn until(time: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(time.duration_since(now)).unwrap_or_default()
}
