//! Each wire as its provider speaks it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use serde_json::{Value, json};
use testkit::llm::{Entry, Llm, Reply, Stop, Wire};
use tokio::sync::Notify;

use crate::{Heard, KEY, WIRES, ask, body, body_with_result, client, events, hear, schema, send};

pub(crate) fn hear_openai(heard: &mut Heard, data: &Value) {
    if let Some(usage) = data["usage"].as_object() {
        assert_eq!(data["choices"], json!([]));
        let reasoning = usage["completion_tokens_details"]["reasoning_tokens"].as_u64().unwrap();
        let input = &usage["prompt_tokens"];
        let output = &usage["completion_tokens"];
        heard.usage = (input.as_u64().unwrap(), output.as_u64().unwrap(), reasoning);
        return;
    }
    let choice = &data["choices"][0];
    let delta = &choice["delta"];
    heard.text.push_str(delta["content"].as_str().unwrap_or_default());
    heard.thought.push_str(delta["reasoning_content"].as_str().unwrap_or_default());
    for call in delta["tool_calls"].as_array().into_iter().flatten() {
        let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
        if let Some(name) = call["function"]["name"].as_str() {
            assert_eq!(index, heard.calls.len());
            assert!(call["id"].as_str().unwrap().starts_with("call_"));
            heard.calls.push((name.to_owned(), String::new()));
        }
        heard.calls[index].1.push_str(call["function"]["arguments"].as_str().unwrap());
    }
    heard.finish.push_str(choice["finish_reason"].as_str().unwrap_or_default());
}

pub(crate) fn hear_gemini(heard: &mut Heard, data: &Value) {
    let candidate = &data["candidates"][0];
    for part in candidate["content"]["parts"].as_array().unwrap() {
        let text = part["text"].as_str().unwrap_or_default();
        if part["thought"] == true {
            heard.thought.push_str(text)
        } else {
            heard.text.push_str(text)
        }
        heard.signature.push_str(part["thoughtSignature"].as_str().unwrap_or_default());
        if let Some(call) = part.get("functionCall") {
            heard.calls.push((call["name"].as_str().unwrap().to_owned(), call["args"].to_string()));
        }
    }
    if let Some(finish) = candidate["finishReason"].as_str() {
        heard.finish.push_str(finish);
        heard.ended = true;
    }
    let count = |name: &str| data["usageMetadata"][name].as_u64().unwrap_or(0);
    let reasoning = count("thoughtsTokenCount");
    heard.usage = (count("promptTokenCount"), count("candidatesTokenCount") + reasoning, reasoning);
}

pub(crate) fn hear_anthropic(heard: &mut Heard, name: &str, data: &Value) {
    assert_eq!(data["type"], name);
    let delta = &data["delta"];
    match name {
        "message_start" => heard.usage.0 = data["message"]["usage"]["input_tokens"].as_u64().unwrap_or(0),
        "content_block_start" if data["content_block"]["type"] == "tool_use" => {
            assert!(data["content_block"]["id"].as_str().unwrap().starts_with("toolu_"));
            heard.calls.push((data["content_block"]["name"].as_str().unwrap().to_owned(), String::new()));
        }
        "content_block_delta" => {
            heard.text.push_str(delta["text"].as_str().unwrap_or_default());
            heard.thought.push_str(delta["thinking"].as_str().unwrap_or_default());
            heard.signature.push_str(delta["signature"].as_str().unwrap_or_default());
            if let Some(piece) = delta["partial_json"].as_str() {
                heard.calls.last_mut().unwrap().1.push_str(piece);
            }
        }
        "message_delta" => {
            heard.finish.push_str(delta["stop_reason"].as_str().unwrap());
            heard.usage.1 = data["usage"]["output_tokens"].as_u64().unwrap_or(0);
        }
        "message_stop" => heard.ended = true,
        "content_block_start" | "content_block_stop" | "ping" => {}
        other => panic!("{other}"),
    }
}

