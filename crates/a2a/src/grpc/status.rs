//! How a call ended, as trailers tell it. They must stay small: many clients take no more than eight kilobytes.

use axum::body::Body;
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode, percent_encode};
use prost::Message;

use super::MEDIA_TYPE;
use super::frame::Fault;
use crate::error::Status as Code;
use crate::proto::rpc;
use crate::{Denied, Error, Kind, Version, bytes64};

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// Besides those that errors of the protocol have.
const DEADLINE_EXCEEDED: i32 = 4;

/// What cannot stand in a header.
const SPECIAL: &AsciiSet = &CONTROLS.add(b'%');

/// As much as is said for people, in characters.
const LONGEST: usize = 500;
/// As much as goes along for programs, in bytes.
const LARGEST: usize = 3_000;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Status {
    pub(crate) code: i32,
    pub(crate) message: String,
    /// A [`rpc::Status`].
    details: Vec<u8>,
    metadata: HeaderMap,
}

impl Status {
    fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code: code as i32, message: message.into(), details: Vec::new(), metadata: HeaderMap::new() }
    }

    /// What is wrong is how the call is made, not what it asks for.
    pub(super) fn bad(message: &str) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    pub(super) fn full(message: &str) -> Self {
        Self::new(Code::ResourceExhausted, message)
    }

    pub(super) fn late(message: &str) -> Self {
        Self { code: DEADLINE_EXCEEDED, ..Self::bad(message) }
    }

    pub(super) fn compressed() -> Self {
        let mut status = Self::new(Code::Unimplemented, "compression is not understood here");
        status.metadata.insert("grpc-accept-encoding", HeaderValue::from_static("identity"));
        status
    }

    pub(super) fn of(version: Version, error: &Error) -> Self {
        let kind = error.kind.spoken_in(version);
        let error = Error { kind, message: error.message.chars().take(LONGEST).collect(), ..error.clone() };
        match version {
            Version::V03 => Self::new(kind.grpc(), format!("{}: {}", name(kind), error.message)),
            Version::V10 => {
                let mut details = rpc::Status::from(&error);
                if details.encoded_len() > LARGEST {
                    details =
                        rpc::Status::from(&Error { metadata: Default::default(), violations: Vec::new(), ..error });
                }
                let message = details.message.clone();
                Self { details: details.encode_to_vec(), ..Self::new(kind.grpc(), message) }
            }
        }
    }

    pub(super) fn denied(version: Version, denied: Denied) -> Self {
        match denied {
            Denied::NoAgent => Self::new(Code::NotFound, "there is no such agent"),
            Denied::Forbidden(message) => {
                Self::new(Code::PermissionDenied, message.chars().take(LONGEST).collect::<String>())
            }
            Denied::Unauthenticated { challenge } => {
                let mut status = Self::new(Code::Unauthenticated, "the call must say who makes it");
                status.metadata.extend(HeaderValue::from_str(&challenge).ok().map(|value| (WWW_AUTHENTICATE, value)));
                status
            }
            Denied::TooMany { retry_after } => {
                let mut status = Self::new(Code::ResourceExhausted, "there were too many calls; try again later");
                let seconds = retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0);
                status.metadata.insert(RETRY_AFTER, HeaderValue::from(seconds));
                status
            }
            Denied::Refused(error) => Self::of(version, &error),
        }
    }

    /// Everything went well.
    pub(super) fn trailers() -> HeaderMap {
        HeaderMap::from_iter([(STATUS, HeaderValue::from_static("0"))])
    }

    pub(super) fn into_headers(self) -> HeaderMap {
        let mut headers = self.metadata;
        headers.insert(STATUS, HeaderValue::from(self.code));
        let message = percent_encode(self.message.as_bytes(), SPECIAL).to_string();
        headers.extend(HeaderValue::try_from(message).ok().map(|message| (MESSAGE, message)));
        if !self.details.is_empty() {
            let details = bytes64::encode(&self.details);
            headers.extend(HeaderValue::try_from(details.trim_end_matches('=')).ok().map(|details| (DETAILS, details)));
        }
        headers
    }

    /// An answer without a message.
    pub(super) fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::empty());
        *response.headers_mut() = self.into_headers();
        response.headers_mut().insert(CONTENT_TYPE, MEDIA_TYPE);
        response
    }

    /// As headers or trailers tell it; nothing where they do not.
    pub(crate) fn read(headers: &HeaderMap) -> Option<Self> {
        let code = headers.get(STATUS)?.to_str().ok().and_then(|code| code.parse().ok()).unwrap_or(2);
        let message = headers.get(MESSAGE).map(HeaderValue::as_bytes).unwrap_or_default();
        let details = headers.get(DETAILS).and_then(|details| details.to_str().ok()).and_then(bytes64::decode);
        let message = percent_decode(message).decode_utf8_lossy().into_owned();
        Some(Self { code, message, details: details.unwrap_or_default(), metadata: headers.clone() })
    }

    /// The error of the protocol that this is, if it is one.
    pub(crate) fn error(&self) -> Option<Error> {
        let told = rpc::Status::decode(self.details.as_slice()).ok().and_then(|details| details.error());
        told.or_else(|| {
            let (said, message) = self.message.split_once(": ")?;
            let mut named = Kind::ALL.into_iter().filter(|kind| name(*kind) == said);
            // Two of them have one name.
            let same = named.clone().find(|kind| kind.grpc() as i32 == self.code);
            let kind = same.or_else(|| named.next())?;
            Some(Error::new(kind, message))
        })
    }

    pub(crate) fn metadata(&self) -> &HeaderMap {
        &self.metadata
    }
}

