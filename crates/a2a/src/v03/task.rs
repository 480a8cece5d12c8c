//! Tasks, their states, artifacts and updates.

use chrono::{DateTime, Utc};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{Message, Metadata, Part, all, into_all, tag};
use crate::proto::json::any_time;
use crate::{Error, types};

tag!(TaskTag, "task");
tag!(StatusUpdateTag, "status-update");
tag!(ArtifactUpdateTag, "artifact-update");

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    #[serde(default)]
    pub kind: TaskTag,
    pub id: String,
    pub context_id: String,
    pub status: TaskStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Vec<Artifact>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<Message>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskStatus {
    pub state: TaskState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "any_time")]
    pub timestamp: Option<DateTime<Utc>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    Submitted,
    Working,
    InputRequired,
    Completed,
    Canceled,
    Failed,
    Rejected,
    AuthRequired,
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    pub artifact_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub parts: Vec<Part>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskStatusUpdateEvent {
    #[serde(default)]
    pub kind: StatusUpdateTag,
    pub task_id: String,
    pub context_id: String,
    pub status: TaskStatus,
    /// True for the last update of the stream.
    #[serde(rename = "final", default)]
    pub last: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskArtifactUpdateEvent {
    #[serde(default)]
    pub kind: ArtifactUpdateTag,
    pub task_id: String,
    pub context_id: String,
    pub artifact: Artifact,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_chunk: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// The response to a message, or one event of a streaming response. A plain response is a task or a message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum StreamResult {
    Task(Task),
    Message(Message),
    StatusUpdate(TaskStatusUpdateEvent),
    ArtifactUpdate(TaskArtifactUpdateEvent),
}

impl<'de> Deserialize<'de> for StreamResult {
    /// Reads an object by its `kind`: `task`, `message`, `status-update` or `artifact-update`. Fails if `kind` is
    /// missing or unknown, or the object does not match it.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
        match kind {
            "task" => serde_json::from_value(value).map(Self::Task),
            "message" => serde_json::from_value(value).map(Self::Message),
            "status-update" => serde_json::from_value(value).map(Self::StatusUpdate),
            "artifact-update" => serde_json::from_value(value).map(Self::ArtifactUpdate),
            other => {
                let shown: String = other.chars().take(40).collect();
                return Err(D::Error::custom(format!("unknown kind `{shown}`")));
            }
        }
        .map_err(D::Error::custom)
    }
}

impl From<types::Task> for Task {
    /// Converts a task of 1.x with all its fields.
    fn from(task: types::Task) -> Self {
        Self {
            kind: TaskTag::It,
            id: task.id,
            context_id: task.context_id,
            status: task.status.into(),
            artifacts: task.artifacts.map(into_all),
            history: task.history.map(into_all),
            metadata: task.metadata,
        }
    }
}

impl TryFrom<Task> for types::Task {
    type Error = Error;

    /// Converts a task of 0.3 with all its fields. Fails if a part in the status, the artifacts or the history is
    /// invalid. The error names the field.
    fn try_from(task: Task) -> Result<Self, Error> {
        Ok(Self {
            id: task.id,
            context_id: task.context_id,
            status: types::TaskStatus::try_from(task.status).map_err(|error| error.nested_in("status"))?,
            artifacts: task.artifacts.map(|artifacts| all("artifacts", artifacts)).transpose()?,
            history: task.history.map(|history| all("history", history)).transpose()?,
            metadata: task.metadata,
        })
    }
}

impl From<types::TaskStatus> for TaskStatus {
    fn from(status: types::TaskStatus) -> Self {
        let message = status.message.map(Message::from);
        Self { state: status.state.into(), message, timestamp: status.timestamp }
    }
}

impl TryFrom<TaskStatus> for types::TaskStatus {
    type Error = Error;

    fn try_from(status: TaskStatus) -> Result<Self, Error> {
        let message = status.message.map(types::Message::try_from).transpose();
        let message = message.map_err(|error| error.nested_in("message"))?;
        Ok(Self { state: status.state.into(), message, timestamp: status.timestamp })
    }
}

impl From<types::TaskState> for TaskState {
    /// Converts a state. `Unspecified` becomes `Unknown`; the other names are equal.
    fn from(state: types::TaskState) -> Self {
        match state {
            types::TaskState::Unspecified => Self::Unknown,
            types::TaskState::Submitted => Self::Submitted,
            types::TaskState::Working => Self::Working,
            types::TaskState::Completed => Self::Completed,
            types::TaskState::Failed => Self::Failed,
            types::TaskState::Canceled => Self::Canceled,
            types::TaskState::InputRequired => Self::InputRequired,
            types::TaskState::Rejected => Self::Rejected,
            types::TaskState::AuthRequired => Self::AuthRequired,
        }
    }
}

impl From<TaskState> for types::TaskState {
    /// Converts a state. `Unknown` becomes `Unspecified`; the other names are equal.
    fn from(state: TaskState) -> Self {
        match state {
            TaskState::Unknown => Self::Unspecified,
            TaskState::Submitted => Self::Submitted,
            TaskState::Working => Self::Working,
            TaskState::Completed => Self::Completed,
            TaskState::Failed => Self::Failed,
            TaskState::Canceled => Self::Canceled,
            TaskState::InputRequired => Self::InputRequired,
            TaskState::Rejected => Self::Rejected,
            TaskState::AuthRequired => Self::AuthRequired,
        }
    }
}

