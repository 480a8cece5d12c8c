//! Reads `/proc`: the process tree, resource usage, and the marker variables of processes.

use std::collections::HashMap;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal};
use uuid::Uuid;

use super::{EXECUTION_ID_VARIABLE, GUARDIAN_ARGUMENT, NODE_VARIABLE};

/// The fields of `/proc/<pid>/stat` that the guardian needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) pid: i32,
    pub(super) state: u8,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    /// CPU time of the process and of the children that it has waited for, in clock ticks.
    ticks: u64,
    /// Start time in ticks after boot. Together with the pid it identifies a process uniquely.
    pub(super) start: u64,
    /// Resident memory in pages.
    pages: u64,
}

impl Stat {
    /// Parses the line. The program name may contain any byte, so fields are counted from the last parenthesis. Returns
    /// `None` if a required field is missing or not a number. Missing CPU times or memory sizes count as 0.
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

    /// Reads the fields of a process. Returns `None` if it does not exist.
    pub(super) fn read(pid: i32) -> Option<Self> {
        Self::parse(&read_small(&format!("/proc/{pid}/stat"))?)
    }

    /// Returns true if the process has ended and waits to be reaped.
    pub(super) fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    pub(super) fn cpu(&self) -> Duration {
        let rate = rustix::param::clock_ticks_per_second().max(1);
        Duration::from_micros(self.ticks.saturating_mul(1_000_000) / rate)
    }

    /// Returns the resident memory in bytes.
    pub(super) fn rss(&self) -> u64 {
        self.pages.saturating_mul(rustix::param::page_size() as u64)
    }

    /// Signals exactly this process. Returns true if the signal was sent, also to an ended process that is not reaped.
    /// Returns false if the process was reaped, also if its pid was reused, and if the signal is not permitted. Never
    /// signals process 1 or the current process; returns false for them.
    pub(super) fn signal(&self, signal: Signal) -> bool {
        if self.pid <= 1 || self.pid as u32 == std::process::id() {
            return false;
        }
        let Some(pid) = Pid::from_raw(self.pid) else { return false };
        let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { return false };
        // The handle refers to the current process with this pid. Compare start times to detect a reused pid.
        Self::read(self.pid).is_some_and(|now| now.start == self.start)
            && rustix::process::pidfd_send_signal(handle, signal).is_ok()
    }
}

/// Reads a small file of `/proc`, which the kernel returns in one read of at most 4096 bytes. Returns `None` if it
/// cannot be read.
fn read_small(path: &str) -> Option<Vec<u8>> {
    let mut text = vec![0; 4096];
    let length = std::fs::File::open(path).ok()?.read(&mut text).ok()?;
    text.truncate(length);
    Some(text)
}

/// Returns the bytes read from and written to storage by a process and the children that it has waited for. Also works
/// for a process that has ended and is not reaped. Returns `None` if the values cannot be read.
pub(super) fn io(pid: i32) -> Option<(u64, u64)> {
    Some(parse_io(&String::from_utf8_lossy(&read_small(&format!("/proc/{pid}/io"))?)))
}

/// Returns the bytes read and written. A missing field counts as 0.
fn parse_io(text: &str) -> (u64, u64) {
    let field = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok()).unwrap_or_default()
    };
    (field("read_bytes:"), field("write_bytes:"))
}

/// The markers of a process: of a guardian in its arguments, of all others in their environment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ProcessMarkers {
    pub(super) execution: Option<Uuid>,
    pub(super) node: Option<String>,
    pub(super) guardian: bool,
}

impl ProcessMarkers {
    /// Reads the markers of a process. Returns empty markers if its environment cannot be read.
    pub(super) fn read(pid: i32) -> Self {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut arguments = arguments.split(|byte| *byte == 0).skip(1);
        if arguments.next() == Some(GUARDIAN_ARGUMENT.as_bytes()) {
            let node = arguments.next().and_then(|marker| std::str::from_utf8(marker).ok()).map(str::to_owned);
            let execution = arguments.next().and_then(|id| std::str::from_utf8(id).ok()?.parse().ok());
            return Self { execution, node, guardian: true };
        }
        std::fs::read(format!("/proc/{pid}/environ")).map(|text| Self::parse(&text)).unwrap_or_default()
    }

