//! Tasks, messages and what happens to them, in `a2a.v1`. 0.3 cannot say everything: the media type and name of a text
//! are lost, and which tasks a message refers to. Data that is no object is wrapped into one, with a mark that tells.

use prost_types::value::Kind;
use prost_types::{Struct, Value};

use crate::{Error, types};

use super::shared::{Role, TaskState};
use super::v03::{
    Artifact, Content, DataPart, File, FilePart, Message, Part, SendMessageResponse, Sent, StreamResponse, Task,
    TaskArtifactUpdateEvent, TaskStatus, TaskStatusUpdateEvent, Update,
};
use super::values::{from_json, from_map, from_time, to_json, to_map, to_object, to_time};
use super::{all, list, must, one, role, some, some_of, state, yes};

/// Tells in the metadata that data had to be wrapped; SDKs of 1.x use the same word.
const WRAPPED: &str = "data_part_compat";
/// Where wrapped data is.
const WRAPPING: &str = "value";

impl From<types::Part> for Part {
    fn from(part: types::Part) -> Self {
        let mut metadata = part.metadata.map(from_map);
        let (mime_type, name) = (part.media_type.unwrap_or_default(), part.filename.unwrap_or_default());
        let content = match part.content {
            types::PartContent::Text(text) => Content::Text(text),
            types::PartContent::Url(url) => Content::File(FilePart { file: Some(File::Uri(url)), mime_type, name }),
            types::PartContent::Raw(bytes) => {
                Content::File(FilePart { file: Some(File::Bytes(bytes)), mime_type, name })
            }
            types::PartContent::Data(data) => match from_json(data) {
                Value { kind: Some(Kind::StructValue(data)) } => Content::Data(DataPart { data: Some(data) }),
                data => {
                    let mark = Value { kind: Some(Kind::BoolValue(true)) };
                    metadata.get_or_insert_default().fields.insert(WRAPPED.to_owned(), mark);
                    let data = Struct { fields: [(WRAPPING.to_owned(), data)].into() };
                    Content::Data(DataPart { data: Some(data) })
                }
            },
        };
        Self { part: Some(content), metadata }
    }
}

impl TryFrom<Part> for types::Part {
    type Error = Error;

    fn try_from(part: Part) -> Result<Self, Error> {
        let mut metadata = part.metadata;
        let (mut filename, mut media_type) = (None, None);
        let content = match part.part.ok_or_else(|| Error::invalid("content", "has neither text, file nor data"))? {
            Content::Text(text) => types::PartContent::Text(text),
            Content::File(file) => {
                (filename, media_type) = (some(file.name), some(file.mime_type));
                match file.file.ok_or_else(|| Error::invalid("file", "has neither uri nor bytes"))? {
                    File::Uri(url) => types::PartContent::Url(url),
                    File::Bytes(bytes) => types::PartContent::Raw(bytes),
                }
            }
            Content::Data(data) => {
                let mut data = data.data.unwrap_or_default();
                let content = match unwrapped(&mut metadata, &mut data) {
                    Some(value) => to_json(value, "data")?,
                    None => serde_json::Value::Object(to_object(data, "data")?),
                };
                types::PartContent::Data(content)
            }
        };
        Ok(Self { content, filename, media_type, metadata: to_map(metadata, "metadata")? })
    }
}

/// The data that had to be wrapped, if it had to. The mark goes with it.
fn unwrapped(metadata: &mut Option<Struct>, data: &mut Struct) -> Option<Value> {
    let fields = &mut metadata.as_mut()?.fields;
    let is_marked = matches!(fields.get(WRAPPED)?.kind, Some(Kind::BoolValue(true)));
    let value = data.fields.remove(WRAPPING).filter(|_| is_marked)?;
    fields.remove(WRAPPED);
    if fields.is_empty() {
        *metadata = None;
    }
    Some(value)
}

impl From<types::Message> for Message {
    fn from(message: types::Message) -> Self {
        Self {
            message_id: message.message_id,
            context_id: message.context_id.unwrap_or_default(),
            task_id: message.task_id.unwrap_or_default(),
            role: Role::from(message.role).into(),
            content: list(message.parts),
            metadata: message.metadata.map(from_map),
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
            role: role(message.role)?,
            parts: all(message.content, "content")?,
            metadata: to_map(message.metadata, "metadata")?,
            extensions: some_of(message.extensions),
            reference_task_ids: None,
        })
    }
}

impl From<types::Artifact> for Artifact {
    fn from(artifact: types::Artifact) -> Self {
        Self {
            artifact_id: artifact.artifact_id,
            name: artifact.name.unwrap_or_default(),
            description: artifact.description.unwrap_or_default(),
            parts: list(artifact.parts),
            metadata: artifact.metadata.map(from_map),
            extensions: artifact.extensions.unwrap_or_default(),
        }
    }
}

impl TryFrom<Artifact> for types::Artifact {
    type Error = Error;

    fn try_from(artifact: Artifact) -> Result<Self, Error> {
        Ok(Self {
            artifact_id: artifact.artifact_id,
            name: some(artifact.name),
            description: some(artifact.description),
            parts: all(artifact.parts, "parts")?,
            metadata: to_map(artifact.metadata, "metadata")?,
            extensions: some_of(artifact.extensions),
        })
    }
}

