//! Injects each failure on each wire and observes it as a client.

use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};
use testkit::llm::{Llm, LlmFailure, Reply, RetryAfter, Wire, invalid_tool_names};

use crate::{KEY, WIRES, body, events, parse_reply, send, send_default};

/// The time after which a stream counts as hanging.
const HANG_TIMEOUT: Duration = Duration::from_millis(300);

/// A response that was read until its end, an error or a timeout.
struct ReadResponse {
    text: String,
    end: BodyEnd,
}

#[derive(Debug, PartialEq)]
enum BodyEnd {
    Complete,
    Broken,
    Hanging,
}

async fn read(llm: &Llm, wire: Wire, failure: LlmFailure) -> ReadResponse {
    let hangs = matches!(failure, LlmFailure::HangAfterHeaders | LlmFailure::HangMidway);
    let timeout = if hangs { HANG_TIMEOUT } else { Duration::from_secs(10) };
    llm.script([Reply::failure(failure)]);
    let mut stream = send_default(llm, wire).await.unwrap().bytes_stream();
    let mut text = Vec::new();
    let end = loop {
        match tokio::time::timeout(timeout, stream.next()).await {
            Err(_) => break BodyEnd::Hanging,
            Ok(None) => break BodyEnd::Complete,
            Ok(Some(Err(_))) => break BodyEnd::Broken,
            Ok(Some(Ok(piece))) => text.extend_from_slice(&piece),
        }
    };
    ReadResponse { text: String::from_utf8(text).unwrap(), end }
}

#[tokio::test]
async fn errors_have_the_format_of_the_provider_and_repeat_the_key() {
    let llm = Llm::start().await;
    for wire in WIRES {
        for status in [400, 401, 403, 404, 413, 500, 503, 529] {
            llm.script([Reply::failure(LlmFailure::Status(status))]);
            let answer = send_default(&llm, wire).await.unwrap();
            assert_eq!(answer.status(), status);
            let error: Value = answer.json().await.unwrap();
            assert!(error["error"]["message"].as_str().unwrap().contains(KEY), "{error}");
            match wire {
                Wire::OpenAi => assert!(error["error"]["type"].is_string()),
                Wire::Gemini => assert_eq!(error["error"]["code"], status),
                Wire::Anthropic => assert_eq!(error["type"], "error"),
            }
        }
    }
    // The OpenAI endpoint of Gemini returns errors in the format of Gemini.
    llm.script([Reply::failure(LlmFailure::Status(503))]);
    let url = format!("{}/v1beta/openai/chat/completions", llm.url());
    let answer = crate::client().post(url).json(&body(Wire::OpenAi, true)).send().await.unwrap();
    assert_eq!(answer.json::<Value>().await.unwrap()[0]["error"]["status"], "UNAVAILABLE");
}

#[tokio::test]
async fn rate_limits_may_have_a_retry_delay() {
    let llm = Llm::start().await;
    for wire in WIRES {
        let mut headers = Vec::new();
        for after in [RetryAfter::Absent, RetryAfter::Seconds(7), RetryAfter::Date(Duration::from_secs(60))] {
            llm.script([Reply::failure(LlmFailure::RateLimited(after))]);
            let answer = send_default(&llm, wire).await.unwrap();
            assert_eq!(answer.status(), 429);
            headers.push(answer.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned()));
        }
        assert_eq!(headers[..2], [None, Some("7".to_owned())]);
        let date = headers[2].as_deref().unwrap();
        assert!(date.ends_with(" GMT") && date.as_bytes()[3] == b',' && date.len() == 29, "{date}");
    }
}

