//! The wire protocol of each provider.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use serde_json::{Value, json};
use testkit::llm::{Llm, Reply, StopReason, TranscriptEntry, Wire};
use tokio::sync::Notify;

use crate::{KEY, ParsedReply, WIRES, body, body_with_result, client, events, parse_reply, schema, send, send_default};

pub(crate) fn parse_openai(reply: &mut ParsedReply, data: &Value) {
    if let Some(usage) = data["usage"].as_object() {
        assert_eq!(data["choices"], json!([]));
        let reasoning = usage["completion_tokens_details"]["reasoning_tokens"].as_u64().unwrap();
        let input = &usage["prompt_tokens"];
        let output = &usage["completion_tokens"];
        reply.usage = (input.as_u64().unwrap(), output.as_u64().unwrap(), reasoning);
        return;
    }
    let choice = &data["choices"][0];
    let delta = &choice["delta"];
    reply.text.push_str(delta["content"].as_str().unwrap_or_default());
    reply.thought.push_str(delta["reasoning_content"].as_str().unwrap_or_default());
    for call in delta["tool_calls"].as_array().into_iter().flatten() {
        let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
        if let Some(name) = call["function"]["name"].as_str() {
            assert_eq!(index, reply.calls.len());
            assert!(call["id"].as_str().unwrap().starts_with("call_"));
            reply.calls.push((name.to_owned(), String::new()));
        }
        reply.calls[index].1.push_str(call["function"]["arguments"].as_str().unwrap());
    }
    reply.finish.push_str(choice["finish_reason"].as_str().unwrap_or_default());
}

pub(crate) fn parse_gemini(reply: &mut ParsedReply, data: &Value) {
    let candidate = &data["candidates"][0];
    for part in candidate["content"]["parts"].as_array().unwrap() {
        let text = part["text"].as_str().unwrap_or_default();
        if part["thought"] == true {
            reply.thought.push_str(text)
        } else {
            reply.text.push_str(text)
        }
        reply.signature.push_str(part["thoughtSignature"].as_str().unwrap_or_default());
        if let Some(call) = part.get("functionCall") {
            reply.calls.push((call["name"].as_str().unwrap().to_owned(), call["args"].to_string()));
        }
    }
    if let Some(finish) = candidate["finishReason"].as_str() {
        reply.finish.push_str(finish);
        reply.ended = true;
    }
    let count = |name: &str| data["usageMetadata"][name].as_u64().unwrap_or(0);
    let reasoning = count("thoughtsTokenCount");
    reply.usage = (count("promptTokenCount"), count("candidatesTokenCount") + reasoning, reasoning);
}

pub(crate) fn parse_anthropic(reply: &mut ParsedReply, name: &str, data: &Value) {
    assert_eq!(data["type"], name);
    let delta = &data["delta"];
    match name {
        "message_start" => reply.usage.0 = data["message"]["usage"]["input_tokens"].as_u64().unwrap_or(0),
        "content_block_start" if data["content_block"]["type"] == "tool_use" => {
            assert!(data["content_block"]["id"].as_str().unwrap().starts_with("toolu_"));
            reply.calls.push((data["content_block"]["name"].as_str().unwrap().to_owned(), String::new()));
        }
        "content_block_delta" => {
            reply.text.push_str(delta["text"].as_str().unwrap_or_default());
            reply.thought.push_str(delta["thinking"].as_str().unwrap_or_default());
            reply.signature.push_str(delta["signature"].as_str().unwrap_or_default());
            if let Some(piece) = delta["partial_json"].as_str() {
                reply.calls.last_mut().unwrap().1.push_str(piece);
            }
        }
        "message_delta" => {
            reply.finish.push_str(delta["stop_reason"].as_str().unwrap());
            reply.usage.1 = data["usage"]["output_tokens"].as_u64().unwrap_or(0);
        }
        "message_stop" => reply.ended = true,
        "content_block_start" | "content_block_stop" | "ping" => {}
        other => panic!("{other}"),
    }
}

/// Sends a request and parses the streamed reply.
async fn read_reply(llm: &Llm, wire: Wire) -> ParsedReply {
    let answer = send_default(llm, wire).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(answer.headers()["content-type"].to_str().unwrap().starts_with("text/event-stream"));
    parse_reply(wire, &answer.text().await.unwrap())
}

#[tokio::test]
async fn text_is_streamed_with_usage() {
    let llm = Llm::start().await;
    for (wire, finish) in WIRES.into_iter().zip(["stop", "STOP", "end_turn"]) {
        llm.script([Reply::text("Grüß Gott, \"you\".\n").usage(30, 9)]);
        let reply = read_reply(&llm, wire).await;
        assert_eq!(reply.text, "Grüß Gott, \"you\".\n", "{wire:?}");
        assert_eq!((reply.finish.as_str(), reply.usage, reply.ended), (finish, (30, 9, 0), true), "{wire:?}");
    }
    // The script has ended.
    assert_eq!(read_reply(&llm, Wire::OpenAi).await.text, "Hello.");
    llm.always(Reply::empty());
    for wire in WIRES {
        let reply = read_reply(&llm, wire).await;
        assert!(reply.text.is_empty() && reply.calls.is_empty() && reply.ended, "{reply:?}");
    }
}

