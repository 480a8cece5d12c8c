//! Encodes a turn as server-sent events (S0's format). Their ids count from 1, so that a client can say what it has seen.

use std::borrow::Cow;

use api::chat::{Done, EventData, ResponseDelta, Thinking, ToolCallProgress, TurnError};
use assistant::TurnEvent;
use assistant::turn::{TurnOutcome, TurnStream};
use axum::response::Response;
use serde::Serialize;

use super::document::token_usage;
use crate::event_stream;

fn done(outcome: &TurnOutcome) -> Done<'_> {
    let result = &outcome.result;
    Done {
        final_output: (&*result.response).into(),
        tools_called: result.tool_calls.iter().map(|call| call.tool_name.as_str().into()).collect(),
        success: result.success,
        conversation_id: outcome.conversation_id.as_ref().map(Cow::Borrowed),
        confirmation_phrase: result.held.as_ref().map(|held| held.phrase.as_str().into()),
        model: outcome.model.as_str().into(),
        usage: result.usage().map(token_usage),
    }
}

/// Returns the events from the offset of the stream on, as they happen.
pub(crate) async fn encode(mut stream: TurnStream) -> Response {
    if stream.outcome_now().is_some() {
        return event_stream::respond(ready(&mut stream).into());
    }
    event_stream::stream(futures::stream::unfold(stream, |mut stream| async move {
        let (id, event) = stream.next().await?;
        let mut text = String::new();
        push_event(&mut text, id, &event, stream.request_id());
        // Events that are reported together are sent together.
        tokio::task::yield_now().await;
        text.push_str(&ready(&mut stream));
        Some((text, stream))
    }))
}

/// Encodes the events that are there.
fn ready(stream: &mut TurnStream) -> String {
    let mut text = String::with_capacity(1024);
    while let Some((id, event)) = stream.ready() {
        push_event(&mut text, id, &event, stream.request_id());
    }
    text
}

fn push_event(text: &mut String, id: usize, event: &TurnEvent, request_id: &str) {
    let (name, data) = match event {
        TurnEvent::Thinking { content } => {
            ("thinking", EventData::Thinking(Thinking { content: content.as_str().into() }))
        }
        TurnEvent::ToolCall { tool_name, arguments, status } => {
            let tool_name = tool_name.as_str().into();
            let arguments = Cow::Borrowed(arguments);
            let status = status.as_str().into();
            ("tool_call", EventData::ToolCall(ToolCallProgress { tool_name, arguments, status }))
        }
        TurnEvent::ResponseDelta { delta, accumulated } => {
            let delta = delta.as_str().into();
            let accumulated = accumulated.as_str().into();
            ("response_delta", EventData::ResponseDelta(ResponseDelta { delta, accumulated }))
        }
        TurnEvent::Error { error_type, message, recoverable } => {
            let error_type = error_type.as_str().into();
            let message = message.as_str().into();
            ("error", EventData::Error(TurnError { error_type, message, recoverable: *recoverable }))
        }
        TurnEvent::Done(outcome) => ("done", EventData::Done(done(outcome))),
    };
    text.push_str(&block(id, name, &data, request_id).unwrap_or_default());
}

/// Returns one event. Its data is an object, and the id of the request is added to it.
fn block(id: usize, name: &str, data: &impl Serialize, request_id: &str) -> serde_json::Result<String> {
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
    fn an_event_is_one_block_with_the_id_of_the_request() {
        // CHAT-6
        let mut text = String::new();
        push_event(&mut text, 1, &TurnEvent::Thinking { content: "a\n\nb".to_owned() }, "req_1");
        assert_eq!(text, "id: 1\nevent: thinking\ndata: {\"content\":\"a\\n\\nb\",\"request_id\":\"req_1\"}\n\n");
    }
}
