//! Why an agent could not be asked, or what it answered instead.

use std::time::Duration;

/// For people, without credentials, without addresses beyond what the caller gave.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the address of the agent {0}")]
    Address(String),
    #[error("the card of the agent cannot be used: {0}")]
    Card(String),
    #[error("the agent cannot be reached: {0}")]
    Unreachable(String),
    #[error("the agent did not answer within {} seconds", .0.as_secs())]
    Silent(Duration),
    /// In words of HTTP or gRPC; the status is that of HTTP, or what comes nearest.
    #[error("the agent refuses the call: {message}")]
    Refused { status: u16, message: String, retry_after: Option<Duration> },
    /// In words of the protocol.
    #[error("the agent answers: {0}")]
    Agent(crate::Error),
    #[error("the agent's answer cannot be understood: {0}")]
    Invalid(String),
    #[error("the agent's answer is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the agent speaks version 0.3, which has no way to {0}")]
    Unsupported(&'static str),
}

impl Error {
    /// Whether the same call may succeed a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Silent(_) => true,
            Self::Refused { status, .. } => matches!(status, 408 | 429 | 500..),
            Self::Agent(error) => error.kind == crate::Kind::Internal,
            _ => false,
        }
    }

    pub(super) fn cut() -> Self {
        Self::Unreachable("the answer was cut off".to_owned())
    }

    pub(super) fn unexpected() -> Self {
        Self::Invalid("it is of another kind than what was asked for".to_owned())
    }
}
