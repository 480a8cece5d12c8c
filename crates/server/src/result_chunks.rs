//! The result of an execution as the last event of a stream. Its output is read and sent in pieces, so that a client that
//! reads nothing holds only one of them.

use model::execution::ExecutionResult;
use store::Conn;
use store::executions::{ExecutionEventKind, OutputPlace, OwnerScope, PageLimits};
use uuid::Uuid;

use crate::App;
use crate::event_stream::EventChunk;

/// The size of one read of the output.
const PAGE: PageLimits = PageLimits { events: 64, bytes: 4 << 10 };

/// Sends one event with a result.
pub(crate) struct ResultChunks {
    app: App,
    id: Uuid,
    /// The event up to the output. `None` once it was sent.
    head: Option<String>,
    /// The event after the output. `None` once it was sent.
    tail: Option<String>,
    output: OutputSource,
}

/// The rest of the output.
enum OutputSource {
    /// The stored output of a stream after the place.
    Stream { stream: &'static str, after: OutputPlace, inside: Option<PartialOutput> },
    /// A text that is not stored as output.
    Text(String),
}

/// The position in an event whose text is longer than a page.
#[derive(Clone, Copy)]
struct PartialOutput {
    place: OutputPlace,
    chars: i64,
}

impl ResultChunks {
    /// Reads the result of an ended execution without its output. `encode` returns the whole event for a result. Fails if
    /// the execution is not found in the scope or has not ended, and if the database fails.
    pub(crate) async fn start(
        app: &App,
        scope: OwnerScope,
        id: Uuid,
        encode: impl FnOnce(&ExecutionResult) -> String,
    ) -> store::Result<Self> {
        let mut reader = app.store().reader().await?;
        let mut result = store::executions::result_without_output(&mut reader, scope, id).await?;
        let output = OutputSource::find(&mut reader, id).await?;
        // An id that occurs nowhere else marks the place of the output.
        let mark = app.clock().id().to_string();
        result.output.clone_from(&mark);
        let event = encode(&result);
        let (head, tail) = event.split_once(&mark).unwrap_or((&event, ""));
        Ok(Self { app: app.clone(), id, head: Some(head.to_owned()), tail: Some(tail.to_owned()), output })
    }

    /// Returns the next chunk, or `None` after the end of the event. Fails if the database fails: then the event stays
    /// incomplete, and clients discard it.
    pub(crate) async fn next(&mut self) -> store::Result<Option<EventChunk>> {
        if self.tail.is_none() {
            return Ok(None);
        }
        let mut text = self.head.take().unwrap_or_default();
        let output = self.next_output().await?;
        if output.is_empty() {
            text.push_str(&self.tail.take().unwrap_or_default());
        } else {
            text.push_str(json_escaped(&output).as_str());
        }
        Ok(Some(EventChunk { text, last_id: None, is_inside: self.tail.is_some() }))
    }

    /// Returns the next piece of the output, or an empty text at its end.
    async fn next_output(&mut self) -> store::Result<String> {
        let (stream, after, inside) = match &mut self.output {
            OutputSource::Text(text) => return Ok(std::mem::take(text)),
            OutputSource::Stream { stream, after, inside } => (*stream, after, inside),
        };
        let mut reader = self.app.store().reader().await?;
        if let Some(PartialOutput { place, chars }) = inside.take() {
            let piece = store::executions::event_piece(&mut reader, self.id, place.seq, chars, PAGE.bytes).await?;
            let piece = piece.ok_or(store::Error::NotFound)?;
            if !piece.is_last {
                *inside = Some(PartialOutput { place, chars: piece.end_char() });
            }
            return Ok(piece.event.text);
        }
        let mut text = String::new();
        for piece in store::executions::output_page(&mut reader, self.id, stream, *after, PAGE).await? {
            let place = OutputPlace { start: piece.event.start, seq: piece.event.seq };
            *after = place;
            if !piece.is_last {
                *inside = Some(PartialOutput { place, chars: piece.end_char() });
            }
            match piece.event.kind {
                ExecutionEventKind::Gap => text.push_str(&store::executions::gap_mark(&piece.event.text)),
                _ => text.push_str(&piece.event.text),
            }
        }
        Ok(text)
    }
}

impl OutputSource {
    /// Returns the output that is the answer, like [`store::executions::result`]: the output file, or else the standard
    /// output, or else the text of the structured output.
    async fn find(conn: &mut Conn, id: Uuid) -> store::Result<Self> {
        let one = PageLimits { events: 1, bytes: 1 };
        for stream in ["file", "stdout"] {
            let first = store::executions::output_page(conn, id, stream, OutputPlace::BEGIN, one).await?;
            if !first.is_empty() {
                return Ok(Self::Stream { stream, after: OutputPlace::BEGIN, inside: None });
            }
        }
        let rich = store::executions::rich_output(conn, id).await?;
        Ok(Self::Text(model::output::output_to_text(&rich)))
    }
}

/// Returns the text with the escapes of a JSON string, without quotes.
pub(crate) fn json_escaped(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap_or_default();
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned()
}
