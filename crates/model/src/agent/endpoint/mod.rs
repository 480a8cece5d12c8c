//! The Agent2Agent endpoint of an agent: transports, authentication, rate limit and capabilities (S2's A2AEndpoint,
//! A2AAuth, A2ARateLimit and A2ACapabilities).
//!
//! Values are validated by [`EndpointDraft::check`]. Tokens are references, never the secrets themselves.

pub(in crate::agent) mod check;
mod draft;
#[cfg(test)]
mod tests;

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use draft::EndpointDraft;

use super::Agent;
use crate::{UserId, string_enum::schema_enum};

/// The default header of an API key.
pub const API_KEY_HEADER: &str = "X-API-Key";
/// The default header of a bearer token.
pub const AUTHORIZATION_HEADER: &str = "Authorization";

/// The Agent2Agent endpoint of an agent. By default it uses every transport and the authentication of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = A2AEndpoint)]
pub struct Endpoint {
    pub enabled: bool,
    pub transports: Vec<A2aTransport>,
    /// The authentication of the server by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<EndpointAuth>,
    /// The rate limit of the server by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<EndpointRateLimit>,
    pub capabilities: CapabilityLimits,
    /// If empty, the agent card has one skill, made of the description of the agent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<EndpointSkill>,
    /// The version of the agent in its card.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<EndpointProvider>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub documentation_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icon_url: Option<String>,
}

impl Default for Endpoint {
    /// Returns an enabled endpoint with all transports. It has no authentication, rate limit, skills, version, provider
    /// or URLs of its own, and no restrictions.
    fn default() -> Self {
        Self {
            enabled: true,
            transports: A2aTransport::ALL.to_vec(),
            auth: None,
            rate: None,
            capabilities: CapabilityLimits::default(),
            skills: Vec::new(),
            version: None,
            provider: None,
            documentation_url: None,
            icon_url: None,
        }
    }
}

schema_enum! {
    /// A binding of the protocol.
    #[schema(as = A2ATransport)]
    pub enum A2aTransport {
        #[serde(alias = "JSONRPC")]
        JsonRpc = "json_rpc",
        #[serde(alias = "HTTP+JSON")]
        HttpJson = "http_json",
        #[serde(alias = "GRPC")]
        Grpc = "grpc",
    }
}

schema_enum! {
    /// The authentication of callers: a token or API key of this agent, a JWT of the server, or none.
    #[schema(as = A2AAuthType)]
    pub enum EndpointAuthType { BearerToken = "bearer_token", ApiKey = "api_key", Jwt = "jwt", None = "none" }
}

/// The authentication of callers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = A2AAuth)]
pub struct EndpointAuth {
    #[serde(rename = "type")]
    pub kind: EndpointAuthType,
    /// `env:NAME` or `file:PATH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The header for the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_name: Option<String>,
    /// `true` if calls without credentials are rejected.
    pub required: bool,
    /// The user that the token identifies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub user: Option<UserId>,
}

/// The rate limit of one caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = A2ARateLimit)]
pub struct EndpointRateLimit {
    #[schema(value_type = u32, minimum = 1)]
    pub per_minute: NonZeroU32,
    /// The number of calls that may arrive at once.
    #[schema(value_type = u32, minimum = 1)]
    pub burst: NonZeroU32,
}

schema_enum! {
    /// An operation, by its name in version 1.x. The names of version 0.3 are accepted too. The last two belong to the
    /// envelope.
    #[schema(as = A2AMethod)]
    pub enum A2aMethod {
        #[serde(alias = "message/send")]
        Send = "SendMessage",
        #[serde(alias = "message/stream")]
        Stream = "SendStreamingMessage",
        #[serde(alias = "tasks/get")]
        Get = "GetTask",
        #[serde(alias = "tasks/list")]
        List = "ListTasks",
        #[serde(alias = "tasks/cancel")]
        Cancel = "CancelTask",
        #[serde(alias = "tasks/resubscribe")]
        Subscribe = "SubscribeToTask",
        #[serde(alias = "tasks/pushNotificationConfig/set")]
        SetPush = "CreateTaskPushNotificationConfig",
        #[serde(alias = "tasks/pushNotificationConfig/get")]
        GetPush = "GetTaskPushNotificationConfig",
        #[serde(alias = "tasks/pushNotificationConfig/list")]
        ListPush = "ListTaskPushNotificationConfigs",
        #[serde(alias = "tasks/pushNotificationConfig/delete")]
        DeletePush = "DeleteTaskPushNotificationConfig",
        #[serde(alias = "agent/getAuthenticatedExtendedCard")]
        ExtendedCard = "GetExtendedAgentCard",
        Execute = "execute-agent",
        Status = "status",
    }
}

