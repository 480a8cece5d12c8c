//! The public keys of the issuer, fetched on demand and cached.
//!
//! A token with an unknown `kid` causes a new fetch, because the issuer may have rotated its keys. Fetches are at least
//! [`COOLDOWN`] apart, so that forged tokens cannot flood the issuer. While the issuer is unreachable, the cached keys
//! stay valid.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use tokio::sync::Mutex;

/// The age after which the cached keys are fetched again.
const MAX_AGE: Duration = Duration::from_secs(600);
/// The shortest time between two fetches.
const COOLDOWN: Duration = Duration::from_secs(5);
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_BYTES: usize = 1024 * 1024;
/// The shortest modulus of an RSA key, in bits. RFC 7518 requires it.
const MIN_RSA_BITS: usize = 2048;

/// The cached keys of one URL.
pub(crate) struct Jwks {
    url: String,
    client: reqwest::Client,
    keys: RwLock<CachedKeys>,
    /// Locked during a fetch. Contains the time at which the last fetch ended.
    last_fetch: Mutex<Option<Instant>>,
}

#[derive(Clone, Default)]
struct CachedKeys {
    list: Arc<Vec<Jwk>>,
    /// The time of the last successful fetch.
    fetched: Option<Instant>,
}

impl Jwks {
    /// Creates an empty cache. The first lookup fetches the keys.
    pub(crate) fn new(url: String) -> Self {
        let client =
            reqwest::Client::builder().timeout(FETCH_TIMEOUT).redirect(reqwest::redirect::Policy::none()).build();
        Self { url, client: client.unwrap_or_default(), keys: RwLock::default(), last_fetch: Mutex::default() }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the key that a token names, or `None` if no usable key has the `kid` and fits the algorithm. Without a
    /// `kid` the only key that fits is used. A cached key is returned without waiting; if it is older than ten minutes,
    /// a refresh starts in the background. An unknown key waits for a refresh, which is skipped within [`COOLDOWN`].
    pub(crate) async fn key(self: &Arc<Self>, kid: Option<&str>, algorithm: Algorithm) -> Option<DecodingKey> {
        let keys = self.cached();
        if let Some(key) = find(&keys.list, kid, algorithm) {
            if keys.fetched.is_none_or(|at| at.elapsed() >= MAX_AGE) {
                let jwks = self.clone();
                tokio::spawn(async move { jwks.refresh().await });
            }
            return DecodingKey::from_jwk(key).ok();
        }
        self.refresh().await;
        find(&self.cached().list, kid, algorithm).and_then(|key| DecodingKey::from_jwk(key).ok())
    }

    fn cached(&self) -> CachedKeys {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fetches the keys and replaces the cached ones. Has no effect if the last fetch, successful or not, ended less
    /// than [`COOLDOWN`] ago. Concurrent callers wait for one fetch. A failure is logged and keeps the cached keys.
    async fn refresh(&self) {
        let mut ended = self.last_fetch.lock().await;
        if ended.is_some_and(|at| at.elapsed() < COOLDOWN) {
            return;
        }
        match self.fetch().await {
            Ok(list) => {
                let keys = CachedKeys { list: Arc::new(list), fetched: Some(Instant::now()) };
                *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
            }
            Err(error) => tracing::warn!(url = self.url, error, "fetching the keys of the token issuer failed"),
        }
        *ended = Some(Instant::now());
    }

    /// Returns the published keys. Malformed keys are left out. Redirects are not followed. Fails if the request fails
    /// or takes longer than five seconds. Fails if the response has an error status, is larger than 1 MiB, is not JSON,
    /// or has no list of keys.
    async fn fetch(&self) -> Result<Vec<Jwk>, String> {
        let response = self.client.get(&self.url).send().await.and_then(reqwest::Response::error_for_status);
        let mut response = response.map_err(|e| e.to_string())?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| e.to_string())? {
            if body.len() + chunk.len() > MAX_BYTES {
                return Err("the response is too large".to_owned());
            }
            body.extend_from_slice(&chunk);
        }
        // One malformed key must not hide the valid ones.
        let set: serde_json::Value = serde_json::from_slice(&body).map_err(|e| e.to_string())?;
        let keys = set["keys"].as_array().ok_or("the response has no keys")?;
        Ok(keys.iter().filter_map(|key| serde_json::from_value(key.clone()).ok()).collect())
    }
}

/// Returns the key with this `kid`, if it fits the algorithm. Without a `kid`, returns the only key that fits, or
/// `None` if several fit.
fn find<'a>(keys: &'a [Jwk], kid: Option<&str>, algorithm: Algorithm) -> Option<&'a Jwk> {
    let mut fitting = keys.iter().filter(|key| fits(key, algorithm));
    match kid {
        Some(kid) => fitting.find(|key| key.common.key_id.as_deref() == Some(kid)),
        None => fitting.next().filter(|_| fitting.next().is_none()),
    }
}

/// Returns whether the key can verify signatures of the algorithm: RSA with at least [`MIN_RSA_BITS`] for RS256, an
/// elliptic curve for ES256, an octet key pair for EdDSA. If the key names an algorithm, it must be the same. If it
/// names a use, this must be signatures. Other algorithms never fit.
fn fits(key: &Jwk, algorithm: Algorithm) -> bool {
    let kind = match &key.algorithm {
        AlgorithmParameters::RSA(rsa) if modulus_bits(&rsa.n) >= MIN_RSA_BITS => Algorithm::RS256,
        AlgorithmParameters::EllipticCurve(_) => Algorithm::ES256,
        AlgorithmParameters::OctetKeyPair(_) => Algorithm::EdDSA,
        _ => return false,
    };
    let named = key.common.key_algorithm.is_none_or(|named| named.to_string() == format!("{algorithm:?}"));
    let signs = key.common.public_key_use.as_ref().is_none_or(|usage| *usage == PublicKeyUse::Signature);
    kind == algorithm && named && signs
}

/// Returns the length of a modulus in bits, or 0 if it is not base64url.
fn modulus_bits(modulus: &str) -> usize {
    let bytes = URL_SAFE_NO_PAD.decode(modulus).unwrap_or_default();
    let leading_zeros: usize = bytes.iter().take_while(|byte| **byte == 0).count();
    match bytes.get(leading_zeros) {
        Some(first) => (bytes.len() - leading_zeros) * 8 - first.leading_zeros() as usize,
        None => 0,
    }
}
