//! Encodes a turn as server-sent events (S0's format). Their ids count from 1, so that a client can resume after the
//! last one.

use std::borrow::Cow;

use api::chat::{ChatEventData, ResponseDelta, Thinking, ToolCallProgress, TurnDone, TurnError};
use assistant::TurnEvent;
use assistant::turn::{TurnOutcome, TurnStream};
use axum::response::Response;
use futures::StreamExt;
use serde::Serialize;

use super::document::token_usage;
use crate::event_stream::{self, EventChunk};
use crate::open_streams::OpenStream;

/// Returns the data of the last event of a turn. The tools are listed in the order of their calls, with repetitions.
/// The confirmation phrase and the usage are set only if the turn has them.
fn done(outcome: &TurnOutcome) -> TurnDone<'_> {
    let result = &outcome.result;
    TurnDone {
        final_output: (&*result.response).into(),
        tools_called: result.tool_calls.iter().map(|call| call.tool_name.as_str().into()).collect(),
        success: result.success,
        conversation_id: outcome.conversation_id.as_ref().map(Cow::Borrowed),
        confirmation_phrase: result.pending.as_ref().map(|pending| pending.phrase.as_str().into()),
        model: outcome.model.as_str().into(),
        usage: result.usage().map(token_usage),
    }
}

/// The length of a chunk from which no further event is added, in bytes. A stream whose client reads nothing holds one
/// chunk.
const CHUNK_SIZE: usize = 8 << 10;

/// Returns a response that sends the events from the offset of the stream on, as they arrive. Events that arrive
/// together are sent together, in chunks of limited size. If the turn has ended and they fit into one chunk, that is the
/// body. The stream ends after the last event of the turn. It counts as `open_stream` until then.
pub(crate) async fn encode(mut stream: TurnStream, open_stream: OpenStream) -> Response {
    let mut first = None;
    if stream.try_outcome().is_some() {
        let chunk = next_ready(&mut stream);
        if chunk.text.len() < CHUNK_SIZE {
            return event_stream::respond(chunk.text.into());
        }
        first = Some(chunk);
    }
    let events = futures::stream::unfold(stream, |mut stream| async move {
        let (id, event) = stream.next().await?;
        let mut chunk = EventChunk::default();
        add_event(&mut chunk, id, &event, stream.request_id());
        // Lets the turn report more events, so that they are sent together.
        tokio::task::yield_now().await;
        add_ready(&mut chunk, &mut stream);
        Some((chunk, stream))
    });
    event_stream::stream(futures::stream::iter(first).chain(events), open_stream)
}

/// Encodes the events that have already arrived, up to [`CHUNK_SIZE`].
fn next_ready(stream: &mut TurnStream) -> EventChunk {
    let mut chunk = EventChunk { text: String::with_capacity(1024), ..EventChunk::default() };
    add_ready(&mut chunk, stream);
    chunk
}

/// Appends the events that have already arrived, up to [`CHUNK_SIZE`].
fn add_ready(chunk: &mut EventChunk, stream: &mut TurnStream) {
    while chunk.text.len() < CHUNK_SIZE
        && let Some((id, event)) = stream.try_next()
    {
        add_event(chunk, id, &event, stream.request_id());
    }
}

fn add_event(chunk: &mut EventChunk, id: usize, event: &TurnEvent, request_id: &str) {
    push_event(&mut chunk.text, id, event, request_id);
    chunk.last_id = i64::try_from(id).ok();
}

/// Appends the encoded event to `text`, under the name `thinking`, `tool_call`, `response_delta`, `error` or `done`.
/// Its data also contain `request_id`. An event that cannot be encoded is left out.
fn push_event(text: &mut String, id: usize, event: &TurnEvent, request_id: &str) {
    let (name, data) = match event {
        TurnEvent::Thinking { content } => {
            ("thinking", ChatEventData::Thinking(Thinking { content: content.as_str().into() }))
        }
        TurnEvent::ToolCall { tool_name, arguments, status, summary } => {
            let tool_name = tool_name.as_str().into();
            let arguments = Cow::Borrowed(arguments);
            let status = status.as_str().into();
            let summary = summary.as_deref().map(Cow::Borrowed);
            ("tool_call", ChatEventData::ToolCall(ToolCallProgress { tool_name, arguments, status, summary }))
        }
        TurnEvent::ResponseDelta { delta, accumulated } => {
            let delta = delta.as_str().into();
            let accumulated = accumulated.as_str().into();
            ("response_delta", ChatEventData::ResponseDelta(ResponseDelta { delta, accumulated }))
        }
        TurnEvent::Error { error_type, message, recoverable } => {
            let error_type = error_type.as_str().into();
            let message = message.as_str().into();
            ("error", ChatEventData::Error(TurnError { error_type, message, recoverable: *recoverable }))
        }
        TurnEvent::Done(outcome) => ("done", ChatEventData::Done(done(outcome))),
    };
    text.push_str(&encode_event(id, name, &data, request_id).unwrap_or_default());
}

/// Encodes one event. Adds the id of the request to its data, which must be an object with at least one field.
fn encode_event(id: usize, name: &str, data: &impl Serialize, request_id: &str) -> serde_json::Result<String> {
    let mut data = serde_json::to_string(data)?;
    data.pop();
    let request_id = serde_json::to_string(request_id)?;
    data.push_str(&format!(",\"request_id\":{request_id}}}"));
    Ok(event_stream::encode(Some(&id.to_string()), name, &data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_contain_the_request_id() {
        // CHAT-6
        let mut text = String::new();
        push_event(&mut text, 1, &TurnEvent::Thinking { content: "a\n\nb".to_owned() }, "req_1");
        assert_eq!(text, "id: 1\nevent: thinking\ndata: {\"content\":\"a\\n\\nb\",\"request_id\":\"req_1\"}\n\n");
    }
}
