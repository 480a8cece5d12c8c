//! The SQLite backend: one file, one writer, several readers.
//!
//! All writes go through one [`writer`]. A commit is visible to readers shortly before it is synced and acknowledged.

mod files;
mod integrity;
mod queue;
mod salvage;
mod writer;

use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use model::UserId;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

pub use self::integrity::check_file;
pub(crate) use self::salvage::{SalvageSource, SalvageTable, SalvagedRow, TableDamage};

use self::files::DatabaseFiles;
use self::integrity::{CheckInterrupt, StartCheck};
use self::queue::{JobSender, job_queue};
use self::writer::{FinishFn, FlushFn, JobOutcome, QueuedJob, Writer, WriterChecks, WriterStop};
use crate::conn::{Conn, DriverConnection};
use crate::fault::StorageHealth;
use crate::quotas::QuotaLedger;
use crate::{Acknowledge, Commits, Durability, Error, Job, Result, Transaction, migrations};

pub(crate) const MAX_READERS: usize = 4;
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of cached statements. The store has fewer.
const STATEMENT_CACHE_SIZE: usize = 128;
/// The number of pages in the WAL before a checkpoint. Most pages change repeatedly, and a checkpoint writes each once.
const CHECKPOINT_PAGES: i64 = 4000;
/// The capacity of the job queue. Callers wait while it is full.
const QUEUE_CAPACITY: usize = 4096;

/// A handle to a SQLite database.
#[derive(Clone, Debug)]
pub(crate) struct Sqlite {
    jobs: JobSender,
    readers: Arc<ReaderPool>,
    quotas: QuotaLedger,
    health: StorageHealth,
    stop: Arc<WriterStop>,
    check: CheckInterrupt,
}

impl Sqlite {
    /// Opens or creates the file in WAL mode, migrates its schema and starts the writer thread. With
    /// [`Durability::Full`] also starts the sync thread. If the last stop was not clean, checks the file on its own thread. Must be called inside a tokio runtime. Fails if the file
    /// cannot be used, a thread cannot be started, the schema is newer, or an applied migration was edited.
    pub(crate) async fn open(
        path: &Path,
        durability: Durability,
        quotas: QuotaLedger,
        health: StorageHealth,
    ) -> Result<Self> {
        let start_check = StartCheck::if_due(path);
        let connection = connect(path, OpenFlags::default())?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        // SQLite syncs the WAL before a checkpoint. The writer syncs it after each commit.
        connection.pragma_update(None, "synchronous", "normal")?;
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        // Deleted data is overwritten with zeros.
        connection.pragma_update(None, "secure_delete", true)?;
        let mut conn = Conn::new(DriverConnection::Sqlite(connection), quotas.clone(), health.clone());
        migrations::sqlite(&mut conn).await?;
        let flush = match durability {
            Durability::Full => Some(wal_flush(path)?),
            Durability::Normal => None,
        };
        let permits = Arc::new(Semaphore::new(MAX_READERS));
        let files = Arc::new(DatabaseFiles::find(path)?);
        let readers = ReaderPool { path: path.to_owned(), files: files.clone(), idle: Mutex::default(), permits };
        let (jobs, queue) = job_queue(QUEUE_CAPACITY);
        let stop = Arc::new(WriterStop::default());
        let checks = WriterChecks { files, health: health.clone(), stop: stop.clone() };
        let writer = Writer::new(Transaction::new(conn), queue, checks, flush).map_err(file_error(path))?;
        let thread = std::thread::Builder::new().name("sqlite-writer".to_owned());
        let runtime = Handle::current();
        let ended = stop.clone();
        let started = thread.spawn(move || {
            // Jobs may read files, and effects may spawn tasks.
            let _runtime = runtime.enter();
            writer.run();
            ended.set_ended();
        });
        started.map_err(file_error(path))?;
        let check = CheckInterrupt::default();
        if let Some(start_check) = start_check {
            start_check.start(health.clone(), check.clone())?;
        }
        Ok(Self { jobs, readers: Arc::new(readers), quotas, health, stop, check })
    }

