//! Server-sent events, put together from pieces of bytes as they come. Every byte is looked at once; a line and an answer
//! have a longest length, and no more than that is ever kept.

use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use tokio::time::timeout;

use super::fault::Fault;

/// The longest line, in bytes.
const MAX_LINE: usize = 1 << 20;
/// The longest answer, in bytes.
const MAX_ANSWER: usize = 8 << 20;
/// How much is kept of what is no event, in bytes: enough to say what came instead of an answer.
const MAX_STRAY: usize = 500;
/// How long the end of a body is waited for after the last event in it, and how long it may take in the background.
const MOMENT: Duration = Duration::from_millis(2);
const LINGER: Duration = Duration::from_millis(100);

/// The events of an answer under way.
pub(super) struct Events {
    response: Response,
    reader: Reader,
}

impl Events {
    pub(super) fn new(response: Response) -> Self {
        Self { response, reader: Reader::default() }
    }

    /// The data of the next event; nothing where the answer has ended.
    pub(super) async fn next(&mut self) -> Result<Option<&[u8]>, Fault> {
        while !self.reader.advance()? {
            match self.response.chunk().await.map_err(|error| Fault::connection(&error))? {
                Some(chunk) => self.reader.push(chunk)?,
                None if self.reader.finish() => break,
                None => return Ok(None),
            }
        }
        Ok(Some(&self.reader.data))
    }

    /// The beginning of what came besides events.
    pub(super) fn stray(&self) -> String {
        String::from_utf8_lossy(&self.reader.stray).into_owned()
    }

    /// Only a connection that has seen the end of a body can be used again, and it may come after the last event.
    pub(super) async fn end(mut self) {
        if timeout(MOMENT, self.drain()).await.is_err() {
            tokio::spawn(async move { timeout(LINGER, self.drain()).await });
        }
    }

    async fn drain(&mut self) {
        while let Ok(Some(_)) = self.response.chunk().await {}
    }
}

#[derive(Default)]
struct Reader {
    /// What has come, and how far it was read.
    chunk: Bytes,
    at: usize,
    /// How much has come in all.
    total: usize,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    /// The event that is being read, or has just been read.
    data: Vec<u8>,
    complete: bool,
    /// A line may end in two characters.
    after_return: bool,
    stray: Vec<u8>,
}

impl Reader {
    /// Takes the next piece in; the one before has been read.
    fn push(&mut self, chunk: Bytes) -> Result<(), Fault> {
        self.total += chunk.len();
        if self.total > MAX_ANSWER {
            return Err(Fault::broken("the answer does not end"));
        }
        (self.chunk, self.at) = (chunk, 0);
        Ok(())
    }

    /// Reads up to the end of an event; false where more must come before.
    fn advance(&mut self) -> Result<bool, Fault> {
        if std::mem::take(&mut self.complete) {
            self.data.clear();
        }
        while let rest @ [first, ..] = &self.chunk[self.at..] {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                self.at += 1;
                continue;
            }
            let end = memchr::memchr2(b'\n', b'\r', rest);
            let part = &rest[..end.unwrap_or(rest.len())];
            if self.line.len() + part.len() > MAX_LINE {
                return Err(Fault::broken("the answer has a line that does not end"));
            }
            self.at += part.len();
            let Some(end) = end else {
                self.line.extend_from_slice(part);
                break;
            };
            self.at += 1;
            self.after_return = rest[end] == b'\r';
            // Most lines come in one piece and need not be put together.
            let event = if self.line.is_empty() {
                take(part, &mut self.data, &mut self.stray)
            } else {
                self.line.extend_from_slice(part);
                let event = take(&self.line, &mut self.data, &mut self.stray);
                self.line.clear();
                event
            };
            if event {
                self.complete = true;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether what is left is an event: some servers forget the empty line after the last one.
    fn finish(&mut self) -> bool {
        take(&std::mem::take(&mut self.line), &mut self.data, &mut self.stray);
        self.complete = true;
        !self.data.is_empty()
    }
}

/// Takes a line in and says whether it ends an event. The names of events are not needed: their data says as much.
fn take(line: &[u8], data: &mut Vec<u8>, stray: &mut Vec<u8>) -> bool {
    if line.is_empty() {
        return !data.is_empty();
    }
    let colon = memchr::memchr(b':', line).unwrap_or(line.len());
    match &line[..colon] {
        b"data" => {
            if !data.is_empty() {
                data.push(b'\n');
            }
            data.extend_from_slice(line[line.len().min(colon + 1)..].trim_ascii());
        }
        b"" | b"event" | b"id" | b"retry" => {}
        _ => stray.extend_from_slice(&line[..line.len().min(MAX_STRAY.saturating_sub(stray.len()))]),
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The events of an answer that comes in such pieces.
    fn read(answer: &[u8], size: usize) -> Result<Vec<String>, Fault> {
        let mut reader = Reader::default();
        let mut events = Vec::new();
        for piece in answer.chunks(size) {
            reader.push(Bytes::copy_from_slice(piece))?;
            while reader.advance()? {
                events.push(String::from_utf8(reader.data.clone()).unwrap());
            }
        }
        if reader.finish() {
            events.push(String::from_utf8(reader.data.clone()).unwrap());
        }
        Ok(events)
    }

    #[test]
    fn lines_end_as_anybody_likes() {
        // MODEL-2
        for end in ["\n", "\r\n", "\r"] {
            let answer = [": hello", "event: a", "data: {\"ü\":1}", "", "", "data:two", "data: lines", "", "data: x"];
            let answer = answer.join(end);
            for size in 1..answer.len() {
                assert_eq!(read(answer.as_bytes(), size).unwrap(), ["{\"ü\":1}", "two\nlines", "x"], "{end:?} {size}");
            }
        }
    }

    #[test]
    fn what_is_no_event_is_told_in_part() {
        let mut reader = Reader::default();
        reader.push(Bytes::from(format!("{{\"error\":\"no\"}}\n{}", "<p>x</p>\n".repeat(1000)))).unwrap();
        assert!(!reader.advance().unwrap());
        assert!(reader.stray.starts_with(b"{\"error\":\"no\"}<p>") && reader.stray.len() == MAX_STRAY);
    }

    #[test]
    fn nothing_is_endless() {
        // RES-2
        let line = [b"data: ".to_vec(), vec![b'x'; MAX_LINE]].concat();
        assert!(read(&line, 4096).is_err());
        let answer = b"data: x\n\n".repeat(MAX_ANSWER / 9 + 1);
        assert!(read(&answer, 4096).is_err());
        assert!(read(&answer[..MAX_ANSWER / 2], 4096).is_ok());
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_it_is_torn(answer in "(data|:|event|x)?[:\r\n a]{0,40}(data: b\n)?", size in 1_usize..9) {
            prop_assert_eq!(read(answer.as_bytes(), size).unwrap(), read(answer.as_bytes(), 1000).unwrap());
        }
    }
}
