//! All processes below the guardian: maps them to executions, measures their usage, and ends them, also if they exceed
//! a limit.
//!
//! Every descendant is below a child of the guardian, because orphans become its children. A child is either the root
//! of an execution or adopted. So when the root is reaped and the execution has no adopted child, none of its processes
//! is left.

use std::collections::{HashMap, HashSet};
use std::process::Child;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use rustix::process::{Pid, Signal, WaitOptions};
use uuid::Uuid;
use wait4::Wait4;

use super::ExitReason;
use super::cgroup::{RunGroup, RunGroups, THREADS_PER_PROCESS};
use super::file_view::{FileView, FileViews};
use super::guarded_execution::{EndMode, EndPhase, GuardedExecution, KillRounds};
use super::launch::{ExceededLimit, Launch, TreeLimits};
use super::namespaces::Namespaces;
use super::proc::{self, ProcessMarkers, ProcessSnapshot, Stat};
use super::protocol::GuardianReport;
use super::task_watch::TaskWatch;
use super::usage::{ResourceSum, UsageTotals};

/// The time between the start of an execution and its first usage sample.
const FIRST_SAMPLE: Duration = Duration::from_millis(200);
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
/// Samples that are due within this time are taken together.
const SAMPLE_SLACK: Duration = Duration::from_millis(100);

/// The maximum number of processes that are reaped before samples and signals have their turn.
const MAX_REAPED_PROCESSES: usize = 1000;
/// The maximum number of times that new orphans are recorded before samples and signals have their turn.
const MAX_REAP_PASSES: usize = 8;
/// The maximum number of passes over all processes that stop an execution before it is killed.
const MAX_FREEZE_PASSES: usize = 50;

/// All processes below the guardian.
pub(super) struct ProcessTree {
    /// The pid of the guardian. It is also the id of its session.
    own: i32,
    executions: HashMap<Uuid, GuardedExecution>,
    /// The pids of the roots with their executions.
    roots: HashMap<i32, Uuid>,
    /// Orphans with the execution that they belong to. Orphans without one are killed.
    adopted: HashMap<i32, Option<Uuid>>,
    /// The KILL rounds for orphans without an execution.
    unowned: Option<KillRounds>,
    groups: RunGroups,
    /// Groups of ended executions that could not be removed yet.
    ended_groups: Vec<RunGroup>,
    views: FileViews,
    tasks: TaskWatch,
    /// The node sees the same session ids. They differ in a process namespace.
    shares_sessions: bool,
    reports: Vec<GuardianReport>,
}

impl ProcessTree {
    /// Returns an empty tree. The current process is the guardian, in these namespaces. Executions get subgroups of
    /// `groups`.
    pub(super) fn new(groups: RunGroups, namespaces: Namespaces) -> Self {
        Self {
            own: std::process::id() as i32,
            executions: HashMap::new(),
            roots: HashMap::new(),
            adopted: HashMap::new(),
            unowned: None,
            groups,
            ended_groups: Vec::new(),
            views: FileViews::default(),
            tasks: TaskWatch { next: Instant::now(), baseline: proc::task_count().unwrap_or(u64::MAX) },
            shares_sessions: namespaces != Namespaces::User,
            reports: Vec::new(),
        }
    }

    /// Returns the limit of tasks of the user for a new execution, if control groups do not limit its processes. Thousands
    /// of processes would starve the guardian, which has no priority then. Root has no such limit.
    pub(super) fn task_limit(&self, limits: &TreeLimits) -> Option<u64> {
        if self.groups.limit_processes() || rustix::process::geteuid().is_root() {
            return None;
        }
        // The tasks of the machine are at least those of the user.
        let tasks = limits.processes?.saturating_mul(THREADS_PER_PROCESS);
        Some(proc::task_count()?.saturating_add(tasks))
    }

    /// Removes the groups of all executions. No process may be left.
    pub(super) fn remove_groups(&self) {
        self.groups.remove();
    }

    pub(super) fn contains(&self, id: Uuid) -> bool {
        self.executions.contains_key(&id)
    }

