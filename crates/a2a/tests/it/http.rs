//! HTTP methods, headers, rejections and query strings.

use a2a::types::PartContent;
use a2a::{Binding, OperationRequest, Version};
use http::StatusCode;
use serde_json::json;

use crate::double::{Double, TestResponse, build_request, rpc, send};

async fn get(double: &Double, version: &str, method: &str, path: &str) -> TestResponse {
    send(double, build_request(version, method, path, None)).await
}

#[tokio::test]
async fn unsupported_methods_return_the_allowed_ones() {
    let double = Double::default();
    for (method, path, allow) in [
        ("GET", "/agents/echo", "POST, OPTIONS"),
        ("PUT", "/agents/echo/v1/", "POST, OPTIONS"),
        ("GET", "/agents/echo/message:send", "POST, OPTIONS"),
        ("DELETE", "/agents/echo/tasks/t1", "GET, HEAD, OPTIONS"),
        ("HEAD", "/agents/echo/tasks/t1:subscribe", "GET, POST, OPTIONS"),
        ("PATCH", "/agents/echo/tasks/t1/pushNotificationConfigs", "GET, HEAD, POST, OPTIONS"),
        ("POST", "/agents/echo/tasks/t1/pushNotificationConfigs/c1", "GET, HEAD, DELETE, OPTIONS"),
        ("POST", "/agents/echo/.well-known/agent-card.json", "GET, HEAD, OPTIONS"),
    ] {
        let response = get(&double, "1.0", method, path).await;
        assert_eq!(
            (response.status, response.header("allow")),
            (StatusCode::METHOD_NOT_ALLOWED, allow),
            "{method} {path}"
        );
        let response = get(&double, "", "OPTIONS", path).await;
        assert_eq!((response.status, response.header("allow")), (StatusCode::NO_CONTENT, allow), "{path}");
    }
    for path in ["/agents/echo/x", "/agents/echo/tasks/t1/x", "/agents/echo/a/b/c", "/agents/echo/v1/v1/x"] {
        let response = get(&double, "1.0", "GET", path).await;
        assert_eq!(
            (response.status, &response.json()["error"]["status"]),
            (StatusCode::NOT_FOUND, &json!("NOT_FOUND")),
            "{path}"
        );
        assert_eq!(get(&double, "", "GET", path).await.status, StatusCode::NOT_FOUND);
    }
    let full = get(&double, "1.0", "GET", "/agents/echo/tasks/t1").await;
    let head = get(&double, "1.0", "HEAD", "/agents/echo/tasks/t1").await;
    assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0));
    assert_eq!(head.header("content-length"), full.body.len().to_string());
}

