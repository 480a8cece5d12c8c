//! Read-only by the kernel: Landlock lets a thread, and what it starts, write below the granted paths only. Reading,
//! executing and the network stay as they are.

use std::path::Path;
use std::sync::LazyLock;

use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus,
};
use rustix::io::Errno;

use super::launch::{Cause, Fault, Sandbox};

/// Devices that hold nothing. `/dev/shm` is storage and must be granted.
const DEVICES: [&str; 8] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"];

/// The newest version whose rights we use: later ones are about sockets.
const NEWEST: ABI = ABI::V5;

/// What the kernel can do for read-only agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landlock {
    /// Writing outside of the granted paths is refused.
    Full,
    /// Refused too, but files can be truncated or moved between directories, or devices controlled, in some ways.
    Partial,
    /// The kernel is too old, or has it switched off: agents can only be asked not to write.
    Missing,
}

pub fn landlock_support() -> Landlock {
    let possible = |abi| {
        Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_write(abi))
            .and_then(Ruleset::create)
            .is_ok()
    };
    if possible(NEWEST) {
        Landlock::Full
    } else if possible(ABI::V1) {
        Landlock::Partial
    } else {
        Landlock::Missing
    }
}

/// Confines the calling thread for good. False where the kernel cannot.
pub(super) fn confine(sandbox: &Sandbox) -> Result<bool, Fault> {
    let fault = |error: landlock::RulesetError| {
        Fault::new(Cause::Sandbox, None, format!("the sandbox could not be set up: {error}"))
    };
    let rights = AccessFs::from_write(NEWEST);
    let mut rules = Ruleset::default().handle_access(rights).and_then(Ruleset::create).map_err(fault)?;
    for path in &sandbox.write {
        let (handle, of_file) = open(path)?;
        rules = rules.add_rule(PathBeneath::new(handle, allowed(rights, of_file))).map_err(fault)?;
    }
    for (handle, of_file) in devices() {
        rules = rules.add_rule(PathBeneath::new(handle, allowed(rights, *of_file))).map_err(fault)?;
    }
    let status = rules.restrict_self().map_err(fault)?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// Opened once; a container may lack some of them.
fn devices() -> &'static [(PathFd, bool)] {
    static OPEN: LazyLock<Vec<(PathFd, bool)>> =
        LazyLock::new(|| DEVICES.iter().filter_map(|device| open(Path::new(device)).ok()).collect());
    &OPEN
}

fn allowed(rights: BitFlags<AccessFs>, of_file: bool) -> BitFlags<AccessFs> {
    if of_file { rights & AccessFs::from_file(NEWEST) } else { rights }
}

fn open(path: &Path) -> Result<(PathFd, bool), Fault> {
    let refuse = |errno: Errno, why: &str| {
        let message = format!("the path {} is to be writable, but {why}", path.display());
        Fault::new(Cause::Sandbox, Some(errno.raw_os_error()), message)
    };
    let of_file = match std::fs::metadata(path) {
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
    Ok((handle, of_file))
}
