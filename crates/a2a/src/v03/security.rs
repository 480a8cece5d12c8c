//! Security schemes.

use serde::{Deserialize, Serialize};

use crate::{Error, types};

/// A security scheme. `type` names its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum SecurityScheme {
    #[serde(rename = "apiKey")]
    ApiKey {
        /// `cookie`, `header` or `query`.
        #[serde(rename = "in")]
        location: String,
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    #[serde(rename = "http")]
    Http {
        scheme: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bearer_format: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    #[serde(rename = "oauth2")]
    OAuth2 {
        flows: Box<OAuthFlows>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        oauth2_metadata_url: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    #[serde(rename = "openIdConnect")]
    OpenIdConnect {
        open_id_connect_url: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    #[serde(rename = "mutualTLS")]
    MutualTls {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
}

/// The supported OAuth flows. The flows themselves are the same in both versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OAuthFlows {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_code: Option<types::AuthorizationCodeOAuthFlow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_credentials: Option<types::ClientCredentialsOAuthFlow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implicit: Option<types::ImplicitOAuthFlow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<types::PasswordOAuthFlow>,
}

impl From<types::SecurityScheme> for SecurityScheme {
    /// Converts a scheme of 1.x. An OAuth scheme with a device code has no flow then, and the PKCE flag is lost. All
    /// other fields are kept.
    fn from(scheme: types::SecurityScheme) -> Self {
        match scheme {
            types::SecurityScheme::ApiKey(types::ApiKeySecurityScheme { location, name, description }) => {
                Self::ApiKey { location, name, description }
            }
            types::SecurityScheme::HttpAuth(types::HttpAuthSecurityScheme { scheme, description, bearer_format }) => {
                Self::Http { scheme, bearer_format, description }
            }
            types::SecurityScheme::OAuth2(scheme) => {
                let types::OAuth2SecurityScheme { flows, description, oauth2_metadata_url } = scheme;
                Self::OAuth2 { flows: Box::new(flows.into()), oauth2_metadata_url, description }
            }
            types::SecurityScheme::OpenIdConnect(scheme) => {
                let types::OpenIdConnectSecurityScheme { open_id_connect_url, description } = scheme;
                Self::OpenIdConnect { open_id_connect_url, description }
            }
            types::SecurityScheme::MutualTls(types::MutualTlsSecurityScheme { description }) => {
                Self::MutualTls { description }
            }
        }
    }
}

impl TryFrom<SecurityScheme> for types::SecurityScheme {
    type Error = Error;

    /// Converts a scheme of 0.3. Of several OAuth flows only one is kept, in this order of preference: authorization
    /// code, client credentials, implicit, password. Fails only if an OAuth scheme has no flow.
    fn try_from(scheme: SecurityScheme) -> Result<Self, Error> {
        Ok(match scheme {
            SecurityScheme::ApiKey { location, name, description } => {
                Self::ApiKey(types::ApiKeySecurityScheme { location, name, description })
            }
            SecurityScheme::Http { scheme, bearer_format, description } => {
                Self::HttpAuth(types::HttpAuthSecurityScheme { scheme, description, bearer_format })
            }
            SecurityScheme::OAuth2 { flows, oauth2_metadata_url, description } => {
                let flows = types::OAuthFlows::try_from(*flows)?;
                Self::OAuth2(types::OAuth2SecurityScheme { flows, description, oauth2_metadata_url })
            }
            SecurityScheme::OpenIdConnect { open_id_connect_url, description } => {
                Self::OpenIdConnect(types::OpenIdConnectSecurityScheme { open_id_connect_url, description })
            }
            SecurityScheme::MutualTls { description } => {
                Self::MutualTls(types::MutualTlsSecurityScheme { description })
            }
        })
    }
}

impl From<types::OAuthFlows> for OAuthFlows {
    /// Converts the only flow of 1.x. Omits device codes and the PKCE flag, which 0.3 does not have. A device code
    /// results in no flow.
    fn from(flows: types::OAuthFlows) -> Self {
        let none = Self::default();
        match flows {
            types::OAuthFlows::AuthorizationCode(flow) => {
                let flow = types::AuthorizationCodeOAuthFlow { pkce_required: None, ..flow };
                Self { authorization_code: Some(flow), ..none }
            }
            types::OAuthFlows::ClientCredentials(flow) => Self { client_credentials: Some(flow), ..none },
            types::OAuthFlows::Implicit(flow) => Self { implicit: Some(flow), ..none },
            types::OAuthFlows::Password(flow) => Self { password: Some(flow), ..none },
            types::OAuthFlows::DeviceCode(_) => none,
        }
    }
}

impl TryFrom<OAuthFlows> for types::OAuthFlows {
    type Error = Error;

    /// Selects one flow, because 1.x has only one. The order of preference is: authorization code, client credentials,
    /// implicit, password. Fails if there is none.
    fn try_from(flows: OAuthFlows) -> Result<Self, Error> {
        let code = flows.authorization_code.map(Self::AuthorizationCode);
        code.or_else(|| flows.client_credentials.map(Self::ClientCredentials))
            .or_else(|| flows.implicit.map(Self::Implicit))
            .or_else(|| flows.password.map(Self::Password))
            .ok_or_else(|| Error::invalid("flows", "must contain a flow"))
    }
}
