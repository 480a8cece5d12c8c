//! `/api/executions`: what agents were asked to do, what came of it, and what is happening.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use futures::future::BoxFuture;
use model::execution::{Execution, ExecutionResult, State as Life, Status};
use model::{Invalid, User, UserId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::Conn;
use store::executions::{Filter, Kind, New, Whose};
use store::idempotency::{Key, Reply, once};
use store::page::Page;
use supervisor::{Draft, Follower, Origin, Taken, Told};
use tokio_util::io::ReaderStream;
use utoipa::ToSchema;
use uuid::Uuid;

use super::next_cursor;
use crate::auth::Asking;
use crate::change::{Answer, Change, Json as Input, Nothing, respond};
use crate::chat::sse;
use crate::input::{Id, Query};
use crate::problem::Body as ProblemBody;
use crate::{App, Problem};

/// How often a quiet stream shows that it is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What to ask an agent for.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub(super) struct Ask {
    #[serde(flatten)]
    #[schema(inline)]
    draft: Map<String, Value>,
    /// Whether to answer when it has ended.
    #[serde(default)]
    wait: bool,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Executions {
    executions: Vec<Execution>,
    /// How many are on this page.
    count: usize,
    /// For the next page; null on the last.
    next_cursor: Option<String>,
}

impl From<Page<Execution>> for Executions {
    fn from(page: Page<Execution>) -> Self {
        Self { count: page.rows.len(), next_cursor: next_cursor(&page), executions: page.rows }
    }
}

/// An execution that was waited for, with its answer.
#[derive(Serialize, ToSchema)]
pub(super) struct Done {
    #[serde(flatten)]
    execution: Execution,
    status: Status,
    output: String,
}

/// Runs an agent.
#[utoipa::path(
    post,
    path = "/api/agents/{id}/executions",
    tag = "executions",
    request_body = Draft,
    params(("id" = String, Path)),
    responses(
        (status = 202, description = "It waits for its place, or runs", body = Execution),
        (status = 200, description = "With `wait`: it has ended", body = Done),
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "The agent is disabled", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "The queue is full", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn submit(Id(agent): Id<String>, change: Change<Input<Ask>>) -> Result<Response, Problem> {
    let (app, user, Input(ask), key) = change.into_parts();
    let draft: Draft = model::json::from_value(Value::Object(ask.draft))?;
    start(&app, &user, &agent, draft, Origin::default(), key, ask.wait).await
}

/// Puts a run into the queue, once for its key, and waits for its end if that is wanted.
pub(super) async fn start(
    app: &App,
    user: &User,
    agent: &str,
    draft: Draft,
    origin: Origin,
    key: Option<Key>,
    wait: bool,
) -> Result<Response, Problem> {
    let new = app.supervisor().prepare(user, agent, draft, origin)?;
    let whose = wait.then_some(Whose::Users(user.id));
    let problem = Problem::from_store("execution");
    put(app, (user.id, key), new, |conn, new| Box::pin(store::executions::submit(conn, new)), problem, whose).await
}

/// Has `submit` put an execution into the queue, once for the key of whoever asks, and waits for its end if it is said
/// whose that must be.
pub(super) async fn put<F>(
    app: &App,
    (asking, key): (UserId, Option<Key>),
    new: New,
    submit: F,
    problem: impl Fn(store::Error) -> Problem,
    wait: Option<Whose>,
) -> Result<Response, Problem>
where
    F: for<'c> FnOnce(&'c mut Conn, &'c New) -> BoxFuture<'c, store::Result<()>> + Send + 'static,
{
    let now = app.clock().now();
    let (session, agent) = (new.execution.session_id, new.execution.agent_id.clone());
    let spooled = new.spool.is_some().then(|| new.clone());
    let (supervisor, taken) = (app.supervisor().clone(), Arc::new(Mutex::new(Taken::default())));
    let (store, worker, at_once) = (app.store().clone(), supervisor.clone(), taken.clone());
    let putting = async move {
        let written = store.write(move |conn| {
            Box::pin(async move {
                once(conn, asking, key.as_ref(), now, |conn| {
                    Box::pin(async move {
                        submit(conn, &new).await?;
                        let execution = store::executions::get(conn, Whose::Users(new.owner), new.execution.id).await?;
                        let body = serde_json::to_string(&execution);
                        let body = body.map_err(|error| store::Error::Corrupt(error.to_string()))?;
                        if session.is_none() {
                            let taken = worker.take(conn, &new.execution.agent_id).await?;
                            *at_once.lock().unwrap_or_else(PoisonError::into_inner) = taken;
                        }
                        Ok(Reply { status: StatusCode::ACCEPTED.as_u16(), body })
                    })
                })
                .await
            })
        });
        let written = written.await;
        if let Some(new) = spooled.filter(|_| !matches!(written, Ok((_, false)))) {
            supervisor.forget(&new);
        }
        if written.is_ok() {
            let taken = std::mem::take(&mut *taken.lock().unwrap_or_else(PoisonError::into_inner));
            match session {
                Some(session) => supervisor.wake_session(session),
                None if taken.is_empty() => supervisor.wake(&agent),
                None => supervisor.begin_all(taken),
            }
        }
        written
    };
    // Whoever asked may go away meanwhile: what was taken is begun all the same.
    let put = app.tasks().spawn(putting).await.map_err(|error| Problem::internal(error.to_string()))?;
    let (reply, earlier) = put.map_err(problem)?;
    let Some(whose) = wait else { return Ok(respond(reply, earlier)) };
    let id = serde_json::from_str::<Value>(&reply.body).ok().and_then(|body| body["id"].as_str()?.parse().ok());
    done(app, whose, id.ok_or_else(|| Problem::internal("an execution without an id"))?).await
}

/// The end of an execution, however long that takes.
async fn done(app: &App, whose: Whose, id: Uuid) -> Result<Response, Problem> {
    let execution = app.supervisor().wait(whose, id).await.map_err(Problem::from_store("execution"))?;
    let result = result_of(app, whose, id).await?;
    Ok(Json(Done { execution, status: result.status, output: result.output }).into_response())
}

/// Executions, newest first: one's own, or everyone's for an administrator. Of a long `input` the first 1,000 characters
/// are shown, with `…` behind them, and likewise of what is long in `context`; one execution alone has all of it.
#[utoipa::path(
    get,
    path = "/api/executions",
    tag = "executions",
    params(
        ("agent_id" = Option<String>, Query),
        ("schedule_id" = Option<Uuid>, Query),
        ("session_id" = Option<Uuid>, Query),
        ("state" = Option<String>, Query, description = "A state, or `active`: waiting or at work"),
        ("ref" = Option<String>, Query, description = "Beginning or end of an id"),
        ("limit" = Option<i64>, Query, description = "Executions a page, 50 by default", minimum = 1, maximum = 200),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
    ),
    responses((status = 200, body = Executions))
)]
pub(super) async fn list(
    State(app): State<App>,
    Asking(user): Asking,
    RawQuery(query): RawQuery,
) -> Result<Json<Executions>, Problem> {
    let known = ["agent_id", "schedule_id", "session_id", "state", "ref", "limit", "cursor"];
    let query = Query::read(query.as_deref(), &known)?;
    let uuid = |name: &'static str| match query.text(name).map(Uuid::try_parse) {
        Some(Err(_)) => Err(Invalid::one(name, "uuid", "must be a UUID")),
        Some(Ok(id)) => Ok(Some(id)),
        None => Ok(None),
    };
    let states = match query.text("state") {
        None => Vec::new(),
        Some("active") => vec![Life::Idle, Life::Starting, Life::Running],
        Some(state) => vec![Life::parse("state", state)?],
    };
    let filter = Filter {
        agent_id: query.text("agent_id").map(str::to_owned),
        schedule_id: uuid("schedule_id")?,
        session_id: uuid("session_id")?,
        states,
        reference: query.text("ref").map(str::to_owned),
    };
    let (limit, cursor) = query.page()?;
    let mut reader = app.store().reader().await?;
    let page = store::executions::list(&mut reader, visible(&user), &filter, cursor.as_ref(), limit).await?;
    Ok(Json(Executions::from(page)))
}

