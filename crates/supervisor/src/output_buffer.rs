//! Buffers the output of an attempt. Keeps the head and the tail of each stream, with secrets redacted.
//!
//! The head is passed on as it arrives. Once the head is full, only the last bytes are kept in memory. Followers
//! receive parts of them as provisional output. At the end of the stream, the tail replaces the provisional output.

use std::collections::VecDeque;

use model::string_enum;
use redact::{RedactStream, Redactor};

string_enum! {
    pub enum StreamName {
        Stdout = "stdout",
        Stderr = "stderr",
        /// The output file of an agent.
        File = "file",
    }
}

/// The number of last bytes that are kept to classify failures.
const RECENT_BYTES: usize = 8 << 10;
/// The maximum size of one provisional output.
const MAX_PROVISIONAL_BYTES: usize = 32 << 10;
/// A follower that is at most this many provisional outputs behind receives everything that is stored, once.
const MAX_FOLLOWER_LAG: usize = 64;
/// The total size of stored provisional output. Beyond it, older provisional output is removed.
const MAX_STORED_PROVISIONAL: usize = 1 << 20;
/// The number of bytes by which the head may exceed its limit, so that its last line is complete.
const MAX_LINE_OVERRUN: usize = 64 << 10;
/// The maximum size of one piece of the tail.
const MAX_PIECE_BYTES: usize = 32 << 10;

/// The buffers of all streams of one attempt.
pub(crate) struct OutputBuffers {
    /// Indexed by [`StreamName`].
    all: [StreamBuffer; 3],
    redactor: Redactor,
}

struct StreamBuffer {
    redacting: RedactStream,
    /// Bytes received, before redaction.
    received: u64,
    /// The offset of the next text that is passed on. Offsets strictly increase.
    next_offset: u64,
    /// Bytes of the head that were passed on.
    passed: usize,
    /// The maximum size of the head.
    head_limit: usize,
    /// The maximum size of the head and the tail together.
    limit: usize,
    /// The number of bytes by which the head exceeds its limit, so that its last line is complete.
    overrun: usize,
    /// The last bytes received, before redaction.
    recent: VecDeque<u8>,
    /// `None` until the head is full.
    tail: Option<Tail>,
}

/// The last bytes of a stream with a full head.
struct Tail {
    /// The offset at which the head ended.
    start: u64,
    bytes: VecDeque<u8>,
    /// The maximum length of `bytes`.
    limit: usize,
    /// The offset up to which provisional output was published.
    published: u64,
    /// The start and end offsets of the last provisional outputs.
    boundaries: VecDeque<u64>,
    /// The offset up to which the bytes were redacted.
    scanned: u64,
    /// The offset of the first byte that was not published.
    next_offset: u64,
    /// The size of the stored provisional output.
    provisional_bytes: usize,
    redacting: RedactStream,
}

/// A part of the tail that followers receive before the end of the stream.
pub(crate) struct ProvisionalOutput {
    pub(crate) start: i64,
    /// The gap before it: the start offset and the number of bytes.
    pub(crate) gap: Option<(i64, u64)>,
    pub(crate) text: String,
    /// Stored events of the stream from this offset on have to be removed first.
    pub(crate) truncate_from: Option<i64>,
}

/// The output that remains to be stored when a stream ends.
#[derive(Default)]
pub(crate) struct RemainingOutput {
    /// Stored events of the stream from this offset on have to be removed first.
    pub(crate) truncate_from: Option<i64>,
    pub(crate) pieces: Vec<OutputPiece>,
}

pub(crate) enum OutputPiece {
    Gap { start: i64, bytes: u64 },
    Text { start: i64, text: String },
}

impl OutputBuffers {
    /// Returns empty buffers that keep at most `max` bytes of each stream, and up to [`MAX_LINE_OVERRUN`] more to
    /// complete the last line of the head.
    pub(crate) fn new(max: u64, redactor: &Redactor) -> Self {
        let limit = usize::try_from(max).unwrap_or(usize::MAX);
        let stream = || StreamBuffer {
            redacting: redactor.stream(),
            received: 0,
            next_offset: 0,
            passed: 0,
            head_limit: limit.div_ceil(2),
            limit,
            overrun: 0,
            recent: VecDeque::new(),
            tail: None,
        };
        Self { all: [stream(), stream(), stream()], redactor: redactor.clone() }
    }

