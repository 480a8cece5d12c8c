//! Parses query strings into decoded pairs or structs.
//!
//! A parameter that is not valid UTF-8 or contains NUL is rejected, never repaired. Each error names its parameter.

mod deserialize;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;

/// The error of a rejected parameter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{parameter} {reason}")]
pub struct Error {
    /// The name of the parameter, or `query` if the name itself is malformed.
    pub parameter: String,
    pub reason: Reason,
}

/// The violated rule. Its message follows the name of the parameter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("must be valid UTF-8")]
    NotUtf8,
    #[error("must not contain NUL")]
    Nul,
    #[error("must be given only once")]
    Repeated,
    #[error("is not a known parameter; expected one of {}", .0.join(", "))]
    Unknown(&'static [&'static str]),
    #[error("must be given")]
    Missing,
    #[error("{0}")]
    Invalid(String),
}

/// Deserializes a struct from a query string, which has no `?`. Values are decoded as by [`pairs`].
///
/// Fails with the first rejected pair or repeated name. Otherwise fails if a required parameter is missing or a value
/// does not have the type of its field. An unknown parameter fails if the struct has `deny_unknown_fields`, otherwise
/// it is ignored.
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

/// Returns the decoded names and values in order. `+` is a space, a name without `=` has an empty value, and empty
/// pairs are skipped. Repeated names are returned each time.
///
/// Yields an error for each name or value that is not valid UTF-8 or contains NUL, and continues after it. The error
/// names the parameter, or `query` if the name itself is invalid.
pub fn pairs(query: &str) -> impl Iterator<Item = Result<(Cow<'_, str>, Cow<'_, str>), Error>> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = form_urlencoded::parse(pair.as_bytes()).next().unwrap_or_default();
        let reject = |parameter: &str, reason| Err(Error { parameter: parameter.to_owned(), reason });
        let (raw_name, raw_value) = pair.split_once('=').unwrap_or((pair, ""));
        // The decoder replaces invalid UTF-8, so the bytes are checked first.
        if percent_decode_str(raw_name).decode_utf8().is_err() {
            return reject("query", Reason::NotUtf8);
        }
        if percent_decode_str(raw_value).decode_utf8().is_err() {
            return reject(&name, Reason::NotUtf8);
        }
        if name.contains('\0') {
            return reject("query", Reason::Nul);
        }
        if value.contains('\0') {
            return reject(&name, Reason::Nul);
        }
        Ok((name, value))
    })
}
