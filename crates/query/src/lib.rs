//! Query strings: decoded pairs, and structs that are deserialized from them.
//!
//! A parameter that is not valid UTF-8 or contains NUL is refused, never repaired. Each error names its parameter.

mod deserialize;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;

/// A parameter that was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{parameter} {reason}")]
pub struct Error {
    /// The name of the parameter; `query` if the name itself cannot be read.
    pub parameter: String,
    pub reason: Reason,
}

/// The rule that a parameter breaks. The texts follow the name of the parameter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("must be valid UTF-8")]
    NotUtf8,
    #[error("must not contain NUL")]
    Nul,
    #[error("must be given only once")]
    Repeated,
    #[error("is not a parameter here; known: {}", .0.join(", "))]
    Unknown(&'static [&'static str]),
    #[error("must be given")]
    Missing,
    #[error("{0}")]
    Invalid(String),
}

/// Deserializes a struct from a query string.
///
/// Fails if a parameter is given twice, is missing or does not have the form that its field requires, and, if the
/// struct has `deny_unknown_fields`, if one is unknown.
pub fn parse<T: DeserializeOwned>(query: &str) -> Result<T, Error> {
    let mut parameters: Vec<(Cow<'_, str>, Cow<'_, str>)> = Vec::new();
    for pair in pairs(query) {
        let (name, value) = pair?;
        if parameters.iter().any(|(given, _)| *given == name) {
            return Err(Error { parameter: name.into_owned(), reason: Reason::Repeated });
        }
        parameters.push((name, value));
    }
    deserialize::from_parameters(&parameters)
}

/// Returns the decoded names and values in their order. A pair that is refused does not end the iteration.
pub fn pairs(query: &str) -> impl Iterator<Item = Result<(Cow<'_, str>, Cow<'_, str>), Error>> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = form_urlencoded::parse(pair.as_bytes()).next().unwrap_or_default();
        let refused = |parameter: &str, reason| Err(Error { parameter: parameter.to_owned(), reason });
        let (raw_name, raw_value) = pair.split_once('=').unwrap_or((pair, ""));
        // The decoder replaces what is not UTF-8, so the bytes are checked before that.
        if percent_decode_str(raw_name).decode_utf8().is_err() {
            return refused("query", Reason::NotUtf8);
        }
        if percent_decode_str(raw_value).decode_utf8().is_err() {
            return refused(&name, Reason::NotUtf8);
        }
        if name.contains('\0') {
            return refused("query", Reason::Nul);
        }
        if value.contains('\0') {
            return refused(&name, Reason::Nul);
        }
        Ok((name, value))
    })
}
