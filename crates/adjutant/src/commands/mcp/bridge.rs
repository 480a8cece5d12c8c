//! Forwards MCP messages between standard input and output, one per line, and `/mcp` of a server or of another command.
//! Reads from messages only the values for headers and never changes them. If the other command ends, this process
//! takes the data directory and forwards the messages to itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use anyhow::Context;
use futures::StreamExt;
use reqwest::{RequestBuilder, Response, StatusCode, header};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{BridgeIdentity, hold_data_dir};
use crate::cli::GlobalOptions;
use crate::client::EVENT_LIMIT;
use crate::config::data_dir;
use crate::holder::Holder;
use crate::target::{ConnectionTarget, ServerKind, ServerTarget, find_target, socket_target};

const VERSION: &str = "mcp-protocol-version";
const SESSION: &str = "mcp-session-id";
/// The time for outstanding responses after the client has closed its input.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of times that a message looks for another process after the one that held the data directory has ended.
const MAX_RECONNECTS: usize = 5;

/// Connects one MCP client to a server.
struct McpBridge {
    global: GlobalOptions,
    /// Replaced if the command that answers messages ends.
    target: RwLock<Arc<ServerTarget>>,
    /// Present if this process holds the data directory. Locked while the target is replaced.
    holder: AsyncMutex<Option<Holder>>,
    identity: BridgeIdentity,
    /// Present if the client began with `initialize`.
    session: AsyncMutex<Option<BridgeSession>>,
    /// Pending requests by id.
    pending: Mutex<HashMap<String, AbortHandle>>,
    /// Lines for standard output.
    out: mpsc::UnboundedSender<String>,
}

#[derive(Clone)]
struct BridgeSession {
    id: String,
    version: String,
    /// The `initialize` request, to create a new session if the server loses this one.
    initialize: Value,
}

/// The reason why a message got no response of the MCP server.
struct BridgeError {
    /// The HTTP status of the response. None if there was no response or it was cut off.
    status: Option<StatusCode>,
    reason: String,
}

/// Forwards messages until the client closes its input or `stop` is cancelled. Then waits up to [`DRAIN_TIMEOUT`] for
/// pending responses, unless `stop` is cancelled, closes the session and aborts the other requests. Blank lines are
/// ignored. Returns the data directory if this process has taken it meanwhile. Fails if standard input cannot be read.
pub(super) async fn run(
    target: ServerTarget,
    global: &GlobalOptions,
    identity: BridgeIdentity,
    stop: CancellationToken,
) -> anyhow::Result<Option<Holder>> {
    let (out, lines) = mpsc::unbounded_channel();
    let writer = tokio::spawn(write(lines));
    let session = AsyncMutex::default();
    let pending = Mutex::default();
    let target = RwLock::new(Arc::new(target));
    let holder = AsyncMutex::default();
    let global = global.clone();
    let bridge = Arc::new(McpBridge { global, target, holder, identity, session, pending, out });
    let tasks = TaskTracker::new();
    let mut input = BufReader::new(tokio::io::stdin());
    let mut line = Vec::new();
    while let Some(read) = stop.run_until_cancelled(input.read_until(b'\n', &mut line)).await {
        if read? == 0 {
            break;
        }
        if !line.trim_ascii().is_empty() {
            bridge.handle_line(&line, &tasks).await;
        }
        line.clear();
    }
    tasks.close();
    let _ = stop.run_until_cancelled(tokio::time::timeout(DRAIN_TIMEOUT, tasks.wait())).await;
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, bridge.close_session()).await;
    for (_, task) in lock(&bridge.pending).drain() {
        task.abort();
    }
    let holder = bridge.holder.lock().await.take();
    // The writer ends when the last sender is dropped.
    drop(bridge);
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, writer).await;
    Ok(holder)
}

