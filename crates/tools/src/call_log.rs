//! Log events of tool calls and circuit breakers (S0). Secrets are redacted here, because traces do not pass the
//! redactor of the log.

use std::time::Duration;

use model::breaker::{BreakerChange, BreakerState};
use redact::redact;
use serde_json::Value;

use crate::ToolArguments;

const PREVIEW_CHARS: usize = 200;
/// Longer arguments are truncated in the log.
const MAX_ARGUMENTS_CHARS: usize = 4000;
/// The part of a text that is redacted for a preview. It is longer than the preview, so that a secret at the cut is
/// found.
const REDACTION_WINDOW_CHARS: usize = 10 * PREVIEW_CHARS;

/// The log entry of a call.
pub struct CallLogEntry<'a> {
    tool: &'a str,
    arguments: String,
}

/// Starts the log entry of a call. Redacts the arguments, and formats them only if the level INFO is enabled. If they
/// have more than 4000 bytes, they are truncated and logged as one JSON string. Nothing is logged unless [`CallLogEntry::finish`] is called.
pub fn start<'a>(tool: &'a str, arguments: &ToolArguments) -> CallLogEntry<'a> {
    let shown = tracing::enabled!(tracing::Level::INFO).then(|| {
        let text = redact(&serde_json::to_string(arguments).unwrap_or_default()).into_owned();
        if text.len() <= MAX_ARGUMENTS_CHARS {
            text
        } else {
            Value::from(truncate(&text, MAX_ARGUMENTS_CHARS)).to_string()
        }
    });
    CallLogEntry { tool, arguments: shown.unwrap_or_default() }
}

impl CallLogEntry<'_> {
    /// Writes the entry with the duration of the call.
    pub fn finish(self, duration: Duration) {
        let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let arguments = self.arguments;
        tracing::info!(event = "mcp_tool_called", tool_name = self.tool, arguments.json = arguments, duration_ms);
    }
}

/// Logs the result of a call with a redacted preview.
pub fn log_result(tool: &str, success: bool, text: &str) {
    if tracing::enabled!(tracing::Level::INFO) {
        let result_preview = preview(text);
        tracing::info!(event = "mcp_tool_result", tool_name = tool, success, result_preview);
    }
}

/// Logs a state change of a circuit breaker as a warning (RES-1). Before it, logs a separate warning if the new state
/// is open. The last error is redacted and truncated to 200 characters.
pub fn log_breaker_change(change: &BreakerChange) {
    let BreakerChange { service, old, new, failure_count, threshold, last_error } = change;
    let last_error = redact(last_error.as_deref().unwrap_or_default());
    if *new == BreakerState::Open {
        tracing::warn!(event = "circuit_breaker_opened", service = &**service, failure_count, threshold);
    }
    tracing::warn!(
        event = "circuit_breaker_state_change",
        service = &**service,
        old_state = old.as_str(),
        new_state = new.as_str(),
        failure_count,
        last_error = truncate(&last_error, PREVIEW_CHARS),
    );
}

fn preview(text: &str) -> String {
    truncate(&redact(truncate(text, REDACTION_WINDOW_CHARS)), PREVIEW_CHARS).to_owned()
}

/// Returns at most the first `max` characters.
fn truncate(text: &str, max: usize) -> &str {
    text.char_indices().nth(max).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn previews_are_short_and_contain_no_part_of_a_secret() {
        // SUP-9
        let key = format!("sk-ant-api03-{}", "aB3".repeat(30));
        let text = format!("{}{key} {}", "ü".repeat(PREVIEW_CHARS - 10), "x".repeat(5000));
        let shown = preview(&text);
        assert_eq!(shown.chars().count(), PREVIEW_CHARS);
        assert!(shown.ends_with("[redacted]") && !shown.contains("sk-ant"), "{shown}");
    }
}
