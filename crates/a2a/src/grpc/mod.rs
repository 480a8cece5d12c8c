//! gRPC: `lf.a2a.v1.A2AService`, which is version 1.x, and `a2a.v1.A2AService`, which is 0.3, beside anything else on one
//! port. Without generated code and without a framework: a call is a POST over HTTP/2 whose body is one message behind
//! five bytes ([`frame`]), and whose outcome is in the trailers ([`status`]); what a package calls things is in
//! [`packages`].
//!
//! A call is read whole, up to [`Handler::max_request`], and must arrive in time. Then its version is compared with the
//! package's, the caller is admitted, and only then anybody is told what is wrong with the content. Whom it is for says
//! `tenant` (1.x only), else the metadata whose name [`router`] was given, else nobody in particular. Errors go along as
//! `google.rpc` details in 1.x, and with the name that the SDKs look for in 0.3. Deadlines are the caller's own business,
//! and so is compression: neither is kept here.

pub(crate) mod frame;
pub(crate) mod packages;
pub(crate) mod status;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::routing::post;
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::v03::rest::python;
use crate::{Answer, Binding, Call, Error, Handler, Kind, Updates, Version, extensions, version};

use frame::{Fault, Reader};
use packages::Asked;
use status::Status;

/// How long a request may take to arrive.
const PATIENCE: Duration = Duration::from_secs(30);

/// So many bytes may wait, all in all, of calls of which nobody knows yet whose they are.
const WAITING: usize = 256 << 20;

/// What requests and answers are said to be.
pub(crate) const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/grpc");

type Frame = http_body::Frame<Bytes>;

/// Both services, to be merged into the routes of a server. `agent` is the metadata that names the agent.
pub fn router<H: Handler>(handler: H, agent: HeaderName) -> Router {
    let door = Door { handler, agent, room: Arc::new(Semaphore::new(WAITING)) };
    Router::new()
        .route(&format!("/{}/{{method}}", packages::service(Version::V10)), post(call::<H, true>))
        .route(&format!("/{}/{{method}}", packages::service(Version::V03)), post(call::<H, false>))
        .with_state(door)
}

#[derive(Clone)]
struct Door<H> {
    handler: H,
    agent: HeaderName,
    /// For what is read before its caller is admitted.
    room: Arc<Semaphore>,
}

async fn call<H: Handler, const IS_V10: bool>(
    State(door): State<Door<H>>,
    Path(method): Path<String>,
    request: Request,
) -> Response<Body> {
    if !is_grpc(request.headers()) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return response;
    }
    let version = if IS_V10 { Version::V10 } else { Version::V03 };
    door.answer(version, &method, request).await.unwrap_or_else(Status::into_response)
}

/// `application/grpc`, or `application/grpc+proto`, which is the same.
fn is_grpc(headers: &HeaderMap) -> bool {
    let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    media.eq_ignore_ascii_case("application/grpc") || media.eq_ignore_ascii_case("application/grpc+proto")
}

