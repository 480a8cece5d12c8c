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
    if start < scan.state.no_jwt || !scan.from(start).starts_with(START.as_bytes()) || !scan.word_starts(start) {
        return;
    }
    let dot = run_end(scan.bytes, start, usize::MAX, in_part);
    let header = &scan.bytes[start..dot];
    let second = scan.from(dot + 1);
    let fits = scan.bytes.get(dot) == Some(b'.')
        && (header.len() >= LEAST
            && second.starts_with(START.as_bytes())
            && run_end(second, 0, LEAST, in_part) == LEAST
            || header.starts_with(ALGORITHM) && second.first().is_some_and(|b| in_part(b) || b == b'.'));
    if !fits {
        // Whatever begins later in this run ends where it ends, before the same wrong thing.
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
