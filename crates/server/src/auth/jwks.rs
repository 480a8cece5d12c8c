//! The issuer's public keys, fetched when they are needed and kept while they are good.
//!
//! An unknown `kid` makes it look again (the issuer has changed keys), at most once in [`COOLDOWN`], so that forged
//! tokens cannot turn the server against the issuer. While the issuer cannot be reached the keys last seen still count.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use jsonwebtoken::jwk::{AlgorithmParameters, Jwk};
use jsonwebtoken::{Algorithm, DecodingKey};
use tokio::sync::Mutex;

const KEPT: Duration = Duration::from_secs(600);
const COOLDOWN: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(5);
const MAX_BYTES: usize = 1024 * 1024;

pub(crate) struct Jwks {
    url: String,
    client: reqwest::Client,
    keys: RwLock<Keys>,
    /// Held by the one who fetches; when that ended last.
    fetching: Mutex<Option<Instant>>,
}

#[derive(Clone, Default)]
struct Keys {
    list: Arc<Vec<Jwk>>,
    fetched: Option<Instant>,
}

impl Jwks {
    pub(crate) fn new(url: String) -> Self {
        let client = reqwest::Client::builder().timeout(PATIENCE).redirect(reqwest::redirect::Policy::none()).build();
        Self { url, client: client.unwrap_or_default(), keys: RwLock::default(), fetching: Mutex::default() }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The key a token names, if it may be used with that algorithm. Whoever brings a known key never waits.
    pub(crate) async fn key(self: &Arc<Self>, kid: Option<&str>, algorithm: Algorithm) -> Option<DecodingKey> {
        let keys = self.known();
        if let Some(key) = find(&keys.list, kid, algorithm) {
            if keys.fetched.is_none_or(|at| at.elapsed() >= KEPT) {
                let jwks = self.clone();
                tokio::spawn(async move { jwks.refresh().await });
            }
            return DecodingKey::from_jwk(key).ok();
        }
        self.refresh().await;
        find(&self.known().list, kid, algorithm).and_then(|key| DecodingKey::from_jwk(key).ok())
    }

    fn known(&self) -> Keys {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fetches the keys, unless that was done a moment ago; those who come meanwhile wait for the one who does it.
    async fn refresh(&self) {
        let mut ended = self.fetching.lock().await;
        if ended.is_some_and(|at| at.elapsed() < COOLDOWN) {
            return;
        }
        match self.fetch().await {
            Ok(list) => {
                let keys = Keys { list: Arc::new(list), fetched: Some(Instant::now()) };
                *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
            }
            Err(error) => tracing::warn!(url = self.url, error, "the keys of the token issuer were not fetched"),
        }
        *ended = Some(Instant::now());
    }

    async fn fetch(&self) -> Result<Vec<Jwk>, String> {
        let answer = self.client.get(&self.url).send().await.and_then(reqwest::Response::error_for_status);
        let body = answer.map_err(|e| e.to_string())?.bytes().await.map_err(|e| e.to_string())?;
        if body.len() > MAX_BYTES {
            return Err("the answer is too large".to_owned());
        }
        // One key that we cannot read must not hide the others.
        let set: serde_json::Value = serde_json::from_slice(&body).map_err(|e| e.to_string())?;
        let keys = set["keys"].as_array().ok_or("the answer has no keys")?;
        Ok(keys.iter().filter_map(|key| serde_json::from_value(key.clone()).ok()).collect())
    }
}

/// By `kid`; without one, the only key that fits.
fn find<'a>(keys: &'a [Jwk], kid: Option<&str>, algorithm: Algorithm) -> Option<&'a Jwk> {
    let mut fitting = keys.iter().filter(|key| fits(key, algorithm));
    match kid {
        Some(kid) => fitting.find(|key| key.common.key_id.as_deref() == Some(kid)),
        None => fitting.next().filter(|_| fitting.next().is_none()),
    }
}

fn fits(key: &Jwk, algorithm: Algorithm) -> bool {
    let kind = match &key.algorithm {
        AlgorithmParameters::RSA(_) => Algorithm::RS256,
        AlgorithmParameters::EllipticCurve(_) => Algorithm::ES256,
        AlgorithmParameters::OctetKeyPair(_) => Algorithm::EdDSA,
        _ => return false,
    };
    let named = key.common.key_algorithm.is_none_or(|named| named.to_string() == format!("{algorithm:?}"));
    kind == algorithm && named
}
