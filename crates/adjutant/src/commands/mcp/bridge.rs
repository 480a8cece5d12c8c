//! Passes MCP messages between standard input and output, a line each, and the `/mcp` of a server. It knows of them
//! only what the headers need, and never changes what they say.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use reqwest::{RequestBuilder, Response, StatusCode, header};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex as Turns, mpsc};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Identity;
use crate::client::{EVENT_LIMIT, lost};

const VERSION: &str = "mcp-protocol-version";
const SESSION: &str = "mcp-session-id";
/// How long answers may still come after the client has said its last word.
const PATIENCE: Duration = Duration::from_secs(5);

/// A server, and the client that speaks to it here.
struct Bridge {
    client: reqwest::Client,
    base: String,
    identity: Identity,
    /// Of a client that began with `initialize`.
    session: Turns<Option<Session>>,
    /// Requests without their answers, by id.
    under_way: Mutex<HashMap<String, AbortHandle>>,
    out: mpsc::UnboundedSender<String>,
}

#[derive(Clone)]
struct Session {
    id: String,
    version: String,
    /// What it began with, to begin again should the server forget it.
    hello: Value,
}

/// Why a message got no answer of the server's own.
struct Refused {
    status: Option<StatusCode>,
    reason: String,
}

/// Until the client closes its end or `stop` is cancelled.
pub(super) async fn run(
    client: reqwest::Client,
    base: String,
    identity: Identity,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let (out, lines) = mpsc::unbounded_channel();
    let writer = tokio::spawn(write(lines));
    let session = Turns::default();
    let under_way = Mutex::default();
    let bridge = Arc::new(Bridge { client, base, identity, session, under_way, out });
    let tasks = TaskTracker::new();
    let mut input = BufReader::new(tokio::io::stdin());
    let mut line = Vec::new();
    while let Some(read) = stop.run_until_cancelled(input.read_until(b'\n', &mut line)).await {
        if read? == 0 {
            break;
        }
        if !line.trim_ascii().is_empty() {
            bridge.take(&line, &tasks).await;
        }
        line.clear();
    }
    tasks.close();
    let _ = stop.run_until_cancelled(tokio::time::timeout(PATIENCE, tasks.wait())).await;
    let _ = tokio::time::timeout(PATIENCE, bridge.leave()).await;
    for (_, task) in lock(&bridge.under_way).drain() {
        task.abort();
    }
    // The writer ends with the last who could have something to say.
    drop(bridge);
    let _ = tokio::time::timeout(PATIENCE, writer).await;
    Ok(())
}

