//! Agent cards in both packages. For 0.3, URLs and versions are selected as in the JSON form of cards.

use std::collections::HashMap;

use super::convert::{ProtoField, choice, convert, read};
use super::{v1, v03};
use crate::{Error, types, v03 as json};

/// Converts the messages that are the same in both packages.
macro_rules! convert_common {
    ($package:ident) => {
        convert!($package::AgentProvider = AgentProvider { url, organization });
        convert!($package::AgentExtension = AgentExtension { uri, description, required, params });
        convert!($package::AgentCardSignature = AgentCardSignature { protected, signature, header });
        convert!($package::ApiKeySecurityScheme = ApiKeySecurityScheme { description, location, name });
        convert!($package::HttpAuthSecurityScheme = HttpAuthSecurityScheme { description, scheme, bearer_format });
        convert!($package::OAuth2SecurityScheme = OAuth2SecurityScheme { description, flows, oauth2_metadata_url });
        convert!($package::OpenIdConnectSecurityScheme = OpenIdConnectSecurityScheme {
            description, open_id_connect_url
        });
        convert!($package::MutualTlsSecurityScheme = MutualTlsSecurityScheme { description });
        choice!($package::SecurityScheme.scheme: $package::security_scheme::Scheme = SecurityScheme,
            "has an unknown type" {
                ApiKeySecurityScheme = ApiKey as "apiKeySecurityScheme",
                HttpAuthSecurityScheme = HttpAuth as "httpAuthSecurityScheme",
                Oauth2SecurityScheme = OAuth2 as "oauth2SecurityScheme",
                OpenIdConnectSecurityScheme = OpenIdConnect as "openIdConnectSecurityScheme",
                MtlsSecurityScheme = MutualTls as "mtlsSecurityScheme"
            });
        convert!($package::ClientCredentialsOAuthFlow = ClientCredentialsOAuthFlow { token_url, refresh_url, scopes });
        convert!($package::ImplicitOAuthFlow = ImplicitOAuthFlow { authorization_url, refresh_url, scopes });
        convert!($package::PasswordOAuthFlow = PasswordOAuthFlow { token_url, refresh_url, scopes });
    };
}

convert_common!(v1);
convert_common!(v03);

convert!(
    v1::AgentCard = AgentCard {
        name,
        description,
        supported_interfaces,
        provider,
        version,
        documentation_url,
        capabilities,
        security_schemes,
        security_requirements,
        default_input_modes,
        default_output_modes,
        skills,
        signatures,
        icon_url
    }
);
convert!(v1::AgentInterface = AgentInterface { url, protocol_binding, tenant, protocol_version });
convert!(v1::AgentCapabilities = AgentCapabilities {
    streaming, push_notifications, extensions, extended_agent_card
} or default);
convert!(
    v1::AgentSkill =
        AgentSkill { id, name, description, tags, examples, input_modes, output_modes, security_requirements }
);
convert!(v03::AgentSkill = AgentSkill {
    id, name, description, tags, examples, input_modes, output_modes; security_requirements = security
});

convert!(
    v1::AuthorizationCodeOAuthFlow =
        AuthorizationCodeOAuthFlow { authorization_url, token_url, refresh_url, scopes, pkce_required }
);
convert!(v03::AuthorizationCodeOAuthFlow = AuthorizationCodeOAuthFlow {
    authorization_url, token_url, refresh_url, scopes
} reads { pkce_required: None });
convert!(v1::DeviceCodeOAuthFlow = DeviceCodeOAuthFlow { device_authorization_url, token_url, refresh_url, scopes });
choice!(v1::OAuthFlows.flow: v1::o_auth_flows::Flow = OAuthFlows, "has an unknown type" {
    AuthorizationCode = AuthorizationCode as "authorizationCode",
    ClientCredentials = ClientCredentials as "clientCredentials",
    Implicit = Implicit as "implicit",
    Password = Password as "password",
    DeviceCode = DeviceCode as "deviceCode"
});
choice!(v03::OAuthFlows.flow: v03::o_auth_flows::Flow = OAuthFlows, "has an unknown type" {
    AuthorizationCode = AuthorizationCode as "authorizationCode",
    ClientCredentials = ClientCredentials as "clientCredentials",
    Implicit = Implicit as "implicit",
    Password = Password as "password"
} without DeviceCode);

