//! Handles `POST /agents/{agent}/v1/envelope`: A2AMessage of S2 (A2A-5), in addition to the bindings of the
//! specification.
//!
//! Rejected callers get an HTTP error status. All other replies have status 200, and the `type` of the envelope is
//! `response` or `error`, with the codes of JSON-RPC and A2A. A request of type `stream` is answered with server-sent
//! events, one envelope each.

mod message;
mod run;

use std::time::Duration;

use ::a2a::{Binding, CallContext, CallRejection, Error, ErrorKind, Version};
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use model::agent::Endpoint;
use model::agent::endpoint::A2aMethod;
use serde_json::{Value, json};

use self::message::{DecodedEnvelope, EnvelopeCommand, ReplyEnvelope};
use super::authn::{self, OfferedAgent};
use super::caller::A2aCaller;
use super::{AppHandler, policy, updates};
use crate::App;
use ::a2a::AgentHandler;

/// Serves one envelope. The caller is authenticated before the body is read. A rejected caller gets the response of
/// [`reject`]. An execution is answered at its end, without a time limit, or with a stream of its events.
///
/// All later errors are reported in an envelope with status 200. Among them: the agent does not offer HTTP+JSON or the
/// method, or the body or the request is invalid.
pub(super) async fn handle(State(app): State<App>, Path(agent): Path<String>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let call = CallContext {
        agent: Some(agent.clone()),
        binding: Binding::HttpJson,
        version: Version::V03,
        tenant: None,
        requested_extensions: Vec::new(),
        headers: parts.headers,
        extensions: parts.extensions,
    };
    let envelope = ReplyEnvelope::new(&app, &agent);
    let caller = match authn::authorize(&app, &call).await {
        Ok(caller) => caller,
        Err(CallRejection::NotOffered(error)) => return respond(&envelope.error(&error)),
        Err(rejection) => return reject(&envelope, rejection),
    };
    let text = match read_body(&app, &call.headers, body).await {
        Ok(text) => text,
        Err(error) => return respond(&envelope.error(&error)),
    };
    let (envelope, decoded) = envelope.decode(&text);
    let offered = OfferedAgent { entry: caller.entry.clone(), config: app.active_config() };
    let command = match decoded.and_then(|decoded| offered_command(offered.endpoint(), decoded)) {
        Ok(command) => command,
        Err(error) => return respond(&envelope.error(&error)),
    };
    let response = match command {
        EnvelopeCommand::Status => run::status(&app, &offered).await.map(|status| respond(&envelope.response(status))),
        EnvelopeCommand::Execute { draft, is_streaming } => {
            let limit = offered.endpoint().max_input_size(&caller.entry.agent);
            execute(app, caller, *draft, limit, is_streaming, &envelope).await
        }
    };
    response.unwrap_or_else(|error| respond(&envelope.error(&error)))
}

/// Enqueues an execution. Returns a stream of its events, or waits for its result. Fails like [`run::enqueue`] and
/// [`run::wait_for_result`], and with `Busy` if the caller has too many open streams.
async fn execute(
    app: App,
    caller: A2aCaller,
    draft: supervisor::RunDraft,
    limit: u64,
    is_streaming: bool,
    envelope: &ReplyEnvelope,
) -> Result<Response, Error> {
    if !is_streaming {
        let id = run::enqueue(&app, &caller, draft, limit, envelope).await?;
        return run::wait_for_result(&app, &caller, id).await.map(|result| respond(&envelope.response(result)));
    }
    let open_stream = updates::open_stream(&app, &caller)?;
    let id = run::enqueue(&app, &caller, draft, limit, envelope).await?;
    Ok(run::stream_events(app, caller, id, envelope.clone(), open_stream))
}

/// Returns the command of a request. Fails with `UnsupportedOperation` if the endpoint does not allow its method, or if
/// the request is a stream and the endpoint does not support streaming.
fn offered_command(endpoint: &Endpoint, decoded: DecodedEnvelope) -> Result<EnvelopeCommand, Error> {
    let method = match &decoded.command {
        EnvelopeCommand::Status => A2aMethod::Status,
        EnvelopeCommand::Execute { is_streaming: true, .. } if !endpoint.capabilities.streaming_support => {
            return Err(Error::new(ErrorKind::UnsupportedOperation, "this agent does not support streaming"));
        }
        EnvelopeCommand::Execute { .. } => A2aMethod::Execute,
    };
    if endpoint.allows(method) { Ok(decoded.command) } else { Err(policy::not_offered(method.as_str())) }
}