    /// Returns true if no execution runs and no process is left.
    pub(super) fn is_empty(&self) -> bool {
        self.executions.is_empty() && self.adopted.is_empty()
    }

    /// Returns true if no execution runs.
    pub(super) fn is_idle(&self) -> bool {
        self.executions.is_empty()
    }

    /// Returns the reports since the last call.
    pub(super) fn take_reports(&mut self) -> Vec<GuardianReport> {
        std::mem::take(&mut self.reports)
    }

    /// Creates the groups of an execution with its limits.
    pub(super) fn add_group(&self, launch: &Launch) -> RunGroup {
        self.groups.add(launch.id, &launch.tree_limits)
    }

    /// Returns the namespaces that ended executions have left.
    pub(super) fn views(&self) -> &FileViews {
        &self.views
    }

    /// Adds an execution with its program, which was started in `group` and sees the files of `view`. Its first sample is
    /// due after [`FIRST_SAMPLE`].
    pub(super) fn insert(&mut self, launch: &Launch, child: Child, group: RunGroup, view: Option<FileView>) {
        let id = launch.id;
        let pid = child.id() as i32;
        self.roots.insert(pid, id);
        let execution = GuardedExecution {
            root: Some(child),
            pid,
            grace: launch.grace,
            phase: EndPhase::Running,
            lease_lost: false,
            limits: launch.tree_limits,
            started: Instant::now(),
            exceeded: None,
            group,
            view,
            usage: UsageTotals::default(),
            sample_at: Instant::now() + FIRST_SAMPLE,
            sampled: HashSet::new(),
            groups: HashSet::from([pid]),
        };
        self.executions.insert(id, execution);
    }

    /// Reaps ended processes, adds their usage and reports the exit of programs. If one was reaped, also records new
    /// orphans, finishes executions without processes, and begins to end the orphans of ended programs. Returns true if
    /// more ended processes may be left: a fork bomb always has one, and samples and signals must not wait for it.
    pub(super) fn reap(&mut self) -> bool {
        let mut reaped = 0;
        let mut has_more = true;
        for _ in 0..MAX_REAP_PASSES {
            reaped += self.reap_dead();
            // A process that ended meanwhile is counted before its execution is finished.
            has_more = reaped > 0 && self.adopt();
            if !has_more {
                break;
            }
        }
        if reaped > 0 {
            self.finish();
        }
        has_more || reaped >= MAX_REAPED_PROCESSES
    }

    /// Like `reap`, but also checks for orphans if no process was reaped.
    pub(super) fn reap_all(&mut self) {
        self.reap_dead();
        self.adopt();
        self.finish();
    }

    /// Reaps ended children without waiting, at most [`MAX_REAPED_PROCESSES`]. Returns their number. Stops early if a
    /// child cannot be reaped.
    fn reap_dead(&mut self) -> usize {
        let mut reaped = 0;
        for _ in 0..MAX_REAPED_PROCESSES {
            let pid = match waitid(Id::All, WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT) {
                Ok(WaitStatus::StillAlive) | Err(nix::errno::Errno::ECHILD) => return reaped,
                Ok(status) => status.pid().map(nix::unistd::Pid::as_raw),
                Err(nix::errno::Errno::EINTR) => continue,
                // `nix` cannot decode signals without a name, such as real-time signals. Find the process in `/proc`.
                Err(_) => self.children().into_iter().find(|pid| Stat::read(*pid).is_some_and(|stat| stat.is_dead())),
            };
            match pid {
                Some(pid) if self.reap_process(pid) => reaped += 1,
                _ => return reaped,
            }
        }
        reaped
    }

