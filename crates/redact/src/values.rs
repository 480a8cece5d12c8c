//! Where a value begins and ends, and which values stand for something else.
//!
//! Never lets a value reach past the JSON string it stands in, however often that string was quoted again.

use super::MARK;
use super::scan::{Bytes, run_end};

/// A longer value stands for nothing else. It also bounds what is looked at again after a value was left as it is.
pub(super) const LONGEST_HARMLESS: usize = 256;

/// A quote with the backslashes before it.
#[derive(Clone, Copy)]
pub(super) struct Quote {
    pub(super) mark: u8,
    /// How many strings it is inside of: `"` is 0, `\"` is 1, `\\\"` is 2.
    pub(super) depth: u32,
    pub(super) end: usize,
}

impl Quote {
    /// The quote at this position, if there is one.
    pub(super) fn at(bytes: Bytes, start: usize) -> Option<Quote> {
        let slash_end = run_end(bytes, start, usize::MAX, |b| b == b'\\');
        let mark = bytes.get(slash_end).filter(|b| is_quote(*b))?;
        let depth = (slash_end - start).trailing_ones();
        (slashes(depth) == slash_end - start).then_some(Quote { mark, depth, end: slash_end + 1 })
    }

    /// Where the value ends that this quote opens: before the quote that closes it, or at the end of the line.
    pub(super) fn value_end(self, bytes: Bytes) -> usize {
        let mut escapes = 0;
        for (i, &b) in bytes.iter().enumerate().skip(self.end) {
            let depth = usize::trailing_ones(escapes);
            match b {
                b'\\' => {
                    escapes += 1;
                    continue;
                }
                b'\n' | b'\r' => return i,
                _ if b == self.mark && depth <= self.depth => return i - slashes(depth),
                b'"' if self.mark != b'"' && closes_string(bytes, i + 1, depth) => return i - escapes,
                _ => escapes = 0,
            }
        }
        bytes.note_end();
        bytes.len()
    }

    /// Whether this closes a JSON string rather than opens a value.
    pub(super) fn closes(self, bytes: Bytes) -> bool {
        closes_string(bytes, self.end, self.depth)
    }
}

/// Where the value without quotes ends that begins at `start`.
pub(super) fn bare_end(bytes: Bytes, start: usize) -> usize {
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

/// Where the line ends, or the string it stands in.
pub(super) fn line_end(bytes: Bytes, start: usize) -> usize {
    let ends = |b: u8| is_quote(b) || matches!(b, b'\n' | b'\r' | b'\\' | b'[');
    run_end(bytes, start, usize::MAX, |b| !ends(b))
}

/// Whether the value is none, was redacted already, or says where the secret is kept.
pub(super) fn is_stand_in(value: &str) -> bool {
    let value = value.trim();
    if value.len() > LONGEST_HARMLESS || value.contains(MARK) {
        return value.contains(MARK);
    }
    let nothing = ["null", "none", "nil", "undefined", "true", "false", "redacted"];
    let masked = |c: char| matches!(c, '*' | 'x' | 'X' | '.' | '-' | '_' | '•');
    let inside = |open, close| value.strip_prefix(open).and_then(|rest: &str| rest.strip_suffix(close));
    let is_path = |path: &str| !path.is_empty() && !path.contains(char::is_whitespace);
    value.len() >= 3 && value.chars().all(masked)
        || value.len() < 6 && !value.contains(char::is_alphanumeric)
        || nothing.iter().any(|word| value.eq_ignore_ascii_case(word))
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

/// Text with gaps to be filled in: `Basic %s`, `%r`, `{}:{}`, `prefix-${NAME}`.
fn is_format(value: &str) -> bool {
    let gaps = ["%s", "%r", "%d", "%v", "%q", "%(", "{}", "${"];
    gaps.iter().any(|gap| value.contains(gap)) && !value.contains(|c: char| c.is_ascii_digit())
}

/// Whether a string may have been closed before `at`: the next part of a JSON text follows, an operator or the end.
fn closes_string(bytes: Bytes, at: usize, depth: u32) -> bool {
    let next = run_end(bytes, at, usize::MAX, |b| b.is_ascii_whitespace());
    match bytes.get(next) {
        None | Some(b',' | b':' | b'}' | b']' | b'"' | b')' | b';') => true,
        Some(b'+' | b'%') => next > at,
        Some(other) => depth > 0 && other == b'\\',
    }
}

fn is_variable(name: &str) -> bool {
    let name = name.strip_prefix("env:").unwrap_or(name);
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn is_quote(b: u8) -> bool {
    matches!(b, b'"' | b'\'' | b'`')
}

/// How many backslashes stand before a quote inside of so many strings.
fn slashes(depth: u32) -> usize {
    (1_usize << depth.min(31)) - 1
}