impl From<Fault> for Status {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Compressed => Self::compressed(),
            Fault::Cut => Self::bad("the message ends in the middle"),
            Fault::TooLarge { limit } => {
                Self::new(Code::ResourceExhausted, format!("the message is larger than {limit} bytes"))
            }
        }
    }
}

/// What the SDKs begin a message of 0.3 with, and look for.
fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::TaskNotFound | Kind::NotFound => "TaskNotFoundError",
        Kind::TaskNotCancelable => "TaskNotCancelableError",
        Kind::PushNotificationNotSupported => "PushNotificationNotSupportedError",
        Kind::UnsupportedOperation => "UnsupportedOperationError",
        Kind::ContentTypeNotSupported => "ContentTypeNotSupportedError",
        Kind::InvalidAgentResponse => "InvalidAgentResponseError",
        Kind::ExtendedCardNotConfigured => "AuthenticatedExtendedCardNotConfiguredError",
        Kind::ExtensionSupportRequired => "ExtensionSupportRequiredError",
        Kind::VersionNotSupported => "VersionNotSupportedError",
        Kind::Parse => "JSONParseError",
        Kind::InvalidRequest => "InvalidRequestError",
        Kind::MethodNotFound => "MethodNotFoundError",
        Kind::InvalidParams => "InvalidParamsError",
        Kind::Busy | Kind::Internal => "InternalError",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_error_is_the_same_after_the_trailers() {
        // A2A-1
        for kind in Kind::ALL {
            let mut error = Error::new(kind, "100 % of Ärger\n");
            error.metadata.insert("taskId".to_owned(), "t".to_owned());
            error.violations.push(("message.parts[0]".to_owned(), "is nothing".to_owned()));
            let status = Status::of(Version::V10, &error);
            let read = Status::read(&status.clone().into_headers()).unwrap();
            assert_eq!((read.code, &read.message), (status.code, &error.message));
            assert_eq!(read.error().unwrap(), error, "{kind:?}");
            let read = Status::read(&Status::of(Version::V03, &error).into_headers()).unwrap().error().unwrap();
            assert_eq!(read.message, error.message);
            let expected = kind.spoken_in(Version::V03);
            assert!(read.kind == expected || expected == Kind::NotFound && read.kind == Kind::TaskNotFound);
        }
    }

    #[test]
    fn trailers_stay_small_and_nothing_in_them_is_believed() {
        // A2A-4
        let mut error = Error::new(Kind::InvalidParams, "ü".repeat(100_000));
        error.violations = vec![("f".repeat(5_000), "d".repeat(5_000)); 10];
        let headers = Status::of(Version::V10, &error).into_headers();
        assert!(headers.values().map(HeaderValue::len).sum::<usize>() < 8_000);
        assert_eq!(Status::read(&headers).unwrap().error().unwrap().kind, Kind::InvalidParams);
        let strange = [(STATUS, HeaderValue::from_static("x")), (DETAILS, HeaderValue::from_static("!"))];
        let read = Status::read(&HeaderMap::from_iter(strange)).unwrap();
        assert_eq!((read.code, read.error()), (2, None));
    }

    #[test]
    fn who_is_denied_is_told_how_to_go_on() {
        // A2A-2, A2A-3
        let denied = |denied| Status::denied(Version::V10, denied).into_headers();
        let headers = denied(Denied::Unauthenticated { challenge: "Bearer".to_owned() });
        assert_eq!(
            (&headers[STATUS], &headers[WWW_AUTHENTICATE]),
            (&"16".parse().unwrap(), &"Bearer".parse().unwrap())
        );
        let headers = denied(Denied::TooMany { retry_after: Duration::from_millis(1_200) });
        assert_eq!((&headers[STATUS], &headers[RETRY_AFTER]), (&"8".parse().unwrap(), &"2".parse().unwrap()));
        assert_eq!(denied(Denied::NoAgent)[STATUS], "5");
        assert_eq!(denied(Denied::Forbidden("no".to_owned()))[STATUS], "7");
    }
}
