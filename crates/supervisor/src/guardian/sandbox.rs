//! The sandbox of agents. It restricts the thread that starts a program, and so all processes of the run (SEC-2).
//!
//! The thread enters a view of the files first ([`super::file_view`]). Then [`restrict`] applies the layers in order: the
//! network policy, the user, the capabilities, Landlock.
//! With Landlock no agent can signal processes outside of its run, or connect to their abstract sockets. A read-only
//! agent can only write below the granted paths.

use std::path::Path;
use std::sync::LazyLock;

use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::io::Errno;

use super::launch::{Launch, LaunchError, LaunchErrorCause, Sandbox};
use super::protections::Protections;
use super::{network, privileges};

/// Devices that store nothing and are always writable. `/dev/shm` is storage and must be granted.
const DEVICES: [&str; 8] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"];

/// The newest version of Landlock with rights for files. Later versions add rights for sockets.
const NEWEST_ABI: ABI = ABI::V5;

/// The support of the kernel for read-only agents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Landlock {
    /// Writing outside of the granted paths is denied.
    Full,
    /// Writing is denied, but some ways to truncate files, to move them between directories or to control devices are
    /// not.
    Partial,
    /// The kernel is too old or has Landlock disabled. Read-only access is not enforced.
    #[default]
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

/// Restricts the calling thread permanently as the launch demands, as far as this system can. Returns true if the kernel
/// enforces the sandbox of a read-only agent. Fails with the cause `Sandbox` if a layer is rejected, if the launch
/// demands a user and this process may not change users, or if the launch must be enforced and a protection is missing.
pub(super) fn restrict(launch: &Launch, protections: &Protections) -> Result<bool, LaunchError> {
    let failed = |message: String| LaunchError::new(LaunchErrorCause::Sandbox, None, message);
    let isolation = &launch.isolation;
    let missing = protections.missing_for(launch.sandbox.is_some(), &isolation.network);
    if isolation.enforce && !missing.is_empty() {
        let missing = missing.join("; ");
        return Err(failed(format!("sandbox = \"enforce\", and this system cannot enforce it: {missing}")));
    }
    if isolation.run_as.is_some() && !protections.run_as {
        return Err(failed("run_as needs a server that runs as root and can create mount namespaces".to_owned()));
    }
    network::restrict(&isolation.network, protections)
        .map_err(|error| failed(format!("the network policy could not be applied: {error}")))?;
    if let Some(user) = &isolation.run_as {
        privileges::become_user(user).map_err(|error| failed(format!("the user could not be changed: {error}")))?;
    }
    privileges::drop_capabilities()
        .map_err(|error| failed(format!("the capabilities could not be removed: {error}")))?;
    confine(launch.sandbox.as_ref())
}

/// Confines the calling thread permanently: to signals and abstract sockets of its own run, and with a sandbox to
/// writing below the granted paths and to [`DEVICES`]. Returns true if the kernel enforces the sandbox at least in
/// part, and false if it does not support it or none is requested. Fails with the cause `Sandbox` if a granted path
/// does not exist or cannot be opened, or if the rules are rejected.
fn confine(sandbox: Option<&Sandbox>) -> Result<bool, LaunchError> {
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
