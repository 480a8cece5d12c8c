//! gRPC: `lf.a2a.v1.A2AService`, which is version 1.x, and `a2a.v1.A2AService`, which is 0.3, beside anything else on one
//! port, with the services for health checks and reflection.
//!
//! tonic does the framing and the trailers. All methods go through one function, with messages as bytes ([`codec`]); the
//! messages of each package are in [`packages`], errors in [`status`].
//!
//! A request is received whole, up to [`Handler::max_request`], within [`READ_TIMEOUT`]. Then its version is compared with
//! that of the package, the caller is admitted, and only then errors of the content are reported. The agent is named by
//! `tenant` (1.x only), else by the metadata whose name [`router`] was given, else it is the default one. Deadlines of the
//! caller are ignored, and compressed requests are refused.

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
use crate::{Answer, Binding, Call, Error, Handler, Kind, Operation, Updates, Version, extensions, version};

use codec::{FramingError, RawCodec};
use packages::Decoded;

/// How long a request may take to arrive.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The most bytes of all requests together whose callers are not admitted yet.
const MAX_WAITING: usize = 256 << 20;

/// The bytes in front of a message.
const FRAME_HEADER: usize = 5;

/// Returns the routes of all services. `agent` is the metadata that names the agent.
pub fn router<H: Handler>(handler: H, agent: HeaderName) -> Router {
    let service = Service { handler, agent, memory: Arc::new(Semaphore::new(MAX_WAITING)) };
    Router::new()
        .route(&format!("/{}/{{method}}", packages::service(Version::V10)), post(serve::<H, true>))
        .route(&format!("/{}/{{method}}", packages::service(Version::V03)), post(serve::<H, false>))
        .with_state(service)
        .merge(services::router())
}

#[derive(Clone)]
struct Service<H> {
    handler: H,
    agent: HeaderName,
    /// One permit a byte that is received before its caller is admitted.
    memory: Arc<Semaphore>,
}

async fn serve<H: Handler, const IS_V10: bool>(
    State(service): State<Service<H>>,
    Path(method): Path<String>,
    request: Request,
) -> Response<Body> {
    if !is_grpc(request.headers()) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return response;
    }
    let version = if IS_V10 { Version::V10 } else { Version::V03 };
    match service.answer(version, &method, request).await {
        Ok(response) => response.map(Body::new),
        Err(status) => status.into_http(),
    }
}

/// `application/grpc`, or `application/grpc+proto`, which is the same.
fn is_grpc(headers: &HeaderMap) -> bool {
    let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    media.eq_ignore_ascii_case("application/grpc") || media.eq_ignore_ascii_case("application/grpc+proto")
}

impl<H: Handler> Service<H> {
    async fn answer(
        self,
        version: Version,
        method: &str,
        request: Request,
    ) -> Result<Response<tonic::body::Body>, Status> {
        let operation = packages::operation(version, method)
            .ok_or_else(|| status::of_error(version, &packages::no_such_method()))?;
        let limit = self.handler.max_request();
        let (head, body) = request.into_parts();
        let received = timeout(READ_TIMEOUT, self.receive(body, limit)).await;
        let (body, held) = received.map_err(|_| Status::deadline_exceeded("the request did not arrive in time"))??;
        let request = Request::from_parts(head, Full::new(body));
        let call = Invocation { service: self, version, operation, held };
        Ok(Grpc::new(RawCodec).max_decoding_message_size(limit).streaming(call, request).await)
    }

    /// Receives a body as long as there is memory for it.
    async fn receive(&self, mut body: Body, limit: usize) -> Result<(Bytes, Option<OwnedSemaphorePermit>), Status> {
        let mut received = BytesMut::new();
        let mut held: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = body.frame().await {
            let broken = |_| Status::invalid_argument("the request broke off");
            let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
            if received.len() + data.len() > limit + FRAME_HEADER {
                return Err(status::of_framing(FramingError::TooLarge, limit));
            }
            let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
            let full = |_| Status::resource_exhausted("too many requests are on their way at once; try again later");
            let permit = self.memory.clone().try_acquire_many_owned(bytes).map_err(full)?;
            match &mut held {
                Some(held) => held.merge(permit),
                None => held = Some(permit),
            }
            received.extend_from_slice(&data);
        }
        Ok((received.freeze(), held))
    }

