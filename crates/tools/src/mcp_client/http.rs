//! MCP over Streamable HTTP. Unlike the client of rmcp, this client limits the size of response bodies. The configured
//! headers are sent only to the configured origin.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use ::http::{HeaderName, HeaderValue, StatusCode};
use futures::StreamExt;
use futures::stream::BoxStream;
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, RequestBuilder, Response};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    HttpStatusError, SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use secrecy::{ExposeSecret, SecretString};
use sse_stream::Sse;

use super::guard::ConnectionSignals;
use super::{events, wire};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Some servers close idle connections after five seconds. A request on a closed connection would be lost.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(4);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// The maximum number of concurrent requests to one server.
const MAX_CONCURRENT_REQUESTS: usize = 256;
/// The maximum size of an error response.
const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;

const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";

type Error = StreamableHttpError<reqwest::Error>;

/// Creates the transport to a server. Limits the concurrent requests and the size of events. Lost streams are reopened
/// after at most 60 seconds. Does not connect yet. Fails if the URL or a header is invalid, or if the HTTP client
/// cannot be created.
pub(super) fn transport(
    url: &str,
    headers: &[(String, SecretString)],
    signals: &Arc<ConnectionSignals>,
) -> Result<StreamableHttpClientTransport<BoundedHttpClient>, String> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .max_concurrent_requests(MAX_CONCURRENT_REQUESTS)
        .max_sse_event_size(wire::MAX_MESSAGE_BYTES);
    let mut retries = ExponentialBackoff::default();
    retries.max_delay = Some(Duration::from_secs(60));
    config.retry_config = Arc::new(retries);
    let client = client(url, headers)?;
    Ok(StreamableHttpClientTransport::with_client(BoundedHttpClient { client, signals: signals.clone() }, config))
}

/// Creates a client that sends these headers with every request. Uses no proxy for the same machine. Follows redirects
/// only as [`redirect`] allows. Fails if the URL or a header is invalid, or if the client cannot be created.
fn client(url: &str, headers: &[(String, SecretString)]) -> Result<Client, String> {
    let parsed = reqwest::Url::parse(url).map_err(|_| "has an invalid URL".to_owned())?;
    let mut default_headers = HeaderMap::new();
    for (name, value) in headers {
        let invalid = || format!("has an invalid header '{name}'; check its name and its value");
        let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| invalid())?;
        value.set_sensitive(true);
        default_headers.append(HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?, value);
    }
    let mut builder = Client::builder()
        .default_headers(default_headers)
        .redirect(Policy::custom(redirect))
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        .tcp_keepalive(KEEPALIVE_INTERVAL);
    if is_loopback(&parsed) {
        // Requests to the same machine must not go through a proxy.
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| format!("cannot be reached ({})", error.without_url()))
}

/// Returns true for `localhost` and for loopback addresses. Does not resolve other names.
fn is_loopback(url: &reqwest::Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => host.trim_matches(['[', ']']).parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
        None => false,
    }
}

/// Follows a redirect only to the same origin, and only if it keeps the body. Follows at most 5 in a row.
fn redirect(attempt: Attempt) -> reqwest::redirect::Action {
    let keeps_body = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let is_same_origin = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    if keeps_body && is_same_origin && attempt.previous().len() <= 5 { attempt.follow() } else { attempt.stop() }
}

/// An HTTP client with limits on the size of responses.
#[derive(Clone)]
pub(super) struct BoundedHttpClient {
    client: Client,
    signals: Arc<ConnectionSignals>,
}

impl BoundedHttpClient {
    /// Sends a request. Unlike rmcp, cancels it if the connection is lost. Fails if there is no response.
    async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        tokio::select! {
            sent = request.send() => sent.map_err(|error| self.client_error(error)),
            () = self.signals.lost() => Err(StreamableHttpError::TransportChannelClosed),
        }
    }

    /// Reports that the server may be down, and converts the error.
    fn client_error(&self, error: reqwest::Error) -> Error {
        self.signals.check_needed.notify_one();
        StreamableHttpError::Client(error.without_url())
    }
}

