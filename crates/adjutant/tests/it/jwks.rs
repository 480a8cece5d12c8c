//! Tokens of an issuer with published keys (OPS-3).

use jsonwebtoken::{Algorithm, Header};
use reqwest::StatusCode;
use serde_json::json;
use testkit::issuer::{Issuer, SigningKey, sign_hs256};

use crate::auth::{claims, status};
use crate::home;

#[tokio::test]
async fn keys_of_three_algorithms_are_accepted_and_rotated() {
    // OPS-3
    let issuer = Issuer::start().await;
    let keys = [
        SigningKey::new(Algorithm::RS256, "rsa-1"),
        SigningKey::new(Algorithm::ES256, "ec-1"),
        SigningKey::new(Algorithm::EdDSA, "ed-1"),
    ];
    issuer.publish(&keys.iter().collect::<Vec<_>>());
    let home = home().with_config(&format!("[auth]\njwks_url = \"{}\"\n", issuer.jwks_url));
    let server = home.serve();
    for key in &keys {
        assert_eq!(status(&server, &key.sign(&claims())).await, StatusCode::OK, "{:?}", key.algorithm);
    }
    assert_eq!(issuer.request_count(), 1, "fetched once and cached");

    // Another key with a known id, and an HMAC token.
    let forged = SigningKey::new(Algorithm::ES256, "ec-1").sign(&claims());
    assert_eq!(status(&server, &forged).await, StatusCode::UNAUTHORIZED);
    assert_eq!(status(&server, &sign_hs256("any secret", &claims())).await, StatusCode::UNAUTHORIZED);
    let unknown = SigningKey::new(Algorithm::EdDSA, "ed-9").sign(&claims());
    for _ in 0..20 {
        assert_eq!(status(&server, &unknown).await, StatusCode::UNAUTHORIZED);
    }
    assert!(issuer.request_count() <= 2, "unknown key ids do not cause repeated requests to the issuer");

    let next = SigningKey::new(Algorithm::EdDSA, "ed-2");
    issuer.publish(&[&next]);
    let token = next.sign(&claims());
    let began = std::time::Instant::now();
    while status(&server, &token).await != StatusCode::OK {
        assert!(began.elapsed().as_secs() < 15, "a new key is found without a restart");
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    assert_eq!(
        status(&server, &keys[2].sign(&claims())).await,
        StatusCode::UNAUTHORIZED,
        "the old key is no longer valid"
    );
    issuer.fail();
    assert_eq!(
        status(&server, &token).await,
        StatusCode::OK,
        "cached keys remain valid during an outage of the issuer"
    );
}

#[tokio::test]
async fn a_response_of_the_issuer_beyond_the_limit_is_rejected() {
    // OPS-3
    let issuer = Issuer::start().await;
    let key = SigningKey::new(Algorithm::EdDSA, "ed-1");
    let padding = json!({"kty": "oct", "k": "x".repeat(1024 * 1024)});
    issuer.publish_jwks(vec![key.public(), padding]);
    let home = home().with_config(&format!("[auth]\njwks_url = \"{}\"\n", issuer.jwks_url));
    let server = home.serve();
    assert_eq!(status(&server, &key.sign(&claims())).await, StatusCode::UNAUTHORIZED);
    assert_eq!(issuer.request_count(), 1);
    assert!(server.raw_log().contains("the response is too large"), "{}", server.raw_log());
}

#[tokio::test]
async fn unsuitable_keys_and_critical_extensions_are_rejected() {
    // OPS-3
    let issuer = Issuer::start().await;
    let good = SigningKey::new(Algorithm::ES256, "good");
    let encrypting = SigningKey::new(Algorithm::ES256, "encrypting");
    let short = SigningKey::with_rsa_bits(Algorithm::RS256, "short", 1024);
    let mut for_encryption = encrypting.public();
    for_encryption["use"] = json!("enc");
    let mut for_signatures = good.public();
    for_signatures["use"] = json!("sig");
    issuer.publish_jwks(vec![for_signatures, for_encryption, short.public()]);
    let home = home().with_config(&format!("[auth]\njwks_url = \"{}\"\n", issuer.jwks_url));
    let server = home.serve();
    assert_eq!(status(&server, &good.sign(&claims())).await, StatusCode::OK);
    assert_eq!(status(&server, &encrypting.sign(&claims())).await, StatusCode::UNAUTHORIZED, "use = enc");
    assert_eq!(status(&server, &short.sign(&claims())).await, StatusCode::UNAUTHORIZED, "1024 bits");
    let critical = Header { crit: Some(vec!["exp".to_owned()]), ..Header::new(Algorithm::ES256) };
    assert_eq!(status(&server, &good.sign_with(&claims(), critical)).await, StatusCode::UNAUTHORIZED, "crit");
}