// A2A-2, A2A-3
#[tokio::test]
async fn rejections_use_http_statuses_in_every_binding() {
    let double = Double::default();
    for version in ["", "1.0"] {
        for (reason, status, header) in [
            ("401", 401, ("www-authenticate", "Bearer")),
            ("403", 403, ("www-authenticate", "")),
            ("429", 429, ("retry-after", "2")),
        ] {
            for (method, path) in
                [("POST", "/agents/echo"), ("GET", "/agents/echo/tasks/t1"), ("POST", "/agents/echo/v1/message:stream")]
            {
                let mut request = build_request(version, method, path, Some(&json!({})));
                request.headers_mut().insert("deny", reason.parse().unwrap());
                let response = send(&double, request).await;
                assert_eq!(response.status.as_u16(), status, "{path}");
                assert_eq!(response.header(header.0), header.1, "{path}");
                let body = response.json();
                assert!(body.get("error").is_some(), "{body}");
                if path == "/agents/echo" {
                    assert_eq!((&body["jsonrpc"], &body["error"]["code"]), (&json!("2.0"), &json!(-32600)));
                }
            }
        }
    }
    let mut request = build_request("1.0", "GET", "/agents/echo/tasks/t1", None);
    request.headers_mut().insert("deny", "refused".parse().unwrap());
    let response = send(&double, request).await;
    assert_eq!(response.json()["error"]["details"][0]["reason"], "UNSUPPORTED_OPERATION");
    for path in ["/agents/other", "/agents/other/tasks/t1"] {
        let response = send(&double, build_request("1.0", "POST", path, Some(&json!({})))).await;
        let expected = if path.ends_with("t1") { StatusCode::METHOD_NOT_ALLOWED } else { StatusCode::NOT_FOUND };
        assert_eq!(response.status, expected);
    }
    assert_eq!(get(&double, "", "GET", "/agents/other/tasks/t1").await.status, StatusCode::NOT_FOUND);
    assert!(double.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_response_has_the_requested_content_type() {
    let double = Double::default();
    let body = json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}});
    let old = json!({"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "x"}]}});
    let plain = "application/json";
    let own = "application/a2a+json";
    for (version, sent, accept, expected) in [
        ("1.0", plain, "*/*", plain),
        ("1.0", "application/A2A+JSON; charset=utf-8", "*/*", own),
        ("1.0", plain, "application/a2a+json, application/json", own),
        ("0.3", own, own, plain),
    ] {
        let body = if version == "1.0" { &body } else { &old };
        let mut request = build_request(version, "POST", "/agents/echo/message:send", Some(body));
        request.headers_mut().insert("content-type", sent.parse().unwrap());
        request.headers_mut().insert("accept", accept.parse().unwrap());
        let response = send(&double, request).await;
        assert_eq!(
            (response.status, response.header("content-type")),
            (StatusCode::OK, expected),
            "{version} {sent} {accept}"
        );
    }
}

#[tokio::test]
async fn extensions_and_tenants_reach_the_handler() {
    let double = Double::default();
    for (version, name) in [("1.0", "a2a-extensions"), ("0.3", "x-a2a-extensions")] {
        for path in ["/agents/echo/tasks/t1", "/agents/echo/other/tasks/t1", "/agents/echo/echo/tasks/t1"] {
            let mut request = build_request(version, "GET", path, None);
            request.headers_mut().insert(name, "https://known/1, https://odd,https://known/2".parse().unwrap());
            let response = send(&double, request).await;
            assert_eq!(response.header(name), "https://known/1, https://known/2");
            let (tenant, requested, used_version, binding) = double.calls.lock().unwrap().pop().unwrap();
            assert_eq!(requested, ["https://known/1", "https://odd", "https://known/2"]);
            assert_eq!(tenant.as_deref(), path.contains("other").then_some("other"));
            assert_eq!((used_version.as_str(), binding), (version, Binding::HttpJson));
            let Some(OperationRequest::Get(request)) = double.seen.lock().unwrap().pop() else { panic!() };
            assert_eq!(request.tenant, tenant);
        }
    }
    let response = rpc(&double, "1.0", "GetTask", json!({"id": "t1", "tenant": "x"})).await;
    assert_eq!(response.header("a2a-extensions"), "");
    let Some(OperationRequest::Get(request)) = double.seen.lock().unwrap().pop() else { panic!() };
    assert_eq!(request.tenant.as_deref(), Some("x"));
}

#[tokio::test]
async fn query_strings_and_bodies_are_equivalent() {
    let double = Double::default();
    let query = "contextId=a%20b+c&status=TASK_STATE_WORKING&pageSize=7&pageToken=x%3D&historyLength=0\
                 &statusTimestampAfter=2023-11-14T22:13:20%2B00:00&includeArtifacts=true&unknown=1&tenant=";
    get(&double, "1.0", "GET", &format!("/agents/echo/tasks?{query}")).await;
    let by_query = double.seen.lock().unwrap().pop();
    rpc(
        &double,
        "1.0",
        "ListTasks",
        json!({
            "contextId": "a b c", "status": 2, "page_size": "7", "pageToken": "x=", "historyLength": 0,
            "statusTimestampAfter": "2023-11-14T22:13:20Z", "include_artifacts": true, "tenant": null,
        }),
    )
    .await;
    assert!(by_query.is_some());
    assert_eq!(by_query, double.seen.lock().unwrap().pop());

    // In 0.3 a history length of zero means the whole history.
    for (version, expected) in [("0.3", None), ("1.0", Some(0))] {
        get(&double, version, "GET", "/agents/echo/tasks/t1?historyLength=0").await;
        let Some(OperationRequest::Get(request)) = double.seen.lock().unwrap().pop() else { panic!() };
        assert_eq!(request.history_length, expected);
    }
    get(&double, "", "GET", "/agents/echo/tasks/t1?A2A-Version=1.0&history_length=3").await;
    assert_eq!(double.calls.lock().unwrap().last().unwrap().2, Version::V10);
}

#[tokio::test]
async fn messages_are_accepted_in_all_forms() {
    let double = Double::default();
    let parts = json!([{"text": "hi"}, {"raw": "AQI=", "filename": "a", "mediaType": "x/y"}, {"url": "https://a"}, {"data": null}, {"data": {"a": [1]}}]);
    rpc(
        &double,
        "1.0",
        "SendMessage",
        json!({"message": {"message_id": "m", "role": 1, "parts": parts, "new": 1}, "newer": 1}),
    )
    .await;
    let Some(OperationRequest::Send(new)) = double.seen.lock().unwrap().pop() else { panic!() };
    let parts = json!([{"kind": "text", "text": "hi"}, {"kind": "file", "file": {"bytes": "AQI=", "name": "a", "mimeType": "x/y"}},
        {"kind": "file", "file": {"uri": "https://a"}}, {"kind": "data", "data": {"value": null}, "metadata": {"data_part_compat": true}}, {"kind": "data", "data": {"a": [1]}}]);
    rpc(
        &double,
        "",
        "message/send",
        json!({"message": {"messageId": "m", "role": "user", "parts": parts, "contextId": null}}),
    )
    .await;
    let Some(OperationRequest::Send(old)) = double.seen.lock().unwrap().pop() else { panic!() };
    assert_eq!(new, old);
    assert_eq!(new.message.parts.len(), 5);

    // The Python SDK sends and expects base64 text instead of bytes.
    let twice = a2a::base64_bytes::encode(b"AQI=");
    let body =
        json!({"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"file": {"fileWithBytes": twice}}]}});
    for (agent, decoded, encoded) in
        [("python-httpx/0.28", vec![1, 2], twice.as_str()), ("node", b"AQI=".to_vec(), twice.as_str())]
    {
        let mut request = build_request("", "POST", "/agents/echo/v1/message:send", Some(&body));
        request.headers_mut().insert("user-agent", agent.parse().unwrap());
        let response = send(&double, request).await.json();
        let Some(OperationRequest::Send(sent)) = double.seen.lock().unwrap().pop() else { panic!() };
        assert_eq!(sent.message.parts[0].content, PartContent::Raw(decoded), "{agent}");
        assert_eq!(
            response.pointer("/task/history/0/content/0/file/fileWithBytes"),
            Some(&json!(encoded)),
            "{agent}: {response}"
        );
    }
    // The default for waiting depends on whether a configuration is present.
    for (path, body, expected) in [
        ("/agents/echo/message:send", json!({"configuration": {}}), Some(true)),
        ("/agents/echo/message:send", json!({}), None),
    ] {
        let mut body = body;
        body["message"] = json!({"messageId": "m", "role": "ROLE_USER", "content": [{"text": "x"}]});
        send(&double, build_request("0.3", "POST", path, Some(&body))).await;
        let Some(OperationRequest::Send(sent)) = double.seen.lock().unwrap().pop() else { panic!() };
        assert_eq!(sent.configuration.and_then(|configuration| configuration.return_immediately), expected);
    }
}

#[tokio::test]
async fn the_response_may_be_a_message() {
    let double = Double::default();
    let old = json!({"message": {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "message"}]}});
    let new = json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "message"}]}});
    let response = rpc(&double, "", "message/send", old).await.json();
    assert_eq!((&response["result"]["kind"], &response["result"]["role"]), (&json!("message"), &json!("agent")));
    let response = rpc(&double, "1.0", "SendMessage", new.clone()).await.json();
    assert_eq!(response["result"]["message"]["parts"], json!([{"text": "hello"}]));
    let response = send(&double, build_request("1.0", "POST", "/agents/echo/message:send", Some(&new))).await.json();
    assert_eq!(response["message"]["role"], "ROLE_AGENT");
    let response = send(&double, build_request("", "POST", "/agents/echo/v1/message:send", Some(&new))).await.json();
    assert_eq!(response["message"]["content"], json!([{"text": "hello"}]));
}