async fn heard(llm: &Llm, wire: Wire) -> Heard {
    let answer = ask(llm, wire).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(answer.headers()["content-type"].to_str().unwrap().starts_with("text/event-stream"));
    hear(wire, &answer.text().await.unwrap())
}

#[tokio::test]
async fn words_come_in_pieces_with_a_count() {
    let llm = Llm::start().await;
    for (wire, finish) in WIRES.into_iter().zip(["stop", "STOP", "end_turn"]) {
        llm.script([Reply::text("Grüß Gott, \"you\".\n").usage(30, 9)]);
        let heard = heard(&llm, wire).await;
        assert_eq!(heard.text, "Grüß Gott, \"you\".\n", "{wire:?}");
        assert_eq!((heard.finish.as_str(), heard.usage, heard.ended), (finish, (30, 9, 0), true), "{wire:?}");
    }
    // The script has ended.
    assert_eq!(heard(&llm, Wire::OpenAi).await.text, "Hello.");
    llm.always(Reply::empty());
    for wire in WIRES {
        let heard = heard(&llm, wire).await;
        assert!(heard.text.is_empty() && heard.calls.is_empty() && heard.ended, "{heard:?}");
    }
}

#[tokio::test]
async fn calls_come_in_fragments_and_in_parallel() {
    let llm = Llm::start().await;
    let one = json!({"title": "buy a lot of milk"});
    let two = json!({"title": "käse", "tags": ["a", "b"]});
    for (wire, finish) in WIRES.into_iter().zip(["tool_calls", "STOP", "tool_use"]) {
        llm.script([Reply::calls([("add_task", &one), ("add_note", &two)]).thinking("Two things, so two calls.")]);
        let heard = heard(&llm, wire).await;
        let calls: Vec<_> = heard.calls.iter().map(|(name, json)| (name.as_str(), json.parse().unwrap())).collect();
        assert_eq!(calls, [("add_task", one.clone()), ("add_note", two.clone())], "{wire:?}");
        assert_eq!((heard.thought.as_str(), heard.finish.as_str()), ("Two things, so two calls.", finish));
        assert_eq!(heard.signature.is_empty(), wire == Wire::OpenAi, "{wire:?}");
        let reasoning = if wire == Wire::Anthropic { 0 } else { 3 };
        assert_eq!(heard.usage, (12, 7, reasoning), "{wire:?}");
    }
    llm.always(Reply::call("add_task", &one));
    for (wire, mark) in [(Wire::OpenAi, "\"arguments\":"), (Wire::Anthropic, "input_json_delta")] {
        let stream = ask(&llm, wire).await.unwrap().text().await.unwrap();
        assert!(stream.matches(mark).count() > 2, "{stream}");
    }
}

#[tokio::test]
async fn arguments_may_be_broken() {
    let llm = Llm::start().await;
    llm.always(Reply::call("add_task", "{\"title\": \"mi"));
    for wire in [Wire::OpenAi, Wire::Anthropic] {
        assert_eq!(heard(&llm, wire).await.calls, [("add_task".to_owned(), "{\"title\": \"mi".to_owned())]);
    }
    let heard = heard(&llm, Wire::Gemini).await;
    assert_eq!((heard.finish.as_str(), heard.calls.len()), ("MALFORMED_FUNCTION_CALL", 0));
}

#[tokio::test]
async fn reasons_to_stop_are_the_providers_own() {
    let llm = Llm::start().await;
    let length = ["length", "MAX_TOKENS", "max_tokens"];
    let filter = ["content_filter", "SAFETY", "refusal"];
    for (at, wire) in WIRES.into_iter().enumerate() {
        llm.script([Stop::Length, Stop::Filter].map(|stop| Reply::text("I").stopped(stop).without_usage()));
        let long = heard(&llm, wire).await;
        let filtered = heard(&llm, wire).await;
        assert_eq!((long.finish.as_str(), filtered.finish.as_str()), (length[at], filter[at]));
        assert_eq!(long.usage, (0, 0, 0));
    }
}

