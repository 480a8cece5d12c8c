//! The files that a run sees (SEC-2). The thread that starts a program enters a mount namespace. In it, empty directories
//! and files cover the hidden paths, and control groups are read-only.
//!
//! A namespace takes about 0.3 ms of CPU time, and its end waits for all processors. So [`FileViews`] keeps namespaces and
//! uses them again, for one run after the other of the same user. A process of an ended run can leave an open directory of
//! the namespace to another run. So a namespace is never used for another user.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use model::UserId;
use nix::sched::CloneFlags;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
};

use super::launch::Isolation;

/// The permissions of the directories that cover hidden ones. A run with another user id passes through them.
const COVER_MODE: u32 = 0o755;
/// The maximum number of unused namespaces. The oldest is removed first.
const MAX_IDLE: usize = 16;
/// The mount namespace of the calling thread.
const OWN_NAMESPACE: &str = "/proc/thread-self/ns/mnt";

/// The unused namespaces of this guardian.
#[derive(Default)]
pub(super) struct FileViews {
    idle: Arc<Mutex<Vec<FileView>>>,
    /// The thread that cleans namespaces after a run. Started with the first one.
    ended: Option<Sender<FileView>>,
}

impl FileViews {
    /// Returns an unused namespace in which exactly these files are hidden from this user, if there is one. The caller
    /// must not assume that the covers are still in place: [`FileView::enter`] checks it.
    pub(super) fn take(&self, isolation: &Isolation) -> Option<FileView> {
        let user = isolation.user?;
        let hidden = outermost(&isolation.hidden);
        let mut idle = lock(&self.idle);
        let at = idle.iter().rposition(|view| view.user == Some(user) && view.hidden == hidden)?;
        Some(idle.remove(at))
    }

    /// Cleans a namespace in the background, for the next run of its user. Its run must have no process left. A
    /// namespace without a user is removed.
    pub(super) fn give_back(&mut self, view: FileView) {
        if self.ended.is_none() {
            self.ended = start_cleaner(self.idle.clone());
        }
        // Without the thread, the namespace is removed here.
        if let Some(ended) = &self.ended {
            let _ = ended.send(view);
        }
    }
}

fn lock(idle: &Mutex<Vec<FileView>>) -> MutexGuard<'_, Vec<FileView>> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the thread that cleans namespaces and adds them to `idle`. Returns `None` if it cannot be started.
fn start_cleaner(idle: Arc<Mutex<Vec<FileView>>>) -> Option<Sender<FileView>> {
    let (sender, ended) = mpsc::channel::<FileView>();
    let clean = move || {
        for mut view in ended {
            if view.user.is_none() || view.leave().is_err() {
                continue;
            }
            let mut idle = lock(&idle);
            idle.push(view);
            let oldest = (idle.len() > MAX_IDLE).then(|| idle.remove(0));
            drop(idle);
            drop(oldest);
        }
    };
    std::thread::Builder::new().spawn(clean).ok().map(|_| sender)
}

/// A mount namespace in which paths are hidden.
pub(super) struct FileView {
    /// The user whose runs may use it one after the other.
    user: Option<UserId>,
    hidden: Vec<PathBuf>,
    namespace: OwnedFd,
    /// `None` if nothing is hidden.
    covers: Option<Covers>,
    /// The visible paths that are mounted for the current run, with their places in the file system of the covers.
    shown: Vec<(PathBuf, PathBuf)>,
}

/// The file system whose entries cover hidden paths.
struct Covers {
    /// The only writable access to it.
    root: OwnedFd,
    device: u64,
}

/// Why a namespace could not be entered.
#[derive(Debug)]
pub(super) enum EnterError {
    /// A cover is gone, because its path was removed or replaced.
    Outdated,
    Failed(io::Error),
}

