//! `/api/executions`: starts, lists, cancels and repeats executions, and streams their events. Administrators see the
//! executions of all users and may cancel and repeat them.
//!
//! - `list`: the state `active` means idle, starting or running. An unknown state or parameter fails with 422.
//! - `retry`: runs the request again for the current user, with the same input, parameters, directory and timeout but
//!   without its variables and outside of its session. `retry_of` in the context names the repeated execution. Fails
//!   with 409 if that has not ended, or its request was not stored because it contained secrets. Also fails like a new
//!   execution: with 404 if the user may not run the agent, with 409 if it is disabled, with 429 if its queue is full.
//!   All this is checked again for a repetition with the same idempotency key, except for the queue.
//! - `artifact`: serves only listed artifacts, as attachments. Fails with 404 if the file is not on this node, and with
//!   409 if the execution has not ended.

use api::executions::{EndedExecution, Execution, ExecutionDraft, ExecutionResult, Executions, ListExecutions};
use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::audit::{AuditAction, AuditRecord};
use model::execution::StateName;
use model::{Invalid, User, UserId};
use serde::{Deserialize, Serialize};
use store::executions::{ExecutionFilter, OwnerScope};
use store::idempotency::{IdempotencyKey, StoredReply, run_once};
use store::{Job, Transaction};
use supervisor::{RunDraft, RunOrigin, RunRequest};
use tokio_util::io::ReaderStream;
use uuid::Uuid;

use super::page;
use crate::auth::CurrentUser;
use crate::idempotency::{EmptyBody, IdempotentRequest, JsonBody, RequestCaller, Success, respond};
use crate::input::{self, IdParam, QueryParams};
use crate::{App, Problem};

/// Runs an agent.
///
/// Returns the execution at once, or with `wait` when it has ended.
#[utoipa::path(
    post,
    path = "/api/agents/{id}/executions",
    tag = "executions",
    request_body = ExecutionDraft,
    params(("id" = String, Path)),
    responses(
        (status = 202, description = "The execution is queued or running", body = Execution),
        (status = 200, description = "With `wait`: the ended execution", body = EndedExecution),
        (status = 404, description = "The user may run no agent with this id"),
        (status = 409, description = "The agent is disabled"),
        (status = 429, description = "The queue is full; try again later"),
        (status = 503, description = "An administrator has stopped everything, or the database is not available"),
    )
)]
pub(super) async fn submit(
    IdParam(agent): IdParam<String>,
    request: IdempotentRequest<JsonBody<ExecutionDraft>>,
) -> Result<Response, Problem> {
    let (caller, JsonBody(body)) = request.into_caller();
    let wait = body.wait.unwrap_or(false);
    start(caller, &agent, run_draft(body), RunOrigin::default(), wait).await
}

/// Converts a body to the draft of a run.
pub(crate) fn run_draft(body: ExecutionDraft) -> RunDraft {
    let ExecutionDraft { input, parameters, working_directory, envs, timeout, wait: _ } = body;
    RunDraft { input, parameters, working_directory, envs, timeout, message: None }
}

/// Enqueues an execution, at most once for the idempotency key. Responds at once with 202 and the execution, or with
/// `wait` at its end with 200 and the output. A run with overridden settings is recorded in the audit log.
///
/// Fails with 404 if the user may run no such agent, and with 409 if it is disabled. Fails if the draft is invalid or
/// not allowed, or the queue is full. Fails with 503 while everything is stopped. Fails with 422 if the key was used for a different request, and with 409 if its
/// first request is still running. Fails if the database fails.
pub(super) async fn start(
    caller: RequestCaller,
    agent: &str,
    draft: RunDraft,
    origin: RunOrigin,
    wait: bool,
) -> Result<Response, Problem> {
    let RequestCaller { app, user, actor, key } = caller;
    let overrides = RunOverrides::of(agent, &draft);
    let submission = app.supervisor().prepare(&user, agent, draft, origin)?;
    let supervisor = app.supervisor().clone();
    let enqueue = async move |tx: &mut Transaction| {
        let id = supervisor.enqueue(tx, submission).await?;
        if let Some(overrides) = overrides {
            let record = AuditRecord::new(supervisor.clock(), actor, AuditAction::RunOverridden, id);
            store::audit::record(tx, &record.with_after(&overrides)).await?;
        }
        Ok(id)
    };
    let scope = OwnerScope::User(user.id);
    let enqueued = enqueue_once(&app, user.id, key, scope, enqueue).await.map_err(Problem::from_store("execution"))?;
    enqueued.respond(&app, wait).await
}

/// The settings of an agent that a request overrides, for the audit log. It contains no values of variables.
#[derive(Serialize)]
struct RunOverrides {
    agent_id: String,
    working_directory: Option<String>,
    /// The names of the variables.
    envs: Vec<String>,
}

