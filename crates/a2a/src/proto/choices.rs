//! The JSON form of messages with a `oneof`, which serde attributes cannot describe.
//!
//! Unknown members are ignored. Parts of 0.3 are also accepted in the form of JSON-RPC, because the text of the
//! specification allows both in HTTP+JSON.

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value as Json};

use super::json::read_or_default;
use super::values::{Struct, Value};
use super::{v1, v03};
use crate::base64_bytes;

/// A part of 1.x as it is received. Exactly one of the first four members must be set.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartOf10 {
    text: Option<String>,
    #[serde(default, with = "base64_bytes::option")]
    raw: Option<Vec<u8>>,
    url: Option<String>,
    #[serde(default, deserialize_with = "read_present")]
    data: Option<Value>,
    #[serde(default, deserialize_with = "read_or_default")]
    filename: String,
    #[serde(default, alias = "media_type", deserialize_with = "read_or_default")]
    media_type: String,
    metadata: Option<Struct>,
}

/// Reads a member that is present even if it is `null`.
fn read_present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

impl TryFrom<PartOf10> for v1::Part {
    type Error = &'static str;

    /// Checks a part of 1.x. Fails unless exactly one of `text`, `raw`, `url` and `data` is set. `data` may be `null`,
    /// which counts as content only if none of the three is set.
    fn try_from(part: PartOf10) -> Result<Self, &'static str> {
        use v1::part::Content;
        // If another member has content, `null` counts as missing.
        let is_alone = part.text.is_none() && part.raw.is_none() && part.url.is_none();
        let data = part.data.filter(|data| is_alone || !data.json.is_null());
        let content = match (part.text, part.raw, part.url, data) {
            (Some(text), None, None, None) => Content::Text(text),
            (None, Some(raw), None, None) => Content::Raw(raw),
            (None, None, Some(url), None) => Content::Url(url),
            (None, None, None, Some(data)) => Content::Data(data),
            _ => return Err("exactly one of `text`, `raw`, `url` and `data` must be set"),
        };
        Ok(Self {
            content: Some(content),
            filename: part.filename,
            media_type: part.media_type,
            metadata: part.metadata,
        })
    }
}

/// A part of 0.3. `kind` is present only in the form of JSON-RPC, where data is not wrapped in another object.
#[derive(Deserialize)]
pub struct PartOf03 {
    kind: Option<String>,
    text: Option<String>,
    file: Option<FileOf03>,
    data: Option<Map<String, Json>>,
    metadata: Option<Struct>,
}

/// A file of 0.3 as it is received. Bytes take precedence over a URI.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FileOf03 {
    #[serde(alias = "file_with_uri", alias = "uri")]
    file_with_uri: Option<String>,
    #[serde(alias = "file_with_bytes", alias = "bytes", with = "base64_bytes::option")]
    file_with_bytes: Option<Vec<u8>>,
    #[serde(alias = "mime_type")]
    mime_type: Option<String>,
    name: Option<String>,
}

impl TryFrom<PartOf03> for v03::Part {
    type Error = String;

    /// Checks a part of 0.3. Without `kind`, an object in the member `data` of the data replaces it. Fails if `kind` is
    /// unknown, or unless exactly one of `text`, `file` and `data` is set. Also fails if a file has no content. The
    /// kind need not match the content.
    fn try_from(part: PartOf03) -> Result<Self, String> {
        use v03::part::Part as Content;
        let PartOf03 { kind, text, file, data, metadata } = part;
        if let Some(kind) = kind.as_deref().filter(|kind| !matches!(*kind, "text" | "file" | "data")) {
            let shown: String = kind.chars().take(40).collect();
            return Err(format!("unknown kind `{shown}`, expected `text`, `file` or `data`"));
        }
        let unwrapped = |mut data: Map<String, Json>| match data.get_mut("data") {
            Some(Json::Object(inner)) if kind.is_none() => std::mem::take(inner),
            _ => data,
        };
        let content = match (text, file, data.map(unwrapped)) {
            (Some(text), None, None) => Content::Text(text),
            (None, Some(file), None) => Content::File(file.try_into()?),
            (None, None, Some(data)) => Content::Data(v03::DataPart { data: Some(data.into()) }),
            _ => return Err("exactly one of `text`, `file` and `data` must be set".to_owned()),
        };
        Ok(Self { part: Some(content), metadata })
    }
}

impl TryFrom<FileOf03> for v03::FilePart {
    type Error = String;

