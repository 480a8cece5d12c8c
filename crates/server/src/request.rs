//! The outermost layer of every request: its id, its log entries, its time limit and a response if the handler panics.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assistant::turn::TurnOutcome;
use axum::body::Body;
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use redact::redact;
use tracing::{Instrument, Span, field};

use crate::handlers::time_limit;
use crate::problem::LoggedFailure;
use crate::{App, Problem};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id of a request: the sender's if it is well formed, else a new one (CHAT-5).
#[derive(Clone, Debug)]
pub(crate) struct RequestId(HeaderValue);

impl RequestId {
    /// Returns the id in the header `X-Request-ID` if it has 1 to 64 ASCII letters, digits, `_` and `-`. Otherwise
    /// returns a new id: `req_` and 12 random hexadecimal digits.
    fn from_request(request: &Request, app: &App) -> Self {
        let sent = request.headers().get(REQUEST_ID).filter(|id| is_valid(id.as_bytes())).cloned();
        Self(sent.unwrap_or_else(|| {
            // The last 12 digits of a version 7 UUID are random.
            let id = app.clock().id().simple().to_string();
            HeaderValue::from_str(&format!("req_{}", &id[20..])).unwrap_or(HeaderValue::from_static("req_000000000000"))
        }))
    }

    pub(crate) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<S: Sync> FromRequestParts<S> for RequestId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let id = parts.extensions.get::<Self>().cloned();
        id.ok_or_else(|| Problem::internal("the request has no id"))
    }
}

/// Returns whether the id has 1 to 64 ASCII letters, digits, `_` and `-`.
fn is_valid(id: &[u8]) -> bool {
    (1..=64).contains(&id.len()) && id.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

/// Handles a request: assigns its id, logs and counts it, limits the time until the response starts, and writes the
/// bodies of problems. The path is redacted in the log. The response has the header `X-Request-ID`.
///
/// A handler that panics yields 500, one that takes too long 504. If the client disconnects before the response, the
/// end is logged as a failure, and the request is not counted.
pub(crate) async fn handle(State(app): State<App>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = RequestId::from_request(&request, &app);
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let name = route.as_ref().map_or("other", MatchedPath::as_str);
    let config = app.active_config();
    let limit = time_limit(&method, name, config.settings.request_timeout, config.tools.max_call_time());
    // Traces bypass the redaction of the log.
    let path = redact(request.uri().path()).into_owned();
    // The highest level, so that every log level keeps the id in its entries.
    let span = tracing::error_span!(
        "request",
        request_id = id.as_str(),
        user_id = field::Empty,
        conversation_id = field::Empty,
        otel.name = format!("{method} {name}"),
        otel.kind = "server",
        http.request.method = method.as_str(),
        url.path = path,
        http.response.status_code = field::Empty,
    );
    let mut request = request;
    request.extensions_mut().insert(id.clone());
    let mut response = async {
        let length = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        let input_length: u64 = length.and_then(|length| length.parse().ok()).unwrap_or_default();
        tracing::info!(event = "request_received", method = method.as_str(), path, input_length);
        let abandoned = AbandonedRequestLog { started };
        let response = run_handler(request, next, limit).await;
        std::mem::forget(abandoned);
        log_outcome(&response, started);
        response
    }
    .instrument(span.clone())
    .await;
    span.record("http.response.status_code", response.status().as_u16());
    app.metrics().count_request(method, route, response.status().as_u16(), started.elapsed());
    response.headers_mut().insert(REQUEST_ID, id.0.clone());
    with_problem_body(response, &id)
}

/// Runs the handler within the limit. Responds with 500 if it panics, and with 504 if the response does not start in
/// time. The message of the panic is only logged.
async fn run_handler(request: Request, next: Next, limit: Duration) -> Response {
    let handler = AssertUnwindSafe(next.run(request)).catch_unwind();
    match tokio::time::timeout(limit, handler).await {
        Ok(Ok(response)) => response,
        Ok(Err(panic)) => {
            let message = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let message = message.or_else(|| panic.downcast_ref::<String>().cloned());
            Problem::internal(format!("panic: {}", message.unwrap_or_default())).into_response()
        }
        Err(_) => Problem::timeout(limit).into_response(),
    }
}

/// Logs a server error, if there is one, redacted, and the end of the request. It is a success if the status is below
/// 400 and its turn, if any, succeeded. The end is not logged here if the response has a deferred turn: one that is
/// still running or that another request started.
fn log_outcome(response: &Response, started: Instant) {
    if let Some(LoggedFailure { kind, message, recoverable }) = response.extensions().get::<LoggedFailure>() {
        let error_message = &*redact(message);
        tracing::error!(event = "error_occurred", error_type = kind, error_message, recoverable);
    }
    let success = response.status().as_u16() < StatusCode::BAD_REQUEST.as_u16();
    match response.extensions().get::<TurnSummary>() {
        Some(summary) => summary.log(success, started),
        None => log_completed(success, &[], started),
    }
}

/// Writes the last log entry of a request if it is dropped: the client disconnected before the response.
struct AbandonedRequestLog {
    started: Instant,
}

impl Drop for AbandonedRequestLog {
    fn drop(&mut self) {
        log_completed(false, &[], self.started);
    }
}

/// The outcome of the turn of a request. It accompanies the response as an extension.
#[derive(Clone)]
pub(crate) enum TurnSummary {
    Ended(Arc<TurnOutcome>),
    /// The turn is still running. The last log entry is written when it ends.
    Deferred,
}

impl TurnSummary {
    /// Writes the last log entry of a request, if its turn has ended. The entry reports success only if both the
    /// request and the turn succeeded.
    pub(crate) fn log(&self, success: bool, started: Instant) {
        if let Self::Ended(outcome) = self {
            let tools: Vec<_> = outcome.result.tool_calls.iter().map(|call| call.tool_name.as_str()).collect();
            log_completed(success && outcome.result.success, &tools, started);
        }
    }
}

/// Logs the end of a request with its duration in milliseconds, its success and the names of the called tools.
fn log_completed(success: bool, tools: &[&str], started: Instant) {
    let duration = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::info!(
        event = "request_completed",
        duration_ms = duration,
        total_duration_ms = duration,
        success,
        tools_called.json = serde_json::to_string(tools).unwrap_or_default()
    );
}

/// Writes the body of a problem, which contains the id of the request. A response without a problem is returned
/// unchanged.
fn with_problem_body(mut response: Response, id: &RequestId) -> Response {
    let Some(problem) = response.extensions_mut().remove::<Problem>() else { return response };
    let json = serde_json::to_string(&problem.body(id.as_str())).unwrap_or_default();
    response.headers_mut().remove(header::CONTENT_LENGTH);
    *response.body_mut() = Body::from(json);
    response
}

/// Adds the id of the conversation to the log entries of the request.
pub(crate) fn record_conversation(id: &model::conversation::ConversationId) {
    Span::current().record("conversation_id", field::display(id));
}

/// Adds the id of the user to the log entries of the request.
pub(crate) fn record_user(user: &model::User) {
    Span::current().record("user_id", field::display(user.id));
}
