//! One pass over a text: the hidden ranges so far, and access to the text around a position.
//!
//! A pass never reads text that is already hidden. The output has `[redacted]` there, and a second pass over the output
//! must not find anything.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::{Deref, Range};

use super::MARK;

/// A pass over a text.
pub(super) struct SecretScan<'t> {
    pub(super) text: &'t str,
    pub(super) bytes: TrackedBytes<'t>,
    pub(super) hidden: Vec<Range<usize>>,
    pub(super) state: ScanState,
}

/// The state of a pass at a position, from which another pass can continue.
#[derive(Clone, Default)]
pub(super) struct ScanState {
    /// Everything before this position is settled.
    pub(super) settled: usize,
    /// A secret after the current position, which is hidden when the pass reaches it.
    pub(super) deferred: Option<Range<usize>>,
    /// An `@` before this position belongs to a URL.
    pub(super) url_end: usize,
    /// No JSON web token starts before this position.
    pub(super) no_jwt: usize,
    /// The end of the last private key.
    pub(super) key_end: usize,
    /// The end of a range that an earlier pass started to hide.
    pub(super) hidden_until: usize,
}

impl ScanState {
    /// Returns the state after `by` bytes were removed from the start of the text. Positions in the removed text become
    /// 0.
    pub(super) fn shifted(self, by: usize) -> ScanState {
        let back = |at: usize| at.saturating_sub(by);
        ScanState {
            settled: back(self.settled),
            deferred: self.deferred.map(|range| back(range.start)..back(range.end)),
            url_end: back(self.url_end),
            no_jwt: back(self.no_jwt),
            key_end: back(self.key_end),
            hidden_until: back(self.hidden_until),
        }
    }
}

impl<'t> SecretScan<'t> {
    /// Returns a pass that continues from `state`. It sets `end_reached` when a decision depends on the end of the
    /// text.
    pub(super) fn new(text: &'t str, state: ScanState, end_reached: &'t Cell<bool>) -> SecretScan<'t> {
        SecretScan { text, bytes: TrackedBytes { all: text.as_bytes(), end_reached }, hidden: Vec::new(), state }
    }

    /// Returns the position up to which everything is settled.
    pub(super) fn settled(&self) -> usize {
        self.state.settled
    }

    /// Restores an earlier state with the number of hidden ranges at that time.
    pub(super) fn roll_back(&mut self, hidden: usize, state: ScanState) {
        self.hidden.truncate(hidden);
        if let Some(last) = self.hidden.last_mut() {
            last.end = state.settled;
        }
        self.state = state;
    }

    /// Hides a range after everything that is settled.
    pub(super) fn hide(&mut self, secret: Range<usize>) {
        debug_assert!(self.settled() <= secret.start && secret.start < secret.end);
        debug_assert!(self.text.get(secret.clone()).is_some());
        self.state.settled = secret.end;
        self.hidden.push(secret);
    }

    /// Hides `start..end`. If `start` is already hidden, extends the last hidden range to `end`. If an earlier pass hid
    /// it, only records in `hidden_until` that the text is hidden. Has no effect if everything up to `end` is settled.
    pub(super) fn extend_hidden(&mut self, start: usize, end: usize) {
        if self.settled() <= start {
            self.hide(start..end);
        } else if self.settled() < end {
            self.state.settled = end;
            match self.hidden.last_mut() {
                Some(last) => last.end = end,
                None => self.state.hidden_until = end,
            }
        }
    }

    /// Hides a later range as soon as the text before it is scanned.
    pub(super) fn hide_deferred(&mut self, secret: Range<usize>) {
        self.advance_to(secret.start);
        let end = self.state.deferred.take().map_or(secret.end, |deferred| deferred.end.max(secret.end));
        self.state.deferred = Some(secret.start..end);
    }

    /// Returns `true` if a later range is going to be hidden.
    pub(super) fn has_deferred(&self) -> bool {
        self.state.deferred.is_some()
    }

    /// Hides the deferred range if it starts at or before `at`, without the part that is settled. Returns `true` if the
    /// text at `at` is not settled yet.
    pub(super) fn advance_to(&mut self, at: usize) -> bool {
        if let Some(secret) = self.state.deferred.take_if(|deferred| deferred.start <= at) {
            let start = secret.start.max(self.settled());
            if start < secret.end {
                self.hide(start..secret.end);
            }
        }
        self.settled() <= at
    }

    /// Returns all hidden ranges.
    pub(super) fn finish(mut self) -> Vec<Range<usize>> {
        self.advance_to(self.bytes.len());
        self.hidden
    }

    /// Returns the visible bytes before `at`, back to the last settled position.
    pub(super) fn before(&self, at: usize) -> &'t [u8] {
        &self.bytes.all[self.settled()..at]
    }

    /// Returns the bytes from `at`.
    pub(super) fn from(&self, at: usize) -> TrackedBytes<'t> {
        self.bytes.from(at)
    }

    /// Returns `true` if a word may start here: at the start of the visible text, or after a byte that is no ASCII
    /// letter or digit. The last letter of an escape (`\n`, `\x1b`, `\u0026`, `%3D`, `ESC[1m`) is not part of a word.
    pub(super) fn word_starts(&self, at: usize) -> bool {
        match self.before(at) {
            [] | [.., b'\\', b'n' | b'r' | b't' | b'b' | b'f'] => true,
            [.., last] if !last.is_ascii_alphanumeric() => true,
            [.., b'%', a, b] | [.., b'\\', b'x', a, b] => [a, b].iter().all(|b| b.is_ascii_hexdigit()),
            [.., b'\\', b'u', a, b, c, d] => [a, b, c, d].iter().all(|b| b.is_ascii_hexdigit()),
            [color @ .., b'm'] => ends_with_color(color),
            _ => false,
        }
    }
}

