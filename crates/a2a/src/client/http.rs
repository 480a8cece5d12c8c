//! The HTTP client for one agent. It reads responses only up to its limits. Texts of the agent are shortened and freed
//! of credentials before they appear in an error.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use ::http::{HeaderName, Method, StatusCode};
use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{Client, RequestBuilder, Response, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::{ClientAuth, ClientLimits, ClientOptions, Error};
use crate::{Version, version};

/// The time after which idle connections are closed. Some servers close them after five seconds, which would lose a
/// request.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(4);
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);
/// The maximum number of redirects of one request.
const MAX_REDIRECTS: usize = 5;
/// The maximum size of an error response, in bytes.
const MAX_ERROR_BODY: usize = 64 << 10;
/// The maximum length of a text of the agent in an error, in characters.
const MAX_ERROR_LENGTH: usize = 300;

pub(super) const JSON: &str = "application/json";
pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// An HTTP client with the limits and credentials for one agent.
#[derive(Clone)]
pub(super) struct HttpTransport {
    client: Client,
    limits: ClientLimits,
    /// The credentials, to remove them from texts of the agent.
    secret: Option<Arc<SecretString>>,
    /// The URIs of the extensions to request.
    extensions: Vec<String>,
}

impl HttpTransport {
    /// Creates the client for an agent at this URL. It sends the credentials and headers of the options with every
    /// request. It uses no proxy for a loopback address. gRPC requires HTTP/2 without negotiation.
    ///
    /// Fails with [`Error::Address`] if the credentials cannot be a header, and with [`Error::Unreachable`] if the
    /// client cannot be built.
    pub(super) fn new(url: &Url, is_grpc: bool, options: &ClientOptions) -> Result<Self, Error> {
        let mut headers = options.headers.clone();
        headers.extend(credentials(options.auth.as_ref())?);
        let mut builder = Client::builder()
            .default_headers(headers)
            .redirect(Policy::custom(redirect))
            .connect_timeout(options.limits.connect_timeout)
            .pool_idle_timeout(IDLE_CONNECTION_TIMEOUT)
            .tcp_keepalive(TCP_KEEPALIVE)
            .tcp_nodelay(true);
        if is_loopback(url) {
            // Connections within one machine do not use a proxy.
            builder = builder.no_proxy();
        }
        if is_grpc {
            builder = builder.http2_prior_knowledge().no_gzip();
        }
        if let Some(name) = &options.user_agent {
            builder = builder.user_agent(name);
        }
        let secret = options.auth.as_ref().map(|auth| match auth {
            ClientAuth::Bearer(secret) | ClientAuth::Header(_, secret) => Arc::new(secret.clone()),
        });
        let client = builder.build().map_err(|error| Error::Unreachable(error.without_url().to_string()))?;
        Ok(Self { client, limits: options.limits, secret, extensions: options.extensions.clone() })
    }

    /// Returns the limits of the client.
    pub(super) fn limits(&self) -> &ClientLimits {
        &self.limits
    }

    /// Returns a request with the headers for the version and the requested extensions.
    pub(super) fn request(&self, method: Method, url: Url, version: Version) -> RequestBuilder {
        let mut request = self.client.request(method, url).header(version::VERSION_HEADER, version.as_str());
        if let Some((name, value)) = crate::extensions::response_header(version, &self.extensions) {
            request = request.header(name, value);
        }
        request
    }

    /// Returns a GET request.
    pub(super) fn get(&self, url: Url) -> RequestBuilder {
        self.client.get(url)
    }

