//! The gRPC binding: `lf.a2a.v1.A2AService` (1.x) and `a2a.v1.A2AService` (0.3), with health checks and reflection. It
//! shares its port with the other bindings.
//!
//! tonic does the framing and the trailers. All methods use one function, with messages as bytes ([`codec`]).
//! [`packages`] encodes and decodes the messages of each package, and [`status`] the errors.
//!
//! A request is received in full, up to [`AgentHandler::max_request_bytes`], within [`READ_TIMEOUT`], and decoded
//! as protobuf, because it may name the agent. The version is compared with the package, then the caller is authorized.
//! Invalid fields are reported last. The agent is named by `tenant` (1.x only) or by a metadata key. Without either it
//! is the default agent. Deadlines of the caller are ignored. Compressed requests are rejected.

pub(crate) mod codec;
pub(crate) mod packages;
mod services;
pub mod status;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::routing::post;
use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, stream};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tonic::metadata::MetadataMap;
use tonic::server::{Grpc, StreamingService};
use tonic::{Status, Streaming};

use crate::v03::rest::python;
use crate::{
    AgentHandler, Binding, CallContext, Error, ErrorKind, Operation, OperationResponse, UpdateStream, Version,
    extensions, version,
};

use codec::{FramingError, RawCodec};
use packages::DecodedRequest;

/// The time within which a request must arrive.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum size of all requests with callers that are not authorized yet, in bytes.
const MAX_UNAUTHORIZED_BYTES: usize = 256 << 20;

/// The size of the header of a message, in bytes.
const FRAME_HEADER: usize = 5;

/// Returns the routes of the protocol in both versions, of health checks and of reflection. `agent` is the metadata key
/// that names the agent. All unauthorized requests share a memory limit of 256 MiB.
pub fn router<H: AgentHandler>(handler: H, agent: HeaderName) -> Router {
    let service = GrpcService { handler, agent, memory: Arc::new(Semaphore::new(MAX_UNAUTHORIZED_BYTES)) };
    Router::new()
        .route(&format!("/{}/{{method}}", packages::service(Version::V10)), post(serve::<H, true>))
        .route(&format!("/{}/{{method}}", packages::service(Version::V03)), post(serve::<H, false>))
        .with_state(service)
        .merge(services::router())
}

#[derive(Clone)]
struct GrpcService<H> {
    handler: H,
    /// The metadata key that names the agent.
    agent: HeaderName,
    /// One permit for each received byte of requests with callers that are not authorized yet.
    memory: Arc<Semaphore>,
}

/// Serves one call of the package of 1.x or 0.3. Responds with 415 if the content type is not gRPC. All other errors
/// are gRPC statuses.
async fn serve<H: AgentHandler, const IS_V10: bool>(
    State(service): State<GrpcService<H>>,
    Path(method): Path<String>,
    request: Request,
) -> Response<Body> {
    if !is_grpc(request.headers()) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return response;
    }
    let version = if IS_V10 { Version::V10 } else { Version::V03 };
    match service.respond(version, &method, request).await {
        Ok(response) => response.map(Body::new),
        Err(status) => status.into_http(),
    }
}

/// Returns whether the content type is `application/grpc` or its synonym `application/grpc+proto`.
fn is_grpc(headers: &HeaderMap) -> bool {
    let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    media.eq_ignore_ascii_case("application/grpc") || media.eq_ignore_ascii_case("application/grpc+proto")
}

impl<H: AgentHandler> GrpcService<H> {
    /// Receives the whole request and lets tonic serve it. Later errors, such as a rejected caller, are part of the
    /// response. Fails with the status of an unknown method, before the body is read. Fails with `deadline_exceeded` if
    /// the request takes longer than 30 seconds. Fails like [`Self::receive`] otherwise.
    async fn respond(
        self,
        version: Version,
        method: &str,
        request: Request,
    ) -> Result<Response<tonic::body::Body>, Status> {
        let operation = packages::operation(version, method)
            .ok_or_else(|| status::from_error(version, &packages::method_not_found()))?;
        let limit = self.handler.max_request_bytes();
        let (head, body) = request.into_parts();
        let received = timeout(READ_TIMEOUT, self.receive(body, limit)).await;
        let (body, permit) =
            received.map_err(|_| Status::deadline_exceeded("the request did not arrive in time"))??;
        let request = Request::from_parts(head, Full::new(body));
        let call = Invocation { service: self, version, operation, permit };
        Ok(Grpc::new(RawCodec).max_decoding_message_size(limit).streaming(call, request).await)
    }

    /// Receives a body and returns it with its memory permits, which are `None` for an empty body. Fails with
    /// `resource_exhausted` if it is larger than `limit` and a frame header. The same status means that the memory
    /// limit of all requests is reached. Fails with `invalid_argument` if it is incomplete.
    async fn receive(&self, mut body: Body, limit: usize) -> Result<(Bytes, Option<OwnedSemaphorePermit>), Status> {
        let mut received = BytesMut::new();
        let mut permits: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = body.frame().await {
            let broken = |_| Status::invalid_argument("the request is incomplete");
            let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
            if received.len() + data.len() > limit + FRAME_HEADER {
                return Err(status::from_framing_error(FramingError::TooLarge, limit));
            }
            let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
            let full = |_| Status::resource_exhausted("too many concurrent requests; try again later");
            let permit = self.memory.clone().try_acquire_many_owned(bytes).map_err(full)?;
            match &mut permits {
                Some(permits) => permits.merge(permit),
                None => permits = Some(permit),
            }
            received.extend_from_slice(&data);
        }
        Ok((received.freeze(), permits))
    }