/// One execution.
#[utoipa::path(
    get,
    path = "/api/executions/{id}",
    tag = "executions",
    params(("id" = Uuid, Path)),
    responses((status = 200, body = Execution), (status = 404, body = ProblemBody, content_type = "application/problem+json"))
)]
pub(super) async fn get(
    State(app): State<App>,
    Asking(user): Asking,
    Id(id): Id<Uuid>,
) -> Result<Json<Execution>, Problem> {
    let mut reader = app.store().reader().await?;
    let execution = store::executions::get(&mut reader, visible(&user), id).await;
    Ok(Json(execution.map_err(Problem::from_store("execution"))?))
}

/// What came of an execution that has ended.
#[utoipa::path(
    get,
    path = "/api/executions/{id}/result",
    tag = "executions",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = ExecutionResult),
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "It has not ended yet", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn result(
    State(app): State<App>,
    Asking(user): Asking,
    Id(id): Id<Uuid>,
) -> Result<Json<ExecutionResult>, Problem> {
    result_of(&app, visible(&user), id).await.map(Json)
}

async fn result_of(app: &App, whose: Whose, id: Uuid) -> Result<ExecutionResult, Problem> {
    let mut reader = app.store().reader().await?;
    store::executions::result(&mut reader, whose, id).await.map_err(Problem::from_store("execution"))
}

