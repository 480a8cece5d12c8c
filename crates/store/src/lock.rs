//! One adjutant a data directory: a lock the operating system takes back when its holder dies, however it dies.
//!
//! The lock file carries the address of the server that holds it, which is how client commands find it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Held until dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock of `dir`, creating the directory for its owner only; fails at once if somebody has it.
    pub fn take(dir: &Path) -> Result<Self> {
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
                let mut address = String::new();
                file.read_to_string(&mut address).map_err(failed)?;
                let at = Some(address.trim().to_owned()).filter(|address| !address.is_empty());
                Err(Error::InUse { path: dir.to_owned(), at })
            }
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    /// Tells whoever finds the lock taken where to knock.
    pub fn publish(&mut self, address: &str) -> Result<()> {
        let write = |file: &mut File| {
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(address.as_bytes())
        };
        write(&mut self.file).map_err(|source| Error::File { path: self.path.clone(), source })
    }
}

/// The database holds what people wrote down for themselves: other accounts of the machine have no business there.
fn create_private_dir(dir: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_one_is_refused_and_told_where_the_first_is() {
        // OPS-4
        let dir = tempfile::tempdir().unwrap();
        let mut first = Lock::take(dir.path()).unwrap();
        first.publish("http://127.0.0.1:7717").unwrap();
        let Err(Error::InUse { at, .. }) = Lock::take(dir.path()) else { panic!("the lock was given twice") };
        assert_eq!(at.as_deref(), Some("http://127.0.0.1:7717"));
        drop(first);
        Lock::take(dir.path()).unwrap();
    }
}
