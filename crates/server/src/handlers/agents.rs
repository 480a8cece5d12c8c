//! `/api/agents`: what can be run, and how it is run.

use api::agents::{
    Agent, AgentConfiguration, AgentDraft, AgentStatus, AgentSummary, Agents, Await, AwaitStatus, ListAgents,
    ResourcePoolMetrics, Source,
};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use model::agent::Agent as Configured;
use model::{Invalid, User};
use serde_json::{Map, Value};
use supervisor::Entry;

use super::NoBody;
use crate::auth::{Asking, require_admin};
use crate::change::{Answer, Change, Json as Input, Nothing};
use crate::input::{Id, Params};
use crate::{App, Problem};

/// What is shown of an agent but cannot be set.
const SHOWN_ONLY: [&str; 3] = ["source", "created_at", "updated_at"];

/// Returns an agent as far as the user may see it.
fn shown(user: &User, entry: Entry) -> Agent {
    let Entry { agent, source, created_at, updated_at, .. } = entry;
    if user.is_admin() {
        let agent = Configured::clone(&agent);
        return Agent::Configuration(Box::new(AgentConfiguration { agent, source, created_at, updated_at }));
    }
    Agent::Summary(AgentSummary::new(&agent, source))
}

/// The agents that the user may run.
#[utoipa::path(get, path = "/api/agents", tag = "agents", params(ListAgents), responses((status = 200, body = Agents)))]
pub(super) async fn list(
    State(app): State<App>,
    Asking(user): Asking,
    Params(_params): Params<ListAgents>,
) -> Result<Json<Agents>, Problem> {
    let entries = app.supervisor().agents_for(&user);
    let agents: Vec<_> = entries.into_iter().map(|entry| shown(&user, entry)).collect();
    Ok(Json(Agents::new(agents, None)))
}

/// One agent.
#[utoipa::path(
    get,
    path = "/api/agents/{id}",
    tag = "agents",
    params(("id" = String, Path)),
    responses((status = 200, body = Agent), (status = 404))
)]
pub(super) async fn get(
    State(app): State<App>,
    Asking(user): Asking,
    Id(id): Id<String>,
) -> Result<Json<Agent>, Problem> {
    Ok(Json(shown(&user, app.supervisor().agent_for(&user, &id)?)))
}

/// Adds an agent.
#[utoipa::path(
    post,
    path = "/api/agents",
    tag = "agents",
    request_body = AgentDraft,
    responses(
        (status = 201, body = AgentConfiguration),
        (status = 403),
        (status = 409, description = "Its id or name is taken"),
    )
)]
pub(super) async fn create(change: Change<Input<Map<String, Value>>>) -> Result<Response, Problem> {
    require_admin(&change.user)?;
    let app = change.app.clone();
    let now = change.app.clock().now();
    let agent = read(&app, change.body.0.clone())?;
    if app.supervisor().agents().iter().any(|entry| entry.agent.id == agent.id) {
        return Err(taken("id"));
    }
    is_free(&app, &agent)?;
    let answer = change
        .carry_out("agent", async move |tx| {
            let kept = store::agents::add(tx, &agent, now).await?;
            Ok(Answer::Created(whole(kept)))
        })
        .await?;
    app.supervisor().refresh().await?;
    Ok(answer)
}

/// Writes an agent anew.
#[utoipa::path(
    put,
    path = "/api/agents/{id}",
    tag = "agents",
    request_body = AgentDraft,
    params(("id" = String, Path)),
    responses(
        (status = 200, body = AgentConfiguration),
        (status = 403),
        (status = 404),
        (status = 409, description = "It is in the configuration file"),
    )
)]
pub(super) async fn replace(
    Id(id): Id<String>,
    change: Change<Input<Map<String, Value>>>,
) -> Result<Response, Problem> {
    require_admin(&change.user)?;
    let app = change.app.clone();
    let now = change.app.clock().now();
    changeable(&app, &id)?;
    let mut fields = change.body.0.clone();
    match fields.get("id").and_then(Value::as_str) {
        Some(other) if other != id => {
            return Err(Invalid::one("id", "same", "must be the id in the path, or be left out").into());
        }
        _ => drop(fields.insert("id".to_owned(), id.clone().into())),
    }
    let agent = read(&app, fields)?;
    is_free(&app, &agent)?;
    let answer = change
        .carry_out("agent", async move |tx| {
            let kept = store::agents::replace(tx, &agent, now).await?;
            Ok(Answer::Ok(whole(kept)))
        })
        .await?;
    app.supervisor().refresh().await?;
    Ok(answer)
}

