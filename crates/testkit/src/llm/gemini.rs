//! Responses of the native API of Gemini. Calls are complete and have no id. Their arguments are part of the JSON, so they
//! cannot be invalid. As with the real API, a call with invalid arguments becomes the finish reason
//! `MALFORMED_FUNCTION_CALL`.

use serde_json::{Value, json};

use super::events::Events;
use super::reply::{Call, Part, Reply, StopReason, Usage, fragments};
use super::request::Request;

/// Returns the events of a streamed reply.
pub(super) fn stream(request: &Request, reply: &Reply) -> Events {
    let mut events = Events::default();
    let mut calls = Vec::new();
    for part in &reply.parts {
        match part {
            Part::Thinking(thought) => {
                for piece in fragments(thought) {
                    events.push_content(None, chunk(request, reply, json!([{"text": piece, "thought": true}]), None));
                }
            }
            Part::Text(pieces) => {
                for piece in pieces {
                    events.push_content(None, chunk(request, reply, json!([{"text": piece}]), None));
                }
            }
            Part::Call(call) => calls.extend(function_call(request, reply, call, calls.is_empty())),
        }
    }
    if calls.is_empty() {
        let mut last = json!({"text": ""});
        sign(&mut last, request, reply);
        events.push(None, chunk(request, reply, json!([last]), Some(finish_reason(reply))));
    } else {
        events.push_content(None, chunk(request, reply, calls.into(), None));
        events.push(None, chunk(request, reply, json!([{"text": ""}]), Some(finish_reason(reply))));
    }
    events
}

/// Returns the document of a reply that is not streamed.
pub(super) fn document(request: &Request, reply: &Reply) -> Value {
    let mut parts: Vec<_> =
        reply.thought().map(|thought| json!({"text": thought, "thought": true})).into_iter().collect();
    let text = reply.text_content();
    if !text.is_empty() {
        parts.push(json!({"text": text}));
    }
    for (index, call) in reply.requested_calls().enumerate() {
        parts.extend(function_call(request, reply, call, index == 0));
    }
    chunk(request, reply, parts.into(), Some(finish_reason(reply)))
}

fn chunk(request: &Request, reply: &Reply, parts: Value, finish: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if let Some(finish) = finish {
        candidate["finishReason"] = finish.into();
    }
    let mut chunk = json!({
        "candidates": [candidate], "modelVersion": request.model, "responseId": format!("response-{}", request.number),
    });
    if let Some(usage) = reply.usage {
        chunk["usageMetadata"] = usage_counts(usage, finish.is_some());
    }
    chunk
}

/// Returns the part of a call. The first of parallel calls has the signature of the preceding thought.
fn function_call(request: &Request, reply: &Reply, call: &Call, first: bool) -> Option<Value> {
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    let mut part = json!({"functionCall": {"name": call.name, "args": arguments}});
    if first {
        sign(&mut part, request, reply);
    }
    Some(part)
}

fn sign(part: &mut Value, request: &Request, reply: &Reply) {
    if reply.thought().is_some() {
        part["thoughtSignature"] = format!("c2lnbmVk{:08}", request.number).into();
    }
}

fn finish_reason(reply: &Reply) -> &'static str {
    let is_invalid = |call: &Call| serde_json::from_str::<Value>(&call.arguments).is_err();
    match reply.stop_reason {
        StopReason::Length => "MAX_TOKENS",
        StopReason::Filter => "SAFETY",
        StopReason::Done if reply.requested_calls().any(is_invalid) => "MALFORMED_FUNCTION_CALL",
        StopReason::Done => "STOP",
    }
}

/// Returns the counts of a chunk. Only those of the last chunk are complete.
fn usage_counts(usage: Usage, last: bool) -> Value {
    let mut counts = json!({"promptTokenCount": usage.input, "totalTokenCount": usage.input});
    if last {
        counts["candidatesTokenCount"] = usage.output.saturating_sub(usage.reasoning).into();
        counts["totalTokenCount"] = (usage.input + usage.output).into();
    }
    if usage.reasoning > 0 {
        counts["thoughtsTokenCount"] = usage.reasoning.into();
    }
    counts
}
