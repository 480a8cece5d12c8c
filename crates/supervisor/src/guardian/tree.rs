//! All processes below the guardian: which execution each belongs to, what it used, and how it is ended.
//!
//! Every descendant hangs on a child of ours, because orphans come to us. A child is the root of an execution, or was
//! adopted; so when the root of an execution is reaped and no adopted child is its, nothing of it is left.

use std::collections::{HashMap, HashSet};
use std::process::Child;
use std::time::{Duration, Instant};

use background::backoff::{Backoff, Doubling};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use rustix::process::{Pid, Signal, WaitOptions};
use uuid::Uuid;
use wait4::Wait4;

use super::How;
use super::proc::{self, Marks, Snapshot, Stat};
use super::protocol::Report;
use super::usage::{Account, Sum};

const FIRST_SAMPLE: Duration = Duration::from_millis(200);
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// Samples that are due this soon are taken together.
const SAMPLE_SLACK: Duration = Duration::from_millis(100);
/// The pauses between two rounds of KILL.
const ROUNDS: Doubling = Doubling::new(Duration::from_millis(5), Duration::from_secs(1));

struct Execution {
    /// The program itself, until it is reaped.
    root: Option<Child>,
    pid: i32,
    grace: Duration,
    phase: Phase,
    /// The lease ran out before the root ended.
    lost: bool,
    account: Account,
    sample_at: Instant,
    /// Processes of the last sample, and the sessions and groups they had made: an orphan is known by them.
    seen: HashSet<(i32, u64)>,
    circles: HashSet<i32>,
}

#[derive(Clone, Copy)]
enum Phase {
    Running,
    /// TERM has been sent.
    Asked {
        kill_at: Instant,
    },
    /// KILL is sent again and again until nothing is left: a process can be born while we look.
    Killing(Rounds),
}

#[derive(Clone, Copy)]
struct Rounds {
    next: Instant,
    backoff: Backoff,
}

impl Rounds {
    fn begin(now: Instant) -> Self {
        Self { next: now, backoff: ROUNDS.start() }
    }

    fn turn(&mut self, now: Instant) {
        self.next = now + self.backoff.next_delay();
    }

    /// It is not the first round any more, so something is born faster than it dies.
    fn is_stubborn(&self) -> bool {
        self.backoff.retries() > 1
    }
}

/// How urgently to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Ask,
    /// Ask, but wait no longer than this.
    Hurry(Duration),
    Kill,
    /// Kill, because the lease is lost.
    Lost,
}

pub(super) struct Tree {
    own: i32,
    executions: HashMap<Uuid, Execution>,
    roots: HashMap<i32, Uuid>,
    /// Orphans that have come to us, and whose they are; nobody's are ended.
    adopted: HashMap<i32, Option<Uuid>>,
    strays: Option<Rounds>,
    reports: Vec<Report>,
}

impl Tree {
    pub(super) fn new() -> Self {
        Self {
            own: std::process::id() as i32,
            executions: HashMap::new(),
            roots: HashMap::new(),
            adopted: HashMap::new(),
            strays: None,
            reports: Vec::new(),
        }
    }

    pub(super) fn contains(&self, id: Uuid) -> bool {
        self.executions.contains_key(&id)
    }

    /// No execution runs, and no process of one is left.
    pub(super) fn is_empty(&self) -> bool {
        self.executions.is_empty() && self.adopted.is_empty()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.executions.is_empty()
    }

