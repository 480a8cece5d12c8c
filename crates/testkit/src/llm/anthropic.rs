//! Responses of the Messages API of Anthropic.

use serde_json::{Value, json};

use super::events::Events;
use super::reply::{Part, Reply, StopReason, fragments};
use super::request::Request;

/// Returns the events of a streamed reply.
pub(super) fn stream(request: &Request, reply: &Reply) -> Events {
    let mut events = Events::default();
    let mut message = message(request);
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    if reply.usage.is_some() {
        message["usage"] = usage_counts(reply, 1);
    }
    events.push(Some("message_start"), json!({"type": "message_start", "message": message}));
    for (index, part) in reply.parts.iter().enumerate() {
        let start = match part {
            Part::Thinking(_) => json!({"type": "thinking", "thinking": "", "signature": ""}),
            Part::Text(_) => json!({"type": "text", "text": ""}),
            Part::Call(call) => {
                json!({"type": "tool_use", "id": call_id(request, index), "name": call.name, "input": {}})
            }
        };
        let start = json!({"type": "content_block_start", "index": index, "content_block": start});
        events.push(Some("content_block_start"), start);
        if index == 0 {
            events.push(Some("ping"), r#"{"type": "ping"}"#);
        }
        let mut delta = |delta: Value| {
            let data = json!({"type": "content_block_delta", "index": index, "delta": delta});
            events.push_content(Some("content_block_delta"), data);
        };
        match part {
            Part::Thinking(thought) => {
                fragments(thought).for_each(|piece| delta(json!({"type": "thinking_delta", "thinking": piece})));
                delta(json!({"type": "signature_delta", "signature": signature(request)}));
            }
            Part::Text(pieces) => {
                pieces.iter().for_each(|piece| delta(json!({"type": "text_delta", "text": piece})));
            }
            Part::Call(call) => {
                let pieces = std::iter::once("").chain(fragments(&call.arguments));
                pieces.for_each(|piece| delta(json!({"type": "input_json_delta", "partial_json": piece})));
            }
        }
        events.push(Some("content_block_stop"), json!({"type": "content_block_stop", "index": index}));
    }
    let mut end = json!({"type": "message_delta", "delta": {"stop_reason": stop_reason(reply), "stop_sequence": null}});
    if let Some(usage) = reply.usage {
        end["usage"] = json!({"output_tokens": usage.output});
    }
    events.push(Some("message_delta"), end);
    events.push(Some("message_stop"), r#"{"type":"message_stop"}"#);
    events
}

/// Returns the document of a reply that is not streamed.
pub(super) fn document(request: &Request, reply: &Reply) -> Value {
    let blocks = reply.parts.iter().enumerate().map(|(index, part)| match part {
        Part::Thinking(thought) => json!({"type": "thinking", "thinking": thought, "signature": signature(request)}),
        Part::Text(pieces) => json!({"type": "text", "text": pieces.concat()}),
        Part::Call(call) => {
            let input: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| call.arguments.clone().into());
            json!({"type": "tool_use", "id": call_id(request, index), "name": call.name, "input": input})
        }
    });
    let blocks: Vec<_> = blocks.collect();
    let mut message = message(request);
    message["content"] = blocks.into();
    message["stop_reason"] = stop_reason(reply).into();
    if let Some(usage) = reply.usage {
        message["usage"] = usage_counts(reply, usage.output);
    }
    message
}

fn message(request: &Request) -> Value {
    let id = format!("msg_{:08}", request.number);
    json!({"id": id, "type": "message", "role": "assistant", "model": request.model, "stop_sequence": null})
}

fn call_id(request: &Request, index: usize) -> String {
    format!("toolu_{:08}{index:04}", request.number)
}

fn signature(request: &Request) -> String {
    format!("c2lnbmVk{:08}", request.number)
}

fn stop_reason(reply: &Reply) -> &'static str {
    match reply.stop_reason {
        StopReason::Length => "max_tokens",
        StopReason::Filter => "refusal",
        StopReason::Done if reply.requested_calls().next().is_some() => "tool_use",
        StopReason::Done => "end_turn",
    }
}

fn usage_counts(reply: &Reply, output: u32) -> Value {
    let input = reply.usage.map_or(0, |usage| usage.input);
    json!({
        "input_tokens": input, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": output,
    })
}
