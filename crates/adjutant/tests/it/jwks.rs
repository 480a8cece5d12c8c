//! Tokens of an issuer that publishes its keys (OPS-3).

use jsonwebtoken::Algorithm;
use reqwest::StatusCode;
use testkit::issuer::{Issuer, Key, hs256};

use crate::auth::{claims, status};
use crate::home;

#[tokio::test]
async fn three_kinds_of_keys_and_their_rotation() {
    let issuer = Issuer::start().await;
    let keys =
        [Key::new(Algorithm::RS256, "rsa-1"), Key::new(Algorithm::ES256, "ec-1"), Key::new(Algorithm::EdDSA, "ed-1")];
    issuer.publish(&keys.iter().collect::<Vec<_>>());
    let home = home().configured(&format!("[auth]\njwks_url = \"{}\"\n", issuer.jwks_url));
    let server = home.serve();
    for key in &keys {
        assert_eq!(status(&server, &key.sign(&claims())).await, StatusCode::OK, "{:?}", key.algorithm);
    }
    assert_eq!(issuer.times_asked(), 1, "fetched once, kept for all");

    // A stranger's key under a known id, and the public key misused as a shared secret.
    let forged = Key::new(Algorithm::ES256, "ec-1").sign(&claims());
    assert_eq!(status(&server, &forged).await, StatusCode::UNAUTHORIZED);
    assert_eq!(status(&server, &hs256("any secret", &claims())).await, StatusCode::UNAUTHORIZED);
    let unknown = Key::new(Algorithm::EdDSA, "ed-9").sign(&claims());
    for _ in 0..20 {
        assert_eq!(status(&server, &unknown).await, StatusCode::UNAUTHORIZED);
    }
    assert!(issuer.times_asked() <= 2, "forged ids do not make the server hammer the issuer");

    let next = Key::new(Algorithm::EdDSA, "ed-2");
    issuer.publish(&[&next]);
    let token = next.sign(&claims());
    let began = std::time::Instant::now();
    while status(&server, &token).await != StatusCode::OK {
        assert!(began.elapsed().as_secs() < 15, "a new key is found without a restart");
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    assert_eq!(status(&server, &keys[2].sign(&claims())).await, StatusCode::UNAUTHORIZED, "the old key is gone");
    issuer.fail();
    assert_eq!(status(&server, &token).await, StatusCode::OK, "known keys outlive an outage of the issuer");
}
