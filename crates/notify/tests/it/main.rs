//! Reminders that fire and notifications that arrive, by the loops as they run: over real sockets and processes, on both
//! databases, with a clock that is moved by hand.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod callbacks;
mod channels;
mod command;
mod email;
mod follow;
mod reminders;
mod webhook;

use std::time::Duration;

use model::notification::{Kind, Notification};
use model::task::{Draft, Limits, Task};
use model::{Clock, User, UserId, reminder};
use notify::{Channel, Notifier, Settings, Way};
use store::undo::Step;
use store::{Durability, Location, Store};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// A store, a clock and a user; and the notifier on them.
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
        let url = testkit::postgres::database().await.unwrap();
        Self::open(Location::Postgres(url), tempfile::tempdir().unwrap()).await
    }

    async fn open(location: Location, dir: tempfile::TempDir) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let store = Store::open(&location, Durability::Normal).await.unwrap();
        let clock = Clock::manual("2026-01-10T12:00:00Z".parse().unwrap());
        let notifier = Notifier::new(store.clone(), clock.clone());
        notifier.reload(Settings { notify_due: true, ..Settings::default() });
        let alice = UserId::new(Uuid::from_u128(0xa11ce));
        Self { store, location, clock, alice, notifier, shutdown: CancellationToken::new(), _dir: dir }
    }

    /// The loops begin.
    pub(crate) fn run(&self) {
        self.run_too(self.notifier.clone());
    }

    /// Those of another node, too.
    pub(crate) fn run_too(&self, notifier: Notifier) {
        let shutdown = self.shutdown.clone();
        tokio::spawn(async move { notifier.run(&shutdown).await });
    }

    pub(crate) fn with(&self, ways: impl IntoIterator<Item = (&'static str, Way)>) {
        let channel = |(name, way): (&str, Way)| Channel { name: name.to_owned(), way, kinds: vec![], users: vec![] };
        let channels = ways.into_iter().map(channel).collect();
        self.notifier.reload(Settings { channels, notify_due: true, ..Settings::default() });
    }

    /// The clock goes on, and everybody looks at it.
    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
        self.notifier.wake();
    }

    pub(crate) async fn task(&self, draft: Draft) -> Task {
        let task = draft.check(Limits::default(), &self.clock, &user()).unwrap();
        let stored = task.clone();
        let owner = self.alice;
        let added = self.store.transaction(async move |tx| {
            let mut step = Step::begin(tx, owner).await?;
            store::tasks::create(tx, &mut step, &stored).await
        });
        added.await.unwrap();
        task
    }

    pub(crate) async fn titled(&self, title: &str) -> Task {
        self.task(Draft { title: title.into(), ..Draft::default() }).await
    }

    pub(crate) async fn remind(&self, task: Uuid, at: &str, interval: Option<i64>, count: Option<i64>) -> Uuid {
        let draft = reminder::Draft {
            task_id: task.to_string(),
            remind_at: at.into(),
            repeat_interval_minutes: interval,
            repeat_count: count,
        };
        let reminder = draft.check(&self.clock, &user()).unwrap();
        let id = reminder.id;
        let now = self.clock.now();
        let owner = self.alice;
        let added = self.store.transaction(async move |tx| {
            let mut step = Step::begin(tx, owner).await?;
            store::reminders::create(tx, &mut step, &reminder, now).await
        });
        added.await.unwrap();
        id
    }

    /// Tells Alice something.
    pub(crate) async fn tell(&self, title: &str) -> Notification {
        self.tell_of(Kind::Execution, self.alice, title).await
    }

    pub(crate) async fn tell_of(&self, kind: Kind, owner: UserId, title: &str) -> Notification {
        let notification = Notification::new(&self.clock, kind, title, "what happened");
        let told = notification.clone();
        let notifier = self.notifier.clone();
        let written = self.store.transaction(async move |tx| notifier.tell(tx, owner, &told).await);
        assert!(written.await.unwrap());
        notification
    }

    /// The titles Alice was told, oldest first.
    pub(crate) async fn told(&self) -> Vec<String> {
        self.notes().await.into_iter().map(|note| note.title).collect()
    }

    pub(crate) async fn notes(&self) -> Vec<Notification> {
        let mut reader = self.store.reader().await.unwrap();
        let rows = store::notifications::after(&mut reader, self.alice, 0, 1000).await.unwrap();
        rows.into_iter().map(|row| row.notification).collect()
    }

    /// `waiting` and `dead` of a channel.
    pub(crate) async fn standing(&self, channel: &str) -> (i64, i64) {
        let mut reader = self.store.reader().await.unwrap();
        let all = store::outbox::standing(&mut reader).await.unwrap();
        all.iter().find(|one| one.channel == channel).map_or((0, 0), |one| (one.waiting, one.dead))
    }

    pub(crate) fn counts(&self, channel: &str) -> notify::Deliveries {
        let all = self.notifier.deliveries();
        all.into_iter().find(|(name, _)| name == channel).map(|(_, counts)| counts).unwrap_or_default()
    }
}

fn user() -> User {
    User::local(jiff::tz::TimeZone::UTC)
}

/// Waits until it is so.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..1500 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not within 15 seconds: {what}");
}

/// Long enough for what must not happen.
pub(crate) async fn a_while() {
    tokio::time::sleep(Duration::from_millis(300)).await;
}
