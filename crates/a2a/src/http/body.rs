//! Reads the body of a request. It must be JSON, in UTF-8, within the size limit and on time.

use std::error::Error as _;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use http_body_util::LengthLimitError;

use super::error_response::ErrorResponse;
use super::{A2A_JSON, JSON};
use crate::{Error, ErrorKind, Version};

/// The time within which a request must arrive.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The media types of a request and its response.
pub(super) struct ContentTypes {
    /// True if the body is declared as JSON. `None` if `Content-Type` is missing.
    is_json: Option<bool>,
    /// The media type of the response.
    pub(super) response: &'static str,
}

impl ContentTypes {
    /// Reads the headers. The response uses `application/a2a+json` if a client of 1.x sends or accepts it, otherwise
    /// `application/json`. Both types count as JSON; a missing or any other content type does not. Parameters of the
    /// content type are ignored.
    pub(super) fn from_headers(headers: &HeaderMap, version: Version) -> Self {
        let text = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
        let sent = text(CONTENT_TYPE).map(|sent| sent.split(';').next().unwrap_or_default().trim());
        let is = |json: &str| sent.is_some_and(|sent| sent.eq_ignore_ascii_case(json));
        let accepts = || text(ACCEPT).is_some_and(|accept| accept.contains(A2A_JSON));
        let response = if version == Version::V10 && (is(A2A_JSON) || accepts()) { A2A_JSON } else { JSON };
        Self { is_json: headers.get(CONTENT_TYPE).map(|_| is(JSON) || is(A2A_JSON)), response }
    }

    /// Fails if the body is not declared as JSON, also if `Content-Type` is missing. Web pages of other origins can
    /// send other types without a preflight.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.is_json == Some(true) {
            return Ok(());
        }
        let message = format!("the content type is not supported; use {JSON} or {A2A_JSON}");
        Err(Error::new(ErrorKind::ContentTypeNotSupported, message))
    }
}

/// Reads the whole body within 30 seconds. An empty body is returned at once. Fails with 413 if it or the announced
/// length is larger than `max_bytes`. Fails with 400 if it is incomplete, and with 408 if it is late.
pub(super) async fn read(headers: &HeaderMap, body: Body, max_bytes: usize) -> Result<Bytes, ErrorResponse> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let too_large = || {
        let message = format!("the request is too large; the limit is {max_bytes} bytes");
        ErrorResponse::from_http(StatusCode::PAYLOAD_TOO_LARGE, "REQUEST_TOO_LARGE", message)
    };
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > max_bytes as u64) {
        return Err(too_large());
    }
    match tokio::time::timeout(READ_TIMEOUT, axum::body::to_bytes(body, max_bytes)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if error.source().is_some_and(|source| source.is::<LengthLimitError>()) => Err(too_large()),
        Ok(Err(_)) => {
            Err(ErrorResponse::from_http(StatusCode::BAD_REQUEST, "INVALID_REQUEST", "the request body is incomplete"))
        }
        Err(_) => {
            let message = format!("the request did not arrive within {} s", READ_TIMEOUT.as_secs());
            Err(ErrorResponse::from_http(StatusCode::REQUEST_TIMEOUT, "REQUEST_TIMEOUT", message))
        }
    }
}

/// Returns the body as text. Fails if it is not UTF-8.
pub(super) fn text(bytes: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::Parse, "the body is not UTF-8"))
}
