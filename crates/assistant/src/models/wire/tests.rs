//! Cases that the scripted provider of `testkit` does not cover: deviating servers, and replies that are sent back.

use serde_json::{Value, json};

use super::*;
use crate::models::accumulator::{RecordedReply, ReplyPart};
use crate::models::provider_error::Remedy;
use crate::models::transcript::{ToolResult, ToolRound, TranscriptEntry};
use crate::{ModelUsage, ReplyDelta, RequestedCall};

fn read_reply(wire: ProviderWire, events: &[Value]) -> ReplyAccumulator {
    let mut reply = ReplyAccumulator::default();
    for event in events {
        wire.read(event.to_string().as_bytes(), &mut reply).unwrap();
    }
    reply
}

fn text(reply: &ReplyAccumulator) -> String {
    reply
        .deltas
        .iter()
        .filter_map(|delta| if let ReplyDelta::Text(text) = delta { Some(&**text) } else { None })
        .collect()
}

fn thought(reply: &ReplyAccumulator) -> String {
    let thoughts = reply.deltas.iter();
    thoughts.filter_map(|delta| if let ReplyDelta::Thinking(text) = delta { Some(&**text) } else { None }).collect()
}

/// Returns the request that sends a reply back to its model, with a result for each call.
fn next_request(wire: ProviderWire, model: &str, parts: Vec<ReplyPart>) -> Value {
    let recorded = RecordedReply { model: model.to_owned(), parts };
    let result = |(at, call): (usize, &crate::models::accumulator::CallPart)| ToolResult {
        id: if call.id.is_empty() { format!("call_0_{at}").into() } else { call.id.clone().into() },
        name: "add_task",
        text: format!("done {at}"),
    };
    let results = recorded.calls().enumerate().map(result).collect();
    let round = ToolRound { parts: Cow::Borrowed(&recorded.parts), results };
    let entries = vec![
        TranscriptEntry::System("Be brief."),
        TranscriptEntry::User("milk".into()),
        TranscriptEntry::ToolRound(round),
    ];
    let transcript = ModelTranscript { system: "You help.".to_owned(), entries };
    let request = WireRequest { model, temperature: None, tools: None, transcript: &transcript };
    serde_json::from_slice(&wire.write(&request).unwrap()).unwrap()
}

