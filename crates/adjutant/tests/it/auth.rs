//! Tokens: which open the door, and that a refusal gives nothing away (OPS-3).

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use testkit::app::Server;
use testkit::issuer::hs256;

use crate::{ALICE, SECRET, home, home_with_auth, token};

pub(crate) fn claims() -> Value {
    let now = model::Clock::system().now().as_second();
    json!({"sub": ALICE, "exp": now + 3600, "iat": now})
}

pub(crate) fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

pub(crate) async fn status(server: &Server, token: &str) -> StatusCode {
    server.request(Method::GET, "/api/tasks").bearer_auth(token).send().await.unwrap().status()
}

/// The body of a refusal, without what differs for every request.
async fn refusal(server: &Server, authorization: Option<&str>) -> Value {
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
async fn every_bad_token_gets_the_same_answer() {
    let auth =
        "[auth]\njwt_secret = \"env:TEST_SECRET\"\nissuer = \"https://issuer.example\"\naudience = \"adjutant\"\n";
    let home = home().with("TEST_SECRET", SECRET).configured(auth);
    let server = home.serve();
    let full = |name: &str, value: Value| {
        let mut claims = claims();
        claims["iss"] = json!("https://issuer.example");
        claims["aud"] = json!(["other", "adjutant"]);
        claims[name] = value;
        claims
    };
    let good = hs256(SECRET, &full("jti", json!("1")));
    assert_eq!(status(&server, &good).await, StatusCode::OK);
    assert_eq!(status(&server, &token(&home, ALICE, &[])).await, StatusCode::OK, "its own tokens fit its own rules");

    let parts: Vec<_> = good.split('.').collect();
    let none = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0";
    let nothing = refusal(&server, None).await;
    for bad in [
        "".to_owned(),
        "nonsense".to_owned(),
        hs256("another-secret-that-is-long-enough-000", &full("jti", json!("1"))),
        hs256(SECRET, &full("exp", json!(now() - 120))),
        hs256(SECRET, &full("exp", Value::Null)),
        hs256(SECRET, &full("nbf", json!(now() + 120))),
        hs256(SECRET, &full("aud", json!("someone else"))),
        hs256(SECRET, &full("aud", Value::Null)),
        hs256(SECRET, &full("iss", json!("https://evil.example"))),
        hs256(SECRET, &full("sub", json!("alice"))),
        hs256(SECRET, &full("sub", Value::Null)),
        format!("{none}.{}.", parts[1]),
        format!("{none}.{}.{}", parts[1], parts[2]),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{}.{}.{}x", parts[0], parts[1], parts[2]),
    ] {
        assert_eq!(refusal(&server, Some(&format!("Bearer {bad}"))).await, nothing, "{bad}");
    }
    assert_eq!(refusal(&server, Some(&format!("Basic {good}"))).await, nothing);
    for path in ["/api/tasks/x", "/api/conversations", "/api/data", "/api/backup", "/api/tasks?limit=x"] {
        assert_eq!(server.get(path).await.status(), StatusCode::UNAUTHORIZED, "{path} says nothing before the token");
    }
    for path in ["/health", "/health/live", "/health/ready", "/metrics", "/openapi.json", "/docs/"] {
        assert_eq!(server.get(path).await.status(), StatusCode::OK, "{path} is open");
    }
    assert!(!server.raw_log().contains(&good) && !server.raw_log().contains(parts[2]), "tokens stay out of the log");
}

#[tokio::test]
async fn clocks_may_differ_a_little() {
    let home = home_with_auth();
    let server = home.serve();
    assert_eq!(status(&server, &hs256(SECRET, &with("exp", json!(now() - 30)))).await, StatusCode::OK);
    assert_eq!(status(&server, &hs256(SECRET, &with("nbf", json!(now() + 30)))).await, StatusCode::OK);
}

#[tokio::test]
async fn a_revoked_token_is_refused_at_once_and_after_a_restart() {
    let home = home_with_auth();
    let mut server = home.serve();
    let mine = token(&home, ALICE, &[]);
    let other = token(&home, ALICE, &[]);
    home.run(&["token", "revoke", &mine, "--token", &mine]).ok();
    assert_eq!(status(&server, &mine).await, StatusCode::UNAUTHORIZED);
    assert_eq!(status(&server, &other).await, StatusCode::OK);
    assert_eq!(home.run(&["tasks", "list", "--token", &mine]).code(), 9);
    assert_eq!(home.run(&["tasks", "list"]).code(), 9, "without any token too");

    let foreign = hs256(SECRET, &claims());
    assert_eq!(status(&server, &foreign).await, StatusCode::OK, "a token without jti");
    home.run(&["token", "revoke", &foreign, "--token", &other]).ok();
    assert_eq!(status(&server, &foreign).await, StatusCode::UNAUTHORIZED);
    server.kill();
    let server = home.serve();
    assert_eq!(status(&server, &mine).await, StatusCode::UNAUTHORIZED);
    assert_eq!(status(&server, &foreign).await, StatusCode::UNAUTHORIZED);
    assert_eq!(status(&server, &other).await, StatusCode::OK);
}

#[tokio::test]
async fn nobody_fills_the_list_of_revoked_tokens_with_inventions() {
    let home = home_with_auth();
    let server = home.serve();
    let mine = token(&home, ALICE, &[]);
    let admin = token(&home, crate::BOB, &["--scope", "adjutant:admin"]);
    let revoke = async |bearer: &str, token: String| {
        let request = server.request(Method::POST, "/api/tokens/revoke").bearer_auth(bearer);
        request.json(&json!({"token": token})).send().await.unwrap().status().as_u16()
    };
    let invented = hs256("a secret that nobody has configured", &with("jti", json!("x".repeat(100_000))));
    assert_eq!(revoke(&mine, invented.clone()).await, 422);
    assert_eq!(revoke(&mine, token(&home, crate::BOB, &[])).await, 403, "another's");
    assert_eq!(revoke(&mine, hs256(SECRET, &with("exp", json!(253_402_207_200_i64)))).await, 204, "the year 9999");
    assert_eq!(revoke(&admin, invented).await, 204, "an administrator may");
    assert_eq!(revoke(&mine, "nonsense".to_owned()).await, 422);
}

#[test]
fn token_create_wants_a_secret_and_sense() {
    assert_eq!(home().run(&["token", "create", "--user", ALICE]).code(), 2, "no secret");
    let home = home_with_auth();
    for wrong in
        [&["--user", "alice"][..], &["--user", ALICE, "--ttl", "forever"], &["--user", ALICE, "--scope", "a b"]]
    {
        assert_eq!(home.run(&[&["token", "create"], wrong].concat()).code(), 2, "{wrong:?}");
    }
    let made = home.run(&["token", "create", "--user", ALICE, "--ttl", "90d", "--json"]).json();
    assert!(made["token"].is_string() && made["id"].is_string() && made["expires_at"].is_string());
}

#[tokio::test]
async fn without_a_server_a_token_chooses_the_user() {
    let home = home_with_auth();
    let alice = token(&home, ALICE, &[]);
    home.run(&["tasks", "add", "alice's", "--token", &alice]).ok();
    home.run(&["tasks", "add", "the local user's"]).ok();
    assert!(home.run(&["tasks", "list", "--token", &alice]).ok().contains("alice's"));
    assert!(!home.run(&["tasks", "list"]).ok().contains("alice's"));
    assert_eq!(home.run(&["tasks", "list", "--token", "forged"]).code(), 9);
}
