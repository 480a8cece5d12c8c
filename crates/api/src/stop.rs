//! `POST /api/stop`: stops one server.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Stops the server that receives the request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServerStopRequest {
    /// The time in which running executions may finish. The default is the setting `server.drain_seconds`.
    #[schema(maximum = 86400)]
    pub drain_seconds: Option<u32>,
}

/// The stop of a server that has begun.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ServerStopSummary {
    /// The number of executions that run on this server.
    pub running: usize,
}
