//! Checks of the whole database file. A stop that was not clean leaves a non-empty WAL. After one, a thread checks the file.
//! Until the check has passed, a mark beside the file requests another one at the next start.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, InterruptHandle, OpenFlags};

use super::{connect, file_error, files};
use crate::fault::{StorageFault, StorageHealth};
use crate::{Error, Result};

/// Checks the structure of a SQLite file without changing it, beside other processes that use it. Reads the whole file.
/// Blocks the thread. Fails with [`StorageFault::Damaged`] if it is damaged, and if it cannot be read.
pub fn check_file(path: &Path) -> Result<()> {
    quick_check(&connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?)
}

fn quick_check(connection: &Connection) -> Result<()> {
    let first: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if first == "ok" {
        return Ok(());
    }
    tracing::error!(event = "database_damaged", problem = first);
    Err(Error::Storage(StorageFault::Damaged))
}

/// The check after a stop that was not clean.
#[derive(Debug)]
pub(super) struct StartCheck {
    path: PathBuf,
    mark: PathBuf,
}

/// Interrupts a check in progress.
#[derive(Clone, Debug, Default)]
pub(super) struct CheckInterrupt(Arc<Mutex<Option<HandleOfCheck>>>);

struct HandleOfCheck(InterruptHandle);

impl std::fmt::Debug for HandleOfCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HandleOfCheck").finish_non_exhaustive()
    }
}

impl CheckInterrupt {
    /// Ends a check in progress. It is repeated at the next start.
    pub(super) fn interrupt(&self) {
        if let Some(handle) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            handle.0.interrupt();
        }
    }

    fn set(&self, handle: Option<HandleOfCheck>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = handle;
    }
}

impl StartCheck {
    /// Returns the check if one is due. Call it before the database is opened. Marks that it is due until it has passed.
    pub(super) fn if_due(path: &Path) -> Option<Self> {
        let database = path.canonicalize().ok()?;
        let mut mark = OsString::from(&database);
        mark.push("-unchecked");
        let mark = PathBuf::from(mark);
        let was_clean = std::fs::metadata(files::wal_path(&database)).map_or(true, |wal| wal.len() == 0);
        if was_clean && !mark.exists() {
            return None;
        }
        // On a full disk the mark is missing. The WAL requests the check until the next clean stop.
        let _ = std::fs::write(&mark, "");
        Some(Self { path: database, mark })
    }

    /// Starts the check on its own thread. Logs the outcome, and records damage in `health`. Fails if the thread cannot be
    /// started.
    pub(super) fn start(self, health: StorageHealth, interrupt: CheckInterrupt) -> Result<()> {
        let path = self.path.clone();
        let thread = std::thread::Builder::new().name("sqlite-check".to_owned());
        let started = thread.spawn(move || match self.run(&interrupt) {
            Ok(()) => {
                let _ = std::fs::remove_file(&self.mark);
                tracing::info!(event = "database_checked", "the last stop was not clean; the database file is sound");
            }
            Err(error @ Error::Storage(StorageFault::Damaged)) => {
                health.fail(&error);
                tracing::error!(event = "database_damaged", error = %error);
            }
            Err(error) => tracing::warn!(event = "database_not_checked", error = %error),
        });
        started.map(drop).map_err(file_error(&path))
    }

    fn run(&self, interrupt: &CheckInterrupt) -> Result<()> {
        let connection = connect(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        interrupt.set(Some(HandleOfCheck(connection.get_interrupt_handle())));
        let checked = quick_check(&connection);
        interrupt.set(None);
        checked
    }
}
