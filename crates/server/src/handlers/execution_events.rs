//! `/api/executions/{id}/events`: streams the events of an execution.
//!
//! The stream starts after `Last-Event-ID` and ends after the result, if the server stops, if the database fails or if
//! the client reads nothing for a minute. `follow=false` returns only the events so far. The log is read in pieces of
//! about 4 KiB, each after the client has taken the previous one. So a long event is sent in several parts, with its id
//! at the end: a client that is disconnected before that gets the whole event again.

use api::executions::{EventParams, OutputEvent, StateEvent};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use futures::StreamExt;
use store::executions::{EventPiece, ExecutionEvent, ExecutionEventKind, OwnerScope};
use supervisor::{ExecutionFollower, FollowEvent};
use uuid::Uuid;

use super::executions::visible_scope;
use crate::auth::CurrentUser;
use crate::event_stream::{self, EventChunk};
use crate::input::{IdParam, QueryParams};
use crate::open_streams::StreamOwner;
use crate::result_chunks::{ResultChunks, json_escaped};
use crate::{App, Problem};

/// Streams the events of an execution until its end.
///
/// The stream starts at the first event or after `Last-Event-ID`. The events are `state`, `output`, `said` (rich
/// output: part of an artifact, a message or a progress report), `usage`, and finally `result`.
#[utoipa::path(
    get,
    path = "/api/executions/{id}/events",
    tag = "executions",
    params(
        ("id" = Uuid, Path),
        EventParams,
        ("Last-Event-ID" = Option<i64>, Header, description = "The id of the last event that the client has received"),
    ),
    responses(
        (status = 200, description = "Server-sent events", content_type = "text/event-stream"),
        (status = 404, description = "The user has no execution with this id"),
    )
)]
pub(super) async fn events(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    IdParam(id): IdParam<Uuid>,
    QueryParams(params): QueryParams<EventParams>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let existing_only = params.follow == Some(false);
    let after = event_stream::last_event_id(&headers)?.unwrap_or(0);
    let scope = visible_scope(&user);
    let mut reader = app.store().owner_reader(user.id).await?;
    store::executions::get(&mut reader, scope, id).await.map_err(Problem::from_store("execution"))?;
    drop(reader);
    let open_stream = app.open_stream(StreamOwner::User(user.id))?;
    let follower = app.supervisor().follow(scope, id, after).in_pieces();
    let follower = if existing_only { follower.existing_only() } else { follower };
    let stopping = app.stopping().clone();
    let chunks = EventChunks { app, scope, follower, result: None };
    let chunks =
        futures::stream::unfold(chunks, |mut chunks| async move { Some((Box::pin(chunks.next()).await?, chunks)) });
    // On shutdown the stream ends. The client reconnects with the last id.
    Ok(event_stream::stream(chunks.take_until(stopping.cancelled_owned()), open_stream))
}

/// Encodes the events of an execution in chunks of limited size.
struct EventChunks {
    app: App,
    scope: OwnerScope,
    follower: ExecutionFollower,
    /// The last event, after the end of the execution.
    result: Option<ResultChunks>,
}

impl EventChunks {
    /// Waits for the next chunk. It contains all events that were read together. Returns `None` after the result, if the
    /// database fails, and if the execution or the event of a piece does not exist any more.
    async fn next(&mut self) -> Option<EventChunk> {
        if let Some(result) = &mut self.result {
            return result.next().await.ok().flatten();
        }
        let mut chunk = EventChunk::default();
        let mut next = self.follower.next().await.ok().flatten();
        while let Some(event) = next {
            if matches!(event, FollowEvent::End(_)) {
                let encode = |result: &_| encode(None, "result", serde_json::to_string(result));
                let result = ResultChunks::start(&self.app, self.scope, self.follower.id(), encode).await;
                // Otherwise the execution was deleted in the meantime.
                self.result = result.ok();
                break;
            }
            add_event(&mut chunk, event);
            next = self.follower.next_ready();
        }
        match &mut self.result {
            Some(result) if chunk.text.is_empty() => result.next().await.ok().flatten(),
            _ => Some(chunk).filter(|chunk| !chunk.text.is_empty()),
        }
    }
}