#[test]
fn openai_compatible_servers_may_deviate() {
    // MODEL-2
    let reply = read_reply(
        ProviderWire::OpenAi,
        &[
            json!({"choices": null, "error": null}),
            json!({"choices": [{"delta": {"role": "assistant", "content": null, "reasoning": "Hm. "}}], "usage": {"prompt_tokens": "?"}}),
            json!({"choices": [{"delta": {"content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "Milk."}]}, {"type": "text", "text": "I "}]}}]}),
            json!({"choices": [{"delta": {"content": "add it.", "reasoning": {"odd": true}}}]}),
            // Calls without a number, and a call with a repeated name.
            json!({"choices": [{"delta": {"tool_calls": [{"id": "a", "function": {"name": "add_task", "arguments": "{}"}}]}}]}),
            json!({"choices": [{"delta": {"tool_calls": [{"id": "b", "function": {"name": "add_task", "arguments": "{\"title\":"}}]}}]}),
            json!({"choices": [{"delta": {"tool_calls": [{"id": "b", "function": {"name": "add_task", "arguments": "\"x\"}"}}]}}]}),
            json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}),
        ],
    );
    assert_eq!((text(&reply), thought(&reply)), ("I add it.".to_owned(), "Hm. Milk.".to_owned()));
    assert!(reply.stopped && !reply.ended);
    assert_eq!(reply.usage, ModelUsage { input: 3, output: 2, reasoning: 0 });
    let body = next_request(ProviderWire::OpenAi, "gpt", reply.parts);
    let expected = json!({
        "model": "gpt", "stream": true, "stream_options": {"include_usage": true},
        "messages": [
            {"role": "system", "content": "You help."},
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "milk"},
            {"role": "assistant", "content": "I add it.", "reasoning_content": "Hm. Milk.", "tool_calls": [
                {"type": "function", "id": "a", "function": {"name": "add_task", "arguments": "{}"}},
                {"type": "function", "id": "b", "function": {"name": "add_task", "arguments": "{\"title\":\"x\"}"}}]},
            {"role": "tool", "content": "done 0", "tool_call_id": "a"},
            {"role": "tool", "content": "done 1", "tool_call_id": "b"},
        ],
    });
    assert_eq!(body, expected);
}

#[test]
fn anthropic_thoughts_are_sent_back_unchanged() {
    // MODEL-2
    let block = |block: Value| json!({"type": "content_block_start", "index": 0, "content_block": block});
    let delta = |delta: Value| json!({"type": "content_block_delta", "index": 0, "delta": delta});
    let reply = read_reply(
        ProviderWire::Anthropic,
        &[
            json!({"type": "message_start", "message": {"usage": {
                "input_tokens": 5, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 1000, "output_tokens": 1}}}),
            block(json!({"type": "thinking", "thinking": "", "signature": ""})),
            delta(json!({"type": "thinking_delta", "thinking": "Milk."})),
            delta(json!({"type": "signature_delta", "signature": "c2ln"})),
            delta(json!({"type": "signature_delta", "signature": "bmVk"})),
            json!({"type": "ping"}),
            block(json!({"type": "redacted_thinking", "data": "c2VhbGVk"})),
            block(json!({"type": "thinking", "thinking": "Unsigned."})),
            block(json!({"type": "text", "text": ""})),
            delta(json!({"type": "text_delta", "text": " "})),
            block(json!({"type": "tool_use", "id": "toolu_1", "name": "add_task", "input": {}})),
            delta(json!({"type": "input_json_delta", "partial_json": "{\"title\":"})),
            delta(json!({"type": "input_json_delta", "partial_json": "\"milk\"}"})),
            block(json!({"type": "tool_use", "id": "toolu_2", "name": "add_task", "input": {}})),
            json!({"type": "something_new", "delta": {}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 30}}),
            json!({"type": "message_stop"}),
        ],
    );
    assert!(reply.ended);
    assert_eq!(reply.usage, ModelUsage { input: 1105, output: 30, reasoning: 0 });
    let body = next_request(ProviderWire::Anthropic, "claude-sonnet-4-5", reply.parts);
    let expected = json!({
        "model": "claude-sonnet-4-5", "max_tokens": 32_000, "stream": true, "system": "You help.\n\nBe brief.",
        "messages": [
            {"role": "user", "content": "milk"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Milk.", "signature": "c2lnbmVk"},
                {"type": "redacted_thinking", "data": "c2VhbGVk"},
                {"type": "tool_use", "id": "toolu_1", "name": "add_task", "input": {"title": "milk"}},
                {"type": "tool_use", "id": "toolu_2", "name": "add_task", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done 0"},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "done 1"}]},
        ],
    });
    assert_eq!(body, expected);
    assert_eq!(next_request(ProviderWire::Anthropic, "claude-3-haiku-20240307", Vec::new())["max_tokens"], 4096);
}

#[test]
fn gemini_signatures_are_sent_back_in_position() {
    // MODEL-2
    let chunk = |parts: Value| json!({"candidates": [{"content": {"parts": parts, "role": "model"}}]});
    let mut events = vec![
        chunk(json!([{"text": "Milk. ", "thought": true}, {"text": "Now.", "thought": true}])),
        chunk(json!([{"text": "I "}])),
        chunk(json!([{"text": "add it."}, {"text": "", "thoughtSignature": "c2ln"}])),
        chunk(json!([{"functionCall": {"name": "add_task", "args": {"title": "milk"}}, "thoughtSignature": "bmVk"},
            {"functionCall": {"id": "7", "name": "add_task"}}])),
        json!({"usageMetadata": {"promptTokenCount": 10, "thoughtsTokenCount": 4}}),
    ];
    let reply = read_reply(ProviderWire::Gemini, &events);
    assert_eq!((text(&reply), thought(&reply)), ("I add it.".to_owned(), "Milk. Now.".to_owned()));
    assert_eq!(reply.usage, ModelUsage { input: 10, output: 4, reasoning: 4 });
    assert!(!reply.ended);
    events.push(json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": {
        "promptTokenCount": 10, "toolUsePromptTokenCount": 1, "candidatesTokenCount": 3, "thoughtsTokenCount": 4}}));
    let reply = read_reply(ProviderWire::Gemini, &events);
    assert_eq!((reply.usage, reply.ended), (ModelUsage { input: 11, output: 7, reasoning: 4 }, true));
    let body = next_request(ProviderWire::Gemini, "gemini-3-pro", reply.parts);
    let response = |n: usize| json!({"name": "add_task", "content": format!("done {n}")});
    let expected = json!({
        "systemInstruction": {"parts": [{"text": "You help.\n\nBe brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "milk"}]},
            {"role": "model", "parts": [
                {"text": "I add it."}, {"text": "", "thoughtSignature": "c2ln"},
                {"functionCall": {"name": "add_task", "args": {"title": "milk"}}, "thoughtSignature": "bmVk"},
                {"functionCall": {"id": "7", "name": "add_task", "args": {}}}]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "add_task", "response": response(0)}},
                {"functionResponse": {"id": "7", "name": "add_task", "response": response(1)}}]},
        ],
        "generationConfig": {"thinkingConfig": {"includeThoughts": true}},
    });
    assert_eq!(body, expected);
    // Calls of another model have no signature. Only Gemini 3 requires a placeholder.
    let call = RequestedCall { name: "add_task".to_owned(), arguments: "{}".to_owned() };
    let unsigned = || vec![ReplyPart::Call(crate::models::accumulator::CallPart::from_requested(&call)); 2];
    let signature = |body: &Value, n: usize| body["contents"][1]["parts"][n]["thoughtSignature"].clone();
    let third = next_request(ProviderWire::Gemini, "gemini-3-pro", unsigned());
    assert_eq!((signature(&third, 0), signature(&third, 1)), (json!("skip_thought_signature_validator"), Value::Null));
    assert_eq!(signature(&next_request(ProviderWire::Gemini, "gemini-2.5-flash", unsigned()), 0), Value::Null);
}

