//! The flat form of an execution, for JSON and the database. All conversions between the two forms are here.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    AttemptExit, AttemptStart, ErrorCategory, Execution, ExecutionEnd, ExecutionOutcome, ExecutionState,
    ExecutionStatus, PreviousAttempt, ResourceUsage, RunError, StateName, Transition,
};
use crate::agent::Seconds;

/// One request to run an agent, from the queue to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Execution)]
pub struct ExecutionRecord {
    pub id: Uuid,
    pub agent_id: String,
    pub schedule_id: Option<Uuid>,
    /// The session, if the execution is one message of a session.
    pub session_id: Option<Uuid>,
    pub state: StateName,
    pub previous_state: Option<StateName>,
    pub created_at: Timestamp,
    pub start_time: Option<Timestamp>,
    pub end_time: Option<Timestamp>,
    pub last_state_change: Timestamp,
    /// The redacted input.
    pub input: String,
    pub process_id: Option<i64>,
    pub exit_code: Option<i64>,
    pub error_message: Option<String>,
    pub error_category: Option<ErrorCategory>,
    /// Details of the end.
    pub outcome: Option<ExecutionOutcome>,
    pub retry_count: i64,
    pub max_retries: i64,
    /// The number of the attempt, starting at 1.
    pub attempt: i64,
    pub timeout: Seconds,
    pub resource_usage: Option<ResourceUsage>,
    /// The parameters and the origin of the request.
    #[schema(value_type = Object)]
    pub context: Map<String, Value>,
    /// The position in the queue, starting at 1.
    pub queue_position: Option<i64>,
    pub state_transitions: Vec<Transition>,
    pub previous_retries: Vec<PreviousAttempt>,
}

