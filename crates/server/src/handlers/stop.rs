//! `/api/stop`: stops the server that receives the request, and lets running executions finish before if that is asked for
//! (OPS-4). Requires the scope `adjutant:admin`. The response comes before the stop.

use std::time::Duration;

use api::stop::{ServerStopRequest, ServerStopSummary};
use axum::http::StatusCode;
use axum::response::Response;
use model::Invalid;
use model::audit::AuditAction;
use store::Transaction;

use crate::Problem;
use crate::auth::require_admin;
use crate::idempotency::{IdempotentRequest, OptionalJson, Success};

/// A day.
const MAX_DRAIN_SECONDS: u32 = 24 * 60 * 60;

/// Stops this server.
///
/// With `drain_seconds`, running executions may finish for that time. Nothing else starts meanwhile, and `/health/ready`
/// responds with 503. Requires the scope `adjutant:admin`.
#[utoipa::path(
    post,
    path = "/api/stop",
    tag = "operation",
    request_body = Option<ServerStopRequest>,
    responses(
        (status = 200, description = "The server stops", body = ServerStopSummary),
        (status = 403, description = "The scope adjutant:admin is required"),
        (status = 409, description = "This process is no server"),
    )
)]
pub(super) async fn stop(request: IdempotentRequest<OptionalJson<ServerStopRequest>>) -> Result<Response, Problem> {
    require_admin(&request.user)?;
    let drain_seconds = request.body.0.drain_seconds;
    if drain_seconds.is_some_and(|seconds| seconds > MAX_DRAIN_SECONDS) {
        let message = format!("must be at most {MAX_DRAIN_SECONDS}");
        return Err(Invalid::one("drain_seconds", "range", message).into());
    }
    let app = request.app.clone();
    if !app.can_stop() {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "state",
            "this process is a command and no server; it ends by itself",
        ));
    }
    let record = request.audit_record(AuditAction::ServerStopped, "");
    let running = app.supervisor().running_count();
    let audited = async move |tx: &mut Transaction| {
        store::audit::record(tx, &record).await?;
        Ok(Success::Ok(ServerStopSummary { running }))
    };
    let response = request.run_transaction("stop_server", audited).await?;
    app.request_stop(drain_seconds.map(|seconds| Duration::from_secs(seconds.into())));
    Ok(response)
}
