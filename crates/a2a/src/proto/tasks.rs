//! Tasks, messages, artifacts and updates in both packages. 0.3 cannot express the media type and name of a text, or
//! the tasks that a message refers to. They are lost.

use super::convert::{ProtoField, choice, convert, message};
use super::{v1, v03};
use crate::{Error, types, v03 as json};

convert!(
    v1::Message = Message { message_id, context_id, task_id, role, parts, metadata, extensions, reference_task_ids }
);
convert!(v03::Message = Message { message_id, context_id, task_id, role, metadata, extensions; parts = content }
    reads { reference_task_ids: None });

convert!(v1::Artifact = Artifact { artifact_id, name, description, parts, metadata, extensions });
convert!(v03::Artifact = Artifact { artifact_id, name, description, parts, metadata, extensions });

convert!(v1::TaskStatus = TaskStatus { state, message, timestamp });
convert!(v03::TaskStatus = TaskStatus { state, timestamp; message = update });

convert!(v1::Task = Task { id, context_id, status, artifacts, history, metadata });
convert!(v03::Task = Task { id, context_id, status, artifacts, history, metadata });

convert!(v1::TaskStatusUpdateEvent = TaskStatusUpdateEvent { task_id, context_id, status, metadata });
convert!(v03::TaskStatusUpdateEvent = TaskStatusUpdateEvent { task_id, context_id, status, metadata }
    writes |event| { r#final: json::ends_stream(&event.status.state) });

convert!(
    v1::TaskArtifactUpdateEvent =
        TaskArtifactUpdateEvent { task_id, context_id, artifact, append, last_chunk, metadata }
);
convert!(
    v03::TaskArtifactUpdateEvent =
        TaskArtifactUpdateEvent { task_id, context_id, artifact, append, last_chunk, metadata }
);

convert!(v1::ListTasksResponse = ListTasksResponse { tasks, next_page_token, page_size, total_size });

choice!(v1::SendMessageResponse.payload: v1::send_message_response::Payload = SendMessageResponse,
    "must be a task or a message" { Task = Task as "task", Message = Message as "message" });
choice!(v03::SendMessageResponse.payload: v03::send_message_response::Payload = SendMessageResponse,
    "must be a task or a message" { Task = Task as "task", Msg = Message as "message" });
choice!(v1::StreamResponse.payload: v1::stream_response::Payload = StreamResponse, "has an unknown type" {
    Task = Task as "task", Message = Message as "message",
    StatusUpdate = StatusUpdate as "statusUpdate", ArtifactUpdate = ArtifactUpdate as "artifactUpdate"
});
choice!(v03::StreamResponse.payload: v03::stream_response::Payload = StreamResponse, "has an unknown type" {
    Task = Task as "task", Msg = Message as "message",
    StatusUpdate = StatusUpdate as "statusUpdate", ArtifactUpdate = ArtifactUpdate as "artifactUpdate"
});

impl From<types::Part> for v1::Part {
    /// Converts a part with its content, file name, media type and metadata. Missing texts become empty.
    fn from(part: types::Part) -> Self {
        use v1::part::Content;
        let content = match part.content {
            types::PartContent::Text(text) => Content::Text(text),
            types::PartContent::Raw(bytes) => Content::Raw(bytes),
            types::PartContent::Url(url) => Content::Url(url),
            types::PartContent::Data(data) => Content::Data(data.write()),
        };
        Self {
            content: Some(content),
            metadata: part.metadata.write(),
            filename: part.filename.write(),
            media_type: part.media_type.write(),
        }
    }
}

impl TryFrom<v1::Part> for types::Part {
    type Error = Error;

    /// Converts a part. Empty texts become `None`. Fails if it has no content, or if data or metadata contain NaN or
    /// infinity.
    fn try_from(part: v1::Part) -> Result<Self, Error> {
        use v1::part::Content;
        let missing = || Error::invalid("content", "has neither text, raw, url nor data");
        let content = match part.content.ok_or_else(missing)? {
            Content::Text(text) => types::PartContent::Text(text),
            Content::Raw(bytes) => types::PartContent::Raw(bytes),
            Content::Url(url) => types::PartContent::Url(url),
            Content::Data(data) => types::PartContent::Data(super::convert::read(data, "data")?),
        };
        Ok(Self {
            content,
            filename: ProtoField::read(part.filename)?,
            media_type: ProtoField::read(part.media_type)?,
            metadata: super::convert::read(part.metadata, "metadata")?,
        })
    }
}

message!(v1::Part = Part);

impl From<types::Part> for v03::Part {
    /// Converts through the JSON form, because parts are the same in all bindings of 0.3. The name and media type of a
    /// text are lost. Data that are not an object are wrapped in one.
    fn from(part: types::Part) -> Self {
        use v03::file_part::File;
        use v03::part::Part as Content;
        let (content, metadata) = match json::Part::from(part) {
            json::Part::Text(part) => (Content::Text(part.text), part.metadata),
            json::Part::Data(part) => (Content::Data(v03::DataPart { data: Some(part.data.into()) }), part.metadata),
            json::Part::File(json::FilePart { file, metadata }) => {
                let content = match file.bytes {
                    Some(bytes) => Some(File::FileWithBytes(bytes)),
                    None => file.uri.map(File::FileWithUri),
                };
                let mime_type = file.mime_type.write();
                let name = file.name.write();
                (Content::File(v03::FilePart { file: content, mime_type, name }), metadata)
            }
        };
        Self { part: Some(content), metadata: metadata.write() }
    }
}

impl TryFrom<v03::Part> for types::Part {
    type Error = Error;

    /// Converts a part of 0.3 through the JSON form. Wrapped data are unwrapped. Fails if the part has no content, or a
    /// file has neither bytes nor a URI. Also fails if data or metadata contain NaN or infinity.
    fn try_from(part: v03::Part) -> Result<Self, Error> {
        use v03::file_part::File;
        use v03::part::Part as Content;
        let metadata = super::convert::read(part.metadata, "metadata")?;
        let missing = || Error::invalid("content", "has neither text, file nor data");
        let part = match part.part.ok_or_else(missing)? {
            Content::Text(text) => json::Part::Text(json::TextPart { text, metadata }),
            Content::Data(part) => {
                let data = super::convert::read(part.data.unwrap_or_default(), "data")?;
                json::Part::Data(json::DataPart { data, metadata })
            }
            Content::File(part) => {
                let missing = || Error::invalid("file", "has neither uri nor bytes");
                let mut file = json::FileContent {
                    mime_type: ProtoField::read(part.mime_type)?,
                    name: ProtoField::read(part.name)?,
                    ..json::FileContent::default()
                };
                match part.file.ok_or_else(missing)? {
                    File::FileWithUri(uri) => file.uri = Some(uri),
                    File::FileWithBytes(bytes) => file.bytes = Some(bytes),
                }
                json::Part::File(json::FilePart { file, metadata })
            }
        };
        part.try_into()
    }
}

message!(v03::Part = Part);
