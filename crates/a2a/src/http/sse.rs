//! Streams as server-sent events.
//!
//! One event is one line of data. What is ready at the same time is sent together, and where nothing happens for a
//! while, a comment shows that somebody is still there.

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
use sse::Event;
use tokio::time::{Instant, Sleep};

use super::fault::Fault;
use crate::types::StreamResponse;
use crate::v03::{self, rest::python};
use crate::{Error, Kind, Updates, Version};

/// After so long without a word there is a comment.
const SILENCE: Duration = Duration::from_secs(15);

/// As much is sent at once.
const FULL: usize = 16 * 1024;

/// How an event is written.
pub(super) enum Form {
    /// Every event is a whole answer to the request of this id, which is JSON.
    JsonRpc { id: String },
    /// `python`: see there.
    Rest { python: bool },
}

/// An answer that goes on, unless the first thing to say is an error: that is answered plainly.
pub(super) fn respond(version: Version, form: Form, mut updates: Updates) -> Result<Response, Error> {
    let first = match updates.next().now_or_never() {
        Some(Some(Err(error))) => return Err(error),
        Some(Some(Ok(update))) => Some(update),
        Some(None) | None => None,
    };
    let mut events = Events::new(version, form, updates, SILENCE);
    if let Some(update) = first {
        events.write(update);
    }
    Ok(headed(Body::from_stream(events)))
}

/// A stream of one error.
pub(super) fn failed(version: Version, form: Form, error: Error) -> Response {
    let mut events = Events::new(version, form, futures::stream::empty().boxed(), SILENCE);
    events.end(error);
    headed(Body::from(events.buffer))
}

fn headed(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Or a proxy may keep events until it has enough of them.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

struct Events {
    updates: Updates,
    version: Version,
    form: Form,
    /// Encoded events that were not sent yet.
    buffer: Vec<u8>,
    /// The data of the event that is being written; kept for its memory.
    data: Vec<u8>,
    ended: bool,
    patience: Duration,
    silence: Pin<Box<Sleep>>,
}

impl Stream for Events {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while !self.ended && self.buffer.len() < FULL {
            match self.updates.poll_next_unpin(context) {
                Poll::Ready(Some(Ok(update))) => self.write(update),
                Poll::Ready(Some(Err(error))) => self.end(error),
                Poll::Ready(None) => self.ended = true,
                Poll::Pending => break,
            }
        }
        if self.buffer.is_empty() {
            if self.ended {
                return Poll::Ready(None);
            }
            if self.silence.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.buffer.extend_from_slice(sse::KEEP_ALIVE.as_bytes());
        }
        let patience = self.patience;
        self.silence.as_mut().reset(Instant::now() + patience);
        Poll::Ready(Some(Ok(Bytes::from(std::mem::take(&mut self.buffer)))))
    }
}

impl Events {
    fn new(version: Version, form: Form, updates: Updates, patience: Duration) -> Self {
        let silence = Box::pin(tokio::time::sleep(patience));
        Self { updates, version, form, buffer: Vec::new(), data: Vec::new(), ended: false, patience, silence }
    }

    fn write(&mut self, mut update: StreamResponse) {
        self.data.clear();
        let data = &mut self.data;
        let written = match (&self.form, self.version) {
            (Form::JsonRpc { id }, version) => {
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
            (Form::Rest { .. }, Version::V10) => json(data, &update),
            (Form::Rest { python }, Version::V03) => {
                if *python {
                    python::write_update(&mut update);
                }
                json(data, &v03::rest::StreamResponse::from(update))
            }
        };
        if let Err(error) = written.and_then(|()| encode(&mut self.buffer, "", &self.data)) {
            self.end(error);
        }
    }

    /// Writes the error as the last event.
    fn end(&mut self, error: Error) {
        self.ended = true;
        let fault = Fault::new(self.version, error);
        let (name, body) = match &self.form {
            Form::JsonRpc { id } => ("", fault.rpc(self.version, id)),
            Form::Rest { .. } => ("error", fault.rest(self.version)),
        };
        // Neither name contains a line break.
        let _ = encode(&mut self.buffer, name, &body);
    }
}

fn encode(out: &mut Vec<u8>, name: &str, data: &[u8]) -> Result<(), Error> {
    let event = Event { name, data, ..Event::default() };
    event.encode(out).map_err(|error| Error::new(Kind::Internal, error.to_string()))
}

fn json(out: &mut Vec<u8>, value: &impl Serialize) -> Result<(), Error> {
    super::json(out, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Message, Part, Role};

    fn said(text: &str) -> Result<StreamResponse, Error> {
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

    fn events(updates: Updates) -> Events {
        let form = Form::JsonRpc { id: "1".to_owned() };
        Events::new(Version::V10, form, updates, Duration::from_millis(5))
    }

    // A2A-1
    #[tokio::test]
    async fn silence_is_broken_by_comments() {
        let said = futures::stream::iter([said("a")]).chain(futures::stream::pending());
        let mut events = events(said.boxed());
        let first = events.next().await.unwrap().unwrap();
        assert!(first.starts_with(b"data: {"), "{first:?}");
        for _ in 0..3 {
            assert_eq!(events.next().await.unwrap().unwrap().as_ref(), sse::KEEP_ALIVE.as_bytes());
        }
    }

    // A2A-1
    #[tokio::test]
    async fn what_is_ready_is_sent_together_and_nothing_for_ever() {
        let text = "x".repeat(1000);
        let updates = (0..100).map(|_| said(&text)).collect::<Vec<_>>();
        let sent: Vec<_> = events(futures::stream::iter(updates).boxed()).collect().await;
        let sizes: Vec<usize> = sent.iter().map(|chunk| chunk.as_ref().unwrap().len()).collect();
        assert!(sizes.len() < 10 && sizes.iter().all(|size| *size < FULL + 2000), "{sizes:?}");
    }
}
