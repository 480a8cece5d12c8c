//! Cards in `lf.a2a.v1`, and the pieces of them that both packages write alike.

use std::collections::HashMap;

use crate::{Error, types};

use super::shared::{
    AgentCardSignature, AgentExtension, AgentProvider, AgentSkill, ApiKeySecurityScheme, AuthorizationCodeOAuthFlow,
    ClientCredentialsOAuthFlow, DeviceCodeOAuthFlow, Flow, HttpAuthSecurityScheme, ImplicitOAuthFlow,
    MutualTlsSecurityScheme, OAuth2SecurityScheme, OAuthFlows, OpenIdConnectSecurityScheme, PasswordOAuthFlow, Scheme,
    SecurityRequirement, SecurityScheme, StringList,
};
use super::v1::{AgentCapabilities, AgentCard, AgentInterface};
use super::values::{from_map, to_map};
use super::{all, list, must, some, some_of, yes};

impl From<types::AgentCard> for AgentCard {
    fn from(card: types::AgentCard) -> Self {
        Self {
            name: card.name,
            description: card.description,
            supported_interfaces: list(card.supported_interfaces),
            provider: card.provider.map(Into::into),
            version: card.version,
            documentation_url: card.documentation_url,
            capabilities: Some(card.capabilities.into()),
            security_schemes: from_schemes(card.security_schemes),
            security_requirements: from_requirements(card.security_requirements),
            default_input_modes: card.default_input_modes,
            default_output_modes: card.default_output_modes,
            skills: list(card.skills),
            signatures: list(card.signatures.unwrap_or_default()),
            icon_url: card.icon_url,
        }
    }
}

impl TryFrom<AgentCard> for types::AgentCard {
    type Error = Error;

    fn try_from(card: AgentCard) -> Result<Self, Error> {
        Ok(Self {
            name: card.name,
            description: card.description,
            version: card.version,
            supported_interfaces: list(card.supported_interfaces),
            capabilities: super::one(card.capabilities, "capabilities")?.unwrap_or_default(),
            default_input_modes: card.default_input_modes,
            default_output_modes: card.default_output_modes,
            skills: list(card.skills),
            provider: card.provider.map(Into::into),
            documentation_url: card.documentation_url,
            icon_url: card.icon_url,
            security_schemes: to_schemes(card.security_schemes)?,
            security_requirements: to_requirements(card.security_requirements),
            signatures: some_of(all(card.signatures, "signatures")?),
        })
    }
}

impl From<types::AgentInterface> for AgentInterface {
    fn from(interface: types::AgentInterface) -> Self {
        Self {
            url: interface.url,
            protocol_binding: interface.protocol_binding,
            tenant: interface.tenant.unwrap_or_default(),
            protocol_version: interface.protocol_version,
        }
    }
}

impl From<AgentInterface> for types::AgentInterface {
    fn from(interface: AgentInterface) -> Self {
        Self {
            url: interface.url,
            protocol_binding: interface.protocol_binding,
            protocol_version: interface.protocol_version,
            tenant: some(interface.tenant),
        }
    }
}

impl From<types::AgentCapabilities> for AgentCapabilities {
    fn from(capabilities: types::AgentCapabilities) -> Self {
        Self {
            streaming: capabilities.streaming,
            push_notifications: capabilities.push_notifications,
            extensions: list(capabilities.extensions.unwrap_or_default()),
            extended_agent_card: capabilities.extended_agent_card,
        }
    }
}

impl TryFrom<AgentCapabilities> for types::AgentCapabilities {
    type Error = Error;

    fn try_from(capabilities: AgentCapabilities) -> Result<Self, Error> {
        Ok(Self {
            streaming: capabilities.streaming,
            push_notifications: capabilities.push_notifications,
            extensions: some_of(all(capabilities.extensions, "extensions")?),
            extended_agent_card: capabilities.extended_agent_card,
        })
    }
}

impl From<types::AgentProvider> for AgentProvider {
    fn from(provider: types::AgentProvider) -> Self {
        Self { url: provider.url, organization: provider.organization }
    }
}

impl From<AgentProvider> for types::AgentProvider {
    fn from(provider: AgentProvider) -> Self {
        Self { organization: provider.organization, url: provider.url }
    }
}

impl From<types::AgentExtension> for AgentExtension {
    fn from(extension: types::AgentExtension) -> Self {
        Self {
            uri: extension.uri,
            description: extension.description.unwrap_or_default(),
            required: extension.required.unwrap_or_default(),
            params: extension.params.map(from_map),
        }
    }
}

impl TryFrom<AgentExtension> for types::AgentExtension {
    type Error = Error;

