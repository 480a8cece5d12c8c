//! Answers in JSON, as the types of 1.x. The error is a message for people.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::proto::v1;
use crate::types::{ListTaskPushNotificationConfigsResponse, StreamResponse};
use crate::v03::{self, rest};
use crate::{Answer, Operation, Version};

/// The JSON form of an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    V10,
    /// 0.3 in JSON-RPC, with a `kind` in every object.
    Tagged,
    /// 0.3 in HTTP+JSON.
    Rest,
}

impl Form {
    pub(super) fn of_json_rpc(version: Version) -> Self {
        match version {
            Version::V10 => Self::V10,
            Version::V03 => Self::Tagged,
        }
    }

    /// Some agents of 0.3 answer in the form of JSON-RPC, which the words of the specification allow.
    pub(super) fn of_http_json(version: Version, value: &Value) -> Self {
        match version {
            Version::V10 => Self::V10,
            Version::V03 if value.get("kind").is_some_and(Value::is_string) => Self::Tagged,
            Version::V03 => Self::Rest,
        }
    }
}

/// Reads the answer to a call. Cards and deletions are answered alike in every form, and not read here.
pub(super) fn read(form: Form, operation: Operation, value: Value) -> Result<Answer, String> {
    Ok(match (form, operation) {
        (Form::V10, Operation::Send) => Answer::Sent(parse::<v1::SendMessageResponse, _>(value)?),
        (Form::V10, Operation::Get | Operation::Cancel) => Answer::Task(parse::<v1::Task, _>(value)?),
        (Form::V10, Operation::List) => Answer::Tasks(parse::<v1::ListTasksResponse, _>(value)?),
        (Form::V10, Operation::SetPush | Operation::GetPush) => {
            Answer::Push(parse::<v1::TaskPushNotificationConfig, _>(value)?)
        }
        (Form::V10, Operation::ListPush) => {
            Answer::Pushes(parse::<v1::ListTaskPushNotificationConfigsResponse, _>(value)?)
        }
        (Form::Tagged, Operation::Send) => Answer::Sent(parse::<v03::StreamResult, _>(value)?),
        (Form::Tagged, Operation::Get | Operation::Cancel) => Answer::Task(parse::<v03::Task, _>(value)?),
        (Form::Tagged, Operation::SetPush | Operation::GetPush) => {
            Answer::Push(from_json::<v03::TaskPushNotificationConfig>(value)?.into())
        }
        (Form::Tagged, Operation::ListPush) => {
            let configs = from_json::<Vec<v03::TaskPushNotificationConfig>>(value)?;
            let configs = configs.into_iter().map(Into::into).collect();
            Answer::Pushes(ListTaskPushNotificationConfigsResponse { configs, next_page_token: None })
        }
        (Form::Rest, Operation::Send) => Answer::Sent(parse::<rest::SendMessageResponse, _>(value)?),
        (Form::Rest, Operation::Get | Operation::Cancel) => Answer::Task(parse::<rest::Task, _>(value)?),
        (Form::Rest, Operation::SetPush | Operation::GetPush) => {
            Answer::Push(parse::<rest::TaskPushNotificationConfig, _>(value)?)
        }
        (Form::Rest, Operation::ListPush) => {
            Answer::Pushes(parse::<rest::ListTaskPushNotificationConfigResponse, _>(value)?)
        }
        (Form::Tagged | Form::Rest, Operation::List)
        | (_, Operation::Stream | Operation::Subscribe | Operation::DeletePush | Operation::ExtendedCard) => {
            return Err("it was not asked for".to_owned());
        }
    })
}

/// Reads one event of a stream. The flag is set where 0.3 says that it is the last.
pub(super) fn read_update(form: Form, value: Value) -> Result<(StreamResponse, bool), String> {
    let meant = |error: crate::Error| error.message;
    match form {
        Form::V10 => Ok((parse::<v1::StreamResponse, _>(value)?, false)),
        Form::Tagged => {
            let update: v03::StreamResult = from_json(value)?;
            let is_final = matches!(&update, v03::StreamResult::StatusUpdate(event) if event.last);
            Ok((update.try_into().map_err(meant)?, is_final))
        }
        Form::Rest => {
            let update: rest::StreamResponse = from_json(value)?;
            let is_final = update.is_final();
            Ok((update.try_into().map_err(meant)?, is_final))
        }
    }
}

fn parse<P: DeserializeOwned + TryInto<T, Error = crate::Error>, T>(value: Value) -> Result<T, String> {
    from_json::<P>(value)?.try_into().map_err(|error| error.message)
}

fn from_json<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}
