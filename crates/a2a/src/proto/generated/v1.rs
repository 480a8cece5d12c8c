//! Package `lf.a2a.v1`, version 1.x. Generated: see `crates/protogen`.

#[derive(serde::Deserialize)]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct SendMessageConfiguration {
    #[prost(string, repeated, tag = "1")]
    #[serde(
        rename = "acceptedOutputModes",
        alias = "accepted_output_modes",
        default,
        deserialize_with = "crate::proto::json::read_or_default"
    )]
    pub accepted_output_modes: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(message, optional, tag = "2")]
    #[serde(
        rename = "taskPushNotificationConfig",
        alias = "task_push_notification_config",
        alias = "pushNotificationConfig",
        default,
        deserialize_with = "crate::proto::json::read_or_default"
    )]
    pub task_push_notification_config: ::core::option::Option<
        TaskPushNotificationConfig,
    >,
    #[prost(int32, optional, tag = "3")]
    #[serde(
        rename = "historyLength",
        alias = "history_length",
        default,
        deserialize_with = "crate::proto::json::read_optional_number"
    )]
    pub history_length: ::core::option::Option<i32>,
    #[prost(bool, tag = "4")]
    #[serde(
        rename = "returnImmediately",
        alias = "return_immediately",
        default,
        deserialize_with = "crate::proto::json::read_or_default"
    )]
    pub return_immediately: bool,
}
#[derive(serde::Deserialize)]
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Task {
    #[prost(string, tag = "1")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    #[serde(
        rename = "contextId",
        alias = "context_id",
        default,
        deserialize_with = "crate::proto::json::read_or_default"
    )]
    pub context_id: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "3")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub status: ::core::option::Option<TaskStatus>,
    #[prost(message, repeated, tag = "4")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub artifacts: ::prost::alloc::vec::Vec<Artifact>,
    #[prost(message, repeated, tag = "5")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub history: ::prost::alloc::vec::Vec<Message>,
    #[prost(message, optional, tag = "6")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub metadata: ::core::option::Option<crate::proto::values::Struct>,
}
#[derive(serde::Deserialize)]
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TaskStatus {
    #[prost(enumeration = "TaskState", tag = "1")]
    #[serde(default, deserialize_with = "crate::proto::json::read_state")]
    pub state: i32,
    #[prost(message, optional, tag = "2")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub message: ::core::option::Option<Message>,
    #[prost(message, optional, tag = "3")]
    #[serde(default, deserialize_with = "crate::proto::json::read_time")]
    pub timestamp: ::core::option::Option<::prost_types::Timestamp>,
}
#[derive(serde::Deserialize)]
#[serde(try_from = "crate::proto::choices::PartOf10")]
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Part {
    #[prost(message, optional, tag = "5")]
    pub metadata: ::core::option::Option<crate::proto::values::Struct>,
    #[prost(string, tag = "6")]
    pub filename: ::prost::alloc::string::String,
    #[prost(string, tag = "7")]
    pub media_type: ::prost::alloc::string::String,
    #[prost(oneof = "part::Content", tags = "1, 2, 3, 4")]
    pub content: ::core::option::Option<part::Content>,
}
/// Nested message and enum types in `Part`.
pub mod part {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Content {
        #[prost(string, tag = "1")]
        Text(::prost::alloc::string::String),
        #[prost(bytes, tag = "2")]
        Raw(::prost::alloc::vec::Vec<u8>),
        #[prost(string, tag = "3")]
        Url(::prost::alloc::string::String),
        #[prost(message, tag = "4")]
        Data(crate::proto::values::Value),
    }
}
#[derive(serde::Deserialize)]
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Message {
    #[prost(string, tag = "1")]
    #[serde(
        rename = "messageId",
        alias = "message_id",
        default,
        deserialize_with = "crate::proto::json::read_or_default"
    )]
    pub message_id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    #[serde(
        rename = "contextId",
        alias = "context_id",
        default,
        deserialize_with = "crate::proto::json::read_or_default"
    )]
    pub context_id: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    #[serde(
        rename = "taskId",
        alias = "task_id",
        default,
        deserialize_with = "crate::proto::json::read_or_default"
    )]
    pub task_id: ::prost::alloc::string::String,
    #[prost(enumeration = "Role", tag = "4")]
    #[serde(default, deserialize_with = "crate::proto::json::read_role")]
    pub role: i32,
    #[prost(message, repeated, tag = "5")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub parts: ::prost::alloc::vec::Vec<Part>,
    #[prost(message, optional, tag = "6")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub metadata: ::core::option::Option<crate::proto::values::Struct>,
    #[prost(string, repeated, tag = "7")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub extensions: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(string, repeated, tag = "8")]
    #[serde(
        rename = "referenceTaskIds",
        alias = "reference_task_ids",
        default,
        deserialize_with = "crate::proto::json::read_or_default"
    )]
    pub reference_task_ids: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