impl McpBridge {
    /// Forwards one line. Requests run concurrently in `tasks`; `initialize`, notifications and responses keep their
    /// order. Answers a line that is not JSON (-32700), or has neither id nor method (-32600), with an error. Without a
    /// session, notifications and responses are dropped, and a cancellation aborts the request.
    async fn handle_line(self: &Arc<Self>, line: &[u8], tasks: &TaskTracker) {
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            return self.put(&failure(&Value::Null, -32700, "each line must be JSON"));
        };
        let id = message.get("id").cloned();
        let method = text(&message, "/method").map(str::to_owned);
        match (id, method.as_deref()) {
            (Some(id), Some("initialize")) => self.initialize(&id, &message).await,
            (Some(id), Some(_)) => {
                let bridge = self.clone();
                // Locked until the task is registered, so that the task cannot remove itself before that.
                let mut pending = lock(&self.pending);
                let key = id.to_string();
                let task = tasks.spawn(async move {
                    bridge.request(&id, &message).await;
                    lock(&bridge.pending).remove(&id.to_string());
                });
                pending.insert(key, task.abort_handle());
            }
            (None, Some("notifications/cancelled")) if self.session.lock().await.is_none() => {
                // Without a session, closing the connection cancels the request.
                let id = message.pointer("/params/requestId").map(Value::to_string).unwrap_or_default();
                if let Some(task) = lock(&self.pending).remove(&id) {
                    task.abort();
                }
            }
            (None, None) => self.put(&failure(&Value::Null, -32600, "each line must be one JSON-RPC message")),
            _ => self.notify(&message).await,
        }
    }

    /// Performs the handshake of protocol revisions with sessions. Forwards only the last message of the response, or
    /// the line `null` if it has none. Replaces the session, also with none if the server created none. Answers with an
    /// error (-32603) if the server cannot be reached or rejects the request; the session stays then. Messages that
    /// need the session wait for it.
    async fn initialize(&self, id: &Value, message: &Value) {
        let mut session = self.session.lock().await;
        match self.create_session(message).await {
            Ok((created, response)) => {
                *session = created;
                self.put(&response);
            }
            Err(error) => self.put(&failure(id, -32603, &error.reason)),
        }
    }

    /// Sends an `initialize` request. Returns the last message of the response, null if there is none. Returns a
    /// session if the server sent both an id and a version. Does not store it. Fails if the server cannot be reached,
    /// returns an HTTP error that is no JSON-RPC response, or cuts the response off.
    async fn create_session(&self, message: &Value) -> Result<(Option<BridgeSession>, Value), BridgeError> {
        let version = text(message, "/params/protocolVersion");
        let headers: Vec<_> = version.map(|version| (VERSION, version)).into_iter().collect();
        let response = self.post(message, &headers).await?;
        let id = response.headers().get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        let mut reply = Value::Null;
        self.read(response, |message| reply = message).await?;
        let version = text(&reply, "/result/protocolVersion").map(str::to_owned);
        let session = id.zip(version).map(|(id, version)| BridgeSession { id, version, initialize: message.clone() });
        Ok((session, reply))
    }

    /// Forwards a request, and all messages of the server up to the response. If the server does not know the session
    /// (404), renews it and tries once more. Sends an error (-32603) to the client if no response arrives.
    async fn request(&self, id: &Value, message: &Value) {
        let mut answered = false;
        let deliver = |reply: Value, answered: &mut bool| {
            *answered |= reply.get("method").is_none();
            self.put(&reply);
        };
        let session = self.session.lock().await.clone();
        let mut result = self.exchange(message, session.as_ref(), |reply| deliver(reply, &mut answered)).await;
        if let (Err(BridgeError { status: Some(StatusCode::NOT_FOUND), .. }), Some(old)) = (&result, &session)
            && let Some(new) = self.renew(old).await
        {
            result = self.exchange(message, Some(&new), |reply| deliver(reply, &mut answered)).await;
        }
        match result {
            Err(error) if !answered => self.put(&failure(id, -32603, &error.reason)),
            Ok(()) if !answered => {
                self.put(&failure(id, -32603, "the server closed the connection before the response"));
            }
            _ => {}
        }
    }

    /// Forwards a notification or response. Failures are ignored. The message is dropped if there is no session.
    async fn notify(&self, message: &Value) {
        let session = self.session.lock().await.clone();
        if session.is_some() {
            let _ = self.exchange(message, session.as_ref(), |reply| self.put(&reply)).await;
        }
    }

    /// Creates a new session in place of `old`, for example after a restart of the server. Repeats `initialize` and
    /// sends `notifications/initialized`; the client sees neither. Returns the current session if a concurrent request
    /// has replaced `old` already, and none if a request fails or the server creates no session.
    async fn renew(&self, old: &BridgeSession) -> Option<BridgeSession> {
        let mut session = self.session.lock().await;
        if session.as_ref().is_some_and(|current| current.id != old.id) {
            return session.clone();
        }
        let (created, _) = self.create_session(&old.initialize).await.ok()?;
        let created = created?;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.exchange(&ready, Some(&created), |_| ()).await.ok()?;
        *session = Some(created.clone());
        Some(created)
    }

    /// Deletes the session on the server, if there is one. Failures are ignored.
    async fn close_session(&self) {
        if let Some(session) = self.session.lock().await.take() {
            let target = self.target();
            let request = target.client.delete(url(&target)).header(SESSION, session.id);
            let _ = self.signed(request.header(VERSION, session.version)).send().await;
        }
    }

    /// Posts a message and passes every reply to `deliver`. A message with its own protocol version in `_meta` gets the
    /// headers of that revision: version, method, and the name or URI if present. Every other message gets the headers
    /// of the session, if there is one. Fails if the server cannot be reached or the response cannot be read; see
    /// [`McpBridge::read`].
    async fn exchange(
        &self,
        message: &Value,
        session: Option<&BridgeSession>,
        deliver: impl FnMut(Value),
    ) -> Result<(), BridgeError> {
        let mut headers = Vec::new();
        if let Some(version) = text(message, "/params/_meta/io.modelcontextprotocol~1protocolVersion") {
            headers.push((VERSION, version));
            let name = text(message, "/params/name").or_else(|| text(message, "/params/uri"));
            for (header, value) in [("mcp-method", text(message, "/method")), ("mcp-name", name)] {
                headers.extend(value.map(|value| (header, value)));
            }
        } else if let Some(session) = session {
            headers.extend([(VERSION, session.version.as_str()), (SESSION, session.id.as_str())]);
        }
        let response = self.post(message, &headers).await?;
        self.read(response, deliver).await
    }

    fn target(&self) -> Arc<ServerTarget> {
        self.target.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends a message with these headers. If the command that answers messages has ended, sends it to the next one, or
    /// takes the data directory. Fails if no process can be reached.
    async fn post(&self, message: &Value, headers: &[(&'static str, &str)]) -> Result<Response, BridgeError> {
        let mut target = self.target();
        let mut attempts = 0;
        loop {
            attempts += 1;
            let request =
                target.client.post(url(&target)).header(header::ACCEPT, "application/json, text/event-stream");
            let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
            match self.signed(request.json(message)).send().await {
                Ok(response) => return Ok(response),
                Err(error)
                    if error.is_connect() && target.kind == ServerKind::Command && attempts <= MAX_RECONNECTS =>
                {
                    let failed = |error: anyhow::Error| BridgeError { status: None, reason: format!("{error:#}") };
                    target = self.reconnect(&target).await.map_err(failed)?;
                }
                Err(error) => {
                    return Err(BridgeError { status: None, reason: target.unreachable(&error).to_string() });
                }
            }
        }
    }

    /// Replaces the target after the command that answered messages has ended: with the next process that holds the
    /// data directory, or with this process. Returns the current target if another request has replaced `failed`. Fails
    /// if neither is possible.
    async fn reconnect(&self, failed: &Arc<ServerTarget>) -> anyhow::Result<Arc<ServerTarget>> {
        let mut holder = self.holder.lock().await;
        let current = self.target();
        if !Arc::ptr_eq(&current, failed) {
            return Ok(current);
        }
        let target = match find_target(&self.global).await? {
            ConnectionTarget::Server(target) => target,
            ConnectionTarget::DataDir(lock) => {
                *holder = Some(hold_data_dir(&self.global, lock).await?);
                let own = socket_target(&data_dir(&self.global), None).await?;
                own.context("the socket in the data directory cannot be used")?
            }
        };
        let target = Arc::new(target);
        *self.target.write().unwrap_or_else(PoisonError::into_inner) = target.clone();
        Ok(target)
    }

    /// Adds the token of the identity, if it has one.
    fn signed(&self, request: RequestBuilder) -> RequestBuilder {
        match self.identity.token() {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Passes every message of a response to `deliver` as it arrives. Events that are not JSON are ignored. Without an
    /// event stream, only a JSON-RPC message with an id is delivered, even with an HTTP error status; any other
    /// successful response is ignored.
    ///
    /// Fails if the response is another HTTP error, with its status and detail. Also fails if it is cut off or has an
    /// event larger than [`EVENT_LIMIT`], without a status.
    async fn read(&self, response: Response, mut deliver: impl FnMut(Value)) -> Result<(), BridgeError> {
        let status = response.status();
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let is_stream = kind.starts_with("text/event-stream");
        let cut = |_| BridgeError { status: None, reason: "the response of the server was cut off".to_owned() };
        if status.is_success() && is_stream {
            let mut stream = response.bytes_stream();
            let too_large = |error: sse::TooLarge| BridgeError { status: None, reason: error.to_string() };
            let mut decoder = sse::SseDecoder::new(EVENT_LIMIT);
            while let Some(bytes) = stream.next().await {
                decoder.push(bytes.map_err(cut)?).map_err(too_large)?;
                while decoder.advance().map_err(too_large)? {
                    serde_json::from_slice(decoder.event().data).into_iter().for_each(&mut deliver);
                }
            }
            return Ok(());
        }
        let body: Value = serde_json::from_slice(&response.bytes().await.map_err(cut)?).unwrap_or_default();
        // An error without an id is reported as the error of this request.
        if body.get("jsonrpc").is_some() && body.get("id").is_some_and(|id| !id.is_null()) {
            deliver(body);
            return Ok(());
        }
        if status.is_success() {
            return Ok(());
        }
        let detail = text(&body, "/detail").or_else(|| text(&body, "/error/message"));
        let reason = detail.map_or_else(|| format!("the server returned {status}"), str::to_owned);
        Err(BridgeError { status: Some(status), reason })
    }

    fn put(&self, message: &Value) {
        // Fails only if the writer has ended because the client disconnected.
        let _ = self.out.send(message.to_string());
    }
}

/// Returns the address of the MCP endpoint.
fn url(target: &ServerTarget) -> String {
    format!("{}/mcp", target.base)
}

/// Returns the text at a JSON pointer, or none if it is absent or not a string.
fn text<'a>(message: &'a Value, pointer: &str) -> Option<&'a str> {
    message.pointer(pointer)?.as_str()
}

/// Returns a JSON-RPC error response. `id` is null if the request is not known.
fn failure(id: &Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// Writes each message as one line to standard output and flushes it. Returns when all senders are dropped or standard
/// output cannot be written.
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
