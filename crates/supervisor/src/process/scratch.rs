//! The scratch directories of runs. A directory that a run left unchanged is reused: creating and removing directories
//! loads the journal of the file system, which delays the writes of the database.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::command::SCRATCH_DIRS;
use crate::lock;

/// The maximum number of unused directories.
const MAX_FREE: usize = 64;

/// The pool of scratch directories.
pub(super) struct Scratch {
    root: PathBuf,
    free: Mutex<FreeDirs>,
}

#[derive(Default)]
struct FreeDirs {
    dirs: Vec<PathBuf>,
    /// The number of directories created so far. It is also the name of the last one.
    created: u64,
}

impl Scratch {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root, free: Mutex::default() }
    }

    /// Returns a directory that only one run uses. It does not exist yet, or contains only the empty directories
    /// [`SCRATCH_DIRS`].
    pub(super) fn take(&self) -> PathBuf {
        let mut free = lock(&self.free);
        free.dirs.pop().unwrap_or_else(|| {
            free.created += 1;
            self.root.join(free.created.to_string())
        })
    }

    /// Releases the directory of a run after its files were collected. An unchanged directory is reused if fewer than
    /// [`MAX_FREE`] are unused. Otherwise returns the directory, and the caller has to remove it.
    pub(super) fn release(&self, dir: PathBuf) -> Option<PathBuf> {
        if is_unchanged(&dir) {
            let mut free = lock(&self.free);
            if free.dirs.len() < MAX_FREE {
                free.dirs.push(dir);
                return None;
            }
        }
        Some(dir)
    }

    /// Removes the unused directories.
    pub(super) fn clear(&self) {
        for dir in std::mem::take(&mut lock(&self.free).dirs) {
            let _ = std::fs::remove_dir_all(dir);
        }
    }

    /// Removes the directories of an earlier process: those with a number as name. Must be called before the first run.
    pub(super) fn sweep(&self) {
        for entry in std::fs::read_dir(&self.root).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_some_and(|name| name.parse::<u64>().is_ok()) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// Returns true if the directory contains only the empty directories [`SCRATCH_DIRS`] and all have their original
/// permissions and belong to this user. Returns false if it does not exist or one of them is a link.
fn is_unchanged(dir: &Path) -> bool {
    let owner = rustix::process::geteuid().as_raw();
    let is_private_dir = |path: &Path| {
        path.symlink_metadata().is_ok_and(|data| data.is_dir() && data.mode() & 0o7777 == 0o700 && data.uid() == owner)
    };
    let entries = |path: &Path| std::fs::read_dir(path).map_or(usize::MAX, Iterator::count);
    let subdirs = SCRATCH_DIRS.map(|name| dir.join(name));
    is_private_dir(dir)
        && entries(dir) == subdirs.len()
        && subdirs.iter().all(|path| is_private_dir(path) && entries(path) == 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn make(dir: &Path) {
        for dir in [dir.to_owned(), dir.join(SCRATCH_DIRS[0]), dir.join(SCRATCH_DIRS[1])] {
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o700)).unwrap();
        }
    }

    #[test]
    fn only_unchanged_directories_are_reused() {
        let root = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(root.path().to_owned());
        let dir = scratch.take();
        make(&dir);
        assert_ne!(scratch.take(), dir, "one at a time");
        assert_eq!(scratch.release(dir.clone()), None);
        assert_eq!(scratch.take(), dir);
        let changes: [fn(&Path); 5] = [
            |dir| std::fs::write(dir.join(".left"), "").unwrap(),
            |dir| std::fs::write(dir.join(SCRATCH_DIRS[0]).join("left"), "").unwrap(),
            |dir| std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755)).unwrap(),
            |dir| {
                std::fs::remove_dir(dir.join(SCRATCH_DIRS[1])).unwrap();
                std::os::unix::fs::symlink("/", dir.join(SCRATCH_DIRS[1])).unwrap();
            },
            |dir| std::fs::remove_dir_all(dir).unwrap(),
        ];
        for change in changes {
            let dir = scratch.take();
            make(&dir);
            change(&dir);
            assert_eq!(scratch.release(dir.clone()), Some(dir.clone()));
            assert_ne!(scratch.take(), dir);
        }
    }

    #[test]
    fn sweep_removes_only_run_directories() {
        let root = tempfile::tempdir().unwrap();
        for name in ["1", "20", "0190a6d2-7c00-7000-8000-000000000000"] {
            make(&root.path().join(name));
        }
        Scratch::new(root.path().to_owned()).sweep();
        let left: Vec<_> = std::fs::read_dir(root.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["0190a6d2-7c00-7000-8000-000000000000"], "directories of sessions are kept");
    }
}
