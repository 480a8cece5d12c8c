//! `/api/schedules`: agents that are run at certain times. Whoever has a schedule runs programs on this host, so making,
//! changing and running one is for administrators (OPS-6); others see their own, which they have left.

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use model::due::Due;
use model::execution::Execution;
use model::schedule::{Decision, Draft, Patch, Schedule, Source};
use model::{Invalid, User};
use scheduler::Explanation;
use serde::{Deserialize, Serialize};
use store::Transaction;
use store::schedules::Filter;
use utoipa::ToSchema;
use uuid::Uuid;

use super::executions::{Done, Executions, enqueue_once, visible};
use super::{NoBody, next_cursor};
use crate::auth::{Asking, require_admin};
use crate::change::{Answer, Change, Json as Input, Nothing, Perhaps};
use crate::input::{Id, Query};
use crate::problem::Body as ProblemBody;
use crate::{App, Problem};

/// Times that are shown where nobody says how many, and at most.
const TIMES: (usize, usize) = (5, 200);
const MAX_REASON: usize = 500;

#[derive(Serialize, ToSchema)]
pub(super) struct Schedules {
    schedules: Vec<Schedule>,
    /// How many are on this page.
    count: usize,
    /// For the next page; null on the last.
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Decisions {
    decisions: Vec<Decision>,
    count: usize,
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Times {
    times: Vec<Timestamp>,
    count: usize,
    /// There is one page only.
    next_cursor: Option<String>,
}

/// Schedules, oldest first: one's own, or everyone's for an administrator.
#[utoipa::path(
    get,
    path = "/api/schedules",
    tag = "schedules",
    params(
        ("agent_id" = Option<String>, Query),
        ("enabled" = Option<bool>, Query, description = "`false`: only those that are paused"),
        ("source" = Option<String>, Query, description = "`file` or `api`"),
        ("ref" = Option<String>, Query, description = "The name, or beginning or end of an id"),
        ("limit" = Option<i64>, Query, description = "Schedules a page, 50 by default", minimum = 1, maximum = 200),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
    ),
    responses((status = 200, body = Schedules))
)]
pub(super) async fn list(
    State(app): State<App>,
    Asking(user): Asking,
    RawQuery(query): RawQuery,
) -> Result<Json<Schedules>, Problem> {
    let query = Query::read(query.as_deref(), &["agent_id", "enabled", "source", "ref", "limit", "cursor"])?;
    let enabled = match query.text("enabled") {
        None => None,
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(_) => return Err(Invalid::one("enabled", "one_of", "must be true or false").into()),
    };
    let filter = Filter {
        agent_id: query.text("agent_id").map(str::to_owned),
        source: query.text("source").map(|word| Source::parse("source", word)).transpose()?,
        enabled,
        reference: query.text("ref").map(str::to_owned),
    };
    let (limit, cursor) = query.page()?;
    let mut reader = app.store().reader().await?;
    let now = app.clock().now();
    let page = store::schedules::list(&mut reader, visible(&user), &filter, cursor.as_ref(), limit, now).await?;
    Ok(Json(Schedules { count: page.rows.len(), next_cursor: next_cursor(&page), schedules: page.rows }))
}