    /// Fails with `VersionNotSupported` if the version header does not match the version of the package or is unknown.
    /// A missing or empty header is accepted.
    fn check_version(&self, version: Version, headers: &HeaderMap) -> Result<(), Error> {
        let Some(named) = headers.get(version::VERSION_HEADER) else { return Ok(()) };
        let named = named.to_str().unwrap_or("?").trim();
        if named.is_empty() || Version::parse(named)? == version {
            return Ok(());
        }
        let message = format!("the metadata names version {named}, but the service has version {}", version.as_str());
        Err(Error::new(ErrorKind::VersionNotSupported, message))
    }

    /// Returns the agent that the metadata name, or `None` if they name none. A value that is not text becomes `?`,
    /// which is no agent.
    fn agent_from_metadata(&self, headers: &HeaderMap) -> Option<String> {
        let name = headers.get(&self.agent)?.to_str().unwrap_or("?").trim();
        Some(name).filter(|name| !name.is_empty()).map(ToOwned::to_owned)
    }
}

/// One call that tonic serves.
struct Invocation<H> {
    service: GrpcService<H>,
    version: Version,
    operation: Operation,
    permit: Option<OwnedSemaphorePermit>,
}

type EncodedMessages = BoxStream<'static, Result<Bytes, Status>>;

/// Serves all methods as streams. Unary and streaming responses have the same form on the wire.
impl<H: AgentHandler> StreamingService<Bytes> for Invocation<H> {
    type Response = Bytes;
    type ResponseStream = EncodedMessages;
    type Future = BoxFuture<'static, Result<tonic::Response<EncodedMessages>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<Bytes>>) -> Self::Future {
        let service = self.service.clone();
        service.call(self.version, self.operation, self.permit.take(), request).boxed()
    }
}

impl<H: AgentHandler> GrpcService<H> {
    /// Decodes, authorizes and handles one call. Returns its response as a stream of one or several messages. For the
    /// Python SDK of 0.3, the bytes of files are converted. The active extensions are listed in the response metadata.
    ///
    /// Checks in this order: exactly one message, protobuf of the operation, the version, the caller, the content.
    /// Fails at the first that is wrong, or with the error of the handler. Fails with `Internal` if the response does
    /// not match the operation. The message is decoded first because it contains the tenant. The tenant names the
    /// agent, or else the metadata do. The memory permits are released after the authorization.
    async fn call(
        self,
        version: Version,
        operation: Operation,
        permit: Option<OwnedSemaphorePermit>,
        request: tonic::Request<Streaming<Bytes>>,
    ) -> Result<tonic::Response<EncodedMessages>, Status> {
        let to_status = |error: Error| status::from_error(version, &error);
        let (metadata, extensions, messages) = request.into_parts();
        let message = only_message(messages, self.handler.max_request_bytes()).await?;
        let DecodedRequest { tenant, request } =
            packages::decode_request(version, operation, message).map_err(to_status)?;
        let headers = metadata.into_headers();
        self.check_version(version, &headers).map_err(to_status)?;
        let call = CallContext {
            agent: tenant.or_else(|| self.agent_from_metadata(&headers)),
            binding: Binding::Grpc,
            version,
            tenant: None,
            requested_extensions: extensions::requested(&headers),
            headers,
            extensions,
        };
        let caller =
            self.handler.authorize(&call).await.map_err(|rejection| status::from_rejection(version, rejection))?;
        drop(permit);
        let mut request = request.map_err(to_status)?;
        let is_python = version == Version::V03 && python::is_python_sdk(&call.headers);
        if is_python {
            python::decode_request(&mut request);
        }
        request.validate().map_err(to_status)?;
        let active =
            if call.requested_extensions.is_empty() { Vec::new() } else { self.handler.active_extensions(&call) };
        let messages = match self.handler.handle(caller, request).await.map_err(to_status)? {
            OperationResponse::Updates(updates) if operation.is_streaming() => {
                encode_updates(version, updates, is_python)
            }
            mut response => {
                if is_python {
                    python::encode_response(&mut response);
                }
                let message = packages::encode_response(version, operation, response);
                let message = message.ok_or_else(|| {
                    to_status(Error::new(ErrorKind::Internal, "the response does not match the request"))
                })?;
                stream::iter([Ok(message)]).boxed()
            }
        };
        let headers = HeaderMap::from_iter(extensions::response_header(version, &active));
        Ok(tonic::Response::from_parts(MetadataMap::from_headers(headers), messages, http::Extensions::new()))
    }
}

/// Returns the only message of a request. `limit` is the maximum size for the error text. Fails if the request has none
/// or several, or if a message is too large, compressed or truncated.
async fn only_message(mut messages: Streaming<Bytes>, limit: usize) -> Result<Bytes, Status> {
    let malformed = |error| status::from_framing_error(FramingError::from_status(&error), limit);
    let message = messages.message().await.map_err(malformed)?;
    let message = message.ok_or_else(|| Status::invalid_argument("the request has no message"))?;
    match messages.message().await.map_err(malformed)? {
        None => Ok(message),
        Some(_) => Err(Status::invalid_argument("the request has more than one message")),
    }
}

/// Returns one message for every update. An error becomes a status, which ends the stream. With `is_python` the bytes
/// of files are encoded for the Python SDK.
fn encode_updates(version: Version, updates: UpdateStream, is_python: bool) -> EncodedMessages {
    let encode = move |update| match update {
        Ok(mut update) => {
            if is_python {
                python::encode_update(&mut update);
            }
            Ok(packages::encode_update(version, update))
        }
        Err(error) => Err(status::from_error(version, &error)),
    };
    updates.map(encode).boxed()
}
