//! Tests of all useful combinations of input and output patterns, with standard programs and two protocols.

use model::agent::Permissions;
use model::execution::{ErrorCategory, ExecutionStatus, StateName};
use serde_json::{Value, json};

use crate::bench::{Bench, BenchBuilder, error, input_draft, script, succeeded};

/// An agent for plain JSON-RPC 2.0.
const PLAIN: &str = r#"
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") != "answer":
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "error": {"code": -32601, "message": "what?"}}), flush=True)
        continue
    p = m["params"]
    text = p["input"]
    print("not of the protocol", flush=True)
    if text == "say":
        print(json.dumps({"jsonrpc": "2.0", "method": "output", "params": {"text": "said on the way"}}), flush=True)
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": None}), flush=True)
    elif text == "fail":
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "error": {"code": 7, "message": "no luck"}}), flush=True)
    elif text == "die":
        print("out of order", file=sys.stderr, flush=True)
        sys.exit(3)
    elif text == "file":
        open(sys.argv[1], "w").write("from the file")
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": "ignored"}), flush=True)
    else:
        answer = text.upper() + " " + json.dumps(p["parameters"]) + " " + str(len(p["execution_id"]))
        print(json.dumps({"jsonrpc": "2.0", "method": "output", "params": {"text": "half"}}), flush=True)
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": answer}), flush=True)
"#;

/// An agent for the Agent Client Protocol, written from the specification.
const ACP: &str = r#"
import json, sys
def send(**m): print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
def read():
    line = sys.stdin.readline()
    if not line: sys.exit(0)
    return json.loads(line)
def update(s, **u): send(method="session/update", params={"sessionId": s, "update": u})
def say(s, text): update(s, sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})
while True:
    m = read()
    method = m.get("method")
    if method == "initialize":
        send(id=m["id"], result={"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []})
    elif method == "session/new":
        cwd = m["params"]["cwd"]
        send(id=m["id"], result={"sessionId": "s-1"})
    elif method == "session/prompt":
        s, text = m["params"]["sessionId"], m["params"]["prompt"][0]["text"]
        if text == "wait":
            say(s, "waiting,")
            while True:
                c = read()
                if c.get("method") == "session/cancel":
                    say(s, " told to stop")
                    send(id=m["id"], result={"stopReason": "cancelled"})
                    break
        elif text == "refuse":
            send(id=m["id"], result={"stopReason": "refusal"})
        elif text == "break off":
            send(id=m["id"], result={"stopReason": "cancelled"})
        else:
            update(s, sessionUpdate="agent_thought_chunk", content={"type": "text", "text": "hm"})
            update(s, sessionUpdate="tool_call", toolCallId="t", title="edit x", kind="edit", status="pending")
            send(id=99, method="session/request_permission", params={"sessionId": s, "toolCall": {"toolCallId": "t"},
                "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"},
                            {"optionId": "n", "name": "No", "kind": "reject_once"}]})
            got = read()
            assert got["id"] == 99
            say(s, "you said " + got["result"]["outcome"]["optionId"])
            say(s, " in " + ("a folder" if cwd.startswith("/") else cwd) + ": " + text)
            send(id=m["id"], result={"stopReason": "end_turn"})
"#;

fn python(id: &str, text: &str, more: Value) -> Value {
    let mut agent = json!({"id": id, "executable_path": "python3", "args": ["-c", text], "grace": 5});
    agent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    agent
}

