//! Messages of a server, read with some patience: of a list of tools, those that break the protocol are marked instead
//! of making the whole list unreadable.

use std::borrow::Cow;

use rmcp::model::Tool;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How large one message may be.
pub(super) const LARGEST: usize = 16 * 1024 * 1024;
/// Where the mark of a broken tool stands.
const MARK: &str = "adjutant/broken";

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
