//! Redacts a stream of bytes in pieces: the output of a process.
//!
//! What it returns, put together, is what [`Redactor::text`] makes of the whole, however the stream is cut and whenever
//! it pauses. Only these differ, and only by hiding more: when one undecided thing is longer than `LIMIT` (a value
//! without an end), the rest of its line becomes one mark; a key without an END ends at the first line that cannot be
//! part of one after `LONGEST_KEY` bytes. A stream that begins in the middle may begin in a key: nothing is shown before a
//! line that is none of a key's, or so many that are too short for one.
//!
//! Never holds more than twice `LIMIT` and the longest known value, never looks twice at what is settled, and never
//! shows what more text could still turn into a secret.

mod decode;
#[cfg(test)]
mod tests;

use std::cell::Cell;

use super::scan::{self, Bytes, Scan, State};
use super::{MARK, Redactor, Trigger, pem};
use decode::Decoder;

/// A line is held until it ends, unless it is longer than this.
const LIMIT: usize = 64 * 1024;
/// A private key is looked for its END this far, in bytes.
const LONGEST_KEY: usize = 64 * 1024;
/// How far anything looks back from where it begins: at most a name of 64 bytes and what stands before it.
const CONTEXT: usize = 192;
/// No e-mail address' local part, and no prefix that is hidden itself, is longer.
const LONGEST_WORD: usize = 64;

/// A stream that is being redacted; see [`Redactor::stream`].
pub struct Stream {
    redactor: Redactor,
    decoder: Decoder,
    /// What may be the beginning of a known value, and whether a backslash stands before it.
    unknown: String,
    after_slash: bool,
    /// Some context that was shown, what is undecided, and what was not looked at yet.
    held: String,
    pass: Pass,
    mode: Mode,
    out: String,
}

/// How far the pass over the held text came.
#[derive(Default)]
struct Pass {
    state: State,
    /// Literals that end up to here were looked at.
    seen: usize,
    /// Up to here the text was shown, or something in its place.
    shown: usize,
    /// Whether only something else than white space can settle the line before.
    waits: bool,
    /// How much was held when the stream paused.
    paused: usize,
}

enum Mode {
    Text,
    /// The stream began with lines of a private key, perhaps: those before this position.
    Middle {
        line: usize,
        dropped: bool,
    },
    /// In a private key, whose mark was shown.
    Key {
        looked: usize,
        dropped: usize,
    },
    /// In a line too long to be understood, whose mark was shown.
    Blotted,
}

#[derive(Clone, Copy, PartialEq)]
enum End {
    /// The text ends with a line.
    Line,
    /// The text ends anywhere.
    Open,
    /// There is no more text.
    Last,
}

impl Stream {
    pub(super) fn new(redactor: Redactor, from_middle: bool) -> Stream {
        Stream {
            redactor,
            decoder: Decoder::default(),
            unknown: String::new(),
            after_slash: false,
            held: String::new(),
            pass: Pass::default(),
            mode: if from_middle { Mode::Middle { line: 0, dropped: false } } else { Mode::Text },
            out: String::new(),
        }
    }

    /// Takes what came and returns what can be shown now: the lines that ended.
    pub fn push(&mut self, bytes: &[u8]) -> &str {
        self.out.clear();
        for piece in bytes.chunks(LIMIT) {
            let new = self.held.len();
            self.take(piece);
            self.advance(new, false);
        }
        &self.out
    }

    /// Nothing came for a while: also returns what is certain of the unfinished line, such as a prompt. Takes the time
    /// of one look at what is held, and none when nothing came since the last pause.
    pub fn pause(&mut self) -> &str {
        self.out.clear();
        if let Mode::Middle { line, dropped: false } = self.mode {
            let begun = self.held.get(line..).unwrap_or_default();
            if !pem::in_body(begun) && !begun.contains("--") && !begun.ends_with('-') {
                self.mode = Mode::Text;
            }
        }
        if matches!(self.mode, Mode::Text) && self.pass.paused != self.held.len() {
            self.look(self.held.len(), End::Open);
            self.pass.paused = self.held.len();
        }
        &self.out
    }

    /// The stream ended: returns all that is left.
    pub fn finish(mut self) -> String {
        self.out.clear();
        let new = self.held.len();
        self.decoder.finish(&mut self.unknown);
        self.redactor.known.settle(&self.unknown, self.after_slash, true, &mut self.held);
        self.advance(new, true);
        self.out
    }

