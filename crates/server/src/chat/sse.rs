//! Events as they go over the wire (S0's SSE format). Their ids count from 1, so that a client can say what it has seen.

use assistant::Event;
use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::{Told, Usage};

/// Keeps connections open through whatever is between us and the client.
pub(crate) const KEEP_ALIVE: &str = ": keep-alive\n\n";

/// A turn from its first event to `done`.
pub(crate) fn whole(events: &[Event], told: &Told<'_>) -> serde_json::Result<String> {
    let mut text = String::with_capacity(1024);
    for (at, event) in events.iter().enumerate() {
        text.push_str(&block(at + 1, event.name(), event, told.request_id)?);
    }
    text.push_str(&done(events.len() + 1, told)?);
    Ok(text)
}

/// The last event of every stream.
pub(crate) fn done(id: usize, told: &Told<'_>) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Done<'a> {
        final_output: &'a str,
        tools_called: Vec<&'a str>,
        success: bool,
        conversation_id: Option<String>,
        /// What the user must reply for what waits to be done.
        #[serde(skip_serializing_if = "Option::is_none")]
        confirmation_phrase: Option<&'a str>,
        model: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    }
    let data = Done {
        final_output: &told.result.response,
        tools_called: told.result.tool_calls.iter().map(|call| call.tool_name.as_str()).collect(),
        success: told.result.success,
        conversation_id: told.conversation_id.map(ToString::to_string),
        confirmation_phrase: told.result.held.as_ref().map(|held| held.phrase.as_str()),
        model: told.model,
        usage: told.usage(),
    };
    block(id, "done", &data, told.request_id)
}

/// One event. Its data is an object, and the request's id is added to it.
pub(crate) fn block(id: usize, name: &str, data: &impl Serialize, request_id: &str) -> serde_json::Result<String> {
    let mut data = serde_json::to_string(data)?;
    data.pop();
    let request_id = serde_json::to_string(request_id)?;
    Ok(format!("id: {id}\nevent: {name}\ndata: {data},\"request_id\":{request_id}}}\n\n"))
}

/// What follows the first `seen` events. JSON has no line breaks, so an empty line ends an event.
pub(crate) fn after(stream: &str, seen: usize) -> &str {
    let ends = stream.match_indices("\n\n").map(|(at, _)| at + 2);
    match seen {
        0 => stream,
        _ => ends.take(seen).last().map_or(stream, |at| &stream[at..]),
    }
}

pub(crate) fn respond(body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        // Proxies that would hold events back are asked not to.
        (header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_goes_on_where_it_was_left() {
        // CHAT-6
        let thinking = |text: &str| Event::Thinking { content: text.to_owned() };
        let one = block(1, "thinking", &thinking("a\n\nb"), "req_1").unwrap();
        assert_eq!(one, "id: 1\nevent: thinking\ndata: {\"content\":\"a\\n\\nb\",\"request_id\":\"req_1\"}\n\n");
        let two = block(2, "thinking", &thinking("c"), "req_1").unwrap();
        let stream = format!("{one}{two}");
        assert_eq!(after(&stream, 0), stream);
        assert_eq!(after(&stream, 1), two);
        assert_eq!(after(&stream, 2), "");
        assert_eq!(after(&stream, 99), "");
    }
}
