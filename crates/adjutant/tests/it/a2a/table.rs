//! One table: every operation, on every binding of both versions, where all is well, where what is asked for is not there,
//! where the request is wrong, where its version or its content type is, and where the task has ended (A2A-1).

use serde_json::{Value, json};

use super::faults::Fault;
use super::speak::{Binding, Question, Speaker, Version, WAYS, Way, streams};
use super::{Conformance, message, state};

/// What is there when a question is put.
struct Given {
    /// A task that is completed.
    done: String,
    /// One that asks something.
    open: String,
    context: String,
}

const NOBODY: &str = "00000000-0000-4000-8000-000000000000";
const HOOK: &str = "http://127.0.0.1:9/hook";

enum Expected {
    Fine(fn(&Given, &Value) -> bool),
    Fault(Fault),
}

use Expected::{Fault as Refused, Fine};

/// A row: the operation, the case, what is said, what must come of it.
type Row = (&'static str, &'static str, fn(&Given) -> Value, Expected);

fn rows(way: Way) -> Vec<Row> {
    let mut rows = happy();
    rows.extend(not_found());
    rows.extend(bad_params(way));
    rows.extend(terminal(way));
    rows.retain(|row| way.knows(row.0));
    rows
}

fn happy() -> Vec<Row> {
    vec![
        (
            "SendMessage",
            "happy",
            |_| json!({"message": message("tck-complete-task", "hi")}),
            Fine(|_, answer| {
                state(&answer["task"]) == "COMPLETED"
                    && answer["task"]["status"]["message"]["parts"][0]["text"] == "Hello from TCK"
            }),
        ),
        (
            "SendStreamingMessage",
            "happy",
            |_| json!({"message": message("tck-stream-001", "hi")}),
            Fine(|_, events| {
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
            |given| json!({"id": given.done}),
            Fine(|given, task| {
                task["id"] == given.done && state(task) == "COMPLETED" && task["history"][0]["role"] == "ROLE_USER"
            }),
        ),
        (
            "ListTasks",
            "happy",
            |given| json!({"contextId": given.context, "pageSize": 10}),
            Fine(|given, page| {
                page["tasks"].as_array().is_some_and(|tasks| tasks.iter().any(|task| task["id"] == given.open))
                    && page["totalSize"].as_u64() >= Some(1)
            }),
        ),
        (
            "CreateTaskPushNotificationConfig",
            "happy",
            |given| json!({"taskId": given.open, "id": "one", "url": HOOK}),
            Fine(|given, config| config["id"] == "one" && config["url"] == HOOK && config["taskId"] == given.open),
        ),
        (
            "GetTaskPushNotificationConfig",
            "happy",
            |given| json!({"taskId": given.open, "id": "one"}),
            Fine(|given, config| config["id"] == "one" && config["url"] == HOOK && config["taskId"] == given.open),
        ),
        (
            "ListTaskPushNotificationConfigs",
            "happy",
            |given| json!({"taskId": given.open}),
            Fine(|_, answer| {
                answer["configs"].as_array().is_some_and(|configs| configs.len() == 1 && configs[0]["id"] == "one")
            }),
        ),
        (
            "DeleteTaskPushNotificationConfig",
            "happy",
            |given| json!({"taskId": given.open, "id": "one"}),
            Fine(|_, _| true),
        ),
        (
            "DeleteTaskPushNotificationConfig",
            "twice",
            |given| json!({"taskId": given.open, "id": "one"}),
            Fine(|_, _| true),
        ),
        (
            "GetTaskPushNotificationConfig",
            "deleted",
            |given| json!({"taskId": given.open, "id": "one"}),
            Refused(Fault::NotFound),
        ),
        ("GetExtendedAgentCard", "happy", |_| json!({}), Fine(|_, card| !card["name"].is_null())),
    ]
}

fn not_found() -> Vec<Row> {
    let on_nobody: fn(&Given) -> Value = |_| json!({"taskId": NOBODY, "id": "one"});
    vec![
        ("SendMessage", "not found", |_| json!({"message": to(NOBODY)}), Refused(Fault::TaskNotFound)),
        ("SendStreamingMessage", "not found", |_| json!({"message": to(NOBODY)}), Refused(Fault::TaskNotFound)),
        ("GetTask", "not found", |_| json!({"id": NOBODY}), Refused(Fault::TaskNotFound)),
        ("GetTask", "not found, no id of ours", |_| json!({"id": "tck-nonexistent-1"}), Refused(Fault::TaskNotFound)),
        (
            "ListTasks",
            "not found",
            |_| json!({"contextId": "tck-no-such-context"}),
            Fine(|_, page| page["tasks"] == json!([]) && page["totalSize"] == 0 && page["nextPageToken"] == ""),
        ),
        ("CancelTask", "not found", |_| json!({"id": NOBODY}), Refused(Fault::TaskNotFound)),
        ("SubscribeToTask", "not found", |_| json!({"id": NOBODY}), Refused(Fault::TaskNotFound)),
        (
            "CreateTaskPushNotificationConfig",
            "not found",
            |_| json!({"taskId": NOBODY, "id": "one", "url": HOOK}),
            Refused(Fault::TaskNotFound),
        ),
        ("GetTaskPushNotificationConfig", "not found", on_nobody, Refused(Fault::TaskNotFound)),
        ("ListTaskPushNotificationConfigs", "not found", |_| json!({"taskId": NOBODY}), Refused(Fault::TaskNotFound)),
        ("DeleteTaskPushNotificationConfig", "not found", on_nobody, Refused(Fault::TaskNotFound)),
    ]
}

fn bad_params(way: Way) -> Vec<Row> {
    let mut rows: Vec<Row> = vec![
        ("SendMessage", "bad params: no message", |_| json!({}), Refused(Fault::InvalidParams)),
        (
            "SendMessage",
            "bad params: no parts",
            |_| json!({"message": {"messageId": "tck-1", "role": "ROLE_USER", "parts": []}}),
            Refused(Fault::InvalidParams),
        ),
        (
            "SendMessage",
            "bad params: an empty part",
            |_| json!({"message": {"messageId": "tck-1", "role": "ROLE_USER", "parts": [{}]}}),
            Refused(Fault::InvalidParams),
        ),
        (
            "SendMessage",
            "bad params: no messageId",
            |_| json!({"message": {"role": "ROLE_USER", "parts": [{"text": "hi"}]}}),
            Refused(Fault::InvalidParams),
        ),
        (
            "SendMessage",
            "bad params: another context",
            |given| {
                let mut message = to(&given.open);
                message["contextId"] = json!("tck-wrong-context");
                json!({"message": message})
            },
            Refused(Fault::InvalidParams),
        ),
        ("SendStreamingMessage", "bad params: no message", |_| json!({}), Refused(Fault::InvalidParams)),
        (
            "SendStreamingMessage",
            "bad params: no parts",
            |_| json!({"message": {"messageId": "tck-1", "role": "ROLE_USER", "parts": []}}),
            Refused(Fault::InvalidParams),
        ),
        (
            "GetTask",
            "bad params: historyLength",
            |given| json!({"id": given.done, "historyLength": -1}),
            Refused(Fault::InvalidParams),
        ),
        ("ListTasks", "bad params: pageSize 0", |_| json!({"pageSize": 0}), Refused(Fault::InvalidParams)),
        ("ListTasks", "bad params: pageSize 101", |_| json!({"pageSize": 101}), Refused(Fault::InvalidParams)),
        (
            "ListTasks",
            "bad params: pageToken",
            |_| json!({"pageToken": "nobody gave this"}),
            Refused(Fault::InvalidParams),
        ),
        ("ListTasks", "bad params: historyLength", |_| json!({"historyLength": -1}), Refused(Fault::InvalidParams)),
        (
            "CreateTaskPushNotificationConfig",
            "bad params: url",
            |given| json!({"taskId": given.open, "id": "x", "url": "no url"}),
            Refused(Fault::InvalidParams),
        ),
        (
            "CreateTaskPushNotificationConfig",
            "bad params: scheme",
            |given| json!({"taskId": given.open, "id": "x", "url": "ftp://example.com/"}),
            Refused(Fault::InvalidParams),
        ),
    ];
    // In a path an id that is left out is another path.
    if way.0 != Binding::Rest {
        let none: fn(&Given) -> Value = |_| json!({});
        for operation in ["GetTask", "CancelTask", "SubscribeToTask", "ListTaskPushNotificationConfigs"] {
            rows.push((operation, "bad params: no id", none, Refused(Fault::InvalidParams)));
        }
    }
    rows
}

fn terminal(way: Way) -> Vec<Row> {
    // 0.3 knew no other name for it.
    let ended = match way.1 {
        Version::V1 => Fault::UnsupportedOperation,
        Version::V03 => Fault::InvalidParams,
    };
    let refused = || Refused(ended);
    let mut rows: Vec<Row> = vec![
        ("SendMessage", "terminal", |given| json!({"message": to(&given.done)}), refused()),
        ("SendStreamingMessage", "terminal", |given| json!({"message": to(&given.done)}), refused()),
        ("CancelTask", "terminal", |given| json!({"id": given.done}), Refused(Fault::TaskNotCancelable)),
        (
            "CreateTaskPushNotificationConfig",
            "terminal",
            |given| json!({"taskId": given.done, "id": "late", "url": HOOK}),
            Fine(|_, config| config["id"] == "late"),
        ),
        (
            "GetTaskPushNotificationConfig",
            "terminal",
            |given| json!({"taskId": given.done, "id": "late"}),
            Fine(|_, config| config["url"] == HOOK),
        ),
        (
            "ListTaskPushNotificationConfigs",
            "terminal",
            |given| json!({"taskId": given.done}),
            Fine(|_, answer| answer["configs"][0]["id"] == "late"),
        ),
        (
            "DeleteTaskPushNotificationConfig",
            "terminal",
            |given| json!({"taskId": given.done, "id": "late"}),
            Fine(|_, _| true),
        ),
        (
            "CancelTask",
            "happy",
            |given| json!({"id": given.open}),
            Fine(|given, task| task["id"] == given.open && state(task) == "CANCELED"),
        ),
        ("CancelTask", "twice", |given| json!({"id": given.open}), Refused(Fault::TaskNotCancelable)),
    ];
    rows.push(match way.1 {
        Version::V1 => ("SubscribeToTask", "terminal", |given| json!({"id": given.done}), refused()),
        // Who followed a finished task by 0.3 was told how it ended.
        Version::V03 => (
            "SubscribeToTask",
            "terminal",
            |given| json!({"id": given.done}),
            Fine(|given, events| {
                let events = events.as_array().unwrap();
                events.len() == 1 && events[0]["task"]["id"] == given.done && state(&events[0]["task"]) == "COMPLETED"
            }),
        ),
    });
    rows
}

fn to(task: &str) -> Value {
    let mut message = message("tck-complete-task", "more");
    message["taskId"] = json!(task);
    message
}

async fn given(speaker: &Speaker, way: Way) -> Given {
    let done = speaker.ask(way, "SendMessage", json!({"message": message("tck-complete-task", "done")})).await.unwrap();
    let open =
        speaker.ask(way, "SendMessage", json!({"message": message("tck-input-required", "open")})).await.unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{way:?}: {done} {open}")).to_owned();
    Given {
        done: text(&done["task"]["id"]),
        open: text(&open["task"]["id"]),
        context: text(&open["task"]["contextId"]),
    }
}

#[tokio::test]
async fn every_operation_on_every_binding_of_both_versions() {
    // A2A-1
    let server = Conformance::start().await;
    let speaker = server.speaker();
    let mut wrong = Vec::new();
    let mut count = 0;
    for way in WAYS {
        let given = given(&speaker, way).await;
        for (operation, case, params, expected) in rows(way) {
            count += 1;
            let answer = speaker.ask(way, operation, params(&given)).await;
            let fault = match (&expected, &answer) {
                (Fine(check), Ok(answer)) => (!check(&given, answer)).then(|| format!("answered with {answer}")),
                (Fine(_), Err(refusal)) => Some(format!("{refusal:?}")),
                (Refused(fault), Ok(answer)) => Some(format!("{fault:?} is missing: {answer}")),
                (Refused(fault), Err(refusal)) => fault.missed(way, refusal),
            };
            wrong.extend(fault.map(|fault| format!("{way:?} {operation}, {case}: {fault}")));
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

/// What each operation can be asked with, so that nothing is wrong but what the test says.
fn fine(operation: &'static str, given: &Given) -> Value {
    match operation {
        "SendMessage" | "SendStreamingMessage" => json!({"message": message("tck-complete-task", "hi")}),
        "GetTask" | "CancelTask" | "SubscribeToTask" => json!({"id": given.open}),
        "CreateTaskPushNotificationConfig" => json!({"taskId": given.open, "id": "one", "url": HOOK}),
        "GetTaskPushNotificationConfig" | "DeleteTaskPushNotificationConfig" => {
            json!({"taskId": given.open, "id": "one"})
        }
        "ListTaskPushNotificationConfigs" => json!({"taskId": given.open}),
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
async fn a_version_that_nobody_speaks_is_refused_by_every_operation() {
    // A2A-1
    let server = Conformance::start().await;
    let speaker = server.speaker();
    let given = given(&speaker, WAYS[0]).await;
    let mut wrong = Vec::new();
    // What the header says decides, so that there is one way a binding.
    for way in WAYS.into_iter().filter(|way| way.1 == Version::V1) {
        for operation in OPERATIONS {
            for version in ["99.0", "0.2", "nonsense"] {
                let question = Question { version: Some(version), ..Question::new(operation, fine(operation, &given)) };
                let fault = match speaker.put(way, &question).await {
                    Ok(answer) => Some(format!("answered with {answer}")),
                    Err(refusal) => Fault::VersionNotSupported.missed(way, &refusal),
                };
                wrong.extend(fault.map(|fault| format!("{way:?} {operation} {version}: {fault}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test]
async fn a_content_type_that_is_no_json_is_refused_by_every_operation_that_has_a_body() {
    // A2A-1
    let server = Conformance::start().await;
    let speaker = server.speaker();
    let given = given(&speaker, WAYS[0]).await;
    let mut wrong = Vec::new();
    for way in WAYS.into_iter().filter(|way| way.0 != Binding::Grpc) {
        let has_body = |operation: &&str| match way.0 {
            Binding::JsonRpc => way.knows(operation),
            _ => ["SendMessage", "SendStreamingMessage", "CreateTaskPushNotificationConfig"].contains(operation),
        };
        for operation in OPERATIONS.into_iter().filter(has_body) {
            let question = Question { content_type: "text/plain", ..Question::new(operation, fine(operation, &given)) };
            let fault = match speaker.put(way, &question).await {
                Ok(answer) => Some(format!("answered with {answer}")),
                Err(refusal) => Fault::ContentTypeNotSupported.missed(way, &refusal),
            };
            wrong.extend(fault.map(|fault| format!("{way:?} {operation}: {fault}")));
            // Both of these are JSON.
            for content_type in ["application/a2a+json", "application/json; charset=utf-8"] {
                if streams(operation) || operation == "CancelTask" {
                    continue;
                }
                let question = Question { content_type, ..Question::new(operation, fine(operation, &given)) };
                if let Err(refusal) = speaker.put(way, &question).await
                    && Fault::ContentTypeNotSupported.missed(way, &refusal).is_none()
                {
                    wrong.push(format!("{way:?} {operation} as {content_type}: {refusal:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}