/// Reads the body as text. Its content type must be missing, `application/json` or end with `+json`. Fails with
/// `ContentTypeNotSupported` for another one. Fails with `InvalidRequest` if the body is larger than the maximum of A2A
/// requests, is incomplete, or does not arrive within the request timeout. Fails with `Parse` if it is not UTF-8.
async fn read_body(app: &App, headers: &HeaderMap, body: Body) -> Result<String, Error> {
    let kind = headers.get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap_or_default());
    let plain = kind.map(|kind| kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    if plain.is_some_and(|kind| kind != "application/json" && !kind.ends_with("+json")) {
        return Err(Error::new(
            ErrorKind::ContentTypeNotSupported,
            "the body must have the content type application/json",
        ));
    }
    let limit = AppHandler(app.clone()).max_request_bytes();
    let read_timeout = app.active_config().settings.request_timeout;
    let collected = tokio::time::timeout(read_timeout, Limited::new(body, limit).collect()).await;
    let collected = collected.map_err(|_| Error::new(ErrorKind::InvalidRequest, "the body did not arrive in time"))?;
    let bytes = match collected {
        Ok(collected) => collected.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            return Err(Error::new(ErrorKind::InvalidRequest, format!("the body must have at most {limit} bytes")));
        }
        Err(_) => return Err(Error::new(ErrorKind::InvalidRequest, "the body is incomplete")),
    };
    String::from_utf8(bytes.into()).map_err(|_| Error::new(ErrorKind::Parse, "the body must be valid UTF-8"))
}

fn respond(envelope: &Value) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], envelope.to_string()).into_response()
}

/// Returns the reply to a rejected caller: an error envelope with an HTTP status. It is 404 for an unknown agent, 401
/// with `WWW-Authenticate`, 429 with `Retry-After`, or 403. The code in the envelope is always `InvalidRequest`. A
/// binding that is not offered has status 200 and its own error.
fn reject(envelope: &ReplyEnvelope, rejection: CallRejection) -> Response {
    let (status, message, header) = match rejection {
        CallRejection::UnknownAgent => (StatusCode::NOT_FOUND, "the agent was not found".to_owned(), None),
        CallRejection::Unauthenticated { challenge } => {
            let challenge = HeaderValue::from_str(&challenge).unwrap_or(HeaderValue::from_static("Bearer"));
            let header = (header::WWW_AUTHENTICATE, challenge);
            (StatusCode::UNAUTHORIZED, "valid credentials are required".to_owned(), Some(header))
        }
        CallRejection::RateLimited { retry_after } => {
            let seconds = seconds(retry_after);
            let header = (header::RETRY_AFTER, HeaderValue::from(seconds));
            (StatusCode::TOO_MANY_REQUESTS, format!("too many requests; try again in {seconds} s"), Some(header))
        }
        CallRejection::Forbidden(reason) => (StatusCode::FORBIDDEN, reason, None),
        CallRejection::NotOffered(error) => return respond(&envelope.error(&error)),
    };
    let mut response = respond(&envelope.error(&Error::new(ErrorKind::InvalidRequest, message)));
    *response.status_mut() = status;
    response.headers_mut().extend(header);
    response
}

/// Returns the duration in seconds, rounded up.
fn seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

/// Returns an error in the form of the envelope: `code` is the JSON-RPC code, then `message` and `data.reason`. The
/// violations are in `data.errors`, which is omitted if there are none.
fn error_json(error: &Error) -> Value {
    let mut body = json!({"code": error.kind.json_rpc_code(), "message": error.message});
    if !error.violations.is_empty() {
        let fields = error.violations.iter().map(|(field, message)| json!({"field": field, "message": message}));
        body["data"] = json!({"reason": error.kind.reason(), "errors": fields.collect::<Vec<_>>()});
    } else {
        body["data"] = json!({"reason": error.kind.reason()});
    }
    body
}