/// Removes an agent. What it did stays on record; what waits for it ends.
#[utoipa::path(
    delete,
    path = "/api/agents/{id}",
    tag = "agents",
    params(("id" = String, Path)),
    responses(
        (status = 204, description = "It is gone"),
        (status = 403),
        (status = 404),
        (status = 409, description = "It is in the configuration file"),
    )
)]
pub(super) async fn delete(Id(id): Id<String>, change: Change<Nothing>) -> Result<Response, Problem> {
    require_admin(&change.user)?;
    let app = change.app.clone();
    let now = change.app.clock().now();
    changeable(&app, &id)?;
    let answer = change
        .carry_out("agent", async move |tx| {
            store::agents::remove(tx, &id).await?;
            store::executions::end_waiting(tx, &id, "its agent was removed", now, i64::MAX).await?;
            Ok(Answer::<NoBody>::NoContent)
        })
        .await?;
    app.supervisor().refresh().await?;
    Ok(answer)
}

/// How busy an agent is; with `wait=idle` as soon as it has nothing more to do.
#[utoipa::path(
    get,
    path = "/api/agents/{id}/status",
    tag = "agents",
    params(("id" = String, Path), AwaitStatus),
    responses((status = 200, body = AgentStatus), (status = 404))
)]
pub(super) async fn status(
    State(app): State<App>,
    Asking(user): Asking,
    Id(id): Id<String>,
    Params(params): Params<AwaitStatus>,
) -> Result<Json<AgentStatus>, Problem> {
    let entry = app.supervisor().agent_for(&user, &id)?;
    if params.wait == Some(Await::Idle) {
        app.supervisor().wait_for_agent(&id).await?;
    }
    Ok(Json(status_of(&app, &entry.agent).await?))
}

/// How busy an agent is at the moment.
pub(crate) async fn status_of(app: &App, agent: &Configured) -> store::Result<AgentStatus> {
    let (waiting, running) = store::executions::counts(&mut app.store().reader().await?, &agent.id).await?;
    let limit = agent.places();
    let state = if running > 0 { model::execution::StateName::Running } else { model::execution::StateName::Idle };
    Ok(AgentStatus {
        agent_id: agent.id.clone(),
        enabled: agent.enabled,
        state,
        running,
        queue_length: waiting,
        pool: ResourcePoolMetrics { limit, running, waiting, utilisation: running as f64 / f64::from(limit.max(1)) },
        held_back: app.supervisor().refusal(),
    })
}

/// The configuration in a body, checked as far as it can be without running it.
fn read(app: &App, mut fields: Map<String, Value>) -> Result<Configured, Problem> {
    for name in SHOWN_ONLY {
        fields.shift_remove(name);
    }
    // Absent and null are the same: that is how the configuration is shown.
    fields.retain(|_, value| !value.is_null());
    let draft: AgentDraft = model::json::from_value(Value::Object(fields))?;
    Ok(app.supervisor().check_agent(draft)?)
}

/// Whether no other agent, from wherever, has the name.
fn is_free(app: &App, agent: &Configured) -> Result<(), Problem> {
    let name = agent.name.to_lowercase();
    let other = |entry: &Entry| entry.agent.id != agent.id && entry.agent.name.to_lowercase() == name;
    if app.supervisor().agents().iter().any(other) { Err(taken("name")) } else { Ok(()) }
}

fn changeable(app: &App, id: &str) -> Result<(), Problem> {
    let entry = app.supervisor().agents().into_iter().find(|entry| entry.agent.id == id);
    match entry.map(|entry| entry.source) {
        Some(Source::Api) => Ok(()),
        Some(Source::File) => {
            let detail = "this agent is in the configuration file: change it there";
            Err(Problem::new(StatusCode::CONFLICT, "configured", detail))
        }
        Some(Source::BuiltIn) => {
            Err(Problem::new(StatusCode::CONFLICT, "built-in", "this agent is part of adjutant and stays as it is"))
        }
        None => Err(Problem::not_found("agent")),
    }
}

fn taken(field: &'static str) -> Problem {
    store::Error::Taken(field).into()
}

fn whole(kept: store::agents::Kept) -> AgentConfiguration {
    let created_at = Some(kept.created_at);
    let updated_at = Some(kept.updated_at);
    AgentConfiguration { agent: kept.agent, source: Source::Api, created_at, updated_at }
}
