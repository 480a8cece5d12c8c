//! `/api/tasks`.

use api::tasks::{ChangedTask, CompletedTasks, ListTasks, Task, TaskDraft, TaskIds, TaskPatch, Tasks, Undone};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use model::Invalid;
use model::invalid::Checks;
use model::task::FilterDraft;
use store::undo::Step;
use uuid::Uuid;

use super::{NoBody, page};
use crate::auth::Asking;
use crate::change::{Answer, Change, Json as Body, Nothing};
use crate::input::{self, Id, Params};
use crate::{App, Problem};

/// The user's tasks, oldest first.
#[utoipa::path(
    get,
    path = "/api/tasks",
    tag = "tasks",
    params(ListTasks),
    responses((status = 200, body = Tasks))
)]
pub(super) async fn list(
    State(app): State<App>,
    Asking(user): Asking,
    Params(params): Params<ListTasks>,
) -> Result<Json<Tasks>, Problem> {
    let (limit, cursor) = input::page(&params)?;
    let draft = FilterDraft {
        status: params.status.as_deref(),
        priority: params.priority.as_deref(),
        due: params.due.as_deref(),
        tags: params.tag.as_slice(),
        q: params.q.as_deref(),
        reference: params.reference.as_deref(),
    };
    let filter = draft.check(app.clock().now(), &user).map_err(|mut invalid| {
        let tag = invalid.violations.iter_mut().find(|violation| violation.field == "tags[0]");
        tag.into_iter().for_each(|violation| violation.field = "tag".to_owned());
        invalid
    })?;
    let mut reader = app.store().reader().await?;
    let found = store::tasks::list(&mut reader, user.id, &filter, cursor.as_ref(), limit).await?;
    Ok(page(found, Tasks::new))
}

/// Adds a task.
#[utoipa::path(
    post,
    path = "/api/tasks",
    tag = "tasks",
    request_body = TaskDraft,
    responses((status = 201, body = Task))
)]
pub(super) async fn create(change: Change<Body<TaskDraft>>) -> Result<Response, Problem> {
    let app = &change.app;
    let user = &change.user;
    let draft = change.body.0.clone();
    let task = draft.check(app.in_force().settings.tasks, app.clock(), user)?;
    let owner = user.id;
    change
        .carry_out("task", async move |tx| {
            let mut step = Step::begin(tx, owner).await?;
            store::tasks::create(tx, &mut step, &task).await?;
            Ok(Answer::Created(task))
        })
        .await
}

/// One task.
#[utoipa::path(
    get,
    path = "/api/tasks/{id}",
    tag = "tasks",
    params(("id" = Uuid, Path)),
    responses((status = 200, body = Task), (status = 404))
)]
pub(super) async fn get(State(app): State<App>, Asking(user): Asking, Id(id): Id<Uuid>) -> Result<Json<Task>, Problem> {
    let mut reader = app.store().reader().await?;
    let task = store::tasks::get(&mut reader, user.id, id).await.map_err(Problem::from_store("task"))?;
    Ok(Json(task))
}

/// Changes fields of a task; `null` empties one. Completing a recurring task adds the one that follows, `next_task`.
#[utoipa::path(
    patch,
    path = "/api/tasks/{id}",
    tag = "tasks",
    request_body = TaskPatch,
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = ChangedTask),
        (status = 404),
    )
)]
pub(super) async fn update(Id(id): Id<Uuid>, change: Change<Body<TaskPatch>>) -> Result<Response, Problem> {
    let patch = change.body.0.clone().check(change.app.in_force().settings.tasks, &change.user)?;
    apply(id, change, patch).await
}

/// Marks a task as done; once done it stays as it is. Where it repeats, the one that follows is added: `next_task`, which
/// is null after the last one.
#[utoipa::path(
    post,
    path = "/api/tasks/{id}/complete",
    tag = "tasks",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = ChangedTask),
        (status = 404),
    )
)]
pub(super) async fn complete(Id(id): Id<Uuid>, change: Change<Nothing>) -> Result<Response, Problem> {
    apply(id, change, model::task::Change::complete()).await
}

async fn apply<T>(id: Uuid, change: Change<T>, patch: model::task::Change) -> Result<Response, Problem> {
    let user = change.user.clone();
    let clock = change.app.clock().clone();
    change
        .carry_out("task", async move |tx| {
            let mut step = Step::begin(tx, user.id).await?;
            store::recurring::change(tx, &mut step, id, &patch, &clock, &user.time_zone).await.map(Answer::Ok)
        })
        .await
}

/// Deletes a task; it can be undone.
#[utoipa::path(
    delete,
    path = "/api/tasks/{id}",
    tag = "tasks",
    params(("id" = Uuid, Path)),
    responses(
        (status = 204, description = "It is gone"),
        (status = 404),
    )
)]
pub(super) async fn delete(Id(id): Id<Uuid>, change: Change<Nothing>) -> Result<Response, Problem> {
    let owner = change.user.id;
    change
        .carry_out("task", async move |tx| {
            let mut step = Step::begin(tx, owner).await?;
            store::tasks::delete(tx, &mut step, id).await?;
            Ok(Answer::<NoBody>::NoContent)
        })
        .await
}

/// The most tasks that one request may name.
const MAX_IDS: usize = 1000;

/// Returns each id once, in the order given.
fn ids(body: TaskIds) -> Result<Vec<Uuid>, Invalid> {
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

/// Marks several tasks as done: all or none, and one step to undo.
#[utoipa::path(
    post,
    path = "/api/tasks/complete",
    tag = "tasks",
    request_body = TaskIds,
    responses((status = 200, body = CompletedTasks), (status = 404))
)]
pub(super) async fn complete_several(change: Change<Body<TaskIds>>) -> Result<Response, Problem> {
    let ids = ids(change.body.0.clone())?;
    let user = change.user.clone();
    let clock = change.app.clock().clone();
    change
        .carry_out("task", async move |tx| {
            let mut step = Step::begin(tx, user.id).await?;
            let mut tasks = Vec::with_capacity(ids.len());
            let done = model::task::Change::complete();
            for id in ids {
                tasks.push(store::recurring::change(tx, &mut step, id, &done, &clock, &user.time_zone).await?);
            }
            Ok(Answer::Ok(CompletedTasks::new(tasks, None)))
        })
        .await
}

/// Deletes several tasks: all or none, and one step to undo.
#[utoipa::path(
    post,
    path = "/api/tasks/delete",
    tag = "tasks",
    request_body = TaskIds,
    responses(
        (status = 204, description = "They are gone"),
        (status = 404),
    )
)]
pub(super) async fn delete_several(change: Change<Body<TaskIds>>) -> Result<Response, Problem> {
    let ids = ids(change.body.0.clone())?;
    let owner = change.user.id;
    change
        .carry_out("task", async move |tx| {
            let mut step = Step::begin(tx, owner).await?;
            for id in ids {
                store::tasks::delete(tx, &mut step, id).await?;
            }
            Ok(Answer::<NoBody>::NoContent)
        })
        .await
}

/// Takes back the user's last change to tasks.
#[utoipa::path(
    post,
    path = "/api/tasks/undo",
    tag = "tasks",
    responses(
        (status = 200, body = Undone),
        (status = 404, description = "There is nothing to undo"),
    )
)]
pub(super) async fn undo(change: Change<Nothing>) -> Result<Response, Problem> {
    let owner = change.user.id;
    change.carry_out("change to undo", async move |tx| store::undo::undo(tx, owner).await.map(Answer::Ok)).await
}
