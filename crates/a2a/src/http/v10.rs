//! Requests of version 1.x as JSON brings them.
//!
//! The official types could be read directly, but not at the pace that is wanted here, nor with errors that name the
//! field, nor in everything that the JSON of protobuf allows: names in snake case, numbers as text, states as numbers.

use std::borrow::Cow;
use std::fmt;

use chrono::{DateTime, Utc};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::v03::Metadata;
use crate::{bytes64, types};

#[derive(Deserialize)]
pub(super) struct Send {
    message: Message,
    configuration: Option<Configuration>,
    metadata: Option<Metadata>,
    tenant: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Configuration {
    #[serde(alias = "accepted_output_modes")]
    accepted_output_modes: Option<Vec<String>>,
    #[serde(alias = "task_push_notification_config", alias = "pushNotificationConfig")]
    task_push_notification_config: Option<Push>,
    #[serde(default, alias = "history_length", deserialize_with = "number")]
    history_length: Option<i32>,
    #[serde(alias = "return_immediately")]
    return_immediately: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    #[serde(alias = "message_id")]
    message_id: String,
    #[serde(alias = "context_id")]
    context_id: Option<String>,
    #[serde(alias = "task_id")]
    task_id: Option<String>,
    #[serde(deserialize_with = "role")]
    role: types::Role,
    parts: Vec<Part>,
    metadata: Option<Metadata>,
    extensions: Option<Vec<String>>,
    #[serde(alias = "reference_task_ids")]
    reference_task_ids: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(try_from = "Loose")]
struct Part(types::Part);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Loose {
    text: Option<String>,
    #[serde(default, with = "bytes64::option")]
    raw: Option<Vec<u8>>,
    url: Option<String>,
    #[serde(default, deserialize_with = "given")]
    data: Option<Value>,
    filename: Option<String>,
    #[serde(alias = "media_type")]
    media_type: Option<String>,
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Push {
    #[serde(default)]
    url: String,
    id: Option<String>,
    #[serde(default, alias = "task_id")]
    task_id: String,
    token: Option<String>,
    authentication: Option<types::AuthenticationInfo>,
    tenant: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Get {
    id: String,
    #[serde(default, alias = "history_length", deserialize_with = "number")]
    history_length: Option<i32>,
    tenant: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct List {
    #[serde(alias = "context_id")]
    context_id: Option<String>,
    #[serde(default, deserialize_with = "state")]
    status: Option<types::TaskState>,
    #[serde(default, alias = "page_size", deserialize_with = "number")]
    page_size: Option<i32>,
    #[serde(alias = "page_token")]
    page_token: Option<String>,
    #[serde(default, alias = "history_length", deserialize_with = "number")]
    history_length: Option<i32>,
    #[serde(alias = "status_timestamp_after")]
    status_timestamp_after: Option<DateTime<Utc>>,
    #[serde(alias = "include_artifacts")]
    include_artifacts: Option<bool>,
    tenant: Option<String>,
}

/// Of everything that needs no more than a task.
#[derive(Deserialize)]
pub(super) struct Task {
    id: String,
    metadata: Option<Metadata>,
    tenant: Option<String>,
}

/// What a path leaves to say about one.
#[derive(Default, Deserialize)]
pub(super) struct Rest {
    pub(super) metadata: Option<Metadata>,
}

/// One push configuration.
#[derive(Deserialize)]
pub(super) struct PushName {
    #[serde(alias = "task_id", rename = "taskId")]
    task_id: String,
    id: String,
    tenant: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Pushes {
    #[serde(alias = "task_id")]
    task_id: String,
    #[serde(default, alias = "page_size", deserialize_with = "number")]
    page_size: Option<i32>,
    #[serde(alias = "page_token")]
    page_token: Option<String>,
    tenant: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Card {
    tenant: Option<String>,
}

/// What is there, be it null.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// Numbers may be written as text, and names as numbers.
enum Word<'de> {
    Number(i64),
    Float(f64),
    Text(Cow<'de, str>),
}

impl<'de> Deserialize<'de> for Word<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Words)
    }
}

struct Words;

impl<'de> Visitor<'de> for Words {
    type Value = Word<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a word or a number")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Word<'de>, E> {
        Ok(Word::Number(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Word<'de>, E> {
        Ok(i64::try_from(number).map_or(Word::Float(number as f64), Word::Number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Word<'de>, E> {
        Ok(Word::Float(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Word<'de>, E> {
        Ok(Word::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Word<'de>, E> {
        Ok(Word::Text(Cow::Borrowed(text)))
    }
}

fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i32>, D::Error> {
    let read = match Option::<Word>::deserialize(from)? {
        None => return Ok(None),
        Some(Word::Number(number)) => i32::try_from(number).ok(),
        Some(Word::Float(number)) if number.fract() == 0.0 => {
            Some(number as i64).and_then(|number| i32::try_from(number).ok())
        }
        Some(Word::Float(_)) => None,
        Some(Word::Text(text)) => text.parse().ok(),
    };
    read.map(Some).ok_or_else(|| D::Error::custom("expected a whole number of 32 bits"))
}

fn role<'de, D: Deserializer<'de>>(from: D) -> Result<types::Role, D::Error> {
    let read = match Word::deserialize(from)? {
        Word::Text(text) => match text.as_ref() {
            "ROLE_USER" => Some(types::Role::User),
            "ROLE_AGENT" => Some(types::Role::Agent),
            "ROLE_UNSPECIFIED" | "" => Some(types::Role::Unspecified),
            _ => None,
        },
        Word::Number(1) => Some(types::Role::User),
        Word::Number(2) => Some(types::Role::Agent),
        Word::Number(_) | Word::Float(_) => None,
    };
    read.ok_or_else(|| D::Error::custom("expected `ROLE_USER` or `ROLE_AGENT`"))
}

fn state<'de, D: Deserializer<'de>>(from: D) -> Result<Option<types::TaskState>, D::Error> {
    let read = match Option::<Word>::deserialize(from)? {
        None => return Ok(None),
        Some(Word::Text(text)) => named(&text),
        Some(Word::Number(number)) => named(&number.to_string()),
        Some(Word::Float(_)) => None,
    };
    let read = read.ok_or_else(|| D::Error::custom("expected a state such as `TASK_STATE_WORKING`"))?;
    Ok(Some(read).filter(|state| *state != types::TaskState::Unspecified))
}

/// A state by its name, its number, or its name in 0.3.
pub(super) fn named(state: &str) -> Option<types::TaskState> {
    use types::TaskState::{
        AuthRequired, Canceled, Completed, Failed, InputRequired, Rejected, Submitted, Unspecified, Working,
    };
    Some(match state {
        "" | "0" | "TASK_STATE_UNSPECIFIED" | "unknown" => Unspecified,
        "1" | "TASK_STATE_SUBMITTED" | "submitted" => Submitted,
        "2" | "TASK_STATE_WORKING" | "working" => Working,
        "3" | "TASK_STATE_COMPLETED" | "completed" => Completed,
        "4" | "TASK_STATE_FAILED" | "failed" => Failed,
        "5" | "TASK_STATE_CANCELED" | "TASK_STATE_CANCELLED" | "canceled" => Canceled,
        "6" | "TASK_STATE_INPUT_REQUIRED" | "input-required" => InputRequired,
        "7" | "TASK_STATE_REJECTED" | "rejected" => Rejected,
        "8" | "TASK_STATE_AUTH_REQUIRED" | "auth-required" => AuthRequired,
        _ => return None,
    })
}

impl TryFrom<Loose> for Part {
    type Error = &'static str;

    fn try_from(part: Loose) -> Result<Self, &'static str> {
        let content = match (part.text, part.raw, part.url, part.data) {
            (Some(text), None, None, None) => types::PartContent::Text(text),
            (None, Some(raw), None, None) => types::PartContent::Raw(raw),
            (None, None, Some(url), None) => types::PartContent::Url(url),
            (None, None, None, Some(data)) => types::PartContent::Data(data),
            _ => return Err("exactly one of `text`, `raw`, `url` and `data` must be given"),
        };
        Ok(Self(types::Part {
            content,
            filename: part.filename.filter(|name| !name.is_empty()),
            media_type: part.media_type.filter(|media_type| !media_type.is_empty()),
            metadata: part.metadata,
        }))
    }
}

/// In protobuf a text that is not given is empty.
fn some(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

impl From<Send> for types::SendMessageRequest {
    fn from(send: Send) -> Self {
        let Send { message, configuration, metadata, tenant } = send;
        Self {
            message: types::Message {
                message_id: message.message_id,
                context_id: some(message.context_id),
                task_id: some(message.task_id),
                role: message.role,
                parts: message.parts.into_iter().map(|part| part.0).collect(),
                metadata: message.metadata,
                extensions: message.extensions,
                reference_task_ids: message.reference_task_ids,
            },
            configuration: configuration.map(|configuration| types::SendMessageConfiguration {
                accepted_output_modes: configuration.accepted_output_modes,
                task_push_notification_config: configuration.task_push_notification_config.map(Push::into),
                history_length: configuration.history_length,
                return_immediately: configuration.return_immediately,
            }),
            metadata,
            tenant: some(tenant),
        }
    }
}

impl From<Push> for types::TaskPushNotificationConfig {
    fn from(push: Push) -> Self {
        Self {
            url: push.url,
            id: some(push.id),
            task_id: push.task_id,
            token: some(push.token),
            authentication: push.authentication,
            tenant: some(push.tenant),
        }
    }
}

impl From<Get> for types::GetTaskRequest {
    fn from(get: Get) -> Self {
        Self { id: get.id, history_length: get.history_length, tenant: some(get.tenant) }
    }
}

impl From<List> for types::ListTasksRequest {
    fn from(list: List) -> Self {
        Self {
            context_id: some(list.context_id),
            status: list.status,
            page_size: list.page_size,
            page_token: some(list.page_token),
            history_length: list.history_length,
            status_timestamp_after: list.status_timestamp_after,
            include_artifacts: list.include_artifacts,
            tenant: some(list.tenant),
        }
    }
}

impl From<Task> for types::CancelTaskRequest {
    fn from(task: Task) -> Self {
        Self { id: task.id, metadata: task.metadata, tenant: some(task.tenant) }
    }
}

impl From<Task> for types::SubscribeToTaskRequest {
    fn from(task: Task) -> Self {
        Self { id: task.id, tenant: some(task.tenant) }
    }
}

impl From<PushName> for types::GetTaskPushNotificationConfigRequest {
    fn from(name: PushName) -> Self {
        Self { task_id: name.task_id, id: name.id, tenant: some(name.tenant) }
    }
}

impl From<PushName> for types::DeleteTaskPushNotificationConfigRequest {
    fn from(name: PushName) -> Self {
        Self { task_id: name.task_id, id: name.id, tenant: some(name.tenant) }
    }
}

impl From<Pushes> for types::ListTaskPushNotificationConfigsRequest {
    fn from(pushes: Pushes) -> Self {
        Self {
            task_id: pushes.task_id,
            page_size: pushes.page_size,
            page_token: some(pushes.page_token),
            tenant: some(pushes.tenant),
        }
    }
}

impl From<Card> for types::GetExtendedAgentCardRequest {
    fn from(card: Card) -> Self {
        Self { tenant: some(card.tenant) }
    }
}
