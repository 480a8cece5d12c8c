//! The endpoints below `/api`, one file a noun. All of them act for the user who asks and see nothing else.

pub(crate) mod agents;
mod backup;
mod chat;
mod conversations;
mod data;
pub(crate) mod executions;
mod notifications;
mod reminders;
mod schedules;
mod sessions;
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

/// Paths with a wildcard: the description has another form of them than the router.
#[derive(OpenApi)]
#[openapi(paths(executions::artifact))]
struct Wildcards;

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
        .routes(routes!(reminders::get, reminders::delete))
        .routes(routes!(notifications::list))
        .routes(routes!(notifications::stream))
        .routes(routes!(notifications::read))
        .routes(routes!(agents::list, agents::create))
        .routes(routes!(agents::get, agents::replace, agents::delete))
        .routes(routes!(agents::status))
        .routes(routes!(executions::submit))
        .routes(routes!(executions::list))
        .routes(routes!(executions::get))
        .routes(routes!(executions::result))
        .routes(routes!(executions::cancel))
        .routes(routes!(executions::retry))
        .routes(routes!(executions::events))
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
        .routes(routes!(sessions::say))
        .routes(routes!(conversations::list))
        .routes(routes!(conversations::get, conversations::delete))
        .routes(routes!(data::export, data::import, data::erase))
        .routes(routes!(backup::backup))
        .routes(routes!(backup::restore))
        .routes(routes!(tokens::revoke))
}

/// How long a request may take before it is given up.
pub(crate) fn time_limit(method: &Method, route: &str, usual: Duration) -> Duration {
    match route {
        // As long as its body takes to arrive and to be stored.
        RESTORE | IMPORT if *method == Method::POST => Duration::MAX,
        // Whoever asks for the end of a run waits for it.
        "/api/agents/{id}/executions" | "/api/agents/{id}/status" | "/api/schedules/{id}/run" => Duration::MAX,
        "/api/sessions/{id}/messages" => Duration::MAX,
        // Whoever sends a message waits for the answer, and whoever subscribes for all that follows.
        _ if route.starts_with(AGENTS) || route.starts_with(GRPC[0]) || route.starts_with(GRPC[1]) => Duration::MAX,
        // A turn has its own limit, and ends with words.
        "/chat" | "/chat/stream" | "/agent/run" => usual.saturating_mul(2).saturating_add(Duration::from_secs(5)),
        _ => usual,
    }
}

/// Takes the place of everything, so a repetition changes nothing and needs no key.
pub(crate) const RESTORE: &str = "/api/restore";
/// Below this and these agents are called by A2A.
const AGENTS: &str = "/agents/";
const GRPC: [&str; 2] = ["/lf.a2a.v1.A2AService/", "/a2a.v1.A2AService/"];
const IMPORT: &str = "/api/data";

/// Returns a page of the store in the form of `new`.
fn page<T: Into<U>, U, P>(page: Page<T>, new: impl FnOnce(Vec<U>, Option<String>) -> P) -> Json<P> {
    let next_cursor = page.next.as_ref().map(Cursor::encode);
    Json(new(page.rows.into_iter().map(Into::into).collect(), next_cursor))
}

/// A change whose answer has no body.
#[derive(Serialize)]
enum NoBody {}