impl<H: Handler> Door<H> {
    async fn answer(&self, version: Version, method: &str, request: Request) -> Result<Response<Body>, Status> {
        let fault = |error: Error| Status::of(version, &error);
        let operation = packages::operation(version, method)
            .ok_or_else(|| fault(Error::new(Kind::MethodNotFound, "there is no such method")))?;
        let (head, body) = request.into_parts();
        let mut held = None;
        let message = message(&head.headers, body, self.handler.max_request(), |bytes| self.hold(bytes, &mut held));
        let message = timeout(PATIENCE, message).await;
        let message = message.map_err(|_| Status::late("the request did not arrive in time"))??;
        let Asked { tenant, request } = packages::decode(version, operation, message).map_err(fault)?;
        self.compare(version, &head.headers).map_err(fault)?;
        let call = Call {
            agent: tenant.or_else(|| self.named(&head.headers)),
            binding: Binding::Grpc,
            version,
            tenant: None,
            extensions_wanted: extensions::wanted(&head.headers),
            headers: head.headers,
            extensions: head.extensions,
        };
        let caller = self.handler.admit(&call).await.map_err(|denied| Status::denied(version, denied))?;
        drop(held);
        let mut request = request.map_err(fault)?;
        let is_python = version == Version::V03 && python::calls(&call.headers);
        if is_python {
            packages::meant(&mut request);
        }
        request.check().map_err(fault)?;
        let active = if call.extensions_wanted.is_empty() { Vec::new() } else { self.handler.activates(&call) };
        let answer = self.handler.handle(caller, request).await.map_err(fault)?;
        let body = match answer {
            Answer::Updates(updates) if operation.streams() => told(version, updates, is_python),
            mut answer => {
                if is_python {
                    python::write(&mut answer);
                }
                let message = packages::encode(version, operation, answer);
                let message =
                    message.ok_or_else(|| fault(Error::new(Kind::Internal, "the answer is of another kind")))?;
                let frames = [Frame::data(message), Frame::trailers(Status::trailers())];
                Body::new(StreamBody::new(stream::iter(frames.map(Ok::<_, Infallible>))))
            }
        };
        let mut response = Response::new(body);
        response.headers_mut().insert(CONTENT_TYPE, MEDIA_TYPE);
        response.headers_mut().extend(extensions::header(version, &active));
        Ok(response)
    }

    /// Makes room for more bytes of a call; whether there was some.
    fn hold<'r>(&'r self, bytes: usize, held: &mut Option<SemaphorePermit<'r>>) -> bool {
        let Ok(more) = self.room.try_acquire_many(u32::try_from(bytes).unwrap_or(u32::MAX)) else { return false };
        match held {
            Some(held) => held.merge(more),
            None => *held = Some(more),
        }
        true
    }

    /// The package says which version is spoken; a header may say the same, not another.
    fn compare(&self, version: Version, headers: &HeaderMap) -> Result<(), Error> {
        let Some(said) = headers.get(version::HEADER) else { return Ok(()) };
        let said = said.to_str().unwrap_or("?").trim();
        if said.is_empty() || Version::named(said)? == version {
            return Ok(());
        }
        let message = format!("the metadata says {said}, the service is of version {}", version.as_str());
        Err(Error::new(Kind::VersionNotSupported, message))
    }

    fn named(&self, headers: &HeaderMap) -> Option<String> {
        let name = headers.get(&self.agent)?.to_str().unwrap_or("?").trim();
        Some(name).filter(|name| !name.is_empty()).map(ToOwned::to_owned)
    }
}

/// The one message of a request.
async fn message(
    headers: &HeaderMap,
    mut body: Body,
    limit: usize,
    mut hold: impl FnMut(usize) -> bool,
) -> Result<Bytes, Status> {
    if headers.get(frame::ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(Status::compressed());
    }
    let mut reader = Reader::new(limit);
    let mut message = None;
    while let Some(frame) = body.frame().await {
        let broken = |_| Status::bad("the request broke off");
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        if !hold(data.len()) {
            return Err(Status::full("too many requests are on their way at once; try again later"));
        }
        reader.push(data);
        while let Some(found) = reader.next()? {
            if message.replace(found).is_some() {
                return Err(Status::bad("the request has more than one message"));
            }
        }
    }
    match message {
        Some(_) if !reader.is_empty() => Err(Fault::Cut.into()),
        Some(message) => Ok(message),
        None if reader.is_empty() => Err(Status::bad("the request has no message")),
        None => Err(Fault::Cut.into()),
    }
}

/// One message for every update, and the outcome at the end.
fn told(version: Version, updates: Updates, is_python: bool) -> Body {
    let frames = stream::unfold(Some(updates), move |updates| async move {
        let mut updates = updates?;
        Some(match updates.next().await {
            Some(Ok(mut update)) => {
                if is_python {
                    python::write_update(&mut update);
                }
                (Frame::data(packages::update(version, update)), Some(updates))
            }
            Some(Err(error)) => (Frame::trailers(Status::of(version, &error).into_headers()), None),
            None => (Frame::trailers(Status::trailers()), None),
        })
    });
    Body::new(StreamBody::new(frames.map(Ok::<_, Infallible>)))
}
