//! Faults of the storage that last until an operator acts, and the state of the storage for health checks (OPS-2).

use std::sync::{Arc, Mutex, PoisonError};

use crate::Error;

/// Why the database cannot be used, as far as the user can do something about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageFault {
    #[error("the disk is full")]
    DiskFull,
    #[error("the database is read-only")]
    ReadOnly,
    #[error("the disk reports errors")]
    DiskError,
    #[error(
        "the database file is damaged: stop adjutant, save its data with `adjutant recover`, and restore that or a backup"
    )]
    Damaged,
    #[error("the database file was removed or replaced while adjutant uses it; restart adjutant")]
    FileReplaced,
    #[error("the tables of the database are not those of this version of adjutant")]
    WrongSchema,
}

impl StorageFault {
    /// Returns the fault of an error of SQLite, if it is one.
    pub(crate) fn of_sqlite(error: &rusqlite::Error) -> Option<Self> {
        use rusqlite::ErrorCode::{DatabaseCorrupt, DiskFull, NotADatabase, ReadOnly, SystemIoFailure};
        match error.sqlite_error_code()? {
            DiskFull => Some(Self::DiskFull),
            ReadOnly => Some(Self::ReadOnly),
            SystemIoFailure => Some(Self::DiskError),
            DatabaseCorrupt | NotADatabase => Some(Self::Damaged),
            _ => None,
        }
    }

    /// Returns the fault of an error code of PostgreSQL, if it is one: a full disk, a server that is in recovery, damaged
    /// data, or an unknown table or column.
    pub(crate) fn of_postgres(code: &str) -> Option<Self> {
        match code {
            "53100" => Some(Self::DiskFull),
            "25006" => Some(Self::ReadOnly),
            "58030" => Some(Self::DiskError),
            "XX001" | "XX002" => Some(Self::Damaged),
            "42P01" | "42703" => Some(Self::WrongSchema),
            _ => None,
        }
    }
}

/// The outcome of the last use of the storage. Cloning is cheap.
#[derive(Clone, Debug, Default)]
pub(crate) struct StorageHealth(Arc<Mutex<WriteState>>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WriteState {
    #[default]
    Working,
    /// The fault is known if the operator can do something about it.
    Failing(Option<StorageFault>),
    /// Final: later writes may succeed on other pages, but the file stays damaged.
    Damaged,
}

impl StorageHealth {
    /// Records a failed write, or a read with a storage fault.
    pub(crate) fn fail(&self, error: &Error) {
        self.change(match error {
            Error::Storage(StorageFault::Damaged) => WriteState::Damaged,
            Error::Storage(fault) => WriteState::Failing(Some(*fault)),
            _ => WriteState::Failing(None),
        });
    }

    /// Records a write that is on disk.
    pub(crate) fn succeed(&self) {
        self.change(WriteState::Working);
    }

    fn change(&self, next: WriteState) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *state != WriteState::Damaged {
            *state = next;
        }
    }

    fn state(&self) -> WriteState {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the storage has failed and no write has succeeded since.
    pub(crate) fn has_failed(&self) -> bool {
        self.state() != WriteState::Working
    }

    /// Returns true if the database is damaged.
    pub(crate) fn is_damaged(&self) -> bool {
        self.state() == WriteState::Damaged
    }

    /// Returns the error of a write that was not executed because of an earlier failure.
    pub(crate) fn not_executed(&self) -> Error {
        match self.state() {
            WriteState::Damaged => Error::Storage(StorageFault::Damaged),
            WriteState::Failing(Some(fault)) => Error::Storage(fault),
            WriteState::Failing(None) | WriteState::Working => {
                Error::Unavailable("the write was not executed".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_on_disk_ends_every_failure_but_a_damaged_file() {
        // OPS-2
        let health = StorageHealth::default();
        health.fail(&Error::Storage(StorageFault::DiskFull));
        assert!(health.has_failed() && !health.is_damaged());
        health.succeed();
        assert!(!health.has_failed());
        health.fail(&Error::Storage(StorageFault::Damaged));
        health.fail(&Error::Unavailable("busy".to_owned()));
        health.succeed();
        assert!(health.is_damaged());
    }
}
