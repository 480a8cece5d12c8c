//! Converts errors to gRPC statuses and back. A status must stay small: many clients limit trailers to eight kilobytes.

use std::collections::HashMap;

use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode, percent_encode};
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::codec::FramingError;
use crate::error::ERROR_DOMAIN;
use crate::{CallRejection, Error, ErrorKind, Version, base64_bytes};

const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// The characters to encode in a header value.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%');

/// The maximum length of the message, in characters.
const MAX_MESSAGE_LENGTH: usize = 500;
/// The maximum size of the details, in bytes.
const MAX_DETAILS_BYTES: usize = 3_000;

fn code(kind: ErrorKind) -> Code {
    Code::from_i32(kind.grpc_code() as i32)
}

/// Returns the status with this header as its only metadata. Details are dropped.
fn with_header(status: Status, name: HeaderName, value: HeaderValue) -> Status {
    let metadata = MetadataMap::from_headers(HeaderMap::from_iter([(name, value)]));
    Status::with_metadata(status.code(), status.message(), metadata)
}

/// Returns the status of an error, with the kind that the version defines. The message is cut to 500 characters. In 0.3
/// it starts with the name of the error, and there are no details. In 1.x the details contain the reason, the metadata
/// and the violations. Both of the latter are omitted if the details exceed 3,000 bytes.
pub(super) fn from_error(version: Version, error: &Error) -> Status {
    let kind = error.kind.for_version(version);
    let message: String = error.message.chars().take(MAX_MESSAGE_LENGTH).collect();
    if version == Version::V03 {
        return Status::new(code(kind), format!("{}: {message}", kind.v03_name()));
    }
    let status = |metadata: HashMap<String, String>, violations: &[(String, String)]| {
        let mut details = ErrorDetails::new();
        details.set_error_info(kind.reason(), ERROR_DOMAIN, metadata);
        for (field, description) in violations {
            details.add_bad_request_violation(field, description);
        }
        Status::with_error_details(code(kind), &message, details)
    };
    let full = status(error.metadata.clone().into_iter().collect(), &error.violations);
    if full.details().len() > MAX_DETAILS_BYTES { status(HashMap::new(), &[]) } else { full }
}

/// Returns the trailers of a stream that is ended because its client reads nothing: the code is `ABORTED`.
pub fn stalled_trailers() -> HeaderMap {
    let mut trailers = HeaderMap::new();
    // Fails only for a message that is not a valid header value, and this one is.
    let _ = Status::aborted(crate::http::STALLED).add_header(&mut trailers);
    trailers
}

/// Returns the protocol error of a status. The details of 1.x are used if their domain and reason are known. Otherwise
/// a name of 0.3 at the start of the message is used, without metadata and violations. If two kinds share a name, the
/// status code selects one. Returns `None` if the status has neither form.
pub fn error_from_status(status: &Status) -> Option<Error> {
    let details = status.get_error_details();
    let info = details.error_info().filter(|info| info.domain == ERROR_DOMAIN);
    if let Some((kind, info)) = info.and_then(|info| Some((ErrorKind::from_reason(&info.reason)?, info))) {
        let violations = details.bad_request().into_iter().flat_map(|bad| &bad.field_violations);
        return Some(Error {
            kind,
            message: status.message().to_owned(),
            metadata: info.metadata.clone().into_iter().collect(),
            violations: violations.map(|it| (it.field.clone(), it.description.clone())).collect(),
        });
    }
    let (name, message) = status.message().split_once(": ")?;
    let mut kinds = ErrorKind::ALL.into_iter().filter(|kind| kind.v03_name() == name);
    // Two kinds share a name. The code distinguishes them.
    let same_code = kinds.clone().find(|kind| code(*kind) == status.code());
    Some(Error::new(same_code.or_else(|| kinds.next())?, message))
}

/// Returns the status of a rejected call: `not_found`, `permission_denied`, `unauthenticated` with `www-authenticate`,
/// or `resource_exhausted` with `retry-after` in whole seconds, rounded up. A call that is not offered becomes its
/// error. A challenge that is not a header value is left out.
pub(super) fn from_rejection(version: Version, rejection: CallRejection) -> Status {
    match rejection {
        CallRejection::UnknownAgent => Status::not_found("the agent was not found"),
        CallRejection::Forbidden(message) => {
            Status::permission_denied(message.chars().take(MAX_MESSAGE_LENGTH).collect::<String>())
        }
        CallRejection::Unauthenticated { challenge } => {
            let status = Status::unauthenticated("valid credentials are required");
            match HeaderValue::from_str(&challenge) {
                Ok(challenge) => with_header(status, WWW_AUTHENTICATE, challenge),
                Err(_) => status,
            }
        }
        CallRejection::RateLimited { retry_after } => {
            let seconds = retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0);
            let status = Status::resource_exhausted("too many requests; try again later");
            with_header(status, RETRY_AFTER, HeaderValue::from(seconds))
        }
        CallRejection::NotOffered(error) => from_error(version, &error),
    }
}

