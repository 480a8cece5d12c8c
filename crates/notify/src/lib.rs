//! Notifies users about reminders, due tasks, and the results of executions and schedules.
//!
//! [`Notifier::notify`] stores a notification and its deliveries in the transaction of the caller. Three loops do the
//! rest: [`reminders`] fires reminders, [`deliver`] sends the deliveries of the outbox, and [`follow`] wakes followers.
//! The loops hold no state of their own: they wake after a commit or at the next due time and read the tables. They can
//! run on several nodes. A committed delivery is sent at least once, always with the same id, so that receivers can
//! detect duplicates.

mod address_guard;
pub mod callback;
mod channel;
mod command;
mod deliver;
mod email;
pub mod follow;
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
use model::breaker::{Breaker, BreakerConfig, BreakerSnapshot};
use model::notification::Notification;
use model::{Clock, UserId};
use store::{Conn, Store, notifications, outbox};
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;

use callback::Callbacks;

pub use callback::{CallbackRequest, CallbackResolver, ResolveError};
pub use channel::{Channel, ChannelTransport};
pub use command::CommandTransport;
pub use email::{EmailTransport, SmtpServer};
pub use follow::NotificationFollower;
pub use webhook::Webhook;

/// Suspends a channel after three consecutive deliveries that were given up.
const CHANNEL_BREAKER: BreakerConfig =
    BreakerConfig { failure_threshold: 3, recovery_time: Duration::from_secs(15 * 60), half_open_calls: 1 };
/// The capacity of the wake-up channel of followers. A follower that misses a wake-up polls.
const WAKE_UP_CAPACITY: usize = 1024;

/// The settings of the notifier.
#[derive(Clone, Debug, Default)]
pub struct NotifySettings {
    pub channels: Vec<Channel>,
    /// If true, a due task with a time of day causes a notification.
    pub notify_due: bool,
    /// The time zone of times in notifications. UTC if not set.
    pub time_zone: Option<TimeZone>,
}

/// A cheap handle to the notifier.
#[derive(Clone)]
pub struct Notifier(Arc<NotifierShared>);

/// The state that all handles share.
struct NotifierShared {
    store: Store,
    clock: Clock,
    settings: RwLock<Arc<NotifySettings>>,
    /// The circuit breakers by channel name. They survive a configuration change.
    breakers: Mutex<BTreeMap<String, Arc<Breaker>>>,
    /// Set by [`Notifier::register_callbacks`].
    callbacks: OnceLock<Callbacks>,
    counters: NotifierCounters,
    /// Wakes the reminder loop.
    remind: Notify,
    /// Wakes the delivery loop.
    deliver: Notify,
    /// Announces users with new notifications.
    new_notifications: broadcast::Sender<UserId>,
}

/// The counters for metrics.
#[derive(Default)]
struct NotifierCounters {
    /// The notifications about reminders and due tasks.
    fired: AtomicU64,
    /// The counts by the label of the channel. All hosts of the callbacks share one label.
    deliveries: Mutex<BTreeMap<String, DeliveryCounts>>,
}

/// The number of deliveries of one channel on this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryCounts {
    pub delivered: u64,
    /// Failed attempts.
    pub failed: u64,
    /// Deliveries that were given up.
    pub dead: u64,
}

/// The state of a channel on this node.
#[derive(Clone, Debug)]
pub struct ChannelState {
    pub name: String,
    /// `webhook`, `command` or `email`.
    pub kind: &'static str,
    pub breaker: BreakerSnapshot,
    /// The last error, if the channel is suspended.
    pub last_error: Option<String>,
    /// The end of the suspension. `None` if the channel is not suspended.
    pub disabled_until: Option<Timestamp>,
}

impl Notifier {
    /// Creates a notifier without channels and callbacks. Call [`Notifier::reload`] to set channels and
    /// [`Notifier::run`] to start the loops.
    pub fn new(store: Store, clock: Clock) -> Self {
        Self(Arc::new(NotifierShared {
            store,
            clock,
            settings: RwLock::default(),
            breakers: Mutex::default(),
            callbacks: OnceLock::new(),
            counters: NotifierCounters::default(),
            remind: Notify::new(),
            deliver: Notify::new(),
            new_notifications: broadcast::channel(WAKE_UP_CAPACITY).0,
        }))
    }

    /// Applies new settings. Deliveries in progress keep the old ones.
    pub fn reload(&self, settings: NotifySettings) {
        *self.0.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
        self.wake();
    }

    /// Registers callbacks: deliveries to channels that [`callback::channel_name`] has created with this name. Call
    /// this once, before [`Notifier::run`]; a second call has no effect. The names of these channels contain a colon,
    /// which configured channels cannot.
    pub fn register_callbacks(&self, name: &'static str, resolver: CallbackResolver) {
        let _ = self.0.callbacks.set(Callbacks::new(name, resolver, self.0.clock.clone()));
    }

