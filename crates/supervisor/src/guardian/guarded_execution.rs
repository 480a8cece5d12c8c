//! One execution as the guardian sees it: its processes, its limits and the progress of its end.

use std::collections::HashSet;
use std::process::Child;
use std::time::{Duration, Instant};

use background::backoff::{Backoff, BackoffPolicy};
use rustix::process::Signal;

use super::ExitReason;
use super::cgroup::RunGroup;
use super::file_view::FileView;
use super::launch::{ExceededLimit, TreeLimits};
use super::usage::{ProcessUsage, UsageTotals};

/// The delays between two rounds of KILL.
const KILL_BACKOFF: BackoffPolicy = BackoffPolicy::new(Duration::from_millis(5), Duration::from_secs(1));

/// The processes of one execution.
pub(super) struct GuardedExecution {
    /// The program itself, until it is reaped.
    pub(super) root: Option<Child>,
    pub(super) pid: i32,
    pub(super) grace: Duration,
    pub(super) phase: EndPhase,
    /// The lease expired before the root ended.
    pub(super) lease_lost: bool,
    pub(super) limits: TreeLimits,
    pub(super) started: Instant,
    /// The limit that was exceeded before the root ended.
    pub(super) exceeded: Option<ExceededLimit>,
    pub(super) group: RunGroup,
    /// The files that it sees.
    pub(super) view: Option<FileView>,
    pub(super) usage: UsageTotals,
    pub(super) sample_at: Instant,
    /// The processes of the last sample, as pid and start time. They identify orphans.
    pub(super) sampled: HashSet<(i32, u64)>,
    /// The sessions and process groups of the last sample. They identify orphans.
    pub(super) groups: HashSet<i32>,
}

impl GuardedExecution {
    /// Returns the first limit that the execution exceeds at `now`, or has exceeded before: a fork bomb ends by itself when
    /// the kernel refuses new processes. The kernel's own count of memory is more exact than a sum of samples, in which
    /// shared pages count several times.
    pub(super) fn exceeds(
        &self,
        processes: u64,
        usage: &ProcessUsage,
        now: Instant,
        kernel_limits_memory: bool,
    ) -> Option<ExceededLimit> {
        let memory = self.limits.memory.filter(|_| !kernel_limits_memory);
        let limits = TreeLimits { memory, ..self.limits };
        limits.exceeded(processes, usage, now.saturating_duration_since(self.started)).or_else(|| {
            let limit = self.limits.processes.filter(|_| self.group.exceeded_processes())?;
            Some(ExceededLimit::Processes(limit))
        })
    }

    /// Returns the reason of an end by `signal` if the kernel has killed the program because of its memory limit.
    pub(super) fn killed_for_memory(&self, signal: i32) -> Option<ExitReason> {
        let limit = self.limits.memory.filter(|_| signal == Signal::KILL.as_raw() && self.group.exceeded_memory())?;
        Some(ExitReason::LimitExceeded(ExceededLimit::Memory(limit)))
    }
}

/// The progress of ending an execution.
#[derive(Clone, Copy)]
pub(super) enum EndPhase {
    Running,
    /// TERM was sent.
    Terminating {
        kill_at: Instant,
    },
    /// KILL is sent repeatedly until no process is left, because a process can be forked during a round.
    Killing(KillRounds),
}

/// The schedule of KILL rounds.
#[derive(Clone, Copy)]
pub(super) struct KillRounds {
    pub(super) next: Instant,
    pub(super) backoff: Backoff,
    /// Stop all processes before the first round.
    pub(super) freeze: bool,
}

impl KillRounds {
    pub(super) fn start(now: Instant) -> Self {
        Self { next: now, backoff: KILL_BACKOFF.start(), freeze: false }
    }

    /// Like [`KillRounds::start`], but all processes are stopped before the first round.
    pub(super) fn start_frozen(now: Instant) -> Self {
        Self { freeze: true, ..Self::start(now) }
    }

    /// Schedules the next round. The delay doubles with each round.
    pub(super) fn advance(&mut self, now: Instant) {
        self.next = now + self.backoff.next_delay();
    }

    /// Returns true if all processes have to be stopped first: in all rounds after the first, because processes are
    /// then forked faster than they are killed, and after [`KillRounds::start_frozen`]. Call it after
    /// [`KillRounds::advance`].
    pub(super) fn needs_freeze(&self) -> bool {
        self.freeze || self.backoff.retries() > 1
    }
}

/// The method that ends an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndMode {
    /// TERM, then KILL after the grace period.
    Graceful,
    /// Like `Graceful`, with this upper limit for the grace period.
    GraceLimit(Duration),
    Kill,
    /// KILL, because the lease was lost.
    LeaseLost,
}
