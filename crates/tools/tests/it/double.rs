//! An MCP server on standard input and output that misbehaves on demand. Its arguments and tools select the behaviour.
//! It is written without a library, so that it can violate the protocol.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test double of an external program"
)]

use std::io::{BufRead, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

#[derive(Default)]
struct Double {
    arguments: Vec<String>,
    has_grown: AtomicBool,
    subscription: Mutex<Option<Value>>,
    cancelled: Mutex<Vec<Value>>,
    calls: AtomicI64,
}

fn main() {
    let double = Arc::new(Double { arguments: std::env::args().skip(1).collect(), ..Double::default() });
    double.start();
    for line in std::io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line.unwrap()) else { continue };
        let double = double.clone();
        thread::spawn(move || double.handle(&message));
    }
    if double.has("stays") {
        thread::sleep(Duration::from_secs(600));
    }
}

fn send(message: &Value) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{message}").and_then(|()| out.flush());
}

impl Double {
    fn has(&self, argument: &str) -> bool {
        self.arguments.iter().any(|given| given == argument)
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.arguments.iter().find_map(|given| given.strip_prefix(name)?.strip_prefix('='))
    }

    /// Appends a line to the log file of the test.
    fn record(&self, entry: &str) {
        if let Some(file) = self.value("notes") {
            let mut file = std::fs::File::options().create(true).append(true).open(file).unwrap();
            writeln!(file, "{entry}").unwrap();
        }
    }

    fn start(&self) {
        self.record(&format!("pid {}", std::process::id()));
        if self.has("banner") {
            println!("Welcome to the double 1.0!\n\n{{\"level\":\"info\"}}\n[not, json]\u{7}");
        }
        if self.has("noisy") {
            for line in 0..5000 {
                eprintln!("line {line} with the token {}", std::env::var("DOUBLE_TOKEN").unwrap_or_default());
            }
            eprintln!("{}", "x".repeat(10_000_000));
        }
        if self.has("dies") {
            eprintln!("cannot go on: token {}", std::env::var("DOUBLE_TOKEN").unwrap_or_default());
            std::process::exit(3);
        }
        if self.has("stubborn") {
            // This process ignores SIGTERM and holds the pipes.
            let script = "trap '' TERM; echo pid $$ >> \"$0\"; while :; do sleep 1; done";
            let notes = self.value("notes").unwrap();
            let mut other = Command::new("sh").args(["-c", script, notes]).stdin(Stdio::null()).spawn().unwrap();
            thread::spawn(move || other.wait());
        }
        if let Some(wait) = self.value("slow") {
            thread::sleep(Duration::from_millis(wait.parse().unwrap()));
        }
        if self.has("endless") {
            let chunk = vec![b'x'; 1 << 20];
            while std::io::stdout().write_all(&chunk).is_ok() {}
        }
    }

