//! The storage layer: all SQL statements of adjutant, for SQLite and PostgreSQL.
//!
//! Every function takes a connection and the owner of the rows, or an undo step that contains the owner. No function
//! reads a user's row by its id alone, with these exceptions:
//!
//! - operator functions that work on the whole database: [`backup`], [`housekeeping`], [`agents`], [`tokens`], [`audit`],
//!   [`stop_state`];
//! - functions of the supervisor and the scheduler, which work for all users: [`nodes`], the queue and the events of
//!   [`executions`], and the firing of [`schedules`]. A handler calls [`executions::get`] to check access first;
//! - functions of the notifier, which work for all users: due [`reminders`], [`due`] tasks, the [`outbox`] and
//!   [`a2a::pushes`].
//!
//! Every function fails if the database fails. The documentation of a function lists only its other failures.
//! A transaction that [`Store::transaction`] has acknowledged is on disk, except with [`Durability::Normal`].

pub mod a2a;
pub mod agents;
pub mod audit;
pub mod backup;
pub mod clock_steps;
mod conn;
pub mod conversations;
pub mod data;
pub mod due;
mod error;
pub mod executions;
mod fault;
pub mod hints;
pub mod housekeeping;
pub mod idempotency;
pub mod lock;
mod migrations;
pub mod nodes;
pub mod notifications;
pub mod outbox;
mod owner_limits;
pub mod page;
pub mod permissions;
mod postgres;
mod quotas;
pub mod recurring;
pub mod reminders;
pub mod schedules;
pub mod sessions;
mod slots;
mod sqlite;
pub mod stop_state;
pub mod task_index;
mod task_sort;
pub mod tasks;
pub mod tokens;
mod transaction;
pub mod turns;
pub mod undo;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::UserId;
use model::quota::Quotas;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

pub use conn::Conn;
pub use error::{Error, Result};
pub use fault::StorageFault;
pub use postgres::{Pooler, PostgresSettings};
pub use sqlite::check_file;
pub use transaction::{Job, Transaction};

use fault::StorageHealth;
use owner_limits::OwnerLimits;
use postgres::Postgres;
use quotas::QuotaLedger;
use sqlite::Sqlite;

/// The location of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A file. It is created if it does not exist.
    Sqlite(PathBuf),
    Postgres(PostgresSettings),
}

impl Location {
    /// Returns the PostgreSQL database of this URL with default settings.
    pub fn postgres(url: impl Into<String>) -> Self {
        Self::Postgres(PostgresSettings::new(url))
    }
}

/// The durability of writes to SQLite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Syncs to disk before a write is acknowledged. Writes survive a power failure.
    #[default]
    Full,
    /// Leaves the sync to the operating system. Writes survive a crash of the program, but not of the machine.
    Normal,
}

/// When [`Store::owner_transaction_acknowledged`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledge {
    /// When the transaction is on disk. It survives a power failure.
    Synced,
    /// When SQLite has committed the transaction. It survives the end of the program and reaches the disk before any
    /// later transaction. Only for a caller that reports nothing until a later transaction is acknowledged.
    Committed,
}

/// A cheap handle to the database.
#[derive(Clone, Debug)]
pub struct Store {
    db: Db,
    /// Limits the number of snapshots. A snapshot may live long, and ordinary requests need connections too.
    snapshots: Arc<Semaphore>,
    commits: Commits,
    quotas: QuotaLedger,
    health: StorageHealth,
    /// Limits the connections with which each user reads.
    reads: OwnerLimits,
}

/// Counts the transactions that this process has committed.
type Commits = Arc<watch::Sender<u64>>;

const MAX_SNAPSHOTS: usize = 2;
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(10);
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection that sees the database as it was when the snapshot was created.
#[derive(Debug)]
pub struct StoreSnapshot {
    conn: Conn,
    _permit: OwnedSemaphorePermit,
}

impl std::ops::Deref for StoreSnapshot {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &self.conn
    }
}

impl std::ops::DerefMut for StoreSnapshot {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.conn
    }
}

#[derive(Clone, Debug)]
enum Db {
    Sqlite(Sqlite),
    Postgres(Box<Postgres>),
}

