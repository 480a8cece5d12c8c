//! The identity of the database files. A file that is removed or replaced while it is open still accepts writes, and all
//! of them are lost when the process ends. So every write checks first that the path still leads to the open file.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::file_error;
use crate::fault::StorageFault;
use crate::{Error, Result};

/// The database file and its WAL, as they were when the database was opened.
#[derive(Debug)]
pub(super) struct DatabaseFiles(Vec<(PathBuf, FileId)>);

/// Identifies a file on this machine.
#[derive(Debug, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn of(path: &Path) -> std::io::Result<Self> {
        let found = std::fs::metadata(path)?;
        Ok(Self { device: found.dev(), inode: found.ino() })
    }
}

impl DatabaseFiles {
    /// Finds the files of an open database in WAL mode. `path` may be a symbolic link. Fails if the database file does
    /// not exist.
    pub(super) fn find(path: &Path) -> Result<Self> {
        let database = path.canonicalize().map_err(file_error(path))?;
        let wal = wal_path(&database);
        let mut files = vec![(database.clone(), FileId::of(&database).map_err(file_error(path))?)];
        // Without a write there is no WAL yet.
        if let Ok(id) = FileId::of(&wal) {
            files.push((wal, id));
        }
        Ok(Self(files))
    }

    /// Fails with [`StorageFault::FileReplaced`] if a file does not exist any more, or if it is another one.
    pub(super) fn check(&self) -> Result<()> {
        let is_same = |(path, id): &(PathBuf, FileId)| FileId::of(path).is_ok_and(|found| found == *id);
        if self.0.iter().all(is_same) { Ok(()) } else { Err(Error::Storage(StorageFault::FileReplaced)) }
    }
}

/// Returns the path of the WAL of a database file.
pub(super) fn wal_path(database: &Path) -> PathBuf {
    let mut path = OsString::from(database);
    path.push("-wal");
    path.into()
}