#[tokio::test]
async fn tools_and_temperature_are_rejected_until_they_are_omitted() {
    let llm = Llm::start().await;
    let messages = [
        "Invalid schema for function 'add_task'",
        "GenerateContentRequest.tools[0].function_declarations[1]",
        "tools.1.custom.input_schema: ",
    ];
    llm.reject_tool("add_task");
    for (wire, message) in WIRES.into_iter().zip(messages) {
        llm.script([Reply::text("Fine.")]);
        let mut body = body(wire, true);
        for _ in 0..2 {
            let answer = send(&llm.url(), wire, &body).await.unwrap();
            assert_eq!(answer.status(), 400);
            let error: Value = answer.json().await.unwrap();
            assert!(error["error"]["message"].as_str().unwrap().contains(message), "{error}");
            if wire == Wire::OpenAi {
                assert_eq!(error["error"]["param"], "tools[1].function.parameters");
            }
        }
        let tools =
            if wire == Wire::Gemini { &mut body["tools"][0]["functionDeclarations"] } else { &mut body["tools"] };
        tools.as_array_mut().unwrap().remove(1);
        let answer = send(&llm.url(), wire, &body).await.unwrap();
        assert_eq!(parse_reply(wire, &answer.text().await.unwrap()).text, "Fine.", "the script was not used up");
    }

    let llm = Llm::start().await;
    llm.reject_temperature();
    for wire in WIRES {
        let mut body = body(wire, true);
        let answer = send(&llm.url(), wire, &body).await.unwrap();
        assert_eq!(answer.status(), 400);
        assert!(answer.text().await.unwrap().contains("temperature"));
        body.as_object_mut().unwrap().remove("temperature");
        body.as_object_mut().unwrap().remove("generationConfig");
        assert_eq!(send(&llm.url(), wire, &body).await.unwrap().status(), 200);
    }
    llm.script([Reply::text("Fine.").failing(LlmFailure::RejectTool("no_such_tool".to_owned()))]);
    assert_eq!(send_default(&llm, Wire::OpenAi).await.unwrap().status(), 400, "the request still has a temperature");
}

#[tokio::test]
async fn responses_can_hang() {
    let llm = Llm::start().await;
    for wire in WIRES {
        llm.script([Reply::failure(LlmFailure::HangBeforeHeaders)]);
        assert!(tokio::time::timeout(HANG_TIMEOUT, send_default(&llm, wire)).await.is_err());
        let empty = read(&llm, wire, LlmFailure::HangAfterHeaders).await;
        assert_eq!((empty.text.as_str(), empty.end), ("", BodyEnd::Hanging));
        let partial = read(&llm, wire, LlmFailure::HangMidway).await;
        let reply = parse_reply(wire, &partial.text);
        assert!(reply.text.starts_with("Hello there") && !reply.ended, "{reply:?}");
        assert_eq!(partial.end, BodyEnd::Hanging);
        // The server notices that the client has disconnected.
        llm.wait_until_idle().await;
    }
}

#[tokio::test]
async fn responses_can_be_cut_or_end_early() {
    let llm = Llm::start().await;
    for wire in WIRES {
        llm.script([Reply::failure(LlmFailure::CloseBeforeHeaders)]);
        let error = send_default(&llm, wire).await.unwrap_err();
        assert!(error.is_request() && error.status().is_none(), "{error:?}");

        for (failure, end) in [(LlmFailure::CutAtStart, BodyEnd::Broken), (LlmFailure::EndAtStart, BodyEnd::Complete)] {
            let start = read(&llm, wire, failure).await;
            assert_eq!(start.end, end, "{wire:?}");
            assert_eq!(start.text.is_empty(), wire == Wire::Gemini, "OpenAI and Anthropic start with an empty message");
            assert!(parse_reply(wire, &start.text).text.is_empty());
        }
        let cut = read(&llm, wire, LlmFailure::CutMidway).await;
        assert_eq!(cut.end, BodyEnd::Broken, "{wire:?}");
        assert!(!cut.text.ends_with("\n\n"), "within an event");
        let (whole_events, _) = cut.text.rsplit_once("\n\n").unwrap();
        assert!(parse_reply(wire, whole_events).text.starts_with("Hello there"));
        let ended = read(&llm, wire, LlmFailure::EndMidway).await;
        let reply = parse_reply(wire, &ended.text);
        assert!(reply.text.starts_with("Hello there") && !reply.ended, "{reply:?}");
        assert_eq!(ended.end, BodyEnd::Complete);
    }
}

