//! Arbitrary input never causes a panic or an internal error.

use axum::body::Body;
use http::header::CONTENT_TYPE;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::double::{self, Double, TestResponse};

const METHODS: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"];

fn send(method: &str, path: &str, version: &str, body: Vec<u8>) -> TestResponse {
    let request = http::Request::builder().method(method).uri(path).header(CONTENT_TYPE, "application/json");
    let Ok(request) = request.header("A2A-Version", version).body(Body::from(body)) else {
        // Invalid paths never reach the handler.
        return TestResponse { status: http::StatusCode::OK, headers: http::HeaderMap::new(), body: Vec::new() };
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(double::send(&Double::default(), request))
}

fn path() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "",
        "/",
        "/v1",
        "/message:send",
        "/v1/message:send",
        "/message:stream",
        "/tasks",
        "/tasks/t1",
        "/tasks/t1:cancel",
        "/tasks/t1:subscribe",
        "/tasks/t1/pushNotificationConfigs",
        "/tasks/t1/pushNotificationConfigs/c1",
        "/extendedAgentCard",
        "/v1/card",
        "/.well-known/agent-card.json",
        "/tenant/tasks",
    ]);
    let query =
        prop_oneof![Just(String::new()), "\\?[a-zA-Z]{1,12}=[a-z0-9%+-]{0,8}", Just("?historyLength=%ff".to_owned())];
    let odd = "(/[a-zA-Z0-9:.%_-]{0,9}){0,5}";
    prop_oneof![
        4 => (known, query).prop_map(|(path, query)| format!("/agents/echo{path}{query}")),
        1 => odd.prop_map(|path| format!("/agents/echo{path}")),
        1 => odd.prop_map(|path| format!("/agents{path}")),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec!["t1", "m", "user", "ROLE_USER", "text", "file", "data", "AQI=", "working", ""])
            .prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let name = prop_oneof![
        6 => prop::sample::select(vec![
            "message", "messageId", "role", "parts", "content", "kind", "text", "file", "bytes", "uri", "fileWithBytes", "data",
            "raw", "url", "configuration", "historyLength", "blocking", "returnImmediately", "metadata", "id", "taskId",
            "pushNotificationConfig", "authentication", "scheme", "schemes", "status", "pageSize", "config", "tenant",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((name.clone(), inner), 0..7).prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

fn method() -> impl Strategy<Value = String> {
    let known = a2a::Operation::ALL.iter().flat_map(|operation| [Some(operation.as_str()), operation.v03_method()]);
    let known: Vec<&str> = known.flatten().collect();
    prop_oneof![9 => prop::sample::select(known).prop_map(str::to_owned), 1 => any::<String>()]
}

fn version() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", "0.3", "1.0", "1.0", "7"])
}

fn assert_no_server_error(response: &TestResponse) -> Result<(), TestCaseError> {
    prop_assert!(response.status.as_u16() < 500, "{} {}", response.status, response.text());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    // A2A-1
    #[test]
    fn arbitrary_bytes_cause_no_server_error(method in prop::sample::select(METHODS.to_vec()), path in path(), version in version(), body in vec(any::<u8>(), 0..200)) {
        assert_no_server_error(&send(method, &path, version, body))?;
    }

    // A2A-1
    #[test]
    fn arbitrary_json_causes_no_server_error(method in prop::sample::select(METHODS.to_vec()), path in path(), version in version(), body in value()) {
        assert_no_server_error(&send(method, &path, version, body.to_string().into_bytes()))?;
    }

    // A2A-1
    #[test]
    fn arbitrary_params_are_answered(method in method(), version in version(), params in value(), id in value()) {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let response = send("POST", "/agents/echo", version, body.to_string().into_bytes());
        assert_no_server_error(&response)?;
        let answer = if response.header("content-type") == "text/event-stream" { response.events().remove(0) } else { response.json() };
        prop_assert_eq!(&answer["jsonrpc"], "2.0");
        prop_assert!(answer.get("result").is_some() || answer["error"]["code"].is_i64(), "{}", answer);
    }

    // A2A-1
    #[test]
    fn arbitrary_messages_cause_no_server_error(version in version(), message in value(), configuration in value(), stream in any::<bool>()) {
        let body = json!({"message": message, "configuration": configuration});
        let path = if stream { "/agents/echo/message:stream" } else { "/agents/echo/message:send" };
        assert_no_server_error(&send("POST", path, version, body.to_string().into_bytes()))?;
    }
}
