//! Determines if a process belongs to a run (SEC-1). A server asks this for the process at the other end of its Unix
//! socket.
//!
//! A process belongs to a run if one of these is true:
//! - its control group is below the group of a guardian,
//! - a guardian is among its ancestors: the guardian is the subreaper of all agents, so they cannot leave it,
//! - its environment has the marker of a node. An agent can remove it, so this is only an addition.
//!
//! If this process runs inside a run itself, the guardian and the marker of that run do not count.

use std::collections::HashSet;
use std::sync::Mutex;

use uuid::Uuid;

use super::proc::{self, ProcessMarkers, Stat};
use super::{NODE_VARIABLE, cgroup, sweep};

/// The number of times that a changing chain of ancestors is read.
const MAX_READS: usize = 5;
/// The longest chain of ancestors that is read.
const MAX_ANCESTORS: usize = 512;

/// The process ids of the guardians of this process.
static OWN_GUARDIANS: Mutex<Vec<i32>> = Mutex::new(Vec::new());

/// The relation of a process to runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessOrigin {
    /// The process belongs to a run. The id is known if the run belongs to this node.
    Agent(Option<Uuid>),
    /// The process belongs to no run.
    Other,
    /// The process has ended, or it is not visible here.
    Gone,
}

impl ProcessOrigin {
    /// Finds the origin of a process. Other systems than Linux do not tell, so every process there is `Other`.
    pub fn of(pid: i32) -> Self {
        if !cfg!(target_os = "linux") {
            return Self::Other;
        }
        if pid <= 0 {
            return Self::Gone;
        }
        let Some(before) = Stat::read(pid) else { return Self::Gone };
        let group = cgroup::run_of(pid);
        let markers = ProcessMarkers::read(pid);
        let ancestors = Ancestors::read(pid);
        // The process id was not reused meanwhile.
        if Stat::read(pid).is_none_or(|stat| stat.start != before.start || stat.is_dead()) {
            return Self::Gone;
        }
        let is_marked = markers.node.is_some() && markers.node != std::env::var(NODE_VARIABLE).ok();
        if group.is_none() && !is_marked && !ancestors.include_guardian() {
            return Self::Other;
        }
        let own_marker = format!("{}.", sweep::own_marker());
        let is_own = markers.node.is_some_and(|node| node.starts_with(&own_marker));
        Self::Agent(group.flatten().or(markers.execution.filter(|_| is_own)))
    }
}

/// The process that has opened the other end of a Unix socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketPeer {
    /// Its user.
    pub uid: u32,
    pub origin: ProcessOrigin,
}

impl SocketPeer {
    /// Returns the peer of a connected Unix socket. Fails if the system does not know it.
    pub fn of(socket: &impl std::os::fd::AsFd) -> std::io::Result<Self> {
        let peer = rustix::net::sockopt::socket_peercred(socket)?;
        Ok(Self { uid: peer.uid.as_raw(), origin: ProcessOrigin::of(peer.pid.as_raw_nonzero().get()) })
    }
}

/// Records a guardian of this process.
pub(super) fn add_guardian(pid: i32) {
    crate::lock(&OWN_GUARDIANS).push(pid);
}

/// Forgets a guardian of this process that has ended.
pub(super) fn remove_guardian(pid: i32) {
    crate::lock(&OWN_GUARDIANS).retain(|own| *own != pid);
}

/// Returns the origin of the process that has opened the socket with this inode number. For connections over TCP, where
/// runs have no control groups: reads the open files of processes. Without agents of this process, every socket is of
/// another process.
///
/// Only a process that is found outside of all runs is [`ProcessOrigin::Other`]. An agent can pass its socket on to new
/// processes faster than they are read, so a socket that is not found is [`ProcessOrigin::Gone`].
pub fn socket_origin(inode: u64) -> ProcessOrigin {
    let guardians = crate::lock(&OWN_GUARDIANS).clone();
    let without_groups = guardians.iter().filter(|guardian| cgroup::run_of(**guardian).is_none());
    let mut agents: Vec<i32> = without_groups.flat_map(|guardian| descendants(*guardian)).collect();
    agents.retain(|pid| !guardians.contains(pid));
    if agents.is_empty() {
        return ProcessOrigin::Other;
    }
    let socket = format!("socket:[{inode}]");
    if let Some(agent) = agents.iter().find(|agent| has_open(**agent, &socket)) {
        return ProcessOrigin::Agent(ProcessMarkers::read(*agent).execution);
    }
    let holder = proc::pids().into_iter().find(|pid| has_open(*pid, &socket));
    holder.map_or(ProcessOrigin::Gone, ProcessOrigin::of)
}