impl From<types::TaskStatus> for TaskStatus {
    fn from(status: types::TaskStatus) -> Self {
        Self {
            state: TaskState::from(status.state).into(),
            update: status.message.map(Message::from),
            timestamp: status.timestamp.and_then(from_time),
        }
    }
}

impl TryFrom<TaskStatus> for types::TaskStatus {
    type Error = Error;

    fn try_from(status: TaskStatus) -> Result<Self, Error> {
        Ok(Self {
            state: state(status.state, "state")?,
            message: one(status.update, "message")?,
            timestamp: to_time(status.timestamp, "timestamp")?,
        })
    }
}

impl From<types::Task> for Task {
    fn from(task: types::Task) -> Self {
        Self {
            id: task.id,
            context_id: task.context_id,
            status: Some(task.status.into()),
            artifacts: list(task.artifacts.unwrap_or_default()),
            history: list(task.history.unwrap_or_default()),
            metadata: task.metadata.map(from_map),
        }
    }
}

impl TryFrom<Task> for types::Task {
    type Error = Error;

    fn try_from(task: Task) -> Result<Self, Error> {
        Ok(Self {
            id: task.id,
            context_id: task.context_id,
            status: must(task.status, "status")?,
            artifacts: some_of(all(task.artifacts, "artifacts")?),
            history: some_of(all(task.history, "history")?),
            metadata: to_map(task.metadata, "metadata")?,
        })
    }
}

impl From<types::TaskStatusUpdateEvent> for TaskStatusUpdateEvent {
    fn from(event: types::TaskStatusUpdateEvent) -> Self {
        let state = &event.status.state;
        let asks = matches!(state, types::TaskState::InputRequired | types::TaskState::AuthRequired);
        Self {
            task_id: event.task_id,
            context_id: event.context_id,
            r#final: state.is_terminal() || asks,
            status: Some(event.status.into()),
            metadata: event.metadata.map(from_map),
        }
    }
}

impl TryFrom<TaskStatusUpdateEvent> for types::TaskStatusUpdateEvent {
    type Error = Error;

    fn try_from(event: TaskStatusUpdateEvent) -> Result<Self, Error> {
        Ok(Self {
            task_id: event.task_id,
            context_id: event.context_id,
            status: must(event.status, "status")?,
            metadata: to_map(event.metadata, "metadata")?,
        })
    }
}

impl From<types::TaskArtifactUpdateEvent> for TaskArtifactUpdateEvent {
    fn from(event: types::TaskArtifactUpdateEvent) -> Self {
        Self {
            task_id: event.task_id,
            context_id: event.context_id,
            artifact: Some(event.artifact.into()),
            append: event.append.unwrap_or_default(),
            last_chunk: event.last_chunk.unwrap_or_default(),
            metadata: event.metadata.map(from_map),
        }
    }
}

impl TryFrom<TaskArtifactUpdateEvent> for types::TaskArtifactUpdateEvent {
    type Error = Error;

    fn try_from(event: TaskArtifactUpdateEvent) -> Result<Self, Error> {
        Ok(Self {
            task_id: event.task_id,
            context_id: event.context_id,
            artifact: must(event.artifact, "artifact")?,
            append: yes(event.append),
            last_chunk: yes(event.last_chunk),
            metadata: to_map(event.metadata, "metadata")?,
        })
    }
}

impl From<types::StreamResponse> for StreamResponse {
    fn from(update: types::StreamResponse) -> Self {
        let payload = match update {
            types::StreamResponse::Task(task) => Update::Task(task.into()),
            types::StreamResponse::Message(message) => Update::Message(message.into()),
            types::StreamResponse::StatusUpdate(event) => Update::Status(event.into()),
            types::StreamResponse::ArtifactUpdate(event) => Update::Artifact(event.into()),
        };
        Self { payload: Some(payload) }
    }
}

impl TryFrom<StreamResponse> for types::StreamResponse {
    type Error = Error;

    fn try_from(update: StreamResponse) -> Result<Self, Error> {
        let within = |field: &'static str| move |error: Error| error.inside(field);
        Ok(match update.payload.ok_or_else(|| Error::invalid("payload", "is none of those there are"))? {
            Update::Task(task) => Self::Task(task.try_into().map_err(within("task"))?),
            Update::Message(message) => Self::Message(message.try_into().map_err(within("message"))?),
            Update::Status(event) => Self::StatusUpdate(event.try_into().map_err(within("statusUpdate"))?),
            Update::Artifact(event) => Self::ArtifactUpdate(event.try_into().map_err(within("artifactUpdate"))?),
        })
    }
}

impl From<types::SendMessageResponse> for SendMessageResponse {
    fn from(sent: types::SendMessageResponse) -> Self {
        let payload = match sent {
            types::SendMessageResponse::Task(task) => Sent::Task(task.into()),
            types::SendMessageResponse::Message(message) => Sent::Message(message.into()),
        };
        Self { payload: Some(payload) }
    }
}

impl TryFrom<SendMessageResponse> for types::SendMessageResponse {
    type Error = Error;

    fn try_from(sent: SendMessageResponse) -> Result<Self, Error> {
        Ok(match sent.payload.ok_or_else(|| Error::invalid("payload", "is neither a task nor a message"))? {
            Sent::Task(task) => Self::Task(task.try_into().map_err(|error: Error| error.inside("task"))?),
            Sent::Message(message) => {
                Self::Message(message.try_into().map_err(|error: Error| error.inside("message"))?)
            }
        })
    }
}
