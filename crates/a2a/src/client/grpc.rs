//! gRPC, in both versions, over the same HTTP client as the other bindings. tonic does the framing and reads the status;
//! nothing in it is trusted to be well-formed.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ::http::header::{CONTENT_TYPE, TE};
use ::http::{HeaderValue, Method, StatusCode};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use reqwest::Body;
use tokio::time::timeout;
use tonic::codec::EncodeBody;
use tonic::{Code, Status, Streaming};

use super::card::Place;
use super::http::{Wire, kind, retry_after};
use super::{Error, News, is_last};
use crate::grpc::codec::{FramingError, RawCodec};
use crate::grpc::{packages, status};
use crate::v03::rest::python;
use crate::{Answer, Request, Version};

const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/grpc");

pub(super) async fn call(wire: &Wire, place: &Place, request: Request) -> Result<Answer, Error> {
    let operation = request.operation();
    let mut messages = ask(wire, place, request).await?;
    let Some(message) = messages.next(wire).await? else { return Err(wire.invalid("it has no message")) };
    // An error after the message counts, too.
    if messages.next(wire).await?.is_some() {
        return Err(wire.invalid("it has more than one message"));
    }
    let answer = packages::decode_answer(place.version, operation, message);
    let mut answer = answer.map_err(|error| wire.invalid(error))?;
    if place.version == Version::V03 {
        python::read_answer(&mut answer);
    }
    Ok(answer)
}

pub(super) async fn listen(wire: &Wire, place: &Place, request: Request) -> Result<News, Error> {
    let messages = ask(wire, place, request).await?;
    let version = place.version;
    let begun = Some((messages, wire.clone()));
    let news = stream::unfold(begun, move |state| async move {
        let (mut messages, wire) = state?;
        let next = async {
            let silence = wire.limits().silence;
            let message = timeout(silence, messages.next(&wire)).await.map_err(|_| Error::Silent(silence))??;
            let Some(message) = message else { return Ok(None) };
            let decoded = packages::decode_update(version, message);
            let (mut update, is_final) = decoded.map_err(|error| wire.invalid(error))?;
            if version == Version::V03 {
                python::read_update(&mut update);
            }
            let is_end = is_final || is_last(&update);
            Ok(Some((update, is_end)))
        };
        match next.await {
            Ok(None) => None,
            Ok(Some((update, true))) => Some((Ok(update), None)),
            Ok(Some((update, false))) => Some((Ok(update), Some((messages, wire)))),
            Err(error) => Some((Err(error), None)),
        }
    });
    Ok(news.boxed())
}

async fn ask(wire: &Wire, place: &Place, mut request: Request) -> Result<Messages, Error> {
    let version = place.version;
    let method = packages::method(version, request.operation()).ok_or(Error::Unsupported("ask for that"))?;
    if version == Version::V03
        && let Request::Send(request) | Request::Stream(request) = &mut request
    {
        // Most agents of 0.3 can read nothing else.
        python::write_message(&mut request.message);
    }
    let message = packages::encode_request(version, request).ok_or(Error::Unsupported("ask for that"))?;
    let mut url = place.url.clone();
    url.set_path(&format!("/{}/{method}", packages::service(version)));
    // Whole, so that the HTTP client can send it again on another connection.
    let body = EncodeBody::new_client(RawCodec, stream::iter([Ok(message)]), None, None);
    let body = body.collect().await.map_err(|status| wire.invalid(status))?.to_bytes();
    let request = wire
        .request(Method::POST, url, version)
        .header(CONTENT_TYPE, MEDIA_TYPE)
        .header(TE, HeaderValue::from_static("trailers"))
        .body(body);
    let mut response = wire.send(request).await?;
    let is_grpc = kind(response.headers()).is_some_and(|kind| kind.starts_with("application/grpc"));
    if response.status() != StatusCode::OK || !is_grpc {
        let body = wire.fault(&mut response).await;
        return Err(wire.refused(response.status(), response.headers(), &body));
    }
    // A call that failed at once has its status in the headers.
    status::tidy(response.headers_mut());
    if let Some(status) = Status::from_header_map(response.headers()).filter(|status| status.code() != Code::Ok) {
        return Err(refused(wire, &status));
    }
    Ok(Messages::new(wire, ::http::Response::<Body>::from(response).into_body()))
}

/// The messages of an answer under way.
struct Messages {
    messages: Streaming<Bytes>,
    /// Whether the agent has sent a status; until then an error is not one of the agent.
    has_status: Arc<AtomicBool>,
}

impl Messages {
    fn new(wire: &Wire, body: Body) -> Self {
        let has_status = Arc::new(AtomicBool::new(false));
        let seen = has_status.clone();
        let body = body.map_frame(move |frame| match frame.into_trailers() {
            Ok(mut trailers) => {
                status::tidy(&mut trailers);
                seen.store(trailers.contains_key(Status::GRPC_STATUS), Ordering::Relaxed);
                ::http_body::Frame::trailers(trailers)
            }
            Err(frame) => frame,
        });
        let body = Limited::new(body, wire.limits().stream);
        let messages = Streaming::new_response(RawCodec, body, StatusCode::OK, None, Some(wire.limits().answer));
        Self { messages, has_status }
    }

    /// Returns the next message, or nothing where the call has ended well.
    async fn next(&mut self, wire: &Wire) -> Result<Option<Bytes>, Error> {
        self.messages.message().await.map_err(|status| {
            if self.has_status.load(Ordering::Relaxed) {
                return refused(wire, &status);
            }
            let mut causes = std::iter::successors(status.source(), |cause| (*cause).source());
            if let Some(error) = causes.clone().find_map(|cause| cause.downcast_ref::<reqwest::Error>()) {
                return wire.lost(error);
            }
            if causes.any(|cause| cause.is::<LengthLimitError>()) {
                return Error::TooLarge(wire.limits().stream);
            }
            match FramingError::of(&status) {
                FramingError::TooLarge => Error::TooLarge(wire.limits().answer),
                FramingError::Compressed => wire.invalid("it is compressed, which was not asked for"),
                FramingError::Truncated => Error::cut(),
            }
        })
    }
}

/// Returns the error of a call that the agent has ended with this status.
fn refused(wire: &Wire, status: &Status) -> Error {
    if let Some(error) = status::to_error(status) {
        return wire.cleaned(error);
    }
    // The nearest status of HTTP.
    let (http, name) = match status.code() {
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => (400, "INVALID_ARGUMENT"),
        Code::DeadlineExceeded => (504, "DEADLINE_EXCEEDED"),
        Code::NotFound => (404, "NOT_FOUND"),
        Code::PermissionDenied => (403, "PERMISSION_DENIED"),
        Code::ResourceExhausted => (429, "RESOURCE_EXHAUSTED"),
        Code::Unimplemented => (501, "UNIMPLEMENTED"),
        Code::Unavailable => (503, "UNAVAILABLE"),
        Code::Unauthenticated => (401, "UNAUTHENTICATED"),
        _ => (500, "an error"),
    };
    let message = format!("{name}, {}", wire.clean(status.message()));
    Error::Refused { status: http, message, retry_after: retry_after(status.metadata().as_ref()) }
}
