//! One pass over a text: what was hidden so far, and what stands before a position.
//!
//! Never looks back into what was already hidden: there the text reads `[redacted]`, and the pass must find the same
//! in its own output (that is, nothing) as it found in the text.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::{Deref, Range};

use super::MARK;

pub(super) struct Scan<'t> {
    pub(super) text: &'t str,
    pub(super) bytes: Bytes<'t>,
    pub(super) hidden: Vec<Range<usize>>,
    pub(super) state: State,
}

/// What a pass knows at a position, so that another can go on from there.
#[derive(Clone, Default)]
pub(super) struct State {
    /// Everything before this position is settled.
    pub(super) done: usize,
    pub(super) later: Option<Range<usize>>,
    /// Up to here an `@` belongs to a URL.
    pub(super) url_end: usize,
    /// Up to here no JSON web token begins.
    pub(super) no_jwt: usize,
    /// Up to here a private key reaches.
    pub(super) key_end: usize,
    /// Up to here something reaches that an earlier pass began to hide.
    pub(super) hidden_on: usize,
}

impl State {
    /// The same after so many bytes were taken from the beginning of the text.
    pub(super) fn moved(self, by: usize) -> State {
        let back = |at: usize| at.saturating_sub(by);
        State {
            done: back(self.done),
            later: self.later.map(|later| back(later.start)..back(later.end)),
            url_end: back(self.url_end),
            no_jwt: back(self.no_jwt),
            key_end: back(self.key_end),
            hidden_on: back(self.hidden_on),
        }
    }
}

impl<'t> Scan<'t> {
    /// A pass that goes on from `state` and notes in `ended` when something depends on where the text ends.
    pub(super) fn new(text: &'t str, state: State, ended: &'t Cell<bool>) -> Scan<'t> {
        Scan { text, bytes: Bytes { all: text.as_bytes(), ended }, hidden: Vec::new(), state }
    }

    pub(super) fn done(&self) -> usize {
        self.state.done
    }

    /// Forgets what was done since there were so many hidden and the state was this.
    pub(super) fn back_to(&mut self, hidden: usize, state: State) {
        self.hidden.truncate(hidden);
        if let Some(last) = self.hidden.last_mut() {
            last.end = state.done;
        }
        self.state = state;
    }

    pub(super) fn hide(&mut self, secret: Range<usize>) {
        debug_assert!(self.done() <= secret.start && secret.start < secret.end);
        debug_assert!(self.text.get(secret.clone()).is_some());
        self.state.done = secret.end;
        self.hidden.push(secret);
    }

    /// Hides up to `end` from `start`, or from where what was hidden last ends, as one with it.
    pub(super) fn hide_on(&mut self, start: usize, end: usize) {
        if self.done() <= start {
            self.hide(start..end);
        } else if self.done() < end {
            self.state.done = end;
            match self.hidden.last_mut() {
                Some(last) => last.end = end,
                None => self.state.hidden_on = end,
            }
        }
    }

    /// Hides a secret that is some way ahead, once all that stands before it was looked at.
    pub(super) fn hide_later(&mut self, secret: Range<usize>) {
        self.reaches(secret.start);
        let end = self.state.later.take().map_or(secret.end, |later| later.end.max(secret.end));
        self.state.later = Some(secret.start..end);
    }

    /// Whether a secret ahead is known but not hidden yet.
    pub(super) fn awaits_secret(&self) -> bool {
        self.state.later.is_some()
    }

    /// Whether what begins at `at` is still to be looked at.
    pub(super) fn reaches(&mut self, at: usize) -> bool {
        if let Some(secret) = self.state.later.take_if(|later| later.start <= at) {
            let start = secret.start.max(self.done());
            if start < secret.end {
                self.hide(start..secret.end);
            }
        }
        self.done() <= at
    }

    /// All that is to be hidden.
    pub(super) fn finish(mut self) -> Vec<Range<usize>> {
        self.reaches(self.bytes.len());
        self.hidden
    }

    /// The bytes before `at` that may be looked at.
    pub(super) fn before(&self, at: usize) -> &'t [u8] {
        &self.bytes.all[self.done()..at]
    }

    /// The bytes from `at` on.
    pub(super) fn from(&self, at: usize) -> Bytes<'t> {
        self.bytes.from(at)
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

