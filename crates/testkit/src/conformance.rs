//! A server with a scripted agent, for the public A2A test kits and our own tests. The agent is a [`Runner`] in this
//! process. All other parts are the product, over a real socket.

mod script;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use assistant::ModelChain;
use assistant::offline::OfflineModel;
use futures::future::BoxFuture;
use model::Clock;
use model::agent::{Agent, AgentDraft};
use model::execution::ExecutionOutcome;
use model::output::{ArtifactChunk, ContentPart, RichOutput};
use server::settings::A2aSettings;
use server::{App, ServerSettings};
use store::{Durability, Location, Store};
use supervisor::{AgentRun, RunFailure, RunRecorder, RunResult, Runner, Supervisor, SupervisorOptions};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use script::ScriptStep;

/// The id of the scripted agent.
pub const AGENT_ID: &str = "conformance";

/// A running server. It stops when dropped.
pub struct ConformanceServer {
    pub url: String,
    app: App,
    serving: JoinHandle<()>,
    _dir: Option<TempDir>,
}

/// The listen address, storage and settings of a server.
pub struct ConformanceOptions {
    pub listen: String,
    /// `None` uses a temporary directory.
    pub data_dir: Option<PathBuf>,
    /// `None` uses SQLite in the data directory.
    pub database_url: Option<String>,
    pub settings: ServerSettings,
    /// Additional scripted agents with other ids and policies.
    pub extra_agents: Vec<Agent>,
}

impl Default for ConformanceOptions {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:0".to_owned(),
            data_dir: None,
            database_url: None,
            settings: settings(),
            extra_agents: Vec::new(),
        }
    }
}

/// Returns settings in which the scripted agent is the default agent and may call webhooks on this machine.
pub fn settings() -> ServerSettings {
    let a2a =
        A2aSettings { default_agent: AGENT_ID.to_owned(), allow_private_webhooks: true, ..A2aSettings::default() };
    ServerSettings { a2a, ..ServerSettings::default() }
}

impl ConformanceServer {
    /// Starts a server.
    pub async fn start(options: ConformanceOptions) -> Self {
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
            Some(url) => Location::postgres(url),
            None => Location::Sqlite(path.join("adjutant.db")),
        };
        let store = Store::open(&location, Durability::Full).await.unwrap();
        let agents = [ScriptedRunner::agent()].into_iter().chain(options.extra_agents);
        let built_in = agents.map(|agent| (agent, Arc::new(ScriptedRunner) as Arc<dyn Runner>)).collect();
        let supervisor_options = SupervisorOptions::new(store, Clock::system(), &path);
        let supervisor_options = SupervisorOptions { built_in, ..supervisor_options };
        let offline: Arc<dyn assistant::ChatModel> = Arc::new(OfflineModel);
        let app = App::new(Supervisor::new(supervisor_options), options.settings, ModelChain::from(offline));
        let listener = TcpListener::bind(&options.listen).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        app.supervisor().start().await.unwrap();
        let serving = tokio::spawn({
            let app = app.clone();
            async move {
                let notifying = app.notifier().run(app.stopping());
                tokio::join!(server::serve::serve(app.clone(), listener), notifying);
            }
        });
        Self { url, app, serving, _dir: dir }
    }

    /// Shuts the server down.
    pub async fn stop(mut self) {
        self.app.stopping().cancel();
        (&mut self.serving).await.unwrap();
        self.app.supervisor().stop().await;
    }
}

impl Drop for ConformanceServer {
    fn drop(&mut self) {
        self.app.stopping().cancel();
        self.serving.abort();
    }
}

/// Returns the path of the program `conformance`, which runs such a server. Builds it if necessary.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| crate::agent::build_if_stale("conformance", "src/bin/conformance.rs"))
}

/// Runs the script that the prefix of the message id selects.
pub struct ScriptedRunner;

impl ScriptedRunner {
    /// Returns the definition of the scripted agent.
    pub fn agent() -> Agent {
        let draft = AgentDraft {
            id: Some(AGENT_ID.to_owned()),
            name: Some("Conformance".to_owned()),
            description: Some("runs the script that the message id selects, for test kits".to_owned()),
            max_concurrent_executions: Some(1000),
            queue_depth: Some(10_000),
            allow: Some(vec!["*".to_owned()]),
            ..AgentDraft::default()
        };
        draft.into_built_in()
    }
}

impl Runner for ScriptedRunner {
    fn answers_by_message(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, run: &'a AgentRun, recorder: &'a RunRecorder) -> BoxFuture<'a, RunResult> {
        Box::pin(async move {
            recorder.record_start(None);
            let id = run.request.message.as_ref().and_then(|message| message["messageId"].as_str()).unwrap_or_default();
            tokio::select! {
                result = run_script(script::select_script(id, &run.request.input), run, recorder) => result,
                _ = recorder.stop_requested() => RunResult { stopped: true, ..RunResult::default() },
            }
        })
    }
}

async fn run_script(script: script::Script, run: &AgentRun, recorder: &RunRecorder) -> RunResult {
    let mut result = RunResult::default();
    for (n, step) in script.into_iter().enumerate() {
        match step {
            ScriptStep::Status(text) => {
                recorder.rich_output(RichOutput::Status(vec![ContentPart::text(text)])).await;
            }
            ScriptStep::Artifact(part) => send_artifact(recorder, n, part, false, true).await,
            ScriptStep::EchoArtifact => {
                send_artifact(recorder, n, ContentPart::text(&run.request.input), false, true).await;
            }
            ScriptStep::EchoMessage => {
                recorder.rich_output(RichOutput::Message(vec![ContentPart::text(&run.request.input)])).await;
                result.outcome = Some(ExecutionOutcome::Message);
            }
            ScriptStep::NumberedChunks(count) => {
                for chunk in 1..=count {
                    let part = ContentPart::text(format!("{chunk}\n"));
                    send_artifact(recorder, n, part, chunk > 1, chunk == count).await;
                }
            }
            ScriptStep::ArtifactChunks(chunks) => {
                for (chunk, text) in chunks.iter().enumerate() {
                    send_artifact(recorder, n, ContentPart::text(*text), chunk > 0, chunk + 1 == chunks.len()).await;
                }
            }
            ScriptStep::Message(text) => {
                recorder.rich_output(RichOutput::Message(vec![ContentPart::text(text)])).await;
                result.outcome = Some(ExecutionOutcome::Message);
            }
            ScriptStep::Wait(time) => tokio::time::sleep(time).await,
            ScriptStep::WaitForever => std::future::pending().await,
            ScriptStep::RequireInput => result.outcome = Some(ExecutionOutcome::InputRequired),
            ScriptStep::RequireAuth => result.outcome = Some(ExecutionOutcome::AuthRequired),
            ScriptStep::Reject => {
                result.failure = Some(RunFailure::permanent("rejected"));
                result.outcome = Some(ExecutionOutcome::Rejected);
            }
            ScriptStep::Fail(reason) => result.failure = Some(RunFailure::permanent(reason)),
        }
    }
    result
}

/// Sends a chunk of the artifact of step `n`.
async fn send_artifact(recorder: &RunRecorder, n: usize, part: ContentPart, append: bool, last: bool) {
    let artifact_id = format!("artifact-{}", n + 1);
    let chunk = ArtifactChunk { artifact_id, parts: vec![part], append, last, ..ArtifactChunk::default() };
    recorder.rich_output(RichOutput::Artifact(chunk)).await;
}
