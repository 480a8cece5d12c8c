//! Reads the events of a streaming response.

use reqwest::Response;
use sse::{SseDecoder, SseEvent, SseLimits, TooLarge};
use tokio::time::timeout;

use super::Error;
use super::http::HttpTransport;

/// Reads the events of a streaming response.
pub(super) struct EventReader {
    response: Response,
    decoder: SseDecoder,
}

impl EventReader {
    /// Reads a response within the size limits of the transport.
    pub(super) fn new(response: Response, transport: &HttpTransport) -> Self {
        let limits =
            SseLimits { event: transport.limits().max_response_bytes, total: transport.limits().max_stream_bytes };
        Self { response, decoder: SseDecoder::new(limits) }
    }

    /// Returns the next event, or `None` at the end of the response. Event data without a final empty line is also
    /// returned as an event at the end of the response.
    ///
    /// Fails with [`Error::TooLarge`] if an event or the stream exceeds its limit. Fails with [`Error::Unreachable`] if
    /// the connection fails. Fails with [`Error::Timeout`] if the agent sends nothing for the idle timeout.
    pub(super) async fn next(&mut self, transport: &HttpTransport) -> Result<Option<SseEvent<'_>>, Error> {
        let idle_timeout = transport.limits().idle_timeout;
        while !self.decoder.advance()? {
            let chunk = timeout(idle_timeout, self.response.chunk()).await.map_err(|_| Error::Timeout(idle_timeout))?;
            match chunk.map_err(|error| transport.connection_error(&error))? {
                Some(chunk) => self.decoder.push(chunk)?,
                None if self.decoder.finish() => break,
                None => return Ok(None),
            }
        }
        Ok(Some(self.decoder.event()))
    }
}

impl From<TooLarge> for Error {
    fn from(error: TooLarge) -> Self {
        match error {
            TooLarge::Event(limit) | TooLarge::Stream(limit) => Self::TooLarge(limit),
        }
    }
}
