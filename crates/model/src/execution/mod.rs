//! Executions: requests to run an agent, from the queue to the end (S2's AgentExecution and ExecutionResult).
//!
//! An [`Execution`] has one [`ExecutionState`], which carries its data. Only the methods of `Execution` change the
//! state. Each method fails if the transition is not allowed. [`ExecutionRecord`] is the flat form for JSON and the
//! database.

mod record;
mod result;
mod state;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

pub use self::record::{ExecutionRecord, ImpossibleRecord};
pub use self::result::{Artifact, ExecutionResult};
pub use self::state::{
    AttemptExit, AttemptStart, ErrorCategory, ExecutionEnd, ExecutionOutcome, ExecutionState, ExecutionStatus,
    IllegalTransition, PublicStatus, ResourceUsage, RunError, StateName, Transition,
};
use crate::agent::Seconds;
use crate::string_enum::schema_enum;

/// One request to run an agent, from the queue to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "ExecutionRecord", try_from = "ExecutionRecord")]
pub struct Execution {
    pub id: Uuid,
    pub agent_id: String,
    pub schedule_id: Option<Uuid>,
    /// The session, if the execution is one message of a session.
    pub session_id: Option<Uuid>,
    pub created_at: Timestamp,
    /// The redacted input.
    pub input: String,
    pub max_retries: i64,
    /// The timeout of each attempt.
    pub timeout: Seconds,
    /// The parameters and the origin of the request.
    pub context: Map<String, Value>,
    state: ExecutionState,
    last_state_change: Timestamp,
    state_transitions: Vec<Transition>,
    previous_retries: Vec<PreviousAttempt>,
}

/// A failed attempt that was retried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = PreviousRetry)]
pub struct PreviousAttempt {
    pub attempt: i64,
    pub status: ExecutionStatus,
    pub start_time: Option<Timestamp>,
    pub end_time: Timestamp,
    pub process_id: Option<i64>,
    pub exit_code: Option<i64>,
    pub error: Option<String>,
    pub error_category: Option<ErrorCategory>,
    pub resource_usage: Option<ResourceUsage>,
}

schema_enum! {
    /// The component that handles the end of an execution.
    pub enum FollowUp {
        /// Adds the result to the conversation that requested the execution.
        Chat = "chat",
        /// Counts the failures of the schedule and starts the next queued occurrence.
        Schedule = "schedule",
    }
}

impl Execution {
    /// Returns a queued execution without input, context, schedule or session, and with no retries allowed. The caller
    /// sets these fields.
    pub fn new(id: Uuid, agent_id: impl Into<String>, timeout: Seconds, created_at: Timestamp) -> Self {
        Self {
            id,
            agent_id: agent_id.into(),
            schedule_id: None,
            session_id: None,
            created_at,
            input: String::new(),
            max_retries: 0,
            timeout,
            context: Map::new(),
            state: ExecutionState::Idle { queue_position: None },
            last_state_change: created_at,
            state_transitions: Vec::new(),
            previous_retries: Vec::new(),
        }
    }

    /// Returns the current state with its data.
    pub fn state(&self) -> &ExecutionState {
        &self.state
    }

    /// Returns the name of the current state.
    pub fn state_name(&self) -> StateName {
        self.state.name()
    }

    /// Returns the end, `None` if the execution has not ended.
    pub fn ended(&self) -> Option<&ExecutionEnd> {
        if let ExecutionState::Ended(end) = &self.state { Some(end) } else { None }
    }

    /// Returns `true` if the execution has ended.
    pub fn is_ended(&self) -> bool {
        self.ended().is_some()
    }

    /// Returns the error message of an ended execution, `None` if it has no error or has not ended.
    pub fn error_message(&self) -> Option<&str> {
        self.ended()?.exit.error.as_ref().map(|error| error.message.as_str())
    }

    /// Returns the time of the last transition.
    pub fn last_state_change(&self) -> Timestamp {
        self.last_state_change
    }

    /// Returns all transitions, oldest first.
    pub fn state_transitions(&self) -> &[Transition] {
        &self.state_transitions
    }

    /// Returns the failed attempts before the current one, oldest first.
    pub fn previous_retries(&self) -> &[PreviousAttempt] {
        &self.previous_retries
    }

    /// Returns the number of retries so far.
    pub fn retry_count(&self) -> i64 {
        i64::try_from(self.previous_retries.len()).unwrap_or(i64::MAX)
    }

    /// Returns the number of the current or last attempt, starting at 1.
    pub fn attempt(&self) -> i64 {
        self.retry_count().saturating_add(1)
    }

    /// Returns `true` if a retry is left.
    pub fn can_retry(&self) -> bool {
        self.retry_count() < self.max_retries
    }

