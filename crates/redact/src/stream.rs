//! Redacts a stream of bytes in chunks, such as the output of a process.
//!
//! The concatenated output equals the result of [`Redactor::text`] for the whole text, for all chunk boundaries and
//! pauses. There are two exceptions, which only hide more:
//!
//! - If an undecided value is longer than `BUFFER_LIMIT`, the rest of its line is replaced by one mark.
//! - A key without an END ends after `MAX_KEY_BYTES` bytes at the first line that cannot be part of a key.
//!
//! A stream that starts in the middle may start inside a key. It returns nothing before a line that is not part of a
//! key, or before too many lines that are too short for one.
//!
//! The buffer never has more than twice `BUFFER_LIMIT` bytes and the longest known value. Settled text is not scanned
//! again. Text that could still become part of a secret is not returned.

mod decode;
#[cfg(test)]
mod tests;

use std::cell::Cell;

use super::scan::{self, ScanState, SecretScan, TrackedBytes};
use super::{MARK, Redactor, Trigger, pem};
use decode::Utf8Decoder;

/// A line is buffered until it ends, unless it is longer than this.
const BUFFER_LIMIT: usize = 64 * 1024;
/// The maximum distance to the END of a private key.
const MAX_KEY_BYTES: usize = 64 * 1024;
/// The maximum lookback from the start of a secret: a name of 64 bytes and the text before it.
const LOOKBACK_BYTES: usize = 192;
/// The maximum length of the local part of an e-mail address and of a hidden prefix.
const MAX_WORD_BYTES: usize = 64;

/// Redacts text that arrives in chunks. See [`Redactor::stream`].
pub struct RedactStream {
    redactor: Redactor,
    decoder: Utf8Decoder,
    /// Text that may be the start of a known value.
    maybe_known: String,
    /// `true` if a backslash precedes `maybe_known`.
    after_slash: bool,
    /// Text for lookback, undecided text, and text that was not scanned yet.
    buffer: String,
    progress: ScanProgress,
    mode: StreamMode,
    out: String,
}

/// The progress of the pass over the buffer.
#[derive(Default)]
struct ScanProgress {
    state: ScanState,
    /// Literals that end before this position were inspected.
    inspected: usize,
    /// The text before this position was returned, redacted if needed.
    returned: usize,
    /// `true` if only text that is not white space can settle the line before.
    awaits_text: bool,
    /// The length of the buffer at the last pause.
    paused_len: usize,
}

/// The kind of text that the buffer starts with.
enum StreamMode {
    Text,
    /// The lines before position `line` may belong to a private key without a BEGIN.
    Middle {
        line: usize,
        /// `true` if earlier lines of the key were discarded without output.
        dropped: bool,
    },
    /// Inside a private key. Its mark was returned.
    Key {
        /// The END does not start before this position.
        searched: usize,
        /// The number of discarded bytes of the key.
        dropped: usize,
    },
    /// In the hidden rest of a line that is too long. Its mark was returned.
    HiddenLine,
}

/// The end of the text that is scanned.
#[derive(Clone, Copy, PartialEq)]
enum TextEnd {
    /// The text ends with a line.
    Line,
    /// The text may continue in the middle of a line.
    Open,
    /// The stream has ended.
    Last,
}

impl RedactStream {
    /// Returns a new stream. With `from_middle`, the text may start inside a private key.
    pub(super) fn new(redactor: Redactor, from_middle: bool) -> RedactStream {
        RedactStream {
            redactor,
            decoder: Utf8Decoder::default(),
            maybe_known: String::new(),
            after_slash: false,
            buffer: String::new(),
            progress: ScanProgress::default(),
            mode: if from_middle { StreamMode::Middle { line: 0, dropped: false } } else { StreamMode::Text },
            out: String::new(),
        }
    }

    /// Adds a chunk and returns the redacted text of the lines that are complete and settled. The text is empty if
    /// there are none. Invalid UTF-8 and NUL become U+FFFD. Text of more than 64 KiB is returned without a line break.
    pub fn push(&mut self, bytes: &[u8]) -> &str {
        self.out.clear();
        for chunk in bytes.chunks(BUFFER_LIMIT) {
            let new = self.buffer.len();
            self.decode(chunk);
            self.advance(new, false);
        }
        &self.out
    }