impl<E: Into<io::Error>> From<E> for EnterError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl FileView {
    /// Creates a namespace in which the hidden paths are empty. Hidden paths that do not exist are ignored. Fails if the
    /// system rejects a mount. Uses a thread, so that nothing changes for the caller.
    pub(super) fn create(isolation: &Isolation) -> io::Result<Self> {
        let hidden = outermost(&isolation.hidden);
        let create = || {
            nix::sched::unshare(CloneFlags::CLONE_NEWNS)?;
            let covers = if hidden.is_empty() { None } else { Some(cover(&hidden)?) };
            for (path, flags) in CONTROL_GROUP_MOUNTS.iter() {
                rustix::mount::mount_remount(path, MountFlags::BIND | MountFlags::RDONLY | *flags, c"")?;
            }
            Ok::<_, io::Error>((covers, std::fs::File::open(OWN_NAMESPACE)?.into()))
        };
        let created = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().spawn_scoped(scope, create)?;
            thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
        });
        let (covers, namespace) = created?;
        Ok(Self { user: isolation.user, hidden, namespace, covers, shown: Vec::new() })
    }

    /// Moves the calling thread into the namespace, and mounts the visible paths below hidden ones at their places. Fails
    /// with [`EnterError::Outdated`] if a path is not covered any more. The thread must not be used after a failure.
    pub(super) fn enter(&mut self, visible: &[PathBuf]) -> Result<(), EnterError> {
        let mut trees = Vec::new();
        for path in visible {
            let path = path.canonicalize()?;
            let Some((number, below)) = self.place(&path) else { continue };
            // Opened here, where the path is not covered.
            let place = Path::new(&number.to_string()).join(below);
            trees.push((tree(CWD, &path)?, path, place));
        }
        // Threads share their directories, and the kernel would refuse the change.
        nix::sched::unshare(CloneFlags::CLONE_FS)?;
        nix::sched::setns(&self.namespace, CloneFlags::CLONE_NEWNS)?;
        let Some(covers) = &self.covers else { return Ok(()) };
        for path in &self.hidden {
            if std::fs::metadata(path).map_err(|_| EnterError::Outdated)?.dev() != covers.device {
                return Err(EnterError::Outdated);
            }
        }
        for (tree, path, place) in trees {
            create_directories(covers.root.as_fd(), &place)?;
            self.shown.push((path.clone(), place));
            mount_at(tree.as_fd(), &path)?;
        }
        Ok(())
    }

    /// Returns the number of the cover of a path, and the rest of the path. Returns `None` if it is not hidden.
    fn place<'a>(&self, path: &'a Path) -> Option<(usize, &'a Path)> {
        let below = |(number, hidden): (usize, &PathBuf)| Some((number, path.strip_prefix(hidden).ok()?));
        self.hidden.iter().enumerate().find_map(below)
    }

    /// Removes the visible paths of the last run. The calling thread gets directories of its own. Fails if the system
    /// rejects that; the namespace must not be used then.
    fn leave(&mut self) -> io::Result<()> {
        let Some(covers) = &self.covers else { return Ok(()) };
        let own = std::fs::File::open(OWN_NAMESPACE)?;
        nix::sched::unshare(CloneFlags::CLONE_FS)?;
        nix::sched::setns(&self.namespace, CloneFlags::CLONE_NEWNS)?;
        let unmounted = self.shown.iter().try_for_each(|(path, _)| rustix::mount::unmount(path, UnmountFlags::DETACH));
        nix::sched::setns(own, CloneFlags::CLONE_NEWNS)?;
        unmounted?;
        for (_, place) in self.shown.drain(..) {
            rustix::fs::unlinkat(&covers.root, &place, AtFlags::REMOVEDIR)?;
        }
        Ok(())
    }
}

/// Returns true if this process can hide files. Some systems allow mount namespaces, but no mounts in them. Tries it in
/// threads, so that nothing changes for this process.
pub(super) fn is_possible() -> bool {
    let isolation = Isolation { hidden: vec![std::env::temp_dir()], ..Isolation::default() };
    let attempt = move || FileView::create(&isolation).is_ok_and(|mut view| view.enter(&[]).is_ok());
    std::thread::spawn(attempt).join().unwrap_or(false)
}

/// Returns the resolved paths that exist and are not below another one.
fn outermost(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut resolved: Vec<PathBuf> = paths.iter().filter_map(|path| path.canonicalize().ok()).collect();
    resolved.sort();
    resolved.dedup();
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in resolved {
        if !kept.iter().any(|outer| path.starts_with(outer)) {
            kept.push(path);
        }
    }
    kept
}

