//! Why a provider did not answer, and what can be done about it.

use std::error::Error as _;
use std::time::Duration;

use jiff::Timestamp;
use redact::Redactor;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// The most of a provider's own words that is kept.
const SHOWN: usize = 500;

#[derive(Debug)]
pub(super) struct Fault {
    pub(super) message: String,
    pub(super) remedy: Remedy,
}

#[derive(Debug, PartialEq)]
pub(super) enum Remedy {
    /// Ask again, after so long where the provider has said.
    Again(Option<Duration>),
    /// Ask again without this tool; the provider does not take it.
    WithoutTool(String),
    /// Ask again without the tools of others: it is one of them, nobody knows which.
    WithoutForeign,
    /// Ask again without a temperature.
    WithoutTemperature,
    /// It is the request that is wrong, not the provider.
    Never,
    /// The provider cannot be used.
    Broken,
}

impl Fault {
    pub(super) fn transient(message: impl Into<String>) -> Self {
        Self { message: message.into(), remedy: Remedy::Again(None) }
    }

    pub(super) fn late() -> Self {
        Self { message: "no answer in time".to_owned(), remedy: Remedy::Broken }
    }

    pub(super) fn broken(message: impl Into<String>) -> Self {
        Self { message: message.into(), remedy: Remedy::Broken }
    }

    /// The connection could not be made, or was lost. The outermost cause alone says little.
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

    /// The provider has answered with an error. `tools` are the names that were offered, in their order.
    pub(super) fn refusal(
        status: StatusCode,
        headers: &HeaderMap,
        body: &str,
        tools: &[String],
        now: Timestamp,
    ) -> Self {
        let remedy = match status.as_u16() {
            408 | 425 | 429 | 500.. => Remedy::Again(retry_after(headers, now)),
            400 | 422 if body.contains("temperature") => Remedy::WithoutTemperature,
            400 | 422 => match rejected(body, tools) {
                Some(tool) => Remedy::WithoutTool(tool),
                None if speaks_of_tools(body) => Remedy::WithoutForeign,
                None => Remedy::Never,
            },
            413 => Remedy::Never,
            _ => Remedy::Broken,
        };
        Self { message: format!("HTTP {}: {body}", status.as_u16()), remedy }
    }

    /// As it may be kept: providers repeat the key that they do not like, and some say it with a whole page.
    pub(super) fn cleaned(self, redactor: &Redactor) -> Self {
        Self { message: shortened(&redactor.text(&self.message)), ..self }
    }
}

fn shortened(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.char_indices().nth(SHOWN).map_or(text.clone(), |(end, _)| format!("{}…", &text[..end]))
}

/// How long the provider asks to be left alone.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(ms) = text("retry-after-ms").and_then(|ms| ms.trim().parse().ok()) {
        return Some(Duration::from_millis(ms));
    }
    let value = text(RETRY_AFTER.as_str())?.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        // More than can be counted is a time too.
        let longest = (seconds > 0.0).then_some(Duration::MAX);
        return Duration::try_from_secs_f64(seconds).ok().or(longest);
    }
    let at = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
}

