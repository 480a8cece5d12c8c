//! One HTTP client for an agent, with its limits. What comes is read piece by piece and never beyond them; what others
//! wrote is shortened and cleaned of credentials before it stands in an error.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use ::http::{HeaderName, Method, StatusCode};
use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{Client, RequestBuilder, Response, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::{Auth, Error, Limits, Options};
use crate::{Version, version};

/// Some servers close what is idle after five seconds; a request on such a connection would be lost.
const IDLE: Duration = Duration::from_secs(4);
const KEEPALIVE: Duration = Duration::from_secs(30);
/// Redirects in a row.
const MOST_REDIRECTS: usize = 5;
/// How much of what is no answer is read, in bytes.
const LARGEST_FAULT: usize = 64 << 10;
/// How much of it is told, in characters.
const LONGEST_FAULT: usize = 300;

pub(super) const JSON: &str = "application/json";
pub(super) const EVENTS: &str = "text/event-stream";

#[derive(Clone)]
pub(super) struct Wire {
    client: Client,
    limits: Limits,
    secret: Option<Arc<SecretString>>,
    extensions: Vec<String>,
}

impl Wire {
    /// For an agent at this address; gRPC needs HTTP/2 without asking first.
    pub(super) fn new(url: &Url, is_grpc: bool, options: &Options) -> Result<Self, Error> {
        let mut headers = options.headers.clone();
        headers.extend(credentials(options.auth.as_ref())?);
        let mut builder = Client::builder()
            .default_headers(headers)
            .redirect(Policy::custom(redirect))
            .connect_timeout(options.limits.connect)
            .pool_idle_timeout(IDLE)
            .tcp_keepalive(KEEPALIVE)
            .tcp_nodelay(true);
        if is_here(url) {
            // A proxy has no business between two programs on one machine.
            builder = builder.no_proxy();
        }
        if is_grpc {
            builder = builder.http2_prior_knowledge().no_gzip();
        }
        if let Some(name) = &options.user_agent {
            builder = builder.user_agent(name);
        }
        let secret = options.auth.as_ref().map(|auth| match auth {
            Auth::Bearer(secret) | Auth::Header(_, secret) => Arc::new(secret.clone()),
        });
        let client = builder.build().map_err(|error| Error::Unreachable(error.without_url().to_string()))?;
        Ok(Self { client, limits: options.limits, secret, extensions: options.extensions.clone() })
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// A request in a certain version.
    pub(super) fn request(&self, method: Method, url: Url, version: Version) -> RequestBuilder {
        let mut request = self.client.request(method, url).header(version::HEADER, version.as_str());
        if let Some((name, value)) = crate::extensions::header(version, &self.extensions) {
            request = request.header(name, value);
        }
        request
    }

    pub(super) fn get(&self, url: Url) -> RequestBuilder {
        self.client.get(url)
    }

    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        request.send().await.map_err(|error| self.lost(&error))
    }

    pub(super) fn lost(&self, error: &reqwest::Error) -> Error {
        // The address of a request may say more than it should, and so may an error of its own.
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        let what = if error.is_connect() { "no connection" } else { "the connection broke" };
        Error::Unreachable(format!("{what} ({})", self.clean(&cause.to_string())))
    }

    /// The whole body.
    pub(super) async fn body(&self, response: &mut Response, limit: usize) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.lost(&error))? {
            if body.len() + chunk.len() > limit {
                return Err(Error::TooLarge(limit));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// The body of an answer that is no success; as much of it as is needed.
    pub(super) async fn fault(&self, response: &mut Response) -> Vec<u8> {
        self.body(response, LARGEST_FAULT).await.unwrap_or_default()
    }

    /// Why a call was not answered, where nothing better is known.
    pub(super) fn refused(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Error {
        let is_page = kind(headers).is_some_and(|kind| kind.contains("html"));
        let said = if is_page { String::new() } else { self.clean(&words(body)) };
        let message = if said.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status}, {said}") };
        Error::Refused { status: status.as_u16(), message, retry_after: retry_after(headers) }
    }

    /// What others wrote, fit to be shown: short, on one line, without the credentials that they may repeat.
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
        if line.chars().count() <= LONGEST_FAULT {
            return line;
        }
        line.chars().take(LONGEST_FAULT).chain(['…']).collect()
    }

    /// An error of the agent's, fit to be shown.
    pub(super) fn cleaned(&self, error: crate::Error) -> Error {
        let violations = error.violations.iter().map(|(field, what)| (self.clean(field), self.clean(what))).collect();
        let metadata = error.metadata.iter().map(|(name, value)| (self.clean(name), self.clean(value))).collect();
        Error::Agent(crate::Error { message: self.clean(&error.message), violations, metadata, ..error })
    }

    /// What came is no answer.
    pub(super) fn invalid(&self, why: impl std::fmt::Display) -> Error {
        Error::Invalid(self.clean(&why.to_string()))
    }
}

fn credentials(auth: Option<&Auth>) -> Result<Option<(HeaderName, HeaderValue)>, Error> {
    let (name, value) = match auth {
        None => return Ok(None),
        Some(Auth::Bearer(token)) => (AUTHORIZATION, SecretString::from(format!("Bearer {}", token.expose_secret()))),
        Some(Auth::Header(name, value)) => (HeaderName::clone(name), value.clone()),
    };
    let value = HeaderValue::from_str(value.expose_secret());
    let mut value = value.map_err(|_| Error::Address(format!("needs a header '{name}' whose value cannot be sent")))?;
    value.set_sensitive(true);
    Ok(Some((name, value)))
}

/// What is said for people, in whatever form.
fn words(body: &[u8]) -> String {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let said = ["/error/message", "/message", "/detail", "/title", "/error"].into_iter();
    let said = said.filter_map(|place| value.pointer(place)?.as_str()).next();
    said.map_or_else(|| String::from_utf8_lossy(body).into_owned(), ToOwned::to_owned)
}

/// Whether this says that the caller is not let in, whatever else is said: that is not a matter of the protocol.
pub(super) fn is_denial(status: StatusCode) -> bool {
    matches!(status.as_u16(), 401 | 403 | 407 | 429 | 503)
}

/// Whether it is this machine.
pub(super) fn is_here(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => host.trim_matches(['[', ']']).parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
        None => false,
    }
}

/// Only to the same origin, and only if the message goes along.
fn redirect(attempt: Attempt) -> Action {
    let keeps_body = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let is_same = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    if keeps_body && is_same && attempt.previous().len() <= MOST_REDIRECTS { attempt.follow() } else { attempt.stop() }
}

/// The media type, without what follows it.
pub(super) fn kind(headers: &HeaderMap) -> Option<&str> {
    headers.get(CONTENT_TYPE)?.to_str().ok()?.split(';').next().map(str::trim)
}

pub(super) fn is_events(headers: &HeaderMap) -> bool {
    kind(headers).is_some_and(|kind| kind.eq_ignore_ascii_case(EVENTS))
}

pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}