/// The reason why a record is inconsistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImpossibleRecord {
    #[error("an execution cannot be stored in the state {0}")]
    TransientState(StateName),
    #[error("an execution in the state {state} must have {field}")]
    Missing { state: StateName, field: &'static str },
    #[error("an execution in the state {state} must not have {field}")]
    Unexpected { state: StateName, field: &'static str },
    #[error("{field} does not match the {attempts} earlier attempts of the execution")]
    Attempts { field: &'static str, attempts: usize },
    #[error("the transitions of the execution do not lead to the state {0}")]
    Transitions(StateName),
}

impl From<Execution> for ExecutionRecord {
    /// Returns the flat form. Fields that the state does not carry are `None`. The previous state, the number of
    /// retries and the attempt are derived from the history.
    fn from(execution: Execution) -> Self {
        let state = execution.state_name();
        let previous_state = previous_state(state, &execution.state_transitions);
        let retry_count = execution.retry_count();
        let attempt = execution.attempt();
        let started = execution.state.started();
        let resource_usage = execution.state.resource_usage();
        let end_time = execution.ended().map(|end| end.at);
        let (queue_position, exit) = match execution.state {
            ExecutionState::Idle { queue_position } => (queue_position, AttemptExit::default()),
            ExecutionState::Starting | ExecutionState::Running { .. } => (None, AttemptExit::default()),
            ExecutionState::Ended(end) => (None, end.exit),
        };
        let (error_message, error_category) = exit.error.map(|error| (error.message, error.category)).unzip();
        Self {
            id: execution.id,
            agent_id: execution.agent_id,
            schedule_id: execution.schedule_id,
            session_id: execution.session_id,
            state,
            previous_state,
            created_at: execution.created_at,
            start_time: started.map(|started| started.at),
            end_time,
            last_state_change: execution.last_state_change,
            input: execution.input,
            process_id: started.and_then(|started| started.process_id),
            exit_code: exit.exit_code,
            error_message,
            error_category: error_category.flatten(),
            outcome: exit.outcome,
            retry_count,
            max_retries: execution.max_retries,
            attempt,
            timeout: execution.timeout,
            resource_usage,
            context: execution.context,
            queue_position,
            state_transitions: execution.state_transitions,
            previous_retries: execution.previous_retries,
        }
    }
}

impl TryFrom<ExecutionRecord> for Execution {
    type Error = ImpossibleRecord;

    /// Returns the execution. Fails if a field of the state is missing, a field of another state is set, or the state
    /// is never stored. Also fails if the retries, the transitions or the previous state contradict each other.
    fn try_from(mut record: ExecutionRecord) -> Result<Self, ImpossibleRecord> {
        let state = record.take_state()?;
        record.check_history(&state)?;
        Ok(Self {
            id: record.id,
            agent_id: record.agent_id,
            schedule_id: record.schedule_id,
            session_id: record.session_id,
            created_at: record.created_at,
            input: record.input,
            max_retries: record.max_retries,
            timeout: record.timeout,
            context: record.context,
            state,
            last_state_change: record.last_state_change,
            state_transitions: record.state_transitions,
            previous_retries: record.previous_retries,
        })
    }
}

impl ExecutionRecord {
    /// Moves the fields of the state out of the record. `Running` and `Completed` require `start_time`, and every end
    /// requires `end_time`. Fails if one is missing, if a field of another state is set, or if the state is `Cleanup`,
    /// which is never stored. An error category without a message counts as such a field.
    fn take_state(&mut self) -> Result<ExecutionState, ImpossibleRecord> {
        let state = match self.state {
            StateName::Idle => ExecutionState::Idle { queue_position: self.queue_position.take() },
            StateName::Starting => ExecutionState::Starting,
            StateName::Running => {
                let started = self.take_started().ok_or(self.missing("start_time"))?;
                ExecutionState::Running { started, resource_usage: self.resource_usage.take() }
            }
            StateName::Completed => {
                self.start_time.ok_or(self.missing("start_time"))?;
                ExecutionState::Ended(self.take_end(ExecutionStatus::Success)?)
            }
            StateName::Failed => ExecutionState::Ended(self.take_end(ExecutionStatus::Failure)?),
            StateName::Timeout => ExecutionState::Ended(self.take_end(ExecutionStatus::Timeout)?),
            StateName::Cancelled => ExecutionState::Ended(self.take_end(ExecutionStatus::Cancelled)?),
            StateName::Cleanup => return Err(ImpossibleRecord::TransientState(self.state)),
        };
        for (field, is_set) in [
            ("queue_position", self.queue_position.is_some()),
            ("start_time", self.start_time.is_some()),
            ("end_time", self.end_time.is_some()),
            ("process_id", self.process_id.is_some()),
            ("exit_code", self.exit_code.is_some()),
            ("error_message", self.error_message.is_some()),
            ("error_category", self.error_category.is_some()),
            ("outcome", self.outcome.is_some()),
            ("resource_usage", self.resource_usage.is_some()),
        ] {
            if is_set {
                return Err(ImpossibleRecord::Unexpected { state: self.state, field });
            }
        }
        Ok(state)
    }

    /// Moves the start of the attempt out of the record. Returns `None` and leaves the process id in the record if
    /// there is no start time.
    fn take_started(&mut self) -> Option<AttemptStart> {
        let at = self.start_time.take()?;
        Some(AttemptStart { at, process_id: self.process_id.take() })
    }

    /// Moves the fields of the end out of the record. Fails if the end time is missing. An error category without a
    /// message remains in the record.
    fn take_end(&mut self, status: ExecutionStatus) -> Result<ExecutionEnd, ImpossibleRecord> {
        let at = self.end_time.take().ok_or(self.missing("end_time"))?;
        let started = self.take_started();
        let error = self.error_message.take();
        let error = error.map(|message| RunError { message, category: self.error_category.take() });
        let exit = AttemptExit {
            exit_code: self.exit_code.take(),
            error,
            outcome: self.outcome.take(),
            resource_usage: self.resource_usage.take(),
        };
        Ok(ExecutionEnd { status, at, started, exit })
    }

    fn missing(&self, field: &'static str) -> ImpossibleRecord {
        ImpossibleRecord::Missing { state: self.state, field }
    }

    /// Fails if `retry_count` or `attempt` does not match the number of earlier attempts. Also fails if the transitions
    /// are not allowed or contradict `previous_state`. They must lead from `Idle` to the state, or back to `Idle` if
    /// the execution has ended.
    fn check_history(&self, state: &ExecutionState) -> Result<(), ImpossibleRecord> {
        let attempts = self.previous_retries.len();
        for (field, count) in [("retry_count", self.retry_count), ("attempt", self.attempt - 1)] {
            if usize::try_from(count) != Ok(attempts) {
                return Err(ImpossibleRecord::Attempts { field, attempts });
            }
        }
        let mut reached = StateName::Idle;
        for step in &self.state_transitions {
            if step.from != reached || !reached.can_become(step.to) {
                return Err(ImpossibleRecord::Transitions(self.state));
            }
            reached = step.to;
        }
        // The transitions of an ended execution continue to idle.
        let last = if let ExecutionState::Ended(_) = state { StateName::Idle } else { self.state };
        if reached != last || self.previous_state != previous_state(self.state, &self.state_transitions) {
            return Err(ImpossibleRecord::Transitions(self.state));
        }
        Ok(())
    }
}

/// Returns the state before the last transition to `state`, `None` if there was no such transition.
fn previous_state(state: StateName, transitions: &[Transition]) -> Option<StateName> {
    transitions.iter().rev().find(|step| step.to == state).map(|step| step.from)
}
