//! The events of an answer that is a stream. Fails if an event or the stream is larger than its limit, or if the agent
//! sends nothing for too long.

use reqwest::Response;
use sse::{Decoder, Event, Limits, TooLarge};
use tokio::time::timeout;

use super::Error;
use super::http::Wire;

/// The events of an answer under way.
pub(super) struct Events {
    response: Response,
    decoder: Decoder,
}

impl Events {
    pub(super) fn new(response: Response, wire: &Wire) -> Self {
        let limits = Limits { event: wire.limits().answer, total: wire.limits().stream };
        Self { response, decoder: Decoder::new(limits) }
    }

    /// Returns the next event, or nothing at the end of the answer.
    pub(super) async fn next(&mut self, wire: &Wire) -> Result<Option<Event<'_>>, Error> {
        let silence = wire.limits().silence;
        while !self.decoder.advance()? {
            let chunk = timeout(silence, self.response.chunk()).await.map_err(|_| Error::Silent(silence))?;
            match chunk.map_err(|error| wire.lost(&error))? {
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
