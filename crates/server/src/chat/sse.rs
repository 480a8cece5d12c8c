//! Encodes a turn as server-sent events (S0's format). Their ids count from 1, so that a client can say what it has seen.

use std::convert::Infallible;
use std::time::Duration;

use assistant::turn::{TurnOutcome, TurnStream};
use assistant::{ErrorType, Status, TurnEvent};
use axum::body::Body;
use axum::response::Response;
use model::conversation::Id;
use serde::Serialize;
use serde_json::Value;
use sse::KEEP_ALIVE;

use super::document::TokenUsage;
use crate::event_stream;

const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// The data of one event.
#[derive(Serialize)]
#[serde(untagged)]
enum Data<'a> {
    Thinking { content: &'a str },
    ToolCall { tool_name: &'a str, arguments: &'a Value, status: Status },
    ResponseDelta { delta: &'a str, accumulated: &'a str },
    Error { error_type: ErrorType, message: &'a str, recoverable: bool },
    Done(Done<'a>),
}

#[derive(Serialize)]
struct Done<'a> {
    final_output: &'a str,
    tools_called: Vec<&'a str>,
    success: bool,
    conversation_id: Option<&'a Id>,
    /// The reply that confirms a pending action.
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmation_phrase: Option<&'a str>,
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<TokenUsage>,
}

impl<'a> From<&'a TurnOutcome> for Done<'a> {
    fn from(outcome: &'a TurnOutcome) -> Self {
        let result = &outcome.result;
        Self {
            final_output: &result.response,
            tools_called: result.tool_calls.iter().map(|call| call.tool_name.as_str()).collect(),
            success: result.success,
            conversation_id: outcome.conversation_id.as_ref(),
            confirmation_phrase: result.held.as_ref().map(|held| held.phrase.as_str()),
            model: &outcome.model,
            usage: result.usage().map(TokenUsage::from),
        }
    }
}

/// Returns the events from the offset of the stream on, as they happen.
pub(crate) async fn encode(mut stream: TurnStream) -> Response {
    if stream.outcome_now().is_some() {
        return event_stream::respond(ready(&mut stream).into());
    }
    let reader = Reader(stream);
    event_stream::respond(Body::from_stream(futures::stream::unfold(reader, |mut reader| async move {
        let text = reader.next(KEEP_ALIVE_INTERVAL).await?;
        Some((Ok::<_, Infallible>(text), reader))
    })))
}

struct Reader(TurnStream);

impl Reader {
    /// Returns the next events, or a comment after so much silence.
    async fn next(&mut self, silence: Duration) -> Option<String> {
        let Ok(first) = tokio::time::timeout(silence, self.0.next()).await else {
            return Some(KEEP_ALIVE.to_owned());
        };
        let (id, event) = first?;
        let mut text = String::new();
        push_event(&mut text, id, &event, self.0.request_id());
        // Events that are reported together are sent together.
        tokio::task::yield_now().await;
        text.push_str(&ready(&mut self.0));
        Some(text)
    }
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
        TurnEvent::Thinking { content } => ("thinking", Data::Thinking { content }),
        TurnEvent::ToolCall { tool_name, arguments, status } => {
            ("tool_call", Data::ToolCall { tool_name, arguments, status: *status })
        }
        TurnEvent::ResponseDelta { delta, accumulated } => {
            ("response_delta", Data::ResponseDelta { delta, accumulated })
        }
        TurnEvent::Error { error_type, message, recoverable } => {
            ("error", Data::Error { error_type: *error_type, message, recoverable: *recoverable })
        }
        TurnEvent::Done(outcome) => ("done", Data::Done(Done::from(&**outcome))),
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
