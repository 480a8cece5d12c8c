//! The lock of a data directory. Only one process may use the directory. The operating system releases the lock when
//! the process ends, in any case.
//!
//! The lock file contains the address of the server that holds it. Client commands read the address there.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// The lock of a data directory. It is held until dropped.
#[derive(Debug)]
pub struct DataDirLock {
    file: File,
    path: PathBuf,
}

impl DataDirLock {
    /// Acquires the lock file `adjutant.lock` in `dir` and removes a published address from it. Creates the directory
    /// and its parents if they do not exist, readable only by their owner. If another process holds the lock, fails
    /// immediately with [`Error::InUse`] and the address that it has published, if any. Fails with [`Error::File`] if
    /// the directory or the file cannot be used.
    pub fn acquire(dir: &Path) -> Result<Self> {
        let path = dir.join("adjutant.lock");
        create_private_dir(dir).map_err(|source| Error::File { path: dir.to_owned(), source })?;
        let failed = |source| Error::File { path: path.clone(), source };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {
                file.set_len(0).map_err(failed)?;
                Ok(Self { file, path })
            }
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                file.read_to_string(&mut text).map_err(failed)?;
                let address = Some(text.trim().to_owned()).filter(|address| !address.is_empty());
                Err(Error::InUse { path: dir.to_owned(), address })
            }
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    /// Writes the address of this server into the lock file. Fails if the file cannot be written.
    pub fn publish_address(&mut self, address: &str) -> Result<()> {
        let write = |file: &mut File| {
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(address.as_bytes())
        };
        write(&mut self.file).map_err(|source| Error::File { path: self.path.clone(), source })
    }
}

/// Creates a directory that only its owner can read, because the database contains private data.
fn create_private_dir(dir: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lock_fails_with_the_address_of_the_first() {
        // OPS-4
        let dir = tempfile::tempdir().unwrap();
        let mut first = DataDirLock::acquire(dir.path()).unwrap();
        first.publish_address("http://127.0.0.1:7717").unwrap();
        let Err(Error::InUse { address, .. }) = DataDirLock::acquire(dir.path()) else {
            panic!("the lock was acquired twice")
        };
        assert_eq!(address.as_deref(), Some("http://127.0.0.1:7717"));
        drop(first);
        DataDirLock::acquire(dir.path()).unwrap();
    }
}
