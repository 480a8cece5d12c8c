//! `/chat/stream`, `/chat` and `/agent/run`.

use std::borrow::Cow;

use model::conversation::{ConversationId, MessageRole, ToolCall};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A message to the assistant (S0).
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChatRequest {
    #[schema(min_length = 1, max_length = 5000, examples("Remind me to buy eggs tomorrow at 3pm"))]
    pub input: String,
    /// The conversation of the message: a UUID, or `conv_` followed by letters and digits. Without it, or with an
    /// unknown id, a new conversation is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(examples("conv_123abc"))]
    pub conversation_id: Option<String>,
    /// Must be the user of the token. Ignored without authentication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
}

/// One event of the stream (S0).
#[derive(ToSchema)]
#[schema(as = StreamEvent)]
#[expect(dead_code, reason = "only describes the stream in the API description")]
pub struct StreamEvent {
    /// The number of the event, starting at 1.
    id: String,
    /// `thinking`, `tool_call`, `response_delta` or `error`. The last event is `done`.
    #[schema(examples("response_delta"))]
    event: String,
    /// A JSON object.
    data: String,
}

/// The data of an event. The event name determines the variant.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum ChatEventData<'a> {
    Thinking(Thinking<'a>),
    ToolCall(ToolCallProgress<'a>),
    ResponseDelta(ResponseDelta<'a>),
    Error(TurnError<'a>),
    Done(TurnDone<'a>),
}

/// The data of a `thinking` event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Thinking<'a> {
    pub content: Cow<'a, str>,
}

/// The data of a `tool_call` event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolCallProgress<'a> {
    pub tool_name: Cow<'a, str>,
    pub arguments: Cow<'a, Value>,
    pub status: Cow<'a, str>,
    /// The stored values in words, after a change: `call mom · due tomorrow at 3pm · every week`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Cow<'a, str>>,
}

impl ToolCallProgress<'_> {
    /// Returns `true` while the tool is running.
    pub fn is_in_progress(&self) -> bool {
        self.status == "in_progress"
    }
}

/// The data of a `response_delta` event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResponseDelta<'a> {
    pub delta: Cow<'a, str>,
    pub accumulated: Cow<'a, str>,
}

/// The data of an `error` event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TurnError<'a> {
    pub error_type: Cow<'a, str>,
    pub message: Cow<'a, str>,
    /// `true` if the turn continues after the error.
    pub recoverable: bool,
}

/// The data of the `done` event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TurnDone<'a> {
    pub final_output: Cow<'a, str>,
    pub tools_called: Vec<Cow<'a, str>>,
    pub success: bool,
    pub conversation_id: Option<Cow<'a, ConversationId>>,
    /// The reply that confirms a pending action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation_phrase: Option<Cow<'a, str>>,
    pub model: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
}

/// Tokens used by models of providers.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct TokenUsage {
    pub input_tokens: u64,
    /// Includes reasoning tokens.
    pub output_tokens: u64,
    pub reasoning_tokens: u64,
    pub total_tokens: u64,
}

/// The answer to a message (S1).
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChatResponse<'a> {
    pub response: Cow<'a, str>,
    #[schema(value_type = Option<String>)]
    pub conversation_id: Option<Cow<'a, ConversationId>>,
    pub success: bool,
    #[schema(value_type = Vec<ToolCall>)]
    pub tool_calls: Cow<'a, [ToolCall]>,
    /// The error message for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<Cow<'a, str>>,
    /// The reply that confirms a pending action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples("yes delete"))]
    pub confirmation_phrase: Option<Cow<'a, str>>,
    pub request_id: Cow<'a, str>,
    /// The model that answered.
    pub model: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// Warnings for the user about a successful turn.
    #[serde(default, skip_serializing_if = "<[String]>::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub warnings: Cow<'a, [String]>,
}

/// A message and the conversation before it (S4).
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentRequest {
    /// Must be the user of the token. Ignored without authentication.
    #[schema(format = Uuid)]
    pub user_id: Option<String>,
    #[schema(min_length = 1, max_length = 2000, examples("remind me to buy milk"))]
    pub message: String,
    /// Oldest first. Only the last 50 messages are used.
    #[serde(default)]
    pub conversation_history: Vec<HistoryMessage>,
    pub metadata: Option<RequestMetadata>,
}

/// One message of the conversation so far.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HistoryMessage {
    #[schema(value_type = MessageRole)]
    pub role: String,
    #[schema(min_length = 1)]
    pub content: String,
    /// ISO 8601, for display only.
    pub timestamp: Option<String>,
    pub tool_calls: Option<Vec<HistoryCall>>,
    #[schema(value_type = Option<Object>)]
    pub pending: Option<Value>,
}

/// A tool call, with the details that the caller has stored.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HistoryCall {
    pub tool_name: String,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub parameters: Value,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub result: Value,
    pub error: Option<String>,
    pub duration_ms: Option<u64>,
}

impl From<HistoryCall> for ToolCall {
    fn from(call: HistoryCall) -> Self {
        let HistoryCall { tool_name, parameters, result, error, duration_ms } = call;
        Self { tool_name, parameters, result, error, duration_ms: duration_ms.unwrap_or_default() }
    }
}

/// The metadata of a request.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestMetadata {
    /// `metadata.pending` of the previous response.
    #[schema(value_type = Option<Object>)]
    pub pending: Option<Value>,
}

/// The answer to a message, with its intent and tool calls (S4).
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AgentResponse<'a> {
    pub response_text: Cow<'a, str>,
    pub tool_invocations: Vec<ToolInvocation<'a>>,
    pub metadata: ResponseMetadata<'a>,
}

/// A tool call and its result.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ToolInvocation<'a> {
    pub tool_name: Cow<'a, str>,
    #[schema(value_type = Object)]
    pub parameters: Cow<'a, Value>,
    #[schema(value_type = Option<Object>)]
    pub result: Option<Cow<'a, Value>>,
    pub error: Option<Cow<'a, str>>,
    pub duration_ms: u64,
}

/// The metadata of a response.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ResponseMetadata<'a> {
    #[schema(examples("create_task"))]
    pub intent: Cow<'a, str>,
    pub confidence: f64,
    /// The parameters in the message.
    #[schema(value_type = Object)]
    pub extracted_params: Value,
    #[schema(value_type = Option<String>)]
    pub clarification_question: Value,
    pub processing_time_ms: u64,
    pub model: Cow<'a, str>,
    pub request_id: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples("ValidationError"))]
    pub error_type: Option<Cow<'a, str>>,
    /// The tool call that waits for a confirmation. Send it back in `metadata.pending` with the next message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub pending: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    #[serde(default)]
    #[schema(required)]
    pub warnings: Vec<Cow<'a, str>>,
}
