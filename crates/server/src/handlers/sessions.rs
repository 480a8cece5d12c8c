//! `/api/sessions`: running agent processes that answer several messages. Administrators may list, read and close the
//! sessions of all users, but only the owner may send messages. A message waits for the end of its execution unless
//! `wait` is false. Sending and closing fail with 409 if the session has ended. Closing only requests the end of the
//! process.

use api::executions::{EndedExecution, Execution, ExecutionDraft};
use api::sessions::{ListSessions, Session, SessionDraft, Sessions};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use store::Transaction;
use store::executions::OwnerScope;
use supervisor::RunOrigin;
use uuid::Uuid;

use super::executions::{run_draft, start, visible_scope};
use super::{NoBody, page};
use crate::auth::CurrentUser;
use crate::idempotency::{EmptyBody, IdempotentRequest, JsonBody, Success};
use crate::input::{self, IdParam, QueryParams};
use crate::{App, Problem};

/// Opens a session.
///
/// It occupies a slot of its agent until it ends.
#[utoipa::path(
    post,
    path = "/api/sessions",
    tag = "sessions",
    request_body = SessionDraft,
    responses(
        (status = 201, description = "The new session", body = Session),
        (status = 404, description = "The user may run no agent with this id"),
        (status = 429, description = "The agent has no free slot; try again later"),
        (status = 503, description = "An administrator has stopped everything, or the database is not available"),
    )
)]
pub(super) async fn open(request: IdempotentRequest<JsonBody<SessionDraft>>) -> Result<Response, Problem> {
    let supervisor = request.app.supervisor().clone();
    let new = supervisor.prepare_session(&request.user, &request.body.0.agent_id)?;
    let open = async move |tx: &mut Transaction| supervisor.open_session(tx, new).await.map(Success::Created);
    request.run_transaction("session", open).await
}

/// Lists sessions, newest first.
///
/// Ended sessions are listed only with `ended=true`. An administrator sees the sessions of all users.
#[utoipa::path(
    get,
    path = "/api/sessions",
    tag = "sessions",
    params(ListSessions),
    responses((status = 200, description = "A page of sessions", body = Sessions))
)]
pub(super) async fn list(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    QueryParams(params): QueryParams<ListSessions>,
) -> Result<Json<Sessions>, Problem> {
    let (limit, cursor) = input::page_params(&params)?;
    let ended = params.ended.unwrap_or(false);
    let mut reader = app.store().owner_reader(user.id).await?;
    let found = store::sessions::list(&mut reader, visible_scope(&user), ended, cursor.as_ref(), limit).await?;
    Ok(page(found, Sessions::new))
}

/// Returns a session.
#[utoipa::path(
    get,
    path = "/api/sessions/{id}",
    tag = "sessions",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "The session", body = Session),
        (status = 404, description = "The user has no session with this id"),
    )
)]
pub(super) async fn get(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    IdParam(id): IdParam<Uuid>,
) -> Result<Json<Session>, Problem> {
    let mut reader = app.store().owner_reader(user.id).await?;
    let session = store::sessions::get(&mut reader, visible_scope(&user), id).await;
    Ok(Json(session.map_err(Problem::from_store("session"))?))
}

/// Closes a session and ends its process.
#[utoipa::path(
    delete,
    path = "/api/sessions/{id}",
    tag = "sessions",
    params(("id" = Uuid, Path)),
    responses(
        (status = 204, description = "The session is closed, or will be when its process has ended"),
        (status = 404, description = "The user has no session with this id"),
        (status = 409, description = "The session has already ended"),
    )
)]
pub(super) async fn close(
    IdParam(id): IdParam<Uuid>,
    request: IdempotentRequest<EmptyBody>,
) -> Result<Response, Problem> {
    let supervisor = request.app.supervisor().clone();
    let scope = visible_scope(&request.user);
    let close = async move |tx: &mut Transaction| {
        supervisor.close_session(tx, scope, id).await?;
        Ok(Success::<NoBody>::NoContent)
    };
    request.run_transaction("session", close).await
}

/// Sends a message to a session and returns the answer of the agent.
#[utoipa::path(
    post,
    operation_id = "say",
    path = "/api/sessions/{id}/messages",
    tag = "sessions",
    request_body = ExecutionDraft,
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "The ended execution, with its `output`", body = EndedExecution),
        (status = 202, description = "With `wait: false`: the execution was enqueued", body = Execution),
        (status = 404, description = "The user has no session with this id"),
        (status = 409, description = "The session has ended"),
    )
)]
pub(super) async fn send_message(
    IdParam(id): IdParam<Uuid>,
    request: IdempotentRequest<JsonBody<ExecutionDraft>>,
) -> Result<Response, Problem> {
    let (caller, JsonBody(body)) = request.into_caller();
    let wait = body.wait.unwrap_or(true);
    let mut reader = caller.app.store().owner_reader(caller.user.id).await?;
    // Only the owner may send messages, not an administrator.
    let session = store::sessions::get(&mut reader, OwnerScope::User(caller.user.id), id).await;
    let session = session.map_err(Problem::from_store("session"))?;
    drop(reader);
    if session.ended_at.is_some() {
        return Err(store::Error::AlreadyEnded.into());
    }
    let origin = RunOrigin { session_id: Some(id), ..RunOrigin::default() };
    start(caller, &session.agent_id, run_draft(body), origin, wait).await
}
