//! From a reply to what goes over the wire: picks the protocol and makes the fault happen.

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Response, StatusCode};
use serde_json::json;

use super::events::{Ending, Events, Frozen, Plan};
use super::reply::{Fault, Reply};
use super::request::{Request, Wire};
use super::{Open, anthropic, errors, gemini, openai};

/// No answer at all.
#[derive(Debug)]
pub(super) struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("closed on purpose")
    }
}

impl std::error::Error for Closed {}

pub(super) async fn answer(request: &Request, reply: Reply, open: Open) -> Result<Response<Body>, Closed> {
    if !reply.delay.is_zero() {
        tokio::time::sleep(reply.delay).await;
    }
    let plan = match &reply.fault {
        None => well(request, &reply),
        Some(fault) => {
            if let Some(refusal) = errors::refusal(request, fault) {
                return Ok(refusal);
            }
            match fault {
                Fault::HangBeforeHeaders => std::future::pending().await,
                Fault::CloseBeforeHeaders => return Err(Closed),
                Fault::Html => return Ok(page()),
                _ => badly(request, &reply, fault),
            }
        }
    };
    let content_type = match (request.stream, request.wire) {
        (true, Wire::Anthropic) => "text/event-stream; charset=utf-8",
        (true, _) => "text/event-stream",
        (false, _) => "application/json",
    };
    Ok(Response::builder().header(CONTENT_TYPE, content_type).body(plan.body(open)).unwrap())
}

/// A request that no provider would understand.
pub(super) fn misdirected(status: StatusCode) -> Response<Body> {
    let error = json!({"error": {"message": format!("Invalid request: {status}"), "type": "invalid_request_error"}});
    Response::builder().status(status).header(CONTENT_TYPE, "application/json").body(error.to_string().into()).unwrap()
}

fn page() -> Response<Body> {
    let page =
        "<!doctype html><html><head><title>Login</title></head><body>Please log in to the network.</body></html>";
    Response::builder().header(CONTENT_TYPE, "text/html; charset=utf-8").body(page.into()).unwrap()
}

fn render(request: &Request, reply: &Reply) -> Frozen {
    let events = match (request.wire, request.stream) {
        (Wire::OpenAi, true) => openai::stream(request, reply),
        (Wire::OpenAi, false) => Events::document(openai::whole(request, reply)),
        (Wire::Gemini, true) => gemini::stream(request, reply),
        (Wire::Gemini, false) => Events::document(gemini::whole(request, reply)),
        (Wire::Anthropic, true) => anthropic::stream(request, reply),
        (Wire::Anthropic, false) => Events::document(anthropic::whole(request, reply)),
    };
    events.freeze()
}

fn well(request: &Request, reply: &Reply) -> Plan {
    let events = render(request, reply);
    let gate = reply.gate.clone().map(|gate| (events.middle(), gate));
    let pieces = if let Some(bytes) = reply.torn {
        let torn = |at: usize| events.bytes.slice(at..events.bytes.len().min(at + bytes));
        (0..events.bytes.len()).step_by(bytes).map(torn).collect()
    } else if reply.gap.is_zero() && gate.is_none() {
        vec![events.bytes]
    } else {
        events.pieces(0..events.len())
    };
    Plan { pieces, ending: Ending::Proper, gap: reply.gap, gate }
}

fn badly(request: &Request, reply: &Reply, fault: &Fault) -> Plan {
    let events = render(request, reply);
    let start = events.start();
    let middle = events.middle();
    let first = |count| events.pieces(0..count);
    let half = |piece: Bytes| piece.slice(..piece.len() / 2);
    let (pieces, ending) = match fault {
        Fault::HangAfterHeaders => (first(0), Ending::Hang),
        Fault::HangMidway => (first(middle), Ending::Hang),
        Fault::CutAtStart => (first(start), Ending::Cut),
        Fault::CutMidway => {
            let torn = (middle < events.len()).then(|| half(events.piece(middle)));
            (first(middle).into_iter().chain(torn).collect(), Ending::Cut)
        }
        Fault::EndAtStart => (first(start), Ending::Proper),
        Fault::EndMidway => (first(middle), Ending::Proper),
        Fault::BrokenJson if request.stream => {
            let mut broken = Events::default();
            let name = (request.wire == Wire::Anthropic).then_some("content_block_delta");
            broken.push(name, r#"{"choices":[{"index":0,"delta":{"content":"bro"#);
            (with(&events, broken, events.len()), Ending::Proper)
        }
        Fault::BrokenJson => (first(middle), Ending::Proper),
        Fault::ErrorEvent if request.stream => {
            let mut error = Events::default();
            let name = (request.wire == Wire::Anthropic).then_some("error");
            error.push(name, errors::within_stream(request));
            (with(&events, error, middle), Ending::Proper)
        }
        Fault::ErrorEvent => (vec![errors::within_stream(request).to_string().into()], Ending::Proper),
        Fault::EmptyBody => (Vec::new(), Ending::Proper),
        Fault::EndlessText if request.stream => {
            let events = render(request, &Reply::pieces(["more "]));
            let block = events.piece(events.start()).repeat(if reply.gap.is_zero() { 16 } else { 1 });
            (events.pieces(0..events.start()), Ending::Repeat(block.into()))
        }
        Fault::EndlessText | Fault::EndlessLine => {
            (vec![before_text(request)], Ending::Repeat("more ".repeat(1000).into()))
        }
        // Those of the kind that refuses, where there was nothing to refuse; the others do not come here.
        _ => return well(request, reply),
    };
    Plan { pieces, ending, gap: reply.gap, gate: None }
}

/// The events up to the middle, another one, and the rest up to an end.
fn with(events: &Frozen, another: Events, end: usize) -> Vec<Bytes> {
    let middle = events.middle();
    let mut pieces = events.pieces(0..middle);
    pieces.push(another.freeze().bytes);
    pieces.extend(events.pieces(middle..end));
    pieces
}

/// An answer up to the first letter of its text.
fn before_text(request: &Request) -> Bytes {
    const MARK: &str = "@here@";
    let bytes = render(request, &Reply::pieces([MARK])).bytes;
    let at = bytes.windows(MARK.len()).position(|window| window == MARK.as_bytes());
    bytes.slice(..at.unwrap_or(0))
}
