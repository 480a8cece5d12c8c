//! The conformance suite: all functions of the store, on SQLite and on PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod a2a;
mod agents;
mod audit;
mod backup;
mod bench_executions;
mod clock_steps;
mod concurrency;
mod conflicts;
mod conversations;
mod data;
mod due;
mod executions;
mod fairness;
mod hints;
mod housekeeping;
mod idempotency;
mod migrations;
mod nodes;
mod notifications;
mod outbox;
mod pooler;
mod pushes;
mod queue;
mod quotas;
mod recurring;
mod reminders;
mod round_trips;
mod schedules;
mod sessions;
mod stop_state;
mod storage_faults;
mod tasks;
mod tokens;
mod transactions;
mod turns;
mod undo;

use futures::future::BoxFuture;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use model::task::{Task, TaskChange, TaskDraft, TaskLimits};
use model::{Clock, User, UserId};
use store::undo::UndoStep;
use store::{Durability, Job, Location, Store, Transaction};
use uuid::Uuid;

/// An empty store, two users and a manual clock.
pub struct Bench {
    pub store: Store,
    pub location: Location,
    pub alice: UserId,
    pub bob: UserId,
    pub clock: Clock,
    _dir: tempfile::TempDir,
}

impl Bench {
    pub async fn sqlite() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let location = Location::Sqlite(dir.path().join("adjutant.db"));
        Self::open(location, dir).await
    }

    pub async fn postgres() -> Self {
        let url = testkit::postgres::create_database().await.unwrap();
        Self::open(Location::postgres(url), tempfile::tempdir().unwrap()).await
    }

    async fn open(location: Location, dir: tempfile::TempDir) -> Self {
        let store = Store::open(&location, Durability::Normal).await.unwrap();
        let clock = Clock::manual("2026-01-10T12:00:00Z".parse().unwrap());
        let user = |n| UserId::new(Uuid::from_u128(n));
        Self { store, location, alice: user(0xa11ce), bob: user(0xb0b), clock, _dir: dir }
    }

    pub fn dir(&self) -> &std::path::Path {
        self._dir.path()
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns a checked task that is not stored yet.
    pub fn draft(&self, draft: TaskDraft) -> Task {
        let user = User::local(TimeZone::get("Europe/Berlin").unwrap());
        draft.check(TaskLimits::default(), &self.clock, &user).unwrap()
    }

    pub fn titled(&self, title: &str) -> Task {
        self.draft(TaskDraft { title: title.to_owned(), ..TaskDraft::default() })
    }

    /// Stores a task of `owner`, one second after the previous one.
    pub async fn add(&self, owner: UserId, task: Task) -> Task {
        self.clock.advance(std::time::Duration::from_secs(1));
        let stored = task.clone();
        self.change(owner, |tx, step| Box::pin(async move { store::tasks::create(tx, step, &stored).await }))
            .await
            .unwrap();
        task
    }

    /// Runs `work` as one undo step.
    pub async fn change<T, F>(&self, owner: UserId, work: F) -> store::Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut store::Conn, &'c mut UndoStep) -> BoxFuture<'c, store::Result<T>> + Send + 'static,
    {
        self.store
            .owner_transaction(owner, async move |tx| {
                let mut step = UndoStep::begin(tx, owner).await?;
                work(tx, &mut step).await
            })
            .await
    }

    pub async fn complete(&self, owner: UserId, id: Uuid) -> store::Result<Task> {
        let now = self.now();
        self.change(owner, move |tx, step| {
            Box::pin(async move { store::tasks::change(tx, step, id, &TaskChange::complete(), now).await })
        })
        .await
    }

    pub async fn delete(&self, owner: UserId, id: Uuid) -> store::Result<Task> {
        self.change(owner, move |tx, step| Box::pin(async move { store::tasks::delete(tx, step, id).await })).await
    }

    pub async fn titles(&self, owner: UserId) -> Vec<String> {
        let mut reader = self.store.reader().await.unwrap();
        let page =
            store::tasks::list(&mut reader, owner, &model::task::TaskFilter::default(), None, 200).await.unwrap();
        page.rows.into_iter().map(|task| task.title).collect()
    }

    /// Runs a counting query on a separate connection.
    pub async fn count(&self, sql: &'static str) -> i64 {
        match &self.location {
            Location::Sqlite(path) => {
                rusqlite::Connection::open(path).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
            }
            Location::Postgres(settings) => {
                let mut conn = <sqlx::PgConnection as sqlx::Connection>::connect(&settings.url).await.unwrap();
                sqlx::query_scalar(sql).fetch_one(&mut conn).await.unwrap()
            }
        }
    }

    /// Runs a job of the program, or of a user if it does not lock the data of the user.
    pub async fn transaction<T, F>(&self, job: F) -> store::Result<T>
    where
        T: Send + 'static,
        F: AsyncFnOnce(&mut Transaction) -> store::Result<T> + for<'t> Job<'t, T, store::Error> + 'static,
    {
        self.store.transaction(job).await
    }
}

/// `write!(bench, tx => expression)` runs one expression in a transaction. `write!(bench, owner, tx => expression)` runs
/// it in a transaction of this user.
#[macro_export]
macro_rules! write {
    ($bench:expr, $owner:expr, $tx:ident => $work:expr) => {
        $bench.store.owner_transaction($owner, async move |$tx| $work.await).await
    };
    ($bench:expr, $tx:ident => $work:expr) => {
        $bench.transaction(async move |$tx| $work.await).await
    };
}

/// Turns `async fn name(bench: Bench)` into a test on each database.
#[macro_export]
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod sqlite { $( #[tokio::test] async fn $name() { super::$name($crate::Bench::sqlite().await).await } )* }
        $crate::on_postgres!($($name),*);
    };
}

/// Turns `async fn name(bench: Bench)` into a test on PostgreSQL. `scripts/check fast` leaves out every test with
/// `postgres` in its path, so a test that needs the server must have it there.
#[macro_export]
macro_rules! on_postgres {
    ($($name:ident),* $(,)?) => {
        mod postgres { $( #[tokio::test] async fn $name() { super::$name($crate::Bench::postgres().await).await } )* }
    };
}
