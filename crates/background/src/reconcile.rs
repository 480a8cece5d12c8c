//! The reconcile loop: it brings the system in line with the database, round by round.
//!
//! A round starts on a wake-up, at the time that the last round returned, and at least once per poll interval. So a
//! lost wake-up costs at most one poll interval.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

/// The delay after a failed round. Wake-ups do not shorten it.
pub const RETRY_DELAY: Duration = Duration::from_secs(1);
/// The minimum time between the end of a round and the start of the next one.
const MIN_PAUSE: Duration = Duration::from_millis(1);

/// Calls `work` in rounds until `shutdown` is cancelled.
///
/// `work` returns the time until its next work, or `None` if it is unknown. The loop waits for this time, but at most
/// for `poll_interval` and at least for one millisecond. After a failed round it waits for [`RETRY_DELAY`], and
/// wake-ups do not shorten that.
///
/// `wake` is called before each round, and its future is awaited after the round. When it completes, the next round
/// starts. A wake-up during the round is not lost if the future is subscribed when it is created. The future may also
/// delay the next round to collect wake-ups.
///
/// The first of several consecutive failures is logged as `failure_event`. Failures never end the loop. A cancellation
/// ends a pause at once, but a running round is finished before the loop ends.
pub async fn run<Wake, Work, Error>(
    failure_event: &'static str,
    poll_interval: Duration,
    shutdown: &CancellationToken,
    mut wake: impl FnMut() -> Wake,
    mut work: impl FnMut() -> Work,
) where
    Wake: Future<Output = ()>,
    Work: Future<Output = Result<Option<Duration>, Error>>,
    Error: Display,
{
    let mut is_failing = false;
    while !shutdown.is_cancelled() {
        let woken = wake();
        let result = work().await;
        let ended = Instant::now();
        let pause = async {
            match result {
                Ok(idle) => {
                    is_failing = false;
                    let idle = idle.map_or(poll_interval, |idle| idle.min(poll_interval));
                    tokio::select! {
                        () = woken => {}
                        () = sleep(idle) => {}
                    }
                    sleep_until(ended + MIN_PAUSE).await;
                }
                Err(error) => {
                    if !is_failing {
                        tracing::warn!(event = failure_event, error = %error);
                    }
                    is_failing = true;
                    sleep(RETRY_DELAY).await;
                }
            }
        };
        if shutdown.run_until_cancelled(pause).await.is_none() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::pending;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    use super::*;

    const POLL_INTERVAL: Duration = Duration::from_secs(30);
    type Round = Result<Option<Duration>, &'static str>;

    /// Runs a loop for `time` and returns the start times of its rounds in milliseconds.
    async fn rounds<Wake: Future<Output = ()>>(
        time: Duration,
        wake: impl FnMut() -> Wake,
        mut work: impl FnMut(usize) -> Round,
    ) -> Vec<u128> {
        let start = Instant::now();
        let started = RefCell::new(Vec::new());
        let shutdown = CancellationToken::new();
        let round = || {
            let number = started.borrow().len();
            started.borrow_mut().push(start.elapsed().as_millis());
            let result = work(number);
            async move { result }
        };
        tokio::join!(run("work_failed", POLL_INTERVAL, &shutdown, wake, round), async {
            sleep(time).await;
            shutdown.cancel();
        });
        started.into_inner()
    }

    #[tokio::test(start_paused = true)]
    async fn a_round_starts_immediately_and_once_per_poll_interval() {
        let started = rounds(Duration::from_secs(100), pending, |_| Ok(None)).await;
        assert_eq!(started, [0, 30_000, 60_000, 90_000]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_round_starts_at_the_returned_time() {
        let idle = [Some(Duration::from_secs(5)), Some(Duration::from_secs(500)), None];
        let started = rounds(Duration::from_secs(50), pending, |number| Ok(idle[number.min(2)])).await;
        assert_eq!(started, [0, 5_000, 35_000], "never longer than the poll interval");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wake_up_starts_a_round() {
        let notify = Arc::new(Notify::new());
        let notifier = notify.clone();
        tokio::spawn(async move {
            sleep(Duration::from_secs(7)).await;
            notifier.notify_waiters();
        });
        let started = rounds(Duration::from_secs(20), || notify.notified(), |_| Ok(None)).await;
        assert_eq!(started, [0, 7_000]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wake_up_during_a_round_is_not_lost() {
        // TASK-4
        let notify = Arc::new(Notify::new());
        let during_first = |number| {
            if number == 0 {
                notify.notify_waiters();
            }
            Ok(None)
        };
        let started = rounds(Duration::from_secs(20), || notify.notified(), during_first).await;
        assert_eq!(started, [0, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_loop_never_spins() {
        let always = || std::future::ready(());
        let woken = rounds(Duration::from_millis(100), always, |_| Ok(None)).await;
        assert!(woken.len() <= 101, "{}", woken.len());
        let due = rounds(Duration::from_millis(100), pending, |_| Ok(Some(Duration::ZERO))).await;
        assert!(due.len() <= 101, "{}", due.len());
        let failing = rounds(Duration::from_millis(4_500), always, |_| Err("no")).await;
        assert_eq!(failing, [0, 1_000, 2_000, 3_000, 4_000]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_running_round_is_finished_before_the_loop_ends() {
        let shutdown = CancellationToken::new();
        let finished = AtomicUsize::new(0);
        let round = || async {
            sleep(Duration::from_secs(5)).await;
            finished.fetch_add(1, Ordering::Relaxed);
            Ok::<_, &str>(None)
        };
        tokio::join!(run("work_failed", POLL_INTERVAL, &shutdown, pending, round), async {
            sleep(Duration::from_secs(1)).await;
            shutdown.cancel();
        });
        assert_eq!(finished.load(Ordering::Relaxed), 1);
        run("work_failed", POLL_INTERVAL, &shutdown, pending, round).await;
        assert_eq!(finished.load(Ordering::Relaxed), 1, "a loop with a cancelled token does nothing");
    }

    /// Counts the logged events.
    struct EventCounter(Arc<AtomicUsize>);

    impl Subscriber for EventCounter {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            let is_own = event.metadata().target().starts_with("background");
            self.0.fetch_add(usize::from(is_own), Ordering::Relaxed);
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    #[tokio::test(start_paused = true)]
    async fn consecutive_failures_are_logged_once() {
        let logged = Arc::new(AtomicUsize::new(0));
        let _guard = tracing::subscriber::set_default(EventCounter(logged.clone()));
        let fails = |number| if [0, 1, 2, 5, 6].contains(&number) { Err("no") } else { Ok(Some(RETRY_DELAY)) };
        let started = rounds(Duration::from_millis(8_500), pending, fails).await;
        assert_eq!(started.len(), 9);
        assert_eq!(logged.load(Ordering::Relaxed), 2);
    }
}
