//! Each fault on each wire, seen from the other end.

use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};
use testkit::llm::{Fault, Llm, Reply, RetryAfter, Wire, bad_tool_names};

use crate::{KEY, WIRES, ask, body, events, hear, send};

/// Long enough to see that nothing comes.
const NOTHING: Duration = Duration::from_millis(300);

/// What is read until the end, a break, or nothing more.
struct Read {
    text: String,
    end: End,
}

#[derive(Debug, PartialEq)]
enum End {
    Proper,
    Broken,
    Hanging,
}

async fn read(llm: &Llm, wire: Wire, fault: Fault) -> Read {
    let hangs = matches!(fault, Fault::HangAfterHeaders | Fault::HangMidway);
    let patience = if hangs { NOTHING } else { Duration::from_secs(10) };
    llm.script([Reply::fault(fault)]);
    let mut stream = ask(llm, wire).await.unwrap().bytes_stream();
    let mut text = Vec::new();
    let end = loop {
        match tokio::time::timeout(patience, stream.next()).await {
            Err(_) => break End::Hanging,
            Ok(None) => break End::Proper,
            Ok(Some(Err(_))) => break End::Broken,
            Ok(Some(Ok(piece))) => text.extend_from_slice(&piece),
        }
    };
    Read { text: String::from_utf8(text).unwrap(), end }
}

