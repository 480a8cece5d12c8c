//! What a run says, as far as it is kept: the beginning and the end of each stream, without secrets.
//!
//! The beginning is passed on as it comes. Once it is full only the last bytes are held in memory; followers get
//! glimpses of them, and at the end they take the place of the glimpses.

use std::collections::VecDeque;

use model::plain_words;
use redact::{Redactor, Stream as Redacting};

plain_words! {
    pub enum Name {
        Stdout = "stdout",
        Stderr = "stderr",
        /// The file that an agent writes its answer to.
        File = "file",
    }
}

/// How much of the last words is at hand for finding out what went wrong.
const RECENT: usize = 8 << 10;
/// What followers see at once of output that comes faster than it can be kept.
const GLIMPSE: usize = 32 << 10;
/// A follower may be so many glimpses behind and still hears everything that is kept, once.
const BEHIND: usize = 64;
/// How much of it is kept meanwhile.
const MAX_GLIMPSES: usize = 1 << 20;
/// By how much the beginning may be too long for its last line to be whole.
const LONGEST_LINE: usize = 64 << 10;
/// The longest piece of the end, and of what followers see at once.
const PIECE: usize = 32 << 10;

pub(crate) struct Streams {
    all: [Stream; 3],
    redactor: Redactor,
}

struct Stream {
    redacting: Redacting,
    /// In bytes as they came.
    seen: u64,
    /// Where the next text begins that is passed on, later than all before it.
    next: u64,
    /// How much of the beginning has been passed on, and how much may be.
    passed: usize,
    head: usize,
    limit: usize,
    /// By how much the beginning is longer, so that its last line is whole.
    over: usize,
    recent: VecDeque<u8>,
    tail: Option<Tail>,
}

/// The last bytes of a stream whose beginning is full.
struct Tail {
    /// Where the beginning ended.
    from: u64,
    bytes: VecDeque<u8>,
    limit: usize,
    /// How far followers were shown it, and where what they saw last began and ended.
    shown: u64,
    borders: VecDeque<u64>,
    /// How far it was looked through for them, and where that begins of which nothing was shown.
    read: u64,
    next: u64,
    glimpses: usize,
    redacting: Redacting,
}

/// What followers are shown of output that is not kept yet.
pub(crate) struct Glimpse {
    pub(crate) start: i64,
    /// What is left out before it: from where, and how many bytes.
    pub(crate) gap: Option<(i64, u64)>,
    pub(crate) text: String,
    pub(crate) drop_from: Option<i64>,
}

/// What is left when a stream ends.
#[derive(Default)]
pub(crate) struct Rest {
    pub(crate) drop_from: Option<i64>,
    pub(crate) pieces: Vec<Piece>,
}

pub(crate) enum Piece {
    Gap { start: i64, bytes: u64 },
    Text { start: i64, text: String },
}

impl Streams {
    /// Keeps at most `max` bytes of each.
    pub(crate) fn new(max: u64, redactor: &Redactor) -> Self {
        let limit = usize::try_from(max).unwrap_or(usize::MAX);
        let stream = || Stream {
            redacting: redactor.stream(),
            seen: 0,
            next: 0,
            passed: 0,
            head: limit.div_ceil(2),
            limit,
            over: 0,
            recent: VecDeque::new(),
            tail: None,
        };
        Self { all: [stream(), stream(), stream()], redactor: redactor.clone() }
    }

    /// From now on; nothing may have been said yet.
    pub(crate) fn redact_with(&mut self, redactor: &Redactor) {
        self.redactor = redactor.clone();
        for stream in &mut self.all {
            stream.redacting = redactor.stream();
        }
    }

    /// What can be passed on, and where it begins.
    pub(crate) fn push(&mut self, name: Name, bytes: &[u8]) -> Option<(i64, String)> {
        let redactor = self.redactor.clone();
        let stream = self.of(name);
        let in_a_line = stream.recent.back().is_some_and(|byte| *byte != b'\n');
        stream.remember(bytes);
        if let Some(tail) = &mut stream.tail {
            stream.seen += bytes.len() as u64;
            tail.push(bytes);
            return None;
        }
        // What is held back takes its room too.
        let taken = stream.passed.max(usize::try_from(stream.seen).unwrap_or(usize::MAX));
        let room = stream.head.saturating_sub(taken);
        let first = match bytes.len() <= room {
            true => bytes.len(),
            // Full, and no line has begun that is to be whole.
            false if room == 0 && !in_a_line => 0,
            false => cut(bytes, room, stream.over),
        };
        let (first, rest) = bytes.split_at(first);
        stream.over += first.len().saturating_sub(room);
        let mut text = stream.redacting.push(first).to_owned();
        stream.seen += first.len() as u64;
        if !rest.is_empty() {
            text.push_str(&stream.begin_tail(&redactor));
            stream.seen += rest.len() as u64;
            if let Some(tail) = &mut stream.tail {
                tail.push(rest);
            }
        }
        // What is held back is at most the line that has not ended.
        let held = first.iter().rev().position(|byte| *byte == b'\n').filter(|_| rest.is_empty()).unwrap_or(0);
        stream.pass(text, stream.seen - (rest.len() + held) as u64)
    }

