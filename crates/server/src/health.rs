//! The health endpoints: the state of the process, its readiness and its dependencies. `/health` and `/health/ready`
//! respond with 503 if the database does not answer within two seconds, cannot be written or has another schema, or if
//! the server is stopping. Other dependencies never change the status. `/health/live` always responds with 200. With
//! authentication, `/health` shows dependencies only to requests with a valid token.

use std::time::{Duration, Instant};

use api::health::{
    ChannelHealth, CircuitBreaker, DatabaseHealth, Health, HealthBrief, HealthDependencies, HealthStatus,
    LanguageModelHealth, McpServerHealth, RejectedTool,
};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use model::breaker::{BreakerSnapshot, BreakerState};
use model::stop_state::StopState;
use tools::mcp_client::{McpServerPhase, McpServers};

use crate::{App, auth};

/// The time within which the database must answer a ping.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the state of the server and of its dependencies.
///
/// With authentication, a request without a valid token gets only the status.
#[utoipa::path(
    get,
    path = "/health",
    tag = "operation",
    security(("token" = []), ()),
    responses(
        (status = 200, description = "The server is ready", body = Health),
        (status = 503, description = "The database is not available, or the server is stopping", body = Health),
    )
)]
pub(crate) async fn health(State(app): State<App>, headers: HeaderMap) -> Response {
    if auth::identify(&app, auth::bearer_token(&headers)).await.is_none() {
        return ready(State(app)).await.into_response();
    }
    let started = Instant::now();
    let pinged = ping_database(&app).await;
    let status = overall_status(&app, &pinged);
    let database = DatabaseHealth {
        status: database_status(&pinged),
        kind: app.store().kind().into(),
        latency_ms: started.elapsed().as_secs_f64() * 1000.0,
        error: pinged.err(),
    };
    let health = Health {
        status,
        version: env!("CARGO_PKG_VERSION").into(),
        uptime_seconds: app.uptime().as_secs(),
        stopped: read_stop_state(&app).await,
        dependencies: HealthDependencies {
            database,
            models: models(&app),
            mcp_servers: mcp_servers(&app),
            channels: channels(&app),
            push_hosts_left_alone: app.notifier().suspended_hosts(),
        },
    };
    (status_code(status), Json(health)).into_response()
}

/// Returns the state while everything is stopped. Uses the state that the node has read last if the database does not
/// answer in time.
async fn read_stop_state(app: &App) -> Option<StopState> {
    let read = async { store::stop_state::current(&mut app.store().health_reader().await?).await };
    match tokio::time::timeout(DATABASE_TIMEOUT, read).await {
        Ok(Ok(state)) => state,
        _ => app.supervisor().stop_state(),
    }
}

/// Returns the health of the configured models, in the order in which they are tried. A model is unavailable while its
/// circuit breaker is open. The offline model has no circuit breaker.
fn models(app: &App) -> Vec<LanguageModelHealth> {
    let config = app.active_config();
    let models = config.models.iter().map(|model| {
        let health = model.health();
        let open = health.as_ref().is_some_and(|health| health.breaker.state == BreakerState::Open);
        let rejected = health.iter().flat_map(|health| health.rejected_tools.clone());
        LanguageModelHealth {
            name: model.name().to_owned(),
            status: if open { HealthStatus::Unavailable } else { HealthStatus::Ok },
            tools_set_aside: rejected.map(|(tool, reason)| RejectedTool { tool, reason }).collect(),
            circuit_breaker: health.map(|health| breaker_state(health.breaker)),
        }
    });
    models.collect()
}