// SUP-2
#[tokio::test]
async fn all_pattern_combinations_work() {
    let answer = r#"{"jsonrpc": "2.0", "id": 1, "result": {"output": "'"$T"'"}}"#;
    let rpc = |take: &str| format!("T=$({take}); echo noise; echo '{answer}'");
    let bench = Bench::new(json!([
        {"id": "stdin-stdout", "executable_path": "cat"},
        script("stdin-file", "tr a-z A-Z > \"$0\"", json!({
            "agent_type": "stdin-file", "args": ["-c", "tr a-z A-Z > \"$0\"", "{{output_file}}"]})),
        script("stdin-json-rpc", &rpc("cat"), json!({"agent_type": "stdin-json-rpc"})),
        {"id": "file-stdout", "executable_path": "sed", "agent_type": "file-stdout", "args": ["s/^/> /"]},
        {"id": "file-file", "executable_path": "cp", "agent_type": "file-file",
            "args": ["{{input_file}}", "{{output_file}}"], "input_file_template": "in/{{execution_id}}.txt"},
        script("file-json-rpc", "", json!({"agent_type": "file-json-rpc",
            "args": ["-c", rpc("cat \"$0\""), "{{input_file}}"]})),
        {"id": "args-stdout", "executable_path": "printf", "agent_type": "args", "args": ["<%s>"]},
        script("args-file", "", json!({"agent_type": "args-file",
            "args": ["-c", "echo \"$0\" > out.md; echo on the side", "{{input}}"], "output_file_template": "out.md"})),
        script("args-json-rpc", "", json!({"agent_type": "args-json-rpc", "args": ["-c", rpc("echo \"$0\""), "{{input}}"]})),
    ]))
    .await;
    for (agent, expected) in [
        ("stdin-stdout", "hello you"),
        ("stdin-file", "HELLO YOU"),
        ("stdin-json-rpc", "hello you"),
        ("file-stdout", "> hello you"),
        ("file-file", "hello you"),
        ("file-json-rpc", "hello you"),
        ("args-stdout", "<hello you>"),
        ("args-file", "hello you\n"),
        ("args-json-rpc", "hello you"),
    ] {
        let result = bench.run(agent, "hello you").await;
        assert_eq!(succeeded(&result), expected, "{agent}");
        assert_eq!(result.exit_code, Some(0), "{agent}");
        assert!(result.process_id.is_some() && result.execution_time >= 0 && !result.truncated, "{agent}");
    }
    let nothing = bench.run("stdin-json-rpc", "\"").await;
    assert_eq!(nothing.error_category, Some(ErrorCategory::AgentError));
    assert!(error(&nothing).contains("no JSON-RPC response"), "{nothing:#?}");
    bench.stop().await;
}

// SUP-2
#[tokio::test]
async fn plain_json_rpc_agents_work() {
    let rpc = json!({"agent_type": "json-rpc", "protocol": "json-rpc", "rpc_method": "answer"});
    let mut unknown = rpc.clone();
    unknown["rpc_method"] = "other".into();
    let file = json!({"agent_type": "json-rpc-file", "rpc_method": "answer", "args": ["-c", PLAIN, "{{output_file}}"]});
    let bench =
        Bench::new(json!([python("rpc", PLAIN, rpc), python("unknown", PLAIN, unknown), python("file", PLAIN, file)]))
            .await;
    let parameters = json!({"size": 3}).as_object().cloned();
    let result = bench.run_with("rpc", supervisor::RunDraft { parameters, ..input_draft("hello") }).await;
    assert_eq!(succeeded(&result), "HELLO {\"size\": 3} 36");
    assert_eq!(bench.output(result.id, "stdout").await, "half");
    assert!(bench.output(result.id, "stderr").await.contains("not of the protocol"));
    assert_eq!(succeeded(&bench.run("rpc", "say").await), "said on the way");
    assert_eq!(succeeded(&bench.run("file", "file").await), "from the file");
    let failed = bench.run("rpc", "fail").await;
    assert_eq!((failed.status, failed.error_category), (ExecutionStatus::Failure, Some(ErrorCategory::AgentError)));
    assert!(error(&failed).contains("error 7: no luck"), "{failed:#?}");
    let unknown = bench.run("unknown", "x").await;
    assert_eq!(unknown.error_category, Some(ErrorCategory::Permanent));
    assert!(error(&unknown).contains("does not support the method other (rpc_method): what?"), "{unknown:#?}");
    let died = bench.run("rpc", "die").await;
    assert!(error(&died).contains("closed the connection") && error(&died).contains("exited with code 3"), "{died:#?}");
    assert_eq!(died.exit_code, Some(3));
    bench.stop().await;
}

