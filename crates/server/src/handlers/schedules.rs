//! `/api/schedules`: agents that are run at certain times. Whoever has a schedule runs programs on this host, so making,
//! changing and running one is for administrators (OPS-6); others see their own, which they have left.

use api::executions::{EndedExecution, Execution, Executions};
use api::schedules::{
    Decisions, ExplainAt, Explanation, ListDecisions, ListScheduleExecutions, ListSchedules, NextTimes, Schedule,
    ScheduleDraft, SchedulePatch, SchedulePause, ScheduleRun, Schedules, Source, Times,
};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use model::due::Due;
use model::{Invalid, User};
use store::Transaction;
use store::schedules::Filter;
use uuid::Uuid;

use super::executions::{enqueue_once, visible};
use super::{NoBody, page};
use crate::auth::{Asking, require_admin};
use crate::change::{Answer, Change, Json as Input, Nothing, Perhaps};
use crate::input::{self, Id, Params};
use crate::{App, Problem};

/// The number of times that are returned by default.
const DEFAULT_TIMES: i64 = 5;
const MAX_REASON: usize = 500;

/// Schedules, oldest first: one's own, or everyone's for an administrator.
#[utoipa::path(
    get,
    path = "/api/schedules",
    tag = "schedules",
    params(ListSchedules),
    responses((status = 200, body = Schedules))
)]
pub(super) async fn list(
    State(app): State<App>,
    Asking(user): Asking,
    Params(params): Params<ListSchedules>,
) -> Result<Json<Schedules>, Problem> {
    let (limit, cursor) = input::page(&params)?;
    let ListSchedules { agent_id, enabled, source, reference, .. } = params;
    let filter = Filter { agent_id, source, enabled, reference };
    let mut reader = app.store().reader().await?;
    let now = app.clock().now();
    let found = store::schedules::list(&mut reader, visible(&user), &filter, cursor.as_ref(), limit, now).await?;
    Ok(page(found, Schedules::new))
}

/// Makes a schedule.
#[utoipa::path(
    post,
    path = "/api/schedules",
    tag = "schedules",
    request_body = ScheduleDraft,
    responses(
        (status = 201, body = Schedule),
        (status = 403),
        (status = 409, description = "Its name is taken"),
    )
)]
pub(super) async fn create(change: Change<Input<ScheduleDraft>>) -> Result<Response, Problem> {
    require_admin(&change.user)?;
    let owner = change.user.id;
    let scheduler = change.app.scheduler().clone();
    let checked = scheduler.check(&change.user, change.body.0.clone())?;
    let create = async move |tx: &mut Transaction| scheduler.create(tx, owner, &checked).await.map(Answer::Created);
    change.carry_out("schedule", create).await
}

/// One schedule.
#[utoipa::path(
    get,
    path = "/api/schedules/{id}",
    tag = "schedules",
    params(("id" = Uuid, Path)),
    responses((status = 200, body = Schedule), (status = 404))
)]
pub(super) async fn get(
    State(app): State<App>,
    Asking(user): Asking,
    Id(id): Id<Uuid>,
) -> Result<Json<Schedule>, Problem> {
    find(&app, &user, id).await.map(Json)
}

async fn find(app: &App, user: &User, id: Uuid) -> Result<Schedule, Problem> {
    let mut reader = app.store().reader().await?;
    let now = app.clock().now();
    store::schedules::get(&mut reader, visible(user), id, now).await.map_err(problem)
}

/// What is said of a schedule that cannot be had or changed.
fn problem(error: store::Error) -> Problem {
    match error {
        store::Error::Ended => {
            let detail = "it has no more times: give it others, then it goes on";
            Problem::new(StatusCode::CONFLICT, "state", detail)
        }
        other => Problem::from_store("schedule")(other),
    }
}

