//! What every request must have, whichever way it came.

use crate::types::{Message, Role, TaskPushNotificationConfig};
use crate::{Error, Request};

/// The most tasks on one page.
pub const PAGE: i32 = 100;

impl Request {
    /// Whether everything is there that the protocol asks for. The error names the field.
    pub fn check(&self) -> Result<(), Error> {
        match self {
            Self::Send(request) | Self::Stream(request) => {
                message(&request.message).map_err(|error| error.inside("message"))?;
                let Some(configuration) = &request.configuration else { return Ok(()) };
                let push = configuration.task_push_notification_config.as_ref().map_or(Ok(()), url);
                push.map_err(|error| error.inside("taskPushNotificationConfig"))
                    .and_then(|()| length(configuration.history_length))
                    .map_err(|error| error.inside("configuration"))
            }
            Self::Get(request) => given("id", &request.id).and_then(|()| length(request.history_length)),
            Self::List(request) => {
                if request.page_size.is_some_and(|size| !(1..=PAGE).contains(&size)) {
                    return Err(Error::invalid("pageSize", format!("must be between 1 and {PAGE}")));
                }
                length(request.history_length)
            }
            Self::Cancel(request) => given("id", &request.id),
            Self::Subscribe(request) => given("id", &request.id),
            Self::SetPush(config) => given("taskId", &config.task_id).and_then(|()| url(config)),
            Self::GetPush(request) => given("taskId", &request.task_id),
            Self::ListPush(request) => given("taskId", &request.task_id),
            Self::DeletePush(request) => given("taskId", &request.task_id).and_then(|()| given("id", &request.id)),
            Self::ExtendedCard(_) => Ok(()),
        }
    }
}

fn message(message: &Message) -> Result<(), Error> {
    given("messageId", &message.message_id)?;
    if message.role == Role::Unspecified {
        return Err(Error::invalid("role", "must be given"));
    }
    if message.parts.is_empty() {
        return Err(Error::invalid("parts", "must not be empty"));
    }
    Ok(())
}

fn url(config: &TaskPushNotificationConfig) -> Result<(), Error> {
    given("url", &config.url)
}

fn given(field: &str, value: &str) -> Result<(), Error> {
    if value.is_empty() { Err(Error::invalid(field, "must not be empty")) } else { Ok(()) }
}

fn length(history_length: Option<i32>) -> Result<(), Error> {
    match history_length {
        Some(length) if length < 0 => Err(Error::invalid("historyLength", "must not be negative")),
        _ => Ok(()),
    }
}
