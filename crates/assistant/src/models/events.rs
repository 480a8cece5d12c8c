//! Reads the events of a provider's answer. Limits the size of an event and of the whole answer.

use std::time::Duration;

use reqwest::Response;
use sse::{SseDecoder, SseLimits, TooLarge};
use tokio::time::timeout;

use super::provider_error::ProviderError;

/// At most 1 MiB per event and 8 MiB per answer.
const LIMITS: SseLimits = SseLimits { event: 1 << 20, total: 8 << 20 };
/// The time to wait for the end of the body after the last event.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(2);
/// The additional time to wait for the end of the body in the background.
const BACKGROUND_DRAIN_TIMEOUT: Duration = Duration::from_millis(100);

/// The events of an answer that is being received.
pub(super) struct ProviderEvents {
    response: Response,
    decoder: SseDecoder,
}

impl ProviderEvents {
    pub(super) fn new(response: Response) -> Self {
        Self { response, decoder: SseDecoder::new(LIMITS) }
    }

    /// Returns the data of the next non-empty event, without white space around it. Returns `None` at the end of the
    /// answer. An event without its final empty line is returned too. Event names are not needed because the data
    /// contains them.
    ///
    /// Fails with a transient error if the connection is lost, and with an unusable one if a size limit of [`LIMITS`]
    /// is exceeded.
    pub(super) async fn next(&mut self) -> Result<Option<&[u8]>, ProviderError> {
        loop {
            while self.decoder.advance()? {
                if !self.data().is_empty() {
                    return Ok(Some(self.data()));
                }
            }
            match self.response.chunk().await.map_err(|error| ProviderError::connection(&error))? {
                Some(chunk) => self.decoder.push(chunk)?,
                None if self.decoder.finish() && !self.data().is_empty() => return Ok(Some(self.data())),
                None => return Ok(None),
            }
        }
    }

    fn data(&self) -> &[u8] {
        self.decoder.event().data.trim_ascii()
    }

    /// Returns the start of the received text that is not part of an event.
    pub(super) fn ignored(&self) -> String {
        String::from_utf8_lossy(self.decoder.ignored()).into_owned()
    }

    /// Reads the body to its end, because only then the connection can be reused. Continues in the background if it
    /// takes longer, and gives up after [`BACKGROUND_DRAIN_TIMEOUT`].
    pub(super) async fn end(mut self) {
        if timeout(DRAIN_TIMEOUT, self.drain()).await.is_err() {
            tokio::spawn(async move { timeout(BACKGROUND_DRAIN_TIMEOUT, self.drain()).await });
        }
    }

    async fn drain(&mut self) {
        while let Ok(Some(_)) = self.response.chunk().await {}
    }
}

impl From<TooLarge> for ProviderError {
    fn from(error: TooLarge) -> Self {
        match error {
            TooLarge::Event(_) => Self::unusable("an event of the answer is larger than 1 MiB"),
            TooLarge::Stream(_) => Self::unusable("the answer is larger than 8 MiB"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(body: impl Into<reqwest::Body>) -> Result<(Vec<String>, String), ProviderError> {
        let mut events = ProviderEvents::new(http::Response::new(body.into()).into());
        let mut read = Vec::new();
        while let Some(data) = events.next().await? {
            read.push(String::from_utf8_lossy(data).into_owned());
        }
        Ok((read, events.ignored()))
    }

    #[tokio::test]
    async fn event_data_is_read() {
        // MODEL-2
        let body = ": hello\n\ndata:\n\nevent: a\ndata: {\"ü\":1} \n\ndata:  \n\ndata:two\ndata: lines\n\n<p>\ndata: x";
        let (data, ignored) = read(body).await.unwrap();
        assert_eq!(data, ["{\"ü\":1}", "two\nlines", "x"]);
        assert_eq!(ignored, "<p>");
    }

    #[tokio::test]
    async fn oversized_events_and_answers_are_rejected() {
        // RES-2
        let event = [b"data: ".to_vec(), vec![b'x'; LIMITS.event]].concat();
        assert!(read(event).await.is_err());
        let events = b"data: x\n\n".repeat(LIMITS.total / 9 + 1);
        assert!(read(events[..LIMITS.total / 2].to_vec()).await.is_ok());
        assert!(read(events).await.is_err());
    }
}
