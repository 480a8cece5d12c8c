//! What `lf.a2a.v1` and `a2a.v1` say alike. A field that only one of them has is left out by those who speak the other:
//! protobuf skips numbers it does not know.

use std::collections::HashMap;

use prost::{Enumeration, Message, Oneof};
use prost_types::Struct;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum Role {
    Unspecified = 0,
    User = 1,
    Agent = 2,
}

#[derive(Clone, PartialEq, Message)]
pub struct AgentProvider {
    #[prost(string, tag = "1")]
    pub url: String,
    #[prost(string, tag = "2")]
    pub organization: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct AgentExtension {
    #[prost(string, tag = "1")]
    pub uri: String,
    #[prost(string, tag = "2")]
    pub description: String,
    #[prost(bool, tag = "3")]
    pub required: bool,
    #[prost(message, optional, tag = "4")]
    pub params: Option<Struct>,
}

#[derive(Clone, PartialEq, Message)]
pub struct AgentSkill {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(string, tag = "3")]
    pub description: String,
    #[prost(string, repeated, tag = "4")]
    pub tags: Vec<String>,
    #[prost(string, repeated, tag = "5")]
    pub examples: Vec<String>,
    #[prost(string, repeated, tag = "6")]
    pub input_modes: Vec<String>,
    #[prost(string, repeated, tag = "7")]
    pub output_modes: Vec<String>,
    /// `security` in 0.3.
    #[prost(message, repeated, tag = "8")]
    pub security_requirements: Vec<SecurityRequirement>,
}

#[derive(Clone, PartialEq, Message)]
pub struct AgentCardSignature {
    #[prost(string, tag = "1")]
    pub protected: String,
    #[prost(string, tag = "2")]
    pub signature: String,
    #[prost(message, optional, tag = "3")]
    pub header: Option<Struct>,
}

#[derive(Clone, PartialEq, Message)]
pub struct StringList {
    #[prost(string, repeated, tag = "1")]
    pub list: Vec<String>,
}

/// `Security` in 0.3.
#[derive(Clone, PartialEq, Message)]
pub struct SecurityRequirement {
    #[prost(map = "string, message", tag = "1")]
    pub schemes: HashMap<String, StringList>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SecurityScheme {
    #[prost(oneof = "Scheme", tags = "1, 2, 3, 4, 5")]
    pub scheme: Option<Scheme>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Scheme {
    #[prost(message, tag = "1")]
    ApiKey(ApiKeySecurityScheme),
    #[prost(message, tag = "2")]
    HttpAuth(HttpAuthSecurityScheme),
    #[prost(message, tag = "3")]
    OAuth2(OAuth2SecurityScheme),
    #[prost(message, tag = "4")]
    OpenIdConnect(OpenIdConnectSecurityScheme),
    #[prost(message, tag = "5")]
    MutualTls(MutualTlsSecurityScheme),
}

#[derive(Clone, PartialEq, Message)]
pub struct ApiKeySecurityScheme {
    #[prost(string, tag = "1")]
    pub description: String,
    #[prost(string, tag = "2")]
    pub location: String,
    #[prost(string, tag = "3")]
    pub name: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct HttpAuthSecurityScheme {
    #[prost(string, tag = "1")]
    pub description: String,
    #[prost(string, tag = "2")]
    pub scheme: String,
    #[prost(string, tag = "3")]
    pub bearer_format: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct OAuth2SecurityScheme {
    #[prost(string, tag = "1")]
    pub description: String,
    #[prost(message, optional, tag = "2")]
    pub flows: Option<OAuthFlows>,
    #[prost(string, tag = "3")]
    pub oauth2_metadata_url: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct OpenIdConnectSecurityScheme {
    #[prost(string, tag = "1")]
    pub description: String,
    #[prost(string, tag = "2")]
    pub open_id_connect_url: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct MutualTlsSecurityScheme {
    #[prost(string, tag = "1")]
    pub description: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct OAuthFlows {
    #[prost(oneof = "Flow", tags = "1, 2, 3, 4, 5")]
    pub flow: Option<Flow>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Flow {
    #[prost(message, tag = "1")]
    AuthorizationCode(AuthorizationCodeOAuthFlow),
    #[prost(message, tag = "2")]
    ClientCredentials(ClientCredentialsOAuthFlow),
    #[prost(message, tag = "3")]
    Implicit(ImplicitOAuthFlow),
    #[prost(message, tag = "4")]
    Password(PasswordOAuthFlow),
    /// Not in 0.3.
    #[prost(message, tag = "5")]
    DeviceCode(DeviceCodeOAuthFlow),
}

#[derive(Clone, PartialEq, Message)]
pub struct AuthorizationCodeOAuthFlow {
    #[prost(string, tag = "1")]
    pub authorization_url: String,
    #[prost(string, tag = "2")]
    pub token_url: String,
    #[prost(string, tag = "3")]
    pub refresh_url: String,
    #[prost(map = "string, string", tag = "4")]
    pub scopes: HashMap<String, String>,
    /// Not in 0.3.
    #[prost(bool, tag = "5")]
    pub pkce_required: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct ClientCredentialsOAuthFlow {
    #[prost(string, tag = "1")]
    pub token_url: String,
    #[prost(string, tag = "2")]
    pub refresh_url: String,
    #[prost(map = "string, string", tag = "3")]
    pub scopes: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ImplicitOAuthFlow {
    #[prost(string, tag = "1")]
    pub authorization_url: String,
    #[prost(string, tag = "2")]
    pub refresh_url: String,
    #[prost(map = "string, string", tag = "3")]
    pub scopes: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct PasswordOAuthFlow {
    #[prost(string, tag = "1")]
    pub token_url: String,
    #[prost(string, tag = "2")]
    pub refresh_url: String,
    #[prost(map = "string, string", tag = "3")]
    pub scopes: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct DeviceCodeOAuthFlow {
    #[prost(string, tag = "1")]
    pub device_authorization_url: String,
    #[prost(string, tag = "2")]
    pub token_url: String,
    #[prost(string, tag = "3")]
    pub refresh_url: String,
    #[prost(map = "string, string", tag = "4")]
    pub scopes: HashMap<String, String>,
}