#[tokio::test]
async fn errors_have_the_providers_shape_and_repeat_the_key() {
    let llm = Llm::start().await;
    for wire in WIRES {
        for status in [400, 401, 403, 404, 413, 500, 503, 529] {
            llm.script([Reply::fault(Fault::Status(status))]);
            let answer = ask(&llm, wire).await.unwrap();
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
    // Gemini under OpenAI's address keeps its own way to complain.
    llm.script([Reply::fault(Fault::Status(503))]);
    let url = format!("{}/v1beta/openai/chat/completions", llm.url());
    let answer = crate::client().post(url).json(&body(Wire::OpenAi, true)).send().await.unwrap();
    assert_eq!(answer.json::<Value>().await.unwrap()[0]["error"]["status"], "UNAVAILABLE");
}

#[tokio::test]
async fn limits_may_say_how_long_to_wait() {
    let llm = Llm::start().await;
    for wire in WIRES {
        let mut headers = Vec::new();
        for after in [RetryAfter::Unsaid, RetryAfter::Seconds(7), RetryAfter::Date(Duration::from_secs(60))] {
            llm.script([Reply::fault(Fault::RateLimited(after))]);
            let answer = ask(&llm, wire).await.unwrap();
            assert_eq!(answer.status(), 429);
            headers.push(answer.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned()));
        }
        assert_eq!(headers[..2], [None, Some("7".to_owned())]);
        let date = headers[2].as_deref().unwrap();
        assert!(date.ends_with(" GMT") && date.as_bytes()[3] == b',' && date.len() == 29, "{date}");
    }
}

#[tokio::test]
async fn what_is_rejected_is_rejected_while_it_is_sent() {
    let llm = Llm::start().await;
    let says = [
        "Invalid schema for function 'add_task'",
        "GenerateContentRequest.tools[0].function_declarations[1]",
        "tools.1.custom.input_schema: ",
    ];
    llm.reject_tool("add_task");
    for (wire, says) in WIRES.into_iter().zip(says) {
        llm.script([Reply::text("Fine.")]);
        let mut body = body(wire, true);
        for _ in 0..2 {
            let answer = send(&llm.url(), wire, &body).await.unwrap();
            assert_eq!(answer.status(), 400);
            let error: Value = answer.json().await.unwrap();
            assert!(error["error"]["message"].as_str().unwrap().contains(says), "{error}");
            if wire == Wire::OpenAi {
                assert_eq!(error["error"]["param"], "tools[1].function.parameters");
            }
        }
        let tools =
            if wire == Wire::Gemini { &mut body["tools"][0]["functionDeclarations"] } else { &mut body["tools"] };
        tools.as_array_mut().unwrap().remove(1);
        let answer = send(&llm.url(), wire, &body).await.unwrap();
        assert_eq!(hear(wire, &answer.text().await.unwrap()).text, "Fine.", "the script was not used up");
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
    llm.script([Reply::text("Fine.").failing(Fault::RejectTool("no_such_tool".to_owned()))]);
    assert_eq!(ask(&llm, Wire::OpenAi).await.unwrap().status(), 400, "the temperature is still there");
}

#[tokio::test]
async fn some_answers_never_come() {
    let llm = Llm::start().await;
    for wire in WIRES {
        llm.script([Reply::fault(Fault::HangBeforeHeaders)]);
        assert!(tokio::time::timeout(NOTHING, ask(&llm, wire)).await.is_err());
        let nothing = read(&llm, wire, Fault::HangAfterHeaders).await;
        assert_eq!((nothing.text.as_str(), nothing.end), ("", End::Hanging));
        let some = read(&llm, wire, Fault::HangMidway).await;
        let heard = hear(wire, &some.text);
        assert!(heard.text.starts_with("Hello there") && !heard.ended, "{heard:?}");
        assert_eq!(some.end, End::Hanging);
        // Who waited has gone, and that is noticed.
        llm.idle().await;
    }
}

#[tokio::test]
async fn some_answers_break_off() {
    let llm = Llm::start().await;
    for wire in WIRES {
        llm.script([Reply::fault(Fault::CloseBeforeHeaders)]);
        let error = ask(&llm, wire).await.unwrap_err();
        assert!(error.is_request() && error.status().is_none(), "{error:?}");

        for (fault, end) in [(Fault::CutAtStart, End::Broken), (Fault::EndAtStart, End::Proper)] {
            let start = read(&llm, wire, fault).await;
            assert_eq!(start.end, end, "{wire:?}");
            assert_eq!(start.text.is_empty(), wire == Wire::Gemini, "the others open with an empty message");
            assert!(hear(wire, &start.text).text.is_empty());
        }
        let cut = read(&llm, wire, Fault::CutMidway).await;
        assert_eq!(cut.end, End::Broken, "{wire:?}");
        assert!(!cut.text.ends_with("\n\n"), "within an event");
        let (whole_events, _) = cut.text.rsplit_once("\n\n").unwrap();
        assert!(hear(wire, whole_events).text.starts_with("Hello there"));
        let ended = read(&llm, wire, Fault::EndMidway).await;
        let heard = hear(wire, &ended.text);
        assert!(heard.text.starts_with("Hello there") && !heard.ended, "{heard:?}");
        assert_eq!(ended.end, End::Proper);
    }
}

#[tokio::test]
async fn some_answers_are_nonsense() {
    let llm = Llm::start().await;
    for wire in WIRES {
        let broken = read(&llm, wire, Fault::BrokenJson).await;
        let bad: Vec<_> = events(&broken.text)
            .into_iter()
            .filter(|(_, data)| data != "[DONE]" && serde_json::from_str::<Value>(data).is_err())
            .collect();
        assert_eq!((bad.len(), broken.end), (1, End::Proper));

        let gave_up = read(&llm, wire, Fault::ErrorEvent).await;
        let (name, data) = events(&gave_up.text).pop().unwrap();
        let error: Value = serde_json::from_str(&data).unwrap();
        assert!(error["error"]["message"].as_str().unwrap().contains(KEY), "{error}");
        assert_eq!(name.as_deref(), (wire == Wire::Anthropic).then_some("error"));

        llm.script([Reply::fault(Fault::Html)]);
        let page = ask(&llm, wire).await.unwrap();
        assert_eq!(
            (page.status().as_u16(), page.headers()["content-type"].to_str().unwrap()),
            (200, "text/html; charset=utf-8")
        );
        assert_eq!(read(&llm, wire, Fault::EmptyBody).await.text, "");

        for name in bad_tool_names() {
            llm.script([Reply::call(&name, json!({}))]);
            let heard = hear(wire, &ask(&llm, wire).await.unwrap().text().await.unwrap());
            assert_eq!(heard.calls, [(name, "{}".to_owned())]);
        }
    }
}

#[tokio::test]
async fn some_answers_never_end() {
    const ENOUGH: usize = 3_000_000;
    let llm = Llm::start().await;
    for wire in WIRES {
        for fault in [Fault::EndlessText, Fault::EndlessLine] {
            llm.script([Reply::fault(fault.clone())]);
            let mut stream = ask(&llm, wire).await.unwrap().bytes_stream();
            let mut length = 0;
            let mut tail = String::new();
            while length < ENOUGH {
                let piece = stream.next().await.unwrap().unwrap();
                length += piece.len();
                tail = String::from_utf8(piece.to_vec()).unwrap();
            }
            assert_eq!(tail.contains('\n'), fault == Fault::EndlessText, "{wire:?}");
        }
    }
    llm.idle().await;
}

#[tokio::test]
async fn documents_break_as_streams_do() {
    let llm = Llm::start().await;
    for wire in WIRES {
        let mut body = body(wire, false);
        body["stream"] = json!(false);
        let faults = [Fault::EndMidway, Fault::BrokenJson, Fault::EmptyBody, Fault::Html];
        for fault in faults {
            llm.script([Reply::fault(fault.clone())]);
            let answer = send(&llm.url(), wire, &body).await.unwrap();
            assert!(answer.json::<Value>().await.is_err(), "{fault:?}");
        }
        llm.script([Reply::fault(Fault::CutMidway), Reply::fault(Fault::ErrorEvent)]);
        assert!(send(&llm.url(), wire, &body).await.unwrap().bytes().await.is_err());
        assert!(send(&llm.url(), wire, &body).await.unwrap().json::<Value>().await.unwrap()["error"].is_object());
    }
}

#[tokio::test]
async fn a_provider_can_be_away_for_a_while() {
    let llm = Llm::start().await;
    llm.script([Reply::fault(Fault::HangMidway)]);
    let hanging = ask(&llm, Wire::OpenAi).await.unwrap();
    llm.stop().await;
    assert!(hanging.text().await.is_err(), "what was open is closed");
    assert!(ask(&llm, Wire::OpenAi).await.unwrap_err().is_connect());
    llm.resume().await;
    assert_eq!(ask(&llm, Wire::OpenAi).await.unwrap().status(), 200);
    llm.asked(2).await;
}
