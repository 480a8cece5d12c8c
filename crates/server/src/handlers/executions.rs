//! `/api/executions`: what agents were asked to do, what came of it, and what is happening.

use api::executions::{
    EndedExecution, Execution, ExecutionDraft, ExecutionResult, Executions, ListExecutions, OutputEvent, ReadEvents,
    StateEvent,
};
use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use model::execution::StateName;
use model::{Invalid, User, UserId};
use serde::Deserialize;
use store::executions::{Filter, Kind, Whose};
use store::idempotency::{Key, Reply, once};
use store::{Job, Transaction};
use supervisor::{Draft, Follower, Origin, Told};
use tokio_util::io::ReaderStream;
use uuid::Uuid;

use super::page;
use crate::auth::Asking;
use crate::change::{Answer, Change, Json as Input, Nothing, respond};
use crate::event_stream;
use crate::input::{self, Id, Params};
use crate::{App, Problem};

/// Runs an agent.
#[utoipa::path(
    post,
    path = "/api/agents/{id}/executions",
    tag = "executions",
    request_body = ExecutionDraft,
    params(("id" = String, Path)),
    responses(
        (status = 202, description = "It waits for its place, or runs", body = Execution),
        (status = 200, description = "With `wait`: it has ended", body = EndedExecution),
        (status = 404),
        (status = 409, description = "The agent is disabled"),
        (status = 429, description = "The queue is full"),
    )
)]
pub(super) async fn submit(Id(agent): Id<String>, change: Change<Input<ExecutionDraft>>) -> Result<Response, Problem> {
    let (app, user, Input(body), key) = change.into_parts();
    let wait = body.wait.unwrap_or(false);
    start(&app, &user, &agent, draft(body), Origin::default(), key, wait).await
}

/// Returns the request for a run that a body describes.
pub(crate) fn draft(body: ExecutionDraft) -> Draft {
    let ExecutionDraft { input, parameters, working_directory, envs, timeout, wait: _ } = body;
    Draft { input, parameters, working_directory, envs, timeout, message: None }
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
    let submission = app.supervisor().prepare(user, agent, draft, origin)?;
    let supervisor = app.supervisor().clone();
    let enqueue = async move |tx: &mut Transaction| supervisor.enqueue(tx, submission).await;
    let whose = Whose::Users(user.id);
    let reply = enqueue_once(app, user.id, key, whose, enqueue).await.map_err(Problem::from_store("execution"))?;
    reply.respond(app, wait).await
}

/// Puts an execution into the queue by `enqueue`, once for the key of the user. `whose` says who may see it.
pub(super) async fn enqueue_once<W>(
    app: &App,
    user: UserId,
    key: Option<Key>,
    whose: Whose,
    enqueue: W,
) -> store::Result<Enqueued>
where
    W: AsyncFnOnce(&mut Transaction) -> store::Result<Uuid> + for<'t> Job<'t, Uuid, store::Error> + 'static,
{
    let now = app.clock().now();
    let job = async move |tx: &mut Transaction| {
        let work = async move |tx: &mut Transaction| -> store::Result<Reply> {
            let id = enqueue(&mut *tx).await?;
            let execution = store::executions::get(tx, whose, id).await?;
            let body = serde_json::to_string(&execution);
            let body = body.map_err(|error| store::Error::Corrupt(error.to_string()))?;
            Ok(Reply { status: StatusCode::ACCEPTED.as_u16(), body })
        };
        once(tx, user, key.as_ref(), now, work).await
    };
    let (reply, is_replay) = app.store().transaction(job).await?;
    Ok(Enqueued { reply, is_replay, whose })
}

/// An execution in the queue, as the answer describes it.
pub(super) struct Enqueued {
    reply: Reply,
    is_replay: bool,
    whose: Whose,
}

impl Enqueued {
    /// Answers at once, or with `wait` when the execution has ended.
    pub(super) async fn respond(self, app: &App, wait: bool) -> Result<Response, Problem> {
        #[derive(Deserialize)]
        struct Queued {
            id: Uuid,
        }

        if !wait {
            return Ok(respond(self.reply, self.is_replay));
        }
        let queued: Queued =
            serde_json::from_str(&self.reply.body).map_err(|error| Problem::internal(error.to_string()))?;
        done(app, self.whose, queued.id).await
    }
}

/// The end of an execution, however long that takes.
async fn done(app: &App, whose: Whose, id: Uuid) -> Result<Response, Problem> {
    let execution = app.supervisor().wait(whose, id).await.map_err(Problem::from_store("execution"))?;
    let result = result_of(app, whose, id).await?;
    Ok(Json(EndedExecution { execution: execution.into(), status: result.status, output: result.output })
        .into_response())
}