#[test]
fn errors_in_answers_have_remedies() {
    // MODEL-3
    let error =
        |wire: ProviderWire, data: &str| wire.read(data.as_bytes(), &mut ReplyAccumulator::default()).unwrap_err();
    for wire in [ProviderWire::OpenAi, ProviderWire::Gemini, ProviderWire::Anthropic] {
        assert_eq!(error(wire, "{\"choices\":").remedy, Remedy::Retry(None));
        let overloaded = error(wire, r#"{"type": "error", "error": {"message": "overloaded"}}"#);
        assert!(overloaded.remedy == Remedy::Retry(None) && overloaded.message.contains("overloaded"));
    }
    let blocked = error(ProviderWire::Gemini, r#"{"promptFeedback": {"blockReason": "SAFETY"}}"#);
    assert!(blocked.remedy == Remedy::InvalidRequest && blocked.message.contains("SAFETY"), "{blocked:?}");
}

#[test]
fn urls_are_completed_and_keys_are_hidden() {
    // MODEL-2, AGENT-5
    let config = |provider: ModelProvider, base: Option<&str>| ModelConfig {
        base_url: base.map(str::to_owned),
        api_key: Some("plain-key-7f3a9c".into()),
        headers: vec![("X-Team".to_owned(), "blue".into())],
        ..ModelConfig::new(provider, "m-1")
    };
    let cases = [
        (ModelProvider::OpenAi, None, "https://api.openai.com/v1/chat/completions"),
        (
            ModelProvider::OpenAiCompatible,
            Some("http://h/v1/?api-version=2"),
            "http://h/v1/chat/completions?api-version=2",
        ),
        (ModelProvider::Anthropic, None, "https://api.anthropic.com/v1/messages"),
        (ModelProvider::Anthropic, Some("http://h/"), "http://h/v1/messages"),
        (ModelProvider::Anthropic, Some("http://h/gate/v1"), "http://h/gate/v1/messages"),
        (ModelProvider::Gemini, Some("http://h"), "http://h/v1beta/models/m-1:streamGenerateContent?alt=sse"),
        (ModelProvider::Gemini, Some("http://h/v1"), "http://h/v1/models/m-1:streamGenerateContent?alt=sse"),
    ];
    for (provider, base, url) in cases {
        let wire = ProviderWire::for_provider(provider).unwrap();
        let config = config(provider, base);
        assert_eq!(wire.url(&config).unwrap().as_str(), url);
        let headers = wire.headers(&config).unwrap();
        assert_eq!(headers["x-team"], "blue");
        assert!(!format!("{headers:?}").contains("plain-key"), "{headers:?}");
    }
    let broken = ModelConfig { api_key: Some("two\nlines".into()), ..ModelConfig::new(ModelProvider::Gemini, "m-1") };
    let error = ProviderWire::Gemini.headers(&broken).unwrap_err();
    assert!(error.contains("x-goog-api-key") && !error.contains("lines"), "{error}");
}