    /// Takes the execution from the queue. Fails if it is not queued.
    pub fn claim(&mut self, at: Timestamp) -> Result<(), IllegalTransition> {
        self.apply_transitions(&[StateName::Starting], at)?;
        self.state = ExecutionState::Starting;
        Ok(())
    }

    /// Starts the attempt. Fails if the execution is not starting.
    pub fn start(&mut self, process_id: Option<i64>, at: Timestamp) -> Result<(), IllegalTransition> {
        self.apply_transitions(&[StateName::Running], at)?;
        self.state = ExecutionState::Running { started: AttemptStart { at, process_id }, resource_usage: None };
        Ok(())
    }

    /// Sets the resource usage so far. Does nothing if the execution is not running.
    pub fn record_usage(&mut self, usage: ResourceUsage) {
        if let ExecutionState::Running { resource_usage, .. } = &mut self.state {
            *resource_usage = Some(usage);
        }
    }

    /// Records the current attempt as failed and changes to `Starting` for the next one. Does not check that a retry is
    /// left. Fails if the execution has ended.
    pub fn retry(&mut self, exit: AttemptExit, at: Timestamp) -> Result<(), IllegalTransition> {
        self.apply_transitions(&[StateName::Failed, StateName::Starting], at)?;
        self.archive_attempt(exit, at);
        self.state = ExecutionState::Starting;
        Ok(())
    }

    /// Records the current attempt as failed and returns to the queue. Does not check that a retry is left. Fails if
    /// the execution has ended.
    pub fn requeue(&mut self, exit: AttemptExit, at: Timestamp) -> Result<(), IllegalTransition> {
        self.apply_transitions(&[StateName::Failed, StateName::Cleanup, StateName::Idle], at)?;
        self.archive_attempt(exit, at);
        self.state = ExecutionState::Idle { queue_position: None };
        Ok(())
    }

    /// Ends the execution. Fails if it has ended before, or if the table does not allow this status.
    ///
    /// The transitions continue to cleanup and idle; the state remains the final one. Without resource usage in `exit`,
    /// the last measured usage is used.
    pub fn end(&mut self, status: ExecutionStatus, exit: AttemptExit, at: Timestamp) -> Result<(), IllegalTransition> {
        self.apply_transitions(&[status.state(), StateName::Cleanup, StateName::Idle], at)?;
        let started = self.state.started();
        let resource_usage = exit.resource_usage.or(self.state.resource_usage());
        self.state =
            ExecutionState::Ended(ExecutionEnd { status, at, started, exit: AttemptExit { resource_usage, ..exit } });
        Ok(())
    }

    /// Appends the transitions from the current state through `path` and sets the time of the last change to `at`. The
    /// caller sets the state itself. Fails without a change if a transition is not allowed, or after the end.
    fn apply_transitions(&mut self, path: &[StateName], at: Timestamp) -> Result<(), IllegalTransition> {
        let mut from = self.state_name();
        let mut steps = Vec::with_capacity(path.len());
        for to in path.iter().copied() {
            if self.is_ended() || !from.can_become(to) {
                return Err(IllegalTransition { from, to });
            }
            steps.push(Transition { from, to, at });
            from = to;
        }
        self.state_transitions.extend(steps);
        self.last_state_change = at;
        Ok(())
    }

    /// Adds the current attempt to the previous ones, with the status `Failure` and the end time `at`. The start and
    /// the process are those of the current state. Without resource usage in `exit`, the last measured usage is used.
    /// The outcome of `exit` is dropped. Must be called before the state changes.
    fn archive_attempt(&mut self, exit: AttemptExit, at: Timestamp) {
        let started = self.state.started();
        let (error, error_category) = exit.error.map(|error| (error.message, error.category)).unzip();
        self.previous_retries.push(PreviousAttempt {
            attempt: self.attempt(),
            status: ExecutionStatus::Failure,
            start_time: started.map(|started| started.at),
            end_time: at,
            process_id: started.and_then(|started| started.process_id),
            exit_code: exit.exit_code,
            error,
            error_category: error_category.flatten(),
            resource_usage: exit.resource_usage.or(self.state.resource_usage()),
        });
    }

    /// Returns the status of the request, as A2A clients see it. A queued execution is `Waiting` in its first attempt;
    /// one that waits for a retry, is starting or running is `Working`. The status of an ended one depends on its end.
    pub fn public_status(&self) -> PublicStatus {
        match &self.state {
            ExecutionState::Idle { .. } if self.previous_retries.is_empty() => PublicStatus::Waiting,
            ExecutionState::Idle { .. } | ExecutionState::Starting | ExecutionState::Running { .. } => {
                PublicStatus::Working
            }
            ExecutionState::Ended(end) => end.public_status(),
        }
    }
}