    /// Queues the job for the writer and returns its value once it is committed or synced, according to `when`. Waits
    /// while the queue is full. Owners take turns in the queue. A queued job runs even if the returned future is dropped. On success, increments
    /// `commits` and runs the effects of the commit. On failure, rolls the job back and runs the effects of the
    /// rollback. Fails with the error of the job, and with [`Error::Unavailable`] if the commit fails, the job panics
    /// or the writer has stopped.
    pub(crate) async fn transaction<T, E, F>(
        &self,
        owner: Option<UserId>,
        when: Acknowledge,
        job: F,
        commits: Commits,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: for<'t> Job<'t, T, E> + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let quotas = self.quotas.clone();
        let queued: QueuedJob = Box::new(move |tx| {
            Box::pin(async move {
                let result = AssertUnwindSafe(job(&mut *tx)).catch_unwind().await;
                let effects = tx.take_effects();
                let counted = tx.take_counted();
                let forget_counts = move || counted.iter().for_each(|owner| quotas.forget(*owner));
                if !matches!(result, Ok(Ok(_))) {
                    forget_counts();
                }
                let Ok(result) = result else {
                    // Dropping `answer` reports the panic to the caller, after the effects have run.
                    let roll_back = move |_| -> FinishFn {
                        drop(effects);
                        Box::new(move || drop(answer))
                    };
                    return JobOutcome { is_kept: false, when, answer: Box::new(roll_back) };
                };
                let is_kept = result.is_ok();
                let answer = move |committed: Result<()>| -> FinishFn {
                    // A failed job was rolled back, regardless of the outcome of the group.
                    let result = result.and_then(|value| committed.map(|()| value).map_err(E::from));
                    if result.is_err() {
                        forget_counts();
                        drop(effects);
                        return Box::new(move || drop(answer.send(result)));
                    }
                    let effects = effects.without_rollback();
                    Box::new(move || {
                        commits.send_modify(|count| *count += 1);
                        effects.committed();
                        drop(answer.send(result));
                    })
                };
                JobOutcome { is_kept, when, answer: Box::new(answer) }
            })
        });
        self.jobs.send(owner, queued).await?;
        answered.await.map_err(|_| self.health.not_executed())?
    }

    /// Returns a connection for reads. Reuses an idle one, or opens a new one and fails if that is not possible. Waits
    /// without a timeout while [`MAX_READERS`] connections are in use. The connection returns to the pool when it is
    /// dropped.
    pub(crate) async fn reader(&self) -> Result<Conn> {
        let permit = self.readers.permits.clone().acquire_owned().await;
        let permit = permit.map_err(|_| Error::Unavailable("the readers have stopped".to_owned()))?;
        let idle = self.readers.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.readers.connect()?,
        };
        let reader = PooledReader { connection: Some(connection), pool: self.readers.clone(), _permit: permit };
        Ok(Conn::new(DriverConnection::SqliteReader(reader), self.quotas.clone(), self.health.clone()))
    }

    /// Returns a separate connection in a read transaction. Dropping the connection ends the transaction.
    pub(crate) async fn snapshot(&self) -> Result<Conn> {
        let mut conn =
            Conn::new(DriverConnection::Sqlite(self.readers.connect()?), self.quotas.clone(), self.health.clone());
        conn.batch("BEGIN").await?;
        Ok(conn)
    }

    /// Fails if the files of the database are not those that were opened.
    pub(crate) fn check_files(&self) -> Result<()> {
        self.readers.files.check()
    }

    /// Lets writes fail that cannot be written to disk now. Without it they are repeated until the disk works again.
    pub(crate) fn stop_retrying(&self) {
        self.stop.give_up();
    }

    /// Ends the writer after the queued jobs. It writes the WAL into the database file before it ends. Blocks until then.
    /// Fails if that takes longer than `timeout`.
    pub(crate) fn close(&self, timeout: Duration) -> Result<()> {
        self.check.interrupt();
        self.readers.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        match self.stop.end(timeout) {
            true => Ok(()),
            false => Err(Error::Unavailable("the database could not be closed in time".to_owned())),
        }
    }

    /// Returns the number of queued jobs.
    pub(crate) fn pending_writes(&self) -> usize {
        self.jobs.len()
    }
}

/// Returns a function that syncs the WAL to disk. The WAL exists while a connection is open. It lies beside the
/// database file, also if `path` is a symbolic link.
fn wal_flush(path: &Path) -> Result<FlushFn> {
    let log = files::wal_path(&path.canonicalize().map_err(file_error(path))?);
    let log = File::open(log).map_err(file_error(path))?;
    Ok(Arc::new(move || log.sync_data()))
}

fn file_error(path: &Path) -> impl FnOnce(std::io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::File { path, source }
}

/// A pool of read-only connections.
#[derive(Debug)]
struct ReaderPool {
    path: PathBuf,
    files: Arc<DatabaseFiles>,
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
}

impl ReaderPool {
    fn connect(&self) -> Result<Connection> {
        // The path may lead to another file by now.
        self.files.check()?;
        connect(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
    }
}

/// Opens a connection with the settings that readers and the writer share. It waits up to [`BUSY_TIMEOUT`] for locks
/// and keeps temporary tables in memory. Fails if the file cannot be opened.
fn connect(path: &Path, flags: OpenFlags) -> Result<Connection> {
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE_SIZE);
    connection.pragma_update(None, "temp_store", "memory")?;
    // Without this option SQLite prepares some statements again for each new value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// A read-only connection that returns to the pool when it is dropped.
#[derive(Debug)]
pub(crate) struct PooledReader {
    /// `None` only while it is dropped.
    connection: Option<Connection>,
    pool: Arc<ReaderPool>,
    _permit: OwnedSemaphorePermit,
}

impl PooledReader {
    /// Returns the connection. Fails if it was returned to the pool.
    pub(crate) fn connection(&mut self) -> Result<&mut Connection> {
        self.connection.as_mut().ok_or_else(|| Error::Unavailable("the connection was returned to the pool".to_owned()))
    }
}

impl Drop for PooledReader {
    fn drop(&mut self) {
        let mut idle = self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.extend(self.connection.take());
    }
}
