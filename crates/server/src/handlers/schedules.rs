//! `/api/schedules`: rules that run agents at certain times. A schedule runs programs on this host, so only
//! administrators may create, change and run one (OPS-6). Users can still read the schedules that they own, and
//! administrators those of all users.
//!
//! - `update` and `delete` fail with 409 if the schedule is defined in the configuration file. A patch is checked
//!   against the locked row.
//! - `pause` accepts a reason of at most 500 characters; a blank one counts as missing. `resume` fails with 409 if
//!   there are no future occurrences.
//! - `run` starts an execution at once, at most once for an idempotency key, and waits for its end with `wait`.
//! - `explain` needs a time of day in `at`. The default is the current time.

use api::executions::{EndedExecution, Execution, Executions};
use api::schedules::{
    Decisions, ExplainParams, ListDecisions, ListScheduleExecutions, ListSchedules, NextTimesParams, Schedule,
    ScheduleDraft, ScheduleExplanation, SchedulePatch, SchedulePause, ScheduleRun, ScheduleSource, Schedules, Times,
};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use jiff::tz::TimeZone;
use model::audit::AuditAction;
use model::due::DueDate;
use model::{Invalid, User};
use scheduler::ScheduleChange;
use store::Transaction;
use store::executions::ExecutionFilter;
use store::schedules::ScheduleFilter;
use uuid::Uuid;

use super::executions::{enqueue_once, visible_scope};
use super::{NoBody, page};
use crate::auth::{CurrentUser, require_admin};
use crate::idempotency::{EmptyBody, IdempotentRequest, JsonBody, OptionalJson, Success};
use crate::input::{self, IdParam, QueryParams};
use crate::{App, Problem};

/// The default number of occurrences in `next`.
const DEFAULT_TIMES_LIMIT: i64 = 5;
const MAX_REASON_CHARS: usize = 500;

/// Lists the schedules of the user, oldest first.
///
/// An administrator sees the schedules of all users.
#[utoipa::path(
    get,
    path = "/api/schedules",
    tag = "schedules",
    params(ListSchedules),
    responses((status = 200, description = "A page of schedules", body = Schedules))
)]
pub(super) async fn list(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    QueryParams(params): QueryParams<ListSchedules>,
) -> Result<Json<Schedules>, Problem> {
    let (limit, cursor) = input::page_params(&params)?;
    let ListSchedules { agent_id, enabled, source, reference, .. } = params;
    let filter = ScheduleFilter { agent_id, source, enabled, reference };
    let mut reader = app.store().owner_reader(user.id).await?;
    let now = app.clock().now();
    let found = store::schedules::list(&mut reader, visible_scope(&user), &filter, cursor.as_ref(), limit, now).await?;
    Ok(page(found, Schedules::new))
}

/// Adds a schedule.
///
/// Requires the scope `adjutant:admin`.
#[utoipa::path(
    post,
    path = "/api/schedules",
    tag = "schedules",
    request_body = ScheduleDraft,
    responses(
        (status = 201, description = "The new schedule", body = Schedule),
        (status = 403, description = "The scope adjutant:admin is required"),
        (status = 409, description = "A schedule with this name exists"),
    )
)]
pub(super) async fn create(request: IdempotentRequest<JsonBody<ScheduleDraft>>) -> Result<Response, Problem> {
    require_admin(&request.user)?;
    let owner = request.user.id;
    let scheduler = request.app.scheduler().clone();
    let draft = request.app.field_reader(&request.user).resolve(request.body.0.clone());
    let checked = scheduler.check(&request.user, draft)?;
    let actor = request.actor.clone();
    let create = async move |tx: &mut Transaction| {
        let schedule = scheduler.create(tx, owner, &checked).await?;
        let change = ScheduleChange { before: None, after: Some(&schedule) };
        scheduler.audit(tx, actor, AuditAction::ScheduleCreated, change).await?;
        Ok(Success::Created(schedule))
    };
    request.run_transaction("schedule", create).await
}

/// Returns a schedule.
#[utoipa::path(
    get,
    path = "/api/schedules/{id}",
    tag = "schedules",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "The schedule", body = Schedule),
        (status = 404, description = "The user has no schedule with this id"),
    )
)]
pub(super) async fn get(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    IdParam(id): IdParam<Uuid>,
) -> Result<Json<Schedule>, Problem> {
    find(&app, &user, id).await.map(Json)
}

