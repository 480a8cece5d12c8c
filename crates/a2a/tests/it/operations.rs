//! Every operation in both bindings and versions, with valid and invalid requests.

use a2a::{Operation, Version};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::double::{Double, TestResponse, build_request, send};

const BOTH: [Version; 2] = [Version::V03, Version::V10];

/// Returns the JSON-RPC parameters of an operation, or `None` if the version does not have it.
fn params(operation: Operation, version: Version, task: &str) -> Option<Value> {
    use Operation::*;
    let old = version == Version::V03;
    Some(match operation {
        Send | Stream if old => json!({"message": {"kind": "message", "messageId": "m", "role": "user", "taskId": task,
            "parts": [{"kind": "text", "text": "hi"}]}, "configuration": {"blocking": true}}),
        Send | Stream => json!({"message": {"messageId": "m", "role": "ROLE_USER", "taskId": task,
            "parts": [{"text": "hi"}]}, "configuration": {"returnImmediately": false}}),
        Get | Cancel | Subscribe => json!({"id": task}),
        ListPush if old => json!({"id": task}),
        ListPush => json!({"taskId": task}),
        List if old => return None,
        List => json!({"contextId": "c1"}),
        SetPush if old => {
            json!({"taskId": task, "pushNotificationConfig": {"id": "c1", "url": "https://example.org"}})
        }
        SetPush => json!({"taskId": task, "id": "c1", "url": "https://example.org"}),
        GetPush | DeletePush if old => json!({"id": task, "pushNotificationConfigId": "c1"}),
        GetPush | DeletePush => json!({"task_id": task, "id": "c1"}),
        ExtendedCard => json!({}),
    })
}

/// Returns the HTTP+JSON request of an operation: method, path below the base, body.
fn path(operation: Operation, version: Version, task: &str) -> (&'static str, String, Option<Value>) {
    use Operation::*;
    let old = version == Version::V03;
    let below = |rest: &str| format!("/tasks/{task}{rest}");
    let message = match version {
        Version::V03 => json!({"message": {"messageId": "m", "role": "ROLE_USER", "taskId": task,
            "content": [{"text": "hi"}]}, "configuration": {"blocking": true}}),
        Version::V10 => json!({"message": {"messageId": "m", "role": "ROLE_USER", "taskId": task,
            "parts": [{"text": "hi"}]}}),
    };
    let push = json!({"id": "c1", "url": "https://example.org"});
    match operation {
        Send => ("POST", "/message:send".to_owned(), Some(message)),
        Stream => ("POST", "/message:stream".to_owned(), Some(message)),
        Get => ("GET", below("?historyLength=1"), None),
        List => ("GET", "/tasks?contextId=c1&pageSize=2".to_owned(), None),
        Cancel => ("POST", below(":cancel"), None),
        Subscribe if old => ("GET", below(":subscribe"), None),
        Subscribe => ("POST", below(":subscribe"), None),
        SetPush if old => ("POST", below("/pushNotificationConfigs"), Some(json!({"pushNotificationConfig": push}))),
        SetPush => ("POST", below("/pushNotificationConfigs"), Some(push)),
        GetPush => ("GET", below("/pushNotificationConfigs/c1"), None),
        ListPush => ("GET", below("/pushNotificationConfigs"), None),
        DeletePush => ("DELETE", below("/pushNotificationConfigs/c1"), None),
        ExtendedCard if old => ("GET", "/card".to_owned(), None),
        ExtendedCard => ("GET", "/extendedAgentCard".to_owned(), None),
    }
}