/// Restrictions of the endpoint. Without a value, only the limits of the agent apply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = A2ACapabilityLimits)]
pub struct CapabilityLimits {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supported_methods: Option<Vec<A2aMethod>>,
    /// In bytes, at most the `max_input_size` of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_input_size: Option<u64>,
    pub streaming_support: bool,
    /// The accepted media types of message parts: `text/plain`, `image/*`, `*/*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supported_content_types: Option<Vec<String>>,
    /// The media types of answers, for the agent card.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_content_types: Option<Vec<String>>,
}

impl Default for CapabilityLimits {
    /// Returns limits without restrictions: streaming is supported, and all other fields are `None`.
    fn default() -> Self {
        Self {
            supported_methods: None,
            max_input_size: None,
            streaming_support: true,
            supported_content_types: None,
            output_content_types: None,
        }
    }
}

/// A skill in the agent card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = A2ASkill)]
pub struct EndpointSkill {
    pub id: String,
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub examples: Vec<String>,
}

/// The provider of the agent, in its card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = A2AProvider)]
pub struct EndpointProvider {
    pub organization: String,
    pub url: String,
}

/// The effective capabilities of an agent (S2's A2ACapabilities).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = A2ACapabilities)]
pub struct AdvertisedCapabilities {
    pub supported_methods: Vec<A2aMethod>,
    pub max_input_size: u64,
    pub max_output_size: u64,
    pub streaming_support: bool,
    pub concurrent_execution: bool,
    pub supported_content_types: Vec<String>,
}

impl Endpoint {
    /// Returns `true` if the endpoint has this transport.
    pub fn offers(&self, transport: A2aTransport) -> bool {
        self.transports.contains(&transport)
    }

    /// Returns `true` if the operation may be called. It must be one of `supported_methods`, if that is set. Streaming
    /// operations also need `streaming_support`.
    pub fn allows(&self, method: A2aMethod) -> bool {
        let is_streaming = matches!(method, A2aMethod::Stream | A2aMethod::Subscribe);
        let listed = self.capabilities.supported_methods.as_ref().is_none_or(|listed| listed.contains(&method));
        listed && (self.capabilities.streaming_support || !is_streaming)
    }

    /// Returns `true` if a message may have parts of this media type. All types are accepted if
    /// `supported_content_types` is not set. Case and parameters are ignored.
    pub fn accepts_media_type(&self, media_type: &str) -> bool {
        self.capabilities
            .supported_content_types
            .as_ref()
            .is_none_or(|types| types.iter().any(|t| matches_media_type(t, media_type)))
    }

    /// Returns the maximum size of the parts of one message, in bytes: the smaller of the limits of the endpoint and
    /// the agent.
    pub fn max_input_size(&self, agent: &Agent) -> u64 {
        self.capabilities.max_input_size.unwrap_or(u64::MAX).min(agent.max_input_size)
    }

    /// Returns the effective capabilities of the agent at this endpoint: the methods that [`Endpoint::allows`] accepts,
    /// and the smaller input size. Streaming is supported if `SendStreamingMessage` is allowed. Executions are
    /// concurrent if the agent may run more than one.
    pub fn advertised_capabilities(&self, agent: &Agent) -> AdvertisedCapabilities {
        AdvertisedCapabilities {
            supported_methods: A2aMethod::ALL.iter().copied().filter(|method| self.allows(*method)).collect(),
            max_input_size: self.max_input_size(agent),
            max_output_size: agent.max_output_size,
            streaming_support: self.allows(A2aMethod::Stream),
            concurrent_execution: agent.max_concurrency() > 1,
            supported_content_types: self.content_types(),
        }
    }

    /// Returns the accepted media types of message parts. The default is `text/plain`, `application/json` and `*/*`.
    pub fn content_types(&self) -> Vec<String> {
        let all = || ["text/plain", "application/json", "*/*"].map(str::to_owned).to_vec();
        self.capabilities.supported_content_types.clone().unwrap_or_else(all)
    }
}

impl EndpointAuth {
    /// Returns the header for the token or the API key, `None` if the type is `none`.
    pub fn header(&self) -> Option<&str> {
        let default = match self.kind {
            EndpointAuthType::BearerToken | EndpointAuthType::Jwt => AUTHORIZATION_HEADER,
            EndpointAuthType::ApiKey => API_KEY_HEADER,
            EndpointAuthType::None => return None,
        };
        Some(self.header_name.as_deref().unwrap_or(default))
    }
}

/// Returns `true` if the media type matches the pattern, in which `*` matches every type or subtype. Case and
/// parameters of the media type are ignored. Returns `false` if one of the two has no `/`.
fn matches_media_type(pattern: &str, media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let matches = |pattern: &str, actual: &str| pattern == "*" || pattern.eq_ignore_ascii_case(actual);
    match (pattern.split_once('/'), essence.split_once('/')) {
        (Some((kind, subtype)), Some((actual_kind, actual_subtype))) => {
            matches(kind, actual_kind) && matches(subtype, actual_subtype)
        }
        _ => false,
    }
}
