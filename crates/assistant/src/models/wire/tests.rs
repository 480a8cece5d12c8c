//! What the scripted provider of the whole product's tests does not do: servers that are odd, and what models want back.

use serde_json::{Value, json};

use super::*;
use crate::models::fault::Remedy;
use crate::models::heard::{Kept, Part};
use crate::models::prompt::{Answered, Round, Said};
use crate::{Call, Delta, Usage};

/// What is heard of such events.
fn hear(wire: Wire, events: &[Value]) -> Heard {
    let mut heard = Heard::default();
    for event in events {
        wire.read(event.to_string().as_bytes(), &mut heard).unwrap();
    }
    heard
}

fn said(heard: &Heard) -> String {
    heard.fresh.iter().filter_map(|delta| if let Delta::Text(text) = delta { Some(&**text) } else { None }).collect()
}

fn thought(heard: &Heard) -> String {
    let thoughts = heard.fresh.iter();
    thoughts.filter_map(|delta| if let Delta::Thinking(text) = delta { Some(&**text) } else { None }).collect()
}

/// The request that gives a model its own words back, with an answer to each of its calls.
fn asked_again(wire: Wire, model: &str, parts: Vec<Part>) -> Value {
    let kept = Kept { by: model.to_owned(), parts };
    let answer = |(at, call): (usize, &crate::models::heard::Called)| Answered {
        id: if call.id.is_empty() { format!("call_0_{at}").into() } else { call.id.clone().into() },
        name: "add_task",
        text: format!("done {at}"),
    };
    let answers = kept.calls().enumerate().map(answer).collect();
    let round = Round { parts: Cow::Borrowed(&kept.parts), answers };
    let said = vec![Said::System("Be brief."), Said::User("milk"), Said::Round(round)];
    let told = Told { system: "You help.".to_owned(), said };
    let ask = Ask { model, temperature: None, tools: None, told: &told };
    serde_json::from_slice(&wire.write(&ask).unwrap()).unwrap()
}

