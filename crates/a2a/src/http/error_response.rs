//! Encodes errors and rejections for each binding and version.

use std::collections::BTreeMap;

use axum::response::Response;
use http::header::{ALLOW, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde::Serialize;

use super::{JSON, reply};
use crate::error::{ERROR_DOMAIN, GrpcCode};
use crate::{Binding, CallRejection, Error, ErrorKind, Version};

/// An error with its codes for every binding and version.
pub(super) struct ErrorResponse {
    /// The HTTP status.
    status: StatusCode,
    code: i32,
    /// The gRPC code, by its name in HTTP+JSON of 1.x.
    grpc: GrpcCode,
    /// The reason in `google.rpc.ErrorInfo`.
    reason: &'static str,
    /// The name of the error in HTTP+JSON of 0.3.
    name: &'static str,
    error: Error,
    /// An additional header of the HTTP response.
    header: Option<(http::HeaderName, HeaderValue)>,
}

impl ErrorResponse {
    /// Returns the response for a protocol error, with the codes of the kind that the version defines. It has no
    /// additional header.
    pub(super) fn new(version: Version, error: Error) -> Self {
        let kind = error.kind.for_version(version);
        Self {
            status: StatusCode::from_u16(kind.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            code: kind.json_rpc_code(),
            grpc: kind.grpc_code(),
            reason: kind.reason(),
            name: kind.v03_name(),
            error,
            header: None,
        }
    }

    /// Returns the response for an error with its own HTTP status and reason. Its JSON-RPC and gRPC codes are those of
    /// an invalid request.
    pub(super) fn from_http(status: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        let response = Self::new(Version::V10, Error::new(ErrorKind::InvalidRequest, message));
        Self { status, reason, ..response }
    }

    /// Returns the response for an unknown path.
    pub(super) fn no_such_path() -> Self {
        let response = Self::from_http(StatusCode::NOT_FOUND, "NOT_FOUND", "the path was not found");
        Self { grpc: GrpcCode::NotFound, ..response }
    }

    /// Returns the response for an HTTP method that the path does not support. `allowed` lists the supported methods.
    pub(super) fn wrong_method(allowed: &'static str) -> Self {
        let message = format!("the method is not allowed; this path supports {allowed}");
        let response = Self::from_http(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", message);
        Self { grpc: GrpcCode::Unimplemented, header: Some((ALLOW, HeaderValue::from_static(allowed))), ..response }
    }

    /// Returns the response for a rejected call: 404 for an unknown agent, 401 with `WWW-Authenticate`, 403, or 429
    /// with `Retry-After`. The time is rounded up to whole seconds, at least one. A call that is not offered becomes
    /// its protocol error. A challenge that is not a header value is left out.
    pub(super) fn rejected(version: Version, rejection: CallRejection) -> Self {
        match rejection {
            CallRejection::NotOffered(error) => Self::new(version, error),
            CallRejection::UnknownAgent => {
                let response = Self::from_http(StatusCode::NOT_FOUND, "AGENT_NOT_FOUND", "the agent was not found");
                Self { grpc: GrpcCode::NotFound, ..response }
            }
            CallRejection::Unauthenticated { challenge } => {
                let message = "valid credentials are required";
                let response = Self::from_http(StatusCode::UNAUTHORIZED, "UNAUTHENTICATED", message);
                let header = HeaderValue::from_str(&challenge).ok().map(|challenge| (WWW_AUTHENTICATE, challenge));
                Self { grpc: GrpcCode::Unauthenticated, header, ..response }
            }
            CallRejection::Forbidden(message) => {
                let response = Self::from_http(StatusCode::FORBIDDEN, "PERMISSION_DENIED", message);
                Self { grpc: GrpcCode::PermissionDenied, ..response }
            }
            CallRejection::RateLimited { retry_after } => {
                let seconds = retry_after.as_millis().div_ceil(1000).max(1);
                let message = format!("too many requests; try again in {seconds} s");
                let response = Self::from_http(StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED", message);
                let header = HeaderValue::from_str(&seconds.to_string()).ok().map(|seconds| (RETRY_AFTER, seconds));
                Self { grpc: GrpcCode::ResourceExhausted, header, ..response }
            }
        }
    }

    /// Returns the HTTP response with the status and header of this error. In JSON-RPC the id in the body is `null`,
    /// because it is not known. The body of gRPC is that of HTTP+JSON.
    pub(super) fn into_response(self, binding: Binding, version: Version) -> Response {
        let body = match binding {
            Binding::JsonRpc => self.json_rpc_body(version, "null"),
            Binding::HttpJson | Binding::Grpc => self.rest_body(version),
        };
        let mut response = reply(self.status, JSON, body);
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, value);
        }
        response
    }

    /// Returns the body in JSON-RPC. `id` is JSON and is copied unchanged. In 1.x `data` contains the details. In 0.3
    /// it contains the metadata and the violations, and is omitted if there are none.
    pub(super) fn json_rpc_body(&self, version: Version, id: &str) -> Vec<u8> {
        #[derive(Serialize)]
        struct JsonRpcError<'a> {
            code: i32,
            message: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            data: Option<JsonRpcErrorData<'a>>,
        }
        #[derive(Serialize)]
        #[serde(untagged)]
        enum JsonRpcErrorData<'a> {
            Details(Vec<ErrorDetail<'a>>),
            V03(V03ErrorData<'a>),
        }
        let data = match version {
            Version::V10 => Some(JsonRpcErrorData::Details(self.details())),
            Version::V03 => self.v03_data().map(JsonRpcErrorData::V03),
        };
        let body = JsonRpcError { code: self.code, message: &self.error.message, data };
        let mut out = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"#).into_bytes();
        write(&mut out, &body);
        out.push(b'}');
        out
    }

    /// Returns the body in HTTP+JSON. It is also the data of an event that ends a stream with an error. In 1.x it is a
    /// `google.rpc.Status` in `error`. In 0.3 it has the name of the error, the JSON-RPC code, the message and optional
    /// data.
    pub(super) fn rest_body(&self, version: Version) -> Vec<u8> {
        #[derive(Serialize)]
        struct RestErrorBody<'a> {
            error: RestError<'a>,
        }
        #[derive(Serialize)]
        struct RestError<'a> {
            code: u16,
            status: &'static str,
            message: &'a str,
            details: Vec<ErrorDetail<'a>>,
        }
        #[derive(Serialize)]
        struct V03RestError<'a> {
            error: &'static str,
            code: i32,
            message: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            data: Option<V03ErrorData<'a>>,
        }
        let message = &self.error.message;
        let mut out = Vec::with_capacity(256);
        match version {
            Version::V10 => {
                let code = self.status.as_u16();
                let status = self.grpc.as_str();
                write(&mut out, &RestErrorBody { error: RestError { code, status, message, details: self.details() } });
            }
            Version::V03 => {
                write(&mut out, &V03RestError { error: self.name, code: self.code, message, data: self.v03_data() });
            }
        }
        out
    }

    /// Returns the details of 1.x: the reason with the metadata, and the violations if there are any.
    fn details(&self) -> Vec<ErrorDetail<'_>> {
        let mut details =
            vec![ErrorDetail::ErrorInfo { reason: self.reason, domain: ERROR_DOMAIN, metadata: &self.error.metadata }];
        if !self.error.violations.is_empty() {
            details.push(ErrorDetail::BadRequest { field_violations: self.violations() });
        }
        details
    }

    fn violations(&self) -> Vec<FieldViolation<'_>> {
        self.error.violations.iter().map(|(field, description)| FieldViolation { field, description }).collect()
    }

    /// Returns the additional data of 0.3, or `None` if the error has neither metadata nor violations.
    fn v03_data(&self) -> Option<V03ErrorData<'_>> {
        let Error { metadata, violations, .. } = &self.error;
        Some(V03ErrorData { metadata, fields: self.violations() })
            .filter(|_| !metadata.is_empty() || !violations.is_empty())
    }
}

#[derive(Serialize)]
#[serde(tag = "@type", rename_all_fields = "camelCase")]
enum ErrorDetail<'a> {
    #[serde(rename = "type.googleapis.com/google.rpc.ErrorInfo")]
    ErrorInfo { reason: &'static str, domain: &'static str, metadata: &'a BTreeMap<String, String> },
    #[serde(rename = "type.googleapis.com/google.rpc.BadRequest")]
    BadRequest { field_violations: Vec<FieldViolation<'a>> },
}

#[derive(Serialize)]
struct FieldViolation<'a> {
    field: &'a str,
    description: &'a str,
}

/// The additional data of an error in 0.3, which does not define its form.
#[derive(Serialize)]
struct V03ErrorData<'a> {
    #[serde(flatten)]
    metadata: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<FieldViolation<'a>>,
}

/// Appends the body as JSON. Appends `{}` if it cannot be encoded, which happens only for values that JSON cannot
/// represent.
fn write(out: &mut Vec<u8>, body: &impl Serialize) {
    if serde_json::to_writer(&mut *out, body).is_err() {
        out.extend_from_slice(b"{}");
    }
}
