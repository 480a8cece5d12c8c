//! Responses of the Chat Completions API of OpenAI and of compatible servers.

use serde_json::{Value, json};

use super::events::Events;
use super::reply::{Part, Reply, StopReason, Usage, fragments};
use super::request::Request;

const CREATED: u64 = 1_760_000_000;

/// Returns the events of a streamed reply.
pub(super) fn stream(request: &Request, reply: &Reply) -> Events {
    let mut events = Events::default();
    let number = request.number;
    let model = Value::from(request.model.as_str());
    let head = format!(
        r#"{{"id":"chatcmpl-{number}","object":"chat.completion.chunk","created":{CREATED},"model":{model},"choices":["#
    );
    // If the usage is requested, it is in a separate chunk, and `null` in the remaining chunks.
    let tail = if request.wants_usage { r#"],"usage":null}"# } else { "]}" };
    let chunk = |delta: Value, finish: Value| {
        format!(r#"{head}{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}}}{tail}"#)
    };
    let content = if reply.requested_calls().next().is_some() { Value::Null } else { "".into() };
    events.push(None, chunk(json!({"role": "assistant", "content": content, "refusal": null}), Value::Null));
    let mut index = 0;
    for part in &reply.parts {
        match part {
            Part::Thinking(thought) => {
                for piece in fragments(thought) {
                    events.push_content(None, chunk(json!({"reasoning_content": piece}), Value::Null));
                }
            }
            Part::Text(pieces) => {
                for piece in pieces {
                    events.push_content(None, chunk(json!({"content": piece}), Value::Null));
                }
            }
            Part::Call(call) => {
                let function = json!({"name": call.name, "arguments": ""});
                let number = reply.first_number.saturating_add(index as u64);
                let opening =
                    json!({"index": number, "id": call_id(request, index), "type": "function", "function": function});
                events.push_content(None, chunk(json!({"tool_calls": [opening]}), Value::Null));
                for piece in fragments(&call.arguments) {
                    let more = json!({"index": number, "function": {"arguments": piece}});
                    events.push_content(None, chunk(json!({"tool_calls": [more]}), Value::Null));
                }
                index += 1;
            }
        }
    }
    events.push(None, chunk(json!({}), finish_reason(reply).into()));
    if let Some(usage) = reply.usage.filter(|_| request.wants_usage) {
        events.push(None, format!(r#"{head}],"usage":{}}}"#, usage_counts(usage)));
    }
    events.push(None, "[DONE]");
    events
}

/// Returns the document of a reply that is not streamed.
pub(super) fn document(request: &Request, reply: &Reply) -> Value {
    let calls = reply.requested_calls().enumerate().map(|(index, call)| {
        let function = json!({"name": call.name, "arguments": call.arguments});
        json!({"id": call_id(request, index), "type": "function", "function": function})
    });
    let calls: Vec<_> = calls.collect();
    let text = reply.text_content();
    let mut message = json!({"role": "assistant", "content": text, "refusal": null});
    if let Some(thought) = reply.thought() {
        message["reasoning_content"] = thought.into();
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
        if text.is_empty() {
            message["content"] = Value::Null;
        }
    }
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(reply)});
    let mut document = json!({
        "id": format!("chatcmpl-{}", request.number), "object": "chat.completion", "created": CREATED,
        "model": request.model, "choices": [choice],
    });
    if let Some(usage) = reply.usage {
        document["usage"] = usage_counts(usage);
    }
    document
}

fn call_id(request: &Request, index: usize) -> String {
    format!("call_{:08}{index:04}", request.number)
}

fn finish_reason(reply: &Reply) -> &'static str {
    match reply.stop_reason {
        StopReason::Length => "length",
        StopReason::Filter => "content_filter",
        StopReason::Done if reply.requested_calls().next().is_some() => "tool_calls",
        StopReason::Done => "stop",
    }
}

fn usage_counts(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}