/// Returns the health of the external MCP servers. A server is available if it is ready and its circuit breaker is not
/// open. The last error is shown only while it is not ready. The list is empty if none is configured.
fn mcp_servers(app: &App) -> Vec<McpServerHealth> {
    let states = app.active_config().tools.servers.as_ref().map(McpServers::states).unwrap_or_default();
    let servers = states.into_iter().map(|server| McpServerHealth {
        name: server.name,
        status: match server.phase {
            McpServerPhase::Ready if server.breaker.state != BreakerState::Open => HealthStatus::Ok,
            _ => HealthStatus::Unavailable,
        },
        phase: phase_name(server.phase).into(),
        protocol: server.protocol,
        implementation: server.implementation,
        tools: server.tools,
        tools_set_aside: server
            .rejected_tools
            .into_iter()
            .map(|tool| RejectedTool { tool: tool.name, reason: tool.reason })
            .collect(),
        last_error: server.last_error.filter(|_| server.phase != McpServerPhase::Ready),
        next_try_in_seconds: server.next_try_in,
        circuit_breaker: breaker_state(server.breaker),
    });
    servers.collect()
}

/// Returns the health of the configured notification channels. A channel is unavailable while its deliveries are
/// suspended. Only then it has a last error.
fn channels(app: &App) -> Vec<ChannelHealth> {
    let channels = app.notifier().channel_states().into_iter().map(|channel| ChannelHealth {
        name: channel.name,
        kind: channel.kind.into(),
        status: if channel.disabled_until.is_some() { HealthStatus::Unavailable } else { HealthStatus::Ok },
        disabled_until: channel.disabled_until,
        last_error: channel.last_error,
        circuit_breaker: breaker_state(channel.breaker),
    });
    channels.collect()
}

fn phase_name(phase: McpServerPhase) -> &'static str {
    match phase {
        McpServerPhase::Starting => "starting",
        McpServerPhase::Ready => "ready",
        McpServerPhase::Down => "down",
    }
}

/// Converts the state of a circuit breaker to the form of the interface.
fn breaker_state(snapshot: BreakerSnapshot) -> CircuitBreaker {
    CircuitBreaker {
        state: snapshot.state.as_str().into(),
        failure_count: snapshot.failure_count,
        last_failure_time: snapshot.last_failure_time,
        last_state_change: snapshot.last_state_change,
        consecutive_successes: snapshot.consecutive_successes,
    }
}

/// Answers while the process runs.
#[utoipa::path(
    get,
    path = "/health/live",
    tag = "operation",
    security(()),
    responses((status = 200, description = "The process is running", body = HealthBrief))
)]
pub(crate) async fn live() -> Json<HealthBrief> {
    Json(HealthBrief { status: HealthStatus::Ok })
}

/// Reports readiness.
///
/// A load balancer should send requests only to ready servers.
#[utoipa::path(
    get,
    path = "/health/ready",
    tag = "operation",
    security(()),
    responses(
        (status = 200, description = "The server is ready", body = HealthBrief),
        (status = 503, description = "The database is not available, or the server is stopping", body = HealthBrief),
    )
)]
pub(crate) async fn ready(State(app): State<App>) -> (StatusCode, Json<HealthBrief>) {
    let status = overall_status(&app, &ping_database(&app).await);
    (status_code(status), Json(HealthBrief { status }))
}

/// Checks the database. Fails with the reason if it cannot be used, or does not answer within two seconds.
async fn ping_database(app: &App) -> Result<(), String> {
    match tokio::time::timeout(DATABASE_TIMEOUT, app.store().ping()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(redact::redact(&error.to_string()).into_owned()),
        Err(_) => Err("the database did not answer in time".to_owned()),
    }
}

fn database_status(pinged: &Result<(), String>) -> HealthStatus {
    if pinged.is_ok() { HealthStatus::Ok } else { HealthStatus::Unavailable }
}

/// Returns `Stopping` if the server is stopping, otherwise the status of the database.
fn overall_status(app: &App, pinged: &Result<(), String>) -> HealthStatus {
    if app.is_stopping() { HealthStatus::Stopping } else { database_status(pinged) }
}

fn status_code(status: HealthStatus) -> StatusCode {
    if status == HealthStatus::Ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}
