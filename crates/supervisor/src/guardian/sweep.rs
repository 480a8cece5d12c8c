//! Finds and kills the processes of dead nodes and dead guardians by the markers in their environment. Never touches
//! processes of a living node, the current process, or its ancestors.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions};

use super::proc::{self, ProcessMarkers, ProcessSnapshot, Stat};

/// The time for guardians of dead nodes to end their agents. It is longer than `ORPHAN_GRACE`.
const GUARDIAN_TIMEOUT: Duration = Duration::from_secs(5);
/// The time limit for killing. A process that survives it hangs in the kernel. The next start finds it again.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Kills all processes of this user that dead nodes have left, and returns their number. Does not touch other living
/// nodes. Must be called before the first launch.
pub async fn sweep() -> usize {
    tokio::task::spawn_blocking(sweep_dead_nodes).await.unwrap_or_default()
}

/// Waits until the guardians of dead nodes have ended, at most [`GUARDIAN_TIMEOUT`], then kills the processes that are
/// left. Spares this process, its ancestors and its descendants. Returns the number of killed processes.
fn sweep_dead_nodes() -> usize {
    let orphaned = |markers: &ProcessMarkers| {
        markers.node.as_deref().is_some_and(|marker| MarkedNode::parse(marker).is_some_and(MarkedNode::is_dead))
    };
    let find = || FoundProcesses::find(&orphaned, &HashSet::new(), Spare::Descendants);
    let deadline = Instant::now() + GUARDIAN_TIMEOUT;
    let mut found = find();
    while found.has_guardian && Instant::now() < deadline {
        std::thread::sleep(POLL_INTERVAL);
        found = find();
    }
    // Usually the case. A second search would double the cost of the start.
    if found.processes.is_empty() {
        return 0;
    }
    kill_all(&orphaned, &HashSet::new(), Spare::Descendants)
}

/// Kills the processes of the guardian with this marker, and all processes in these sessions. The session of this
/// process is never included. Returns the number of killed processes.
pub(super) fn sweep_after(marker: &str, sessions: &HashSet<i32>) -> usize {
    let mut sessions = sessions.clone();
    // Not `getsid`: if the session was created outside of this PID namespace, its id is 0, which that call cannot
    // return.
    let ours = Stat::read(std::process::id() as i32).map_or(0, |stat| stat.session);
    sessions.retain(|session| *session > 1 && *session != ours);
    kill_all(&|markers: &ProcessMarkers| markers.node.as_deref() == Some(marker), &sessions, Spare::Ancestors)
}

/// Returns the marker of this process as a node: its pid, its start time and its PID namespace.
pub(super) fn own_marker() -> String {
    let pid = std::process::id();
    let start = Stat::read(pid as i32).map_or(0, |stat| stat.start);
    format!("{pid}.{start}.{}", proc::namespace())
}

/// The node that a marker identifies.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
struct MarkedNode {
    pid: i32,
    start: u64,
    namespace: u64,
}

impl MarkedNode {
    /// Parses a marker. The part after the three numbers identifies the guardian and is ignored. Returns `None` if a
    /// number is missing or invalid.
    fn parse(marker: &str) -> Option<Self> {
        let mut parts = marker.split('.');
        let mut next = || parts.next();
        Some(Self { pid: next()?.parse().ok()?, start: next()?.parse().ok()?, namespace: next()?.parse().ok()? })
    }

    /// Returns true if the node has ended. Returns false for a node in another PID namespace, because its pid is not
    /// valid here.
    fn is_dead(self) -> bool {
        self.namespace == proc::namespace()
            && Stat::read(self.pid).is_none_or(|stat| stat.start != self.start || stat.is_dead())
    }
}

/// Processes with matching markers.
struct FoundProcesses {
    processes: Vec<Stat>,
    has_guardian: bool,
}

