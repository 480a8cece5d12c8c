//! JSON-RPC and HTTP+JSON, for both versions, at the same paths.
//!
//! [`router`] serves one base per agent, [`well_known`] the card of whoever is meant where nobody is named. The order is
//! always the same: the path, the method, who calls ([`Handler::admit`]), and only then what is asked for. Errors that are
//! found before a stream begins are answered plainly; a body is never read further than [`Handler::max_request`].

mod body;
mod cards;
mod decode;
mod fault;
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

use self::fault::Fault;
use self::route::{Route, Target};
use crate::types::AgentCard;
use crate::{Binding, Call, Error, Handler, Kind, Version, extensions};

/// A card as JSON: one that both versions read, or one of 1.x alone.
pub fn card_json(card: AgentCard, version: Version) -> Result<Value, Error> {
    cards::value(card, version)
}

/// What is answered.
const JSON: &str = "application/json";

/// The same by the name that 1.x would like it to have.
const A2A_JSON: &str = "application/a2a+json";

/// What an agent's card can be asked for.
const CARD: &str = "GET, HEAD, OPTIONS";

/// Everything below `/{agent}`, to be nested where agents are. Routes beside it that begin with a parameter must call it
/// `agent`, too.
pub fn router<H: Handler>(handler: H) -> Router {
    let serve = move |request: Request| serve(handler.clone(), request);
    Router::new()
        .route("/{agent}", any(serve.clone()))
        .route("/{agent}/", any(serve.clone()))
        .route("/{agent}/{*rest}", any(serve))
}

/// The card of the agent that is meant where none is named, at the places where clients look for it.
pub fn well_known<H: Handler>(handler: H) -> Router {
    let card = move |request: Request| {
        let handler = handler.clone();
        async move { card(handler, None, request).await }
    };
    Router::new().route("/.well-known/agent-card.json", any(card.clone())).route("/.well-known/agent.json", any(card))
}

async fn serve<H: Handler>(handler: H, request: Request) -> Response {
    let Some(Route { agent, tenant, target }) = Route::of(request.uri().path()) else {
        let version = Version::of(request.headers(), request.uri().query()).unwrap_or(Version::V10);
        return Fault::no_such_path().respond(Binding::HttpJson, version);
    };
    match target {
        Target::Card => card(handler, Some(agent), request).await,
        Target::JsonRpc if request.method() == Method::OPTIONS => options(json_rpc::ALLOWED),
        Target::JsonRpc if request.method() != Method::POST => {
            let incoming = Incoming::new(Binding::JsonRpc, Some(agent), None, request);
            Fault::wrong_method(json_rpc::ALLOWED).respond(Binding::HttpJson, incoming.call.version)
        }
        Target::JsonRpc => json_rpc::serve(handler, Incoming::new(Binding::JsonRpc, Some(agent), None, request)).await,
        Target::Rest(place) => {
            let tenant = tenant.filter(|tenant| *tenant != agent);
            let head = request.method() == Method::HEAD;
            let incoming = Incoming::new(Binding::HttpJson, Some(agent), tenant, request);
            let response = rest::serve(handler, place, incoming).await;
            if head { without_body(response) } else { response }
        }
    }
}

async fn card<H: Handler>(handler: H, agent: Option<String>, request: Request) -> Response {
    let head = request.method() == Method::HEAD;
    let method = request.method().clone();
    let Incoming { call, .. } = Incoming::new(Binding::HttpJson, agent, None, request);
    if method == Method::OPTIONS {
        return options(CARD);
    }
    if !head && method != Method::GET {
        return Fault::wrong_method(CARD).respond(Binding::HttpJson, call.version);
    }
    let response = match handler.card(&call).await {
        Ok(card) => cards::respond(card, call.version, &call.headers).map_err(|error| Fault::new(call.version, error)),
        Err(denied) => Err(Fault::denied(call.version, denied)),
    };
    let response = response.unwrap_or_else(|fault| fault.respond(Binding::HttpJson, call.version));
    if head { without_body(response) } else { response }
}

/// A request before it is looked into.
struct Incoming {
    method: Method,
    query: Option<String>,
    call: Call,
    /// The version that was asked for, where nobody speaks it. The answer is one of 1.x.
    unspoken: Option<Error>,
    body: Body,
}

impl Incoming {
    fn new(binding: Binding, agent: Option<String>, tenant: Option<String>, request: Request) -> Self {
        let (parts, body) = request.into_parts();
        let query = parts.uri.query();
        let (version, unspoken) = match Version::of(&parts.headers, query) {
            Ok(version) => (version, None),
            Err(error) => (Version::V10, Some(error)),
        };
        let call = Call {
            agent,
            binding,
            version,
            tenant,
            extensions_wanted: extensions::wanted(&parts.headers),
            headers: parts.headers,
            extensions: parts.extensions,
        };
        Self { method: parts.method, query: query.map(str::to_owned), call, unspoken, body }
    }

    /// What an answer says about extensions.
    fn activated<H: Handler>(&self, handler: &H) -> Option<(http::HeaderName, HeaderValue)> {
        if self.call.extensions_wanted.is_empty() {
            return None;
        }
        extensions::header(self.call.version, &handler.activates(&self.call))
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

/// What the answer would have been.
fn without_body(response: Response) -> Response {
    use axum::body::HttpBody;
    let length = response.body().size_hint().exact();
    let mut response = response.map(|_| Body::empty());
    if let Some(length) = length.filter(|_| response.status() != StatusCode::NOT_MODIFIED) {
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}

fn json(out: &mut Vec<u8>, value: &impl Serialize) -> Result<(), Error> {
    let failed =
        |error: serde_json::Error| Error::new(Kind::Internal, format!("the answer cannot be written: {error}"));
    serde_json::to_writer(out, value).map_err(failed)
}
