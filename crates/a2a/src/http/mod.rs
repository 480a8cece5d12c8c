//! The JSON-RPC and HTTP+JSON bindings, for both versions, at the same paths.
//!
//! [`router`] serves all agents. [`well_known_router`] serves the card of the default agent. Every request is checked
//! in the same order: path, method, caller ([`AgentHandler::authorize`]), content. Errors before the first event of a
//! stream are plain responses. At most [`AgentHandler::max_request_bytes`] of a body are read.

mod body;
mod cards;
mod decode;
mod error_response;
mod json_rpc;
mod query;
mod rest;
mod route;
mod sse;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::any;
use http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Method, StatusCode};
use serde::Serialize;
use serde_json::Value;

use self::error_response::ErrorResponse;
use self::route::{AgentRoute, RouteTarget};
pub use self::sse::{STALLED, StallErrorEvent};
use crate::types::AgentCard;
use crate::{AgentHandler, Binding, CallContext, Error, ErrorKind, Version, extensions};

/// Returns a card as JSON. For [`Version::V03`] it serves both versions, for [`Version::V10`] only 1.x.
///
/// Fails if the card cannot be encoded.
pub fn card_json(card: AgentCard, version: Version) -> Result<Value, Error> {
    cards::value(card, version)
}

/// The media type of responses.
const JSON: &str = "application/json";

/// The media type of responses that 1.x defines.
const A2A_JSON: &str = "application/a2a+json";

/// The HTTP methods of an agent card.
const CARD_METHODS: &str = "GET, HEAD, OPTIONS";

/// Returns the routes below `/{agent}`, to be nested under the path of the agents.
///
/// Sibling routes that start with a parameter must also name it `agent`.
pub fn router<H: AgentHandler>(handler: H) -> Router {
    let serve = move |request: Request| serve(handler.clone(), request);
    Router::new()
        .route("/{agent}", any(serve.clone()))
        .route("/{agent}/", any(serve.clone()))
        .route("/{agent}/{*rest}", any(serve))
}

/// Returns the routes of the default agent's card: `/.well-known/agent-card.json` and, for early clients, `agent.json`.
pub fn well_known_router<H: AgentHandler>(handler: H) -> Router {
    let card = move |request: Request| {
        let handler = handler.clone();
        async move { card(handler, None, request).await }
    };
    Router::new().route("/.well-known/agent-card.json", any(card.clone())).route("/.well-known/agent.json", any(card))
}

/// Serves one request below the path of an agent: its card, JSON-RPC or HTTP+JSON. Responds with 404 to an unknown
/// path, with 405 to a wrong method, and with 204 to OPTIONS. HEAD gets the headers without the body. A tenant in the
/// path that equals the agent is ignored. Callers are authorized later, and not for cards.
async fn serve<H: AgentHandler>(handler: H, request: Request) -> Response {
    let Some(AgentRoute { agent, tenant, target }) = AgentRoute::parse(request.uri().path()) else {
        let version = Version::from_request(request.headers(), request.uri().query()).unwrap_or(Version::V10);
        return ErrorResponse::no_such_path().into_response(Binding::HttpJson, version);
    };
    match target {
        RouteTarget::Card => card(handler, Some(agent), request).await,
        RouteTarget::JsonRpc if request.method() == Method::OPTIONS => options(json_rpc::ALLOWED),
        RouteTarget::JsonRpc if request.method() != Method::POST => {
            let incoming = IncomingRequest::new(Binding::JsonRpc, Some(agent), None, request);
            ErrorResponse::wrong_method(json_rpc::ALLOWED).into_response(Binding::HttpJson, incoming.call.version)
        }
        RouteTarget::JsonRpc => {
            json_rpc::serve(handler, IncomingRequest::new(Binding::JsonRpc, Some(agent), None, request)).await
        }
        RouteTarget::Rest(resource) => {
            let tenant = tenant.filter(|tenant| *tenant != agent);
            let head = request.method() == Method::HEAD;
            let incoming = IncomingRequest::new(Binding::HttpJson, Some(agent), tenant, request);
            let response = rest::serve(handler, resource, incoming).await;
            if head { without_body(response) } else { response }
        }
    }
}

/// Serves the public card of an agent; `None` is the default agent. Callers are not authorized. Supports GET, HEAD and
/// OPTIONS, and responds with 405 to other methods. An unsupported version gets the card of 1.x. Responds with an error
/// if the handler rejects the call or the card cannot be encoded.
async fn card<H: AgentHandler>(handler: H, agent: Option<String>, request: Request) -> Response {
    let head = request.method() == Method::HEAD;
    let method = request.method().clone();
    let IncomingRequest { call, .. } = IncomingRequest::new(Binding::HttpJson, agent, None, request);
    if method == Method::OPTIONS {
        return options(CARD_METHODS);
    }
    if !head && method != Method::GET {
        return ErrorResponse::wrong_method(CARD_METHODS).into_response(Binding::HttpJson, call.version);
    }
    let response = match handler.card(&call).await {
        Ok(card) => {
            cards::respond(card, call.version, &call.headers).map_err(|error| ErrorResponse::new(call.version, error))
        }
        Err(rejection) => Err(ErrorResponse::rejected(call.version, rejection)),
    };
    let response = response.unwrap_or_else(|error| error.into_response(Binding::HttpJson, call.version));
    if head { without_body(response) } else { response }
}

/// A request before its body is read.
struct IncomingRequest {
    method: Method,
    query: Option<String>,
    call: CallContext,
    /// The error of an unsupported version. It is reported in the form of 1.x.
    version_error: Option<Error>,
    body: Body,
}

impl IncomingRequest {
    /// Returns the request with its negotiated version and requested extensions. If the version is not supported, it is
    /// 1.x and `version_error` is set.
    fn new(binding: Binding, agent: Option<String>, tenant: Option<String>, request: Request) -> Self {
        let (parts, body) = request.into_parts();
        let query = parts.uri.query();
        let (version, version_error) = match Version::from_request(&parts.headers, query) {
            Ok(version) => (version, None),
            Err(error) => (Version::V10, Some(error)),
        };
        let call = CallContext {
            agent,
            binding,
            version,
            tenant,
            requested_extensions: extensions::requested(&parts.headers),
            headers: parts.headers,
            extensions: parts.extensions,
        };
        Self { method: parts.method, query: query.map(str::to_owned), call, version_error, body }
    }

    /// Returns the response header that lists the active extensions, or `None` if none are requested or active.
    fn extensions_header<H: AgentHandler>(&self, handler: &H) -> Option<(http::HeaderName, HeaderValue)> {
        if self.call.requested_extensions.is_empty() {
            return None;
        }
        extensions::response_header(self.call.version, &handler.active_extensions(&self.call))
    }
}

fn reply(status: StatusCode, content_type: &'static str, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn options(allowed: &'static str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// Returns the response to a HEAD request: the headers without the body. `Content-Length` is that of the body if it is
/// known, except for a 304.
fn without_body(response: Response) -> Response {
    use axum::body::HttpBody;
    let length = response.body().size_hint().exact();
    let mut response = response.map(|_| Body::empty());
    if let Some(length) = length.filter(|_| response.status() != StatusCode::NOT_MODIFIED) {
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}

/// Appends the value as JSON. Fails with an internal error if it cannot be encoded; then a part may have been written.
fn json(out: &mut Vec<u8>, value: &impl Serialize) -> Result<(), Error> {
    let failed =
        |error: serde_json::Error| Error::new(ErrorKind::Internal, format!("the response cannot be encoded: {error}"));
    serde_json::to_writer(out, value).map_err(failed)
}