/// Converts a requirement: the schemes that are required together, each with its scopes.
macro_rules! requirement {
    ($package:ident::$message:ident) => {
        impl ProtoField<$package::$message> for HashMap<String, Vec<String>> {
            fn write(self) -> $package::$message {
                let schemes = self.into_iter().map(|(name, list)| (name, $package::StringList { list }));
                $package::$message { schemes: schemes.collect() }
            }

            fn read(value: $package::$message) -> Result<Self, Error> {
                Ok(value.schemes.into_iter().map(|(name, scopes)| (name, scopes.list)).collect())
            }
        }
    };
}

requirement!(v1::SecurityRequirement);
requirement!(v03::Security);

impl From<types::AgentCard> for v03::AgentCard {
    /// Converts a card to 0.3. Interfaces, URLs and the version are selected as in the JSON form. OAuth schemes with a
    /// device code are left out, because 0.3 does not have them. Without security schemes, a declared extended card
    /// becomes false.
    fn from(mut card: types::AgentCard) -> Self {
        let has_extended = json::has_extended(&card);
        let mut security_schemes: HashMap<_, v03::SecurityScheme> = card.security_schemes.take().write();
        // 0.3 does not have device codes.
        security_schemes.retain(|_, scheme| {
            use v03::security_scheme::Scheme::Oauth2SecurityScheme as OAuth2;
            !matches!(&scheme.scheme, Some(OAuth2(scheme)) if scheme.flows.as_ref().is_none_or(|it| it.flow.is_none()))
        });
        let capabilities = v03::AgentCapabilities {
            streaming: card.capabilities.streaming.write(),
            push_notifications: card.capabilities.push_notifications.write(),
            extensions: card.capabilities.extensions.take().write(),
        };
        let skills = std::mem::take(&mut card.skills).write();
        let card = json::AgentCard::from(card);
        let interface = |interface: json::AgentInterface| v03::AgentInterface {
            url: interface.url,
            transport: interface.transport,
        };
        Self {
            name: card.name,
            description: card.description,
            url: card.url,
            provider: card.provider.write(),
            version: card.version,
            documentation_url: card.documentation_url.write(),
            capabilities: Some(capabilities),
            security_schemes,
            security: card.security.write(),
            default_input_modes: card.default_input_modes,
            default_output_modes: card.default_output_modes,
            skills,
            supports_authenticated_extended_card: has_extended.write(),
            preferred_transport: card.preferred_transport.write(),
            additional_interfaces: card.additional_interfaces.into_iter().flatten().map(interface).collect(),
            protocol_version: card.protocol_version,
            signatures: card.signatures.write(),
            icon_url: card.icon_url.write(),
        }
    }
}

impl TryFrom<v03::AgentCard> for types::AgentCard {
    type Error = Error;

    /// Converts a card of 0.3. Missing capabilities are empty. Fails if a field is invalid: the extensions, the
    /// provider, the skills, the security schemes, the requirements or the signatures. The error names the field.
    /// Unlike in the JSON form, a security scheme without a type or an OAuth scheme without a flow is an error.
    fn try_from(card: v03::AgentCard) -> Result<Self, Error> {
        let capabilities = card.capabilities.unwrap_or_default();
        let interface = |interface: v03::AgentInterface| json::AgentInterface {
            url: interface.url,
            transport: interface.transport,
        };
        let converted = Self::from(json::AgentCard {
            name: card.name,
            description: card.description,
            version: card.version,
            protocol_version: card.protocol_version,
            url: card.url,
            preferred_transport: ProtoField::read(card.preferred_transport)?,
            additional_interfaces: Some(card.additional_interfaces.into_iter().map(interface).collect()),
            capabilities: json::AgentCapabilities {
                streaming: ProtoField::read(capabilities.streaming)?,
                push_notifications: ProtoField::read(capabilities.push_notifications)?,
                state_transition_history: None,
                extensions: read(capabilities.extensions, "extensions")
                    .map_err(|error| error.nested_in("capabilities"))?,
            },
            default_input_modes: card.default_input_modes,
            default_output_modes: card.default_output_modes,
            skills: Vec::new(),
            provider: read(card.provider, "provider")?,
            documentation_url: ProtoField::read(card.documentation_url)?,
            icon_url: ProtoField::read(card.icon_url)?,
            security_schemes: None,
            security: read(card.security, "security")?,
            supports_authenticated_extended_card: ProtoField::read(card.supports_authenticated_extended_card)?,
            signatures: read(card.signatures, "signatures")?,
        });
        Ok(Self {
            skills: read(card.skills, "skills")?,
            security_schemes: read(card.security_schemes, "security_schemes")?,
            ..converted
        })
    }
}
