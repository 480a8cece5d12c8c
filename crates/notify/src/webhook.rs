//! The webhook transport: a POST request with the notification as JSON, signed if a secret is configured.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use model::text::hex;
use reqwest::{Client, Url};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;
use store::outbox::ClaimedDelivery;

use crate::address_guard::{PrivateAddressError, is_public};
use crate::channel::DeliveryFailure;
use crate::post;

/// The URL and the secret of a webhook.
#[derive(Clone)]
pub struct Webhook {
    url: Url,
    secret: Option<SecretString>,
    allow_private: bool,
    client: Client,
}

/// Omits the URL, because it may be secret.
impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("allow_private", &self.allow_private).finish_non_exhaustive()
    }
}

impl Webhook {
    /// Creates a webhook, without a connection. Without `secret`, requests are not signed. With `allow_private` the URL
    /// may be on this machine or in a private network. Otherwise IP addresses are checked here and names when they are
    /// resolved. Fails with a message if the URL is not HTTP or HTTPS, or its address is not allowed. Also fails if the
    /// client cannot be built.
    pub fn new(url: &str, secret: Option<SecretString>, allow_private: bool) -> Result<Self, String> {
        let url = post::parse_url(url).ok_or("must be a URL such as https://hooks.example/adjutant")?;
        if !allow_private && post::is_private(&url) {
            return Err(format!("cannot be used: {PrivateAddressError}"));
        }
        let client = post::client(allow_private).map_err(|error| format!("cannot be used: {}", error.without_url()))?;
        Ok(Self { url, secret, allow_private, client })
    }

    /// Returns the host and port of the URL. The other parts may be secret.
    pub fn host(&self) -> String {
        let port = self.url.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}{port}", self.url.host_str().unwrap_or_default())
    }

    /// Resolves the name of the host, without a request. Returns a description. Fails with a message if the name cannot
    /// be resolved. Without `allow_private` it also fails if none of the addresses is public.
    pub(crate) async fn check(&self) -> Result<String, String> {
        let host = self.url.host_str().unwrap_or_default();
        let port = self.url.port_or_known_default().unwrap_or(443);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let addresses = tokio::net::lookup_host((host, port)).await;
        let mut addresses = addresses.map_err(|error| format!("the host name cannot be resolved: {error}"))?;
        match self.allow_private || addresses.any(|address| is_public(address.ip())) {
            true => Ok("the host name can be resolved; nothing was sent".to_owned()),
            false => Err(PrivateAddressError.to_string()),
        }
    }

    /// Sends the payload as JSON, with the delivery id and the time in the headers of the Standard Webhooks specification and
    /// in `X-Adjutant-…` headers. With a secret, also sends [`standard_signature`] and [`signature`]. `now` is the signed
    /// time in seconds. Fails like [`post::send`].
    pub(crate) async fn deliver(&self, delivery: &ClaimedDelivery, now: Timestamp) -> Result<(), DeliveryFailure> {
        let timestamp = now.as_second().to_string();
        let id = delivery.id.to_string();
        let mut request = self
            .client
            .post(self.url.clone())
            .header("Content-Type", "application/json")
            .header("Webhook-Id", &id)
            .header("Webhook-Timestamp", &timestamp)
            .header("X-Adjutant-Delivery", &id)
            .header("X-Adjutant-Timestamp", &timestamp);
        if let Some(secret) = &self.secret {
            let standard = standard_signature(secret, &id, &timestamp, &delivery.payload);
            request = request.header("Webhook-Signature", standard);
            request = request.header("X-Adjutant-Signature", signature(secret, &timestamp, &delivery.payload));
        }
        post::send(request.body(delivery.payload.clone()), now).await
    }
}

/// Returns `v1,` and the HMAC-SHA-256, in base64, of the delivery id, the timestamp and the body, joined by dots, as in the
/// Standard Webhooks specification. The id lets the receiver ignore duplicates. The key of a secret with the prefix
/// `whsec_` is in base64; any other secret is the key itself.
fn standard_signature(secret: &SecretString, id: &str, timestamp: &str, body: &str) -> String {
    let secret = secret.expose_secret();
    let decoded = secret.strip_prefix("whsec_").and_then(|key| STANDARD.decode(key).ok());
    let key = decoded.unwrap_or_else(|| secret.as_bytes().to_vec());
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&key) else { return String::new() };
    for part in [id, ".", timestamp, ".", body] {
        mac.update(part.as_bytes());
    }
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// Returns `sha256=` and the HMAC-SHA-256, in hexadecimal, of the timestamp, a dot and the body. The timestamp lets the
/// receiver reject replays.
fn signature(secret: &SecretString, timestamp: &str, body: &str) -> String {
    // HMAC accepts keys of any length, so this never fails.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.expose_secret().as_bytes()) else { return String::new() };
    for part in [timestamp, ".", body] {
        mac.update(part.as_bytes());
    }
    format!("sha256={}", hex(&mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_match_openssl() {
        // The output of `printf '1700000000.{}' | openssl dgst -sha256 -hmac key`.
        let expected = "sha256=9d713ed406bb7076d4123f0dc2c39d2df5c654ed4b0cd56b52c8b4c940bd63ae";
        assert_eq!(signature(&"key".into(), "1700000000", "{}"), expected);
    }

    #[test]
    fn the_id_is_part_of_the_standard_signature() {
        // TASK-4: the example of the Standard Webhooks libraries
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into();
        let signed = |id| standard_signature(&secret, id, "1614265330", r#"{"test": 2432232314}"#);
        let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        assert_eq!(signed(id), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_ne!(signed("msg_other"), signed(id));
        // The output of `printf 'a.1700000000.{}' | openssl dgst -sha256 -hmac key -binary | base64`.
        let plain = standard_signature(&"key".into(), "a", "1700000000", "{}");
        assert_eq!(plain, "v1,cHB/Xwl1MFBkXqm0zwX7LtTWucYPikwN522G2Dzbup4=");
    }

    #[test]
    fn private_urls_are_rejected_unless_allowed() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        for inside in [
            "http://127.0.0.1/",
            "http://[::1]:8080/x",
            "http://169.254.169.254/latest",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://[::ffff:10.0.0.1]/",
            "http://0/",
        ] {
            assert!(Webhook::new(inside, None, false).unwrap_err().contains("allow_private"), "{inside}");
            assert!(Webhook::new(inside, None, true).is_ok(), "{inside}");
        }
        for wrong in ["ftp://example.com/", "hooks.example", "", "http://"] {
            assert!(Webhook::new(wrong, None, true).unwrap_err().contains("must be a URL"), "{wrong}");
        }
        let secret = Webhook::new("https://hooks.example:8443/T000/B000?token=x", None, false).unwrap();
        assert_eq!(secret.host(), "hooks.example:8443");
        assert!(!format!("{secret:?}").contains("T000"));
    }
}
