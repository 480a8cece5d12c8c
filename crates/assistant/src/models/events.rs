//! The events of a provider's answer. Fails if an event or the answer is larger than its limit.

use std::time::Duration;

use reqwest::Response;
use sse::{Decoder, Limits, TooLarge};
use tokio::time::timeout;

use super::fault::Fault;

/// One event has at most 1 MiB, an answer 8 MiB.
const LIMITS: Limits = Limits { event: 1 << 20, total: 8 << 20 };
/// The time to wait for the end of a body after its last event.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(2);
/// The time to wait for it in the background after that.
const BACKGROUND_DRAIN_TIMEOUT: Duration = Duration::from_millis(100);

/// The events of an answer under way.
pub(super) struct Events {
    response: Response,
    decoder: Decoder,
}

impl Events {
    pub(super) fn new(response: Response) -> Self {
        Self { response, decoder: Decoder::new(LIMITS) }
    }

    /// Returns the data of the next event that has any, or nothing at the end of the answer. The names of events are
    /// not needed: the data contains them.
    pub(super) async fn next(&mut self) -> Result<Option<&[u8]>, Fault> {
        loop {
            while self.decoder.advance()? {
                if !self.data().is_empty() {
                    return Ok(Some(self.data()));
                }
            }
            match self.response.chunk().await.map_err(|error| Fault::connection(&error))? {
                Some(chunk) => self.decoder.push(chunk)?,
                None if self.decoder.finish() && !self.data().is_empty() => return Ok(Some(self.data())),
                None => return Ok(None),
            }
        }
    }

    fn data(&self) -> &[u8] {
        self.decoder.event().data.trim_ascii()
    }

    /// Returns the start of what was received in place of events.
    pub(super) fn ignored(&self) -> String {
        String::from_utf8_lossy(self.decoder.ignored()).into_owned()
    }

    /// Reads the rest of the body, which may end after the last event: only a connection whose body was read to its
    /// end can be used again.
    pub(super) async fn end(mut self) {
        if timeout(DRAIN_TIMEOUT, self.drain()).await.is_err() {
            tokio::spawn(async move { timeout(BACKGROUND_DRAIN_TIMEOUT, self.drain()).await });
        }
    }

    async fn drain(&mut self) {
        while let Ok(Some(_)) = self.response.chunk().await {}
    }
}

impl From<TooLarge> for Fault {
    fn from(error: TooLarge) -> Self {
        match error {
            TooLarge::Event(_) => Self::broken("the answer has an event that does not end"),
            TooLarge::Stream(_) => Self::broken("the answer does not end"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(body: impl Into<reqwest::Body>) -> Result<(Vec<String>, String), Fault> {
        let mut events = Events::new(http::Response::new(body.into()).into());
        let mut read = Vec::new();
        while let Some(data) = events.next().await? {
            read.push(String::from_utf8_lossy(data).into_owned());
        }
        Ok((read, events.ignored()))
    }

    #[tokio::test]
    async fn the_data_of_events_is_read() {
        // MODEL-2
        let body = ": hello\n\ndata:\n\nevent: a\ndata: {\"ü\":1} \n\ndata:  \n\ndata:two\ndata: lines\n\n<p>\ndata: x";
        let (data, ignored) = read(body).await.unwrap();
        assert_eq!(data, ["{\"ü\":1}", "two\nlines", "x"]);
        assert_eq!(ignored, "<p>");
    }

    #[tokio::test]
    async fn events_and_answers_have_a_largest_size() {
        // RES-2
        let event = [b"data: ".to_vec(), vec![b'x'; LIMITS.event]].concat();
        assert!(read(event).await.is_err());
        let events = b"data: x\n\n".repeat(LIMITS.total / 9 + 1);
        assert!(read(events[..LIMITS.total / 2].to_vec()).await.is_ok());
        assert!(read(events).await.is_err());
    }
}
