//! Makes tokens with the shared secret, for the operator.

use std::time::Duration;

use jiff::Timestamp;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use model::{Clock, UserId};
use secrecy::ExposeSecret;

use super::verifier::Claims;
use crate::settings::Auth;

/// Whom a token is for, and for how long.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub user: UserId,
    pub ttl: Duration,
    pub scopes: Vec<String>,
    pub time_zone: Option<String>,
}

/// A token, and what one needs to know of it.
#[derive(Clone, Debug)]
pub struct Minted {
    pub token: String,
    pub id: String,
    pub expires_at: Timestamp,
}

/// `None` without a secret: tokens of a JWKS are its issuer's to give.
pub fn mint(auth: &Auth, wanted: &Wanted, clock: &Clock) -> Option<Minted> {
    let secret = auth.secret.as_ref()?;
    let now = clock.now();
    let id = clock.id().to_string();
    let expires_at = now + wanted.ttl;
    let claims = Claims {
        sub: wanted.user,
        exp: expires_at.as_second(),
        iat: Some(now.as_second()),
        jti: Some(id.clone()),
        iss: auth.issuer.clone(),
        aud: auth.audience.clone().map(Into::into),
        scope: (!wanted.scopes.is_empty()).then(|| wanted.scopes.join(" ")),
        zoneinfo: wanted.time_zone.clone(),
    };
    let key = EncodingKey::from_secret(secret.expose_secret().as_bytes());
    let token = encode(&Header::new(Algorithm::HS256), &claims, &key).ok()?;
    Some(Minted { token, id, expires_at })
}
