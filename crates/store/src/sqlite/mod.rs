//! SQLite: one file, one writer, several readers.
//!
//! All writes go through one [`writer`]. What it has committed can be read a moment before it is on disk and answered.

mod writer;

use std::ffi::OsString;
use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use self::writer::{Flush, QueuedJob, Verdict, Writer};
use crate::conn::{Conn, Inner};
use crate::{Acknowledge, Commits, Durability, Error, Job, Result, Transaction, migrations};

const READERS: usize = 4;
const BUSY_PATIENCE: Duration = Duration::from_secs(10);
/// More statements than the store has.
const STATEMENTS: usize = 128;
/// Pages in the log before they are written into the file: most are changed again and again, and are written once then.
const LOG: i64 = 4000;
/// Jobs that may wait for the writer before callers wait to hand theirs in.
const QUEUE: usize = 4096;

#[derive(Clone, Debug)]
pub(crate) struct Sqlite {
    jobs: mpsc::Sender<QueuedJob>,
    /// Whether the last group of writes could not be committed.
    failing: Arc<AtomicBool>,
    readers: Arc<Readers>,
}

impl Sqlite {
    /// Opens the file, creating it if it is not there, and brings its schema up to date.
    pub(crate) async fn open(path: &Path, durability: Durability) -> Result<Self> {
        let connection = connect(path, OpenFlags::default())?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        // The log is brought to disk before it is written into the file; before that the writer sees to it.
        connection.pragma_update(None, "synchronous", "normal")?;
        connection.pragma_update(None, "wal_autocheckpoint", LOG)?;
        let mut conn = Conn::new(Inner::Sqlite(connection));
        migrations::sqlite(&mut conn).await?;
        let flush = match durability {
            Durability::Full => Some(flush(path)?),
            Durability::Normal => None,
        };
        let readers =
            Readers { path: path.to_owned(), idle: Mutex::default(), places: Arc::new(Semaphore::new(READERS)) };
        let (jobs, queue) = mpsc::channel(QUEUE);
        let failing = Arc::new(AtomicBool::new(false));
        let writer = Writer::new(Transaction::new(conn), queue, failing.clone(), flush).map_err(file(path))?;
        let thread = std::thread::Builder::new().name("sqlite-writer".to_owned());
        let runtime = Handle::current();
        let started = thread.spawn(move || {
            // For jobs that read a file, and for effects that spawn tasks.
            let _runtime = runtime.enter();
            writer.run();
        });
        started.map_err(file(path))?;
        Ok(Self { jobs, failing, readers: Arc::new(readers) })
    }

    /// Queues the job for the writer and returns its value once it is committed or synced, as `when` says.
    pub(crate) async fn transaction<T, E, F>(&self, when: Acknowledge, job: F, commits: Commits) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: for<'t> Job<'t, T, E> + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let queued: QueuedJob = Box::new(move |tx| {
            Box::pin(async move {
                let result = AssertUnwindSafe(job(&mut *tx)).catch_unwind().await;
                let effects = tx.take_effects();
                let Ok(result) = result else {
                    // The caller learns of the panic when `answer` is dropped, after the effects have run.
                    let roll_back = move |_| {
                        drop(effects);
                        drop(answer);
                    };
                    return Verdict { keep: false, when, answer: Box::new(roll_back) };
                };
                let keep = result.is_ok();
                let answer = move |committed: Result<()>| {
                    // An error of the job was rolled back, whatever became of the rest of the group.
                    let result = result.and_then(|value| committed.map(|()| value).map_err(E::from));
                    match &result {
                        Ok(_) => {
                            commits.send_modify(|count| *count += 1);
                            effects.committed();
                        }
                        Err(_) => drop(effects),
                    }
                    let _ = answer.send(result);
                };
                Verdict { keep, when, answer: Box::new(answer) }
            })
        });
        self.jobs.send(queued).await.map_err(|_| Error::Unavailable("the writer has stopped".to_owned()))?;
        answered.await.map_err(|_| Error::Unavailable("the write was not carried out".to_owned()))?
    }

    pub(crate) async fn reader(&self) -> Result<Conn> {
        let place = self.readers.places.clone().acquire_owned().await;
        let place = place.map_err(|_| Error::Unavailable("the readers have stopped".to_owned()))?;
        let idle = self.readers.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.readers.connect()?,
        };
        let reader = Reader { connection: Some(connection), home: self.readers.clone(), _place: place };
        Ok(Conn::new(Inner::SqliteReader(reader)))
    }

    /// On a connection of its own, whose end is the end of the transaction.
    pub(crate) async fn snapshot(&self) -> Result<Conn> {
        let mut conn = Conn::new(Inner::Sqlite(self.readers.connect()?));
        conn.batch("BEGIN").await?;
        Ok(conn)
    }

    pub(crate) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    /// How many jobs wait for the writer.
    pub(crate) fn waiting(&self) -> usize {
        self.jobs.max_capacity() - self.jobs.capacity()
    }
}

/// Brings the log of this file to disk. The log is there as long as somebody has the file open, beside the file itself
/// where the path is a link.
fn flush(path: &Path) -> Result<Flush> {
    let mut log = OsString::from(path.canonicalize().map_err(file(path))?);
    log.push("-wal");
    let log = File::open(Path::new(&log)).map_err(file(path))?;
    Ok(Arc::new(move || log.sync_data()))
}

fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::File { path, source }
}

/// Connections to read with.
#[derive(Debug)]
struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    places: Arc<Semaphore>,
}

impl Readers {
    fn connect(&self) -> Result<Connection> {
        connect(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
    }
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection> {
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "temp_store", "memory")?;
    // Statements would be prepared again, some every time, because another value might make for a better plan.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// A connection that goes back to the others when it is dropped.
#[derive(Debug)]
pub(crate) struct Reader {
    /// There until it is dropped.
    connection: Option<Connection>,
    home: Arc<Readers>,
    _place: OwnedSemaphorePermit,
}

impl Reader {
    pub(crate) fn connection(&mut self) -> Result<&mut Connection> {
        self.connection.as_mut().ok_or_else(|| Error::Unavailable("the connection was given back".to_owned()))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut idle = self.home.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.extend(self.connection.take());
    }
}