    /// Replaces the redactor. Must be called before the first output.
    pub(crate) fn redact_with(&mut self, redactor: &Redactor) {
        self.redactor = redactor.clone();
        for stream in &mut self.all {
            stream.redacting = redactor.stream();
        }
    }

    /// Adds output of a stream. Returns the text that can be passed on and its offset. Returns `None` if the redactor
    /// holds back all of it, or if the head is already full: then the tail keeps the last bytes. If this output fills
    /// the head, returns the rest of the head, and the remaining bytes go to the tail. The head takes half of the limit
    /// and ends after a complete line where possible, see [`head_length`].
    pub(crate) fn push(&mut self, name: StreamName, bytes: &[u8]) -> Option<(i64, String)> {
        let redactor = self.redactor.clone();
        let stream = self.buffer(name);
        let is_inside_line = stream.recent.back().is_some_and(|byte| *byte != b'\n');
        stream.remember(bytes);
        if let Some(tail) = &mut stream.tail {
            stream.received += bytes.len() as u64;
            tail.push(bytes);
            return None;
        }
        // Text that the redactor holds back also counts against the limit.
        let used = stream.passed.max(usize::try_from(stream.received).unwrap_or(usize::MAX));
        let capacity = stream.head_limit.saturating_sub(used);
        let first = match bytes.len() <= capacity {
            true => bytes.len(),
            // The head is full and ends with a complete line.
            false if capacity == 0 && !is_inside_line => 0,
            false => head_length(bytes, capacity, stream.overrun),
        };
        let (first, rest) = bytes.split_at(first);
        stream.overrun += first.len().saturating_sub(capacity);
        let mut text = stream.redacting.push(first).to_owned();
        stream.received += first.len() as u64;
        if !rest.is_empty() {
            text.push_str(&stream.begin_tail(&redactor));
            stream.received += rest.len() as u64;
            if let Some(tail) = &mut stream.tail {
                tail.push(rest);
            }
        }
        // The redactor holds back at most the unfinished line.
        let held = first.iter().rev().position(|byte| *byte == b'\n').filter(|_| rest.is_empty()).unwrap_or(0);
        stream.pass(text, stream.received - (rest.len() + held) as u64)
    }

    /// Skips bytes of a stream that are not available. Ends the head and returns its rest with its offset, if any.
    /// Discards the tail so far. The following output belongs to the tail.
    pub(crate) fn skip(&mut self, name: StreamName, bytes: u64) -> Option<(i64, String)> {
        let redactor = self.redactor.clone();
        let stream = self.buffer(name);
        let text = if stream.tail.is_none() { stream.begin_tail(&redactor) } else { String::new() };
        let passed = stream.pass(text, stream.received);
        stream.received += bytes;
        if let Some(tail) = &mut stream.tail {
            tail.bytes.clear();
        }
        passed
    }

    /// Returns the part of an unfinished line that cannot contain part of a secret, and its offset. The redactor may
    /// hold back the rest. Returns `None` if there is no such part or the head is full.
    pub(crate) fn release_partial_line(&mut self, name: StreamName) -> Option<(i64, String)> {
        let stream = self.buffer(name);
        if stream.tail.is_some() {
            return None;
        }
        let text = stream.redacting.pause().to_owned();
        // The redactor may still hold back a part of the line.
        let next = stream.received.min(stream.next_offset + text.len() as u64);
        stream.pass(text, next)
    }

    /// Returns true if the head is full, so output is no longer passed on as it arrives.
    pub(crate) fn is_past_head(&self, name: StreamName) -> bool {
        self.all[name as usize].tail.is_some()
    }

    /// Returns true if bytes between the head and the tail of any stream were lost.
    pub(crate) fn is_truncated(&self) -> bool {
        self.all.iter().any(|stream| stream.tail.as_ref().is_some_and(|tail| tail.lost(stream.received) > 0))
    }