/// Returns a JSON pointer and its expected value in a successful response. In JSON-RPC it is below `result`.
fn expected(operation: Operation, version: Version, rpc: bool) -> (&'static str, Value) {
    use Operation::*;
    let url = json!("https://example.org");
    match (operation, version, rpc) {
        (Send | Stream | Subscribe | Get | Cancel, Version::V03, true) => ("/kind", json!("task")),
        (Send | Stream | Subscribe, ..) => ("/task/id", json!("t1")),
        (Get | Cancel, Version::V03, false) => ("/status/state", json!("TASK_STATE_COMPLETED")),
        (Get | Cancel, ..) => ("/id", json!("t1")),
        (List, ..) => ("/tasks/0/id", json!("t1")),
        (SetPush | GetPush, Version::V03, _) => ("/pushNotificationConfig/url", url),
        (SetPush | GetPush, ..) => ("/url", url),
        (ListPush, Version::V03, true) => ("/0/pushNotificationConfig/url", url),
        (ListPush, Version::V03, false) => ("/configs/0/pushNotificationConfig/url", url),
        (ListPush, ..) => ("/configs/0/url", url),
        (DeletePush, _, true) => ("", Value::Null),
        (DeletePush, ..) => ("", json!({})),
        (ExtendedCard, ..) => ("/name", json!("Echo")),
    }
}

fn method(operation: Operation, version: Version) -> &'static str {
    if version == Version::V03 { operation.v03_method().unwrap_or("tasks/list") } else { operation.as_str() }
}

async fn by_rpc(double: &Double, version: &str, method: &str, params: &Value, content_type: &str) -> TestResponse {
    let body = json!({"jsonrpc": "2.0", "id": "x", "method": method, "params": params});
    let mut request = build_request(version, "POST", "/agents/echo", Some(&body));
    request.headers_mut().insert(CONTENT_TYPE, content_type.parse().unwrap());
    send(double, request).await
}

async fn by_rest(double: &Double, version: &str, request: &(&str, String, Option<Value>)) -> Vec<TestResponse> {
    let (method, path, body) = request;
    let mut all = Vec::new();
    for base in ["/agents/echo", "/agents/echo/v1", "/agents/echo/some-tenant"] {
        all.push(send(double, build_request(version, method, &format!("{base}{path}"), body.as_ref())).await);
    }
    all
}

fn first(operation: Operation, response: &TestResponse) -> Value {
    assert_eq!(response.status, StatusCode::OK, "{operation:?}: {}", response.text());
    if operation.is_streaming() { response.events().remove(0) } else { response.json() }
}

/// Asserts the status, code and reason of an error in HTTP+JSON.
fn assert_rest(version: Version, response: &TestResponse, status: u16, code: i32, reason: &str, case: &str) {
    assert_eq!(response.status.as_u16(), status, "{case}: {}", response.text());
    assert_eq!(response.header("content-type"), "application/json", "{case}");
    let body = response.json();
    match version {
        Version::V03 => assert_eq!(body["code"], code, "{case}: {body}"),
        Version::V10 => {
            assert_eq!(body["error"]["code"], status, "{case}: {body}");
            assert_info(&body["error"]["details"], reason, case);
        }
    }
}

