//! The gRPC binding of the client, in both versions, over the same HTTP client as the other bindings.
//!
//! tonic does the framing and reads the status. Status headers are sanitized before tonic sees them.

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

use super::card::SelectedInterface;
use super::http::{HttpTransport, media_type, retry_after};
use super::{Error, TaskUpdates, is_last};
use crate::grpc::codec::{FramingError, RawCodec};
use crate::grpc::{packages, status};
use crate::v03::rest::python;
use crate::{OperationRequest, OperationResponse, Version};

const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/grpc");

/// Calls an operation and returns its response. In 0.3, files in the response that are base64 text are decoded. Has no
/// timeout of its own. Fails like [`send_request`]. Fails if the response has no message, several messages, or an error
/// status, or if it cannot be decoded.
pub(super) async fn call(
    transport: &HttpTransport,
    interface: &SelectedInterface,
    request: OperationRequest,
) -> Result<OperationResponse, Error> {
    let operation = request.operation();
    let mut messages = send_request(transport, interface, request).await?;
    let Some(message) = messages.next(transport).await? else { return Err(transport.invalid("it has no message")) };
    // Reads on, because the status follows the message.
    if messages.next(transport).await?.is_some() {
        return Err(transport.invalid("it has more than one message"));
    }
    let decoded = packages::decode_response(interface.version, operation, message);
    let mut decoded = decoded.map_err(|error| transport.invalid(error))?;
    if interface.version == Version::V03 {
        python::decode_response(&mut decoded);
    }
    Ok(decoded)
}

/// Calls a streaming operation and returns its updates. The stream ends after the last possible update, even if the
/// agent keeps the call open. An error, or the idle timeout, is its last item. In 0.3, files that are base64 text are
/// decoded. Fails like [`send_request`] before the stream starts.
pub(super) async fn stream_updates(
    transport: &HttpTransport,
    interface: &SelectedInterface,
    request: OperationRequest,
) -> Result<TaskUpdates, Error> {
    let messages = send_request(transport, interface, request).await?;
    let version = interface.version;
    let initial = Some((messages, transport.clone()));
    let updates = stream::unfold(initial, move |state| async move {
        let (mut messages, transport) = state?;
        let next = async {
            let idle_timeout = transport.limits().idle_timeout;
            let message =
                timeout(idle_timeout, messages.next(&transport)).await.map_err(|_| Error::Timeout(idle_timeout))??;
            let Some(message) = message else { return Ok(None) };
            let decoded = packages::decode_update(version, message);
            let (mut update, is_final) = decoded.map_err(|error| transport.invalid(error))?;
            if version == Version::V03 {
                python::decode_update(&mut update);
            }
            let is_end = is_final || is_last(&update);
            Ok(Some((update, is_end)))
        };
        match next.await {
            Ok(None) => None,
            Ok(Some((update, true))) => Some((Ok(update), None)),
            Ok(Some((update, false))) => Some((Ok(update), Some((messages, transport)))),
            Err(error) => Some((Err(error), None)),
        }
    });
    Ok(updates.boxed())
}

