//! MCP over Streamable HTTP. rmcp's own client reads whole bodies, however large; this one reads with a limit. The
//! configured headers go to the configured place and nowhere else.

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

use super::guard::Signals;
use super::{events, wire};

const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// Some servers close what is idle after five seconds; a request on such a connection would be lost.
const IDLE: Duration = Duration::from_secs(4);
const KEEPALIVE: Duration = Duration::from_secs(30);
/// Calls to one server at the same time.
const MOST_REQUESTS: usize = 256;
/// How much of a page that is no answer is read.
const LARGEST_FAULT: usize = 64 * 1024;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

type Error = StreamableHttpError<reqwest::Error>;

pub(super) fn transport(
    url: &str,
    headers: &[(String, SecretString)],
    signals: &Arc<Signals>,
) -> Result<StreamableHttpClientTransport<Bounded>, String> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .max_concurrent_requests(MOST_REQUESTS)
        .max_sse_event_size(wire::LARGEST);
    let mut retries = ExponentialBackoff::default();
    retries.max_delay = Some(Duration::from_secs(60));
    config.retry_config = Arc::new(retries);
    let client = client(url, headers)?;
    Ok(StreamableHttpClientTransport::with_client(Bounded { client, signals: signals.clone() }, config))
}

fn client(url: &str, headers: &[(String, SecretString)]) -> Result<Client, String> {
    let parsed = reqwest::Url::parse(url).map_err(|_| "has an address that is no URL".to_owned())?;
    let mut always = HeaderMap::new();
    for (name, value) in headers {
        let fault = || format!("cannot be sent the header '{name}'; check its name and its value");
        let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| fault())?;
        value.set_sensitive(true);
        always.append(HeaderName::from_bytes(name.as_bytes()).map_err(|_| fault())?, value);
    }
    let mut builder = Client::builder()
        .default_headers(always)
        .redirect(Policy::custom(redirect))
        .connect_timeout(CONNECT_PATIENCE)
        .pool_idle_timeout(IDLE)
        .tcp_keepalive(KEEPALIVE);
    if is_here(&parsed) {
        // A proxy has no business between two programs on one machine.
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| format!("cannot be reached ({})", error.without_url()))
}

fn is_here(url: &reqwest::Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => host.trim_matches(['[', ']']).parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
        None => false,
    }
}

/// Only to the same origin, and only if the message goes along.
fn redirect(attempt: Attempt) -> reqwest::redirect::Action {
    let keeps_body = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let is_same = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    if keeps_body && is_same && attempt.previous().len() <= 5 { attempt.follow() } else { attempt.stop() }
}

#[derive(Clone)]
pub(super) struct Bounded {
    client: Client,
    signals: Arc<Signals>,
}

impl Bounded {
    /// rmcp does not give up a request when nobody waits for it any more; this does.
    async fn sent(&self, request: RequestBuilder) -> Result<Response, Error> {
        tokio::select! {
            sent = request.send() => sent.map_err(|error| self.failed(error)),
            () = self.signals.lost() => Err(StreamableHttpError::TransportChannelClosed),
        }
    }

    fn failed(&self, error: reqwest::Error) -> Error {
        self.signals.suspect.notify_one();
        StreamableHttpError::Client(error.without_url())
    }
}

