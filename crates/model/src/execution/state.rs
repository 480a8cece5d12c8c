//! The states of an execution: their names, the table of transitions, and the data that each state carries.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::words;

words! {
    /// Where an execution, or an agent, is in its life.
    #[schema(as = AgentState)]
    pub enum StateName {
        /// Waits in the queue.
        Idle = "idle",
        Starting = "starting",
        Running = "running",
        Completed = "completed",
        Failed = "failed",
        Timeout = "timeout",
        Cancelled = "cancelled",
        /// Passed between the end of an attempt and `Idle`.
        Cleanup = "cleanup",
    }
}

/// The states that may follow each state. S2's table, with the transitions that it lacks for waiting executions.
pub(super) const TABLE: &[(StateName, &[StateName])] = {
    use StateName::{Cancelled, Cleanup, Completed, Failed, Idle, Running, Starting, Timeout};
    &[
        (Idle, &[Starting, Cancelled, Timeout, Failed]),
        (Starting, &[Running, Failed, Cancelled, Timeout]),
        (Running, &[Completed, Failed, Timeout, Cancelled]),
        (Completed, &[Cleanup]),
        // A retry starts from the failure.
        (Failed, &[Cleanup, Starting]),
        (Timeout, &[Cleanup]),
        (Cancelled, &[Cleanup]),
        (Cleanup, &[Idle]),
    ]
};

impl StateName {
    /// Returns `true` if the table allows the transition.
    pub fn may_become(self, next: Self) -> bool {
        TABLE.iter().any(|(from, to)| *from == self && to.contains(&next))
    }

    /// Returns `true` for the states in which an attempt, or the execution, ends.
    pub fn is_end(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Timeout | Self::Cancelled)
    }
}

/// One step of an execution's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Transition {
    pub from: StateName,
    pub to: StateName,
    pub at: Timestamp,
}

/// The error of a transition that the table does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an execution cannot go from {from} to {to}")]
pub struct Illegal {
    pub from: StateName,
    pub to: StateName,
}

/// The state of an execution, with the data that exists in this state only.
///
/// `failed` and `cleanup` between two attempts are passed in one step, so an execution is never found there.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// Waits in the queue. The position counts from 1; only some queries compute it.
    Idle {
        queue_position: Option<i64>,
    },
    /// Claimed by a node.
    Starting,
    Running {
        started: Started,
        resource_usage: Option<ResourceUsage>,
    },
    /// Ended for good.
    Ended(End),
}

impl State {
    pub fn name(&self) -> StateName {
        match self {
            Self::Idle { .. } => StateName::Idle,
            Self::Starting => StateName::Starting,
            Self::Running { .. } => StateName::Running,
            Self::Ended(end) => end.status.state(),
        }
    }

    /// Returns the start of the current or last attempt, if it got that far.
    pub fn started(&self) -> Option<Started> {
        match self {
            Self::Idle { .. } | Self::Starting => None,
            Self::Running { started, .. } => Some(*started),
            Self::Ended(end) => end.started,
        }
    }

    /// Returns the resources that the current or last attempt used, as far as they were measured.
    pub fn resource_usage(&self) -> Option<ResourceUsage> {
        match self {
            Self::Idle { .. } | Self::Starting => None,
            Self::Running { resource_usage, .. } => *resource_usage,
            Self::Ended(end) => end.exit.resource_usage,
        }
    }
}

/// The start of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    pub at: Timestamp,
    /// `None` for an agent without a process.
    pub process_id: Option<i64>,
}

/// The end of an execution.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    pub status: Status,
    pub at: Timestamp,
    /// `None` if the last attempt never ran.
    pub started: Option<Started>,
    pub exit: Exit,
}

impl End {
    pub(super) fn standing(&self) -> Standing {
        match (self.status, self.exit.outcome) {
            (Status::Success, Some(Outcome::Asks)) => Standing::Asks,
            (Status::Success, Some(Outcome::NeedsAccess)) => Standing::NeedsAccess,
            (Status::Cancelled, _) | (Status::Success, Some(Outcome::Withdrawn)) => Standing::Cancelled,
            (Status::Success, _) => Standing::Completed,
            (_, Some(Outcome::Rejected)) => Standing::Rejected,
            _ => Standing::Failed,
        }
    }

    /// Returns the milliseconds from the start of the last attempt to the end; 0 if it never ran.
    pub fn execution_time(&self) -> i64 {
        self.started.map_or(0, |started| (self.at.as_microsecond() - started.at.as_microsecond()).max(0) / 1000)
    }
}

/// The results of an attempt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exit {
    pub exit_code: Option<i64>,
    pub error: Option<RunError>,
    pub outcome: Option<Outcome>,
    pub resource_usage: Option<ResourceUsage>,
}

impl Exit {
    /// Returns an exit with an error and nothing else.
    pub fn with_error(message: impl Into<String>, category: Option<Category>) -> Self {
        Self { error: Some(RunError { message: message.into(), category }), ..Self::default() }
    }
}

/// The reason why an attempt did not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunError {
    pub message: String,
    pub category: Option<Category>,
}

words! {
    /// What kind of failure it was: only what is transient is tried again.
    #[schema(as = ErrorCategory)]
    pub enum Category {
        Transient = "transient",
        Permanent = "permanent",
        AgentError = "agent_error",
        SystemError = "system_error",
    }
}

words! {
    #[schema(as = ExecutionStatus)]
    pub enum Status { Success = "success", Failure = "failure", Timeout = "timeout", Cancelled = "cancelled" }
}

impl Status {
    /// Returns the state in which an execution with this status has ended.
    pub fn state(self) -> StateName {
        match self {
            Self::Success => StateName::Completed,
            Self::Failure => StateName::Failed,
            Self::Timeout => StateName::Timeout,
            Self::Cancelled => StateName::Cancelled,
        }
    }
}

words! {
    /// What an end means beyond its state.
    pub enum Outcome {
        /// Completed with a question: the agent needs more input.
        Asks = "asks",
        /// Completed with a question: the agent needs credentials.
        NeedsAccess = "needs_access",
        /// Failed because the agent rejected the request.
        Rejected = "rejected",
        /// Completed with a message as the answer.
        Message = "message",
        /// Completed with a question that the user withdrew.
        Withdrawn = "withdrawn",
    }
}

words! {
    /// The progress of a request, as A2A and its clients see it.
    pub enum Standing {
        Waiting = "waiting",
        Working = "working",
        Asks = "asks",
        NeedsAccess = "needs_access",
        Completed = "completed",
        Failed = "failed",
        Rejected = "rejected",
        Cancelled = "cancelled",
    }
}

impl Standing {
    /// Returns `true` if the standing cannot change any more.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Waiting | Self::Working) && !self.is_asking()
    }

    /// Returns `true` if an answer makes it go on.
    pub fn is_asking(self) -> bool {
        matches!(self, Self::Asks | Self::NeedsAccess)
    }
}

/// What a run used, with all the processes it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ResourceUsage {
    /// Of one processor, over the whole run.
    pub cpu_percent: f64,
    pub memory_mb: u64,
    pub peak_memory_mb: u64,
    pub disk_read_mb: u64,
    pub disk_write_mb: u64,
    /// Processor time.
    pub cpu_ms: u64,
}
