//! The state in which everything is stopped: no agent, schedule or queue runs until an administrator resumes it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::UserId;

/// The last time that everything was stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StopState {
    pub stopped_at: Timestamp,
    pub reason: Option<String>,
    /// The user that stopped everything.
    #[schema(value_type = Uuid)]
    pub by: UserId,
    /// `null` while everything is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_at: Option<Timestamp>,
}

impl StopState {
    /// Returns the sentence about the stop, with the reason if there is one.
    pub fn describe(reason: Option<&str>) -> String {
        match reason {
            Some(reason) => format!("everything is stopped: {reason}"),
            None => "everything is stopped".to_owned(),
        }
    }

    /// Returns `true` if everything was stopped at this time.
    pub fn contains(&self, time: Timestamp) -> bool {
        self.stopped_at <= time && self.resumed_at.is_none_or(|resumed| time < resumed)
    }
}
