//! Converts internal errors to A2A errors.

use ::a2a::{Error, ErrorKind};
use supervisor::SubmitError;
use uuid::Uuid;

/// Parses the id of a task. Fails with "not found" if it cannot be an id of this server.
pub(crate) fn parse_task_id(id: &str) -> Result<Uuid, Error> {
    // Only the canonical form is accepted, so that a task has one id.
    let found = Uuid::try_parse(id).ok().filter(|uuid| uuid.to_string() == id);
    found.ok_or_else(|| Error::task_not_found(&truncate(id)))
}

/// Converts an error of the store. `task` is the requested id; its first 100 characters are repeated in the error. A
/// full queue, missing slots and an unavailable database become `Busy`. The causes of an unavailable database and of
/// internal errors are only logged.
pub(crate) fn from_store(error: store::Error, task: &str) -> Error {
    match error {
        store::Error::NotFound => Error::task_not_found(&truncate(task)),
        store::Error::QueueFull { .. } | store::Error::NoFreeSlot => Error::new(ErrorKind::Busy, error.to_string()),
        store::Error::Unavailable(cause) => {
            tracing::error!(event = "error_occurred", error_type = "unavailable", error_message = cause);
            Error::new(ErrorKind::Busy, "the database is unavailable; try again later")
        }
        other => internal(&other.to_string()),
    }
}

/// Converts an error of a submission. The field `input` is reported as `message.parts`, its name in the request.
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
