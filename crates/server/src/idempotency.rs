//! Requests that change data. The body is read within its size limit.
//!
//! If the request has an `Idempotency-Key`, one transaction stores the change and the response. A repetition of the
//! request then returns the stored response and changes nothing.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use model::audit::{Actor, AuditAction, AuditRecord};
use model::text::hex;
use model::{Invalid, User};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use store::idempotency::{IdempotencyKey, StoredReply, run_once};
use store::{Job, Transaction};

use crate::{App, Problem, input};

const KEY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// Marks a response that was stored for an earlier request with the same key.
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const MAX_KEY_BYTES: usize = 255;

/// A request that changes data, with its user, its body and its idempotency key, if it has one.
pub(crate) struct IdempotentRequest<T> {
    pub(crate) app: App,
    pub(crate) user: User,
    /// The user and the request, for the audit log.
    pub(crate) actor: Actor,
    pub(crate) body: T,
    key: Option<IdempotencyKey>,
}

/// The user of a request with its idempotency key, without the body.
pub(crate) struct RequestCaller {
    pub(crate) app: App,
    pub(crate) user: User,
    pub(crate) actor: Actor,
    pub(crate) key: Option<IdempotencyKey>,
}

impl<T: RequestBody> FromRequest<App> for IdempotentRequest<T> {
    type Rejection = Problem;

    /// Reads a request with its body. Fails with 422 if it has query parameters, its body is incomplete or invalid, or
    /// its idempotency key is malformed. Fails with 413 if the body is too large, and with 504 if it does not arrive in
    /// time. Fails with 415 if a JSON body has another content type, and with 401 without a user.
    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        input::parse_query::<input::NoParameters>(parts.uri.query())?;
        let limit = T::max_bytes(app);
        let bytes = match T::timeout(app) {
            Some(timeout) => tokio::time::timeout(timeout, read_body(body, limit)).await,
            None => Ok(read_body(body, limit).await),
        };
        let bytes = bytes.map_err(|_| Problem::timeout(app.active_config().settings.request_timeout))??;
        let user = parts.extensions.get::<User>().cloned().ok_or_else(Problem::unauthorized)?;
        let actor = parts.extensions.get::<Actor>().cloned().ok_or_else(Problem::unauthorized)?;
        let key = idempotency_key(&parts, &bytes)?;
        Ok(Self { app: app.clone(), user, actor, body: T::parse(&parts, &bytes)?, key })
    }
}

/// A type of body that an [`IdempotentRequest`] can have.
pub(crate) trait RequestBody: Sized {
    /// Returns the largest size in bytes.
    fn max_bytes(app: &App) -> usize {
        app.active_config().settings.max_body_bytes
    }

    /// Returns the time within which the body must arrive, if it is limited.
    fn timeout(app: &App) -> Option<Duration> {
        Some(app.active_config().settings.request_timeout)
    }

    /// Parses the bytes. Fails if they break a rule of the body.
    fn parse(parts: &Parts, bytes: &[u8]) -> Result<Self, Problem>;
}

/// A body that must be JSON.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned> RequestBody for JsonBody<T> {
    fn parse(parts: &Parts, bytes: &[u8]) -> Result<Self, Problem> {
        input::parse_json(parts, bytes).map(Self)
    }
}

/// A JSON body that may be left out. It is then the default of `T`.
pub(crate) struct OptionalJson<T>(pub(crate) T);

impl<T: DeserializeOwned + Default> RequestBody for OptionalJson<T> {
    fn parse(parts: &Parts, bytes: &[u8]) -> Result<Self, Problem> {
        if bytes.trim_ascii().is_empty() { Ok(Self(T::default())) } else { input::parse_json(parts, bytes).map(Self) }
    }
}

/// No body. `{}` and `null` are accepted as well.
pub(crate) struct EmptyBody;

impl RequestBody for EmptyBody {
    fn parse(_: &Parts, bytes: &[u8]) -> Result<Self, Problem> {
        match bytes.trim_ascii() {
            b"" | b"{}" | b"null" => Ok(Self),
            _ => Err(Invalid::one("body", "empty", "must be empty").into()),
        }
    }
}

/// The successful result of a change, with the status of its response.
pub(crate) enum Success<T> {
    Ok(T),
    Created(T),
    NoContent,
}

impl<T> IdempotentRequest<T> {
    /// Returns the parts, for handlers that do not use [`IdempotentRequest::run_transaction`].
    pub(crate) fn into_parts(self) -> (App, User, T, Option<IdempotencyKey>) {
        (self.app, self.user, self.body, self.key)
    }

    /// Separates the body from the caller.
    pub(crate) fn into_caller(self) -> (RequestCaller, T) {
        (RequestCaller { app: self.app, user: self.user, actor: self.actor, key: self.key }, self.body)
    }

