//! Sends streams as server-sent events.
//!
//! One event has one line of data. Events that are ready at the same time are sent together. Comments keep an idle
//! connection open.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures::{FutureExt, Stream, StreamExt};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue};
use serde::Serialize;
use sse::SseEvent;
use tokio::time::{Instant, Sleep};

use super::error_response::ErrorResponse;
use crate::types::StreamResponse;
use crate::v03::{self, rest::python};
use crate::{Error, ErrorKind, UpdateStream, Version};

/// The time without events after which a comment is sent.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// The buffer size from which a chunk is sent, in bytes. A stream whose client reads nothing holds one chunk.
const CHUNK_SIZE: usize = 4 * 1024;

/// The last event for a client that has read nothing for too long. Attached to streaming responses, so that the server
/// that sends them can end them. It follows complete events only.
#[derive(Clone, Debug)]
pub struct StallErrorEvent(pub Bytes);

/// The message for a client that has read nothing for too long.
pub const STALLED: &str = "the client has read nothing for too long; the task continues, subscribe to it again";

/// The encoding of events.
pub(super) enum EventFormat {
    /// Every event is a JSON-RPC response to the request with this id. The id is JSON.
    JsonRpc { id: String },
    /// Every event is an update. `is_python` is described in [`python`].
    Rest { is_python: bool },
}

/// Returns a streaming response with the updates. Fails if the first item is ready and is an error, so that it becomes
/// a plain response. Later errors are the last event. An update that is ready is written at once.
pub(super) fn respond(version: Version, format: EventFormat, mut updates: UpdateStream) -> Result<Response, Error> {
    let first = match updates.next().now_or_never() {
        Some(Some(Err(error))) => return Err(error),
        Some(Some(Ok(update))) => Some(update),
        Some(None) | None => None,
    };
    let mut events = EventBody::new(version, format, updates, KEEP_ALIVE_INTERVAL);
    let notice = events.stall_notice();
    if let Some(update) = first {
        events.write(update);
    }
    let mut response = with_headers(Body::from_stream(events));
    response.extensions_mut().insert(notice);
    Ok(response)
}

/// Returns a streaming response with one error event.
pub(super) fn failed(version: Version, format: EventFormat, error: Error) -> Response {
    let mut events = EventBody::new(version, format, futures::stream::empty().boxed(), KEEP_ALIVE_INTERVAL);
    events.end(error);
    with_headers(Body::from(events.buffer))
}

/// Returns a response with the headers of an event stream. It must not be cached, and proxies must not buffer it.
fn with_headers(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Prevents proxies from buffering events.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// The body of a streaming response.
struct EventBody {
    updates: UpdateStream,
    version: Version,
    format: EventFormat,
    /// Encoded events that are not sent yet.
    buffer: Vec<u8>,
    /// The data of the current event. The allocation is reused within a chunk.
    data: Vec<u8>,
    /// True after the last event was written to the buffer.
    ended: bool,
    keep_alive_interval: Duration,
    keep_alive: Pin<Box<Sleep>>,
}

impl Stream for EventBody {
    type Item = Result<Bytes, Infallible>;

    /// Returns the next chunk: all events that are ready, up to about 4 KiB. After 15 seconds without events it is a
    /// comment. An error of the updates becomes the last event. Ends after the last update. Never fails.
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while !self.ended && self.buffer.len() < CHUNK_SIZE {
            match self.updates.poll_next_unpin(context) {
                Poll::Ready(Some(Ok(update))) => self.write(update),
                Poll::Ready(Some(Err(error))) => self.end(error),
                Poll::Ready(None) => self.ended = true,
                Poll::Pending => break,
            }
        }
        // Not kept, because the client may read nothing for a long time.
        self.data = Vec::new();
        if self.buffer.is_empty() {
            if self.ended {
                return Poll::Ready(None);
            }
            if self.keep_alive.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.buffer.extend_from_slice(sse::KEEP_ALIVE.as_bytes());
        }
        let keep_alive_interval = self.keep_alive_interval;
        self.keep_alive.as_mut().reset(Instant::now() + keep_alive_interval);
        Poll::Ready(Some(Ok(Bytes::from(std::mem::take(&mut self.buffer)))))
    }
}