impl Store {
    /// Connects and migrates the schema. Fails with [`Error::NewerSchema`] if a newer version has written the database.
    pub async fn open(location: &Location, durability: Durability) -> Result<Self> {
        let quotas = QuotaLedger::default();
        let health = StorageHealth::default();
        let db = match location {
            Location::Sqlite(path) => Db::Sqlite(Sqlite::open(path, durability, quotas.clone(), health.clone()).await?),
            Location::Postgres(settings) => {
                Db::Postgres(Box::new(Postgres::open(settings, quotas.clone(), health.clone()).await?))
            }
        };
        let reads = match &db {
            Db::Sqlite(_) => sqlite::MAX_READERS - 1,
            Db::Postgres(postgres) => postgres.reads_per_owner(),
        };
        Ok(Self {
            db,
            snapshots: Arc::new(Semaphore::new(MAX_SNAPSHOTS)),
            commits: Arc::default(),
            quotas,
            health,
            reads: OwnerLimits::new(reads),
        })
    }

    /// Sets the quotas of users for all later transactions of this process. Without a call there are no limits.
    pub fn set_quotas(&self, quotas: Quotas) {
        self.quotas.set(quotas);
    }

    /// Sets the time of day of reminders for a day, for all later transactions of this process. Without a call it is
    /// [`model::reminder::DEFAULT_TIME`].
    pub fn set_reminder_time(&self, time: jiff::civil::Time) {
        self.quotas.set_reminder_time(time);
    }

    /// Returns the time of day of reminders for a day.
    pub fn reminder_time(&self) -> jiff::civil::Time {
        self.quotas.reminder_time()
    }

    /// Returns how often this process has counted the rows of a user for a quota.
    pub fn quota_counts(&self) -> u64 {
        self.quotas.counts()
    }

