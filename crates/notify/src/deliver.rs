//! The deliverer: takes what is due from the outbox, a few of each channel at a time, and says what became of it. On any
//! node; a claim that is not heard of again is somebody else's after its lease.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use background::backoff::Doubling;
use background::reconcile;
use jiff::Timestamp;
use model::breaker::{Breaker, Change, Pass, State};
use store::outbox::{self, Claimed};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::callback::{self, Callbacks, Called};
use crate::channel::{Failure, Hope};
use crate::{Channel, Notifier, Settings};

/// Deliveries of one channel at once: one that hangs holds up nobody else's.
const AT_ONCE: usize = 4;
/// How often a delivery is tried.
pub(crate) const TRIES: i64 = 12;
/// The delays between attempts.
const DELAYS: Doubling = Doubling::new(Duration::from_secs(1), Duration::from_secs(3600));
/// How long a delivery that this node cannot make is left to others.
const ELSEWHERE: Duration = Duration::from_secs(5);
/// What a claim may take beyond the limit of its channel.
const MARGIN: Duration = Duration::from_secs(20);
/// How long is waited for those under way when the server stops.
const GRACE: Duration = Duration::from_secs(3);
/// The longest time between two rounds: commits of other nodes are not noticed.
const POLL_INTERVAL_SHARED: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_secs(10);

pub(crate) async fn run(notifier: &Notifier, shutdown: &CancellationToken) {
    let store = &notifier.0.store;
    if !store.is_shared()
        && let Err(error) = take_over(notifier).await
    {
        tracing::warn!(error = %error, "what was to be delivered waits for its time");
    }
    let at_work = Mutex::new(AtWork::default());
    let poll_interval = if store.is_shared() { POLL_INTERVAL_SHARED } else { POLL_INTERVAL };
    let wake = || {
        let woken = notifier.woken(&notifier.0.deliver);
        async {
            let mut at_work = at_work.lock().await;
            tokio::select! {
                () = woken => {}
                Some(ended) = at_work.tasks.join_next() => at_work.ended(notifier, ended.ok()),
            }
        }
    };
    let work = || async {
        let next = round(notifier, &mut *at_work.lock().await).await?;
        Ok::<_, store::Error>(Some(notifier.until(next, poll_interval)))
    };
    reconcile::run("outbox_not_read", poll_interval, shutdown, wake, work).await;
    let mut at_work = at_work.into_inner();
    let last = async { while at_work.tasks.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(GRACE, last).await;
}

/// Where nobody else can be at work, what a process before this one had claimed is not waited for.
async fn take_over(notifier: &Notifier) -> store::Result<()> {
    let store = &notifier.0.store;
    let now = notifier.0.clock.now();
    if !outbox::is_empty(&mut store.reader().await?).await? {
        store.transaction(async move |tx| outbox::release(tx, now).await).await?;
    }
    Ok(())
}

/// Deliveries under way, counted by channel.
#[derive(Default)]
struct AtWork {
    tasks: JoinSet<String>,
    busy: BTreeMap<String, usize>,
    /// Of those, the callbacks.
    callbacks: usize,
}

impl AtWork {
    fn begun(&mut self, lane: &Lane) {
        *self.busy.entry(lane.name.clone()).or_default() += 1;
        self.callbacks += usize::from(lane.is_callback());
    }

    fn ended(&mut self, notifier: &Notifier, channel: Option<String>) {
        let Some(channel) = channel else {
            // It panicked, and nobody knows which it was.
            self.busy.clear();
            self.callbacks = 0;
            return;
        };
        let is_callback = notifier.callbacks().is_some_and(|callbacks| callbacks.has(&channel));
        self.callbacks = self.callbacks.saturating_sub(usize::from(is_callback));
        if let Some(count) = self.busy.get_mut(&channel) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.busy.remove(&channel);
            }
        }
    }

    /// How many more may begin.
    fn free(&self, lane: &Lane) -> usize {
        let free = AT_ONCE.saturating_sub(self.busy.get(&lane.name).copied().unwrap_or_default());
        if lane.is_callback() { free.min(callback::AT_ONCE.saturating_sub(self.callbacks)) } else { free }
    }
}

