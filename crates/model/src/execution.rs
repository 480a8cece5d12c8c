//! Executions: one run of an agent, from the queue to its end (S2's AgentExecution and ExecutionResult).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::agent::Seconds;
use crate::words::words;

words! {
    /// Where an execution, or an agent, is in its life.
    #[schema(as = AgentState)]
    pub enum State {
        /// Waits for its place.
        Idle = "idle",
        Starting = "starting",
        Running = "running",
        Completed = "completed",
        Failed = "failed",
        Timeout = "timeout",
        Cancelled = "cancelled",
        /// What it left behind is taken away.
        Cleanup = "cleanup",
    }
}

/// Which state may follow which: S2's table, and what it lacks for those that wait.
const TABLE: &[(State, &[State])] = {
    use State::{Cancelled, Cleanup, Completed, Failed, Idle, Running, Starting, Timeout};
    &[
        (Idle, &[Starting, Cancelled, Timeout, Failed]),
        (Starting, &[Running, Failed, Cancelled, Timeout]),
        (Running, &[Completed, Failed, Timeout, Cancelled]),
        (Completed, &[Cleanup]),
        // A retry begins where it failed.
        (Failed, &[Cleanup, Starting]),
        (Timeout, &[Cleanup]),
        (Cancelled, &[Cleanup]),
        (Cleanup, &[Idle]),
    ]
};

words! {
    /// Who acts upon the end of an execution, besides those who look.
    pub enum FollowUp {
        /// The conversation in which it was asked for hears what came of it.
        Chat = "chat",
        /// The schedule counts failures and may start what waited for it.
        Schedule = "schedule",
    }
}

impl State {
    pub fn may_become(self, next: Self) -> bool {
        TABLE.iter().any(|(from, to)| *from == self && to.contains(&next))
    }

    /// Whether it rests here for good.
    pub fn is_end(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Timeout | Self::Cancelled)
    }

    /// Whether it has a place.
    pub fn is_at_work(self) -> bool {
        matches!(self, Self::Starting | Self::Running)
    }
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
    /// Of an execution that has ended.
    pub fn of(state: State) -> Option<Self> {
        match state {
            State::Completed => Some(Self::Success),
            State::Failed => Some(Self::Failure),
            State::Timeout => Some(Self::Timeout),
            State::Cancelled => Some(Self::Cancelled),
            State::Idle | State::Starting | State::Running | State::Cleanup => None,
        }
    }
}

words! {
    /// What an end means beyond its state.
    pub enum Outcome {
        /// Completed, and it needs to be told more before it can go on.
        Asks = "asks",
        /// Completed, and it needs to be let in somewhere before it can go on.
        NeedsAccess = "needs_access",
        /// Failed, because the agent does not want to do it.
        Rejected = "rejected",
        /// Completed, and the answer is a message.
        Message = "message",
        /// It asked, and whoever was asked does not want to go on.
        Withdrawn = "withdrawn",
    }
}

words! {
    /// How what was asked for stands, for those who follow it from elsewhere.
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
    /// Whether nothing more comes of it.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Waiting | Self::Working) && !self.is_asking()
    }

    /// Whether it goes on when it is answered.
    pub fn is_asking(self) -> bool {
        matches!(self, Self::Asks | Self::NeedsAccess)
    }
}

/// One step of an execution's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Transition {
    pub from: State,
    pub to: State,
    pub at: Timestamp,
}

/// A step that the table does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an execution cannot go from {from} to {to}")]
pub struct Illegal {
    pub from: State,
    pub to: State,
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

/// One run of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Execution {
    pub id: Uuid,
    pub agent_id: String,
    pub schedule_id: Option<Uuid>,
    /// Where it is part of a conversation with one process.
    pub session_id: Option<Uuid>,
    pub state: State,
    pub previous_state: Option<State>,
    pub created_at: Timestamp,
    pub start_time: Option<Timestamp>,
    pub end_time: Option<Timestamp>,
    pub last_state_change: Timestamp,
    /// Without what must not be kept.
    pub input: String,
    pub process_id: Option<i64>,
    pub exit_code: Option<i64>,
    pub error_message: Option<String>,
    pub error_category: Option<Category>,
    /// What its end means beyond its state.
    pub outcome: Option<Outcome>,
    pub retry_count: i64,
    pub max_retries: i64,
    /// Which try this is, from 1.
    pub attempt: i64,
    pub timeout: Seconds,
    pub resource_usage: Option<ResourceUsage>,
    /// What else is known: parameters, who asked.
    #[schema(value_type = Object)]
    pub context: Map<String, Value>,
    /// From 1, while it waits.
    pub queue_position: Option<i64>,
    pub state_transitions: Vec<Transition>,
    pub previous_retries: Vec<Attempt>,
}

