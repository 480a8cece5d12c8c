//! Decodes JSON responses into the types of 1.x. Errors are messages for people.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::proto::v1;
use crate::types::{ListTaskPushNotificationConfigsResponse, StreamResponse};
use crate::v03::{self, rest};
use crate::{Operation, OperationResponse, Version};

/// The JSON form of a response.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonFormat {
    V10,
    /// The form of JSON-RPC in 0.3, with a `kind` in every object.
    Tagged,
    /// The form of HTTP+JSON in 0.3.
    Rest,
}

impl JsonFormat {
    /// Returns the form of JSON-RPC responses in this version.
    pub(super) fn for_json_rpc(version: Version) -> Self {
        match version {
            Version::V10 => Self::V10,
            Version::V03 => Self::Tagged,
        }
    }

    /// Returns the form of an HTTP+JSON response. In 0.3 it is `Tagged` if the value has a `kind`, because some agents
    /// use the form of JSON-RPC. The text of the specification allows that.
    pub(super) fn for_http_json(version: Version, value: &Value) -> Self {
        match version {
            Version::V10 => Self::V10,
            Version::V03 if value.get("kind").is_some_and(Value::is_string) => Self::Tagged,
            Version::V03 => Self::Rest,
        }
    }
}

/// Decodes the response to a call in the given form. Fails with a message for people if the response does not match the
/// operation. Always fails for deletions, cards and streams, which are not decoded here, and for listing tasks in 0.3.
pub(super) fn decode(form: JsonFormat, operation: Operation, value: Value) -> Result<OperationResponse, String> {
    Ok(match (form, operation) {
        (JsonFormat::V10, Operation::Send) => OperationResponse::Sent(parse::<v1::SendMessageResponse, _>(value)?),
        (JsonFormat::V10, Operation::Get | Operation::Cancel) => OperationResponse::Task(parse::<v1::Task, _>(value)?),
        (JsonFormat::V10, Operation::List) => OperationResponse::Tasks(parse::<v1::ListTasksResponse, _>(value)?),
        (JsonFormat::V10, Operation::SetPush | Operation::GetPush) => {
            OperationResponse::PushConfig(parse::<v1::TaskPushNotificationConfig, _>(value)?)
        }
        (JsonFormat::V10, Operation::ListPush) => {
            OperationResponse::PushConfigs(parse::<v1::ListTaskPushNotificationConfigsResponse, _>(value)?)
        }
        (JsonFormat::Tagged, Operation::Send) => OperationResponse::Sent(parse::<v03::StreamResult, _>(value)?),
        (JsonFormat::Tagged, Operation::Get | Operation::Cancel) => {
            OperationResponse::Task(parse::<v03::Task, _>(value)?)
        }
        (JsonFormat::Tagged, Operation::SetPush | Operation::GetPush) => {
            OperationResponse::PushConfig(from_json::<v03::TaskPushNotificationConfig>(value)?.into())
        }
        (JsonFormat::Tagged, Operation::ListPush) => {
            let configs = from_json::<Vec<v03::TaskPushNotificationConfig>>(value)?;
            let configs = configs.into_iter().map(Into::into).collect();
            OperationResponse::PushConfigs(ListTaskPushNotificationConfigsResponse { configs, next_page_token: None })
        }
        (JsonFormat::Rest, Operation::Send) => OperationResponse::Sent(parse::<rest::SendMessageResponse, _>(value)?),
        (JsonFormat::Rest, Operation::Get | Operation::Cancel) => {
            OperationResponse::Task(parse::<rest::Task, _>(value)?)
        }
        (JsonFormat::Rest, Operation::SetPush | Operation::GetPush) => {
            OperationResponse::PushConfig(parse::<rest::TaskPushNotificationConfig, _>(value)?)
        }
        (JsonFormat::Rest, Operation::ListPush) => {
            OperationResponse::PushConfigs(parse::<rest::ListTaskPushNotificationConfigResponse, _>(value)?)
        }
        (JsonFormat::Tagged | JsonFormat::Rest, Operation::List)
        | (_, Operation::Stream | Operation::Subscribe | Operation::DeletePush | Operation::ExtendedCard) => {
            return Err("it does not match the request".to_owned());
        }
    })
}

/// Decodes one event of a stream. The flag is the `final` flag of status updates in 0.3, and always false in 1.x. Fails
/// with a message for people if the event is not an update.
pub(super) fn decode_update(form: JsonFormat, value: Value) -> Result<(StreamResponse, bool), String> {
    let message = |error: crate::Error| error.message;
    match form {
        JsonFormat::V10 => Ok((parse::<v1::StreamResponse, _>(value)?, false)),
        JsonFormat::Tagged => {
            let update: v03::StreamResult = from_json(value)?;
            let is_final = matches!(&update, v03::StreamResult::StatusUpdate(event) if event.last);
            Ok((update.try_into().map_err(message)?, is_final))
        }
        JsonFormat::Rest => {
            let update: rest::StreamResponse = from_json(value)?;
            let is_final = update.is_final();
            Ok((update.try_into().map_err(message)?, is_final))
        }
    }
}

/// Decodes a message and converts it to 1.x. Fails with a message for people if either step fails.
fn parse<P: DeserializeOwned + TryInto<T, Error = crate::Error>, T>(value: Value) -> Result<T, String> {
    from_json::<P>(value)?.try_into().map_err(|error| error.message)
}

fn from_json<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}
