//! Tells users what they did not ask for at that moment: reminders, tasks that are due, what became of runs and schedules.
//!
//! [`Notifier::tell`] writes a notification and what is to be delivered of it in the caller's transaction; that is all a
//! caller has to do. One loop fires reminders ([`reminders`]), one empties the outbox ([`deliver`]), one wakes whoever
//! follows ([`follow`]). All of them only hold what the tables say: they wake by a commit or by the clock and read again,
//! on as many nodes as there are. What was committed is delivered at least once, under an id by which doubles are known.

pub mod callback;
mod channel;
mod command;
mod deliver;
mod email;
pub mod follow;
mod guard;
mod post;
mod reminders;
mod webhook;
mod wording;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use model::breaker::{Breaker, Rules, Snapshot};
use model::notification::Notification;
use model::{Clock, UserId};
use store::{Conn, Store, notifications, outbox};
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;

use callback::Callbacks;

pub use callback::{Outgoing, Resolver, Unresolved};
pub use channel::{Channel, Way};
pub use command::Program;
pub use email::{Mail, Smtp};
pub use follow::Follower;
pub use webhook::Webhook;

/// A channel is left alone after so many deliveries in a row that were given up.
const PATIENCE: Rules = Rules { failures: 3, recovery: Duration::from_secs(15 * 60), trials: 1 };
/// Users whose news are passed on at once; whoever misses one looks by itself.
const NEWS: usize = 1024;

/// What is told, and to whom.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub channels: Vec<Channel>,
    /// Tasks with a time of day are told of when they are due.
    pub notify_due: bool,
    /// In which times are written that have none of their own.
    pub time_zone: Option<TimeZone>,
}

/// A cheap handle to all of it.
#[derive(Clone)]
pub struct Notifier(Arc<Inner>);

struct Inner {
    store: Store,
    clock: Clock,
    settings: RwLock<Arc<Settings>>,
    /// By the name of the channel; what is known about one outlives a change of the configuration.
    breakers: Mutex<BTreeMap<String, Arc<Breaker>>>,
    /// Where what users have named themselves is found, if there is such.
    callbacks: OnceLock<Callbacks>,
    counts: Counts,
    remind: Notify,
    deliver: Notify,
    news: broadcast::Sender<UserId>,
}

#[derive(Default)]
struct Counts {
    fired: AtomicU64,
    deliveries: Mutex<BTreeMap<String, Deliveries>>,
}

/// What became of the deliveries of one channel on this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deliveries {
    pub delivered: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Given up.
    pub dead: u64,
}

/// How a channel is doing on this node.
#[derive(Clone, Debug)]
pub struct State {
    pub name: String,
    /// `webhook`, `command` or `email`.
    pub kind: &'static str,
    pub breaker: Snapshot,
    /// Why it is left alone, if it is.
    pub last_error: Option<String>,
    /// Until when it is left alone.
    pub disabled_until: Option<Timestamp>,
}

impl Notifier {
    /// Tells nobody outside until it is given channels, and does nothing by itself before it is told to run.
    pub fn new(store: Store, clock: Clock) -> Self {
        Self(Arc::new(Inner {
            store,
            clock,
            settings: RwLock::default(),
            breakers: Mutex::default(),
            callbacks: OnceLock::new(),
            counts: Counts::default(),
            remind: Notify::new(),
            deliver: Notify::new(),
            news: broadcast::channel(NEWS).0,
        }))
    }

    /// Puts new settings into force; deliveries under way end as they began.
    pub fn reload(&self, settings: Settings) {
        *self.0.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
        self.wake();
    }

    /// Delivers callbacks, too: whatever is in the outbox for a channel that [`callback::channel`] has made of this name.
    /// To be said once, before it runs. The name has a colon in it, which no configured channel has.
    pub fn call_back(&self, name: &'static str, resolver: Resolver) {
        let _ = self.0.callbacks.set(Callbacks::new(name, resolver, self.0.clock.clone()));
    }

    /// How many hosts of callbacks are left alone for now, because they did not answer.
    pub fn hosts_left_alone(&self) -> usize {
        self.0.callbacks.get().map(Callbacks::left_alone).unwrap_or_default()
    }

