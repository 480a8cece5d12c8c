//! The entries of the log that a run leaves (S0). What a user wrote is in them only after redaction.

use model::redact::redact;
use serde_json::Value;
use understand::Command;

const PREVIEW: usize = 200;

pub(crate) fn reasoning(step: &str, command: &Command) {
    tracing::info!(event = "agent_reasoning", reasoning_step = &*redact(step), confidence = command.confidence);
}

pub(crate) fn called(tool_name: &str, arguments: &Value, duration_ms: u64) {
    tracing::info!(event = "mcp_tool_called", tool_name, arguments.json = %arguments, duration_ms);
}

pub(crate) fn result(tool_name: &str, success: bool, result: &Value) {
    let text = result.to_string();
    let end = text.char_indices().nth(PREVIEW).map_or(text.len(), |(at, _)| at);
    tracing::info!(event = "mcp_tool_result", tool_name, success, result_preview = &text[..end]);
}

pub(crate) fn failed(error_type: &str, error_message: &str, recoverable: bool) {
    tracing::error!(event = "error_occurred", error_type, error_message = &*redact(error_message), recoverable);
}
