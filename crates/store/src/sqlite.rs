//! SQLite: one file, one writer, several readers.
//!
//! All writes go through one thread that puts whatever is waiting, or comes while that is carried out, into one transaction
//! (group commit) and answers only after the commit is on disk. A job that fails takes nothing of the others with it: the first of a transaction is the
//! whole of it and can be rolled back as such, each one after it has a savepoint, which costs a copy of every page it changes.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::executor::block_on;
use futures::future::BoxFuture;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::conn::{Conn, Inner};
use crate::{Durability, Error, Result, migrations};

const READERS: usize = 4;
const BUSY_PATIENCE: Duration = Duration::from_secs(10);
/// More statements than the store has.
const STATEMENTS: usize = 128;
const MAX_GROUP: usize = 256;
/// Jobs that may wait for the writer before callers wait to hand theirs in.
const QUEUE: usize = 4096;

#[derive(Clone, Debug)]
pub(crate) struct Sqlite {
    jobs: mpsc::Sender<Job>,
    /// Whether the last group of writes could not be committed.
    failing: Arc<AtomicBool>,
    readers: Arc<Readers>,
}

/// Does its work inside the transaction and says what to do once it is known whether that was committed.
pub(crate) type Job = Box<dyn for<'c> FnOnce(&'c mut Conn) -> BoxFuture<'c, Verdict> + Send>;

pub(crate) struct Verdict {
    pub(crate) keep: bool,
    pub(crate) answer: Box<dyn FnOnce(Result<()>) + Send>,
}

impl Sqlite {
    /// Opens the file, creating it if it is not there, and brings its schema up to date.
    pub(crate) async fn open(path: &Path, durability: Durability) -> Result<Self> {
        let connection = connect(path, OpenFlags::default())?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        let synchronous = match durability {
            Durability::Full => "full",
            Durability::Normal => "normal",
        };
        connection.pragma_update(None, "synchronous", synchronous)?;
        let mut writer = Conn::new(Inner::Sqlite(connection));
        migrations::sqlite(&mut writer).await?;
        let readers =
            Readers { path: path.to_owned(), idle: Mutex::default(), places: Arc::new(Semaphore::new(READERS)) };
        let (jobs, queue) = mpsc::channel(QUEUE);
        let failing = Arc::new(AtomicBool::new(false));
        let (failed, runtime) = (failing.clone(), Handle::current());
        let thread = std::thread::Builder::new().name("sqlite-writer".to_owned());
        let started = thread.spawn(move || {
            // For the job that reads a file.
            let _runtime = runtime.enter();
            write_all(writer, queue, &failed);
        });
        started.map_err(|source| Error::File { path: path.to_owned(), source })?;
        Ok(Self { jobs, failing, readers: Arc::new(readers) })
    }

    pub(crate) async fn submit(&self, job: Job) -> Result<()> {
        self.jobs.send(job).await.map_err(|_| Error::Unavailable("the writer has stopped".to_owned()))
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

/// The writer: ends when every handle to the store is gone and the queue is empty.
fn write_all(mut conn: Conn, mut queue: mpsc::Receiver<Job>, failing: &AtomicBool) {
    let mut group = Vec::with_capacity(MAX_GROUP);
    while queue.blocking_recv_many(&mut group, MAX_GROUP) > 0 {
        let committed = block_on(write_group(&mut conn, &mut group, &mut queue));
        failing.store(!committed, Ordering::Relaxed);
    }
}

/// Whether the group was committed.
async fn write_group(conn: &mut Conn, group: &mut Vec<Job>, queue: &mut mpsc::Receiver<Job>) -> bool {
    let mut answers = Vec::with_capacity(group.len());
    let mut room = MAX_GROUP - group.len();
    // Whoever comes meanwhile comes along: the disk is what everyone waits for.
    let mut come_along = || {
        room = room.checked_sub(1)?;
        queue.try_recv().ok()
    };
    let mut failed = conn.mark(&["BEGIN IMMEDIATE"]).err();
    // Whether nothing is in the transaction that must be kept.
    let mut fresh = true;
    let mut waiting = group.drain(..);
    while let Some(job) = waiting.next().or_else(|| if failed.is_none() { come_along() } else { None }) {
        if failed.is_none() && !fresh {
            failed = conn.mark(&["SAVEPOINT job"]).err();
        }
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
        let next: &[_] = match (fresh, keep) {
            (true, true) => &[],
            (true, false) => &["ROLLBACK", "BEGIN IMMEDIATE"],
            (false, true) => &["RELEASE job"],
            (false, false) => &["ROLLBACK TO job", "RELEASE job"],
        };
        failed = conn.mark(next).err();
        fresh &= !keep;
    }
    if failed.is_none() {
        failed = conn.mark(&["COMMIT"]).err();
    }
    if let Some(error) = &failed {
        tracing::error!(error = %error, "a group of writes was not committed");
        // Leaves no transaction open; fails, harmlessly, where the failure has already ended it.
        let _ = conn.mark(&["ROLLBACK"]);
    }
    for answer in answers {
        answer(match &failed {
            None => Ok(()),
            Some(error) => Err(Error::Unavailable(error.to_string())),
        });
    }
    failed.is_none()
}
