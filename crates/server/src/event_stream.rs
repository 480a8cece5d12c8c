//! Responses with a stream of server-sent events, and requests to resume one.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt};
use model::Invalid;

use crate::open_streams::OpenStream;

/// A comment is sent after this time without an event, so that proxies and clients keep the stream open.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Encodes one event. An empty name is left out. Names and ids must not contain line breaks; an event with one is
/// logged and encoded as nothing.
pub(crate) fn encode(id: Option<&str>, name: &str, data: &str) -> String {
    let mut bytes = Vec::with_capacity(data.len() + 64);
    if let Err(error) = (sse::SseEvent { id, name, data: data.as_bytes() }).encode(&mut bytes) {
        tracing::error!(name, %error, "an event could not be encoded and was dropped");
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// Returns the `Last-Event-ID` of a request, or `None` without that header. Fails if it is not a number that fits `T`.
pub(crate) fn last_event_id<T: TryFrom<u64>>(headers: &HeaderMap) -> Result<Option<T>, Invalid> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.trim().parse::<u64>().ok());
    let id = number.and_then(|number| T::try_from(number).ok());
    id.map(Some).ok_or_else(|| Invalid::one("Last-Event-ID", "number", "must be the id of an event"))
}

/// Returns a response that sends encoded events as they arrive, and a comment after every 15 seconds without an event.
/// The body ends when `events` ends. The stream counts as open until then, or until the client disconnects.
pub(crate) fn stream(events: impl Stream<Item = String> + Send + 'static, open_stream: OpenStream) -> Response {
    let state = (Box::pin(events), open_stream);
    let body = futures::stream::unfold(state, |(mut events, open_stream)| async move {
        let text = match tokio::time::timeout(KEEP_ALIVE_INTERVAL, events.next()).await {
            Ok(text) => text?,
            Err(_) => sse::KEEP_ALIVE.to_owned(),
        };
        Some((Ok::<_, Infallible>(text), (events, open_stream)))
    });
    respond(Body::from_stream(body))
}

/// Returns a response with encoded events as its body. Its headers ask clients not to cache and proxies not to buffer
/// it.
pub(crate) fn respond(body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        // Asks proxies not to buffer events.
        (header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, body).into_response()
}