    /// Returns the settled part of the unfinished line, such as a prompt. Call it when no chunk has arrived for a
    /// while. The text is empty inside a private key, and while the text may be the middle of one.
    ///
    /// A stream from the middle changes to ordinary text if the unfinished line cannot be part of a key or its END. It
    /// does not if lines were discarded. The cost is one scan of the buffer, or nothing if no chunk has arrived since
    /// the last pause.
    pub fn pause(&mut self) -> &str {
        self.out.clear();
        if let StreamMode::Middle { line, dropped: false } = self.mode {
            let unfinished = self.buffer.get(line..).unwrap_or_default();
            if !pem::is_body_line(unfinished) && !unfinished.contains("--") && !unfinished.ends_with('-') {
                self.mode = StreamMode::Text;
            }
        }
        if matches!(self.mode, StreamMode::Text) && self.progress.paused_len != self.buffer.len() {
            self.scan_to(self.buffer.len(), TextEnd::Open);
            self.progress.paused_len = self.buffer.len();
        }
        &self.out
    }

    /// Ends the stream and returns the rest of the redacted text.
    pub fn finish(mut self) -> String {
        self.out.clear();
        let new = self.buffer.len();
        self.decoder.finish(&mut self.maybe_known);
        self.redactor.known.replace_settled(&self.maybe_known, self.after_slash, true, &mut self.buffer);
        self.advance(new, true);
        self.out
    }

    /// Decodes a chunk, replaces the known values and adds the settled part to the buffer. The end of the text that may
    /// be the start of a known value stays in `maybe_known`.
    fn decode(&mut self, bytes: &[u8]) {
        let known = &self.redactor.known;
        if known.is_empty() {
            return self.decoder.push(bytes, &mut self.buffer);
        }
        self.decoder.push(bytes, &mut self.maybe_known);
        let settled = known.replace_settled(&self.maybe_known, self.after_slash, false, &mut self.buffer);
        if let Some(last) = self.maybe_known.as_bytes()[..settled].last() {
            self.after_slash = *last == b'\\';
            self.maybe_known.drain(..settled);
        }
    }

    /// Processes the buffer and appends the settled text to `out`. Everything from position `new` is new. `last` is
    /// `true` at the end of the stream. Continues while the mode changes.
    fn advance(&mut self, new: usize, last: bool) {
        let mut new = Some(new);
        while let Some(from) = new {
            new = match self.mode {
                StreamMode::Text => self.advance_text(from, last),
                StreamMode::Middle { line, dropped } => self.advance_middle(from, line, dropped, last),
                StreamMode::Key { searched, dropped } => self.advance_key(searched, dropped, last),
                StreamMode::HiddenLine => self.advance_hidden_line(),
            };
        }
    }

    /// Processes ordinary text. Like the other `advance_…` methods, returns the position to continue at after a change
    /// of the mode, otherwise `None`.
    ///
    /// Scans up to the last new line break, or the whole buffer if `last` is set. Has no effect without a line break,
    /// or if the line before awaits text and only white space arrived. A buffer above [`BUFFER_LIMIT`] is scanned
    /// without a line break. If more than half of the limit remains undecided, the rest of the line is hidden.
    fn advance_text(&mut self, new: usize, last: bool) -> Option<usize> {
        let arrived = &self.buffer[new..];
        self.progress.awaits_text &= arrived.trim_ascii().is_empty();
        let line = arrived.rfind('\n').filter(|_| !self.progress.awaits_text);
        match line {
            _ if last => self.scan_to(self.buffer.len(), TextEnd::Last),
            Some(at) => self.scan_to(new + at + 1, TextEnd::Line),
            None => {}
        }
        if matches!(self.mode, StreamMode::Text) && self.buffer.len() > BUFFER_LIMIT {
            self.scan_to(self.buffer.len(), TextEnd::Open);
            if matches!(self.mode, StreamMode::Text) && self.buffer.len() > BUFFER_LIMIT / 2 {
                return self.hide_rest_of_line();
            }
        }
        (!matches!(self.mode, StreamMode::Text)).then_some(0)
    }

