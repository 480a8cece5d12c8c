//! What a request carries: of the right type, not too large, not too slow, and text.

use std::error::Error as _;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use http_body_util::LengthLimitError;

use super::fault::Fault;
use super::{A2A_JSON, JSON};
use crate::{Error, Kind, Version};

/// How long a request may take to arrive.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a caller says about what it sends and would like to get.
pub(super) struct Types {
    /// `None`: not said.
    json: Option<bool>,
    /// What it gets.
    pub(super) answer: &'static str,
}

impl Types {
    /// The newer name of the type is for those of 1.x who use it themselves.
    pub(super) fn of(headers: &HeaderMap, version: Version) -> Self {
        let text = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
        let sent = text(CONTENT_TYPE).map(|sent| sent.split(';').next().unwrap_or_default().trim());
        let is = |json: &str| sent.is_some_and(|sent| sent.eq_ignore_ascii_case(json));
        let wants = || text(ACCEPT).is_some_and(|accept| accept.contains(A2A_JSON));
        let answer = if version == Version::V10 && (is(A2A_JSON) || wants()) { A2A_JSON } else { JSON };
        Self { json: headers.get(CONTENT_TYPE).map(|_| is(JSON) || is(A2A_JSON)), answer }
    }

    /// Whether a body may be read: what is not said to be JSON might have been sent by a web page.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.json == Some(true) {
            return Ok(());
        }
        let message = format!("this content type is not supported: send {JSON} or {A2A_JSON}");
        Err(Error::new(Kind::ContentTypeNotSupported, message))
    }
}

/// All of it.
pub(super) async fn read(headers: &HeaderMap, body: Body, most: usize) -> Result<Bytes, Fault> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let too_large = || {
        let message = format!("the request is too large: at most {most} bytes are read");
        Fault::of_http(StatusCode::PAYLOAD_TOO_LARGE, "REQUEST_TOO_LARGE", message)
    };
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > most as u64) {
        return Err(too_large());
    }
    match tokio::time::timeout(PATIENCE, axum::body::to_bytes(body, most)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if error.source().is_some_and(|source| source.is::<LengthLimitError>()) => Err(too_large()),
        Ok(Err(_)) => Err(Fault::of_http(StatusCode::BAD_REQUEST, "INVALID_REQUEST", "the request broke off")),
        Err(_) => {
            let message = format!("the request did not arrive within {} s", PATIENCE.as_secs());
            Err(Fault::of_http(StatusCode::REQUEST_TIMEOUT, "REQUEST_TIMEOUT", message))
        }
    }
}

pub(super) fn text(bytes: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(bytes).map_err(|_| Error::new(Kind::Parse, "the body is not UTF-8"))
}
