//! Converts a reply to an HTTP response: selects the wire protocol and injects the failure.

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Response, StatusCode};
use serde_json::json;

use super::events::{BodyPlan, Ending, Events, RenderedEvents};
use super::reply::{LlmFailure, Reply};
use super::request::{Request, Wire};
use super::{OpenReply, anthropic, errors, gemini, openai};

/// Closes the connection without a response.
#[derive(Debug)]
pub(super) struct ConnectionClosed;

impl std::fmt::Display for ConnectionClosed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("connection closed by the script")
    }
}

impl std::error::Error for ConnectionClosed {}

/// Returns the response to a request. Fails if the script closes the connection before the headers.
pub(super) async fn respond(
    request: &Request,
    reply: Reply,
    open: OpenReply,
) -> Result<Response<Body>, ConnectionClosed> {
    if !reply.delay.is_zero() {
        tokio::time::sleep(reply.delay).await;
    }
    let plan = match &reply.failure {
        None => successful_body(request, &reply),
        Some(failure) => {
            if let Some(response) = errors::error_response(request, failure) {
                return Ok(response);
            }
            match failure {
                LlmFailure::HangBeforeHeaders => std::future::pending().await,
                LlmFailure::CloseBeforeHeaders => return Err(ConnectionClosed),
                LlmFailure::Html => return Ok(html_page()),
                _ => failing_body(request, &reply, failure),
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

/// Returns the response to a request with an unknown path, a wrong method or an invalid body.
pub(super) fn invalid_request(status: StatusCode) -> Response<Body> {
    let error = json!({"error": {"message": format!("Invalid request: {status}"), "type": "invalid_request_error"}});
    Response::builder().status(status).header(CONTENT_TYPE, "application/json").body(error.to_string().into()).unwrap()
}

fn html_page() -> Response<Body> {
    let page =
        "<!doctype html><html><head><title>Login</title></head><body>Please log in to the network.</body></html>";
    Response::builder().header(CONTENT_TYPE, "text/html; charset=utf-8").body(page.into()).unwrap()
}

fn render(request: &Request, reply: &Reply) -> RenderedEvents {
    let events = match (request.wire, request.stream) {
        (Wire::OpenAi, true) => openai::stream(request, reply),
        (Wire::OpenAi, false) => Events::document(openai::document(request, reply)),
        (Wire::Gemini, true) => gemini::stream(request, reply),
        (Wire::Gemini, false) => Events::document(gemini::document(request, reply)),
        (Wire::Anthropic, true) => anthropic::stream(request, reply),
        (Wire::Anthropic, false) => Events::document(anthropic::document(request, reply)),
    };
    events.freeze()
}

fn successful_body(request: &Request, reply: &Reply) -> BodyPlan {
    let events = render(request, reply);
    let gate = reply.gate.clone().map(|gate| (events.middle(), gate));
    let pieces = if let Some(bytes) = reply.chunk_size {
        let chunk = |at: usize| events.bytes.slice(at..events.bytes.len().min(at + bytes));
        (0..events.bytes.len()).step_by(bytes).map(chunk).collect()
    } else if reply.gap.is_zero() && gate.is_none() {
        vec![events.bytes]
    } else {
        events.pieces(0..events.len())
    };
    BodyPlan { pieces, ending: Ending::Complete, gap: reply.gap, gate }
}

fn failing_body(request: &Request, reply: &Reply, failure: &LlmFailure) -> BodyPlan {
    let events = render(request, reply);
    let start = events.start();
    let middle = events.middle();
    let first = |count| events.pieces(0..count);
    let half = |piece: Bytes| piece.slice(..piece.len() / 2);
    let (pieces, ending) = match failure {
        LlmFailure::HangAfterHeaders => (first(0), Ending::Hang),
        LlmFailure::HangMidway => (first(middle), Ending::Hang),
        LlmFailure::CutAtStart => (first(start), Ending::Cut),
        LlmFailure::CutMidway => {
            let partial = (middle < events.len()).then(|| half(events.piece(middle)));
            (first(middle).into_iter().chain(partial).collect(), Ending::Cut)
        }
        LlmFailure::EndAtStart => (first(start), Ending::Complete),
        LlmFailure::EndMidway => (first(middle), Ending::Complete),
        LlmFailure::BrokenJson if request.stream => {
            let mut broken = Events::default();
            let name = (request.wire == Wire::Anthropic).then_some("content_block_delta");
            broken.push(name, r#"{"choices":[{"index":0,"delta":{"content":"bro"#);
            (with_event(&events, broken, events.len()), Ending::Complete)
        }
        LlmFailure::BrokenJson => (first(middle), Ending::Complete),
        LlmFailure::ErrorEvent if request.stream => {
            let mut error = Events::default();
            let name = (request.wire == Wire::Anthropic).then_some("error");
            error.push(name, errors::stream_error(request));
            (with_event(&events, error, middle), Ending::Complete)
        }
        LlmFailure::ErrorEvent => (vec![errors::stream_error(request).to_string().into()], Ending::Complete),
        LlmFailure::EmptyBody => (Vec::new(), Ending::Complete),
        LlmFailure::EndlessText if request.stream => {
            let events = render(request, &Reply::pieces(["more "]));
            let block = events.piece(events.start()).repeat(if reply.gap.is_zero() { 16 } else { 1 });
            (events.pieces(0..events.start()), Ending::Repeat(block.into()))
        }
        LlmFailure::EndlessText | LlmFailure::EndlessLine => {
            (vec![before_text(request)], Ending::Repeat("more ".repeat(1000).into()))
        }
        // Rejections that do not apply to this request. All other failures are handled above.
        _ => return successful_body(request, reply),
    };
    BodyPlan { pieces, ending, gap: reply.gap, gate: None }
}

/// Inserts an event in the middle, followed by the remaining events before `end`.
fn with_event(events: &RenderedEvents, inserted: Events, end: usize) -> Vec<Bytes> {
    let middle = events.middle();
    let mut pieces = events.pieces(0..middle);
    pieces.push(inserted.freeze().bytes);
    pieces.extend(events.pieces(middle..end));
    pieces
}

/// Returns the bytes of a response before the first character of its text.
fn before_text(request: &Request) -> Bytes {
    const MARKER: &str = "@here@";
    let bytes = render(request, &Reply::pieces([MARKER])).bytes;
    let at = bytes.windows(MARKER.len()).position(|window| window == MARKER.as_bytes());
    bytes.slice(..at.unwrap_or(0))
}
