//! What the log says of calls (S0's events). Secrets are taken out here, because traces do not pass the log's redactor.

use std::time::Instant;

use model::breaker::{Change, State};
use redact::redact;
use serde_json::Value;

use crate::Arguments;

const PREVIEW: usize = 200;
/// No log entry needs more of the arguments.
const MAX_ARGUMENTS: usize = 4000;
/// What is looked at for a preview: more than it shows, so that a secret is not cut before it is found.
const WINDOW: usize = 10 * PREVIEW;

/// A call under way.
pub struct Called<'a> {
    tool: &'a str,
    arguments: String,
    began: Instant,
}

/// Nothing is worked out where nobody reads it.
pub fn called<'a>(tool: &'a str, arguments: &Arguments) -> Called<'a> {
    let shown = tracing::enabled!(tracing::Level::INFO).then(|| {
        let text = redact(&serde_json::to_string(arguments).unwrap_or_default()).into_owned();
        if text.len() <= MAX_ARGUMENTS { text } else { Value::from(start(&text, MAX_ARGUMENTS)).to_string() }
    });
    Called { tool, arguments: shown.unwrap_or_default(), began: Instant::now() }
}

impl Called<'_> {
    pub fn log(self) {
        let duration_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let arguments = self.arguments;
        tracing::info!(event = "mcp_tool_called", tool_name = self.tool, arguments.json = arguments, duration_ms);
    }
}

pub fn result(tool: &str, success: bool, text: &str) {
    if tracing::enabled!(tracing::Level::INFO) {
        let result_preview = preview(text);
        tracing::info!(event = "mcp_tool_result", tool_name = tool, success, result_preview);
    }
}

/// A breaker has changed its state (RES-1).
pub fn breaker(change: &Change) {
    let Change { service, old, new, failure_count, threshold, last_error } = change;
    let last_error = redact(last_error.as_deref().unwrap_or_default());
    if *new == State::Open {
        tracing::warn!(event = "circuit_breaker_opened", service = &**service, failure_count, threshold);
    }
    tracing::warn!(
        event = "circuit_breaker_state_change",
        service = &**service,
        old_state = old.as_str(),
        new_state = new.as_str(),
        failure_count,
        last_error = start(&last_error, PREVIEW),
    );
}

fn preview(text: &str) -> String {
    start(&redact(start(text, WINDOW)), PREVIEW).to_owned()
}

/// At most so many characters.
fn start(text: &str, max: usize) -> &str {
    text.char_indices().nth(max).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_is_short_and_keeps_no_part_of_a_secret() {
        let key = format!("sk-ant-api03-{}", "aB3".repeat(30));
        let text = format!("{}{key} {}", "ü".repeat(PREVIEW - 10), "x".repeat(5000));
        let shown = preview(&text);
        assert_eq!(shown.chars().count(), PREVIEW);
        assert!(shown.ends_with("[redacted]") && !shown.contains("sk-ant"), "{shown}");
    }
}