fn assert_rpc(version: Version, response: &TestResponse, code: i32, reason: &str, case: &str) {
    assert_eq!(response.status, StatusCode::OK, "{case}");
    // In a stream of 0.3 an error is an event.
    let body = response.error();
    assert_eq!(body["jsonrpc"], "2.0", "{case}");
    assert_eq!(body["error"]["code"], code, "{case}: {body}");
    assert!(body["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{case}: {body}");
    if version == Version::V10 {
        assert_info(&body["error"]["data"], reason, case);
    }
}

fn assert_info(details: &Value, reason: &str, case: &str) {
    let info = &details[0];
    assert_eq!(info["@type"], "type.googleapis.com/google.rpc.ErrorInfo", "{case}: {details}");
    assert_eq!((&info["reason"], &info["domain"]), (&json!(reason), &json!("a2a-protocol.org")), "{case}: {details}");
}

// A2A-1
#[tokio::test]
async fn every_operation_responds() {
    let double = Double::default();
    for operation in Operation::ALL {
        for version in BOTH {
            let case = format!("{operation:?} {}", version.as_str());
            if let Some(params) = params(operation, version, "t1") {
                let response =
                    by_rpc(&double, version.as_str(), method(operation, version), &params, "application/json").await;
                let body = first(operation, &response);
                let (pointer, value) = expected(operation, version, true);
                assert_eq!(body.pointer(&format!("/result{pointer}")), Some(&value), "{case}: {body}");
                assert_eq!((&body["jsonrpc"], &body["id"]), (&json!("2.0"), &json!("x")), "{case}");
                assert_eq!(double.seen.lock().unwrap().last().unwrap().operation(), operation);
            }
            for response in by_rest(&double, version.as_str(), &path(operation, version, "t1")).await {
                let body = first(operation, &response);
                let (pointer, value) = expected(operation, version, false);
                assert_eq!(body.pointer(pointer), Some(&value), "{case}: {body}");
                assert_eq!(double.seen.lock().unwrap().last().unwrap().operation(), operation);
            }
        }
    }
}

// A2A-1
#[tokio::test]
async fn the_default_version_is_0_3() {
    let double = Double::default();
    let params = params(Operation::Send, Version::V03, "t1").unwrap();
    for version in ["", "0.3", "0.3.0"] {
        let response = by_rpc(&double, version, "message/send", &params, "application/json").await;
        assert_eq!(response.json()["result"]["kind"], "task", "{version}");
    }
    let response = by_rpc(&double, "", "SendMessage", &params, "application/json").await;
    assert_rpc(Version::V03, &response, -32601, "", "a method of 1.0");
    assert!(response.text().contains("with A2A-Version: 1.0"), "{}", response.text());
}

// A2A-1
#[tokio::test]
async fn unknown_tasks_are_not_found() {
    let double = Double::default();
    for operation in Operation::ALL {
        if matches!(operation, Operation::List | Operation::ExtendedCard) {
            continue;
        }
        for version in BOTH {
            let case = format!("{operation:?} {}", version.as_str());
            let params = params(operation, version, "t9").unwrap();
            let response =
                by_rpc(&double, version.as_str(), method(operation, version), &params, "application/json").await;
            assert_rpc(version, &response, -32001, "TASK_NOT_FOUND", &case);
            assert_eq!(response.error()["id"], "x");
            let stream = version == Version::V03 && operation.is_streaming();
            let expected = if stream { "text/event-stream" } else { "application/json" };
            assert_eq!(response.header("content-type"), expected, "{case}");
            for response in by_rest(&double, version.as_str(), &path(operation, version, "t9")).await {
                assert_rest(version, &response, 404, -32001, "TASK_NOT_FOUND", &case);
            }
        }
    }
}

// A2A-1
#[tokio::test]
async fn errors_name_the_invalid_parameter() {
    use Operation::*;
    let double = Double::default();
    let old = |parts: Value| json!({"message": {"messageId": "m", "role": "user", "parts": parts}});
    let new = |parts: Value| json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": parts}});
    let three = Version::V03;
    let ten = Version::V10;
    for (operation, version, params, field) in [
        (Send, three, json!({}), "message"),
        (Send, three, json!({"message": {"parts": "x"}}), "message.parts"),
        (Send, three, json!({"message": {"kind": "message"}}), "message.messageId"),
        (Send, three, json!({"message": {"messageId": "m", "parts": []}}), "message.role"),
        (Send, three, json!({"message": {"messageId": "m", "role": "user"}}), "message.parts"),
        (Send, three, json!({"message": {"messageId": "m", "role": "king", "parts": []}}), "message.role"),
        (
            Send,
            three,
            json!({"message": {"messageId": "", "role": "user", "parts": [{"kind": "text", "text": ""}]}}),
            "message.messageId",
        ),
        (Send, three, old(json!([])), "message.parts"),
        (Send, three, old(json!([{"kind": "text"}])), "message.parts[0].text"),
        (Send, three, old(json!([{"kind": "text", "text": "x"}, {"kind": "film"}])), "message.parts[1]"),
        (Send, three, old(json!([{"type": "text", "text": "x"}])), "message.parts[0].kind"),
        (Stream, three, json!({"message": {"kind": "task"}}), "message.kind"),
        (Send, ten, json!({}), "message"),
        (Send, ten, json!({"message": {"role": "ROLE_USER", "parts": [{"text": "x"}]}}), "message.messageId"),
        (Send, ten, json!({"message": {"messageId": "m", "role": "user", "parts": [{"text": "x"}]}}), "message.role"),
        (Send, ten, json!({"message": {"messageId": "m", "role": "", "parts": [{"text": "x"}]}}), "message.role"),
        (Send, ten, new(json!([])), "message.parts"),
        (Send, ten, new(json!([{}])), "message.parts[0]"),
        (Send, ten, new(json!([{"text": "a", "url": "b"}])), "message.parts[0]"),
        (Send, ten, new(json!([{"raw": "?"}])), "message.parts[0].raw"),
        (
            Stream,
            ten,
            json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}, "configuration": {"historyLength": -1}}),
            "configuration.historyLength",
        ),
        (Get, three, json!({"id": 5}), "id"),
        (Get, three, json!({"id": "t1", "historyLength": -1}), "historyLength"),
        (Get, ten, json!({"id": "t1", "history_length": "many"}), "historyLength"),
        (Get, ten, json!({}), "id"),
        (List, ten, json!({"pageSize": 0}), "pageSize"),
        (List, ten, json!({"page_size": 101}), "pageSize"),
        (List, ten, json!({"status": "TASK_STATE_ODD"}), "status"),
        (List, ten, json!({"statusTimestampAfter": "soon"}), "statusTimestampAfter"),
        (List, ten, json!({"includeArtifacts": "perhaps"}), "includeArtifacts"),
        (Cancel, three, json!({"id": ""}), "id"),
        (Cancel, ten, json!({"id": "t1", "metadata": 5}), "metadata"),
        (Subscribe, three, json!({}), "id"),
        (Subscribe, ten, json!({"id": null}), "id"),
        (SetPush, three, json!({"taskId": "t1"}), "pushNotificationConfig"),
        (SetPush, three, json!({"taskId": "t1", "pushNotificationConfig": {}}), "pushNotificationConfig.url"),
        (SetPush, ten, json!({"taskId": "t1"}), "url"),
        (SetPush, ten, json!({"url": "https://example.org"}), "taskId"),
        (GetPush, three, json!({}), "id"),
        (GetPush, ten, json!({"id": "c1"}), "taskId"),
        (ListPush, three, json!({}), "id"),
        (ListPush, ten, json!({"taskId": "t1", "pageSize": true}), "pageSize"),
        (DeletePush, three, json!({"id": "t1"}), "pushNotificationConfigId"),
        (DeletePush, ten, json!({"taskId": "t1"}), "id"),
        (ExtendedCard, ten, json!({"tenant": 5}), "tenant"),
    ] {
        let case = format!("{operation:?} {} {params}", version.as_str());
        let response = by_rpc(&double, version.as_str(), method(operation, version), &params, "application/json").await;
        assert_rpc(version, &response, -32602, "INVALID_PARAMS", &case);
        let body = response.error();
        let pointer =
            if version == ten { "/error/data/1/fieldViolations/0/field" } else { "/error/data/fields/0/field" };
        let named = body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        // Numbers are accepted under both names.
        assert_eq!(
            named.replace("history_length", "historyLength").replace("page_size", "pageSize"),
            field,
            "{case}: {body}"
        );
        assert!(body["error"]["message"].as_str().unwrap().contains(named), "{case}: {body}");
    }
    for version in BOTH {
        for params in [json!([]), json!("x"), json!(["t1"]), json!(5)] {
            let response = by_rpc(&double, version.as_str(), method(Get, version), &params, "application/json").await;
            assert_rpc(version, &response, -32602, "INVALID_PARAMS", "params that are not an object");
        }
    }
    assert!(double.seen.lock().unwrap().is_empty());
}

