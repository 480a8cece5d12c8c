//! Tasks, how they stand, what they leave, and what is told while they run.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::message::or_empty;
use super::{Message, Part, some};
use crate::v03::{self, Metadata};
use crate::{Error, types};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    pub id: String,
    #[serde(default, alias = "context_id")]
    pub context_id: String,
    pub status: TaskStatus,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_empty")]
    pub artifacts: Vec<Artifact>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_empty")]
    pub history: Vec<Message>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskStatus {
    #[serde(default)]
    pub state: TaskState,
    #[serde(default, alias = "update", skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "v03::timestamp")]
    pub timestamp: Option<DateTime<Utc>>,
}

/// One state is spelled otherwise than anywhere else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskState {
    #[default]
    #[serde(rename = "TASK_STATE_UNSPECIFIED")]
    Unspecified,
    #[serde(rename = "TASK_STATE_SUBMITTED")]
    Submitted,
    #[serde(rename = "TASK_STATE_WORKING")]
    Working,
    #[serde(rename = "TASK_STATE_COMPLETED")]
    Completed,
    #[serde(rename = "TASK_STATE_FAILED")]
    Failed,
    #[serde(rename = "TASK_STATE_CANCELLED", alias = "TASK_STATE_CANCELED")]
    Cancelled,
    #[serde(rename = "TASK_STATE_INPUT_REQUIRED")]
    InputRequired,
    #[serde(rename = "TASK_STATE_REJECTED")]
    Rejected,
    #[serde(rename = "TASK_STATE_AUTH_REQUIRED")]
    AuthRequired,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    #[serde(alias = "artifact_id")]
    pub artifact_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, deserialize_with = "or_empty")]
    pub parts: Vec<Part>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_empty")]
    pub extensions: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskStatusUpdateEvent {
    #[serde(alias = "task_id")]
    pub task_id: String,
    #[serde(default, alias = "context_id")]
    pub context_id: String,
    pub status: TaskStatus,
    /// Nothing comes after it.
    #[serde(rename = "final", default)]
    pub last: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskArtifactUpdateEvent {
    #[serde(alias = "task_id")]
    pub task_id: String,
    #[serde(default, alias = "context_id")]
    pub context_id: String,
    pub artifact: Artifact,
    #[serde(default)]
    pub append: bool,
    #[serde(default, alias = "last_chunk")]
    pub last_chunk: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// What a message is answered with, at once or bit by bit; at once it is a task or a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StreamResponse {
    Task(Task),
    #[serde(alias = "msg")]
    Message(Message),
    #[serde(alias = "status_update")]
    StatusUpdate(TaskStatusUpdateEvent),
    #[serde(alias = "artifact_update")]
    ArtifactUpdate(TaskArtifactUpdateEvent),
}

/// The specification lists a path for it and says no more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListTasksResponse {
    pub tasks: Vec<Task>,
    pub next_page_token: String,
    pub page_size: i32,
    pub total_size: i32,
}

impl From<types::Task> for Task {
    fn from(task: types::Task) -> Self {
        Self {
            id: task.id,
            context_id: task.context_id,
            status: task.status.into(),
            artifacts: v03::into_all(task.artifacts.unwrap_or_default()),
            history: v03::into_all(task.history.unwrap_or_default()),
            metadata: task.metadata,
        }
    }
}

impl TryFrom<Task> for types::Task {
    type Error = Error;

