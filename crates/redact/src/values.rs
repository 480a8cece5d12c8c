//! The bounds of values, and placeholders that are not secrets.
//!
//! A value never extends past the JSON string around it, even if that string was quoted several times.

use super::MARK;
use super::scan::{TrackedBytes, run_end};

/// A longer value is never a placeholder. This also limits the text that is scanned again after a harmless value.
pub(super) const MAX_HARMLESS_BYTES: usize = 256;

/// A quote with the backslashes before it.
#[derive(Clone, Copy)]
pub(super) struct Quote {
    /// `"`, `'` or a backtick.
    pub(super) mark: u8,
    /// The number of strings around it: `"` is 0, `\"` is 1, `\\\"` is 2.
    pub(super) depth: u32,
    /// The position after the quote.
    pub(super) end: usize,
}

impl Quote {
    /// Returns the quote at this position, which may start with backslashes. Returns `None` if there is no quote, or if
    /// the number of backslashes fits no depth.
    pub(super) fn at(bytes: TrackedBytes, start: usize) -> Option<Quote> {
        let slash_end = run_end(bytes, start, usize::MAX, |b| b == b'\\');
        let mark = bytes.get(slash_end).filter(|b| is_quote(*b))?;
        let depth = (slash_end - start).trailing_ones();
        (backslashes(depth) == slash_end - start).then_some(Quote { mark, depth, end: slash_end + 1 })
    }

    /// Returns the end of the value that this quote opens. The value ends before the first of these:
    ///
    /// - A quote with the same mark and at most the same depth, with its backslashes.
    /// - For `'` and backticks, a `"` that closes the JSON string around the value, with its backslashes.
    /// - A line break or the end of the text. At the end of the text, sets the flag of `bytes`.
    pub(super) fn value_end(self, bytes: TrackedBytes) -> usize {
        let mut escapes = 0;
        for (i, &b) in bytes.iter().enumerate().skip(self.end) {
            let depth = usize::trailing_ones(escapes);
            match b {
                b'\\' => {
                    escapes += 1;
                    continue;
                }
                b'\n' | b'\r' => return i,
                _ if b == self.mark && depth <= self.depth => return i - backslashes(depth),
                b'"' if self.mark != b'"' && closes_string(bytes, i + 1, depth) => return i - escapes,
                _ => escapes = 0,
            }
        }
        bytes.mark_end_reached();
        bytes.len()
    }

    /// Returns `true` if the quote closes a JSON string and does not open a value.
    pub(super) fn closes(self, bytes: TrackedBytes) -> bool {
        closes_string(bytes, self.end, self.depth)
    }
}

/// Returns the end of the unquoted value that starts at `start`. It ends before white space, a control character, a
/// quote, one of `,;&)]}`, the mark or the end of the text. Backslashes also end it before a quote, `n`, `r`, `t` or
/// the end of the text. Other backslashes are part of the value.
pub(super) fn bare_end(bytes: TrackedBytes, start: usize) -> usize {
    let mut end = start;
    while let Some(b) = bytes.get(end) {
        match b {
            ..=b' ' | b',' | b';' | b'&' | b')' | b']' | b'}' => break,
            _ if is_quote(b) => break,
            b'[' if bytes.from(end).starts_with(MARK.as_bytes()) => break,
            b'\\' => {
                let after = run_end(bytes, end, usize::MAX, |b| b == b'\\');
                let next = bytes.get(after).unwrap_or(b'"');
                if is_quote(next) || matches!(next, b'n' | b'r' | b't') {
                    break;
                }
                end = after;
            }
            _ => end += 1,
        }
    }
    end
}

/// Returns the end of the line, or of the string around it. A backslash and a `[` also end it.
pub(super) fn line_end(bytes: TrackedBytes, start: usize) -> usize {
    let ends = |b: u8| is_quote(b) || matches!(b, b'\n' | b'\r' | b'\\' | b'[');
    run_end(bytes, start, usize::MAX, |b| !ends(b))
}

/// Returns `true` if the value is not a secret. White space around it is ignored. These are placeholders:
///
/// - A value that contains the mark. Any other value of more than [`MAX_HARMLESS_BYTES`] is none.
/// - A mask: three or more bytes of `*xX.-_•`, or up to five bytes without letters and digits, such as an empty value.
/// - `null`, `none`, `nil`, `undefined`, `true`, `false` and `redacted`, in any case.
/// - A reference: `<…>`, `${…}`, `%NAME%`, `$(…`, `$NAME`, `$env:NAME`, `env:NAME`, `file:PATH` without white space,
///   and `{…}` without quotes and commas.
/// - A format string without digits, such as `Basic %s`.
pub(super) fn is_placeholder(value: &str) -> bool {
    let value = value.trim();
    if value.len() > MAX_HARMLESS_BYTES || value.contains(MARK) {
        return value.contains(MARK);
    }
    let empty_values = ["null", "none", "nil", "undefined", "true", "false", "redacted"];
    let masked = |c: char| matches!(c, '*' | 'x' | 'X' | '.' | '-' | '_' | '•');
    let inside = |open, close| value.strip_prefix(open).and_then(|rest: &str| rest.strip_suffix(close));
    let is_path = |path: &str| !path.is_empty() && !path.contains(char::is_whitespace);
    value.len() >= 3 && value.chars().all(masked)
        || value.len() < 6 && !value.contains(char::is_alphanumeric)
        || empty_values.iter().any(|word| value.eq_ignore_ascii_case(word))
        || inside("<", ">").is_some()
        || inside("${", "}").is_some()
        || inside("{", "}").is_some_and(|gap| !gap.contains(['"', '\'', ',']))
        || inside("%", "%").is_some_and(is_variable)
        || value.starts_with("$(")
        || value.strip_prefix('$').is_some_and(is_variable)
        || value.strip_prefix("env:").is_some_and(is_variable)
        || value.strip_prefix("file:").is_some_and(is_path)
        || is_format(value)
}

/// Returns `true` for a format string without digits: `Basic %s`, `%r`, `{}:{}`, `prefix-${NAME}`.
fn is_format(value: &str) -> bool {
    let placeholders = ["%s", "%r", "%d", "%v", "%q", "%(", "{}", "${"];
    placeholders.iter().any(|placeholder| value.contains(placeholder)) && !value.contains(|c: char| c.is_ascii_digit())
}

/// Returns `true` if a string may have been closed before `at`. After optional white space, one of `,:}]");` or the end
/// of the text follows. Also `true` before a `+` or `%` after white space, and before a backslash if `depth`, the depth
/// of the quote before `at`, is not 0.
fn closes_string(bytes: TrackedBytes, at: usize, depth: u32) -> bool {
    let next = run_end(bytes, at, usize::MAX, |b| b.is_ascii_whitespace());
    match bytes.get(next) {
        None | Some(b',' | b':' | b'}' | b']' | b'"' | b')' | b';') => true,
        Some(b'+' | b'%') => next > at,
        Some(other) => depth > 0 && other == b'\\',
    }
}

/// Returns `true` for the name of a variable: ASCII letters, digits and `_`, after an optional `env:`.
fn is_variable(name: &str) -> bool {
    let name = name.strip_prefix("env:").unwrap_or(name);
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn is_quote(b: u8) -> bool {
    matches!(b, b'"' | b'\'' | b'`')
}

/// Returns the number of backslashes before a quote at this depth.
fn backslashes(depth: u32) -> usize {
    (1_usize << depth.min(31)) - 1
}
