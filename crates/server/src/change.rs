//! Requests that change something: the body is read within its limit, and with an `Idempotency-Key` the change and the
//! record of its answer are one transaction, so that a request sent twice is carried out once.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use model::text::hex;
use model::{Invalid, User};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use store::idempotency::{Key, Reply, once};
use store::{Job, Transaction};

use crate::{App, Problem, input};

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const MAX_KEY: usize = 255;

/// A changing request: who sends it, its body, and its key if it has one.
pub(crate) struct Change<T> {
    pub(crate) app: App,
    pub(crate) user: User,
    pub(crate) body: T,
    key: Option<Key>,
}

impl<T: RequestBody> FromRequest<App> for Change<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        input::parameters::<input::NoParameters>(parts.uri.query())?;
        let limit = T::limit(app);
        let bytes = match T::patience(app) {
            Some(patience) => tokio::time::timeout(patience, read(body, limit)).await,
            None => Ok(read(body, limit).await),
        };
        let bytes = bytes.map_err(|_| Problem::timeout(app.in_force().settings.request_timeout))??;
        let user = parts.extensions.get::<User>().cloned().ok_or_else(Problem::unauthorized)?;
        let key = key(&parts, &bytes)?;
        Ok(Self { app: app.clone(), user, body: T::parse(&parts, &bytes)?, key })
    }
}

/// What a changing request may carry.
pub(crate) trait RequestBody: Sized {
    fn limit(app: &App) -> usize {
        app.in_force().settings.max_body_bytes
    }

    /// How long it may take to arrive.
    fn patience(app: &App) -> Option<Duration> {
        Some(app.in_force().settings.request_timeout)
    }

    fn parse(parts: &Parts, bytes: &[u8]) -> Result<Self, Problem>;
}

/// A JSON body.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> RequestBody for Json<T> {
    fn parse(parts: &Parts, bytes: &[u8]) -> Result<Self, Problem> {
        input::json(parts, bytes).map(Self)
    }
}

/// A JSON body, or none, which says nothing.
pub(crate) struct Perhaps<T>(pub(crate) T);

impl<T: DeserializeOwned + Default> RequestBody for Perhaps<T> {
    fn parse(parts: &Parts, bytes: &[u8]) -> Result<Self, Problem> {
        if bytes.trim_ascii().is_empty() { Ok(Self(T::default())) } else { input::json(parts, bytes).map(Self) }
    }
}

/// No body, or one that says nothing.
pub(crate) struct Nothing;

impl RequestBody for Nothing {
    fn parse(_: &Parts, bytes: &[u8]) -> Result<Self, Problem> {
        match bytes.trim_ascii() {
            b"" | b"{}" | b"null" => Ok(Self),
            _ => Err(Invalid::one("body", "empty", "must be empty").into()),
        }
    }
}

/// What a change answers with.
pub(crate) enum Answer<T> {
    Ok(T),
    Created(T),
    NoContent,
}

impl<T> Change<T> {
    /// For what is carried out in another way.
    pub(crate) fn into_parts(self) -> (App, User, T, Option<Key>) {
        (self.app, self.user, self.body, self.key)
    }

    /// Carries the change out in one transaction, once for its key. `noun` names what a missing row is called.
    pub(crate) async fn carry_out<A, W>(self, noun: &'static str, work: W) -> Result<Response, Problem>
    where
        A: Serialize + Send + 'static,
        W: AsyncFnOnce(&mut Transaction) -> store::Result<Answer<A>>
            + for<'t> Job<'t, Answer<A>, store::Error>
            + 'static,
    {
        self.carry_out_or(Problem::from_store(noun), work).await
    }

    /// Like [`Change::carry_out`], for work with an error of its own.
    pub(crate) async fn carry_out_or<A, E, W>(
        self,
        problem: impl Fn(E) -> Problem,
        work: W,
    ) -> Result<Response, Problem>
    where
        A: Serialize + Send + 'static,
        E: From<store::Error> + Send + 'static,
        W: AsyncFnOnce(&mut Transaction) -> Result<Answer<A>, E> + for<'t> Job<'t, Answer<A>, E> + 'static,
    {
        let owner = self.user.id;
        let key = self.key;
        let now = self.app.clock().now();
        let written = self.app.store().transaction(async move |tx| {
            once(tx, owner, key.as_ref(), now, async move |tx| Ok(reply(work(tx).await?)?)).await
        });
        let (reply, earlier) = written.await.map_err(problem)?;
        Ok(respond(reply, earlier))
    }
}

fn reply<A: Serialize>(answer: Answer<A>) -> store::Result<Reply> {
    let json = |value: &A| serde_json::to_string(value).map_err(|error| store::Error::Corrupt(error.to_string()));
    Ok(match answer {
        Answer::Ok(value) => Reply { status: 200, body: json(&value)? },
        Answer::Created(value) => Reply { status: 201, body: json(&value)? },
        Answer::NoContent => Reply { status: 204, body: String::new() },
    })
}

pub(crate) fn respond(reply: Reply, earlier: bool) -> Response {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK);
    let mut response = status.into_response();
    if !reply.body.is_empty() {
        *response.body_mut() = Body::from(reply.body);
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if earlier {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// A body that must not be larger than `limit`.
pub(crate) async fn read(body: Body, limit: usize) -> Result<Vec<u8>, Problem> {
    let limited = http_body_util::Limited::new(body, limit);
    match limited.collect().await {
        Ok(collected) => Ok(collected.to_bytes().into()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(Problem::too_large(limit)),
        Err(_) => Err(Invalid::one("body", "complete", "must arrive completely").into()),
    }
}

/// The request's key and a digest of what it asks for.
fn key(parts: &Parts, body: &[u8]) -> Result<Option<Key>, Invalid> {
    let Some(value) = parts.headers.get(KEY) else { return Ok(None) };
    let bytes = value.as_bytes();
    if bytes.is_empty() || bytes.len() > MAX_KEY || !bytes.iter().all(u8::is_ascii_graphic) {
        let message = format!("must be 1 to {MAX_KEY} visible ASCII characters");
        return Err(Invalid::one("Idempotency-Key", "key", message));
    }
    let mut digest = Sha256::new();
    for part in [parts.method.as_str().as_bytes(), parts.uri.path().as_bytes(), body] {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    let fingerprint = hex(&digest.finalize());
    Ok(Some(Key { key: value.to_str().unwrap_or_default().to_owned(), fingerprint }))
}