    fn take(&mut self, bytes: &[u8]) {
        let known = &self.redactor.known;
        if known.is_empty() {
            return self.decoder.push(bytes, &mut self.held);
        }
        self.decoder.push(bytes, &mut self.unknown);
        let settled = known.settle(&self.unknown, self.after_slash, false, &mut self.held);
        if let Some(last) = self.unknown.as_bytes()[..settled].last() {
            self.after_slash = *last == b'\\';
            self.unknown.drain(..settled);
        }
    }

    /// Looks at what is held, of which everything from `new` on just came.
    fn advance(&mut self, new: usize, last: bool) {
        let mut new = Some(new);
        while let Some(from) = new {
            new = match self.mode {
                Mode::Text => self.in_text(from, last),
                Mode::Middle { line, dropped } => self.in_middle(from, line, dropped, last),
                Mode::Key { looked, dropped } => self.in_key(looked, dropped, last),
                Mode::Blotted => self.in_blotted(),
            };
        }
    }

    /// Like the others of its kind, returns where to go on when another mode begins.
    fn in_text(&mut self, new: usize, last: bool) -> Option<usize> {
        let came = &self.held[new..];
        self.pass.waits &= came.trim_ascii().is_empty();
        let line = came.rfind('\n').filter(|_| !self.pass.waits);
        match line {
            _ if last => self.look(self.held.len(), End::Last),
            Some(at) => self.look(new + at + 1, End::Line),
            None => {}
        }
        if matches!(self.mode, Mode::Text) && self.held.len() > LIMIT {
            self.look(self.held.len(), End::Open);
            if matches!(self.mode, Mode::Text) && self.held.len() > LIMIT / 2 {
                return self.blot();
            }
        }
        (!matches!(self.mode, Mode::Text)).then_some(0)
    }

    /// Passes over the held text up to `end`, shows what is certain and forgets what nothing looks back at.
    fn look(&mut self, end: usize, kind: End) {
        let text = &self.held[..end];
        let ended = Cell::new(false);
        let mut scan = Scan::new(text, std::mem::take(&mut self.pass.state), &ended);
        let mut open = None;
        for hit in self.redactor.finder.find_overlapping_iter(text) {
            if hit.end() <= self.pass.seen {
                continue;
            }
            scan.reaches(hit.start());
            let hidden = scan.hidden.len();
            let state = scan.state.clone();
            self.redactor.look(&mut scan, hit);
            if scan.bytes.take_ended() && kind != End::Last {
                scan.back_to(hidden, state);
                open = Some(hit);
                break;
            }
        }
        let key = open
            .filter(|hit| matches!(self.redactor.triggers[hit.pattern()], Trigger::Pem))
            .and_then(|hit| pem::private_label(scan.bytes, hit.end()));
        let mut until = if kind == End::Open { end - word_tail(text) } else { end };
        match open {
            Some(hit) => until = until.min(self.redactor.least_start(&scan, hit)),
            None if kind != End::Open => _ = scan.reaches(end),
            None => {}
        }
        until = scan.state.later.as_ref().map_or(until, |later| until.min(later.start));
        if open.is_some() && key.is_none() && kind == End::Line {
            until = text[..until].rfind('\n').map_or(0, |at| at + 1).max(self.pass.shown);
        }
        until = until.max(scan.done());
        scan::show(text, self.pass.shown.max(scan.state.hidden_on), &scan.hidden, until, &mut self.out);
        if let (Some(hit), Some(body)) = (open, key) {
            if scan.done() <= hit.start() {
                self.out.push_str(MARK);
            }
            self.mode = Mode::Key { looked: 0, dropped: 0 };
            return self.forget(body);
        }
        let kept = open.map_or(until, |hit| until.min(hit.start()));
        let gone = match open {
            None if kind != End::Open => end,
            _ => boundary(text, kept.saturating_sub(CONTEXT)),
        };
        self.pass = Pass {
            state: scan.state.moved(gone),
            seen: open.map_or(end, |hit| hit.end() - 1) - gone,
            shown: until - gone,
            waits: open.is_some() && kind == End::Line,
            paused: 0,
        };
        self.held.drain(..gone);
    }

