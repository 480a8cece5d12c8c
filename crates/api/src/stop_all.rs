//! `/api/stop-all` and `/api/resume-all`.

pub use model::stop_state::StopState;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Stops everything.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StopRequest {
    /// Shown to everyone who wants to run an agent.
    #[schema(max_length = 500)]
    pub reason: Option<String>,
}

/// The state after a stop, and the work that it affects.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StopSummary {
    #[serde(flatten)]
    pub state: StopState,
    /// The number of executions that were running. They are cancelled.
    pub executions: i64,
    /// The number of sessions that were open. They are closed.
    pub sessions: i64,
    /// The number of queued executions. They stay queued.
    pub queued: i64,
    /// The number of enabled schedules. They start nothing.
    pub schedules: i64,
}

/// The result of a resumption.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ResumeSummary {
    /// The stop that has ended. `null` if nothing was stopped.
    pub stop: Option<StopState>,
    /// The number of queued executions.
    pub queued: i64,
    /// The number of enabled schedules.
    pub schedules: i64,
}