    /// Runs `job` in a transaction and returns its value once the transaction is on disk. With [`Durability::Normal`],
    /// SQLite returns it after the commit. Use it for work of the program. A job that changes data of one user belongs into
    /// [`Store::owner_transaction`].
    ///
    /// An error of the job rolls the transaction back and is returned unchanged. Dropping the returned future does not
    /// stop the job. The effects that the job has registered run before this function returns.
    pub async fn transaction<T, E, F>(&self, job: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: AsyncFnOnce(&mut Transaction) -> Result<T, E> + for<'t> Job<'t, T, E> + 'static,
    {
        self.run_job(None, Acknowledge::Synced, job).await
    }

    /// Like [`Store::transaction`], for a job that changes data of this user. Transactions of one user wait for each other
    /// without a connection. On PostgreSQL the transaction holds the lock of the owner from its start. Also fails with
    /// [`Error::Unavailable`] if the turn of the transaction does not come in time.
    pub async fn owner_transaction<T, E, F>(&self, owner: UserId, job: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: AsyncFnOnce(&mut Transaction) -> Result<T, E> + for<'t> Job<'t, T, E> + 'static,
    {
        self.run_job(Some(owner), Acknowledge::Synced, job).await
    }

    /// Like [`Store::owner_transaction`], but returns at the time that `when` names. PostgreSQL always waits for the disk.
    pub async fn owner_transaction_acknowledged<T, E, F>(
        &self,
        owner: UserId,
        when: Acknowledge,
        job: F,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: AsyncFnOnce(&mut Transaction) -> Result<T, E> + for<'t> Job<'t, T, E> + 'static,
    {
        self.run_job(Some(owner), when, job).await
    }

    async fn run_job<T, E, F>(&self, owner: Option<UserId>, when: Acknowledge, job: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: for<'t> Job<'t, T, E> + 'static,
    {
        // The futures of PostgreSQL are boxed because they are large.
        match &self.db {
            Db::Postgres(postgres) => Box::pin(postgres.transaction(owner, job, self.commits.clone())).await,
            Db::Sqlite(sqlite) => sqlite.transaction(owner, when, job, self.commits.clone()).await,
        }
    }

    /// Returns a counter that changes after each commit through this handle or a clone of it. Commits of other nodes do
    /// not change it.
    pub fn commits(&self) -> watch::Receiver<u64> {
        self.commits.subscribe()
    }

    /// Returns a connection for reads of one user. Waits while this user reads with too many connections.
    pub async fn owner_reader(&self, owner: UserId) -> Result<Conn> {
        let slot = self.reads.acquire(owner).await;
        Ok(self.reader().await?.with_slot(slot))
    }

    /// Returns a connection for reads of the program. SQLite waits until one is free. PostgreSQL fails if none becomes
    /// available in time.
    pub async fn reader(&self) -> Result<Conn> {
        match &self.db {
            Db::Sqlite(sqlite) => sqlite.reader().await,
            Db::Postgres(postgres) => Box::pin(postgres.reader()).await,
        }
    }

    /// Returns a connection that sees the current state of the database and no later writes. At most two snapshots can
    /// be open. Fails with [`Error::Unavailable`] if two are open and none is closed within ten seconds. Also fails if
    /// no connection can be opened.
    pub async fn snapshot(&self) -> Result<StoreSnapshot> {
        let permit = tokio::time::timeout(SNAPSHOT_TIMEOUT, self.snapshots.clone().acquire_owned()).await;
        let Ok(Ok(permit)) = permit else {
            return Err(Error::Unavailable("too many backups and exports are running; try again later".to_owned()));
        };
        let conn = match &self.db {
            Db::Sqlite(sqlite) => sqlite.snapshot().await,
            Db::Postgres(postgres) => Box::pin(postgres.snapshot()).await,
        }?;
        Ok(StoreSnapshot { conn, _permit: permit })
    }

    /// Checks that the database can be used, and fails with the reason if it cannot: its files must be those that were
    /// opened, its schema must have the version of this program, and it must not be known to be damaged. If the last write
    /// has failed, first makes a test write.
    pub async fn ping(&self) -> Result<()> {
        if let Db::Sqlite(sqlite) = &self.db {
            sqlite.check_files()?;
        }
        if self.health.is_damaged() {
            return Err(Error::Storage(StorageFault::Damaged));
        }
        if self.health.has_failed() {
            self.test_write().await?;
        }
        let version = migrations::applied_version(&mut self.health_reader().await?).await?;
        if version == migrations::VERSION { Ok(()) } else { Err(Error::Storage(StorageFault::WrongSchema)) }
    }

    /// Returns a connection for health checks. On PostgreSQL it is outside of the pool, so that it is available while all
    /// other connections are in use.
    pub async fn health_reader(&self) -> Result<Conn> {
        match &self.db {
            Db::Sqlite(sqlite) => sqlite.reader().await,
            Db::Postgres(postgres) => Box::pin(postgres.health_reader()).await,
        }
    }

    /// Writes a test row and records the outcome for [`Store::ping`]. Fails with [`Error::Unavailable`] if that takes more
    /// than two seconds, or with the error of the write.
    pub async fn test_write(&self) -> Result<()> {
        let write = async {
            match &self.db {
                Db::Sqlite(_) => self.transaction(async |tx| tokens::write_probe(tx).await).await,
                // Outside of the pool, which may be in use.
                Db::Postgres(_) => tokens::write_probe(&mut self.health_reader().await?).await,
            }
        };
        let written = match tokio::time::timeout(PROBE_TIMEOUT, write).await {
            Ok(written) => written,
            Err(_) => Err(Error::Unavailable("a test write did not finish in time".to_owned())),
        };
        match &written {
            Ok(()) => self.health.succeed(),
            Err(error) => self.health.fail(error),
        }
        written
    }

    /// Lets writes fail that cannot be written to disk now. Call it when the program is asked to stop. Without it, SQLite
    /// repeats them until the disk works again.
    pub fn stop_retrying(&self) {
        if let Db::Sqlite(sqlite) = &self.db {
            sqlite.stop_retrying();
        }
    }

    /// Closes a SQLite database: runs the queued writes, then writes the WAL into the database file, so that this file alone
    /// is complete. Later writes fail. Blocks the thread. Fails if that takes longer than `timeout`. Does nothing with
    /// PostgreSQL.
    pub fn close(&self, timeout: Duration) -> Result<()> {
        match &self.db {
            Db::Sqlite(sqlite) => sqlite.close(timeout),
            Db::Postgres(_) => Ok(()),
        }
    }

    /// Returns `sqlite` or `postgres`.
    pub fn kind(&self) -> &'static str {
        match &self.db {
            Db::Sqlite(_) => "sqlite",
            Db::Postgres(_) => "postgres",
        }
    }

    /// Returns true if other nodes may use the same database.
    pub fn is_shared(&self) -> bool {
        matches!(self.db, Db::Postgres(_))
    }

    /// Returns the PostgreSQL backend, or `None` with SQLite.
    pub(crate) fn postgres(&self) -> Option<&Postgres> {
        match &self.db {
            Db::Postgres(postgres) => Some(postgres),
            Db::Sqlite(_) => None,
        }
    }

    /// Returns the number of writes in the queue of SQLite, or of writes in progress with PostgreSQL.
    pub fn waiting_writes(&self) -> usize {
        match &self.db {
            Db::Sqlite(sqlite) => sqlite.pending_writes(),
            Db::Postgres(postgres) => postgres.pending_writes(),
        }
    }
}
