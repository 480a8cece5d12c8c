//! The limit of open files. The node raises its own limit, because every connection takes a descriptor. Agents keep the
//! original limit: some programs close every possible descriptor, and `select` fails beyond 1024.

use std::io;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::OPEN_FILES_VARIABLE;

/// The soft limit before it was raised.
static ORIGINAL: OnceLock<u64> = OnceLock::new();

/// Raises the soft limit of this process to its hard limit. Must be called before the guardian is started. Fails if the
/// system rejects the limit.
pub fn raise_limit() -> io::Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if let Some(original) = current.filter(|_| current != maximum) {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
        let _ = ORIGINAL.set(original);
    }
    Ok(())
}

/// Returns the soft limit before [`raise_limit`] changed it, or `None` if it did not.
pub(super) fn original_limit() -> Option<u64> {
    ORIGINAL.get().copied()
}

/// Sets the soft limit of this guardian, and so of its agents, to the value that the node passed. Fails if the system
/// rejects the limit.
pub(super) fn restore_limit() -> io::Result<()> {
    let original = std::env::var(OPEN_FILES_VARIABLE).ok().and_then(|value| value.parse().ok());
    if let Some(original) = original {
        let maximum = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: Some(original), maximum })?;
    }
    Ok(())
}