/// The text with the mark in place of what is hidden.
pub(super) fn without<'t>(text: &'t str, hidden: &[Range<usize>]) -> Cow<'t, str> {
    if hidden.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    show(text, 0, hidden, text.len(), &mut out);
    Cow::Owned(out)
}

/// Writes the text from `shown` to `until` with the mark in place of what is hidden.
pub(super) fn show(text: &str, mut shown: usize, hidden: &[Range<usize>], until: usize, out: &mut String) {
    for secret in hidden {
        out.push_str(text.get(shown..secret.start).unwrap_or_default());
        out.push_str(MARK);
        shown = secret.end;
    }
    out.push_str(text.get(shown..until).unwrap_or_default());
}

/// The bytes of a text. Whoever asks what stands behind the last one is noted: with more text the answer may change.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'t> {
    all: &'t [u8],
    ended: &'t Cell<bool>,
}

impl<'t> Bytes<'t> {
    pub(super) fn new(all: &'t [u8], ended: &'t Cell<bool>) -> Bytes<'t> {
        Bytes { all, ended }
    }

    pub(super) fn get(self, at: usize) -> Option<u8> {
        let byte = self.all.get(at).copied();
        if byte.is_none() {
            self.note_end();
        }
        byte
    }

    pub(super) fn first(self) -> Option<u8> {
        self.get(0)
    }

    pub(super) fn from(self, at: usize) -> Bytes<'t> {
        Bytes { all: &self.all[at.min(self.all.len())..], ..self }
    }

    pub(super) fn starts_with(self, prefix: &[u8]) -> bool {
        if self.all.len() < prefix.len() && prefix.starts_with(self.all) {
            self.note_end();
        }
        self.all.starts_with(prefix)
    }

    pub(super) fn note_end(self) {
        self.ended.set(true);
    }

    pub(super) fn has_ended(self) -> bool {
        self.ended.get()
    }

    /// Whether the end was asked for since this was last asked.
    pub(super) fn take_ended(self) -> bool {
        self.ended.take()
    }
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.all
    }
}

/// How many bytes at `at` belong to an escape (`\n`, `\u00e9`) that began before it.
pub(super) fn escape_tail(bytes: &[u8], at: usize) -> usize {
    if !bytes[..at].ends_with(b"\\") {
        return 0;
    }
    escape_length(&bytes[at..])
}

/// How many bytes belong to the escape whose backslash stands before them.
pub(super) fn escape_length(bytes: &[u8]) -> usize {
    match bytes {
        [b'u', a, b, c, d, ..] if [a, b, c, d].iter().all(|b| b.is_ascii_hexdigit()) => 5,
        [b'n' | b'r' | b't' | b'b' | b'f', ..] => 1,
        _ => 0,
    }
}

/// The end of the run of such bytes that begins at `from`, at most `most` long.
pub(super) fn run_end(bytes: Bytes, from: usize, most: usize, accepts: impl Fn(u8) -> bool) -> usize {
    let until = bytes.len().min(from.saturating_add(most));
    (from..until).find(|&i| !accepts(bytes[i])).unwrap_or_else(|| {
        if until < from.saturating_add(most) {
            bytes.note_end();
        }
        until.max(from)
    })
}

/// Whether the bytes end with the `[1;31` of a terminal's colour sequence.
fn ends_with_colour(bytes: &[u8]) -> bool {
    let other = bytes.iter().rev().take(12).find(|b| !b.is_ascii_digit() && **b != b';');
    other == Some(&b'[')
}
