//! `/health` and its subpaths.

use std::borrow::Cow;

use jiff::Timestamp;
use model::stop_state::StopState;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The state of the server and of its dependencies.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Health {
    pub status: HealthStatus,
    pub version: Cow<'static, str>,
    pub uptime_seconds: u64,
    /// Set while everything is stopped. No agent runs then; the server still responds.
    #[serde(default)]
    pub stopped: Option<StopState>,
    pub dependencies: HealthDependencies,
}

/// The state of the server or of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthStatus {
    Ok,
    Unavailable,
    Stopping,
}

/// The state of the dependencies.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HealthDependencies {
    pub database: DatabaseHealth,
    /// The models in the order in which they are tried.
    pub models: Vec<LanguageModelHealth>,
    /// The MCP servers with tools for the assistant.
    pub mcp_servers: Vec<McpServerHealth>,
    /// The notification channels.
    pub channels: Vec<ChannelHealth>,
    /// The number of push notification hosts that do not respond. Nothing is sent to them for a minute.
    pub push_hosts_left_alone: usize,
}

/// The state of the database.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = HealthOfDatabase)]
pub struct DatabaseHealth {
    pub status: HealthStatus,
    /// `sqlite` or `postgres`.
    pub kind: Cow<'static, str>,
    pub latency_ms: f64,
    /// Why the database cannot be used, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The state of a notification channel. If it fails, the other channels and the product still notify users.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = HealthOfChannel)]
pub struct ChannelHealth {
    pub name: String,
    #[serde(rename = "type")]
    #[schema(examples("webhook", "command", "email"))]
    pub kind: Cow<'static, str>,
    pub status: HealthStatus,
    /// The channel is disabled until this time, because too many deliveries failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub disabled_until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    pub circuit_breaker: CircuitBreaker,
}

/// The state of an MCP server. It does not affect the status of the server.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = HealthOfMcpServer)]
pub struct McpServerHealth {
    pub name: String,
    pub status: HealthStatus,
    #[schema(examples("ready", "starting", "down"))]
    pub phase: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The name and version that the MCP server reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implementation: Option<String>,
    pub tools: usize,
    /// Tools that cannot be used, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools_set_aside: Vec<RejectedTool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The time until the next start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_try_in_seconds: Option<u64>,
    pub circuit_breaker: CircuitBreaker,
}

/// The state of a model. If it fails, the next model is used, so it does not affect the status of the server.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = HealthOfModel)]
pub struct LanguageModelHealth {
    pub name: String,
    pub status: HealthStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuit_breaker: Option<CircuitBreaker>,
    /// Tools that the model does not accept, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools_set_aside: Vec<RejectedTool>,
}

/// A tool that cannot be used.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = HealthOfTool)]
pub struct RejectedTool {
    pub tool: String,
    pub reason: String,
}

/// The state of a circuit breaker (S0's CircuitBreakerState).
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

/// The state of the server only.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct HealthBrief {
    pub status: HealthStatus,
}