/// Executions, newest first: one's own, or everyone's for an administrator. Of a long `input` the first 1,000 characters
/// are shown, with `…` behind them, and likewise of what is long in `context`; one execution alone has all of it.
#[utoipa::path(
    get,
    path = "/api/executions",
    tag = "executions",
    params(ListExecutions),
    responses((status = 200, body = Executions))
)]
pub(super) async fn list(
    State(app): State<App>,
    Asking(user): Asking,
    Params(params): Params<ListExecutions>,
) -> Result<Json<Executions>, Problem> {
    let (limit, cursor) = input::page(&params)?;
    let states = match params.state.as_deref() {
        None => Vec::new(),
        Some("active") => vec![StateName::Idle, StateName::Starting, StateName::Running],
        Some(state) => vec![StateName::parse("state", state)?],
    };
    let filter = Filter {
        agent_id: params.agent_id,
        schedule_id: params.schedule_id,
        session_id: params.session_id,
        states,
        reference: params.reference,
    };
    let mut reader = app.store().reader().await?;
    let found = store::executions::list(&mut reader, visible(&user), &filter, cursor.as_ref(), limit).await?;
    Ok(page(found, Executions::new))
}

/// One execution.
#[utoipa::path(
    get,
    path = "/api/executions/{id}",
    tag = "executions",
    params(("id" = Uuid, Path)),
    responses((status = 200, body = Execution), (status = 404))
)]
pub(super) async fn get(
    State(app): State<App>,
    Asking(user): Asking,
    Id(id): Id<Uuid>,
) -> Result<Json<Execution>, Problem> {
    let mut reader = app.store().reader().await?;
    let execution = store::executions::get(&mut reader, visible(&user), id).await;
    Ok(Json(execution.map_err(Problem::from_store("execution"))?.into()))
}

/// What came of an execution that has ended.
#[utoipa::path(
    get,
    path = "/api/executions/{id}/result",
    tag = "executions",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = ExecutionResult),
        (status = 404),
        (status = 409, description = "It has not ended yet"),
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
        (status = 404),
        (status = 409, description = "It has ended already"),
    )
)]
pub(super) async fn cancel(Id(id): Id<Uuid>, change: Change<Nothing>) -> Result<Response, Problem> {
    let supervisor = change.app.supervisor().clone();
    let whose = visible(&change.user);
    let cancel = async move |tx: &mut Transaction| supervisor.cancel(tx, whose, id).await.map(Answer::Ok);
    change.carry_out("execution", cancel).await
}

/// Asks the same of the same agent again, as a new execution.
#[utoipa::path(
    post,
    path = "/api/executions/{id}/retry",
    tag = "executions",
    params(("id" = Uuid, Path)),
    responses(
        (status = 202, description = "The new execution", body = Execution),
        (status = 404),
        (status = 409, description = "It has not ended yet, or had secrets that were not kept"),
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
        ReadEvents,
        ("Last-Event-ID" = Option<i64>, Header, description = "The last event that was seen"),
    ),
    responses(
        (status = 200, description = "Server-Sent Events", content_type = "text/event-stream"),
        (status = 404),
    )
)]
pub(super) async fn events(
    State(app): State<App>,
    Asking(user): Asking,
    Id(id): Id<Uuid>,
    Params(params): Params<ReadEvents>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let so_far = params.follow == Some(false);
    let after = event_stream::last_event_id(&headers)?.unwrap_or(0);
    let whose = visible(&user);
    let mut reader = app.store().reader().await?;
    store::executions::get(&mut reader, whose, id).await.map_err(Problem::from_store("execution"))?;
    drop(reader);
    let follower = app.supervisor().follow(whose, id, after);
    let follower = if so_far { follower.so_far() } else { follower };
    let stopping = app.stopping().clone();
    let events = futures::stream::unfold((app, follower), move |(app, mut follower)| async move {
        let event = follower.next().await.ok().flatten()?;
        let text = block(&app, whose, &follower, event).await;
        Some((text, (app, follower)))
    });
    // A client resumes with the last id on the server that comes next.
    Ok(event_stream::stream(events.take_until(stopping.cancelled_owned())))
}

/// A file that an execution left.
#[utoipa::path(
    get,
    path = "/api/executions/{id}/artifacts/{name}",
    tag = "executions",
    params(("id" = Uuid, Path), ("name" = String, Path, description = "As the result has it")),
    responses(
        (status = 200, description = "The file", content_type = "application/octet-stream"),
        (status = 404),
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
    let event = |id: Option<i64>, name: &str, data: serde_json::Result<String>| {
        let id = id.map(|id| id.to_string());
        event_stream::encode(id.as_deref(), name, &data.unwrap_or_default())
    };
    match told {
        Told::Event(told) if told.kind == Kind::State => {
            let data = serde_json::to_string(&StateEvent { state: told.text, at: told.at });
            event(Some(told.seq), "state", data)
        }
        // With nothing around it that would have to be read twice.
        Told::Event(told) if told.kind == Kind::Said => event(Some(told.seq), "said", Ok(told.text)),
        Told::Event(told) => {
            let missing_bytes = (told.kind == Kind::Gap).then(|| told.text.parse().unwrap_or_default());
            let text = if missing_bytes.is_some() { String::new() } else { told.text };
            let data = serde_json::to_string(&OutputEvent { stream: told.stream, text, missing_bytes, at: told.at });
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