    /// Reaps one ended process and adds its usage to its execution. If it is a root, reports the exit with its code or
    /// signal, with `LeaseLost` if the lease expired before, or with `LimitExceeded` if a limit was exceeded before.
    /// Any other process is passed to [`ProcessTree::reap_adopted`]. Returns false if it could not be reaped.
    fn reap_process(&mut self, pid: i32) -> bool {
        let io = proc::io(pid).unwrap_or_default();
        let Some(id) = self.roots.remove(&pid) else { return self.reap_adopted(pid, io) };
        let Some(execution) = self.executions.get_mut(&id) else { return true };
        let Some(mut child) = execution.root.take() else { return true };
        let reason = match child.wait4() {
            Ok(ended) => {
                let cpu = ended.rusage.utime + ended.rusage.stime;
                execution.usage.add_ended(cpu, ended.rusage.maxrss, io);
                use std::os::unix::process::ExitStatusExt;
                match (ended.status.code(), execution.exceeded) {
                    _ if execution.lease_lost => ExitReason::LeaseLost,
                    (_, Some(limit)) => ExitReason::LimitExceeded(limit),
                    (Some(code), None) => ExitReason::Code(code),
                    (None, None) => {
                        let signal = ended.status.signal().unwrap_or_default();
                        execution.killed_for_memory(signal).unwrap_or(ExitReason::Signal(signal))
                    }
                }
            }
            // Unreachable: the process is a child, it has ended, and only this code reaps it.
            Err(_) => ExitReason::Code(-1),
        };
        self.reports.push(GuardianReport::Exited { id, reason, usage: execution.usage.total() });
        true
    }

    /// Reaps an adopted process and adds its usage to its execution, if it has one. Its CPU time is the difference of
    /// the total time of all reaped children; `io` are the bytes that it read and wrote. Its peak memory counts only if
    /// it exceeds that of all children before. Returns false if it has not ended; it is no longer adopted then.
    fn reap_adopted(&mut self, pid: i32, io: (u64, u64)) -> bool {
        let owner = match self.adopted.remove(&pid) {
            Some(owner) => owner,
            None => Stat::read(pid).and_then(|stat| self.owner_of(&stat)),
        };
        let before = reaped_usage();
        let Some(pid) = Pid::from_raw(pid) else { return false };
        if !matches!(rustix::process::waitpid(Some(pid), WaitOptions::NOHANG), Ok(Some(_))) {
            return false;
        }
        let after = reaped_usage();
        if let Some(execution) = owner.and_then(|id| self.executions.get_mut(&id)) {
            // The peak is the maximum over all children. It belongs to this one only if it has just grown.
            let peak = if after.1 > before.1 { after.1 } else { 0 };
            execution.usage.add_ended(after.0.saturating_sub(before.0), peak, io);
        }
        true
    }

    /// Records new living orphans with their executions. Orphans without an execution are killed in the next tick.
    /// Returns true if a new orphan has already ended; it is not recorded and has to be reaped.
    fn adopt(&mut self) -> bool {
        let mut dead = false;
        for pid in self.children() {
            if self.roots.contains_key(&pid) || self.adopted.contains_key(&pid) {
                continue;
            }
            let Some(stat) = Stat::read(pid) else { continue };
            if stat.is_dead() {
                dead = true;
                continue;
            }
            let owner = self.owner_of(&stat);
            self.adopted.insert(pid, owner);
            // The orphan may have left its parent before the parent was moved into the group. Moving a process takes
            // much longer than the comparison, and a fork bomb creates thousands of orphans.
            if let Some(execution) = owner.and_then(|id| self.executions.get(&id))
                && proc::group_execution(pid) != owner
            {
                execution.group.attach(pid);
            }
            if owner.is_none() && self.unowned.is_none() {
                self.unowned = Some(KillRounds::start(Instant::now()));
            }
        }
        dead
    }

    /// Removes executions without processes and reports their end. Ends the orphans of ended roots with the grace
    /// period, unless the execution is already being ended. Stops the KILL rounds for orphans without an execution once
    /// none is left.
    fn finish(&mut self) {
        let rootless: Vec<Uuid> =
            self.executions.iter().filter(|(_, execution)| execution.root.is_none()).map(|(id, _)| *id).collect();
        for id in rootless {
            if !self.adopted.values().any(|owner| *owner == Some(id)) {
                if let Some(mut execution) = self.executions.remove(&id) {
                    self.reports.push(GuardianReport::TreeEnded { id, usage: execution.usage.close() });
                    let view = execution.view.take();
                    if execution.group.remove() {
                        view.into_iter().for_each(|view| self.views.give_back(view));
                    } else {
                        self.ended_groups.push(execution.group);
                    }
                }
            } else if matches!(self.executions.get(&id).map(|execution| execution.phase), Some(EndPhase::Running)) {
                self.end(id, EndMode::Graceful);
            }
        }
        if !self.adopted.values().any(Option::is_none) {
            self.unowned = None;
        }
    }