/// Makes a schedule.
#[utoipa::path(
    post,
    path = "/api/schedules",
    tag = "schedules",
    request_body = Draft,
    responses(
        (status = 201, body = Schedule),
        (status = 403, body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "Its name is taken", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn create(change: Change<Input<Draft>>) -> Result<Response, Problem> {
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
    responses((status = 200, body = Schedule), (status = 404, body = ProblemBody, content_type = "application/problem+json"))
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
    request_body = Patch,
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = Schedule),
        (status = 403, body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "Its name is taken, or it is in the configuration file", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn update(Id(id): Id<Uuid>, change: Change<Input<Patch>>) -> Result<Response, Problem> {
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
        (status = 403, body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "It is in the configuration file", body = ProblemBody, content_type = "application/problem+json"),
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

/// Why a schedule is paused.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SchedulePause)]
pub(super) struct Pause {
    #[schema(max_length = 500, examples("the changelog is being rewritten"))]
    reason: Option<String>,
}

/// Pauses a schedule: none of its times is acted upon until it is resumed. What runs goes on.
#[utoipa::path(
    post,
    path = "/api/schedules/{id}/pause",
    tag = "schedules",
    request_body = Option<Pause>,
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = Schedule),
        (status = 403, body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn pause(Id(id): Id<Uuid>, change: Change<Perhaps<Pause>>) -> Result<Response, Problem> {
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
        (status = 403, body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "It has no more times", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn resume(Id(id): Id<Uuid>, change: Change<Nothing>) -> Result<Response, Problem> {
    require_admin(&change.user)?;
    let whose = visible(&change.user);
    let scheduler = change.app.scheduler().clone();
    let resume = async move |tx: &mut Transaction| scheduler.resume(tx, whose, id).await.map(Answer::Ok);
    change.carry_out_or(problem, resume).await
}

/// Whether to wait for a run.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ScheduleRun)]
pub(super) struct Run {
    /// Whether to answer when it has ended.
    #[serde(default)]
    wait: bool,
}

/// Runs a schedule at once, whatever else of it runs, also one that is paused. Its next time stays what it is.
#[utoipa::path(
    post,
    path = "/api/schedules/{id}/run",
    tag = "schedules",
    request_body = Option<Run>,
    params(("id" = Uuid, Path)),
    responses(
        (status = 202, description = "It waits for its place, or runs", body = Execution),
        (status = 200, description = "With `wait`: it has ended", body = Done),
        (status = 403, body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "The agent is disabled", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "The queue is full", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn run(Id(id): Id<Uuid>, change: Change<Perhaps<Run>>) -> Result<Response, Problem> {
    require_admin(&change.user)?;
    let (app, user, Perhaps(Run { wait }), key) = change.into_parts();
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
        ("limit" = Option<i64>, Query, description = "Executions a page, 50 by default", minimum = 1, maximum = 200),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
    ),
    responses((status = 200, body = Executions), (status = 404, body = ProblemBody, content_type = "application/problem+json"))
)]
pub(super) async fn executions(
    State(app): State<App>,
    Asking(user): Asking,
    Id(id): Id<Uuid>,
    RawQuery(query): RawQuery,
) -> Result<Json<Executions>, Problem> {
    let (limit, cursor) = Query::read(query.as_deref(), &["limit", "cursor"])?.page()?;
    find(&app, &user, id).await?;
    let mut reader = app.store().reader().await?;
    let filter = store::executions::Filter { schedule_id: Some(id), ..Default::default() };
    let page = store::executions::list(&mut reader, visible(&user), &filter, cursor.as_ref(), limit).await?;
    Ok(Json(Executions::from(page)))
}

/// What was decided about a schedule's times and why, the latest first.
#[utoipa::path(
    get,
    path = "/api/schedules/{id}/history",
    tag = "schedules",
    params(
        ("id" = Uuid, Path),
        ("limit" = Option<i64>, Query, description = "Decisions a page, 50 by default", minimum = 1, maximum = 200),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
    ),
    responses((status = 200, body = Decisions), (status = 404, body = ProblemBody, content_type = "application/problem+json"))
)]
pub(super) async fn history(
    State(app): State<App>,
    Asking(user): Asking,
    Id(id): Id<Uuid>,
    RawQuery(query): RawQuery,
) -> Result<Json<Decisions>, Problem> {
    let (limit, cursor) = Query::read(query.as_deref(), &["limit", "cursor"])?.page()?;
    let mut reader = app.store().reader().await?;
    let page = store::schedules::history(&mut reader, visible(&user), id, cursor.as_ref(), limit).await;
    let page = page.map_err(problem)?;
    Ok(Json(Decisions { count: page.rows.len(), next_cursor: next_cursor(&page), decisions: page.rows }))
}

/// The next times of a schedule; of one that is paused, as they would be.
#[utoipa::path(
    get,
    path = "/api/schedules/{id}/next",
    tag = "schedules",
    params(
        ("id" = Uuid, Path),
        ("limit" = Option<usize>, Query, description = "How many, 5 by default", minimum = 1, maximum = 200),
    ),
    responses((status = 200, body = Times), (status = 404, body = ProblemBody, content_type = "application/problem+json"))
)]
pub(super) async fn next(
    State(app): State<App>,
    Asking(user): Asking,
    Id(id): Id<Uuid>,
    RawQuery(query): RawQuery,
) -> Result<Json<Times>, Problem> {
    let query = Query::read(query.as_deref(), &["limit"])?;
    let limit = match query.text("limit").map(str::parse) {
        None => TIMES.0,
        Some(Ok(limit)) if (1..=TIMES.1).contains(&limit) => limit,
        Some(_) => {
            let message = format!("must be a number between 1 and {}", TIMES.1);
            return Err(Invalid::one("limit", "range", message).into());
        }
    };
    let schedule = find(&app, &user, id).await?;
    let times = app.scheduler().next(&schedule, limit)?;
    Ok(Json(Times { count: times.len(), times, next_cursor: None }))
}

/// Why a schedule did, or did not, run around a time, in words.
#[utoipa::path(
    get,
    path = "/api/schedules/{id}/explain",
    tag = "schedules",
    params(
        ("id" = Uuid, Path),
        ("at" = Option<String>, Query, description = "RFC 3339, or a date and time in the user's zone; now where it is not given"),
    ),
    responses((status = 200, body = Explanation), (status = 404, body = ProblemBody, content_type = "application/problem+json"))
)]
pub(super) async fn explain(
    State(app): State<App>,
    Asking(user): Asking,
    Id(id): Id<Uuid>,
    RawQuery(query): RawQuery,
) -> Result<Json<Explanation>, Problem> {
    let query = Query::read(query.as_deref(), &["at"])?;
    let at = match query.text("at") {
        None => app.clock().now(),
        Some(text) => Due::parse("at", text, &user.time_zone)?.moment().ok_or_else(|| {
            Invalid::one("at", "date_time", "must name a time of day, such as 2026-01-31T15:00:00+01:00")
        })?,
    };
    let mut reader = app.store().reader().await?;
    app.scheduler().explain(&mut reader, visible(&user), id, at).await.map(Json).map_err(problem)
}