    /// Sends a request and returns the response without its body. Fails if the connection fails.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        request.send().await.map_err(|error| self.connection_error(&error))
    }

    /// Returns [`Error::Unreachable`] for a failed connection. The text contains only the innermost cause, because
    /// outer errors may contain the URL.
    pub(super) fn connection_error(&self, error: &reqwest::Error) -> Error {
        // Only the innermost cause is shown: the outer errors may contain the URL of the request.
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        let what = if error.is_connect() { "connection failed" } else { "connection lost" };
        Error::Unreachable(format!("{what} ({})", self.clean(&cause.to_string())))
    }

    /// Reads the whole body. Fails with [`Error::TooLarge`] if it is larger than `limit` bytes, and with
    /// [`Error::Unreachable`] if the connection fails. Has no timeout of its own.
    pub(super) async fn body(&self, response: &mut Response, limit: usize) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.connection_error(&error))? {
            if body.len() + chunk.len() > limit {
                return Err(Error::TooLarge(limit));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Returns the body of an error response, or nothing if it cannot be read or is too large.
    pub(super) async fn error_body(&self, response: &mut Response) -> Vec<u8> {
        self.body(response, MAX_ERROR_BODY).await.unwrap_or_default()
    }

    /// Returns the error for a response that is not a protocol error. Its message contains the status and the text of
    /// the body, unless that is HTML.
    pub(super) fn rejection(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Error {
        let is_page = media_type(headers).is_some_and(|name| name.contains("html"));
        let text = if is_page { String::new() } else { self.clean(&error_text(body)) };
        let message = if text.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status}, {text}") };
        Error::Refused { status: status.as_u16(), message, retry_after: retry_after(headers) }
    }

    /// Returns a text of the agent for display: on one line, with the credentials of the client replaced by `***`. A
    /// text longer than 300 characters is cut and ends with `…`. Control characters count as whitespace, and runs of
    /// whitespace become one space.
    pub(super) fn clean(&self, text: &str) -> String {
        let mut text = text.to_owned();
        if let Some(secret) = &self.secret {
            let secret = secret.expose_secret();
            if !secret.is_empty() {
                text = text.replace(secret, "***");
            }
        }
        let line: Vec<&str> =
            text.split(|c: char| c.is_control() || c.is_whitespace()).filter(|w| !w.is_empty()).collect();
        let line = line.join(" ");
        if line.chars().count() <= MAX_ERROR_LENGTH {
            return line;
        }
        line.chars().take(MAX_ERROR_LENGTH).chain(['…']).collect()
    }

    /// Returns [`Error::Agent`] with this protocol error. Its message, violations and metadata are cleaned like
    /// [`Self::clean`].
    pub(super) fn cleaned(&self, error: crate::Error) -> Error {
        let violations =
            error.violations.iter().map(|(field, reason)| (self.clean(field), self.clean(reason))).collect();
        let metadata = error.metadata.iter().map(|(name, value)| (self.clean(name), self.clean(value))).collect();
        Error::Agent(crate::Error { message: self.clean(&error.message), violations, metadata, ..error })
    }

    /// Returns the error for an invalid response.
    pub(super) fn invalid(&self, why: impl std::fmt::Display) -> Error {
        Error::Invalid(self.clean(&why.to_string()))
    }
}

/// Returns the header with the credentials, marked as sensitive, or `None` without credentials. Fails with
/// [`Error::Address`] if they are not a valid header value.
fn credentials(auth: Option<&ClientAuth>) -> Result<Option<(HeaderName, HeaderValue)>, Error> {
    let (name, value) = match auth {
        None => return Ok(None),
        Some(ClientAuth::Bearer(token)) => {
            (AUTHORIZATION, SecretString::from(format!("Bearer {}", token.expose_secret())))
        }
        Some(ClientAuth::Header(name, value)) => (HeaderName::clone(name), value.clone()),
    };
    let value = HeaderValue::from_str(value.expose_secret());
    let mut value = value.map_err(|_| {
        Error::Address(format!("requires the header '{name}', but its value is not a valid header value"))
    })?;
    value.set_sensitive(true);
    Ok(Some((name, value)))
}

/// Returns the message of an error response in any of the usual JSON forms, or the whole body as text.
fn error_text(body: &[u8]) -> String {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let pointers = ["/error/message", "/message", "/detail", "/title", "/error"];
    let text = pointers.into_iter().filter_map(|pointer| value.pointer(pointer)?.as_str()).next();
    text.map_or_else(|| String::from_utf8_lossy(body).into_owned(), ToOwned::to_owned)
}

/// Returns whether the status rejects the caller. Such a response is never a protocol error.
pub(super) fn is_denial(status: StatusCode) -> bool {
    matches!(status.as_u16(), 401 | 403 | 407 | 429 | 503)
}

/// Returns true if the host of the URL is `localhost` or a loopback IP address. Other names are not resolved.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => host.trim_matches(['[', ']']).parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
        None => false,
    }
}

/// Follows redirects only within the origin of the first request, only with status 307 or 308, which keep the body, and
/// at most five times. Any other redirect is returned as the response.
fn redirect(attempt: Attempt) -> Action {
    let keeps_body = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let is_same = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    if keeps_body && is_same && attempt.previous().len() <= MAX_REDIRECTS { attempt.follow() } else { attempt.stop() }
}

/// Returns the media type without its parameters, or `None` if the header is missing or not text.
pub(super) fn media_type(headers: &HeaderMap) -> Option<&str> {
    headers.get(CONTENT_TYPE)?.to_str().ok()?.split(';').next().map(str::trim)
}

/// Returns whether the response is a stream of server-sent events.
pub(super) fn is_event_stream(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|name| name.eq_ignore_ascii_case(EVENT_STREAM))
}

/// Returns the value of `Retry-After`, or `None` if it is missing or not a number of seconds.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}