/// Returns a schedule that the user may see. Fails with 404 if there is none with this id.
async fn find(app: &App, user: &User, id: Uuid) -> Result<Schedule, Problem> {
    let mut reader = app.store().owner_reader(user.id).await?;
    let now = app.clock().now();
    store::schedules::get(&mut reader, visible_scope(user), id, now).await.map_err(schedule_problem)
}

/// Converts an error of the store in an operation on a schedule. `AlreadyEnded` means that there are no future
/// occurrences and becomes 409 with that text. Other errors are converted by [`Problem::from_store`].
fn schedule_problem(error: store::Error) -> Problem {
    match error {
        store::Error::AlreadyEnded => {
            let detail = "the schedule has no future occurrences; change its cron expression, interval or end date before \
                          resuming it";
            Problem::new(StatusCode::CONFLICT, "state", detail)
        }
        other => Problem::from_store("schedule")(other),
    }
}

/// Changes fields of a schedule.
///
/// The change applies at once. `null` resets a field to its default. Requires the scope `adjutant:admin`.
#[utoipa::path(
    patch,
    path = "/api/schedules/{id}",
    tag = "schedules",
    request_body = SchedulePatch,
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "The changed schedule", body = Schedule),
        (status = 403, description = "The scope adjutant:admin is required"),
        (status = 404, description = "The user has no schedule with this id"),
        (status = 409, description = "A schedule with this name exists, or it is defined in the configuration file"),
    )
)]
pub(super) async fn update(
    IdParam(id): IdParam<Uuid>,
    request: IdempotentRequest<JsonBody<SchedulePatch>>,
) -> Result<Response, Problem> {
    require_admin(&request.user)?;
    let user = request.user.clone();
    let patch = request.body.0.clone();
    let reader = request.app.field_reader(&request.user);
    let scheduler = request.app.scheduler().clone();
    let now = request.app.clock().now();
    let actor = request.actor.clone();
    let update = async move |tx: &mut Transaction| -> Result<_, Problem> {
        let scope = visible_scope(&user);
        // The patch is checked against the locked row, so that no concurrent request can change it.
        let row = store::schedules::lock_row(tx, scope, id, now).await.map_err(schedule_problem)?;
        if row.schedule.source == ScheduleSource::File {
            return Err(schedule_problem(store::Error::DefinedInConfig));
        }
        // Words without a time zone are in that of the schedule.
        let zone = TimeZone::get(&row.schedule.settings.time_zone).unwrap_or(TimeZone::UTC);
        let patch = reader.in_zone(zone).resolve(patch);
        let checked = scheduler.check_change(&user, &row.schedule, patch)?;
        let changed = scheduler.change(tx, scope, id, &checked).await.map_err(schedule_problem)?;
        let change = ScheduleChange { before: Some(&row.schedule), after: Some(&changed) };
        scheduler.audit(tx, actor, AuditAction::ScheduleUpdated, change).await?;
        Ok(Success::Ok(changed))
    };
    request.run_transaction_or(|problem| problem, update).await
}

/// Deletes a schedule with its history.
///
/// Its executions stay on record. Requires the scope `adjutant:admin`.
#[utoipa::path(
    delete,
    path = "/api/schedules/{id}",
    tag = "schedules",
    params(("id" = Uuid, Path)),
    responses(
        (status = 204, description = "The schedule was deleted"),
        (status = 403, description = "The scope adjutant:admin is required"),
        (status = 404, description = "The user has no schedule with this id"),
        (status = 409, description = "The schedule is defined in the configuration file"),
    )
)]
pub(super) async fn delete(
    IdParam(id): IdParam<Uuid>,
    request: IdempotentRequest<EmptyBody>,
) -> Result<Response, Problem> {
    require_admin(&request.user)?;
    let scheduler = request.app.scheduler().clone();
    let scope = visible_scope(&request.user);
    let actor = request.actor.clone();
    let remove = async move |tx: &mut Transaction| {
        let before = scheduler.remove(tx, scope, id).await?;
        let change = ScheduleChange { before: Some(&before), after: None };
        scheduler.audit(tx, actor, AuditAction::ScheduleRemoved, change).await?;
        Ok(Success::<NoBody>::NoContent)
    };
    request.run_transaction("schedule", remove).await
}

