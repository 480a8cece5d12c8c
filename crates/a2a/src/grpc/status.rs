//! The status with which a call ends. It must stay small: many clients take no more than eight kilobytes of trailers.

use std::collections::HashMap;

use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode, percent_encode};
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::codec::FramingError;
use crate::error::DOMAIN;
use crate::{Denied, Error, Kind, Version, bytes64};

const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// Characters that cannot stand in a header.
const SPECIAL: &AsciiSet = &CONTROLS.add(b'%');

/// The longest message for people, in characters.
const MAX_MESSAGE: usize = 500;
/// The most details for programs, in bytes.
const MAX_DETAILS: usize = 3_000;

fn code(kind: Kind) -> Code {
    Code::from_i32(kind.grpc() as i32)
}

fn with_header(status: Status, name: HeaderName, value: HeaderValue) -> Status {
    let metadata = MetadataMap::from_headers(HeaderMap::from_iter([(name, value)]));
    Status::with_metadata(status.code(), status.message(), metadata)
}

/// Returns the status of an error: with `google.rpc` details in 1.x, with the name that the SDKs look for in 0.3.
pub(super) fn of_error(version: Version, error: &Error) -> Status {
    let kind = error.kind.spoken_in(version);
    let message: String = error.message.chars().take(MAX_MESSAGE).collect();
    if version == Version::V03 {
        return Status::new(code(kind), format!("{}: {message}", kind.name()));
    }
    let status = |metadata: HashMap<String, String>, violations: &[(String, String)]| {
        let mut details = ErrorDetails::new();
        details.set_error_info(kind.reason(), DOMAIN, metadata);
        for (field, description) in violations {
            details.add_bad_request_violation(field, description);
        }
        Status::with_error_details(code(kind), &message, details)
    };
    let full = status(error.metadata.clone().into_iter().collect(), &error.violations);
    if full.details().len() > MAX_DETAILS { status(HashMap::new(), &[]) } else { full }
}

/// Returns the error of the protocol that a status is, if it is one.
pub fn to_error(status: &Status) -> Option<Error> {
    let details = status.get_error_details();
    let info = details.error_info().filter(|info| info.domain == DOMAIN);
    if let Some((kind, info)) = info.and_then(|info| Some((Kind::of_reason(&info.reason)?, info))) {
        let violations = details.bad_request().into_iter().flat_map(|bad| &bad.field_violations);
        return Some(Error {
            kind,
            message: status.message().to_owned(),
            metadata: info.metadata.clone().into_iter().collect(),
            violations: violations.map(|it| (it.field.clone(), it.description.clone())).collect(),
        });
    }
    let (said, message) = status.message().split_once(": ")?;
    let mut named = Kind::ALL.into_iter().filter(|kind| kind.name() == said);
    // Two kinds have one name.
    let same = named.clone().find(|kind| code(*kind) == status.code());
    Some(Error::new(same.or_else(|| named.next())?, message))
}

pub(super) fn of_denied(version: Version, denied: Denied) -> Status {
    match denied {
        Denied::NoAgent => Status::not_found("there is no such agent"),
        Denied::Forbidden(message) => Status::permission_denied(message.chars().take(MAX_MESSAGE).collect::<String>()),
        Denied::Unauthenticated { challenge } => {
            let status = Status::unauthenticated("the call must say who makes it");
            match HeaderValue::from_str(&challenge) {
                Ok(challenge) => with_header(status, WWW_AUTHENTICATE, challenge),
                Err(_) => status,
            }
        }
        Denied::TooMany { retry_after } => {
            let seconds = retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0);
            let status = Status::resource_exhausted("there were too many calls; try again later");
            with_header(status, RETRY_AFTER, HeaderValue::from(seconds))
        }
        Denied::Refused(error) => of_error(version, &error),
    }
}

/// Returns the status of a request whose body is not one message.
pub(super) fn of_framing(error: FramingError, limit: usize) -> Status {
    match error {
        FramingError::TooLarge => Status::resource_exhausted(format!("the message is larger than {limit} bytes")),
        FramingError::Compressed => Status::unimplemented("compression is not understood here"),
        FramingError::Truncated => Status::invalid_argument("the message ends in the middle"),
    }
}

