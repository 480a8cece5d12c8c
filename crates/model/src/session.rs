//! Sessions: a conversation with one live process of an agent.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::words::words;

words! {
    #[schema(as = SessionState)]
    pub enum State {
        Starting = "starting",
        /// Waits for a message.
        Ready = "ready",
        /// Answers one.
        Busy = "busy",
        Closing = "closing",
        Closed = "closed",
        /// Nothing was said for too long.
        Expired = "expired",
        Failed = "failed",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    pub id: Uuid,
    pub agent_id: String,
    pub state: State,
    pub created_at: Timestamp,
    pub last_activity: Timestamp,
    /// When it ends unless something is said.
    pub expires_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub error_message: Option<String>,
}
