//! Permissions: tools of external servers that need no confirmation, because their user has said so.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Clock;

/// A tool of an external server that its user has allowed from then on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Permission {
    pub id: Uuid,
    /// The name of the server in the configuration.
    #[schema(examples("mail"))]
    pub server: String,
    /// The name of the tool at the server.
    #[schema(examples("send_mail"))]
    pub tool: String,
    pub created_at: Timestamp,
}

impl Permission {
    /// Returns a permission with a new id and the current time.
    pub fn new(clock: &Clock, server: impl Into<String>, tool: impl Into<String>) -> Self {
        Self { id: clock.id(), server: server.into(), tool: tool.into(), created_at: clock.now() }
    }
}
