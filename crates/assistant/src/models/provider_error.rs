//! Failures of providers, with the remedy for each.

use std::error::Error as _;
use std::time::Duration;

use jiff::Timestamp;
use redact::Redactor;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// The maximum length of an error message, in characters.
const MAX_MESSAGE_CHARS: usize = 500;

/// A failed call of a provider.
#[derive(Debug)]
pub(super) struct ProviderError {
    pub(super) message: String,
    pub(super) remedy: Remedy,
}

/// The reaction to a failure.
#[derive(Debug, PartialEq)]
pub(super) enum Remedy {
    /// Retry, after this delay if the provider sent one.
    Retry(Option<Duration>),
    /// Retry without this tool, because the provider rejects it.
    WithoutTool(String),
    /// Retry without external tools. The provider rejects one of them but does not name it.
    WithoutExternalTools,
    /// Retry without a temperature.
    WithoutTemperature,
    /// Give up. The request is invalid, but the provider works.
    InvalidRequest,
    /// Give up. The provider cannot be used.
    Unusable,
}

impl ProviderError {
    /// Creates a failure that may pass.
    pub(super) fn transient(message: impl Into<String>) -> Self {
        Self { message: message.into(), remedy: Remedy::Retry(None) }
    }

    /// Creates the failure of a call that exceeded its deadline.
    pub(super) fn timeout() -> Self {
        Self { message: "the provider did not answer before the deadline".to_owned(), remedy: Remedy::Unusable }
    }

    /// Creates a failure that a retry cannot fix.
    pub(super) fn unusable(message: impl Into<String>) -> Self {
        Self { message: message.into(), remedy: Remedy::Unusable }
    }

    /// Creates the failure of a connection, which is retried. The message contains all causes.
    pub(super) fn connection(error: &reqwest::Error) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        Self::transient(text)
    }

    /// Creates the failure of an error response. `tools` has the names of the offered tools, in their order. The
    /// statuses 408, 425, 429 and from 500 are retried, after the delay of the provider. 413 is an invalid request. A
    /// 400 or 422 that mentions "temperature" is repeated without it. If it identifies a tool, it is repeated without
    /// that tool. If it only mentions tools, it is repeated without external tools. Otherwise it is an invalid request.
    /// Any other status makes the provider unusable. The message contains the status and the whole body.
    pub(super) fn from_response(
        status: StatusCode,
        headers: &HeaderMap,
        body: &str,
        tools: &[String],
        now: Timestamp,
    ) -> Self {
        let remedy = match status.as_u16() {
            408 | 425 | 429 | 500.. => Remedy::Retry(retry_after(headers, now)),
            400 | 422 if body.contains("temperature") => Remedy::WithoutTemperature,
            400 | 422 => match rejected_tool(body, tools) {
                Some(tool) => Remedy::WithoutTool(tool),
                None if mentions_tools(body) => Remedy::WithoutExternalTools,
                None => Remedy::InvalidRequest,
            },
            413 => Remedy::InvalidRequest,
            _ => Remedy::Unusable,
        };
        Self { message: format!("HTTP {}: {body}", status.as_u16()), remedy }
    }

    /// Redacts and truncates the message. Providers repeat rejected keys, and some send a whole page.
    pub(super) fn redacted(self, redactor: &Redactor) -> Self {
        Self { message: truncated(&redactor.text(&self.message)), ..self }
    }
}

/// Joins the text to one line and truncates it to [`MAX_MESSAGE_CHARS`].
fn truncated(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.char_indices().nth(MAX_MESSAGE_CHARS).map_or(text.clone(), |(end, _)| format!("{}…", &text[..end]))
}

/// Returns the retry delay that the provider requests. `retry-after-ms` takes precedence over `retry-after`, which has
/// seconds or a date. A date in the past means no delay. A very large number becomes [`Duration::MAX`]. Returns `None`
/// if there is no valid header, or if the number of seconds is negative.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(ms) = text("retry-after-ms").and_then(|ms| ms.trim().parse().ok()) {
        return Some(Duration::from_millis(ms));
    }
    let value = text(RETRY_AFTER.as_str())?.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        // A delay that overflows is clamped to the maximum.
        let longest = (seconds > 0.0).then_some(Duration::MAX);
        return Duration::try_from_secs_f64(seconds).ok().or(longest);
    }
    let at = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
}

