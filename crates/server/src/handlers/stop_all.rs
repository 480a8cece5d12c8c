//! `/api/stop-all` and `/api/resume-all`: stop all agents, schedules and queues on all nodes, and take that back
//! (SEC-6). Both require the scope `adjutant:admin`.
//!
//! A stop cancels the running executions, closes the sessions and holds everything else. New runs fail with 503. The
//! state is in the database: it survives a restart and holds on all nodes. The assistant itself continues. A second stop
//! keeps the time of the first one, and its reason unless it gives another. The response comes after the commit; the
//! processes end within their grace periods.

use api::stop_all::{ResumeSummary, StopRequest, StopState, StopSummary};
use axum::response::Response;
use model::audit::AuditAction;
use store::Transaction;
use store::stop_state::{self, AffectedWork};

use crate::Problem;
use crate::auth::require_admin;
use crate::idempotency::{EmptyBody, IdempotentRequest, OptionalJson, Success};

const MAX_REASON_CHARS: usize = 500;

/// Stops all agents, schedules and queues.
///
/// Running executions are cancelled. Nothing starts on any node until everything is resumed. Requires the scope
/// `adjutant:admin`.
#[utoipa::path(
    post,
    path = "/api/stop-all",
    tag = "operation",
    request_body = Option<StopRequest>,
    responses(
        (status = 200, description = "Everything is stopped", body = StopSummary),
        (status = 403, description = "The scope adjutant:admin is required"),
    )
)]
pub(super) async fn stop_all(request: IdempotentRequest<OptionalJson<StopRequest>>) -> Result<Response, Problem> {
    require_admin(&request.user)?;
    let reason = request.body.0.reason.clone();
    let reason = reason.map_or(Ok(None), |reason| model::text::optional("reason", &reason, MAX_REASON_CHARS))?;
    let app = request.app.clone();
    let by = request.user.id;
    let now = app.clock().now();
    let record = request.audit_record(AuditAction::StoppedAll, "");
    let stop = async move |tx: &mut Transaction| {
        let change = stop_state::stop(tx, by, reason.as_deref(), now).await?;
        if change.is_change() {
            let mut record = record.with_after(&change.after);
            if let Some(before) = &change.before {
                record = record.with_before(before);
            }
            store::audit::record(tx, &record).await?;
        }
        let AffectedWork { executions, sessions, queued, schedules } = stop_state::affected_work(tx).await?;
        Ok(Success::Ok(StopSummary { state: change.after, executions, sessions, queued, schedules }))
    };
    let response = request.run_transaction("stop", stop).await?;
    app.supervisor().refresh_stop_state().await?;
    Ok(response)
}

/// Resumes all agents, schedules and queues after a stop.
///
/// Queued executions start, and schedules follow their policy for missed occurrences. Requires the scope
/// `adjutant:admin`.
#[utoipa::path(
    post,
    path = "/api/resume-all",
    tag = "operation",
    responses(
        (status = 200, description = "Nothing is stopped", body = ResumeSummary),
        (status = 403, description = "The scope adjutant:admin is required"),
    )
)]
pub(super) async fn resume_all(request: IdempotentRequest<EmptyBody>) -> Result<Response, Problem> {
    require_admin(&request.user)?;
    let app = request.app.clone();
    let now = app.clock().now();
    let record = request.audit_record(AuditAction::ResumedAll, "");
    let resume = async move |tx: &mut Transaction| {
        let stop = stop_state::resume(tx, now).await?;
        if let Some(after) = &stop {
            let before = StopState { resumed_at: None, ..after.clone() };
            store::audit::record(tx, &record.with_before(&before).with_after(after)).await?;
        }
        let AffectedWork { queued, schedules, .. } = stop_state::affected_work(tx).await?;
        Ok(Success::Ok(ResumeSummary { stop, queued, schedules }))
    };
    let response = request.run_transaction("stop", resume).await?;
    app.supervisor().refresh_stop_state().await?;
    app.scheduler().wake();
    Ok(response)
}