/// Makes the headers or trailers of another server readable for tonic, which panics on details that are not Base64 and
/// forgets the code where the message is not UTF-8.
pub(crate) fn tidy(headers: &mut HeaderMap) {
    if let Some(details) = headers.remove(DETAILS) {
        let details = details.to_str().ok().and_then(bytes64::decode).map(|details| bytes64::encode(&details));
        headers.extend(details.and_then(|details| Some((DETAILS, HeaderValue::try_from(details).ok()?))));
    }
    if let Some(message) = headers.remove(MESSAGE) {
        let message = percent_decode(message.as_bytes()).decode_utf8_lossy();
        let message = percent_encode(message.as_bytes(), SPECIAL).to_string();
        headers.extend(HeaderValue::try_from(message).ok().map(|message| (MESSAGE, message)));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The status as another end reads it.
    fn received(status: &Status) -> Status {
        let mut headers = HeaderMap::new();
        status.add_header(&mut headers).unwrap();
        tidy(&mut headers);
        Status::from_header_map(&headers).unwrap()
    }

    #[test]
    fn an_error_is_the_same_after_the_trailers() {
        // A2A-1
        for kind in Kind::ALL {
            let mut error = Error::new(kind, "100 % of Ärger\n");
            error.metadata.insert("taskId".to_owned(), "t".to_owned());
            error.violations.push(("message.parts[0]".to_owned(), "is nothing".to_owned()));
            let status = of_error(Version::V10, &error);
            let read = received(&status);
            assert_eq!((read.code(), read.message()), (status.code(), error.message.as_str()));
            assert_eq!(to_error(&read).unwrap(), error, "{kind:?}");
            let read = to_error(&received(&of_error(Version::V03, &error))).unwrap();
            assert_eq!(read.message, error.message);
            let expected = kind.spoken_in(Version::V03);
            assert!(read.kind == expected || expected == Kind::NotFound && read.kind == Kind::TaskNotFound);
        }
    }

    #[test]
    fn trailers_stay_small_and_nothing_in_them_is_trusted() {
        // A2A-4
        let mut error = Error::new(Kind::InvalidParams, "ü".repeat(100_000));
        error.violations = vec![("f".repeat(5_000), "d".repeat(5_000)); 10];
        let status = of_error(Version::V10, &error);
        let mut headers = HeaderMap::new();
        status.add_header(&mut headers).unwrap();
        assert!(headers.values().map(HeaderValue::len).sum::<usize>() < 8_000);
        assert_eq!(to_error(&received(&status)).unwrap().kind, Kind::InvalidParams);
        let strange = [("grpc-status", "x"), ("grpc-status-details-bin", "!"), ("grpc-message", "%zz%ff")];
        let strange = strange.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let mut headers = HeaderMap::from_iter(strange);
        tidy(&mut headers);
        let read = Status::from_header_map(&headers).unwrap();
        assert_eq!((read.code(), to_error(&read)), (Code::Unknown, None));
        assert_eq!(read.message(), "%zz\u{fffd}");
    }

    #[test]
    fn denied_callers_are_told_how_to_go_on() {
        // A2A-2, A2A-3
        let denied = |denied| of_denied(Version::V10, denied);
        let status = denied(Denied::Unauthenticated { challenge: "Bearer".to_owned() });
        assert_eq!(status.code(), Code::Unauthenticated);
        assert_eq!(status.metadata().get("www-authenticate").unwrap(), "Bearer");
        let status = denied(Denied::TooMany { retry_after: Duration::from_millis(1_200) });
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert_eq!(status.metadata().get("retry-after").unwrap(), "2");
        assert_eq!(denied(Denied::NoAgent).code(), Code::NotFound);
        assert_eq!(denied(Denied::Forbidden("no".to_owned())).code(), Code::PermissionDenied);
    }
}
