//! Errors as people and programs get them over HTTP: `application/problem+json` (RFC 9457). The one place that maps
//! errors to status codes. What went wrong inside is logged, never sent.

use std::borrow::Cow;

use api::PROBLEM_TYPE_PREFIX;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::{Invalid, Violation};

/// What went wrong with a request.
#[derive(Clone, Debug)]
pub struct Problem {
    status: StatusCode,
    kind: &'static str,
    detail: Cow<'static, str>,
    pub(crate) errors: Vec<Violation>,
    /// Seconds.
    retry_after: Option<u64>,
    /// For the log: what the sender must not see.
    cause: Option<String>,
}

/// What is noted beside an answer for the log.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    pub(crate) recoverable: bool,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, kind: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { status, kind, detail: detail.into(), errors: Vec::new(), retry_after: None, cause: None }
    }

    /// Returns the body for the request of this id.
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

    pub(crate) fn no_such_path() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", "there is nothing at this path")
    }

    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", format!("there is no such {what}"))
    }

    pub(crate) fn method_not_allowed() -> Self {
        let detail = "this path does not take this method";
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

    pub(crate) fn too_many_requests(wait: std::time::Duration) -> Self {
        let seconds = wait.as_secs() + 1;
        let detail = format!("too many requests; try again in {seconds} s");
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate-limit", detail);
        Self { retry_after: Some(seconds), ..problem }
    }

    pub(crate) fn timeout(limit: std::time::Duration) -> Self {
        let detail = format!("the request took longer than {} s", limit.as_secs());
        Self::new(StatusCode::GATEWAY_TIMEOUT, "timeout", detail)
    }

    pub(crate) fn internal(cause: impl Into<String>) -> Self {
        let detail = "something went wrong here; the log has the details under this request_id";
        let problem = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail);
        Self { cause: Some(cause.into()), ..problem }
    }

    fn unavailable(cause: String) -> Self {
        let detail = "the database is not available right now; try again";
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail);
        Self { retry_after: Some(1), cause: Some(cause), ..problem }
    }

    /// `what` names the thing that [`store::Error::NotFound`] is about.
    pub(crate) fn from_store(what: &str) -> impl Fn(store::Error) -> Self {
        move |error| match error {
            store::Error::NotFound => Self::not_found(what),
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

impl From<supervisor::Refused> for Problem {
    fn from(refused: supervisor::Refused) -> Self {
        use supervisor::Refused;
        match refused {
            Refused::NoAgent => Self::not_found("agent"),
            Refused::Disabled(_) => Self::new(StatusCode::CONFLICT, "disabled", refused.to_string()),
            Refused::Forbidden(why) => Self::forbidden(why),
            Refused::TooLarge { limit } => {
                let detail = format!("the input must have at most {limit} bytes");
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail)
            }
            Refused::Invalid(invalid) => invalid.into(),
            Refused::NotHere(why) => Self::new(StatusCode::CONFLICT, "not-here", why),
            Refused::Broken(cause) => Self::internal(cause),
        }
    }
}

/// Seconds after which a place may have become free.
const BUSY_RETRY: u64 = 5;

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::NotFound => Self::not_found("thing"),
            store::Error::KeyReused => {
                Invalid::one("Idempotency-Key", "reused", "was used for another request in the last 24 hours").into()
            }
            store::Error::KeyBusy => {
                let detail = "the first request with this Idempotency-Key is still at work";
                Self::new(StatusCode::CONFLICT, "idempotency-key-busy", detail)
            }
            store::Error::TooMany { .. } => Self::new(StatusCode::CONFLICT, "too-many", error.to_string()),
            store::Error::Taken(_) => Self::new(StatusCode::CONFLICT, "taken", error.to_string()),
            store::Error::Configured => Self::new(StatusCode::CONFLICT, "configured", error.to_string()),
            store::Error::Ended | store::Error::NotEnded => Self::new(StatusCode::CONFLICT, "state", error.to_string()),
            store::Error::QueueFull { .. } | store::Error::NoPlace => {
                let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "busy", error.to_string());
                Self { retry_after: Some(BUSY_RETRY), ..problem }
            }
            store::Error::Backup(_) | store::Error::NewerSchema { .. } => {
                Invalid::one("body", "backup", error.to_string()).into()
            }
            store::Error::Unavailable(cause) => Self::unavailable(cause),
            other => Self::internal(other.to_string()),
        }
    }
}

impl IntoResponse for Problem {
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
        if status.is_server_error() {
            response.extensions_mut().insert(Failure {
                kind: self.kind,
                message: self.cause.clone().unwrap_or_else(|| self.detail.to_string()),
                recoverable: status != StatusCode::INTERNAL_SERVER_ERROR,
            });
        }
        // The body is written by `request`, once the id is known.
        response.extensions_mut().insert(self);
        response
    }
}