/// Appends one event as the server-sent event `state`, `output`, `said` for rich output, or `usage`. Only stored events
/// have an id. A gap is an output without text and with the number of missing bytes.
fn add_event(chunk: &mut EventChunk, event: FollowEvent) {
    match event {
        FollowEvent::Event(event) => {
            let seq = event.seq;
            chunk.text.push_str(&encode_event(event));
            chunk.last_id = Some(seq);
        }
        FollowEvent::Piece(piece) => {
            chunk.text.push_str(&encode_piece(&piece));
            chunk.is_inside = !piece.is_last;
            chunk.last_id = Some(piece.event.seq).filter(|_| piece.is_last).or(chunk.last_id);
        }
        FollowEvent::Usage(usage) => chunk.text.push_str(&encode(None, "usage", serde_json::to_string(&usage))),
        // The result is sent instead.
        FollowEvent::End(_) => {}
    }
}

fn encode_event(event: ExecutionEvent) -> String {
    match event.kind {
        ExecutionEventKind::State => {
            let data = serde_json::to_string(&StateEvent { state: event.text, at: event.at });
            encode(Some(event.seq), "state", data)
        }
        // The text is JSON already.
        ExecutionEventKind::RichOutput => encode(Some(event.seq), "said", Ok(event.text)),
        ExecutionEventKind::Output | ExecutionEventKind::Gap => {
            let is_gap = event.kind == ExecutionEventKind::Gap;
            let missing_bytes = is_gap.then(|| event.text.parse().unwrap_or_default());
            let text = if is_gap { String::new() } else { event.text };
            let data = serde_json::to_string(&OutputEvent { stream: event.stream, text, missing_bytes, at: event.at });
            encode(Some(event.seq), "output", data)
        }
    }
}

/// Encodes a piece of a long event. All pieces together are the event, with its id at the end.
fn encode_piece(piece: &EventPiece) -> String {
    let event = &piece.event;
    let is_rich = event.kind == ExecutionEventKind::RichOutput;
    let stream = event.stream.clone();
    let whole = serde_json::to_string(&OutputEvent { stream, text: String::new(), missing_bytes: None, at: event.at });
    let whole = whole.unwrap_or_default();
    // Only the text is empty: a stream has a name.
    let (before, after) = whole.split_once("\"\"").filter(|_| !is_rich).unwrap_or_default();
    let quote = if is_rich { "" } else { "\"" };
    let mut text = String::with_capacity(event.text.len() + 256);
    if piece.first_char == 0 {
        let name = if is_rich { "said" } else { "output" };
        text.push_str(&format!("event: {name}\ndata: {before}{quote}"));
    }
    match is_rich {
        true => text.push_str(&event.text),
        false => text.push_str(&json_escaped(&event.text)),
    }
    if piece.is_last {
        text.push_str(&format!("{quote}{after}\nid: {}\n\n", event.seq));
    }
    text
}

fn encode(id: Option<i64>, name: &str, data: serde_json::Result<String>) -> String {
    let id = id.map(|id| id.to_string());
    event_stream::encode(id.as_deref(), name, &data.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn event(kind: ExecutionEventKind, text: &str) -> ExecutionEvent {
        let stream = "stdout".to_owned();
        ExecutionEvent { seq: 7, kind, stream, start: 0, at: Timestamp::UNIX_EPOCH, text: text.to_owned() }
    }

    /// Decodes the only event.
    fn decoded(text: &str) -> (Option<String>, String, String) {
        let mut fields = (None, String::new(), String::new());
        for line in text.strip_suffix("\n\n").unwrap().lines() {
            let (name, value) = line.split_once(": ").unwrap();
            match name {
                "id" => fields.0 = Some(value.to_owned()),
                "event" => fields.1 = value.to_owned(),
                _ => fields.2.push_str(value),
            }
        }
        fields
    }

    #[test]
    fn the_pieces_of_an_event_are_the_event() {
        // SUP-10, SEC-5
        let text = "a\"\n\u{1b}ü".repeat(3);
        for kind in [ExecutionEventKind::Output, ExecutionEventKind::RichOutput] {
            let text = if kind == ExecutionEventKind::Output { text.clone() } else { "{\"artifact\":1}".to_owned() };
            let whole = encode_event(event(kind, &text));
            let mut chunk = EventChunk::default();
            let total_bytes = i64::try_from(text.len()).unwrap();
            let count = text.chars().count();
            for (at, char) in text.chars().enumerate() {
                assert_eq!((chunk.last_id, chunk.is_inside), (None, at > 0));
                let first_char = i64::try_from(at).unwrap();
                let event = event(kind, &char.to_string());
                let piece = EventPiece { event, first_char, total_bytes, is_last: at + 1 == count };
                add_event(&mut chunk, FollowEvent::Piece(piece));
            }
            assert_eq!((chunk.last_id, chunk.is_inside), (Some(7), false));
            assert_eq!(decoded(&chunk.text), decoded(&whole));
        }
    }
}
