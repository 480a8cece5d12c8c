//! Requests of agents with `api_access` (SEC-1). Every other agent is refused.
//!
//! A run may use [`ENDPOINTS`] with its own token, for the tasks of its owner. It cannot delete, start agents, read
//! conversations or change settings: an agent may follow instructions of text that it has read.

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use model::User;
use uuid::Uuid;

use crate::auth::bearer_token;
use crate::{App, Problem};

/// The method and the path of each operation that a run may use. `/api/executions/{id}` is limited to the run itself.
const ENDPOINTS: [(Method, &str); 7] = [
    (Method::GET, "/api/tasks"),
    (Method::POST, "/api/tasks"),
    (Method::GET, "/api/tasks/{id}"),
    (Method::PATCH, "/api/tasks/{id}"),
    (Method::POST, "/api/tasks/{id}/complete"),
    (Method::POST, "/api/tasks/complete"),
    (Method::GET, "/api/executions/{id}"),
];

/// The run that sends a request.
#[derive(Clone, Debug)]
pub(crate) struct AgentCaller {
    /// The user whom the run belongs to, without scopes.
    pub(crate) owner: User,
}

impl AgentCaller {
    /// Returns the caller of a request that arrives over a connection of `run`. Fails with 403 if the run is unknown, if
    /// the token is not that of the run, or if the operation is not allowed.
    pub(crate) fn find(app: &App, request: &Request, run: Option<Uuid>) -> Result<Self, Problem> {
        let token = bearer_token(request.headers());
        let granted = run.zip(token).and_then(|(run, token)| Some((run, app.supervisor().api_owner(run, token)?)));
        let Some((run, id)) = granted else {
            let detail =
                "agents may not use the server that runs them; an agent with api_access needs the token of its run";
            return Err(Problem::forbidden(detail));
        };
        if !is_allowed(request, run) {
            let detail =
                "runs with api_access may list, read, add, change and complete tasks, and read their own execution";
            return Err(Problem::forbidden(detail));
        }
        let time_zone = app.active_config().settings.time_zone.clone();
        Ok(Self { owner: User { id, scopes: Vec::new(), time_zone } })
    }
}

/// Returns true if the request is one of [`ENDPOINTS`].
fn is_allowed(request: &Request, run: Uuid) -> bool {
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let is_listed = ENDPOINTS.iter().any(|(method, path)| request.method() == method && route == *path);
    let is_own = !route.starts_with("/api/executions/") || request.uri().path() == format!("/api/executions/{run}");
    is_listed && is_own
}
