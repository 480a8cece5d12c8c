//! `/api/agents`: the configured agents and their status. Users see the agents that they may run, and only
//! administrators see configurations.
//!
//! Only administrators may create, replace and delete. Creating fails with 409 if the id or the name is in use; case is
//! ignored in names. Replacing and deleting fail with 404 if the agent does not exist, and with 409 if it is not from
//! this interface. An id in the body must be that of the path. Deleting also ends the queued executions of the agent.
//! After each change this node reads the agents again.
//!
//! These checks come before the idempotency key. So a repetition with the same key fails with 409 after a creation, and
//! with 404 after a deletion.

use api::agents::{
    Agent, AgentConfiguration, AgentDraft, AgentIsolation, AgentSource, AgentStatus, AgentStatusParams, AgentSummary,
    Agents, AwaitedState, ListAgents, ResourcePoolMetrics,
};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use model::agent::{AccessType, Agent as ConfiguredAgent};
use model::audit::AuditAction;
use model::{Invalid, User};
use serde_json::{Map, Value};
use supervisor::AgentEntry;

use super::NoBody;
use crate::auth::{CurrentUser, require_admin};
use crate::idempotency::{EmptyBody, IdempotentRequest, JsonBody, Success};
use crate::input::{IdParam, QueryParams};
use crate::{App, Problem};

/// The fields of an agent that a request cannot set. A body may repeat them.
const READ_ONLY_FIELDS: [&str; 3] = ["source", "created_at", "updated_at"];

/// Returns the view of an agent that the user may see. Administrators see the configuration with its times, other users
/// the summary.
fn agent_view(user: &User, entry: AgentEntry) -> Agent {
    let AgentEntry { agent, source, created_at, updated_at, .. } = entry;
    if user.is_admin() {
        let agent = ConfiguredAgent::clone(&agent);
        return Agent::Configuration(Box::new(AgentConfiguration { agent, source, created_at, updated_at }));
    }
    Agent::Summary(AgentSummary::new(&agent, source))
}

/// Lists the agents that the user may run.
#[utoipa::path(
    get,
    path = "/api/agents",
    tag = "agents",
    params(ListAgents),
    responses((status = 200, description = "The agents", body = Agents))
)]
pub(super) async fn list(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    QueryParams(_params): QueryParams<ListAgents>,
) -> Result<Json<Agents>, Problem> {
    let entries = app.supervisor().agents_for(&user);
    let agents: Vec<_> = entries.into_iter().map(|entry| agent_view(&user, entry)).collect();
    Ok(Json(Agents::new(agents, None)))
}

/// Returns an agent.
#[utoipa::path(
    get,
    path = "/api/agents/{id}",
    tag = "agents",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "The agent", body = Agent),
        (status = 404, description = "The user may run no agent with this id"),
    )
)]
pub(super) async fn get(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    IdParam(id): IdParam<String>,
) -> Result<Json<Agent>, Problem> {
    Ok(Json(agent_view(&user, app.supervisor().agent_for(&user, &id)?)))
}

/// Adds an agent.
///
/// Requires the scope `adjutant:admin`.
#[utoipa::path(
    post,
    path = "/api/agents",
    tag = "agents",
    request_body = AgentDraft,
    responses(
        (status = 201, description = "The new agent", body = AgentConfiguration),
        (status = 403, description = "The scope adjutant:admin is required"),
        (status = 409, description = "An agent with this id or name exists"),
    )
)]
pub(super) async fn create(request: IdempotentRequest<JsonBody<Map<String, Value>>>) -> Result<Response, Problem> {
    require_admin(&request.user)?;
    let app = request.app.clone();
    let now = request.app.clock().now();
    let agent = parse_agent(&app, request.body.0.clone())?;
    if app.supervisor().agents().iter().any(|entry| entry.agent.id == agent.id) {
        return Err(already_exists("id"));
    }
    check_name_is_free(&app, &agent)?;
    let record = request.audit_record(AuditAction::AgentCreated, &agent.id).with_after(&agent);
    let response = request
        .run_transaction("agent", async move |tx| {
            let row = store::agents::add(tx, &agent, now).await?;
            store::audit::record(tx, &record).await?;
            Ok(Success::Created(configuration(row)))
        })
        .await?;
    app.supervisor().refresh_agents().await?;
    Ok(response)
}

