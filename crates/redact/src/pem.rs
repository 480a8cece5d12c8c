//! Private keys between `-----BEGIN … PRIVATE KEY-----` and its END, with real newlines or written `\n`.
//!
//! Never takes a certificate or a public key, and never leaves the string literal the key begins in, except for
//! literals joined to it.

use super::scan::{Bytes, Scan, run_end};

pub(super) const BEGIN: &str = "-----BEGIN ";
const END: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";
const LONGEST_LABEL: usize = 48;
/// A line that is not the last has 64 characters mostly, and sometimes 76.
const SHORTEST_LINE: usize = 48;
/// Headers, and what stands around them.
const MAX_SHORT: usize = 8;

/// Hides the key that begins at `start`, also where it began in a value that ends before it: `KEY="-----BEGIN …` and
/// then a new line.
pub(super) fn hide(scan: &mut Scan, start: usize) {
    if start < scan.state.key_end {
        return;
    }
    let Some(body) = private_label(scan.bytes, start + BEGIN.len()) else {
        return;
    };
    let end = end(scan.bytes, body, body).at;
    scan.state.key_end = end;
    scan.hide_on(start, end);
}

/// Where a key ends as far as the text goes.
pub(super) struct End {
    pub(super) at: usize,
    /// When the text goes on, nothing before this position has to be looked at again.
    pub(super) looked: usize,
}

/// Looks for the end of the key whose body begins at `body`, from `from` on.
pub(super) fn end(bytes: Bytes, body: usize, from: usize) -> End {
    let mut at = from;
    let mut unsure = None;
    while let Some(&b) = bytes[..].get(at) {
        if b == b'-' && bytes.from(at).starts_with(END) {
            return End { at: label_end(bytes, at + END.len()), looked: at };
        }
        let quote = at;
        if matches!(b, b'"' | b'\'' | b'`') {
            let escapes = bytes[body..at].iter().rev().take_while(|b| **b == b'\\').count();
            let Some(next) = joined(bytes, at, escapes) else {
                return End { at: last_line_end(bytes, body, at - escapes), looked: at };
            };
            at = next;
        } else {
            at += 1;
        }
        if unsure.is_none() && bytes.has_ended() {
            unsure = Some(quote);
        }
    }
    bytes.note_end();
    End { at, looked: unsure.unwrap_or(at) }
}

/// Where the END of a private key ends in a line in which none begins before it.
pub(super) fn orphan_end(line: Bytes) -> Option<usize> {
    let at = line.windows(END.len()).position(|part| part == END)?;
    let begins = line[..at].windows(BEGIN.len()).any(|part| part == BEGIN.as_bytes());
    private_label(line, at + END.len()).filter(|_| !begins)
}

/// Whether the line may stand between BEGIN and END: base64, perhaps in quotes, nothing, or one of the usual headers.
pub(super) fn in_body(line: &str) -> bool {
    let line = line.trim_matches(|c: char| c.is_ascii_whitespace() || "\"'`+,;".contains(c));
    let headers = ["Proc-Type:", "DEK-Info:", "Version:", "Comment:", "Hash:", "Charset:", "MessageID:"];
    line.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=\\".contains(&b))
        || headers.iter().any(|header| line.starts_with(header))
}

/// Whether these lines are as long as those of a key, but for its headers.
pub(super) fn fills_lines(body: &str) -> bool {
    body.lines().filter(|line| line.len() < SHORTEST_LINE).count() <= MAX_SHORT
}

/// Where the body begins, when the label says that this is a private key.
pub(super) fn private_label(bytes: Bytes, start: usize) -> Option<usize> {
    let end = run_end(bytes, start, LONGEST_LABEL, in_label);
    let private = bytes[start..end].windows(11).any(|words| words == b"PRIVATE KEY");
    (private && bytes.from(end).starts_with(DASHES)).then_some(end + DASHES.len())
}

fn label_end(bytes: Bytes, start: usize) -> usize {
    let end = run_end(bytes, start, LONGEST_LABEL, in_label);
    run_end(bytes, end, DASHES.len(), |b| b == b'-')
}

/// The end of a key without its END, which stops at a quote: without the last line, if that is none of the key's.
fn last_line_end(bytes: Bytes, body: usize, end: usize) -> usize {
    let in_key = |b: &u8| b.is_ascii_alphanumeric() || b"+/=\\-\t ".contains(b);
    let newline = bytes[body..end].iter().rposition(|b| *b == b'\n').map(|at| body + at);
    newline.filter(|newline| !bytes[newline + 1..end].iter().all(in_key)).unwrap_or(end)
}

/// Where the literal goes on that is joined to the one closed by the quote at `at` (`"…" + "…"`, or on the next
/// line). In JSON two strings never stand so, and two quotes that are escaped alike stand in the same string.
fn joined(bytes: Bytes, at: usize, escapes: usize) -> Option<usize> {
    let gap = run_end(bytes, at + 1, 256, |b| b.is_ascii_whitespace() || b == b'+');
    let next = run_end(bytes, gap, escapes, |b| b == b'\\');
    (gap > at + 1 && next == gap + escapes && bytes.get(next) == Some(bytes[at])).then_some(next + 1)
}

fn in_label(b: u8) -> bool {
    b.is_ascii_uppercase() || b.is_ascii_digit() || b == b' '
}
