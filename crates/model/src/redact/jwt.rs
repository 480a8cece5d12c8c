//! JSON web tokens: `header.payload.signature`, and the encrypted kind with five parts.
//!
//! Never takes a lone base64 object (`eyJ…` without a second part) for a token.

use super::scan::{Scan, run_end};

/// `{"` in base64.
pub(super) const START: &str = "eyJ";
/// `{"alg":` in base64: such a header is enough, whatever follows it.
const ALGORITHM: &[u8] = b"eyJhbGciOi";
const LEAST: usize = 10;

pub(super) fn hide(scan: &mut Scan, start: usize) {
    if start < scan.no_jwt || !scan.from(start).starts_with(START.as_bytes()) || !scan.word_starts(start) {
        return;
    }
    let dot = run_end(scan.bytes, start, usize::MAX, in_part);
    let header = &scan.bytes[start..dot];
    let payload = run_end(scan.bytes, dot + 1, LEAST, in_part).saturating_sub(dot + 1);
    let second = scan.from(dot).strip_prefix(b".").unwrap_or_default();
    let fits = header.len() >= LEAST && payload == LEAST && second.starts_with(START.as_bytes())
        || header.starts_with(ALGORITHM) && second.first().is_some_and(|b| in_part(*b) || *b == b'.');
    if !fits {
        // Whatever begins later in this run ends where it ends, before the same wrong thing.
        scan.no_jwt = dot;
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
