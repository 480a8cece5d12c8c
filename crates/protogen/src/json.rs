//! Generates the serde attributes for the JSON form of the messages.
//!
//! The form is ProtoJSON, with exceptions for the protocol and its implementations. Each exception is a row of a table
//! here. Messages of version 1.x are only deserialized; the types of the official crate serialize them. The attributes
//! refer to functions in `a2a::proto::json` and `a2a::proto::choices`.

use prost_build::Config;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorSet};

const V1: &str = "lf.a2a.v1";
const V03: &str = "a2a.v1";

/// The messages that occur in JSON, without agent cards. Both versions share one JSON form of the card, which differs
/// from that of the protobuf messages of 0.3.
const MESSAGES: [(&str, &[&str]); 2] = [
    (
        V1,
        &[
            "Artifact",
            "AuthenticationInfo",
            "CancelTaskRequest",
            "DeleteTaskPushNotificationConfigRequest",
            "GetExtendedAgentCardRequest",
            "GetTaskPushNotificationConfigRequest",
            "GetTaskRequest",
            "ListTaskPushNotificationConfigsRequest",
            "ListTaskPushNotificationConfigsResponse",
            "ListTasksRequest",
            "ListTasksResponse",
            "Message",
            "SendMessageConfiguration",
            "SendMessageRequest",
            "SubscribeToTaskRequest",
            "Task",
            "TaskArtifactUpdateEvent",
            "TaskPushNotificationConfig",
            "TaskStatus",
            "TaskStatusUpdateEvent",
        ],
    ),
    (
        V03,
        &[
            "Artifact",
            "AuthenticationInfo",
            "CreateTaskPushNotificationConfigRequest",
            "DataPart",
            "ListTaskPushNotificationConfigResponse",
            "Message",
            "PushNotificationConfig",
            "SendMessageConfiguration",
            "SendMessageRequest",
            "Task",
            "TaskArtifactUpdateEvent",
            "TaskPushNotificationConfig",
            "TaskStatus",
            "TaskStatusUpdateEvent",
        ],
    ),
];

/// Messages with a `oneof`. They are deserialized through another type, which accepts all forms that occur. Their
/// serialization is written by hand.
const CHOICES: [(&str, &str, &str); 6] = [
    (V1, "Part", "PartOf10"),
    (V1, "SendMessageResponse", "SentOf10"),
    (V1, "StreamResponse", "UpdateOf10"),
    (V03, "Part", "PartOf03"),
    (V03, "SendMessageResponse", "SentOf03"),
    (V03, "StreamResponse", "UpdateOf03"),
];

/// Other member names that implementations use.
const ALIASES: [(&str, &str); 3] = [
    ("lf.a2a.v1.SendMessageConfiguration.task_push_notification_config", "pushNotificationConfig"),
    ("a2a.v1.SendMessageConfiguration.push_notification", "pushNotificationConfig"),
    ("a2a.v1.Message.content", "parts"),
];

/// Members that are required, although they may be empty.
const REQUIRED: [&str; 9] = [
    "lf.a2a.v1.AuthenticationInfo.scheme",
    "lf.a2a.v1.GetTaskRequest.id",
    "lf.a2a.v1.CancelTaskRequest.id",
    "lf.a2a.v1.SubscribeToTaskRequest.id",
    "lf.a2a.v1.GetTaskPushNotificationConfigRequest.task_id",
    "lf.a2a.v1.GetTaskPushNotificationConfigRequest.id",
    "lf.a2a.v1.DeleteTaskPushNotificationConfigRequest.task_id",
    "lf.a2a.v1.DeleteTaskPushNotificationConfigRequest.id",
    "lf.a2a.v1.ListTaskPushNotificationConfigsRequest.task_id",
];

/// Members that are always serialized, even if they are empty, zero or false, because some clients require them.
const ALWAYS_WRITTEN: [&str; 17] = [
    "a2a.v1.Artifact.artifact_id",
    "a2a.v1.Artifact.parts",
    "a2a.v1.AuthenticationInfo.schemes",
    "a2a.v1.ListTaskPushNotificationConfigResponse.configs",
    "a2a.v1.Message.content",
    "a2a.v1.Message.message_id",
    "a2a.v1.PushNotificationConfig.url",
    "a2a.v1.SendMessageConfiguration.blocking",
    "a2a.v1.Task.context_id",
    "a2a.v1.Task.id",
    "a2a.v1.TaskArtifactUpdateEvent.append",
    "a2a.v1.TaskArtifactUpdateEvent.context_id",
    "a2a.v1.TaskArtifactUpdateEvent.last_chunk",
    "a2a.v1.TaskArtifactUpdateEvent.task_id",
    "a2a.v1.TaskStatusUpdateEvent.context_id",
    "a2a.v1.TaskStatusUpdateEvent.final",
    "a2a.v1.TaskStatusUpdateEvent.task_id",
];

const HELPERS: &str = "crate::proto::json";
const CHOICE_TYPES: &str = "crate::proto::choices";

