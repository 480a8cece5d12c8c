//! What goes wrong with tasks, in the words of A2A.

use ::a2a::{Error, Kind};
use supervisor::Refused;
use uuid::Uuid;

/// What an id means that cannot be one of ours: there is no such task.
pub(crate) fn task_id(id: &str) -> Result<Uuid, Error> {
    // Only as we write it: one task has one id.
    let found = Uuid::try_parse(id).ok().filter(|uuid| uuid.to_string() == id);
    found.ok_or_else(|| Error::task_not_found(&shown(id)))
}

/// `task` is the id that was asked for. What went wrong inside is for the log.
pub(crate) fn from_store(error: store::Error, task: &str) -> Error {
    match error {
        store::Error::NotFound => Error::task_not_found(&shown(task)),
        store::Error::QueueFull { .. } | store::Error::NoPlace => Error::new(Kind::Busy, error.to_string()),
        store::Error::Unavailable(cause) => {
            tracing::error!(event = "error_occurred", error_type = "unavailable", error_message = cause);
            Error::new(Kind::Busy, "the database is not available right now; try again")
        }
        other => internal(&other.to_string()),
    }
}

/// Fields are named as they are in the request.
pub(crate) fn from_refused(refused: Refused) -> Error {
    match refused {
        Refused::NoAgent => Error::new(Kind::NotFound, "there is no such agent"),
        Refused::Disabled(_) | Refused::Forbidden(_) | Refused::NotHere(_) => {
            Error::new(Kind::UnsupportedOperation, refused.to_string())
        }
        Refused::TooLarge { limit } => Error::invalid("message.parts", format!("must have at most {limit} bytes")),
        Refused::Invalid(invalid) => {
            let mut error = Error::new(Kind::InvalidParams, String::new());
            for violation in invalid.violations {
                let field = if violation.field == "input" { "message.parts" } else { &violation.field };
                error.violations.push((field.to_owned(), violation.message.to_string()));
            }
            let said = error.violations.iter().map(|(field, message)| format!("{field}: {message}"));
            error.message = said.collect::<Vec<_>>().join("; ");
            error
        }
        Refused::Broken(cause) => internal(&cause),
    }
}

pub(crate) fn internal(cause: &str) -> Error {
    tracing::error!(event = "error_occurred", error_type = "internal", error_message = cause, recoverable = false);
    Error::new(Kind::Internal, "something went wrong here; the log has the details")
}

fn shown(id: &str) -> String {
    id.chars().take(100).collect()
}
