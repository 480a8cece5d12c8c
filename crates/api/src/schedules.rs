//! `/api/schedules`.

use jiff::Timestamp;
pub use model::schedule::{
    Decision, Draft as ScheduleDraft, Explanation, Kind, Patch as SchedulePatch, Schedule, Settings, Source,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::executions::Executions;

page! {
    /// Schedules.
    Schedules { schedules: Schedule }
}

list! {
    /// Selects schedules.
    ListSchedules -> Schedules {
        agent_id: String,
        /// `false`: only those that are paused.
        enabled: bool,
        /// `file` or `api`.
        #[param(value_type = Option<String>)]
        source: Source,
        /// The name, or beginning or end of an id.
        #[serde(rename = "ref")]
        #[param(rename = "ref")]
        reference: String,
    }
}

list! {
    /// Selects executions of a schedule.
    ListScheduleExecutions -> Executions {}
}

page! {
    /// Decisions about the times of a schedule.
    Decisions { decisions: Decision }
}

list! {
    /// Selects decisions about a schedule.
    ListDecisions -> Decisions {}
}

page! {
    /// Times of a schedule. There is only one page.
    Times { times: Timestamp }
}

/// Selects the next times of a schedule.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct NextTimes {
    /// The number of times; 5 by default.
    #[param(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Selects the time to explain.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ExplainAt {
    /// RFC 3339, or a date and time in the user's zone; now by default.
    pub at: Option<String>,
}

/// The reason for a pause.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SchedulePause {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 500, examples("the changelog is being rewritten"))]
    pub reason: Option<String>,
}

/// A request to run a schedule now.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleRun {
    /// `true`: responds when the execution has ended.
    #[serde(default)]
    pub wait: bool,
}
