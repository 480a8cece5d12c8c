//! What goes wrong, and what each binding of each version must say then: the table of the specification, by hand.

use serde_json::Value;

use super::speak::{Binding, Refusal, Version, Way};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    TaskNotFound,
    /// Something that belongs to a task is not there.
    NotFound,
    TaskNotCancelable,
    UnsupportedOperation,
    ContentTypeNotSupported,
    VersionNotSupported,
    InvalidParams,
}

impl Fault {
    /// JSON-RPC, HTTP, gRPC with the name of its status, and the reason.
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

    /// What is wrong with a refusal that should say this; nothing where it does.
    pub(super) fn missed(self, way: Way, refusal: &Refusal) -> Option<String> {
        let (code, status, grpc, name, reason) = self.row();
        let mut missed = Vec::new();
        let mut want = |what: &str, is: String, wanted: String| {
            if is != wanted {
                missed.push(format!("{what} is {is}, not {wanted}"));
            }
        };
        match way.0 {
            Binding::JsonRpc => {
                want("HTTP", refusal.status.to_string(), "200".to_owned());
                want("code", format!("{:?}", refusal.code), format!("{:?}", Some(code)));
            }
            Binding::Rest => {
                want("HTTP", refusal.status.to_string(), status.to_string());
                match way.1 {
                    Version::V1 => {
                        let error = &refusal.body["error"];
                        want("error.code", error["code"].to_string(), status.to_string());
                        want("error.status", error["status"].to_string(), Value::from(name).to_string());
                    }
                    Version::V03 => want("code", format!("{:?}", refusal.code), format!("{:?}", Some(code))),
                }
            }
            Binding::Grpc => want("gRPC", format!("{:?}", refusal.grpc), format!("{:?}", Some(grpc))),
        }
        if let (Version::V1, Some(reason)) = (way.1, reason) {
            want("reason", format!("{:?}", refusal.reason.as_deref()), format!("{:?}", Some(reason)));
        }
        want("a message", refusal.message.is_empty().to_string(), "false".to_owned());
        (!missed.is_empty()).then(|| format!("{}: {:?}", missed.join("; "), refusal))
    }
}
