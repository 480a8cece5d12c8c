//! Errors and denials as each binding of each version writes them.

use std::collections::BTreeMap;

use axum::response::Response;
use http::header::{ALLOW, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde::Serialize;

use super::{JSON, reply};
use crate::error::{DOMAIN, Status};
use crate::{Binding, Denied, Error, Kind, Version};

/// Why there is no answer, in every language at once.
pub(super) struct Fault {
    status: StatusCode,
    code: i32,
    grpc: Status,
    reason: &'static str,
    /// What 0.3 calls it in HTTP+JSON.
    name: &'static str,
    error: Error,
    header: Option<(http::HeaderName, HeaderValue)>,
}

impl Fault {
    pub(super) fn new(version: Version, error: Error) -> Self {
        let kind = error.kind.spoken_in(version);
        Self {
            status: StatusCode::from_u16(kind.http()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            code: kind.code(),
            grpc: kind.grpc(),
            reason: kind.reason(),
            name: kind.name(),
            error,
            header: None,
        }
    }

    /// One that HTTP has a word of its own for.
    pub(super) fn of_http(status: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        let fault = Self::new(Version::V10, Error::new(Kind::InvalidRequest, message));
        Self { status, reason, ..fault }
    }

    pub(super) fn no_such_path() -> Self {
        let fault = Self::of_http(StatusCode::NOT_FOUND, "NOT_FOUND", "there is nothing at this path");
        Self { grpc: Status::NotFound, ..fault }
    }

    /// `allowed` is what may be done here.
    pub(super) fn wrong_method(allowed: &'static str) -> Self {
        let message = format!("this path knows {allowed}");
        let fault = Self::of_http(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", message);
        Self { grpc: Status::Unimplemented, header: Some((ALLOW, HeaderValue::from_static(allowed))), ..fault }
    }

    pub(super) fn denied(version: Version, denied: Denied) -> Self {
        match denied {
            Denied::Refused(error) => Self::new(version, error),
            Denied::NoAgent => {
                let fault = Self::of_http(StatusCode::NOT_FOUND, "AGENT_NOT_FOUND", "there is no such agent");
                Self { grpc: Status::NotFound, ..fault }
            }
            Denied::Unauthenticated { challenge } => {
                let fault =
                    Self::of_http(StatusCode::UNAUTHORIZED, "UNAUTHENTICATED", "who are you? credentials are needed");
                let header = HeaderValue::from_str(&challenge).ok().map(|challenge| (WWW_AUTHENTICATE, challenge));
                Self { grpc: Status::Unauthenticated, header, ..fault }
            }
            Denied::Forbidden(message) => {
                let fault = Self::of_http(StatusCode::FORBIDDEN, "PERMISSION_DENIED", message);
                Self { grpc: Status::PermissionDenied, ..fault }
            }
            Denied::TooMany { retry_after } => {
                let seconds = retry_after.as_millis().div_ceil(1000).max(1);
                let message = format!("too many requests: try again in {seconds} s");
                let fault = Self::of_http(StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED", message);
                let header = HeaderValue::from_str(&seconds.to_string()).ok().map(|seconds| (RETRY_AFTER, seconds));
                Self { grpc: Status::ResourceExhausted, header, ..fault }
            }
        }
    }

    /// The answer to a request of which no more than the binding is known.
    pub(super) fn respond(self, binding: Binding, version: Version) -> Response {
        let body = match binding {
            Binding::JsonRpc => self.rpc(version, "null"),
            Binding::HttpJson | Binding::Grpc => self.rest(version),
        };
        let mut response = reply(self.status, JSON, body);
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, value);
        }
        response
    }

    /// A whole answer of JSON-RPC. `id` is JSON.
    pub(super) fn rpc(&self, version: Version, id: &str) -> Vec<u8> {
        #[derive(Serialize)]
        struct Body<'a> {
            code: i32,
            message: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            data: Option<Data<'a>>,
        }
        #[derive(Serialize)]
        #[serde(untagged)]
        enum Data<'a> {
            Details(Vec<Detail<'a>>),
            Free(Free<'a>),
        }
        let data = match version {
            Version::V10 => Some(Data::Details(self.details())),
            Version::V03 => self.free().map(Data::Free),
        };
        let body = Body { code: self.code, message: &self.error.message, data };
        let mut out = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"#).into_bytes();
        write(&mut out, &body);
        out.push(b'}');
        out
    }

    /// The whole body in HTTP+JSON, and the data of an event that ends a stream.
    pub(super) fn rest(&self, version: Version) -> Vec<u8> {
        #[derive(Serialize)]
        struct Outer<'a> {
            error: Body<'a>,
        }
        #[derive(Serialize)]
        struct Body<'a> {
            code: u16,
            status: &'static str,
            message: &'a str,
            details: Vec<Detail<'a>>,
        }
        #[derive(Serialize)]
        struct Old<'a> {
            error: &'static str,
            code: i32,
            message: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            data: Option<Free<'a>>,
        }
        let message = &self.error.message;
        let mut out = Vec::with_capacity(256);
        match version {
            Version::V10 => {
                let code = self.status.as_u16();
                let status = self.grpc.as_str();
                write(&mut out, &Outer { error: Body { code, status, message, details: self.details() } });
            }
            Version::V03 => write(&mut out, &Old { error: self.name, code: self.code, message, data: self.free() }),
        }
        out
    }

    fn details(&self) -> Vec<Detail<'_>> {
        let mut details =
            vec![Detail::ErrorInfo { reason: self.reason, domain: DOMAIN, metadata: &self.error.metadata }];
        if !self.error.violations.is_empty() {
            details.push(Detail::BadRequest { field_violations: self.violations() });
        }
        details
    }

    fn violations(&self) -> Vec<Violation<'_>> {
        self.error.violations.iter().map(|(field, description)| Violation { field, description }).collect()
    }

    fn free(&self) -> Option<Free<'_>> {
        let Error { metadata, violations, .. } = &self.error;
        Some(Free { metadata, fields: self.violations() }).filter(|_| !metadata.is_empty() || !violations.is_empty())
    }
}

#[derive(Serialize)]
#[serde(tag = "@type", rename_all_fields = "camelCase")]
enum Detail<'a> {
    #[serde(rename = "type.googleapis.com/google.rpc.ErrorInfo")]
    ErrorInfo { reason: &'static str, domain: &'static str, metadata: &'a BTreeMap<String, String> },
    #[serde(rename = "type.googleapis.com/google.rpc.BadRequest")]
    BadRequest { field_violations: Vec<Violation<'a>> },
}

#[derive(Serialize)]
struct Violation<'a> {
    field: &'a str,
    description: &'a str,
}

/// 0.3 leaves it open what is said besides.
#[derive(Serialize)]
struct Free<'a> {
    #[serde(flatten)]
    metadata: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<Violation<'a>>,
}

/// Into memory, where nothing fails.
fn write(out: &mut Vec<u8>, body: &impl Serialize) {
    if serde_json::to_writer(&mut *out, body).is_err() {
        out.extend_from_slice(b"{}");
    }
}
