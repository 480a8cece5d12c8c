//! `/api/sessions`: conversations with one live process of an interactive agent.

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use model::Invalid;
use model::session::Session;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::Transaction;
use supervisor::{Draft, Origin};
use utoipa::ToSchema;
use uuid::Uuid;

use super::executions::{start, visible};
use super::{NoBody, next_cursor};
use crate::auth::Asking;
use crate::change::{Answer, Change, Json as Input, Nothing};
use crate::input::{Id, Query};
use crate::problem::Body as ProblemBody;
use crate::{App, Problem};

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SessionDraft)]
pub(super) struct Open {
    agent_id: String,
}

/// What is said in a session.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[schema(as = SessionMessage)]
pub(super) struct Say {
    #[serde(flatten)]
    #[schema(inline)]
    draft: Map<String, Value>,
    /// Whether to answer when the agent has; otherwise at once.
    #[serde(default = "yes")]
    wait: bool,
}

fn yes() -> bool {
    true
}

#[derive(Serialize, ToSchema)]
pub(super) struct Sessions {
    sessions: Vec<Session>,
    /// How many are on this page.
    count: usize,
    /// For the next page; null on the last.
    next_cursor: Option<String>,
}

/// Opens a session in a free place of its agent.
#[utoipa::path(
    post,
    path = "/api/sessions",
    tag = "sessions",
    request_body = Open,
    responses(
        (status = 201, body = Session),
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "All places are taken", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn open(change: Change<Input<Open>>) -> Result<Response, Problem> {
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
    params(
        ("ended" = Option<bool>, Query, description = "Whether to list those that have ended too"),
        ("limit" = Option<i64>, Query, description = "Sessions a page, 50 by default", minimum = 1, maximum = 200),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
    ),
    responses((status = 200, body = Sessions))
)]
pub(super) async fn list(
    State(app): State<App>,
    Asking(user): Asking,
    RawQuery(query): RawQuery,
) -> Result<Json<Sessions>, Problem> {
    let query = Query::read(query.as_deref(), &["ended", "limit", "cursor"])?;
    let ended = match query.text("ended") {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(Invalid::one("ended", "one_of", "must be true or false").into()),
    };
    let (limit, cursor) = query.page()?;
    let mut reader = app.store().reader().await?;
    let page = store::sessions::list(&mut reader, visible(&user), ended, cursor.as_ref(), limit).await?;
    Ok(Json(Sessions { count: page.rows.len(), next_cursor: next_cursor(&page), sessions: page.rows }))
}

/// One session.
#[utoipa::path(
    get,
    path = "/api/sessions/{id}",
    tag = "sessions",
    params(("id" = Uuid, Path)),
    responses((status = 200, body = Session), (status = 404, body = ProblemBody, content_type = "application/problem+json"))
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
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "It has ended already", body = ProblemBody, content_type = "application/problem+json"),
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
    request_body = Draft,
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "The exchange, with its `output`", body = super::executions::Done),
        (status = 202, description = "With `wait: false`: the exchange has begun", body = model::execution::Execution),
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "The session has ended", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn say(Id(id): Id<Uuid>, change: Change<Input<Say>>) -> Result<Response, Problem> {
    let (app, user, Input(say), key) = change.into_parts();
    let mut reader = app.store().reader().await?;
    let session = store::sessions::get(&mut reader, visible_to(user.id), id).await;
    let session = session.map_err(Problem::from_store("session"))?;
    drop(reader);
    if session.ended_at.is_some() {
        return Err(store::Error::Ended.into());
    }
    let draft: Draft = model::json::from_value(Value::Object(say.draft))?;
    let origin = Origin { session_id: Some(id), ..Origin::default() };
    start(&app, &user, &session.agent_id, draft, origin, key, say.wait).await
}

/// Only its owner speaks in a session.
fn visible_to(owner: model::UserId) -> store::executions::Whose {
    store::executions::Whose::Users(owner)
}