    /// Returns the number of bytes received on all streams.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.all.iter().map(|stream| stream.received).sum()
    }

    /// Returns the number of bytes that are stored of all streams.
    pub(crate) fn stored_bytes(&self) -> i64 {
        let of = |stream: &StreamBuffer| stream.passed + stream.tail.as_ref().map_or(0, |tail| tail.bytes.len());
        i64::try_from(self.all.iter().map(of).sum::<usize>()).unwrap_or(i64::MAX)
    }

    /// Returns the last bytes of a stream, redacted: at most `limit` and at most [`RECENT_BYTES`] of them.
    pub(crate) fn last(&mut self, name: StreamName, limit: usize) -> String {
        let stream = &mut self.all[name as usize];
        let bytes = stream.recent.make_contiguous();
        let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(limit)..]).replace('\0', "\u{fffd}");
        self.redactor.text(&text).into_owned()
    }

    /// Returns the next provisional output of a stream with a full head: the new complete lines, redacted, from the
    /// last [`MAX_PROVISIONAL_BYTES`] at most. Earlier lines that were not published become a gap. Once more than
    /// [`MAX_STORED_PROVISIONAL`] is stored, `truncate_from` removes all earlier provisional output, and the gap covers
    /// it. Returns `None` if the head is not full, no new line is complete, or the redactor holds back all of it.
    pub(crate) fn provisional_output(&mut self, name: StreamName) -> Option<ProvisionalOutput> {
        let redactor = self.redactor.clone();
        let stream = &mut self.all[name as usize];
        let tail = stream.tail.as_mut()?;
        let published = tail.published;
        let longest = MAX_PROVISIONAL_BYTES.min(tail.bytes.len());
        let is_cut = stream.received - tail.next_offset > longest as u64;
        let unscanned = usize::try_from(stream.received - tail.scanned).unwrap_or(usize::MAX).min(longest);
        let length = if is_cut { longest } else { unscanned };
        let last: Vec<u8> = tail.bytes.range(tail.bytes.len() - length..).copied().collect();
        let mut window = last.as_slice();
        // Only complete lines: a cut line could contain half a secret.
        let end = window.iter().rposition(|byte| *byte == b'\n')? + 1;
        let after = window.len() - end;
        window = &window[..end];
        if is_cut {
            let begin = window.iter().position(|byte| *byte == b'\n')? + 1;
            window = &window[begin..];
            tail.redacting = redactor.stream_from_middle();
            tail.next_offset = stream.received - (window.len() + after) as u64;
        }
        tail.scanned = stream.received - after as u64;
        let text = tail.redacting.push(window).to_owned();
        if text.is_empty() {
            return None;
        }
        let start = tail.next_offset;
        (tail.published, tail.next_offset) = (tail.scanned, tail.scanned);
        if tail.boundaries.len() >= 2 * MAX_FOLLOWER_LAG {
            tail.boundaries.drain(..2);
        }
        tail.boundaries.extend([start, tail.published]);
        tail.provisional_bytes += text.len();
        let is_full = tail.provisional_bytes > MAX_STORED_PROVISIONAL;
        let mut from = published;
        if is_full {
            tail.provisional_bytes = text.len();
            from = tail.start;
        }
        let gap = (start > from).then(|| (position(from), start - from));
        let truncate_from = is_full.then(|| position(tail.start));
        Some(ProvisionalOutput { start: position(start), gap, text, truncate_from })
    }

    /// Ends a stream and returns the output that remains to be stored. Without a tail, this is the text that the
    /// redactor has held back. With a tail, it is a gap for the lost bytes and then the tail, redacted, in pieces of at
    /// most [`MAX_PIECE_BYTES`]. `truncate_from` removes the provisional output. After a gap, the rest of the first
    /// line is left out and counts for the gap, if the tail has more than one line. Pieces end where provisional
    /// outputs began or ended, so that followers recognise them.
    pub(crate) fn finish(&mut self, name: StreamName) -> RemainingOutput {
        let redactor = self.redactor.clone();
        let stream = self.buffer(name);
        let Some(tail) = &mut stream.tail else {
            let text = stream.finish(&redactor);
            let text = stream.pass(text, stream.received).map(|(start, text)| OutputPiece::Text { start, text });
            return RemainingOutput { truncate_from: None, pieces: text.into_iter().collect() };
        };
        let lost = tail.lost(stream.received);
        let bytes = tail.bytes.make_contiguous();
        let skipped = match lost {
            0 => 0,
            // A line that is cut in the middle could contain half a secret.
            _ => bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1),
        };
        let mut pieces = Vec::new();
        if lost > 0 {
            pieces.push(OutputPiece::Gap { start: position(tail.start), bytes: lost + skipped as u64 });
        }
        let mut redacting = redactor.stream_from_middle();
        let first = stream.received - (bytes.len() - skipped) as u64;
        let mut at = first;
        let mut start = first;
        while at < stream.received {
            let rest = &bytes[bytes.len() - usize::try_from(stream.received - at).unwrap_or(0)..];
            // Pieces end at the boundaries of provisional outputs, so that followers recognise delivered output.
            while tail.boundaries.front().is_some_and(|boundary| *boundary <= at) {
                tail.boundaries.pop_front();
            }
            let boundary = tail.boundaries.front().copied().unwrap_or(u64::MAX);
            let length = rest.len().min(MAX_PIECE_BYTES).min(usize::try_from(boundary - at).unwrap_or(usize::MAX));
            let piece = &rest[..length];
            let text = redacting.push(piece).to_owned();
            at += length as u64;
            if !text.is_empty() {
                pieces.push(OutputPiece::Text { start: position(start), text });
                // The redactor holds back at most the unfinished line.
                start = at - piece.iter().rev().position(|byte| *byte == b'\n').unwrap_or(0) as u64;
            }
        }
        let text = redacting.finish();
        if !text.is_empty() {
            pieces.push(OutputPiece::Text { start: position(start), text });
        }
        RemainingOutput { truncate_from: Some(position(tail.start)), pieces }
    }

    fn buffer(&mut self, name: StreamName) -> &mut StreamBuffer {
        &mut self.all[name as usize]
    }
}

