//! The HTTP door: chat, `/api/…`, `/mcp`, health, metrics and documentation, with everything around a request that all
//! of them share (ids, logs, limits, authentication, errors).
//!
//! A request passes `request` (id, log, time limit), `guard` (host and origin), [`auth`] (who is it, how often) and
//! reaches a handler in `api`, which speaks to the store in one call. Handlers know no SQL and no configuration file.

mod a2a;
pub mod app;
pub mod auth;
mod change;
mod chat;
mod docs;
mod event_stream;
mod guard;
mod handlers;
mod health;
pub mod housekeeping;
mod input;
mod limit;
mod mcp;
mod metrics;
mod notices;
mod peer;
mod problem;
mod request;
pub mod results;
mod seal;
pub mod serve;
pub mod settings;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::response::Redirect;
use axum::routing::get;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use a2a::elsewhere;
pub use app::App;
pub use problem::Problem;
pub use settings::Settings;

/// The assistant as an agent among others, as far as no configuration says otherwise.
pub fn assistant() -> model::agent::Agent {
    chat::Assistant::agent()
}

/// Only how the node is, for one that serves nobody.
pub fn health_router(app: App) -> Router {
    Router::new()
        .route("/health", get(health::health))
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .fallback(|| async { Problem::no_such_path() })
        .layer(from_fn_with_state(app.clone(), guard::check))
        .layer(from_fn_with_state(app.clone(), request::handle))
        .with_state(app)
}

/// Every route there is.
pub fn router(app: App) -> Router {
    let (api, api_docs) = handlers::routes().split_for_parts();
    let (open, mut description) = OpenApiRouter::with_openapi(docs::about())
        .routes(routes!(health::health))
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(metrics::metrics))
        .split_for_parts();
    description.merge(api_docs);

    api.merge(mcp::routes())
        .route_layer(from_fn_with_state(app.clone(), auth::require))
        .merge(a2a::routes(&app))
        .merge(open)
        .merge(docs::pages(description))
        .route("/", get(|| async { Redirect::temporary("/docs/") }))
        .fallback(|| async { Problem::no_such_path() })
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .layer(guard::cors(app.clone()))
        .layer(from_fn_with_state(app.clone(), guard::check))
        .layer(from_fn_with_state(app.clone(), request::handle))
        .with_state(app)
}
