//! Decodes JSON into requests. Errors name the invalid field and the reason.

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::error::Category;

use crate::{Error, ErrorKind};

/// The maximum length of an error message, in characters. The rest may repeat the input.
const MAX_ERROR_LENGTH: usize = 300;

/// Decodes a JSON object. `subject` names it in errors. Fails with `Parse` if the text is not JSON. Fails with
/// `InvalidParams` if it is not an object or a member is invalid; the error then names the member.
pub(super) fn object<T: DeserializeOwned>(subject: &str, text: &str) -> Result<T, Error> {
    // Serde would accept an array as an object with its members in order.
    if !text.trim_start().starts_with('{') {
        return Err(match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => Error::new(ErrorKind::InvalidParams, format!("{subject} must be an object")),
            Err(error) => malformed(&error),
        });
    }
    serde_json::from_str(text).map_err(|error| match error.classify() {
        Category::Data => locate_error::<T>(text),
        Category::Syntax | Category::Eof | Category::Io => malformed(&error),
    })
}

/// Decodes a message of one version and converts it to the request of 1.x. Fails if either step fails.
pub(super) fn request<P, T>(subject: &str, text: &str) -> Result<T, Error>
where
    P: DeserializeOwned + TryInto<T, Error = Error>,
{
    object::<P>(subject, text)?.try_into()
}

/// Returns the error for a text that is not JSON.
pub(super) fn malformed(error: &serde_json::Error) -> Error {
    Error::new(ErrorKind::Parse, format!("the body is not JSON: {}", truncate(&error.to_string())))
}

/// Returns the `InvalidParams` error for a text that does not match `T`. It contains the path of the invalid member, if
/// that is known. A missing member is reported as `missing`. Texts longer than 300 characters are cut and end with `…`.
/// Decodes the text a second time, because tracking the path is too slow for valid requests.
fn locate_error<T: DeserializeOwned>(text: &str) -> Error {
    let mut reader = serde_json::Deserializer::from_str(text);
    let Err(error) = serde_path_to_error::deserialize::<_, T>(&mut reader) else {
        return Error::new(ErrorKind::InvalidParams, "the members are invalid");
    };
    let path = error.path().to_string();
    let message = error.inner().to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    let missing = message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'));
    match (missing, path.as_str()) {
        (Some(field), ".") => Error::invalid(field, "missing"),
        (Some(field), path) => Error::invalid(format!("{path}.{field}"), "missing"),
        (None, ".") => Error::new(ErrorKind::InvalidParams, truncate(message)),
        (None, path) => Error::invalid(truncate(path), truncate(message)),
    }
}

/// Returns the first 300 characters of a text, with `…` if some are cut off.
fn truncate(text: &str) -> String {
    match text.char_indices().nth(MAX_ERROR_LENGTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