#[tokio::test]
async fn responses_can_be_malformed() {
    let llm = Llm::start().await;
    for wire in WIRES {
        let broken = read(&llm, wire, LlmFailure::BrokenJson).await;
        let bad: Vec<_> = events(&broken.text)
            .into_iter()
            .filter(|(_, data)| data != "[DONE]" && serde_json::from_str::<Value>(data).is_err())
            .collect();
        assert_eq!((bad.len(), broken.end), (1, BodyEnd::Complete));

        let error_event = read(&llm, wire, LlmFailure::ErrorEvent).await;
        let (name, data) = events(&error_event.text).pop().unwrap();
        let error: Value = serde_json::from_str(&data).unwrap();
        assert!(error["error"]["message"].as_str().unwrap().contains(KEY), "{error}");
        assert_eq!(name.as_deref(), (wire == Wire::Anthropic).then_some("error"));

        llm.script([Reply::failure(LlmFailure::Html)]);
        let page = send_default(&llm, wire).await.unwrap();
        assert_eq!(
            (page.status().as_u16(), page.headers()["content-type"].to_str().unwrap()),
            (200, "text/html; charset=utf-8")
        );
        assert_eq!(read(&llm, wire, LlmFailure::EmptyBody).await.text, "");

        for name in invalid_tool_names() {
            llm.script([Reply::call(&name, json!({}))]);
            let reply = parse_reply(wire, &send_default(&llm, wire).await.unwrap().text().await.unwrap());
            assert_eq!(reply.calls, [(name, "{}".to_owned())]);
        }
    }
}

#[tokio::test]
async fn responses_can_be_endless() {
    const MIN_BYTES: usize = 3_000_000;
    let llm = Llm::start().await;
    for wire in WIRES {
        for failure in [LlmFailure::EndlessText, LlmFailure::EndlessLine] {
            llm.script([Reply::failure(failure.clone())]);
            let mut stream = send_default(&llm, wire).await.unwrap().bytes_stream();
            let mut length = 0;
            let mut tail = String::new();
            while length < MIN_BYTES {
                let piece = stream.next().await.unwrap().unwrap();
                length += piece.len();
                tail = String::from_utf8(piece.to_vec()).unwrap();
            }
            assert_eq!(tail.contains('\n'), failure == LlmFailure::EndlessText, "{wire:?}");
        }
    }
    llm.wait_until_idle().await;
}

#[tokio::test]
async fn documents_fail_like_streams() {
    let llm = Llm::start().await;
    for wire in WIRES {
        let mut body = body(wire, false);
        body["stream"] = json!(false);
        let failures = [LlmFailure::EndMidway, LlmFailure::BrokenJson, LlmFailure::EmptyBody, LlmFailure::Html];
        for failure in failures {
            llm.script([Reply::failure(failure.clone())]);
            let answer = send(&llm.url(), wire, &body).await.unwrap();
            assert!(answer.json::<Value>().await.is_err(), "{failure:?}");
        }
        llm.script([Reply::failure(LlmFailure::CutMidway), Reply::failure(LlmFailure::ErrorEvent)]);
        assert!(send(&llm.url(), wire, &body).await.unwrap().bytes().await.is_err());
        assert!(send(&llm.url(), wire, &body).await.unwrap().json::<Value>().await.unwrap()["error"].is_object());
    }
}

#[tokio::test]
async fn the_provider_can_be_stopped_and_restarted() {
    let llm = Llm::start().await;
    llm.script([Reply::failure(LlmFailure::HangMidway)]);
    let hanging = send_default(&llm, Wire::OpenAi).await.unwrap();
    llm.stop().await;
    assert!(hanging.text().await.is_err(), "open connections are closed");
    assert!(send_default(&llm, Wire::OpenAi).await.unwrap_err().is_connect());
    llm.restart().await;
    assert_eq!(send_default(&llm, Wire::OpenAi).await.unwrap().status(), 200);
    llm.wait_for_requests(2).await;
}
