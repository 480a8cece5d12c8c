//! Encodes an ended turn as one JSON document, for `/chat` (S1) and `/agent/run` (S4).

use std::borrow::Cow;

use api::chat::{AgentResponse, ChatResponse, ResponseMetadata, TokenUsage, ToolInvocation};
use assistant::turn::{TurnOutcome, TurnStream};
use assistant::{ErrorType, ModelUsage};
use axum::Json;
use axum::response::{IntoResponse, Response};
use model::conversation::ToolCall;
use serde_json::json;

use crate::Problem;

/// Converts the token usage of a turn. The total is the sum of input and output, because reasoning is part of the
/// output.
pub(crate) fn token_usage(usage: ModelUsage) -> TokenUsage {
    TokenUsage {
        input_tokens: usage.input,
        output_tokens: usage.output,
        reasoning_tokens: usage.reasoning,
        total_tokens: usage.input + usage.output,
    }
}

/// Returns the response for `/chat`. The error, the confirmation phrase and the usage are set only if the turn has
/// them.
fn chat_response(outcome: &TurnOutcome) -> ChatResponse<'_> {
    let result = &outcome.result;
    ChatResponse {
        response: (&*result.response).into(),
        conversation_id: outcome.conversation_id.as_ref().map(Cow::Borrowed),
        success: result.success,
        tool_calls: result.tool_calls.as_slice().into(),
        error: result.error.as_deref().map(Cow::Borrowed),
        error_type: result.error_type.map(|kind| kind.as_str().into()),
        confirmation_phrase: result.pending.as_ref().map(|pending| pending.phrase.as_str().into()),
        request_id: outcome.request_id.as_str().into(),
        model: outcome.model.as_str().into(),
        usage: result.usage().map(token_usage),
        warnings: result.warnings.as_slice().into(),
    }
}

/// Returns the response for `/agent/run`. `warnings` come before the warnings of the turn. Without a parsed utterance,
/// the parameters are an empty object and the question is null. Fails if the pending confirmation cannot be encoded.
fn agent_response<'a>(outcome: &'a TurnOutcome, warnings: &[&'a str]) -> serde_json::Result<AgentResponse<'a>> {
    let result = &outcome.result;
    let parsed = |name: &str| outcome.utterance.as_ref().and_then(|utterance| utterance.get(name)).cloned();
    let warnings = warnings.iter().copied().chain(result.warnings.iter().map(String::as_str));
    Ok(AgentResponse {
        response_text: (&*result.response).into(),
        tool_invocations: result.tool_calls.iter().map(tool_invocation).collect(),
        metadata: ResponseMetadata {
            intent: result.intent.as_str().into(),
            confidence: result.confidence,
            extracted_params: parsed("extracted_params").unwrap_or_else(|| json!({})),
            clarification_question: parsed("clarification_question").unwrap_or_default(),
            processing_time_ms: outcome.duration_ms,
            model: outcome.model.as_str().into(),
            request_id: outcome.request_id.as_str().into(),
            error_type: result.error_type.map(|kind| error_type(kind, result.tool_error.as_deref()).into()),
            pending: result.pending.as_ref().map(serde_json::to_value).transpose()?,
            usage: result.usage().map(token_usage),
            warnings: warnings.map(Cow::Borrowed).collect(),
        },
    })
}

/// Returns a tool call in the form of S4. A failed call has an error and no result. A successful one has a result and
/// no error.
fn tool_invocation(call: &ToolCall) -> ToolInvocation<'_> {
    ToolInvocation {
        tool_name: call.tool_name.as_str().into(),
        parameters: Cow::Borrowed(&call.parameters),
        result: Some(Cow::Borrowed(&call.result)).filter(|_| call.error.is_none()),
        error: call.error.as_deref().map(Cow::Borrowed),
        duration_ms: call.duration_ms,
    }
}

/// Returns the name of an error type in S4. `tool_error` is the error code of a failed tool; a validation error of a
/// tool precedes the type.
fn error_type(kind: ErrorType, tool_error: Option<&str>) -> &'static str {
    match (kind, tool_error) {
        (_, Some(tools::answer::VALIDATION_ERROR)) => "ValidationError",
        (ErrorType::ModelUnavailable | ErrorType::Internal, None) => "IntentClassificationError",
        _ => "ToolInvocationError",
    }
}

/// Waits for the end of a turn and encodes it for `/chat`.
pub(crate) async fn chat(stream: TurnStream) -> Response {
    let outcome = stream.outcome().await;
    Json(chat_response(&outcome)).into_response()
}

/// Waits for the end of a turn and encodes it for `/agent/run`. `warnings` come before the warnings of the turn.
/// Responds with an internal error if the turn cannot be encoded.
pub(crate) async fn agent(stream: TurnStream, warnings: &[&str]) -> Response {
    let outcome = stream.outcome().await;
    match agent_response(&outcome, warnings) {
        Ok(response) => Json(response).into_response(),
        Err(error) => Problem::internal(error.to_string()).into_response(),
    }
}
