//! What HTTP asks for: methods, headers, denials, and what is said besides.

use a2a::types::PartContent;
use a2a::{Binding, Request, Version};
use http::StatusCode;
use serde_json::json;

use crate::double::{Double, Got, ask, request, rpc};

async fn get(double: &Double, version: &str, method: &str, path: &str) -> Got {
    ask(double, request(version, method, path, None)).await
}

#[tokio::test]
async fn methods_that_do_nothing_are_told_what_does() {
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
        let got = get(&double, "1.0", method, path).await;
        assert_eq!((got.status, got.header("allow")), (StatusCode::METHOD_NOT_ALLOWED, allow), "{method} {path}");
        let got = get(&double, "", "OPTIONS", path).await;
        assert_eq!((got.status, got.header("allow")), (StatusCode::NO_CONTENT, allow), "{path}");
    }
    for path in ["/agents/echo/x", "/agents/echo/tasks/t1/x", "/agents/echo/a/b/c", "/agents/echo/v1/v1/x"] {
        let got = get(&double, "1.0", "GET", path).await;
        assert_eq!(
            (got.status, &got.json()["error"]["status"]),
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
async fn denials_are_those_of_http_in_every_binding() {
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
                let mut asked = request(version, method, path, Some(&json!({})));
                asked.headers_mut().insert("deny", reason.parse().unwrap());
                let got = ask(&double, asked).await;
                assert_eq!(got.status.as_u16(), status, "{path}");
                assert_eq!(got.header(header.0), header.1, "{path}");
                let body = got.json();
                assert!(body.get("error").is_some(), "{body}");
                if path == "/agents/echo" {
                    assert_eq!((&body["jsonrpc"], &body["error"]["code"]), (&json!("2.0"), &json!(-32600)));
                }
            }
        }
    }
    let mut asked = request("1.0", "GET", "/agents/echo/tasks/t1", None);
    asked.headers_mut().insert("deny", "refused".parse().unwrap());
    let got = ask(&double, asked).await;
    assert_eq!(got.json()["error"]["details"][0]["reason"], "UNSUPPORTED_OPERATION");
    for path in ["/agents/other", "/agents/other/tasks/t1"] {
        let got = ask(&double, request("1.0", "POST", path, Some(&json!({})))).await;
        let expected = if path.ends_with("t1") { StatusCode::METHOD_NOT_ALLOWED } else { StatusCode::NOT_FOUND };
        assert_eq!(got.status, expected);
    }
    assert_eq!(get(&double, "", "GET", "/agents/other/tasks/t1").await.status, StatusCode::NOT_FOUND);
    assert!(double.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_type_of_an_answer_is_the_one_that_was_asked_for() {
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
        let mut asked = request(version, "POST", "/agents/echo/message:send", Some(body));
        asked.headers_mut().insert("content-type", sent.parse().unwrap());
        asked.headers_mut().insert("accept", accept.parse().unwrap());
        let got = ask(&double, asked).await;
        assert_eq!((got.status, got.header("content-type")), (StatusCode::OK, expected), "{version} {sent} {accept}");
    }
}

#[tokio::test]
async fn extensions_and_tenants_are_passed_on() {
    let double = Double::default();
    for (version, name) in [("1.0", "a2a-extensions"), ("0.3", "x-a2a-extensions")] {
        for path in ["/agents/echo/tasks/t1", "/agents/echo/other/tasks/t1", "/agents/echo/echo/tasks/t1"] {
            let mut asked = request(version, "GET", path, None);
            asked.headers_mut().insert(name, "https://known/1, https://odd,https://known/2".parse().unwrap());
            let got = ask(&double, asked).await;
            assert_eq!(got.header(name), "https://known/1, https://known/2");
            let (tenant, wanted, spoken, binding) = double.calls.lock().unwrap().pop().unwrap();
            assert_eq!(wanted, ["https://known/1", "https://odd", "https://known/2"]);
            assert_eq!(tenant.as_deref(), path.contains("other").then_some("other"));
            assert_eq!((spoken.as_str(), binding), (version, Binding::HttpJson));
            let Some(Request::Get(request)) = double.seen.lock().unwrap().pop() else { panic!() };
            assert_eq!(request.tenant, tenant);
        }
    }
    let got = rpc(&double, "1.0", "GetTask", json!({"id": "t1", "tenant": "x"})).await;
    assert_eq!(got.header("a2a-extensions"), "");
    let Some(Request::Get(request)) = double.seen.lock().unwrap().pop() else { panic!() };
    assert_eq!(request.tenant.as_deref(), Some("x"));
}

