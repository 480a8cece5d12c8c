//! Tests of A2A push notifications: configurations, delivery to real receivers, restarts and several nodes.

mod configs;
mod delivery;
mod nodes;

use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use assistant::ModelChain;
use assistant::offline::OfflineModel;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path as InPath, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use futures::future::BoxFuture;
use model::agent::{Agent, AgentDraft};
use model::execution::ExecutionOutcome;
use model::output::{ArtifactChunk, ContentPart, RichOutput};
use model::{Clock, UserId};
use serde_json::{Value, json};
use server::settings::A2aSettings;
use server::{App, ServerSettings};
use store::{Durability, Location, Store};
use supervisor::{AgentRun, RunRecorder, RunResult, Runner, StreamName, Supervisor, SupervisorOptions};
use tokio::sync::Semaphore;

pub(crate) const TOKEN: &str = "validation-token-5f2c";
pub(crate) const CREDENTIALS: &str = "credentials-9b1d4e";

/// Waits at a gate if the input contains "slowly". Then requires input, writes two artifacts or completes.
struct GatedRunner(Arc<Semaphore>);

impl Runner for GatedRunner {
    fn run<'a>(&'a self, run: &'a AgentRun, recorder: &'a RunRecorder) -> BoxFuture<'a, RunResult> {
        Box::pin(async move {
            recorder.record_start(None);
            let input = run.request.input.as_str();
            if input.contains("slowly") {
                self.0.acquire().await.unwrap().forget();
            }
            if input.contains("ask") {
                recorder.rich_output(RichOutput::Status(vec![ContentPart::text("Really?")])).await;
                return RunResult { outcome: Some(ExecutionOutcome::InputRequired), ..RunResult::default() };
            }
            if input.contains("two") {
                for id in ["one", "two"] {
                    let parts = vec![ContentPart::text(id)];
                    recorder
                        .rich_output(RichOutput::Artifact(ArtifactChunk {
                            artifact_id: id.into(),
                            parts,
                            last: true,
                            ..ArtifactChunk::default()
                        }))
                        .await;
                }
                return RunResult::default();
            }
            recorder.output(StreamName::Stdout, b"All done.").await;
            RunResult::default()
        })
    }
}

/// A node with an agent `worker`, and the gate of its slow runs.
pub(crate) struct Node {
    pub(crate) app: App,
    pub(crate) url: String,
    client: reqwest::Client,
    pub(crate) gate: Arc<Semaphore>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.app.stopping().cancel();
    }
}

/// Returns settings that allow webhooks at private addresses.
pub(crate) fn allow_private() -> ServerSettings {
    ServerSettings {
        a2a: A2aSettings { allow_private_webhooks: true, ..A2aSettings::default() },
        ..ServerSettings::default()
    }
}

impl Node {
    pub(crate) async fn start(location: &Location, dir: &Path, settings: ServerSettings) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let store = Store::open(location, Durability::Normal).await.unwrap();
        let gate = Arc::new(Semaphore::new(0));
        let draft = json!({
            "id": "worker", "name": "worker", "executable_path": "/bin/cat", "max_concurrent_executions": 8,
            "allow": ["*"],
        });
        let agent: Agent = serde_json::from_value::<AgentDraft>(draft).unwrap().check().unwrap();
        let runner: Arc<dyn Runner> = Arc::new(GatedRunner(gate.clone()));
        let supervisor = Supervisor::new(SupervisorOptions {
            built_in: vec![(agent, runner)],
            ..SupervisorOptions::new(store, Clock::system(), dir)
        });
        supervisor.start().await.unwrap();
        let app =
            App::new(supervisor, settings, ModelChain::from(Arc::new(OfflineModel) as Arc<dyn assistant::ChatModel>));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(server::serve::serve(app.clone(), listener));
        let notifying = app.clone();
        tokio::spawn(async move { notifying.notifier().run(notifying.stopping()).await });
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().unwrap();
        Self { app, url, client, gate }
    }

    /// Stops the node. A later node continues its work.
    pub(crate) async fn stop(self) {
        self.app.stopping().cancel();
        self.app.supervisor().stop().await;
    }

    /// Calls a method by JSON-RPC, with a token if authentication is configured.
    pub(crate) async fn call_as(&self, token: Option<&str>, version: &str, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut request =
            self.client.post(format!("{}/agents/worker", self.url)).header("A2A-Version", version).json(&body);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        request.send().await.unwrap().json().await.unwrap()
    }

    pub(crate) async fn v10(&self, method: &str, params: Value) -> Value {
        self.call_as(None, "1.0", method, params).await
    }

    pub(crate) async fn v03(&self, method: &str, params: Value) -> Value {
        self.call_as(None, "0.3", method, params).await
    }

    /// Sends a message and returns the id of its task at once.
    pub(crate) async fn send(&self, text: &str, task: Option<&str>, push: Option<Value>) -> String {
        let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}], "taskId": task});
        let configuration = json!({"returnImmediately": true, "taskPushNotificationConfig": push});
        let response = self.v10("SendMessage", json!({"message": message, "configuration": configuration})).await;
        response["result"]["task"]["id"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned()
    }

    pub(crate) async fn state(&self, task: &str) -> Value {
        self.v10("GetTask", json!({"id": task, "historyLength": 0})).await["result"]["status"]["state"].clone()
    }
}

