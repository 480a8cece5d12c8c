//! `/mcp`: the tools for any MCP client, for the user who asks.
//!
//! A client that is waited for (a question to its user, an open stream) has its answer begun already, so the time limit
//! of requests does not cut it off.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use tools::mcp::Asker;
use tracing::Span;

use crate::auth::Asking;
use crate::{App, Problem, change};

pub(crate) fn routes() -> Router<App> {
    Router::new().route("/mcp", post(handle).get(handle).delete(handle))
}

async fn handle(State(app): State<App>, Asking(user): Asking, request: Request) -> Result<Response, Problem> {
    let limit = app.in_force().settings.max_body_bytes;
    let (parts, body) = request.into_parts();
    let body = change::read(body, limit).await?.into();
    let asker = Asker { user, tools: app.tools(), span: Span::current() };
    let answer = app.mcp().handle(asker, Request::from_parts(parts, body)).await;
    Ok(answer.map(Body::new))
}
