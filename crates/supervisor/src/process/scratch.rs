//! The folders that runs work in. One that was left as empty as it was given is given to the next run: making and
//! removing folders keeps the journal of the disk busy, and everything that is written down waits for that.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::command::FOLDERS;
use crate::lock;

/// So many empty ones are kept.
const MOST: usize = 64;

pub(super) struct Scratch {
    root: PathBuf,
    free: Mutex<Free>,
}

#[derive(Default)]
struct Free {
    folders: Vec<PathBuf>,
    /// How many were ever made.
    made: u64,
}

impl Scratch {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root, free: Mutex::default() }
    }

    /// A folder for one run alone. It may not be there yet; where it is, it is empty.
    pub(super) fn take(&self) -> PathBuf {
        let mut free = lock(&self.free);
        free.folders.pop().unwrap_or_else(|| {
            free.made += 1;
            self.root.join(free.made.to_string())
        })
    }

    /// The run is over, and what it left has been taken. Gives the folder where it must be removed.
    pub(super) fn give_back(&self, folder: PathBuf) -> Option<PathBuf> {
        if is_empty(&folder) {
            let mut free = lock(&self.free);
            if free.folders.len() < MOST {
                free.folders.push(folder);
                return None;
            }
        }
        Some(folder)
    }

    /// Removes the free ones.
    pub(super) fn clear(&self) {
        for folder in std::mem::take(&mut lock(&self.free).folders) {
            let _ = std::fs::remove_dir_all(folder);
        }
    }

    /// Removes what an earlier node left. To be called before the first run.
    pub(super) fn sweep(&self) {
        for entry in std::fs::read_dir(&self.root).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_some_and(|name| name.parse::<u64>().is_ok()) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// As it is made, with nothing in it, and nothing changed about it.
fn is_empty(folder: &Path) -> bool {
    let as_made =
        |path: &Path| path.symlink_metadata().is_ok_and(|about| about.is_dir() && about.mode() & 0o7777 == 0o700);
    let entries = |path: &Path| std::fs::read_dir(path).map_or(usize::MAX, Iterator::count);
    let inside = FOLDERS.map(|name| folder.join(name));
    as_made(folder) && entries(folder) == inside.len() && inside.iter().all(|path| as_made(path) && entries(path) == 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn make(folder: &Path) {
        for folder in [folder.to_owned(), folder.join(FOLDERS[0]), folder.join(FOLDERS[1])] {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
        }
    }

    #[test]
    fn only_what_is_as_it_was_is_given_again() {
        let root = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(root.path().to_owned());
        let folder = scratch.take();
        make(&folder);
        assert_ne!(scratch.take(), folder, "one at a time");
        assert_eq!(scratch.give_back(folder.clone()), None);
        assert_eq!(scratch.take(), folder);
        let spoils: [fn(&Path); 5] = [
            |folder| std::fs::write(folder.join(".left"), "").unwrap(),
            |folder| std::fs::write(folder.join(FOLDERS[0]).join("left"), "").unwrap(),
            |folder| std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap(),
            |folder| {
                std::fs::remove_dir(folder.join(FOLDERS[1])).unwrap();
                std::os::unix::fs::symlink("/", folder.join(FOLDERS[1])).unwrap();
            },
            |folder| std::fs::remove_dir_all(folder).unwrap(),
        ];
        for spoil in spoils {
            let folder = scratch.take();
            make(&folder);
            spoil(&folder);
            assert_eq!(scratch.give_back(folder.clone()), Some(folder.clone()));
            assert_ne!(scratch.take(), folder);
        }
    }

    #[test]
    fn what_is_left_is_swept() {
        let root = tempfile::tempdir().unwrap();
        for name in ["1", "20", "0190a6d2-7c00-7000-8000-000000000000"] {
            make(&root.path().join(name));
        }
        Scratch::new(root.path().to_owned()).sweep();
        let left: Vec<_> = std::fs::read_dir(root.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["0190a6d2-7c00-7000-8000-000000000000"], "a session's is not ours to remove");
    }
}