#[tokio::test]
async fn calls_are_fragmented_and_parallel() {
    let llm = Llm::start().await;
    let one = json!({"title": "buy a lot of milk"});
    let two = json!({"title": "käse", "tags": ["a", "b"]});
    for (wire, finish) in WIRES.into_iter().zip(["tool_calls", "STOP", "tool_use"]) {
        llm.script([Reply::calls([("add_task", &one), ("add_note", &two)]).thinking("Two things, so two calls.")]);
        let reply = read_reply(&llm, wire).await;
        let calls: Vec<_> = reply.calls.iter().map(|(name, json)| (name.as_str(), json.parse().unwrap())).collect();
        assert_eq!(calls, [("add_task", one.clone()), ("add_note", two.clone())], "{wire:?}");
        assert_eq!((reply.thought.as_str(), reply.finish.as_str()), ("Two things, so two calls.", finish));
        assert_eq!(reply.signature.is_empty(), wire == Wire::OpenAi, "{wire:?}");
        let reasoning = if wire == Wire::Anthropic { 0 } else { 3 };
        assert_eq!(reply.usage, (12, 7, reasoning), "{wire:?}");
    }
    llm.always(Reply::call("add_task", &one));
    for (wire, mark) in [(Wire::OpenAi, "\"arguments\":"), (Wire::Anthropic, "input_json_delta")] {
        let stream = send_default(&llm, wire).await.unwrap().text().await.unwrap();
        assert!(stream.matches(mark).count() > 2, "{stream}");
    }
}

#[tokio::test]
async fn arguments_may_be_invalid() {
    let llm = Llm::start().await;
    llm.always(Reply::call("add_task", "{\"title\": \"mi"));
    for wire in [Wire::OpenAi, Wire::Anthropic] {
        assert_eq!(read_reply(&llm, wire).await.calls, [("add_task".to_owned(), "{\"title\": \"mi".to_owned())]);
    }
    let reply = read_reply(&llm, Wire::Gemini).await;
    assert_eq!((reply.finish.as_str(), reply.calls.len()), ("MALFORMED_FUNCTION_CALL", 0));
}

#[tokio::test]
async fn stop_reasons_have_the_names_of_the_provider() {
    let llm = Llm::start().await;
    let length = ["length", "MAX_TOKENS", "max_tokens"];
    let filter = ["content_filter", "SAFETY", "refusal"];
    for (at, wire) in WIRES.into_iter().enumerate() {
        llm.script(
            [StopReason::Length, StopReason::Filter]
                .map(|stop| Reply::text("I").with_stop_reason(stop).without_usage()),
        );
        let long = read_reply(&llm, wire).await;
        let filtered = read_reply(&llm, wire).await;
        assert_eq!((long.finish.as_str(), filtered.finish.as_str()), (length[at], filter[at]));
        assert_eq!(long.usage, (0, 0, 0));
    }
}

#[tokio::test]
async fn replies_without_streaming_are_documents() {
    let llm = Llm::start().await;
    llm.always(Reply::text("Hi there.").and_call("add_task", json!({"title": "milk"})).thinking("Hm."));
    let mut whole = Vec::new();
    for wire in WIRES {
        let mut body = body(wire, false);
        body["stream"] = json!(false);
        let answer = send(&llm.url(), wire, &body).await.unwrap();
        assert_eq!(answer.headers()["content-type"], "application/json");
        whole.push(answer.json::<Value>().await.unwrap());
    }
    let message = &whole[0]["choices"][0]["message"];
    assert_eq!((&message["content"], &message["reasoning_content"]), (&json!("Hi there."), &json!("Hm.")));
    assert_eq!(message["tool_calls"][0]["function"]["arguments"], "{\"title\":\"milk\"}");
    assert_eq!((&whole[0]["model"], &whole[0]["usage"]["total_tokens"]), (&json!("m-1"), &json!(19)));
    let parts = &whole[1]["candidates"][0]["content"]["parts"];
    assert_eq!((&parts[0]["thought"], &parts[1]["text"]), (&json!(true), &json!("Hi there.")));
    assert_eq!(parts[2]["functionCall"]["args"], json!({"title": "milk"}));
    assert_eq!(whole[1]["usageMetadata"]["totalTokenCount"], 19);
    let kinds: Vec<_> = whole[2]["content"].as_array().unwrap().iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["thinking", "text", "tool_use"]);
    assert_eq!((&whole[2]["stop_reason"], &whole[2]["usage"]["input_tokens"]), (&json!("tool_use"), &json!(12)));
}

