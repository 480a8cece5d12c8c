//! The server with a model that does what a test tells it to, over real sockets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod a2a;
mod agent_run;
mod dialogues;
mod doors;
mod faults;
mod guide;
mod hostile;
mod pushes;
mod recurring;
mod results;
mod runner;
mod slow;

use std::sync::Arc;
use std::time::Duration;

use assistant::offline::Offline;
use assistant::{Call, ChatModel, Delta, ModelError, Models, Prompt};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use model::agent::Agent;
use model::task::{Draft, Filter, Limits, Task};
use model::{Clock, User, UserId};
use serde_json::{Value, json};
use server::{App, Settings};
use store::undo::Step;
use store::{Durability, Location, Store};
use supervisor::{Runner, Supervisor};
use tokio::sync::Notify;

/// A piece of a scripted reply.
pub enum Piece {
    Say(String),
    Think(String),
    Call(&'static str, String),
    Fail,
    /// Nothing more comes until the test says so.
    Wait(Arc<Notify>),
    Hang,
}

pub fn say(text: &str) -> Piece {
    Piece::Say(text.to_owned())
}

pub fn call(tool: &'static str, arguments: Value) -> Piece {
    Piece::Call(tool, arguments.to_string())
}

type Script = dyn Fn(&Prompt<'_>) -> Vec<Piece> + Send + Sync;

/// A model that answers as the script says.
pub struct Scripted(Box<Script>);

impl Scripted {
    pub fn new(script: impl Fn(&Prompt<'_>) -> Vec<Piece> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self(Box::new(script)))
    }
}

impl ChatModel for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn reply<'a>(&'a self, prompt: Prompt<'a>) -> BoxStream<'a, Result<Delta, ModelError>> {
        let pieces = stream::iter((self.0)(&prompt));
        pieces
            .filter_map(async |piece| match piece {
                Piece::Say(text) => Some(Ok(Delta::Text(text))),
                Piece::Think(text) => Some(Ok(Delta::Thinking(text))),
                Piece::Call(name, arguments) => Some(Ok(Delta::Call(Call { name: name.to_owned(), arguments }))),
                Piece::Fail => Some(Err(ModelError("password=hunter22hunter22 was refused".to_owned()))),
                Piece::Wait(notify) => {
                    notify.notified().await;
                    None
                }
                Piece::Hang => std::future::pending().await,
            })
            .boxed()
    }
}

/// A running server.
pub struct Bench {
    pub url: String,
    pub client: reqwest::Client,
    pub store: Store,
    pub clock: Clock,
    pub app: App,
    _dir: tempfile::TempDir,
}

pub const BOB: UserId = UserId::new(uuid::Uuid::from_u128(0xb0b));

impl Bench {
    pub async fn with(script: impl Fn(&Prompt<'_>) -> Vec<Piece> + Send + Sync + 'static) -> Self {
        Self::start(Settings::default(), script).await
    }

    pub async fn start(settings: Settings, script: impl Fn(&Prompt<'_>) -> Vec<Piece> + Send + Sync + 'static) -> Self {
        Self::open(settings, Clock::system(), Scripted::new(script)).await
    }

    /// With the built-in model, at noon of a Sunday: 2025-12-21.
    pub async fn offline() -> Self {
        Self::offline_with(Settings::default()).await
    }

    pub async fn offline_with(settings: Settings) -> Self {
        Self::open(settings, Clock::manual("2025-12-21T12:00:00Z".parse().unwrap()), Arc::new(Offline)).await
    }

    /// With an agent called codex, of which nothing is run.
    pub async fn with_codex() -> Self {
        let draft = json!({"id": "codex", "name": "codex", "executable_path": "/bin/cat"});
        let codex = supervisor::check::written(serde_json::from_value(draft).unwrap(), &|_| None).unwrap();
        let clock = Clock::manual("2025-12-21T12:00:00Z".parse().unwrap());
        Self::open_with(Settings::default(), clock, Arc::new(Offline), vec![codex], Vec::new()).await
    }

    async fn open(settings: Settings, clock: Clock, model: Arc<dyn ChatModel>) -> Self {
        Self::open_with(settings, clock, model, Vec::new(), Vec::new()).await
    }

    /// With agents that are no processes.
    pub async fn with_agents(
        settings: Settings,
        clock: Clock,
        model: Arc<dyn ChatModel>,
        agents: Vec<(Agent, Arc<dyn Runner>)>,
    ) -> Self {
        Self::open_with(settings, clock, model, Vec::new(), agents).await
    }

    async fn open_with(
        settings: Settings,
        clock: Clock,
        model: Arc<dyn ChatModel>,
        agents: Vec<Agent>,
        built_in: Vec<(Agent, Arc<dyn Runner>)>,
    ) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dir = tempfile::tempdir().unwrap();
        let location = Location::Sqlite(dir.path().join("adjutant.db"));
        let store = Store::open(&location, Durability::Normal).await.unwrap();
        let any = !built_in.is_empty();
        let supervisor = Supervisor::new(supervisor::Options {
            agents,
            built_in,
            ..supervisor::Options::new(store.clone(), clock.clone(), dir.path())
        });
        if any {
            supervisor.work().await.unwrap();
        }
        let app = App::new(supervisor, settings, Models::from(model));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(server::serve::serve(app.clone(), listener));
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().unwrap();
        Self { url, client, store, clock, app, _dir: dir }
    }

    pub async fn post(&self, path: &str, body: &Value) -> reqwest::Response {
        self.client.post(format!("{}{path}", self.url)).json(body).send().await.unwrap()
    }

    /// Says something and gives all events, by name and data.
    pub async fn stream(&self, input: &str) -> Vec<(String, Value)> {
        let body = json!({"input": input, "conversation_id": "conv_1"});
        let answer = self.post("/chat/stream", &body).await;
        assert_eq!(answer.status(), 200);
        events(&answer.text().await.unwrap())
    }

    pub async fn chat(&self, input: &str) -> Value {
        let answer = self.post("/chat", &json!({"input": input, "conversation_id": "conv_1"})).await;
        assert_eq!(answer.status(), 200);
        answer.json().await.unwrap()
    }

    /// The stored messages of the conversation.
    pub async fn messages(&self) -> Vec<Value> {
        let answer = self.client.get(format!("{}/api/conversations/conv_1", self.url)).send().await.unwrap();
        answer.json::<Value>().await.unwrap()["messages"].as_array().cloned().unwrap_or_default()
    }

    pub async fn add(&self, owner: UserId, title: &str) -> Task {
        let draft = Draft { title: title.to_owned(), ..Draft::default() };
        let user = User::local(jiff::tz::TimeZone::UTC);
        let task = draft.check(Limits::default(), &self.clock, &user).unwrap();
        let kept = task.clone();
        let write = self.store.transaction(async move |tx| {
            let mut step = Step::begin(tx, owner).await?;
            store::tasks::create(tx, &mut step, &kept).await
        });
        write.await.unwrap();
        task
    }

    pub async fn titles(&self, owner: UserId) -> Vec<String> {
        let mut reader = self.store.reader().await.unwrap();
        let page = store::tasks::list(&mut reader, owner, &Filter::default(), None, 200).await.unwrap();
        page.rows.into_iter().map(|task| task.title).collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.app.stopping().cancel();
    }
}

/// The events of a stream, by name and data; comments are skipped.
pub fn events(stream: &str) -> Vec<(String, Value)> {
    let blocks = stream.split("\n\n").filter(|block| !block.is_empty() && !block.starts_with(':'));
    let event = |block: &str| {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned();
        (field("event: "), serde_json::from_str(&field("data: ")).unwrap())
    };
    blocks.map(event).collect()
}

/// The data of the last event, which must be `done`.
#[track_caller]
pub fn done(events: &[(String, Value)]) -> &Value {
    let (name, data) = events.last().unwrap();
    assert_eq!(name, "done", "{events:?}");
    data
}
