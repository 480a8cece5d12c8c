//! Authentication: valid and invalid tokens, and responses that disclose nothing (OPS-3).

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use testkit::app::Server;
use testkit::issuer::sign_hs256;

use crate::{ALICE, SECRET, home, home_with_auth, token};

pub(crate) fn claims() -> Value {
    let now = model::Clock::system().now().as_second();
    json!({"sub": ALICE, "exp": now + 3600, "iat": now})
}

pub(crate) fn claims_with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

pub(crate) async fn status(server: &Server, token: &str) -> StatusCode {
    server.request(Method::GET, "/api/tasks").bearer_auth(token).send().await.unwrap().status()
}

/// Returns the body of a 401 response without the request id.
async fn unauthorized_body(server: &Server, authorization: Option<&str>) -> Value {
    let mut request = server.request(Method::GET, "/api/tasks");
    if let Some(value) = authorization {
        request = request.header("authorization", value);
    }
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{authorization:?}");
    assert_eq!(answer.headers()["www-authenticate"], "Bearer");
    let mut body: Value = answer.json().await.unwrap();
    body["request_id"] = Value::Null;
    body
}

fn now() -> i64 {
    claims()["iat"].as_i64().unwrap()
}

#[tokio::test]
async fn all_invalid_tokens_get_the_same_response() {
    // OPS-3, SUP-9
    let auth =
        "[auth]\njwt_secret = \"env:TEST_SECRET\"\nissuer = \"https://issuer.example\"\naudience = \"adjutant\"\n";
    let home = home().with_env("TEST_SECRET", SECRET).with_config(auth);
    let server = home.serve();
    let full = |name: &str, value: Value| {
        let mut claims = claims();
        claims["iss"] = json!("https://issuer.example");
        claims["aud"] = json!(["other", "adjutant"]);
        claims[name] = value;
        claims
    };
    let good = sign_hs256(SECRET, &full("jti", json!("1")));
    assert_eq!(status(&server, &good).await, StatusCode::OK);
    assert_eq!(
        status(&server, &token(&home, ALICE, &[])).await,
        StatusCode::OK,
        "tokens of adjutant satisfy its own rules"
    );

    let parts: Vec<_> = good.split('.').collect();
    let none = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0";
    let without_token = unauthorized_body(&server, None).await;
    for invalid in [
        "".to_owned(),
        "nonsense".to_owned(),
        sign_hs256("another-secret-that-is-long-enough-000", &full("jti", json!("1"))),
        sign_hs256(SECRET, &full("exp", json!(now() - 120))),
        sign_hs256(SECRET, &full("exp", Value::Null)),
        sign_hs256(SECRET, &full("nbf", json!(now() + 120))),
        sign_hs256(SECRET, &full("aud", json!("someone else"))),
        sign_hs256(SECRET, &full("aud", Value::Null)),
        sign_hs256(SECRET, &full("iss", json!("https://evil.example"))),
        sign_hs256(SECRET, &full("sub", json!("alice"))),
        sign_hs256(SECRET, &full("sub", Value::Null)),
        format!("{none}.{}.", parts[1]),
        format!("{none}.{}.{}", parts[1], parts[2]),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{}.{}.{}x", parts[0], parts[1], parts[2]),
    ] {
        assert_eq!(unauthorized_body(&server, Some(&format!("Bearer {invalid}"))).await, without_token, "{invalid}");
    }
    assert_eq!(unauthorized_body(&server, Some(&format!("Basic {good}"))).await, without_token);
    for path in ["/api/tasks/x", "/api/conversations", "/api/data", "/api/backup", "/api/tasks?limit=x"] {
        assert_eq!(server.get(path).await.status(), StatusCode::UNAUTHORIZED, "{path} requires a token");
    }
    for path in ["/health", "/health/live", "/health/ready", "/openapi.json", "/docs/"] {
        assert_eq!(server.get(path).await.status(), StatusCode::OK, "{path} is public");
    }
    // Details name models, channels and MCP servers.
    assert_eq!(server.get("/metrics").await.status(), StatusCode::UNAUTHORIZED);
    let brief: Value = server.get("/health").await.json().await.unwrap();
    assert_eq!(brief, json!({"status": "ok"}));
    let with_token = |path| server.request(Method::GET, path).bearer_auth(&good).send();
    assert_eq!(with_token("/metrics").await.unwrap().status(), StatusCode::OK);
    let health: Value = with_token("/health").await.unwrap().json().await.unwrap();
    assert_eq!(health["dependencies"]["database"]["status"], "ok", "{health}");
    assert!(!server.raw_log().contains(&good) && !server.raw_log().contains(parts[2]), "the log contains no token");
}