#[tokio::test]
async fn recorded_requests_are_the_same_on_every_wire() {
    let llm = Llm::start().await;
    llm.always(Reply::text("ok"));
    for wire in WIRES {
        send_default(&llm, wire).await.unwrap();
        send(&llm.url(), wire, &body_with_result(wire)).await.unwrap();
    }
    llm.wait_for_requests(6).await;
    let requests = llm.requests();
    let call = TranscriptEntry::Call { name: "add_task".to_owned(), arguments: json!({"title": "milk"}) };
    for (wire, pair) in WIRES.into_iter().zip(requests.chunks(2)) {
        let request = &pair[0];
        assert_eq!((request.wire, request.model.as_str(), request.api_key()), (wire, "m-1", Some(KEY)));
        assert_eq!(request.last_user_text(), "add bread");
        assert_eq!(request.tool_results(), Vec::<String>::new(), "the result came before the last message");
        assert_eq!(request.tool_names(), ["list_tasks", "add_task"]);
        assert_eq!(request.tool_schema("add_task"), Some(schema("title")));
        assert_eq!((request.temperature(), request.has_system()), (Some(0.5), true));
        let expected =
            [TranscriptEntry::System("Be kind.".into()), TranscriptEntry::User("add milk".into()), call.clone()];
        assert_eq!(request.transcript()[..3], expected, "{wire:?}");
        assert_eq!(request.thought_signatures().len(), usize::from(wire != Wire::OpenAi));
        let result = if wire == Wire::Gemini { "{\"ok\":true}" } else { "new" };
        assert_eq!(pair[1].tool_results(), [result]);
    }
}

#[tokio::test]
async fn any_path_prefix_is_accepted() {
    let llm = Llm::start().await;
    let paths =
        ["/v1beta/openai/chat/completions", "/openai/deployments/x/chat/completions?api-version=1", "/api/v1/messages"];
    for path in paths {
        let answer = client().post(format!("{}{path}", llm.url())).json(&json!({"stream": true})).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
    }
    assert_eq!(llm.requests()[1].query.as_deref(), Some("api-version=1"));
    for (path, status) in [("/v1/embeddings", 404), ("/v1/messages", 400)] {
        let answer = client().post(format!("{}{path}", llm.url())).body("{").send().await.unwrap();
        assert_eq!(answer.status(), status, "{path}");
    }
}

#[tokio::test]
async fn replies_can_depend_on_the_request() {
    let llm = Llm::start().await;
    llm.reply_with(|request| match request.tool_results().as_slice() {
        [] => Reply::call("add_task", json!({"title": request.last_user_text()})),
        _ => Reply::text("Added."),
    });
    for wire in WIRES {
        assert_eq!(read_reply(&llm, wire).await.calls.len(), 1);
        let answer = send(&llm.url(), wire, &body_with_result(wire)).await.unwrap();
        assert_eq!(parse_reply(wire, &answer.text().await.unwrap()).text, "Added.");
    }
}

#[tokio::test]
async fn replies_can_be_delayed_chunked_and_paused() {
    let llm = Llm::start().await;
    let gap = Duration::from_millis(20);
    llm.script([Reply::text("a b c d").delayed(gap).with_gap(gap), Reply::text("äöü").chunked(1)]);
    let started = Instant::now();
    assert_eq!(read_reply(&llm, Wire::Anthropic).await.text, "a b c d");
    assert!(started.elapsed() > gap * 8, "{:?}", started.elapsed());
    let mut pieces = Vec::new();
    let mut stream = send_default(&llm, Wire::Gemini).await.unwrap().bytes_stream();
    while let Some(piece) = stream.next().await {
        pieces.push(piece.unwrap());
    }
    assert!(pieces.iter().all(|piece| piece.len() == 1));
    assert_eq!(parse_reply(Wire::Gemini, std::str::from_utf8(&pieces.concat()).unwrap()).text, "äöü");

    let gate = Arc::new(Notify::new());
    for wire in WIRES {
        llm.script([Reply::text("one two three four").paused(gate.clone())]);
        let mut stream = send_default(&llm, wire).await.unwrap().bytes_stream();
        let mut read = String::new();
        while !read.contains("two") {
            read.push_str(std::str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap());
        }
        assert!(!read.contains("three"), "{read}");
        gate.notify_one();
        while let Some(piece) = stream.next().await {
            read.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
        }
        assert!(parse_reply(wire, &read).ended);
    }
}

#[tokio::test]
async fn usage_is_sent_only_on_request() {
    let llm = Llm::start().await;
    let mut body = body(Wire::OpenAi, true);
    body.as_object_mut().unwrap().remove("stream_options");
    let stream = send(&llm.url(), Wire::OpenAi, &body).await.unwrap().text().await.unwrap();
    assert!(!stream.contains("usage"), "{stream}");
    assert_eq!(events(&stream).last().unwrap().1, "[DONE]");
}
