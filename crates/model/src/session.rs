//! Sessions: running agent processes that answer several messages.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::string_enum::schema_enum;

schema_enum! {
    /// The state of a session.
    pub enum SessionState {
        Starting = "starting",
        /// Waits for a message.
        Ready = "ready",
        /// Answers a message.
        Busy = "busy",
        Closing = "closing",
        Closed = "closed",
        /// Closed because no message arrived before the session timeout.
        Expired = "expired",
        Failed = "failed",
    }
}

/// A running agent process that answers several messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    pub id: Uuid,
    pub agent_id: String,
    pub state: SessionState,
    pub created_at: Timestamp,
    pub last_activity: Timestamp,
    /// The time at which the session ends if no message arrives.
    pub expires_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub error_message: Option<String>,
}
