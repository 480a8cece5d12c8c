//! Decodes the SSE events of an MCP server for rmcp. Ends the connection if an event exceeds the size of a message or
//! has too many values.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use reqwest::Response;
use rmcp::transport::streamable_http_client::SseError;
use sse::{SseDecoder, SseLimits};
use sse_stream::Sse;

use super::guard::ConnectionSignals;
use super::wire;

/// The events of a response in progress.
struct SseEvents {
    response: Response,
    decoder: SseDecoder,
    signals: Arc<ConnectionSignals>,
    /// The last id that was passed on.
    last_id: Option<String>,
    /// The last reconnection time that was passed on, in milliseconds.
    retry: Option<u64>,
}

/// Returns the events of a response, until its end or the first error. [`SseEvents::next`] describes the events and
/// errors.
pub(super) fn event_stream(
    response: Response,
    signals: Arc<ConnectionSignals>,
) -> BoxStream<'static, Result<Sse, SseError>> {
    let decoder = SseDecoder::new(SseLimits::per_event(wire::MAX_MESSAGE_BYTES));
    let events = SseEvents { response, decoder, signals, last_id: None, retry: None };
    stream::try_unfold(events, |mut events| async { Ok(events.next().await?.map(|event| (event, events))) }).boxed()
}

impl SseEvents {
    /// Returns the next event, or `None` at the end of the response. An event without data may carry a new id or
    /// reconnection time. An incomplete event at the end is dropped. Data with too many values is left out and ends the
    /// connection. Fails if the response cannot be read, or if an event is too large, which also ends the connection.
    async fn next(&mut self) -> Result<Option<Sse>, SseError> {
        loop {
            let advanced = self.decoder.advance().map_err(|error| {
                self.signals.close_with_reason(wire::TOO_LARGE);
                SseError::Body(error.into())
            })?;
            let event = advanced.then(|| self.decoder.event());
            let name = event.map(|event| event.name.to_owned()).filter(|name| !name.is_empty());
            let data = event.and_then(|event| checked_data(event.data, &self.signals));
            let id = self.new_id();
            let retry = self.new_retry();
            // A block without data may set the id and the reconnection time.
            if advanced || id.is_some() || retry.is_some() {
                return Ok(Some(Sse { event: name, data, id, retry }));
            }
            let chunk = self.response.chunk().await.map_err(|error| SseError::Body(error.without_url().into()))?;
            let Some(chunk) = chunk else { return Ok(None) };
            self.decoder.push(chunk).map_err(|error| SseError::Body(error.into()))?;
        }
    }

    /// Returns the last id of the stream if it was not passed on yet.
    fn new_id(&mut self) -> Option<String> {
        if self.decoder.last_id() == self.last_id.as_deref() {
            return None;
        }
        self.last_id = self.decoder.last_id().map(str::to_owned);
        self.last_id.clone()
    }

    /// Returns the reconnection time of the stream, in milliseconds, if it differs from the one that was passed on
    /// last.
    fn new_retry(&mut self) -> Option<u64> {
        let retry = self.decoder.retry().and_then(|retry| u64::try_from(retry.as_millis()).ok());
        if retry == self.retry {
            return None;
        }
        self.retry = retry;
        retry
    }
}

/// Returns the data with invalid tools marked. Returns `None` and ends the connection if it has too many values.
fn checked_data(data: &[u8], signals: &ConnectionSignals) -> Option<String> {
    if wire::has_too_many_values(data) {
        signals.close_with_reason(wire::TOO_MANY_VALUES);
        return None;
    }
    Some(String::from_utf8_lossy(&wire::repair(data)).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(body: Vec<u8>) -> Vec<Result<Sse, SseError>> {
        let response = ::http::Response::new(reqwest::Body::from(body)).into();
        event_stream(response, Arc::default()).collect().await
    }

    #[tokio::test]
    async fn an_event_is_limited_to_the_size_of_a_message() {
        let event = [b"data: ".as_slice(), &[b'x'; 1_000_000], b"\r\n"].concat();
        let small = read([event.as_slice(), b"\r\n"].concat().repeat(40)).await;
        assert!(small.len() == 40 && small.iter().all(Result::is_ok), "many small events are accepted");
        let line = read(vec![b'x'; 40_000_000]).await;
        assert!(matches!(line.as_slice(), [Err(SseError::Body(_))]), "one line");
        let lines = read(event.repeat(40)).await;
        assert!(matches!(lines.as_slice(), [Err(SseError::Body(_))]), "the lines of one event count together");
    }

    #[tokio::test]
    async fn ids_and_reconnection_times_are_passed_on_without_data() {
        let body = b"id: 1\nretry: 50\n\nevent: message\ndata: {}\n\nid: 2\ndata: []\n\nid: 3\n\n";
        let events: Vec<Sse> = read(body.to_vec()).await.into_iter().map(Result::unwrap).collect();
        let ids: Vec<_> = events.iter().map(|event| (event.id.as_deref(), event.retry)).collect();
        assert_eq!(ids, [(Some("1"), Some(50)), (Some("2"), None), (Some("3"), None)]);
        let data: Vec<_> = events.iter().map(|event| event.data.as_deref()).collect();
        assert_eq!(data, [Some("{}"), Some("[]"), None]);
    }
}
