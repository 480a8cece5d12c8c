//! `/api/agents`: what can be run, and how it is run.

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use model::agent::{AccessType, Agent, Draft, InputPattern, Mode, OutputPattern, Seconds};
use model::{Invalid, User};
use serde::Serialize;
use serde_json::{Map, Value};
use supervisor::{Entry, Source};
use utoipa::ToSchema;

use super::NoBody;
use crate::auth::{Asking, require_admin};
use crate::change::{Answer, Change, Json as Input, Nothing};
use crate::input::{Id, Query};
use crate::problem::Body as ProblemBody;
use crate::{App, Problem};

/// What is shown of an agent but cannot be set.
const SHOWN_ONLY: [&str; 3] = ["source", "created_at", "updated_at"];

/// An agent with all of its configuration: for administrators.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentConfiguration)]
pub(super) struct Whole {
    #[serde(flatten)]
    agent: Agent,
    source: Source,
    created_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
}

/// An agent as those see it who may only run it.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentSummary)]
pub(super) struct Summary {
    id: String,
    name: String,
    description: String,
    agent_type: String,
    mode: Mode,
    input_pattern: InputPattern,
    output_pattern: OutputPattern,
    access_type: AccessType,
    max_concurrent_executions: u32,
    timeout: Seconds,
    max_input_size: u64,
    enabled: bool,
    source: Source,
}

#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = Agent)]
pub(super) enum Shown {
    Whole(Box<Whole>),
    Summary(Summary),
}

impl Shown {
    fn to(user: &User, entry: Entry) -> Self {
        let agent = Agent::clone(&entry.agent);
        if user.is_admin() {
            let Entry { source, created_at, updated_at, .. } = entry;
            return Self::Whole(Box::new(Whole { agent, source, created_at, updated_at }));
        }
        Self::Summary(Summary {
            id: agent.id,
            name: agent.name,
            description: agent.description,
            agent_type: agent.agent_type,
            mode: agent.mode,
            input_pattern: agent.input_pattern,
            output_pattern: agent.output_pattern,
            access_type: agent.access_type,
            max_concurrent_executions: agent.max_concurrent_executions,
            timeout: agent.timeout,
            max_input_size: agent.max_input_size,
            enabled: agent.enabled,
            source: entry.source,
        })
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct Agents {
    agents: Vec<Shown>,
    count: usize,
    /// There is one page only.
    next_cursor: Option<String>,
}

/// The agents that the user may run.
#[utoipa::path(get, path = "/api/agents", tag = "agents", responses((status = 200, body = Agents)))]
pub(super) async fn list(
    State(app): State<App>,
    Asking(user): Asking,
    RawQuery(query): RawQuery,
) -> Result<Json<Agents>, Problem> {
    Query::read(query.as_deref(), &["limit", "cursor"])?;
    let entries = app.supervisor().agents_for(&user);
    let agents: Vec<_> = entries.into_iter().map(|entry| Shown::to(&user, entry)).collect();
    Ok(Json(Agents { count: agents.len(), agents, next_cursor: None }))
}

/// One agent.
#[utoipa::path(
    get,
    path = "/api/agents/{id}",
    tag = "agents",
    params(("id" = String, Path)),
    responses((status = 200, body = Shown), (status = 404, body = ProblemBody, content_type = "application/problem+json"))
)]
pub(super) async fn get(
    State(app): State<App>,
    Asking(user): Asking,
    Id(id): Id<String>,
) -> Result<Json<Shown>, Problem> {
    Ok(Json(Shown::to(&user, app.supervisor().agent_for(&user, &id)?)))
}

/// Adds an agent.
#[utoipa::path(
    post,
    path = "/api/agents",
    tag = "agents",
    request_body = Draft,
    responses(
        (status = 201, body = Whole),
        (status = 403, body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "Its id or name is taken", body = ProblemBody, content_type = "application/problem+json"),
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
    request_body = Draft,
    params(("id" = String, Path)),
    responses(
        (status = 200, body = Whole),
        (status = 403, body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "It is in the configuration file", body = ProblemBody, content_type = "application/problem+json"),
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
        (status = 403, body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "It is in the configuration file", body = ProblemBody, content_type = "application/problem+json"),
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

/// How busy an agent is.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentStatus)]
pub(crate) struct Status {
    agent_id: String,
    enabled: bool,
    state: model::execution::StateName,
    running: i64,
    queue_length: i64,
    pool: Pool,
    /// Why nothing new starts at the moment, if so.
    held_back: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ResourcePoolMetrics)]
struct Pool {
    limit: u32,
    running: i64,
    waiting: i64,
    /// From 0 to 1.
    utilisation: f64,
}

/// How busy an agent is; with `wait=idle` as soon as it has nothing more to do.
#[utoipa::path(
    get,
    path = "/api/agents/{id}/status",
    tag = "agents",
    params(("id" = String, Path), ("wait" = Option<String>, Query, description = "`idle`")),
    responses((status = 200, body = Status), (status = 404, body = ProblemBody, content_type = "application/problem+json"))
)]
pub(super) async fn status(
    State(app): State<App>,
    Asking(user): Asking,
    Id(id): Id<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<Status>, Problem> {
    let query = Query::read(query.as_deref(), &["wait"])?;
    let entry = app.supervisor().agent_for(&user, &id)?;
    match query.text("wait") {
        None => {}
        Some("idle") => app.supervisor().wait_for_agent(&id).await?,
        Some(_) => return Err(Invalid::one("wait", "one_of", "must be idle").into()),
    }
    Ok(Json(status_of(&app, &entry.agent).await?))
}

/// How busy an agent is at the moment.
pub(crate) async fn status_of(app: &App, agent: &Agent) -> store::Result<Status> {
    let (waiting, running) = store::executions::counts(&mut app.store().reader().await?, &agent.id).await?;
    let limit = agent.places();
    let state = if running > 0 { model::execution::StateName::Running } else { model::execution::StateName::Idle };
    Ok(Status {
        agent_id: agent.id.clone(),
        enabled: agent.enabled,
        state,
        running,
        queue_length: waiting,
        pool: Pool { limit, running, waiting, utilisation: running as f64 / f64::from(limit.max(1)) },
        held_back: app.supervisor().refusal(),
    })
}

/// The configuration in a body, checked as far as it can be without running it.
fn read(app: &App, mut fields: Map<String, Value>) -> Result<Agent, Problem> {
    for name in SHOWN_ONLY {
        fields.shift_remove(name);
    }
    // Absent and null are the same: that is how the configuration is shown.
    fields.retain(|_, value| !value.is_null());
    let draft: Draft = model::json::from_value(Value::Object(fields))?;
    Ok(app.supervisor().check_agent(draft)?)
}

/// Whether no other agent, from wherever, has the name.
fn is_free(app: &App, agent: &Agent) -> Result<(), Problem> {
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

fn whole(kept: store::agents::Kept) -> Whole {
    let created_at = Some(kept.created_at);
    let updated_at = Some(kept.updated_at);
    Whole { agent: kept.agent, source: Source::Api, created_at, updated_at }
}