impl Execution {
    /// Goes on to `next`, where the table allows it.
    pub fn enter(&mut self, next: State, at: Timestamp) -> Result<(), Illegal> {
        if !self.state.may_become(next) {
            return Err(Illegal { from: self.state, to: next });
        }
        self.state_transitions.push(Transition { from: self.state, to: next, at });
        self.previous_state = Some(self.state);
        self.state = next;
        self.last_state_change = at;
        Ok(())
    }

    /// Ends in `last`; what comes after stands in the record, the state stays where it ended.
    pub fn end(&mut self, last: State, at: Timestamp) -> Result<(), Illegal> {
        self.enter(last, at)?;
        self.rest(at)
    }

    /// Ends in the state where it is.
    pub fn rest(&mut self, at: Timestamp) -> Result<(), Illegal> {
        let last = self.state;
        if !last.is_end() {
            return Err(Illegal { from: last, to: State::Cleanup });
        }
        self.end_time = Some(at);
        self.state_transitions.push(Transition { from: last, to: State::Cleanup, at });
        self.state_transitions.push(Transition { from: State::Cleanup, to: State::Idle, at });
        Ok(())
    }

    /// The run so far as one of those that were tried again.
    pub fn as_attempt(&self, at: Timestamp) -> Attempt {
        Attempt {
            attempt: self.attempt,
            status: Status::of(self.state).unwrap_or(Status::Failure),
            start_time: self.start_time,
            end_time: at,
            process_id: self.process_id,
            exit_code: self.exit_code,
            error: self.error_message.clone(),
            error_category: self.error_category,
            resource_usage: self.resource_usage,
        }
    }

    /// Has failed and begins anew: what is known of this try goes to the earlier ones, and says nothing about the next.
    /// The caller says which state that is.
    pub fn begin_anew(&mut self, at: Timestamp) {
        let attempt = self.as_attempt(at);
        self.previous_retries.push(attempt);
        self.retry_count += 1;
        self.attempt += 1;
        (self.process_id, self.exit_code, self.start_time) = (None, None, None);
        (self.error_message, self.error_category, self.resource_usage) = (None, None, None);
        self.outcome = None;
    }

    /// Has failed and waits in the queue again.
    pub fn wait_again(&mut self, at: Timestamp) -> Result<(), Illegal> {
        self.begin_anew(at);
        self.enter(State::Cleanup, at)?;
        self.enter(State::Idle, at)
    }

    /// How what was asked for stands. One that begins anew is at work all the time.
    pub fn standing(&self) -> Standing {
        match (self.state, self.outcome) {
            (State::Idle, _) if self.retry_count == 0 => Standing::Waiting,
            _ if self.end_time.is_none() => Standing::Working,
            (State::Completed, Some(Outcome::Asks)) => Standing::Asks,
            (State::Completed, Some(Outcome::NeedsAccess)) => Standing::NeedsAccess,
            (State::Cancelled, _) | (State::Completed, Some(Outcome::Withdrawn)) => Standing::Cancelled,
            (State::Completed, _) => Standing::Completed,
            (_, Some(Outcome::Rejected)) => Standing::Rejected,
            _ => Standing::Failed,
        }
    }

    /// Milliseconds from its start to its end.
    pub fn execution_time(&self) -> i64 {
        match (self.start_time, self.end_time) {
            (Some(start), Some(end)) => (end.as_microsecond() - start.as_microsecond()).max(0) / 1000,
            _ => 0,
        }
    }
}

/// A file that an agent left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Artifact {
    pub name: String,
    pub size: u64,
}

