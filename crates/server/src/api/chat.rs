//! `/chat/stream`, `/chat` and `/agent/run`: three ways to talk to the assistant.

use std::time::Instant;

use assistant::turn::{History, Turn};
use assistant::{AgentContext, Request};
use axum::http::HeaderMap;
use axum::response::Response;
use model::conversation::{self, Id, MAX_AGENT_MESSAGE, MAX_INPUT, Message, Role, ToolCall};
use model::invalid::Checks;
use model::{Clock, Invalid, User, UserId};
use serde::Deserialize;
use serde_json::Value;
use store::idempotency::Key;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

use crate::change::{Change, Json};
use crate::chat::document::{self, AgentResponse, ChatResponse};
use crate::chat::{self, sse};
use crate::problem::Body as ProblemBody;
use crate::request::RequestId;
use crate::{App, Problem};

/// How much of a history that the caller sends is looked at.
const MAX_HISTORY: usize = 50;
/// The warning for a longer one.
const SHORTENED: &str = "only the last 50 messages of the history were looked at";

/// What the user says (S0).
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChatRequest {
    #[schema(min_length = 1, max_length = 5000, examples("Remind me to buy eggs tomorrow at 3pm"))]
    input: String,
    /// The conversation this belongs to: a UUID, or `conv_` and letters and digits. A new one begins without it, and
    /// under an id that nobody has used.
    #[schema(examples("conv_123abc"))]
    conversation_id: Option<String>,
    /// Must be the token's user; without authentication it is not looked at.
    user_id: Option<String>,
}

/// One event of the stream (S0).
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what is written by hand")]
struct StreamEvent {
    /// Counts from 1.
    id: String,
    /// `thinking`, `tool_call`, `response_delta`, `error`, and at last `done`.
    #[schema(examples("response_delta"))]
    event: String,
    /// A JSON object.
    data: String,
}

/// A message, and the conversation it follows (S4).
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentRequest {
    /// Must be the token's user; without authentication it is not looked at.
    #[schema(format = Uuid)]
    user_id: Option<String>,
    #[schema(min_length = 1, max_length = 2000, examples("remind me to buy milk"))]
    message: String,
    /// Oldest first; the last 50 count.
    #[serde(default)]
    conversation_history: Vec<HistoryMessage>,
    metadata: Option<RequestMetadata>,
}

#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct HistoryMessage {
    #[schema(value_type = Role)]
    role: String,
    #[schema(min_length = 1)]
    content: String,
    /// ISO 8601; for display only.
    #[serde(rename = "timestamp")]
    _timestamp: Option<String>,
    tool_calls: Option<Vec<HistoryCall>>,
    #[schema(value_type = Option<Object>)]
    pending: Option<Value>,
}

/// A record of a call, as far as the caller has kept it.
#[derive(Clone, Deserialize, ToSchema)]
struct HistoryCall {
    tool_name: String,
    #[serde(default)]
    #[schema(value_type = Object)]
    parameters: Value,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    result: Value,
    error: Option<String>,
    duration_ms: Option<u64>,
}

#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RequestMetadata {
    /// `metadata.pending` of the answer before.
    #[schema(value_type = Option<Object>)]
    pending: Option<Value>,
}

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
        (status = 404, description = "The conversation is another user's", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn stream(
    request_id: RequestId,
    headers: HeaderMap,
    change: Change<Json<ChatRequest>>,
) -> Result<Response, Problem> {
    let seen = last_event(&headers)?;
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
        (status = 404, description = "The conversation is another user's", body = ProblemBody, content_type = "application/problem+json"),
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
        let checked = checks.take(message.check(&format!("conversation_history[{at}]"), app.clock()));
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

fn last_event(headers: &HeaderMap) -> Result<usize, Invalid> {
    let Some(value) = headers.get("last-event-id") else { return Ok(0) };
    let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    number.ok_or_else(|| Invalid::one("Last-Event-ID", "number", "must be the id of an event"))
}

impl HistoryMessage {
    fn check(self, place: &str, clock: &Clock) -> Result<Message, Invalid> {
        let mut checks = Checks::default();
        let role = checks.take(Role::parse(&format!("{place}.role"), &self.role));
        let content = checks.take(model::text::required(&format!("{place}.content"), &self.content, usize::MAX));
        let message = role.zip(content).map(|(role, content)| Message {
            id: clock.id(),
            role,
            content,
            timestamp: clock.now(),
            tool_calls: self.tool_calls.unwrap_or_default().into_iter().map(ToolCall::from).collect(),
            pending: self.pending,
        });
        checks.finish(message)
    }
}

impl From<HistoryCall> for ToolCall {
    fn from(call: HistoryCall) -> Self {
        let HistoryCall { tool_name, parameters, result, error, duration_ms } = call;
        Self { tool_name, parameters, result, error, duration_ms: duration_ms.unwrap_or_default() }
    }
}
