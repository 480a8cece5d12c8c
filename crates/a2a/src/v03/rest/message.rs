//! Messages, what they are made of, and how they are sent.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{PushNotificationConfig, some};
use crate::v03::{self, Metadata};
use crate::{Error, bytes64, types};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendMessageRequest {
    #[serde(alias = "request")]
    pub message: Message,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<Configuration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Configuration {
    #[serde(alias = "accepted_output_modes", skip_serializing_if = "Vec::is_empty")]
    pub accepted_output_modes: Vec<String>,
    #[serde(alias = "push_notification", alias = "pushNotificationConfig", skip_serializing_if = "Option::is_none")]
    pub push_notification: Option<PushNotificationConfig>,
    #[serde(alias = "history_length", skip_serializing_if = "Option::is_none")]
    pub history_length: Option<i32>,
    /// What is not given is false here, unlike in JSON-RPC: protobuf cannot tell the two apart.
    pub blocking: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    #[serde(alias = "message_id")]
    pub message_id: String,
    #[serde(default, alias = "context_id", skip_serializing_if = "String::is_empty", deserialize_with = "or_empty")]
    pub context_id: String,
    #[serde(default, alias = "task_id", skip_serializing_if = "String::is_empty", deserialize_with = "or_empty")]
    pub task_id: String,
    pub role: Role,
    #[serde(alias = "parts")]
    pub content: Vec<Part>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_empty")]
    pub extensions: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    #[serde(rename = "ROLE_USER", alias = "user")]
    User,
    #[serde(rename = "ROLE_AGENT", alias = "agent")]
    Agent,
}

/// One of the three.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Loose")]
pub struct Part {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<File>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct File {
    #[serde(alias = "file_with_uri", alias = "uri", skip_serializing_if = "Option::is_none")]
    pub file_with_uri: Option<String>,
    #[serde(
        alias = "file_with_bytes",
        alias = "bytes",
        skip_serializing_if = "Option::is_none",
        with = "bytes64::option"
    )]
    pub file_with_bytes: Option<Vec<u8>>,
    #[serde(alias = "mime_type", skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The object is wrapped once more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Data {
    pub data: Map<String, Value>,
}

#[derive(Deserialize)]
struct Loose {
    kind: Option<String>,
    text: Option<String>,
    file: Option<File>,
    data: Option<Map<String, Value>>,
    metadata: Option<Metadata>,
}

impl TryFrom<Loose> for Part {
    type Error = String;

    fn try_from(part: Loose) -> Result<Self, String> {
        let Loose { kind, text, file, data, metadata } = part;
        if let Some(kind) = kind.as_deref().filter(|kind| !matches!(*kind, "text" | "file" | "data")) {
            let shown: String = kind.chars().take(40).collect();
            return Err(format!("unknown kind `{shown}`, expected `text`, `file` or `data`"));
        }
        let data = data.map(|mut data| match data.get_mut("data") {
            Some(Value::Object(inner)) if kind.is_none() => Data { data: std::mem::take(inner) },
            _ => Data { data },
        });
        if usize::from(text.is_some()) + usize::from(file.is_some()) + usize::from(data.is_some()) != 1 {
            return Err("exactly one of `text`, `file` and `data` must be given".to_owned());
        }
        if file.as_ref().is_some_and(|file| file.file_with_bytes.is_none() && file.file_with_uri.is_none()) {
            return Err("file: one of `fileWithBytes` and `fileWithUri` must be given".to_owned());
        }
        Ok(Self { text, file, data, metadata })
    }
}

/// In the JSON of protobuf, null is as good as not given.
pub(super) fn or_empty<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

impl From<types::SendMessageRequest> for SendMessageRequest {
    fn from(request: types::SendMessageRequest) -> Self {
        let configuration = request.configuration.map(Configuration::from);
        Self { message: request.message.into(), configuration, metadata: request.metadata }
    }
}

impl TryFrom<SendMessageRequest> for types::SendMessageRequest {
    type Error = Error;