impl EventBody {
    /// Returns an empty body. The first comment is sent after `keep_alive_interval` without events.
    fn new(version: Version, format: EventFormat, updates: UpdateStream, keep_alive_interval: Duration) -> Self {
        let keep_alive = Box::pin(tokio::time::sleep(keep_alive_interval));
        Self {
            updates,
            version,
            format,
            buffer: Vec::new(),
            data: Vec::new(),
            ended: false,
            keep_alive_interval,
            keep_alive,
        }
    }

    /// Encodes an update into the buffer, in the form of the binding and the version. If it cannot be encoded, the
    /// stream ends with an error event.
    fn write(&mut self, mut update: StreamResponse) {
        self.data.clear();
        let data = &mut self.data;
        let written = match (&self.format, self.version) {
            (EventFormat::JsonRpc { id }, version) => {
                data.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
                data.extend_from_slice(id.as_bytes());
                data.extend_from_slice(br#","result":"#);
                let written = match version {
                    Version::V10 => json(data, &update),
                    Version::V03 => json(data, &v03::StreamResult::from(update)),
                };
                data.push(b'}');
                written
            }
            (EventFormat::Rest { .. }, Version::V10) => json(data, &update),
            (EventFormat::Rest { is_python }, Version::V03) => {
                if *is_python {
                    python::encode_update(&mut update);
                }
                json(data, &v03::rest::StreamResponse::from(update))
            }
        };
        if let Err(error) = written.and_then(|()| encode(&mut self.buffer, "", &self.data)) {
            self.end(error);
        }
    }

    /// Writes the error as the last event and ends the stream. In HTTP+JSON the event has the name `error`; in JSON-RPC
    /// it is a response with the id of the request.
    fn end(&mut self, error: Error) {
        self.ended = true;
        let event = self.error_event(error);
        self.buffer.extend_from_slice(&event);
    }

    fn error_event(&self, error: Error) -> Vec<u8> {
        let response = ErrorResponse::new(self.version, error);
        let (name, body) = match &self.format {
            EventFormat::JsonRpc { id } => ("", response.json_rpc_body(self.version, id)),
            EventFormat::Rest { .. } => ("error", response.rest_body(self.version)),
        };
        let mut event = Vec::new();
        // Neither name contains a line break.
        let _ = encode(&mut event, name, &body);
        event
    }

    /// Returns the last event for a client that reads nothing.
    fn stall_notice(&self) -> StallErrorEvent {
        StallErrorEvent(self.error_event(Error::new(ErrorKind::Busy, STALLED)).into())
    }
}

/// Appends an event. Fails if the name contains a line break.
fn encode(out: &mut Vec<u8>, name: &str, data: &[u8]) -> Result<(), Error> {
    let event = SseEvent { name, data, ..SseEvent::default() };
    event.encode(out).map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))
}

fn json(out: &mut Vec<u8>, value: &impl Serialize) -> Result<(), Error> {
    super::json(out, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Message, Part, Role};

    fn message(text: &str) -> Result<StreamResponse, Error> {
        let parts = vec![Part::text(text)];
        let message_id = "m".to_owned();
        let role = Role::Agent;
        Ok(StreamResponse::Message(Message {
            message_id,
            context_id: None,
            task_id: None,
            role,
            parts,
            metadata: None,
            extensions: None,
            reference_task_ids: None,
        }))
    }

    fn events(updates: UpdateStream) -> EventBody {
        let format = EventFormat::JsonRpc { id: "1".to_owned() };
        EventBody::new(Version::V10, format, updates, Duration::from_millis(5))
    }

    // A2A-1
    #[tokio::test]
    async fn idle_streams_send_comments() {
        let updates = futures::stream::iter([message("a")]).chain(futures::stream::pending());
        let mut events = events(updates.boxed());
        let first = events.next().await.unwrap().unwrap();
        assert!(first.starts_with(b"data: {"), "{first:?}");
        for _ in 0..3 {
            assert_eq!(events.next().await.unwrap().unwrap().as_ref(), sse::KEEP_ALIVE.as_bytes());
        }
    }

    // A2A-1
    #[tokio::test]
    async fn ready_events_are_sent_together_in_bounded_chunks() {
        let text = "x".repeat(1000);
        let updates = (0..100).map(|_| message(&text)).collect::<Vec<_>>();
        let sent: Vec<_> = events(futures::stream::iter(updates).boxed()).collect().await;
        let sizes: Vec<usize> = sent.iter().map(|chunk| chunk.as_ref().unwrap().len()).collect();
        assert!(sizes.len() <= 25 && sizes.iter().all(|size| *size < CHUNK_SIZE + 2000), "{sizes:?}");
    }
}
