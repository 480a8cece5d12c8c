//! A table of all operations on every binding of both versions. The cases are success, missing objects, invalid parameters,
//! versions and content types, and tasks that have ended (A2A-1).

use serde_json::{Value, json};

use super::client::{A2aClient, Binding, Call, PROTOCOLS, Protocol, Version, is_streaming};
use super::expected_errors::ExpectedError;
use super::{Conformance, message, state};

/// The tasks that exist before the calls.
struct Fixture {
    /// A completed task.
    done: String,
    /// A task that requires input.
    open: String,
    context: String,
}

const UNKNOWN_ID: &str = "00000000-0000-4000-8000-000000000000";
const WEBHOOK: &str = "http://127.0.0.1:9/hook";

enum Expected {
    Success(fn(&Fixture, &Value) -> bool),
    Failure(ExpectedError),
}

use Expected::{Failure, Success};

/// The operation, the case, the parameters and the expected result.
type Row = (&'static str, &'static str, fn(&Fixture) -> Value, Expected);

fn all_rows(protocol: Protocol) -> Vec<Row> {
    let mut rows = success_rows();
    rows.extend(not_found_rows());
    rows.extend(invalid_rows(protocol));
    rows.extend(terminal_rows(protocol));
    rows.retain(|row| protocol.supports(row.0));
    rows
}

fn success_rows() -> Vec<Row> {
    vec![
        (
            "SendMessage",
            "happy",
            |_| json!({"message": message("tck-complete-task", "hi")}),
            Success(|_, answer| {
                state(&answer["task"]) == "COMPLETED"
                    && answer["task"]["status"]["message"]["parts"][0]["text"] == "Hello from TCK"
            }),
        ),
        (
            "SendStreamingMessage",
            "happy",
            |_| json!({"message": message("tck-stream-001", "hi")}),
            Success(|_, events| {
                let events = events.as_array().unwrap();
                events[0]["task"].is_object()
                    && events
                        .iter()
                        .any(|event| event["artifactUpdate"]["artifact"]["parts"][0]["text"] == "Stream hello from TCK")
                    && state(&events[events.len() - 1]["statusUpdate"]) == "COMPLETED"
            }),
        ),
        (
            "GetTask",
            "happy",
            |fixture| json!({"id": fixture.done}),
            Success(|fixture, task| {
                task["id"] == fixture.done && state(task) == "COMPLETED" && task["history"][0]["role"] == "ROLE_USER"
            }),
        ),
        (
            "ListTasks",
            "happy",
            |fixture| json!({"contextId": fixture.context, "pageSize": 10}),
            Success(|fixture, page| {
                page["tasks"].as_array().is_some_and(|tasks| tasks.iter().any(|task| task["id"] == fixture.open))
                    && page["totalSize"].as_u64() >= Some(1)
            }),
        ),
        (
            "CreateTaskPushNotificationConfig",
            "happy",
            |fixture| json!({"taskId": fixture.open, "id": "one", "url": WEBHOOK}),
            Success(|fixture, config| {
                config["id"] == "one" && config["url"] == WEBHOOK && config["taskId"] == fixture.open
            }),
        ),
        (
            "GetTaskPushNotificationConfig",
            "happy",
            |fixture| json!({"taskId": fixture.open, "id": "one"}),
            Success(|fixture, config| {
                config["id"] == "one" && config["url"] == WEBHOOK && config["taskId"] == fixture.open
            }),
        ),
        (
            "ListTaskPushNotificationConfigs",
            "happy",
            |fixture| json!({"taskId": fixture.open}),
            Success(|_, answer| {
                answer["configs"].as_array().is_some_and(|configs| configs.len() == 1 && configs[0]["id"] == "one")
            }),
        ),
        (
            "DeleteTaskPushNotificationConfig",
            "happy",
            |fixture| json!({"taskId": fixture.open, "id": "one"}),
            Success(|_, _| true),
        ),
        (
            "DeleteTaskPushNotificationConfig",
            "twice",
            |fixture| json!({"taskId": fixture.open, "id": "one"}),
            Success(|_, _| true),
        ),
        (
            "GetTaskPushNotificationConfig",
            "deleted",
            |fixture| json!({"taskId": fixture.open, "id": "one"}),
            Failure(ExpectedError::NotFound),
        ),
        ("GetExtendedAgentCard", "happy", |_| json!({}), Success(|_, card| !card["name"].is_null())),
    ]
}

