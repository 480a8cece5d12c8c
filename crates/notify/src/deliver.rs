//! The delivery loop: claims due deliveries of the outbox, sends a few of each channel concurrently, and records the
//! outcome. It runs on every node. If a node crashes, its claims expire and another node repeats them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use background::backoff::BackoffPolicy;
use background::reconcile;
use jiff::Timestamp;
use model::breaker::{Breaker, BreakerChange, BreakerState, CallPermit};
use store::outbox::{self, ClaimedDelivery};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::callback::{self, CallbackOutcome, Callbacks};
use crate::channel::{DeliveryFailure, RetryAdvice};
use crate::{Channel, Notifier, NotifySettings};

/// The largest number of concurrent deliveries of one channel. A channel that hangs does not delay other channels.
const MAX_CONCURRENT_PER_CHANNEL: usize = 4;
/// The number of attempts before a delivery is given up.
pub(crate) const MAX_ATTEMPTS: i64 = 12;
/// The delays between attempts.
const RETRY_BACKOFF: BackoffPolicy = BackoffPolicy::new(Duration::from_secs(1), Duration::from_secs(3600));
/// The time for which a delivery is left to other nodes if this node cannot send it.
const OTHER_NODE_DELAY: Duration = Duration::from_secs(5);
/// The time by which a lease exceeds the timeout of its channel.
const LEASE_MARGIN: Duration = Duration::from_secs(20);
/// The time to finish deliveries in progress at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);
/// The longest time between two rounds if other nodes write. Their commits do not wake the loop.
const POLL_INTERVAL_SHARED: Duration = Duration::from_secs(1);
/// The longest time between two rounds otherwise.
const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// Sends deliveries until the token is cancelled. A round starts at the next due time, after a wake-up, or after a
/// commit on this node. It also starts after the end of a delivery and after the poll interval. Errors of a round are
/// logged and retried.
///
/// With a single node, first releases the claims of the previous process; a failure of that is only logged. At
/// shutdown, deliveries in progress get [`SHUTDOWN_TIMEOUT`] to finish. The rest is aborted and repeated after its
/// claim expires.
pub(crate) async fn run(notifier: &Notifier, shutdown: &CancellationToken) {
    let store = &notifier.0.store;
    if !store.is_shared()
        && let Err(error) = release_claims(notifier).await
    {
        tracing::warn!(error = %error, "cannot release the claims of the previous process; deliveries are delayed");
    }
    let in_progress = Mutex::new(InProgress::default());
    let poll_interval = if store.is_shared() { POLL_INTERVAL_SHARED } else { POLL_INTERVAL };
    let wake = || {
        let woken = notifier.woken(&notifier.0.deliver);
        async {
            let mut in_progress = in_progress.lock().await;
            tokio::select! {
                () = woken => {}
                Some(ended) = in_progress.tasks.join_next() => in_progress.remove(notifier, ended.ok()),
            }
        }
    };
    let work = || async {
        let next = round(notifier, &mut *in_progress.lock().await).await?;
        Ok::<_, store::Error>(Some(notifier.time_until(next, poll_interval)))
    };
    reconcile::run("outbox_not_read", poll_interval, shutdown, wake, work).await;
    let mut in_progress = in_progress.into_inner();
    let last = async { while in_progress.tasks.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, last).await;
}

/// Makes all pending deliveries claimable now, also those that wait for a retry. Writes nothing if the outbox is empty.
/// Fails if the database fails. Only for a database with a single node, because it also releases the claims of other
/// nodes.
async fn release_claims(notifier: &Notifier) -> store::Result<()> {
    let store = &notifier.0.store;
    let now = notifier.0.clock.now();
    if !outbox::is_empty(&mut store.reader().await?).await? {
        store.transaction(async move |tx| outbox::release_all(tx, now).await).await?;
    }
    Ok(())
}

/// The deliveries in progress.
#[derive(Default)]
struct InProgress {
    /// Each task returns the name of its channel.
    tasks: JoinSet<String>,
    by_channel: BTreeMap<String, usize>,
    /// The number of callbacks in progress.
    callbacks: usize,
}

