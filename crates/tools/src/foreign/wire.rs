//! Messages of a server, read with some patience: of a list of tools, those that break the protocol are marked instead
//! of making the whole list unreadable.

use std::borrow::Cow;

use rmcp::model::Tool;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How large one message may be.
pub(super) const LARGEST: usize = 16 * 1024 * 1024;
pub(super) const TOO_LARGE: &str = "sent a message of more than 16 MiB";
/// How many values one message may hold. Each takes far more room in memory than in the message.
const MOST_VALUES: usize = 500_000;
pub(super) const TOO_MUCH: &str = "sent a message of more than 500 000 values";
/// Where the mark of a broken tool stands.
const MARK: &str = "adjutant/broken";

/// Whether reading it would take more memory than it is worth.
pub(super) fn is_too_much(message: &[u8]) -> bool {
    if message.len() <= MOST_VALUES {
        return false;
    }
    let mut values = 0;
    let mut in_text = false;
    let mut escaped = false;
    for &byte in message {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => values += 1,
            _ => {}
        }
    }
    values > MOST_VALUES
}

pub(super) fn read<T: DeserializeOwned>(message: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(&repaired(message))
}

/// Why a tool cannot be used, if it was marked.
pub(super) fn reason(tool: &Tool) -> Option<String> {
    tool.meta.as_ref()?.get(MARK)?.as_str().map(str::to_owned)
}

/// The message, with broken tools replaced by marked ones.
pub(super) fn repaired(message: &[u8]) -> Cow<'_, [u8]> {
    // A text within a text has its quotes escaped, so this is rarely found in anything else.
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
                Some(schema) if !schema.is_object() => "has a schema that is not an object".to_owned(),
                None => "has no schema".to_owned(),
                _ => format!("is not as the protocol wants it: {}", first(&error.to_string())),
            };
            let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
            *tool = json!({"name": name, "inputSchema": {}, "_meta": {MARK: reason}});
            changed = true;
        }
    }
    match serde_json::to_vec(&value) {
        Ok(written) if changed => Cow::Owned(written),
        _ => Cow::Borrowed(message),
    }
}

fn first(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_values_are_too_much_and_a_long_text_is_not() {
        let text = json!({"text": "a,b\"[{\\\"".repeat(1_000_000)}).to_string();
        assert!(!is_too_much(text.as_bytes()));
        let values = Value::from(vec![0; MOST_VALUES + 1]).to_string();
        assert!(is_too_much(values.as_bytes()));
        assert!(!is_too_much(&values.as_bytes()[..MOST_VALUES]));
    }
}
