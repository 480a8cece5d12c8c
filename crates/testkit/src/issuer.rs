//! A token issuer: creates key pairs, signs tokens, and serves a JWKS on loopback that can change or fail.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use axum::routing::get;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

/// A key pair.
#[derive(Clone)]
pub struct SigningKey {
    pub algorithm: Algorithm,
    pub id: String,
    private: EncodingKey,
}

impl SigningKey {
    /// Creates a random key pair. Panics if the algorithm is not RS256, ES256 or EdDSA.
    pub fn new(algorithm: Algorithm, id: &str) -> Self {
        Self::with_rsa_bits(algorithm, id, 2048)
    }

    /// Like [`SigningKey::new`], with an RSA key of this length.
    pub fn with_rsa_bits(algorithm: Algorithm, id: &str, bits: usize) -> Self {
        use p256::pkcs8::{EncodePrivateKey, LineEnding};
        let random = &mut rsa::rand_core::OsRng;
        let private = match algorithm {
            Algorithm::RS256 => {
                let pem = rsa::RsaPrivateKey::new(random, bits).unwrap().to_pkcs8_pem(LineEnding::LF).unwrap();
                EncodingKey::from_rsa_pem(pem.as_bytes()).unwrap()
            }
            Algorithm::ES256 => {
                let pem = p256::SecretKey::random(random).to_pkcs8_pem(LineEnding::LF).unwrap();
                EncodingKey::from_ec_pem(pem.as_bytes()).unwrap()
            }
            Algorithm::EdDSA => {
                // Without the public key, because some parsers reject it.
                let secret_key = ed25519_dalek::SigningKey::generate(random).to_bytes();
                let bytes = ed25519_dalek::pkcs8::KeypairBytes { secret_key, public_key: None };
                let pem = bytes.to_pkcs8_pem(LineEnding::LF).unwrap();
                EncodingKey::from_ed_pem(pem.as_bytes()).unwrap()
            }
            other => panic!("unsupported algorithm {other:?}"),
        };
        Self { algorithm, id: id.to_owned(), private }
    }

    /// Returns a token with these claims.
    pub fn sign(&self, claims: &Value) -> String {
        self.sign_with(claims, Header::new(self.algorithm))
    }

    /// Returns a token with these claims and this header, to which the id of the key is added.
    pub fn sign_with(&self, claims: &Value, header: Header) -> String {
        encode(&Header { kid: Some(self.id.clone()), ..header }, claims, &self.private).unwrap()
    }

    /// Returns the public key as a JWK.
    pub fn public(&self) -> Value {
        let mut jwk = Jwk::from_encoding_key(&self.private, self.algorithm).unwrap();
        jwk.common.key_id = Some(self.id.clone());
        serde_json::to_value(jwk).unwrap()
    }
}

/// Returns a token that is signed with a shared secret (HS256).
pub fn sign_hs256(secret: &str, claims: &Value) -> String {
    encode(&Header::new(Algorithm::HS256), claims, &EncodingKey::from_secret(secret.as_bytes())).unwrap()
}

/// Serves a JWKS.
pub struct Issuer {
    pub jwks_url: String,
    keys: Arc<Mutex<Option<Vec<Value>>>>,
    request_count: Arc<AtomicUsize>,
}

impl Issuer {
    /// Starts an issuer without keys on a free port.
    pub async fn start() -> Self {
        let keys = Arc::new(Mutex::new(Some(Vec::new())));
        let request_count = Arc::new(AtomicUsize::new(0));
        let published = keys.clone();
        let count = request_count.clone();
        let answer = move || {
            count.fetch_add(1, Ordering::Relaxed);
            let keys = published.lock().unwrap().clone();
            async move {
                match keys {
                    Some(keys) => Ok(axum::Json(json!({ "keys": keys }))),
                    None => Err(StatusCode::INTERNAL_SERVER_ERROR),
                }
            }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let jwks_url = format!("http://{}/jwks.json", listener.local_addr().unwrap());
        let router = axum::Router::new().route("/jwks.json", get(answer));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { jwks_url, keys, request_count }
    }

    /// Replaces the published keys. The JWKS always contains an additional key of an unknown type.
    pub fn publish(&self, keys: &[&SigningKey]) {
        self.publish_jwks(keys.iter().map(|key| key.public()).collect());
    }

    /// Like [`Issuer::publish`], for keys that the caller has changed.
    pub fn publish_jwks(&self, mut list: Vec<Value>) {
        list.push(json!({"kty": "future", "kid": "unknown"}));
        *self.keys.lock().unwrap() = Some(list);
    }

    /// Answers all further requests with an error.
    pub fn fail(&self) {
        *self.keys.lock().unwrap() = None;
    }

    /// Returns the number of requests so far.
    pub fn request_count(&self) -> usize {
        self.request_count.load(Ordering::Relaxed)
    }
}
