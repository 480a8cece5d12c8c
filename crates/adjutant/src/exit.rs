//! Exit codes for scripts and error messages for users.

use std::path::Path;
use std::{fmt, io};

/// Exit codes other than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ExitStatus {
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

impl ExitStatus {
    /// Returns the exit code for an HTTP status and the type of the problem in its body.
    ///
    /// - 401 and 403 are `NotAuthorised`, 404 is `NotFound`, 413 is `Refused`, 504 is `Timeout`.
    /// - 429 is `Busy` for the type `busy`, otherwise `Refused`.
    /// - 409 is `Refused` for `configured`, `built-in`, `disabled`, `taken`, `state` and `not-kept`, otherwise `Busy`.
    /// - 503 is `Refused` for `stopped`.
    /// - Every other 4xx is `Usage`, and everything else is `Failed`.
    pub(crate) fn from_problem(status: u16, kind: &str) -> Self {
        match (status, kind) {
            (401 | 403, _) => Self::NotAuthorised,
            (404, _) => Self::NotFound,
            // A full queue can be retried, a rate limit is final.
            (429, "busy") => Self::Busy,
            (409, "configured" | "built-in" | "disabled" | "taken" | "state" | "not-kept") => Self::Refused,
            (409, _) => Self::Busy,
            (413 | 429, _) | (503, "stopped") => Self::Refused,
            (400..500, _) => Self::Usage,
            (504, _) => Self::Timeout,
            _ => Self::Failed,
        }
    }
}

/// An expected failure: one message without a chain of causes.
#[derive(Debug)]
pub(crate) struct ExitError {
    pub(crate) code: ExitStatus,
    pub(crate) message: String,
}

impl ExitError {
    pub(crate) fn new(code: ExitStatus, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// Returns the error for a file that cannot be read: `NotFound` if it does not exist, else `Failed`.
pub(crate) fn read_error(file: &Path, error: &io::Error) -> ExitError {
    let code = if error.kind() == io::ErrorKind::NotFound { ExitStatus::NotFound } else { ExitStatus::Failed };
    ExitError::new(code, format!("failed to read {}: {error}", file.display()))
}

impl fmt::Display for ExitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ExitError {}

/// Returns the message of an error with its causes. A cause that the message before it ends with is left out.
pub(crate) fn message(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if message.is_empty() {
            message = cause;
        } else if !message.ends_with(&cause) {
            message = format!("{message}: {cause}");
        }
    }
    message
}

/// Returns the exit code for the error of a command: the code of an [`ExitError`], else the code for a store error,
/// else `Failed`. Of the store errors, `InUse` is `Busy`, `InvalidUrl` is `Usage`, `Unavailable` is `Unreachable`,
/// `NotFound` is `NotFound`, and every other one is `Failed`.
pub(crate) fn exit_status(error: &anyhow::Error) -> ExitStatus {
    if let Some(exit) = error.downcast_ref::<ExitError>() {
        return exit.code;
    }
    match error.downcast_ref::<store::Error>() {
        Some(store::Error::InUse { .. }) => ExitStatus::Busy,
        Some(store::Error::InvalidUrl(_)) => ExitStatus::Usage,
        Some(store::Error::Unavailable(_)) => ExitStatus::Unreachable,
        Some(store::Error::NotFound) => ExitStatus::NotFound,
        _ => ExitStatus::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transient_problems_are_busy_and_permanent_ones_are_refused() {
        for (status, kind, code) in [
            (429, "busy", ExitStatus::Busy),
            (429, "rate-limit", ExitStatus::Refused),
            (409, "idempotency-key-busy", ExitStatus::Busy),
            (409, "configured", ExitStatus::Refused),
            (409, "state", ExitStatus::Refused),
            (403, "forbidden", ExitStatus::NotAuthorised),
            (404, "not-found", ExitStatus::NotFound),
            (413, "too-large", ExitStatus::Refused),
            (422, "validation", ExitStatus::Usage),
            (504, "timeout", ExitStatus::Timeout),
            (500, "internal", ExitStatus::Failed),
        ] {
            assert_eq!(ExitStatus::from_problem(status, kind), code, "{status} {kind}");
        }
    }
}