/// Changes fields of a schedule, at once; `null` gives one back its default.
#[utoipa::path(
    patch,
    path = "/api/schedules/{id}",
    tag = "schedules",
    request_body = SchedulePatch,
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = Schedule),
        (status = 403),
        (status = 404),
        (status = 409, description = "Its name is taken, or it is in the configuration file"),
    )
)]
pub(super) async fn update(Id(id): Id<Uuid>, change: Change<Input<SchedulePatch>>) -> Result<Response, Problem> {
    require_admin(&change.user)?;
    let user = change.user.clone();
    let patch = change.body.0.clone();
    let scheduler = change.app.scheduler().clone();
    let now = change.app.clock().now();
    let update = async move |tx: &mut Transaction| -> Result<_, Problem> {
        let whose = visible(&user);
        // The patch is checked against the locked row, which no other request can change meanwhile.
        let kept = store::schedules::lock(tx, whose, id, now).await.map_err(problem)?;
        if kept.schedule.source == Source::File {
            return Err(problem(store::Error::Configured));
        }
        let checked = scheduler.check_change(&user, &kept.schedule, patch)?;
        scheduler.change(tx, whose, id, &checked).await.map(Answer::Ok).map_err(problem)
    };
    change.carry_out_or(|problem| problem, update).await
}

/// Removes a schedule with its history. What it ran stays on record.
#[utoipa::path(
    delete,
    path = "/api/schedules/{id}",
    tag = "schedules",
    params(("id" = Uuid, Path)),
    responses(
        (status = 204, description = "It is gone"),
        (status = 403),
        (status = 404),
        (status = 409, description = "It is in the configuration file"),
    )
)]
pub(super) async fn delete(Id(id): Id<Uuid>, change: Change<Nothing>) -> Result<Response, Problem> {
    require_admin(&change.user)?;
    let scheduler = change.app.scheduler().clone();
    let whose = visible(&change.user);
    let remove = async move |tx: &mut Transaction| {
        scheduler.remove(tx, whose, id).await?;
        Ok(Answer::<NoBody>::NoContent)
    };
    change.carry_out("schedule", remove).await
}

/// Pauses a schedule: none of its times is acted upon until it is resumed. What runs goes on.
#[utoipa::path(
    post,
    path = "/api/schedules/{id}/pause",
    tag = "schedules",
    request_body = Option<SchedulePause>,
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = Schedule),
        (status = 403),
        (status = 404),
    )
)]
pub(super) async fn pause(Id(id): Id<Uuid>, change: Change<Perhaps<SchedulePause>>) -> Result<Response, Problem> {
    require_admin(&change.user)?;
    let reason = change.body.0.reason.clone();
    let reason = reason.map_or(Ok(None), |reason| model::text::optional("reason", &reason, MAX_REASON))?;
    let scheduler = change.app.scheduler().clone();
    let whose = visible(&change.user);
    let pause =
        async move |tx: &mut Transaction| scheduler.pause(tx, whose, id, reason.as_deref()).await.map(Answer::Ok);
    change.carry_out("schedule", pause).await
}

/// Lets a schedule go on with its next time from now.
#[utoipa::path(
    post,
    path = "/api/schedules/{id}/resume",
    tag = "schedules",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = Schedule),
        (status = 403),
        (status = 404),
        (status = 409, description = "It has no more times"),
    )
)]
pub(super) async fn resume(Id(id): Id<Uuid>, change: Change<Nothing>) -> Result<Response, Problem> {
    require_admin(&change.user)?;
    let whose = visible(&change.user);
    let scheduler = change.app.scheduler().clone();
    let resume = async move |tx: &mut Transaction| scheduler.resume(tx, whose, id).await.map(Answer::Ok);
    change.carry_out_or(problem, resume).await
}

/// Runs a schedule at once, whatever else of it runs, also one that is paused. Its next time stays what it is.
#[utoipa::path(
    post,
    path = "/api/schedules/{id}/run",
    tag = "schedules",
    request_body = Option<ScheduleRun>,
    params(("id" = Uuid, Path)),
    responses(
        (status = 202, description = "It waits for its place, or runs", body = Execution),
        (status = 200, description = "With `wait`: it has ended", body = EndedExecution),
        (status = 403),
        (status = 404),
        (status = 409, description = "The agent is disabled"),
        (status = 429, description = "The queue is full"),
    )
)]
pub(super) async fn run(Id(id): Id<Uuid>, change: Change<Perhaps<ScheduleRun>>) -> Result<Response, Problem> {
    require_admin(&change.user)?;
    let (app, user, Perhaps(ScheduleRun { wait }), key) = change.into_parts();
    let whose = visible(&user);
    let now = app.clock().now();
    let mut reader = app.store().reader().await?;
    let kept = store::schedules::look(&mut reader, whose, id, now).await.map_err(problem)?;
    drop(reader);
    let scheduler = app.scheduler().clone();
    let submission = scheduler.prepare_run(&kept)?;
    let run = async move |tx: &mut Transaction| scheduler.run_now(tx, whose, id, submission).await;
    let queued = enqueue_once(&app, user.id, key, whose, run).await.map_err(problem)?;
    queued.respond(&app, wait).await
}

