//! `/api/reminders`: the reminders of the user. Without `status`, the list contains only scheduled ones, with `all` all
//! of them; an unknown status fails with 422. A reminder belongs to a task and is created as an undo step. Creating one
//! fails with 404 if the task does not exist, and with 409 if it is completed. Deleting cannot be undone.

use api::reminders::{ListReminders, Reminder, ReminderDraft, ReminderStatus, Reminders};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use store::reminders::ReminderFilter;
use store::undo::UndoStep;
use uuid::Uuid;

use super::{NoBody, page};
use crate::auth::CurrentUser;
use crate::idempotency::{EmptyBody, IdempotentRequest, JsonBody, Success};
use crate::input::{self, IdParam, QueryParams};
use crate::{App, Problem};

/// Lists the reminders of the user, oldest first.
///
/// Without `status` only scheduled ones.
#[utoipa::path(
    get,
    path = "/api/reminders",
    tag = "reminders",
    params(ListReminders),
    responses((status = 200, description = "A page of reminders", body = Reminders))
)]
pub(super) async fn list(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    QueryParams(params): QueryParams<ListReminders>,
) -> Result<Json<Reminders>, Problem> {
    let (limit, cursor) = input::page_params(&params)?;
    let status = match params.status.as_deref() {
        None => Some(ReminderStatus::Scheduled),
        Some("all") => None,
        Some(word) => Some(ReminderStatus::parse("status", word)?),
    };
    let mut reader = app.store().owner_reader(user.id).await?;
    let filter = ReminderFilter { status, task_id: params.task_id };
    let found = store::reminders::list(&mut reader, user.id, &filter, cursor.as_ref(), limit).await?;
    Ok(page(found, Reminders::new))
}

/// Adds a reminder to a task.
///
/// It can be undone like a change to the task.
#[utoipa::path(
    post,
    path = "/api/reminders",
    tag = "reminders",
    request_body = ReminderDraft,
    responses(
        (status = 201, description = "The new reminder", body = Reminder),
        (status = 404, description = "The user has no task with this id"),
        (status = 409, description = "The task is completed"),
    )
)]
pub(super) async fn create(request: IdempotentRequest<JsonBody<ReminderDraft>>) -> Result<Response, Problem> {
    let app = &request.app;
    let user = &request.user;
    let draft = request.body.0.clone();
    let reminder = draft.check(app.clock(), user)?;
    let owner = user.id;
    let now = app.clock().now();
    request
        .run_transaction("task", async move |tx| {
            let mut step = UndoStep::begin(tx, owner).await?;
            store::reminders::create(tx, &mut step, &reminder, now).await?;
            Ok(Success::Created(reminder))
        })
        .await
}

/// Returns a reminder.
#[utoipa::path(
    get,
    path = "/api/reminders/{id}",
    tag = "reminders",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "The reminder", body = Reminder),
        (status = 404, description = "The user has no reminder with this id"),
    )
)]
pub(super) async fn get(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    IdParam(id): IdParam<Uuid>,
) -> Result<Json<Reminder>, Problem> {
    let mut reader = app.store().owner_reader(user.id).await?;
    let reminder = store::reminders::get(&mut reader, user.id, id).await;
    Ok(Json(reminder.map_err(Problem::from_store("reminder"))?))
}

/// Deletes a reminder.
///
/// This cannot be undone.
#[utoipa::path(
    delete,
    path = "/api/reminders/{id}",
    tag = "reminders",
    params(("id" = Uuid, Path)),
    responses(
        (status = 204, description = "The reminder was deleted"),
        (status = 404, description = "The user has no reminder with this id"),
    )
)]
pub(super) async fn delete(
    IdParam(id): IdParam<Uuid>,
    request: IdempotentRequest<EmptyBody>,
) -> Result<Response, Problem> {
    let owner = request.user.id;
    request
        .run_transaction("reminder", async move |tx| {
            store::reminders::delete(tx, owner, id).await?;
            Ok(Success::<NoBody>::NoContent)
        })
        .await
}
