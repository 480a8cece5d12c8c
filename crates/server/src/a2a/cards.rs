//! Builds agent cards from the configuration of agents (A2A-1, A2A-4). Cards of restricted agents are
//! shown only to their users. Extended cards also contain the limits of the agent.

use std::collections::HashMap;

use ::a2a::types::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentProvider, AgentSkill, ApiKeySecurityScheme,
    HttpAuthSecurityScheme, SecurityScheme,
};
use ::a2a::{Binding, PublishedCard, Version};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};
use model::agent::endpoint::{A2aMethod, A2aTransport, EndpointAuthType, EndpointSkill};
use model::agent::{ASSISTANT_ID, Agent, Endpoint};
use serde_json::{Value, json};

use super::authn::{CallerAuth, OfferedAgent};
use crate::ServerSettings;

/// The URI of the extension with the limits of an agent: A2ACapabilities of S2.
pub(crate) const LIMITS_EXTENSION: &str = "urn:adjutant:a2a:capabilities:v1";
/// The name of the only security scheme of a card.
const SCHEME_NAME: &str = "default";

/// The URL of the server without a path. It is attached to every request.
#[derive(Clone, Debug)]
pub(crate) struct BaseUrl(pub(crate) String);

impl BaseUrl {
    /// Returns the configured public URL. Without it, returns `http://` and the host and port of the URI, or else of
    /// the `Host` header. Uses `localhost` if the host is missing, invalid or contains user information.
    pub(crate) fn from_request(settings: &ServerSettings, uri: &Uri, headers: &HeaderMap) -> Self {
        if let Some(public) = &settings.public_url {
            return Self(public.clone());
        }
        // HTTP/2 has the host in the URI instead of a header.
        let header = || headers.get(header::HOST).and_then(|host| host.to_str().ok()?.parse().ok());
        let host = uri.authority().cloned().or_else(header);
        let host = host.filter(|host: &Authority| !host.as_str().contains('@'));
        Self(format!("http://{}", host.as_ref().map_or("localhost", Authority::as_str)))
    }
}

/// Returns the public card of an agent. The time of the last change is the later of the changes of the agent and of the
/// configuration.
pub(crate) fn card(offered: &OfferedAgent, base: &BaseUrl) -> PublishedCard {
    let configured = offered.config.activated_at;
    let since = offered.entry.updated_at.map_or(configured, |updated| updated.max(configured));
    let modified = u64::try_from(since.as_second()).unwrap_or_default();
    PublishedCard {
        card: build_card(&offered.entry.agent, offered.endpoint(), offered.caller_auth(), base),
        modified,
        is_restricted: offered.is_restricted(),
    }
}

/// Returns the extended card, which contains the limits of the agent.
pub(crate) fn extended_card(offered: &OfferedAgent, base: &BaseUrl) -> AgentCard {
    let mut card = card(offered, base).card;
    card.capabilities.extensions.get_or_insert_default().push(limits_extension(offered));
    card
}

/// Returns the extension [`LIMITS_EXTENSION`], which clients may ignore. Its parameters are the advertised capabilities
/// of the agent and the field `rate`. That is the rate limit of the agent, or else of the server. It is omitted if
/// there is none.
fn limits_extension(offered: &OfferedAgent) -> AgentExtension {
    let advertised = offered.endpoint().advertised_capabilities(&offered.entry.agent);
    let mut params: HashMap<String, Value> = HashMap::new();
    if let Ok(Value::Object(fields)) = serde_json::to_value(advertised) {
        params.extend(fields);
    }
    if let Some(rate) = offered.endpoint().rate.or(offered.config.settings.rate_limit) {
        params.insert("rate".to_owned(), json!(rate));
    }
    AgentExtension {
        uri: LIMITS_EXTENSION.to_owned(),
        description: Some("limits of this agent".to_owned()),
        required: Some(false),
        params: Some(params),
    }
}

/// Returns whether the endpoint offers an extended card to callers with this authentication. It does not if all callers
/// are anonymous or the method is disabled.
pub(crate) fn has_extended(endpoint: &Endpoint, auth: CallerAuth<'_>) -> bool {
    auth != CallerAuth::Anonymous && endpoint.allows(A2aMethod::ExtendedCard)
}

