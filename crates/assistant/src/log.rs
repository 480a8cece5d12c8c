//! Log entries of a run, except those of its tools (S0). Text of the user is always redacted.

use std::time::Instant;

use redact::redact;
use understand::ParsedCommand;

use crate::ModelUsage;
use crate::models::{ModelConfig, ModelProvider};

/// Logs the interpretation of the first command.
pub(crate) fn reasoning(step: &str, command: &ParsedCommand) {
    tracing::info!(event = "agent_reasoning", reasoning_step = &*redact(step), confidence = command.confidence);
}

/// Logs an error of a turn.
pub(crate) fn failed(error_type: &str, error_message: &str, recoverable: bool) {
    tracing::error!(event = "error_occurred", error_type, error_message = &*redact(error_message), recoverable);
}

/// Logs that a turn continues with the next model.
pub(crate) fn fell_back(to: &str) {
    tracing::warn!(event = "model_fallback", model = to);
}

/// Logs that a provider has started to answer (`gemini_api_called` of S0 and its counterparts).
pub(crate) fn model_called(config: &ModelConfig, prompt_length: usize, started: Instant) {
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::info!(event = event_names(config.provider).0, model = config.name, prompt_length, duration_ms);
}

/// Logs a completed answer of a provider.
pub(crate) fn model_result(config: &ModelConfig, response_length: usize, usage: ModelUsage) {
    let tokens_used = usage.input + usage.output;
    tracing::info!(event = event_names(config.provider).1, model = config.name, response_length, tokens_used);
}

/// Logs a failed call of a provider. A retry may follow.
pub(crate) fn model_failed(config: &ModelConfig, error_message: &str) {
    let error_message = &*redact(error_message);
    tracing::warn!(event = "model_call_failed", model = config.label(), error_message);
}

/// Logs that a provider rejected a tool.
pub(crate) fn tool_rejected(model: &str, tool_name: &str, reason: &str) {
    tracing::warn!(event = "tool_set_aside", model, tool_name, reason = &*redact(reason));
}

/// Returns the names of the two log events of a provider: called and answered, such as `openai_api_called` and
/// `openai_api_result`.
fn event_names(provider: ModelProvider) -> (&'static str, &'static str) {
    match provider {
        ModelProvider::Gemini => ("gemini_api_called", "gemini_api_result"),
        ModelProvider::OpenAi => ("openai_api_called", "openai_api_result"),
        ModelProvider::Anthropic => ("anthropic_api_called", "anthropic_api_result"),
        ModelProvider::OpenAiCompatible => ("openai_compatible_api_called", "openai_compatible_api_result"),
        ModelProvider::Offline => ("offline_called", "offline_result"),
    }
}
