//! Cards in `a2a.v1`. Which address is the first, and which version it speaks, is decided as for cards in JSON.

use crate::{Error, types, v03 as json};

use super::cards::{from_requirements, from_schemes, to_requirements, to_schemes};
use super::v03::{AgentCapabilities, AgentCard, AgentInterface};
use super::{all, list, some, some_of, yes};

impl From<types::AgentCard> for AgentCard {
    fn from(mut card: types::AgentCard) -> Self {
        let has_extended = json::has_extended(&card);
        let security_schemes = from_schemes(card.security_schemes.take());
        let capabilities = AgentCapabilities {
            streaming: card.capabilities.streaming.unwrap_or_default(),
            push_notifications: card.capabilities.push_notifications.unwrap_or_default(),
            extensions: list(card.capabilities.extensions.take().unwrap_or_default()),
        };
        let skills = list(std::mem::take(&mut card.skills));
        let card = json::AgentCard::from(card);
        let interface =
            |interface: json::AgentInterface| AgentInterface { url: interface.url, transport: interface.transport };
        Self {
            name: card.name,
            description: card.description,
            url: card.url,
            provider: card.provider.map(Into::into),
            version: card.version,
            documentation_url: card.documentation_url.unwrap_or_default(),
            capabilities: Some(capabilities),
            security_schemes,
            security: from_requirements(card.security),
            default_input_modes: card.default_input_modes,
            default_output_modes: card.default_output_modes,
            skills,
            supports_authenticated_extended_card: has_extended.unwrap_or_default(),
            preferred_transport: card.preferred_transport.unwrap_or_default(),
            additional_interfaces: card.additional_interfaces.into_iter().flatten().map(interface).collect(),
            protocol_version: card.protocol_version,
            signatures: list(card.signatures.unwrap_or_default()),
            icon_url: card.icon_url.unwrap_or_default(),
        }
    }
}

impl TryFrom<AgentCard> for types::AgentCard {
    type Error = Error;

    fn try_from(card: AgentCard) -> Result<Self, Error> {
        let capabilities = card.capabilities.unwrap_or_default();
        let extensions = all(capabilities.extensions, "capabilities.extensions")?;
        let interface =
            |interface: AgentInterface| json::AgentInterface { url: interface.url, transport: interface.transport };
        let said = Self::from(json::AgentCard {
            name: card.name,
            description: card.description,
            version: card.version,
            protocol_version: card.protocol_version,
            url: card.url,
            preferred_transport: some(card.preferred_transport),
            additional_interfaces: Some(card.additional_interfaces.into_iter().map(interface).collect()),
            capabilities: json::AgentCapabilities {
                streaming: yes(capabilities.streaming),
                push_notifications: yes(capabilities.push_notifications),
                state_transition_history: None,
                extensions: some_of(extensions),
            },
            default_input_modes: card.default_input_modes,
            default_output_modes: card.default_output_modes,
            skills: Vec::new(),
            provider: card.provider.map(Into::into),
            documentation_url: some(card.documentation_url),
            icon_url: some(card.icon_url),
            security_schemes: None,
            security: to_requirements(card.security),
            supports_authenticated_extended_card: yes(card.supports_authenticated_extended_card),
            signatures: some_of(all(card.signatures, "signatures")?),
        });
        Ok(Self { skills: list(card.skills), security_schemes: to_schemes(card.security_schemes)?, ..said })
    }
}
