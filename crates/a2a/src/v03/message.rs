//! Messages and their parts.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Metadata, all, into_all, tag};
use crate::{Error, base64_bytes, types};

tag!(MessageTag, "message");

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    #[serde(default)]
    pub kind: MessageTag,
    pub message_id: String,
    pub role: Role,
    pub parts: Vec<Part>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_task_ids: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Agent,
    User,
}

/// A part of a message. `kind` names its type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", try_from = "RawPart")]
pub enum Part {
    Text(TextPart),
    File(FilePart),
    Data(DataPart),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TextPart {
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FilePart {
    pub file: FileContent,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DataPart {
    pub data: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// The content of a file, or its URL. `bytes` takes precedence if both are set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileContent {
    #[serde(default, skip_serializing_if = "Option::is_none", with = "base64_bytes::option")]
    pub bytes: Option<Vec<u8>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A part as it is received. Reading all members at once avoids buffering until `kind` is known.
#[derive(Deserialize)]
struct RawPart {
    kind: Option<String>,
    text: Option<String>,
    file: Option<FileContent>,
    data: Option<Map<String, Value>>,
    metadata: Option<Metadata>,
}

impl TryFrom<RawPart> for Part {
    type Error = String;

    /// Checks a part. `kind` selects the member that is read; other members are ignored. Fails with a message if `kind`
    /// is missing or unknown, or its member is missing. Also fails if a file has neither `bytes` nor `uri`.
    fn try_from(part: RawPart) -> Result<Self, String> {
        let RawPart { kind, text, file, data, metadata } = part;
        let missing = |field: &str| format!("missing field `{field}`");
        match kind.as_deref() {
            Some("text") => Ok(Self::Text(TextPart { text: text.ok_or_else(|| missing("text"))?, metadata })),
            Some("file") => {
                let file = file.ok_or_else(|| missing("file"))?;
                if file.bytes.is_none() && file.uri.is_none() {
                    return Err("file: one of `bytes` and `uri` must be set".to_owned());
                }
                Ok(Self::File(FilePart { file, metadata }))
            }
            Some("data") => Ok(Self::Data(DataPart { data: data.ok_or_else(|| missing("data"))?, metadata })),
            Some(kind) => {
                let shown: String = kind.chars().take(40).collect();
                Err(format!("unknown kind `{shown}`, expected `text`, `file` or `data`"))
            }
            None => Err(missing("kind")),
        }
    }
}

impl From<types::Message> for Message {
    /// Converts a message of 1.x with all its fields. An unspecified role becomes the agent.
    fn from(message: types::Message) -> Self {
        Self {
            kind: MessageTag::It,
            message_id: message.message_id,
            role: message.role.into(),
            parts: into_all(message.parts),
            context_id: message.context_id,
            task_id: message.task_id,
            metadata: message.metadata,
            extensions: message.extensions,
            reference_task_ids: message.reference_task_ids,
        }
    }
}

impl TryFrom<Message> for types::Message {
    type Error = Error;

    /// Converts a message of 0.3 with all its fields. Fails if a part is invalid. The error names the part, such as
    /// `parts[0]`.
    fn try_from(message: Message) -> Result<Self, Error> {
        Ok(Self {
            message_id: message.message_id,
            role: message.role.into(),
            parts: all("parts", message.parts)?,
            context_id: message.context_id,
            task_id: message.task_id,
            metadata: message.metadata,
            extensions: message.extensions,
            reference_task_ids: message.reference_task_ids,
        })
    }
}

impl From<types::Role> for Role {
    /// Converts an unspecified role to the agent, because only agents send messages to clients. 0.3 has no such value.
    fn from(role: types::Role) -> Self {
        match role {
            types::Role::User => Self::User,
            types::Role::Agent | types::Role::Unspecified => Self::Agent,
        }
    }
}

impl From<Role> for types::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::User => Self::User,
            Role::Agent => Self::Agent,
        }
    }
}

/// The metadata key of wrapped data. In 0.3 data must be an object, so other values become its member `value`. Other
/// implementations use the same key.
const WRAPPED_DATA_KEY: &str = "data_part_compat";

impl From<types::Part> for Part {
    /// Converts a part of 1.x. Bytes and URLs become files. The name and media type of text and data are lost. Data
    /// that are not an object become the member `value` of one, and the metadata mark this with `data_part_compat`.
    fn from(part: types::Part) -> Self {
        let types::Part { content, filename, media_type, mut metadata } = part;
        match content {
            types::PartContent::Text(text) => Self::Text(TextPart { text, metadata }),
            types::PartContent::Raw(bytes) => {
                let file = FileContent { bytes: Some(bytes), uri: None, mime_type: media_type, name: filename };
                Self::File(FilePart { file, metadata })
            }
            types::PartContent::Url(uri) => {
                let file = FileContent { bytes: None, uri: Some(uri), mime_type: media_type, name: filename };
                Self::File(FilePart { file, metadata })
            }
            types::PartContent::Data(Value::Object(data)) => Self::Data(DataPart { data, metadata }),
            types::PartContent::Data(value) => {
                metadata.get_or_insert_default().insert(WRAPPED_DATA_KEY.to_owned(), Value::Bool(true));
                Self::Data(DataPart { data: Map::from_iter([("value".to_owned(), value)]), metadata })
            }
        }
    }
}

impl TryFrom<Part> for types::Part {
    type Error = Error;

    /// Converts a part of 0.3. The bytes of a file take precedence over its URI. Data are unwrapped if the metadata
    /// mark them and `value` is the only member; then the mark is removed. Fails if a file has neither bytes nor a URI.
    fn try_from(part: Part) -> Result<Self, Error> {
        match part {
            Part::Text(TextPart { text, metadata }) => {
                let content = types::PartContent::Text(text);
                Ok(Self { content, filename: None, media_type: None, metadata })
            }
            Part::File(FilePart { file, metadata }) => {
                let content = match (file.bytes, file.uri) {
                    (Some(bytes), _) => types::PartContent::Raw(bytes),
                    (None, Some(uri)) => types::PartContent::Url(uri),
                    (None, None) => return Err(Error::invalid("file", "one of bytes and uri must be set")),
                };
                Ok(Self { content, filename: file.name, media_type: file.mime_type, metadata })
            }
            Part::Data(DataPart { mut data, mut metadata }) => {
                let marked = metadata.as_ref().is_some_and(|all| all.get(WRAPPED_DATA_KEY) == Some(&Value::Bool(true)));
                let inner = if marked && data.len() == 1 { data.remove("value") } else { None };
                if inner.is_some() {
                    metadata = metadata.map(without_wrapped_key).filter(|left| !left.is_empty());
                }
                let content = types::PartContent::Data(inner.unwrap_or(Value::Object(data)));
                Ok(Self { content, filename: None, media_type: None, metadata })
            }
        }
    }
}

fn without_wrapped_key(mut metadata: Metadata) -> Metadata {
    metadata.remove(WRAPPED_DATA_KEY);
    metadata
}
