//! Schedules: an agent that is run at certain times (S2's ScheduledTask), and the decision that each of those times leaves.
//!
//! What a cron expression means is the scheduler's to say; here it is a text.

mod decision;
mod draft;
mod length;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

pub use decision::{Decision, Explanation, Kind};
pub use draft::{Draft, MAX_NAME, Patch};
pub use length::Length;

use crate::execution::Status;
use crate::words::words;

/// The key of `input_parameters` whose value is the text that the agent is given; the rest are parameters of the run.
pub const INPUT: &str = "input";

/// How late a run may still be made up for, where nothing else is said.
pub const MISSED_WINDOW: Length = Length::from_secs(24 * 60 * 60);

/// What somebody wrote down. Every value has passed [`Draft::check`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ScheduleSettings)]
pub struct Settings {
    #[schema(examples("tidy"))]
    pub name: String,
    #[schema(examples("codex"))]
    pub agent_id: String,
    /// 5 or 6 fields, or a word such as `@daily`. One of `cron_expression`, `every` and `at` is there.
    #[schema(examples("0 17 * * FRI"))]
    pub cron_expression: Option<String>,
    /// Counted from `start_at`, or else from the moment the schedule was made.
    #[schema(value_type = Option<String>, examples("1h30m"))]
    pub every: Option<Length>,
    /// Once.
    pub at: Option<Timestamp>,
    /// By whose clock the cron expression is read.
    #[schema(examples("Europe/Berlin"))]
    pub time_zone: String,
    /// `input` is the text that the agent is given; the rest are parameters of the run.
    #[schema(value_type = Object)]
    pub input_parameters: Map<String, Value>,
    pub overlap: Overlap,
    pub missed: Missed,
    /// How late a missed run may still be made up for.
    #[schema(value_type = String, examples("1d"))]
    pub missed_window: Length,
    /// Each run is put off by up to so long, by a time of its own.
    #[schema(value_type = Option<String>, examples("5m"))]
    pub jitter: Option<Length>,
    pub start_at: Option<Timestamp>,
    pub end_at: Option<Timestamp>,
    /// How many failures in a row pause it.
    #[schema(minimum = 1, maximum = 1000)]
    pub pause_after_failures: Option<u32>,
}

impl Settings {
    /// Whether two of these come due at the same times.
    pub fn is_timed_like(&self, other: &Self) -> bool {
        let timing = |s: &Self| (s.cron_expression.clone(), s.every, s.at, s.start_at, s.end_at, s.jitter);
        timing(self) == timing(other) && (self.cron_expression.is_none() || self.time_zone == other.time_zone)
    }

    /// The text that the agent is given, and the run's parameters.
    pub fn request(&self) -> (String, Map<String, Value>) {
        let mut parameters = self.input_parameters.clone();
        let input = match parameters.shift_remove(INPUT) {
            Some(Value::String(text)) => text,
            Some(other) => other.to_string(),
            None => String::new(),
        };
        (input, parameters)
    }
}

/// An agent that is run at certain times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Schedule {
    pub id: Uuid,
    #[serde(flatten)]
    pub settings: Settings,
    /// `false` is the same as paused.
    pub enabled: bool,
    /// Whether it is `active` or `executing`.
    pub active: bool,
    pub state: State,
    pub paused_reason: Option<String>,
    pub paused_at: Option<Timestamp>,
    pub last_execution: Option<Timestamp>,
    /// How the last execution that has ended did so.
    pub last_status: Option<Status>,
    pub next_execution: Option<Timestamp>,
    /// Failures in a row.
    pub failures: i64,
    pub source: Source,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

words! {
    /// Where a schedule is in its life.
    #[schema(as = ScheduleState)]
    pub enum State {
        /// Its `start_at` is yet to come.
        Created = "created",
        /// Waits for its next time.
        Active = "active",
        /// An execution of it has not ended.
        Executing = "executing",
        /// Not enabled: nothing starts.
        Paused = "paused",
    }
}

impl State {
    /// Where a schedule is. One that is paused is paused, also while its last execution goes on.
    pub fn of(enabled: bool, executing: bool, start_at: Option<Timestamp>, now: Timestamp) -> Self {
        if !enabled {
            Self::Paused
        } else if executing {
            Self::Executing
        } else if start_at.is_some_and(|start| now < start) {
            Self::Created
        } else {
            Self::Active
        }
    }

    pub fn is_active(self) -> bool {
        matches!(self, Self::Active | Self::Executing)
    }
}

words! {
    /// What becomes of a run that is due while the one before it goes on.
    pub enum Overlap {
        /// It is left out.
        Skip = "skip",
        /// It starts when the other has ended; while one waits, others are left out.
        QueueOne = "queue_one",
        /// All of them start, one after the other.
        QueueAll = "queue_all",
        /// The other is cancelled, and then it starts.
        Cancel = "cancel",
        /// Both run.
        Allow = "allow",
    }
}

words! {
    /// What becomes of runs whose time has passed while nobody was there to start them.
    pub enum Missed {
        None = "none",
        /// The last of them is made up for.
        Once = "once",
        /// Each of them is made up for.
        All = "all",
    }
}

words! {
    /// Where a schedule comes from.
    #[schema(as = ScheduleSource)]
    pub enum Source {
        /// The configuration file: it can be paused and run over the API, but not changed.
        File = "file",
        Api = "api",
    }
}
