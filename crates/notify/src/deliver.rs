//! The deliverer: takes what is due from the outbox, a few of each channel at a time, and says what became of it. On any
//! node; a claim that is not heard of again is somebody else's after its lease.

use std::collections::BTreeMap;
use std::time::Duration;

use model::breaker::{Change, State};
use store::outbox::{self, Claimed};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{Channel, Notifier};

/// Deliveries of one channel at once: one that hangs holds up nobody else's.
const AT_ONCE: usize = 4;
/// How often a delivery is tried.
pub(crate) const TRIES: i64 = 12;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);
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
            Some(ended) = at_work.tasks.join_next() => at_work.ended(ended.ok()),
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
}

impl AtWork {
    fn ended(&mut self, channel: Option<String>) {
        match channel {
            Some(channel) => drop(self.busy.entry(channel).and_modify(|count| *count = count.saturating_sub(1))),
            // It panicked, and nobody knows which it was.
            None => self.busy.clear(),
        }
    }
}

/// Begins whatever can begin; says when there is more to do.
async fn round(notifier: &Notifier, at_work: &mut AtWork) -> store::Result<Option<jiff::Timestamp>> {
    let (store, clock) = (&notifier.0.store, &notifier.0.clock);
    let settings = notifier.settings();
    let mut next = None;
    for channel in &settings.channels {
        let busy = at_work.busy.entry(channel.name.clone()).or_default();
        let breaker = notifier.breaker(&channel.name);
        let mut free = AT_ONCE.saturating_sub(*busy);
        while free > 0 && !breaker.is_open() {
            let due = outbox::next(&mut store.reader().await?, &channel.name).await?;
            if due.is_none_or(|due| due > clock.now()) {
                next = [next, due].into_iter().flatten().min();
                break;
            }
            // Whoever is tried after a while is tried with one at first.
            let Some(first) = breaker.admit() else { break };
            let more = std::iter::from_fn(|| breaker.admit()).take(free - 1);
            let passes: Vec<_> = std::iter::once(first).chain(more).collect();
            let (name, now) = (channel.name.clone(), clock.now());
            let (lease, limit) = (now + channel.limit() + MARGIN, i64::try_from(passes.len()).unwrap_or(1));
            let claimed = store
                .write(move |conn| Box::pin(async move { outbox::claim(conn, &name, limit, now, lease).await }))
                .await?;
            if claimed.is_empty() {
                // Another node was faster.
                break;
            }
            for (delivery, pass) in claimed.into_iter().zip(passes) {
                *busy += 1;
                free -= 1;
                let (notifier, channel) = (notifier.clone(), channel.clone());
                at_work.tasks.spawn(async move {
                    deliver(&notifier, &channel, delivery, pass).await;
                    channel.name
                });
            }
        }
    }
    Ok(next)
}

async fn deliver(notifier: &Notifier, channel: &Channel, delivery: Claimed, pass: model::breaker::Pass) {
    let (store, clock) = (&notifier.0.store, &notifier.0.clock);
    let outcome = channel.deliver(&delivery, clock.now()).await;
    let (id, attempt, now) = (delivery.id, delivery.attempts, clock.now());
    let name = channel.name.as_str();
    let written = match outcome {
        Ok(()) => {
            pass.succeeded();
            notifier.count(name, |counts| counts.delivered += 1);
            tracing::debug!(event = "notification_delivered", channel = name, delivery = %id, attempt);
            store.write(move |conn| Box::pin(async move { outbox::done(conn, &delivery, now).await })).await
        }
        Err(failure) => {
            let says = failure.says;
            notifier.count(name, |counts| counts.failed += 1);
            if failure.may_pass && attempt < TRIES {
                let pause = pause(attempt);
                let wait = pause.as_secs();
                tracing::info!(event = "notification_delayed", channel = name, delivery = %id, attempt, wait, error = says);
                let next = now + pause;
                store
                    .write(move |conn| Box::pin(async move { outbox::again(conn, &delivery, &says, next).await }))
                    .await
            } else {
                pass.failed(&says);
                notifier.count(name, |counts| counts.dead += 1);
                tracing::warn!(event = "notification_given_up", channel = name, delivery = %id, attempt, error = says);
                store
                    .write(move |conn| Box::pin(async move { outbox::give_up(conn, &delivery, &says, now).await }))
                    .await
            }
        }
    };
    if let Err(error) = written {
        // It is claimed for a while yet, and comes again then.
        tracing::warn!(channel = name, delivery = %id, error = %error, "what became of a delivery was not written down");
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
