//! The sandbox of agents. Landlock restricts a thread and its child processes. No agent can signal processes outside of
//! its run, or connect to their abstract sockets (SEC-2). A read-only agent can only write below the granted paths.
//! Reading, executing and the network are not limited.

use std::path::Path;
use std::sync::LazyLock;

use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::io::Errno;

use super::launch::{LaunchError, LaunchErrorCause, Sandbox};

/// Devices that store nothing and are always writable. `/dev/shm` is storage and must be granted.
const DEVICES: [&str; 8] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"];

/// The newest version of Landlock with rights for files. Later versions add rights for sockets.
const NEWEST_ABI: ABI = ABI::V5;

/// The support of the kernel for read-only agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landlock {
    /// Writing outside of the granted paths is denied.
    Full,
    /// Writing is denied, but some ways to truncate files, to move them between directories or to control devices are
    /// not.
    Partial,
    /// The kernel is too old or has Landlock disabled. Read-only access is not enforced.
    Missing,
}

/// Returns the support of the running kernel: `Full` with all rights of Landlock version 5, `Partial` with those of
/// version 1, and otherwise `Missing`. Does not confine this process.
pub fn landlock_support() -> Landlock {
    let possible = |abi| {
        Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_write(abi))
            .and_then(Ruleset::create)
            .is_ok()
    };
    if possible(NEWEST_ABI) {
        Landlock::Full
    } else if possible(ABI::V1) {
        Landlock::Partial
    } else {
        Landlock::Missing
    }
}

/// Returns true if the kernel prevents agents from sending signals to processes outside of their run.
pub fn signals_are_confined() -> bool {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::Signal)
        .and_then(Ruleset::create)
        .is_ok()
}

/// Confines the calling thread permanently: to signals and abstract sockets of its own run, and with a sandbox to
/// writing below the granted paths and to [`DEVICES`]. Returns true if the kernel enforces the sandbox at least in
/// part, and false if it does not support it or none is requested. Fails with the cause `Sandbox` if a granted path
/// does not exist or cannot be opened, or if the rules are rejected.
pub(super) fn confine(sandbox: Option<&Sandbox>) -> Result<bool, LaunchError> {
    let failed = |error: landlock::RulesetError| {
        LaunchError::new(LaunchErrorCause::Sandbox, None, format!("the sandbox could not be set up: {error}"))
    };
    let scopes = Scope::Signal | Scope::AbstractUnixSocket;
    let rules = Ruleset::default().scope(scopes).map_err(failed)?;
    let Some(sandbox) = sandbox else {
        if *HAS_SCOPES {
            rules.create().and_then(RulesetCreated::restrict_self).map_err(failed)?;
        }
        return Ok(false);
    };
    let rights = AccessFs::from_write(NEWEST_ABI);
    let mut rules = rules.handle_access(rights).and_then(Ruleset::create).map_err(failed)?;
    for path in &sandbox.write {
        let (handle, is_file) = open(path)?;
        rules = rules.add_rule(PathBeneath::new(handle, allowed(rights, is_file))).map_err(failed)?;
    }
    for (handle, is_file) in devices() {
        rules = rules.add_rule(PathBeneath::new(handle, allowed(rights, *is_file))).map_err(failed)?;
    }
    let status = rules.restrict_self().map_err(failed)?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// The kernel supports at least one of the scopes.
static HAS_SCOPES: LazyLock<bool> = LazyLock::new(signals_are_confined);

/// Returns the devices that exist. They are opened once. A container may lack some of them.
fn devices() -> &'static [(PathFd, bool)] {
    static OPEN: LazyLock<Vec<(PathFd, bool)>> =
        LazyLock::new(|| DEVICES.iter().filter_map(|device| open(Path::new(device)).ok()).collect());
    &OPEN
}

/// Returns the rights for a path. The kernel rejects rights of directories for a file.
fn allowed(rights: BitFlags<AccessFs>, is_file: bool) -> BitFlags<AccessFs> {
    if is_file { rights & AccessFs::from_file(NEWEST_ABI) } else { rights }
}

/// Opens a path. Returns its handle, and true unless it is a directory. Fails with the cause `Sandbox` if it does not
/// exist or cannot be opened.
fn open(path: &Path) -> Result<(PathFd, bool), LaunchError> {
    let refuse = |errno: Errno, reason: &str| {
        let message = format!("write access to {} cannot be granted: {reason}", path.display());
        LaunchError::new(LaunchErrorCause::Sandbox, Some(errno.raw_os_error()), message)
    };
    let is_file = match std::fs::metadata(path) {
        Ok(found) => !found.is_dir(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(refuse(Errno::NOENT, "it does not exist"));
        }
        Err(error) => {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            return Err(refuse(errno, &format!("it cannot be read: {error}")));
        }
    };
    let handle = PathFd::new(path).map_err(|error| refuse(Errno::ACCESS, &error.to_string()))?;
    Ok((handle, is_file))
}