/// Returns the text with the hidden ranges replaced by the mark.
pub(super) fn replace_hidden<'t>(text: &'t str, hidden: &[Range<usize>]) -> Cow<'t, str> {
    if hidden.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    write_visible(text, 0, hidden, text.len(), &mut out);
    Cow::Owned(out)
}

/// Writes the text from `shown` to `until`, with the hidden ranges replaced by the mark. The ranges must be in order
/// and between `shown` and `until`, because a mark is written for each.
pub(super) fn write_visible(text: &str, mut shown: usize, hidden: &[Range<usize>], until: usize, out: &mut String) {
    for secret in hidden {
        out.push_str(text.get(shown..secret.start).unwrap_or_default());
        out.push_str(MARK);
        shown = secret.end;
    }
    out.push_str(text.get(shown..until).unwrap_or_default());
}

/// The bytes of a text. Reads past the end set a flag, because more text could change their result.
#[derive(Clone, Copy)]
pub(super) struct TrackedBytes<'t> {
    all: &'t [u8],
    end_reached: &'t Cell<bool>,
}

impl<'t> TrackedBytes<'t> {
    /// Returns the bytes with the flag for reads past the end.
    pub(super) fn new(all: &'t [u8], end_reached: &'t Cell<bool>) -> TrackedBytes<'t> {
        TrackedBytes { all, end_reached }
    }

    /// Returns the byte at `at`. Sets the flag if there is none.
    pub(super) fn get(self, at: usize) -> Option<u8> {
        let byte = self.all.get(at).copied();
        if byte.is_none() {
            self.mark_end_reached();
        }
        byte
    }

    /// Returns the first byte. Sets the flag if there is none.
    pub(super) fn first(self) -> Option<u8> {
        self.get(0)
    }

    /// Returns the bytes from `at`, with the same flag.
    pub(super) fn from(self, at: usize) -> TrackedBytes<'t> {
        TrackedBytes { all: &self.all[at.min(self.all.len())..], ..self }
    }

    /// Returns `true` if the bytes start with `prefix`. Sets the flag if they are too short to decide.
    pub(super) fn starts_with(self, prefix: &[u8]) -> bool {
        if self.all.len() < prefix.len() && prefix.starts_with(self.all) {
            self.mark_end_reached();
        }
        self.all.starts_with(prefix)
    }

    /// Sets the flag.
    pub(super) fn mark_end_reached(self) {
        self.end_reached.set(true);
    }

    /// Returns the flag.
    pub(super) fn end_reached(self) -> bool {
        self.end_reached.get()
    }

    /// Returns the flag and clears it.
    pub(super) fn take_end_reached(self) -> bool {
        self.end_reached.take()
    }
}

impl Deref for TrackedBytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.all
    }
}

/// Returns the number of bytes at `at` that belong to an escape (`\n`, `\u00e9`) before it.
pub(super) fn escape_tail(bytes: &[u8], at: usize) -> usize {
    if !bytes[..at].ends_with(b"\\") {
        return 0;
    }
    escape_length(&bytes[at..])
}

/// Returns the number of bytes of an escape after its backslash.
pub(super) fn escape_length(bytes: &[u8]) -> usize {
    match bytes {
        [b'u', a, b, c, d, ..] if [a, b, c, d].iter().all(|b| b.is_ascii_hexdigit()) => 5,
        [b'n' | b'r' | b't' | b'b' | b'f', ..] => 1,
        _ => 0,
    }
}

/// Returns the end of the run of accepted bytes that starts at `from`. The run has at most `max` bytes. Sets the flag
/// of `bytes` if the run ends with the text and could be longer. Returns `from` if it is after the end.
pub(super) fn run_end(bytes: TrackedBytes, from: usize, max: usize, accepts: impl Fn(u8) -> bool) -> usize {
    let until = bytes.len().min(from.saturating_add(max));
    (from..until).find(|&i| !accepts(bytes[i])).unwrap_or_else(|| {
        if until < from.saturating_add(max) {
            bytes.mark_end_reached();
        }
        until.max(from)
    })
}

/// Returns `true` if the bytes end with the `[1;31` of a terminal color sequence.
fn ends_with_color(bytes: &[u8]) -> bool {
    let other = bytes.iter().rev().take(12).find(|b| !b.is_ascii_digit() && **b != b';');
    other == Some(&b'[')
}
