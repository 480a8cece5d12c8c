//! Decisions: the recorded outcome of each occurrence of a schedule, with the reason.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::string_enum::schema_enum;

schema_enum! {
    /// The outcome of an occurrence.
    pub enum DecisionKind {
        /// The execution was started.
        Fired = "fired",
        /// The execution was started late, because no node was running at the time.
        CaughtUp = "caught_up",
        /// The previous execution was still running.
        Skipped = "skipped",
        /// No node was running at the time, and the occurrence is not caught up.
        Missed = "missed",
        /// The schedule was paused.
        Paused = "paused",
        /// The execution could not be started.
        Refused = "refused",
        /// Waits for the end of the previous execution.
        Queued = "queued",
        /// Started by a user, outside of the occurrences.
        Run = "run",
        /// The next occurrence was further ahead than the schedule allows, and was computed again.
        Recomputed = "recomputed",
    }
}

/// The outcome of one occurrence of a schedule. Each occurrence has exactly one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Decision {
    pub schedule_id: Uuid,
    /// The time of the occurrence, without jitter.
    pub due_at: Timestamp,
    pub decided_at: Timestamp,
    pub kind: DecisionKind,
    pub reason: Option<String>,
    pub execution_id: Option<Uuid>,
    /// The last occurrence, if the decision covers several.
    pub until: Option<Timestamp>,
}

/// The reason why a schedule ran, or did not run, at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleExplanation {
    pub schedule_id: Uuid,
    /// The requested time.
    pub at: Timestamp,
    /// The last occurrence until that time.
    pub due_at: Option<Timestamp>,
    /// The decision about that occurrence.
    pub decision: Option<Decision>,
    /// A manual run between that occurrence and the next one.
    pub by_hand: Option<Decision>,
    /// The explanation in a few sentences. Times are in the time zone of the schedule.
    pub text: String,
}