impl RunOverrides {
    /// Returns the overrides of a draft, or `None` if it has none.
    fn of(agent: &str, draft: &RunDraft) -> Option<Self> {
        let envs: Vec<_> = draft.envs.iter().flatten().map(|(name, _)| name.clone()).collect();
        let working_directory = draft.working_directory.clone();
        let has_any = working_directory.is_some() || !envs.is_empty();
        has_any.then(|| Self { agent_id: agent.to_owned(), working_directory, envs })
    }
}

/// Calls `enqueue`, which returns the id of the execution, in one transaction, at most once for the idempotency key of
/// the user. The reply is 202 with the execution. A repetition returns the stored reply of the first request. Without a
/// key `enqueue` always runs.
///
/// `scope` must include the owner of the execution. Fails if `enqueue` or the database fails, or the key was used for a
/// different request or one that is still running.
pub(super) async fn enqueue_once<W>(
    app: &App,
    user: UserId,
    key: Option<IdempotencyKey>,
    scope: OwnerScope,
    enqueue: W,
) -> store::Result<Enqueued>
where
    W: AsyncFnOnce(&mut Transaction) -> store::Result<Uuid> + for<'t> Job<'t, Uuid, store::Error> + 'static,
{
    let now = app.clock().now();
    let job = async move |tx: &mut Transaction| {
        let work = async move |tx: &mut Transaction| -> store::Result<StoredReply> {
            let id = enqueue(&mut *tx).await?;
            let execution = store::executions::get(tx, scope, id).await?;
            let body = serde_json::to_string(&execution);
            let body = body.map_err(|error| store::Error::Corrupt(error.to_string()))?;
            Ok(StoredReply { status: StatusCode::ACCEPTED.as_u16(), body })
        };
        run_once(tx, user, key.as_ref(), now, work).await
    };
    let (reply, is_replay) = app.store().owner_transaction(user, job).await?;
    Ok(Enqueued { reply, is_replay, scope })
}

/// An enqueued execution with the reply that was stored for it.
pub(super) struct Enqueued {
    reply: StoredReply,
    is_replay: bool,
    scope: OwnerScope,
}

impl Enqueued {
    /// Returns the stored reply at once, or with `wait` the ended execution with its output. The wait has no time
    /// limit. A repetition waits for the execution of the first request. Fails if the execution is deleted meanwhile or
    /// the database fails.
    pub(super) async fn respond(self, app: &App, wait: bool) -> Result<Response, Problem> {
        #[derive(Deserialize)]
        struct ReplyBody {
            id: Uuid,
        }

        if !wait {
            return Ok(respond(self.reply, self.is_replay));
        }
        let body: ReplyBody =
            serde_json::from_str(&self.reply.body).map_err(|error| Problem::internal(error.to_string()))?;
        wait_for_end(app, self.scope, body.id).await
    }
}

/// Waits for the end of an execution, without a time limit. Returns the response with its output.
async fn wait_for_end(app: &App, scope: OwnerScope, id: Uuid) -> Result<Response, Problem> {
    let execution = app.supervisor().wait(scope, id).await.map_err(Problem::from_store("execution"))?;
    let result = read_result(app, scope, id).await?;
    Ok(Json(EndedExecution { execution: execution.into(), status: result.status, output: result.output })
        .into_response())
}

/// Lists the executions of the user, newest first.
///
/// An administrator sees the executions of all users. A long `input` and long values in `context` are cut to 1,000
/// characters and end with `…`. A single execution has them in full.
#[utoipa::path(
    get,
    path = "/api/executions",
    tag = "executions",
    params(ListExecutions),
    responses((status = 200, description = "A page of executions", body = Executions))
)]
pub(super) async fn list(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    QueryParams(params): QueryParams<ListExecutions>,
) -> Result<Json<Executions>, Problem> {
    let (limit, cursor) = input::page_params(&params)?;
    let states = match params.state.as_deref() {
        None => Vec::new(),
        Some("active") => vec![StateName::Idle, StateName::Starting, StateName::Running],
        Some(state) => vec![StateName::parse("state", state)?],
    };
    let filter = ExecutionFilter {
        agent_id: params.agent_id,
        schedule_id: params.schedule_id,
        session_id: params.session_id,
        states,
        reference: params.reference,
    };
    let mut reader = app.store().owner_reader(user.id).await?;
    let found = store::executions::list(&mut reader, visible_scope(&user), &filter, cursor.as_ref(), limit).await?;
    Ok(page(found, Executions::new))
}

/// Returns an execution.
#[utoipa::path(
    get,
    path = "/api/executions/{id}",
    tag = "executions",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "The execution", body = Execution),
        (status = 404, description = "The user has no execution with this id"),
    )
)]
pub(super) async fn get(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    IdParam(id): IdParam<Uuid>,
) -> Result<Json<Execution>, Problem> {
    let mut reader = app.store().owner_reader(user.id).await?;
    let execution = store::executions::get(&mut reader, visible_scope(&user), id).await;
    Ok(Json(execution.map_err(Problem::from_store("execution"))?.into()))
}

