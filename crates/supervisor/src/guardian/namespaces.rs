//! The namespaces of the guardian. In a mount namespace, files can be hidden from agents. A `/proc` of its own hides
//! processes of other runs (SEC-2).
//!
//! Root creates a mount namespace. Every other user needs a user namespace for that, and a process namespace for a
//! `/proc` of its own. The second process of the guardian is process 1 of that namespace:
//!
//! ```text
//! node ──> guardian, creates the namespaces ──> guardian, process 1: starts and ends agents
//! ```
//!
//! If process 1 dies, the kernel kills all processes of its namespace. A system that does not allow namespaces has none
//! of this; [`super::Protections`] states it.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, Stdio};
use std::sync::OnceLock;

use nix::sched::CloneFlags;
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::process::Signal;
use rustix::thread::CapabilitySet;

use super::cgroup::RunGroups;

/// The environment variable of a guardian that says which part of the start it is: unset for the first process.
pub(super) const STAGE_VARIABLE: &str = "ADJUTANT_GUARDIAN_STAGE";
/// The stage of a guardian that creates no namespaces.
pub(super) const PLAIN_STAGE: &str = "plain";
/// The stage of process 1 of a process namespace.
const INNER_STAGE: &str = "inner";
/// The environment variable that tells process 1 the control groups, which the first process has created.
const GROUPS_VARIABLE: &str = "ADJUTANT_GUARDIAN_GROUPS";

/// The capabilities that process 1 keeps in its user namespace: to mount, to create and enter namespaces for runs, and to
/// see processes that `/proc` hides. Agents get none of them.
const INNER_CAPABILITIES: [CapabilitySet; 4] =
    [CapabilitySet::SYS_ADMIN, CapabilitySet::SYS_CHROOT, CapabilitySet::SYS_PTRACE, CapabilitySet::SETPCAP];

/// The namespaces in which a guardian runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Namespaces {
    /// Those of the node.
    Inherited,
    /// A mount namespace, created by root.
    Mount,
    /// A user, mount and process namespace.
    User,
}

/// Creates a user, mount and process namespace, starts the guardian in them as process 1, and waits for its end. Returns
/// its exit code. Returns `None` if this process has to be the guardian itself: it is root, it is already process 1, it
/// runs without namespaces on request, or the system does not allow user namespaces. Fails if the namespaces exist but cannot be used. Must be
/// called before the first thread is started. `groups` are the control groups of the guardian.
pub(super) fn run_inside(groups: &RunGroups) -> io::Result<Option<ExitCode>> {
    if rustix::process::geteuid().is_root() || std::env::var_os(STAGE_VARIABLE).is_some() || !proc_can_be_mounted() {
        return Ok(None);
    }
    let uid = rustix::process::geteuid();
    let gid = rustix::process::getegid();
    if nix::sched::unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID).is_err() {
        return Ok(None);
    }
    // The kernel demands this before an unprivileged process may map its group.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    pass_on_capabilities()?;
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let mut command = Command::new("/proc/self/exe");
    // The same arguments, so that other nodes recognise both processes as guardians.
    command.args(std::env::args_os().skip(1)).stdin(Stdio::from(socket)).env(STAGE_VARIABLE, INNER_STAGE);
    command.env(GROUPS_VARIABLE, serde_json::to_string(groups)?);
    let mut inner = command.spawn()?;
    super::protect_memory()?;
    close_stdin()?;
    let ended = inner.wait()?;
    let code = ended.code().unwrap_or_else(|| 128 + ended.signal().unwrap_or_default());
    Ok(Some(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))))
}

/// Returns the control groups that the first process of this guardian has created, in process 1 of its namespace.
pub(super) fn inherited_groups() -> Option<RunGroups> {
    serde_json::from_str(&std::env::var(GROUPS_VARIABLE).ok()?).ok()
}

/// Enters the namespaces of this guardian process, and mounts a `/proc` that hides the processes which a reader may not
/// trace. Returns [`Namespaces::Inherited`] if this user cannot create any. Fails only in process 1, which would see a
/// wrong `/proc` otherwise.
pub(super) fn enter() -> io::Result<Namespaces> {
    let stage = std::env::var(STAGE_VARIABLE).unwrap_or_default();
    if stage == INNER_STAGE {
        // If the outer process is killed, this one ends too.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // Agents must not inherit the capabilities.
        rustix::thread::clear_ambient_capability_set()?;
        detach_mounts()?;
        let proc = std::fs::File::open("/proc")?;
        let _ = PROC_OF_NODE.set(proc.into());
        mount_proc()?;
        return Ok(Namespaces::User);
    }
    let is_root = rustix::process::geteuid().is_root();
    if stage == PLAIN_STAGE || !is_root || nix::sched::unshare(CloneFlags::CLONE_NEWNS).is_err() {
        return Ok(Namespaces::Inherited);
    }
    match detach_mounts().and_then(|()| mount_proc()) {
        Ok(()) => Ok(Namespaces::Mount),
        // The namespace is a copy of the old one: nothing is different for agents.
        Err(_) => Ok(Namespaces::Inherited),
    }
}

/// The directory `/proc` of the node, in process 1 of a process namespace.
static PROC_OF_NODE: OnceLock<OwnedFd> = OnceLock::new();

/// Returns the process id that the node sees for the only child of the calling thread, which is `pid` here. Returns 0 if
/// the kernel does not provide it.
pub(super) fn pid_for_node(pid: u32) -> i32 {
    let Some(proc) = PROC_OF_NODE.get() else { return pid as i32 };
    let read = || {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(proc, "thread-self/children", flags, Mode::empty())?;
        let mut text = String::new();
        std::fs::File::from(file).read_to_string(&mut text)?;
        Ok::<_, io::Error>(text.split_ascii_whitespace().next_back().and_then(|pid| pid.parse().ok()))
    };
    read().ok().flatten().unwrap_or_default()
}

/// Lets the program that this process executes keep [`INNER_CAPABILITIES`].
fn pass_on_capabilities() -> io::Result<()> {
    let mut sets = rustix::thread::capabilities(None)?;
    for capability in INNER_CAPABILITIES {
        sets.inheritable |= capability;
    }
    rustix::thread::set_capabilities(None, sets)?;
    for capability in INNER_CAPABILITIES {
        rustix::thread::configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}

/// Closes the socket of the node in the outer process, so that only process 1 holds it.
fn close_stdin() -> io::Result<()> {
    let null: OwnedFd = std::fs::File::open("/dev/null")?.into();
    Ok(rustix::stdio::dup2_stdin(null.as_fd())?)
}

/// Stops the propagation of mounts from this namespace to that of the node. Mounts of the node still appear here.
fn detach_mounts() -> io::Result<()> {
    Ok(rustix::mount::mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?)
}

/// Mounts `/proc` with the processes of this namespace. A process that the reader may not trace is invisible.
fn mount_proc() -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(rustix::mount::mount("proc", "/proc", "proc", flags, c"hidepid=4")?)
}

/// Returns false if the kernel would reject a mount of `/proc` in a user namespace, because parts of the current one are
/// covered by other mounts, as in a container. Mounts on empty directories do not count.
fn proc_can_be_mounted() -> bool {
    const EMPTY_DIRECTORIES: [&str; 2] = ["/proc/sys/fs/binfmt_misc", "/proc/fs/nfsd"];
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    !points.any(|point| point.starts_with("/proc/") && !EMPTY_DIRECTORIES.contains(&point))
}