    /// Scans the buffer up to `end`, appends the settled text to `out` and discards the text that is not needed for
    /// lookback.
    ///
    /// A literal that depends on the text after `end` stops the scan, unless `kind` is `Last`. The text from the
    /// earliest start of its secret then stays in the buffer: with `Line` its whole line, unless a private key starts
    /// there. With `Open`, the last word stays too, and a deferred secret always does. If the literal is the BEGIN of a
    /// private key, appends one mark and changes to [`StreamMode::Key`].
    fn scan_to(&mut self, end: usize, kind: TextEnd) {
        let text = &self.buffer[..end];
        let end_reached = Cell::new(false);
        let mut scan = SecretScan::new(text, std::mem::take(&mut self.progress.state), &end_reached);
        let mut undecided = None;
        for hit in self.redactor.finder.find_overlapping_iter(text) {
            if hit.end() <= self.progress.inspected {
                continue;
            }
            scan.advance_to(hit.start());
            let hidden = scan.hidden.len();
            let state = scan.state.clone();
            self.redactor.inspect(&mut scan, hit);
            if scan.bytes.take_end_reached() && kind != TextEnd::Last {
                scan.roll_back(hidden, state);
                undecided = Some(hit);
                break;
            }
        }
        let key = undecided
            .filter(|hit| matches!(self.redactor.triggers[hit.pattern()], Trigger::Pem))
            .and_then(|hit| pem::private_key_body(scan.bytes, hit.end()));
        let mut until = if kind == TextEnd::Open { end - word_tail(text) } else { end };
        match undecided {
            Some(hit) => until = until.min(self.redactor.earliest_start(&scan, hit)),
            None if kind != TextEnd::Open => _ = scan.advance_to(end),
            None => {}
        }
        until = scan.state.deferred.as_ref().map_or(until, |deferred| until.min(deferred.start));
        if undecided.is_some() && key.is_none() && kind == TextEnd::Line {
            until = text[..until].rfind('\n').map_or(0, |at| at + 1).max(self.progress.returned);
        }
        until = until.max(scan.settled());
        scan::write_visible(
            text,
            self.progress.returned.max(scan.state.hidden_until),
            &scan.hidden,
            until,
            &mut self.out,
        );
        if let (Some(hit), Some(body)) = (undecided, key) {
            if scan.settled() <= hit.start() {
                self.out.push_str(MARK);
            }
            self.mode = StreamMode::Key { searched: 0, dropped: 0 };
            return self.discard(body);
        }
        let needed_from = undecided.map_or(until, |hit| until.min(hit.start()));
        let discarded = match undecided {
            None if kind != TextEnd::Open => end,
            _ => char_boundary(text, needed_from.saturating_sub(LOOKBACK_BYTES)),
        };
        self.progress = ScanProgress {
            state: scan.state.shifted(discarded),
            inspected: undecided.map_or(end, |hit| hit.end() - 1) - discarded,
            returned: until - discarded,
            awaits_text: undecided.is_some() && kind == TextEnd::Line,
            paused_len: 0,
        };
        self.buffer.drain(..discarded);
    }

    /// Reduces an undecided text that is too long. If all text was returned and it is mostly white space at its end,
    /// shortens that to one line break or blank and returns `None`. The text before it must be less than a quarter of
    /// [`BUFFER_LIMIT`]. Otherwise appends a mark, changes to [`StreamMode::HiddenLine`] and returns the position 0.
    fn hide_rest_of_line(&mut self) -> Option<usize> {
        let (text, blank) = self.buffer.split_at(self.buffer.trim_ascii_end().len());
        if self.progress.returned == self.buffer.len() && text.len() < BUFFER_LIMIT / 4 {
            let blank = if blank.contains('\n') { '\n' } else { ' ' };
            self.buffer.truncate(text.len());
            self.buffer.push(blank);
            self.progress.returned = self.buffer.len();
            return None;
        }
        self.out.push_str(MARK);
        self.discard(self.progress.returned);
        self.mode = StreamMode::HiddenLine;
        Some(0)
    }

    /// Discards the hidden rest of a line. Changes to text at the line break, which is kept, or to a key at the BEGIN
    /// of a private key. Otherwise keeps the last [`LOOKBACK_BYTES`] and returns `None`.
    fn advance_hidden_line(&mut self) -> Option<usize> {
        let line = self.buffer.find('\n').unwrap_or(self.buffer.len());
        let begin = self.buffer[..line].find(pem::BEGIN);
        let end_reached = Cell::new(false);
        let bytes = TrackedBytes::new(self.buffer.as_bytes(), &end_reached);
        if let Some(body) = begin.and_then(|begin| pem::private_key_body(bytes, begin + pem::BEGIN.len())) {
            self.mode = StreamMode::Key { searched: 0, dropped: 0 };
            self.discard(body);
        } else if line < self.buffer.len() {
            self.mode = StreamMode::Text;
            self.discard(line);
        } else {
            // The end of the buffer may be the start of a BEGIN.
            self.discard(char_boundary(&self.buffer, line.saturating_sub(LOOKBACK_BYTES)));
            return None;
        }
        Some(0)
    }