/// Returns the status of a request with a malformed body: `resource_exhausted` if it is too large, `unimplemented` if
/// it is compressed, `invalid_argument` if it is truncated. `limit` is the maximum size of a message in bytes.
pub(super) fn from_framing_error(error: FramingError, limit: usize) -> Status {
    match error {
        FramingError::TooLarge => Status::resource_exhausted(format!("the message is larger than {limit} bytes")),
        FramingError::Compressed => Status::unimplemented("compression is not supported"),
        FramingError::Truncated => Status::invalid_argument("the message is truncated"),
    }
}

/// Sanitizes the status headers or trailers of another server for tonic. Details that are not base64 are removed.
/// Invalid UTF-8 in the message is replaced.
///
/// tonic panics on details that are not base64, and it drops the code if the message is not UTF-8.
pub(crate) fn sanitize_headers(headers: &mut HeaderMap) {
    if let Some(details) = headers.remove(DETAILS) {
        let details =
            details.to_str().ok().and_then(base64_bytes::decode).map(|details| base64_bytes::encode(&details));
        headers.extend(details.and_then(|details| Some((DETAILS, HeaderValue::try_from(details).ok()?))));
    }
    if let Some(message) = headers.remove(MESSAGE) {
        let message = percent_decode(message.as_bytes()).decode_utf8_lossy();
        let message = percent_encode(message.as_bytes(), ENCODED).to_string();
        headers.extend(HeaderValue::try_from(message).ok().map(|message| (MESSAGE, message)));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Returns the status as the other side receives it.
    fn received(status: &Status) -> Status {
        let mut headers = HeaderMap::new();
        status.add_header(&mut headers).unwrap();
        sanitize_headers(&mut headers);
        Status::from_header_map(&headers).unwrap()
    }

    #[test]
    fn errors_survive_the_round_trip_through_trailers() {
        // A2A-1
        for kind in ErrorKind::ALL {
            let mut error = Error::new(kind, "100 % of Ärger\n");
            error.metadata.insert("taskId".to_owned(), "t".to_owned());
            error.violations.push(("message.parts[0]".to_owned(), "is nothing".to_owned()));
            let status = from_error(Version::V10, &error);
            let read = received(&status);
            assert_eq!((read.code(), read.message()), (status.code(), error.message.as_str()));
            assert_eq!(error_from_status(&read).unwrap(), error, "{kind:?}");
            let read = error_from_status(&received(&from_error(Version::V03, &error))).unwrap();
            assert_eq!(read.message, error.message);
            let expected = kind.for_version(Version::V03);
            assert!(read.kind == expected || expected == ErrorKind::NotFound && read.kind == ErrorKind::TaskNotFound);
        }
    }

    #[test]
    fn trailers_stay_small_and_malformed_trailers_are_accepted() {
        // A2A-4
        let mut error = Error::new(ErrorKind::InvalidParams, "ü".repeat(100_000));
        error.violations = vec![("f".repeat(5_000), "d".repeat(5_000)); 10];
        let status = from_error(Version::V10, &error);
        let mut headers = HeaderMap::new();
        status.add_header(&mut headers).unwrap();
        assert!(headers.values().map(HeaderValue::len).sum::<usize>() < 8_000);
        assert_eq!(error_from_status(&received(&status)).unwrap().kind, ErrorKind::InvalidParams);
        let strange = [("grpc-status", "x"), ("grpc-status-details-bin", "!"), ("grpc-message", "%zz%ff")];
        let strange = strange.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let mut headers = HeaderMap::from_iter(strange);
        sanitize_headers(&mut headers);
        let read = Status::from_header_map(&headers).unwrap();
        assert_eq!((read.code(), error_from_status(&read)), (Code::Unknown, None));
        assert_eq!(read.message(), "%zz\u{fffd}");
    }

    #[test]
    fn rejections_have_a_challenge_or_a_retry_delay() {
        // A2A-2, A2A-3
        let status_of = |rejection| from_rejection(Version::V10, rejection);
        let status = status_of(CallRejection::Unauthenticated { challenge: "Bearer".to_owned() });
        assert_eq!(status.code(), Code::Unauthenticated);
        assert_eq!(status.metadata().get("www-authenticate").unwrap(), "Bearer");
        let status = status_of(CallRejection::RateLimited { retry_after: Duration::from_millis(1_200) });
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert_eq!(status.metadata().get("retry-after").unwrap(), "2");
        assert_eq!(status_of(CallRejection::UnknownAgent).code(), Code::NotFound);
        assert_eq!(status_of(CallRejection::Forbidden("no".to_owned())).code(), Code::PermissionDenied);
    }
}