    /// Tells the owner: the notification, and a delivery for every channel that wants it, in the caller's transaction.
    /// One that the owner was told already under that id is not told again; says whether it was.
    pub async fn tell(&self, conn: &mut Conn, owner: UserId, notification: &Notification) -> store::Result<bool> {
        if !notifications::add(conn, owner, notification).await? {
            return Ok(false);
        }
        let settings = self.settings();
        for channel in settings.channels.iter().filter(|channel| channel.wants(owner, notification.kind)) {
            let payload = serde_json::to_string(notification);
            let new = outbox::New {
                id: self.0.clock.id(),
                owner,
                notification_id: Some(notification.id),
                channel: channel.name.clone(),
                target: None,
                payload: payload.map_err(|error| store::Error::Corrupt(error.to_string()))?,
            };
            outbox::add(conn, &new, self.0.clock.now()).await?;
        }
        Ok(true)
    }

    /// Fires reminders, delivers, and wakes followers, until the token is cancelled.
    pub async fn run(&self, shutdown: &CancellationToken) {
        tokio::join!(reminders::run(self, shutdown), deliver::run(self, shutdown), follow::run(self, shutdown));
    }

    /// Has everybody look again: something is due that was not, or the clock was moved.
    pub fn wake(&self) {
        self.0.remind.notify_one();
        self.0.deliver.notify_one();
    }

    /// How the channels are doing.
    pub fn states(&self) -> Vec<State> {
        let settings = self.settings();
        let states = settings.channels.iter().map(|channel| {
            let breaker = self.breaker(&channel.name);
            let now = breaker.snapshot();
            let open = breaker.is_open();
            State {
                name: channel.name.clone(),
                kind: channel.way.kind(),
                last_error: breaker.last_error().filter(|_| open),
                disabled_until: open.then(|| now.last_state_change + PATIENCE.recovery),
                breaker: now,
            }
        });
        states.collect()
    }

    /// How many reminders and due tasks were told of on this node.
    pub fn fired(&self) -> u64 {
        self.0.counts.fired.load(Ordering::Relaxed)
    }

    /// What became of deliveries on this node, by channel.
    pub fn deliveries(&self) -> Vec<(String, Deliveries)> {
        lock(&self.0.counts.deliveries).iter().map(|(name, counts)| (name.clone(), *counts)).collect()
    }

    fn callbacks(&self) -> Option<Callbacks> {
        self.0.callbacks.get().cloned()
    }

    fn settings(&self) -> Arc<Settings> {
        self.0.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn breaker(&self, channel: &str) -> Arc<Breaker> {
        let mut breakers = lock(&self.0.breakers);
        let new = || Breaker::new(channel, PATIENCE, self.0.clock.clone(), deliver::record);
        breakers.entry(channel.to_owned()).or_insert_with(new).clone()
    }

    fn count(&self, channel: &str, add: impl FnOnce(&mut Deliveries)) {
        add(lock(&self.0.counts.deliveries).entry(channel.to_owned()).or_default());
    }

    /// How long commits are gathered before they are looked at: whoever writes much must not be slowed down by those who
    /// look. Each look is a few questions to the database, and a shared one is further away.
    fn breath(&self) -> Duration {
        Duration::from_millis(if self.0.store.is_shared() { 100 } else { 20 })
    }

    /// Returns a future that completes some time after the next commit on this node.
    fn committed(&self) -> impl Future<Output = ()> + use<> {
        let mut commits = self.0.store.commits();
        let debounce = self.breath();
        async move {
            let _ = commits.changed().await;
            tokio::time::sleep(debounce).await;
        }
    }

    /// Returns a future that completes when `called` is notified, and some time after the next commit on this node.
    fn woken<'a>(&self, called: &'a Notify) -> impl Future<Output = ()> + use<'a> {
        let called = called.notified();
        let committed = self.committed();
        async move {
            tokio::select! {
                () = called => {}
                () = committed => {}
            }
        }
    }

    /// How long to wait for a time, at most so long: a clock may be set, and a machine may sleep.
    fn until(&self, at: Option<Timestamp>, most: Duration) -> Duration {
        let left = at.map(|at| at.duration_since(self.0.clock.now()));
        left.map_or(most, |left| if left.is_negative() { Duration::ZERO } else { left.unsigned_abs().min(most) })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