/// Covers each hidden path by an entry of a new file system in memory. The mounts are read-only. The name of an entry is the
/// number of its path.
fn cover(hidden: &[PathBuf]) -> io::Result<Covers> {
    let root = memory_filesystem()?;
    for (number, path) in hidden.iter().enumerate() {
        let name = number.to_string();
        if path.is_dir() {
            rustix::fs::mkdirat(&root, &name, Mode::from_raw_mode(COVER_MODE))?;
        } else {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            rustix::fs::openat(&root, &name, flags, Mode::from_raw_mode(0o444))?;
        }
        mount_at(tree(root.as_fd(), Path::new(&name))?.as_fd(), path)?;
        let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount_remount(path, flags, c"")?;
    }
    let device = rustix::fs::fstat(&root)?.st_dev;
    Ok(Covers { root, device })
}

/// Returns an empty file system in memory that is mounted nowhere.
fn memory_filesystem() -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_string(context.as_fd(), "size", "1m")?;
    rustix::mount::fsconfig_set_string(context.as_fd(), "mode", "0755")?;
    rustix::mount::fsconfig_create(context.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    Ok(rustix::mount::fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Creates a directory and its missing parents below an open directory.
fn create_directories(root: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let mut parents: Vec<&Path> = path.ancestors().filter(|path| !path.as_os_str().is_empty()).collect();
    parents.reverse();
    for path in parents {
        match rustix::fs::mkdirat(root, path, Mode::from_raw_mode(COVER_MODE)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Returns a copy of a path with the mounts below it, which can be mounted at another place.
fn tree(root: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    Ok(rustix::mount::open_tree(root, path, flags)?)
}

fn mount_at(tree: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    Ok(rustix::mount::move_mount(tree, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// The mounts of control groups, with their flags that must not be removed. A run that could write to them could leave
/// its group.
static CONTROL_GROUP_MOUNTS: LazyLock<Vec<(PathBuf, MountFlags)>> = LazyLock::new(|| {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    control_group_mounts(&mounts)
});

/// Returns the mount points of control groups in the text of `mountinfo`, with their flags.
fn control_group_mounts(mounts: &str) -> Vec<(PathBuf, MountFlags)> {
    let parse = |line: &str| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(4);
        let point = fields.next()?;
        let options = fields.next()?;
        let kind = filesystem.split(' ').next()?;
        ["cgroup", "cgroup2"].contains(&kind).then(|| (PathBuf::from(point), mount_flags(options)))
    };
    mounts.lines().filter_map(parse).collect()
}

/// Returns the flags of mount options. Unknown options are ignored.
fn mount_flags(options: &str) -> MountFlags {
    options.split(',').fold(MountFlags::empty(), |flags, option| {
        flags
            | match option {
                "nosuid" => MountFlags::NOSUID,
                "nodev" => MountFlags::NODEV,
                "noexec" => MountFlags::NOEXEC,
                "noatime" => MountFlags::NOATIME,
                "nodiratime" => MountFlags::NODIRATIME,
                "relatime" => MountFlags::RELATIME,
                _ => MountFlags::empty(),
            }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_outermost_existing_paths_are_covered() {
        // SEC-2
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("data/inner")).unwrap();
        std::fs::write(root.join("secret"), "x").unwrap();
        std::os::unix::fs::symlink(root.join("secret"), root.join("link")).unwrap();
        let paths = ["data/inner", "data", "link", "secret", "missing"].map(|name| root.join(name));
        assert_eq!(outermost(&paths), [root.join("data"), root.join("secret")]);
    }

    #[test]
    fn control_group_mounts_keep_their_flags() {
        let mounts = "30 24 0:26 / /sys/fs/cgroup/unified rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 none rw\n\
                      33 24 0:29 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n\
                      34 24 0:30 / /tmp rw - tmpfs tmpfs rw\n";
        let found = control_group_mounts(mounts);
        assert_eq!(found.len(), 2);
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RELATIME;
        assert_eq!(found[0], (PathBuf::from("/sys/fs/cgroup/unified"), flags));
        assert_eq!(found[1], (PathBuf::from("/sys/fs/cgroup/pids"), MountFlags::RELATIME));
    }
}
