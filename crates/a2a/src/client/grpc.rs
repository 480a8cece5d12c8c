//! gRPC, in both versions, over the same HTTP client as everything else. The trailers say how a call went; nothing in
//! them is believed to be well-formed.

use ::http::header::{CONTENT_TYPE, TE};
use ::http::{HeaderMap, HeaderValue, Method, StatusCode};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use http_body_util::BodyExt;
use reqwest::Body;
use tokio::time::timeout;

use super::card::Place;
use super::http::{Wire, kind, retry_after};
use super::{Error, News, is_last};
use crate::grpc::MEDIA_TYPE;
use crate::grpc::frame::{Fault, Reader};
use crate::grpc::packages;
use crate::grpc::status::Status;
use crate::v03::rest::python;
use crate::{Answer, Request, Version};

pub(super) async fn call(wire: &Wire, place: &Place, request: Request) -> Result<Answer, Error> {
    let operation = request.operation();
    let mut messages = ask(wire, place, request).await?;
    let Some(message) = messages.next(wire).await? else { return Err(wire.invalid("it has no message")) };
    // What went wrong after the message counts, too.
    if messages.next(wire).await?.is_some() {
        return Err(wire.invalid("it has more than one message"));
    }
    let answer = packages::answer(place.version, operation, message);
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
            let (mut update, is_final) = packages::news(version, message).map_err(|error| wire.invalid(error))?;
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
        // Most agents of 0.3 are made of what can read nothing else.
        python::write_message(&mut request.message);
    }
    let message = packages::ask(version, request).ok_or(Error::Unsupported("ask for that"))?;
    let mut url = place.url.clone();
    url.set_path(&format!("/{}/{method}", packages::service(version)));
    let request = wire
        .request(Method::POST, url, version)
        .header(CONTENT_TYPE, MEDIA_TYPE)
        .header(TE, HeaderValue::from_static("trailers"))
        .body(message);
    let mut response = wire.send(request).await?;
    let is_grpc = kind(response.headers()).is_some_and(|kind| kind.starts_with("application/grpc"));
    if response.status() != StatusCode::OK || !is_grpc {
        let body = wire.fault(&mut response).await;
        return Err(wire.refused(response.status(), response.headers(), &body));
    }
    // A call that failed at once is told in the headers.
    if let Some(status) = Status::read(response.headers()) {
        settled(wire, &status)?;
    }
    let body = ::http::Response::<Body>::from(response).into_body();
    let reader = Reader::new(wire.limits().answer);
    Ok(Messages { body, reader, left: wire.limits().stream, has_ended: false })
}

/// The messages of an answer under way.
struct Messages {
    body: Body,
    reader: Reader,
    /// How much may still come.
    left: usize,
    has_ended: bool,
}

impl Messages {
    /// The next one; nothing where the call has ended well.
    async fn next(&mut self, wire: &Wire) -> Result<Option<Bytes>, Error> {
        loop {
            let message = self.reader.next().map_err(|fault| match fault {
                Fault::TooLarge { limit } => Error::TooLarge(limit),
                Fault::Compressed | Fault::Cut => wire.invalid("it is compressed, which was not asked for"),
            })?;
            if message.is_some() || self.has_ended {
                return Ok(message);
            }
            let Some(frame) = self.body.frame().await else { return Err(Error::cut()) };
            let frame = frame.map_err(|error| wire.lost(&error))?;
            match frame.into_data() {
                Ok(data) => {
                    self.left = self.left.checked_sub(data.len()).ok_or(Error::TooLarge(wire.limits().stream))?;
                    self.reader.push(data);
                }
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_else(|_| HeaderMap::new());
                    let status = Status::read(&trailers).ok_or_else(Error::cut)?;
                    settled(wire, &status)?;
                    self.has_ended = true;
                }
            }
        }
    }
}

/// Whether a call went well.
fn settled(wire: &Wire, status: &Status) -> Result<(), Error> {
    if status.code == 0 {
        return Ok(());
    }
    if let Some(error) = status.error() {
        return Err(wire.cleaned(error));
    }
    // The nearest words of HTTP.
    let (http, name) = match status.code {
        3 | 9 | 11 => (400, "INVALID_ARGUMENT"),
        4 => (504, "DEADLINE_EXCEEDED"),
        5 => (404, "NOT_FOUND"),
        7 => (403, "PERMISSION_DENIED"),
        8 => (429, "RESOURCE_EXHAUSTED"),
        12 => (501, "UNIMPLEMENTED"),
        14 => (503, "UNAVAILABLE"),
        16 => (401, "UNAUTHENTICATED"),
        _ => (500, "an error"),
    };
    let message = format!("{name}, {}", wire.clean(&status.message));
    Err(Error::Refused { status: http, message, retry_after: retry_after(status.metadata()) })
}