/// Builds the card without extensions and signatures. A blank description becomes `The agent NAME.`, a missing version
/// that of adjutant. An empty list of skills becomes one skill with the id, name and description of the agent. Its tag
/// is the mode.
///
/// The capabilities follow from the methods that the endpoint allows. An extended card also requires that callers are
/// not all anonymous. The security scheme is listed even if it is optional, but it is required only if authentication
/// is.
fn build_card(agent: &Agent, endpoint: &Endpoint, auth: CallerAuth<'_>, base: &BaseUrl) -> AgentCard {
    let description = match agent.description.trim() {
        "" => format!("The agent {}.", agent.name),
        description => description.to_owned(),
    };
    let skills = match endpoint.skills.as_slice() {
        [] => vec![AgentSkill {
            id: agent.id.clone(),
            name: agent.name.clone(),
            description: description.clone(),
            tags: vec![agent.mode.to_string()],
            examples: None,
            input_modes: None,
            output_modes: None,
            security_requirements: None,
        }],
        skills => skills.iter().map(skill).collect(),
    };
    let scheme = scheme(auth);
    let needed = scheme.is_some() && auth.is_required();
    AgentCard {
        name: agent.name.clone(),
        description,
        version: endpoint.version.clone().unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned()),
        supported_interfaces: interfaces(agent, endpoint, base),
        capabilities: AgentCapabilities {
            streaming: Some(endpoint.allows(A2aMethod::Stream)),
            push_notifications: Some(endpoint.allows(A2aMethod::SetPush)),
            extensions: None,
            extended_agent_card: Some(has_extended(endpoint, auth)),
        },
        default_input_modes: endpoint.content_types(),
        default_output_modes: output_modes(agent, endpoint),
        skills,
        provider: endpoint
            .provider
            .as_ref()
            .map(|provider| AgentProvider { organization: provider.organization.clone(), url: provider.url.clone() }),
        documentation_url: endpoint.documentation_url.clone(),
        icon_url: endpoint.icon_url.clone(),
        security_schemes: scheme.map(|scheme| HashMap::from([(SCHEME_NAME.to_owned(), scheme)])),
        security_requirements: needed.then(|| vec![HashMap::from([(SCHEME_NAME.to_owned(), Vec::new())])]),
        signatures: None,
    }
}

/// Returns the offered interfaces: JSON-RPC, HTTP+JSON, gRPC, each in 1.0 and then 0.3. Their URL is `BASE/agents/ID`,
/// for gRPC only the base URL. The tenant is set only for gRPC 1.0, to the id of the agent.
fn interfaces(agent: &Agent, endpoint: &Endpoint, base: &BaseUrl) -> Vec<AgentInterface> {
    let mut interfaces = Vec::new();
    for (transport, binding) in [
        (A2aTransport::JsonRpc, Binding::JsonRpc),
        (A2aTransport::HttpJson, Binding::HttpJson),
        (A2aTransport::Grpc, Binding::Grpc),
    ] {
        if !endpoint.offers(transport) {
            continue;
        }
        for version in [Version::V10, Version::V03] {
            let url = match transport {
                // gRPC has no paths. The tenant names the agent, or the metadata in 0.3.
                A2aTransport::Grpc => base.0.clone(),
                _ => format!("{}/agents/{}", base.0, agent.id),
            };
            let has_tenant = transport == A2aTransport::Grpc && version == Version::V10;
            interfaces.push(AgentInterface {
                protocol_version: version.as_str().to_owned(),
                tenant: has_tenant.then(|| agent.id.clone()),
                ..AgentInterface::new(url, binding.as_str())
            });
        }
    }
    interfaces
}

/// Returns the security scheme for callers, or `None` without authentication. A JWT and a token in `Authorization` are
/// HTTP bearer authentication. An API key, and a token in a custom header, are an API key in that header.
fn scheme(auth: CallerAuth<'_>) -> Option<SecurityScheme> {
    let bearer = |format: Option<&str>| {
        SecurityScheme::HttpAuth(HttpAuthSecurityScheme {
            scheme: "Bearer".to_owned(),
            description: None,
            bearer_format: format.map(str::to_owned),
        })
    };
    match auth {
        CallerAuth::Local | CallerAuth::Anonymous => None,
        CallerAuth::Jwt { .. } => Some(bearer(Some("JWT"))),
        CallerAuth::AgentCredential(auth) => Some(match (auth.kind, auth.header().unwrap_or_default()) {
            (EndpointAuthType::BearerToken, name) if name.eq_ignore_ascii_case("authorization") => bearer(None),
            (_, name) => SecurityScheme::ApiKey(ApiKeySecurityScheme {
                location: "header".to_owned(),
                name: name.to_owned(),
                description: None,
            }),
        }),
    }
}

/// Converts a configured skill. An empty list of examples is omitted. Media types and security requirements are never
/// set, so those of the card apply.
fn skill(skill: &EndpointSkill) -> AgentSkill {
    AgentSkill {
        id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        tags: skill.tags.clone(),
        examples: (!skill.examples.is_empty()).then(|| skill.examples.clone()),
        input_modes: None,
        output_modes: None,
        security_requirements: None,
    }
}

/// Returns the configured media types of the output. If they are not configured, returns plain text, and for agents
/// other than the assistant also `application/octet-stream`.
fn output_modes(agent: &Agent, endpoint: &Endpoint) -> Vec<String> {
    let default = || {
        let all: &[&str] =
            if agent.id == ASSISTANT_ID { &["text/plain"] } else { &["text/plain", "application/octet-stream"] };
        all.iter().map(|media_type| (*media_type).to_owned()).collect()
    };
    endpoint.capabilities.output_content_types.clone().unwrap_or_else(default)
}
