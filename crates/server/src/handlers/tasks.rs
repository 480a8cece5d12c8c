//! `/api/tasks`: the tasks of the user. Tasks of other users are not found.
//!
//! Each change is one transaction and one undo step. Several tasks are changed all or none. Completing a recurring task
//! adds the next one. Invalid filters and bodies fail with 422.

use api::tasks::{
    ChangedTask, CompletedTasks, CreatedTask, ListTasks, Task, TaskDraft, TaskIds, TaskPatch, Tasks, UndoneChange,
};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use model::Invalid;
use model::invalid::Checks;
use model::task::{TaskChange, TaskFilterDraft};
use store::undo::UndoStep;
use uuid::Uuid;

use super::{NoBody, page};
use crate::auth::CurrentUser;
use crate::idempotency::{EmptyBody, IdempotentRequest, JsonBody, Success};
use crate::input::{self, IdParam, QueryParams};
use crate::{App, Problem};

/// Lists the tasks of the user, oldest first unless `sort` is given.
#[utoipa::path(
    get,
    path = "/api/tasks",
    tag = "tasks",
    params(ListTasks),
    responses((status = 200, description = "A page of tasks", body = Tasks))
)]
pub(super) async fn list(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    QueryParams(mut params): QueryParams<ListTasks>,
) -> Result<Json<Tasks>, Problem> {
    let (limit, cursor) = input::page_params(&params)?;
    app.field_reader(&user).resolve_period(&mut params.due);
    let draft = TaskFilterDraft {
        status: params.status.as_deref(),
        priority: params.priority.as_deref(),
        due: params.due.as_deref(),
        tags: params.tag.as_slice(),
        q: params.q.as_deref(),
        reference: params.reference.as_deref(),
        sort: params.sort.as_deref(),
    };
    let filter = draft.check(app.clock().now(), &user).map_err(|mut invalid| {
        let tag = invalid.violations.iter_mut().find(|violation| violation.field == "tags[0]");
        tag.into_iter().for_each(|violation| violation.field = "tag".to_owned());
        invalid
    })?;
    let mut reader = app.store().owner_reader(user.id).await?;
    let found = store::tasks::list(&mut reader, user.id, &filter, cursor.as_ref(), limit).await?;
    Ok(page(found, Tasks::new))
}

/// Adds a task.
///
/// With `remind_at` or `remind_before_minutes` also adds a reminder. Both are one undo step.
#[utoipa::path(
    post,
    path = "/api/tasks",
    tag = "tasks",
    request_body = TaskDraft,
    responses((status = 201, description = "The new task", body = CreatedTask))
)]
pub(super) async fn create(request: IdempotentRequest<JsonBody<TaskDraft>>) -> Result<Response, Problem> {
    let app = &request.app;
    let user = &request.user;
    let draft = app.field_reader(user).resolve(request.body.0.clone());
    let config = app.active_config();
    let reminder_time = config.settings.default_reminder_time;
    let (task, reminder) = draft.check_with_reminder(config.settings.tasks, app.clock(), user, reminder_time)?;
    let owner = user.id;
    let zone = user.time_zone.clone();
    request
        .run_transaction("task", async move |tx| {
            let mut step = UndoStep::begin(tx, owner).await?;
            store::tasks::create_with_reminder(tx, &mut step, &task, reminder.as_ref(), &zone).await?;
            Ok(Success::Created(CreatedTask { task, reminder }))
        })
        .await
}

/// Returns a task.
#[utoipa::path(
    get,
    path = "/api/tasks/{id}",
    tag = "tasks",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "The task", body = Task),
        (status = 404, description = "The user has no task with this id"),
    )
)]
pub(super) async fn get(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    IdParam(id): IdParam<Uuid>,
) -> Result<Json<Task>, Problem> {
    let mut reader = app.store().owner_reader(user.id).await?;
    let task = store::tasks::get(&mut reader, user.id, id).await.map_err(Problem::from_store("task"))?;
    Ok(Json(task))
}

/// Changes fields of a task.
///
/// `null` clears a field. Completing a recurring task adds the next one, `next_task`.
#[utoipa::path(
    patch,
    path = "/api/tasks/{id}",
    tag = "tasks",
    request_body = TaskPatch,
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "The changed task", body = ChangedTask),
        (status = 404, description = "The user has no task with this id"),
    )
)]
pub(super) async fn update(
    IdParam(id): IdParam<Uuid>,
    request: IdempotentRequest<JsonBody<TaskPatch>>,
) -> Result<Response, Problem> {
    let patch = request.app.field_reader(&request.user).resolve(request.body.0.clone());
    let patch = patch.check(request.app.active_config().settings.tasks, &request.user)?;
    apply(id, request, patch).await
}

/// Completes a task.
///
/// A completed task is not changed. Completing a recurring task adds the next one, `next_task`. It is null after the
/// last occurrence.
#[utoipa::path(
    post,
    path = "/api/tasks/{id}/complete",
    tag = "tasks",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "The changed task", body = ChangedTask),
        (status = 404, description = "The user has no task with this id"),
    )
)]
pub(super) async fn complete(
    IdParam(id): IdParam<Uuid>,
    request: IdempotentRequest<EmptyBody>,
) -> Result<Response, Problem> {
    apply(id, request, TaskChange::complete()).await
}