// SUP-2, SUP-7
#[tokio::test]
async fn agent_client_protocol_agents_work() {
    let acp = |permissions: Permissions| json!({"agent_type": "json-rpc", "permissions": permissions.as_str()});
    let bench = BenchBuilder::new(json!([
        python("allowed", ACP, acp(Permissions::Allow)),
        python("denied", ACP, acp(Permissions::Read))
    ]))
    .start()
    .await;
    let result = bench.run("allowed", "hello").await;
    assert_eq!(succeeded(&result), "you said y in a folder: hello");
    let aside = bench.output(result.id, "stderr").await;
    assert!(aside.contains("hm\n") && aside.contains("allowed edit: edit x"), "{aside}");
    assert_eq!(succeeded(&bench.run("denied", "hello").await), "you said n in a folder: hello");
    let refused = bench.run("allowed", "refuse").await;
    assert!(error(&refused).contains("refused to continue"), "{refused:#?}");
    let broken = bench.run("allowed", "break off").await;
    assert_eq!((broken.status, broken.error_category), (ExecutionStatus::Failure, Some(ErrorCategory::AgentError)));

    let id = bench.enqueue("allowed", "wait").await;
    bench.reaches(id, StateName::Running).await;
    crate::bench::wait_until("it waits", async || bench.output(id, "stdout").await.contains("waiting")).await;
    bench.cancel(id).await.unwrap();
    let cancelled = bench.result(id).await;
    assert_eq!((cancelled.status, cancelled.error.as_deref()), (ExecutionStatus::Cancelled, Some("cancelled")));
    // The agent received the cancellation in its protocol and had time to answer.
    assert_eq!(cancelled.output, "waiting, told to stop");
    bench.stop().await;
}

/// Returns an agent that uses the official Python SDK of the protocol.
fn sdk_agent(id: &str, more: Value) -> Value {
    let dir = std::env::var("ADJUTANT_TEST_ACP_PEER").unwrap_or_else(|_| {
        panic!(
            "ADJUTANT_TEST_ACP_PEER is not set: run the tests with scripts/check, or scripts/python-peer acp-peer \
             target/acp-peer and set it to the full path of target/acp-peer"
        )
    });
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/acp-peer/agent.py");
    let mut agent = json!({"id": id, "executable_path": format!("{dir}/bin/python"), "args": [script],
        "agent_type": "json-rpc", "grace": 5});
    agent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    agent
}

// SUP-2, SUP-7
#[tokio::test]
async fn agents_of_the_official_sdk_work() {
    let bench = BenchBuilder::new(json!([
        sdk_agent("allowed", json!({"permissions": "allow"})),
        sdk_agent("denied", json!({"permissions": "read"})),
    ]))
    .start()
    .await;
    let result = bench.run("allowed", "hello").await;
    assert_eq!(succeeded(&result), "prompt 1: you said y to hello");
    let aside = bench.output(result.id, "stderr").await;
    assert!(aside.contains("hm\n") && aside.contains("allowed edit: edit x"), "{aside}");
    assert_eq!(succeeded(&bench.run("denied", "hello").await), "prompt 1: you said n to hello");

    let id = bench.enqueue("allowed", "wait").await;
    crate::bench::wait_until("it waits", async || bench.output(id, "stdout").await.contains("waiting")).await;
    bench.cancel(id).await.unwrap();
    let cancelled = bench.result(id).await;
    assert_eq!((cancelled.status, cancelled.output.as_str()), (ExecutionStatus::Cancelled, "waiting, told to stop"));
    bench.stop().await;
}
