//! Responses that are written while they are sent, of any length. A client that stops reading is disconnected, because
//! the response holds a snapshot of the database open.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use tokio::sync::mpsc;
use tracing::Instrument;

/// The time in which the client must accept a chunk.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Sends the chunks of a body.
pub(super) struct BodyWriter(mpsc::Sender<std::io::Result<Bytes>>);

impl BodyWriter {
    /// Sends a chunk. Waits while four earlier chunks are not read. Fails if the client disconnected or accepted
    /// nothing for 30 seconds.
    pub(super) async fn send(&self, text: String) -> store::Result<()> {
        let sent = tokio::time::timeout(WRITE_TIMEOUT, self.0.send(Ok(text.into()))).await;
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(store::Error::Unavailable("the client disconnected".to_owned())),
            Err(_) => Err(store::Error::Unavailable("the client stopped reading".to_owned())),
        }
    }
}

/// Returns a response with status 200 and the body that `write` produces in a new task. If `write` fails, that is
/// logged and the body ends with an error, so that the client can detect the incomplete body. If four chunks are still
/// unread then, the body ends after them without an error.
pub(super) fn respond<F>(content_type: &'static str, write: impl FnOnce(BodyWriter) -> F) -> Response
where
    F: Future<Output = (BodyWriter, store::Result<()>)> + Send + 'static,
{
    let (sender, mut receiver) = mpsc::channel(4);
    let writing = write(BodyWriter(sender));
    tokio::spawn(
        async move {
            if let (writer, Err(error)) = writing.await {
                tracing::warn!(error = %error, "a streamed response was aborted");
                let _ = writer.0.try_send(Err(std::io::Error::other(error)));
            }
        }
        .in_current_span(),
    );
    let body = Body::from_stream(futures::stream::poll_fn(move |context| receiver.poll_recv(context)));
    ([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))], body).into_response()
}