/// The tool that the provider does not take, by its name or its place among those that were offered.
fn rejected(body: &str, tools: &[String]) -> Option<String> {
    let quoted = |tool: &&String| ['\'', '"', '`'].iter().any(|q| body.contains(&format!("{q}{tool}{q}")));
    // A tool can be named for other reasons; what it looks like must be what is wrong.
    let of_form = ["schema", "parameters", "properties", "declaration"].iter().any(|word| body.contains(word));
    // The longest, where one name is part of another.
    if let Some(named) = tools.iter().filter(|_| of_form).filter(quoted).max_by_key(|tool| tool.len()) {
        return Some(named.clone());
    }
    for place in ["function_declarations[", "functionDeclarations[", "tools[", "tools."] {
        for (at, _) in body.match_indices(place) {
            let rest = &body[at + place.len()..];
            // Gemini counts the declarations inside of its one tool.
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

fn speaks_of_tools(body: &str) -> bool {
    let body = body.to_lowercase();
    ["tool", "function", "schema", "parameters"].iter().any(|word| body.contains(word))
}

#[cfg(test)]
mod tests {
    use redact::What;

    use super::*;

    fn fault(status: u16, body: &str, headers: &[(&'static str, &str)]) -> Fault {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let tools = ["add_task", "list_tasks", "notes__search"].map(str::to_owned);
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        Fault::refusal(StatusCode::from_u16(status).unwrap(), &map, body, &tools, now)
    }

    fn remedy(status: u16, body: &str, headers: &[(&'static str, &str)]) -> Remedy {
        fault(status, body, headers).remedy
    }

    #[test]
    fn what_passes_is_tried_again_when_the_provider_says() {
        // MODEL-3
        assert_eq!(remedy(500, "", &[]), Remedy::Again(None));
        assert_eq!(remedy(429, "", &[("retry-after", "2")]), Remedy::Again(Some(Duration::from_secs(2))));
        assert_eq!(remedy(429, "", &[("retry-after-ms", "150")]), Remedy::Again(Some(Duration::from_millis(150))));
        assert_eq!(remedy(429, "", &[("retry-after", "1e30")]), Remedy::Again(Some(Duration::MAX)));
        assert_eq!(remedy(429, "", &[("retry-after", "-1")]), Remedy::Again(None));
        let date = ("retry-after", "Thu, 01 Jan 2026 00:00:07 GMT");
        assert_eq!(remedy(503, "", &[date]), Remedy::Again(Some(Duration::from_secs(7))));
        let past = ("retry-after", "Wed, 31 Dec 2025 23:00:00 GMT");
        assert_eq!(remedy(503, "", &[past]), Remedy::Again(Some(Duration::ZERO)));
        assert_eq!(remedy(401, "Incorrect API key", &[]), Remedy::Broken);
        assert_eq!(remedy(400, "maximum context length exceeded", &[]), Remedy::Never);
    }

    #[test]
    fn a_tool_that_is_not_taken_is_found_by_name_or_place() {
        // MODEL-2
        let tool = |name: &str| Remedy::WithoutTool(name.to_owned());
        let openai =
            r#"{"error":{"message":"Invalid schema for function 'notes__search': array schema missing items"}}"#;
        assert_eq!(remedy(400, openai, &[]), tool("notes__search"));
        assert_eq!(remedy(400, r#"{"param":"tools[1].function.parameters"}"#, &[]), tool("list_tasks"));
        let gemini = "* GenerateContentRequest.tools[0].function_declarations[2].parameters.properties: should be";
        assert_eq!(remedy(400, gemini, &[]), tool("notes__search"));
        assert_eq!(remedy(400, "tools.2.custom.input_schema: JSON schema is invalid", &[]), tool("notes__search"));
        assert_eq!(remedy(400, "invalid tool schema", &[]), Remedy::WithoutForeign);
        let transcript = "the call of 'add_task' has no answer";
        assert_eq!(remedy(400, transcript, &[]), Remedy::Never, "it is not the tool that is wrong");
        assert_eq!(remedy(400, "Unsupported value: 'temperature'", &[]), Remedy::WithoutTemperature);
    }

    #[test]
    fn a_long_page_of_html_is_not_kept_and_no_part_of_a_key() {
        let redactor = Redactor::new(What::default()).with_known(["plain-key-7f3a9c".to_owned()]);
        let fault = fault(502, &"<p>bad gateway</p>\n".repeat(1000), &[]).cleaned(&redactor);
        assert!(fault.message.chars().count() <= SHOWN + 1, "{}", fault.message);
        for before in SHOWN - 20..SHOWN {
            let fault = Fault::transient(format!("{}plain-key-7f3a9c", "x".repeat(before))).cleaned(&redactor);
            assert!(!fault.message.contains("plain"), "{}", fault.message);
        }
    }
}