    /// Discards the body of a private key. Changes to text after its END, before the quote that closes its literal, or
    /// at the end of the stream. After [`MAX_KEY_BYTES`], also changes before a line that cannot be part of a key.
    /// Otherwise discards the complete lines, or more if the buffer exceeds [`BUFFER_LIMIT`], and returns `None`. See
    /// [`StreamMode::Key`] for the parameters.
    fn advance_key(&mut self, searched: usize, dropped: usize, last: bool) -> Option<usize> {
        let end_reached = Cell::new(false);
        let end = pem::find_end(TrackedBytes::new(self.buffer.as_bytes(), &end_reached), 0, searched);
        let cut_off = if dropped > MAX_KEY_BYTES && self.buffer[searched..].contains('\n') {
            end_before_foreign_line(&self.buffer)
        } else {
            None
        };
        if let Some(end) = cut_off.or((last || !end_reached.get()).then_some(end.at)) {
            self.discard(end);
            self.mode = StreamMode::Text;
            return Some(0);
        }
        // The last line stays in the buffer, because it may not be part of the key.
        let line = self.buffer[searched..end.searched].rfind('\n').map(|at| searched + at);
        let discarded = line.unwrap_or(if self.buffer.len() > BUFFER_LIMIT { end.searched } else { 0 });
        self.discard(discarded);
        self.mode = StreamMode::Key { searched: end.searched - discarded, dropped: dropped + discarded };
        None
    }

    /// Processes lines that may belong to a private key without a BEGIN. See [`StreamMode::Middle`] for the parameters.
    ///
    /// - At an END, replaces them with one mark and changes to text.
    /// - At a line that cannot be part of a key, and at the end of the stream, changes to text. The lines in the buffer
    ///   are visible, and discarded lines become one mark.
    /// - Above [`MAX_KEY_BYTES`], changes to text too if one line is that long or too many lines are short. Otherwise
    ///   discards the lines and returns `None`.
    fn advance_middle(&mut self, new: usize, mut line: usize, mut dropped: bool, last: bool) -> Option<usize> {
        let mut searched = new.max(line);
        loop {
            let end = match self.buffer[searched..].find('\n') {
                Some(at) => searched + at + 1,
                None if last => self.buffer.len(),
                None => break,
            };
            let text = &self.buffer[line..end];
            let end_reached = Cell::new(false);
            let orphan = pem::orphan_end(TrackedBytes::new(text.as_bytes(), &end_reached));
            let is_end = line == end;
            if orphan.is_some() || is_end || !pem::is_body_line(text) {
                if orphan.is_some() || dropped {
                    self.out.push_str(MARK);
                }
                if let Some(orphan) = orphan {
                    self.discard(line + orphan);
                } else if dropped {
                    self.out.push('\n');
                    self.discard(line);
                }
                self.mode = StreamMode::Text;
                return Some(0);
            }
            (line, searched) = (end, end);
        }
        if self.buffer.len() > MAX_KEY_BYTES {
            // No key has a line of this length, or so many short lines.
            if line == 0 || !pem::has_full_lines(&self.buffer[..line]) {
                if dropped {
                    self.out.push_str(MARK);
                    self.out.push('\n');
                }
                self.mode = StreamMode::Text;
                return Some(0);
            }
            self.discard(line);
            (line, dropped) = (0, true);
        }
        self.mode = StreamMode::Middle { line, dropped };
        None
    }

    /// Discards the buffer before `at` and restarts the scan.
    fn discard(&mut self, at: usize) {
        self.buffer.drain(..at);
        self.progress = ScanProgress::default();
    }
}

/// Returns the length of the end of the text that may be the start of an address or a prefix, at most
/// [`MAX_WORD_BYTES`].
fn word_tail(text: &str) -> usize {
    let in_word = |b: &u8| b.is_ascii_alphanumeric() || b"-_.%+/".contains(b);
    text.bytes().rev().take(MAX_WORD_BYTES).take_while(in_word).count()
}

/// Returns the last character boundary at or before `at`.
fn char_boundary(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Returns the end of the text before the first complete line that cannot be part of a key, without its line break.
/// Returns `None` if there is no such line.
fn end_before_foreign_line(text: &str) -> Option<usize> {
    let mut start = 0;
    for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        if !pem::is_body_line(line) && !line.contains("-----END ") {
            return Some(start.max(1) - 1);
        }
        start += line.len();
    }
    None
}