#[tokio::test]
async fn a_rotation_keeps_the_tokens_of_the_previous_secret() {
    // OPS-3, SEC-6
    const NEXT: &str = "a-second-secret-of-enough-length-0123456789";
    let rotating = "[auth]\njwt_secret = \"env:NEXT_SECRET\"\nprevious_jwt_secret = \"env:TEST_SECRET\"\n";
    let home = home_with_auth().with_env("NEXT_SECRET", NEXT);
    let old = token(&home, ALICE, &[]);
    home.write_config(rotating);
    let new = token(&home, ALICE, &[]);
    let server = home.serve();
    assert_eq!(status(&server, &old).await, StatusCode::OK);
    assert_eq!(status(&server, &new).await, StatusCode::OK);
    assert_eq!(status(&server, &sign_hs256(NEXT, &claims())).await, StatusCode::OK);
    let foreign = sign_hs256("another-secret-that-is-long-enough-000", &claims());
    assert_eq!(status(&server, &foreign).await, StatusCode::UNAUTHORIZED);
    drop(server);
    home.write_config("[auth]\njwt_secret = \"env:NEXT_SECRET\"\n");
    let server = home.serve();
    assert_eq!(status(&server, &new).await, StatusCode::OK, "new tokens are signed with the first secret");
    assert_eq!(status(&server, &old).await, StatusCode::UNAUTHORIZED, "the rotation is complete");
}

#[tokio::test]
async fn a_user_name_always_selects_the_same_user() {
    // OPS-3
    let home = home_with_auth();
    let server = home.serve();
    let created = home.run(&["token", "create", "--user", "Bob", "--json"]).ok();
    let created: Value = serde_json::from_str(&created).unwrap();
    assert_eq!(created["user_name"], "bob");
    let id = created["user_id"].as_str().unwrap();
    let by_name = token(&home, "bob", &[]);
    home.run(&["tasks", "add", "milk", "--token", &by_name]).ok();
    let by_id = token(&home, id, &[]);
    assert!(home.run(&["tasks", "list", "--token", &by_id]).ok().contains("milk"));
    assert!(!home.run(&["tasks", "list", "--token", &token(&home, "alice", &[])]).ok().contains("milk"));
    let admin = token(&home, "root", &["--scope", "adjutant:admin"]);
    let token_id = created["id"].as_str().unwrap();
    home.run(&["token", "revoke", "--id", token_id, "--user", "bob", "--token", &admin]).ok();
    assert_eq!(status(&server, created["token"].as_str().unwrap()).await, StatusCode::UNAUTHORIZED);
    let refused = home.run(&["token", "create", "--user", "bob smith"]);
    assert!(refused.err().contains("--user must be a UUID, or a name"), "{}", refused.err());
}

#[tokio::test]
async fn a_proxy_that_is_not_trusted_is_reported_once() {
    // OPS-3
    let forward = async |server: &Server| {
        for _ in 0..3 {
            let request = server.request(Method::GET, "/health").header("x-forwarded-for", "198.51.100.1");
            assert_eq!(request.send().await.unwrap().status(), StatusCode::OK);
        }
    };
    let home = home_with_auth();
    let server = home.serve();
    forward(&server).await;
    let entry = server.wait_for_event("forwarded_header_ignored").await;
    assert!(entry.to_string().contains("server.trusted_proxies"), "{entry}");
    assert_eq!(server.raw_log().matches("forwarded_header_ignored").count(), 1);
    drop(server);
    let trusting = "[server]\ntrusted_proxies = [\"127.0.0.1\"]\n[auth]\njwt_secret = \"env:TEST_SECRET\"\n";
    home.write_config(trusting);
    let server = home.serve();
    forward(&server).await;
    assert!(!server.raw_log().contains("forwarded_header_ignored"));
}

#[tokio::test]
async fn small_clock_differences_are_tolerated() {
    // OPS-3
    let home = home_with_auth();
    let server = home.serve();
    assert_eq!(status(&server, &sign_hs256(SECRET, &claims_with("exp", json!(now() - 30)))).await, StatusCode::OK);
    assert_eq!(status(&server, &sign_hs256(SECRET, &claims_with("nbf", json!(now() + 30)))).await, StatusCode::OK);
}