/// Asks an execution to stop.
#[utoipa::path(
    post,
    path = "/api/executions/{id}/cancel",
    tag = "executions",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "It ends now, or soon", body = Execution),
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "It has ended already", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn cancel(Id(id): Id<Uuid>, change: Change<Nothing>) -> Result<Response, Problem> {
    let (app, whose, now) = (change.app.clone(), visible(&change.user), change.app.clock().now());
    let answer = change
        .carry_out("execution", move |conn| {
            Box::pin(async move { store::executions::cancel(conn, whose, id, now).await.map(Answer::Ok) })
        })
        .await?;
    let mut reader = app.store().reader().await?;
    if let Ok(execution) = store::executions::get(&mut reader, whose, id).await {
        app.supervisor().wake_cancelled(&execution);
    }
    Ok(answer)
}

/// Asks the same of the same agent again, as a new execution.
#[utoipa::path(
    post,
    path = "/api/executions/{id}/retry",
    tag = "executions",
    params(("id" = Uuid, Path)),
    responses(
        (status = 202, description = "The new execution", body = Execution),
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "It has not ended yet, or had secrets that were not kept", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn retry(Id(id): Id<Uuid>, change: Change<Nothing>) -> Result<Response, Problem> {
    let (app, user, Nothing, key) = change.into_parts();
    let mut reader = app.store().reader().await?;
    let stored = store::executions::again(&mut reader, visible(&user), id).await;
    let stored = stored.map_err(Problem::from_store("execution"))?;
    drop(reader);
    let Some(request) = stored.request else {
        let detail = "what it was asked for had secrets in it, which are not kept: send it anew";
        return Err(Problem::new(StatusCode::CONFLICT, "not-kept", detail));
    };
    let request: supervisor::Request =
        serde_json::from_str(&request).map_err(|error| Problem::internal(error.to_string()))?;
    let draft = Draft {
        input: request.input,
        parameters: Some(request.parameters),
        working_directory: request.working_directory.map(|path| path.to_string_lossy().into_owned()),
        envs: None,
        timeout: Some(stored.execution.timeout),
        message: request.message,
    };
    let mut origin = Origin::default();
    origin.context.insert("retry_of".to_owned(), id.to_string().into());
    start(&app, &user, &stored.execution.agent_id, draft, origin, key, false).await
}

/// What happens in an execution, from its beginning or behind `Last-Event-ID`, until its end: `state`, `output`, `said`
/// (what is more than text: a piece of an artifact, a message, a word on how it goes), `usage`, and last `result`.
#[utoipa::path(
    get,
    path = "/api/executions/{id}/events",
    tag = "executions",
    params(
        ("id" = Uuid, Path),
        ("follow" = Option<bool>, Query, description = "`false`: only what has happened so far"),
        ("Last-Event-ID" = Option<i64>, Header, description = "The last event that was seen"),
    ),
    responses(
        (status = 200, description = "Server-Sent Events", content_type = "text/event-stream"),
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn events(
    State(app): State<App>,
    Asking(user): Asking,
    Id(id): Id<Uuid>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = Query::read(query.as_deref(), &["follow"])?;
    let so_far = match query.text("follow") {
        None | Some("true") => false,
        Some("false") => true,
        Some(_) => return Err(Invalid::one("follow", "one_of", "must be true or false").into()),
    };
    let after = match headers.get("last-event-id").map(|id| id.to_str().ok().and_then(|id| id.trim().parse().ok())) {
        Some(Some(after)) if after >= 0 => after,
        None => 0,
        Some(_) => return Err(Invalid::one("Last-Event-ID", "number", "must be the id of an event").into()),
    };
    let whose = visible(&user);
    let mut reader = app.store().reader().await?;
    store::executions::get(&mut reader, whose, id).await.map_err(Problem::from_store("execution"))?;
    drop(reader);
    let follower = app.supervisor().follow(whose, id, after);
    let follower = if so_far { follower.so_far() } else { follower };
    let stopping = app.stopping().clone();
    let stream = futures::stream::unfold(Some(follower), move |follower| {
        let (app, stopping) = (app.clone(), stopping.clone());
        async move {
            let mut follower = follower?;
            tokio::select! {
                told = tokio::time::timeout(KEEP_ALIVE, follower.next()) => match told {
                    Err(_) => Some((sse::KEEP_ALIVE.to_owned(), Some(follower))),
                    Ok(Ok(Some(told))) => {
                        let text = block(&app, whose, &follower, told).await;
                        Some((text, Some(follower)))
                    }
                    Ok(Ok(None) | Err(_)) => None,
                },
                // Whoever follows comes back with the last id.
                () = stopping.cancelled() => None,
            }
        }
    });
    Ok(sse::respond(Body::from_stream(stream.map(Ok::<_, std::convert::Infallible>))))
}

/// A file that an execution left.
#[utoipa::path(
    get,
    path = "/api/executions/{id}/artifacts/{name}",
    tag = "executions",
    params(("id" = Uuid, Path), ("name" = String, Path, description = "As the result has it")),
    responses(
        (status = 200, description = "The file", content_type = "application/octet-stream"),
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn artifact(
    State(app): State<App>,
    Asking(user): Asking,
    Path((id, name)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let id = Uuid::try_parse(&id).map_err(|_| Invalid::one("id", "uuid", "must be a UUID"))?;
    let result = result_of(&app, visible(&user), id).await?;
    // Only what was listed when the run ended: no name leads anywhere else.
    if !result.artifacts.iter().any(|artifact| artifact.name == name) {
        return Err(Problem::not_found("artifact"));
    }
    let file = tokio::fs::File::open(app.supervisor().artifact(id, &name)).await;
    let file = file.map_err(|_| Problem::not_found("artifact on this machine"))?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        // Nobody's browser takes it for a page of ours.
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    Ok((headers, Body::from_stream(ReaderStream::new(file))).into_response())
}

/// One event as it goes over the wire.
async fn block(app: &App, whose: Whose, follower: &Follower, told: Told) -> String {
    #[derive(Serialize)]
    struct Output<'a> {
        stream: &'a str,
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        missing_bytes: Option<u64>,
        at: jiff::Timestamp,
    }
    #[derive(Serialize)]
    struct State<'a> {
        state: &'a str,
        at: jiff::Timestamp,
    }
    let event = |id: Option<i64>, name: &str, data: serde_json::Result<String>| {
        let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
        format!("{id}event: {name}\ndata: {}\n\n", data.unwrap_or_default())
    };
    match told {
        Told::Event(told) if told.kind == Kind::State => {
            let data = serde_json::to_string(&State { state: &told.text, at: told.at });
            event(Some(told.seq), "state", data)
        }
        // With nothing around it that would have to be read twice.
        Told::Event(told) if told.kind == Kind::Said => event(Some(told.seq), "said", Ok(told.text)),
        Told::Event(told) => {
            let missing_bytes = (told.kind == Kind::Gap).then(|| told.text.parse().unwrap_or_default());
            let text = if missing_bytes.is_some() { "" } else { told.text.as_str() };
            let data = serde_json::to_string(&Output { stream: &told.stream, text, missing_bytes, at: told.at });
            event(Some(told.seq), "output", data)
        }
        Told::Usage(usage) => event(None, "usage", serde_json::to_string(&usage)),
        Told::End(_) => match result_of(app, whose, follower.id()).await {
            Ok(result) => event(None, "result", serde_json::to_string(&result)),
            // It was removed in this moment.
            Err(_) => String::new(),
        },
    }
}

/// An administrator sees everyone's (OPS-6).
pub(super) fn visible(user: &User) -> Whose {
    if user.is_admin() { Whose::Everyones } else { Whose::Users(user.id) }
}
