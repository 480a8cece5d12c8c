//! `/api/reminders`: the reminders of the user. Without `status`, the list contains only scheduled ones, with `all` all
//! of them; an unknown status fails with 422. A reminder belongs to a task. Each change is an undo step. It fails with 404
//! if the reminder or the task does not exist, and with 409 if the task is completed.

use api::reminders::{ListReminders, Reminder, ReminderDraft, ReminderPatch, ReminderStatus, Reminders, SnoozeRequest};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use model::task::Task;
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
    let draft = app.field_reader(user).resolve(request.body.0.clone());
    let reminder = draft.check(app.clock(), user, app.active_config().settings.default_reminder_time)?;
    let owner = user.id;
    let now = app.clock().now();
    request
        .run_transaction("task", async move |tx| {
            let mut step = UndoStep::begin(tx, owner).await?;
            let (reminder, _) = store::reminders::create(tx, &mut step, &reminder, now).await?;
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

/// Changes a reminder and schedules it.
///
/// `null` clears a field. A new time or repetition starts a new count of notifications.
#[utoipa::path(
    patch,
    path = "/api/reminders/{id}",
    tag = "reminders",
    request_body = ReminderPatch,
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "The changed reminder", body = Reminder),
        (status = 404, description = "The user has no reminder with this id"),
        (status = 409, description = "The task is completed"),
    )
)]
pub(super) async fn update(
    IdParam(id): IdParam<Uuid>,
    request: IdempotentRequest<JsonBody<ReminderPatch>>,
) -> Result<Response, Problem> {
    let patch = request.app.field_reader(&request.user).resolve(request.body.0.clone());
    let user = request.user.clone();
    let clock = request.app.clock().clone();
    request
        .run_transaction("reminder", async move |tx| {
            let default_time = tx.reminder_time();
            let mut step = UndoStep::begin(tx, user.id).await?;
            let apply =
                |reminder: &Reminder, task: &Task| patch.apply(reminder, task.due_date, &clock, &user, default_time);
            let (reminder, _) = store::reminders::change(tx, &mut step, id, apply).await?;
            Ok(Success::Ok(reminder))
        })
        .await
}

/// Moves the next notification of a reminder.
///
/// A reminder that has ended is sent once more.
#[utoipa::path(
    post,
    path = "/api/reminders/{id}/snooze",
    tag = "reminders",
    request_body = SnoozeRequest,
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "The changed reminder", body = Reminder),
        (status = 404, description = "The user has no reminder with this id"),
        (status = 409, description = "The task is completed"),
    )
)]
pub(super) async fn snooze(
    IdParam(id): IdParam<Uuid>,
    request: IdempotentRequest<JsonBody<SnoozeRequest>>,
) -> Result<Response, Problem> {
    let app = &request.app;
    let default_time = app.active_config().settings.default_reminder_time;
    let snooze = app.field_reader(&request.user).resolve(request.body.0.clone());
    let until = snooze.check(app.clock(), &request.user, default_time)?;
    let owner = request.user.id;
    request
        .run_transaction("reminder", async move |tx| {
            let mut step = UndoStep::begin(tx, owner).await?;
            let (reminder, _) = store::reminders::snooze(tx, &mut step, id, until).await?;
            Ok(Success::Ok(reminder))
        })
        .await
}

/// Deletes a reminder.
///
/// This can be undone.
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
            let mut step = UndoStep::begin(tx, owner).await?;
            store::reminders::delete(tx, &mut step, id).await?;
            Ok(Success::<NoBody>::NoContent)
        })
        .await
}