    /// So much came that is not kept: what follows is its end.
    pub(crate) fn skip(&mut self, name: Name, bytes: u64) -> Option<(i64, String)> {
        let redactor = self.redactor.clone();
        let stream = self.of(name);
        let text = if stream.tail.is_none() { stream.begin_tail(&redactor) } else { String::new() };
        let passed = stream.pass(text, stream.seen);
        stream.seen += bytes;
        if let Some(tail) = &mut stream.tail {
            tail.bytes.clear();
        }
        passed
    }

    /// What was held back and can be shown.
    pub(crate) fn pause(&mut self, name: Name) -> Option<(i64, String)> {
        let stream = self.of(name);
        if stream.tail.is_some() {
            return None;
        }
        let text = stream.redacting.pause().to_owned();
        // Some of the line may still be held back.
        let next = stream.seen.min(stream.next + text.len() as u64);
        stream.pass(text, next)
    }

    /// Whether more is not kept as it comes.
    pub(crate) fn is_past_head(&self, name: Name) -> bool {
        self.all[name as usize].tail.is_some()
    }

    pub(crate) fn is_truncated(&self) -> bool {
        self.all.iter().any(|stream| stream.tail.as_ref().is_some_and(|tail| tail.lost(stream.seen) > 0))
    }

    /// How many bytes came.
    pub(crate) fn heard(&self) -> u64 {
        self.all.iter().map(|stream| stream.seen).sum()
    }

    /// How many bytes are kept.
    pub(crate) fn kept(&self) -> i64 {
        let of = |stream: &Stream| stream.passed + stream.tail.as_ref().map_or(0, |tail| tail.bytes.len());
        i64::try_from(self.all.iter().map(of).sum::<usize>()).unwrap_or(i64::MAX)
    }

