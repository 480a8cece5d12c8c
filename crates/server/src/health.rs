//! Whether the server lives, whether it can work, and what it depends on.

use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use model::breaker::{self, Snapshot};
use serde::Serialize;
use tools::foreign::{Phase, Servers};
use utoipa::ToSchema;

use crate::App;

const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    status: Status,
    version: &'static str,
    uptime_seconds: u64,
    dependencies: Dependencies,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = HealthStatus)]
enum Status {
    Ok,
    Unavailable,
    Stopping,
}

#[derive(Serialize, ToSchema)]
#[schema(as = HealthDependencies)]
struct Dependencies {
    database: Database,
    /// The models in the order in which they are asked.
    models: Vec<Model>,
    /// The MCP servers whose tools the assistant uses beside our own.
    mcp_servers: Vec<McpServer>,
    /// The ways by which users are told what they did not ask for.
    channels: Vec<Channel>,
    /// Hosts to which clients of A2A want to be called back and that do not answer: nothing is sent there for a minute.
    push_hosts_left_alone: usize,
}

/// A way to users. Without it they are told by the others, and in the product.
#[derive(Serialize, ToSchema)]
#[schema(as = HealthOfChannel)]
struct Channel {
    name: String,
    #[serde(rename = "type")]
    #[schema(examples("webhook", "command", "email"))]
    kind: &'static str,
    status: Status,
    /// Nothing is sent there until then, because too much was given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    disabled_until: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    circuit_breaker: CircuitBreaker,
}

/// An MCP server of somebody else. Without it the rest works.
#[derive(Serialize, ToSchema)]
#[schema(as = HealthOfMcpServer)]
struct McpServer {
    name: String,
    status: Status,
    #[schema(value_type = String, examples("ready", "starting", "down"))]
    phase: Phase,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<String>,
    /// What it calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    implementation: Option<String>,
    tools: usize,
    /// Tools that cannot be used, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools_set_aside: Vec<SetAside>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    /// Until it is started again.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_try_in_seconds: Option<u64>,
    circuit_breaker: CircuitBreaker,
}

/// A model that answers in the chat. If it does not, another one does: the server as a whole is well without it.
#[derive(Serialize, ToSchema)]
#[schema(as = HealthOfModel)]
struct Model {
    name: String,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    circuit_breaker: Option<CircuitBreaker>,
    /// Tools that it does not take, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools_set_aside: Vec<SetAside>,
}

/// S0's CircuitBreakerState.
#[derive(Serialize, ToSchema)]
pub(crate) struct CircuitBreaker {
    #[schema(examples("closed", "open", "half_open"))]
    state: &'static str,
    failure_count: u32,
    #[schema(value_type = Option<String>)]
    last_failure_time: Option<Timestamp>,
    #[schema(value_type = String)]
    last_state_change: Timestamp,
    consecutive_successes: u32,
}

#[derive(Serialize, ToSchema)]
#[schema(as = HealthOfTool)]
struct SetAside {
    tool: String,
    reason: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = HealthOfDatabase)]
struct Database {
    status: Status,
    /// `sqlite` or `postgres`.
    kind: &'static str,
    latency_ms: f64,
}

#[derive(Serialize, ToSchema)]
#[schema(as = HealthBrief)]
pub(crate) struct Brief {
    status: Status,
}

/// State of the server and of what it depends on.
#[utoipa::path(
    get,
    path = "/health",
    tag = "operation",
    security(()),
    responses((status = 200, body = Health), (status = 503, description = "It cannot work right now", body = Health))
)]
pub(crate) async fn health(State(app): State<App>) -> (StatusCode, Json<Health>) {
    let started = Instant::now();
    let reached = database(&app).await;
    let database =
        Database { status: reached, kind: app.store().kind(), latency_ms: started.elapsed().as_secs_f64() * 1000.0 };
    let status = overall(&app, reached);
    let health = Health {
        status,
        version: env!("CARGO_PKG_VERSION"),
        uptime_seconds: app.uptime().as_secs(),
        dependencies: Dependencies {
            database,
            models: models(&app),
            mcp_servers: mcp_servers(&app),
            channels: channels(&app),
            push_hosts_left_alone: app.notifier().hosts_left_alone(),
        },
    };
    (code(status), Json(health))
}

fn models(app: &App) -> Vec<Model> {
    let in_force = app.in_force();
    let models = in_force.models.iter().map(|model| {
        let health = model.health();
        let open = health.as_ref().is_some_and(|health| health.breaker.state == breaker::State::Open);
        let aside = health.iter().flat_map(|health| health.set_aside.clone());
        Model {
            name: model.name().to_owned(),
            status: if open { Status::Unavailable } else { Status::Ok },
            tools_set_aside: aside.map(|(tool, reason)| SetAside { tool, reason }).collect(),
            circuit_breaker: health.map(|health| health.breaker.into()),
        }
    });
    models.collect()
}

fn mcp_servers(app: &App) -> Vec<McpServer> {
    let states = app.in_force().tools.servers.as_ref().map(Servers::states).unwrap_or_default();
    let servers = states.into_iter().map(|server| McpServer {
        name: server.name,
        status: match server.phase {
            Phase::Ready if server.breaker.state != breaker::State::Open => Status::Ok,
            _ => Status::Unavailable,
        },
        phase: server.phase,
        protocol: server.protocol,
        implementation: server.implementation,
        tools: server.tools,
        tools_set_aside: server
            .left_out
            .into_iter()
            .map(|tool| SetAside { tool: tool.name, reason: tool.reason })
            .collect(),
        last_error: server.last_error.filter(|_| server.phase != Phase::Ready),
        next_try_in_seconds: server.next_try_in,
        circuit_breaker: server.breaker.into(),
    });
    servers.collect()
}

fn channels(app: &App) -> Vec<Channel> {
    let channels = app.notifier().states().into_iter().map(|channel| Channel {
        name: channel.name,
        kind: channel.kind,
        status: if channel.disabled_until.is_some() { Status::Unavailable } else { Status::Ok },
        disabled_until: channel.disabled_until,
        last_error: channel.last_error,
        circuit_breaker: channel.breaker.into(),
    });
    channels.collect()
}

impl From<Snapshot> for CircuitBreaker {
    fn from(now: Snapshot) -> Self {
        Self {
            state: now.state.as_str(),
            failure_count: now.failure_count,
            last_failure_time: now.last_failure_time,
            last_state_change: now.last_state_change,
            consecutive_successes: now.consecutive_successes,
        }
    }
}

/// Whether the process answers.
#[utoipa::path(get, path = "/health/live", tag = "operation", security(()), responses((status = 200, body = Brief)))]
pub(crate) async fn live() -> Json<Brief> {
    Json(Brief { status: Status::Ok })
}

/// Whether requests should be sent here.
#[utoipa::path(
    get,
    path = "/health/ready",
    tag = "operation",
    security(()),
    responses((status = 200, body = Brief), (status = 503, description = "Not now", body = Brief))
)]
pub(crate) async fn ready(State(app): State<App>) -> (StatusCode, Json<Brief>) {
    let status = overall(&app, database(&app).await);
    (code(status), Json(Brief { status }))
}

async fn database(app: &App) -> Status {
    match tokio::time::timeout(PATIENCE, app.store().ping()).await {
        Ok(Ok(())) => Status::Ok,
        _ => Status::Unavailable,
    }
}

fn overall(app: &App, database: Status) -> Status {
    if app.stopping().is_cancelled() { Status::Stopping } else { database }
}

fn code(status: Status) -> StatusCode {
    if status == Status::Ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}
