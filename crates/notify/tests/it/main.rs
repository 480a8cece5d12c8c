//! Tests of the notifier with its running loops: real sockets and processes, both databases, and a manual clock.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod callbacks;
mod channels;
mod command;
mod email;
mod follow;
mod reminders;
mod webhook;
mod week;

use std::time::Duration;

use model::notification::{Notification, NotificationKind};
use model::task::{Task, TaskDraft, TaskLimits};
use model::{Clock, User, UserId, reminder};
use notify::{Channel, ChannelTransport, Notifier, NotifySettings};
use store::undo::UndoStep;
use store::{Durability, Location, Store};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// A store, a clock, a user and a notifier.
pub(crate) struct Bench {
    pub(crate) store: Store,
    pub(crate) location: Location,
    pub(crate) clock: Clock,
    pub(crate) alice: UserId,
    pub(crate) notifier: Notifier,
    shutdown: CancellationToken,
    _dir: tempfile::TempDir,
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl Bench {
    pub(crate) async fn sqlite() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self::open(Location::Sqlite(dir.path().join("adjutant.db")), dir).await
    }

    pub(crate) async fn postgres() -> Self {
        let url = testkit::postgres::create_database().await.unwrap();
        Self::open(Location::postgres(url), tempfile::tempdir().unwrap()).await
    }

    async fn open(location: Location, dir: tempfile::TempDir) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let store = Store::open(&location, Durability::Normal).await.unwrap();
        let clock = Clock::manual("2026-01-10T12:00:00Z".parse().unwrap());
        let notifier = Notifier::new(store.clone(), clock.clone());
        notifier.reload(NotifySettings { notify_due: true, ..NotifySettings::default() });
        let alice = UserId::new(Uuid::from_u128(0xa11ce));
        Self { store, location, clock, alice, notifier, shutdown: CancellationToken::new(), _dir: dir }
    }

    /// Starts the loops.
    pub(crate) fn run(&self) {
        self.run_node(self.notifier.clone());
    }

    /// Starts the loops of a further node.
    pub(crate) fn run_node(&self, notifier: Notifier) {
        let shutdown = self.shutdown.clone();
        tokio::spawn(async move { notifier.run(&shutdown).await });
    }

    /// Sets channels without filters.
    pub(crate) fn set_channels(&self, transports: impl IntoIterator<Item = (&'static str, ChannelTransport)>) {
        let channel = |(name, transport): (&str, ChannelTransport)| Channel {
            name: name.to_owned(),
            transport,
            kinds: vec![],
            users: vec![],
        };
        let channels = transports.into_iter().map(channel).collect();
        self.notifier.reload(NotifySettings { channels, notify_due: true, ..NotifySettings::default() });
    }

    /// Advances the clock and wakes the loops.
    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
        self.notifier.wake();
    }

    pub(crate) async fn task(&self, draft: TaskDraft) -> Task {
        let task = draft.check(TaskLimits::default(), &self.clock, &user()).unwrap();
        let stored = task.clone();
        let owner = self.alice;
        let added = self.store.owner_transaction(owner, async move |tx| {
            let mut step = UndoStep::begin(tx, owner).await?;
            store::tasks::create(tx, &mut step, &stored).await
        });
        added.await.unwrap();
        task
    }

    pub(crate) async fn task_titled(&self, title: &str) -> Task {
        self.task(TaskDraft { title: title.into(), ..TaskDraft::default() }).await
    }

    pub(crate) async fn remind(&self, task: Uuid, at: &str, interval: Option<i64>, count: Option<i64>) -> Uuid {
        let draft = reminder::ReminderDraft {
            task_id: task.to_string(),
            remind_at: Some(at.into()),
            repeat_interval_minutes: interval,
            repeat_count: count,
            ..Default::default()
        };
        self.add_reminder(draft).await
    }

    /// Adds a reminder of Alice and returns its id.
    pub(crate) async fn add_reminder(&self, draft: reminder::ReminderDraft) -> Uuid {
        let reminder = draft.check(&self.clock, &user(), reminder::DEFAULT_TIME).unwrap();
        let id = reminder.id;
        let now = self.clock.now();
        let owner = self.alice;
        let added = self.store.owner_transaction(owner, async move |tx| {
            let mut step = UndoStep::begin(tx, owner).await?;
            store::reminders::create(tx, &mut step, &reminder, now).await
        });
        added.await.unwrap();
        id
    }

    /// Sends a notification to Alice.
    pub(crate) async fn notify(&self, title: &str) -> Notification {
        self.notify_user(NotificationKind::Execution, self.alice, title).await
    }

    pub(crate) async fn notify_user(&self, kind: NotificationKind, owner: UserId, title: &str) -> Notification {
        let notification = Notification::new(&self.clock, kind, title, "details");
        let stored = notification.clone();
        let notifier = self.notifier.clone();
        let written = self.store.transaction(async move |tx| notifier.notify(tx, owner, &stored).await);
        assert!(written.await.unwrap());
        notification
    }

    /// Returns the titles of the notifications of Alice, oldest first.
    pub(crate) async fn titles_received(&self) -> Vec<String> {
        self.notes().await.into_iter().map(|note| note.title).collect()
    }

    pub(crate) async fn notes(&self) -> Vec<Notification> {
        let mut reader = self.store.reader().await.unwrap();
        let rows = store::notifications::list_after(&mut reader, self.alice, 0, 1000).await.unwrap();
        rows.into_iter().map(|row| row.notification).collect()
    }

    /// Returns the number of waiting and failed deliveries of a channel.
    pub(crate) async fn backlog(&self, channel: &str) -> (i64, i64) {
        let mut reader = self.store.reader().await.unwrap();
        let all = store::outbox::channel_backlogs(&mut reader).await.unwrap();
        all.iter().find(|row| row.channel == channel).map_or((0, 0), |row| (row.waiting, row.dead))
    }

    pub(crate) fn counts(&self, channel: &str) -> notify::DeliveryCounts {
        let all = self.notifier.delivery_counts();
        all.into_iter().find(|(name, _)| name == channel).map(|(_, counts)| counts).unwrap_or_default()
    }
}

fn user() -> User {
    User::local(jiff::tz::TimeZone::UTC)
}

/// Waits until the condition is true. Panics after 15 seconds.
pub(crate) async fn until(description: &str, mut condition: impl AsyncFnMut() -> bool) {
    for _ in 0..1500 {
        if condition().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not within 15 seconds: {description}");
}

/// Waits long enough to detect an unexpected event.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(300)).await;
}
