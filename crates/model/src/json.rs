//! JSON from outside as one of our types. What has the wrong shape is named by its field, in words of JSON rather than of
//! Rust.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Invalid;

/// One JSON value and nothing behind it.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, Invalid> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| shape(&error))?;
    reader.end().map_err(|error| Invalid::one("body", "json", format!("must be one JSON value: {error}")))?;
    Ok(value)
}

/// A value that was read already.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Invalid> {
    serde_path_to_error::deserialize(value).map_err(|error| shape(&error))
}

fn shape(error: &serde_path_to_error::Error<serde_json::Error>) -> Invalid {
    let (path, inner) = (error.path().to_string(), error.inner());
    let message = inner.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    let named = message.split('`').nth(1).unwrap_or_default();
    let within = |field: &str| if path == "." { field.to_owned() } else { format!("{path}.{field}") };
    if !inner.is_data() {
        return Invalid::one("body", "json", format!("must be valid JSON: {inner}"));
    }
    if message.starts_with("missing field") {
        return Invalid::one(within(named), "required", "must be given");
    }
    if message.starts_with("unknown field") {
        let known = message.split_once("expected ").map_or("no fields", |(_, known)| known).replace('`', "");
        let field = path.rsplit_once('.').map_or(named.to_owned(), |(outer, _)| format!("{outer}.{named}"));
        return Invalid::one(field, "unknown", format!("is not known here; known: {known}"));
    }
    let field = if path == "." { "body".to_owned() } else { path };
    Invalid::one(field, "type", format!("has the wrong type or form: {}", in_json(message)))
}

/// Rust's names of types in words of JSON.
fn in_json(message: &str) -> String {
    let Some((found, wanted)) = message.split_once(", expected ") else { return message.to_owned() };
    let wanted = match wanted {
        "u64" | "i64" | "f64" => "a number",
        _ if wanted.starts_with("struct ") => "an object",
        other => other,
    };
    format!("{found}, expected {wanted}")
}