#[test]
fn openai_as_others_speak_it() {
    // MODEL-2
    let heard = hear(
        Wire::OpenAi,
        &[
            json!({"choices": null, "error": null}),
            json!({"choices": [{"delta": {"role": "assistant", "content": null, "reasoning": "Hm. "}}], "usage": {"prompt_tokens": "?"}}),
            json!({"choices": [{"delta": {"content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "Milk."}]}, {"type": "text", "text": "I "}]}}]}),
            json!({"choices": [{"delta": {"content": "add it.", "reasoning": {"odd": true}}}]}),
            // Calls without a number, and one whose name is repeated.
            json!({"choices": [{"delta": {"tool_calls": [{"id": "a", "function": {"name": "add_task", "arguments": "{}"}}]}}]}),
            json!({"choices": [{"delta": {"tool_calls": [{"id": "b", "function": {"name": "add_task", "arguments": "{\"title\":"}}]}}]}),
            json!({"choices": [{"delta": {"tool_calls": [{"id": "b", "function": {"name": "add_task", "arguments": "\"x\"}"}}]}}]}),
            json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}),
        ],
    );
    assert_eq!((said(&heard), thought(&heard)), ("I add it.".to_owned(), "Hm. Milk.".to_owned()));
    assert!(heard.stopped && !heard.ended);
    assert_eq!(heard.usage, Usage { input: 3, output: 2, reasoning: 0 });
    let body = asked_again(Wire::OpenAi, "gpt", heard.parts);
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
fn anthropic_gets_its_thoughts_back_as_they_were() {
    // MODEL-2
    let block = |block: Value| json!({"type": "content_block_start", "index": 0, "content_block": block});
    let delta = |delta: Value| json!({"type": "content_block_delta", "index": 0, "delta": delta});
    let heard = hear(
        Wire::Anthropic,
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
    assert!(heard.ended);
    assert_eq!(heard.usage, Usage { input: 1105, output: 30, reasoning: 0 });
    let body = asked_again(Wire::Anthropic, "claude-sonnet-4-5", heard.parts);
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
    assert_eq!(asked_again(Wire::Anthropic, "claude-3-haiku-20240307", Vec::new())["max_tokens"], 4096);
}

#[test]
fn gemini_gets_its_signatures_back_where_they_were() {
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
    let heard = hear(Wire::Gemini, &events);
    assert_eq!((said(&heard), thought(&heard)), ("I add it.".to_owned(), "Milk. Now.".to_owned()));
    assert_eq!(heard.usage, Usage { input: 10, output: 4, reasoning: 4 });
    assert!(!heard.ended);
    events.push(json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": {
        "promptTokenCount": 10, "toolUsePromptTokenCount": 1, "candidatesTokenCount": 3, "thoughtsTokenCount": 4}}));
    let heard = hear(Wire::Gemini, &events);
    assert_eq!((heard.usage, heard.ended), (Usage { input: 11, output: 7, reasoning: 4 }, true));
    let body = asked_again(Wire::Gemini, "gemini-3-pro", heard.parts);
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
    // Another model's call is not signed, and only the third generation must be told.
    let call = Call { name: "add_task".to_owned(), arguments: "{}".to_owned() };
    let foreign = || vec![Part::Call(crate::models::heard::Called::of(&call)); 2];
    let signature = |body: &Value, n: usize| body["contents"][1]["parts"][n]["thoughtSignature"].clone();
    let third = asked_again(Wire::Gemini, "gemini-3-pro", foreign());
    assert_eq!((signature(&third, 0), signature(&third, 1)), (json!("skip_thought_signature_validator"), Value::Null));
    assert_eq!(signature(&asked_again(Wire::Gemini, "gemini-2.5-flash", foreign()), 0), Value::Null);
}

#[test]
fn what_is_wrong_in_an_answer_is_told_apart() {
    // MODEL-3
    let fault = |wire: Wire, data: &str| wire.read(data.as_bytes(), &mut Heard::default()).unwrap_err();
    for wire in [Wire::OpenAi, Wire::Gemini, Wire::Anthropic] {
        assert_eq!(fault(wire, "{\"choices\":").remedy, Remedy::Again(None));
        let overloaded = fault(wire, r#"{"type": "error", "error": {"message": "overloaded"}}"#);
        assert!(overloaded.remedy == Remedy::Again(None) && overloaded.message.contains("overloaded"));
    }
    let blocked = fault(Wire::Gemini, r#"{"promptFeedback": {"blockReason": "SAFETY"}}"#);
    assert!(blocked.remedy == Remedy::Never && blocked.message.contains("SAFETY"), "{blocked:?}");
}

#[test]
fn addresses_are_completed_and_keys_do_not_show() {
    // MODEL-2, AGENT-5
    let choice = |provider: Provider, base: Option<&str>| Choice {
        base_url: base.map(str::to_owned),
        key: Some("plain-key-7f3a9c".into()),
        headers: vec![("X-Team".to_owned(), "blue".into())],
        ..Choice::new(provider, "m-1")
    };
    let cases = [
        (Provider::OpenAi, None, "https://api.openai.com/v1/chat/completions"),
        (Provider::OpenAiCompatible, Some("http://h/v1/?api-version=2"), "http://h/v1/chat/completions?api-version=2"),
        (Provider::Anthropic, None, "https://api.anthropic.com/v1/messages"),
        (Provider::Anthropic, Some("http://h/"), "http://h/v1/messages"),
        (Provider::Anthropic, Some("http://h/gate/v1"), "http://h/gate/v1/messages"),
        (Provider::Gemini, Some("http://h"), "http://h/v1beta/models/m-1:streamGenerateContent?alt=sse"),
        (Provider::Gemini, Some("http://h/v1"), "http://h/v1/models/m-1:streamGenerateContent?alt=sse"),
    ];
    for (provider, base, url) in cases {
        let wire = Wire::of(provider).unwrap();
        let choice = choice(provider, base);
        assert_eq!(wire.url(&choice).unwrap().as_str(), url);
        let headers = wire.headers(&choice).unwrap();
        assert_eq!(headers["x-team"], "blue");
        assert!(!format!("{headers:?}").contains("plain-key"), "{headers:?}");
    }
    let broken = Choice { key: Some("two\nlines".into()), ..Choice::new(Provider::Gemini, "m-1") };
    let error = Wire::Gemini.headers(&broken).unwrap_err();
    assert!(error.contains("x-goog-api-key") && !error.contains("lines"), "{error}");
}
