//! `/chat/stream`, `/chat` and `/agent/run`: the endpoints of the assistant.
//!
//! All of them fail with 422 if the input is invalid. With authentication they fail with 403 if `user_id` is not the
//! user of the token; without it `user_id` is ignored. `Last-Event-ID` counts only with an idempotency key.
//! `/agent/run` stores no conversation. It checks the whole history of the caller, uses the last 50 messages, and warns
//! if there are more. Its `metadata.pending` sets the held calls.

use std::time::Instant;

use api::chat::{AgentRequest, AgentResponse, ChatRequest, ChatResponse, HistoryMessage, StreamEvent};
use assistant::turn::{History, Turn};
use assistant::{AgentContext, TurnRequest};
use axum::http::HeaderMap;
use axum::response::Response;
use model::conversation::{
    self, ConversationId, MAX_AGENT_MESSAGE_CHARS, MAX_CHAT_INPUT_CHARS, Message, MessageRole, ToolCall,
};
use model::invalid::Checks;
use model::{Clock, Invalid, User, UserId};
use store::idempotency::IdempotencyKey;
use tokio_util::sync::CancellationToken;

use crate::chat::{self, document, sse};
use crate::idempotency::{IdempotentRequest, JsonBody};
use crate::open_streams::StreamOwner;
use crate::request::RequestId;
use crate::{App, Problem, event_stream};

/// The number of messages that are used of a history that the caller sends.
const MAX_HISTORY_MESSAGES: usize = 50;
/// The warning for a longer history.
const TRUNCATION_WARNING: &str = "only the last 50 messages of the history were used";

/// Sends a message to the assistant and streams the reply.
///
/// The server-sent events are `thinking`, `tool_call`, `response_delta`, `error`, and finally `done`.
#[utoipa::path(
    post,
    path = "/chat/stream",
    tag = "chat",
    request_body = ChatRequest,
    params(("Last-Event-ID" = Option<String>, Header, description = "With an Idempotency-Key: resumes after this event")),
    responses(
        (status = 200, description = "Server-sent events", body = StreamEvent, content_type = "text/event-stream"),
        (status = 404, description = "The conversation belongs to a different user"),
    )
)]
pub(super) async fn stream(
    request_id: RequestId,
    headers: HeaderMap,
    request: IdempotentRequest<JsonBody<ChatRequest>>,
) -> Result<Response, Problem> {
    let seen = event_stream::last_event_id(&headers)?.unwrap_or(0);
    let (app, turn) = turn_from_request(request, &request_id)?;
    // Without a key no earlier stream exists that could be resumed.
    let seen = if turn.key.is_some() { seen } else { 0 };
    let open_stream = app.open_stream(StreamOwner::User(turn.user.id))?;
    chat::respond(&app, turn, seen, async move |stream| sse::encode(stream, open_stream).await).await
}

/// Sends a message to the assistant and returns the reply.
#[utoipa::path(
    post,
    path = "/chat",
    tag = "chat",
    request_body = ChatRequest,
    responses(
        (status = 200, description = "The reply", body = ChatResponse),
        (status = 404, description = "The conversation belongs to a different user"),
    )
)]
pub(super) async fn chat(
    request_id: RequestId,
    request: IdempotentRequest<JsonBody<ChatRequest>>,
) -> Result<Response, Problem> {
    let (app, turn) = turn_from_request(request, &request_id)?;
    chat::respond(&app, turn, 0, document::chat).await
}