/// What a schedule has run, newest first.
#[utoipa::path(
    get,
    path = "/api/schedules/{id}/executions",
    tag = "schedules",
    params(
        ("id" = Uuid, Path),
        ListScheduleExecutions,
    ),
    responses((status = 200, body = Executions), (status = 404))
)]
pub(super) async fn executions(
    State(app): State<App>,
    Asking(user): Asking,
    Id(id): Id<Uuid>,
    Params(params): Params<ListScheduleExecutions>,
) -> Result<Json<Executions>, Problem> {
    let (limit, cursor) = input::page(&params)?;
    find(&app, &user, id).await?;
    let mut reader = app.store().reader().await?;
    let filter = store::executions::Filter { schedule_id: Some(id), ..Default::default() };
    let found = store::executions::list(&mut reader, visible(&user), &filter, cursor.as_ref(), limit).await?;
    Ok(page(found, Executions::new))
}

/// What was decided about a schedule's times and why, the latest first.
#[utoipa::path(
    get,
    path = "/api/schedules/{id}/history",
    tag = "schedules",
    params(
        ("id" = Uuid, Path),
        ListDecisions,
    ),
    responses((status = 200, body = Decisions), (status = 404))
)]
pub(super) async fn history(
    State(app): State<App>,
    Asking(user): Asking,
    Id(id): Id<Uuid>,
    Params(params): Params<ListDecisions>,
) -> Result<Json<Decisions>, Problem> {
    let (limit, cursor) = input::page(&params)?;
    let mut reader = app.store().reader().await?;
    let found = store::schedules::history(&mut reader, visible(&user), id, cursor.as_ref(), limit).await;
    Ok(page(found.map_err(problem)?, Decisions::new))
}

/// The next times of a schedule; of one that is paused, as they would be.
#[utoipa::path(
    get,
    path = "/api/schedules/{id}/next",
    tag = "schedules",
    params(
        ("id" = Uuid, Path),
        NextTimes,
    ),
    responses((status = 200, body = Times), (status = 404))
)]
pub(super) async fn next(
    State(app): State<App>,
    Asking(user): Asking,
    Id(id): Id<Uuid>,
    Params(params): Params<NextTimes>,
) -> Result<Json<Times>, Problem> {
    let limit = input::in_range(params.limit, DEFAULT_TIMES)?;
    let schedule = find(&app, &user, id).await?;
    let times = app.scheduler().next(&schedule, usize::try_from(limit).unwrap_or_default())?;
    Ok(Json(Times::new(times, None)))
}

/// Why a schedule did, or did not, run around a time, in words.
#[utoipa::path(
    get,
    path = "/api/schedules/{id}/explain",
    tag = "schedules",
    params(
        ("id" = Uuid, Path),
        ExplainAt,
    ),
    responses((status = 200, body = Explanation), (status = 404))
)]
pub(super) async fn explain(
    State(app): State<App>,
    Asking(user): Asking,
    Id(id): Id<Uuid>,
    Params(params): Params<ExplainAt>,
) -> Result<Json<Explanation>, Problem> {
    let at = match params.at.as_deref() {
        None => app.clock().now(),
        Some(text) => Due::parse("at", text, &user.time_zone)?.moment().ok_or_else(|| {
            Invalid::one("at", "date_time", "must name a time of day, such as 2026-01-31T15:00:00+01:00")
        })?,
    };
    let mut reader = app.store().reader().await?;
    app.scheduler().explain(&mut reader, visible(&user), id, at).await.map(Json).map_err(problem)
}
