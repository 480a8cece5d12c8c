//! Executions: one run of an agent, from the queue to its end (S2's AgentExecution and ExecutionResult).
//!
//! An [`Execution`] is in one [`State`], which carries its data. Only the methods of `Execution` change the state, and each
//! checks the table of transitions. The flat form, as JSON and the table have it, is [`ExecutionRecord`].

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
    Category, End, Exit, Illegal, Outcome, ResourceUsage, RunError, Standing, Started, State, StateName, Status,
    Transition,
};
use crate::agent::Seconds;
use crate::words;

/// One run of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "ExecutionRecord", try_from = "ExecutionRecord")]
pub struct Execution {
    pub id: Uuid,
    pub agent_id: String,
    pub schedule_id: Option<Uuid>,
    /// The session of which this is one message.
    pub session_id: Option<Uuid>,
    pub created_at: Timestamp,
    /// The input without secrets.
    pub input: String,
    pub max_retries: i64,
    /// The longest time that one attempt may take.
    pub timeout: Seconds,
    /// Parameters and origin of the request.
    pub context: Map<String, Value>,
    state: State,
    last_state_change: Timestamp,
    state_transitions: Vec<Transition>,
    previous_retries: Vec<Attempt>,
}

/// A run that was tried again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = PreviousRetry)]
pub struct Attempt {
    pub attempt: i64,
    pub status: Status,
    pub start_time: Option<Timestamp>,
    pub end_time: Timestamp,
    pub process_id: Option<i64>,
    pub exit_code: Option<i64>,
    pub error: Option<String>,
    pub error_category: Option<Category>,
    pub resource_usage: Option<ResourceUsage>,
}

words! {
    /// The component that acts on the end of an execution.
    pub enum FollowUp {
        /// Adds the result to the conversation in which the execution was requested.
        Chat = "chat",
        /// Counts the failures of the schedule and starts the next queued occurrence.
        Schedule = "schedule",
    }
}

impl Execution {
    /// Returns an execution that waits for its first attempt, without input, context or retries.
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
            state: State::Idle { queue_position: None },
            last_state_change: created_at,
            state_transitions: Vec::new(),
            previous_retries: Vec::new(),
        }
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn state_name(&self) -> StateName {
        self.state.name()
    }

    /// Returns the end, if the execution has ended for good.
    pub fn ended(&self) -> Option<&End> {
        if let State::Ended(end) = &self.state { Some(end) } else { None }
    }

    pub fn is_ended(&self) -> bool {
        self.ended().is_some()
    }

    /// Returns the message of the error with which the execution has ended.
    pub fn error_message(&self) -> Option<&str> {
        self.ended()?.exit.error.as_ref().map(|error| error.message.as_str())
    }

    pub fn last_state_change(&self) -> Timestamp {
        self.last_state_change
    }

    pub fn state_transitions(&self) -> &[Transition] {
        &self.state_transitions
    }

    pub fn previous_retries(&self) -> &[Attempt] {
        &self.previous_retries
    }

    /// Returns the number of attempts that failed and were retried.
    pub fn retry_count(&self) -> i64 {
        i64::try_from(self.previous_retries.len()).unwrap_or(i64::MAX)
    }

    /// Returns the number of the current or last attempt, from 1.
    pub fn attempt(&self) -> i64 {
        self.retry_count().saturating_add(1)
    }

    pub fn may_retry(&self) -> bool {
        self.retry_count() < self.max_retries
    }

    /// Leaves the queue. Fails if the execution does not wait.
    pub fn claim(&mut self, at: Timestamp) -> Result<(), Illegal> {
        self.pass(&[StateName::Starting], at)?;
        self.state = State::Starting;
        Ok(())
    }

    /// Begins to run. Fails if the execution is not starting.
    pub fn start(&mut self, process_id: Option<i64>, at: Timestamp) -> Result<(), Illegal> {
        self.pass(&[StateName::Running], at)?;
        self.state = State::Running { started: Started { at, process_id }, resource_usage: None };
        Ok(())
    }

    /// Sets the resources used so far. Does nothing if the execution is not running.
    pub fn measure(&mut self, usage: ResourceUsage) {
        if let State::Running { resource_usage, .. } = &mut self.state {
            *resource_usage = Some(usage);
        }
    }

    /// Fails the current attempt and starts the next one.
    pub fn retry(&mut self, exit: Exit, at: Timestamp) -> Result<(), Illegal> {
        self.pass(&[StateName::Failed, StateName::Starting], at)?;
        self.archive_attempt(exit, at);
        self.state = State::Starting;
        Ok(())
    }

    /// Fails the current attempt and returns to the queue.
    pub fn queue_again(&mut self, exit: Exit, at: Timestamp) -> Result<(), Illegal> {
        self.pass(&[StateName::Failed, StateName::Cleanup, StateName::Idle], at)?;
        self.archive_attempt(exit, at);
        self.state = State::Idle { queue_position: None };
        Ok(())
    }

    /// Ends for good. The transitions go on to cleanup and idle; the state remains that of the end.
    ///
    /// An exit without resource usage takes the usage that was measured last.
    pub fn end(&mut self, status: Status, exit: Exit, at: Timestamp) -> Result<(), Illegal> {
        self.pass(&[status.state(), StateName::Cleanup, StateName::Idle], at)?;
        let started = self.state.started();
        let resource_usage = exit.resource_usage.or(self.state.resource_usage());
        self.state = State::Ended(End { status, at, started, exit: Exit { resource_usage, ..exit } });
        Ok(())
    }

    /// Records the transitions through `path`. Fails and changes nothing if the table lacks one, or after the end.
    fn pass(&mut self, path: &[StateName], at: Timestamp) -> Result<(), Illegal> {
        let mut from = self.state_name();
        let mut steps = Vec::with_capacity(path.len());
        for to in path.iter().copied() {
            if self.is_ended() || !from.may_become(to) {
                return Err(Illegal { from, to });
            }
            steps.push(Transition { from, to, at });
            from = to;
        }
        self.state_transitions.extend(steps);
        self.last_state_change = at;
        Ok(())
    }

    /// Adds the current attempt to the earlier ones.
    fn archive_attempt(&mut self, exit: Exit, at: Timestamp) {
        let started = self.state.started();
        let (error, error_category) = exit.error.map(|error| (error.message, error.category)).unzip();
        self.previous_retries.push(Attempt {
            attempt: self.attempt(),
            status: Status::Failure,
            start_time: started.map(|started| started.at),
            end_time: at,
            process_id: started.and_then(|started| started.process_id),
            exit_code: exit.exit_code,
            error,
            error_category: error_category.flatten(),
            resource_usage: exit.resource_usage.or(self.state.resource_usage()),
        });
    }

    /// Returns the standing of the request. An execution that is retried counts as working all the time.
    pub fn standing(&self) -> Standing {
        match &self.state {
            State::Idle { .. } if self.previous_retries.is_empty() => Standing::Waiting,
            State::Idle { .. } | State::Starting | State::Running { .. } => Standing::Working,
            State::Ended(end) => end.standing(),
        }
    }
}
