//! The bytes of an answer: its events in one buffer, and a body that sends them at the pace and to the end that was
//! asked for.

use std::fmt::{Display, Write};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::stream;
use tokio::sync::Notify;

use super::Open;

/// A rendered answer. One allocation, however many events.
#[derive(Default)]
pub(super) struct Events {
    text: String,
    ends: Vec<usize>,
    /// The events that say or call something.
    content: Option<Range<usize>>,
}

impl Events {
    /// An event around the content.
    pub(super) fn push(&mut self, name: Option<&str>, data: impl Display) {
        let written = match name {
            Some(name) => write!(self.text, "event: {name}\ndata: {data}\n\n"),
            None => write!(self.text, "data: {data}\n\n"),
        };
        written.unwrap();
        self.ends.push(self.text.len());
    }

    /// An event that says or calls something.
    pub(super) fn content(&mut self, name: Option<&str>, data: impl Display) {
        let at = self.ends.len();
        self.push(name, data);
        self.content.get_or_insert(at..at).end = at + 1;
    }

    /// An answer that is one document: it has no events, but two halves.
    pub(super) fn document(document: impl Display) -> Self {
        let text = document.to_string();
        let half = text.floor_char_boundary(text.len() / 2);
        Self { ends: vec![half, text.len()], text, content: Some(0..2) }
    }

    /// Ready to be sent.
    pub(super) fn freeze(self) -> Frozen {
        // Without any content, it would come after what opens the answer.
        let start = self.ends.len().saturating_sub(1).min(1);
        let content = self.content.unwrap_or(start..start);
        Frozen { bytes: Bytes::from(self.text), ends: self.ends, content }
    }
}

pub(super) struct Frozen {
    pub(super) bytes: Bytes,
    ends: Vec<usize>,
    content: Range<usize>,
}

impl Frozen {
    pub(super) fn start(&self) -> usize {
        self.content.start
    }

    /// At least one event of the content is before it, and one of the answer after it.
    pub(super) fn middle(&self) -> usize {
        self.content.start + self.content.len().div_ceil(2)
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn pieces(&self, range: Range<usize>) -> Vec<Bytes> {
        range.map(|event| self.piece(event)).collect()
    }

    pub(super) fn piece(&self, event: usize) -> Bytes {
        let start = event.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.bytes.slice(start..self.ends[event])
    }
}

/// What comes after the last piece.
#[derive(Clone)]
pub(super) enum Ending {
    Proper,
    /// The connection breaks.
    Cut,
    Hang,
    /// This, for ever.
    Repeat(Bytes),
}

/// What is sent, and how.
pub(super) struct Plan {
    pub(super) pieces: Vec<Bytes>,
    pub(super) ending: Ending,
    pub(super) gap: Duration,
    /// Before this piece, until notified.
    pub(super) gate: Option<(usize, Arc<Notify>)>,
}

impl Plan {
    pub(super) fn body(self, open: Open) -> Body {
        // A stream even for a single piece: providers do not say how long an answer will be.
        Body::from_stream(stream::unfold((self, 0, open), |(plan, at, open)| async move {
            if at > 0 && !plan.gap.is_zero() {
                tokio::time::sleep(plan.gap).await;
            }
            if let Some((_, gate)) = plan.gate.as_ref().filter(|(before, _)| *before == at) {
                gate.notified().await;
            }
            let next = match (plan.pieces.get(at), &plan.ending) {
                (Some(piece), _) => Ok(piece.clone()),
                (None, Ending::Proper) => return None,
                (None, Ending::Repeat(piece)) => Ok(piece.clone()),
                (None, Ending::Hang) => std::future::pending().await,
                (None, Ending::Cut) => {
                    // Lets the server send what it has before it learns that there is no more.
                    tokio::task::yield_now().await;
                    Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset))
                }
            };
            Some((next, (plan, at + 1, open)))
        }))
    }
}
