//! Where requests wait that have secrets in them: a file each, readable by nobody else, on the machine that took them.
//! The database never has them.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use uuid::Uuid;

use crate::runner::Request;

#[derive(Clone, Debug)]
pub(crate) struct Spool {
    dir: PathBuf,
    /// What the database calls it: the same after a restart.
    name: String,
    /// Those that are here: most executions have none, and end without a look at the disk.
    files: Arc<Mutex<HashSet<Uuid>>>,
}

impl Spool {
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

    /// Writes the request to the disk. The file is removed when the returned guard is dropped.
    pub(crate) fn put(&self, id: Uuid, request: &Request) -> io::Result<SpooledRequest> {
        let spooled = SpooledRequest { spool: self.clone(), id: Some(id) };
        crate::lock(&self.files).insert(id);
        write(&self.file(id), &serde_json::to_vec(request)?)?;
        File::open(&self.dir)?.sync_all()?;
        Ok(spooled)
    }

    pub(crate) fn get(&self, id: Uuid) -> io::Result<Request> {
        Ok(serde_json::from_slice(&fs::read(self.file(id))?)?)
    }

    /// The execution has ended; a file that is not there is as good.
    pub(crate) fn remove(&self, id: Uuid) {
        if crate::lock(&self.files).remove(&id) {
            let _ = fs::remove_file(self.file(id));
        }
    }

    fn file(&self, id: Uuid) -> PathBuf {
        self.dir.join(format!("{id}.json"))
    }

    /// Those that are here, to find out which are no longer needed.
    pub(crate) fn ids(&self) -> Vec<Uuid> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter_map(|name| Uuid::try_parse(name.strip_suffix(".json")?).ok()).collect()
    }
}

/// A file in the spool whose execution is not in the queue yet. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct SpooledRequest {
    spool: Spool,
    /// `None` once the file is to stay.
    id: Option<Uuid>,
}

impl SpooledRequest {
    /// Returns the name of the spool.
    pub(crate) fn spool(&self) -> &str {
        self.spool.name()
    }

    /// Leaves the file to its execution.
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

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
