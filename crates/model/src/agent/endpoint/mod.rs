//! How other programs reach an agent by the Agent2Agent protocol: by which transports, with which proof of who they are,
//! how often, and for what (S2's A2AEndpoint, A2AAuth, A2ARateLimit and A2ACapabilities).
//!
//! Every value has passed [`EndpointDraft::check`]. A token never stands here itself, only where it is found.

pub(in crate::agent) mod check;
mod draft;
#[cfg(test)]
mod tests;

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use draft::EndpointDraft;

use super::Agent;
use crate::{UserId, words::words};

/// The header of an API key where no other is named.
pub const API_KEY: &str = "X-API-Key";
/// The header of a bearer token where no other is named.
pub const AUTHORIZATION: &str = "Authorization";

/// How an agent is offered. One that says nothing about it is offered by every transport, to whoever the server itself
/// knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = A2AEndpoint)]
pub struct Endpoint {
    pub enabled: bool,
    pub transports: Vec<Transport>,
    /// Without it, the server's own authentication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// Without it, the server's own limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    pub capabilities: Capabilities,
    /// Without any, its card has one, made of its description.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Skill>,
    /// Of the agent, in its card.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub documentation_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icon_url: Option<String>,
}

impl Default for Endpoint {
    fn default() -> Self {
        Self {
            enabled: true,
            transports: Transport::ALL.to_vec(),
            auth: None,
            rate: None,
            capabilities: Capabilities::default(),
            skills: Vec::new(),
            version: None,
            provider: None,
            documentation_url: None,
            icon_url: None,
        }
    }
}

words! {
    /// A binding of the protocol.
    #[schema(as = A2ATransport)]
    pub enum Transport {
        #[serde(alias = "JSONRPC")]
        JsonRpc = "json_rpc",
        #[serde(alias = "HTTP+JSON")]
        HttpJson = "http_json",
        #[serde(alias = "GRPC")]
        Grpc = "grpc",
    }
}

words! {
    /// What proves who calls: a token or a key of this agent's own, a token of the server's users, or nothing.
    #[schema(as = A2AAuthType)]
    pub enum AuthType { BearerToken = "bearer_token", ApiKey = "api_key", Jwt = "jwt", None = "none" }
}

/// Who may call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = A2AAuth)]
pub struct Auth {
    #[serde(rename = "type")]
    pub kind: AuthType,
    /// `env:NAME` or `file:PATH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Where a caller sends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_name: Option<String>,
    /// Whether nobody is let in without.
    pub required: bool,
    /// Whom the token stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub user: Option<UserId>,
}

/// How often one caller may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = A2ARateLimit)]
pub struct Rate {
    #[schema(value_type = u32, minimum = 1)]
    pub per_minute: NonZeroU32,
    /// At once.
    #[schema(value_type = u32, minimum = 1)]
    pub burst: NonZeroU32,
}

words! {
    /// An operation, as version 1.x calls it; those of 0.3 are understood too. The last two are of the envelope.
    #[schema(as = A2AMethod)]
    pub enum Method {
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

/// What an agent is restricted to; what is left out is not restricted further than the agent itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = A2ACapabilityLimits)]
pub struct Capabilities {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supported_methods: Option<Vec<Method>>,
    /// In bytes; no more than the agent's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_input_size: Option<u64>,
    pub streaming_support: bool,
    /// What parts of messages may be: `text/plain`, `image/*`, `*/*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supported_content_types: Option<Vec<String>>,
    /// What its answers may be, for its card.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_content_types: Option<Vec<String>>,
}

impl Default for Capabilities {
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = A2ASkill)]
pub struct Skill {
    pub id: String,
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub examples: Vec<String>,
}

/// Who offers the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = A2AProvider)]
pub struct Provider {
    pub organization: String,
    pub url: String,
}

/// What an agent can do by the protocol, as it is: S2's A2ACapabilities.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = A2ACapabilities)]
pub struct Advertised {
    pub supported_methods: Vec<Method>,
    pub max_input_size: u64,
    pub max_output_size: u64,
    pub streaming_support: bool,
    pub concurrent_execution: bool,
    pub supported_content_types: Vec<String>,
}

impl Endpoint {
    pub fn offers(&self, transport: Transport) -> bool {
        self.transports.contains(&transport)
    }

    /// Whether the operation may be asked for.
    pub fn allows(&self, method: Method) -> bool {
        let streams = matches!(method, Method::Stream | Method::Subscribe);
        let listed = self.capabilities.supported_methods.as_ref().is_none_or(|listed| listed.contains(&method));
        listed && (self.capabilities.streaming_support || !streams)
    }

    /// Whether a message may have parts of this media type.
    pub fn takes(&self, media_type: &str) -> bool {
        self.capabilities.supported_content_types.as_ref().is_none_or(|types| types.iter().any(|t| fits(t, media_type)))
    }

    /// In bytes, of the parts of one message.
    pub fn max_input_size(&self, agent: &Agent) -> u64 {
        self.capabilities.max_input_size.unwrap_or(u64::MAX).min(agent.max_input_size)
    }

    /// What the agent can do, offered like this.
    pub fn advertised(&self, agent: &Agent) -> Advertised {
        Advertised {
            supported_methods: Method::ALL.iter().copied().filter(|method| self.allows(*method)).collect(),
            max_input_size: self.max_input_size(agent),
            max_output_size: agent.max_output_size,
            streaming_support: self.allows(Method::Stream),
            concurrent_execution: agent.places() > 1,
            supported_content_types: self.content_types(),
        }
    }

    /// What parts of messages may be.
    pub fn content_types(&self) -> Vec<String> {
        let all = || ["text/plain", "application/json", "*/*"].map(str::to_owned).to_vec();
        self.capabilities.supported_content_types.clone().unwrap_or_else(all)
    }
}

impl Auth {
    /// Where a caller sends the token or the key; nothing where there is none.
    pub fn header(&self) -> Option<&str> {
        let usual = match self.kind {
            AuthType::BearerToken | AuthType::Jwt => AUTHORIZATION,
            AuthType::ApiKey => API_KEY,
            AuthType::None => return None,
        };
        Some(self.header_name.as_deref().unwrap_or(usual))
    }
}

/// Whether a media type is one that a pattern stands for. Parameters of it do not count.
fn fits(pattern: &str, media_type: &str) -> bool {
    let plain = media_type.split(';').next().unwrap_or_default().trim();
    let half = |pattern: &str, is: &str| pattern == "*" || pattern.eq_ignore_ascii_case(is);
    match (pattern.split_once('/'), plain.split_once('/')) {
        (Some((kind, sub)), Some((is_kind, is_sub))) => half(kind, is_kind) && half(sub, is_sub),
        _ => false,
    }
}
