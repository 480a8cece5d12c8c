//! `/api/schedules`.

use jiff::Timestamp;
pub use model::schedule::{
    Decision, DecisionKind, Schedule, ScheduleDraft, ScheduleExplanation, SchedulePatch, ScheduleSettings,
    ScheduleSource,
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
        /// `false`: only paused schedules.
        enabled: bool,
        /// `file` or `api`.
        #[param(value_type = Option<String>)]
        source: ScheduleSource,
        /// The name, or the start or end of an id.
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
    /// Decisions about the occurrences of a schedule.
    Decisions { decisions: Decision }
}

list! {
    /// Selects decisions about a schedule.
    ListDecisions -> Decisions {}
}

page! {
    /// Occurrences of a schedule. There is only one page.
    Times { times: Timestamp }
}

/// Selects the next occurrences of a schedule.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct NextTimesParams {
    /// The number of occurrences; 5 by default.
    #[param(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Selects the time to explain.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ExplainParams {
    /// RFC 3339, a date and time without offset in the user's time zone, or words such as `yesterday 9am`. The default is the
    /// current time.
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
