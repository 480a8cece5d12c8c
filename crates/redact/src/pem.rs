//! Private keys between `-----BEGIN … PRIVATE KEY-----` and the END, with newlines or escaped as `\n`.
//!
//! Certificates and public keys are not hidden. A key never extends past its string literal, except into literals that
//! are joined to it.

use super::scan::{SecretScan, TrackedBytes, run_end};

pub(super) const BEGIN: &str = "-----BEGIN ";
const END: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";
const MAX_LABEL_BYTES: usize = 48;
/// The minimum length of a full line. Usual lengths are 64 and 76.
const MIN_FULL_LINE_BYTES: usize = 48;
/// The maximum number of short lines, such as headers.
const MAX_SHORT_LINES: usize = 8;

/// Hides the key that starts at `start`, even if a hidden value already covers its start, as in `KEY="-----BEGIN …`
/// followed by a newline. Does nothing if the label is not that of a private key, or inside the last key.
pub(super) fn hide(scan: &mut SecretScan, start: usize) {
    if start < scan.state.key_end {
        return;
    }
    let Some(body) = private_key_body(scan.bytes, start + BEGIN.len()) else {
        return;
    };
    let end = find_end(scan.bytes, body, body).at;
    scan.state.key_end = end;
    scan.extend_hidden(start, end);
}

/// The end of a key in the available text.
pub(super) struct KeyEnd {
    pub(super) at: usize,
    /// The position from which the search continues when more text arrives.
    pub(super) searched: usize,
}

/// Searches for the end of a key with a body that starts at `body`. The search starts at `from`. The key ends at the
/// first of these:
///
/// - After its END with the label and the dashes. Any label counts.
/// - Before the quote that closes its literal, unless another literal is joined to it. A last line that cannot be part
///   of a key is then excluded.
/// - At the end of the text. Sets the flag of `bytes` then.
pub(super) fn find_end(bytes: TrackedBytes, body: usize, from: usize) -> KeyEnd {
    let mut at = from;
    let mut undecided = None;
    while let Some(&b) = bytes[..].get(at) {
        if b == b'-' && bytes.from(at).starts_with(END) {
            return KeyEnd { at: label_end(bytes, at + END.len()), searched: at };
        }
        let quote = at;
        if matches!(b, b'"' | b'\'' | b'`') {
            let escapes = bytes[body..at].iter().rev().take_while(|b| **b == b'\\').count();
            let Some(next) = joined_literal(bytes, at, escapes) else {
                return KeyEnd { at: end_at_quote(bytes, body, at - escapes), searched: at };
            };
            at = next;
        } else {
            at += 1;
        }
        if undecided.is_none() && bytes.end_reached() {
            undecided = Some(quote);
        }
    }
    bytes.mark_end_reached();
    KeyEnd { at, searched: undecided.unwrap_or(at) }
}

/// Returns the end of the END of a private key in a line. Returns `None` if the line has no such END, or a BEGIN before
/// it.
pub(super) fn orphan_end(line: TrackedBytes) -> Option<usize> {
    let at = line.windows(END.len()).position(|part| part == END)?;
    let has_begin = line[..at].windows(BEGIN.len()).any(|part| part == BEGIN.as_bytes());
    private_key_body(line, at + END.len()).filter(|_| !has_begin)
}

/// Returns `true` if the line may be part of a key: base64, possibly quoted, an empty line, or a common header.
pub(super) fn is_body_line(line: &str) -> bool {
    let line = line.trim_matches(|c: char| c.is_ascii_whitespace() || "\"'`+,;".contains(c));
    let headers = ["Proc-Type:", "DEK-Info:", "Version:", "Comment:", "Hash:", "Charset:", "MessageID:"];
    line.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=\\".contains(&b))
        || headers.iter().any(|header| line.starts_with(header))
}

/// Returns `true` if these lines, except for a few, have the length of the lines of a key.
pub(super) fn has_full_lines(body: &str) -> bool {
    body.lines().filter(|line| line.len() < MIN_FULL_LINE_BYTES).count() <= MAX_SHORT_LINES
}

/// Returns the position after a label and its dashes. `start` is the start of the label, after `-----BEGIN ` or
/// `-----END `. Returns `None` if the label is not that of a private key.
pub(super) fn private_key_body(bytes: TrackedBytes, start: usize) -> Option<usize> {
    let end = run_end(bytes, start, MAX_LABEL_BYTES, in_label);
    let private = bytes[start..end].windows(11).any(|words| words == b"PRIVATE KEY");
    (private && bytes.from(end).starts_with(DASHES)).then_some(end + DASHES.len())
}

/// Returns the end of a label and of the dashes after it.
fn label_end(bytes: TrackedBytes, start: usize) -> usize {
    let end = run_end(bytes, start, MAX_LABEL_BYTES, in_label);
    run_end(bytes, end, DASHES.len(), |b| b == b'-')
}

/// Returns the end of a key without an END, which stops at a quote. A last line that cannot be part of a key is
/// excluded.
fn end_at_quote(bytes: TrackedBytes, body: usize, end: usize) -> usize {
    let in_key = |b: &u8| b.is_ascii_alphanumeric() || b"+/=\\-\t ".contains(b);
    let newline = bytes[body..end].iter().rposition(|b| *b == b'\n').map(|at| body + at);
    newline.filter(|newline| !bytes[newline + 1..end].iter().all(in_key)).unwrap_or(end)
}

/// Returns the start of a literal that is joined to the one that ends at `at` (`"…" + "…"`, or on the next line),
/// `None` if there is none. `escapes` is the number of backslashes before the quote at `at`.
///
/// Two JSON strings are never adjacent like this. Two quotes with the same escapes belong to the same string.
fn joined_literal(bytes: TrackedBytes, at: usize, escapes: usize) -> Option<usize> {
    let gap = run_end(bytes, at + 1, 256, |b| b.is_ascii_whitespace() || b == b'+');
    let next = run_end(bytes, gap, escapes, |b| b == b'\\');
    (gap > at + 1 && next == gap + escapes && bytes.get(next) == Some(bytes[at])).then_some(next + 1)
}

fn in_label(b: u8) -> bool {
    b.is_ascii_uppercase() || b.is_ascii_digit() || b == b' '
}
