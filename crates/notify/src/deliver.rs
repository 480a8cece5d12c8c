//! The deliverer: takes what is due from the outbox, a few of each channel at a time, and says what became of it. On any
//! node; a claim that is not heard of again is somebody else's after its lease.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use model::breaker::{Breaker, Change, Pass, State};
use store::outbox::{self, Claimed};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::callback::{self, Callbacks, Called};
use crate::channel::{Failure, Hope};
use crate::{Channel, Notifier, Settings};

/// Deliveries of one channel at once: one that hangs holds up nobody else's.
const AT_ONCE: usize = 4;
/// How often a delivery is tried.
pub(crate) const TRIES: i64 = 12;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);
/// How long a delivery that this node cannot make is left to others.
const ELSEWHERE: Duration = Duration::from_secs(5);
/// What a claim may take beyond the limit of its channel.
const MARGIN: Duration = Duration::from_secs(20);
/// How long is waited for those under way when the server stops.
const GRACE: Duration = Duration::from_secs(3);
/// How often the outbox is looked at although nothing was committed here: what other nodes do is not heard of.
const LOOK_SHARED: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_secs(10);

pub(crate) async fn run(notifier: &Notifier, shutdown: &CancellationToken) {
    let store = &notifier.0.store;
    if !store.is_shared()
        && let Err(error) = take_over(notifier).await
    {
        tracing::warn!(error = %error, "what was to be delivered waits for its time");
    }
    let mut commits = store.commits();
    let mut at_work = AtWork::default();
    let longest = if store.is_shared() { LOOK_SHARED } else { LOOK };
    while !shutdown.is_cancelled() {
        commits.mark_unchanged();
        let next = match round(notifier, &mut at_work).await {
            Ok(next) => notifier.until(next, longest),
            Err(error) => {
                tracing::warn!(error = %error, "the outbox cannot be read; it is tried again");
                LOOK_SHARED
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => break,
            () = notifier.0.deliver.notified() => {}
            Some(ended) = at_work.tasks.join_next() => at_work.ended(notifier, ended.ok()),
            () = tokio::time::sleep(next) => {}
            _ = commits.changed() => tokio::time::sleep(notifier.breath()).await,
        }
    }
    let last = async { while at_work.tasks.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(GRACE, last).await;
}

/// Where nobody else can be at work, what a process before this one had claimed is not waited for.
async fn take_over(notifier: &Notifier) -> store::Result<()> {
    let (store, now) = (&notifier.0.store, notifier.0.clock.now());
    if !outbox::is_empty(&mut store.reader().await?).await? {
        store.write(move |conn| Box::pin(outbox::release(conn, now))).await?;
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
    let (store, clock) = (&notifier.0.store, &notifier.0.clock);
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
    let (name, now) = (lane.name.clone(), notifier.0.clock.now());
    let (lease, limit) = (now + lane.limit() + MARGIN, i64::try_from(passes.len()).unwrap_or(1));
    let claim = notifier
        .0
        .store
        .write(move |conn| Box::pin(async move { outbox::claim(conn, &name, limit, now, lease).await }));
    let claimed = claim.await?;
    let count = claimed.len();
    for (delivery, pass) in claimed.into_iter().zip(passes) {
        at_work.begun(lane);
        let (notifier, lane) = (notifier.clone(), lane.clone());
        at_work.tasks.spawn(async move {
            deliver(&notifier, &lane, delivery, pass).await;
            lane.name
        });
    }
    Ok(count)
}

async fn deliver(notifier: &Notifier, lane: &Lane, delivery: Claimed, pass: Pass) {
    let (store, clock) = (&notifier.0.store, &notifier.0.clock);
    let outcome = lane.deliver(&delivery, clock.now()).await;
    let (id, attempt, now) = (delivery.id, delivery.attempts, clock.now());
    let (name, label) = (lane.name.as_str(), lane.label());
    let written = match outcome {
        Ok(called) => {
            if matches!(called, Called::Delivered) {
                pass.succeeded();
                notifier.count(label, |counts| counts.delivered += 1);
                tracing::debug!(event = "notification_delivered", channel = name, delivery = %id, attempt);
            }
            store.write(move |conn| Box::pin(async move { outbox::done(conn, &delivery, now).await })).await
        }
        Err(failure) => {
            let next = next_try(&failure, attempt, store.is_shared());
            lane.judge(pass, &failure, next.is_none());
            let says = failure.says;
            match (next, failure.hope) {
                (Some(pause), Hope::Elsewhere) => {
                    let next = now + pause;
                    store
                        .write(move |conn| Box::pin(async move { outbox::put_back(conn, &delivery, next).await }))
                        .await
                }
                (Some(pause), _) => {
                    notifier.count(label, |counts| counts.failed += 1);
                    let (wait, next) = (pause.as_secs(), now + pause);
                    tracing::info!(event = "notification_delayed", channel = name, delivery = %id, attempt, wait, error = says);
                    store
                        .write(move |conn| Box::pin(async move { outbox::again(conn, &delivery, &says, next).await }))
                        .await
                }
                (None, _) => {
                    notifier.count(label, |counts| {
                        counts.failed += 1;
                        counts.dead += 1;
                    });
                    tracing::warn!(event = "notification_given_up", channel = name, delivery = %id, attempt, error = says);
                    store
                        .write(move |conn| Box::pin(async move { outbox::give_up(conn, &delivery, &says, now).await }))
                        .await
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

/// How long to wait after so many attempts.
fn pause(attempts: i64) -> Duration {
    let doublings = u32::try_from(attempts.clamp(1, 32) - 1).unwrap_or_default();
    FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(doublings)).min(LONGEST_PAUSE)
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
        assert_eq!(pause(i64::MAX), LONGEST_PAUSE);
    }
}
