//! Text to requests, with errors that say which field is wrong and why.

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::error::Category;

use crate::{Error, Kind};

/// As much of an error as anybody reads; the rest of it may be what was sent.
const LONGEST: usize = 300;

/// An object of this kind. `what` it is, for people.
pub(super) fn object<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, Error> {
    // A list would pass for an object with its members in order.
    if !text.trim_start().starts_with('{') {
        return Err(match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => Error::new(Kind::InvalidParams, format!("{what} must be an object")),
            Err(error) => malformed(&error),
        });
    }
    serde_json::from_str(text).map_err(|error| match error.classify() {
        Category::Data => where_it_is::<T>(text),
        Category::Syntax | Category::Eof | Category::Io => malformed(&error),
    })
}

/// Reads a message of one version and converts it to the request of 1.x that it stands for.
pub(super) fn request<P, T>(what: &str, text: &str) -> Result<T, Error>
where
    P: DeserializeOwned + TryInto<T, Error = Error>,
{
    object::<P>(what, text)?.try_into()
}

/// It is not JSON at all.
pub(super) fn malformed(error: &serde_json::Error) -> Error {
    Error::new(Kind::Parse, format!("the body is not JSON: {}", short(&error.to_string())))
}

/// Keeping track of the place costs time, so it is read once more, now that something is known to be wrong.
fn where_it_is<T: DeserializeOwned>(text: &str) -> Error {
    let mut reader = serde_json::Deserializer::from_str(text);
    let Err(error) = serde_path_to_error::deserialize::<_, T>(&mut reader) else {
        return Error::new(Kind::InvalidParams, "the members do not fit");
    };
    let path = error.path().to_string();
    let message = error.inner().to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    let missing = message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'));
    match (missing, path.as_str()) {
        (Some(field), ".") => Error::invalid(field, "missing"),
        (Some(field), path) => Error::invalid(format!("{path}.{field}"), "missing"),
        (None, ".") => Error::new(Kind::InvalidParams, short(message)),
        (None, path) => Error::invalid(short(path), short(message)),
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
