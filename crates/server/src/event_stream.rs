//! Responses with a stream of server-sent events, and requests to resume one.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt};
use model::Invalid;

use crate::open_streams::OpenStream;
use crate::stalled::StallNotice;

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

/// A part of an event stream that is sent at once: complete events, or a piece of a long one.
#[derive(Debug, Default)]
pub(crate) struct EventChunk {
    pub(crate) text: String,
    /// The id of the last event that ends in this chunk, if it has one.
    pub(crate) last_id: Option<i64>,
    /// The chunk ends inside of an event.
    pub(crate) is_inside: bool,
}

impl From<String> for EventChunk {
    /// Returns a chunk of complete events without ids.
    fn from(text: String) -> Self {
        Self { text, last_id: None, is_inside: false }
    }
}

/// The part of a stream that was passed to the connection.
#[derive(Clone, Copy, Default)]
struct SentPart {
    last_id: Option<i64>,
    is_inside: bool,
}

impl SentPart {
    fn add(&mut self, chunk: &EventChunk) {
        self.last_id = chunk.last_id.or(self.last_id);
        self.is_inside = chunk.is_inside;
    }

    /// Returns the end of a stream whose client has read nothing for too long: a comment and `event`. An event that is
    /// not complete stays so, and clients discard it.
    fn stall_notice(self, event: &str) -> Bytes {
        let resume = match self.last_id {
            Some(id) => format!("resume with Last-Event-ID: {id}"),
            None => "request it again".to_owned(),
        };
        // A line break ends an incomplete field, and has no effect after a complete event.
        let (end, event) = if self.is_inside { ("\n", "") } else { ("\n\n", event) };
        format!("\n: the stream has ended because nothing was read for too long; {resume}{end}{event}").into()
    }
}

/// Returns a response that sends chunks of events as they arrive, and a comment after every 15 seconds without one. The
/// body ends when `chunks` ends. The stream counts as open until then, or until the client disconnects or stalls.
pub(crate) fn stream(chunks: impl Stream<Item = EventChunk> + Send + 'static, open_stream: OpenStream) -> Response {
    stream_with_stall_event(chunks, open_stream, String::new())
}

/// Like [`stream`]. `stall_event` is the last event for a client that reads nothing.
pub(crate) fn stream_with_stall_event(
    chunks: impl Stream<Item = EventChunk> + Send + 'static,
    open_stream: OpenStream,
    stall_event: String,
) -> Response {
    let sent = Arc::new(Mutex::new(SentPart::default()));
    let notice = StallNotice::new({
        let sent = sent.clone();
        move || sent.lock().unwrap_or_else(PoisonError::into_inner).stall_notice(&stall_event)
    });
    let state = (Box::pin(chunks), open_stream, sent);
    let body = futures::stream::unfold(state, |(mut chunks, open_stream, sent)| async move {
        let is_inside = sent.lock().unwrap_or_else(PoisonError::into_inner).is_inside;
        // A comment must not interrupt an event.
        let interval = if is_inside { Duration::MAX } else { KEEP_ALIVE_INTERVAL };
        let text = match tokio::time::timeout(interval, chunks.next()).await {
            Ok(chunk) => {
                let chunk = chunk?;
                sent.lock().unwrap_or_else(PoisonError::into_inner).add(&chunk);
                chunk.text
            }
            Err(_) => sse::KEEP_ALIVE.to_owned(),
        };
        Some((Ok::<_, Infallible>(text), (chunks, open_stream, sent)))
    });
    let mut response = respond(Body::from_stream(body));
    response.extensions_mut().insert(notice);
    response
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_stalled_stream_names_the_last_complete_event() {
        // SEC-5
        let mut sent = SentPart::default();
        let notice = |sent: SentPart| String::from_utf8(sent.stall_notice("data: x\n\n").to_vec()).unwrap();
        assert!(notice(sent).ends_with("request it again\n\ndata: x\n\n"));
        sent.add(&EventChunk { text: String::new(), last_id: Some(4), is_inside: false });
        sent.add(&EventChunk { text: String::new(), last_id: None, is_inside: true });
        let text = notice(sent);
        assert!(text.starts_with("\n: ") && text.ends_with("; resume with Last-Event-ID: 4\n"), "{text}");
        assert!(!text.contains("\n\n"), "an empty line would complete the event");
    }
}
