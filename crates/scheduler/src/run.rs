//! The work of a node: sleeps until the next schedule is due, and acts upon what has ended.

use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::Scheduler;

/// The longest sleep: the clock may be put forward, and where several nodes share the data, another may have made a
/// schedule that is due before ours.
const ALONE: Duration = Duration::from_secs(30);
const SHARED: Duration = Duration::from_secs(1);
/// After a look that came to nothing: somebody else is at it, or the database is not there.
const PAUSE: Duration = Duration::from_millis(250);
/// How often ends are looked for although nobody has told of one.
const LOOK: Duration = Duration::from_secs(3);

impl Scheduler {
    /// Works until it is told to stop; what has begun by then is finished.
    pub async fn run(&self, shutdown: CancellationToken) {
        tokio::join!(self.fire_until(&shutdown), self.follow_until(&shutdown));
    }

    async fn fire_until(&self, shutdown: &CancellationToken) {
        let mut warned = false;
        while !shutdown.is_cancelled() {
            let wait = match self.fire_and_look().await {
                Ok(wait) => {
                    warned = false;
                    wait
                }
                Err(error) => {
                    if !std::mem::replace(&mut warned, true) {
                        tracing::warn!(event = "schedules_not_fired", error = %error);
                    }
                    SHARED
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.0.call.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// How long there is nothing to do.
    async fn fire_and_look(&self) -> store::Result<Duration> {
        let fired = self.fire_due().await?;
        let first = store::schedules::first_due(&mut self.store().reader().await?).await?;
        let most = if self.store().is_shared() { SHARED } else { ALONE };
        let wait = first.map_or(most, |first| until(first, self.clock().now()).min(most));
        // Without the pause a row that another node holds would be looked at without end.
        Ok(if wait.is_zero() && fired.acted == 0 { PAUSE } else { wait })
    }

    async fn follow_until(&self, shutdown: &CancellationToken) {
        let mut warned = false;
        loop {
            // From here on nothing that ends is missed.
            let ended = self.0.supervisor.next_end();
            match self.follow_up().await {
                Ok(_) => warned = false,
                Err(error) if !std::mem::replace(&mut warned, true) => {
                    tracing::warn!(event = "schedules_not_followed_up", error = %error);
                }
                Err(_) => {}
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = ended => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }
}

fn until(time: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(time.duration_since(now)).unwrap_or_default()
}