/// Pauses a schedule.
///
/// It starts nothing until it is resumed. Running executions continue. Requires the scope `adjutant:admin`.
#[utoipa::path(
    post,
    path = "/api/schedules/{id}/pause",
    tag = "schedules",
    request_body = Option<SchedulePause>,
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "The paused schedule", body = Schedule),
        (status = 403, description = "The scope adjutant:admin is required"),
        (status = 404, description = "The user has no schedule with this id"),
    )
)]
pub(super) async fn pause(
    IdParam(id): IdParam<Uuid>,
    request: IdempotentRequest<OptionalJson<SchedulePause>>,
) -> Result<Response, Problem> {
    require_admin(&request.user)?;
    let reason = request.body.0.reason.clone();
    let reason = reason.map_or(Ok(None), |reason| model::text::optional("reason", &reason, MAX_REASON_CHARS))?;
    let scheduler = request.app.scheduler().clone();
    let scope = visible_scope(&request.user);
    let actor = request.actor.clone();
    let now = request.app.clock().now();
    let pause = async move |tx: &mut Transaction| {
        let before = store::schedules::lock_row(tx, scope, id, now).await?.schedule;
        let paused = scheduler.pause(tx, scope, id, reason.as_deref()).await?;
        let change = ScheduleChange { before: Some(&before), after: Some(&paused) };
        scheduler.audit(tx, actor, AuditAction::SchedulePaused, change).await?;
        Ok(Success::Ok(paused))
    };
    request.run_transaction("schedule", pause).await
}

/// Resumes a schedule with its next occurrence from now.
///
/// Requires the scope `adjutant:admin`.
#[utoipa::path(
    post,
    path = "/api/schedules/{id}/resume",
    tag = "schedules",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "The resumed schedule", body = Schedule),
        (status = 403, description = "The scope adjutant:admin is required"),
        (status = 404, description = "The user has no schedule with this id"),
        (status = 409, description = "The schedule has no future occurrences"),
    )
)]
pub(super) async fn resume(
    IdParam(id): IdParam<Uuid>,
    request: IdempotentRequest<EmptyBody>,
) -> Result<Response, Problem> {
    require_admin(&request.user)?;
    let scope = visible_scope(&request.user);
    let scheduler = request.app.scheduler().clone();
    let actor = request.actor.clone();
    let now = request.app.clock().now();
    let resume = async move |tx: &mut Transaction| {
        let before = store::schedules::lock_row(tx, scope, id, now).await?.schedule;
        let resumed = scheduler.resume(tx, scope, id).await?;
        let change = ScheduleChange { before: Some(&before), after: Some(&resumed) };
        scheduler.audit(tx, actor, AuditAction::ScheduleResumed, change).await?;
        Ok(Success::Ok(resumed))
    };
    request.run_transaction_or(schedule_problem, resume).await
}

/// Runs a schedule now, even if it is paused or already running.
///
/// Its next occurrence does not change. Requires the scope `adjutant:admin`.
#[utoipa::path(
    post,
    path = "/api/schedules/{id}/run",
    tag = "schedules",
    request_body = Option<ScheduleRun>,
    params(("id" = Uuid, Path)),
    responses(
        (status = 202, description = "The execution is queued or running", body = Execution),
        (status = 200, description = "With `wait`: the ended execution", body = EndedExecution),
        (status = 403, description = "The scope adjutant:admin is required"),
        (status = 404, description = "The user has no schedule with this id"),
        (status = 409, description = "The agent is disabled"),
        (status = 429, description = "The queue is full; try again later"),
        (status = 503, description = "An administrator has stopped everything, or the database is not available"),
    )
)]
pub(super) async fn run(
    IdParam(id): IdParam<Uuid>,
    request: IdempotentRequest<OptionalJson<ScheduleRun>>,
) -> Result<Response, Problem> {
    require_admin(&request.user)?;
    let (app, user, OptionalJson(ScheduleRun { wait }), key) = request.into_parts();
    let scope = visible_scope(&user);
    let now = app.clock().now();
    let mut reader = app.store().owner_reader(user.id).await?;
    let row = store::schedules::get_row(&mut reader, scope, id, now).await.map_err(schedule_problem)?;
    drop(reader);
    let scheduler = app.scheduler().clone();
    let submission = scheduler.prepare_run(&row)?;
    let run = async move |tx: &mut Transaction| scheduler.run_now(tx, scope, id, submission).await;
    let enqueued = enqueue_once(&app, user.id, key, scope, run).await.map_err(schedule_problem)?;
    enqueued.respond(&app, wait).await
}