/// Returns true if a process has opened this file. Returns false if its open files cannot be read.
fn has_open(pid: i32, file: &str) -> bool {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files.map(|entry| std::fs::read_link(entry.path())).any(|link| link.is_ok_and(|link| link.as_os_str() == file))
}

/// Returns the descendants of a process, also those that were started by other threads than the main one.
fn descendants(pid: i32) -> Vec<i32> {
    let mut found: Vec<i32> = Vec::new();
    let mut pending = vec![pid];
    while let Some(pid) = pending.pop() {
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        for task in tasks.flatten() {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            for child in children.split_ascii_whitespace().filter_map(|child| child.parse().ok()) {
                if !found.contains(&child) {
                    found.push(child);
                    pending.push(child);
                }
            }
        }
    }
    found
}

/// A process and its ancestors, as far as they can be read.
struct Ancestors(Vec<i32>);

impl Ancestors {
    /// Reads the chain from the process up to the first process. The last one may be unreadable. Reads again if a
    /// process ends during the read.
    fn read(pid: i32) -> Self {
        let mut pids = Vec::new();
        for _ in 0..MAX_READS {
            pids.clear();
            let mut next = pid;
            // A parent is older than its child. Otherwise its process id was reused.
            let mut youngest = u64::MAX;
            loop {
                pids.push(next);
                match Stat::read(next) {
                    Some(stat) if stat.start <= youngest && stat.parent > 0 && pids.len() < MAX_ANCESTORS => {
                        next = stat.parent;
                        youngest = stat.start;
                    }
                    Some(stat) if stat.start <= youngest => return Self(pids),
                    _ => break,
                }
            }
        }
        Self(pids)
    }

    /// Returns true if a guardian is among them, except one that this process descends from.
    fn include_guardian(&self) -> bool {
        let own: HashSet<i32> = crate::lock(&OWN_GUARDIANS).iter().copied().collect();
        if self.0.iter().any(|pid| own.contains(pid)) {
            return true;
        }
        let guardians: Vec<_> = self.0.iter().filter(|pid| proc::is_guardian(pid.unsigned_abs())).collect();
        if guardians.is_empty() {
            return false;
        }
        let above = Self::read(std::process::id() as i32);
        guardians.iter().any(|pid| !above.0.contains(pid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_process_belongs_to_no_run_of_its_own() {
        // SEC-1
        assert_eq!(ProcessOrigin::of(std::process::id() as i32), ProcessOrigin::Other);
        assert_eq!(ProcessOrigin::of(1), ProcessOrigin::Other);
        assert_eq!(ProcessOrigin::of(0), ProcessOrigin::Gone);
        assert_eq!(ProcessOrigin::of(i32::MAX), ProcessOrigin::Gone);
    }

    #[test]
    fn the_process_of_a_socket_is_found_among_agents() {
        // SEC-1
        use std::os::unix::fs::MetadataExt;
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let inode =
            std::fs::metadata(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&socket))).unwrap().ino();
        assert_eq!(socket_origin(inode), ProcessOrigin::Other, "there are no agents");
        let script = "sleep 60 & wait";
        let mut guardian = std::process::Command::new("sh")
            .args(["-c", script])
            .stdin(std::os::fd::OwnedFd::from(socket))
            .spawn()
            .unwrap();
        let pid = guardian.id() as i32;
        while descendants(pid).is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(socket_origin(inode), ProcessOrigin::Other, "the process is no guardian");
        add_guardian(pid);
        assert!(has_open(pid, &format!("socket:[{inode}]")));
        assert_eq!(socket_origin(inode), ProcessOrigin::Agent(None), "its child has inherited the socket");
        assert_eq!(socket_origin(1), ProcessOrigin::Gone, "found nowhere");
        remove_guardian(pid);
        let children = descendants(pid);
        guardian.kill().unwrap();
        guardian.wait().unwrap();
        for child in children {
            Stat::read(child).unwrap().signal(rustix::process::Signal::KILL);
        }
    }

    #[test]
    fn descendants_of_a_guardian_belong_to_a_run() {
        // SEC-1
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id() as i32;
        assert_eq!(ProcessOrigin::of(pid), ProcessOrigin::Other);
        add_guardian(pid);
        assert_eq!(ProcessOrigin::of(pid), ProcessOrigin::Agent(None));
        remove_guardian(pid);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(ProcessOrigin::of(pid), ProcessOrigin::Gone);
        let mut marked = std::process::Command::new("sleep").arg("60").env(NODE_VARIABLE, "1.2.3.4").spawn().unwrap();
        while proc::pids().contains(&(marked.id() as i32)) && ProcessMarkers::read(marked.id() as i32).node.is_none() {
            std::thread::yield_now();
        }
        assert_eq!(ProcessOrigin::of(marked.id() as i32), ProcessOrigin::Agent(None));
        marked.kill().unwrap();
        marked.wait().unwrap();
    }
}