/// What came of an execution (S2's ExecutionResult).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExecutionResult {
    pub id: Uuid,
    pub agent_id: String,
    pub schedule_id: Option<Uuid>,
    pub session_id: Option<Uuid>,
    pub start_time: Option<Timestamp>,
    pub end_time: Option<Timestamp>,
    pub status: Status,
    pub outcome: Option<Outcome>,
    pub input: String,
    /// Without what must not be kept; where it was too long, its beginning and its end with a mark between.
    pub output: String,
    /// Whether the middle of the output is missing.
    pub truncated: bool,
    pub error: Option<String>,
    pub error_category: Option<Category>,
    /// In milliseconds.
    pub execution_time: i64,
    pub process_id: Option<i64>,
    pub exit_code: Option<i64>,
    pub artifacts: Vec<Artifact>,
    pub previous_retries: Vec<Attempt>,
    pub resource_usage: Option<ResourceUsage>,
    pub state_transitions: Vec<Transition>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_s2s_and_what_was_added() {
        // SUP-5
        use State::{Cancelled, Cleanup, Completed, Failed, Idle, Running, Starting, Timeout};
        let legal = [
            (Idle, Starting),
            (Starting, Running),
            (Starting, Failed),
            (Running, Completed),
            (Running, Failed),
            (Running, Timeout),
            (Running, Cancelled),
            (Completed, Cleanup),
            (Failed, Cleanup),
            (Timeout, Cleanup),
            (Cancelled, Cleanup),
            (Cleanup, Idle),
            (Failed, Starting),
            (Idle, Cancelled),
            (Idle, Timeout),
            (Idle, Failed),
            (Starting, Cancelled),
            (Starting, Timeout),
        ];
        for from in State::ALL {
            for to in State::ALL {
                assert_eq!(from.may_become(*to), legal.contains(&(*from, *to)), "{from} -> {to}");
            }
        }
    }

    /// Returns the table as a diagram of mermaid.
    fn diagram() -> String {
        let mut lines = vec!["stateDiagram-v2".to_owned(), "    [*] --> idle: enqueued".to_owned()];
        for (from, next) in TABLE {
            for to in *next {
                let label = match (from, to) {
                    (State::Idle, State::Starting) => ": claimed",
                    (State::Starting, State::Running) => ": started",
                    (State::Failed, State::Starting) => ": retried",
                    (State::Cleanup, State::Idle) => ": record closed, or waits for a retry",
                    _ => "",
                };
                lines.push(format!("    {from} --> {to}{label}"));
            }
        }
        lines.join("\n")
    }

    #[test]
    fn the_architecture_document_shows_the_table() {
        // SUP-5
        let document = include_str!("../../../ARCHITECTURE.md");
        let (_, rest) = document.split_once("```mermaid\nstateDiagram-v2").expect("the document has no diagram");
        let (shown, _) = rest.split_once("\n```").expect("the diagram does not end");
        assert_eq!(format!("stateDiagram-v2{shown}"), diagram());
    }

    #[test]
    fn how_it_stands() {
        // A2A-1
        let at = Timestamp::UNIX_EPOCH;
        let mut execution: Execution = Execution {
            id: Uuid::nil(),
            agent_id: String::new(),
            schedule_id: None,
            session_id: None,
            state: State::Idle,
            previous_state: None,
            created_at: at,
            start_time: None,
            end_time: None,
            last_state_change: at,
            input: String::new(),
            process_id: None,
            exit_code: None,
            error_message: None,
            error_category: None,
            outcome: None,
            retry_count: 0,
            max_retries: 1,
            attempt: 1,
            timeout: Seconds::new(1),
            resource_usage: None,
            context: Map::new(),
            queue_position: None,
            state_transitions: Vec::new(),
            previous_retries: Vec::new(),
        };
        assert_eq!(execution.standing(), Standing::Waiting);
        for state in [State::Starting, State::Running, State::Failed] {
            execution.enter(state, at).unwrap();
            assert_eq!(execution.standing(), Standing::Working, "{state}");
        }
        execution.wait_again(at).unwrap();
        assert_eq!(execution.standing(), Standing::Working, "whoever saw it at work does not see it wait again");
        execution.end_time = Some(at);
        for (state, outcome, standing) in [
            (State::Completed, None, Standing::Completed),
            (State::Completed, Some(Outcome::Asks), Standing::Asks),
            (State::Completed, Some(Outcome::NeedsAccess), Standing::NeedsAccess),
            (State::Completed, Some(Outcome::Message), Standing::Completed),
            (State::Completed, Some(Outcome::Withdrawn), Standing::Cancelled),
            (State::Failed, None, Standing::Failed),
            (State::Failed, Some(Outcome::Rejected), Standing::Rejected),
            (State::Timeout, None, Standing::Failed),
            (State::Cancelled, None, Standing::Cancelled),
        ] {
            (execution.state, execution.outcome) = (state, outcome);
            assert_eq!(execution.standing(), standing, "{state} {outcome:?}");
            assert_eq!(standing.is_final(), !standing.is_asking());
        }
    }
}