impl InProgress {
    fn add(&mut self, lane: &Lane) {
        *self.by_channel.entry(lane.name.clone()).or_default() += 1;
        self.callbacks += usize::from(lane.is_callback());
    }

    /// Removes a finished delivery from the counts. `channel` is `None` if its task has panicked. Then all counts are
    /// reset to zero, although other deliveries may be in progress.
    fn remove(&mut self, notifier: &Notifier, channel: Option<String>) {
        let Some(channel) = channel else {
            // The channel of the task is unknown.
            self.by_channel.clear();
            self.callbacks = 0;
            return;
        };
        let is_callback = notifier.callbacks().is_some_and(|callbacks| callbacks.owns(&channel));
        self.callbacks = self.callbacks.saturating_sub(usize::from(is_callback));
        if let Some(count) = self.by_channel.get_mut(&channel) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.by_channel.remove(&channel);
            }
        }
    }

    /// Returns the number of deliveries of the lane that may start now: four for each lane, minus those in progress.
    /// All callback lanes together also share the limit [`callback::MAX_CONCURRENT_CALLBACKS`]. Ignores the circuit
    /// breaker.
    fn free(&self, lane: &Lane) -> usize {
        let free =
            MAX_CONCURRENT_PER_CHANNEL.saturating_sub(self.by_channel.get(&lane.name).copied().unwrap_or_default());
        if lane.is_callback() {
            free.min(callback::MAX_CONCURRENT_CALLBACKS.saturating_sub(self.callbacks))
        } else {
            free
        }
    }
}

/// A channel or callback host with its circuit breaker.
#[derive(Clone)]
struct Lane {
    /// The name of the channel in the outbox.
    name: String,
    target: LaneTarget,
    breaker: Arc<Breaker>,
}

/// The destination of a lane.
#[derive(Clone)]
enum LaneTarget {
    Channel(Arc<Channel>),
    /// One host of the callbacks.
    Callback(Callbacks),
}

impl Lane {
    /// Returns the lane of a channel name. A name of the registered callbacks comes before a configured channel.
    /// Returns `None` if the name is neither. Creates the circuit breaker if it is new.
    fn new(notifier: &Notifier, settings: &NotifySettings, name: &str) -> Option<Self> {
        if let Some(callbacks) = notifier.callbacks().filter(|callbacks| callbacks.owns(name)) {
            let breaker = callbacks.breaker(name);
            return Some(Self { name: name.to_owned(), target: LaneTarget::Callback(callbacks), breaker });
        }
        let channel = Arc::new(settings.channels.iter().find(|channel| channel.name == name)?.clone());
        Some(Self { name: name.to_owned(), target: LaneTarget::Channel(channel), breaker: notifier.breaker(name) })
    }

    fn is_callback(&self) -> bool {
        matches!(self.target, LaneTarget::Callback(_))
    }

    /// Returns the timeout of a delivery.
    fn timeout(&self) -> Duration {
        match &self.target {
            LaneTarget::Channel(channel) => channel.timeout(),
            LaneTarget::Callback(_) => crate::post::REQUEST_TIMEOUT,
        }
    }

    /// Returns the name in metrics. It does not contain the host.
    fn label(&self) -> &str {
        match &self.target {
            LaneTarget::Channel(channel) => &channel.name,
            LaneTarget::Callback(callbacks) => callbacks.name,
        }
    }

    /// Sends a delivery. Fails with the reason and the advice for a retry.
    async fn deliver(&self, delivery: &ClaimedDelivery, now: Timestamp) -> Result<CallbackOutcome, DeliveryFailure> {
        match &self.target {
            LaneTarget::Channel(channel) => channel.deliver(delivery, now).await.map(|()| CallbackOutcome::Delivered),
            LaneTarget::Callback(callbacks) => callbacks.deliver(delivery, now).await,
        }
    }

    /// Consumes the permit and may report a failure to the breaker. For a channel, only deliveries that were given up
    /// count. For a callback host, only failures of the host count, because one host may serve many URLs. Other
    /// failures leave the breaker unchanged, and a trial call is returned to it.
    fn report_failure(&self, permit: CallPermit, failure: &DeliveryFailure, given_up: bool) {
        let counts = if self.is_callback() { failure.is_host_failure } else { given_up };
        if counts {
            permit.failed(&failure.message);
        }
    }
}