/// Where the deliveries of one channel go.
#[derive(Clone)]
struct Lane {
    name: String,
    way: Way,
    breaker: Arc<Breaker>,
}

#[derive(Clone)]
enum Way {
    Channel(Arc<Channel>),
    /// One host of them.
    Callback(Callbacks),
}

impl Lane {
    /// `None`: nobody here knows this channel.
    fn of(notifier: &Notifier, settings: &Settings, name: &str) -> Option<Self> {
        if let Some(callbacks) = notifier.callbacks().filter(|callbacks| callbacks.has(name)) {
            let breaker = callbacks.breaker(name);
            return Some(Self { name: name.to_owned(), way: Way::Callback(callbacks), breaker });
        }
        let channel = Arc::new(settings.channels.iter().find(|channel| channel.name == name)?.clone());
        Some(Self { name: name.to_owned(), way: Way::Channel(channel), breaker: notifier.breaker(name) })
    }

    fn is_callback(&self) -> bool {
        matches!(self.way, Way::Callback(_))
    }

    /// How long a delivery may take.
    fn limit(&self) -> Duration {
        match &self.way {
            Way::Channel(channel) => channel.limit(),
            Way::Callback(_) => crate::post::LIMIT,
        }
    }

    /// What it is called in metrics: hosts are not.
    fn label(&self) -> &str {
        match &self.way {
            Way::Channel(channel) => &channel.name,
            Way::Callback(callbacks) => callbacks.name,
        }
    }

    async fn deliver(&self, delivery: &Claimed, now: Timestamp) -> Result<Called, Failure> {
        match &self.way {
            Way::Channel(channel) => channel.deliver(delivery, now).await.map(|()| Called::Delivered),
            Way::Callback(callbacks) => callbacks.deliver(delivery, now).await,
        }
    }

    /// Tells the breaker of a failure. A channel is judged by what was given up; a host by whether it works, whatever it
    /// has to say about one of its many addresses.
    fn judge(&self, pass: Pass, failure: &Failure, given_up: bool) {
        let counts = if self.is_callback() { failure.is_of_the_host } else { given_up };
        if counts {
            pass.failed(&failure.says);
        }
    }
}

/// Begins whatever can begin; says when there is more to do.
async fn round(notifier: &Notifier, at_work: &mut AtWork) -> store::Result<Option<Timestamp>> {
    let store = &notifier.0.store;
    let clock = &notifier.0.clock;
    let settings = notifier.settings();
    let mut next = None;
    let mut waiting = outbox::waiting(&mut store.reader().await?).await?;
    // Who has waited longest comes first: names are for anybody to choose.
    waiting.sort_by_key(|(_, due)| *due);
    for (name, due) in waiting {
        let Some(lane) = Lane::of(notifier, &settings, &name) else { continue };
        let mut due = Some(due);
        loop {
            if at_work.free(&lane) == 0 || lane.breaker.is_open() {
                break;
            }
            if due.is_none_or(|due| due > clock.now()) {
                next = [next, due].into_iter().flatten().min();
                break;
            }
            if begin(notifier, at_work, &lane).await? == 0 {
                // It is left alone, or another node was faster.
                break;
            }
            due = outbox::next(&mut store.reader().await?, &name).await?;
        }
    }
    Ok(next)
}

/// Claims and begins as many as may; says how many.
async fn begin(notifier: &Notifier, at_work: &mut AtWork, lane: &Lane) -> store::Result<usize> {
    // Whoever is tried after a while is tried with one at first.
    let passes: Vec<_> = std::iter::from_fn(|| lane.breaker.admit()).take(at_work.free(lane)).collect();
    if passes.is_empty() {
        return Ok(0);
    }
    let name = lane.name.clone();
    let now = notifier.0.clock.now();
    let lease = now + lane.limit() + MARGIN;
    let limit = i64::try_from(passes.len()).unwrap_or(1);
    let claim = notifier.0.store.transaction(async move |tx| outbox::claim(tx, &name, limit, now, lease).await);
    let claimed = claim.await?;
    let count = claimed.len();
    for (delivery, pass) in claimed.into_iter().zip(passes) {
        at_work.begun(lane);
        let notifier = notifier.clone();
        let lane = lane.clone();
        at_work.tasks.spawn(async move {
            deliver(&notifier, &lane, delivery, pass).await;
            lane.name
        });
    }
    Ok(count)
}

