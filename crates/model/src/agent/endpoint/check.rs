//! Checks of single values: references, header names and URLs.

use crate::invalid::Checks;

const MAX_NAME_BYTES: usize = 100;
const MAX_URL_BYTES: usize = 2000;

/// Returns `true` for `env:NAME` and `file:PATH` with a name or path that is not blank.
pub(in crate::agent) fn is_reference(text: &str) -> bool {
    ["env:", "file:"].iter().any(|kind| text.strip_prefix(kind).is_some_and(|rest| !rest.trim().is_empty()))
}

/// Returns `true` for a token of HTTP (RFC 9110) of at most [`MAX_NAME_BYTES`].
pub(super) fn is_token(text: &str) -> bool {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !text.is_empty() && text.len() <= MAX_NAME_BYTES && text.chars().all(is_valid)
}

/// Returns `true` for a header name that HTTP and gRPC both transport as text.
pub(in crate::agent) fn is_header(name: &str) -> bool {
    is_token(name) && !name.to_ascii_lowercase().ends_with("-bin")
}

/// Returns `true` for headers that the protocol itself uses. Case is ignored.
pub(in crate::agent) fn is_reserved(name: &str) -> bool {
    const RESERVED: [&str; 10] = [
        "host",
        "content-type",
        "content-length",
        "transfer-encoding",
        "connection",
        "te",
        "a2a-version",
        "a2a-extensions",
        "x-a2a-extensions",
        "x-forwarded-for",
    ];
    RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved))
}

/// Adds a violation if the value is not an `http` or `https` URL with a host, is longer than [`MAX_URL_BYTES`], or
/// contains white space or control characters. The syntax of the host and the path is not checked.
pub(in crate::agent) fn url(checks: &mut Checks, field: &str, value: &str) {
    let rest = value.strip_prefix("https://").or_else(|| value.strip_prefix("http://")).unwrap_or_default();
    let is_url = !rest.is_empty() && !rest.starts_with('/') && !value.contains(char::is_whitespace);
    if !is_url || value.len() > MAX_URL_BYTES || value.chars().any(char::is_control) {
        checks.fail(field, "url", "must be a URL such as https://example.org");
    }
}
