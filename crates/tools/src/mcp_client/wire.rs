//! Parses messages of a server. An invalid tool in a list is marked, so that the rest of the list can be used.

use std::borrow::Cow;

use rmcp::model::Tool;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The maximum size of one message.
pub(super) const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
pub(super) const TOO_LARGE: &str = "sent a message of more than 16 MiB";
/// The maximum number of values in one message. A value needs much more memory than its text.
const MAX_VALUES: usize = 500_000;
pub(super) const TOO_MANY_VALUES: &str = "sent a message of more than 500 000 values";
/// The metadata key that holds the reason why a tool is invalid.
const REJECTION_KEY: &str = "adjutant/broken";

/// Returns true if the message has more than [`MAX_VALUES`] values. Counts commas and opening brackets outside of
/// strings, without parsing. The message may be invalid. A message of at most [`MAX_VALUES`] bytes never has too many.
pub(super) fn has_too_many_values(message: &[u8]) -> bool {
    if message.len() <= MAX_VALUES {
        return false;
    }
    let mut values = 0;
    let mut in_string = false;
    let mut escaped = false;
    for &byte in message {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => values += 1,
            _ => {}
        }
    }
    values > MAX_VALUES
}

/// Parses a message, with invalid tools marked. Fails if it is not a valid message.
pub(super) fn parse<T: DeserializeOwned>(message: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(&repair(message))
}

/// Returns the reason why a tool is invalid, if it was marked.
pub(super) fn rejection_reason(tool: &Tool) -> Option<String> {
    tool.meta.as_ref()?.get(REJECTION_KEY)?.as_str().map(str::to_owned)
}

/// Returns the message with each invalid tool in `result.tools` replaced by one that has only its name and the reason.
/// A message without such tools is returned unchanged, also if it is not valid JSON.
pub(super) fn repair(message: &[u8]) -> Cow<'_, [u8]> {
    // Quotes within a text are escaped, so other messages rarely contain this.
    const NAME: &[u8] = br#""tools""#;
    if !message.windows(NAME.len()).any(|window| window == NAME) {
        return Cow::Borrowed(message);
    }
    let Ok(mut value) = serde_json::from_slice::<Value>(message) else { return Cow::Borrowed(message) };
    let Some(tools) = value.pointer_mut("/result/tools").and_then(Value::as_array_mut) else {
        return Cow::Borrowed(message);
    };
    let mut changed = false;
    for tool in tools {
        if let Err(error) = Tool::deserialize(&*tool) {
            let reason = match tool.get("inputSchema") {
                Some(schema) if !schema.is_object() => "its schema is not an object".to_owned(),
                None => "it has no schema".to_owned(),
                _ => format!("it is invalid: {}", excerpt(&error.to_string())),
            };
            let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
            *tool = json!({"name": name, "inputSchema": {}, "_meta": {REJECTION_KEY: reason}});
            changed = true;
        }
    }
    match serde_json::to_vec(&value) {
        Ok(json) if changed => Cow::Owned(json),
        _ => Cow::Borrowed(message),
    }
}

fn excerpt(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_values_are_rejected_but_a_long_text_is_not() {
        let text = json!({"text": "a,b\"[{\\\"".repeat(1_000_000)}).to_string();
        assert!(!has_too_many_values(text.as_bytes()));
        let values = Value::from(vec![0; MAX_VALUES + 1]).to_string();
        assert!(has_too_many_values(values.as_bytes()));
        assert!(!has_too_many_values(&values.as_bytes()[..MAX_VALUES]));
    }
}