impl FoundProcesses {
    /// Finds the living processes of this user with markers that `wanted` accepts, and their descendants. Also finds
    /// all processes in the session of a marked agent and in `sessions`, of any user. The session of an agent was
    /// always created by its guardian or below it. `has_guardian` is true if a marked process is a guardian. Processes
    /// of `spare` are left out.
    fn find(wanted: &dyn Fn(&ProcessMarkers) -> bool, sessions: &HashSet<i32>, spare: Spare) -> Self {
        let snapshot = ProcessSnapshot::take();
        let user = rustix::process::geteuid().as_raw();
        let spared = spare.pids(&snapshot);
        let mut has_guardian = false;
        let mut sessions = sessions.clone();
        let mut pids = HashSet::new();
        for stat in snapshot.all() {
            if stat.is_dead() || spared.contains(&stat.pid) || proc::owner(stat.pid) != Some(user) {
                continue;
            }
            let markers = ProcessMarkers::read(stat.pid);
            if !wanted(&markers) {
                continue;
            }
            has_guardian |= markers.guardian;
            if markers.execution.is_some() && !markers.guardian && stat.session > 1 {
                sessions.insert(stat.session);
            }
            pids.extend(snapshot.tree(stat.pid).iter().map(|stat| stat.pid));
        }
        pids.extend(snapshot.all().filter(|stat| sessions.contains(&stat.session)).map(|stat| stat.pid));
        let found = pids.difference(&spared).filter_map(|pid| snapshot.get(*pid));
        Self { processes: found.filter(|stat| !stat.is_dead()).copied().collect(), has_guardian }
    }
}

/// The processes that are never killed, whatever their markers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spare {
    /// The current process and its ancestors.
    Ancestors,
    /// Also its descendants: if it runs below another node, they have inherited the marker of that node.
    Descendants,
}

impl Spare {
    /// Returns the pids that are spared: 0, 1, this process and its ancestors. `Descendants` adds its descendants.
    fn pids(self, snapshot: &ProcessSnapshot) -> HashSet<i32> {
        let own = std::process::id() as i32;
        let mut spared = HashSet::from([0, 1, own]);
        if self == Self::Descendants {
            spared.extend(snapshot.tree(own).iter().map(|stat| stat.pid));
        }
        let mut at = own;
        while let Some(stat) = snapshot.get(at) {
            if !spared.insert(stat.parent) {
                break;
            }
            at = stat.parent;
        }
        spared
    }
}

/// Kills the processes of [`FoundProcesses::find`] in rounds until none is found, because a process may fork before it
/// is killed. Reaps those that are children of this process. Gives up after [`KILL_TIMEOUT`]. Returns the number of
/// killed processes.
fn kill_all(wanted: &dyn Fn(&ProcessMarkers) -> bool, sessions: &HashSet<i32>, spare: Spare) -> usize {
    let deadline = Instant::now() + KILL_TIMEOUT;
    let own = std::process::id() as i32;
    let mut killed = HashSet::new();
    loop {
        let found = FoundProcesses::find(wanted, sessions, spare).processes;
        for stat in &found {
            if stat.signal(Signal::KILL) {
                killed.insert((stat.pid, stat.start));
            }
        }
        // If orphans become children of this process, reap only those that were killed here.
        for (pid, start) in &killed {
            let ours = Stat::read(*pid).filter(|stat| stat.start == *start && stat.is_dead() && stat.parent == own);
            if let Some(pid) = ours.and_then(|stat| Pid::from_raw(stat.pid)) {
                let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
            }
        }
        if found.is_empty() || Instant::now() > deadline {
            return killed.len();
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_identify_nodes() {
        let node = MarkedNode { pid: 12, start: 34, namespace: 56 };
        assert_eq!(MarkedNode::parse("12.34.56.0"), Some(node));
        assert_eq!(MarkedNode::parse("12.34.56"), Some(node));
        for broken in ["", "12", "12.34", "x.34.56", "12.-1.56"] {
            assert_eq!(MarkedNode::parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn a_reused_pid_means_a_dead_node() {
        let own = MarkedNode::parse(&own_marker()).expect("our marker");
        assert!(!own.is_dead());
        assert!(MarkedNode { start: own.start + 1, ..own }.is_dead());
        assert!(
            !MarkedNode { start: own.start + 1, namespace: own.namespace + 1, ..own }.is_dead(),
            "another namespace"
        );
    }
}
