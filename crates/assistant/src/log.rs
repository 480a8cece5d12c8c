//! The entries of the log that a run leaves besides those of its tools (S0). What a user wrote is in them only after redaction.

use model::redact::redact;
use understand::Command;

pub(crate) fn reasoning(step: &str, command: &Command) {
    tracing::info!(event = "agent_reasoning", reasoning_step = &*redact(step), confidence = command.confidence);
}

pub(crate) fn failed(error_type: &str, error_message: &str, recoverable: bool) {
    tracing::error!(event = "error_occurred", error_type, error_message = &*redact(error_message), recoverable);
}
