//! Errors of calls to an agent.

use std::time::Duration;

/// An error of a call. Its text contains no credentials and no URLs except those that the caller passed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the agent URL {0}")]
    Address(String),
    #[error("the agent card cannot be used: {0}")]
    Card(String),
    #[error("the agent cannot be reached: {0}")]
    Unreachable(String),
    #[error("the agent did not answer within {} seconds", .0.as_secs())]
    Timeout(Duration),
    /// The agent rejected the call by HTTP or gRPC. `status` is the HTTP status, or the closest one for gRPC.
    #[error("the agent rejected the call: {message}")]
    Refused { status: u16, message: String, retry_after: Option<Duration> },
    /// The agent reported a protocol error.
    #[error("the agent reported an error: {0}")]
    Agent(crate::Error),
    #[error("the response of the agent is invalid: {0}")]
    Invalid(String),
    #[error("the response of the agent is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the agent uses version 0.3, which cannot {0}")]
    Unsupported(&'static str),
}

impl Error {
    /// Returns true if the same call may succeed later: after a connection failure, a timeout, a status 408, 429 or
    /// 5xx, or an internal error of the agent. A response that is invalid or too large is not transient.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Timeout(_) => true,
            Self::Refused { status, .. } => matches!(status, 408 | 429 | 500..),
            Self::Agent(error) => error.kind == crate::ErrorKind::Internal,
            _ => false,
        }
    }

    /// Returns the error for a response that ends early.
    pub(super) fn truncated() -> Self {
        Self::Unreachable("the response was cut off".to_owned())
    }

    /// Returns the error for a response to a different operation.
    pub(super) fn unexpected() -> Self {
        Self::Invalid("it does not match the request".to_owned())
    }
}