    /// Returns the number of callback hosts that are suspended after repeated failures.
    pub fn suspended_hosts(&self) -> usize {
        self.0.callbacks.get().map(Callbacks::suspended_hosts).unwrap_or_default()
    }

    /// Stores a notification and one pending delivery for every channel that accepts it. Uses the transaction of the
    /// caller. Returns true if it was stored. Returns false and adds nothing if the owner already has a notification
    /// with this id. Nothing is sent here; the loops wake after the commit. Fails if the database fails or the
    /// notification cannot be encoded.
    pub async fn notify(&self, conn: &mut Conn, owner: UserId, notification: &Notification) -> store::Result<bool> {
        if !notifications::add(conn, owner, notification).await? {
            return Ok(false);
        }
        let settings = self.settings();
        for channel in settings.channels.iter().filter(|channel| channel.accepts(owner, notification.kind)) {
            let payload = serde_json::to_string(notification);
            let new = outbox::NewDelivery {
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

    /// Fires reminders, sends deliveries and wakes followers until the token is cancelled.
    pub async fn run(&self, shutdown: &CancellationToken) {
        tokio::join!(reminders::run(self, shutdown), deliver::run(self, shutdown), follow::run(self, shutdown));
    }

    /// Wakes the loops, because the clock or the settings have changed.
    pub fn wake(&self) {
        self.0.remind.notify_one();
        self.0.deliver.notify_one();
    }

    /// Returns the states of the configured channels, in the order of the settings. Callback hosts are not included.
    /// The error and the end of the suspension are set only while the breaker is open. Creates missing breakers.
    pub fn channel_states(&self) -> Vec<ChannelState> {
        let settings = self.settings();
        let states = settings.channels.iter().map(|channel| {
            let breaker = self.breaker(&channel.name);
            let now = breaker.snapshot();
            let open = breaker.is_open();
            ChannelState {
                name: channel.name.clone(),
                kind: channel.transport.kind(),
                last_error: breaker.last_error().filter(|_| open),
                disabled_until: open.then(|| now.last_state_change + CHANNEL_BREAKER.recovery_time),
                breaker: now,
            }
        });
        states.collect()
    }

    /// Returns the number of notifications about reminders and due tasks on this node.
    pub fn fired_count(&self) -> u64 {
        self.0.counters.fired.load(Ordering::Relaxed)
    }

    /// Returns the delivery counts of this node by channel.
    pub fn delivery_counts(&self) -> Vec<(String, DeliveryCounts)> {
        lock(&self.0.counters.deliveries).iter().map(|(name, counts)| (name.clone(), *counts)).collect()
    }

    fn callbacks(&self) -> Option<Callbacks> {
        self.0.callbacks.get().cloned()
    }

    fn settings(&self) -> Arc<NotifySettings> {
        self.0.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the circuit breaker of a configured channel, created on first use.
    fn breaker(&self, channel: &str) -> Arc<Breaker> {
        let mut breakers = lock(&self.0.breakers);
        let new = || Breaker::new(channel, CHANNEL_BREAKER, self.0.clock.clone(), deliver::log_change);
        breakers.entry(channel.to_owned()).or_insert_with(new).clone()
    }

    fn count(&self, channel: &str, add: impl FnOnce(&mut DeliveryCounts)) {
        add(lock(&self.0.counters.deliveries).entry(channel.to_owned()).or_default());
    }

    /// Returns the delay between a commit and the next round. It combines frequent commits, because each round costs
    /// several queries. Queries to a shared database take longer.
    fn debounce(&self) -> Duration {
        Duration::from_millis(if self.0.store.is_shared() { 100 } else { 20 })
    }

    /// Returns a future that completes after the next commit on this node and the delay of [`Self::debounce`]. It
    /// subscribes at this call, so a commit before the first poll is not lost.
    fn committed(&self) -> impl Future<Output = ()> + use<> {
        let mut commits = self.0.store.commits();
        let debounce = self.debounce();
        async move {
            let _ = commits.changed().await;
            tokio::time::sleep(debounce).await;
        }
    }

    /// Returns a future that completes when `wake` is notified, or when [`Self::committed`] completes.
    fn woken<'a>(&self, wake: &'a Notify) -> impl Future<Output = ()> + use<'a> {
        let notified = wake.notified();
        let committed = self.committed();
        async move {
            tokio::select! {
                () = notified => {}
                () = committed => {}
            }
        }
    }

    /// Returns the time until `at`, but at most `max`: zero if `at` has passed, `max` if it is `None`. The limit is
    /// needed because the clock may be set and the machine may be suspended meanwhile.
    fn time_until(&self, at: Option<Timestamp>, max: Duration) -> Duration {
        let left = at.map(|at| at.duration_since(self.0.clock.now()));
        left.map_or(max, |left| if left.is_negative() { Duration::ZERO } else { left.unsigned_abs().min(max) })
    }
}

/// Locks a mutex and ignores poisoning.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
