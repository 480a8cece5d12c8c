//! Answers of Gemini's own interface. Calls come whole and without an id. Their arguments are part of the JSON, so they
//! cannot be broken: such a call is what Gemini makes of it, no call and a reason to stop that says so.

use serde_json::{Value, json};

use super::events::Events;
use super::reply::{Call, Part, Reply, Stop, Usage, fragments};
use super::request::Request;

pub(super) fn stream(request: &Request, reply: &Reply) -> Events {
    let mut events = Events::default();
    let mut calls = Vec::new();
    for part in &reply.parts {
        match part {
            Part::Thinking(thought) => {
                for piece in fragments(thought) {
                    events.content(None, chunk(request, reply, json!([{"text": piece, "thought": true}]), None));
                }
            }
            Part::Text(pieces) => {
                for piece in pieces {
                    events.content(None, chunk(request, reply, json!([{"text": piece}]), None));
                }
            }
            Part::Call(call) => calls.extend(function_call(request, reply, call, calls.is_empty())),
        }
    }
    if calls.is_empty() {
        let mut last = json!({"text": ""});
        sign(&mut last, request, reply);
        events.push(None, chunk(request, reply, json!([last]), Some(finish(reply))));
    } else {
        events.content(None, chunk(request, reply, calls.into(), None));
        events.push(None, chunk(request, reply, json!([{"text": ""}]), Some(finish(reply))));
    }
    events
}

pub(super) fn whole(request: &Request, reply: &Reply) -> Value {
    let mut parts: Vec<_> =
        reply.thought().map(|thought| json!({"text": thought, "thought": true})).into_iter().collect();
    let said = reply.said();
    if !said.is_empty() {
        parts.push(json!({"text": said}));
    }
    for (index, call) in reply.called().enumerate() {
        parts.extend(function_call(request, reply, call, index == 0));
    }
    chunk(request, reply, parts.into(), Some(finish(reply)))
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
        chunk["usageMetadata"] = counts(usage, finish.is_some());
    }
    chunk
}

/// The first of parallel calls carries the signature of the thought behind them.
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

fn finish(reply: &Reply) -> &'static str {
    let broken = |call: &Call| serde_json::from_str::<Value>(&call.arguments).is_err();
    match reply.stop {
        Stop::Length => "MAX_TOKENS",
        Stop::Filter => "SAFETY",
        Stop::Done if reply.called().any(broken) => "MALFORMED_FUNCTION_CALL",
        Stop::Done => "STOP",
    }
}

/// Every chunk counts; only the last one is complete.
fn counts(usage: Usage, last: bool) -> Value {
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