    fn try_from(extension: AgentExtension) -> Result<Self, Error> {
        Ok(Self {
            uri: extension.uri,
            description: some(extension.description),
            required: yes(extension.required),
            params: to_map(extension.params, "params")?,
        })
    }
}

impl From<types::AgentSkill> for AgentSkill {
    fn from(skill: types::AgentSkill) -> Self {
        Self {
            id: skill.id,
            name: skill.name,
            description: skill.description,
            tags: skill.tags,
            examples: skill.examples.unwrap_or_default(),
            input_modes: skill.input_modes.unwrap_or_default(),
            output_modes: skill.output_modes.unwrap_or_default(),
            security_requirements: from_requirements(skill.security_requirements),
        }
    }
}

impl From<AgentSkill> for types::AgentSkill {
    fn from(skill: AgentSkill) -> Self {
        Self {
            id: skill.id,
            name: skill.name,
            description: skill.description,
            tags: skill.tags,
            examples: some_of(skill.examples),
            input_modes: some_of(skill.input_modes),
            output_modes: some_of(skill.output_modes),
            security_requirements: to_requirements(skill.security_requirements),
        }
    }
}

impl From<types::AgentCardSignature> for AgentCardSignature {
    fn from(signature: types::AgentCardSignature) -> Self {
        Self { protected: signature.protected, signature: signature.signature, header: signature.header.map(from_map) }
    }
}

impl TryFrom<AgentCardSignature> for types::AgentCardSignature {
    type Error = Error;

    fn try_from(signature: AgentCardSignature) -> Result<Self, Error> {
        Ok(Self {
            protected: signature.protected,
            signature: signature.signature,
            header: to_map(signature.header, "header")?,
        })
    }
}

pub(super) fn from_requirements(requirements: Option<Vec<types::SecurityRequirement>>) -> Vec<SecurityRequirement> {
    let convert = |requirement: types::SecurityRequirement| {
        let schemes = requirement.into_iter().map(|(name, list)| (name, StringList { list }));
        SecurityRequirement { schemes: schemes.collect() }
    };
    requirements.unwrap_or_default().into_iter().map(convert).collect()
}

pub(super) fn to_requirements(requirements: Vec<SecurityRequirement>) -> Option<Vec<types::SecurityRequirement>> {
    let convert = |requirement: SecurityRequirement| {
        requirement.schemes.into_iter().map(|(name, scopes)| (name, scopes.list)).collect()
    };
    some_of(requirements.into_iter().map(convert).collect())
}

pub(super) fn from_schemes(schemes: Option<HashMap<String, types::SecurityScheme>>) -> HashMap<String, SecurityScheme> {
    schemes.unwrap_or_default().into_iter().map(|(name, scheme)| (name, scheme.into())).collect()
}

pub(super) fn to_schemes(
    schemes: HashMap<String, SecurityScheme>,
) -> Result<Option<HashMap<String, types::SecurityScheme>>, Error> {
    let convert = |(name, scheme): (String, SecurityScheme)| {
        let scheme = scheme.try_into().map_err(|error: Error| error.inside(&format!("securitySchemes.{name}")))?;
        Ok::<_, Error>((name, scheme))
    };
    let schemes: HashMap<_, _> = schemes.into_iter().map(convert).collect::<Result<_, _>>()?;
    Ok(Some(schemes).filter(|schemes| !schemes.is_empty()))
}

impl From<types::SecurityScheme> for SecurityScheme {
    fn from(scheme: types::SecurityScheme) -> Self {
        let scheme = match scheme {
            types::SecurityScheme::ApiKey(scheme) => Scheme::ApiKey(ApiKeySecurityScheme {
                description: scheme.description.unwrap_or_default(),
                location: scheme.location,
                name: scheme.name,
            }),
            types::SecurityScheme::HttpAuth(scheme) => Scheme::HttpAuth(HttpAuthSecurityScheme {
                description: scheme.description.unwrap_or_default(),
                scheme: scheme.scheme,
                bearer_format: scheme.bearer_format.unwrap_or_default(),
            }),
            types::SecurityScheme::OAuth2(scheme) => Scheme::OAuth2(OAuth2SecurityScheme {
                description: scheme.description.unwrap_or_default(),
                flows: Some(scheme.flows.into()),
                oauth2_metadata_url: scheme.oauth2_metadata_url.unwrap_or_default(),
            }),
            types::SecurityScheme::OpenIdConnect(scheme) => Scheme::OpenIdConnect(OpenIdConnectSecurityScheme {
                description: scheme.description.unwrap_or_default(),
                open_id_connect_url: scheme.open_id_connect_url,
            }),
            types::SecurityScheme::MutualTls(scheme) => {
                Scheme::MutualTls(MutualTlsSecurityScheme { description: scheme.description.unwrap_or_default() })
            }
        };
        Self { scheme: Some(scheme) }
    }
}

