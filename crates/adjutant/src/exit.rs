//! How a command ends: the exit code that scripts rely on, and a sentence for people.

use std::path::Path;
use std::{fmt, io};

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
    /// What an HTTP status, with the kind of problem that its body names, means for a script.
    pub(crate) fn of_problem(status: u16, kind: &str) -> Self {
        match (status, kind) {
            (401 | 403, _) => Self::NotAuthorised,
            (404, _) => Self::NotFound,
            // A full queue is worth another try, a limit is not.
            (429, "busy") => Self::Busy,
            (409, "configured" | "built-in" | "disabled" | "taken" | "state" | "not-kept") => Self::Refused,
            (409, _) => Self::Busy,
            (413 | 429, _) => Self::Refused,
            (400..500, _) => Self::Usage,
            (504, _) => Self::Timeout,
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

/// Returns the error of a file that cannot be read.
pub(crate) fn unreadable(file: &Path, error: &io::Error) -> Exit {
    let code = if error.kind() == io::ErrorKind::NotFound { Code::NotFound } else { Code::Failed };
    Exit::new(code, format!("failed to read {}: {error}", file.display()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_busy_and_what_will_not_is_refused() {
        for (status, kind, code) in [
            (429, "busy", Code::Busy),
            (429, "rate-limit", Code::Refused),
            (409, "idempotency-key-busy", Code::Busy),
            (409, "configured", Code::Refused),
            (409, "state", Code::Refused),
            (403, "forbidden", Code::NotAuthorised),
            (404, "not-found", Code::NotFound),
            (413, "too-large", Code::Refused),
            (422, "validation", Code::Usage),
            (504, "timeout", Code::Timeout),
            (500, "internal", Code::Failed),
        ] {
            assert_eq!(Code::of_problem(status, kind), code, "{status} {kind}");
        }
    }
}
