//! `/health` and what is below it.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The state of the server and of its dependencies.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Health {
    pub status: HealthStatus,
    pub version: Cow<'static, str>,
    pub uptime_seconds: u64,
    pub dependencies: HealthDependencies,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthStatus {
    Ok,
    Unavailable,
    Stopping,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HealthDependencies {
    pub database: HealthOfDatabase,
    /// The models in the order in which they are tried.
    pub models: Vec<HealthOfModel>,
    /// The MCP servers whose tools the assistant uses.
    pub mcp_servers: Vec<HealthOfMcpServer>,
    /// The channels by which users are notified.
    pub channels: Vec<HealthOfChannel>,
    /// Push notification hosts of A2A clients that do not respond. Nothing is sent to them for a minute.
    pub push_hosts_left_alone: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HealthOfDatabase {
    pub status: HealthStatus,
    /// `sqlite` or `postgres`.
    pub kind: Cow<'static, str>,
    pub latency_ms: f64,
}

/// A notification channel. Without it users are notified by the others, and in the product.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HealthOfChannel {
    pub name: String,
    #[serde(rename = "type")]
    #[schema(examples("webhook", "command", "email"))]
    pub kind: Cow<'static, str>,
    pub status: HealthStatus,
    /// Nothing is sent there until then, because too many deliveries failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub disabled_until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    pub circuit_breaker: CircuitBreaker,
}

/// An MCP server that adjutant uses. The server works without it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HealthOfMcpServer {
    pub name: String,
    pub status: HealthStatus,
    #[schema(examples("ready", "starting", "down"))]
    pub phase: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The name and version that it reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implementation: Option<String>,
    pub tools: usize,
    /// Tools that cannot be used, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools_set_aside: Vec<HealthOfTool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Until it is started again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_try_in_seconds: Option<u64>,
    pub circuit_breaker: CircuitBreaker,
}

/// A model. Where it fails the next one answers, so the server is healthy without it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HealthOfModel {
    pub name: String,
    pub status: HealthStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuit_breaker: Option<CircuitBreaker>,
    /// Tools that it does not accept, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools_set_aside: Vec<HealthOfTool>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HealthOfTool {
    pub tool: String,
    pub reason: String,
}

/// S0's CircuitBreakerState.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CircuitBreaker {
    #[schema(examples("closed", "open", "half_open"))]
    pub state: Cow<'static, str>,
    pub failure_count: u32,
    #[schema(value_type = Option<String>)]
    pub last_failure_time: Option<Timestamp>,
    #[schema(value_type = String)]
    pub last_state_change: Timestamp,
    pub consecutive_successes: u32,
}

/// The state alone.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct HealthBrief {
    pub status: HealthStatus,
}