/// Returns the result of an ended execution.
#[utoipa::path(
    get,
    path = "/api/executions/{id}/result",
    tag = "executions",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "The result", body = ExecutionResult),
        (status = 404, description = "The user has no execution with this id"),
        (status = 409, description = "The execution has not ended"),
    )
)]
pub(super) async fn result(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    IdParam(id): IdParam<Uuid>,
) -> Result<Json<ExecutionResult>, Problem> {
    read_result(&app, visible_scope(&user), id).await.map(Json)
}

/// Returns the result of an ended execution. Fails with 404 if it is not in the scope, and with 409 if it has not
/// ended.
async fn read_result(app: &App, scope: OwnerScope, id: Uuid) -> Result<ExecutionResult, Problem> {
    let mut reader = app.store().reader().await?;
    store::executions::result(&mut reader, scope, id).await.map_err(Problem::from_store("execution"))
}

/// Cancels an execution.
#[utoipa::path(
    post,
    path = "/api/executions/{id}/cancel",
    tag = "executions",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "The execution was cancelled, or will end soon", body = Execution),
        (status = 404, description = "The user has no execution with this id"),
        (status = 409, description = "The execution has already ended"),
    )
)]
pub(super) async fn cancel(
    IdParam(id): IdParam<Uuid>,
    request: IdempotentRequest<EmptyBody>,
) -> Result<Response, Problem> {
    let supervisor = request.app.supervisor().clone();
    let scope = visible_scope(&request.user);
    let cancel = async move |tx: &mut Transaction| supervisor.cancel(tx, scope, id).await.map(Success::Ok);
    request.run_transaction("execution", cancel).await
}

/// Runs the same request again, as a new execution.
#[utoipa::path(
    post,
    path = "/api/executions/{id}/retry",
    tag = "executions",
    params(("id" = Uuid, Path)),
    responses(
        (status = 202, description = "The new execution", body = Execution),
        (status = 404, description = "The user has no execution with this id"),
        (status = 409, description = "The execution has not ended, or its request contained secrets and was not stored"),
    )
)]
pub(super) async fn retry(
    IdParam(id): IdParam<Uuid>,
    request: IdempotentRequest<EmptyBody>,
) -> Result<Response, Problem> {
    let (caller, EmptyBody) = request.into_caller();
    let mut reader = caller.app.store().owner_reader(caller.user.id).await?;
    let row = store::executions::get_for_rerun(&mut reader, visible_scope(&caller.user), id).await;
    let row = row.map_err(Problem::from_store("execution"))?;
    drop(reader);
    let Some(request) = row.request else {
        let detail = "the request contained secrets and was not stored; send a new request";
        return Err(Problem::new(StatusCode::CONFLICT, "not-kept", detail));
    };
    let request: RunRequest = serde_json::from_str(&request).map_err(|error| Problem::internal(error.to_string()))?;
    let draft = RunDraft {
        input: request.input,
        parameters: Some(request.parameters),
        working_directory: request.working_directory.map(|path| path.to_string_lossy().into_owned()),
        envs: None,
        timeout: Some(row.execution.timeout),
        message: request.message,
    };
    let mut origin = RunOrigin::default();
    origin.context.insert("retry_of".to_owned(), id.to_string().into());
    start(caller, &row.execution.agent_id, draft, origin, false).await
}

/// Returns a file that an execution produced.
#[utoipa::path(
    get,
    path = "/api/executions/{id}/artifacts/{name}",
    tag = "executions",
    params(("id" = Uuid, Path), ("name" = String, Path, description = "The name in the result")),
    responses(
        (status = 200, description = "The file", content_type = "application/octet-stream"),
        (status = 404, description = "The execution has no artifact with this name, or its file is on a different node"),
    )
)]
pub(super) async fn artifact(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    Path((id, name)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let id = Uuid::try_parse(&id).map_err(|_| Invalid::one("id", "uuid", "must be a UUID"))?;
    let result = read_result(&app, visible_scope(&user), id).await?;
    // Only listed artifacts are served, so a name cannot escape the directory.
    if !result.artifacts.iter().any(|artifact| artifact.name == name) {
        return Err(Problem::not_found("artifact"));
    }
    let file = tokio::fs::File::open(app.supervisor().artifact_path(id, &name)).await;
    let file = file.map_err(|_| {
        let detail = "the file of the artifact is not on this node";
        Problem::new(StatusCode::NOT_FOUND, "not-found", detail)
    })?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        // A browser must not show the file as a page of this server.
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    Ok((headers, Body::from_stream(ReaderStream::new(file))).into_response())
}

/// Returns the executions that the user may see: all for an administrator (OPS-6), otherwise those of the user.
pub(super) fn visible_scope(user: &User) -> OwnerScope {
    if user.is_admin() { OwnerScope::AllUsers } else { OwnerScope::User(user.id) }
}
