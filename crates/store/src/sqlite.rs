//! SQLite: one file, one writer, several readers.
//!
//! All writes go through one task that puts whatever is waiting into one transaction (group commit) and answers only
//! after the commit is on disk. Each job has its own savepoint: one that fails takes nothing of the others with it.

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use sqlx::ConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous};
use tokio::sync::mpsc;

use crate::conn::{Conn, Inner};
use crate::{Durability, Error, Result};

const READERS: u32 = 4;
const MAX_GROUP: usize = 256;
/// Jobs that may wait for the writer before callers wait to hand theirs in.
const QUEUE: usize = 4096;

#[derive(Clone, Debug)]
pub(crate) struct Sqlite {
    jobs: mpsc::Sender<Job>,
    readers: SqlitePool,
}

/// Does its work inside the transaction and says what to do once it is known whether that was committed.
pub(crate) type Job = Box<dyn for<'c> FnOnce(&'c mut Conn) -> BoxFuture<'c, Verdict> + Send>;

pub(crate) struct Verdict {
    pub(crate) keep: bool,
    pub(crate) answer: Box<dyn FnOnce(Result<()>) + Send>,
}

impl Sqlite {
    /// Opens the file, creating it if it is not there.
    pub(crate) async fn open(path: &Path, durability: Durability) -> Result<Self> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(match durability {
                Durability::Full => SqliteSynchronous::Full,
                Durability::Normal => SqliteSynchronous::Normal,
            })
            .busy_timeout(Duration::from_secs(10))
            .pragma("temp_store", "memory")
            .disable_statement_logging();
        let writer = options.connect().await?;
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .test_before_acquire(false)
            .acquire_timeout(Duration::from_secs(10))
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_lazy_with(options.read_only(true).create_if_missing(false).pragma("query_only", "on"));
        let (jobs, queue) = mpsc::channel(QUEUE);
        tokio::spawn(write_all(Conn(Inner::SqliteWriter(writer)), queue));
        Ok(Self { jobs, readers })
    }

    pub(crate) async fn submit(&self, job: Job) -> Result<()> {
        self.jobs.send(job).await.map_err(|_| Error::Unavailable("the writer has stopped".to_owned()))
    }

    pub(crate) async fn reader(&self) -> Result<Conn> {
        Ok(Conn(Inner::SqliteReader(self.readers.acquire().await?)))
    }

    pub(crate) async fn snapshot(&self) -> Result<Conn> {
        Ok(Conn(Inner::SqliteTx(self.readers.begin().await?)))
    }

    /// How many jobs wait for the writer.
    pub(crate) fn waiting(&self) -> usize {
        self.jobs.max_capacity() - self.jobs.capacity()
    }
}

/// The writer: ends when every handle to the store is gone and the queue is empty.
async fn write_all(mut conn: Conn, mut queue: mpsc::Receiver<Job>) {
    let mut group = Vec::with_capacity(MAX_GROUP);
    while queue.recv_many(&mut group, MAX_GROUP).await > 0 {
        write_group(&mut conn, &mut group).await;
    }
}

async fn write_group(conn: &mut Conn, group: &mut Vec<Job>) {
    let begun = conn.batch("BEGIN IMMEDIATE; SAVEPOINT job").await;
    let mut answers = Vec::with_capacity(group.len());
    let mut failed = begun.err();
    for job in group.drain(..) {
        if failed.is_some() {
            // Dropping the job tells its caller that the store is unavailable.
            continue;
        }
        // A panic in one job must not end the writer that all others depend on.
        let verdict = AssertUnwindSafe(job(conn)).catch_unwind().await;
        let keep = verdict.as_ref().is_ok_and(|verdict| verdict.keep);
        if let Ok(verdict) = verdict {
            answers.push(verdict.answer);
        }
        let next = if keep { "RELEASE job; SAVEPOINT job" } else { "ROLLBACK TO job" };
        failed = conn.batch(next).await.err();
    }
    if failed.is_none() {
        failed = conn.batch("RELEASE job; COMMIT").await.err();
    }
    if let Some(error) = &failed {
        tracing::error!(error = %error, "a group of writes was not committed");
        // Leaves no transaction open; fails, harmlessly, where the failure has already ended it.
        let _ = conn.batch("ROLLBACK").await;
    }
    for answer in answers {
        answer(match &failed {
            None => Ok(()),
            Some(error) => Err(Error::Unavailable(error.to_string())),
        });
    }
}
