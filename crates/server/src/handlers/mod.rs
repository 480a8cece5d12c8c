//! The handlers of `/api`, `/chat` and `/agent/run`, one file for each kind of object. All of them act for the current
//! user. Only administrators see data of several users.

pub(crate) mod agents;
mod audit;
mod backup;
mod chat;
mod conversations;
mod data;
mod execution_events;
pub(crate) mod executions;
mod notifications;
mod permissions;
mod reminders;
mod schedules;
mod sessions;
mod stop;
mod stop_all;
mod stream;
mod tasks;
mod tokens;

use std::time::Duration;

use axum::Json;
use axum::http::Method;
use axum::routing::get;
use serde::Serialize;
use store::page::{Cursor, Page};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;

/// Paths with a wildcard. The router and OpenAPI write them differently.
#[derive(OpenApi)]
#[openapi(paths(executions::artifact))]
struct Wildcards;

/// Returns the routes of all handlers with their descriptions. The caller adds the authentication.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Wildcards::openapi())
        .routes(routes!(chat::stream))
        .routes(routes!(chat::chat))
        .routes(routes!(chat::run))
        .routes(routes!(tasks::list, tasks::create))
        .routes(routes!(tasks::undo))
        .routes(routes!(tasks::complete_several))
        .routes(routes!(tasks::delete_several))
        .routes(routes!(tasks::get, tasks::update, tasks::delete))
        .routes(routes!(tasks::complete))
        .routes(routes!(reminders::list, reminders::create))
        .routes(routes!(reminders::get, reminders::update, reminders::delete))
        .routes(routes!(reminders::snooze))
        .routes(routes!(notifications::list))
        .routes(routes!(notifications::stream))
        .routes(routes!(notifications::read))
        .routes(routes!(permissions::list))
        .routes(routes!(permissions::get, permissions::delete))
        .routes(routes!(agents::list, agents::create))
        .routes(routes!(agents::get, agents::replace, agents::delete))
        .routes(routes!(agents::status))
        .routes(routes!(executions::submit))
        .routes(routes!(executions::list))
        .routes(routes!(executions::get))
        .routes(routes!(executions::result))
        .routes(routes!(executions::cancel))
        .routes(routes!(executions::retry))
        .routes(routes!(execution_events::events))
        .route("/api/executions/{id}/artifacts/{*name}", get(executions::artifact))
        .routes(routes!(schedules::list, schedules::create))
        .routes(routes!(schedules::get, schedules::update, schedules::delete))
        .routes(routes!(schedules::run))
        .routes(routes!(schedules::pause))
        .routes(routes!(schedules::resume))
        .routes(routes!(schedules::executions))
        .routes(routes!(schedules::history))
        .routes(routes!(schedules::next))
        .routes(routes!(schedules::explain))
        .routes(routes!(sessions::list, sessions::open))
        .routes(routes!(sessions::get, sessions::close))
        .routes(routes!(sessions::send_message))
        .routes(routes!(conversations::list))
        .routes(routes!(conversations::get, conversations::delete))
        .routes(routes!(data::export, data::import, data::erase))
        .routes(routes!(backup::backup))
        .routes(routes!(backup::restore))
        .routes(routes!(tokens::revoke))
        .routes(routes!(audit::list))
        .routes(routes!(stop::stop))
        .routes(routes!(stop_all::stop_all))
        .routes(routes!(stop_all::resume_all))
}

/// Returns the time limit until the response of a request starts. `default` is the configured limit. Chat has twice the
/// default plus five seconds and the time of external tools, because a turn has its own limit.
///
/// `Duration::MAX` means no limit. It applies to imports, restores and A2A. It also applies to endpoints that may wait
/// for an execution or an idle agent, even without `wait`.
pub(crate) fn time_limit(method: &Method, route: &str, default: Duration, tool_time: Duration) -> Duration {
    match route {
        // Large bodies may take any time to arrive and to be stored.
        RESTORE | IMPORT if *method == Method::POST => Duration::MAX,
        // With `wait` the response comes at the end of an execution.
        "/api/agents/{id}/executions" | "/api/agents/{id}/status" | "/api/schedules/{id}/run" => Duration::MAX,
        "/api/sessions/{id}/messages" => Duration::MAX,
        // A2A requests wait for the answer of an agent, or subscribe to updates.
        _ if route.starts_with(A2A_PREFIX) => Duration::MAX,
        _ if A2A_GRPC_PREFIXES.iter().any(|prefix| route.starts_with(prefix)) => Duration::MAX,
        // A turn has its own limit and ends with a reply. This limit is only a safeguard.
        "/chat" | "/chat/stream" | "/agent/run" => {
            default.saturating_mul(2).saturating_add(Duration::from_secs(5)).saturating_add(tool_time)
        }
        _ => default,
    }
}

/// Replaces all data. A repetition has the same result, so it accepts no idempotency key.
pub(crate) const RESTORE: &str = "/api/restore";
/// The paths of A2A.
const A2A_PREFIX: &str = "/agents/";
const A2A_GRPC_PREFIXES: [&str; 2] = ["/lf.a2a.v1.A2AService/", "/a2a.v1.A2AService/"];
const IMPORT: &str = "/api/data";

/// Converts a page of the store with `new`, which takes the items and the cursor of the next page.
fn page<T: Into<U>, U, P>(page: Page<T>, new: impl FnOnce(Vec<U>, Option<String>) -> P) -> Json<P> {
    let next_cursor = page.next.as_ref().map(Cursor::encode);
    Json(new(page.rows.into_iter().map(Into::into).collect(), next_cursor))
}

/// The body of a response that has none.
#[derive(Serialize)]
enum NoBody {}
