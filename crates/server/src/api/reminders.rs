//! `/api/reminders`.

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use model::Invalid;
use model::reminder::{Draft, Reminder, Status};
use serde::Serialize;
use store::reminders::Filter;
use store::undo::Step;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{NoBody, next_cursor};
use crate::auth::Asking;
use crate::change::{Answer, Change, Json as Body, Nothing};
use crate::input::{Id, Query};
use crate::problem::Body as ProblemBody;
use crate::{App, Problem};

#[derive(Serialize, ToSchema)]
pub(super) struct Reminders {
    reminders: Vec<Reminder>,
    /// How many are on this page.
    count: usize,
    /// For the next page; null on the last.
    next_cursor: Option<String>,
}

/// The user's reminders, oldest first.
#[utoipa::path(
    get,
    path = "/api/reminders",
    tag = "reminders",
    params(
        ("status" = Option<String>, Query, description = "`scheduled` (default), `done`, `dropped` or `all`"),
        ("task_id" = Option<Uuid>, Query, description = "Those of one task"),
        ("limit" = Option<i64>, Query, description = "Reminders a page, 50 by default", minimum = 1, maximum = 200),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
    ),
    responses((status = 200, body = Reminders))
)]
pub(super) async fn list(
    State(app): State<App>,
    Asking(user): Asking,
    RawQuery(query): RawQuery,
) -> Result<Json<Reminders>, Problem> {
    let query = Query::read(query.as_deref(), &["status", "task_id", "limit", "cursor"])?;
    let status = match query.text("status") {
        None => Some(Status::Scheduled),
        Some("all") => None,
        Some(word) => Some(Status::parse("status", word)?),
    };
    let task_id = query.text("task_id").map(Uuid::try_parse).transpose();
    let task_id = task_id.map_err(|_| Invalid::one("task_id", "uuid", "must be a UUID"))?;
    let (limit, cursor) = query.page()?;
    let mut reader = app.store().reader().await?;
    let filter = Filter { status, task_id };
    let page = store::reminders::list(&mut reader, user.id, &filter, cursor.as_ref(), limit).await?;
    Ok(Json(Reminders { count: page.rows.len(), next_cursor: next_cursor(&page), reminders: page.rows }))
}

/// Sets a reminder for a task; it can be undone like a change of the task.
#[utoipa::path(
    post,
    path = "/api/reminders",
    tag = "reminders",
    request_body = Draft,
    responses(
        (status = 201, body = Reminder),
        (status = 404, description = "The user has no such task", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "The task is completed", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn create(change: Change<Body<Draft>>) -> Result<Response, Problem> {
    let app = &change.app;
    let user = &change.user;
    let draft = change.body.0.clone();
    let reminder = draft.check(app.clock(), user)?;
    let owner = user.id;
    let now = app.clock().now();
    change
        .carry_out("task", async move |tx| {
            let mut step = Step::begin(tx, owner).await?;
            store::reminders::create(tx, &mut step, &reminder, now).await?;
            Ok(Answer::Created(reminder))
        })
        .await
}

/// One reminder.
#[utoipa::path(
    get,
    path = "/api/reminders/{id}",
    tag = "reminders",
    params(("id" = Uuid, Path)),
    responses((status = 200, body = Reminder), (status = 404, body = ProblemBody, content_type = "application/problem+json"))
)]
pub(super) async fn get(
    State(app): State<App>,
    Asking(user): Asking,
    Id(id): Id<Uuid>,
) -> Result<Json<Reminder>, Problem> {
    let mut reader = app.store().reader().await?;
    let reminder = store::reminders::get(&mut reader, user.id, id).await;
    Ok(Json(reminder.map_err(Problem::from_store("reminder"))?))
}

/// Removes a reminder, for good.
#[utoipa::path(
    delete,
    path = "/api/reminders/{id}",
    tag = "reminders",
    params(("id" = Uuid, Path)),
    responses(
        (status = 204, description = "It is gone"),
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn delete(Id(id): Id<Uuid>, change: Change<Nothing>) -> Result<Response, Problem> {
    let owner = change.user.id;
    change
        .carry_out("reminder", async move |tx| {
            store::reminders::delete(tx, owner, id).await?;
            Ok(Answer::<NoBody>::NoContent)
        })
        .await
}
