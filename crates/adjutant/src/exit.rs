//! How a command ends: the exit code that scripts rely on, and a sentence for people.

use std::fmt;

/// Exit codes other than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Code {
    Failed = 1,
    Usage = 2,
    NotFound = 3,
    ConfirmationNeeded = 4,
    Ambiguous = 5,
    Busy = 6,
    Refused = 7,
    Unreachable = 8,
    NotAuthorised = 9,
    Timeout = 124,
    Interrupted = 130,
}

impl Code {
    /// What an HTTP status means for a script.
    pub(crate) fn of_status(status: u16) -> Self {
        match status {
            401 | 403 => Self::NotAuthorised,
            404 => Self::NotFound,
            409 => Self::Busy,
            413 | 429 => Self::Refused,
            400..500 => Self::Usage,
            504 => Self::Timeout,
            _ => Self::Failed,
        }
    }
}

/// An end that was expected to happen: it needs a sentence, not a stack of causes.
#[derive(Debug)]
pub(crate) struct Exit {
    pub(crate) code: Code,
    pub(crate) message: String,
}

impl Exit {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Exit {}

/// The end of a command that went wrong somewhere below.
pub(crate) fn code_of(error: &anyhow::Error) -> Code {
    if let Some(exit) = error.downcast_ref::<Exit>() {
        return exit.code;
    }
    match error.downcast_ref::<store::Error>() {
        Some(store::Error::InUse { .. }) => Code::Busy,
        Some(store::Error::Url(_)) => Code::Usage,
        Some(store::Error::Unavailable(_)) => Code::Unreachable,
        Some(store::Error::NotFound) => Code::NotFound,
        _ => Code::Failed,
    }
}
