//! Converts internal errors to A2A errors.

use ::a2a::{Error, ErrorKind};
use supervisor::SubmitError;
use uuid::Uuid;

/// Parses the id of a task. Fails with "not found" if it is not a UUID in canonical form: lower case, with hyphens. The
/// error contains the first 100 characters of the id.
pub(crate) fn parse_task_id(id: &str) -> Result<Uuid, Error> {
    // Only the canonical form is accepted, so that a task has one id.
    let found = Uuid::try_parse(id).ok().filter(|uuid| uuid.to_string() == id);
    found.ok_or_else(|| Error::task_not_found(&truncate(id)))
}

/// Converts an error of the store. `NotFound` becomes "task not found" with `task`, the requested id, cut to 100
/// characters. A full queue, missing slots, a quota and an unavailable database become `Busy`. A stop of everything
/// becomes `UnsupportedOperation`, because a retry does not help. All other errors become `Internal`. The
/// causes of an unavailable database and of internal errors are only logged.
pub(crate) fn from_store(error: store::Error, task: &str) -> Error {
    match error {
        store::Error::NotFound => Error::task_not_found(&truncate(task)),
        store::Error::QueueFull { .. } | store::Error::NoFreeSlot | store::Error::QuotaReached(_) => {
            Error::new(ErrorKind::Busy, error.to_string())
        }
        store::Error::Stopped { .. } => Error::new(ErrorKind::UnsupportedOperation, error.to_string()),
        store::Error::Storage(_) => {
            tracing::error!(event = "error_occurred", error_type = "unavailable", error_message = %error);
            Error::new(ErrorKind::Busy, error.to_string())
        }
        store::Error::Unavailable(cause) => {
            tracing::error!(event = "error_occurred", error_type = "unavailable", error_message = cause);
            Error::new(ErrorKind::Busy, "the database is unavailable; try again later")
        }
        other => internal(&other.to_string()),
    }
}

/// Converts an error of a submission. A missing agent is `NotFound`. A disabled or forbidden agent, and a request that
/// this node cannot accept, are `UnsupportedOperation`. A too large input and violations are `InvalidParams`. Their
/// field `input` is reported as `message.parts`, its name in the request. The cause of an internal error is only
/// logged.
pub(crate) fn from_submit_error(error: SubmitError) -> Error {
    match error {
        SubmitError::AgentNotFound => Error::new(ErrorKind::NotFound, "the agent was not found"),
        SubmitError::AgentDisabled(_) | SubmitError::Forbidden(_) | SubmitError::NotOnThisNode(_) => {
            Error::new(ErrorKind::UnsupportedOperation, error.to_string())
        }
        SubmitError::InputTooLarge { limit } => {
            Error::invalid("message.parts", format!("must have at most {limit} bytes"))
        }
        SubmitError::Invalid(invalid) => {
            let mut invalid_params = Error::new(ErrorKind::InvalidParams, String::new());
            for violation in invalid.violations {
                let field = if violation.field == "input" { "message.parts" } else { &violation.field };
                invalid_params.violations.push((field.to_owned(), violation.message.to_string()));
            }
            let texts = invalid_params.violations.iter().map(|(field, message)| format!("{field}: {message}"));
            invalid_params.message = texts.collect::<Vec<_>>().join("; ");
            invalid_params
        }
        SubmitError::Internal(cause) => internal(&cause),
    }
}

/// Logs an internal error and returns an error without its details.
pub(crate) fn internal(cause: &str) -> Error {
    tracing::error!(event = "error_occurred", error_type = "internal", error_message = cause, recoverable = false);
    Error::new(ErrorKind::Internal, "internal error; see the server log for details")
}

fn truncate(id: &str) -> String {
    id.chars().take(100).collect()
}