#[tokio::test]
async fn answers_may_come_whole() {
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
async fn what_was_asked_reads_the_same_on_every_wire() {
    let llm = Llm::start().await;
    llm.always(Reply::text("ok"));
    for wire in WIRES {
        ask(&llm, wire).await.unwrap();
        send(&llm.url(), wire, &body_with_result(wire)).await.unwrap();
    }
    llm.asked(6).await;
    let requests = llm.requests();
    let call = Entry::Call { name: "add_task".to_owned(), arguments: json!({"title": "milk"}) };
    for (wire, pair) in WIRES.into_iter().zip(requests.chunks(2)) {
        let request = &pair[0];
        assert_eq!((request.wire, request.model.as_str(), request.key()), (wire, "m-1", Some(KEY)));
        assert_eq!(request.last_user_text(), "add bread");
        assert_eq!(request.tool_results(), Vec::<String>::new(), "that one was before");
        assert_eq!(request.tools(), ["list_tasks", "add_task"]);
        assert_eq!(request.tool_schema("add_task"), Some(schema("title")));
        assert_eq!((request.temperature(), request.has_system()), (Some(0.5), true));
        let said = [Entry::System("Be kind.".into()), Entry::User("add milk".into()), call.clone()];
        assert_eq!(request.transcript()[..3], said, "{wire:?}");
        assert_eq!(request.signatures().len(), usize::from(wire != Wire::OpenAi));
        let result = if wire == Wire::Gemini { "{\"ok\":true}" } else { "new" };
        assert_eq!(pair[1].tool_results(), [result]);
    }
}

#[tokio::test]
async fn any_prefix_will_do() {
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
async fn replies_can_depend_on_what_is_asked() {
    let llm = Llm::start().await;
    llm.decide(|request| match request.tool_results().as_slice() {
        [] => Reply::call("add_task", json!({"title": request.last_user_text()})),
        _ => Reply::text("Added."),
    });
    for wire in WIRES {
        assert_eq!(heard(&llm, wire).await.calls.len(), 1);
        let answer = send(&llm.url(), wire, &body_with_result(wire)).await.unwrap();
        assert_eq!(hear(wire, &answer.text().await.unwrap()).text, "Added.");
    }
}

#[tokio::test]
async fn an_answer_takes_the_time_it_is_told_to() {
    let llm = Llm::start().await;
    let gap = Duration::from_millis(20);
    llm.script([Reply::text("a b c d").delayed(gap).slowly(gap), Reply::text("äöü").torn(1)]);
    let begun = Instant::now();
    assert_eq!(heard(&llm, Wire::Anthropic).await.text, "a b c d");
    assert!(begun.elapsed() > gap * 8, "{:?}", begun.elapsed());
    let mut pieces = Vec::new();
    let mut stream = ask(&llm, Wire::Gemini).await.unwrap().bytes_stream();
    while let Some(piece) = stream.next().await {
        pieces.push(piece.unwrap());
    }
    assert!(pieces.iter().all(|piece| piece.len() == 1));
    assert_eq!(hear(Wire::Gemini, std::str::from_utf8(&pieces.concat()).unwrap()).text, "äöü");

    let gate = Arc::new(Notify::new());
    for wire in WIRES {
        llm.script([Reply::text("one two three four").paused(gate.clone())]);
        let mut stream = ask(&llm, wire).await.unwrap().bytes_stream();
        let mut read = String::new();
        while !read.contains("two") {
            read.push_str(std::str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap());
        }
        assert!(!read.contains("three"), "{read}");
        gate.notify_one();
        while let Some(piece) = stream.next().await {
            read.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
        }
        assert!(hear(wire, &read).ended);
    }
}

#[tokio::test]
async fn usage_comes_only_to_who_wants_it() {
    let llm = Llm::start().await;
    let mut body = body(Wire::OpenAi, true);
    body.as_object_mut().unwrap().remove("stream_options");
    let stream = send(&llm.url(), Wire::OpenAi, &body).await.unwrap().text().await.unwrap();
    assert!(!stream.contains("usage"), "{stream}");
    assert_eq!(events(&stream).last().unwrap().1, "[DONE]");
}
