//! The product with the scripted agent in it: what the public test kits of A2A are run against, and our own tests of it.
//! The agent is a [`Runner`] in this process; everything else is the product as it is, over a real socket.

mod script;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use assistant::Models;
use assistant::offline::Offline;
use futures::future::BoxFuture;
use model::Clock;
use model::agent::{Agent, Draft};
use model::execution::Outcome;
use model::said::{Part, Piece, Said};
use server::settings::A2a;
use server::{App, Settings};
use store::{Durability, Location, Store};
use supervisor::{Desk, Ended, Failure, Run, Runner, Supervisor};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use script::Step;

/// What the agent is called in paths.
pub const AGENT: &str = "conformance";

/// The product as it runs; ended when it is dropped.
pub struct Server {
    pub url: String,
    app: App,
    serving: JoinHandle<()>,
    _dir: Option<TempDir>,
}

/// Where it listens and what it works on.
pub struct Options {
    pub listen: String,
    /// Nothing: a directory of its own, which is gone afterwards.
    pub data_dir: Option<PathBuf>,
    /// Nothing: SQLite in that directory.
    pub database_url: Option<String>,
    pub settings: Settings,
    /// More agents like the scripted one, under other names and terms.
    pub more: Vec<Agent>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:0".to_owned(),
            data_dir: None,
            database_url: None,
            settings: settings(),
            more: Vec::new(),
        }
    }
}

/// The scripted agent is the one that is meant where none is named, and it may call back to this machine.
pub fn settings() -> Settings {
    let a2a = A2a { default_agent: AGENT.to_owned(), allow_private_webhooks: true, ..A2a::default() };
    Settings { a2a, ..Settings::default() }
}

impl Server {
    pub async fn start(options: Options) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (dir, path) = match options.data_dir {
            Some(path) => (None, path),
            None => {
                let dir = tempfile::tempdir().unwrap();
                let path = dir.path().to_owned();
                (Some(dir), path)
            }
        };
        let location = match options.database_url {
            Some(url) => Location::Postgres(url),
            None => Location::Sqlite(path.join("adjutant.db")),
        };
        let store = Store::open(&location, Durability::Full).await.unwrap();
        let scripted = [Scripted::agent()].into_iter().chain(options.more);
        let built_in = scripted.map(|agent| (agent, Arc::new(Scripted) as Arc<dyn Runner>)).collect();
        let supervising = supervisor::Options::new(store, Clock::system(), &path);
        let supervising = supervisor::Options { built_in, ..supervising };
        let offline: Arc<dyn assistant::ChatModel> = Arc::new(Offline);
        let app = App::new(Supervisor::new(supervising), options.settings, Models::from(offline));
        let listener = TcpListener::bind(&options.listen).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        app.supervisor().work().await.unwrap();
        let serving = tokio::spawn({
            let app = app.clone();
            async move {
                let notifying = app.notifier().run(app.stopping());
                let (served, ()) = tokio::join!(server::serve::serve(app.clone(), listener), notifying);
                served.unwrap();
            }
        });
        Self { url, app, serving, _dir: dir }
    }

    /// Ends it in an orderly way.
    pub async fn stop(mut self) {
        self.app.stopping().cancel();
        (&mut self.serving).await.unwrap();
        self.app.supervisor().stop().await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.app.stopping().cancel();
        self.serving.abort();
    }
}

/// The program that is such a server; made where it is not there yet.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| crate::agent::made("conformance", "src/bin/conformance.rs"))
}

/// Does what the beginning of a message's id says.
pub struct Scripted;

impl Scripted {
    pub fn agent() -> Agent {
        let draft = Draft {
            id: Some(AGENT.to_owned()),
            name: Some("Conformance".to_owned()),
            description: Some("does what the id of a message says, for test kits".to_owned()),
            max_concurrent_executions: Some(1000),
            queue_depth: Some(10_000),
            allow: Some(vec!["*".to_owned()]),
            ..Draft::default()
        };
        draft.built_in()
    }
}

impl Runner for Scripted {
    fn answers_by_message(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, run: &'a Run, desk: &'a Desk) -> BoxFuture<'a, Ended> {
        Box::pin(async move {
            desk.started(None);
            let id = run.request.message.as_ref().and_then(|message| message["messageId"].as_str()).unwrap_or_default();
            tokio::select! {
                ended = play(script::script(id, &run.request.input), run, desk) => ended,
                _ = desk.stopped() => Ended { stopped: true, ..Ended::default() },
            }
        })
    }
}

async fn play(script: script::Script, run: &Run, desk: &Desk) -> Ended {
    let mut ended = Ended::default();
    for (n, step) in script.into_iter().enumerate() {
        match step {
            Step::Say(text) => desk.say(Said::Status(vec![Part::text(text)])).await,
            Step::Give(part) => give(desk, n, part, false, true).await,
            Step::Echo => give(desk, n, Part::text(&run.request.input), false, true).await,
            Step::EchoMessage => {
                desk.say(Said::Message(vec![Part::text(&run.request.input)])).await;
                ended.outcome = Some(Outcome::Message);
            }
            Step::Count(pieces) => {
                for piece in 1..=pieces {
                    give(desk, n, Part::text(format!("{piece}\n")), piece > 1, piece == pieces).await;
                }
            }
            Step::Pieces(pieces) => {
                for (piece, text) in pieces.iter().enumerate() {
                    give(desk, n, Part::text(*text), piece > 0, piece + 1 == pieces.len()).await;
                }
            }
            Step::Answer(text) => {
                desk.say(Said::Message(vec![Part::text(text)])).await;
                ended.outcome = Some(Outcome::Message);
            }
            Step::Wait(time) => tokio::time::sleep(time).await,
            Step::WaitForever => std::future::pending().await,
            Step::Ask => ended.outcome = Some(Outcome::Asks),
            Step::AskForAccess => ended.outcome = Some(Outcome::NeedsAccess),
            Step::Reject => {
                ended.failure = Some(Failure::permanent("rejected"));
                ended.outcome = Some(Outcome::Rejected);
            }
            Step::Fail(why) => ended.failure = Some(Failure::permanent(why)),
        }
    }
    ended
}

async fn give(desk: &Desk, n: usize, part: Part, append: bool, last: bool) {
    let artifact_id = format!("artifact-{}", n + 1);
    desk.say(Said::Artifact(Piece { artifact_id, parts: vec![part], append, last, ..Piece::default() })).await;
}