    fn children(&self) -> Vec<i32> {
        proc::children().unwrap_or_else(|| ProcessSnapshot::take().children_of(self.own).to_vec())
    }

    /// Returns the execution of an orphan. It is identified, in this order, by the last sample, its control group, the
    /// marker in its environment, its session or its process group. An orphan that cannot be identified belongs to the only known execution,
    /// if there is only one. Returns `None` otherwise.
    fn owner_of(&self, stat: &Stat) -> Option<Uuid> {
        let find = |belongs: &dyn Fn(&GuardedExecution) -> bool| {
            self.executions.iter().find(|(_, execution)| belongs(execution)).map(|(id, _)| *id)
        };
        find(&|execution| execution.sampled.contains(&(stat.pid, stat.start)))
            .or_else(|| proc::group_execution(stat.pid).filter(|id| self.executions.contains_key(id)))
            .or_else(|| ProcessMarkers::read(stat.pid).execution.filter(|id| self.executions.contains_key(id)))
            .or_else(|| find(&|execution| execution.groups.contains(&stat.session)))
            .or_else(|| find(&|execution| execution.groups.contains(&stat.group)))
            .or_else(|| if self.executions.len() == 1 { self.executions.keys().next().copied() } else { None })
    }

    /// Ends all executions.
    pub(super) fn end_all(&mut self, mode: EndMode) {
        let ids: Vec<Uuid> = self.executions.keys().copied().collect();
        for id in ids {
            self.end(id, mode);
        }
    }

    /// Ends an execution. Sends TERM and CONT to all its processes at once, or KILL in the next tick if there is no
    /// grace period. A second call can shorten the grace period, but not extend it, and sends no second TERM.
    /// `LeaseLost` also determines the reported reason, if the root still runs. Does nothing if the execution is
    /// unknown.
    pub(super) fn end(&mut self, id: Uuid, mode: EndMode) {
        let now = Instant::now();
        let Some(execution) = self.executions.get_mut(&id) else { return };
        let grace = match mode {
            EndMode::Graceful => execution.grace,
            EndMode::GraceLimit(limit) => execution.grace.min(limit),
            EndMode::Kill => Duration::ZERO,
            EndMode::LeaseLost => {
                execution.lease_lost |= execution.root.is_some();
                Duration::ZERO
            }
        };
        match &mut execution.phase {
            EndPhase::Killing(_) => {}
            _ if grace.is_zero() => execution.phase = EndPhase::Killing(KillRounds::start(now)),
            // A second request must not extend the grace period.
            EndPhase::Terminating { kill_at } => *kill_at = (*kill_at).min(now + grace),
            EndPhase::Running => {
                execution.phase = EndPhase::Terminating { kill_at: now + grace };
                let members = self.members(Some(id), &ProcessSnapshot::take());
                self.signal(Some(id), &members, Signal::TERM);
                // A stopped process handles TERM only after CONT.
                self.signal(Some(id), &members, Signal::CONT);
            }
        }
    }

    /// Returns every living process of an execution: those below its root and those below its orphans. `None` stands
    /// for the orphans without an execution.
    fn members(&self, owner: Option<Uuid>, snapshot: &ProcessSnapshot) -> Vec<Stat> {
        self.members_with_dead(owner, snapshot).filter(|stat| !stat.is_dead()).collect()
    }

    /// Like [`ProcessTree::members`], with processes that have ended and are not reaped.
    fn members_with_dead(&self, owner: Option<Uuid>, snapshot: &ProcessSnapshot) -> impl Iterator<Item = Stat> {
        let execution = owner.and_then(|id| self.executions.get(&id));
        let root = execution.and_then(|execution| execution.root.as_ref().map(|_| execution.pid));
        let adopted = self.adopted.iter().filter(move |(_, adopter)| **adopter == owner).map(|(pid, _)| *pid);
        root.into_iter().chain(adopted).flat_map(|pid| snapshot.tree(pid))
    }