/// Sends a request and returns the messages of the response, which are not read yet. The path of the interface URL is
/// replaced by that of the method. In 0.3 the bytes of files in a message are sent as base64 text. Fails with
/// [`Error::Unsupported`] if the version does not have the operation. Fails if the connection fails. Fails with
/// [`Error::Refused`] if the response is not gRPC with status 200. Fails like [`status_error`] if the headers contain
/// an error status.
async fn send_request(
    transport: &HttpTransport,
    interface: &SelectedInterface,
    mut request: OperationRequest,
) -> Result<ResponseMessages, Error> {
    let version = interface.version;
    let method = packages::method(version, request.operation()).ok_or(Error::Unsupported("perform this operation"))?;
    if version == Version::V03
        && let OperationRequest::Send(request) | OperationRequest::Stream(request) = &mut request
    {
        // Most agents of 0.3 use the Python SDK, which accepts no other form.
        python::encode_message(&mut request.message);
    }
    let message = packages::encode_request(version, request).ok_or(Error::Unsupported("perform this operation"))?;
    let mut url = interface.url.clone();
    url.set_path(&format!("/{}/{method}", packages::service(version)));
    // Encoded in full, so that the HTTP client can send it again on another connection.
    let body = EncodeBody::new_client(RawCodec, stream::iter([Ok(message)]), None, None);
    let body = body.collect().await.map_err(|status| transport.invalid(status))?.to_bytes();
    let request = transport
        .request(Method::POST, url, version)
        .header(CONTENT_TYPE, MEDIA_TYPE)
        .header(TE, HeaderValue::from_static("trailers"))
        .body(body);
    let mut response = transport.send(request).await?;
    let is_grpc = media_type(response.headers()).is_some_and(|name| name.starts_with("application/grpc"));
    if response.status() != StatusCode::OK || !is_grpc {
        let body = transport.error_body(&mut response).await;
        return Err(transport.rejection(response.status(), response.headers(), &body));
    }
    // A call that fails immediately has its status in the headers.
    status::sanitize_headers(response.headers_mut());
    if let Some(status) = Status::from_header_map(response.headers()).filter(|status| status.code() != Code::Ok) {
        return Err(status_error(transport, &status));
    }
    Ok(ResponseMessages::new(transport, ::http::Response::<Body>::from(response).into_body()))
}

/// The messages of a response.
struct ResponseMessages {
    messages: Streaming<Bytes>,
    /// True once the agent has sent a status. Before that, an error is a failure of the connection or the framing.
    has_status: Arc<AtomicBool>,
}

impl ResponseMessages {
    /// Returns the messages of a body, within the size limits for one message and for the stream. The status in the
    /// trailers is sanitized, and its presence is recorded.
    fn new(transport: &HttpTransport, body: Body) -> Self {
        let has_status = Arc::new(AtomicBool::new(false));
        let seen = has_status.clone();
        let body = body.map_frame(move |frame| match frame.into_trailers() {
            Ok(mut trailers) => {
                status::sanitize_headers(&mut trailers);
                seen.store(trailers.contains_key(Status::GRPC_STATUS), Ordering::Relaxed);
                ::http_body::Frame::trailers(trailers)
            }
            Err(frame) => frame,
        });
        let body = Limited::new(body, transport.limits().max_stream_bytes);
        let messages =
            Streaming::new_response(RawCodec, body, StatusCode::OK, None, Some(transport.limits().max_response_bytes));
        Self { messages, has_status }
    }

    /// Returns the next message, or `None` if the call has ended successfully. Fails like [`status_error`] if the agent
    /// has sent a status. Otherwise fails if the connection fails, the response is truncated, or a message is
    /// compressed. Also fails if a message or the stream is too large.
    async fn next(&mut self, transport: &HttpTransport) -> Result<Option<Bytes>, Error> {
        self.messages.message().await.map_err(|status| {
            if self.has_status.load(Ordering::Relaxed) {
                return status_error(transport, &status);
            }
            let mut causes = std::iter::successors(status.source(), |cause| (*cause).source());
            if let Some(error) = causes.clone().find_map(|cause| cause.downcast_ref::<reqwest::Error>()) {
                return transport.connection_error(error);
            }
            if causes.any(|cause| cause.is::<LengthLimitError>()) {
                return Error::TooLarge(transport.limits().max_stream_bytes);
            }
            match FramingError::from_status(&status) {
                FramingError::TooLarge => Error::TooLarge(transport.limits().max_response_bytes),
                FramingError::Compressed => {
                    transport.invalid("it is compressed, although the request did not allow that")
                }
                FramingError::Truncated => Error::truncated(),
            }
        })
    }
}

/// Returns the error for the status with which the agent ended a call: a protocol error if the status is one, otherwise
/// [`Error::Refused`] with the closest HTTP status. An unlisted code becomes 500. The texts are cleaned, and
/// `retry-after` in the metadata is kept.
fn status_error(transport: &HttpTransport, status: &Status) -> Error {
    if let Some(error) = status::error_from_status(status) {
        return transport.cleaned(error);
    }
    // The closest HTTP status.
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
    let message = format!("{name}, {}", transport.clean(status.message()));
    Error::Refused { status: http, message, retry_after: retry_after(status.metadata().as_ref()) }
}
