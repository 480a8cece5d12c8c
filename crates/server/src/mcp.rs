//! `/mcp`: the tools of the current user for MCP clients.
//!
//! The time limit of requests ends when the response starts. So it does not cut off open streams, nor calls that wait
//! for an answer of the client's user.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::Response;
use axum::routing::post;
use http_body_util::BodyExt;
use tools::mcp::McpCaller;
use tracing::Span;

use crate::auth::CurrentUser;
use crate::open_streams::StreamOwner;
use crate::{App, Problem, idempotency};

/// Returns the route of the MCP endpoint.
pub(crate) fn routes() -> Router<App> {
    Router::new().route("/mcp", post(handle).get(handle).delete(handle))
}

/// Reads the body and passes the request to the MCP service with the tools of the user. Errors of the protocol are in
/// its response. A stream of events counts as open until it ends. Fails with 429 if the user has too many. Fails with 413 if the body is larger than the configured maximum, and with 422 if it is incomplete.
async fn handle(State(app): State<App>, CurrentUser(user): CurrentUser, request: Request) -> Result<Response, Problem> {
    let limit = app.active_config().settings.max_body_bytes;
    let (parts, body) = request.into_parts();
    let body = idempotency::read_body(body, limit).await?.into();
    let open_stream = match parts.method {
        Method::GET => Some(app.open_stream(StreamOwner::User(user.id))?),
        _ => None,
    };
    let caller = McpCaller { user, tools: app.tools(), span: Span::current() };
    let response = app.mcp_endpoint().handle(caller, Request::from_parts(parts, body)).await;
    Ok(response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _counted = &open_stream;
            frame
        }))
    }))
}
