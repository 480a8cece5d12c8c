//! The messages of package `a2a.v1`, which is version 0.3 whatever its name says.

use std::collections::HashMap;

use prost::{Message as Protobuf, Oneof};
use prost_types::{Struct, Timestamp};

pub use super::shared::*;

#[derive(Clone, PartialEq, Protobuf)]
pub struct SendMessageConfiguration {
    #[prost(string, repeated, tag = "1")]
    pub accepted_output_modes: Vec<String>,
    #[prost(message, optional, tag = "2")]
    pub push_notification: Option<PushNotificationConfig>,
    /// 0 is as much as there is.
    #[prost(int32, tag = "3")]
    pub history_length: i32,
    #[prost(bool, tag = "4")]
    pub blocking: bool,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct Task {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(string, tag = "2")]
    pub context_id: String,
    #[prost(message, optional, tag = "3")]
    pub status: Option<TaskStatus>,
    #[prost(message, repeated, tag = "4")]
    pub artifacts: Vec<Artifact>,
    #[prost(message, repeated, tag = "5")]
    pub history: Vec<Message>,
    #[prost(message, optional, tag = "6")]
    pub metadata: Option<Struct>,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct TaskStatus {
    #[prost(enumeration = "TaskState", tag = "1")]
    pub state: i32,
    #[prost(message, optional, tag = "2")]
    pub update: Option<Message>,
    #[prost(message, optional, tag = "3")]
    pub timestamp: Option<Timestamp>,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct Part {
    #[prost(oneof = "Content", tags = "1, 2, 3")]
    pub part: Option<Content>,
    #[prost(message, optional, tag = "4")]
    pub metadata: Option<Struct>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Content {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(message, tag = "2")]
    File(FilePart),
    #[prost(message, tag = "3")]
    Data(DataPart),
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct FilePart {
    #[prost(oneof = "File", tags = "1, 2")]
    pub file: Option<File>,
    #[prost(string, tag = "3")]
    pub mime_type: String,
    #[prost(string, tag = "4")]
    pub name: String,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum File {
    #[prost(string, tag = "1")]
    Uri(String),
    /// Some put Base64 there, although they need not: see `v03::rest::python`.
    #[prost(bytes = "vec", tag = "2")]
    Bytes(Vec<u8>),
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct DataPart {
    #[prost(message, optional, tag = "1")]
    pub data: Option<Struct>,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct Message {
    #[prost(string, tag = "1")]
    pub message_id: String,
    #[prost(string, tag = "2")]
    pub context_id: String,
    #[prost(string, tag = "3")]
    pub task_id: String,
    #[prost(enumeration = "Role", tag = "4")]
    pub role: i32,
    #[prost(message, repeated, tag = "5")]
    pub content: Vec<Part>,
    #[prost(message, optional, tag = "6")]
    pub metadata: Option<Struct>,
    #[prost(string, repeated, tag = "7")]
    pub extensions: Vec<String>,
}

/// There is no field 2.
#[derive(Clone, PartialEq, Protobuf)]
pub struct Artifact {
    #[prost(string, tag = "1")]
    pub artifact_id: String,
    #[prost(string, tag = "3")]
    pub name: String,
    #[prost(string, tag = "4")]
    pub description: String,
    #[prost(message, repeated, tag = "5")]
    pub parts: Vec<Part>,
    #[prost(message, optional, tag = "6")]
    pub metadata: Option<Struct>,
    #[prost(string, repeated, tag = "7")]
    pub extensions: Vec<String>,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct TaskStatusUpdateEvent {
    #[prost(string, tag = "1")]
    pub task_id: String,
    #[prost(string, tag = "2")]
    pub context_id: String,
    #[prost(message, optional, tag = "3")]
    pub status: Option<TaskStatus>,
    #[prost(bool, tag = "4")]
    pub r#final: bool,
    #[prost(message, optional, tag = "5")]
    pub metadata: Option<Struct>,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct TaskArtifactUpdateEvent {
    #[prost(string, tag = "1")]
    pub task_id: String,
    #[prost(string, tag = "2")]
    pub context_id: String,
    #[prost(message, optional, tag = "3")]
    pub artifact: Option<Artifact>,
    #[prost(bool, tag = "4")]
    pub append: bool,
    #[prost(bool, tag = "5")]
    pub last_chunk: bool,
    #[prost(message, optional, tag = "6")]
    pub metadata: Option<Struct>,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct PushNotificationConfig {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(string, tag = "2")]
    pub url: String,
    #[prost(string, tag = "3")]
    pub token: String,
    #[prost(message, optional, tag = "4")]
    pub authentication: Option<AuthenticationInfo>,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct AuthenticationInfo {
    #[prost(string, repeated, tag = "1")]
    pub schemes: Vec<String>,
    #[prost(string, tag = "2")]
    pub credentials: String,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct AgentInterface {
    #[prost(string, tag = "1")]
    pub url: String,
    #[prost(string, tag = "2")]
    pub transport: String,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct AgentCard {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub description: String,
    #[prost(string, tag = "3")]
    pub url: String,
    #[prost(message, optional, tag = "4")]
    pub provider: Option<AgentProvider>,
    #[prost(string, tag = "5")]
    pub version: String,
    #[prost(string, tag = "6")]
    pub documentation_url: String,
    #[prost(message, optional, tag = "7")]
    pub capabilities: Option<AgentCapabilities>,
    #[prost(map = "string, message", tag = "8")]
    pub security_schemes: HashMap<String, SecurityScheme>,
    #[prost(message, repeated, tag = "9")]
    pub security: Vec<SecurityRequirement>,
    #[prost(string, repeated, tag = "10")]
    pub default_input_modes: Vec<String>,
    #[prost(string, repeated, tag = "11")]
    pub default_output_modes: Vec<String>,
    #[prost(message, repeated, tag = "12")]
    pub skills: Vec<AgentSkill>,
    #[prost(bool, tag = "13")]
    pub supports_authenticated_extended_card: bool,
    #[prost(string, tag = "14")]
    pub preferred_transport: String,
    #[prost(message, repeated, tag = "15")]
    pub additional_interfaces: Vec<AgentInterface>,
    #[prost(string, tag = "16")]
    pub protocol_version: String,
    #[prost(message, repeated, tag = "17")]
    pub signatures: Vec<AgentCardSignature>,
    #[prost(string, tag = "18")]
    pub icon_url: String,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct AgentCapabilities {
    #[prost(bool, tag = "1")]
    pub streaming: bool,
    #[prost(bool, tag = "2")]
    pub push_notifications: bool,
    #[prost(message, repeated, tag = "3")]
    pub extensions: Vec<AgentExtension>,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct TaskPushNotificationConfig {
    /// `tasks/ID/pushNotificationConfigs/ID`.
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub push_notification_config: Option<PushNotificationConfig>,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct SendMessageRequest {
    #[prost(message, optional, tag = "1")]
    pub request: Option<Message>,
    #[prost(message, optional, tag = "2")]
    pub configuration: Option<SendMessageConfiguration>,
    #[prost(message, optional, tag = "3")]
    pub metadata: Option<Struct>,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct GetTaskRequest {
    /// `tasks/ID`.
    #[prost(string, tag = "1")]
    pub name: String,
    /// 0 is as much as there is.
    #[prost(int32, tag = "2")]
    pub history_length: i32,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct CancelTaskRequest {
    #[prost(string, tag = "1")]
    pub name: String,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct GetTaskPushNotificationConfigRequest {
    #[prost(string, tag = "1")]
    pub name: String,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct DeleteTaskPushNotificationConfigRequest {
    #[prost(string, tag = "1")]
    pub name: String,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct CreateTaskPushNotificationConfigRequest {
    /// `tasks/ID`.
    #[prost(string, tag = "1")]
    pub parent: String,
    #[prost(string, tag = "2")]
    pub config_id: String,
    #[prost(message, optional, tag = "3")]
    pub config: Option<TaskPushNotificationConfig>,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct TaskSubscriptionRequest {
    #[prost(string, tag = "1")]
    pub name: String,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct ListTaskPushNotificationConfigRequest {
    #[prost(string, tag = "1")]
    pub parent: String,
    #[prost(int32, tag = "2")]
    pub page_size: i32,
    #[prost(string, tag = "3")]
    pub page_token: String,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct GetAgentCardRequest {}

#[derive(Clone, PartialEq, Protobuf)]
pub struct SendMessageResponse {
    #[prost(oneof = "Sent", tags = "1, 2")]
    pub payload: Option<Sent>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Sent {
    #[prost(message, tag = "1")]
    Task(Task),
    #[prost(message, tag = "2")]
    Message(Message),
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct StreamResponse {
    #[prost(oneof = "Update", tags = "1, 2, 3, 4")]
    pub payload: Option<Update>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Update {
    #[prost(message, tag = "1")]
    Task(Task),
    #[prost(message, tag = "2")]
    Message(Message),
    #[prost(message, tag = "3")]
    Status(TaskStatusUpdateEvent),
    #[prost(message, tag = "4")]
    Artifact(TaskArtifactUpdateEvent),
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct ListTaskPushNotificationConfigResponse {
    #[prost(message, repeated, tag = "1")]
    pub configs: Vec<TaskPushNotificationConfig>,
    #[prost(string, tag = "2")]
    pub next_page_token: String,
}