/// Changes a task as one undo step and responds with the changed task. If the change completes a recurring task, the
/// next one is added. Fails with 404 if the user has no such task, or if the database fails.
async fn apply<T>(id: Uuid, request: IdempotentRequest<T>, patch: TaskChange) -> Result<Response, Problem> {
    let user = request.user.clone();
    let clock = request.app.clock().clone();
    request
        .run_transaction("task", async move |tx| {
            let mut step = UndoStep::begin(tx, user.id).await?;
            store::recurring::change(tx, &mut step, id, &patch, &clock, &user.time_zone).await.map(Success::Ok)
        })
        .await
}

/// Deletes a task.
///
/// This can be undone.
#[utoipa::path(
    delete,
    path = "/api/tasks/{id}",
    tag = "tasks",
    params(("id" = Uuid, Path)),
    responses(
        (status = 204, description = "The task was deleted"),
        (status = 404, description = "The user has no task with this id"),
    )
)]
pub(super) async fn delete(
    IdParam(id): IdParam<Uuid>,
    request: IdempotentRequest<EmptyBody>,
) -> Result<Response, Problem> {
    let owner = request.user.id;
    request
        .run_transaction("task", async move |tx| {
            let mut step = UndoStep::begin(tx, owner).await?;
            store::tasks::delete(tx, &mut step, id).await?;
            Ok(Success::<NoBody>::NoContent)
        })
        .await
}

/// The most ids in one request.
const MAX_IDS: usize = 1000;

/// Returns the ids without duplicates, in their order. Fails if there are none or more than 1,000; duplicates count for
/// this limit. Also fails with one violation for each that is not a UUID.
fn parse_ids(body: TaskIds) -> Result<Vec<Uuid>, Invalid> {
    if body.ids.is_empty() || body.ids.len() > MAX_IDS {
        let message = format!("must have 1 to {MAX_IDS} entries, has {}", body.ids.len());
        return Err(Invalid::one("ids", "items", message));
    }
    let mut checks = Checks::default();
    let mut ids = Vec::with_capacity(body.ids.len());
    for (at, text) in body.ids.iter().enumerate() {
        match Uuid::try_parse(text) {
            Ok(id) if ids.contains(&id) => {}
            Ok(id) => ids.push(id),
            Err(_) => checks.fail(format!("ids[{at}]"), "uuid", "must be a UUID"),
        }
    }
    checks.finish(Some(ids))
}

/// Completes several tasks: all or none.
///
/// It is one undo step.
#[utoipa::path(
    post,
    path = "/api/tasks/complete",
    tag = "tasks",
    request_body = TaskIds,
    responses(
        (status = 200, description = "The completed tasks", body = CompletedTasks),
        (status = 404, description = "The user does not have one of the tasks; nothing was changed"),
    )
)]
pub(super) async fn complete_several(request: IdempotentRequest<JsonBody<TaskIds>>) -> Result<Response, Problem> {
    let ids = parse_ids(request.body.0.clone())?;
    let user = request.user.clone();
    let clock = request.app.clock().clone();
    request
        .run_transaction("task", async move |tx| {
            let mut step = UndoStep::begin(tx, user.id).await?;
            let mut tasks = Vec::with_capacity(ids.len());
            let completed = TaskChange::complete();
            for id in ids {
                tasks.push(store::recurring::change(tx, &mut step, id, &completed, &clock, &user.time_zone).await?);
            }
            Ok(Success::Ok(CompletedTasks::new(tasks, None)))
        })
        .await
}

/// Deletes several tasks: all or none.
///
/// It is one undo step.
#[utoipa::path(
    post,
    path = "/api/tasks/delete",
    tag = "tasks",
    request_body = TaskIds,
    responses(
        (status = 204, description = "The tasks were deleted"),
        (status = 404, description = "The user does not have one of the tasks; nothing was deleted"),
    )
)]
pub(super) async fn delete_several(request: IdempotentRequest<JsonBody<TaskIds>>) -> Result<Response, Problem> {
    let ids = parse_ids(request.body.0.clone())?;
    let owner = request.user.id;
    request
        .run_transaction("task", async move |tx| {
            let mut step = UndoStep::begin(tx, owner).await?;
            for id in ids {
                store::tasks::delete(tx, &mut step, id).await?;
            }
            Ok(Success::<NoBody>::NoContent)
        })
        .await
}

/// Undoes the last change of the user to tasks.
#[utoipa::path(
    post,
    path = "/api/tasks/undo",
    tag = "tasks",
    responses(
        (status = 200, description = "The undone change", body = UndoneChange),
        (status = 404, description = "The user has no change to undo"),
    )
)]
pub(super) async fn undo(request: IdempotentRequest<EmptyBody>) -> Result<Response, Problem> {
    let owner = request.user.id;
    request.run_transaction("change to undo", async move |tx| store::undo::undo(tx, owner).await.map(Success::Ok)).await
}