/// Adds the serde attributes to every message that occurs in JSON.
pub(crate) fn attributes(descriptors: &FileDescriptorSet, config: &mut Config) {
    for file in &descriptors.file {
        let package = file.package();
        let Some((_, messages)) = MESSAGES.iter().find(|(name, _)| *name == package) else { continue };
        let derive = match package {
            V03 => "#[derive(serde::Serialize, serde::Deserialize)]",
            _ => "#[derive(serde::Deserialize)]",
        };
        for message in file.message_type.iter().filter(|message| messages.contains(&message.name())) {
            config.type_attribute(format!(".{package}.{}", message.name()), derive);
            add_field_attributes(package, message, config);
        }
        for (_, message, type_name) in CHOICES.iter().filter(|(name, ..)| *name == package) {
            let path = format!(".{package}.{message}");
            config.message_attribute(&path, "#[derive(serde::Deserialize)]");
            config.message_attribute(&path, format!("#[serde(try_from = \"{CHOICE_TYPES}::{type_name}\")]"));
        }
    }
}

fn add_field_attributes(package: &str, message: &DescriptorProto, config: &mut Config) {
    for field in &message.field {
        let path = format!("{package}.{}.{}", message.name(), field.name());
        let attribute = format!("#[serde({})]", serde_options(package, &path, field).join(", "));
        config.field_attribute(format!(".{path}"), attribute);
    }
}

/// Returns the serde options of a field.
fn serde_options(package: &str, path: &str, field: &FieldDescriptorProto) -> Vec<String> {
    let mut options = Vec::new();
    if field.json_name() != field.name() {
        options.push(format!("rename = \"{}\"", field.json_name()));
        options.push(format!("alias = \"{}\"", field.name()));
    }
    let aliases = ALIASES.iter().filter(|(field, _)| *field == path);
    options.extend(aliases.map(|(_, alias)| format!("alias = \"{alias}\"")));
    if !REQUIRED.contains(&path) {
        options.push("default".to_owned());
    }
    let kind = FieldKind::from_descriptor(field);
    options.push(format!("deserialize_with = \"{HELPERS}::{}\"", kind.reader(package)));
    if package == V03 {
        if let Some(writer) = kind.writer() {
            options.push(format!("serialize_with = \"{HELPERS}::{writer}\""));
        }
        if let Some(test) = kind.empty_test().filter(|_| !ALWAYS_WRITTEN.contains(&path)) {
            options.push(format!("skip_serializing_if = \"{test}\""));
        }
    }
    options
}

/// The kind of a field in Rust.
enum FieldKind {
    List,
    Message,
    Time,
    Role,
    State,
    Text,
    Flag,
    OptionalFlag,
    Number,
    OptionalNumber,
}

impl FieldKind {
    fn from_descriptor(field: &FieldDescriptorProto) -> Self {
        let is_optional = field.proto3_optional();
        match (field.label(), field.r#type(), field.type_name()) {
            (Label::Repeated, ..) => Self::List,
            (_, Type::Message, ".google.protobuf.Timestamp") => Self::Time,
            (_, Type::Message, _) => Self::Message,
            (_, Type::Enum, name) if name.ends_with(".Role") => Self::Role,
            (_, Type::Enum, _) => Self::State,
            (_, Type::Bool, _) if is_optional => Self::OptionalFlag,
            (_, Type::Bool, _) => Self::Flag,
            (_, Type::Int32, _) if is_optional => Self::OptionalNumber,
            (_, Type::Int32, _) => Self::Number,
            _ => Self::Text,
        }
    }

    /// Returns the name of the deserialization function.
    fn reader(&self, package: &str) -> &'static str {
        match (self, package) {
            (Self::Time, V1) => "read_time",
            (Self::Time, _) => "read_any_time",
            (Self::Role, V1) => "read_role",
            (Self::Role, _) => "read_any_role",
            (Self::State, _) => "read_state",
            (Self::Number, _) => "read_number",
            (Self::OptionalNumber, _) => "read_optional_number",
            (Self::List | Self::Message | Self::Text | Self::Flag | Self::OptionalFlag, _) => "read_or_default",
        }
    }

    /// Returns the name of the serialization function, `None` for the default.
    fn writer(&self) -> Option<&'static str> {
        match self {
            Self::Time => Some("write_time"),
            Self::Role => Some("write_role"),
            Self::State => Some("write_state"),
            _ => None,
        }
    }

    /// Returns the test for a value that is not serialized. Enums are always serialized.
    fn empty_test(&self) -> Option<&'static str> {
        match self {
            Self::List => Some("Vec::is_empty"),
            Self::Message | Self::Time | Self::OptionalFlag | Self::OptionalNumber => Some("Option::is_none"),
            Self::Text => Some("String::is_empty"),
            Self::Flag => Some("std::ops::Not::not"),
            Self::Number => Some("crate::proto::json::is_zero"),
            Self::Role | Self::State => None,
        }
    }
}
