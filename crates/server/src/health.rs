//! Whether the server lives, whether it can work, and what it depends on.

use std::time::{Duration, Instant};

use api::health::{
    CircuitBreaker, Health, HealthBrief, HealthDependencies, HealthOfChannel, HealthOfDatabase, HealthOfMcpServer,
    HealthOfModel, HealthOfTool, HealthStatus,
};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::breaker::{self, Snapshot};
use tools::foreign::{Phase, Servers};

use crate::App;

const PATIENCE: Duration = Duration::from_secs(2);

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
    let database = HealthOfDatabase {
        status: reached,
        kind: app.store().kind().into(),
        latency_ms: started.elapsed().as_secs_f64() * 1000.0,
    };
    let status = overall(&app, reached);
    let health = Health {
        status,
        version: env!("CARGO_PKG_VERSION").into(),
        uptime_seconds: app.uptime().as_secs(),
        dependencies: HealthDependencies {
            database,
            models: models(&app),
            mcp_servers: mcp_servers(&app),
            channels: channels(&app),
            push_hosts_left_alone: app.notifier().hosts_left_alone(),
        },
    };
    (code(status), Json(health))
}

fn models(app: &App) -> Vec<HealthOfModel> {
    let in_force = app.in_force();
    let models = in_force.models.iter().map(|model| {
        let health = model.health();
        let open = health.as_ref().is_some_and(|health| health.breaker.state == breaker::State::Open);
        let aside = health.iter().flat_map(|health| health.set_aside.clone());
        HealthOfModel {
            name: model.name().to_owned(),
            status: if open { HealthStatus::Unavailable } else { HealthStatus::Ok },
            tools_set_aside: aside.map(|(tool, reason)| HealthOfTool { tool, reason }).collect(),
            circuit_breaker: health.map(|health| breaker_state(health.breaker)),
        }
    });
    models.collect()
}

fn mcp_servers(app: &App) -> Vec<HealthOfMcpServer> {
    let states = app.in_force().tools.servers.as_ref().map(Servers::states).unwrap_or_default();
    let servers = states.into_iter().map(|server| HealthOfMcpServer {
        name: server.name,
        status: match server.phase {
            Phase::Ready if server.breaker.state != breaker::State::Open => HealthStatus::Ok,
            _ => HealthStatus::Unavailable,
        },
        phase: phase(server.phase).into(),
        protocol: server.protocol,
        implementation: server.implementation,
        tools: server.tools,
        tools_set_aside: server
            .left_out
            .into_iter()
            .map(|tool| HealthOfTool { tool: tool.name, reason: tool.reason })
            .collect(),
        last_error: server.last_error.filter(|_| server.phase != Phase::Ready),
        next_try_in_seconds: server.next_try_in,
        circuit_breaker: breaker_state(server.breaker),
    });
    servers.collect()
}

fn channels(app: &App) -> Vec<HealthOfChannel> {
    let channels = app.notifier().states().into_iter().map(|channel| HealthOfChannel {
        name: channel.name,
        kind: channel.kind.into(),
        status: if channel.disabled_until.is_some() { HealthStatus::Unavailable } else { HealthStatus::Ok },
        disabled_until: channel.disabled_until,
        last_error: channel.last_error,
        circuit_breaker: breaker_state(channel.breaker),
    });
    channels.collect()
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Starting => "starting",
        Phase::Ready => "ready",
        Phase::Down => "down",
    }
}

fn breaker_state(now: Snapshot) -> CircuitBreaker {
    CircuitBreaker {
        state: now.state.as_str().into(),
        failure_count: now.failure_count,
        last_failure_time: now.last_failure_time,
        last_state_change: now.last_state_change,
        consecutive_successes: now.consecutive_successes,
    }
}

/// Whether the process answers.
#[utoipa::path(get, path = "/health/live", tag = "operation", security(()), responses((status = 200, body = HealthBrief)))]
pub(crate) async fn live() -> Json<HealthBrief> {
    Json(HealthBrief { status: HealthStatus::Ok })
}

/// Whether requests should be sent here.
#[utoipa::path(
    get,
    path = "/health/ready",
    tag = "operation",
    security(()),
    responses((status = 200, body = HealthBrief), (status = 503, description = "Not now", body = HealthBrief))
)]
pub(crate) async fn ready(State(app): State<App>) -> (StatusCode, Json<HealthBrief>) {
    let status = overall(&app, database(&app).await);
    (code(status), Json(HealthBrief { status }))
}

async fn database(app: &App) -> HealthStatus {
    match tokio::time::timeout(PATIENCE, app.store().ping()).await {
        Ok(Ok(())) => HealthStatus::Ok,
        _ => HealthStatus::Unavailable,
    }
}

fn overall(app: &App, database: HealthStatus) -> HealthStatus {
    if app.stopping().is_cancelled() { HealthStatus::Stopping } else { database }
}

fn code(status: HealthStatus) -> StatusCode {
    if status == HealthStatus::Ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}