#[tokio::test]
async fn a_revoked_token_is_rejected_immediately_and_after_a_restart() {
    // OPS-3
    let home = home_with_auth();
    let mut server = home.serve();
    let mine = token(&home, ALICE, &[]);
    let other = token(&home, ALICE, &[]);
    home.run(&["token", "revoke", &mine, "--token", &mine]).ok();
    assert_eq!(status(&server, &mine).await, StatusCode::UNAUTHORIZED);
    assert_eq!(status(&server, &other).await, StatusCode::OK);
    assert_eq!(home.run(&["tasks", "list", "--token", &mine]).code(), 9);
    assert_eq!(home.run(&["tasks", "list"]).code(), 9, "without any token too");

    let external = sign_hs256(SECRET, &claims());
    assert_eq!(status(&server, &external).await, StatusCode::OK, "a token without jti");
    home.run(&["token", "revoke", &external, "--token", &other]).ok();
    assert_eq!(status(&server, &external).await, StatusCode::UNAUTHORIZED);
    server.kill();
    let server = home.serve();
    assert_eq!(status(&server, &mine).await, StatusCode::UNAUTHORIZED);
    assert_eq!(status(&server, &external).await, StatusCode::UNAUTHORIZED);
    assert_eq!(status(&server, &other).await, StatusCode::OK);
}

#[tokio::test]
async fn streams_end_with_their_token() {
    // SEC-6
    let home = home_with_auth();
    let server = home.serve();
    let revoked = token(&home, ALICE, &[]);
    let short = sign_hs256(SECRET, &claims_with("exp", json!(now() + 4)));
    let valid = token(&home, ALICE, &[]);
    let open = async |token: &str| {
        let request = server.request(Method::GET, "/api/notifications/stream").bearer_auth(token);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let mut response = response;
        assert!(response.chunk().await.unwrap().is_some());
        response
    };
    let (mut first, mut second, mut third) = (open(&revoked).await, open(&short).await, open(&valid).await);
    home.run(&["token", "revoke", &revoked, "--token", &valid]).ok();
    for stream in [&mut first, &mut second] {
        let ended = async { while stream.chunk().await.unwrap().is_some() {} };
        tokio::time::timeout(Duration::from_secs(15), ended).await.expect("the stream ends within 15 seconds");
    }
    assert!(
        tokio::time::timeout(Duration::from_secs(1), third.chunk()).await.is_err(),
        "a valid token keeps its stream"
    );
}

#[tokio::test]
async fn only_valid_tokens_can_be_revoked_by_users() {
    // OPS-3
    let home = home_with_auth();
    let server = home.serve();
    let mine = token(&home, ALICE, &[]);
    let admin = token(&home, crate::BOB, &["--scope", "adjutant:admin"]);
    let revoke = async |bearer: &str, token: String| {
        let request = server.request(Method::POST, "/api/tokens/revoke").bearer_auth(bearer);
        request.json(&json!({"token": token})).send().await.unwrap().status().as_u16()
    };
    let forged = sign_hs256("a secret that is not configured", &claims_with("jti", json!("x".repeat(100_000))));
    assert_eq!(revoke(&mine, forged.clone()).await, 422);
    assert_eq!(revoke(&mine, token(&home, crate::BOB, &[])).await, 403, "a token of another user");
    assert_eq!(
        revoke(&mine, sign_hs256(SECRET, &claims_with("exp", json!(253_402_207_200_i64)))).await,
        204,
        "the year 9999"
    );
    assert_eq!(revoke(&admin, forged).await, 204, "an administrator may revoke it");
    assert_eq!(revoke(&mine, "nonsense".to_owned()).await, 422);
}

#[test]
fn token_create_validates_its_arguments_and_requires_a_secret() {
    // OPS-3
    assert_eq!(home().run(&["token", "create", "--user", ALICE]).code(), 2, "no secret");
    let home = home_with_auth();
    for arguments in
        [&["--user", "alice smith"][..], &["--user", ALICE, "--ttl", "forever"], &["--user", ALICE, "--scope", "a b"]]
    {
        assert_eq!(home.run(&[&["token", "create"], arguments].concat()).code(), 2, "{arguments:?}");
    }
    let created = home.run(&["token", "create", "--user", ALICE, "--ttl", "90d", "--json"]).json();
    assert!(created["token"].is_string() && created["id"].is_string() && created["expires_at"].is_string());
}

#[tokio::test]
async fn without_a_server_the_token_selects_the_user() {
    // OPS-3
    let home = home_with_auth();
    let alice = token(&home, ALICE, &[]);
    home.run(&["tasks", "add", "alice's", "--token", &alice]).ok();
    home.run(&["tasks", "add", "the local user's"]).ok();
    assert!(home.run(&["tasks", "list", "--token", &alice]).ok().contains("alice's"));
    assert!(!home.run(&["tasks", "list"]).ok().contains("alice's"));
    assert_eq!(home.run(&["tasks", "list", "--token", "forged"]).code(), 9);
}
