//! Stores requests that contain secrets: one file each, readable only by this user, on the machine that accepted the
//! request. They are never stored in the database.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use uuid::Uuid;

use crate::runner::RunRequest;

/// The directory of requests that contain secrets.
#[derive(Clone, Debug)]
pub(crate) struct Spool {
    dir: PathBuf,
    /// Identifies the spool in the database. It stays the same after a restart.
    name: String,
    /// The executions with a file. Most executions have none, so their end needs no access to the disk.
    files: Arc<Mutex<HashSet<Uuid>>>,
}

impl Spool {
    /// Opens the spool of a data directory. Creates it for this user only, if necessary. A spool without a readable
    /// name gets the name `new_name`, which is stored. Finds the requests that an earlier process has left. Fails if
    /// the directory cannot be created or the name cannot be written.
    pub(crate) fn open(data_dir: &Path, new_name: Uuid) -> io::Result<Self> {
        let dir = data_dir.join("spool");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        let file = dir.join("name");
        let name = match fs::read_to_string(&file) {
            Ok(name) if !name.trim().is_empty() => name.trim().to_owned(),
            _ => {
                write(&file, new_name.to_string().as_bytes())?;
                new_name.to_string()
            }
        };
        let this = Self { dir, name, files: Arc::default() };
        crate::lock(&this.files).extend(this.ids());
        Ok(this)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Writes the request to the disk and returns a guard. The data is synced. Dropping the guard removes the file.
    /// Fails if the file cannot be written; then no file is left.
    pub(crate) fn put(&self, id: Uuid, request: &RunRequest) -> io::Result<SpooledRequest> {
        let spooled = SpooledRequest { spool: self.clone(), id: Some(id) };
        crate::lock(&self.files).insert(id);
        write(&self.file(id), &serde_json::to_vec(request)?)?;
        File::open(&self.dir)?.sync_all()?;
        Ok(spooled)
    }

    /// Returns the request of an execution. Fails if its file cannot be read or parsed.
    pub(crate) fn get(&self, id: Uuid) -> io::Result<RunRequest> {
        Ok(serde_json::from_slice(&fs::read(self.file(id))?)?)
    }

    /// Removes the file of an execution, if it exists. Errors are ignored.
    pub(crate) fn remove(&self, id: Uuid) {
        if crate::lock(&self.files).remove(&id) {
            let _ = fs::remove_file(self.file(id));
        }
    }

    fn file(&self, id: Uuid) -> PathBuf {
        self.dir.join(format!("{id}.json"))
    }

    /// Returns the ids of all executions with a file in the directory. Returns none if the directory cannot be read.
    pub(crate) fn ids(&self) -> Vec<Uuid> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter_map(|name| Uuid::try_parse(name.strip_suffix(".json")?).ok()).collect()
    }
}

/// A file in the spool for an execution that is not enqueued yet. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct SpooledRequest {
    spool: Spool,
    /// `None` once the file is kept.
    id: Option<Uuid>,
}

impl SpooledRequest {
    /// Returns the name of the spool.
    pub(crate) fn spool(&self) -> &str {
        self.spool.name()
    }

    /// Keeps the file after the drop and returns the id of its execution.
    pub(crate) fn keep(mut self) -> Uuid {
        self.id.take().unwrap_or_default()
    }
}

impl Drop for SpooledRequest {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.spool.remove(id);
        }
    }
}

/// Creates a file that only this user can read, or replaces the content of an existing one, and syncs it.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
