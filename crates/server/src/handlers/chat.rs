//! `/chat/stream`, `/chat` and `/agent/run`: three ways to talk to the assistant.

use std::time::Instant;

use api::chat::{AgentRequest, AgentResponse, ChatRequest, ChatResponse, HistoryMessage, StreamEvent};
use assistant::turn::{History, Turn};
use assistant::{AgentContext, Request};
use axum::http::HeaderMap;
use axum::response::Response;
use model::conversation::{self, Id, MAX_AGENT_MESSAGE, MAX_INPUT, Message, Role, ToolCall};
use model::invalid::Checks;
use model::{Clock, Invalid, User, UserId};
use store::idempotency::Key;
use tokio_util::sync::CancellationToken;

use crate::change::{Change, Json};
use crate::chat::{self, document, sse};
use crate::request::RequestId;
use crate::{App, Problem, event_stream};

/// How much of a history that the caller sends is looked at.
const MAX_HISTORY: usize = 50;
/// The warning for a longer one.
const SHORTENED: &str = "only the last 50 messages of the history were looked at";

/// Says something to the assistant and streams its answer as server-sent events: `thinking`, `tool_call`,
/// `response_delta`, `error`, and at last `done`.
#[utoipa::path(
    post,
    path = "/chat/stream",
    tag = "chat",
    request_body = ChatRequest,
    params(("Last-Event-ID" = Option<String>, Header, description = "With an Idempotency-Key: goes on after this event")),
    responses(
        (status = 200, description = "Server-sent events", body = StreamEvent, content_type = "text/event-stream"),
        (status = 404, description = "The conversation is another user's"),
    )
)]
pub(super) async fn stream(
    request_id: RequestId,
    headers: HeaderMap,
    change: Change<Json<ChatRequest>>,
) -> Result<Response, Problem> {
    let seen = event_stream::last_event_id(&headers)?.unwrap_or(0);
    let (app, turn) = turn_from_request(change, &request_id)?;
    // Without a key there is no earlier stream to go on with.
    let seen = if turn.key.is_some() { seen } else { 0 };
    chat::respond(&app, turn, seen, sse::encode).await
}

/// Says something to the assistant and waits for its answer.
#[utoipa::path(
    post,
    path = "/chat",
    tag = "chat",
    request_body = ChatRequest,
    responses(
        (status = 200, body = ChatResponse),
        (status = 404, description = "The conversation is another user's"),
    )
)]
pub(super) async fn chat(request_id: RequestId, change: Change<Json<ChatRequest>>) -> Result<Response, Problem> {
    let (app, turn) = turn_from_request(change, &request_id)?;
    chat::respond(&app, turn, 0, document::chat).await
}

/// Runs the assistant on a conversation that the caller keeps; nothing of it is stored.
#[utoipa::path(
    post,
    path = "/agent/run",
    tag = "chat",
    request_body = AgentRequest,
    responses((status = 200, body = AgentResponse))
)]
pub(super) async fn run(request_id: RequestId, change: Change<Json<AgentRequest>>) -> Result<Response, Problem> {
    let (app, user, Json(body), key) = change.into_parts();
    check_agent_user(&app, &user, body.user_id.as_deref())?;
    let mut checks = Checks::default();
    let message = checks.take(conversation::input("message", &body.message, MAX_AGENT_MESSAGE));
    let dropped = body.conversation_history.len().saturating_sub(MAX_HISTORY);
    let mut history = Vec::with_capacity(body.conversation_history.len() - dropped);
    for (at, message) in body.conversation_history.into_iter().enumerate() {
        let checked = checks.take(history_message(message, &format!("conversation_history[{at}]"), app.clock()));
        history.extend(checked.filter(|_| at >= dropped));
    }
    let message = checks.finish(message)?;
    let mut context = AgentContext::new(user.clone(), history);
    if let Some(pending) = body.metadata.and_then(|metadata| metadata.pending) {
        context.hold(pending);
    }
    let turn = Turn {
        include_reading: true,
        ..new_turn(&app, user, message, History::FromCaller(Box::new(context)), key, &request_id)
    };
    let warnings: &[&str] = if dropped > 0 { &[SHORTENED] } else { &[] };
    chat::respond(&app, turn, 0, async |stream| document::agent(stream, warnings).await).await
}

/// Checks a message for a stored conversation.
fn turn_from_request(change: Change<Json<ChatRequest>>, request_id: &RequestId) -> Result<(App, Turn), Problem> {
    let (app, user, Json(body), key) = change.into_parts();
    if let Some(user_id) = body.user_id.as_deref() {
        check_user(&app, &user, user_id)?;
    }
    let mut checks = Checks::default();
    let message = checks.take(conversation::input("input", &body.input, MAX_INPUT));
    let id = match &body.conversation_id {
        Some(id) => checks.take(id.parse::<Id>()),
        None => Some(app.clock().id().into()),
    };
    let (message, id) = checks.finish(message.zip(id))?;
    crate::request::note_conversation(&id);
    let turn = new_turn(&app, user, message, History::Stored(id), key, request_id);
    Ok((app, turn))
}

fn new_turn(
    app: &App,
    user: User,
    message: String,
    history: History,
    key: Option<Key>,
    request_id: &RequestId,
) -> Turn {
    Turn {
        request: Request::new(message, &user, app.reader(), app.clock().now()),
        user,
        history,
        key,
        request_id: request_id.to_string(),
        started: Instant::now(),
        include_reading: false,
        cancelled: CancellationToken::new(),
    }
}

/// Nobody speaks for another: with authentication the user named must be the one of the token.
fn check_user(app: &App, user: &User, named: &str) -> Result<(), Problem> {
    let is_same = named.parse::<UserId>().is_ok_and(|named| named == user.id);
    if app.in_force().verifier.is_none() || is_same {
        return Ok(());
    }
    Err(Problem::forbidden("user_id must be the user of the token"))
}

fn check_agent_user(app: &App, user: &User, named: Option<&str>) -> Result<(), Problem> {
    let Some(named) = named else { return Ok(()) };
    if app.in_force().verifier.is_some() {
        named.parse::<UserId>()?;
    }
    check_user(app, user, named)
}

/// Checks a message of the history that the caller sends. `place` names it in errors.
fn history_message(message: HistoryMessage, place: &str, clock: &Clock) -> Result<Message, Invalid> {
    let mut checks = Checks::default();
    let role = checks.take(Role::parse(&format!("{place}.role"), &message.role));
    let content = checks.take(model::text::required(&format!("{place}.content"), &message.content, usize::MAX));
    let checked = role.zip(content).map(|(role, content)| Message {
        id: clock.id(),
        role,
        content,
        timestamp: clock.now(),
        tool_calls: message.tool_calls.unwrap_or_default().into_iter().map(ToolCall::from).collect(),
        pending: message.pending,
    });
    checks.finish(checked)
}