fn not_found_rows() -> Vec<Row> {
    let on_unknown: fn(&Fixture) -> Value = |_| json!({"taskId": UNKNOWN_ID, "id": "one"});
    vec![
        (
            "SendMessage",
            "not found",
            |_| json!({"message": message_to(UNKNOWN_ID)}),
            Failure(ExpectedError::TaskNotFound),
        ),
        (
            "SendStreamingMessage",
            "not found",
            |_| json!({"message": message_to(UNKNOWN_ID)}),
            Failure(ExpectedError::TaskNotFound),
        ),
        ("GetTask", "not found", |_| json!({"id": UNKNOWN_ID}), Failure(ExpectedError::TaskNotFound)),
        (
            "GetTask",
            "not found, not a UUID",
            |_| json!({"id": "tck-nonexistent-1"}),
            Failure(ExpectedError::TaskNotFound),
        ),
        (
            "ListTasks",
            "not found",
            |_| json!({"contextId": "tck-no-such-context"}),
            Success(|_, page| page["tasks"] == json!([]) && page["totalSize"] == 0 && page["nextPageToken"] == ""),
        ),
        ("CancelTask", "not found", |_| json!({"id": UNKNOWN_ID}), Failure(ExpectedError::TaskNotFound)),
        ("SubscribeToTask", "not found", |_| json!({"id": UNKNOWN_ID}), Failure(ExpectedError::TaskNotFound)),
        (
            "CreateTaskPushNotificationConfig",
            "not found",
            |_| json!({"taskId": UNKNOWN_ID, "id": "one", "url": WEBHOOK}),
            Failure(ExpectedError::TaskNotFound),
        ),
        ("GetTaskPushNotificationConfig", "not found", on_unknown, Failure(ExpectedError::TaskNotFound)),
        (
            "ListTaskPushNotificationConfigs",
            "not found",
            |_| json!({"taskId": UNKNOWN_ID}),
            Failure(ExpectedError::TaskNotFound),
        ),
        ("DeleteTaskPushNotificationConfig", "not found", on_unknown, Failure(ExpectedError::TaskNotFound)),
    ]
}

fn invalid_rows(protocol: Protocol) -> Vec<Row> {
    let mut rows: Vec<Row> = vec![
        ("SendMessage", "bad params: no message", |_| json!({}), Failure(ExpectedError::InvalidParams)),
        (
            "SendMessage",
            "bad params: no parts",
            |_| json!({"message": {"messageId": "tck-1", "role": "ROLE_USER", "parts": []}}),
            Failure(ExpectedError::InvalidParams),
        ),
        (
            "SendMessage",
            "bad params: an empty part",
            |_| json!({"message": {"messageId": "tck-1", "role": "ROLE_USER", "parts": [{}]}}),
            Failure(ExpectedError::InvalidParams),
        ),
        (
            "SendMessage",
            "bad params: no messageId",
            |_| json!({"message": {"role": "ROLE_USER", "parts": [{"text": "hi"}]}}),
            Failure(ExpectedError::InvalidParams),
        ),
        (
            "SendMessage",
            "bad params: another context",
            |fixture| {
                let mut message = message_to(&fixture.open);
                message["contextId"] = json!("tck-wrong-context");
                json!({"message": message})
            },
            Failure(ExpectedError::InvalidParams),
        ),
        ("SendStreamingMessage", "bad params: no message", |_| json!({}), Failure(ExpectedError::InvalidParams)),
        (
            "SendStreamingMessage",
            "bad params: no parts",
            |_| json!({"message": {"messageId": "tck-1", "role": "ROLE_USER", "parts": []}}),
            Failure(ExpectedError::InvalidParams),
        ),
        (
            "GetTask",
            "bad params: historyLength",
            |fixture| json!({"id": fixture.done, "historyLength": -1}),
            Failure(ExpectedError::InvalidParams),
        ),
        ("ListTasks", "bad params: pageSize 0", |_| json!({"pageSize": 0}), Failure(ExpectedError::InvalidParams)),
        ("ListTasks", "bad params: pageSize 101", |_| json!({"pageSize": 101}), Failure(ExpectedError::InvalidParams)),
        (
            "ListTasks",
            "bad params: pageToken",
            |_| json!({"pageToken": "not a token"}),
            Failure(ExpectedError::InvalidParams),
        ),
        (
            "ListTasks",
            "bad params: historyLength",
            |_| json!({"historyLength": -1}),
            Failure(ExpectedError::InvalidParams),
        ),
        (
            "CreateTaskPushNotificationConfig",
            "bad params: url",
            |fixture| json!({"taskId": fixture.open, "id": "x", "url": "no url"}),
            Failure(ExpectedError::InvalidParams),
        ),
        (
            "CreateTaskPushNotificationConfig",
            "bad params: scheme",
            |fixture| json!({"taskId": fixture.open, "id": "x", "url": "ftp://example.com/"}),
            Failure(ExpectedError::InvalidParams),
        ),
    ];
    // In REST the id is part of the path, so a missing id is a different path.
    if protocol.0 != Binding::Rest {
        let none: fn(&Fixture) -> Value = |_| json!({});
        for operation in ["GetTask", "CancelTask", "SubscribeToTask", "ListTaskPushNotificationConfigs"] {
            rows.push((operation, "bad params: no id", none, Failure(ExpectedError::InvalidParams)));
        }
    }
    rows
}

