//! Error responses over HTTP: `application/problem+json` (RFC 9457). Only this module maps errors to status codes.
//! Internal causes are logged and never sent.

use std::borrow::Cow;

use api::PROBLEM_TYPE_PREFIX;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::quota::QuotaReached;
use model::{Invalid, Violation};

/// The error of a request, with its status and the text for the caller.
#[derive(Clone, Debug)]
pub struct Problem {
    status: StatusCode,
    kind: &'static str,
    detail: Cow<'static, str>,
    pub(crate) errors: Vec<Violation>,
    /// Seconds.
    retry_after: Option<u64>,
    /// The internal cause. It is logged and not sent.
    cause: Option<String>,
}

/// The entry for the log that accompanies a response with a server error.
#[derive(Clone, Debug)]
pub(crate) struct LoggedFailure {
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    pub(crate) recoverable: bool,
}

impl Problem {
    /// Returns a problem. `kind` is the last segment of its type URI.
    pub(crate) fn new(status: StatusCode, kind: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { status, kind, detail: detail.into(), errors: Vec::new(), retry_after: None, cause: None }
    }

    /// Returns the body for the request of this id. The title is the reason phrase of the status. The internal cause is
    /// left out.
    pub(crate) fn body<'a>(&'a self, request_id: &'a str) -> api::Problem<'a> {
        api::Problem {
            kind: format!("{PROBLEM_TYPE_PREFIX}{}", self.kind).into(),
            title: self.status.canonical_reason().unwrap_or("Error").into(),
            status: self.status.as_u16(),
            detail: (&*self.detail).into(),
            request_id: request_id.into(),
            errors: self.errors.as_slice().into(),
        }
    }

    pub(crate) fn unknown_path() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", "no endpoint exists at this path; see /docs")
    }

    pub(crate) fn not_found(noun: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", format!("{noun} not found"))
    }

    pub(crate) fn method_not_allowed() -> Self {
        let detail = "this path does not support this method; the Allow header lists the supported ones";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", detail)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "a valid token is required")
    }

    pub(crate) fn forbidden(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let detail = format!("the body must have at most {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail)
    }

    /// Returns 429 with `Retry-After`: the whole seconds of `wait` plus one.
    pub(crate) fn too_many_requests(wait: std::time::Duration) -> Self {
        let seconds = wait.as_secs() + 1;
        let detail = format!("too many requests; try again in {seconds} s");
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate-limit", detail);
        Self { retry_after: Some(seconds), ..problem }
    }

    pub(crate) fn timeout(limit: std::time::Duration) -> Self {
        let detail = format!("the request took longer than the limit of {} s", limit.as_secs());
        Self::new(StatusCode::GATEWAY_TIMEOUT, "timeout", detail)
    }

    /// Returns 500. `cause` is only logged.
    pub(crate) fn internal(cause: impl Into<String>) -> Self {
        let detail = "an internal error occurred; the server log has the details under this request_id";
        let problem = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail);
        Self { cause: Some(cause.into()), ..problem }
    }

    /// Returns 503 with `Retry-After`. `cause` is only logged.
    fn unavailable(cause: String) -> Self {
        let detail = "the database is not available; try again";
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail);
        Self { retry_after: Some(1), cause: Some(cause), ..problem }
    }

    /// Returns a function that converts errors of the store. `noun` names the object that [`store::Error::NotFound`] is
    /// about.
    pub(crate) fn from_store(noun: &str) -> impl Fn(store::Error) -> Self {
        move |error| match error {
            store::Error::NotFound => Self::not_found(noun),
            other => other.into(),
        }
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        let problem = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "validation", invalid.to_string());
        Self { errors: invalid.violations, ..problem }
    }
}

impl From<supervisor::SubmitError> for Problem {
    /// Converts an error of a submission. A missing agent is 404, a disabled one or a request that this node cannot
    /// accept 409, a forbidden one 403. A too large input is 413, violations are 422, and an internal error is 500.
    fn from(error: supervisor::SubmitError) -> Self {
        use supervisor::SubmitError;
        match error {
            SubmitError::AgentNotFound => Self::not_found("agent"),
            SubmitError::AgentDisabled(_) => Self::new(StatusCode::CONFLICT, "disabled", error.to_string()),
            SubmitError::Forbidden(reason) => Self::forbidden(reason),
            SubmitError::InputTooLarge { limit } => {
                let detail = format!("the input must have at most {limit} bytes");
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail)
            }
            SubmitError::Invalid(invalid) => invalid.into(),
            SubmitError::NotOnThisNode(reason) => Self::new(StatusCode::CONFLICT, "not-here", reason),
            SubmitError::Internal(cause) => Self::internal(cause),
        }
    }
}