/// Returns the tool that the provider rejects. Its name must appear in quotes in an error about a schema. Of several,
/// the longest is returned. Otherwise the error must contain its index in `tools`, such as `tools[3]`, `tools.3` or
/// `function_declarations[3]`. Returns `None` if the tool cannot be identified.
fn rejected_tool(body: &str, tools: &[String]) -> Option<String> {
    let quoted = |tool: &&String| ['\'', '"', '`'].iter().any(|q| body.contains(&format!("{q}{tool}{q}")));
    // An error can name a tool for other reasons. It must be about the schema.
    let is_about_schema = ["schema", "parameters", "properties", "declaration"].iter().any(|word| body.contains(word));
    // Prefers the longest name, because one name can be part of another.
    if let Some(named) = tools.iter().filter(|_| is_about_schema).filter(quoted).max_by_key(|tool| tool.len()) {
        return Some(named.clone());
    }
    for prefix in ["function_declarations[", "functionDeclarations[", "tools[", "tools."] {
        for (at, _) in body.match_indices(prefix) {
            let rest = &body[at + prefix.len()..];
            // Gemini numbers the declarations inside its only tool.
            if rest.contains("function_declarations[") || rest.contains("functionDeclarations[") {
                continue;
            }
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            if let Some(tool) = digits.parse::<usize>().ok().and_then(|n| tools.get(n)) {
                return Some(tool.clone());
            }
        }
    }
    None
}

fn mentions_tools(body: &str) -> bool {
    let body = body.to_lowercase();
    ["tool", "function", "schema", "parameters"].iter().any(|word| body.contains(word))
}

#[cfg(test)]
mod tests {
    use redact::RedactOptions;

    use super::*;

    fn error(status: u16, body: &str, headers: &[(&'static str, &str)]) -> ProviderError {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let tools = ["add_task", "list_tasks", "notes__search"].map(str::to_owned);
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        ProviderError::from_response(StatusCode::from_u16(status).unwrap(), &map, body, &tools, now)
    }

    fn remedy(status: u16, body: &str, headers: &[(&'static str, &str)]) -> Remedy {
        error(status, body, headers).remedy
    }

    #[test]
    fn transient_failures_are_retried_after_the_requested_delay() {
        // MODEL-3
        assert_eq!(remedy(500, "", &[]), Remedy::Retry(None));
        assert_eq!(remedy(429, "", &[("retry-after", "2")]), Remedy::Retry(Some(Duration::from_secs(2))));
        assert_eq!(remedy(429, "", &[("retry-after-ms", "150")]), Remedy::Retry(Some(Duration::from_millis(150))));
        assert_eq!(remedy(429, "", &[("retry-after", "1e30")]), Remedy::Retry(Some(Duration::MAX)));
        assert_eq!(remedy(429, "", &[("retry-after", "-1")]), Remedy::Retry(None));
        let date = ("retry-after", "Thu, 01 Jan 2026 00:00:07 GMT");
        assert_eq!(remedy(503, "", &[date]), Remedy::Retry(Some(Duration::from_secs(7))));
        let past = ("retry-after", "Wed, 31 Dec 2025 23:00:00 GMT");
        assert_eq!(remedy(503, "", &[past]), Remedy::Retry(Some(Duration::ZERO)));
        assert_eq!(remedy(401, "Incorrect API key", &[]), Remedy::Unusable);
        assert_eq!(remedy(400, "maximum context length exceeded", &[]), Remedy::InvalidRequest);
    }

    #[test]
    fn rejected_tools_are_found_by_name_or_index() {
        // MODEL-2
        let tool = |name: &str| Remedy::WithoutTool(name.to_owned());
        let openai =
            r#"{"error":{"message":"Invalid schema for function 'notes__search': array schema missing items"}}"#;
        assert_eq!(remedy(400, openai, &[]), tool("notes__search"));
        assert_eq!(remedy(400, r#"{"param":"tools[1].function.parameters"}"#, &[]), tool("list_tasks"));
        let gemini = "* GenerateContentRequest.tools[0].function_declarations[2].parameters.properties: should be";
        assert_eq!(remedy(400, gemini, &[]), tool("notes__search"));
        assert_eq!(remedy(400, "tools.2.custom.input_schema: JSON schema is invalid", &[]), tool("notes__search"));
        assert_eq!(remedy(400, "invalid tool schema", &[]), Remedy::WithoutExternalTools);
        let transcript = "the call of 'add_task' has no answer";
        assert_eq!(
            remedy(400, transcript, &[]),
            Remedy::InvalidRequest,
            "the error is not about the schema of the tool"
        );
        assert_eq!(remedy(400, "Unsupported value: 'temperature'", &[]), Remedy::WithoutTemperature);
    }

    #[test]
    fn messages_are_truncated_and_contain_no_part_of_a_key() {
        let redactor = Redactor::new(RedactOptions::default()).with_known(["plain-key-7f3a9c".to_owned()]);
        let error = error(502, &"<p>bad gateway</p>\n".repeat(1000), &[]).redacted(&redactor);
        assert!(error.message.chars().count() <= MAX_MESSAGE_CHARS + 1, "{}", error.message);
        for before in MAX_MESSAGE_CHARS - 20..MAX_MESSAGE_CHARS {
            let error = ProviderError::transient(format!("{}plain-key-7f3a9c", "x".repeat(before))).redacted(&redactor);
            assert!(!error.message.contains("plain"), "{}", error.message);
        }
    }
}
