//! The error table of the specification: the codes of each error on each binding and version. Written by hand.

use serde_json::Value;

use super::client::{Binding, ErrorResponse, Protocol, Version};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpectedError {
    TaskNotFound,
    /// An object of a task, such as a push configuration, does not exist.
    NotFound,
    TaskNotCancelable,
    UnsupportedOperation,
    ContentTypeNotSupported,
    VersionNotSupported,
    InvalidParams,
}

impl ExpectedError {
    /// Returns the codes of JSON-RPC, HTTP and gRPC, the name of the gRPC status, and the reason.
    fn row(self) -> (i64, u16, i32, &'static str, Option<&'static str>) {
        match self {
            Self::TaskNotFound => (-32001, 404, 5, "NOT_FOUND", Some("TASK_NOT_FOUND")),
            Self::NotFound => (-32001, 404, 5, "NOT_FOUND", None),
            Self::TaskNotCancelable => (-32002, 400, 9, "FAILED_PRECONDITION", Some("TASK_NOT_CANCELABLE")),
            Self::UnsupportedOperation => (-32004, 400, 9, "FAILED_PRECONDITION", Some("UNSUPPORTED_OPERATION")),
            Self::ContentTypeNotSupported => (-32005, 400, 3, "INVALID_ARGUMENT", Some("CONTENT_TYPE_NOT_SUPPORTED")),
            Self::VersionNotSupported => (-32009, 400, 9, "FAILED_PRECONDITION", Some("VERSION_NOT_SUPPORTED")),
            Self::InvalidParams => (-32602, 400, 3, "INVALID_ARGUMENT", None),
        }
    }

    /// Returns the differences between a response and this error, or `None` if they match.
    pub(super) fn mismatch(self, protocol: Protocol, error: &ErrorResponse) -> Option<String> {
        let (code, status, grpc, name, reason) = self.row();
        let mut differences = Vec::new();
        let mut expect = |name: &str, actual: String, expected: String| {
            if actual != expected {
                differences.push(format!("{name} is {actual}, not {expected}"));
            }
        };
        match protocol.0 {
            Binding::JsonRpc => {
                expect("HTTP", error.status.to_string(), "200".to_owned());
                expect("code", format!("{:?}", error.code), format!("{:?}", Some(code)));
            }
            Binding::Rest => {
                expect("HTTP", error.status.to_string(), status.to_string());
                match protocol.1 {
                    Version::V1 => {
                        let body = &error.body["error"];
                        expect("error.code", body["code"].to_string(), status.to_string());
                        expect("error.status", body["status"].to_string(), Value::from(name).to_string());
                    }
                    Version::V03 => expect("code", format!("{:?}", error.code), format!("{:?}", Some(code))),
                }
            }
            Binding::Grpc => expect("gRPC", format!("{:?}", error.grpc), format!("{:?}", Some(grpc))),
        }
        if let (Version::V1, Some(reason)) = (protocol.1, reason) {
            expect("reason", format!("{:?}", error.reason.as_deref()), format!("{:?}", Some(reason)));
        }
        expect("a message", error.message.is_empty().to_string(), "false".to_owned());
        (!differences.is_empty()).then(|| format!("{}: {:?}", differences.join("; "), error))
    }
}