    /// Returns a record for the audit log about a change by this request.
    pub(crate) fn audit_record(&self, action: AuditAction, subject: impl ToString) -> AuditRecord {
        AuditRecord::new(self.app.clock(), self.actor.clone(), action, subject)
    }

    /// Runs `work` in one transaction, at most once for the idempotency key. Returns the response; for a repetition it
    /// is the stored one. Without a key `work` always runs.
    ///
    /// Fails if `work` fails, or the key was used for a different request. Then nothing is stored. `noun` names the
    /// object in the problem for [`store::Error::NotFound`].
    pub(crate) async fn run_transaction<A, W>(self, noun: &'static str, work: W) -> Result<Response, Problem>
    where
        A: Serialize + Send + 'static,
        W: AsyncFnOnce(&mut Transaction) -> store::Result<Success<A>>
            + for<'t> Job<'t, Success<A>, store::Error>
            + 'static,
    {
        self.run_transaction_or(Problem::from_store(noun), work).await
    }

    /// Like [`IdempotentRequest::run_transaction`], for work with its own error type. `problem` converts its errors,
    /// and also those of the idempotency key and the database.
    pub(crate) async fn run_transaction_or<A, E, W>(
        self,
        problem: impl Fn(E) -> Problem,
        work: W,
    ) -> Result<Response, Problem>
    where
        A: Serialize + Send + 'static,
        E: From<store::Error> + Send + 'static,
        W: AsyncFnOnce(&mut Transaction) -> Result<Success<A>, E> + for<'t> Job<'t, Success<A>, E> + 'static,
    {
        let owner = self.user.id;
        let key = self.key;
        let now = self.app.clock().now();
        let written = self.app.store().owner_transaction(owner, async move |tx| {
            run_once(tx, owner, key.as_ref(), now, async move |tx| Ok(encode_reply(work(tx).await?)?)).await
        });
        let (reply, is_replay) = written.await.map_err(problem)?;
        Ok(respond(reply, is_replay))
    }
}

/// Returns the reply to store: status 200, 201 or 204 with the value as JSON, which is empty for 204. Fails if the
/// value cannot be encoded.
fn encode_reply<A: Serialize>(success: Success<A>) -> store::Result<StoredReply> {
    let json = |value: &A| serde_json::to_string(value).map_err(|error| store::Error::Corrupt(error.to_string()));
    Ok(match success {
        Success::Ok(value) => StoredReply { status: 200, body: json(&value)? },
        Success::Created(value) => StoredReply { status: 201, body: json(&value)? },
        Success::NoContent => StoredReply { status: 204, body: String::new() },
    })
}

/// Returns the response for a stored reply. A body is sent as JSON; an empty one has no content type. `is_replay` adds
/// the header [`REPLAYED`]. An invalid status becomes 200.
pub(crate) fn respond(reply: StoredReply, is_replay: bool) -> Response {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK);
    let mut response = status.into_response();
    if !reply.body.is_empty() {
        *response.body_mut() = Body::from(reply.body);
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if is_replay {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// Reads a whole body. Fails with 413 if it is larger than `limit` bytes, and with 422 if it ends early.
pub(crate) async fn read_body(body: Body, limit: usize) -> Result<Vec<u8>, Problem> {
    let limited = http_body_util::Limited::new(body, limit);
    match limited.collect().await {
        Ok(collected) => Ok(collected.to_bytes().into()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(Problem::too_large(limit)),
        Err(_) => {
            Err(Invalid::one("body", "complete", "must arrive completely; the connection was closed early").into())
        }
    }
}

/// Returns the key of a request with a digest of its method, path and body, or `None` without the header. The query is
/// not part of the digest. Fails if the key is empty, longer than 255 bytes, or has a character that is not visible
/// ASCII.
fn idempotency_key(parts: &Parts, body: &[u8]) -> Result<Option<IdempotencyKey>, Invalid> {
    let Some(value) = parts.headers.get(KEY_HEADER) else { return Ok(None) };
    let bytes = value.as_bytes();
    if bytes.is_empty() || bytes.len() > MAX_KEY_BYTES || !bytes.iter().all(u8::is_ascii_graphic) {
        let message = format!("must be 1 to {MAX_KEY_BYTES} visible ASCII characters");
        return Err(Invalid::one("Idempotency-Key", "key", message));
    }
    let mut digest = Sha256::new();
    for part in [parts.method.as_str().as_bytes(), parts.uri.path().as_bytes(), body] {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    let fingerprint = hex(&digest.finalize());
    Ok(Some(IdempotencyKey { key: value.to_str().unwrap_or_default().to_owned(), fingerprint }))
}
