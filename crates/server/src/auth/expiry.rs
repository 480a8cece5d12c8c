//! Ends the streams of a token that is revoked or expires (SEC-6). Other responses are short.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use futures::StreamExt;
use http_body_util::{BodyStream, StreamBody};
use jiff::Timestamp;

use super::verifier::Claims;
use super::{bearer_token, identify};
use crate::App;

/// The time between two checks of the token of an open stream.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Passes a request on. If the response is a stream and the request has a token, the stream ends with the token. A
/// token that is not a JWT has no end. Has no effect without configured authentication.
pub(crate) async fn end_streams_with_token(State(app): State<App>, request: Request, next: Next) -> Response {
    let token = match app.active_config().verifier {
        Some(_) => bearer_token(request.headers()).map(str::to_owned),
        None => None,
    };
    let response = next.run(request).await;
    let lifetime = token.filter(|_| is_stream(response.headers())).and_then(TokenLifetime::new);
    match lifetime {
        Some(lifetime) => response.map(|body| {
            let frames = BodyStream::new(body).take_until(lifetime.ended(app));
            Body::new(StreamBody::new(frames))
        }),
        None => response,
    }
}

/// Returns whether the response may stay open for a long time.
fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(|kind| kind.as_bytes()).unwrap_or_default();
    kind.starts_with(b"text/event-stream") || kind.starts_with(b"application/grpc")
}

/// A token that was valid at the start of a stream.
struct TokenLifetime {
    token: String,
    expires_at: Timestamp,
}

impl TokenLifetime {
    /// Returns `None` if the token is not a JWT. The handler has already verified it.
    fn new(token: String) -> Option<Self> {
        let expires_at = Timestamp::from_second(Claims::unverified(&token)?.exp).ok()?;
        Some(Self { token, expires_at })
    }

    /// Waits until the token is revoked or has expired. The accepted clock difference does not extend an open stream.
    async fn ended(self, app: App) {
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            if app.clock().now() >= self.expires_at || identify(&app, Some(&self.token)).await.is_none() {
                return;
            }
        }
    }
}