    /// Checks a file of 0.3. Bytes take precedence over a URI. Fails if neither is set. A missing name or media type is
    /// empty.
    fn try_from(file: FileOf03) -> Result<Self, String> {
        use v03::file_part::File;
        let content = match (file.file_with_bytes, file.file_with_uri) {
            (Some(bytes), _) => File::FileWithBytes(bytes),
            (None, Some(uri)) => File::FileWithUri(uri),
            (None, None) => return Err("file: one of `fileWithBytes` and `fileWithUri` must be set".to_owned()),
        };
        Ok(Self {
            file: Some(content),
            mime_type: file.mime_type.unwrap_or_default(),
            name: file.name.unwrap_or_default(),
        })
    }
}

/// Defines the JSON form of a message with a `oneof`: an object with one member. Further members are ignored.
macro_rules! payload {
    ($form:ident => $package:ident::$message:ident, $module:ident {
        $($member:ident: $type:ident = $variant:ident $(, alias $alias:literal)?;)*
    }) => {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $form {
            $($(#[serde(alias = $alias)])? $member: Option<$package::$type>,)*
        }

        impl From<$form> for $package::$message {
            fn from(form: $form) -> Self {
                use $package::$module::Payload;
                let payload = None;
                $(let payload = payload.or(form.$member.map(Payload::$variant));)*
                Self { payload }
            }
        }
    };
}

payload!(SentOf10 => v1::SendMessageResponse, send_message_response {
    message: Message = Message;
    task: Task = Task;
});
payload!(UpdateOf10 => v1::StreamResponse, stream_response {
    message: Message = Message;
    task: Task = Task;
    status_update: TaskStatusUpdateEvent = StatusUpdate, alias "status_update";
    artifact_update: TaskArtifactUpdateEvent = ArtifactUpdate, alias "artifact_update";
});
payload!(SentOf03 => v03::SendMessageResponse, send_message_response {
    message: Message = Msg, alias "msg";
    task: Task = Task;
});
payload!(UpdateOf03 => v03::StreamResponse, stream_response {
    message: Message = Msg, alias "msg";
    task: Task = Task;
    status_update: TaskStatusUpdateEvent = StatusUpdate, alias "status_update";
    artifact_update: TaskArtifactUpdateEvent = ArtifactUpdate, alias "artifact_update";
});

/// Writes an object with one member.
fn write_one<S: Serializer>(to: S, name: &str, value: &impl Serialize) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(1))?;
    map.serialize_entry(name, value)?;
    map.end()
}

impl Serialize for v03::SendMessageResponse {
    /// Writes an object with the member `task` or `message`. Without a payload it is empty.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        use v03::send_message_response::Payload;
        match &self.payload {
            None => to.serialize_map(Some(0))?.end(),
            Some(Payload::Task(task)) => write_one(to, "task", task),
            Some(Payload::Msg(message)) => write_one(to, "message", message),
        }
    }
}

impl Serialize for v03::StreamResponse {
    /// Writes an object with one member: `task`, `message`, `statusUpdate` or `artifactUpdate`. Without a payload it is
    /// empty.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        use v03::stream_response::Payload;
        match &self.payload {
            None => to.serialize_map(Some(0))?.end(),
            Some(Payload::Task(task)) => write_one(to, "task", task),
            Some(Payload::Msg(message)) => write_one(to, "message", message),
            Some(Payload::StatusUpdate(event)) => write_one(to, "statusUpdate", event),
            Some(Payload::ArtifactUpdate(event)) => write_one(to, "artifactUpdate", event),
        }
    }
}

impl Serialize for v03::Part {
    /// Writes an object with the member `text`, `file` or `data`, if there is content. `metadata` is omitted if it is
    /// missing.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        use v03::part::Part as Content;
        let mut map = to.serialize_map(None)?;
        match &self.part {
            None => {}
            Some(Content::Text(text)) => map.serialize_entry("text", text)?,
            Some(Content::File(file)) => map.serialize_entry("file", file)?,
            Some(Content::Data(data)) => map.serialize_entry("data", data)?,
        }
        if let Some(metadata) = &self.metadata {
            map.serialize_entry("metadata", metadata)?;
        }
        map.end()
    }
}

impl Serialize for v03::FilePart {
    /// Writes an object with the member `fileWithUri`, or `fileWithBytes` in base64. An empty media type or name is
    /// omitted.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        use v03::file_part::File;
        let mut map = to.serialize_map(None)?;
        match &self.file {
            None => {}
            Some(File::FileWithUri(uri)) => map.serialize_entry("fileWithUri", uri)?,
            Some(File::FileWithBytes(bytes)) => map.serialize_entry("fileWithBytes", &base64_bytes::encode(bytes))?,
        }
        if !self.mime_type.is_empty() {
            map.serialize_entry("mimeType", &self.mime_type)?;
        }
        if !self.name.is_empty() {
            map.serialize_entry("name", &self.name)?;
        }
        map.end()
    }
}
