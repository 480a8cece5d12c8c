//! The privileges of agents: the capabilities of an agent of root, and the user of `run_as`. Both apply to the thread
//! that starts the program.

use std::io;

use rustix::thread::{CapabilitySet, CapabilitySets};
use rustix::{process::Gid, process::Uid, thread};
use serde::{Deserialize, Serialize};

/// The capabilities of an agent of root. They suffice to install packages and to change all files. The others would let
/// it leave its namespaces, read the memory of the server, or read disks without a file system.
const ROOT_CAPABILITIES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_CHROOT)
    .union(CapabilitySet::SETFCAP)
    .union(CapabilitySet::AUDIT_WRITE);

/// The number of the last capability that may exist.
const LAST_CAPABILITY: u32 = 63;

/// The operating system user that a program runs as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAs {
    pub uid: u32,
    pub gid: u32,
    /// All groups of the user.
    pub groups: Vec<u32>,
}

/// Gives the calling thread the identity of the user. Fails if this process may not change users.
pub(super) fn become_user(user: &RunAs) -> io::Result<()> {
    let groups: Vec<Gid> = user.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
    let gid = Gid::from_raw(user.gid);
    let uid = Uid::from_raw(user.uid);
    thread::set_thread_groups(&groups)?;
    thread::set_thread_res_gid(gid, gid, gid)?;
    Ok(thread::set_thread_res_uid(uid, uid, uid)?)
}

/// Removes the capabilities that agents do not get from the bounding set of this process, which all agents inherit. So a
/// program cannot gain them when it is started. `no_new_privs` has the same effect, so a system that rejects this is no
/// failure.
pub(super) fn limit_bounding_set() {
    let kept = kept_capabilities();
    for number in 0..=LAST_CAPABILITY {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        // The first error is that of a capability that the kernel does not have, or of a process that may not do this.
        if !kept.contains(capability) && thread::remove_capability_from_bounding_set(capability).is_err() {
            return;
        }
    }
}

/// Removes the capabilities of the calling thread that agents do not get. Fails if the system rejects it.
pub(super) fn drop_capabilities() -> io::Result<()> {
    let current = thread::capabilities(None)?;
    if current.permitted.is_empty() {
        return Ok(());
    }
    let kept = kept_capabilities();
    let kept = CapabilitySets {
        effective: current.effective & kept,
        permitted: current.permitted & kept,
        inheritable: CapabilitySet::empty(),
    };
    Ok(thread::set_capabilities(None, kept)?)
}

/// Returns the capabilities that agents of the current user keep: [`ROOT_CAPABILITIES`] for root, else none.
fn kept_capabilities() -> CapabilitySet {
    if rustix::process::geteuid().is_root() { ROOT_CAPABILITIES } else { CapabilitySet::empty() }
}
