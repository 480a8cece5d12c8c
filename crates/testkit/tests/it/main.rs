//! Tests of the test doubles.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod failures;
mod llm_program;
mod wires;

use std::time::Duration;

use reqwest::{Client, Response};
use serde_json::{Value, json};
use testkit::llm::{Llm, Wire};

pub const WIRES: [Wire; 3] = [Wire::OpenAi, Wire::Gemini, Wire::Anthropic];
pub const KEY: &str = "sk-secret-1234567890";

thread_local! {
    // One client per test, so that connections are reused, also after a failure.
    static CLIENT: Client = {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Client::builder().no_proxy().timeout(Duration::from_secs(20)).build().unwrap()
    };
}

pub fn client() -> Client {
    CLIENT.with(Client::clone)
}

pub fn schema(property: &str) -> Value {
    json!({"type": "object", "properties": {property: {"type": "string"}}})
}

/// Returns a request with two tools. Its conversation has a tool call, followed by a message of the user.
pub fn body(wire: Wire, stream: bool) -> Value {
    match wire {
        Wire::OpenAi => json!({
            "model": "m-1", "stream": stream, "stream_options": {"include_usage": true}, "temperature": 0.5,
            "messages": [
                {"role": "system", "content": "Be kind."},
                {"role": "user", "content": "add milk"},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "add_task", "arguments": "{\"title\":\"milk\"}"}},
                ]},
                {"role": "tool", "tool_call_id": "c1", "content": "old"},
                {"role": "user", "content": [{"type": "text", "text": "add bread"}]},
            ],
            "tools": [
                {"type": "function", "function": {"name": "list_tasks", "parameters": schema("status")}},
                {"type": "function", "function": {"name": "add_task", "parameters": schema("title")}},
            ],
        }),
        Wire::Gemini => json!({
            "systemInstruction": {"parts": [{"text": "Be kind."}]}, "generationConfig": {"temperature": 0.5},
            "contents": [
                {"role": "user", "parts": [{"text": "add milk"}]},
                {"role": "model", "parts": [
                    {"text": "Hm.", "thought": true},
                    {"functionCall": {"name": "add_task", "args": {"title": "milk"}}, "thoughtSignature": "s1"},
                ]},
                {"role": "user", "parts": [{"functionResponse": {"name": "add_task", "response": {"content": "old"}}}]},
                {"role": "user", "parts": [{"text": "add bread"}]},
            ],
            "tools": [{"functionDeclarations": [
                {"name": "list_tasks", "parametersJsonSchema": schema("status")},
                {"name": "add_task", "parametersJsonSchema": schema("title")},
            ]}],
        }),
        Wire::Anthropic => json!({
            "model": "m-1", "stream": stream, "system": [{"type": "text", "text": "Be kind."}], "temperature": 0.5,
            "messages": [
                {"role": "user", "content": "add milk"},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "s1"},
                    {"type": "tool_use", "id": "t1", "name": "add_task", "input": {"title": "milk"}},
                ]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "old"}]},
                {"role": "user", "content": [{"type": "text", "text": "add bread"}]},
            ],
            "tools": [
                {"name": "list_tasks", "input_schema": schema("status")},
                {"name": "add_task", "input_schema": schema("title")},
            ],
        }),
    }
}

/// Returns the request of [`body`] with the result of another tool call.
pub fn body_with_result(wire: Wire) -> Value {
    let mut body = body(wire, true);
    let (messages, message) = match wire {
        Wire::OpenAi => ("messages", json!({"role": "tool", "tool_call_id": "c2", "content": "new"})),
        Wire::Gemini => {
            let answer = json!({"name": "add_task", "response": {"content": {"ok": true}}});
            ("contents", json!({"role": "user", "parts": [{"functionResponse": answer}]}))
        }
        Wire::Anthropic => {
            let content = json!([{"type": "text", "text": "new"}]);
            let result = json!({"type": "tool_result", "tool_use_id": "t2", "content": content});
            ("messages", json!({"role": "user", "content": [result]}))
        }
    };
    body[messages].as_array_mut().unwrap().push(message);
    body
}

pub async fn send(url: &str, wire: Wire, body: &Value) -> reqwest::Result<Response> {
    let client = client();
    let request = match wire {
        Wire::OpenAi => client.post(format!("{url}/v1/chat/completions")).bearer_auth(KEY),
        Wire::Gemini if body["stream"] == false => {
            client.post(format!("{url}/v1beta/models/m-1:generateContent")).header("x-goog-api-key", KEY)
        }
        Wire::Gemini => {
            client.post(format!("{url}/v1beta/models/m-1:streamGenerateContent?alt=sse")).header("x-goog-api-key", KEY)
        }
        Wire::Anthropic => client.post(format!("{url}/v1/messages")).header("x-api-key", KEY),
    };
    request.json(body).send().await
}

/// Sends the request of [`body`].
pub async fn send_default(llm: &Llm, wire: Wire) -> reqwest::Result<Response> {
    send(&llm.url(), wire, &body(wire, true)).await
}

/// A reply that was parsed from its events.
#[derive(Debug, Default, PartialEq)]
pub struct ParsedReply {
    pub text: String,
    pub thought: String,
    pub signature: String,
    /// The name and the arguments of each call.
    pub calls: Vec<(String, String)>,
    pub finish: String,
    /// The input, output and reasoning tokens. Anthropic does not report reasoning tokens.
    pub usage: (u64, u64, u64),
    /// Set after the end marker.
    pub ended: bool,
}

/// Splits a stream into events. Returns the name and the data of each.
pub fn events(stream: &str) -> Vec<(Option<String>, String)> {
    let blocks = stream.split("\n\n").filter(|block| !block.is_empty());
    let event = |block: &str| {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        (field("event: "), field("data: ").unwrap_or_default())
    };
    blocks.map(event).collect()
}

pub fn parse_reply(wire: Wire, stream: &str) -> ParsedReply {
    let mut reply = ParsedReply::default();
    for (name, data) in events(stream) {
        if data == "[DONE]" {
            reply.ended = true;
            continue;
        }
        let data: Value = serde_json::from_str(&data).unwrap();
        match wire {
            Wire::OpenAi => wires::parse_openai(&mut reply, &data),
            Wire::Gemini => wires::parse_gemini(&mut reply, &data),
            Wire::Anthropic => wires::parse_anthropic(&mut reply, name.as_deref().unwrap(), &data),
        }
    }
    reply
}
