//! The MCP server, message by message. `clients` uses independent clients.

mod clients;
mod confirmation;
mod protocol;
mod sessions;
mod stdio;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use testkit::app::Server;

/// Returns the directory of the independent clients and servers that `scripts/mcp-peers/setup` installed.
pub(crate) fn peers() -> PathBuf {
    let dir = std::env::var_os("ADJUTANT_TEST_MCP_PEERS").unwrap_or_else(|| {
        panic!(
            "the MCP clients and servers are not installed: run scripts/mcp-peers/setup target/mcp-peers and set \
             ADJUTANT_TEST_MCP_PEERS to the absolute path of target/mcp-peers"
        )
    });
    dir.into()
}

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

/// An MCP client.
struct Client<'a> {
    server: &'a Server,
    token: Option<String>,
    /// The session id of a legacy client.
    session: Option<String>,
    can_elicit: bool,
    last_id: AtomicU64,
}

impl<'a> Client<'a> {
    fn modern(server: &'a Server, token: Option<&str>) -> Self {
        Self { server, token: token.map(str::to_owned), session: None, can_elicit: true, last_id: AtomicU64::new(0) }
    }

    /// Connects a legacy client and initializes its session.
    async fn legacy(server: &'a Server, token: Option<&str>) -> Self {
        Self::legacy_with(true, server, token).await
    }

    async fn legacy_with(can_elicit: bool, server: &'a Server, token: Option<&str>) -> Self {
        let mut client =
            Self { server, token: token.map(str::to_owned), session: None, can_elicit, last_id: AtomicU64::new(0) };
        let capabilities = client.capabilities();
        let about = json!({"name": "it", "version": "1"});
        let params = json!({"protocolVersion": LEGACY, "capabilities": capabilities, "clientInfo": about});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let answer = client.request(Method::POST).json(&hello).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        client.session = Some(answer.headers()["mcp-session-id"].to_str().unwrap().to_owned());
        let reply = Messages::new(answer).next().await.unwrap();
        assert_eq!(reply["result"]["protocolVersion"], LEGACY);
        assert_eq!(reply["result"]["serverInfo"]["name"], "adjutant");
        client.notify(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    fn capabilities(&self) -> Value {
        if self.can_elicit { json!({"elicitation": {}}) } else { json!({}) }
    }

    fn request(&self, method: Method) -> RequestBuilder {
        let mut request = self.server.request(method, "/mcp").header("accept", "application/json, text/event-stream");
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session).header("mcp-protocol-version", LEGACY);
        }
        request
    }

    /// Sends a legacy message that has no response.
    async fn notify(&self, message: Value) {
        assert_eq!(self.request(Method::POST).json(&message).send().await.unwrap().status(), 202);
    }

    async fn send(&self, method: &str, mut params: Value) -> Response {
        let mut request = self.request(Method::POST);
        if self.session.is_none() {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": self.capabilities(),
                "io.modelcontextprotocol/clientInfo": {"name": "it", "version": "1"},
            });
            request = request.header("mcp-protocol-version", MODERN).header("mcp-method", method);
            if let Some(name) = params["name"].as_str() {
                request = request.header("mcp-name", name);
            }
        }
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        request.json(&message).send().await.unwrap()
    }

    /// Sends a request. Returns its result or its error.
    async fn request_result(&self, method: &str, params: Value) -> Value {
        let mut messages = Messages::new(self.send(method, params).await);
        let answer = messages.next().await.unwrap();
        assert!(answer["id"].is_u64(), "{answer}");
        if answer["error"].is_object() { answer["error"].clone() } else { answer["result"].clone() }
    }

    async fn call(&self, name: &str, arguments: Value) -> Value {
        self.request_result("tools/call", json!({"name": name, "arguments": arguments})).await
    }

    async fn add(&self, title: &str) -> String {
        let added = self.call("add_task", json!({"title": title})).await;
        added["structuredContent"]["task_id"].as_str().unwrap_or_else(|| panic!("{added}")).to_owned()
    }

    async fn titles(&self) -> Vec<String> {
        let listed = self.call("list_tasks", json!({})).await;
        let tasks = listed["structuredContent"]["tasks"].as_array().unwrap_or_else(|| panic!("{listed}"));
        tasks.iter().map(|task| task["title"].as_str().unwrap().to_owned()).collect()
    }
}

/// Sends one request of a client without a session. Returns its result or its error.
pub(crate) async fn request_result(server: &Server, token: Option<&str>, method: &str, params: Value) -> Value {
    Client::modern(server, token).request_result(method, params).await
}

/// Returns the error code of a failed tool call.
#[track_caller]
fn error_code(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result}");
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, result["structuredContent"], "text and structured content are the same");
    result["structuredContent"]["error"]["code"].as_str().unwrap()
}

/// The messages of a response, which is a stream or a single document.
struct Messages {
    answer: Response,
    is_stream: bool,
    text: String,
}

impl Messages {
    fn new(answer: Response) -> Self {
        let kind = answer.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
        Self { answer, is_stream: kind.is_some_and(|kind| kind.starts_with("text/event-stream")), text: String::new() }
    }

    async fn next(&mut self) -> Option<Value> {
        loop {
            if self.is_stream
                && let Some((event, rest)) = self.text.split_once("\n\n")
            {
                let data: String = event.lines().filter_map(|line| line.strip_prefix("data:")).collect();
                self.text = rest.to_owned();
                if data.trim().is_empty() {
                    continue;
                }
                return Some(serde_json::from_str(&data).unwrap());
            }
            match self.answer.chunk().await.unwrap() {
                Some(bytes) => self.text.push_str(std::str::from_utf8(&bytes).unwrap()),
                None if self.text.trim().is_empty() => return None,
                None => return Some(serde_json::from_str(&std::mem::take(&mut self.text)).unwrap()),
            }
        }
    }
}