impl Bridge {
    /// Requests go side by side; what has an order (the beginning, notifications, answers) goes one after the other.
    async fn take(self: &Arc<Self>, line: &[u8], tasks: &TaskTracker) {
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            return self.put(&failure(&Value::Null, -32700, "a line must be JSON"));
        };
        let id = message.get("id").cloned();
        let method = text(&message, "/method").map(str::to_owned);
        match (id, method.as_deref()) {
            (Some(id), Some("initialize")) => self.begin(&id, &message).await,
            (Some(id), Some(_)) => {
                let bridge = self.clone();
                // Held until the task is noted, so that the task cannot take itself off before.
                let mut under_way = lock(&self.under_way);
                let key = id.to_string();
                let task = tasks.spawn(async move {
                    bridge.ask(&id, &message).await;
                    lock(&bridge.under_way).remove(&id.to_string());
                });
                under_way.insert(key, task.abort_handle());
            }
            (None, Some("notifications/cancelled")) if self.session.lock().await.is_none() => {
                // Without a session, to hang up is to cancel.
                let id = message.pointer("/params/requestId").map(Value::to_string).unwrap_or_default();
                if let Some(task) = lock(&self.under_way).remove(&id) {
                    task.abort();
                }
            }
            (None, None) => self.put(&failure(&Value::Null, -32600, "a line must be one JSON-RPC message")),
            _ => self.tell(&message).await,
        }
    }

    /// The handshake of the older revisions.
    async fn begin(&self, id: &Value, message: &Value) {
        let mut session = self.session.lock().await;
        match self.hello(message).await {
            Ok((begun, answer)) => {
                *session = begun;
                self.put(&answer);
            }
            Err(refused) => self.put(&failure(id, -32603, &refused.reason)),
        }
    }

    async fn hello(&self, message: &Value) -> Result<(Option<Session>, Value), Refused> {
        let mut request = self.post(message);
        if let Some(version) = text(message, "/params/protocolVersion") {
            request = request.header(VERSION, version);
        }
        let answer = self.send(request).await?;
        let id = answer.headers().get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        let mut said = Value::Null;
        self.read(answer, |message| said = message).await?;
        let version = text(&said, "/result/protocolVersion").map(str::to_owned);
        let session = id.zip(version).map(|(id, version)| Session { id, version, hello: message.clone() });
        Ok((session, said))
    }

    /// A request and its answer, with whatever the server says before it.
    async fn ask(&self, id: &Value, message: &Value) {
        let mut answered = false;
        let deliver = |said: Value, answered: &mut bool| {
            *answered |= said.get("method").is_none();
            self.put(&said);
        };
        let session = self.session.lock().await.clone();
        let mut result = self.exchange(message, session.as_ref(), |said| deliver(said, &mut answered)).await;
        if let (Err(Refused { status: Some(StatusCode::NOT_FOUND), .. }), Some(old)) = (&result, &session)
            && let Some(new) = self.renew(old).await
        {
            result = self.exchange(message, Some(&new), |said| deliver(said, &mut answered)).await;
        }
        match result {
            Err(refused) if !answered => self.put(&failure(id, -32603, &refused.reason)),
            Ok(()) if !answered => {
                self.put(&failure(id, -32603, "the server ended its answer too early"));
            }
            _ => {}
        }
    }

    /// What is not answered. Only a session has anybody to tell it to.
    async fn tell(&self, message: &Value) {
        let session = self.session.lock().await.clone();
        if session.is_some() {
            let _ = self.exchange(message, session.as_ref(), |said| self.put(&said)).await;
        }
    }

    /// A server that was started anew does not know the session: begins another with the same words, once for all.
    async fn renew(&self, old: &Session) -> Option<Session> {
        let mut session = self.session.lock().await;
        if session.as_ref().is_some_and(|now| now.id != old.id) {
            return session.clone();
        }
        let (begun, _) = self.hello(&old.hello).await.ok()?;
        let begun = begun?;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.exchange(&ready, Some(&begun), |_| ()).await.ok()?;
        *session = Some(begun.clone());
        Some(begun)
    }

    async fn leave(&self) {
        if let Some(session) = self.session.lock().await.take() {
            let request = self.client.delete(self.url()).header(SESSION, session.id).header(VERSION, session.version);
            let _ = self.send(self.signed(request)).await;
        }
    }

    async fn exchange(
        &self,
        message: &Value,
        session: Option<&Session>,
        said: impl FnMut(Value),
    ) -> Result<(), Refused> {
        let mut request = self.post(message);
        if let Some(version) = text(message, "/params/_meta/io.modelcontextprotocol~1protocolVersion") {
            request = request.header(VERSION, version);
            let name = text(message, "/params/name").or_else(|| text(message, "/params/uri"));
            for (header, value) in [("mcp-method", text(message, "/method")), ("mcp-name", name)] {
                if let Some(value) = value {
                    request = request.header(header, value);
                }
            }
        } else if let Some(session) = session {
            request = request.header(VERSION, &session.version).header(SESSION, &session.id);
        }
        let answer = self.send(request).await?;
        self.read(answer, said).await
    }

    fn url(&self) -> String {
        format!("{}/mcp", self.base)
    }

    fn post(&self, message: &Value) -> RequestBuilder {
        let request = self.client.post(self.url()).header(header::ACCEPT, "application/json, text/event-stream");
        self.signed(request.json(message))
    }

    fn signed(&self, request: RequestBuilder) -> RequestBuilder {
        match self.identity.token() {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Refused> {
        let failed = |error: reqwest::Error| Refused { status: None, reason: lost(&self.base, &error).to_string() };
        request.send().await.map_err(failed)
    }

    /// Every message of an answer, as soon as it is there.
    async fn read(&self, answer: Response, mut said: impl FnMut(Value)) -> Result<(), Refused> {
        let status = answer.status();
        let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let is_stream = kind.starts_with("text/event-stream");
        let cut = |_| Refused { status: None, reason: "the server's answer was cut off".to_owned() };
        if status.is_success() && is_stream {
            let mut stream = answer.bytes_stream();
            let too_large = |error: sse::TooLarge| Refused { status: None, reason: error.to_string() };
            let mut decoder = sse::Decoder::new(EVENT_LIMIT);
            while let Some(bytes) = stream.next().await {
                decoder.push(bytes.map_err(cut)?).map_err(too_large)?;
                while decoder.advance().map_err(too_large)? {
                    serde_json::from_slice(decoder.event().data).into_iter().for_each(&mut said);
                }
            }
            return Ok(());
        }
        let body: Value = serde_json::from_slice(&answer.bytes().await.map_err(cut)?).unwrap_or_default();
        // An answer to nobody in particular is about this request, and says so in words.
        if body.get("jsonrpc").is_some() && body.get("id").is_some_and(|id| !id.is_null()) {
            said(body);
            return Ok(());
        }
        if status.is_success() {
            return Ok(());
        }
        let detail = text(&body, "/detail").or_else(|| text(&body, "/error/message"));
        let reason = detail.map_or_else(|| format!("the server answered {status}"), str::to_owned);
        Err(Refused { status: Some(status), reason })
    }

    fn put(&self, message: &Value) {
        // Fails only when the client has gone, and then nobody reads.
        let _ = self.out.send(message.to_string());
    }
}

/// Returns the text at a JSON pointer, if there is one.
fn text<'a>(message: &'a Value, pointer: &str) -> Option<&'a str> {
    message.pointer(pointer)?.as_str()
}

fn failure(id: &Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

async fn write(mut lines: mpsc::UnboundedReceiver<String>) {
    let mut out = tokio::io::stdout();
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        if out.write_all(line.as_bytes()).await.is_err() || out.flush().await.is_err() {
            return;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
