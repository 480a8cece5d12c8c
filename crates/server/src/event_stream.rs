//! Responses whose body is a stream of server-sent events.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

/// Returns one event as text. An empty name is none. Names and ids of callers contain no line breaks; an event with one is
/// logged and left out.
pub(crate) fn encode(id: Option<&str>, name: &str, data: &str) -> String {
    let mut bytes = Vec::with_capacity(data.len() + 64);
    if let Err(error) = (sse::Event { id, name, data: data.as_bytes() }).encode(&mut bytes) {
        tracing::error!(name, %error, "an event was not sent");
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// Returns a response whose body is a stream of events.
pub(crate) fn respond(body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        // Asks proxies not to hold events back.
        (header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, body).into_response()
}
