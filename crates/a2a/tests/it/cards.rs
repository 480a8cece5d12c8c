//! Agent cards over HTTP.

use a2a::{types, v03};
use http::StatusCode;
use serde_json::json;

use crate::double::{Double, build_request, card, rpc, send};

// A2A-1
#[tokio::test]
async fn one_card_serves_both_versions() {
    let double = Double::default();
    for path in [
        "/.well-known/agent-card.json",
        "/.well-known/agent.json",
        "/agents/echo/.well-known/agent-card.json",
        "/agents/echo/.well-known/agent.json",
        "/agents/echo/v1/.well-known/agent-card.json",
    ] {
        let response = send(&double, build_request("", "GET", path, None)).await;
        assert_eq!((response.status, response.header("content-type")), (StatusCode::OK, "application/json"), "{path}");
        assert_eq!(response.header("last-modified"), "Tue, 14 Nov 2023 22:13:20 GMT");
        assert!(response.header("cache-control").contains("max-age"), "{path}");
        let body = response.json();
        assert_eq!(serde_json::from_value::<types::AgentCard>(body.clone()).unwrap().skills, card().skills);
        let old: v03::AgentCard = serde_json::from_value(body.clone()).unwrap();
        assert_eq!(old.url, "https://example.org/agents/echo");
        assert_eq!((old.protocol_version.as_str(), old.preferred_transport.as_deref()), ("0.3.0", Some("JSONRPC")));
        let urls: Vec<_> =
            old.additional_interfaces.unwrap().into_iter().map(|found| (found.transport, found.url)).collect();
        assert_eq!(
            urls,
            [
                ("JSONRPC".into(), "https://example.org/agents/echo".into()),
                ("GRPC".into(), "example.org:443".to_string())
            ]
        );
        assert_eq!(old.supports_authenticated_extended_card, Some(true));
        let both = json!({"httpAuthSecurityScheme": {"scheme": "Bearer"}, "scheme": "Bearer", "type": "http"});
        assert_eq!(body["securitySchemes"]["token"], both);
        assert_eq!(body["security"], json!([{"token": []}]));
        assert_eq!(body["securityRequirements"], json!([{"schemes": {"token": {"list": []}}}]));
        assert_eq!(body["skills"][0]["security"], json!([{"token": []}]));
    }
}

#[tokio::test]
async fn clients_of_1_0_get_a_card_of_1_0_only() {
    let double = Double::default();
    let plain = serde_json::to_value(card()).unwrap();
    let response = send(&double, build_request("1.0", "GET", "/agents/echo/.well-known/agent-card.json", None)).await;
    assert_eq!((response.json(), response.header("vary")), (plain.clone(), "A2A-Version"));
    assert_eq!(rpc(&double, "1.0", "GetExtendedAgentCard", json!({})).await.json()["result"], plain);
    assert_eq!(send(&double, build_request("1.0", "GET", "/agents/echo/extendedAgentCard", None)).await.json(), plain);
    let both = rpc(&double, "", "agent/getAuthenticatedExtendedCard", json!({})).await.json();
    assert_eq!(both["result"]["url"], "https://example.org/agents/echo");
    assert_eq!(send(&double, build_request("", "GET", "/agents/echo/v1/card", None)).await.json(), both["result"]);
}

// A2A-1
#[tokio::test]
async fn unchanged_cards_are_not_sent_again() {
    let double = Double::default();
    let path = "/agents/echo/.well-known/agent-card.json";
    let first = send(&double, build_request("", "GET", path, None)).await;
    let tag = first.header("etag").to_owned();
    for round in 0..10 {
        let again = send(&double, build_request("", "GET", path, None)).await;
        assert_eq!((again.header("etag"), &again.body), (tag.as_str(), &first.body), "{round}");
    }
    for (name, value, known) in [
        ("if-none-match", tag.as_str(), true),
        ("if-none-match", &format!("\"x\", W/{tag}"), true),
        ("if-none-match", "*", true),
        ("if-none-match", "\"x\"", false),
        ("if-modified-since", "Tue, 14 Nov 2023 22:13:20 GMT", true),
        ("if-modified-since", "Tue, 14 Nov 2023 22:13:19 GMT", false),
        ("if-modified-since", "yesterday", false),
    ] {
        let mut request = build_request("", "GET", path, None);
        request.headers_mut().insert(name, value.parse().unwrap());
        let response = send(&double, request).await;
        let expected = if known { (StatusCode::NOT_MODIFIED, true) } else { (StatusCode::OK, false) };
        assert_eq!((response.status, response.body.is_empty()), expected, "{name}: {value}");
        assert_eq!(response.header("etag"), tag);
    }
    let head = send(&double, build_request("", "HEAD", path, None)).await;
    assert_eq!((head.status, head.header("content-length")), (StatusCode::OK, first.body.len().to_string().as_str()));
    let none = send(&double, build_request("", "GET", "/agents/other/.well-known/agent-card.json", None)).await;
    assert_eq!(none.status, StatusCode::NOT_FOUND);
}
