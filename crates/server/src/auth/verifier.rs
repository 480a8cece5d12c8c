//! Verifies tokens: signature, lifetime, issuer, audience.
//!
//! The algorithm decides which keys are tried. HS256 is verified only with the shared secrets; RS256, ES256 and EdDSA
//! only with the published public keys. So a token cannot pass a public key off as a shared secret.

use std::sync::Arc;

use jiff::tz::TimeZone;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use model::text::hex;
use model::{User, UserId};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::jwks::Jwks;
use crate::settings::AuthSettings;

/// The accepted difference between the clocks of issuer and server.
const CLOCK_SKEW_SECONDS: u64 = 60;

/// Verifies tokens by the settings of `[auth]`.
pub(crate) struct Verifier {
    /// The shared secret, and the previous one during a rotation.
    secrets: Vec<DecodingKey>,
    jwks: Option<Arc<Jwks>>,
    issuer: Option<String>,
    audience: Option<String>,
}

/// The claims of a token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Claims {
    pub(crate) sub: UserId,
    /// The expiry, in seconds since 1970.
    pub(crate) exp: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) iat: Option<i64>,
    /// The id of the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) jti: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) iss: Option<String>,
    /// One audience or several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) aud: Option<serde_json::Value>,
    /// Names separated by spaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scope: Option<String>,
    /// The name of the user, for people who read the token. The server does not use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) preferred_username: Option<String>,
    /// The time zone of the user, as an IANA name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) zoneinfo: Option<String>,
}

impl Verifier {
    /// Creates a verifier. It reuses `known_keys` if they belong to the configured URL. Otherwise the keys are fetched
    /// on first use. Without a secret and a URL it accepts no token.
    pub(crate) fn new(auth: AuthSettings, known_keys: Option<Arc<Jwks>>) -> Self {
        let jwks = auth.jwks_url.map(|url| match known_keys {
            Some(known) if known.url() == url => known,
            _ => Arc::new(Jwks::new(url)),
        });
        Self {
            secrets: [auth.secret, auth.previous_secret]
                .iter()
                .flatten()
                .map(|secret| DecodingKey::from_secret(secret.expose_secret().as_bytes()))
                .collect(),
            jwks,
            issuer: auth.issuer,
            audience: auth.audience,
        }
    }

    pub(crate) fn jwks(&self) -> Option<Arc<Jwks>> {
        self.jwks.clone()
    }

    /// Returns the claims of a valid token. HS256 needs the shared secret or the previous one; RS256, ES256 and EdDSA need the configured
    /// URL of keys. Returns `None` if the token is malformed, has critical extensions (`crit`), has another algorithm,
    /// has no known key, or breaks a rule of [`Verifier::decode`]. May wait for a fetch of the keys. Revocations are
    /// not checked.
    pub(crate) async fn verify(&self, token: &str) -> Option<Claims> {
        // RFC 7515: a token with critical extensions that the verifier does not support must be rejected.
        let header = decode_header(token).ok().filter(|header| header.crit.is_none())?;
        match (header.alg, &self.jwks) {
            (Algorithm::HS256, _) => {
                self.secrets.iter().find_map(|secret| self.decode(token, secret, Algorithm::HS256))
            }
            (alg @ (Algorithm::RS256 | Algorithm::ES256 | Algorithm::EdDSA), Some(jwks)) => {
                let key = jwks.key(header.kid.as_deref(), alg).await?;
                self.decode(token, &key, alg)
            }
            _ => None,
        }
    }

    /// Returns the claims if the signature is valid, and `exp` and `nbf` allow the current time within 60 seconds.
    /// `exp` and a `sub` that is a user id are required. The issuer and the audience must be the configured ones.
    /// Without a configured issuer or audience, that claim is not checked.
    fn decode(&self, token: &str, key: &DecodingKey, algorithm: Algorithm) -> Option<Claims> {
        let mut rules = Validation::new(algorithm);
        rules.leeway = CLOCK_SKEW_SECONDS;
        rules.validate_nbf = true;
        let mut required = vec!["exp", "sub"];
        if let Some(issuer) = &self.issuer {
            rules.set_issuer(&[issuer]);
            required.push("iss");
        }
        match &self.audience {
            Some(audience) => {
                rules.set_audience(&[audience]);
                required.push("aud");
            }
            None => rules.validate_aud = false,
        }
        rules.set_required_spec_claims(&required);
        decode::<Claims>(token, key, &rules).ok().map(|data| data.claims)
    }
}

impl Claims {
    /// Returns the claims of a token without verifying it. Returns `None` if it is not a token.
    pub(crate) fn unverified(token: &str) -> Option<Self> {
        jsonwebtoken::dangerous::insecure_decode(token).ok().map(|data| data.claims)
    }

    /// Returns the user of the token, with the scopes of its `scope`, separated by whitespace. `default_zone` applies
    /// if the token has no known time zone.
    pub(crate) fn user(&self, default_zone: &TimeZone) -> User {
        let zone = self.zoneinfo.as_deref().and_then(|name| TimeZone::get(name).ok());
        User {
            id: self.sub,
            scopes: self.scope.as_deref().unwrap_or_default().split_whitespace().map(str::to_owned).collect(),
            time_zone: zone.unwrap_or_else(|| default_zone.clone()),
        }
    }

    /// Returns the id for a revocation of this token. It is derived from the `jti`, or from the token if it has none.
    pub(crate) fn revocation_id(&self, token: &str) -> String {
        revocation_id(self.sub, self.jti.as_deref().unwrap_or(token))
    }
}

/// Returns the id for a revocation: a digest of fixed length. It includes the user, so that a guessed `jti` cannot
/// revoke the token of a different user.
pub(crate) fn revocation_id(user: UserId, jti: &str) -> String {
    hex(&Sha256::digest(format!("{user}:{jti}")))
}
