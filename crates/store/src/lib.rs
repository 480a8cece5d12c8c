//! Everything adjutant keeps, in SQLite or PostgreSQL, and every SQL statement there is.
//!
//! A function here takes the connection it works on and the owner, or a step that has one: there is none that fetches a
//! row by its id alone. The exceptions are what an operator does to the whole database ([`backup`], [`housekeeping`],
//! [`agents`]), the list of revoked [`tokens`], what the supervisor and the scheduler do for everyone: [`nodes`], the queue
//! and the events of [`executions`], of which a user is shown only what [`executions::get`] has let through, and the
//! firing of [`schedules`]; and what is told without being asked: [`reminders`] and tasks that are [`due`], and the
//! [`outbox`], for which [`a2a::pushes`] says who is told of tasks next.
//! What [`Store::write`] has answered is on disk.

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
pub mod turns;
pub mod undo;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

pub use conn::Conn;
pub use error::{Error, Result};

use postgres::Postgres;
use sqlite::{Sqlite, Verdict};

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

/// When a write is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Once {
    /// It is kept, whatever happens to the machine.
    OnDisk,
    /// It is kept if the program ends; it will be on disk in a moment, before anything that is written later. For what
    /// nobody is told of before something else was written.
    Committed,
}

/// A cheap handle to the database.
#[derive(Clone, Debug)]
pub struct Store {
    db: Db,
    /// A snapshot lasts as long as its reader takes, so there are few: ordinary requests must not run short.
    snapshots: Arc<Semaphore>,
    /// Counts what was committed here.
    commits: Arc<watch::Sender<u64>>,
}

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

    /// Runs `job` in a transaction and answers once it is on disk. An error of the job leaves nothing behind. A caller
    /// that stops waiting does not stop the job.
    pub async fn write<T, F>(&self, job: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Conn) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        self.write_until(Once::OnDisk, job).await
    }

    /// The same, for one who may not need to wait for the disk. PostgreSQL answers when it is there.
    pub async fn write_until<T, F>(&self, once: Once, job: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Conn) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        match &self.db {
            Db::Postgres(postgres) => {
                let result = postgres.write(job).await;
                if result.is_ok() {
                    self.commits.send_modify(|count| *count += 1);
                }
                result
            }
            Db::Sqlite(sqlite) => {
                let (answer, answered) = oneshot::channel();
                let commits = self.commits.clone();
                sqlite
                    .submit(Box::new(move |conn| {
                        Box::pin(async move {
                            let result = job(conn).await;
                            Verdict {
                                keep: result.is_ok(),
                                once,
                                answer: Box::new(move |committed| {
                                    if result.is_ok() && committed.is_ok() {
                                        commits.send_modify(|count| *count += 1);
                                    }
                                    // A result that was an error was rolled back, whatever became of the others.
                                    let _ = answer.send(result.and_then(|value| committed.map(|()| value)));
                                }),
                            }
                        })
                    }))
                    .await?;
                answered.await.map_err(|_| Error::Unavailable("the write was not carried out".to_owned()))?
            }
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
            let probe = self.write(|conn| Box::pin(tokens::probe(conn)));
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
