//! Private keys between `-----BEGIN … PRIVATE KEY-----` and its END, with real newlines or written `\n`.
//!
//! Never takes a certificate or a public key, and never leaves the string literal the key begins in, except for
//! literals joined to it.

use super::scan::{Scan, run_end};

pub(super) const BEGIN: &str = "-----BEGIN ";
const END: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";
const LONGEST_LABEL: usize = 48;

pub(super) fn hide(scan: &mut Scan, start: usize) {
    let Some(body) = private_label(scan.bytes, start + BEGIN.len()) else {
        return;
    };
    let mut end = body;
    while let Some(&b) = scan.bytes.get(end) {
        if b == b'-' && scan.from(end).starts_with(END) {
            end = label_end(scan.bytes, end + END.len());
            break;
        }
        if matches!(b, b'"' | b'\'' | b'`') {
            let escapes = scan.bytes[body..end].iter().rev().take_while(|b| **b == b'\\').count();
            let Some(next) = joined(scan.bytes, end, escapes) else {
                end = last_line_end(scan.bytes, body, end - escapes);
                break;
            };
            end = next;
        } else {
            end += 1;
        }
    }
    scan.hide(start..end);
}

/// Where the body begins, when the label says that this is a private key.
fn private_label(bytes: &[u8], start: usize) -> Option<usize> {
    let end = run_end(bytes, start, LONGEST_LABEL, in_label);
    let private = bytes[start..end].windows(11).any(|words| words == b"PRIVATE KEY");
    (private && bytes[end..].starts_with(DASHES)).then_some(end + DASHES.len())
}

fn label_end(bytes: &[u8], start: usize) -> usize {
    let end = run_end(bytes, start, LONGEST_LABEL, in_label);
    run_end(bytes, end, DASHES.len(), |b| b == b'-')
}

/// The end of a key without its END, which stops at a quote: without the last line, if that is none of the key's.
fn last_line_end(bytes: &[u8], body: usize, end: usize) -> usize {
    let in_key = |b: &u8| b.is_ascii_alphanumeric() || b"+/=\\-\t ".contains(b);
    let newline = bytes[body..end].iter().rposition(|b| *b == b'\n').map(|at| body + at);
    newline.filter(|newline| !bytes[newline + 1..end].iter().all(in_key)).unwrap_or(end)
}

/// Where the literal goes on that is joined to the one closed by the quote at `at` (`"…" + "…"`, or on the next
/// line). In JSON two strings never stand so, and two quotes that are escaped alike stand in the same string.
fn joined(bytes: &[u8], at: usize, escapes: usize) -> Option<usize> {
    let gap = run_end(bytes, at + 1, 256, |b| b.is_ascii_whitespace() || b == b'+');
    let next = run_end(bytes, gap, escapes, |b| b == b'\\');
    (gap > at + 1 && next == gap + escapes && bytes.get(next) == Some(&bytes[at])).then_some(next + 1)
}

fn in_label(b: u8) -> bool {
    b.is_ascii_uppercase() || b.is_ascii_digit() || b == b' '
}