// A2A-1
#[tokio::test]
async fn errors_name_the_invalid_field_of_bodies_and_queries() {
    use Operation::*;
    let double = Double::default();
    let three = Version::V03;
    let ten = Version::V10;
    for (operation, version, method, path, body, field) in [
        (Send, three, "POST", "/message:send", Some(json!({})), "message"),
        (
            Send,
            three,
            "POST",
            "/message:send",
            Some(json!({"message": {"messageId": "m", "role": "ROLE_USER", "content": []}})),
            "message.parts",
        ),
        (
            Stream,
            three,
            "POST",
            "/message:stream",
            Some(json!({"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"kind": "film"}]}})),
            "message.content[0]",
        ),
        (Send, ten, "POST", "/message:send", Some(json!({"message": {}})), "message.messageId"),
        (
            Stream,
            ten,
            "POST",
            "/message:stream",
            Some(json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [5]}})),
            "message.parts[0]",
        ),
        (Get, three, "GET", "/tasks/t1?history_length=x", None, "historyLength"),
        (Get, ten, "GET", "/tasks/t1?historyLength=-1", None, "historyLength"),
        (List, three, "GET", "/tasks?pageSize=many", None, "pageSize"),
        (List, ten, "GET", "/tasks?pageSize=1000", None, "pageSize"),
        (List, ten, "GET", "/tasks?status=odd", None, "status"),
        (List, ten, "GET", "/tasks?includeArtifacts=1", None, "includeArtifacts"),
        (List, ten, "GET", "/tasks?statusTimestampAfter=soon", None, "statusTimestampAfter"),
        (List, ten, "GET", "/tasks?contextId=%ff", None, "contextId"),
        (Cancel, ten, "POST", "/tasks/t1:cancel", Some(json!({"metadata": []})), "metadata"),
        (SetPush, three, "POST", "/tasks/t1/pushNotificationConfigs", Some(json!({})), "pushNotificationConfig"),
        (SetPush, ten, "POST", "/tasks/t1/pushNotificationConfigs", Some(json!({"id": "c"})), "url"),
        (ListPush, ten, "GET", "/tasks/t1/pushNotificationConfigs?pageSize=x", None, "pageSize"),
    ] {
        let case = format!("{operation:?} {} {path} {body:?}", version.as_str());
        for response in by_rest(&double, version.as_str(), &(method, path.to_owned(), body.clone())).await {
            assert_rest(version, &response, 400, -32602, "INVALID_PARAMS", &case);
            let pointer =
                if version == ten { "/error/details/1/fieldViolations/0/field" } else { "/data/fields/0/field" };
            assert_eq!(response.json().pointer(pointer), Some(&json!(field)), "{case}: {}", response.text());
        }
    }
    assert!(double.seen.lock().unwrap().is_empty());
}