    fn try_from(task: Task) -> Result<Self, Error> {
        let artifacts = v03::all("artifacts", task.artifacts)?;
        let history = v03::all("history", task.history)?;
        Ok(Self {
            id: task.id,
            context_id: task.context_id,
            status: types::TaskStatus::try_from(task.status).map_err(|error| error.inside("status"))?,
            artifacts: Some(artifacts).filter(|artifacts| !artifacts.is_empty()),
            history: Some(history).filter(|history| !history.is_empty()),
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
        let message = message.map_err(|error| error.inside("message"))?;
        Ok(Self { state: status.state.into(), message, timestamp: status.timestamp })
    }
}

impl From<types::TaskState> for TaskState {
    fn from(state: types::TaskState) -> Self {
        match state {
            types::TaskState::Unspecified => Self::Unspecified,
            types::TaskState::Submitted => Self::Submitted,
            types::TaskState::Working => Self::Working,
            types::TaskState::Completed => Self::Completed,
            types::TaskState::Failed => Self::Failed,
            types::TaskState::Canceled => Self::Cancelled,
            types::TaskState::InputRequired => Self::InputRequired,
            types::TaskState::Rejected => Self::Rejected,
            types::TaskState::AuthRequired => Self::AuthRequired,
        }
    }
}

impl From<TaskState> for types::TaskState {
    fn from(state: TaskState) -> Self {
        match state {
            TaskState::Unspecified => Self::Unspecified,
            TaskState::Submitted => Self::Submitted,
            TaskState::Working => Self::Working,
            TaskState::Completed => Self::Completed,
            TaskState::Failed => Self::Failed,
            TaskState::Cancelled => Self::Canceled,
            TaskState::InputRequired => Self::InputRequired,
            TaskState::Rejected => Self::Rejected,
            TaskState::AuthRequired => Self::AuthRequired,
        }
    }
}

impl From<types::Artifact> for Artifact {
    fn from(artifact: types::Artifact) -> Self {
        Self {
            artifact_id: artifact.artifact_id,
            name: artifact.name,
            description: artifact.description,
            parts: v03::into_all(artifact.parts),
            metadata: artifact.metadata,
            extensions: artifact.extensions.unwrap_or_default(),
        }
    }
}

impl TryFrom<Artifact> for types::Artifact {
    type Error = Error;

    fn try_from(artifact: Artifact) -> Result<Self, Error> {
        Ok(Self {
            artifact_id: artifact.artifact_id,
            name: artifact.name.and_then(some),
            description: artifact.description.and_then(some),
            parts: v03::all("parts", artifact.parts)?,
            metadata: artifact.metadata,
            extensions: Some(artifact.extensions).filter(|extensions| !extensions.is_empty()),
        })
    }
}

impl From<types::TaskStatusUpdateEvent> for TaskStatusUpdateEvent {
    fn from(update: types::TaskStatusUpdateEvent) -> Self {
        let last = v03::TaskState::from(update.status.state.clone()).ends_stream();
        let (task_id, context_id) = (update.task_id, update.context_id);
        Self { task_id, context_id, status: update.status.into(), last, metadata: update.metadata }
    }
}

impl TryFrom<TaskStatusUpdateEvent> for types::TaskStatusUpdateEvent {
    type Error = Error;

    fn try_from(update: TaskStatusUpdateEvent) -> Result<Self, Error> {
        let status = types::TaskStatus::try_from(update.status).map_err(|error| error.inside("status"))?;
        let (task_id, context_id) = (update.task_id, update.context_id);
        Ok(Self { task_id, context_id, status, metadata: update.metadata })
    }
}

impl From<types::TaskArtifactUpdateEvent> for TaskArtifactUpdateEvent {
    fn from(update: types::TaskArtifactUpdateEvent) -> Self {
        Self {
            task_id: update.task_id,
            context_id: update.context_id,
            artifact: update.artifact.into(),
            append: update.append.unwrap_or_default(),
            last_chunk: update.last_chunk.unwrap_or_default(),
            metadata: update.metadata,
        }
    }
}

impl TryFrom<TaskArtifactUpdateEvent> for types::TaskArtifactUpdateEvent {
    type Error = Error;

    fn try_from(update: TaskArtifactUpdateEvent) -> Result<Self, Error> {
        Ok(Self {
            task_id: update.task_id,
            context_id: update.context_id,
            artifact: types::Artifact::try_from(update.artifact).map_err(|error| error.inside("artifact"))?,
            append: Some(update.append).filter(|append| *append),
            last_chunk: Some(update.last_chunk).filter(|last| *last),
            metadata: update.metadata,
        })
    }
}

impl From<types::StreamResponse> for StreamResponse {
    fn from(response: types::StreamResponse) -> Self {
        match response {
            types::StreamResponse::Task(task) => Self::Task(task.into()),
            types::StreamResponse::Message(message) => Self::Message(message.into()),
            types::StreamResponse::StatusUpdate(update) => Self::StatusUpdate(update.into()),
            types::StreamResponse::ArtifactUpdate(update) => Self::ArtifactUpdate(update.into()),
        }
    }
}

impl TryFrom<StreamResponse> for types::StreamResponse {
    type Error = Error;

    fn try_from(response: StreamResponse) -> Result<Self, Error> {
        Ok(match response {
            StreamResponse::Task(task) => Self::Task(task.try_into()?),
            StreamResponse::Message(message) => Self::Message(message.try_into()?),
            StreamResponse::StatusUpdate(update) => Self::StatusUpdate(update.try_into()?),
            StreamResponse::ArtifactUpdate(update) => Self::ArtifactUpdate(update.try_into()?),
        })
    }
}

impl From<types::SendMessageResponse> for StreamResponse {
    fn from(response: types::SendMessageResponse) -> Self {
        match response {
            types::SendMessageResponse::Task(task) => Self::Task(task.into()),
            types::SendMessageResponse::Message(message) => Self::Message(message.into()),
        }
    }
}

impl TryFrom<StreamResponse> for types::SendMessageResponse {
    type Error = Error;

    fn try_from(response: StreamResponse) -> Result<Self, Error> {
        match response {
            StreamResponse::Task(task) => Ok(Self::Task(task.try_into()?)),
            StreamResponse::Message(message) => Ok(Self::Message(message.try_into()?)),
            _ => Err(Error::invalid("task", "neither a task nor a message")),
        }
    }
}

impl From<types::ListTasksResponse> for ListTasksResponse {
    fn from(response: types::ListTasksResponse) -> Self {
        Self {
            tasks: v03::into_all(response.tasks),
            next_page_token: response.next_page_token,
            page_size: response.page_size,
            total_size: response.total_size,
        }
    }
}
