//! What is told of an agent before it is called: its card, made of its configuration and nothing else (A2A-1, A2A-4).
//! Everyone may see it; what only those may see who were let in is added in the extended one.

use std::collections::HashMap;

use ::a2a::types::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentProvider, AgentSkill, ApiKeySecurityScheme,
    HttpAuthSecurityScheme, SecurityScheme,
};
use ::a2a::{Binding, Card, Version};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};
use model::agent::endpoint::{AuthType, Method, Skill, Transport};
use model::agent::{ASSISTANT, Agent, Endpoint};
use serde_json::{Value, json};

use super::admission::{Offered, Way};
use crate::Settings;

/// Under this name an extended card tells the limits of the agent: S2's A2ACapabilities.
pub(crate) const LIMITS: &str = "urn:adjutant:a2a:capabilities:v1";
/// Of the one way in that a card names.
const SCHEME: &str = "default";

/// Where the server is reached, without a path: noted beside every request.
#[derive(Clone, Debug)]
pub(crate) struct Base(pub(crate) String);

impl Base {
    /// As the operator says it, or as the caller has found it.
    pub(crate) fn of(settings: &Settings, uri: &Uri, headers: &HeaderMap) -> Self {
        if let Some(public) = &settings.public_url {
            return Self(public.clone());
        }
        // HTTP/2 has the host in the address instead of a header.
        let header = || headers.get(header::HOST).and_then(|host| host.to_str().ok()?.parse().ok());
        let host = uri.authority().cloned().or_else(header);
        let host = host.filter(|host: &Authority| !host.as_str().contains('@'));
        Self(format!("http://{}", host.as_ref().map_or("localhost", Authority::as_str)))
    }
}

/// The card that everyone may see.
pub(crate) fn card(offered: &Offered, base: &Base) -> Card {
    let configured = offered.in_force.since;
    let since = offered.entry.updated_at.map_or(configured, |updated| updated.max(configured));
    let modified = u64::try_from(since.as_second()).unwrap_or_default();
    Card { card: make(&offered.entry.agent, offered.endpoint(), offered.way(), base), modified }
}

/// The same with the limits of the agent.
pub(crate) fn extended(offered: &Offered, base: &Base) -> AgentCard {
    let mut card = card(offered, base).card;
    card.capabilities.extensions.get_or_insert_default().push(limits(offered));
    card
}

/// What this agent can do, and how often it may be asked.
fn limits(offered: &Offered) -> AgentExtension {
    let advertised = offered.endpoint().advertised(&offered.entry.agent);
    let mut params: HashMap<String, Value> = HashMap::new();
    if let Ok(Value::Object(fields)) = serde_json::to_value(advertised) {
        params.extend(fields);
    }
    if let Some(rate) = offered.endpoint().rate.or(offered.in_force.settings.rate_limit) {
        params.insert("rate".to_owned(), json!(rate));
    }
    AgentExtension {
        uri: LIMITS.to_owned(),
        description: Some("the limits of this agent".to_owned()),
        required: Some(false),
        params: Some(params),
    }
}

/// Whether the extended card is given to those who come this way: to nobody in particular it is not.
pub(crate) fn has_extended(endpoint: &Endpoint, way: Way<'_>) -> bool {
    way != Way::Anyone && endpoint.allows(Method::ExtendedCard)
}

fn make(agent: &Agent, endpoint: &Endpoint, way: Way<'_>, base: &Base) -> AgentCard {
    let description = match agent.description.trim() {
        "" => format!("the agent {}", agent.name),
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
    let scheme = scheme(way);
    let needed = scheme.is_some() && way.is_required();
    AgentCard {
        name: agent.name.clone(),
        description,
        version: endpoint.version.clone().unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned()),
        supported_interfaces: interfaces(agent, endpoint, base),
        capabilities: AgentCapabilities {
            streaming: Some(endpoint.allows(Method::Stream)),
            push_notifications: Some(endpoint.allows(Method::SetPush)),
            extensions: None,
            extended_agent_card: Some(has_extended(endpoint, way)),
        },
        default_input_modes: endpoint.content_types(),
        default_output_modes: outputs(agent, endpoint),
        skills,
        provider: endpoint
            .provider
            .as_ref()
            .map(|provider| AgentProvider { organization: provider.organization.clone(), url: provider.url.clone() }),
        documentation_url: endpoint.documentation_url.clone(),
        icon_url: endpoint.icon_url.clone(),
        security_schemes: scheme.map(|scheme| HashMap::from([(SCHEME.to_owned(), scheme)])),
        security_requirements: needed.then(|| vec![HashMap::from([(SCHEME.to_owned(), Vec::new())])]),
        signatures: None,
    }
}

/// Each way in that is allowed, in the newer version first. The first of all is what a client takes that knows several.
fn interfaces(agent: &Agent, endpoint: &Endpoint, base: &Base) -> Vec<AgentInterface> {
    let mut interfaces = Vec::new();
    for (transport, binding) in [
        (Transport::JsonRpc, Binding::JsonRpc),
        (Transport::HttpJson, Binding::HttpJson),
        (Transport::Grpc, Binding::Grpc),
    ] {
        if !endpoint.offers(transport) {
            continue;
        }
        for version in [Version::V10, Version::V03] {
            let url = match transport {
                // It has no paths: the tenant says which agent is meant, or the metadata in 0.3.
                Transport::Grpc => base.0.clone(),
                _ => format!("{}/agents/{}", base.0, agent.id),
            };
            let named = transport == Transport::Grpc && version == Version::V10;
            interfaces.push(AgentInterface {
                protocol_version: version.as_str().to_owned(),
                tenant: named.then(|| agent.id.clone()),
                ..AgentInterface::new(url, binding.as_str())
            });
        }
    }
    interfaces
}

fn scheme(way: Way<'_>) -> Option<SecurityScheme> {
    let bearer = |format: Option<&str>| {
        SecurityScheme::HttpAuth(HttpAuthSecurityScheme {
            scheme: "Bearer".to_owned(),
            description: None,
            bearer_format: format.map(str::to_owned),
        })
    };
    match way {
        Way::Local | Way::Anyone => None,
        Way::Jwt { .. } => Some(bearer(Some("JWT"))),
        Way::Own(auth) => Some(match (auth.kind, auth.header().unwrap_or_default()) {
            (AuthType::BearerToken, name) if name.eq_ignore_ascii_case("authorization") => bearer(None),
            (_, name) => SecurityScheme::ApiKey(ApiKeySecurityScheme {
                location: "header".to_owned(),
                name: name.to_owned(),
                description: None,
            }),
        }),
    }
}

fn skill(skill: &Skill) -> AgentSkill {
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

/// What its answers are: text, and files where it can leave any.
fn outputs(agent: &Agent, endpoint: &Endpoint) -> Vec<String> {
    let usual = || {
        let all: &[&str] =
            if agent.id == ASSISTANT { &["text/plain"] } else { &["text/plain", "application/octet-stream"] };
        all.iter().map(|media_type| (*media_type).to_owned()).collect()
    };
    endpoint.capabilities.output_content_types.clone().unwrap_or_else(usual)
}