impl StreamBuffer {
    /// Returns the text that the redactor has held back, and starts a new redaction stream.
    fn finish(&mut self, redactor: &Redactor) -> String {
        std::mem::replace(&mut self.redacting, redactor.stream()).finish()
    }

    /// Ends the head at the bytes received so far and starts an empty tail with the rest of the limit. Returns the rest
    /// of the head, which the redactor has held back.
    fn begin_tail(&mut self, redactor: &Redactor) -> String {
        let start = self.received;
        let limit = self.limit - self.head_limit;
        // The previous line is complete, but a private key of many lines may continue.
        let redacting = redactor.stream_from_middle();
        self.tail = Some(Tail {
            start,
            bytes: VecDeque::new(),
            limit,
            published: start,
            boundaries: VecDeque::new(),
            scanned: start,
            next_offset: start,
            provisional_bytes: 0,
            redacting,
        });
        self.finish(redactor)
    }

    /// Returns the text with its offset and counts it as stored. Returns `None` for an empty text. `next` is the offset
    /// of the next text.
    fn pass(&mut self, text: String, next: u64) -> Option<(i64, String)> {
        if text.is_empty() {
            return None;
        }
        self.passed += text.len();
        let start = self.next_offset;
        self.next_offset = next.max(start + 1);
        Some((position(start), text))
    }

    /// Adds bytes to `recent`, which keeps the last [`RECENT_BYTES`].
    fn remember(&mut self, bytes: &[u8]) {
        let last = &bytes[bytes.len().saturating_sub(RECENT_BYTES)..];
        let excess = (self.recent.len() + last.len()).saturating_sub(RECENT_BYTES);
        self.recent.drain(..excess);
        self.recent.extend(last);
    }
}

impl Tail {
    /// Adds bytes. The oldest bytes beyond the limit are dropped.
    fn push(&mut self, bytes: &[u8]) {
        let last = &bytes[bytes.len().saturating_sub(self.limit)..];
        let excess = (self.bytes.len() + last.len()).saturating_sub(self.limit);
        self.bytes.drain(..excess);
        self.bytes.extend(last);
    }

    /// Returns the number of bytes lost between the head and the tail.
    fn lost(&self, received: u64) -> u64 {
        received - self.start - self.bytes.len() as u64
    }
}

/// Returns the number of bytes that belong to the head. `capacity` is the number of bytes that the head still accepts,
/// and `overrun` the number by which it already exceeds its limit.
///
/// The head ends after the last complete line within `capacity`, so that no secret is cut in two. Without one, it takes
/// the first line completely, if the head exceeds its limit by at most [`MAX_LINE_OVERRUN`] then. A longer line is cut
/// after the last space within `capacity`, or left out if there is none.
fn head_length(bytes: &[u8], capacity: usize, overrun: usize) -> usize {
    let (first, rest) = bytes.split_at(capacity.min(bytes.len()));
    if let Some(at) = first.iter().rposition(|byte| *byte == b'\n') {
        return at + 1;
    }
    let line = rest.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| capacity + at + 1);
    if overrun + line - capacity <= MAX_LINE_OVERRUN {
        return line;
    }
    first.iter().rposition(u8::is_ascii_whitespace).map_or(0, |at| at + 1)
}

/// Returns the offset as it is stored, limited to the largest `i64`.
fn position(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