    /// Signals the group of the root, if the root is not reaped, and all `members` outside of this group. Failures are
    /// ignored.
    fn signal(&self, owner: Option<Uuid>, members: &[Stat], signal: Signal) {
        // Signal the whole group with one call, so that a fork cannot escape. The group id cannot be reused before the
        // root is reaped.
        let execution = owner.and_then(|id| self.executions.get(&id));
        let root = execution.filter(|execution| execution.root.is_some()).map(|execution| execution.pid);
        if let Some(group) = root.filter(|pid| *pid > 1 && *pid != self.own).and_then(Pid::from_raw) {
            let _ = rustix::process::kill_process_group(group, signal);
        }
        for stat in members {
            if Some(stat.group) != root {
                stat.signal(signal);
            }
        }
    }

    /// Kills all processes of an execution, or all orphans without an execution. With `freeze`, stops all of them
    /// first: STOP is repeated until a pass over all processes finds no new one, because a process can be forked during
    /// a pass. Gives up after [`MAX_FREEZE_PASSES`]; the next round continues.
    fn kill(&mut self, owner: Option<Uuid>, freeze: bool, snapshot: &mut Option<ProcessSnapshot>) {
        if let Some(execution) = owner.and_then(|id| self.executions.get(&id))
            && execution.group.kill()
        {
            // The snapshot contains processes that were just killed. The others left the group before.
            *snapshot = None;
        }
        let mut members = self.members(owner, snapshot.get_or_insert_with(ProcessSnapshot::take));
        if freeze {
            let mut stopped = HashSet::new();
            for _ in 0..MAX_FREEZE_PASSES {
                members.retain(|stat| stopped.insert((stat.pid, stat.start)));
                if members.is_empty() {
                    break;
                }
                self.signal(owner, &members, Signal::STOP);
                self.adopt();
                members = self.members(owner, snapshot.insert(ProcessSnapshot::take()));
            }
            members = self.members(owner, snapshot.get_or_insert_with(ProcessSnapshot::take));
        }
        self.signal(owner, &members, Signal::KILL);
    }

    /// Takes the samples and sends the signals that are due at `now`. If one sample is due, records new orphans and
    /// measures all executions with a sample due soon. Ends executions that exceed a limit. Sends KILL after the grace
    /// period and then repeatedly, with STOP first from the second round on. Also kills orphans without an execution,
    /// with all their descendants.
    pub(super) fn tick(&mut self, now: Instant) {
        self.ended_groups.retain(|group| !group.remove());
        let mut snapshot: Option<ProcessSnapshot> = None;
        if self.watches_tasks() && self.tasks.has_grown(now) {
            for execution in self.executions.values_mut() {
                execution.sample_at = now;
            }
        }
        let ids: Vec<Uuid> = self.executions.keys().copied().collect();
        let sampling = self.executions.values().any(|execution| execution.sample_at <= now);
        if sampling {
            let current = snapshot.get_or_insert_with(ProcessSnapshot::take);
            // The usage of orphans counts for their execution.
            if current.children_of(self.own).iter().any(|pid| !self.roots.contains_key(pid)) {
                self.adopt();
            }
            for id in &ids {
                self.sample(*id, now, current);
            }
        }
        for id in ids {
            let Some(execution) = self.executions.get_mut(&id) else { continue };
            if let EndPhase::Terminating { kill_at } = execution.phase
                && kill_at <= now
            {
                execution.phase = EndPhase::Killing(KillRounds::start(now));
            }
            let EndPhase::Killing(rounds) = &mut execution.phase else { continue };
            if rounds.next <= now {
                rounds.advance(now);
                let freeze = rounds.needs_freeze();
                self.kill(Some(id), freeze, &mut snapshot);
            }
        }
        if let Some(rounds) = &mut self.unowned
            && rounds.next <= now
        {
            rounds.advance(now);
            let freeze = rounds.needs_freeze();
            self.kill(None, freeze, &mut snapshot);
        }
    }