// A2A-1
#[tokio::test]
async fn unsupported_versions_are_rejected() {
    let double = Double::default();
    for operation in Operation::ALL {
        for version in BOTH {
            for other in ["99.0", "0.2", "1.1", "one"] {
                let case = format!("{operation:?} {} {other}", version.as_str());
                if let Some(params) = params(operation, version, "t1") {
                    let response =
                        by_rpc(&double, other, method(operation, version), &params, "application/json").await;
                    assert_rpc(Version::V10, &response, -32009, "VERSION_NOT_SUPPORTED", &case);
                    assert_eq!(response.json()["id"], "x", "{case}");
                }
                for response in by_rest(&double, other, &path(operation, version, "t1")).await {
                    assert_rest(Version::V10, &response, 400, -32009, "VERSION_NOT_SUPPORTED", &case);
                }
            }
        }
    }
    assert!(double.seen.lock().unwrap().is_empty());
}

// A2A-1
#[tokio::test]
async fn unsupported_content_types_are_rejected() {
    let double = Double::default();
    for operation in Operation::ALL {
        for version in BOTH {
            for other in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""] {
                let case = format!("{operation:?} {} {other}", version.as_str());
                let params = params(operation, version, "t1").unwrap_or_default();
                let response = by_rpc(&double, version.as_str(), method(operation, version), &params, other).await;
                assert_rpc(version, &response, -32005, "CONTENT_TYPE_NOT_SUPPORTED", &case);
                let (method, path, body) = path(operation, version, "t1");
                if let Some(body) = body {
                    let mut request =
                        build_request(version.as_str(), method, &format!("/agents/echo{path}"), Some(&body));
                    request.headers_mut().insert(CONTENT_TYPE, other.parse().unwrap());
                    let response = send(&double, request).await;
                    assert_rest(version, &response, 400, -32005, "CONTENT_TYPE_NOT_SUPPORTED", &case);
                }
            }
        }
    }
    assert!(double.seen.lock().unwrap().is_empty());
}
