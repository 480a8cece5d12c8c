//! Schedules: rules that run an agent at certain times (S2's ScheduledTask), and the decision about each occurrence.
//!
//! This module does not parse cron expressions. The crate `scheduler` does.

mod decision;
mod draft;
#[cfg(test)]
mod tests;
mod time_span;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

pub use decision::{Decision, DecisionKind, ScheduleExplanation};
pub use draft::{MAX_NAME, ScheduleDraft, SchedulePatch};
pub use time_span::TimeSpan;

use crate::execution::ExecutionStatus;
use crate::string_enum::schema_enum;

/// The key of the input text in `input_parameters`. All other keys are parameters of the run.
pub const INPUT_KEY: &str = "input";

/// The default of `missed_window`.
pub const DEFAULT_MISSED_WINDOW: TimeSpan = TimeSpan::from_secs(24 * 60 * 60);

/// The settings of a schedule, validated by [`ScheduleDraft::check`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleSettings {
    #[schema(examples("tidy"))]
    pub name: String,
    #[schema(examples("codex"))]
    pub agent_id: String,
    /// 5 or 6 fields, or a shortcut such as `@daily`. Exactly one of `cron_expression`, `every` and `at` is set.
    #[schema(examples("0 17 * * FRI"))]
    pub cron_expression: Option<String>,
    /// The interval, counted from `start_at`, or else from the creation of the schedule.
    #[schema(value_type = Option<String>, examples("1h30m"))]
    pub every: Option<TimeSpan>,
    /// The time of a single run.
    pub at: Option<Timestamp>,
    /// The time zone of the cron expression.
    #[schema(examples("Europe/Berlin"))]
    pub time_zone: String,
    /// `input` is the input text of the agent. All other keys are parameters of the run.
    #[schema(value_type = Object)]
    pub input_parameters: Map<String, Value>,
    pub overlap: OverlapPolicy,
    pub missed: MissedPolicy,
    /// The age up to which a missed run is caught up.
    #[schema(value_type = String, examples("1d"))]
    pub missed_window: TimeSpan,
    /// The maximum random delay of each run.
    #[schema(value_type = Option<String>, examples("5m"))]
    pub jitter: Option<TimeSpan>,
    pub start_at: Option<Timestamp>,
    pub end_at: Option<Timestamp>,
    /// The number of consecutive failures that pauses the schedule.
    #[schema(minimum = 1, maximum = 1000)]
    pub pause_after_failures: Option<u32>,
}

impl ScheduleSettings {
    /// Returns `true` if both settings have the same occurrences: equal times, intervals and jitter. The time zone is
    /// compared only for cron expressions.
    pub fn has_same_timing(&self, other: &Self) -> bool {
        let timing = |s: &Self| (s.cron_expression.clone(), s.every, s.at, s.start_at, s.end_at, s.jitter);
        timing(self) == timing(other) && (self.cron_expression.is_none() || self.time_zone == other.time_zone)
    }

    /// Returns the input text and the parameters of a run. The input is empty if it is not set, and JSON if it is not a
    /// string.
    pub fn input_and_parameters(&self) -> (String, Map<String, Value>) {
        let mut parameters = self.input_parameters.clone();
        let input = match parameters.shift_remove(INPUT_KEY) {
            Some(Value::String(text)) => text,
            Some(other) => other.to_string(),
            None => String::new(),
        };
        (input, parameters)
    }
}

/// A rule that runs an agent at certain times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Schedule {
    pub id: Uuid,
    #[serde(flatten)]
    pub settings: ScheduleSettings,
    /// `false` if the schedule is paused.
    pub enabled: bool,
    /// `true` if the state is `active` or `executing`.
    pub active: bool,
    pub state: ScheduleState,
    pub paused_reason: Option<String>,
    pub paused_at: Option<Timestamp>,
    pub last_execution: Option<Timestamp>,
    /// The status of the last ended execution.
    pub last_status: Option<ExecutionStatus>,
    pub next_execution: Option<Timestamp>,
    /// The number of consecutive failures.
    pub failures: i64,
    pub source: ScheduleSource,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

schema_enum! {
    /// The state of a schedule.
    pub enum ScheduleState {
        /// `start_at` is in the future.
        Created = "created",
        /// Waits for the next occurrence.
        Active = "active",
        /// An execution of the schedule has not ended.
        Executing = "executing",
        /// Not enabled. No execution starts.
        Paused = "paused",
    }
}

impl ScheduleState {
    /// Returns the state of a schedule. A schedule that is not enabled is `Paused`, even while its last execution is
    /// running. Otherwise it is `Executing` if an execution has not ended, `Created` if `start_at` is after `now`, and
    /// `Active` if neither applies.
    pub fn compute(enabled: bool, executing: bool, start_at: Option<Timestamp>, now: Timestamp) -> Self {
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

    /// Returns `true` for `Active` and `Executing`.
    pub fn is_active(self) -> bool {
        matches!(self, Self::Active | Self::Executing)
    }
}

schema_enum! {
    /// The policy for an occurrence that is due while the previous execution is running.
    #[schema(as = Overlap)]
    pub enum OverlapPolicy {
        /// The occurrence is skipped.
        Skip = "skip",
        /// The occurrence starts after the previous execution. Further occurrences are skipped while it waits.
        QueueOne = "queue_one",
        /// All occurrences start, one after the other.
        QueueAll = "queue_all",
        /// The previous execution is cancelled first.
        Cancel = "cancel",
        /// Both executions run.
        Allow = "allow",
    }
}

schema_enum! {
    /// The policy for occurrences that passed while no node was running.
    #[schema(as = Missed)]
    pub enum MissedPolicy {
        /// Missed occurrences are not caught up.
        None = "none",
        /// The last missed occurrence is caught up.
        Once = "once",
        /// Each missed occurrence is caught up.
        All = "all",
    }
}

schema_enum! {
    /// The origin of a schedule.
    pub enum ScheduleSource {
        /// The configuration file. The schedule can be paused and run over the API, but not changed.
        File = "file",
        Api = "api",
    }
}