    /// Parses an environment with NUL bytes between the variables. Invalid values are treated as missing. Of a repeated
    /// variable, the last one counts.
    fn parse(text: &[u8]) -> Self {
        let mut markers = Self::default();
        for variable in text.split(|byte| *byte == 0) {
            let Some(at) = variable.iter().position(|byte| *byte == b'=') else { continue };
            let (name, value) = variable.split_at(at);
            let value = || std::str::from_utf8(&value[1..]).ok();
            if name == EXECUTION_ID_VARIABLE.as_bytes() {
                markers.execution = value().and_then(|id| id.parse().ok());
            } else if name == NODE_VARIABLE.as_bytes() {
                markers.node = value().map(str::to_owned);
            }
        }
        markers
    }
}

/// Returns the children of this process that are not reaped. The list is complete, because only this process reaps
/// them. Returns `None` if the kernel does not provide the list.
pub(super) fn children() -> Option<Vec<i32>> {
    let pid = std::process::id();
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    Some(list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect())
}

/// Returns the pids of all processes.
pub(super) fn pids() -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the children of the main thread of a process and their descendants, about `limit` of them at most. A process
/// that its parent has left is not included. Empty if the kernel does not provide the list.
pub(super) fn descendants(pid: i32, limit: usize) -> Vec<i32> {
    let mut found = Vec::new();
    let mut pending = vec![pid];
    while found.len() < limit
        && let Some(pid) = pending.pop()
    {
        let list = read_small(&format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let list = String::from_utf8_lossy(&list);
        for child in list.split_ascii_whitespace().filter_map(|child| child.parse().ok()) {
            found.push(child);
            pending.push(child);
        }
    }
    found
}

/// Returns true if the process runs as a guardian. The arguments of a process are readable even if its environment is
/// not.
pub(super) fn is_guardian(pid: u32) -> bool {
    let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    arguments.split(|byte| *byte == 0).nth(1) == Some(GUARDIAN_ARGUMENT.as_bytes())
}

/// Returns the execution id in the name of the version 2 control group of a process.
pub(super) fn group_execution(pid: i32) -> Option<Uuid> {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    path.rsplit('/').find_map(|name| Uuid::try_parse(name).ok())
}

/// Returns the number of tasks of the machine, with threads. Returns `None` if the kernel does not provide it.
pub(super) fn task_count() -> Option<u64> {
    let text = read_small("/proc/loadavg")?;
    let text = String::from_utf8_lossy(&text);
    text.split(' ').nth(3)?.split_once('/')?.1.parse().ok()
}

/// Returns the user id that a process runs as, or `None` if the process does not exist. The owner of its directory in
/// `/proc` may differ: it is root for a process with protected memory.
pub(super) fn owner(pid: i32) -> Option<u32> {
    let status = read_small(&format!("/proc/{pid}/status"))?;
    let status = String::from_utf8_lossy(&status);
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    // Real, effective, saved and file system id.
    ids.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Returns the id of the PID namespace, or 0 if it is unknown. A pid is only valid in its namespace.
pub(super) fn namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map(|entry| entry.ino()).unwrap_or_default()
}

/// All processes at approximately one moment.
#[derive(Debug, Default)]
pub(super) struct ProcessSnapshot {
    processes: HashMap<i32, Stat>,
    children: HashMap<i32, Vec<i32>>,
}

impl ProcessSnapshot {
    /// Reads all processes. Those with an unknown parent are read again, with the parent, up to three times. A process
    /// that has ended meanwhile may be missing or included.
    pub(super) fn take() -> Self {
        let mut processes: HashMap<i32, Stat> =
            pids().into_iter().filter_map(Stat::read).map(|stat| (stat.pid, stat)).collect();
        // A parent may have started or ended during the read. Read again the processes with an unknown parent.
        for _ in 0..3 {
            let detached: Vec<i32> = processes
                .values()
                .filter(|stat| stat.parent != 0 && !processes.contains_key(&stat.parent))
                .map(|stat| stat.pid)
                .collect();
            if detached.is_empty() {
                break;
            }
            for pid in detached {
                match Stat::read(pid) {
                    Some(stat) => {
                        processes.insert(pid, stat);
                        if let Some(parent) = Stat::read(stat.parent) {
                            processes.entry(parent.pid).or_insert(parent);
                        }
                    }
                    None => {
                        processes.remove(&pid);
                    }
                }
            }
        }
        Self::from_processes(processes)
    }

    fn from_processes(processes: HashMap<i32, Stat>) -> Self {
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

    /// Returns the pids of the direct children of a process.
    pub(super) fn children_of(&self, pid: i32) -> &[i32] {
        self.children.get(&pid).map_or(&[], Vec::as_slice)
    }

    /// Returns a process and all its descendants, parents first. Empty if the process is unknown.
    pub(super) fn tree(&self, root: i32) -> Vec<Stat> {
        let mut found: Vec<Stat> = self.get(root).copied().into_iter().collect();
        let mut at = 0;
        // A reused pid can create a cycle in an inconsistent snapshot. The length check ends the loop.
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
    fn program_names_may_contain_any_bytes() {
        let stat = Stat::parse(LINE).expect("parsed");
        assert_eq!((stat.pid, stat.parent, stat.group, stat.session), (4242, 17, 4242, 4200));
        assert_eq!((stat.ticks, stat.start, stat.pages, stat.state), (34, 123456, 25, b'S'));
        assert_eq!(stat.cpu(), Duration::from_millis(340));
    }

    #[test]
    fn incomplete_lines_are_rejected() {
        for end in 0..60 {
            assert_eq!(Stat::parse(&LINE[..end]), None, "{end}");
        }
    }

    #[test]
    fn markers_are_found_among_other_variables() {
        let id = Uuid::from_u128(7);
        let text = format!("A=1\0broken\0{EXECUTION_ID_VARIABLE}={id}\0X{NODE_VARIABLE}=no\0{NODE_VARIABLE}=1.2.3.4\0");
        let markers = ProcessMarkers::parse(text.as_bytes());
        assert_eq!(markers, ProcessMarkers { execution: Some(id), node: Some("1.2.3.4".to_owned()), guardian: false });
        assert_eq!(ProcessMarkers::parse(b""), ProcessMarkers::default());
        assert_eq!(ProcessMarkers::parse(b"ADJUTANT_EXECUTION_ID=\xff\xfe\0").execution, None);
    }

    #[test]
    fn io_fields_are_found_by_name() {
        assert_eq!(parse_io("rchar: 1\nwchar: 2\nread_bytes: 3\nwrite_bytes: 4\ncancelled_write_bytes: 5\n"), (3, 4));
        assert_eq!(parse_io(""), (0, 0));
    }

    #[test]
    fn trees_with_cycles_are_handled() {
        let stat = |pid, parent| Stat { pid, parent, ..Stat::parse(LINE).expect("parsed") };
        let processes = [stat(2, 1), stat(3, 2), stat(4, 3), stat(5, 1)].map(|stat| (stat.pid, stat));
        let snapshot = ProcessSnapshot::from_processes(processes.into_iter().collect());
        let pids = |root| snapshot.tree(root).iter().map(|stat| stat.pid).collect::<Vec<_>>();
        assert_eq!(pids(2), [2, 3, 4]);
        assert!(pids(9).is_empty());
        let circle = ProcessSnapshot::from_processes(
            [stat(2, 3), stat(3, 2)].map(|stat| (stat.pid, stat)).into_iter().collect(),
        );
        assert!(!circle.tree(2).is_empty());
    }

    #[test]
    fn snapshot_contains_the_current_process_which_is_never_signalled() {
        let own = std::process::id() as i32;
        let snapshot = ProcessSnapshot::take();
        let stat = snapshot.get(own).expect("we run");
        assert!(!stat.signal(Signal::KILL));
        assert!(snapshot.tree(stat.parent).iter().any(|stat| stat.pid == own));
    }
}