    /// Too much is undecided: leaves out white space that was shown, or hides the rest of the line.
    fn blot(&mut self) -> Option<usize> {
        let (kept, blank) = self.held.split_at(self.held.trim_ascii_end().len());
        if self.pass.shown == self.held.len() && kept.len() < LIMIT / 4 {
            let blank = if blank.contains('\n') { '\n' } else { ' ' };
            self.held.truncate(kept.len());
            self.held.push(blank);
            self.pass.shown = self.held.len();
            return None;
        }
        self.out.push_str(MARK);
        self.forget(self.pass.shown);
        self.mode = Mode::Blotted;
        Some(0)
    }

    fn in_blotted(&mut self) -> Option<usize> {
        let line = self.held.find('\n').unwrap_or(self.held.len());
        let begin = self.held[..line].find(pem::BEGIN);
        let ended = Cell::new(false);
        let bytes = Bytes::new(self.held.as_bytes(), &ended);
        if let Some(body) = begin.and_then(|begin| pem::private_label(bytes, begin + pem::BEGIN.len())) {
            self.mode = Mode::Key { looked: 0, dropped: 0 };
            self.forget(body);
        } else if line < self.held.len() {
            self.mode = Mode::Text;
            self.forget(line);
        } else {
            // A BEGIN may have begun.
            self.forget(boundary(&self.held, line.saturating_sub(CONTEXT)));
            return None;
        }
        Some(0)
    }

    fn in_key(&mut self, looked: usize, dropped: usize, last: bool) -> Option<usize> {
        let ended = Cell::new(false);
        let end = pem::end(Bytes::new(self.held.as_bytes(), &ended), 0, looked);
        let over =
            if dropped > LONGEST_KEY && self.held[looked..].contains('\n') { foreign_line(&self.held) } else { None };
        if let Some(end) = over.or((last || !ended.get()).then_some(end.at)) {
            self.forget(end);
            self.mode = Mode::Text;
            return Some(0);
        }
        // The last line is kept, since it may turn out to be none of the key's.
        let line = self.held[looked..end.looked].rfind('\n').map(|at| looked + at);
        let gone = line.unwrap_or(if self.held.len() > LIMIT { end.looked } else { 0 });
        self.forget(gone);
        self.mode = Mode::Key { looked: end.looked - gone, dropped: dropped + gone };
        None
    }

    fn in_middle(&mut self, new: usize, mut line: usize, mut dropped: bool, last: bool) -> Option<usize> {
        let mut searched = new.max(line);
        loop {
            let end = match self.held[searched..].find('\n') {
                Some(at) => searched + at + 1,
                None if last => self.held.len(),
                None => break,
            };
            let text = &self.held[line..end];
            let ended = Cell::new(false);
            let orphan = pem::orphan_end(Bytes::new(text.as_bytes(), &ended));
            let over = line == end;
            if orphan.is_some() || over || !pem::in_body(text) {
                if orphan.is_some() || dropped {
                    self.out.push_str(MARK);
                }
                if let Some(orphan) = orphan {
                    self.forget(line + orphan);
                } else if dropped {
                    self.out.push('\n');
                    self.forget(line);
                }
                self.mode = Mode::Text;
                return Some(0);
            }
            (line, searched) = (end, end);
        }
        if self.held.len() > LONGEST_KEY {
            // No key has such a line, or lines that are so short.
            if line == 0 || !pem::fills_lines(&self.held[..line]) {
                if dropped {
                    self.out.push_str(MARK);
                    self.out.push('\n');
                }
                self.mode = Mode::Text;
                return Some(0);
            }
            self.forget(line);
            (line, dropped) = (0, true);
        }
        self.mode = Mode::Middle { line, dropped };
        None
    }

    /// Begins anew with what is held from `at` on.
    fn forget(&mut self, at: usize) {
        self.held.drain(..at);
        self.pass = Pass::default();
    }
}

/// How much at the end of the text may be the beginning of something that is hidden from its beginning.
fn word_tail(text: &str) -> usize {
    let in_word = |b: &u8| b.is_ascii_alphanumeric() || b"-_.%+/".contains(b);
    text.bytes().rev().take(LONGEST_WORD).take_while(in_word).count()
}

/// The last position up to `at` at which a character begins.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The end of the line before the first whole one that no key contains.
fn foreign_line(text: &str) -> Option<usize> {
    let mut start = 0;
    for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        if !pem::in_body(line) && !line.contains("-----END ") {
            return Some(start.max(1) - 1);
        }
        start += line.len();
    }
    None
}
