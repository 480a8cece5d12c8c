//! `POST /agents/{agent}/v1/envelope`: S2's A2AMessage (A2A-5), beside the bindings of the specification.
//!
//! Whoever may not call gets the status of HTTP that says so. Whoever may gets 200, always, and the envelope says the rest:
//! `type` is `response` or `error`, with the codes of JSON-RPC and A2A; `type: "stream"` is answered by Server-Sent Events,
//! an envelope each.

mod message;
mod run;

use std::time::Duration;

use ::a2a::{Binding, Call, Denied, Error, Kind, Version};
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use model::agent::Endpoint;
use model::agent::endpoint::Method;
use serde_json::{Value, json};

use self::message::{Asked, Envelope, Wish};
use super::admission::{self, Offered};
use super::{A2a, terms};
use crate::App;
use ::a2a::Handler;

pub(super) async fn handle(State(app): State<App>, Path(agent): Path<String>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let call = Call {
        agent: Some(agent.clone()),
        binding: Binding::HttpJson,
        version: Version::V03,
        tenant: None,
        extensions_wanted: Vec::new(),
        headers: parts.headers,
        extensions: parts.extensions,
    };
    let envelope = Envelope::begin(&app, &agent);
    let caller = match admission::admit(&app, &call).await {
        Ok(caller) => caller,
        Err(Denied::Refused(error)) => return respond(&envelope.error(&error)),
        Err(denied) => return deny(&envelope, denied),
    };
    let text = match read(&app, &call.headers, body).await {
        Ok(text) => text,
        Err(error) => return respond(&envelope.error(&error)),
    };
    let (envelope, asked) = envelope.open(&text);
    let offered = Offered { entry: caller.entry.clone(), in_force: app.in_force() };
    let wish = match asked.and_then(|asked| wish(offered.endpoint(), asked)) {
        Ok(wish) => wish,
        Err(error) => return respond(&envelope.error(&error)),
    };
    let answer = match wish {
        Wish::Status => run::status(&app, &offered).await.map(|status| respond(&envelope.response(status))),
        Wish::Execute { draft, streams } => {
            let limit = offered.endpoint().max_input_size(&caller.entry.agent);
            match run::begin(&app, &caller, *draft, limit, &envelope).await {
                Ok(id) if streams => Ok(run::follow(app, caller, id, envelope.clone())),
                Ok(id) => run::end(&app, &caller, id).await.map(|result| respond(&envelope.response(result))),
                Err(error) => Err(error),
            }
        }
    };
    answer.unwrap_or_else(|error| respond(&envelope.error(&error)))
}

/// What is wanted, if it is offered.
fn wish(endpoint: &Endpoint, asked: Asked) -> Result<Wish, Error> {
    let method = match &asked.wish {
        Wish::Status => Method::Status,
        Wish::Execute { streams: true, .. } if !endpoint.capabilities.streaming_support => {
            return Err(Error::new(Kind::UnsupportedOperation, "this agent does not stream"));
        }
        Wish::Execute { .. } => Method::Execute,
    };
    if endpoint.allows(method) { Ok(asked.wish) } else { Err(terms::refused(method.as_str())) }
}

/// The body, within its limits.
async fn read(app: &App, headers: &HeaderMap, body: Body) -> Result<String, Error> {
    let kind = headers.get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap_or_default());
    let plain = kind.map(|kind| kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    if plain.is_some_and(|kind| kind != "application/json" && !kind.ends_with("+json")) {
        return Err(Error::new(Kind::ContentTypeNotSupported, "the body must be JSON: application/json"));
    }
    let limit = A2a(app.clone()).max_request();
    let patience = app.in_force().settings.request_timeout;
    let collected = tokio::time::timeout(patience, Limited::new(body, limit).collect()).await;
    let collected = collected.map_err(|_| Error::new(Kind::InvalidRequest, "the body did not arrive in time"))?;
    let bytes = match collected {
        Ok(collected) => collected.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            return Err(Error::new(Kind::InvalidRequest, format!("the body must have at most {limit} bytes")));
        }
        Err(_) => return Err(Error::new(Kind::InvalidRequest, "the body must arrive completely")),
    };
    String::from_utf8(bytes.into()).map_err(|_| Error::new(Kind::Parse, "the body must be valid UTF-8"))
}

fn respond(envelope: &Value) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], envelope.to_string()).into_response()
}

/// Who may not call is told so by HTTP, and in the envelope once more.
fn deny(envelope: &Envelope, denied: Denied) -> Response {
    let (status, message, more) = match denied {
        Denied::NoAgent => (StatusCode::NOT_FOUND, "there is no such agent".to_owned(), None),
        Denied::Unauthenticated { challenge } => {
            let challenge = HeaderValue::from_str(&challenge).unwrap_or(HeaderValue::from_static("Bearer"));
            let more = (header::WWW_AUTHENTICATE, challenge);
            (StatusCode::UNAUTHORIZED, "valid credentials are required".to_owned(), Some(more))
        }
        Denied::TooMany { retry_after } => {
            let seconds = seconds(retry_after);
            let more = (header::RETRY_AFTER, HeaderValue::from(seconds));
            (StatusCode::TOO_MANY_REQUESTS, format!("too many requests; try again in {seconds} s"), Some(more))
        }
        Denied::Forbidden(why) => (StatusCode::FORBIDDEN, why, None),
        Denied::Refused(error) => return respond(&envelope.error(&error)),
    };
    let mut response = respond(&envelope.error(&Error::new(Kind::InvalidRequest, message)));
    *response.status_mut() = status;
    response.headers_mut().extend(more);
    response
}

/// Whole seconds, and not too few.
fn seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

/// An error as the envelope has it.
fn fault(error: &Error) -> Value {
    let mut fault = json!({"code": error.kind.code(), "message": error.message});
    if !error.violations.is_empty() {
        let fields = error.violations.iter().map(|(field, message)| json!({"field": field, "message": message}));
        fault["data"] = json!({"reason": error.kind.reason(), "errors": fields.collect::<Vec<_>>()});
    } else {
        fault["data"] = json!({"reason": error.kind.reason()});
    }
    fault
}
