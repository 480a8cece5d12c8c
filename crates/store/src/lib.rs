//! Everything adjutant keeps, in SQLite or PostgreSQL, and every SQL statement there is.
//!
//! A function here takes the connection it works on and the owner, or a step that has one: there is none that fetches a
//! row by its id alone. The exceptions are what an operator does to the whole database ([`backup`], [`housekeeping`],
//! [`agents`]), the list of revoked [`tokens`], what the supervisor and the scheduler do for everyone: [`nodes`], the queue
//! and the events of [`executions`], of which a user is shown only what [`executions::get`] has let through, and the
//! firing of [`schedules`]; and what is told without being asked: [`reminders`] and tasks that are [`due`], and the
//! [`outbox`], for which [`a2a::pushes`] says who is told of tasks next.
//! A transaction that [`Store::transaction`] has acknowledged is on disk.

pub mod a2a;
pub mod agents;
pub mod backup;
mod conn;
pub mod conversations;
pub mod data;
pub mod due;
mod error;
pub mod executions;
pub mod hints;
pub mod housekeeping;
pub mod idempotency;
pub mod lock;
mod migrations;
pub mod nodes;
pub mod notifications;
pub mod outbox;
pub mod page;
mod places;
mod postgres;
pub mod recurring;
pub mod reminders;
pub mod schedules;
pub mod sessions;
mod sqlite;
pub mod tasks;
pub mod tokens;
mod transaction;
pub mod turns;
pub mod undo;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

pub use conn::Conn;
pub use error::{Error, Result};
pub use transaction::{Job, Transaction};

use postgres::Postgres;
use sqlite::Sqlite;

/// Where the data is.
#[derive(Clone, Debug)]
pub enum Location {
    /// A file; created where it is missing.
    Sqlite(PathBuf),
    /// A `postgres://` URL.
    Postgres(String),
}

/// What SQLite does before a write is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Waits for the disk: survives a power cut.
    #[default]
    Full,
    /// Leaves it to the operating system: survives a crash of the program, not of the machine.
    Normal,
}

/// When [`Store::transaction_acknowledged`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledge {
    /// When the transaction is on disk: it survives a power cut.
    Synced,
    /// When SQLite has committed it: it survives the end of the program, and reaches the disk before any later
    /// transaction. Only for a caller that reports nothing before a later transaction is acknowledged.
    Committed,
}

/// A cheap handle to the database.
#[derive(Clone, Debug)]
pub struct Store {
    db: Db,
    /// A snapshot lasts as long as its reader takes, so there are few: ordinary requests must not run short.
    snapshots: Arc<Semaphore>,
    commits: Commits,
}

/// Counts the transactions that this process has committed.
type Commits = Arc<watch::Sender<u64>>;

const SNAPSHOTS: usize = 2;
const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(10);
const PROBE_PATIENCE: Duration = Duration::from_secs(2);

/// A connection that sees the database as it was when it was taken.
#[derive(Debug)]
pub struct Snapshot {
    conn: Conn,
    _place: OwnedSemaphorePermit,
}

impl std::ops::Deref for Snapshot {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &self.conn
    }
}

impl std::ops::DerefMut for Snapshot {
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
    /// Connects and brings the schema up to date; refuses a schema newer than this program.
    pub async fn open(location: &Location, durability: Durability) -> Result<Self> {
        let db = match location {
            Location::Sqlite(path) => Db::Sqlite(Sqlite::open(path, durability).await?),
            Location::Postgres(url) => Db::Postgres(Box::new(Postgres::open(url).await?)),
        };
        Ok(Self { db, snapshots: Arc::new(Semaphore::new(SNAPSHOTS)), commits: Arc::default() })
    }

    /// Runs `job` in a transaction and returns its value once that is on disk.
    ///
    /// An error of the job rolls the transaction back and is returned as it is. A caller that stops waiting does not stop
    /// the job. The effects that the job has registered run before this returns.
    pub async fn transaction<T, E, F>(&self, job: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: AsyncFnOnce(&mut Transaction) -> Result<T, E> + for<'t> Job<'t, T, E> + 'static,
    {
        self.transaction_acknowledged(Acknowledge::Synced, job).await
    }

    /// Like [`Store::transaction`], for a caller that may not need to wait for the disk. PostgreSQL always does.
    pub async fn transaction_acknowledged<T, E, F>(&self, when: Acknowledge, job: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: AsyncFnOnce(&mut Transaction) -> Result<T, E> + for<'t> Job<'t, T, E> + 'static,
    {
        match &self.db {
            Db::Postgres(postgres) => postgres.transaction(job, self.commits.clone()).await,
            Db::Sqlite(sqlite) => sqlite.transaction(when, job, self.commits.clone()).await,
        }
    }

    /// Changes whenever something was committed through this handle or a copy of it: whoever waits for something in the
    /// database looks again. What another node writes is not heard of here.
    pub fn commits(&self) -> watch::Receiver<u64> {
        self.commits.subscribe()
    }

    /// A connection for one request's reads.
    pub async fn reader(&self) -> Result<Conn> {
        match &self.db {
            Db::Sqlite(sqlite) => sqlite.reader().await,
            Db::Postgres(postgres) => postgres.reader().await,
        }
    }

    /// The database as it is now, whatever is written meanwhile.
    pub async fn snapshot(&self) -> Result<Snapshot> {
        let place = tokio::time::timeout(SNAPSHOT_PATIENCE, self.snapshots.clone().acquire_owned()).await;
        let Ok(Ok(place)) = place else {
            return Err(Error::Unavailable("too many backups and exports at once".to_owned()));
        };
        let conn = match &self.db {
            Db::Sqlite(sqlite) => sqlite.snapshot().await,
            Db::Postgres(postgres) => postgres.snapshot().await,
        }?;
        Ok(Snapshot { conn, _place: place })
    }

    /// Whether the database can be read, and written if the last write failed.
    pub async fn ping(&self) -> Result<()> {
        if let Db::Sqlite(sqlite) = &self.db
            && sqlite.is_failing()
        {
            let probe = self.transaction(async |tx| tokens::probe(tx).await);
            let probed = tokio::time::timeout(PROBE_PATIENCE, probe).await;
            probed.map_err(|_| Error::Unavailable("the disk takes nothing".to_owned()))??;
        }
        self.reader().await?.first(("SELECT 1", [])).await.map(drop)
    }

    /// `sqlite` or `postgres`.
    pub fn kind(&self) -> &'static str {
        match &self.db {
            Db::Sqlite(_) => "sqlite",
            Db::Postgres(_) => "postgres",
        }
    }

    /// Whether other nodes may work on the same data.
    pub fn is_shared(&self) -> bool {
        matches!(self.db, Db::Postgres(_))
    }

    pub(crate) fn postgres(&self) -> Option<&Postgres> {
        match &self.db {
            Db::Postgres(postgres) => Some(postgres),
            Db::Sqlite(_) => None,
        }
    }

    /// How many writes wait to be carried out.
    pub fn waiting_writes(&self) -> usize {
        match &self.db {
            Db::Sqlite(sqlite) => sqlite.waiting(),
            Db::Postgres(postgres) => postgres.waiting(),
        }
    }
}