impl StreamableHttpClient for Bounded {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _authorization: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let accept = format!("{EVENTS}, {JSON}");
        let mut request = self.client.post(&*uri).header(ACCEPT, accept).headers(headers.into_iter().collect());
        if let Some(session) = &session {
            request = request.header(SESSION, &**session);
        }
        let response = self.sent(request.json(&message)).await?;
        let status = response.status();
        let asked = match &message {
            ClientJsonRpcMessage::Request(request) => Some(&request.id),
            _ => None,
        };
        let kind = header(&response, CONTENT_TYPE);
        let is = |wanted: &str| kind.as_deref().is_some_and(|kind| kind.starts_with(wanted));
        let new_session = header(&response, HeaderName::from_static(SESSION));
        match status {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => Ok(StreamableHttpPostResponse::Accepted),
            StatusCode::NOT_FOUND if session.is_some() => Err(StreamableHttpError::SessionExpired),
            _ if !status.is_success() => {
                let is_discovery = matches!(&message, ClientJsonRpcMessage::Request(request)
                    if matches!(request.request, ClientRequest::DiscoverRequest(_)) && session.is_none());
                self.refused(response, asked, is_discovery, is(JSON)).await
            }
            _ if is(EVENTS) => {
                Ok(StreamableHttpPostResponse::Sse(events::of(response, self.signals.clone()), new_session))
            }
            _ if asked.is_none() => Ok(StreamableHttpPostResponse::Accepted),
            _ if is(JSON) => {
                let Some(body) = self.body(response, wire::LARGEST).await? else {
                    self.signals.lose(wire::TOO_LARGE);
                    return Err(unexpected(wire::TOO_LARGE));
                };
                if wire::is_too_much(&body) {
                    self.signals.lose(wire::TOO_MUCH);
                    return Err(unexpected(wire::TOO_MUCH));
                }
                let read = wire::read::<ServerJsonRpcMessage>(&body);
                let answer = read.map_err(|error| unexpected(format!("the answer is no message: {error}")))?;
                Ok(StreamableHttpPostResponse::Json(answer, new_session))
            }
            _ => Err(StreamableHttpError::UnexpectedContentType(kind)),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _authorization: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Error> {
        let mut request = self.client.get(&*uri).header(ACCEPT, EVENTS).headers(headers.into_iter().collect());
        if let Some(session) = &session {
            request = request.header(SESSION, &**session);
        }
        if let Some(last_event) = last_event {
            request = request.header(LAST_EVENT, last_event);
        }
        let response = self.sent(request).await?;
        let status = response.status();
        let is_stream = header(&response, CONTENT_TYPE).is_some_and(|kind| kind.starts_with(EVENTS));
        if status.is_client_error() || status.is_success() && !is_stream {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if !status.is_success() {
            return Err(HttpStatusError::new(status.as_u16(), None).into());
        }
        // It ends when the server does.
        let signals = self.signals.clone();
        let end = futures::stream::poll_fn(move |_| {
            signals.suspect.notify_one();
            std::task::Poll::Ready(None)
        });
        Ok(events::of(response, self.signals.clone()).chain(end).boxed())
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _authorization: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Error> {
        let request = self.client.delete(&*uri).header(SESSION, &*session).headers(headers.into_iter().collect());
        // Whether the server forgets it now or later is its own affair.
        let _ = request.send().await;
        Ok(())
    }
}

impl Bounded {
    /// Anything but a success.
    async fn refused(
        &self,
        response: Response,
        asked: Option<&RequestId>,
        is_discovery: bool,
        is_json: bool,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let status = response.status();
        let retry_after = header(&response, RETRY_AFTER);
        let is_overload = status == StatusCode::TOO_MANY_REQUESTS;
        let is_forbidden = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if is_json && !is_overload && !is_forbidden {
            let body = self.body(response, LARGEST_FAULT).await?.unwrap_or_default();
            if let (Ok(ServerJsonRpcMessage::Error(error)), Some(asked)) = (wire::read(&body), asked) {
                // Whose request failed is clear, whatever the server calls it.
                let answer = ServerJsonRpcMessage::error(error.error, Some(asked.clone()));
                return Ok(StreamableHttpPostResponse::Json(answer, None));
            }
        }
        if let (true, true, false, Some(asked)) = (is_discovery, status.is_client_error(), is_forbidden, asked) {
            // A server of the older era says no in its own way.
            let error = ErrorData::invalid_request(format!("HTTP {status}"), None);
            return Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::error(error, Some(asked.clone())), None));
        }
        if is_overload || status.is_server_error() {
            return Err(HttpStatusError::new(status.as_u16(), retry_after).into());
        }
        Err(unexpected(format!("HTTP {status}")))
    }

    /// The whole body, or nothing if it is too large.
    async fn body(&self, mut response: Response, limit: usize) -> Result<Option<Vec<u8>>, Error> {
        let mut body = Vec::new();
        loop {
            let chunk = tokio::select! {
                chunk = response.chunk() => chunk.map_err(|error| self.failed(error))?,
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

const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";

fn header(response: &Response, name: HeaderName) -> Option<String> {
    Some(response.headers().get(name)?.to_str().ok()?.to_owned())
}

fn unexpected(what: impl Into<String>) -> Error {
    StreamableHttpError::UnexpectedServerResponse(what.into().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_header_is_not_named_in_a_fault() {
        let headers = [("X-Key".to_owned(), SecretString::from("se\ncret"))];
        let fault = client("http://127.0.0.1:1/", &headers).unwrap_err();
        assert!(fault.contains("X-Key") && !fault.contains("cret"), "{fault}");
    }
}