    fn try_from(request: SendMessageRequest) -> Result<Self, Error> {
        Ok(Self {
            message: types::Message::try_from(request.message).map_err(|error| error.inside("message"))?,
            configuration: request.configuration.map(types::SendMessageConfiguration::from),
            metadata: request.metadata,
            tenant: None,
        })
    }
}

impl From<types::SendMessageConfiguration> for Configuration {
    fn from(configuration: types::SendMessageConfiguration) -> Self {
        Self {
            accepted_output_modes: configuration.accepted_output_modes.unwrap_or_default(),
            push_notification: configuration.task_push_notification_config.map(PushNotificationConfig::from),
            history_length: configuration.history_length,
            blocking: !configuration.return_immediately.unwrap_or_default(),
        }
    }
}

impl From<Configuration> for types::SendMessageConfiguration {
    fn from(configuration: Configuration) -> Self {
        Self {
            accepted_output_modes: Some(configuration.accepted_output_modes).filter(|modes| !modes.is_empty()),
            task_push_notification_config: configuration.push_notification.map(|push| push.of_task(String::new())),
            history_length: configuration.history_length.filter(|length| *length != 0),
            return_immediately: Some(!configuration.blocking),
        }
    }
}

impl From<types::Message> for Message {
    fn from(message: types::Message) -> Self {
        Self {
            message_id: message.message_id,
            context_id: message.context_id.unwrap_or_default(),
            task_id: message.task_id.unwrap_or_default(),
            role: match message.role {
                types::Role::User => Role::User,
                types::Role::Agent | types::Role::Unspecified => Role::Agent,
            },
            content: message.parts.into_iter().map(Part::from).collect(),
            metadata: message.metadata,
            extensions: message.extensions.unwrap_or_default(),
        }
    }
}

impl TryFrom<Message> for types::Message {
    type Error = Error;

    fn try_from(message: Message) -> Result<Self, Error> {
        Ok(Self {
            message_id: message.message_id,
            context_id: some(message.context_id),
            task_id: some(message.task_id),
            role: match message.role {
                Role::User => types::Role::User,
                Role::Agent => types::Role::Agent,
            },
            parts: v03::all("content", message.content)?,
            metadata: message.metadata,
            extensions: Some(message.extensions).filter(|extensions| !extensions.is_empty()),
            reference_task_ids: None,
        })
    }
}

impl From<types::Part> for Part {
    fn from(part: types::Part) -> Self {
        match v03::Part::from(part) {
            v03::Part::Text(part) => Self { text: Some(part.text), metadata: part.metadata, ..Self::default() },
            v03::Part::File(v03::FilePart { file, metadata }) => {
                let file = File {
                    file_with_uri: file.uri,
                    file_with_bytes: file.bytes,
                    mime_type: file.mime_type,
                    name: file.name,
                };
                Self { file: Some(file), metadata, ..Self::default() }
            }
            v03::Part::Data(part) => {
                Self { data: Some(Data { data: part.data }), metadata: part.metadata, ..Self::default() }
            }
        }
    }
}

impl TryFrom<Part> for types::Part {
    type Error = Error;

    fn try_from(part: Part) -> Result<Self, Error> {
        let metadata = part.metadata;
        let part = match (part.text, part.file, part.data) {
            (Some(text), ..) => v03::Part::Text(v03::TextPart { text, metadata }),
            (None, Some(file), _) => {
                let uri = file.file_with_uri.and_then(some);
                let (mime_type, name) = (file.mime_type.and_then(some), file.name.and_then(some));
                let file = v03::File { bytes: file.file_with_bytes, uri, mime_type, name };
                v03::Part::File(v03::FilePart { file, metadata })
            }
            (None, None, Some(data)) => v03::Part::Data(v03::DataPart { data: data.data, metadata }),
            (None, None, None) => return Err(Error::invalid("text", "one of text, file and data must be given")),
        };
        part.try_into()
    }
}