    pub(super) fn reports(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.reports)
    }

    pub(super) fn insert(&mut self, id: Uuid, child: Child, grace: Duration) {
        let pid = child.id() as i32;
        self.roots.insert(pid, id);
        let execution = Execution {
            root: Some(child),
            pid,
            grace,
            phase: Phase::Running,
            lost: false,
            account: Account::default(),
            sample_at: Instant::now() + FIRST_SAMPLE,
            seen: HashSet::new(),
            circles: HashSet::from([pid]),
        };
        self.executions.insert(id, execution);
    }

    /// Reaps every process that has ended, and finishes executions of which nothing is left.
    pub(super) fn reap(&mut self) {
        let mut reaped = false;
        loop {
            reaped |= self.reap_dead();
            // One that ended while we looked is counted before its execution is finished.
            if !reaped || !self.adopt() {
                break;
            }
        }
        if reaped {
            self.finish();
        }
    }

    /// As `reap`, but also where nothing has told us to.
    pub(super) fn look_again(&mut self) {
        self.reap_dead();
        self.adopt();
        self.finish();
    }

    fn reap_dead(&mut self) -> bool {
        let mut reaped = false;
        loop {
            let pid = match waitid(Id::All, WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT) {
                Ok(WaitStatus::StillAlive) | Err(nix::errno::Errno::ECHILD) => return reaped,
                Ok(status) => status.pid().map(nix::unistd::Pid::as_raw),
                Err(nix::errno::Errno::EINTR) => continue,
                // Ended by a signal that has no name, such as a real-time one: look for it.
                Err(_) => self.children().into_iter().find(|pid| Stat::of(*pid).is_some_and(|stat| stat.is_dead())),
            };
            match pid {
                Some(pid) if self.settle(pid) => reaped = true,
                _ => return reaped,
            }
        }
    }

    /// Reaps one process that has ended. What it used can only be read before that.
    fn settle(&mut self, pid: i32) -> bool {
        let io = proc::io(pid).unwrap_or_default();
        let Some(id) = self.roots.remove(&pid) else { return self.settle_adopted(pid, io) };
        let Some(execution) = self.executions.get_mut(&id) else { return true };
        let Some(mut child) = execution.root.take() else { return true };
        let how = match child.wait4() {
            Ok(ended) => {
                let cpu = ended.rusage.utime + ended.rusage.stime;
                execution.account.ended(cpu, ended.rusage.maxrss, io);
                use std::os::unix::process::ExitStatusExt;
                match ended.status.code() {
                    _ if execution.lost => How::LeaseLost,
                    Some(code) => How::Code(code),
                    None => How::Signal(ended.status.signal().unwrap_or_default()),
                }
            }
            // Cannot be: it is our child, it has ended, and nobody else waits for it.
            Err(_) => How::Code(-1),
        };
        self.reports.push(Report::Exited { id, how, usage: execution.account.total() });
        true
    }

    /// Nobody tells what one adopted process used, but the sum of all reaped ones grows by it.
    fn settle_adopted(&mut self, pid: i32, io: (u64, u64)) -> bool {
        let owner = match self.adopted.remove(&pid) {
            Some(owner) => owner,
            None => Stat::of(pid).and_then(|stat| self.attribute(&stat)),
        };
        let before = reaped_so_far();
        let Some(pid) = Pid::from_raw(pid) else { return false };
        if !matches!(rustix::process::waitpid(Some(pid), WaitOptions::NOHANG), Ok(Some(_))) {
            return false;
        }
        let after = reaped_so_far();
        if let Some(execution) = owner.and_then(|id| self.executions.get_mut(&id)) {
            // The highest peak of all is only its own if it has just risen.
            let peak = if after.1 > before.1 { after.1 } else { 0 };
            execution.account.ended(after.0.saturating_sub(before.0), peak, io);
        }
        true
    }

    /// Takes note of children that have come to us. True if one of them has ended already.
    fn adopt(&mut self) -> bool {
        let mut dead = false;
        for pid in self.children() {
            if self.roots.contains_key(&pid) || self.adopted.contains_key(&pid) {
                continue;
            }
            let Some(stat) = Stat::of(pid) else { continue };
            if stat.is_dead() {
                dead = true;
                continue;
            }
            let owner = self.attribute(&stat);
            self.adopted.insert(pid, owner);
            if owner.is_none() && self.strays.is_none() {
                self.strays = Some(Rounds::begin(Instant::now()));
            }
        }
        dead
    }

    /// Ends what roots have left behind, and forgets executions that have left nothing.
    fn finish(&mut self) {
        let rootless: Vec<Uuid> =
            self.executions.iter().filter(|(_, execution)| execution.root.is_none()).map(|(id, _)| *id).collect();
        for id in rootless {
            if !self.adopted.values().any(|owner| *owner == Some(id)) {
                if let Some(mut execution) = self.executions.remove(&id) {
                    self.reports.push(Report::Gone { id, usage: execution.account.close() });
                }
            } else if matches!(self.executions.get(&id).map(|execution| execution.phase), Some(Phase::Running)) {
                self.end(id, Ending::Ask);
            }
        }
        if !self.adopted.values().any(Option::is_none) {
            self.strays = None;
        }
    }

    fn children(&self) -> Vec<i32> {
        proc::children().unwrap_or_else(|| Snapshot::take().children_of(self.own).to_vec())
    }

    /// Whose an orphan is. One that has hidden every trace can still only be of the one execution there is.
    fn attribute(&self, stat: &Stat) -> Option<Uuid> {
        let find = |belongs: &dyn Fn(&Execution) -> bool| {
            self.executions.iter().find(|(_, execution)| belongs(execution)).map(|(id, _)| *id)
        };
        find(&|execution| execution.seen.contains(&(stat.pid, stat.start)))
            .or_else(|| Marks::of(stat.pid).execution.filter(|id| self.executions.contains_key(id)))
            .or_else(|| find(&|execution| execution.circles.contains(&stat.session)))
            .or_else(|| find(&|execution| execution.circles.contains(&stat.group)))
            .or_else(|| if self.executions.len() == 1 { self.executions.keys().next().copied() } else { None })
    }

    pub(super) fn end_all(&mut self, ending: Ending) {
        let ids: Vec<Uuid> = self.executions.keys().copied().collect();
        for id in ids {
            self.end(id, ending);
        }
    }

    pub(super) fn end(&mut self, id: Uuid, ending: Ending) {
        let now = Instant::now();
        let Some(execution) = self.executions.get_mut(&id) else { return };
        let grace = match ending {
            Ending::Ask => execution.grace,
            Ending::Hurry(most) => execution.grace.min(most),
            Ending::Kill => Duration::ZERO,
            Ending::Lost => {
                execution.lost |= execution.root.is_some();
                Duration::ZERO
            }
        };
        match &mut execution.phase {
            Phase::Killing(_) => {}
            _ if grace.is_zero() => execution.phase = Phase::Killing(Rounds::begin(now)),
            // Who is asked again has not more time than before.
            Phase::Asked { kill_at } => *kill_at = (*kill_at).min(now + grace),
            Phase::Running => {
                execution.phase = Phase::Asked { kill_at: now + grace };
                let members = self.members(id, &Snapshot::take());
                self.signal(id, &members, Signal::TERM);
                // One that is stopped could not hear it.
                self.signal(id, &members, Signal::CONT);
            }
        }
    }

    /// Every process of an execution: below its root, and below what we adopted of it.
    fn members(&self, id: Uuid, snapshot: &Snapshot) -> Vec<Stat> {
        let root = self.executions.get(&id).and_then(|execution| execution.root.as_ref().map(|_| execution.pid));
        let adopted = self.adopted.iter().filter(|(_, owner)| **owner == Some(id)).map(|(pid, _)| *pid);
        let tops = root.into_iter().chain(adopted);
        tops.flat_map(|pid| snapshot.tree(pid)).filter(|stat| !stat.is_dead()).collect()
    }

    fn signal(&self, id: Uuid, members: &[Stat], signal: Signal) {
        // A whole group at once, so that nothing is born in it meanwhile. As long as we have not reaped the root,
        // its number is no other group's.
        let root = self.executions.get(&id).filter(|execution| execution.root.is_some()).map(|execution| execution.pid);
        if let Some(group) = root.filter(|pid| *pid > 1 && *pid != self.own).and_then(Pid::from_raw) {
            let _ = rustix::process::kill_process_group(group, signal);
        }
        for stat in members {
            if Some(stat.group) != root {
                stat.signal(signal);
            }
        }
    }

    /// What is due now: samples, and the next round of every ending.
    pub(super) fn tick(&mut self, now: Instant) {
        let mut snapshot: Option<Snapshot> = None;
        let ids: Vec<Uuid> = self.executions.keys().copied().collect();
        let sampling = self.executions.values().any(|execution| execution.sample_at <= now);
        if sampling {
            let picture = snapshot.get_or_insert_with(Snapshot::take);
            // Orphans of executions that still run belong to their account.
            if picture.children_of(self.own).iter().any(|pid| !self.roots.contains_key(pid)) {
                self.adopt();
            }
            for id in &ids {
                self.sample(*id, now, picture);
            }
        }
        for id in ids {
            let Some(execution) = self.executions.get_mut(&id) else { continue };
            if let Phase::Asked { kill_at } = execution.phase
                && kill_at <= now
            {
                execution.phase = Phase::Killing(Rounds::begin(now));
            }
            let Phase::Killing(rounds) = &mut execution.phase else { continue };
            if rounds.next <= now {
                rounds.turn(now);
                let stubborn = rounds.is_stubborn();
                let mut members = self.members(id, snapshot.get_or_insert_with(Snapshot::take));
                if stubborn {
                    self.signal(id, &members, Signal::STOP);
                    members = self.members(id, snapshot.insert(Snapshot::take()));
                }
                self.signal(id, &members, Signal::KILL);
            }
        }
        if let Some(rounds) = &mut self.strays
            && rounds.next <= now
        {
            rounds.turn(now);
            let picture = snapshot.get_or_insert_with(Snapshot::take);
            for (pid, _) in self.adopted.iter().filter(|(_, owner)| owner.is_none()) {
                for stat in picture.tree(*pid) {
                    stat.signal(Signal::KILL);
                }
            }
        }
    }

    fn sample(&mut self, id: Uuid, now: Instant, snapshot: &Snapshot) {
        let members = self.members(id, snapshot);
        let own = self.own;
        let Some(execution) = self.executions.get_mut(&id) else { return };
        if execution.sample_at > now + SAMPLE_SLACK {
            return;
        }
        execution.sample_at = now + SAMPLE_EVERY;
        let mut sum = Sum::default();
        for stat in &members {
            let (read, write) = proc::io(stat.pid).unwrap_or_default();
            sum.cpu += stat.cpu();
            sum.rss += stat.rss();
            sum.read += read;
            sum.write += write;
            sum.processes += 1;
        }
        execution.seen = members.iter().map(|stat| (stat.pid, stat.start)).collect();
        execution.circles = members.iter().flat_map(|stat| [stat.session, stat.group]).collect();
        execution.circles.insert(execution.pid);
        // Everyone starts in our session, so it says nothing.
        execution.circles.remove(&own);
        let usage = execution.account.sampled(sum);
        let mut sessions: Vec<i32> = members.iter().map(|stat| stat.session).filter(|one| *one != own).collect();
        sessions.sort_unstable();
        sessions.dedup();
        self.reports.push(Report::Usage { id, usage, sessions });
    }

    /// When `tick` has something to do.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let executions = self.executions.values().map(|execution| match execution.phase {
            Phase::Running => execution.sample_at,
            Phase::Asked { kill_at } => kill_at.min(execution.sample_at),
            Phase::Killing(rounds) => rounds.next.min(execution.sample_at),
        });
        executions.chain(self.strays.map(|rounds| rounds.next)).min()
    }
}

/// Time and peak of everything this process has reaped.
fn reaped_so_far() -> (Duration, u64) {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return Default::default() };
    let time = |value: nix::sys::time::TimeVal| Duration::from_micros(value.num_microseconds().max(0) as u64);
    (time(usage.user_time()) + time(usage.system_time()), usage.max_rss().max(0) as u64 * 1024)
}