/// Claims and starts all due deliveries that the limits permit, the lane with the earliest due time first. Does not
/// wait for their end. Skips channels that this node does not know, full lanes and lanes with an open breaker.
///
/// Returns the earliest future time at which a delivery can be claimed, or `None`. Skipped lanes do not count, nor do
/// lanes in which nothing could be claimed. Fails if the database fails. Deliveries that were started before continue.
async fn round(notifier: &Notifier, in_progress: &mut InProgress) -> store::Result<Option<Timestamp>> {
    let store = &notifier.0.store;
    let clock = &notifier.0.clock;
    let settings = notifier.settings();
    let mut next = None;
    let mut pending = outbox::pending_channels(&mut store.reader().await?).await?;
    // The longest wait comes first. Users choose the names of hosts, so the order of names would be unfair.
    pending.sort_by_key(|(_, due)| *due);
    for (name, due) in pending {
        let Some(lane) = Lane::new(notifier, &settings, &name) else { continue };
        let mut due = Some(due);
        loop {
            if in_progress.free(&lane) == 0 || lane.breaker.is_open() {
                break;
            }
            if due.is_none_or(|due| due > clock.now()) {
                next = [next, due].into_iter().flatten().min();
                break;
            }
            if start_deliveries(notifier, in_progress, &lane).await? == 0 {
                // The breaker is open, or another node was faster.
                break;
            }
            due = outbox::next_attempt_at(&mut store.reader().await?, &name).await?;
        }
    }
    Ok(next)
}

/// Claims due deliveries of a lane and starts each in a task of `in_progress`. Their number is limited by the free
/// slots of the lane and the permits of its breaker. A half-open breaker permits only one. The claim is valid for the
/// timeout of the lane plus [`LEASE_MARGIN`].
///
/// Returns the number of started deliveries. It is 0 if the breaker gives no permit, none is due, or other nodes have
/// claimed them. Fails if the database fails.
async fn start_deliveries(notifier: &Notifier, in_progress: &mut InProgress, lane: &Lane) -> store::Result<usize> {
    // A half-open breaker permits only one delivery.
    let permits: Vec<_> = std::iter::from_fn(|| lane.breaker.try_acquire()).take(in_progress.free(lane)).collect();
    if permits.is_empty() {
        return Ok(0);
    }
    let name = lane.name.clone();
    let now = notifier.0.clock.now();
    let lease = now + lane.timeout() + LEASE_MARGIN;
    let limit = i64::try_from(permits.len()).unwrap_or(1);
    let claim = notifier.0.store.transaction(async move |tx| outbox::claim(tx, &name, limit, now, lease).await);
    let claimed = claim.await?;
    let count = claimed.len();
    for (delivery, permit) in claimed.into_iter().zip(permits) {
        in_progress.add(lane);
        let notifier = notifier.clone();
        let lane = lane.clone();
        in_progress.tasks.spawn(async move {
            deliver(&notifier, &lane, delivery, permit).await;
            lane.name
        });
    }
    Ok(count)
}