    /// The end of what was said, as it may be kept.
    pub(crate) fn last(&mut self, name: Name, most: usize) -> String {
        let stream = &mut self.all[name as usize];
        let bytes = stream.recent.make_contiguous();
        let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(most)..]).replace('\0', "\u{fffd}");
        self.redactor.text(&text).into_owned()
    }

    pub(crate) fn glimpse(&mut self, name: Name) -> Option<Glimpse> {
        let redactor = self.redactor.clone();
        let stream = &mut self.all[name as usize];
        let tail = stream.tail.as_mut()?;
        let shown = tail.shown;
        let longest = GLIMPSE.min(tail.bytes.len());
        let cut_off = stream.seen - tail.next > longest as u64;
        let fresh = usize::try_from(stream.seen - tail.read).unwrap_or(usize::MAX).min(longest);
        let most = if cut_off { longest } else { fresh };
        let last: Vec<u8> = tail.bytes.range(tail.bytes.len() - most..).copied().collect();
        let mut window = last.as_slice();
        // Whole lines only: what is cut could be half a secret.
        let end = window.iter().rposition(|byte| *byte == b'\n')? + 1;
        let after = window.len() - end;
        window = &window[..end];
        if cut_off {
            let begin = window.iter().position(|byte| *byte == b'\n')? + 1;
            window = &window[begin..];
            tail.redacting = redactor.stream_from_middle();
            tail.next = stream.seen - (window.len() + after) as u64;
        }
        tail.read = stream.seen - after as u64;
        let text = tail.redacting.push(window).to_owned();
        if text.is_empty() {
            return None;
        }
        let start = tail.next;
        (tail.shown, tail.next) = (tail.read, tail.read);
        if tail.borders.len() >= 2 * BEHIND {
            tail.borders.drain(..2);
        }
        tail.borders.extend([start, tail.shown]);
        tail.glimpses += text.len();
        let full = tail.glimpses > MAX_GLIMPSES;
        let mut from = shown;
        if full {
            tail.glimpses = text.len();
            from = tail.from;
        }
        let gap = (start > from).then(|| (position(from), start - from));
        Some(Glimpse { start: position(start), gap, text, drop_from: full.then(|| position(tail.from)) })
    }

    pub(crate) fn finish(&mut self, name: Name) -> Rest {
        let redactor = self.redactor.clone();
        let stream = self.of(name);
        let Some(tail) = &mut stream.tail else {
            let text = stream.finish(&redactor);
            let text = stream.pass(text, stream.seen).map(|(start, text)| Piece::Text { start, text });
            return Rest { drop_from: None, pieces: text.into_iter().collect() };
        };
        let lost = tail.lost(stream.seen);
        let bytes = tail.bytes.make_contiguous();
        let skipped = match lost {
            0 => 0,
            // What was cut in the middle of a line could be half a secret.
            _ => bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1),
        };
        let mut pieces = Vec::new();
        if lost > 0 {
            pieces.push(Piece::Gap { start: position(tail.from), bytes: lost + skipped as u64 });
        }
        let mut redacting = redactor.stream_from_middle();
        let first = stream.seen - (bytes.len() - skipped) as u64;
        let mut at = first;
        let mut start = first;
        while at < stream.seen {
            let rest = &bytes[bytes.len() - usize::try_from(stream.seen - at).unwrap_or(0)..];
            // What followers have seen last is a piece of its own, so that they can tell it from what is new.
            while tail.borders.front().is_some_and(|border| *border <= at) {
                tail.borders.pop_front();
            }
            let border = tail.borders.front().copied().unwrap_or(u64::MAX);
            let length = rest.len().min(PIECE).min(usize::try_from(border - at).unwrap_or(usize::MAX));
            let piece = &rest[..length];
            let text = redacting.push(piece).to_owned();
            at += length as u64;
            if !text.is_empty() {
                pieces.push(Piece::Text { start: position(start), text });
                // What is held back is at most the line that has not ended.
                start = at - piece.iter().rev().position(|byte| *byte == b'\n').unwrap_or(0) as u64;
            }
        }
        let text = redacting.finish();
        if !text.is_empty() {
            pieces.push(Piece::Text { start: position(start), text });
        }
        Rest { drop_from: Some(position(tail.from)), pieces }
    }

    fn of(&mut self, name: Name) -> &mut Stream {
        &mut self.all[name as usize]
    }
}

impl Stream {
    /// What was held back to the last.
    fn finish(&mut self, redactor: &Redactor) -> String {
        std::mem::replace(&mut self.redacting, redactor.stream()).finish()
    }

    /// The beginning is full.
    fn begin_tail(&mut self, redactor: &Redactor) -> String {
        let from = self.seen;
        let limit = self.limit - self.head;
        // The line before is whole, but a key of many lines may go on.
        let redacting = redactor.stream_from_middle();
        self.tail = Some(Tail {
            from,
            bytes: VecDeque::new(),
            limit,
            shown: from,
            borders: VecDeque::new(),
            read: from,
            next: from,
            glimpses: 0,
            redacting,
        });
        self.finish(redactor)
    }

    /// Passes a text on; the next begins at `next`.
    fn pass(&mut self, text: String, next: u64) -> Option<(i64, String)> {
        if text.is_empty() {
            return None;
        }
        self.passed += text.len();
        let start = self.next;
        self.next = next.max(start + 1);
        Some((position(start), text))
    }

    fn remember(&mut self, bytes: &[u8]) {
        let last = &bytes[bytes.len().saturating_sub(RECENT)..];
        let excess = (self.recent.len() + last.len()).saturating_sub(RECENT);
        self.recent.drain(..excess);
        self.recent.extend(last);
    }
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        let last = &bytes[bytes.len().saturating_sub(self.limit)..];
        let excess = (self.bytes.len() + last.len()).saturating_sub(self.limit);
        self.bytes.drain(..excess);
        self.bytes.extend(last);
    }

    /// How many bytes between the beginning and the end are gone.
    fn lost(&self, seen: u64) -> u64 {
        seen - self.from - self.bytes.len() as u64
    }
}

/// Where to divide what does not fit: behind a line, so that no secret is cut in two. A line that has no end in sight
/// is cut behind a word.
fn cut(bytes: &[u8], room: usize, over: usize) -> usize {
    let (first, rest) = bytes.split_at(room.min(bytes.len()));
    if let Some(at) = first.iter().rposition(|byte| *byte == b'\n') {
        return at + 1;
    }
    let line = rest.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| room + at + 1);
    if over + line - room <= LONGEST_LINE {
        return line;
    }
    first.iter().rposition(u8::is_ascii_whitespace).map_or(0, |at| at + 1)
}

fn position(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