/// Replaces the configuration of an agent.
///
/// Requires the scope `adjutant:admin`.
#[utoipa::path(
    put,
    path = "/api/agents/{id}",
    tag = "agents",
    request_body = AgentDraft,
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "The changed agent", body = AgentConfiguration),
        (status = 403, description = "The scope adjutant:admin is required"),
        (status = 404, description = "No agent has this id"),
        (status = 409, description = "The agent is defined in the configuration file, or its name is in use"),
    )
)]
pub(super) async fn replace(
    IdParam(id): IdParam<String>,
    request: IdempotentRequest<JsonBody<Map<String, Value>>>,
) -> Result<Response, Problem> {
    require_admin(&request.user)?;
    let app = request.app.clone();
    let now = request.app.clock().now();
    check_changeable(&app, &id)?;
    let mut fields = request.body.0.clone();
    match fields.get("id").and_then(Value::as_str) {
        Some(other) if other != id => {
            return Err(Invalid::one("id", "same", "must equal the id in the path, or be omitted").into());
        }
        _ => drop(fields.insert("id".to_owned(), id.clone().into())),
    }
    let agent = parse_agent(&app, fields)?;
    check_name_is_free(&app, &agent)?;
    let record = request.audit_record(AuditAction::AgentUpdated, &id).with_after(&agent);
    let response = request
        .run_transaction("agent", async move |tx| {
            let before = store::agents::get_for_change(tx, &id).await?;
            let row = store::agents::replace(tx, &agent, now).await?;
            if before.agent != row.agent {
                store::audit::record(tx, &record.with_before(&before.agent)).await?;
            }
            Ok(Success::Ok(configuration(row)))
        })
        .await?;
    app.supervisor().refresh_agents().await?;
    Ok(response)
}

/// Deletes an agent.
///
/// Its executions stay on record. Queued executions fail. Requires the scope `adjutant:admin`.
#[utoipa::path(
    delete,
    path = "/api/agents/{id}",
    tag = "agents",
    params(("id" = String, Path)),
    responses(
        (status = 204, description = "The agent was deleted"),
        (status = 403, description = "The scope adjutant:admin is required"),
        (status = 404, description = "No agent has this id"),
        (status = 409, description = "The agent is defined in the configuration file"),
    )
)]
pub(super) async fn delete(
    IdParam(id): IdParam<String>,
    request: IdempotentRequest<EmptyBody>,
) -> Result<Response, Problem> {
    require_admin(&request.user)?;
    let app = request.app.clone();
    let now = request.app.clock().now();
    check_changeable(&app, &id)?;
    let record = request.audit_record(AuditAction::AgentRemoved, &id);
    let response = request
        .run_transaction("agent", async move |tx| {
            let before = store::agents::get_for_change(tx, &id).await?;
            store::audit::record(tx, &record.with_before(&before.agent)).await?;
            store::agents::remove(tx, &id).await?;
            store::executions::end_queued(tx, &id, "its agent was removed", now, i64::MAX).await?;
            Ok(Success::<NoBody>::NoContent)
        })
        .await?;
    app.supervisor().refresh_agents().await?;
    Ok(response)
}

/// Returns the load of an agent.
///
/// With `wait=idle` the response comes when the agent is idle.
#[utoipa::path(
    get,
    path = "/api/agents/{id}/status",
    tag = "agents",
    params(("id" = String, Path), AgentStatusParams),
    responses(
        (status = 200, description = "The status", body = AgentStatus),
        (status = 404, description = "The user may run no agent with this id"),
    )
)]
pub(super) async fn status(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    IdParam(id): IdParam<String>,
    QueryParams(params): QueryParams<AgentStatusParams>,
) -> Result<Json<AgentStatus>, Problem> {
    let entry = app.supervisor().agent_for(&user, &id)?;
    if params.wait == Some(AwaitedState::Idle) {
        app.supervisor().wait_until_agent_idle(&id).await?;
    }
    let isolation = isolation(&app, &entry).await;
    Ok(Json(AgentStatus { isolation, ..current_status(&app, &entry.agent).await? }))
}