/// Returns true if a stream of 0.3 ends with this state: the task has ended, or requires input or authorization.
pub(crate) fn ends_stream(state: &types::TaskState) -> bool {
    use types::TaskState::{Submitted, Unspecified, Working};
    !matches!(state, Submitted | Working | Unspecified)
}

impl From<types::Artifact> for Artifact {
    /// Converts an artifact of 1.x with all its fields.
    fn from(artifact: types::Artifact) -> Self {
        Self {
            artifact_id: artifact.artifact_id,
            name: artifact.name,
            description: artifact.description,
            parts: into_all(artifact.parts),
            metadata: artifact.metadata,
            extensions: artifact.extensions,
        }
    }
}

impl TryFrom<Artifact> for types::Artifact {
    type Error = Error;

    /// Converts an artifact of 0.3 with all its fields. Fails if a part is invalid. The error names the part.
    fn try_from(artifact: Artifact) -> Result<Self, Error> {
        Ok(Self {
            artifact_id: artifact.artifact_id,
            name: artifact.name,
            description: artifact.description,
            parts: all("parts", artifact.parts)?,
            metadata: artifact.metadata,
            extensions: artifact.extensions,
        })
    }
}

impl From<types::TaskStatusUpdateEvent> for TaskStatusUpdateEvent {
    /// Converts a status update of 1.x. The `final` flag is set if the task has ended, or requires input or
    /// authorization.
    fn from(update: types::TaskStatusUpdateEvent) -> Self {
        Self {
            kind: StatusUpdateTag::It,
            task_id: update.task_id,
            context_id: update.context_id,
            last: ends_stream(&update.status.state),
            status: update.status.into(),
            metadata: update.metadata,
        }
    }
}

impl TryFrom<TaskStatusUpdateEvent> for types::TaskStatusUpdateEvent {
    type Error = Error;

    /// Converts a status update of 0.3. The `final` flag is lost. Fails if a part of the status message is invalid. The
    /// error names the field.
    fn try_from(update: TaskStatusUpdateEvent) -> Result<Self, Error> {
        Ok(Self {
            task_id: update.task_id,
            context_id: update.context_id,
            status: types::TaskStatus::try_from(update.status).map_err(|error| error.nested_in("status"))?,
            metadata: update.metadata,
        })
    }
}

impl From<types::TaskArtifactUpdateEvent> for TaskArtifactUpdateEvent {
    /// Converts an artifact update of 1.x with all its fields.
    fn from(update: types::TaskArtifactUpdateEvent) -> Self {
        Self {
            kind: ArtifactUpdateTag::It,
            task_id: update.task_id,
            context_id: update.context_id,
            artifact: update.artifact.into(),
            append: update.append,
            last_chunk: update.last_chunk,
            metadata: update.metadata,
        }
    }
}

impl TryFrom<TaskArtifactUpdateEvent> for types::TaskArtifactUpdateEvent {
    type Error = Error;

    /// Converts an artifact update of 0.3 with all its fields. Fails if a part is invalid. The error names the field.
    fn try_from(update: TaskArtifactUpdateEvent) -> Result<Self, Error> {
        Ok(Self {
            task_id: update.task_id,
            context_id: update.context_id,
            artifact: types::Artifact::try_from(update.artifact).map_err(|error| error.nested_in("artifact"))?,
            append: update.append,
            last_chunk: update.last_chunk,
            metadata: update.metadata,
        })
    }
}

impl From<types::StreamResponse> for StreamResult {
    /// Converts an update of 1.x. Every kind of update exists in both versions.
    fn from(response: types::StreamResponse) -> Self {
        match response {
            types::StreamResponse::Task(task) => Self::Task(task.into()),
            types::StreamResponse::Message(message) => Self::Message(message.into()),
            types::StreamResponse::StatusUpdate(update) => Self::StatusUpdate(update.into()),
            types::StreamResponse::ArtifactUpdate(update) => Self::ArtifactUpdate(update.into()),
        }
    }
}

impl TryFrom<StreamResult> for types::StreamResponse {
    type Error = Error;

    /// Converts an update of 0.3. Fails if its content is invalid. The error names the field.
    fn try_from(result: StreamResult) -> Result<Self, Error> {
        Ok(match result {
            StreamResult::Task(task) => Self::Task(task.try_into()?),
            StreamResult::Message(message) => Self::Message(message.try_into()?),
            StreamResult::StatusUpdate(update) => Self::StatusUpdate(update.try_into()?),
            StreamResult::ArtifactUpdate(update) => Self::ArtifactUpdate(update.try_into()?),
        })
    }
}

impl From<types::SendMessageResponse> for StreamResult {
    fn from(response: types::SendMessageResponse) -> Self {
        match response {
            types::SendMessageResponse::Task(task) => Self::Task(task.into()),
            types::SendMessageResponse::Message(message) => Self::Message(message.into()),
        }
    }
}

impl TryFrom<StreamResult> for types::SendMessageResponse {
    type Error = Error;

    /// Converts the response to a message. Fails if it is neither a task nor a message, or its content is invalid.
    fn try_from(result: StreamResult) -> Result<Self, Error> {
        match result {
            StreamResult::Task(task) => Ok(Self::Task(task.try_into()?)),
            StreamResult::Message(message) => Ok(Self::Message(message.try_into()?)),
            _ => Err(Error::invalid("kind", "must be a task or a message")),
        }
    }
}
