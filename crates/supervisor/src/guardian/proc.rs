//! Reads `/proc`: who is whose child, what a process uses, and the marks in its environment. Never signals anything.

use std::collections::HashMap;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal};
use uuid::Uuid;

use super::{EXECUTION_MARK, GUARDIAN_MARK, NODE_MARK};

/// `/proc/<pid>/stat`, as far as we need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) pid: i32,
    pub(super) state: u8,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    /// Its own time and that of the children it waited for, in ticks.
    ticks: u64,
    /// Ticks after boot. With the pid it names one process for good.
    pub(super) start: u64,
    pages: u64,
}

impl Stat {
    /// The name of the program may hold anything, so the fields are counted from the last bracket.
    fn parse(text: &[u8]) -> Option<Self> {
        let open = text.iter().position(|byte| *byte == b'(')?;
        let close = text.iter().rposition(|byte| *byte == b')')?;
        let pid = std::str::from_utf8(text.get(..open)?).ok()?.trim().parse().ok()?;
        let rest = std::str::from_utf8(text.get(close + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<i64>().ok();
        let ticks = (11..15).filter_map(number).map(|ticks| ticks.max(0) as u64).sum();
        Some(Self {
            pid,
            state: *fields.first()?.as_bytes().first()?,
            parent: number(1)? as i32,
            group: number(2)? as i32,
            session: number(3)? as i32,
            ticks,
            start: fields.get(19)?.parse().ok()?,
            pages: number(21).unwrap_or(0).max(0) as u64,
        })
    }

    pub(super) fn of(pid: i32) -> Option<Self> {
        Self::parse(&small(&format!("/proc/{pid}/stat"))?)
    }

    /// It has ended and only waits to be reaped.
    pub(super) fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    pub(super) fn cpu(&self) -> Duration {
        let rate = rustix::param::clock_ticks_per_second().max(1);
        Duration::from_micros(self.ticks.saturating_mul(1_000_000) / rate)
    }

    pub(super) fn rss(&self) -> u64 {
        self.pages.saturating_mul(rustix::param::page_size() as u64)
    }

    /// Signals this very process: not another one that has got its number, not process 1, not us.
    pub(super) fn signal(&self, signal: Signal) -> bool {
        if self.pid <= 1 || self.pid as u32 == std::process::id() {
            return false;
        }
        let Some(pid) = Pid::from_raw(self.pid) else { return false };
        let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { return false };
        // The handle is of whoever had the number just now: it is the right one if that one is as old.
        Self::of(self.pid).is_some_and(|now| now.start == self.start)
            && rustix::process::pidfd_send_signal(handle, signal).is_ok()
    }
}

/// A file of a few lines, which the kernel gives in one piece.
fn small(path: &str) -> Option<Vec<u8>> {
    let mut text = vec![0; 4096];
    let length = std::fs::File::open(path).ok()?.read(&mut text).ok()?;
    text.truncate(length);
    Some(text)
}

/// Bytes that storage read and wrote for a process and the children it waited for; also of one that has just ended.
pub(super) fn io(pid: i32) -> Option<(u64, u64)> {
    Some(parse_io(&String::from_utf8_lossy(&small(&format!("/proc/{pid}/io"))?)))
}

fn parse_io(text: &str) -> (u64, u64) {
    let field = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok()).unwrap_or_default()
    };
    (field("read_bytes:"), field("write_bytes:"))
}

/// What a process of ours says about itself in its environment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) execution: Option<Uuid>,
    pub(super) node: Option<String>,
    pub(super) guardian: bool,
}

impl Marks {
    pub(super) fn of(pid: i32) -> Self {
        std::fs::read(format!("/proc/{pid}/environ")).map(|text| Self::parse(&text)).unwrap_or_default()
    }

    fn parse(text: &[u8]) -> Self {
        let mut marks = Self::default();
        for variable in text.split(|byte| *byte == 0) {
            let Some(at) = variable.iter().position(|byte| *byte == b'=') else { continue };
            let (name, value) = variable.split_at(at);
            let value = || std::str::from_utf8(&value[1..]).ok();
            if name == EXECUTION_MARK.as_bytes() {
                marks.execution = value().and_then(|id| id.parse().ok());
            } else if name == NODE_MARK.as_bytes() {
                marks.node = value().map(str::to_owned);
            } else if name == GUARDIAN_MARK.as_bytes() {
                marks.guardian = true;
            }
        }
        marks
    }
}

/// The children of this process that it has not reaped. Only we reap them, so none is missed while the list is read.
/// `None` where the kernel keeps no such list.
pub(super) fn children() -> Option<Vec<i32>> {
    let pid = std::process::id();
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    Some(list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect())
}

pub(super) fn pids() -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The user a process runs as.
pub(super) fn owner(pid: i32) -> Option<u32> {
    std::fs::metadata(format!("/proc/{pid}")).ok().map(|entry| entry.uid())
}

/// Tells PID namespaces apart: a number means another process in each.
pub(super) fn namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map(|entry| entry.ino()).unwrap_or_default()
}