fn terminal_rows(protocol: Protocol) -> Vec<Row> {
    // 0.3 has no specific error for this.
    let ended = match protocol.1 {
        Version::V1 => ExpectedError::UnsupportedOperation,
        Version::V03 => ExpectedError::InvalidParams,
    };
    let failure = || Failure(ended);
    let mut rows: Vec<Row> = vec![
        ("SendMessage", "terminal", |fixture| json!({"message": message_to(&fixture.done)}), failure()),
        ("SendStreamingMessage", "terminal", |fixture| json!({"message": message_to(&fixture.done)}), failure()),
        ("CancelTask", "terminal", |fixture| json!({"id": fixture.done}), Failure(ExpectedError::TaskNotCancelable)),
        (
            "CreateTaskPushNotificationConfig",
            "terminal",
            |fixture| json!({"taskId": fixture.done, "id": "late", "url": WEBHOOK}),
            Success(|_, config| config["id"] == "late"),
        ),
        (
            "GetTaskPushNotificationConfig",
            "terminal",
            |fixture| json!({"taskId": fixture.done, "id": "late"}),
            Success(|_, config| config["url"] == WEBHOOK),
        ),
        (
            "ListTaskPushNotificationConfigs",
            "terminal",
            |fixture| json!({"taskId": fixture.done}),
            Success(|_, answer| answer["configs"][0]["id"] == "late"),
        ),
        (
            "DeleteTaskPushNotificationConfig",
            "terminal",
            |fixture| json!({"taskId": fixture.done, "id": "late"}),
            Success(|_, _| true),
        ),
        (
            "CancelTask",
            "happy",
            |fixture| json!({"id": fixture.open}),
            Success(|fixture, task| task["id"] == fixture.open && state(task) == "CANCELED"),
        ),
        ("CancelTask", "twice", |fixture| json!({"id": fixture.open}), Failure(ExpectedError::TaskNotCancelable)),
    ];
    rows.push(match protocol.1 {
        Version::V1 => ("SubscribeToTask", "terminal", |fixture| json!({"id": fixture.done}), failure()),
        // In 0.3 a subscription to a finished task returns the final state.
        Version::V03 => (
            "SubscribeToTask",
            "terminal",
            |fixture| json!({"id": fixture.done}),
            Success(|fixture, events| {
                let events = events.as_array().unwrap();
                events.len() == 1 && events[0]["task"]["id"] == fixture.done && state(&events[0]["task"]) == "COMPLETED"
            }),
        ),
    });
    rows
}

fn message_to(task: &str) -> Value {
    let mut message = message("tck-complete-task", "more");
    message["taskId"] = json!(task);
    message
}

async fn create_fixture(client: &A2aClient, protocol: Protocol) -> Fixture {
    let done =
        client.call(protocol, "SendMessage", json!({"message": message("tck-complete-task", "done")})).await.unwrap();
    let open =
        client.call(protocol, "SendMessage", json!({"message": message("tck-input-required", "open")})).await.unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{protocol:?}: {done} {open}")).to_owned();
    Fixture {
        done: text(&done["task"]["id"]),
        open: text(&open["task"]["id"]),
        context: text(&open["task"]["contextId"]),
    }
}