#[derive(serde::Deserialize)]
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Artifact {
    #[prost(string, tag = "1")]
    #[serde(
        rename = "artifactId",
        alias = "artifact_id",
        default,
        deserialize_with = "crate::proto::json::read_or_default"
    )]
    pub artifact_id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub description: ::prost::alloc::string::String,
    #[prost(message, repeated, tag = "4")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub parts: ::prost::alloc::vec::Vec<Part>,
    #[prost(message, optional, tag = "5")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub metadata: ::core::option::Option<crate::proto::values::Struct>,
    #[prost(string, repeated, tag = "6")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub extensions: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
#[derive(serde::Deserialize)]
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TaskStatusUpdateEvent {
    #[prost(string, tag = "1")]
    #[serde(
        rename = "taskId",
        alias = "task_id",
        default,
        deserialize_with = "crate::proto::json::read_or_default"
    )]
    pub task_id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    #[serde(
        rename = "contextId",
        alias = "context_id",
        default,
        deserialize_with = "crate::proto::json::read_or_default"
    )]
    pub context_id: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "3")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub status: ::core::option::Option<TaskStatus>,
    #[prost(message, optional, tag = "4")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub metadata: ::core::option::Option<crate::proto::values::Struct>,
}
#[derive(serde::Deserialize)]
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TaskArtifactUpdateEvent {
    #[prost(string, tag = "1")]
    #[serde(
        rename = "taskId",
        alias = "task_id",
        default,
        deserialize_with = "crate::proto::json::read_or_default"
    )]
    pub task_id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    #[serde(
        rename = "contextId",
        alias = "context_id",
        default,
        deserialize_with = "crate::proto::json::read_or_default"
    )]
    pub context_id: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "3")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub artifact: ::core::option::Option<Artifact>,
    #[prost(bool, tag = "4")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub append: bool,
    #[prost(bool, tag = "5")]
    #[serde(
        rename = "lastChunk",
        alias = "last_chunk",
        default,
        deserialize_with = "crate::proto::json::read_or_default"
    )]
    pub last_chunk: bool,
    #[prost(message, optional, tag = "6")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub metadata: ::core::option::Option<crate::proto::values::Struct>,
}
#[derive(serde::Deserialize)]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct AuthenticationInfo {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::proto::json::read_or_default")]
    pub scheme: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub credentials: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct AgentInterface {
    #[prost(string, tag = "1")]
    pub url: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub protocol_binding: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub tenant: ::prost::alloc::string::String,
    #[prost(string, tag = "4")]
    pub protocol_version: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AgentCard {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub description: ::prost::alloc::string::String,
    #[prost(message, repeated, tag = "3")]
    pub supported_interfaces: ::prost::alloc::vec::Vec<AgentInterface>,
    #[prost(message, optional, tag = "4")]
    pub provider: ::core::option::Option<AgentProvider>,
    #[prost(string, tag = "5")]
    pub version: ::prost::alloc::string::String,
    #[prost(string, optional, tag = "6")]
    pub documentation_url: ::core::option::Option<::prost::alloc::string::String>,
    #[prost(message, optional, tag = "7")]
    pub capabilities: ::core::option::Option<AgentCapabilities>,
    #[prost(map = "string, message", tag = "8")]
    pub security_schemes: ::std::collections::HashMap<
        ::prost::alloc::string::String,
        SecurityScheme,
    >,
    #[prost(message, repeated, tag = "9")]
    pub security_requirements: ::prost::alloc::vec::Vec<SecurityRequirement>,
    #[prost(string, repeated, tag = "10")]
    pub default_input_modes: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(string, repeated, tag = "11")]
    pub default_output_modes: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(message, repeated, tag = "12")]
    pub skills: ::prost::alloc::vec::Vec<AgentSkill>,
    #[prost(message, repeated, tag = "13")]
    pub signatures: ::prost::alloc::vec::Vec<AgentCardSignature>,
    #[prost(string, optional, tag = "14")]
    pub icon_url: ::core::option::Option<::prost::alloc::string::String>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct AgentProvider {
    #[prost(string, tag = "1")]
    pub url: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub organization: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AgentCapabilities {
    #[prost(bool, optional, tag = "1")]
    pub streaming: ::core::option::Option<bool>,
    #[prost(bool, optional, tag = "2")]
    pub push_notifications: ::core::option::Option<bool>,
    #[prost(message, repeated, tag = "3")]
    pub extensions: ::prost::alloc::vec::Vec<AgentExtension>,
    #[prost(bool, optional, tag = "4")]
    pub extended_agent_card: ::core::option::Option<bool>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AgentExtension {
    #[prost(string, tag = "1")]
    pub uri: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub description: ::prost::alloc::string::String,
    #[prost(bool, tag = "3")]
    pub required: bool,
    #[prost(message, optional, tag = "4")]
    pub params: ::core::option::Option<crate::proto::values::Struct>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AgentSkill {
    #[prost(string, tag = "1")]
    pub id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub description: ::prost::alloc::string::String,
    #[prost(string, repeated, tag = "4")]
    pub tags: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(string, repeated, tag = "5")]
    pub examples: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(string, repeated, tag = "6")]
    pub input_modes: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(string, repeated, tag = "7")]
    pub output_modes: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(message, repeated, tag = "8")]
    pub security_requirements: ::prost::alloc::vec::Vec<SecurityRequirement>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AgentCardSignature {
    #[prost(string, tag = "1")]
    pub protected: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub signature: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "3")]
    pub header: ::core::option::Option<crate::proto::values::Struct>,
}
#[derive(serde::Deserialize)]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct TaskPushNotificationConfig {
    #[prost(string, tag = "1")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub tenant: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub id: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    #[serde(
        rename = "taskId",
        alias = "task_id",
        default,
        deserialize_with = "crate::proto::json::read_or_default"
    )]
    pub task_id: ::prost::alloc::string::String,
    #[prost(string, tag = "4")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub url: ::prost::alloc::string::String,
    #[prost(string, tag = "5")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub token: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "6")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub authentication: ::core::option::Option<AuthenticationInfo>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct StringList {
    #[prost(string, repeated, tag = "1")]
    pub list: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SecurityRequirement {
    #[prost(map = "string, message", tag = "1")]
    pub schemes: ::std::collections::HashMap<::prost::alloc::string::String, StringList>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SecurityScheme {
    #[prost(oneof = "security_scheme::Scheme", tags = "1, 2, 3, 4, 5")]
    pub scheme: ::core::option::Option<security_scheme::Scheme>,
}
/// Nested message and enum types in `SecurityScheme`.
pub mod security_scheme {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Scheme {
        #[prost(message, tag = "1")]
        ApiKeySecurityScheme(super::ApiKeySecurityScheme),
        #[prost(message, tag = "2")]
        HttpAuthSecurityScheme(super::HttpAuthSecurityScheme),
        #[prost(message, tag = "3")]
        Oauth2SecurityScheme(super::OAuth2SecurityScheme),
        #[prost(message, tag = "4")]
        OpenIdConnectSecurityScheme(super::OpenIdConnectSecurityScheme),
        #[prost(message, tag = "5")]
        MtlsSecurityScheme(super::MutualTlsSecurityScheme),
    }
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ApiKeySecurityScheme {
    #[prost(string, tag = "1")]
    pub description: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub location: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub name: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct HttpAuthSecurityScheme {
    #[prost(string, tag = "1")]
    pub description: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub scheme: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub bearer_format: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct OAuth2SecurityScheme {
    #[prost(string, tag = "1")]
    pub description: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "2")]
    pub flows: ::core::option::Option<OAuthFlows>,
    #[prost(string, tag = "3")]
    pub oauth2_metadata_url: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct OpenIdConnectSecurityScheme {
    #[prost(string, tag = "1")]
    pub description: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub open_id_connect_url: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct MutualTlsSecurityScheme {
    #[prost(string, tag = "1")]
    pub description: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct OAuthFlows {
    #[prost(oneof = "o_auth_flows::Flow", tags = "1, 2, 3, 4, 5")]
    pub flow: ::core::option::Option<o_auth_flows::Flow>,
}
/// Nested message and enum types in `OAuthFlows`.
pub mod o_auth_flows {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Flow {
        #[prost(message, tag = "1")]
        AuthorizationCode(super::AuthorizationCodeOAuthFlow),
        #[prost(message, tag = "2")]
        ClientCredentials(super::ClientCredentialsOAuthFlow),
        #[prost(message, tag = "3")]
        Implicit(super::ImplicitOAuthFlow),
        #[prost(message, tag = "4")]
        Password(super::PasswordOAuthFlow),
        #[prost(message, tag = "5")]
        DeviceCode(super::DeviceCodeOAuthFlow),
    }
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AuthorizationCodeOAuthFlow {
    #[prost(string, tag = "1")]
    pub authorization_url: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub token_url: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub refresh_url: ::prost::alloc::string::String,
    #[prost(map = "string, string", tag = "4")]
    pub scopes: ::std::collections::HashMap<
        ::prost::alloc::string::String,
        ::prost::alloc::string::String,
    >,
    #[prost(bool, tag = "5")]
    pub pkce_required: bool,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ClientCredentialsOAuthFlow {
    #[prost(string, tag = "1")]
    pub token_url: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub refresh_url: ::prost::alloc::string::String,
    #[prost(map = "string, string", tag = "3")]
    pub scopes: ::std::collections::HashMap<
        ::prost::alloc::string::String,
        ::prost::alloc::string::String,
    >,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ImplicitOAuthFlow {
    #[prost(string, tag = "1")]
    pub authorization_url: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub refresh_url: ::prost::alloc::string::String,
    #[prost(map = "string, string", tag = "3")]
    pub scopes: ::std::collections::HashMap<
        ::prost::alloc::string::String,
        ::prost::alloc::string::String,
    >,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct PasswordOAuthFlow {
    #[prost(string, tag = "1")]
    pub token_url: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub refresh_url: ::prost::alloc::string::String,
    #[prost(map = "string, string", tag = "3")]
    pub scopes: ::std::collections::HashMap<
        ::prost::alloc::string::String,
        ::prost::alloc::string::String,
    >,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DeviceCodeOAuthFlow {
    #[prost(string, tag = "1")]
    pub device_authorization_url: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub token_url: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub refresh_url: ::prost::alloc::string::String,
    #[prost(map = "string, string", tag = "4")]
    pub scopes: ::std::collections::HashMap<
        ::prost::alloc::string::String,
        ::prost::alloc::string::String,
    >,
}
#[derive(serde::Deserialize)]
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SendMessageRequest {
    #[prost(string, tag = "1")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub tenant: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "2")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub message: ::core::option::Option<Message>,
    #[prost(message, optional, tag = "3")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub configuration: ::core::option::Option<SendMessageConfiguration>,
    #[prost(message, optional, tag = "4")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub metadata: ::core::option::Option<crate::proto::values::Struct>,
}
#[derive(serde::Deserialize)]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetTaskRequest {
    #[prost(string, tag = "1")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub tenant: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "crate::proto::json::read_or_default")]
    pub id: ::prost::alloc::string::String,
    #[prost(int32, optional, tag = "3")]
    #[serde(
        rename = "historyLength",
        alias = "history_length",
        default,
        deserialize_with = "crate::proto::json::read_optional_number"
    )]
    pub history_length: ::core::option::Option<i32>,
}
#[derive(serde::Deserialize)]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ListTasksRequest {
    #[prost(string, tag = "1")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub tenant: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    #[serde(
        rename = "contextId",
        alias = "context_id",
        default,
        deserialize_with = "crate::proto::json::read_or_default"
    )]
    pub context_id: ::prost::alloc::string::String,
    #[prost(enumeration = "TaskState", tag = "3")]
    #[serde(default, deserialize_with = "crate::proto::json::read_state")]
    pub status: i32,
    #[prost(int32, optional, tag = "4")]
    #[serde(
        rename = "pageSize",
        alias = "page_size",
        default,
        deserialize_with = "crate::proto::json::read_optional_number"
    )]
    pub page_size: ::core::option::Option<i32>,
    #[prost(string, tag = "5")]
    #[serde(
        rename = "pageToken",
        alias = "page_token",
        default,
        deserialize_with = "crate::proto::json::read_or_default"
    )]
    pub page_token: ::prost::alloc::string::String,
    #[prost(int32, optional, tag = "6")]
    #[serde(
        rename = "historyLength",
        alias = "history_length",
        default,
        deserialize_with = "crate::proto::json::read_optional_number"
    )]
    pub history_length: ::core::option::Option<i32>,
    #[prost(message, optional, tag = "7")]
    #[serde(
        rename = "statusTimestampAfter",
        alias = "status_timestamp_after",
        default,
        deserialize_with = "crate::proto::json::read_time"
    )]
    pub status_timestamp_after: ::core::option::Option<::prost_types::Timestamp>,
    #[prost(bool, optional, tag = "8")]
    #[serde(
        rename = "includeArtifacts",
        alias = "include_artifacts",
        default,
        deserialize_with = "crate::proto::json::read_or_default"
    )]
    pub include_artifacts: ::core::option::Option<bool>,
}
#[derive(serde::Deserialize)]
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListTasksResponse {
    #[prost(message, repeated, tag = "1")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub tasks: ::prost::alloc::vec::Vec<Task>,
    #[prost(string, tag = "2")]
    #[serde(
        rename = "nextPageToken",
        alias = "next_page_token",
        default,
        deserialize_with = "crate::proto::json::read_or_default"
    )]
    pub next_page_token: ::prost::alloc::string::String,
    #[prost(int32, tag = "3")]
    #[serde(
        rename = "pageSize",
        alias = "page_size",
        default,
        deserialize_with = "crate::proto::json::read_number"
    )]
    pub page_size: i32,
    #[prost(int32, tag = "4")]
    #[serde(
        rename = "totalSize",
        alias = "total_size",
        default,
        deserialize_with = "crate::proto::json::read_number"
    )]
    pub total_size: i32,
}
#[derive(serde::Deserialize)]
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CancelTaskRequest {
    #[prost(string, tag = "1")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub tenant: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "crate::proto::json::read_or_default")]
    pub id: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "3")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub metadata: ::core::option::Option<crate::proto::values::Struct>,
}
#[derive(serde::Deserialize)]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetTaskPushNotificationConfigRequest {
    #[prost(string, tag = "1")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub tenant: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    #[serde(
        rename = "taskId",
        alias = "task_id",
        deserialize_with = "crate::proto::json::read_or_default"
    )]
    pub task_id: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "crate::proto::json::read_or_default")]
    pub id: ::prost::alloc::string::String,
}
#[derive(serde::Deserialize)]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct DeleteTaskPushNotificationConfigRequest {
    #[prost(string, tag = "1")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub tenant: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    #[serde(
        rename = "taskId",
        alias = "task_id",
        deserialize_with = "crate::proto::json::read_or_default"
    )]
    pub task_id: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "crate::proto::json::read_or_default")]
    pub id: ::prost::alloc::string::String,
}
#[derive(serde::Deserialize)]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct SubscribeToTaskRequest {
    #[prost(string, tag = "1")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub tenant: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "crate::proto::json::read_or_default")]
    pub id: ::prost::alloc::string::String,
}
#[derive(serde::Deserialize)]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ListTaskPushNotificationConfigsRequest {
    #[prost(string, tag = "1")]
    #[serde(
        rename = "taskId",
        alias = "task_id",
        deserialize_with = "crate::proto::json::read_or_default"
    )]
    pub task_id: ::prost::alloc::string::String,
    #[prost(int32, tag = "2")]
    #[serde(
        rename = "pageSize",
        alias = "page_size",
        default,
        deserialize_with = "crate::proto::json::read_number"
    )]
    pub page_size: i32,
    #[prost(string, tag = "3")]
    #[serde(
        rename = "pageToken",
        alias = "page_token",
        default,
        deserialize_with = "crate::proto::json::read_or_default"
    )]
    pub page_token: ::prost::alloc::string::String,
    #[prost(string, tag = "4")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub tenant: ::prost::alloc::string::String,
}
#[derive(serde::Deserialize)]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetExtendedAgentCardRequest {
    #[prost(string, tag = "1")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub tenant: ::prost::alloc::string::String,
}
#[derive(serde::Deserialize)]
#[serde(try_from = "crate::proto::choices::SentOf10")]
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SendMessageResponse {
    #[prost(oneof = "send_message_response::Payload", tags = "1, 2")]
    pub payload: ::core::option::Option<send_message_response::Payload>,
}
/// Nested message and enum types in `SendMessageResponse`.
pub mod send_message_response {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Payload {
        #[prost(message, tag = "1")]
        Task(super::Task),
        #[prost(message, tag = "2")]
        Message(super::Message),
    }
}
#[derive(serde::Deserialize)]
#[serde(try_from = "crate::proto::choices::UpdateOf10")]
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct StreamResponse {
    #[prost(oneof = "stream_response::Payload", tags = "1, 2, 3, 4")]
    pub payload: ::core::option::Option<stream_response::Payload>,
}
/// Nested message and enum types in `StreamResponse`.
pub mod stream_response {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Payload {
        #[prost(message, tag = "1")]
        Task(super::Task),
        #[prost(message, tag = "2")]
        Message(super::Message),
        #[prost(message, tag = "3")]
        StatusUpdate(super::TaskStatusUpdateEvent),
        #[prost(message, tag = "4")]
        ArtifactUpdate(super::TaskArtifactUpdateEvent),
    }
}
#[derive(serde::Deserialize)]
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListTaskPushNotificationConfigsResponse {
    #[prost(message, repeated, tag = "1")]
    #[serde(default, deserialize_with = "crate::proto::json::read_or_default")]
    pub configs: ::prost::alloc::vec::Vec<TaskPushNotificationConfig>,
    #[prost(string, tag = "2")]
    #[serde(
        rename = "nextPageToken",
        alias = "next_page_token",
        default,
        deserialize_with = "crate::proto::json::read_or_default"
    )]
    pub next_page_token: ::prost::alloc::string::String,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum TaskState {
    Unspecified = 0,
    Submitted = 1,
    Working = 2,
    Completed = 3,
    Failed = 4,
    Canceled = 5,
    InputRequired = 6,
    Rejected = 7,
    AuthRequired = 8,
}
impl TaskState {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "TASK_STATE_UNSPECIFIED",
            Self::Submitted => "TASK_STATE_SUBMITTED",
            Self::Working => "TASK_STATE_WORKING",
            Self::Completed => "TASK_STATE_COMPLETED",
            Self::Failed => "TASK_STATE_FAILED",
            Self::Canceled => "TASK_STATE_CANCELED",
            Self::InputRequired => "TASK_STATE_INPUT_REQUIRED",
            Self::Rejected => "TASK_STATE_REJECTED",
            Self::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "TASK_STATE_UNSPECIFIED" => Some(Self::Unspecified),
            "TASK_STATE_SUBMITTED" => Some(Self::Submitted),
            "TASK_STATE_WORKING" => Some(Self::Working),
            "TASK_STATE_COMPLETED" => Some(Self::Completed),
            "TASK_STATE_FAILED" => Some(Self::Failed),
            "TASK_STATE_CANCELED" => Some(Self::Canceled),
            "TASK_STATE_INPUT_REQUIRED" => Some(Self::InputRequired),
            "TASK_STATE_REJECTED" => Some(Self::Rejected),
            "TASK_STATE_AUTH_REQUIRED" => Some(Self::AuthRequired),
            _ => None,
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum Role {
    Unspecified = 0,
    User = 1,
    Agent = 2,
}
impl Role {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "ROLE_UNSPECIFIED",
            Self::User => "ROLE_USER",
            Self::Agent => "ROLE_AGENT",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "ROLE_UNSPECIFIED" => Some(Self::Unspecified),
            "ROLE_USER" => Some(Self::User),
            "ROLE_AGENT" => Some(Self::Agent),
            _ => None,
        }
    }
}