/// All processes at about one moment.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    processes: HashMap<i32, Stat>,
    children: HashMap<i32, Vec<i32>>,
}

impl Snapshot {
    pub(super) fn take() -> Self {
        let mut processes: HashMap<i32, Stat> =
            pids().into_iter().filter_map(Stat::of).map(|stat| (stat.pid, stat)).collect();
        // A parent may have come or gone while we read. Without it the chain is torn, so ask again.
        for _ in 0..3 {
            let torn: Vec<i32> = processes
                .values()
                .filter(|stat| stat.parent != 0 && !processes.contains_key(&stat.parent))
                .map(|stat| stat.pid)
                .collect();
            if torn.is_empty() {
                break;
            }
            for pid in torn {
                match Stat::of(pid) {
                    Some(stat) => {
                        processes.insert(pid, stat);
                        if let Some(parent) = Stat::of(stat.parent) {
                            processes.entry(parent.pid).or_insert(parent);
                        }
                    }
                    None => {
                        processes.remove(&pid);
                    }
                }
            }
        }
        Self::of(processes)
    }

    fn of(processes: HashMap<i32, Stat>) -> Self {
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        for stat in processes.values() {
            children.entry(stat.parent).or_default().push(stat.pid);
        }
        Self { processes, children }
    }

    pub(super) fn get(&self, pid: i32) -> Option<&Stat> {
        self.processes.get(&pid)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Stat> {
        self.processes.values()
    }

    pub(super) fn children_of(&self, pid: i32) -> &[i32] {
        self.children.get(&pid).map_or(&[], Vec::as_slice)
    }

    /// A process and all its descendants, parents first.
    pub(super) fn tree(&self, root: i32) -> Vec<Stat> {
        let mut found: Vec<Stat> = self.get(root).copied().into_iter().collect();
        let mut at = 0;
        // A reused number can close a circle in a torn picture: nothing is visited more often than there are processes.
        while at < found.len() && found.len() <= self.processes.len() {
            let pid = found[at].pid;
            found.extend(self.children_of(pid).iter().filter_map(|child| self.get(*child)));
            at += 1;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &[u8] = b"4242 (a) b\xff (c) S 17 4242 4200 0 -1 4194304 100 0 0 0 7 8 9 10 20 0 1 0 123456 1000 25 18446744073709551615 0 0";

    #[test]
    fn a_program_may_have_brackets_and_any_bytes_in_its_name() {
        let stat = Stat::parse(LINE).expect("parsed");
        assert_eq!((stat.pid, stat.parent, stat.group, stat.session), (4242, 17, 4242, 4200));
        assert_eq!((stat.ticks, stat.start, stat.pages, stat.state), (34, 123456, 25, b'S'));
        assert_eq!(stat.cpu(), Duration::from_millis(340));
    }

    #[test]
    fn a_torn_line_is_nothing() {
        for end in 0..60 {
            assert_eq!(Stat::parse(&LINE[..end]), None, "{end}");
        }
    }

    #[test]
    fn marks_are_found_between_anything() {
        let id = Uuid::from_u128(7);
        let text = format!("A=1\0broken\0{EXECUTION_MARK}={id}\0X{NODE_MARK}=no\0{NODE_MARK}=1.2.3.4\0");
        let marks = Marks::parse(text.as_bytes());
        assert_eq!(marks, Marks { execution: Some(id), node: Some("1.2.3.4".to_owned()), guardian: false });
        assert_eq!(Marks::parse(b""), Marks::default());
        assert_eq!(Marks::parse(b"ADJUTANT_EXECUTION_ID=\xff\xfe\0").execution, None);
    }

    #[test]
    fn io_is_read_by_name() {
        assert_eq!(parse_io("rchar: 1\nwchar: 2\nread_bytes: 3\nwrite_bytes: 4\ncancelled_write_bytes: 5\n"), (3, 4));
        assert_eq!(parse_io(""), (0, 0));
    }

    #[test]
    fn a_tree_is_found_even_in_a_circle() {
        let stat = |pid, parent| Stat { pid, parent, ..Stat::parse(LINE).expect("parsed") };
        let processes = [stat(2, 1), stat(3, 2), stat(4, 3), stat(5, 1)].map(|stat| (stat.pid, stat));
        let snapshot = Snapshot::of(processes.into_iter().collect());
        let pids = |root| snapshot.tree(root).iter().map(|stat| stat.pid).collect::<Vec<_>>();
        assert_eq!(pids(2), [2, 3, 4]);
        assert!(pids(9).is_empty());
        let circle = Snapshot::of([stat(2, 3), stat(3, 2)].map(|stat| (stat.pid, stat)).into_iter().collect());
        assert!(!circle.tree(2).is_empty());
    }

    #[test]
    fn we_are_in_our_own_picture_and_refuse_to_signal_ourselves() {
        let own = std::process::id() as i32;
        let snapshot = Snapshot::take();
        let stat = snapshot.get(own).expect("we run");
        assert!(!stat.signal(Signal::KILL));
        assert!(snapshot.tree(stat.parent).iter().any(|stat| stat.pid == own));
    }
}