    fn handle(&self, message: &Value) {
        let id = &message["id"];
        let method = message["method"].as_str().unwrap_or_default();
        let is_modern = !self.has("legacy");
        let answer = match method {
            "server/discover" if self.has("leaves") => std::process::exit(1),
            "server/discover" if self.has("ignores") => return,
            "server/discover" if is_modern => json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
                "capabilities": {"tools": {"listChanged": true}},
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "double", "version": "2"}},
            }),
            "initialize" if self.has("hangs-at-start") => return,
            "initialize" if !is_modern => json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "double", "version": "1"},
            }),
            "tools/list" if self.has("hangs-at-list") => return,
            "tools/list" => self.list(message),
            "tools/call" => match self.call(id, message) {
                Some(answer) => answer,
                None => return,
            },
            "subscriptions/listen" => {
                *self.subscription.lock().unwrap() = Some(id.clone());
                let meta = json!({SUBSCRIPTION: id});
                let params = json!({"notifications": {"toolsListChanged": true}, "_meta": meta});
                send(
                    &json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params}),
                );
                return;
            }
            "notifications/cancelled" => {
                self.record(&format!("cancelled {}", message["params"]["requestId"]));
                self.cancelled.lock().unwrap().push(message["params"]["requestId"].clone());
                return;
            }
            _ if id.is_null() => return,
            _ => {
                let error = json!({"code": -32601, "message": format!("no method {method}")});
                return send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
        };
        send(&json!({"jsonrpc": "2.0", "id": id, "result": answer}));
    }

    fn list(&self, message: &Value) -> Value {
        let tool = |name: &str| json!({"name": name, "description": name, "inputSchema": {"type": "object"}});
        if self.has("circle") {
            return json!({"tools": [tool("one")], "nextCursor": "again"});
        }
        if self.has("many") {
            let page: usize = message["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
            let tools: Vec<_> = (0..100).map(|n| tool(&format!("tool_{:04}", page * 100 + n))).collect();
            return json!({"tools": tools, "nextCursor": (page + 1).to_string()});
        }
        if message["params"]["cursor"] == "2" {
            let mut tools = vec![tool("page_two"), json!({"name": "bad", "inputSchema": "none"})];
            if self.has_grown.load(Ordering::SeqCst) {
                tools.push(tool("grown"));
            }
            return json!({"resultType": "complete", "ttlMs": 60_000, "cacheScope": "private", "tools": tools});
        }
        let names = [
            "echo", "env", "hang", "slow", "die", "large", "endless", "ask", "task", "refuse", "fail", "grow", "flood",
            "pings", "odd", "freeze", "dense",
        ];
        let mut tools: Vec<_> = names.map(tool).into();
        tools[0]["annotations"] = json!({"readOnlyHint": true, "title": "Echo"});
        json!({"resultType": "complete", "ttlMs": 60_000, "cacheScope": "private", "tools": tools, "nextCursor": "2"})
    }

    fn call(&self, id: &Value, message: &Value) -> Option<Value> {
        let params = &message["params"];
        let arguments = &params["arguments"];
        let text = |text: &str| json!({"resultType": "complete", "content": [{"type": "text", "text": text}]});
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.record(&format!("call {}", params["name"]));
        Some(match params["name"].as_str().unwrap() {
            "echo" => json!({
                "resultType": "complete", "structuredContent": {"said": arguments["text"]},
                "content": [{"type": "text", "text": arguments["text"].as_str().unwrap_or_default()}],
            }),
            "env" => {
                let mut names: Vec<_> = std::env::vars().map(|(name, value)| format!("{name}={value}")).collect();
                names.sort();
                text(&names.join("\n"))
            }
            "hang" => return None,
            "slow" => {
                let token = &params["_meta"]["progressToken"];
                for step in 0..arguments["steps"].as_u64().unwrap_or(1) {
                    thread::sleep(Duration::from_millis(200));
                    let params = json!({"progressToken": token, "progress": step});
                    send(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
                }
                text("done")
            }
            "die" => std::process::exit(7),
            "large" => text(&"0123456789".repeat(arguments["size"].as_u64().unwrap_or(100_000) as usize / 10)),
            "endless" => {
                let chunk = vec![b'x'; 1 << 20];
                let mut out = std::io::stdout().lock();
                while out.write_all(&chunk).is_ok() {}
                return None;
            }
            "freeze" => {
                // A stopped process can only be killed.
                let pid = std::process::id().to_string();
                Command::new("kill").args(["-STOP", &pid]).status().unwrap();
                return None;
            }
            "dense" => json!({
                "resultType": "complete", "content": [],
                "structuredContent": {"n": vec![0; arguments["count"].as_u64().unwrap() as usize]},
            }),
            "ask" => json!({
                "resultType": "input_required", "requestState": "s",
                "inputRequests": {"a": {"method": "elicitation/create", "params": {
                    "mode": "form", "message": "Sure?", "requestedSchema": {"type": "object", "properties": {}},
                }}},
            }),
            "task" => json!({
                "resultType": "task", "taskId": "1", "status": "working", "createdAt": "2026-01-01T00:00:00Z",
                "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": null,
            }),
            "odd" => json!({"resultType": "complete", "content": [{"type": "smell", "of": "roses"}]}),
            "refuse" => {
                let token = std::env::var("DOUBLE_TOKEN").unwrap_or_default();
                let error = json!({"code": -32602, "message": format!("bad arguments, token={token}")});
                send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
                return None;
            }
            "fail" => json!({"content": [{"type": "text", "text": "it did not work"}], "isError": true}),
            "grow" => {
                self.has_grown.store(true, Ordering::SeqCst);
                let meta = match &*self.subscription.lock().unwrap() {
                    Some(id) => json!({SUBSCRIPTION: id}),
                    None => json!({}),
                };
                let changed = json!({"_meta": meta});
                send(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": changed}));
                text("grown")
            }
            "flood" => {
                let params = json!({"level": "info", "data": "x".repeat(200)});
                for _ in 0..5000 {
                    send(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}));
                    send(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                    println!("rubbish");
                }
                text("flooded")
            }
            "pings" => {
                // Sends many requests without waiting for the replies.
                for id in 0..500 {
                    send(&json!({"jsonrpc": "2.0", "id": format!("p{id}"), "method": "ping"}));
                }
                text("pinged")
            }
            _ => json!({"content": [{"type": "text", "text": "no such tool"}], "isError": true}),
        })
    }
}
