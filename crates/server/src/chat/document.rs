//! Encodes a turn as one JSON document, once it has ended: `/chat` (S1) and `/agent/run` (S4).

use assistant::turn::{TurnOutcome, TurnStream};
use assistant::{ErrorType, Usage};
use axum::Json;
use axum::response::{IntoResponse, Response};
use model::conversation::{Id, ToolCall};
use serde::Serialize;
use serde_json::{Value, json};
use tools::Held;
use utoipa::ToSchema;

/// Tokens used by outside models.
#[derive(Clone, Copy, Serialize, ToSchema)]
pub(crate) struct TokenUsage {
    input_tokens: u64,
    /// Includes reasoning.
    output_tokens: u64,
    reasoning_tokens: u64,
    total_tokens: u64,
}

impl From<Usage> for TokenUsage {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input,
            output_tokens: usage.output,
            reasoning_tokens: usage.reasoning,
            total_tokens: usage.input + usage.output,
        }
    }
}

/// The answer to a message (S1).
#[derive(Serialize, ToSchema)]
pub(crate) struct ChatResponse<'a> {
    response: &'a str,
    #[schema(value_type = Option<String>)]
    conversation_id: Option<&'a Id>,
    success: bool,
    tool_calls: &'a [ToolCall],
    /// In words for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_type: Option<&'static str>,
    /// The reply that confirms a pending action.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(examples("yes delete"))]
    confirmation_phrase: Option<&'a str>,
    request_id: &'a str,
    /// The model that answered.
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<TokenUsage>,
    /// Warnings for the user; the turn has succeeded all the same.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
}

impl<'a> From<&'a TurnOutcome> for ChatResponse<'a> {
    fn from(outcome: &'a TurnOutcome) -> Self {
        let result = &outcome.result;
        Self {
            response: &result.response,
            conversation_id: outcome.conversation_id.as_ref(),
            success: result.success,
            tool_calls: &result.tool_calls,
            error: result.error.as_deref(),
            error_type: result.error_type.map(ErrorType::as_str),
            confirmation_phrase: result.held.as_ref().map(|held| held.phrase.as_str()),
            request_id: &outcome.request_id,
            model: &outcome.model,
            usage: result.usage().map(TokenUsage::from),
            warnings: &result.warnings,
        }
    }
}

/// The answer to a message and how it was understood (S4).
#[derive(Serialize, ToSchema)]
pub(crate) struct AgentResponse<'a> {
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
    /// The parameters that the message names.
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
    /// The action that waits for a confirmation: to be sent back in `metadata.pending` with the next message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pending: Option<&'a Held>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<TokenUsage>,
    warnings: Vec<&'a str>,
}

impl<'a> AgentResponse<'a> {
    /// `warnings` come before those of the turn.
    fn new(outcome: &'a TurnOutcome, warnings: &[&'a str]) -> Self {
        let result = &outcome.result;
        let read = |name: &str| outcome.reading.as_ref().and_then(|reading| reading.get(name)).cloned();
        let warnings = warnings.iter().copied().chain(result.warnings.iter().map(String::as_str)).collect();
        Self {
            response_text: &result.response,
            tool_invocations: result.tool_calls.iter().map(ToolInvocation::from).collect(),
            metadata: ResponseMetadata {
                intent: result.intent.as_str(),
                confidence: result.confidence,
                extracted_params: read("extracted_params").unwrap_or_else(|| json!({})),
                clarification_question: read("clarification_question").unwrap_or_default(),
                processing_time_ms: outcome.duration_ms,
                model: &outcome.model,
                request_id: &outcome.request_id,
                error_type: result.error_type.map(|kind| error_type(kind, result.tool_error.as_deref())),
                pending: result.held.as_ref(),
                usage: result.usage().map(TokenUsage::from),
                warnings,
            },
        }
    }
}

impl<'a> From<&'a ToolCall> for ToolInvocation<'a> {
    fn from(call: &'a ToolCall) -> Self {
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

/// Encodes a turn for `/chat`.
pub(crate) async fn chat(stream: TurnStream) -> Response {
    let outcome = stream.outcome().await;
    Json(ChatResponse::from(&*outcome)).into_response()
}

/// Encodes a turn for `/agent/run`.
pub(crate) async fn agent(stream: TurnStream, warnings: &[&str]) -> Response {
    let outcome = stream.outcome().await;
    Json(AgentResponse::new(&outcome, warnings)).into_response()
}
