//! The messages of package `lf.a2a.v1`, which is version 1.x.

use std::collections::HashMap;

use prost::{Message as Protobuf, Oneof};
use prost_types::{Struct, Timestamp, Value};

pub use super::shared::*;

#[derive(Clone, PartialEq, Protobuf)]
pub struct SendMessageConfiguration {
    #[prost(string, repeated, tag = "1")]
    pub accepted_output_modes: Vec<String>,
    #[prost(message, optional, tag = "2")]
    pub task_push_notification_config: Option<TaskPushNotificationConfig>,
    #[prost(int32, optional, tag = "3")]
    pub history_length: Option<i32>,
    #[prost(bool, tag = "4")]
    pub return_immediately: bool,
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
    pub message: Option<Message>,
    #[prost(message, optional, tag = "3")]
    pub timestamp: Option<Timestamp>,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct Part {
    #[prost(oneof = "Content", tags = "1, 2, 3, 4")]
    pub content: Option<Content>,
    #[prost(message, optional, tag = "5")]
    pub metadata: Option<Struct>,
    #[prost(string, tag = "6")]
    pub filename: String,
    #[prost(string, tag = "7")]
    pub media_type: String,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Content {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bytes = "vec", tag = "2")]
    Raw(Vec<u8>),
    #[prost(string, tag = "3")]
    Url(String),
    #[prost(message, tag = "4")]
    Data(Value),
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
    pub parts: Vec<Part>,
    #[prost(message, optional, tag = "6")]
    pub metadata: Option<Struct>,
    #[prost(string, repeated, tag = "7")]
    pub extensions: Vec<String>,
    #[prost(string, repeated, tag = "8")]
    pub reference_task_ids: Vec<String>,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct Artifact {
    #[prost(string, tag = "1")]
    pub artifact_id: String,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(string, tag = "3")]
    pub description: String,
    #[prost(message, repeated, tag = "4")]
    pub parts: Vec<Part>,
    #[prost(message, optional, tag = "5")]
    pub metadata: Option<Struct>,
    #[prost(string, repeated, tag = "6")]
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
    #[prost(message, optional, tag = "4")]
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
pub struct AuthenticationInfo {
    #[prost(string, tag = "1")]
    pub scheme: String,
    #[prost(string, tag = "2")]
    pub credentials: String,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct TaskPushNotificationConfig {
    #[prost(string, tag = "1")]
    pub tenant: String,
    #[prost(string, tag = "2")]
    pub id: String,
    #[prost(string, tag = "3")]
    pub task_id: String,
    #[prost(string, tag = "4")]
    pub url: String,
    #[prost(string, tag = "5")]
    pub token: String,
    #[prost(message, optional, tag = "6")]
    pub authentication: Option<AuthenticationInfo>,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct AgentInterface {
    #[prost(string, tag = "1")]
    pub url: String,
    #[prost(string, tag = "2")]
    pub protocol_binding: String,
    #[prost(string, tag = "3")]
    pub tenant: String,
    #[prost(string, tag = "4")]
    pub protocol_version: String,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct AgentCard {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub description: String,
    #[prost(message, repeated, tag = "3")]
    pub supported_interfaces: Vec<AgentInterface>,
    #[prost(message, optional, tag = "4")]
    pub provider: Option<AgentProvider>,
    #[prost(string, tag = "5")]
    pub version: String,
    #[prost(string, optional, tag = "6")]
    pub documentation_url: Option<String>,
    #[prost(message, optional, tag = "7")]
    pub capabilities: Option<AgentCapabilities>,
    #[prost(map = "string, message", tag = "8")]
    pub security_schemes: HashMap<String, SecurityScheme>,
    #[prost(message, repeated, tag = "9")]
    pub security_requirements: Vec<SecurityRequirement>,
    #[prost(string, repeated, tag = "10")]
    pub default_input_modes: Vec<String>,
    #[prost(string, repeated, tag = "11")]
    pub default_output_modes: Vec<String>,
    #[prost(message, repeated, tag = "12")]
    pub skills: Vec<AgentSkill>,
    #[prost(message, repeated, tag = "13")]
    pub signatures: Vec<AgentCardSignature>,
    #[prost(string, optional, tag = "14")]
    pub icon_url: Option<String>,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct AgentCapabilities {
    #[prost(bool, optional, tag = "1")]
    pub streaming: Option<bool>,
    #[prost(bool, optional, tag = "2")]
    pub push_notifications: Option<bool>,
    #[prost(message, repeated, tag = "3")]
    pub extensions: Vec<AgentExtension>,
    #[prost(bool, optional, tag = "4")]
    pub extended_agent_card: Option<bool>,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct SendMessageRequest {
    #[prost(string, tag = "1")]
    pub tenant: String,
    #[prost(message, optional, tag = "2")]
    pub message: Option<Message>,
    #[prost(message, optional, tag = "3")]
    pub configuration: Option<SendMessageConfiguration>,
    #[prost(message, optional, tag = "4")]
    pub metadata: Option<Struct>,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct GetTaskRequest {
    #[prost(string, tag = "1")]
    pub tenant: String,
    #[prost(string, tag = "2")]
    pub id: String,
    #[prost(int32, optional, tag = "3")]
    pub history_length: Option<i32>,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct ListTasksRequest {
    #[prost(string, tag = "1")]
    pub tenant: String,
    #[prost(string, tag = "2")]
    pub context_id: String,
    #[prost(enumeration = "TaskState", tag = "3")]
    pub status: i32,
    #[prost(int32, optional, tag = "4")]
    pub page_size: Option<i32>,
    #[prost(string, tag = "5")]
    pub page_token: String,
    #[prost(int32, optional, tag = "6")]
    pub history_length: Option<i32>,
    #[prost(message, optional, tag = "7")]
    pub status_timestamp_after: Option<Timestamp>,
    #[prost(bool, optional, tag = "8")]
    pub include_artifacts: Option<bool>,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct ListTasksResponse {
    #[prost(message, repeated, tag = "1")]
    pub tasks: Vec<Task>,
    #[prost(string, tag = "2")]
    pub next_page_token: String,
    #[prost(int32, tag = "3")]
    pub page_size: i32,
    #[prost(int32, tag = "4")]
    pub total_size: i32,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct CancelTaskRequest {
    #[prost(string, tag = "1")]
    pub tenant: String,
    #[prost(string, tag = "2")]
    pub id: String,
    #[prost(message, optional, tag = "3")]
    pub metadata: Option<Struct>,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct GetTaskPushNotificationConfigRequest {
    #[prost(string, tag = "1")]
    pub tenant: String,
    #[prost(string, tag = "2")]
    pub task_id: String,
    #[prost(string, tag = "3")]
    pub id: String,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct DeleteTaskPushNotificationConfigRequest {
    #[prost(string, tag = "1")]
    pub tenant: String,
    #[prost(string, tag = "2")]
    pub task_id: String,
    #[prost(string, tag = "3")]
    pub id: String,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct SubscribeToTaskRequest {
    #[prost(string, tag = "1")]
    pub tenant: String,
    #[prost(string, tag = "2")]
    pub id: String,
}

/// The only request whose tenant is not the first field.
#[derive(Clone, PartialEq, Protobuf)]
pub struct ListTaskPushNotificationConfigsRequest {
    #[prost(string, tag = "1")]
    pub task_id: String,
    #[prost(int32, tag = "2")]
    pub page_size: i32,
    #[prost(string, tag = "3")]
    pub page_token: String,
    #[prost(string, tag = "4")]
    pub tenant: String,
}

#[derive(Clone, PartialEq, Protobuf)]
pub struct GetExtendedAgentCardRequest {
    #[prost(string, tag = "1")]
    pub tenant: String,
}

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
pub struct ListTaskPushNotificationConfigsResponse {
    #[prost(message, repeated, tag = "1")]
    pub configs: Vec<TaskPushNotificationConfig>,
    #[prost(string, tag = "2")]
    pub next_page_token: String,
}
