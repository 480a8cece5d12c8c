//! The doubles themselves: a double that does not do what it says proves nothing.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod by_hand;
mod faults;
mod wires;

use std::time::Duration;

use reqwest::{Client, Response};
use serde_json::{Value, json};
use testkit::llm::{Llm, Wire};

pub const WIRES: [Wire; 3] = [Wire::OpenAi, Wire::Gemini, Wire::Anthropic];
pub const KEY: &str = "sk-secret-1234567890";

thread_local! {
    // One a test, so that connections are used again, also after a fault.
    static CLIENT: Client = {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Client::builder().no_proxy().timeout(Duration::from_secs(20)).build().unwrap()
    };
}

pub fn client() -> Client {
    CLIENT.with(Client::clone)
}

pub fn schema(of: &str) -> Value {
    json!({"type": "object", "properties": {of: {"type": "string"}}})
}

/// A conversation in which a tool was called and then the user spoke again, with two tools on offer.
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

/// The same, after the tool was called once more.
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

pub async fn ask(llm: &Llm, wire: Wire) -> reqwest::Result<Response> {
    send(&llm.url(), wire, &body(wire, true)).await
}

/// What an answer comes to, put together by hand from its events.
#[derive(Debug, Default, PartialEq)]
pub struct Heard {
    pub text: String,
    pub thought: String,
    pub signature: String,
    /// Name and arguments; ids are checked to differ.
    pub calls: Vec<(String, String)>,
    pub finish: String,
    /// Input, output, of it reasoning where the wire says so.
    pub usage: (u64, u64, u64),
    /// Whether the end mark came.
    pub ended: bool,
}

pub fn events(stream: &str) -> Vec<(Option<String>, String)> {
    let blocks = stream.split("\n\n").filter(|block| !block.is_empty());
    let event = |block: &str| {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        (field("event: "), field("data: ").unwrap_or_default())
    };
    blocks.map(event).collect()
}

pub fn hear(wire: Wire, stream: &str) -> Heard {
    let mut heard = Heard::default();
    for (name, data) in events(stream) {
        if data == "[DONE]" {
            heard.ended = true;
            continue;
        }
        let data: Value = serde_json::from_str(&data).unwrap();
        match wire {
            Wire::OpenAi => wires::hear_openai(&mut heard, &data),
            Wire::Gemini => wires::hear_gemini(&mut heard, &data),
            Wire::Anthropic => wires::hear_anthropic(&mut heard, name.as_deref().unwrap(), &data),
        }
    }
    heard
}
