//! Protocol errors, and one table of their codes in every binding and version.

use std::collections::BTreeMap;
use std::convert::Infallible;

use crate::Version;

/// The domain of the reasons in `google.rpc.ErrorInfo`.
pub const ERROR_DOMAIN: &str = "a2a-protocol.org";

/// A protocol error: the reason why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub kind: ErrorKind,
    /// The text for people.
    pub message: String,
    /// Additional values for programs.
    pub metadata: BTreeMap<String, String>,
    /// The invalid fields, each with its reason. Empty for other errors.
    pub violations: Vec<(String, String)>,
}

/// The kind of a protocol error. It determines the codes in every binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
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
    /// An object other than a task does not exist.
    NotFound,
    /// The server has no capacity at the moment. The caller may retry later.
    Busy,
    Internal,
}

/// The codes of one error kind: JSON-RPC code, HTTP status, gRPC code, reason.
struct ErrorCodes(i32, u16, GrpcCode, &'static str);

/// The gRPC status codes that this crate uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrpcCode {
    InvalidArgument = 3,
    NotFound = 5,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Unimplemented = 12,
    Internal = 13,
    Unauthenticated = 16,
}

impl GrpcCode {
    /// Returns the name of the code in upper case, such as `NOT_FOUND`.
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

impl ErrorKind {
    /// Returns the codes of the kind. `NotFound` shares its JSON-RPC code with `TaskNotFound`. All other JSON-RPC codes
    /// and all reasons are unique.
    fn codes(self) -> ErrorCodes {
        use GrpcCode::{FailedPrecondition, Internal, InvalidArgument, NotFound, Unimplemented};
        match self {
            Self::TaskNotFound => ErrorCodes(-32001, 404, NotFound, "TASK_NOT_FOUND"),
            Self::TaskNotCancelable => ErrorCodes(-32002, 400, FailedPrecondition, "TASK_NOT_CANCELABLE"),
            Self::PushNotificationNotSupported => {
                ErrorCodes(-32003, 400, FailedPrecondition, "PUSH_NOTIFICATION_NOT_SUPPORTED")
            }
            Self::UnsupportedOperation => ErrorCodes(-32004, 400, FailedPrecondition, "UNSUPPORTED_OPERATION"),
            Self::ContentTypeNotSupported => ErrorCodes(-32005, 400, InvalidArgument, "CONTENT_TYPE_NOT_SUPPORTED"),
            Self::InvalidAgentResponse => ErrorCodes(-32006, 500, Internal, "INVALID_AGENT_RESPONSE"),
            Self::ExtendedCardNotConfigured => {
                ErrorCodes(-32007, 400, FailedPrecondition, "EXTENDED_AGENT_CARD_NOT_CONFIGURED")
            }
            Self::ExtensionSupportRequired => ErrorCodes(-32008, 400, FailedPrecondition, "EXTENSION_SUPPORT_REQUIRED"),
            Self::VersionNotSupported => ErrorCodes(-32009, 400, FailedPrecondition, "VERSION_NOT_SUPPORTED"),
            Self::Parse => ErrorCodes(-32700, 400, InvalidArgument, "PARSE_ERROR"),
            Self::InvalidRequest => ErrorCodes(-32600, 400, InvalidArgument, "INVALID_REQUEST"),
            Self::MethodNotFound => ErrorCodes(-32601, 404, Unimplemented, "METHOD_NOT_FOUND"),
            Self::InvalidParams => ErrorCodes(-32602, 400, InvalidArgument, "INVALID_PARAMS"),
            Self::NotFound => ErrorCodes(-32001, 404, NotFound, "NOT_FOUND"),
            Self::Busy => ErrorCodes(-32000, 429, GrpcCode::ResourceExhausted, "BUSY"),
            Self::Internal => ErrorCodes(-32603, 500, Internal, "INTERNAL_ERROR"),
        }
    }

    /// Returns the code in JSON-RPC.
    pub fn json_rpc_code(self) -> i32 {
        self.codes().0
    }

    /// Returns the status in HTTP+JSON.
    pub fn http_status(self) -> u16 {
        self.codes().1
    }

    /// Returns the status code in gRPC.
    pub fn grpc_code(self) -> GrpcCode {
        self.codes().2
    }

    /// Returns the reason in `google.rpc.ErrorInfo`.
    pub fn reason(self) -> &'static str {
        self.codes().3
    }

    /// Returns the name of the error in the SDKs of 0.3. The message of a gRPC status starts with it. `NotFound` shares
    /// it with `TaskNotFound`, and `Busy` with `Internal`.
    pub fn v03_name(self) -> &'static str {
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

    /// All kinds.
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

    /// Returns the kind with this reason in `google.rpc.ErrorInfo`, or `None` if the reason is unknown.
    pub fn from_reason(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.reason() == reason)
    }

    /// Returns the first kind with this JSON-RPC code, or `None` if the code is unknown.
    pub fn from_json_rpc_code(code: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.json_rpc_code() == code)
    }

    /// Returns the kind to report in this version. In 0.3 a required extension and an unsupported version become
    /// `UnsupportedOperation`. All other kinds are unchanged.
    pub fn for_version(self, version: Version) -> Self {
        match (version, self) {
            (Version::V03, Self::ExtensionSupportRequired | Self::VersionNotSupported) => Self::UnsupportedOperation,
            _ => self,
        }
    }
}

/// Allows infallible conversions where a fallible one is expected.
impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl Error {
    /// Returns an error without metadata and violations.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), metadata: BTreeMap::new(), violations: Vec::new() }
    }

    /// Returns an error about one invalid field.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        let field = field.into();
        let message = message.into();
        let mut error = Self::new(ErrorKind::InvalidParams, format!("{field}: {message}"));
        error.violations.push((field, message));
        error
    }

    /// Returns the same error with every field name prefixed by `field` and a dot. A name that starts with `[` gets no
    /// dot. An empty field name becomes `field` itself. The message becomes that of the last violation. An error
    /// without violations is unchanged.
    pub fn nested_in(mut self, field: &str) -> Self {
        for (name, message) in &mut self.violations {
            let is_joined = name.is_empty() || name.starts_with('[');
            *name = if is_joined { format!("{field}{name}") } else { format!("{field}.{name}") };
            self.message = format!("{name}: {message}");
        }
        self
    }

    /// Returns the error for a task that does not exist, with its id in the metadata.
    pub fn task_not_found(id: &str) -> Self {
        let mut error = Self::new(ErrorKind::TaskNotFound, "the task was not found");
        error.metadata.insert("taskId".to_owned(), id.to_owned());
        error
    }
}