impl StreamableHttpClient for BoundedHttpClient {
    type Error = reqwest::Error;

    /// Sends a message and returns the response: a message, a stream of events, or no content. The authorization of
    /// rmcp is not used. A successful response to a notification is accepted with any content, and an event stream is
    /// always returned.
    ///
    /// Fails with `SessionExpired` for 404 in a session. Other error statuses are handled by [`Self::error_response`].
    /// Fails if the response has another content type or is no valid message. A response that exceeds the limits also
    /// ends the connection.
    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _authorization: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let accept = format!("{EVENT_STREAM}, {JSON}");
        let mut request = self.client.post(&*uri).header(ACCEPT, accept).headers(headers.into_iter().collect());
        if let Some(session) = &session {
            request = request.header(SESSION_HEADER, &**session);
        }
        let response = self.send(request.json(&message)).await?;
        let status = response.status();
        let request_id = match &message {
            ClientJsonRpcMessage::Request(request) => Some(&request.id),
            _ => None,
        };
        let kind = header(&response, CONTENT_TYPE);
        let is = |expected: &str| kind.as_deref().is_some_and(|kind| kind.starts_with(expected));
        let new_session = header(&response, HeaderName::from_static(SESSION_HEADER));
        match status {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => Ok(StreamableHttpPostResponse::Accepted),
            StatusCode::NOT_FOUND if session.is_some() => Err(StreamableHttpError::SessionExpired),
            _ if !status.is_success() => {
                let is_discovery = matches!(&message, ClientJsonRpcMessage::Request(request)
                    if matches!(request.request, ClientRequest::DiscoverRequest(_)) && session.is_none());
                self.error_response(response, request_id, is_discovery, is(JSON)).await
            }
            _ if is(EVENT_STREAM) => {
                Ok(StreamableHttpPostResponse::Sse(events::event_stream(response, self.signals.clone()), new_session))
            }
            _ if request_id.is_none() => Ok(StreamableHttpPostResponse::Accepted),
            _ if is(JSON) => {
                let Some(body) = self.read_body(response, wire::MAX_MESSAGE_BYTES).await? else {
                    self.signals.close_with_reason(wire::TOO_LARGE);
                    return Err(unexpected(wire::TOO_LARGE));
                };
                if wire::has_too_many_values(&body) {
                    self.signals.close_with_reason(wire::TOO_MANY_VALUES);
                    return Err(unexpected(wire::TOO_MANY_VALUES));
                }
                let read = wire::parse::<ServerJsonRpcMessage>(&body);
                let answer =
                    read.map_err(|error| unexpected(format!("the response is not a valid message: {error}")))?;
                Ok(StreamableHttpPostResponse::Json(answer, new_session))
            }
            _ => Err(StreamableHttpError::UnexpectedContentType(kind)),
        }
    }

    /// Opens the stream for messages of the server, after `last_event` if it is given. Fails with
    /// `ServerDoesNotSupportSse` after a client error or a response that is no stream. Fails with the status after any
    /// other error. Also fails if there is no response. Requests a check of the server when the stream ends.
    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _authorization: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Error> {
        let mut request = self.client.get(&*uri).header(ACCEPT, EVENT_STREAM).headers(headers.into_iter().collect());
        if let Some(session) = &session {
            request = request.header(SESSION_HEADER, &**session);
        }
        if let Some(last_event) = last_event {
            request = request.header(LAST_EVENT_HEADER, last_event);
        }
        let response = self.send(request).await?;
        let status = response.status();
        let is_stream = header(&response, CONTENT_TYPE).is_some_and(|kind| kind.starts_with(EVENT_STREAM));
        if status.is_client_error() || status.is_success() && !is_stream {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if !status.is_success() {
            return Err(HttpStatusError::new(status.as_u16(), None).into());
        }
        // The stream ends when the server stops, so its state must be checked.
        let signals = self.signals.clone();
        let end = futures::stream::poll_fn(move |_| {
            signals.check_needed.notify_one();
            std::task::Poll::Ready(None)
        });
        Ok(events::event_stream(response, self.signals.clone()).chain(end).boxed())
    }

    /// Ends the session at the server. Failures are ignored. Always succeeds.
    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _authorization: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Error> {
        let request =
            self.client.delete(&*uri).header(SESSION_HEADER, &*session).headers(headers.into_iter().collect());
        // The server removes the session later if this request fails.
        let _ = request.send().await;
        Ok(())
    }
}

