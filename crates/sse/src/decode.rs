//! Decodes events from chunks of bytes. Each byte is read once. Chunk boundaries may be anywhere.

use std::time::Duration;

use bytes::{Buf, Bytes};
use memchr::{memchr, memchr2};

use crate::SseEvent;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The maximum number of bytes of ignored lines that are stored.
const IGNORED_LIMIT: usize = 500;

/// The maximum sizes that an [`SseDecoder`] accepts, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct SseLimits {
    /// The data of one event plus the current line.
    pub event: usize,
    /// The whole stream.
    pub total: usize,
}

impl SseLimits {
    /// Returns a limit for each event and no limit for the stream.
    pub const fn per_event(event: usize) -> Self {
        Self { event, total: usize::MAX }
    }
}

/// The error of an exceeded limit. The rest of the stream cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    #[error("an event is larger than {0} bytes")]
    Event(usize),
    #[error("the stream is larger than {0} bytes")]
    Stream(usize),
}

/// An incremental decoder.
///
/// Call [`push`](Self::push) with each chunk, then [`advance`](Self::advance) until it returns `false`. Each time it
/// returns `true`, [`event`](Self::event) is the next event.
#[derive(Debug)]
pub struct SseDecoder {
    limits: SseLimits,
    received: usize,
    /// The part of the last chunk that was not read yet.
    chunk: Bytes,
    /// The start of an incomplete line.
    line: Vec<u8>,
    /// The last line ended with `\r`, so a following `\n` belongs to it.
    after_return: bool,
    /// The first line was read, so a byte order mark is no longer removed.
    started: bool,
    fields: EventFields,
    last_id: Option<String>,
}

/// The fields of the current or last event.
#[derive(Debug, Default)]
struct EventFields {
    id: Option<String>,
    name: String,
    data: Vec<u8>,
    has_data: bool,
    /// The event was returned, so the next line starts another one.
    complete: bool,
    retry: Option<Duration>,
    ignored: Vec<u8>,
}

impl SseDecoder {
    /// Returns a decoder for a new stream. It has read no bytes. A byte order mark at the start of the stream is
    /// skipped.
    pub fn new(limits: SseLimits) -> Self {
        Self {
            limits,
            received: 0,
            chunk: Bytes::new(),
            line: Vec::new(),
            after_return: false,
            started: false,
            fields: EventFields::default(),
            last_id: None,
        }
    }

    /// Adds the next chunk after the unread rest of the previous one. Fails if all chunks so far, with this one, exceed
    /// the limit of the stream. Then the chunk is not added.
    pub fn push(&mut self, chunk: Bytes) -> Result<(), TooLarge> {
        self.received = self.received.saturating_add(chunk.len());
        if self.received > self.limits.total {
            return Err(TooLarge::Stream(self.limits.total));
        }
        self.chunk = if self.chunk.is_empty() { chunk } else { [&*self.chunk, &*chunk].concat().into() };
        Ok(())
    }

    /// Reads up to the end of the next event. Returns `true` if an event is complete, and `false` if all bytes are read
    /// and more are needed. Lines end with `\n`, `\r` or `\r\n`. Blocks without data are skipped.
    ///
    /// Fails if the data of the event plus the current line exceed the limit of an event. The line counts with its
    /// field name, and also if it is a comment or incomplete.
    pub fn advance(&mut self) -> Result<bool, TooLarge> {
        while let Some(first) = self.chunk.first() {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                self.chunk.advance(1);
                continue;
            }
            let end = memchr2(b'\n', b'\r', &self.chunk);
            let part = self.chunk.split_to(end.unwrap_or(self.chunk.len()));
            let data_len = if self.fields.complete { 0 } else { self.fields.data.len() };
            if self.line.len() + part.len() + data_len > self.limits.event {
                return Err(TooLarge::Event(self.limits.event));
            }
            if end.is_none() {
                self.line.extend_from_slice(&part);
                break;
            }
            self.after_return = self.chunk.get_u8() == b'\r';
            // Most lines are complete in one chunk and are not copied.
            let complete = if self.line.is_empty() {
                self.end_line(&part)
            } else {
                self.line.extend_from_slice(&part);
                self.end_buffered_line()
            };
            if complete {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads the rest at the end of the stream. Returns `true` if it is an event.
    ///
    /// The specification discards an event without a final empty line. Some servers omit that line, so the caller can
    /// accept such an event.
    pub fn finish(&mut self) -> bool {
        let complete = !self.line.is_empty() && self.end_buffered_line();
        complete || self.end_line(b"")
    }

    /// Returns the event that [`advance`](Self::advance) or [`finish`](Self::finish) has just completed.
    pub fn event(&self) -> SseEvent<'_> {
        SseEvent { id: self.fields.id.as_deref(), name: &self.fields.name, data: &self.fields.data }
    }

    /// Returns the last id that the stream has set, by an event or by a block without data.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// Returns the last reconnection time that the stream has set.
    pub fn retry(&self) -> Option<Duration> {
        self.fields.retry
    }

    /// Returns the start of the lines with an unknown field. It helps to diagnose a response that is not an event
    /// stream.
    pub fn ignored(&self) -> &[u8] {
        &self.fields.ignored
    }

    /// Reads the buffered line like [`end_line`](Self::end_line) and empties the buffer.
    fn end_buffered_line(&mut self) -> bool {
        let mut line = std::mem::take(&mut self.line);
        let complete = self.end_line(&line);
        line.clear();
        self.line = line;
        complete
    }

    /// Reads one line without its end. Returns `true` if it completes an event: an empty line after data. An empty line
    /// also sets the last id, if the block has one, even without data.
    ///
    /// The first line after an empty line starts a new event and clears the fields of the previous one. A byte order
    /// mark is removed from the first line of the stream.
    fn end_line(&mut self, line: &[u8]) -> bool {
        let is_first = !std::mem::replace(&mut self.started, true);
        let line = if is_first { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line) } else { line };
        if std::mem::take(&mut self.fields.complete) {
            self.fields.start_event();
        }
        if line.is_empty() {
            self.fields.complete = true;
            if let Some(id) = &self.fields.id {
                self.last_id = Some(id.clone());
            }
            return self.fields.has_data;
        }
        self.fields.read(line);
        false
    }
}

impl EventFields {
    /// Clears the fields of the last event. The reconnection time and the ignored lines remain.
    fn start_event(&mut self) {
        self.id = None;
        self.name.clear();
        self.data.clear();
        self.has_data = false;
    }

    /// Reads a line with a field. One space after the colon is removed. A line without a colon is a field with an empty
    /// value. Each `data` adds a line; `event`, `id` and `retry` (milliseconds) replace the earlier value. Invalid
    /// UTF-8 in names and ids is replaced.
    ///
    /// Comments, an `id` with NUL and a `retry` that is not a number have no effect. Lines with an unknown field are
    /// stored, together at most [`IGNORED_LIMIT`] bytes.
    fn read(&mut self, line: &[u8]) {
        let colon = memchr(b':', line).unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.name.clear();
                self.name.push_str(&String::from_utf8_lossy(value));
            }
            b"id" if !value.contains(&0) => self.id = Some(String::from_utf8_lossy(value).into_owned()),
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                let milliseconds = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
                self.retry = milliseconds.map(Duration::from_millis).or(self.retry);
            }
            b"" | b"id" | b"retry" => {}
            _ => {
                let free = IGNORED_LIMIT.saturating_sub(self.ignored.len());
                self.ignored.extend_from_slice(&line[..line.len().min(free)]);
            }
        }
    }
}
