//! Agent cards.

use std::collections::HashMap;
use std::net::SocketAddrV4;

use serde::{Deserialize, Serialize};

use super::{SecurityScheme, into_all};
use crate::{Version, types};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCard {
    pub name: String,
    #[serde(default)]
    pub description: String,
    pub version: String,
    #[serde(default = "default_protocol_version")]
    pub protocol_version: String,
    pub url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_transport: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_interfaces: Option<Vec<AgentInterface>>,
    pub capabilities: AgentCapabilities,
    #[serde(default)]
    pub default_input_modes: Vec<String>,
    #[serde(default)]
    pub default_output_modes: Vec<String>,
    #[serde(default)]
    pub skills: Vec<AgentSkill>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<types::AgentProvider>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documentation_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_schemes: Option<HashMap<String, SecurityScheme>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security: Option<Vec<types::SecurityRequirement>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supports_authenticated_extended_card: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signatures: Option<Vec<types::AgentCardSignature>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentInterface {
    pub url: String,
    pub transport: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCapabilities {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streaming: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push_notifications: Option<bool>,
    /// Has no counterpart in 1.x.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_transition_history: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Vec<types::AgentExtension>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentSkill {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub examples: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_modes: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_modes: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security: Option<Vec<types::SecurityRequirement>>,
}

/// Returns the version as cards of 0.3 write it, with the patch number.
fn default_protocol_version() -> String {
    "0.3.0".to_owned()
}

impl From<types::AgentCard> for AgentCard {
    /// Converts a card of 1.x. Lists the interfaces that support 0.3, or all interfaces if none declares 0.3. The first
    /// is the preferred one and is also in the list of additional interfaces. gRPC addresses in that list are converted
    /// by `grpc_address`. The version is 0.3.0, or that of the first interface if none declares 0.3. Without security
    /// schemes, a declared extended card becomes false.
    fn from(card: types::AgentCard) -> Self {
        let speaks = |interface: &types::AgentInterface| {
            Version::parse(&interface.protocol_version).is_ok_and(|version| version == Version::V03)
        };
        let some_do = card.supported_interfaces.iter().any(speaks);
        let supports_authenticated_extended_card = has_extended(&card);
        let interfaces = card.supported_interfaces.into_iter().filter(|interface| !some_do || speaks(interface));
        let interfaces: Vec<types::AgentInterface> = interfaces.collect();
        let first = interfaces.first();
        let protocol_version = match first {
            Some(first) if !speaks(first) => first.protocol_version.clone(),
            _ => default_protocol_version(),
        };
        let url = first.map(types::AgentInterface::wire_url).unwrap_or_default();
        let preferred_transport = first.map(|first| first.protocol_binding.clone());
        // Includes the preferred interface, because some clients read only this list.
        let all = into_all(interfaces);
        Self {
            name: card.name,
            description: card.description,
            version: card.version,
            protocol_version,
            url,
            preferred_transport,
            additional_interfaces: Some(all).filter(|all: &Vec<_>| !all.is_empty()),
            supports_authenticated_extended_card,
            capabilities: card.capabilities.into(),
            default_input_modes: card.default_input_modes,
            default_output_modes: card.default_output_modes,
            skills: into_all(card.skills),
            provider: card.provider,
            documentation_url: card.documentation_url,
            icon_url: card.icon_url,
            security_schemes: card
                .security_schemes
                .map(|schemes| schemes.into_iter().map(|(name, scheme)| (name, scheme.into())).collect()),
            security: card.security_requirements,
            signatures: card.signatures,
        }
    }
}

impl From<AgentCard> for types::AgentCard {
    /// Converts a card of 0.3. The preferred interface comes first; without a transport it is JSON-RPC. The first
    /// additional interface is left out if it repeats it. All interfaces get the protocol version of the card without
    /// its patch number, and no tenant. An unsupported version is unchanged.
    ///
    /// Omits security schemes that 1.x cannot express: OAuth without a flow. A client that needs one of them is
    /// rejected by the agent. `state_transition_history` is lost.
    fn from(card: AgentCard) -> Self {
        let protocol_version = match Version::parse(&card.protocol_version) {
            Ok(version) => version.as_str().to_owned(),
            Err(_) => card.protocol_version,
        };
        let first = types::AgentInterface {
            url: card.url,
            protocol_binding: card.preferred_transport.unwrap_or_else(|| types::TRANSPORT_PROTOCOL_JSONRPC.to_owned()),
            protocol_version: protocol_version.clone(),
            tenant: None,
        };
        let mut interfaces = vec![first];
        for (place, interface) in card.additional_interfaces.into_iter().flatten().enumerate() {
            let repeats = place == 0
                && interfaces
                    .iter()
                    .any(|first| first.url == interface.url && first.protocol_binding == interface.transport);
            if !repeats {
                interfaces.push(types::AgentInterface {
                    url: interface.url,
                    protocol_binding: interface.transport,
                    protocol_version: protocol_version.clone(),
                    tenant: None,
                });
            }
        }
        let expressible = |(name, scheme)| Some((name, types::SecurityScheme::try_from(scheme).ok()?));
        Self {
            name: card.name,
            description: card.description,
            version: card.version,
            supported_interfaces: interfaces,
            capabilities: types::AgentCapabilities {
                streaming: card.capabilities.streaming,
                push_notifications: card.capabilities.push_notifications,
                extensions: card.capabilities.extensions,
                extended_agent_card: card.supports_authenticated_extended_card,
            },
            default_input_modes: card.default_input_modes,
            default_output_modes: card.default_output_modes,
            skills: into_all(card.skills),
            provider: card.provider,
            documentation_url: card.documentation_url,
            icon_url: card.icon_url,
            security_schemes: card
                .security_schemes
                .map(|schemes| schemes.into_iter().filter_map(expressible).collect()),
            security_requirements: card.security,
            signatures: card.signatures,
        }
    }
}

impl From<types::AgentInterface> for AgentInterface {
    fn from(interface: types::AgentInterface) -> Self {
        let url = interface.wire_url();
        let url = if interface.protocol_binding == GRPC { grpc_address(url) } else { url };
        Self { url, transport: interface.protocol_binding }
    }
}

/// The name of the gRPC binding.
const GRPC: &str = "GRPC";

/// Returns a gRPC address that all clients of 0.3 accept. Some parse it as a URL, and some pass it to gRPC unchanged.
/// An IPv4 address with a port becomes `dns://ADDRESS/ADDRESS`, which works for both. `localhost` with a port counts as
/// `127.0.0.1`. Other addresses are unchanged.
fn grpc_address(address: String) -> String {
    let number = match address.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => address.clone(),
    };
    match number.parse::<SocketAddrV4>() {
        Ok(_) => format!("dns://{number}/{number}"),
        Err(_) => address,
    }
}

/// Returns the declared support of an extended card, or `None` if the card does not declare it. Returns false without
/// security schemes, because no caller can authenticate.
pub(crate) fn has_extended(card: &types::AgentCard) -> Option<bool> {
    let known = card.security_schemes.as_ref().is_some_and(|schemes| !schemes.is_empty());
    card.capabilities.extended_agent_card.map(|has| has && known)
}

impl From<types::AgentCapabilities> for AgentCapabilities {
    /// Converts the capabilities of 1.x. The extended card is a field of the card in 0.3, and is left out here.
    fn from(capabilities: types::AgentCapabilities) -> Self {
        Self {
            streaming: capabilities.streaming,
            push_notifications: capabilities.push_notifications,
            state_transition_history: None,
            extensions: capabilities.extensions,
        }
    }
}

impl From<types::AgentSkill> for AgentSkill {
    /// Converts a skill of 1.x. The security requirements become `security`; all other fields are the same.
    fn from(skill: types::AgentSkill) -> Self {
        Self {
            id: skill.id,
            name: skill.name,
            description: skill.description,
            tags: skill.tags,
            examples: skill.examples,
            input_modes: skill.input_modes,
            output_modes: skill.output_modes,
            security: skill.security_requirements,
        }
    }
}

impl From<AgentSkill> for types::AgentSkill {
    /// Converts a skill of 0.3. `security` becomes the security requirements; all other fields are the same.
    fn from(skill: AgentSkill) -> Self {
        Self {
            id: skill.id,
            name: skill.name,
            description: skill.description,
            tags: skill.tags,
            examples: skill.examples,
            input_modes: skill.input_modes,
            output_modes: skill.output_modes,
            security_requirements: skill.security,
        }
    }
}
