//! Creates tokens with the shared secret, for the operator.

use std::time::Duration;

use jiff::Timestamp;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use model::{Clock, UserId};
use secrecy::ExposeSecret;

use super::verifier::Claims;
use crate::settings::AuthSettings;

/// The contents of a token to create.
#[derive(Clone, Debug)]
pub struct TokenRequest {
    pub user: UserId,
    /// The name that the id was derived from.
    pub user_name: Option<String>,
    pub ttl: Duration,
    pub scopes: Vec<String>,
    pub time_zone: Option<String>,
}

/// A new token with its id and its expiry.
#[derive(Clone, Debug)]
pub struct MintedToken {
    pub token: String,
    pub id: String,
    pub expires_at: Timestamp,
}

/// Creates a token that is signed with HS256, with a new id. It expires after `ttl` and has the configured issuer and
/// audience. Empty scopes and a missing time zone are omitted. Nothing is stored.
///
/// Returns `None` without a shared secret, because only the issuer can sign tokens of a JWKS, or if the signature
/// fails.
pub fn mint(auth: &AuthSettings, request: &TokenRequest, clock: &Clock) -> Option<MintedToken> {
    let secret = auth.secret.as_ref()?;
    let now = clock.now();
    let id = clock.id().to_string();
    let expires_at = now + request.ttl;
    let claims = Claims {
        sub: request.user,
        exp: expires_at.as_second(),
        iat: Some(now.as_second()),
        jti: Some(id.clone()),
        iss: auth.issuer.clone(),
        aud: auth.audience.clone().map(Into::into),
        scope: (!request.scopes.is_empty()).then(|| request.scopes.join(" ")),
        preferred_username: request.user_name.clone(),
        zoneinfo: request.time_zone.clone(),
    };
    let key = EncodingKey::from_secret(secret.expose_secret().as_bytes());
    let token = encode(&Header::new(Algorithm::HS256), &claims, &key).ok()?;
    Some(MintedToken { token, id, expires_at })
}