/// Lists the executions of a schedule, newest first.
#[utoipa::path(
    get,
    path = "/api/schedules/{id}/executions",
    tag = "schedules",
    params(
        ("id" = Uuid, Path),
        ListScheduleExecutions,
    ),
    responses(
        (status = 200, description = "A page of executions", body = Executions),
        (status = 404, description = "The user has no schedule with this id"),
    )
)]
pub(super) async fn executions(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    IdParam(id): IdParam<Uuid>,
    QueryParams(params): QueryParams<ListScheduleExecutions>,
) -> Result<Json<Executions>, Problem> {
    let (limit, cursor) = input::page_params(&params)?;
    find(&app, &user, id).await?;
    let mut reader = app.store().owner_reader(user.id).await?;
    let filter = ExecutionFilter { schedule_id: Some(id), ..Default::default() };
    let found = store::executions::list(&mut reader, visible_scope(&user), &filter, cursor.as_ref(), limit).await?;
    Ok(page(found, Executions::new))
}

/// Lists the decisions about the occurrences of a schedule with their reasons, newest first.
#[utoipa::path(
    get,
    path = "/api/schedules/{id}/history",
    tag = "schedules",
    params(
        ("id" = Uuid, Path),
        ListDecisions,
    ),
    responses(
        (status = 200, description = "A page of decisions", body = Decisions),
        (status = 404, description = "The user has no schedule with this id"),
    )
)]
pub(super) async fn history(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    IdParam(id): IdParam<Uuid>,
    QueryParams(params): QueryParams<ListDecisions>,
) -> Result<Json<Decisions>, Problem> {
    let (limit, cursor) = input::page_params(&params)?;
    let mut reader = app.store().owner_reader(user.id).await?;
    let found = store::schedules::history(&mut reader, visible_scope(&user), id, cursor.as_ref(), limit).await;
    Ok(page(found.map_err(schedule_problem)?, Decisions::new))
}

/// Returns the next occurrences of a schedule.
///
/// For a paused schedule they are the ones it would have.
#[utoipa::path(
    get,
    path = "/api/schedules/{id}/next",
    tag = "schedules",
    params(
        ("id" = Uuid, Path),
        NextTimesParams,
    ),
    responses(
        (status = 200, description = "The occurrences", body = Times),
        (status = 404, description = "The user has no schedule with this id"),
    )
)]
pub(super) async fn next(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    IdParam(id): IdParam<Uuid>,
    QueryParams(params): QueryParams<NextTimesParams>,
) -> Result<Json<Times>, Problem> {
    let limit = input::check_limit(params.limit, DEFAULT_TIMES_LIMIT)?;
    let schedule = find(&app, &user, id).await?;
    let times = app.scheduler().upcoming(&schedule, usize::try_from(limit).unwrap_or_default())?;
    Ok(Json(Times::new(times, None)))
}

/// Explains why a schedule did or did not run around a time.
#[utoipa::path(
    get,
    path = "/api/schedules/{id}/explain",
    tag = "schedules",
    params(
        ("id" = Uuid, Path),
        ExplainParams,
    ),
    responses(
        (status = 200, description = "The explanation", body = ScheduleExplanation),
        (status = 404, description = "The user has no schedule with this id"),
    )
)]
pub(super) async fn explain(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    IdParam(id): IdParam<Uuid>,
    QueryParams(mut params): QueryParams<ExplainParams>,
) -> Result<Json<ScheduleExplanation>, Problem> {
    app.field_reader(&user).resolve_time(&mut params.at);
    let at = match params.at.as_deref() {
        None => app.clock().now(),
        Some(text) => DueDate::parse("at", text, &user.time_zone)?.timestamp().ok_or_else(|| {
            Invalid::one("at", "date_time", "must include a time of day, for example 2026-01-31T15:00:00+01:00")
        })?,
    };
    let mut reader = app.store().owner_reader(user.id).await?;
    app.scheduler().explain(&mut reader, visible_scope(&user), id, at).await.map(Json).map_err(schedule_problem)
}