#[tokio::test]
async fn queries_say_the_same_as_bodies() {
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

    // To ask for no history at all is to ask for all of it in 0.3.
    for (version, expected) in [("0.3", None), ("1.0", Some(0))] {
        get(&double, version, "GET", "/agents/echo/tasks/t1?historyLength=0").await;
        let Some(Request::Get(request)) = double.seen.lock().unwrap().pop() else { panic!() };
        assert_eq!(request.history_length, expected);
    }
    get(&double, "", "GET", "/agents/echo/tasks/t1?A2A-Version=1.0&history_length=3").await;
    assert_eq!(double.calls.lock().unwrap().last().unwrap().2, Version::V10);
}

#[tokio::test]
async fn messages_are_the_same_in_every_form() {
    let double = Double::default();
    let parts = json!([{"text": "hi"}, {"raw": "AQI=", "filename": "a", "mediaType": "x/y"}, {"url": "https://a"}, {"data": null}, {"data": {"a": [1]}}]);
    rpc(
        &double,
        "1.0",
        "SendMessage",
        json!({"message": {"message_id": "m", "role": 1, "parts": parts, "new": 1}, "newer": 1}),
    )
    .await;
    let Some(Request::Send(new)) = double.seen.lock().unwrap().pop() else { panic!() };
    let parts = json!([{"kind": "text", "text": "hi"}, {"kind": "file", "file": {"bytes": "AQI=", "name": "a", "mimeType": "x/y"}},
        {"kind": "file", "file": {"uri": "https://a"}}, {"kind": "data", "data": {"value": null}, "metadata": {"data_part_compat": true}}, {"kind": "data", "data": {"a": [1]}}]);
    rpc(
        &double,
        "",
        "message/send",
        json!({"message": {"messageId": "m", "role": "user", "parts": parts, "contextId": null}}),
    )
    .await;
    let Some(Request::Send(old)) = double.seen.lock().unwrap().pop() else { panic!() };
    assert_eq!(new, old);
    assert_eq!(new.message.parts.len(), 5);

    // One implementation puts text where bytes are meant, and reads it so.
    let twice = a2a::bytes64::encode(b"AQI=");
    let body =
        json!({"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"file": {"fileWithBytes": twice}}]}});
    for (agent, meant, answered) in
        [("python-httpx/0.28", vec![1, 2], twice.as_str()), ("node", b"AQI=".to_vec(), twice.as_str())]
    {
        let mut asked = request("", "POST", "/agents/echo/v1/message:send", Some(&body));
        asked.headers_mut().insert("user-agent", agent.parse().unwrap());
        let got = ask(&double, asked).await.json();
        let Some(Request::Send(sent)) = double.seen.lock().unwrap().pop() else { panic!() };
        assert_eq!(sent.message.parts[0].content, PartContent::Raw(meant), "{agent}");
        assert_eq!(
            got.pointer("/task/history/0/content/0/file/fileWithBytes"),
            Some(&json!(answered)),
            "{agent}: {got}"
        );
    }
    // What is not said about waiting is not the same everywhere.
    for (path, body, expected) in [
        ("/agents/echo/message:send", json!({"configuration": {}}), Some(true)),
        ("/agents/echo/message:send", json!({}), None),
    ] {
        let mut body = body;
        body["message"] = json!({"messageId": "m", "role": "ROLE_USER", "content": [{"text": "x"}]});
        ask(&double, request("0.3", "POST", path, Some(&body))).await;
        let Some(Request::Send(sent)) = double.seen.lock().unwrap().pop() else { panic!() };
        assert_eq!(sent.configuration.and_then(|configuration| configuration.return_immediately), expected);
    }
}

#[tokio::test]
async fn an_answer_may_be_a_message() {
    let double = Double::default();
    let old = json!({"message": {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "message"}]}});
    let new = json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "message"}]}});
    let got = rpc(&double, "", "message/send", old).await.json();
    assert_eq!((&got["result"]["kind"], &got["result"]["role"]), (&json!("message"), &json!("agent")));
    let got = rpc(&double, "1.0", "SendMessage", new.clone()).await.json();
    assert_eq!(got["result"]["message"]["parts"], json!([{"text": "hello"}]));
    let got = ask(&double, request("1.0", "POST", "/agents/echo/message:send", Some(&new))).await.json();
    assert_eq!(got["message"]["role"], "ROLE_AGENT");
    let got = ask(&double, request("", "POST", "/agents/echo/v1/message:send", Some(&new))).await.json();
    assert_eq!(got["message"]["content"], json!([{"text": "hello"}]));
}
