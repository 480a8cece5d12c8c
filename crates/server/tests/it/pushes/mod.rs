//! Push notifications of A2A: configurations over real sockets, told to real receivers, by nodes that come and go.

mod kept;
mod nodes;
mod told;

use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use assistant::Models;
use assistant::offline::Offline;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path as InPath, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use futures::future::BoxFuture;
use model::agent::{Agent, Draft};
use model::execution::Outcome;
use model::said::{Part, Piece, Said};
use model::{Clock, UserId};
use serde_json::{Value, json};
use server::settings::A2a;
use server::{App, Settings};
use store::{Durability, Location, Store};
use supervisor::{Desk, Ended, Run, Runner, Stream, Supervisor};
use tokio::sync::Semaphore;

pub(crate) const TOKEN: &str = "validation-token-5f2c";
pub(crate) const CREDENTIALS: &str = "credentials-9b1d4e";

/// Waits at a gate; then asks, says much, or does what it is told.
struct Scripted(Arc<Semaphore>);

impl Runner for Scripted {
    fn run<'a>(&'a self, run: &'a Run, desk: &'a Desk) -> BoxFuture<'a, Ended> {
        Box::pin(async move {
            desk.started(None);
            let input = run.request.input.as_str();
            if input.contains("slowly") {
                self.0.acquire().await.unwrap().forget();
            }
            if input.contains("ask") {
                desk.say(Said::Status(vec![Part::text("Really?")])).await;
                return Ended { outcome: Some(Outcome::Asks), ..Ended::default() };
            }
            if input.contains("two") {
                for id in ["one", "two"] {
                    let parts = vec![Part::text(id)];
                    desk.say(Said::Artifact(Piece { artifact_id: id.into(), parts, last: true, ..Piece::default() }))
                        .await;
                }
                return Ended::default();
            }
            desk.output(Stream::Stdout, b"All done.").await;
            Ended::default()
        })
    }
}

/// A node with an agent called `worker`, and the gate that its slow runs wait at.
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

pub(crate) fn private() -> Settings {
    Settings { a2a: A2a { allow_private_webhooks: true, ..A2a::default() }, ..Settings::default() }
}

impl Node {
    pub(crate) async fn start(location: &Location, dir: &Path, settings: Settings) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let store = Store::open(location, Durability::Normal).await.unwrap();
        let gate = Arc::new(Semaphore::new(0));
        let draft = json!({
            "id": "worker", "name": "worker", "executable_path": "/bin/cat", "max_concurrent_executions": 8,
            "allow": ["*"],
        });
        let agent: Agent = serde_json::from_value::<Draft>(draft).unwrap().check().unwrap();
        let runner: Arc<dyn Runner> = Arc::new(Scripted(gate.clone()));
        let supervisor = Supervisor::new(supervisor::Options {
            built_in: vec![(agent, runner)],
            ..supervisor::Options::new(store, Clock::system(), dir)
        });
        supervisor.work().await.unwrap();
        let app = App::new(supervisor, settings, Models::from(Arc::new(Offline) as Arc<dyn assistant::ChatModel>));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(server::serve::serve(app.clone(), listener));
        let notifying = app.clone();
        tokio::spawn(async move { notifying.notifier().run(notifying.stopping()).await });
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().unwrap();
        Self { app, url, client, gate }
    }

    /// What it had begun goes on elsewhere, or later.
    pub(crate) async fn stop(self) {
        self.app.stopping().cancel();
        self.app.supervisor().stop().await;
    }

    /// A request by JSON-RPC, as this user if tokens are asked for.
    pub(crate) async fn ask_as(&self, token: Option<&str>, version: &str, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut request =
            self.client.post(format!("{}/agents/worker", self.url)).header("A2A-Version", version).json(&body);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        request.send().await.unwrap().json().await.unwrap()
    }

    pub(crate) async fn v10(&self, method: &str, params: Value) -> Value {
        self.ask_as(None, "1.0", method, params).await
    }

    pub(crate) async fn v03(&self, method: &str, params: Value) -> Value {
        self.ask_as(None, "0.3", method, params).await
    }

    /// Sends a message without waiting for what comes of it; gives the id of the task.
    pub(crate) async fn send(&self, text: &str, task: Option<&str>, push: Option<Value>) -> String {
        let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}], "taskId": task});
        let configuration = json!({"returnImmediately": true, "taskPushNotificationConfig": push});
        let answer = self.v10("SendMessage", json!({"message": message, "configuration": configuration})).await;
        answer["result"]["task"]["id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    pub(crate) async fn state(&self, task: &str) -> Value {
        self.v10("GetTask", json!({"id": task, "historyLength": 0})).await["result"]["status"]["state"].clone()
    }
}

/// A directory with a database, for nodes one after the other.
pub(crate) struct Home(pub(crate) tempfile::TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn location(&self) -> Location {
        Location::Sqlite(self.0.path().join("adjutant.db"))
    }

    pub(crate) async fn start(&self) -> Node {
        self.start_with(private()).await
    }

    pub(crate) async fn start_with(&self, settings: Settings) -> Node {
        Node::start(&self.location(), self.0.path(), settings).await
    }
}

/// What came to a receiver: the path, the headers and the body.
pub(crate) type Got = (String, HeaderMap, Value);

/// Somebody who wants to be told.
#[derive(Clone, Default)]
pub(crate) struct Receiver {
    got: Arc<Mutex<Vec<Got>>>,
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

    pub(crate) fn answer(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    /// A configuration of 1.x.
    pub(crate) fn push(&self, path: &str) -> Value {
        let authentication = json!({"scheme": "Bearer", "credentials": CREDENTIALS});
        json!({"id": path, "url": self.url(path), "token": TOKEN, "authentication": authentication})
    }

    pub(crate) fn got(&self, path: &str) -> Vec<Got> {
        self.got.lock().unwrap().iter().filter(|(at, _, _)| at == path).cloned().collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.got.lock().unwrap().len()
    }

    /// What was told there, in short: the kind of update and the state or the artifact.
    pub(crate) fn told(&self, path: &str) -> Vec<String> {
        self.got(path).iter().map(|(_, _, body)| in_short(body)).collect()
    }
}

fn in_short(body: &Value) -> String {
    if body["kind"] == "task" {
        return format!("0.3 {}", body["status"]["state"].as_str().unwrap());
    }
    let (kind, inner) = body.as_object().unwrap().iter().next().unwrap();
    let what = inner["status"]["state"].as_str().or(inner["artifact"]["artifactId"].as_str());
    format!("{kind} {}", what.unwrap_or_default().trim_start_matches("TASK_STATE_"))
}

async fn receive(
    State(receiver): State<Receiver>,
    InPath(path): InPath<String>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let body = serde_json::from_slice(&body).unwrap();
    let status = StatusCode::from_u16(receiver.status.load(Ordering::Relaxed)).unwrap_or(StatusCode::OK);
    receiver.got.lock().unwrap().push((path, headers, body));
    status
}

/// Waits until it is so.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..2000 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not within 20 seconds: {what}");
}

/// Long enough for what must not happen.
pub(crate) async fn a_while() {
    tokio::time::sleep(Duration::from_millis(400)).await;
}

/// What the store keeps of it.
pub(crate) async fn kept(node: &Node, task: &str, id: &str) -> store::a2a::pushes::Push {
    let mut reader = node.app.store().reader().await.unwrap();
    store::a2a::pushes::get(&mut reader, UserId::LOCAL, "worker", task.parse().unwrap(), id).await.unwrap()
}