impl From<QuotaReached> for Problem {
    /// Returns 429, with `Retry-After` only if waiting helps.
    fn from(reached: QuotaReached) -> Self {
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "quota", reached.to_string());
        Self { retry_after: reached.retry_after, ..problem }
    }
}

/// The kind of the problem while everything is stopped.
const STOPPED: &str = "stopped";

/// The value of `Retry-After` while no slot is free.
const BUSY_RETRY_SECONDS: u64 = 5;
/// The time after which a client may repeat a request that failed because of a storage fault.
const STORAGE_RETRY_SECONDS: u64 = 30;

impl From<store::Error> for Problem {
    /// Converts an error of the store. A missing object is 404. A used idempotency key, an unusable backup and one of a
    /// newer version are 422, and so are violations. A busy key, too many objects, an existing id or name, a configured object and a wrong
    /// state are 409. A full queue and missing slots are 429, an unavailable database is 503, both with `Retry-After`. A
    /// quota is 429. A stop of everything is 503 without `Retry-After`. All other errors are 500.
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::NotFound => Self::not_found("object"),
            store::Error::KeyReused => Invalid::one(
                "Idempotency-Key",
                "reused",
                "was used for a different request in the last 24 hours; use a new key",
            )
            .into(),
            store::Error::KeyBusy => {
                let detail = "the first request with this Idempotency-Key is still running; repeat the request later";
                Self::new(StatusCode::CONFLICT, "idempotency-key-busy", detail)
            }
            store::Error::Invalid(invalid) => invalid.into(),
            store::Error::TooMany { .. } => Self::new(StatusCode::CONFLICT, "too-many", error.to_string()),
            store::Error::AlreadyExists(_) => Self::new(StatusCode::CONFLICT, "taken", error.to_string()),
            store::Error::DefinedInConfig => Self::new(StatusCode::CONFLICT, "configured", error.to_string()),
            store::Error::AlreadyEnded | store::Error::NotEnded => {
                Self::new(StatusCode::CONFLICT, "state", error.to_string())
            }
            store::Error::QuotaReached(reached) => reached.into(),
            store::Error::QueueFull { .. } | store::Error::NoFreeSlot => {
                let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "busy", error.to_string());
                Self { retry_after: Some(BUSY_RETRY_SECONDS), ..problem }
            }
            store::Error::Backup(_) | store::Error::NewerSchema { .. } => {
                Invalid::one("body", "backup", format!("must be a complete backup: {error}")).into()
            }
            // Without `Retry-After`: only an administrator ends the stop.
            store::Error::Stopped { .. } => Self::new(StatusCode::SERVICE_UNAVAILABLE, STOPPED, error.to_string()),
            store::Error::Unavailable(cause) => Self::unavailable(cause),
            store::Error::Storage(_) => {
                let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", error.to_string());
                Self { retry_after: Some(STORAGE_RETRY_SECONDS), ..problem }
            }
            other => Self::internal(other.to_string()),
        }
    }
}

impl IntoResponse for Problem {
    /// Returns a response with the status and headers of the problem but without a body, which `request` writes later.
    /// 401 has `WWW-Authenticate: Bearer`. A server error has a [`LoggedFailure`] with the internal cause, or else the
    /// detail; only 500 counts as not recoverable. A refusal while everything is stopped is no failure of the server.
    fn into_response(self) -> Response {
        let status = self.status;
        let mut response = status.into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if status.is_server_error() && self.kind != STOPPED {
            response.extensions_mut().insert(LoggedFailure {
                kind: self.kind,
                message: self.cause.clone().unwrap_or_else(|| self.detail.to_string()),
                recoverable: status != StatusCode::INTERNAL_SERVER_ERROR,
            });
        }
        // `request` writes the body, because it knows the id of the request.
        response.extensions_mut().insert(self);
        response
    }
}
