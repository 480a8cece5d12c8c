//! Rejects request bodies that arrive too slowly (SEC-5). A client must not hold a handler by sending a byte from time
//! to time.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

/// The time that a client may take in addition to [`MIN_BYTES_PER_SECOND`].
const GRACE: Duration = Duration::from_secs(30);
/// The rate at which a body must arrive.
const MIN_BYTES_PER_SECOND: u64 = 16 << 10;

/// A body that fails if the server has waited too long for it. Only the time that the server waits for the client
/// counts.
pub(crate) struct TimedBody<B> {
    body: B,
    received: u64,
    /// The time that the server has waited for earlier chunks.
    waited: Duration,
    /// Set while the server waits for a chunk.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl<B> TimedBody<B> {
    pub(crate) fn new(body: B) -> Self {
        Self { body, received: 0, waited: Duration::ZERO, waiting: None }
    }

    /// Returns the time that the server still waits: the grace and the time for the bytes received so far, less the
    /// time waited so far.
    fn remaining(&self) -> Duration {
        let earned = Duration::from_millis(self.received.saturating_mul(1000) / MIN_BYTES_PER_SECOND);
        GRACE.saturating_add(earned).saturating_sub(self.waited)
    }
}

impl<B> HttpBody for TimedBody<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(frame) => {
                if let Some((since, _)) = self.waiting.take() {
                    self.waited += since.elapsed();
                }
                if let Some(Ok(data)) = frame.as_ref().map(|frame| frame.as_ref().map(Frame::data_ref)) {
                    self.received += data.map_or(0, |data| data.len() as u64);
                }
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
            Poll::Pending => {
                let remaining = self.remaining();
                let (_, timer) = self.waiting.get_or_insert_with(|| (Instant::now(), Box::pin(sleep(remaining))));
                match timer.as_mut().poll(context) {
                    Poll::Pending => Poll::Pending,
                    Poll::Ready(()) => {
                        let error = io::Error::new(io::ErrorKind::TimedOut, "the body arrived too slowly");
                        Poll::Ready(Some(Err(error.into())))
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::{BodyExt, Full, StreamBody};

    use super::*;

    fn timed<B>(body: B, received: u64, waited: Duration) -> TimedBody<B> {
        TimedBody { received, waited, ..TimedBody::new(body) }
    }

    #[test]
    fn received_bytes_extend_the_time() {
        // SEC-5
        let remaining = |received, waited| timed((), received, Duration::from_secs(waited)).remaining().as_secs();
        assert_eq!(remaining(0, 0), 30);
        assert_eq!(remaining(0, 31), 0);
        assert_eq!(remaining(64 << 20, 0), 30 + 4096, "64 MiB");
        assert_eq!(remaining(16 << 10, 31), 0, "16 KiB in 31 seconds");
        assert_eq!(remaining(600 << 10, 60), 7, "10 KiB per second for a minute");
    }

    #[tokio::test]
    async fn a_body_that_does_not_arrive_in_time_fails() {
        // SEC-5
        let almost = GRACE - Duration::from_millis(20);
        let silent = futures::stream::pending::<Result<Frame<Bytes>, Infallible>>();
        let error = timed(StreamBody::new(silent), 0, almost).collect().await.unwrap_err();
        assert_eq!(error.to_string(), "the body arrived too slowly");
        let sent = timed(Full::new(Bytes::from("complete")), 0, almost).collect().await.unwrap();
        assert_eq!(sent.to_bytes(), "complete");
    }
}