/// Runs the assistant on a history that the caller sends.
///
/// The conversation is not stored.
#[utoipa::path(
    post,
    path = "/agent/run",
    tag = "chat",
    request_body = AgentRequest,
    responses((status = 200, description = "The reply", body = AgentResponse))
)]
pub(super) async fn run(
    request_id: RequestId,
    request: IdempotentRequest<JsonBody<AgentRequest>>,
) -> Result<Response, Problem> {
    let (app, user, JsonBody(body), key) = request.into_parts();
    check_agent_user(&app, &user, body.user_id.as_deref())?;
    let mut checks = Checks::default();
    let message = checks.take(conversation::clean_message("message", &body.message, MAX_AGENT_MESSAGE_CHARS));
    let dropped = body.conversation_history.len().saturating_sub(MAX_HISTORY_MESSAGES);
    let mut history = Vec::with_capacity(body.conversation_history.len() - dropped);
    for (at, message) in body.conversation_history.into_iter().enumerate() {
        let checked = checks.take(history_message(message, &format!("conversation_history[{at}]"), app.clock()));
        history.extend(checked.filter(|_| at >= dropped));
    }
    let message = checks.finish(message)?;
    let mut context = AgentContext::new(user.clone(), history);
    if let Some(pending) = body.metadata.and_then(|metadata| metadata.pending) {
        context.set_pending(pending);
    }
    let turn = Turn {
        include_utterance: true,
        ..new_turn(&app, user, message, History::FromCaller(Box::new(context)), key, &request_id)
    };
    let warnings: &[&str] = if dropped > 0 { &[TRUNCATION_WARNING] } else { &[] };
    chat::respond(&app, turn, 0, async |stream| document::agent(stream, warnings).await).await
}

/// Returns the turn for a message to a stored conversation. Without a conversation id, it has a new one. Adds the
/// conversation to the log. Fails with 403 if authentication is configured and `user_id` is not the id of the user.
/// Fails with 422 and all violations if the message is empty or too long, or the conversation id is malformed.
fn turn_from_request(
    request: IdempotentRequest<JsonBody<ChatRequest>>,
    request_id: &RequestId,
) -> Result<(App, Turn), Problem> {
    let (app, user, JsonBody(body), key) = request.into_parts();
    if let Some(user_id) = body.user_id.as_deref() {
        check_user(&app, &user, user_id)?;
    }
    let mut checks = Checks::default();
    let message = checks.take(conversation::clean_message("input", &body.input, MAX_CHAT_INPUT_CHARS));
    let id = match &body.conversation_id {
        Some(id) => checks.take(id.parse::<ConversationId>()),
        None => Some(app.clock().id().into()),
    };
    let (message, id) = checks.finish(message.zip(id))?;
    crate::request::record_conversation(&id);
    let turn = new_turn(&app, user, message, History::Stored(id), key, request_id);
    Ok((app, turn))
}

/// Returns a turn that starts now and has its own cancellation token. It is counted in the metrics when it ends. The
/// parsed utterance is not part of its outcome.
fn new_turn(
    app: &App,
    user: User,
    message: String,
    history: History,
    key: Option<IdempotencyKey>,
    request_id: &RequestId,
) -> Turn {
    Turn {
        request: TurnRequest::new(message, &user, app.utterance_parser(), app.clock().now()),
        user,
        history,
        key,
        request_id: request_id.to_string(),
        started: Instant::now(),
        include_utterance: false,
        cancelled: CancellationToken::new(),
        on_end: Some(chat::count_at_end(app)),
    }
}

/// Fails with 403 if authentication is configured and `named` is not the user of the token, or malformed. Without
/// authentication any name is accepted.
fn check_user(app: &App, user: &User, named: &str) -> Result<(), Problem> {
    let is_same = named.parse::<UserId>().is_ok_and(|named| named == user.id);
    if !app.active_config().requires_token() || is_same {
        return Ok(());
    }
    Err(Problem::forbidden("user_id must be the user of the token"))
}

/// Like [`check_user`] for an optional user. With authentication, a malformed id is a validation error.
fn check_agent_user(app: &App, user: &User, named: Option<&str>) -> Result<(), Problem> {
    let Some(named) = named else { return Ok(()) };
    if app.active_config().requires_token() {
        named.parse::<UserId>()?;
    }
    check_user(app, user, named)
}

/// Returns a message of the history that the caller sends, with a new id and the current time. Its own timestamp is
/// ignored. A tool call without a duration has the duration 0. Fails with all violations if the role is unknown or the
/// content is empty. Fields of violations start with `path`.
fn history_message(message: HistoryMessage, path: &str, clock: &Clock) -> Result<Message, Invalid> {
    let mut checks = Checks::default();
    let role = checks.take(MessageRole::parse(&format!("{path}.role"), &message.role));
    let content = checks.take(model::text::required(&format!("{path}.content"), &message.content, usize::MAX));
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
