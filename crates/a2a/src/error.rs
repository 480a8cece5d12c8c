//! What can go wrong, and what each binding of each version calls it: one table.

use std::collections::BTreeMap;
use std::convert::Infallible;

use crate::Version;

/// Of whom the reasons are.
pub const DOMAIN: &str = "a2a-protocol.org";

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub kind: Kind,
    /// For people.
    pub message: String,
    /// More about it, for programs.
    pub metadata: BTreeMap<String, String>,
    /// Which fields are wrong and why, where that is it.
    pub violations: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    TaskNotFound,
    TaskNotCancelable,
    PushNotificationNotSupported,
    UnsupportedOperation,
    ContentTypeNotSupported,
    InvalidAgentResponse,
    ExtendedCardNotConfigured,
    ExtensionSupportRequired,
    VersionNotSupported,
    Parse,
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
    /// Something other than a task is not there.
    NotFound,
    /// Not now: there is no place for more.
    Busy,
    Internal,
}

/// A row: JSON-RPC, HTTP, gRPC, the reason.
struct Row(i32, u16, Status, &'static str);

/// The codes of gRPC that occur here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    InvalidArgument = 3,
    NotFound = 5,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Unimplemented = 12,
    Internal = 13,
    Unauthenticated = 16,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::NotFound => "NOT_FOUND",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
            Self::Unauthenticated => "UNAUTHENTICATED",
        }
    }
}

impl Kind {
    fn row(self) -> Row {
        use Status::{FailedPrecondition, Internal, InvalidArgument, NotFound, Unimplemented};
        match self {
            Self::TaskNotFound => Row(-32001, 404, NotFound, "TASK_NOT_FOUND"),
            Self::TaskNotCancelable => Row(-32002, 400, FailedPrecondition, "TASK_NOT_CANCELABLE"),
            Self::PushNotificationNotSupported => {
                Row(-32003, 400, FailedPrecondition, "PUSH_NOTIFICATION_NOT_SUPPORTED")
            }
            Self::UnsupportedOperation => Row(-32004, 400, FailedPrecondition, "UNSUPPORTED_OPERATION"),
            Self::ContentTypeNotSupported => Row(-32005, 400, InvalidArgument, "CONTENT_TYPE_NOT_SUPPORTED"),
            Self::InvalidAgentResponse => Row(-32006, 500, Internal, "INVALID_AGENT_RESPONSE"),
            Self::ExtendedCardNotConfigured => {
                Row(-32007, 400, FailedPrecondition, "EXTENDED_AGENT_CARD_NOT_CONFIGURED")
            }
            Self::ExtensionSupportRequired => Row(-32008, 400, FailedPrecondition, "EXTENSION_SUPPORT_REQUIRED"),
            Self::VersionNotSupported => Row(-32009, 400, FailedPrecondition, "VERSION_NOT_SUPPORTED"),
            Self::Parse => Row(-32700, 400, InvalidArgument, "PARSE_ERROR"),
            Self::InvalidRequest => Row(-32600, 400, InvalidArgument, "INVALID_REQUEST"),
            Self::MethodNotFound => Row(-32601, 404, Unimplemented, "METHOD_NOT_FOUND"),
            Self::InvalidParams => Row(-32602, 400, InvalidArgument, "INVALID_PARAMS"),
            Self::NotFound => Row(-32001, 404, NotFound, "NOT_FOUND"),
            Self::Busy => Row(-32000, 429, Status::ResourceExhausted, "BUSY"),
            Self::Internal => Row(-32603, 500, Internal, "INTERNAL_ERROR"),
        }
    }

    /// The code in JSON-RPC.
    pub fn code(self) -> i32 {
        self.row().0
    }

    /// The status in HTTP+JSON.
    pub fn http(self) -> u16 {
        self.row().1
    }

    /// The status in gRPC.
    pub fn grpc(self) -> Status {
        self.row().2
    }

    /// What it is called in an `ErrorInfo`.
    pub fn reason(self) -> &'static str {
        self.row().3
    }

    /// Returns the name of the error in the SDKs of 0.3: the message of a status of gRPC begins with it.
    pub fn name(self) -> &'static str {
        match self {
            Self::TaskNotFound | Self::NotFound => "TaskNotFoundError",
            Self::TaskNotCancelable => "TaskNotCancelableError",
            Self::PushNotificationNotSupported => "PushNotificationNotSupportedError",
            Self::UnsupportedOperation => "UnsupportedOperationError",
            Self::ContentTypeNotSupported => "ContentTypeNotSupportedError",
            Self::InvalidAgentResponse => "InvalidAgentResponseError",
            Self::ExtendedCardNotConfigured => "AuthenticatedExtendedCardNotConfiguredError",
            Self::ExtensionSupportRequired => "ExtensionSupportRequiredError",
            Self::VersionNotSupported => "VersionNotSupportedError",
            Self::Parse => "JSONParseError",
            Self::InvalidRequest => "InvalidRequestError",
            Self::MethodNotFound => "MethodNotFoundError",
            Self::InvalidParams => "InvalidParamsError",
            Self::Busy | Self::Internal => "InternalError",
        }
    }

    /// Every kind there is.
    pub const ALL: [Self; 16] = [
        Self::TaskNotFound,
        Self::TaskNotCancelable,
        Self::PushNotificationNotSupported,
        Self::UnsupportedOperation,
        Self::ContentTypeNotSupported,
        Self::InvalidAgentResponse,
        Self::ExtendedCardNotConfigured,
        Self::ExtensionSupportRequired,
        Self::VersionNotSupported,
        Self::Parse,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::NotFound,
        Self::Busy,
        Self::Internal,
    ];

    /// The kind of which an `ErrorInfo` tells.
    pub fn of_reason(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.reason() == reason)
    }

    /// The kind of which JSON-RPC tells.
    pub fn of_code(code: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// What 0.3 has no word for is said as it would have said it.
    pub fn spoken_in(self, version: Version) -> Self {
        match (version, self) {
            (Version::V03, Self::ExtensionSupportRequired | Self::VersionNotSupported) => Self::UnsupportedOperation,
            _ => self,
        }
    }
}

/// Some conversions cannot fail.
impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl Error {
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), metadata: BTreeMap::new(), violations: Vec::new() }
    }

    /// One field that is wrong.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        let field = field.into();
        let message = message.into();
        let mut error = Self::new(Kind::InvalidParams, format!("{field}: {message}"));
        error.violations.push((field, message));
        error
    }

    /// Returns the same error about something further in: its fields are those of `field`. An empty name is the field
    /// itself.
    pub fn inside(mut self, field: &str) -> Self {
        for (name, message) in &mut self.violations {
            let is_joined = name.is_empty() || name.starts_with('[');
            *name = if is_joined { format!("{field}{name}") } else { format!("{field}.{name}") };
            self.message = format!("{name}: {message}");
        }
        self
    }

    pub fn task_not_found(id: &str) -> Self {
        let mut error = Self::new(Kind::TaskNotFound, "the task was not found");
        error.metadata.insert("taskId".to_owned(), id.to_owned());
        error
    }
}