impl TryFrom<SecurityScheme> for types::SecurityScheme {
    type Error = Error;

    fn try_from(scheme: SecurityScheme) -> Result<Self, Error> {
        Ok(match scheme.scheme.ok_or_else(|| Error::invalid("scheme", "is none of those there are"))? {
            Scheme::ApiKey(scheme) => Self::ApiKey(types::ApiKeySecurityScheme {
                location: scheme.location,
                name: scheme.name,
                description: some(scheme.description),
            }),
            Scheme::HttpAuth(scheme) => Self::HttpAuth(types::HttpAuthSecurityScheme {
                scheme: scheme.scheme,
                description: some(scheme.description),
                bearer_format: some(scheme.bearer_format),
            }),
            Scheme::OAuth2(scheme) => Self::OAuth2(types::OAuth2SecurityScheme {
                flows: must(scheme.flows, "flows")?,
                description: some(scheme.description),
                oauth2_metadata_url: some(scheme.oauth2_metadata_url),
            }),
            Scheme::OpenIdConnect(scheme) => Self::OpenIdConnect(types::OpenIdConnectSecurityScheme {
                open_id_connect_url: scheme.open_id_connect_url,
                description: some(scheme.description),
            }),
            Scheme::MutualTls(scheme) => {
                Self::MutualTls(types::MutualTlsSecurityScheme { description: some(scheme.description) })
            }
        })
    }
}

impl From<types::OAuthFlows> for OAuthFlows {
    fn from(flows: types::OAuthFlows) -> Self {
        let flow = match flows {
            types::OAuthFlows::AuthorizationCode(flow) => Flow::AuthorizationCode(AuthorizationCodeOAuthFlow {
                authorization_url: flow.authorization_url,
                token_url: flow.token_url,
                refresh_url: flow.refresh_url.unwrap_or_default(),
                scopes: flow.scopes,
                pkce_required: flow.pkce_required.unwrap_or_default(),
            }),
            types::OAuthFlows::ClientCredentials(flow) => Flow::ClientCredentials(ClientCredentialsOAuthFlow {
                token_url: flow.token_url,
                refresh_url: flow.refresh_url.unwrap_or_default(),
                scopes: flow.scopes,
            }),
            types::OAuthFlows::DeviceCode(flow) => Flow::DeviceCode(DeviceCodeOAuthFlow {
                device_authorization_url: flow.device_authorization_url,
                token_url: flow.token_url,
                refresh_url: flow.refresh_url.unwrap_or_default(),
                scopes: flow.scopes,
            }),
            types::OAuthFlows::Implicit(flow) => Flow::Implicit(ImplicitOAuthFlow {
                authorization_url: flow.authorization_url,
                refresh_url: flow.refresh_url.unwrap_or_default(),
                scopes: flow.scopes,
            }),
            types::OAuthFlows::Password(flow) => Flow::Password(PasswordOAuthFlow {
                token_url: flow.token_url,
                refresh_url: flow.refresh_url.unwrap_or_default(),
                scopes: flow.scopes,
            }),
        };
        Self { flow: Some(flow) }
    }
}

impl TryFrom<OAuthFlows> for types::OAuthFlows {
    type Error = Error;

    fn try_from(flows: OAuthFlows) -> Result<Self, Error> {
        Ok(match flows.flow.ok_or_else(|| Error::invalid("flow", "is none of those there are"))? {
            Flow::AuthorizationCode(flow) => Self::AuthorizationCode(types::AuthorizationCodeOAuthFlow {
                authorization_url: flow.authorization_url,
                token_url: flow.token_url,
                scopes: flow.scopes,
                refresh_url: some(flow.refresh_url),
                pkce_required: yes(flow.pkce_required),
            }),
            Flow::ClientCredentials(flow) => Self::ClientCredentials(types::ClientCredentialsOAuthFlow {
                token_url: flow.token_url,
                scopes: flow.scopes,
                refresh_url: some(flow.refresh_url),
            }),
            Flow::DeviceCode(flow) => Self::DeviceCode(types::DeviceCodeOAuthFlow {
                device_authorization_url: flow.device_authorization_url,
                token_url: flow.token_url,
                scopes: flow.scopes,
                refresh_url: some(flow.refresh_url),
            }),
            Flow::Implicit(flow) => Self::Implicit(types::ImplicitOAuthFlow {
                authorization_url: flow.authorization_url,
                scopes: flow.scopes,
                refresh_url: some(flow.refresh_url),
            }),
            Flow::Password(flow) => Self::Password(types::PasswordOAuthFlow {
                token_url: flow.token_url,
                scopes: flow.scopes,
                refresh_url: some(flow.refresh_url),
            }),
        })
    }
}