    /// Returns true if the number of tasks is watched: executions run, and the kernel does not limit their processes.
    fn watches_tasks(&self) -> bool {
        !self.executions.is_empty() && !self.groups.limit_processes()
    }

    /// Measures an execution and reports its usage, if a sample is due within [`SAMPLE_SLACK`]. Schedules the next
    /// sample after [`SAMPLE_INTERVAL`]. Remembers its processes, sessions and groups, without the session of the
    /// guardian. Begins to end the execution if it exceeds a limit.
    fn sample(&mut self, id: Uuid, now: Instant, snapshot: &ProcessSnapshot) {
        let mut members: Vec<Stat> = self.members_with_dead(Some(id), snapshot).collect();
        // An ended process that its parent does not reap takes a process id.
        let processes = members.len() as u64;
        members.retain(|stat| !stat.is_dead());
        let own = self.own;
        let kernel_limits_memory = self.groups.limit_memory();
        let Some(execution) = self.executions.get_mut(&id) else { return };
        if execution.sample_at > now + SAMPLE_SLACK {
            return;
        }
        execution.sample_at = now + SAMPLE_INTERVAL;
        let mut sum = ResourceSum::default();
        for stat in &members {
            let (read, write) = proc::io(stat.pid).unwrap_or_default();
            sum.cpu += stat.cpu();
            sum.rss += stat.rss();
            sum.read += read;
            sum.write += write;
            sum.processes += 1;
        }
        execution.sampled = members.iter().map(|stat| (stat.pid, stat.start)).collect();
        execution.groups = members.iter().flat_map(|stat| [stat.session, stat.group]).collect();
        execution.groups.insert(execution.pid);
        // All agents start in the session of the guardian, so it does not identify an execution.
        execution.groups.remove(&own);
        let usage = execution.usage.add_sample(sum);
        let exceeded = execution.exceeds(processes, &usage, now, kernel_limits_memory);
        let shared = members.iter().filter(|_| self.shares_sessions);
        let mut sessions: Vec<i32> = shared.map(|stat| stat.session).filter(|session| *session != own).collect();
        sessions.sort_unstable();
        sessions.dedup();
        self.reports.push(GuardianReport::Usage { id, usage, sessions });
        if let Some(limit) = exceeded {
            self.exceed(id, limit, now);
        }
    }

    /// Begins to end an execution that has exceeded a limit. It is killed at once, except that a limit of time allows
    /// the grace period. Has no effect on an execution that is already being killed.
    fn exceed(&mut self, id: Uuid, limit: ExceededLimit, now: Instant) {
        let Some(execution) = self.executions.get_mut(&id) else { return };
        if matches!(execution.phase, EndPhase::Killing(_)) {
            return;
        }
        if execution.root.is_some() {
            execution.exceeded.get_or_insert(limit);
        }
        match limit {
            ExceededLimit::Processes(_) | ExceededLimit::Memory(_) => {
                execution.phase = EndPhase::Killing(KillRounds::start_frozen(now));
            }
            ExceededLimit::CpuSeconds(_) | ExceededLimit::LifetimeSeconds(_) => self.end(id, EndMode::Graceful),
        }
    }

    /// Returns the time at which `tick` has to run next, or `None` if nothing is scheduled.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let executions = self.executions.values().map(|execution| match execution.phase {
            EndPhase::Running => execution.sample_at,
            EndPhase::Terminating { kill_at } => kill_at.min(execution.sample_at),
            EndPhase::Killing(rounds) => rounds.next.min(execution.sample_at),
        });
        let tasks = self.watches_tasks().then_some(self.tasks.next);
        executions.chain(self.unowned.map(|rounds| rounds.next)).chain(tasks).min()
    }
}

/// Returns the CPU time of all reaped children, and the largest peak memory of one of them in bytes.
fn reaped_usage() -> (Duration, u64) {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return Default::default() };
    let time = |value: nix::sys::time::TimeVal| Duration::from_micros(value.num_microseconds().max(0) as u64);
    (time(usage.user_time()) + time(usage.system_time()), usage.max_rss().max(0) as u64 * 1024)
}
