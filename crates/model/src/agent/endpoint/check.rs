//! What single values may be: references, names of headers, URLs.

use crate::invalid::Checks;

const MAX_NAME: usize = 100;
const MAX_URL: usize = 2000;

pub(in crate::agent) fn is_reference(text: &str) -> bool {
    ["env:", "file:"].iter().any(|kind| text.strip_prefix(kind).is_some_and(|rest| !rest.trim().is_empty()))
}

pub(super) fn is_token(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !text.is_empty() && text.len() <= MAX_NAME && text.chars().all(fits)
}

/// A name that HTTP and gRPC both carry as text.
pub(in crate::agent) fn is_header(name: &str) -> bool {
    is_token(name) && !name.to_ascii_lowercase().ends_with("-bin")
}

/// Headers that say something else already.
pub(in crate::agent) fn is_taken(name: &str) -> bool {
    const TAKEN: [&str; 10] = [
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
    TAKEN.iter().any(|taken| name.eq_ignore_ascii_case(taken))
}

pub(in crate::agent) fn url(checks: &mut Checks, field: &str, value: &str) {
    let rest = value.strip_prefix("https://").or_else(|| value.strip_prefix("http://")).unwrap_or_default();
    let plain = !rest.is_empty() && !rest.starts_with('/') && !value.contains(char::is_whitespace);
    if !plain || value.len() > MAX_URL || value.chars().any(char::is_control) {
        checks.fail(field, "url", "must be a URL such as https://example.org");
    }
}