impl BoundedHttpClient {
    /// Handles a response with an error status. A JSON-RPC error in the body becomes the answer to the request, except
    /// for 401, 403 and 429. So does a client error after a discovery, except for 401 and 403, because it identifies a
    /// server of the older era. Otherwise fails: with the status for 429 and server errors, which rmcp may retry, and
    /// with a message for the rest. A body of more than [`MAX_ERROR_BODY_BYTES`] is ignored.
    async fn error_response(
        &self,
        response: Response,
        request_id: Option<&RequestId>,
        is_discovery: bool,
        is_json: bool,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let status = response.status();
        let retry_after = header(&response, RETRY_AFTER);
        let is_overload = status == StatusCode::TOO_MANY_REQUESTS;
        let is_forbidden = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if is_json && !is_overload && !is_forbidden {
            let body = self.read_body(response, MAX_ERROR_BODY_BYTES).await?.unwrap_or_default();
            if let (Ok(ServerJsonRpcMessage::Error(error)), Some(id)) = (wire::parse(&body), request_id) {
                // The error belongs to this request, even if the server sends a different id.
                let answer = ServerJsonRpcMessage::error(error.error, Some(id.clone()));
                return Ok(StreamableHttpPostResponse::Json(answer, None));
            }
        }
        if let (true, true, false, Some(id)) = (is_discovery, status.is_client_error(), is_forbidden, request_id) {
            // A server of the older era rejects the discovery with an HTTP error.
            let error = ErrorData::invalid_request(format!("HTTP {status}"), None);
            return Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::error(error, Some(id.clone())), None));
        }
        if is_overload || status.is_server_error() {
            return Err(HttpStatusError::new(status.as_u16(), retry_after).into());
        }
        Err(unexpected(format!("HTTP {status}")))
    }

    /// Returns the whole body, or `None` if it exceeds the limit. Fails if the body cannot be read, which requests a
    /// check of the server, or if the connection is lost.
    async fn read_body(&self, mut response: Response, limit: usize) -> Result<Option<Vec<u8>>, Error> {
        let mut body = Vec::new();
        loop {
            let chunk = tokio::select! {
                chunk = response.chunk() => chunk.map_err(|error| self.client_error(error))?,
                () = self.signals.lost() => return Err(StreamableHttpError::TransportChannelClosed),
            };
            let Some(chunk) = chunk else { return Ok(Some(body)) };
            if body.len() + chunk.len() > limit {
                return Ok(None);
            }
            body.extend_from_slice(&chunk);
        }
    }
}

const SESSION_HEADER: &str = "mcp-session-id";
const LAST_EVENT_HEADER: &str = "last-event-id";

fn header(response: &Response, name: HeaderName) -> Option<String> {
    Some(response.headers().get(name)?.to_str().ok()?.to_owned())
}

fn unexpected(message: impl Into<String>) -> Error {
    StreamableHttpError::UnexpectedServerResponse(message.into().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_do_not_contain_header_values() {
        let headers = [("X-Key".to_owned(), SecretString::from("se\ncret"))];
        let error = client("http://127.0.0.1:1/", &headers).unwrap_err();
        assert!(error.contains("X-Key") && !error.contains("cret"), "{error}");
    }
}