/// Returns the protections that hold for a run of the agent on this node. Returns `None` for an agent without a local
/// program, and if the guardian cannot be started.
async fn isolation(app: &App, entry: &AgentEntry) -> Option<AgentIsolation> {
    let is_local = entry.source != AgentSource::BuiltIn && !entry.agent.is_remote();
    let protections = if is_local { app.supervisor().protections().await.ok()? } else { return None };
    let policy = supervisor::network_policy(&entry.agent);
    let is_read_only = entry.agent.access_type == AccessType::ReadOnly;
    let texts = |texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect();
    Some(AgentIsolation {
        enforced: texts(protections.enforced_for(is_read_only, &policy)),
        not_enforced: texts(protections.missing_for(is_read_only, &policy)),
    })
}

/// Returns the current load of an agent on all nodes, and the reason why this node admits no executions, if any. The
/// state is `Running` if an execution runs, otherwise `Idle`, even if the queue is not empty. The utilisation is the
/// share of the slots in use. Fails if the database fails.
pub(crate) async fn current_status(app: &App, agent: &ConfiguredAgent) -> store::Result<AgentStatus> {
    let (waiting, running) = store::executions::queue_counts(&mut app.store().reader().await?, &agent.id).await?;
    let limit = agent.max_concurrency();
    let state = if running > 0 { model::execution::StateName::Running } else { model::execution::StateName::Idle };
    Ok(AgentStatus {
        agent_id: agent.id.clone(),
        enabled: agent.enabled,
        state,
        running,
        queue_length: waiting,
        pool: ResourcePoolMetrics { limit, running, waiting, utilisation: running as f64 / f64::from(limit.max(1)) },
        held_back: app.supervisor().admission_refusal(),
        isolation: None,
    })
}

/// Parses and checks the configuration in a body. Read-only fields and fields with `null` are ignored. Fails with 422
/// if a field is unknown or has a wrong type, or if [`supervisor::Supervisor::check_agent`] rejects the configuration.
fn parse_agent(app: &App, mut fields: Map<String, Value>) -> Result<ConfiguredAgent, Problem> {
    for name in READ_ONLY_FIELDS {
        fields.shift_remove(name);
    }
    // `null` means absent, because responses contain absent fields as null.
    fields.retain(|_, value| !value.is_null());
    let draft: AgentDraft = model::json::from_value(Value::Object(fields))?;
    Ok(app.supervisor().check_agent(draft)?)
}

/// Fails if a different agent has the name, ignoring case.
fn check_name_is_free(app: &App, agent: &ConfiguredAgent) -> Result<(), Problem> {
    let name = agent.name.to_lowercase();
    let other = |entry: &AgentEntry| entry.agent.id != agent.id && entry.agent.name.to_lowercase() == name;
    if app.supervisor().agents().iter().any(other) { Err(already_exists("name")) } else { Ok(()) }
}

/// Fails with 404 if the agent does not exist, and with 409 if it is built in or defined in the configuration file.
fn check_changeable(app: &App, id: &str) -> Result<(), Problem> {
    let entry = app.supervisor().agents().into_iter().find(|entry| entry.agent.id == id);
    match entry.map(|entry| entry.source) {
        Some(AgentSource::Api) => Ok(()),
        Some(AgentSource::File) => {
            let detail = "this agent is defined in the configuration file; change it there";
            Err(Problem::new(StatusCode::CONFLICT, "configured", detail))
        }
        Some(AgentSource::BuiltIn) => {
            Err(Problem::new(StatusCode::CONFLICT, "built-in", "this agent is built in and cannot be changed"))
        }
        None => Err(Problem::not_found("agent")),
    }
}

fn already_exists(field: &'static str) -> Problem {
    store::Error::AlreadyExists(field).into()
}

fn configuration(row: store::agents::AgentRow) -> AgentConfiguration {
    let created_at = Some(row.created_at);
    let updated_at = Some(row.updated_at);
    AgentConfiguration { agent: row.agent, source: AgentSource::Api, created_at, updated_at }
}