/// Sends one delivery and records its outcome in the outbox, the counters, the log and the breaker:
///
/// - Success: marked as delivered and reported to the breaker. With a removed target it is only marked as delivered.
/// - Retry: counted as failed and scheduled after [`retry_delay`].
/// - Other node, with a shared database: the claim is returned. The attempt does not count, and nothing is logged.
/// - No retry: counted as failed and dead, and given up.
///
/// The breaker of a channel counts deliveries that are given up. That of a callback counts failures of the host. Never
/// fails. An error of the database is logged, and the delivery is repeated when its claim expires.
async fn deliver(notifier: &Notifier, lane: &Lane, delivery: ClaimedDelivery, permit: CallPermit) {
    let store = &notifier.0.store;
    let clock = &notifier.0.clock;
    let outcome = lane.deliver(&delivery, clock.now()).await;
    let id = delivery.id;
    let attempt = delivery.attempts;
    let now = clock.now();
    let name = lane.name.as_str();
    let label = lane.label();
    let written = match outcome {
        Ok(outcome) => {
            if matches!(outcome, CallbackOutcome::Delivered) {
                permit.succeeded();
                notifier.count(label, |counts| counts.delivered += 1);
                tracing::debug!(event = "notification_delivered", channel = name, delivery = %id, attempt);
            }
            store.transaction(async move |tx| outbox::mark_delivered(tx, &delivery, now).await).await
        }
        Err(failure) => {
            let delay = retry_delay(&failure, attempt, store.is_shared());
            lane.report_failure(permit, &failure, delay.is_none());
            let message = failure.message;
            match (delay, failure.retry) {
                // Another node may be able to deliver it, so this attempt does not count.
                (Some(delay), RetryAdvice::OtherNode) if store.is_shared() => {
                    let next = now + delay;
                    store.transaction(async move |tx| outbox::return_claim(tx, &delivery, next).await).await
                }
                (Some(delay), _) => {
                    notifier.count(label, |counts| counts.failed += 1);
                    let wait = delay.as_secs();
                    let next = now + delay;
                    tracing::info!(
                        event = "notification_delayed",
                        channel = name,
                        delivery = %id,
                        attempt,
                        wait,
                        error = message
                    );
                    store.transaction(async move |tx| outbox::retry_at(tx, &delivery, &message, next).await).await
                }
                (None, _) => {
                    notifier.count(label, |counts| {
                        counts.failed += 1;
                        counts.dead += 1;
                    });
                    tracing::warn!(
                        event = "notification_given_up",
                        channel = name,
                        delivery = %id,
                        attempt,
                        error = message
                    );
                    store.transaction(async move |tx| outbox::give_up(tx, &delivery, &message, now).await).await
                }
            }
        }
    };
    if let Err(error) = written {
        // The claim expires, and the delivery is repeated then.
        tracing::warn!(channel = name, delivery = %id, error = %error, "cannot record a delivery; it will be repeated");
    }
}

/// Returns the delay before the next attempt, or `None` if the delivery is given up. `attempt` is the number of
/// attempts so far, from 1.
///
/// - Permanent failures are given up at once.
/// - With a shared database, a delivery for another node waits five seconds and is never given up.
/// - All other failures are given up after [`MAX_ATTEMPTS`]. Before that, the delay is the backoff, or the delay that
///   the receiver has requested if that is longer.
fn retry_delay(failure: &DeliveryFailure, attempt: i64, shared: bool) -> Option<Duration> {
    match failure.retry {
        RetryAdvice::Never => None,
        RetryAdvice::OtherNode if shared => Some(OTHER_NODE_DELAY),
        RetryAdvice::Later(_) | RetryAdvice::OtherNode if attempt >= MAX_ATTEMPTS => None,
        RetryAdvice::Later(requested) => Some(backoff_delay(attempt).max(requested.unwrap_or_default())),
        RetryAdvice::OtherNode => Some(backoff_delay(attempt)),
    }
}

/// Returns the delay after the given number of attempts, beginning with 1.
fn backoff_delay(attempts: i64) -> Duration {
    RETRY_BACKOFF.delay(u64::try_from(attempts.saturating_sub(1)).unwrap_or_default())
}

/// Logs a state change of the breaker of a channel: as an error with the number of failures and the last error if it
/// opens, otherwise as information.
pub(crate) fn log_change(change: &BreakerChange) {
    let channel = &*change.service;
    match change.new {
        BreakerState::Open => tracing::error!(
            event = "channel_disabled",
            channel,
            given_up = change.failure_count,
            error = change.last_error.as_deref(),
            "the channel is suspended after repeated failures"
        ),
        BreakerState::HalfOpen => tracing::info!(event = "channel_tried", channel),
        BreakerState::Closed => tracing::info!(event = "channel_enabled", channel),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_an_hour() {
        let seconds: Vec<_> = (1..=14).map(|attempt| backoff_delay(attempt).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600]);
        assert_eq!(backoff_delay(i64::MAX), Duration::from_secs(3600));
        assert_eq!(backoff_delay(0), Duration::from_secs(1));
    }
}
