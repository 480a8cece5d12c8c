//! One pass over a text: what was hidden so far, and what stands before a position.
//!
//! Never looks back into what was already hidden: there the text reads `[redacted]`, and the pass must find the same
//! in its own output (that is, nothing) as it found in the text.

use std::borrow::Cow;
use std::ops::Range;

use super::MARK;

pub(super) struct Scan<'t> {
    pub(super) text: &'t str,
    pub(super) bytes: &'t [u8],
    hidden: Vec<Range<usize>>,
    later: Option<Range<usize>>,
    /// Up to here an `@` belongs to a URL.
    pub(super) url_end: usize,
    /// Up to here no JSON web token begins.
    pub(super) no_jwt: usize,
}

impl<'t> Scan<'t> {
    pub(super) fn new(text: &'t str) -> Scan<'t> {
        Scan { text, bytes: text.as_bytes(), hidden: Vec::new(), later: None, url_end: 0, no_jwt: 0 }
    }

    /// Everything before this position is settled.
    pub(super) fn done(&self) -> usize {
        self.hidden.last().map_or(0, |last| last.end)
    }

    pub(super) fn hide(&mut self, secret: Range<usize>) {
        debug_assert!(self.done() <= secret.start && secret.start < secret.end);
        debug_assert!(self.text.get(secret.clone()).is_some());
        self.hidden.push(secret);
    }

    /// Hides a secret that is some way ahead, once all that stands before it was looked at.
    pub(super) fn hide_later(&mut self, secret: Range<usize>) {
        self.reaches(secret.start);
        let end = self.later.take().map_or(secret.end, |later| later.end.max(secret.end));
        self.later = Some(secret.start..end);
    }

    /// Whether a secret ahead is known but not hidden yet.
    pub(super) fn awaits_secret(&self) -> bool {
        self.later.is_some()
    }

    /// Whether what begins at `at` is still to be looked at.
    pub(super) fn reaches(&mut self, at: usize) -> bool {
        if let Some(secret) = self.later.take_if(|later| later.start <= at) {
            let start = secret.start.max(self.done());
            if start < secret.end {
                self.hide(start..secret.end);
            }
        }
        self.done() <= at
    }

    pub(super) fn finish(mut self) -> Cow<'t, str> {
        self.reaches(self.bytes.len());
        if self.hidden.is_empty() {
            return Cow::Borrowed(self.text);
        }
        let mut out = String::with_capacity(self.text.len());
        let mut kept = 0;
        for secret in self.hidden {
            out.push_str(&self.text[kept..secret.start]);
            out.push_str(MARK);
            kept = secret.end;
        }
        out.push_str(&self.text[kept..]);
        Cow::Owned(out)
    }

    /// The bytes before `at` that may be looked at.
    pub(super) fn before(&self, at: usize) -> &'t [u8] {
        &self.bytes[self.done()..at]
    }

    /// The bytes from `at` on.
    pub(super) fn from(&self, at: usize) -> &'t [u8] {
        &self.bytes[at.min(self.bytes.len())..]
    }

    /// Whether no word runs into this position. The last letter of an escape (`\n`, `\u0026`, `%3D`, `ESC[1m`) is
    /// part of no word.
    pub(super) fn word_starts(&self, at: usize) -> bool {
        match self.before(at) {
            [] | [.., b'\\', b'n' | b'r' | b't' | b'b' | b'f'] => true,
            [.., last] if !last.is_ascii_alphanumeric() => true,
            [.., b'%', a, b] | [.., b'\\', b'x', a, b] => [a, b].iter().all(|b| b.is_ascii_hexdigit()),
            [.., b'\\', b'u', a, b, c, d] => [a, b, c, d].iter().all(|b| b.is_ascii_hexdigit()),
            [colour @ .., b'm'] => ends_with_colour(colour),
            _ => false,
        }
    }
}

/// How many bytes at `at` belong to an escape (`\n`, `\u00e9`) that began before it.
pub(super) fn escape_tail(bytes: &[u8], at: usize) -> usize {
    if !bytes[..at].ends_with(b"\\") {
        return 0;
    }
    match &bytes[at..] {
        [b'u', a, b, c, d, ..] if [a, b, c, d].iter().all(|b| b.is_ascii_hexdigit()) => 5,
        [b'n' | b'r' | b't' | b'b' | b'f', ..] => 1,
        _ => 0,
    }
}

/// The end of the run of such bytes that begins at `from`, at most `most` long.
pub(super) fn run_end(bytes: &[u8], from: usize, most: usize, accepts: impl Fn(u8) -> bool) -> usize {
    let until = bytes.len().min(from.saturating_add(most));
    (from..until).find(|&i| !accepts(bytes[i])).unwrap_or(until.max(from))
}

/// Whether the bytes end with the `[1;31` of a terminal's colour sequence.
fn ends_with_colour(bytes: &[u8]) -> bool {
    let other = bytes.iter().rev().take(12).find(|b| !b.is_ascii_digit() && **b != b';');
    other == Some(&b'[')
}
