//! Server-sent events, put together from pieces as they come. An event and a stream have a largest size, and no more than
//! that is ever kept; a stream that is silent for too long is broken.

use bytes::Bytes;
use reqwest::Response;
use tokio::time::timeout;

use super::Error;
use super::http::Wire;

/// What an event says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// What it is called; empty where it has no name.
    pub(super) name: String,
    pub(super) data: Vec<u8>,
}

/// The events of an answer under way.
pub(super) struct Events {
    response: Response,
    reader: Reader,
}

impl Events {
    pub(super) fn new(response: Response, wire: &Wire) -> Self {
        let reader = Reader { event: wire.limits().answer, left: wire.limits().stream, ..Reader::default() };
        Self { response, reader }
    }

    /// The next event; nothing where the answer has ended.
    pub(super) async fn next(&mut self, wire: &Wire) -> Result<Option<Event>, Error> {
        let silence = wire.limits().silence;
        loop {
            if let Some(event) = self.reader.advance()? {
                return Ok(Some(event));
            }
            let chunk = timeout(silence, self.response.chunk()).await.map_err(|_| Error::Silent(silence))?;
            match chunk.map_err(|error| wire.lost(&error))? {
                Some(chunk) => self.reader.push(chunk)?,
                None => return Ok(self.reader.finish()),
            }
        }
    }
}

#[derive(Default)]
struct Reader {
    /// The largest event.
    event: usize,
    /// How much may still come.
    left: usize,
    /// What has come, and how far it was read.
    chunk: Bytes,
    at: usize,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    /// The event that is being read, and whether it has any data.
    current: Event,
    has_data: bool,
    /// A line may end in two characters.
    after_return: bool,
}

impl Reader {
    /// Takes the next piece in; the one before has been read.
    fn push(&mut self, chunk: Bytes) -> Result<(), Error> {
        self.left = self.left.checked_sub(chunk.len()).ok_or(Error::TooLarge(self.left))?;
        (self.chunk, self.at) = (chunk, 0);
        Ok(())
    }

    /// Reads up to the end of an event; nothing where more must come before.
    fn advance(&mut self) -> Result<Option<Event>, Error> {
        while let rest @ [first, ..] = &self.chunk[self.at..] {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                self.at += 1;
                continue;
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let part = &rest[..end.unwrap_or(rest.len())];
            if self.line.len() + part.len() + self.current.data.len() > self.event {
                return Err(Error::TooLarge(self.event));
            }
            self.at += part.len();
            self.line.extend_from_slice(part);
            let Some(end) = end else { break };
            self.at += 1;
            self.after_return = rest[end] == b'\r';
            let line = std::mem::take(&mut self.line);
            if let Some(event) = self.take(&line) {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// What is left is an event, too: some servers forget the empty line after the last one.
    fn finish(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        self.take(&line).or_else(|| self.take(b""))
    }

    fn take(&mut self, line: &[u8]) -> Option<Event> {
        if line.is_empty() {
            let event = std::mem::take(&mut self.current);
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = &line[line.len().min(colon + 1)..];
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.current.data.push(b'\n');
                }
                self.current.data.extend_from_slice(value);
            }
            b"event" => self.current.name = String::from_utf8_lossy(value).into_owned(),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The events of an answer that comes in such pieces.
    fn read(answer: &[u8], size: usize) -> Result<Vec<(String, String)>, Error> {
        let mut reader = Reader { event: 1_000, left: 10_000, ..Reader::default() };
        let mut events = Vec::new();
        for piece in answer.chunks(size) {
            reader.push(Bytes::copy_from_slice(piece))?;
            while let Some(event) = reader.advance()? {
                events.push((event.name, String::from_utf8(event.data).unwrap()));
            }
        }
        events.extend(reader.finish().map(|event| (event.name, String::from_utf8(event.data).unwrap())));
        Ok(events)
    }

    #[test]
    fn lines_end_as_anybody_likes() {
        for end in ["\n", "\r\n", "\r"] {
            let answer =
                [": hello", "event: error", "data: {\"ü\":1}", "", "", "data:two", "data: lines", "", "data: x"];
            let answer = answer.join(end);
            for size in 1..answer.len() {
                let events = read(answer.as_bytes(), size).unwrap();
                let events: Vec<_> = events.iter().map(|(name, data)| (name.as_str(), data.as_str())).collect();
                assert_eq!(events, [("error", "{\"ü\":1}"), ("", "two\nlines"), ("", "x")], "{end:?} {size}");
            }
        }
    }

    #[test]
    fn nothing_is_endless() {
        assert_eq!(read(&b"data: x".repeat(200), 64), Err(Error::TooLarge(1_000)), "a line");
        assert_eq!(read(&b"data: xxxxxxxx\n".repeat(200), 64), Err(Error::TooLarge(1_000)), "an event");
        assert!(matches!(read(&b"data: x\n\n".repeat(2_000), 64), Err(Error::TooLarge(_))), "a stream");
        assert_eq!(read(&b"data: x\n\n".repeat(1_000), 64).unwrap().len(), 1_000);
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_it_is_torn(answer in "(data|:|event|x)?[:\r\n a]{0,40}(data: b\n)?", size in 1_usize..9) {
            prop_assert_eq!(read(answer.as_bytes(), size).unwrap(), read(answer.as_bytes(), 1000).unwrap());
        }
    }
}