/// A directory with a database, for one node at a time.
pub(crate) struct DataDir(pub(crate) tempfile::TempDir);

impl DataDir {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn location(&self) -> Location {
        Location::Sqlite(self.0.path().join("adjutant.db"))
    }

    pub(crate) async fn start(&self) -> Node {
        self.start_with(allow_private()).await
    }

    pub(crate) async fn start_with(&self, settings: ServerSettings) -> Node {
        Node::start(&self.location(), self.0.path(), settings).await
    }
}

/// A request that a receiver got: the path, the headers and the body.
pub(crate) type ReceivedRequest = (String, HeaderMap, Value);

/// An HTTP server that receives push notifications.
#[derive(Clone, Default)]
pub(crate) struct Receiver {
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
    status: Arc<AtomicU16>,
    port: u16,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = Self { port: listener.local_addr().unwrap().port(), ..Self::default() };
        let router = Router::new().route("/{path}", post(receive)).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        receiver
    }

    /// Sets the status of all further responses.
    pub(crate) fn respond_with(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    /// Returns a push configuration of 1.x for a path.
    pub(crate) fn push_config(&self, path: &str) -> Value {
        let authentication = json!({"scheme": "Bearer", "credentials": CREDENTIALS});
        json!({"id": path, "url": self.url(path), "token": TOKEN, "authentication": authentication})
    }

    pub(crate) fn requests(&self, path: &str) -> Vec<ReceivedRequest> {
        self.requests.lock().unwrap().iter().filter(|(at, _, _)| at == path).cloned().collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    /// Returns a summary of the updates at a path: the kind, and the state or the artifact.
    pub(crate) fn updates(&self, path: &str) -> Vec<String> {
        self.requests(path).iter().map(|(_, _, body)| summary(body)).collect()
    }
}

fn summary(body: &Value) -> String {
    if body["kind"] == "task" {
        return format!("0.3 {}", body["status"]["state"].as_str().unwrap());
    }
    let (kind, inner) = body.as_object().unwrap().iter().next().unwrap();
    let detail = inner["status"]["state"].as_str().or(inner["artifact"]["artifactId"].as_str());
    format!("{kind} {}", detail.unwrap_or_default().trim_start_matches("TASK_STATE_"))
}

async fn receive(
    State(receiver): State<Receiver>,
    InPath(path): InPath<String>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let body = serde_json::from_slice(&body).unwrap();
    let status = StatusCode::from_u16(receiver.status.load(Ordering::Relaxed)).unwrap_or(StatusCode::OK);
    receiver.requests.lock().unwrap().push((path, headers, body));
    status
}

/// Waits up to 20 seconds until the condition is true.
pub(crate) async fn wait_until(condition: &str, mut is_true: impl AsyncFnMut() -> bool) {
    for _ in 0..2000 {
        if is_true().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not within 20 seconds: {condition}");
}

/// Waits long enough for an unexpected notification to arrive.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(400)).await;
}

/// Returns the stored configuration.
pub(crate) async fn stored_config(node: &Node, task: &str, id: &str) -> store::a2a::pushes::PushConfig {
    let mut reader = node.app.store().reader().await.unwrap();
    store::a2a::pushes::get(&mut reader, UserId::LOCAL, "worker", task.parse().unwrap(), id).await.unwrap()
}
