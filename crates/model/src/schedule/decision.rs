//! What was decided about one of a schedule's times, and why.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::words::words;

words! {
    #[schema(as = DecisionKind)]
    pub enum Kind {
        /// It was run.
        Fired = "fired",
        /// It was run late, because nobody was there at its time.
        CaughtUp = "caught_up",
        /// The one before it had not ended.
        Skipped = "skipped",
        /// Nobody was there at its time, and it is not made up for.
        Missed = "missed",
        /// The schedule was paused.
        Paused = "paused",
        /// It could not be run.
        Refused = "refused",
        /// Waits for the one before it to end.
        Queued = "queued",
        /// Somebody asked for it, at no time of the schedule's own.
        Run = "run",
    }
}

/// One of a schedule's times and what became of it. There is one for each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Decision {
    pub schedule_id: Uuid,
    /// The time itself, without jitter.
    pub due_at: Timestamp,
    pub decided_at: Timestamp,
    pub kind: Kind,
    pub reason: Option<String>,
    pub execution_id: Option<Uuid>,
    /// Where this stands for several times: the last of them.
    pub until: Option<Timestamp>,
}

/// The reason why a schedule did, or did not, run around a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ScheduleExplanation)]
pub struct Explanation {
    pub schedule_id: Uuid,
    /// The time that was asked about.
    pub at: Timestamp,
    /// The last of the schedule's times until then.
    pub due_at: Option<Timestamp>,
    /// The decision about that time, if there is one.
    pub decision: Option<Decision>,
    /// A run by hand between that time and the next one, if there was one.
    pub by_hand: Option<Decision>,
    /// A few sentences, in the schedule's zone.
    pub text: String,
}
