//! Tests of the server over real sockets, with a scripted model.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod a2a;
mod a2a_endpoints;
mod agent_dialogues;
mod agent_run;
mod assistant_runner;
mod confirmation;
mod crash_recovery;
mod dialogues;
mod follow_up;
mod guide_examples;
mod hostile_model;
mod offline_dialogues;
mod push_notifications;
mod recurring_tasks;
mod slow_turns;

use std::sync::Arc;
use std::time::Duration;

use assistant::offline::OfflineModel;
use assistant::{ChatModel, ModelChain, ModelError, Prompt, ReplyDelta, RequestedCall};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use model::agent::Agent;
use model::task::{Task, TaskDraft, TaskFilter, TaskLimits};
use model::{Clock, User, UserId};
use serde_json::{Value, json};
use server::{App, ServerSettings};
use store::undo::UndoStep;
use store::{Durability, Location, Store};
use supervisor::{Runner, Supervisor, SupervisorOptions};
use tokio::sync::Notify;

/// A step of a scripted reply.
pub enum ReplyStep {
    Say(String),
    Think(String),
    Call(&'static str, String),
    Fail,
    /// Waits until the test notifies it.
    Wait(Arc<Notify>),
    Hang,
}

pub fn say(text: &str) -> ReplyStep {
    ReplyStep::Say(text.to_owned())
}

pub fn call(tool: &'static str, arguments: Value) -> ReplyStep {
    ReplyStep::Call(tool, arguments.to_string())
}

type Script = dyn Fn(&Prompt<'_>) -> Vec<ReplyStep> + Send + Sync;

/// A model that replies by a script.
pub struct ScriptedModel(Box<Script>);

impl ScriptedModel {
    pub fn new(script: impl Fn(&Prompt<'_>) -> Vec<ReplyStep> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self(Box::new(script)))
    }
}

impl ChatModel for ScriptedModel {
    fn name(&self) -> &str {
        "scripted"
    }

    fn reply<'a>(&'a self, prompt: Prompt<'a>) -> BoxStream<'a, Result<ReplyDelta, ModelError>> {
        let steps = stream::iter((self.0)(&prompt));
        steps
            .filter_map(async |step| match step {
                ReplyStep::Say(text) => Some(Ok(ReplyDelta::Text(text))),
                ReplyStep::Think(text) => Some(Ok(ReplyDelta::Thinking(text))),
                ReplyStep::Call(name, arguments) => {
                    Some(Ok(ReplyDelta::Call(RequestedCall { name: name.to_owned(), arguments })))
                }
                ReplyStep::Fail => Some(Err(ModelError("password=hunter22hunter22 was refused".to_owned()))),
                ReplyStep::Wait(notify) => {
                    notify.notified().await;
                    None
                }
                ReplyStep::Hang => std::future::pending().await,
            })
            .boxed()
    }
}

/// A running server.
pub struct TestServer {
    pub url: String,
    pub client: reqwest::Client,
    pub store: Store,
    pub clock: Clock,
    pub app: App,
    _dir: tempfile::TempDir,
}

pub const BOB: UserId = UserId::new(uuid::Uuid::from_u128(0xb0b));

impl TestServer {
    pub async fn with_script(script: impl Fn(&Prompt<'_>) -> Vec<ReplyStep> + Send + Sync + 'static) -> Self {
        Self::start(ServerSettings::default(), script).await
    }

    pub async fn start(
        settings: ServerSettings,
        script: impl Fn(&Prompt<'_>) -> Vec<ReplyStep> + Send + Sync + 'static,
    ) -> Self {
        Self::open(settings, Clock::system(), ScriptedModel::new(script)).await
    }

    /// Starts a server with the offline model. Its clock is at noon of Sunday, 2025-12-21.
    pub async fn offline() -> Self {
        Self::offline_with(ServerSettings::default()).await
    }

    pub async fn offline_with(settings: ServerSettings) -> Self {
        Self::open(settings, Clock::manual("2025-12-21T12:00:00Z".parse().unwrap()), Arc::new(OfflineModel)).await
    }

    /// Starts a server with an agent `codex` that is never run.
    pub async fn with_codex() -> Self {
        let draft = json!({"id": "codex", "name": "codex", "executable_path": "/bin/cat"});
        let codex = supervisor::check::validate_agent(serde_json::from_value(draft).unwrap(), &|_| None).unwrap();
        let clock = Clock::manual("2025-12-21T12:00:00Z".parse().unwrap());
        let model: Arc<dyn ChatModel> = Arc::new(OfflineModel);
        Self::open_with(ServerSettings::default(), clock, model, vec![codex], Vec::new()).await
    }

    /// Starts a server with these models. Its clock is that of [`TestServer::offline`].
    pub async fn with_models(settings: ServerSettings, models: ModelChain) -> Self {
        let clock = Clock::manual("2025-12-21T12:00:00Z".parse().unwrap());
        Self::open_with(settings, clock, models, Vec::new(), Vec::new()).await
    }

    async fn open(settings: ServerSettings, clock: Clock, model: Arc<dyn ChatModel>) -> Self {
        Self::open_with(settings, clock, model, Vec::new(), Vec::new()).await
    }

    /// Starts a server with agents that start no processes.
    pub async fn with_agents(
        settings: ServerSettings,
        clock: Clock,
        model: Arc<dyn ChatModel>,
        agents: Vec<(Agent, Arc<dyn Runner>)>,
    ) -> Self {
        Self::open_with(settings, clock, model, Vec::new(), agents).await
    }

    async fn open_with(
        settings: ServerSettings,
        clock: Clock,
        models: impl Into<ModelChain>,
        agents: Vec<Agent>,
        built_in: Vec<(Agent, Arc<dyn Runner>)>,
    ) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dir = tempfile::tempdir().unwrap();
        let location = Location::Sqlite(dir.path().join("adjutant.db"));
        let store = Store::open(&location, Durability::Normal).await.unwrap();
        let has_agents = !built_in.is_empty();
        let supervisor = Supervisor::new(SupervisorOptions {
            agents,
            built_in,
            ..SupervisorOptions::new(store.clone(), clock.clone(), dir.path())
        });
        if has_agents {
            supervisor.start().await.unwrap();
        }
        let app = App::new(supervisor, settings, models.into());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(server::serve::serve(app.clone(), listener));
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().unwrap();
        Self { url, client, store, clock, app, _dir: dir }
    }

    pub async fn post(&self, path: &str, body: &Value) -> reqwest::Response {
        self.client.post(format!("{}{path}", self.url)).json(body).send().await.unwrap()
    }

    /// Sends a message. Returns the names and the data of all events.
    pub async fn stream(&self, input: &str) -> Vec<(String, Value)> {
        let body = json!({"input": input, "conversation_id": "conv_1"});
        let response = self.post("/chat/stream", &body).await;
        assert_eq!(response.status(), 200);
        events(&response.text().await.unwrap())
    }

    pub async fn chat(&self, input: &str) -> Value {
        let response = self.post("/chat", &json!({"input": input, "conversation_id": "conv_1"})).await;
        assert_eq!(response.status(), 200);
        response.json().await.unwrap()
    }

    /// Returns the stored messages of the conversation.
    pub async fn messages(&self) -> Vec<Value> {
        let response = self.client.get(format!("{}/api/conversations/conv_1", self.url)).send().await.unwrap();
        response.json::<Value>().await.unwrap()["messages"].as_array().cloned().unwrap_or_default()
    }

    pub async fn add(&self, owner: UserId, title: &str) -> Task {
        let draft = TaskDraft { title: title.to_owned(), ..TaskDraft::default() };
        let user = User::local(jiff::tz::TimeZone::UTC);
        let task = draft.check(TaskLimits::default(), &self.clock, &user).unwrap();
        let stored = task.clone();
        let write = self.store.owner_transaction(owner, async move |tx| {
            let mut step = UndoStep::begin(tx, owner).await?;
            store::tasks::create(tx, &mut step, &stored).await
        });
        write.await.unwrap();
        task
    }

    pub async fn titles(&self, owner: UserId) -> Vec<String> {
        let mut reader = self.store.reader().await.unwrap();
        let page = store::tasks::list(&mut reader, owner, &TaskFilter::default(), None, 200).await.unwrap();
        page.rows.into_iter().map(|task| task.title).collect()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.app.stopping().cancel();
    }
}

/// Returns the names and the data of the events of a stream, without comments.
pub fn events(stream: &str) -> Vec<(String, Value)> {
    let blocks = stream.split("\n\n").filter(|block| !block.is_empty() && !block.starts_with(':'));
    let event = |block: &str| {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned();
        (field("event: "), serde_json::from_str(&field("data: ")).unwrap())
    };
    blocks.map(event).collect()
}

/// Returns the data of the last event, which must be `done`.
#[track_caller]
pub fn done(events: &[(String, Value)]) -> &Value {
    let (name, data) = events.last().unwrap();
    assert_eq!(name, "done", "{events:?}");
    data
}
