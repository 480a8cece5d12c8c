//! Streaming responses.

use a2a::Version;
use http::StatusCode;
use serde_json::{Value, json};

use crate::double::{Double, TestResponse, build_request, rpc, send};

/// Returns the same stream in every binding and version. The flag is true for JSON-RPC.
async fn streams(double: &Double, text: &str) -> Vec<(Version, bool, TestResponse)> {
    let old = json!({"message": {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": text}]}});
    let new = json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}});
    let path = "/agents/echo/message:stream";
    vec![
        (Version::V03, true, rpc(double, "", "message/stream", old).await),
        (Version::V10, true, rpc(double, "1.0", "SendStreamingMessage", new.clone()).await),
        (Version::V03, false, send(double, build_request("", "POST", path, Some(&new))).await),
        (Version::V10, false, send(double, build_request("1.0", "POST", path, Some(&new))).await),
    ]
}

// A2A-1
#[tokio::test]
async fn a_thousand_updates_arrive_in_order() {
    let double = Double::default();
    for (version, rpc, response) in streams(&double, "1000").await {
        let case = format!("{} {rpc}", version.as_str());
        let events = response.events();
        assert_eq!(events.len(), 1002, "{case}");
        let body = |event: &Value| {
            if rpc {
                assert_eq!((&event["jsonrpc"], &event["id"]), (&json!("2.0"), &json!(7)), "{case}");
                event["result"].clone()
            } else {
                event.clone()
            }
        };
        for (number, event) in events[1..1001].iter().enumerate() {
            let update = body(event);
            let update = if update["kind"] == "artifact-update" { &update } else { &update["artifactUpdate"] };
            assert_eq!(update["artifact"]["parts"][0]["text"], number.to_string(), "{case}");
        }
        let last = body(&events[1001]);
        match (version, rpc) {
            (Version::V03, true) => {
                let expected = json!({"kind": "status-update", "taskId": "t1", "contextId": "c1", "final": true,
                    "status": {"state": "completed"}});
                assert_eq!(last, expected);
            }
            (Version::V03, false) => assert_eq!(last["statusUpdate"]["final"], true),
            (Version::V10, _) => {
                let expected = json!({"statusUpdate": {"taskId": "t1", "contextId": "c1",
                    "status": {"state": "TASK_STATE_COMPLETED"}}});
                assert_eq!(last, expected);
            }
        }
        assert_eq!(response.header("cache-control"), "no-store");
    }
}

// A2A-1
#[tokio::test]
async fn an_error_before_the_first_event_is_a_plain_response() {
    let double = Double::default();
    let response = rpc(&double, "1.0", "SubscribeToTask", json!({"id": "early"})).await;
    assert_eq!(
        (response.header("content-type"), &response.json()["error"]["code"]),
        ("application/json", &json!(-32004))
    );
    // Clients of 0.3 accept only events here.
    let response = rpc(&double, "", "tasks/resubscribe", json!({"id": "early"})).await;
    assert_eq!(response.events()[0]["error"]["code"], -32004);
    let response = send(&double, build_request("1.0", "GET", "/agents/echo/tasks/early:subscribe", None)).await;
    assert_eq!((response.header("content-type"), response.status), ("application/json", StatusCode::BAD_REQUEST));
}

// A2A-1
#[tokio::test]
async fn a_later_error_is_the_last_event() {
    let double = Double::default();
    for (version, method) in [("1.0", "SubscribeToTask"), ("", "tasks/resubscribe")] {
        let events = rpc(&double, version, method, json!({"id": "late"})).await.events();
        assert_eq!((events.len(), &events[1]["error"]["code"], &events[1]["id"]), (2, &json!(-32603), &json!(7)));
        let response =
            send(&double, build_request(version, "POST", "/agents/echo/v1/tasks/late:subscribe", None)).await;
        assert!(response.text().contains("\n\nevent: error\ndata: {"), "{}", response.text());
        let code = if version == "1.0" { "/error/code" } else { "/code" };
        let expected = if version == "1.0" { json!(500) } else { json!(-32603) };
        assert_eq!(response.events()[1].pointer(code), Some(&expected));
    }
}
