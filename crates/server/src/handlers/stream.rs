//! Answers that are written while they are sent, however long they get. A client that stops reading is cut off: what
//! it holds up (a snapshot of the database) is not its own.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use tokio::sync::mpsc;
use tracing::Instrument;

const PATIENCE: Duration = Duration::from_secs(30);

/// Where the pieces go.
pub(super) struct Out(mpsc::Sender<std::io::Result<Bytes>>);

impl Out {
    pub(super) async fn send(&self, text: String) -> store::Result<()> {
        let sent = tokio::time::timeout(PATIENCE, self.0.send(Ok(text.into()))).await;
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(store::Error::Unavailable("the client went away".to_owned())),
            Err(_) => Err(store::Error::Unavailable("the client stopped reading".to_owned())),
        }
    }
}

/// An answer whose body `write` produces. One that fails ends the connection, which is how the client learns that the
/// body is not whole.
pub(super) fn respond<F>(content_type: &'static str, write: impl FnOnce(Out) -> F) -> Response
where
    F: Future<Output = (Out, store::Result<()>)> + Send + 'static,
{
    let (sender, mut receiver) = mpsc::channel(4);
    let writing = write(Out(sender));
    tokio::spawn(
        async move {
            if let (out, Err(error)) = writing.await {
                tracing::warn!(error = %error, "an answer was cut off");
                let _ = out.0.try_send(Err(std::io::Error::other(error)));
            }
        }
        .in_current_span(),
    );
    let body = Body::from_stream(futures::stream::poll_fn(move |context| receiver.poll_recv(context)));
    ([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))], body).into_response()
}
