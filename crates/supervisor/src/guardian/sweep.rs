//! Finds and kills what a dead node or a dead guardian has left behind, by the mark in its environment. Never touches
//! what belongs to a node that lives, nor ourselves or who started us.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions};

use super::proc::{self, Marks, Snapshot, Stat};

/// Guardians of dead nodes end their agents by themselves within their last grace; give them that and some more.
const PATIENCE: Duration = Duration::from_secs(5);
/// What cannot be killed in this time hangs in the kernel; the next start finds it again.
const LIMIT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// Kills every process of this user that a dead node has left behind, and says how many they were. Call it before the
/// first launch; other nodes on the machine are left alone.
pub async fn sweep() -> usize {
    tokio::task::spawn_blocking(sweep_dead_nodes).await.unwrap_or_default()
}

fn sweep_dead_nodes() -> usize {
    let orphaned =
        |marks: &Marks| marks.node.as_deref().is_some_and(|mark| Node::parse(mark).is_some_and(Node::is_dead));
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline && Found::now(&orphaned, &HashSet::new(), Spare::Descendants).has_guardian {
        std::thread::sleep(PAUSE);
    }
    kill_all(&orphaned, &HashSet::new(), Spare::Descendants)
}

/// What the guardian with this mark has left behind, also where it has lost its mark but is in one of these sessions.
pub(super) fn sweep_after(mark: &str, sessions: &HashSet<i32>) -> usize {
    let mut sessions = sessions.clone();
    // Not `getsid`: where our session was begun outside of our namespace its number is 0, which that call cannot say.
    let ours = Stat::of(std::process::id() as i32).map_or(0, |stat| stat.session);
    sessions.retain(|session| *session > 1 && *session != ours);
    kill_all(&|marks: &Marks| marks.node.as_deref() == Some(mark), &sessions, Spare::Ancestors)
}

/// The node of this process, in the words of a mark.
pub(super) fn own_mark() -> String {
    let pid = std::process::id();
    let start = Stat::of(pid as i32).map_or(0, |stat| stat.start);
    format!("{pid}.{start}.{}", proc::namespace())
}

/// Whom a mark names.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
struct Node {
    pid: i32,
    start: u64,
    namespace: u64,
}

impl Node {
    /// What follows the three numbers tells guardians of one node apart.
    fn parse(mark: &str) -> Option<Self> {
        let mut parts = mark.split('.');
        let mut next = || parts.next();
        Some(Self { pid: next()?.parse().ok()?, start: next()?.parse().ok()?, namespace: next()?.parse().ok()? })
    }

    /// In another namespace the number means somebody else, so we cannot say.
    fn is_dead(self) -> bool {
        self.namespace == proc::namespace()
            && Stat::of(self.pid).is_none_or(|stat| stat.start != self.start || stat.is_dead())
    }
}

struct Found {
    processes: Vec<Stat>,
    has_guardian: bool,
}

impl Found {
    /// The marked, what descends from them, and who shares a session with a marked agent: an agent never is in a session
    /// that was not made by its guardian or below it.
    fn now(wanted: &dyn Fn(&Marks) -> bool, sessions: &HashSet<i32>, spare: Spare) -> Self {
        let snapshot = Snapshot::take();
        let user = rustix::process::geteuid().as_raw();
        let spared = spare.of(&snapshot);
        let mut has_guardian = false;
        let mut sessions = sessions.clone();
        let mut pids = HashSet::new();
        for stat in snapshot.all() {
            if stat.is_dead() || spared.contains(&stat.pid) || proc::owner(stat.pid) != Some(user) {
                continue;
            }
            let marks = Marks::of(stat.pid);
            if !wanted(&marks) {
                continue;
            }
            has_guardian |= marks.guardian;
            if marks.execution.is_some() && !marks.guardian && stat.session > 1 {
                sessions.insert(stat.session);
            }
            pids.extend(snapshot.tree(stat.pid).iter().map(|stat| stat.pid));
        }
        pids.extend(snapshot.all().filter(|stat| sessions.contains(&stat.session)).map(|stat| stat.pid));
        let found = pids.difference(&spared).filter_map(|pid| snapshot.get(*pid));
        Self { processes: found.filter(|stat| !stat.is_dead()).copied().collect(), has_guardian }
    }
}

/// Whom not to touch, whatever its marks: ourselves and who started us, and where we were started below another node, so
/// that its mark is on everything of ours, also what we have started.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spare {
    Ancestors,
    Descendants,
}

impl Spare {
    fn of(self, snapshot: &Snapshot) -> HashSet<i32> {
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

/// Kills in rounds until a look finds nothing: what is killed may have been about to give birth.
fn kill_all(wanted: &dyn Fn(&Marks) -> bool, sessions: &HashSet<i32>, spare: Spare) -> usize {
    let deadline = Instant::now() + LIMIT;
    let own = std::process::id() as i32;
    let mut killed = HashSet::new();
    loop {
        let found = Found::now(wanted, sessions, spare).processes;
        for stat in &found {
            if stat.signal(Signal::KILL) {
                killed.insert((stat.pid, stat.start));
            }
        }
        // Where orphans come to us, we reap what we killed, and never anything else.
        for (pid, start) in &killed {
            let ours = Stat::of(*pid).filter(|stat| stat.start == *start && stat.is_dead() && stat.parent == own);
            if let Some(pid) = ours.and_then(|stat| Pid::from_raw(stat.pid)) {
                let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
            }
        }
        if found.is_empty() || Instant::now() > deadline {
            return killed.len();
        }
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_a_node() {
        let node = Node { pid: 12, start: 34, namespace: 56 };
        assert_eq!(Node::parse("12.34.56.0"), Some(node));
        assert_eq!(Node::parse("12.34.56"), Some(node));
        for broken in ["", "12", "12.34", "x.34.56", "12.-1.56"] {
            assert_eq!(Node::parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn we_live_and_who_had_our_number_before_is_dead() {
        let own = Node::parse(&own_mark()).expect("our mark");
        assert!(!own.is_dead());
        assert!(Node { start: own.start + 1, ..own }.is_dead());
        assert!(!Node { start: own.start + 1, namespace: own.namespace + 1, ..own }.is_dead(), "not ours to judge");
    }
}
