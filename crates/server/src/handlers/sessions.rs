//! `/api/sessions`: conversations with one live process of an interactive agent.

use api::executions::{EndedExecution, Execution, ExecutionDraft};
use api::sessions::{ListSessions, Session, SessionDraft, Sessions};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use store::Transaction;
use supervisor::Origin;
use uuid::Uuid;

use super::executions::{draft, start, visible};
use super::{NoBody, page};
use crate::auth::Asking;
use crate::change::{Answer, Change, Json as Input, Nothing};
use crate::input::{self, Id, Params};
use crate::{App, Problem};

/// Opens a session in a free place of its agent.
#[utoipa::path(
    post,
    path = "/api/sessions",
    tag = "sessions",
    request_body = SessionDraft,
    responses(
        (status = 201, body = Session),
        (status = 404),
        (status = 429, description = "All places are taken"),
    )
)]
pub(super) async fn open(change: Change<Input<SessionDraft>>) -> Result<Response, Problem> {
    let supervisor = change.app.supervisor().clone();
    let new = supervisor.prepare_session(&change.user, &change.body.0.agent_id)?;
    let open = async move |tx: &mut Transaction| supervisor.open_session(tx, new).await.map(Answer::Created);
    change.carry_out("session", open).await
}

/// Sessions, newest first; those that have ended only with `ended=true`.
#[utoipa::path(
    get,
    path = "/api/sessions",
    tag = "sessions",
    params(ListSessions),
    responses((status = 200, body = Sessions))
)]
pub(super) async fn list(
    State(app): State<App>,
    Asking(user): Asking,
    Params(params): Params<ListSessions>,
) -> Result<Json<Sessions>, Problem> {
    let (limit, cursor) = input::page(&params)?;
    let ended = params.ended.unwrap_or(false);
    let mut reader = app.store().reader().await?;
    let found = store::sessions::list(&mut reader, visible(&user), ended, cursor.as_ref(), limit).await?;
    Ok(page(found, Sessions::new))
}

/// One session.
#[utoipa::path(
    get,
    path = "/api/sessions/{id}",
    tag = "sessions",
    params(("id" = Uuid, Path)),
    responses((status = 200, body = Session), (status = 404))
)]
pub(super) async fn get(
    State(app): State<App>,
    Asking(user): Asking,
    Id(id): Id<Uuid>,
) -> Result<Json<Session>, Problem> {
    let mut reader = app.store().reader().await?;
    let session = store::sessions::get(&mut reader, visible(&user), id).await;
    Ok(Json(session.map_err(Problem::from_store("session"))?))
}

/// Closes a session: its process is ended.
#[utoipa::path(
    delete,
    path = "/api/sessions/{id}",
    tag = "sessions",
    params(("id" = Uuid, Path)),
    responses(
        (status = 204, description = "It is closed, or closes as soon as its process has ended"),
        (status = 404),
        (status = 409, description = "It has ended already"),
    )
)]
pub(super) async fn close(Id(id): Id<Uuid>, change: Change<Nothing>) -> Result<Response, Problem> {
    let supervisor = change.app.supervisor().clone();
    let whose = visible(&change.user);
    let close = async move |tx: &mut Transaction| {
        supervisor.close_session(tx, whose, id).await?;
        Ok(Answer::<NoBody>::NoContent)
    };
    change.carry_out("session", close).await
}

/// Says something in a session and answers with what the agent says.
#[utoipa::path(
    post,
    path = "/api/sessions/{id}/messages",
    tag = "sessions",
    request_body = ExecutionDraft,
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "The exchange, with its `output`", body = EndedExecution),
        (status = 202, description = "With `wait: false`: the exchange has begun", body = Execution),
        (status = 404),
        (status = 409, description = "The session has ended"),
    )
)]
pub(super) async fn say(Id(id): Id<Uuid>, change: Change<Input<ExecutionDraft>>) -> Result<Response, Problem> {
    let (app, user, Input(body), key) = change.into_parts();
    let wait = body.wait.unwrap_or(true);
    let mut reader = app.store().reader().await?;
    let session = store::sessions::get(&mut reader, visible_to(user.id), id).await;
    let session = session.map_err(Problem::from_store("session"))?;
    drop(reader);
    if session.ended_at.is_some() {
        return Err(store::Error::Ended.into());
    }
    let origin = Origin { session_id: Some(id), ..Origin::default() };
    start(&app, &user, &session.agent_id, draft(body), origin, key, wait).await
}

/// Only its owner speaks in a session.
fn visible_to(owner: model::UserId) -> store::executions::Whose {
    store::executions::Whose::Users(owner)
}
