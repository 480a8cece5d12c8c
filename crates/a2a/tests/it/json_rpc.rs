//! The JSON-RPC envelope: malformed requests, ids, URLs and size limits.

use axum::body::Body;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::double::{Double, MAX_REQUEST_BYTES, TestResponse, build_request, send};

async fn post(double: &Double, body: impl Into<Body>) -> TestResponse {
    let request = http::Request::post("/agents/echo").header(CONTENT_TYPE, "application/json; charset=utf-8");
    send(double, request.body(body.into()).unwrap()).await
}

// A2A-1
#[tokio::test]
async fn malformed_requests_are_rejected() {
    let double = Double::default();
    for (body, code, id) in [
        (r#"{"jsonrpc": "2.0", "method": "message/send", "params": {"foo": "bar"}"#, -32700, json!(null)),
        ("", -32700, json!(null)),
        ("{} {}", -32700, json!(null)),
        ("nul", -32700, json!(null)),
        ("null", -32600, json!(null)),
        ("5", -32600, json!(null)),
        ("\"x\"", -32600, json!(null)),
        ("[]", -32600, json!(null)),
        (r#"[{"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "t1"}}]"#, -32600, json!(null)),
        (r#"["2.0", 1, "tasks/get", {"id": "t1"}]"#, -32600, json!(null)),
        ("{}", -32600, json!(null)),
        (r#"{"jsonrpc": "aaa", "method": "message/send", "params": {}}"#, -32600, json!(null)),
        (r#"{"jsonrpc": 2.0, "id": 3, "method": "message/send", "params": {}}"#, -32600, json!(3)),
        (r#"{"jsonrpc": "1.0", "id": "a\"b", "method": "message/send", "params": {}}"#, -32600, json!("a\"b")),
        (r#"{"jsonrpc": "2.0", "id": 3, "params": {}}"#, -32600, json!(3)),
        (r#"{"jsonrpc": "2.0", "id": 3, "method": 5}"#, -32600, json!(3)),
        (r#"{"jsonrpc": "2.0", "id": {"bad": "type"}, "method": "message/send", "params": {}}"#, -32600, json!(null)),
        (r#"{"jsonrpc": "2.0", "id": true, "method": "message/send", "params": {}}"#, -32600, json!(null)),
        (r#"{"jsonrpc": "2.0", "id": 1.5, "method": "message/send", "params": {}}"#, -32600, json!(null)),
        (r#"{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "message/send"}"#, -32600, json!(null)),
        (r#"{"jsonrpc": "2.0", "method": "message/ssend"}"#, -32601, json!(null)),
        (r#"{"jsonrpc": "2.0", "id": "i", "method": "tasks/list"}"#, -32601, json!("i")),
        (r#"{"jsonrpc": "2.0", "method": "message/send", "params": {"": "not_a_dict"}}"#, -32602, json!(null)),
        (r#"{"jsonrpc": "2.0", "id": 9, "method": "message/send"}"#, -32602, json!(9)),
    ] {
        let response = post(&double, body).await;
        assert_eq!(response.status, StatusCode::OK, "{body}");
        let answer = response.json();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{body}: {answer}");
        assert_eq!(answer["jsonrpc"], "2.0");
    }
    assert!(double.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn ids_are_returned_unchanged() {
    let double = Double::default();
    for id in ["1", "-7", "18446744073709551616", r#""""#, r#""ä\n""#, "null"] {
        let body = format!(r#"{{"params":{{"id":"t1"}},"method":"tasks/g\u0065t","id":{id},"jsonrpc":"2.0"}}"#);
        let response = post(&double, body).await;
        assert!(
            response.text().starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#)),
            "{}",
            response.text()
        );
    }
    let response = post(&double, r#"{"jsonrpc":"2.0","method":"tasks/get","params":{"id":"t1"}}"#).await;
    assert_eq!((response.status, &response.json()["id"]), (StatusCode::OK, &Value::Null));
    assert_eq!(response.json()["result"]["id"], "t1");
}

// A2A-1
#[tokio::test]
async fn all_forms_of_the_url_are_accepted() {
    let double = Double::default();
    for path in
        ["/agents/echo", "/agents/echo/", "/agents/echo/v1", "/agents/echo/v1/", "/agents/%65cho?A2A-Version=0.3"]
    {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "t1"}});
        let response = send(&double, build_request("", "POST", path, Some(&body))).await;
        assert_eq!((response.status, &response.json()["result"]["id"]), (StatusCode::OK, &json!("t1")), "{path}");
    }
}

// A2A-1
#[tokio::test]
async fn oversized_and_malformed_bodies_are_rejected() {
    let double = Double::default();
    let large =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"x":"{}"}}}}"#, "x".repeat(MAX_REQUEST_BYTES));
    let stream = Body::from_stream(futures::stream::iter(
        large.as_bytes().chunks(1000).map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec())).collect::<Vec<_>>(),
    ));
    for body in [Body::from(large), stream] {
        let response = post(&double, body).await;
        assert_eq!(response.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(response.json()["error"]["code"], -32600);
        assert!(response.text().contains(&MAX_REQUEST_BYTES.to_string()), "{}", response.text());
    }
    let response = post(&double, vec![b'{', b'"', 0xff, b'"', b'}']).await;
    assert_eq!(response.json()["error"]["code"], -32700);
    let broken = futures::stream::iter([Ok(vec![b'{']), Err(std::io::Error::other("connection lost"))]);
    assert_eq!(post(&double, Body::from_stream(broken)).await.status, StatusCode::BAD_REQUEST);
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{}1{}}}"#,
        "[".repeat(9000),
        "]".repeat(9000)
    );
    assert_eq!(post(&double, deep).await.json()["error"]["code"], -32602);
}
