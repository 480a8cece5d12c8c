//! Whether the server lives, whether it can work, and what it depends on.

use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
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
        dependencies: Dependencies { database },
    };
    (code(status), Json(health))
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