#[tokio::test]
async fn every_operation_behaves_as_specified_on_every_protocol() {
    // A2A-1
    let server = Conformance::start().await;
    let client = server.client();
    let mut wrong = Vec::new();
    let mut count = 0;
    for protocol in PROTOCOLS {
        let fixture = create_fixture(&client, protocol).await;
        for (operation, case, params, expected) in all_rows(protocol) {
            count += 1;
            let answer = client.call(protocol, operation, params(&fixture)).await;
            let mismatch = match (&expected, &answer) {
                (Success(check), Ok(answer)) => (!check(&fixture, answer)).then(|| format!("answered with {answer}")),
                (Success(_), Err(error)) => Some(format!("{error:?}")),
                (Failure(mismatch), Ok(answer)) => Some(format!("{mismatch:?} is missing: {answer}")),
                (Failure(mismatch), Err(error)) => mismatch.mismatch(protocol, error),
            };
            wrong.extend(mismatch.map(|mismatch| format!("{protocol:?} {operation}, {case}: {mismatch}")));
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns valid parameters of an operation.
fn valid_params(operation: &'static str, fixture: &Fixture) -> Value {
    match operation {
        "SendMessage" | "SendStreamingMessage" => json!({"message": message("tck-complete-task", "hi")}),
        "GetTask" | "CancelTask" | "SubscribeToTask" => json!({"id": fixture.open}),
        "CreateTaskPushNotificationConfig" => json!({"taskId": fixture.open, "id": "one", "url": WEBHOOK}),
        "GetTaskPushNotificationConfig" | "DeleteTaskPushNotificationConfig" => {
            json!({"taskId": fixture.open, "id": "one"})
        }
        "ListTaskPushNotificationConfigs" => json!({"taskId": fixture.open}),
        _ => json!({}),
    }
}

pub(super) const OPERATIONS: [&str; 11] = [
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
];

#[tokio::test]
async fn every_operation_rejects_unsupported_versions() {
    // A2A-1
    let server = Conformance::start().await;
    let client = server.client();
    let fixture = create_fixture(&client, PROTOCOLS[0]).await;
    let mut wrong = Vec::new();
    // The header selects the version, so one protocol per binding is enough.
    for protocol in PROTOCOLS.into_iter().filter(|protocol| protocol.1 == Version::V1) {
        for operation in OPERATIONS {
            for version in ["99.0", "0.2", "nonsense"] {
                let call = Call { version: Some(version), ..Call::new(operation, valid_params(operation, &fixture)) };
                let mismatch = match client.send_call(protocol, &call).await {
                    Ok(answer) => Some(format!("answered with {answer}")),
                    Err(error) => ExpectedError::VersionNotSupported.mismatch(protocol, &error),
                };
                wrong.extend(mismatch.map(|mismatch| format!("{protocol:?} {operation} {version}: {mismatch}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test]
async fn every_operation_with_a_body_rejects_other_content_types() {
    // A2A-1
    let server = Conformance::start().await;
    let client = server.client();
    let fixture = create_fixture(&client, PROTOCOLS[0]).await;
    let mut wrong = Vec::new();
    for protocol in PROTOCOLS.into_iter().filter(|protocol| protocol.0 != Binding::Grpc) {
        let has_body = |operation: &&str| match protocol.0 {
            Binding::JsonRpc => protocol.supports(operation),
            _ => ["SendMessage", "SendStreamingMessage", "CreateTaskPushNotificationConfig"].contains(operation),
        };
        for operation in OPERATIONS.into_iter().filter(has_body) {
            let call = Call { content_type: "text/plain", ..Call::new(operation, valid_params(operation, &fixture)) };
            let mismatch = match client.send_call(protocol, &call).await {
                Ok(answer) => Some(format!("answered with {answer}")),
                Err(error) => ExpectedError::ContentTypeNotSupported.mismatch(protocol, &error),
            };
            wrong.extend(mismatch.map(|mismatch| format!("{protocol:?} {operation}: {mismatch}")));
            // Both of these are JSON.
            for content_type in ["application/a2a+json", "application/json; charset=utf-8"] {
                if is_streaming(operation) || operation == "CancelTask" {
                    continue;
                }
                let call = Call { content_type, ..Call::new(operation, valid_params(operation, &fixture)) };
                if let Err(error) = client.send_call(protocol, &call).await
                    && ExpectedError::ContentTypeNotSupported.mismatch(protocol, &error).is_none()
                {
                    wrong.push(format!("{protocol:?} {operation} as {content_type}: {error:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}
