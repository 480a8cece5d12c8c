//! Validates the required fields of requests, independent of the binding.

use crate::types::{Message, Role, TaskPushNotificationConfig};
use crate::{Error, OperationRequest};

/// The maximum number of tasks or configurations on one page.
pub const MAX_PAGE_SIZE: i32 = 100;

impl OperationRequest {
    /// Checks that all required fields are present and in range. Fails with `InvalidParams` and the first invalid
    /// field:
    ///
    /// - Messages: the message id, a role and at least one part. A push configuration needs a URL.
    /// - Tasks: the id. Push configurations: the task id, a URL to create one, and an id to delete one.
    /// - A history length must not be negative. The page size of tasks must be between 1 and 100.
    ///
    /// The id of a configuration to get may be empty, and the page size of configurations is not checked.
    pub fn validate(&self) -> Result<(), Error> {
        match self {
            Self::Send(request) | Self::Stream(request) => {
                validate_message(&request.message).map_err(|error| error.nested_in("message"))?;
                let Some(configuration) = &request.configuration else { return Ok(()) };
                let push = configuration.task_push_notification_config.as_ref().map_or(Ok(()), validate_url);
                push.map_err(|error| error.nested_in("taskPushNotificationConfig"))
                    .and_then(|()| validate_history_length(configuration.history_length))
                    .map_err(|error| error.nested_in("configuration"))
            }
            Self::Get(request) => {
                require("id", &request.id).and_then(|()| validate_history_length(request.history_length))
            }
            Self::List(request) => {
                if request.page_size.is_some_and(|size| !(1..=MAX_PAGE_SIZE).contains(&size)) {
                    return Err(Error::invalid("pageSize", format!("must be between 1 and {MAX_PAGE_SIZE}")));
                }
                validate_history_length(request.history_length)
            }
            Self::Cancel(request) => require("id", &request.id),
            Self::Subscribe(request) => require("id", &request.id),
            Self::SetPush(config) => require("taskId", &config.task_id).and_then(|()| validate_url(config)),
            Self::GetPush(request) => require("taskId", &request.task_id),
            Self::ListPush(request) => require("taskId", &request.task_id),
            Self::DeletePush(request) => require("taskId", &request.task_id).and_then(|()| require("id", &request.id)),
            Self::ExtendedCard(_) => Ok(()),
        }
    }
}

/// Fails with `InvalidParams` if the message id is empty, the role is unspecified, or there are no parts.
fn validate_message(message: &Message) -> Result<(), Error> {
    require("messageId", &message.message_id)?;
    if message.role == Role::Unspecified {
        return Err(Error::invalid("role", "must be set"));
    }
    if message.parts.is_empty() {
        return Err(Error::invalid("parts", "must not be empty"));
    }
    Ok(())
}

/// Fails if the URL is empty. Its form is not checked here.
fn validate_url(config: &TaskPushNotificationConfig) -> Result<(), Error> {
    require("url", &config.url)
}

fn require(field: &str, value: &str) -> Result<(), Error> {
    if value.is_empty() { Err(Error::invalid(field, "must not be empty")) } else { Ok(()) }
}

fn validate_history_length(history_length: Option<i32>) -> Result<(), Error> {
    match history_length {
        Some(length) if length < 0 => Err(Error::invalid("historyLength", "must not be negative")),
        _ => Ok(()),
    }
}
