//! `/api/reminders`.

use api::reminders::{ListReminders, Reminder, ReminderDraft, Reminders, Status};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use store::reminders::Filter;
use store::undo::Step;
use uuid::Uuid;

use super::{NoBody, page};
use crate::auth::Asking;
use crate::change::{Answer, Change, Json as Body, Nothing};
use crate::input::{self, Id, Params};
use crate::{App, Problem};

/// The user's reminders, oldest first.
#[utoipa::path(
    get,
    path = "/api/reminders",
    tag = "reminders",
    params(ListReminders),
    responses((status = 200, body = Reminders))
)]
pub(super) async fn list(
    State(app): State<App>,
    Asking(user): Asking,
    Params(params): Params<ListReminders>,
) -> Result<Json<Reminders>, Problem> {
    let (limit, cursor) = input::page(&params)?;
    let status = match params.status.as_deref() {
        None => Some(Status::Scheduled),
        Some("all") => None,
        Some(word) => Some(Status::parse("status", word)?),
    };
    let mut reader = app.store().reader().await?;
    let filter = Filter { status, task_id: params.task_id };
    let found = store::reminders::list(&mut reader, user.id, &filter, cursor.as_ref(), limit).await?;
    Ok(page(found, Reminders::new))
}

/// Sets a reminder for a task; it can be undone like a change of the task.
#[utoipa::path(
    post,
    path = "/api/reminders",
    tag = "reminders",
    request_body = ReminderDraft,
    responses(
        (status = 201, body = Reminder),
        (status = 404, description = "The user has no such task"),
        (status = 409, description = "The task is completed"),
    )
)]
pub(super) async fn create(change: Change<Body<ReminderDraft>>) -> Result<Response, Problem> {
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
    responses((status = 200, body = Reminder), (status = 404))
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
        (status = 404),
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
