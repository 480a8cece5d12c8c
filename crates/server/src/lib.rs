//! The HTTP server: chat, `/api/…`, `/mcp`, A2A, health, metrics and documentation. Request ids, logs, limits,
//! authentication and errors are shared by all of them.
//!
//! A request passes `request` (id, log, time limit), `guard` (host and origin) and [`auth`] (user, rate limit). Then a
//! handler in `handlers` answers it with one call of the store. Handlers contain no SQL and read no configuration file.

mod a2a;
mod agent_caller;
pub mod app;
mod audit;
pub mod auth;
mod chat;
mod connections;
mod docs;
mod event_stream;
pub mod follow_up;
mod guard;
mod handlers;
mod health;
pub mod housekeeping;
mod idempotency;
mod input;
mod local_peer;
pub mod local_socket;
mod mcp;
mod metrics;
mod open_streams;
mod peer;
mod peer_stream;
mod problem;
mod rate_limit;
mod request;
mod result_chunks;
mod schedule_notifier;
mod seal;
pub mod serve;
pub mod settings;
mod slow_body;
mod stalled;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::response::Redirect;
use axum::routing::get;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use a2a::discover_remote_agent;
pub use app::App;
pub use problem::Problem;
pub use settings::ServerSettings;

/// Returns the default configuration of the agent `assistant`.
pub fn assistant_agent() -> model::agent::Agent {
    chat::AssistantRunner::agent()
}

/// Returns the routes of a node that serves no users: only `/health` and below. They are public. Other paths respond
/// with 404. Requests are logged, limited in time and checked by their host and origin.
pub fn health_router(app: App) -> Router {
    Router::new()
        .route("/health", get(health::health))
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .fallback(|| async { Problem::unknown_path() })
        .layer(from_fn_with_state(app.clone(), guard::check))
        .layer(from_fn_with_state(app.clone(), request::handle))
        .with_state(app)
}

/// Returns all routes. `/api`, chat and MCP require a user; A2A has its own authentication; health, metrics and
/// documentation are public. `/` redirects to the documentation. Unknown paths respond with 404, other methods with
/// 405. Requests are logged, limited in time and checked by their host and origin.
pub fn router(app: App) -> Router {
    router_with(app, Router::new())
}

/// Returns the routes of health and metrics, with their description.
fn public_routes() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(docs::base_description())
        .routes(routes!(health::health))
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(metrics::metrics))
}

/// Returns the description of all routes that are described at their handlers.
fn api_description() -> utoipa::openapi::OpenApi {
    let (_, mut description) = public_routes().split_for_parts();
    let (_, api) = handlers::routes().split_for_parts();
    description.merge(api);
    description
}

/// Like [`router`], with further routes that need no user.
pub(crate) fn router_with(app: App, extra: Router<App>) -> Router {
    let (api, _) = handlers::routes().split_for_parts();
    let (open, _) = public_routes().split_for_parts();
    api.merge(mcp::routes())
        .route_layer(from_fn_with_state(app.clone(), auth::require_user))
        .merge(a2a::routes(&app))
        .merge(open)
        .merge(extra)
        .merge(docs::pages())
        .route("/", get(|| async { Redirect::temporary("/docs/") }))
        .fallback(|| async { Problem::unknown_path() })
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .layer(from_fn_with_state(app.clone(), auth::expiry::end_streams_with_token))
        .layer(guard::cors(app.clone()))
        .layer(from_fn_with_state(app.clone(), guard::check))
        .layer(from_fn_with_state(app.clone(), request::handle))
        .with_state(app)
}
