//! The entries of the log that a run leaves besides those of its tools (S0). What a user wrote is in them only after redaction.

use std::time::Instant;

use redact::redact;
use understand::Command;

use crate::Usage;
use crate::models::{Choice, Provider};

pub(crate) fn reasoning(step: &str, command: &Command) {
    tracing::info!(event = "agent_reasoning", reasoning_step = &*redact(step), confidence = command.confidence);
}

pub(crate) fn failed(error_type: &str, error_message: &str, recoverable: bool) {
    tracing::error!(event = "error_occurred", error_type, error_message = &*redact(error_message), recoverable);
}

/// Another model answers than the one that was asked.
pub(crate) fn fell_back(to: &str) {
    tracing::warn!(event = "model_fallback", model = to);
}

/// A provider has begun to answer (S0's `gemini_api_called` and its like).
pub(crate) fn model_called(choice: &Choice, prompt_length: usize, began: Instant) {
    let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::info!(event = names(choice.provider).0, model = choice.name, prompt_length, duration_ms);
}

/// A provider has answered.
pub(crate) fn model_result(choice: &Choice, response_length: usize, usage: Usage) {
    let tokens_used = usage.input + usage.output;
    tracing::info!(event = names(choice.provider).1, model = choice.name, response_length, tokens_used);
}

/// A provider has not answered; it may be asked again.
pub(crate) fn model_failed(choice: &Choice, error_message: &str) {
    let error_message = &*redact(error_message);
    tracing::warn!(event = "model_call_failed", model = choice.label(), error_message);
}

/// A model does not take a tool.
pub(crate) fn set_aside(model: &str, tool_name: &str, reason: &str) {
    tracing::warn!(event = "tool_set_aside", model, tool_name, reason = &*redact(reason));
}

fn names(provider: Provider) -> (&'static str, &'static str) {
    match provider {
        Provider::Gemini => ("gemini_api_called", "gemini_api_result"),
        Provider::OpenAi => ("openai_api_called", "openai_api_result"),
        Provider::Anthropic => ("anthropic_api_called", "anthropic_api_result"),
        Provider::OpenAiCompatible => ("openai_compatible_api_called", "openai_compatible_api_result"),
        Provider::Offline => ("offline_called", "offline_result"),
    }
}
