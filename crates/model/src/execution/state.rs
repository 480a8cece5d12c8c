//! The states of an execution: their names, the table of transitions, and the data that each state carries.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::string_enum::schema_enum;

schema_enum! {
    /// The state of an execution or of an agent.
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
        /// A transient state between the end of an attempt and `Idle`.
        Cleanup = "cleanup",
    }
}

/// The allowed transitions: S2's table, extended by transitions of queued executions.
pub(super) const TRANSITIONS: &[(StateName, &[StateName])] = {
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
    pub fn can_become(self, next: Self) -> bool {
        TRANSITIONS.iter().any(|(from, to)| *from == self && to.contains(&next))
    }

    /// Returns `true` for the states in which an attempt, or the execution, ends.
    pub fn is_end(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Timeout | Self::Cancelled)
    }
}

/// One change of the state of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Transition {
    pub from: StateName,
    pub to: StateName,
    pub at: Timestamp,
}

/// The error of a transition that is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an execution cannot change from {from} to {to}")]
pub struct IllegalTransition {
    pub from: StateName,
    pub to: StateName,
}

/// The state of an execution, with the data of this state.
///
/// An execution passes `failed` and `cleanup` between two attempts in one step, so it is never stored in them.
#[derive(Clone, Debug, PartialEq)]
pub enum ExecutionState {
    /// Waits in the queue. The position starts at 1; only some queries compute it.
    Idle {
        queue_position: Option<i64>,
    },
    /// Claimed by a node.
    Starting,
    Running {
        started: AttemptStart,
        resource_usage: Option<ResourceUsage>,
    },
    /// Ended permanently.
    Ended(ExecutionEnd),
}

impl ExecutionState {
    /// Returns the name of the state.
    pub fn name(&self) -> StateName {
        match self {
            Self::Idle { .. } => StateName::Idle,
            Self::Starting => StateName::Starting,
            Self::Running { .. } => StateName::Running,
            Self::Ended(end) => end.status.state(),
        }
    }

    /// Returns the start of the current or last attempt, `None` if it has not started.
    pub fn started(&self) -> Option<AttemptStart> {
        match self {
            Self::Idle { .. } | Self::Starting => None,
            Self::Running { started, .. } => Some(*started),
            Self::Ended(end) => end.started,
        }
    }

    /// Returns the measured resource usage of the current or last attempt.
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
pub struct AttemptStart {
    pub at: Timestamp,
    /// `None` for an agent without a process.
    pub process_id: Option<i64>,
}

/// The end of an execution.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionEnd {
    pub status: ExecutionStatus,
    pub at: Timestamp,
    /// `None` if the last attempt never ran.
    pub started: Option<AttemptStart>,
    pub exit: AttemptExit,
}

impl ExecutionEnd {
    /// Returns the status of the request, as A2A clients see it. A success is `Completed`, unless its outcome is
    /// `InputRequired`, `AuthRequired` or `Withdrawn`, which counts as cancelled. A failure or timeout is `Rejected`
    /// with that outcome, otherwise `Failed`. A cancellation is always `Cancelled`.
    pub(super) fn public_status(&self) -> PublicStatus {
        match (self.status, self.exit.outcome) {
            (ExecutionStatus::Success, Some(ExecutionOutcome::InputRequired)) => PublicStatus::InputRequired,
            (ExecutionStatus::Success, Some(ExecutionOutcome::AuthRequired)) => PublicStatus::AuthRequired,
            (ExecutionStatus::Cancelled, _) | (ExecutionStatus::Success, Some(ExecutionOutcome::Withdrawn)) => {
                PublicStatus::Cancelled
            }
            (ExecutionStatus::Success, _) => PublicStatus::Completed,
            (_, Some(ExecutionOutcome::Rejected)) => PublicStatus::Rejected,
            _ => PublicStatus::Failed,
        }
    }

    /// Returns the milliseconds from the start of the last attempt to the end; 0 if it never ran.
    pub fn execution_time(&self) -> i64 {
        self.started.map_or(0, |started| (self.at.as_microsecond() - started.at.as_microsecond()).max(0) / 1000)
    }
}

/// The result of an attempt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttemptExit {
    pub exit_code: Option<i64>,
    pub error: Option<RunError>,
    pub outcome: Option<ExecutionOutcome>,
    pub resource_usage: Option<ResourceUsage>,
}

impl AttemptExit {
    /// Returns an exit that has only an error.
    pub fn with_error(message: impl Into<String>, category: Option<ErrorCategory>) -> Self {
        Self { error: Some(RunError { message: message.into(), category }), ..Self::default() }
    }
}

/// The reason why an attempt did not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunError {
    pub message: String,
    pub category: Option<ErrorCategory>,
}

schema_enum! {
    /// The category of a failure. Only transient failures are retried.
    pub enum ErrorCategory {
        Transient = "transient",
        Permanent = "permanent",
        AgentError = "agent_error",
        SystemError = "system_error",
    }
}

schema_enum! {
    /// The final status of an execution or an attempt.
    pub enum ExecutionStatus { Success = "success", Failure = "failure", Timeout = "timeout", Cancelled = "cancelled" }
}

impl ExecutionStatus {
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

schema_enum! {
    /// Details of the end of an execution.
    #[schema(as = Outcome)]
    pub enum ExecutionOutcome {
        /// Completed with a question: the agent needs more input.
        InputRequired = "asks",
        /// Completed with a question: the agent needs credentials.
        AuthRequired = "needs_access",
        /// Failed because the agent rejected the request.
        Rejected = "rejected",
        /// Completed with a message as the answer.
        Message = "message",
        /// Completed with a question that the user withdrew.
        Withdrawn = "withdrawn",
    }
}

schema_enum! {
    /// The status of a request, as A2A clients see it.
    #[schema(as = Standing)]
    pub enum PublicStatus {
        Waiting = "waiting",
        Working = "working",
        InputRequired = "asks",
        AuthRequired = "needs_access",
        Completed = "completed",
        Failed = "failed",
        Rejected = "rejected",
        Cancelled = "cancelled",
    }
}

impl PublicStatus {
    /// Returns `true` if the status is final.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Waiting | Self::Working) && !self.awaits_input()
    }

    /// Returns `true` if the request continues when the user answers.
    pub fn awaits_input(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

/// The resource usage of a run and all of its child processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ResourceUsage {
    /// The average over the whole run. 100 is one CPU core.
    pub cpu_percent: f64,
    pub memory_mb: u64,
    pub peak_memory_mb: u64,
    pub disk_read_mb: u64,
    pub disk_write_mb: u64,
    /// CPU time.
    pub cpu_ms: u64,
}