    /// Fails if a header names another version than that of the package.
    fn compare(&self, version: Version, headers: &HeaderMap) -> Result<(), Error> {
        let Some(named) = headers.get(version::HEADER) else { return Ok(()) };
        let named = named.to_str().unwrap_or("?").trim();
        if named.is_empty() || Version::named(named)? == version {
            return Ok(());
        }
        let message = format!("the metadata says {named}, the service is of version {}", version.as_str());
        Err(Error::new(Kind::VersionNotSupported, message))
    }

    fn named(&self, headers: &HeaderMap) -> Option<String> {
        let name = headers.get(&self.agent)?.to_str().unwrap_or("?").trim();
        Some(name).filter(|name| !name.is_empty()).map(ToOwned::to_owned)
    }
}

/// One call, for tonic to serve.
struct Invocation<H> {
    service: Service<H>,
    version: Version,
    operation: Operation,
    held: Option<OwnedSemaphorePermit>,
}

type Messages = BoxStream<'static, Result<Bytes, Status>>;

/// All methods are served as streams: the two kinds look alike on the wire.
impl<H: Handler> StreamingService<Bytes> for Invocation<H> {
    type Response = Bytes;
    type ResponseStream = Messages;
    type Future = BoxFuture<'static, Result<tonic::Response<Messages>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<Bytes>>) -> Self::Future {
        let service = self.service.clone();
        service.call(self.version, self.operation, self.held.take(), request).boxed()
    }
}

impl<H: Handler> Service<H> {
    async fn call(
        self,
        version: Version,
        operation: Operation,
        held: Option<OwnedSemaphorePermit>,
        request: tonic::Request<Streaming<Bytes>>,
    ) -> Result<tonic::Response<Messages>, Status> {
        let failed = |error: Error| status::of_error(version, &error);
        let (metadata, extensions, messages) = request.into_parts();
        let message = only_message(messages, self.handler.max_request()).await?;
        let Decoded { tenant, request } = packages::decode_request(version, operation, message).map_err(failed)?;
        let headers = metadata.into_headers();
        self.compare(version, &headers).map_err(failed)?;
        let call = Call {
            agent: tenant.or_else(|| self.named(&headers)),
            binding: Binding::Grpc,
            version,
            tenant: None,
            extensions_wanted: extensions::wanted(&headers),
            headers,
            extensions,
        };
        let caller = self.handler.admit(&call).await.map_err(|denied| status::of_denied(version, denied))?;
        drop(held);
        let mut request = request.map_err(failed)?;
        let is_python = version == Version::V03 && python::calls(&call.headers);
        if is_python {
            python::read_request(&mut request);
        }
        request.check().map_err(failed)?;
        let active = if call.extensions_wanted.is_empty() { Vec::new() } else { self.handler.activates(&call) };
        let messages = match self.handler.handle(caller, request).await.map_err(failed)? {
            Answer::Updates(updates) if operation.streams() => encoded(version, updates, is_python),
            mut answer => {
                if is_python {
                    python::write(&mut answer);
                }
                let message = packages::encode_answer(version, operation, answer);
                let message =
                    message.ok_or_else(|| failed(Error::new(Kind::Internal, "the answer is of another kind")))?;
                stream::iter([Ok(message)]).boxed()
            }
        };
        let headers = HeaderMap::from_iter(extensions::header(version, &active));
        Ok(tonic::Response::from_parts(MetadataMap::from_headers(headers), messages, http::Extensions::new()))
    }
}

/// Returns the one message of a request.
async fn only_message(mut messages: Streaming<Bytes>, limit: usize) -> Result<Bytes, Status> {
    let malformed = |error| status::of_framing(FramingError::of(&error), limit);
    let message = messages.message().await.map_err(malformed)?;
    let message = message.ok_or_else(|| Status::invalid_argument("the request has no message"))?;
    match messages.message().await.map_err(malformed)? {
        None => Ok(message),
        Some(_) => Err(Status::invalid_argument("the request has more than one message")),
    }
}

/// Returns one message for every update; an error is the last.
fn encoded(version: Version, updates: Updates, is_python: bool) -> Messages {
    let encode = move |update| match update {
        Ok(mut update) => {
            if is_python {
                python::write_update(&mut update);
            }
            Ok(packages::encode_update(version, update))
        }
        Err(error) => Err(status::of_error(version, &error)),
    };
    updates.map(encode).boxed()
}
