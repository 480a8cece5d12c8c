//! `/api/tasks`.

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use model::Invalid;
use model::invalid::Checks;
use model::task::{Draft, FilterDraft, Patch, Task};
use serde::{Deserialize, Serialize};
use store::recurring::Changed;
use store::undo::{Step, Undone};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{NoBody, next_cursor};
use crate::auth::Asking;
use crate::change::{Answer, Change, Json as Body, Nothing};
use crate::input::{Id, Query};
use crate::problem::Body as ProblemBody;
use crate::{App, Problem};

#[derive(Serialize, ToSchema)]
pub(super) struct Tasks {
    tasks: Vec<Task>,
    /// How many are on this page.
    count: usize,
    /// For the next page; null on the last.
    next_cursor: Option<String>,
}

/// The user's tasks, oldest first.
#[utoipa::path(
    get,
    path = "/api/tasks",
    tag = "tasks",
    params(
        ("status" = Option<String>, Query, description = "`pending` (default), `completed` or `all`"),
        ("priority" = Option<String>, Query, description = "`low`, `medium` or `high`"),
        ("due" = Option<String>, Query, description = "`today`, `tomorrow`, `this_week`, `overdue`, a date, or days such as `2026-01-01..2026-01-31`"),
        ("tag" = Option<String>, Query, description = "A tag, in any case"),
        ("q" = Option<String>, Query, description = "Text in title or description"),
        ("ref" = Option<String>, Query, description = "Beginning or end of an id, or part of a title"),
        ("limit" = Option<i64>, Query, description = "Tasks a page, 50 by default", minimum = 1, maximum = 200),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
    ),
    responses((status = 200, body = Tasks))
)]
pub(super) async fn list(
    State(app): State<App>,
    Asking(user): Asking,
    RawQuery(query): RawQuery,
) -> Result<Json<Tasks>, Problem> {
    let known = ["status", "priority", "due", "tag", "q", "ref", "limit", "cursor"];
    let query = Query::read(query.as_deref(), &known)?;
    let tags: Vec<_> = query.text("tag").map(str::to_owned).into_iter().collect();
    let draft = FilterDraft {
        status: query.text("status"),
        priority: query.text("priority"),
        due: query.text("due"),
        tags: &tags,
        q: query.text("q"),
        reference: query.text("ref"),
    };
    let filter = draft.check(app.clock().now(), &user).map_err(|mut invalid| {
        let tag = invalid.violations.iter_mut().find(|violation| violation.field == "tags[0]");
        tag.into_iter().for_each(|violation| violation.field = "tag".to_owned());
        invalid
    })?;
    let (limit, cursor) = query.page()?;
    let mut reader = app.store().reader().await?;
    let page = store::tasks::list(&mut reader, user.id, &filter, cursor.as_ref(), limit).await?;
    Ok(Json(Tasks { count: page.rows.len(), next_cursor: next_cursor(&page), tasks: page.rows }))
}

/// Adds a task.
#[utoipa::path(
    post,
    path = "/api/tasks",
    tag = "tasks",
    request_body = Draft,
    responses((status = 201, body = Task))
)]
pub(super) async fn create(change: Change<Body<Draft>>) -> Result<Response, Problem> {
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
    responses((status = 200, body = Task), (status = 404, body = ProblemBody, content_type = "application/problem+json"))
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
    request_body = Patch,
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = Changed),
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn update(Id(id): Id<Uuid>, change: Change<Body<Patch>>) -> Result<Response, Problem> {
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
        (status = 200, body = Changed),
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
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
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
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

/// Several tasks at once.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Several {
    #[schema(value_type = Vec<Uuid>, min_items = 1, max_items = 1000)]
    ids: Vec<String>,
}

impl Several {
    const MAX: usize = 1000;

    /// Each once, in the order given.
    fn check(self) -> Result<Vec<Uuid>, Invalid> {
        if self.ids.is_empty() || self.ids.len() > Self::MAX {
            let message = format!("must have 1 to {} entries, has {}", Self::MAX, self.ids.len());
            return Err(Invalid::one("ids", "items", message));
        }
        let mut checks = Checks::default();
        let mut ids = Vec::with_capacity(self.ids.len());
        for (at, text) in self.ids.iter().enumerate() {
            match Uuid::try_parse(text) {
                Ok(id) if ids.contains(&id) => {}
                Ok(id) => ids.push(id),
                Err(_) => checks.fail(format!("ids[{at}]"), "uuid", "must be a UUID"),
            }
        }
        checks.finish(Some(ids))
    }
}

/// Several tasks that are done, each with the one that follows it where it repeats.
#[derive(Serialize, ToSchema)]
pub(super) struct Completed {
    tasks: Vec<Changed>,
    count: usize,
    /// Always null: they are all here.
    next_cursor: Option<String>,
}

/// Marks several tasks as done: all or none, and one step to undo.
#[utoipa::path(
    post,
    path = "/api/tasks/complete",
    tag = "tasks",
    request_body = Several,
    responses((status = 200, body = Completed), (status = 404, body = ProblemBody, content_type = "application/problem+json"))
)]
pub(super) async fn complete_several(change: Change<Body<Several>>) -> Result<Response, Problem> {
    let ids = change.body.0.clone().check()?;
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
            Ok(Answer::Ok(Completed { count: tasks.len(), tasks, next_cursor: None }))
        })
        .await
}

/// Deletes several tasks: all or none, and one step to undo.
#[utoipa::path(
    post,
    path = "/api/tasks/delete",
    tag = "tasks",
    request_body = Several,
    responses(
        (status = 204, description = "They are gone"),
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn delete_several(change: Change<Body<Several>>) -> Result<Response, Problem> {
    let ids = change.body.0.clone().check()?;
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
        (status = 404, description = "There is nothing to undo", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn undo(change: Change<Nothing>) -> Result<Response, Problem> {
    let owner = change.user.id;
    change.carry_out("change to undo", async move |tx| store::undo::undo(tx, owner).await.map(Answer::Ok)).await
}
