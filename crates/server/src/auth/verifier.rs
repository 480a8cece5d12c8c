//! Checks tokens: signature, lifetime, issuer, audience. The algorithm decides which key may be used, never the token
//! alone: HS256 only ever meets the shared secret, the others only ever meet published public keys.

use std::sync::Arc;

use jiff::tz::TimeZone;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use model::text::hex;
use model::{User, UserId};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::jwks::Jwks;
use crate::settings::Auth;

/// How far the clocks of issuer and server may differ, in seconds.
const SKEW: u64 = 60;

pub(crate) struct Verifier {
    secret: Option<DecodingKey>,
    jwks: Option<Arc<Jwks>>,
    issuer: Option<String>,
    audience: Option<String>,
}

/// What a token says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Claims {
    pub(crate) sub: UserId,
    pub(crate) exp: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) iat: Option<i64>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) zoneinfo: Option<String>,
}

impl Verifier {
    /// Keys that are known already are not fetched again.
    pub(crate) fn new(auth: Auth, known_keys: Option<Arc<Jwks>>) -> Self {
        let jwks = auth.jwks_url.map(|url| match known_keys {
            Some(known) if known.url() == url => known,
            _ => Arc::new(Jwks::new(url)),
        });
        Self {
            secret: auth.secret.map(|secret| DecodingKey::from_secret(secret.expose_secret().as_bytes())),
            jwks,
            issuer: auth.issuer,
            audience: auth.audience,
        }
    }

    pub(crate) fn jwks(&self) -> Option<Arc<Jwks>> {
        self.jwks.clone()
    }

    /// The claims of a token that is valid now; nothing for any other.
    pub(crate) async fn verify(&self, token: &str) -> Option<Claims> {
        let header = decode_header(token).ok()?;
        let claims = match (header.alg, &self.secret, &self.jwks) {
            (Algorithm::HS256, Some(secret), _) => self.decode(token, secret, Algorithm::HS256)?,
            (alg @ (Algorithm::RS256 | Algorithm::ES256 | Algorithm::EdDSA), _, Some(jwks)) => {
                let key = jwks.key(header.kid.as_deref(), alg).await?;
                self.decode(token, &key, alg)?
            }
            _ => return None,
        };
        Some(claims)
    }

    fn decode(&self, token: &str, key: &DecodingKey, algorithm: Algorithm) -> Option<Claims> {
        let mut rules = Validation::new(algorithm);
        rules.leeway = SKEW;
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
    /// What a token says of itself, whoever made it.
    pub(crate) fn unverified(token: &str) -> Option<Self> {
        jsonwebtoken::dangerous::insecure_decode(token).ok().map(|data| data.claims)
    }

    pub(crate) fn user(&self, default_zone: &TimeZone) -> User {
        let zone = self.zoneinfo.as_deref().and_then(|name| TimeZone::get(name).ok());
        User {
            id: self.sub,
            scopes: self.scope.as_deref().unwrap_or_default().split_whitespace().map(str::to_owned).collect(),
            time_zone: zone.unwrap_or_else(|| default_zone.clone()),
        }
    }

    /// What a revocation of this token is filed under: its `jti`, or the token itself where the issuer gives none.
    pub(crate) fn revocation_id(&self, token: &str) -> String {
        revocation_id(self.sub, self.jti.as_deref().unwrap_or(token))
    }
}

/// A digest of one length, whatever the issuer puts into the id. It is unique for its user only: nobody can revoke
/// another's token by guessing.
pub(crate) fn revocation_id(user: UserId, jti: &str) -> String {
    hex(&Sha256::digest(format!("{user}:{jti}")))
}
