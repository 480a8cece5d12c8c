//! `/chat/stream`, `/chat` and `/agent/run`: three ways to talk to the assistant.

use std::time::Instant;

use assistant::{AgentContext, ErrorType, Request};
use axum::http::HeaderMap;
use axum::response::Response;
use model::conversation::{self, Id, MAX_AGENT_MESSAGE, MAX_INPUT, Message, Role, ToolCall};
use model::invalid::Checks;
use model::{Clock, Invalid, User, UserId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tools::Held;
use utoipa::ToSchema;

use crate::change::{Change, Json};
use crate::chat::{self, Form, Place, Told, Turn, Usage};
use crate::problem::Body as ProblemBody;
use crate::request::RequestId;
use crate::{App, Problem};

/// How much of a history that the caller sends is looked at.
const MAX_HISTORY: usize = 50;

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

/// What came of it (S1).
#[derive(Serialize, ToSchema)]
struct ChatResponse<'a> {
    response: &'a str,
    conversation_id: Option<String>,
    success: bool,
    tool_calls: &'a [ToolCall],
    /// In words for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_type: Option<&'static str>,
    /// What the user must reply for what waits to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(examples("yes delete"))]
    confirmation_phrase: Option<&'a str>,
    request_id: &'a str,
    /// Who answered.
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    /// What the user should know though it went well.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
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

#[derive(Serialize, ToSchema)]
struct AgentResponse<'a> {
    response_text: &'a str,
    tool_invocations: Vec<ToolInvocation<'a>>,
    metadata: ResponseMetadata<'a>,
}

#[derive(Serialize, ToSchema)]
struct ToolInvocation<'a> {
    tool_name: &'a str,
    #[schema(value_type = Object)]
    parameters: &'a Value,
    #[schema(value_type = Option<Object>)]
    result: Option<&'a Value>,
    error: Option<&'a str>,
    duration_ms: u64,
}

#[derive(Serialize, ToSchema)]
struct ResponseMetadata<'a> {
    #[schema(examples("create_task"))]
    intent: &'a str,
    confidence: f64,
    /// What was read in the message.
    #[schema(value_type = Object)]
    extracted_params: Value,
    #[schema(value_type = Option<String>)]
    clarification_question: Value,
    processing_time_ms: u64,
    model: &'a str,
    request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(examples("ValidationError"))]
    error_type: Option<&'static str>,
    /// What waits for a confirmation: to be sent back in `metadata.pending` with the next message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pending: Option<&'a Held>,
    /// What replies of outside models cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    warnings: Vec<&'a str>,
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
    let turn = said(change, &request_id, Form::Stream)?;
    let app = turn.0;
    // Without a key there is nothing to go on with.
    let seen = if turn.1.key.is_some() { seen } else { 0 };
    chat::carry_out(&app, Turn { seen, ..turn.1 }).await
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
    let (app, turn) = said(change, &request_id, Form::Document(chat_response))?;
    chat::carry_out(&app, turn).await
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
    let form = if dropped > 0 { Form::Document(agent_response_of_a_part) } else { Form::Document(agent_response) };
    let turn = Turn {
        request: Request::new(message, &user, app.reader(), app.clock().now()),
        user,
        place: Place::Given(context),
        key,
        request_id: request_id.to_string(),
        seen: 0,
        form,
        started: Instant::now(),
    };
    chat::carry_out(&app, turn).await
}

/// A checked message for a conversation that is kept here.
fn said(change: Change<Json<ChatRequest>>, request_id: &RequestId, form: Form) -> Result<(App, Turn), Problem> {
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
    let turn = Turn {
        request: Request::new(message, &user, app.reader(), app.clock().now()),
        user,
        place: Place::Kept(id),
        key,
        request_id: request_id.to_string(),
        seen: 0,
        form,
        started: Instant::now(),
    };
    Ok((app, turn))
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

fn chat_response(told: &Told<'_>) -> serde_json::Result<String> {
    serde_json::to_string(&ChatResponse {
        response: &told.result.response,
        conversation_id: told.conversation_id.map(ToString::to_string),
        success: told.result.success,
        tool_calls: &told.result.tool_calls,
        error: told.result.error.as_deref(),
        error_type: told.result.error_type.map(ErrorType::as_str),
        confirmation_phrase: told.result.held.as_ref().map(|held| held.phrase.as_str()),
        request_id: told.request_id,
        model: told.model,
        usage: told.usage(),
        warnings: &told.result.warnings,
    })
}

fn agent_response(told: &Told<'_>) -> serde_json::Result<String> {
    agent_response_with(told, Vec::new())
}

fn agent_response_of_a_part(told: &Told<'_>) -> serde_json::Result<String> {
    agent_response_with(told, vec!["only the last 50 messages of the history were looked at"])
}

fn agent_response_with(told: &Told<'_>, mut warnings: Vec<&'static str>) -> serde_json::Result<String> {
    let result = told.result;
    let warnings = warnings.drain(..).chain(result.warnings.iter().map(String::as_str)).collect();
    let mut read = serde_json::to_value(&told.request.reading)?;
    serde_json::to_string(&AgentResponse {
        response_text: &result.response,
        tool_invocations: result.tool_calls.iter().map(ToolInvocation::of).collect(),
        metadata: ResponseMetadata {
            intent: result.intent.as_str(),
            confidence: result.confidence,
            extracted_params: read.get_mut("extracted_params").map_or(json!({}), Value::take),
            clarification_question: read.get_mut("clarification_question").map_or(Value::Null, Value::take),
            processing_time_ms: told.milliseconds,
            model: told.model,
            request_id: told.request_id,
            error_type: result.error_type.map(|kind| error_type(kind, result.tool_error.as_deref())),
            pending: result.held.as_ref(),
            usage: told.usage(),
            warnings,
        },
    })
}

impl<'a> ToolInvocation<'a> {
    fn of(call: &'a ToolCall) -> Self {
        Self {
            tool_name: &call.tool_name,
            parameters: &call.parameters,
            result: Some(&call.result).filter(|_| call.error.is_none()),
            error: call.error.as_deref(),
            duration_ms: call.duration_ms,
        }
    }
}

/// S4's names.
fn error_type(kind: ErrorType, tool_error: Option<&str>) -> &'static str {
    match (kind, tool_error) {
        (_, Some(tools::answer::VALIDATION_ERROR)) => "ValidationError",
        (ErrorType::ModelUnavailable | ErrorType::Internal, None) => "IntentClassificationError",
        _ => "ToolInvocationError",
    }
}
