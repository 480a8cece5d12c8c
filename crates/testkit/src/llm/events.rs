//! The bytes of a response: events in one buffer, and a body that sends them with the requested delays and ending.

use std::fmt::{Display, Write};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::stream;
use tokio::sync::Notify;

use super::OpenReply;

/// Builds a response. All events share one buffer.
#[derive(Default)]
pub(super) struct Events {
    text: String,
    ends: Vec<usize>,
    /// The range of events with text, thoughts or calls.
    content: Option<Range<usize>>,
}

impl Events {
    /// Adds an event without content.
    pub(super) fn push(&mut self, name: Option<&str>, data: impl Display) {
        let written = match name {
            Some(name) => write!(self.text, "event: {name}\ndata: {data}\n\n"),
            None => write!(self.text, "data: {data}\n\n"),
        };
        written.unwrap();
        self.ends.push(self.text.len());
    }

    /// Adds an event with text, a thought or a call.
    pub(super) fn push_content(&mut self, name: Option<&str>, data: impl Display) {
        let at = self.ends.len();
        self.push(name, data);
        self.content.get_or_insert(at..at).end = at + 1;
    }

    /// Creates a response that is a single document. Its two halves count as events.
    pub(super) fn document(document: impl Display) -> Self {
        let text = document.to_string();
        let half = text.floor_char_boundary(text.len() / 2);
        Self { ends: vec![half, text.len()], text, content: Some(0..2) }
    }

    /// Finishes the response.
    pub(super) fn freeze(self) -> RenderedEvents {
        // A response without content has an empty range after its first event.
        let start = self.ends.len().saturating_sub(1).min(1);
        let content = self.content.unwrap_or(start..start);
        RenderedEvents { bytes: Bytes::from(self.text), ends: self.ends, content }
    }
}

/// A complete response.
pub(super) struct RenderedEvents {
    pub(super) bytes: Bytes,
    ends: Vec<usize>,
    content: Range<usize>,
}

impl RenderedEvents {
    /// Returns the index of the first event with content.
    pub(super) fn start(&self) -> usize {
        self.content.start
    }

    /// Returns the index of the middle event. At least one event with content comes before it, and one event after it.
    pub(super) fn middle(&self) -> usize {
        self.content.start + self.content.len().div_ceil(2)
    }

    /// Returns the number of events.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the bytes of each event of a range.
    pub(super) fn pieces(&self, range: Range<usize>) -> Vec<Bytes> {
        range.map(|event| self.piece(event)).collect()
    }

    /// Returns the bytes of an event.
    pub(super) fn piece(&self, event: usize) -> Bytes {
        let start = event.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.bytes.slice(start..self.ends[event])
    }
}

/// The behaviour after the last piece.
#[derive(Clone)]
pub(super) enum Ending {
    Complete,
    /// Breaks the connection.
    Cut,
    Hang,
    /// Repeats these bytes forever.
    Repeat(Bytes),
}

/// The pieces of a body and their timing.
pub(super) struct BodyPlan {
    pub(super) pieces: Vec<Bytes>,
    pub(super) ending: Ending,
    pub(super) gap: Duration,
    /// Waits before this piece until it is notified.
    pub(super) gate: Option<(usize, Arc<Notify>)>,
}

impl BodyPlan {
    /// Converts the plan to a body. `open` is dropped at its end.
    pub(super) fn body(self, open: OpenReply) -> Body {
        // Uses a stream even for a single piece, because providers send no content length.
        Body::from_stream(stream::unfold((self, 0, open), |(plan, at, open)| async move {
            if at > 0 && !plan.gap.is_zero() {
                tokio::time::sleep(plan.gap).await;
            }
            if let Some((_, gate)) = plan.gate.as_ref().filter(|(before, _)| *before == at) {
                gate.notified().await;
            }
            let next = match (plan.pieces.get(at), &plan.ending) {
                (Some(piece), _) => Ok(piece.clone()),
                (None, Ending::Complete) => return None,
                (None, Ending::Repeat(piece)) => Ok(piece.clone()),
                (None, Ending::Hang) => std::future::pending().await,
                (None, Ending::Cut) => {
                    // Lets the server flush the previous pieces before the error.
                    tokio::task::yield_now().await;
                    Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset))
                }
            };
            Some((next, (plan, at + 1, open)))
        }))
    }
}
