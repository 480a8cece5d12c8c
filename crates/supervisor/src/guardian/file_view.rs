//! The files that a run sees (SEC-2). The thread that starts a program gets a mount namespace of its own. In it, empty
//! directories and files cover the hidden paths, and control groups are read-only.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use nix::sched::CloneFlags;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MoveMountFlags, OpenTreeFlags};

/// The permissions of the directories that cover hidden ones. A run with another user id passes through them.
const COVER_MODE: u32 = 0o755;

/// Moves the calling thread into a new mount namespace in which `hidden` paths are empty, except for the paths of `visible`
/// below them. Hidden paths that do not exist are ignored. Fails if the system rejects a mount.
pub(super) fn hide(hidden: &[PathBuf], visible: &[PathBuf]) -> io::Result<()> {
    nix::sched::unshare(CloneFlags::CLONE_NEWNS)?;
    let hidden = outermost(hidden);
    if !hidden.is_empty() {
        cover(&hidden, visible)?;
    }
    for (path, flags) in CONTROL_GROUP_MOUNTS.iter() {
        rustix::mount::mount_remount(path, MountFlags::BIND | MountFlags::RDONLY | *flags, c"")?;
    }
    Ok(())
}

/// Returns true if this process can hide files. Some systems allow mount namespaces, but no mounts in them. Tries it in a
/// thread, so that nothing changes for this process.
pub(super) fn is_possible() -> bool {
    let attempt = || hide(&[std::env::temp_dir()], &[]).is_ok();
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

/// Covers each hidden path by an entry of a file system in memory, which is read-only afterwards. A visible path below a
/// hidden one is mounted again at its place.
fn cover(hidden: &[PathBuf], visible: &[PathBuf]) -> io::Result<()> {
    let covers = memory_filesystem()?;
    let mut shown = Vec::new();
    for path in visible {
        let path = path.canonicalize()?;
        if hidden.iter().any(|hidden| path.starts_with(hidden)) {
            // Opened before its place is covered.
            shown.push((tree(CWD, &path)?, path));
        }
    }
    for (number, path) in hidden.iter().enumerate() {
        let name = number.to_string();
        if path.is_dir() {
            rustix::fs::mkdirat(&covers, &name, Mode::from_raw_mode(COVER_MODE))?;
            let below = shown.iter().filter_map(|(_, shown)| shown.strip_prefix(path).ok());
            for place in below {
                create_directories(covers.as_fd(), &Path::new(&name).join(place))?;
            }
        } else {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            rustix::fs::openat(&covers, &name, flags, Mode::from_raw_mode(0o444))?;
        }
        mount_at(tree(covers.as_fd(), Path::new(&name))?.as_fd(), path)?;
    }
    if let Some(path) = hidden.first() {
        rustix::mount::mount_remount(path, MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV, c"")?;
    }
    for (tree, path) in shown {
        mount_at(tree.as_fd(), &path)?;
    }
    Ok(())
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