async fn deliver(notifier: &Notifier, lane: &Lane, delivery: Claimed, pass: Pass) {
    let store = &notifier.0.store;
    let clock = &notifier.0.clock;
    let outcome = lane.deliver(&delivery, clock.now()).await;
    let id = delivery.id;
    let attempt = delivery.attempts;
    let now = clock.now();
    let name = lane.name.as_str();
    let label = lane.label();
    let written = match outcome {
        Ok(called) => {
            if matches!(called, Called::Delivered) {
                pass.succeeded();
                notifier.count(label, |counts| counts.delivered += 1);
                tracing::debug!(event = "notification_delivered", channel = name, delivery = %id, attempt);
            }
            store.transaction(async move |tx| outbox::done(tx, &delivery, now).await).await
        }
        Err(failure) => {
            let next = next_try(&failure, attempt, store.is_shared());
            lane.judge(pass, &failure, next.is_none());
            let says = failure.says;
            match (next, failure.hope) {
                // Another node may be able to deliver it, so this attempt does not count.
                (Some(pause), Hope::Elsewhere) if store.is_shared() => {
                    let next = now + pause;
                    store.transaction(async move |tx| outbox::put_back(tx, &delivery, next).await).await
                }
                (Some(pause), _) => {
                    notifier.count(label, |counts| counts.failed += 1);
                    let wait = pause.as_secs();
                    let next = now + pause;
                    tracing::info!(event = "notification_delayed", channel = name, delivery = %id, attempt, wait, error = says);
                    store.transaction(async move |tx| outbox::again(tx, &delivery, &says, next).await).await
                }
                (None, _) => {
                    notifier.count(label, |counts| {
                        counts.failed += 1;
                        counts.dead += 1;
                    });
                    tracing::warn!(event = "notification_given_up", channel = name, delivery = %id, attempt, error = says);
                    store.transaction(async move |tx| outbox::give_up(tx, &delivery, &says, now).await).await
                }
            }
        }
    };
    if let Err(error) = written {
        // It is claimed for a while yet, and comes again then.
        tracing::warn!(channel = name, delivery = %id, error = %error, "what became of a delivery was not written down");
    }
}

/// When it is tried again, if it is.
fn next_try(failure: &Failure, attempt: i64, shared: bool) -> Option<Duration> {
    match failure.hope {
        Hope::None => None,
        // Whoever can make it comes by until then.
        Hope::Elsewhere if shared => Some(ELSEWHERE),
        Hope::Again(_) | Hope::Elsewhere if attempt >= TRIES => None,
        Hope::Again(patience) => Some(pause(attempt).max(patience.unwrap_or_default())),
        Hope::Elsewhere => Some(pause(attempt)),
    }
}

/// Returns the delay after so many attempts.
fn pause(attempts: i64) -> Duration {
    DELAYS.delay(u64::try_from(attempts.saturating_sub(1)).unwrap_or_default())
}

/// A channel is left alone, or used again.
pub(crate) fn record(change: &Change) {
    let channel = &*change.service;
    match change.new {
        State::Open => tracing::error!(
            event = "channel_disabled",
            channel,
            given_up = change.failure_count,
            error = change.last_error.as_deref(),
            "nothing is sent there for a while"
        ),
        State::HalfOpen => tracing::info!(event = "channel_tried", channel),
        State::Closed => tracing::info!(event = "channel_enabled", channel),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_an_hour() {
        let seconds: Vec<_> = (1..=14).map(|attempt| pause(attempt).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600]);
        assert_eq!(pause(i64::MAX), Duration::from_secs(3600));
        assert_eq!(pause(0), Duration::from_secs(1));
    }
}
