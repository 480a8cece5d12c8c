//! JSON web tokens: `header.payload.signature`, and encrypted tokens with five parts.
//!
//! A single base64 object (`eyJ…` without a second part) is not a token.

use super::scan::{SecretScan, run_end};

/// `{"` in base64.
pub(super) const START: &str = "eyJ";
/// `{"alg":` in base64. A header with this start needs no further check of the second part.
const ALGORITHM: &[u8] = b"eyJhbGciOi";
const MIN_PART_BYTES: usize = 10;

/// Hides the token that starts at `start`, if it is one. It must start a word with `eyJ` in this case, and have a dot
/// after the header. A header of at least 10 bytes needs a second part of at least 10 bytes that starts with `eyJ` too.
/// After a header that starts with [`ALGORITHM`], any second part is accepted, also an empty one before another dot.
///
/// Hides all parts. Dots after the token remain visible. If it is not a token, later starts in the same run are not
/// checked again.
pub(super) fn hide(scan: &mut SecretScan, start: usize) {
    if start < scan.state.no_jwt || !scan.from(start).starts_with(START.as_bytes()) || !scan.word_starts(start) {
        return;
    }
    let dot = run_end(scan.bytes, start, usize::MAX, in_part);
    let header = &scan.bytes[start..dot];
    let second = scan.from(dot + 1);
    let is_token = scan.bytes.get(dot) == Some(b'.')
        && (header.len() >= MIN_PART_BYTES
            && second.starts_with(START.as_bytes())
            && run_end(second, 0, MIN_PART_BYTES, in_part) == MIN_PART_BYTES
            || header.starts_with(ALGORITHM) && second.first().is_some_and(|b| in_part(b) || b == b'.'));
    if !is_token {
        // Every later start in this run has the same end, so none of them is a token.
        scan.state.no_jwt = dot;
        return;
    }
    let mut end = run_end(scan.bytes, dot, usize::MAX, |b| in_part(b) || b == b'.');
    while scan.bytes[end - 1] == b'.' {
        end -= 1;
    }
    scan.hide(start..end);
}

fn in_part(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')
}
