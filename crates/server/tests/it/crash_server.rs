//! A server that kills itself at a crash point of the follow-up, or serves until its standard input ends. Only tests start
//! it.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test server fails by panicking")]

use std::io::Read;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use assistant::ModelChain;
use assistant::offline::OfflineModel;
use futures::future::BoxFuture;
use model::Clock;
use model::agent::AgentDraft;
use server::follow_up::{self, FollowUpCrashHook, FollowUpCrashPoint};
use server::{App, ServerSettings};
use store::{Durability, Location, Store};
use supervisor::{AgentRun, RunRecorder, RunResult, Runner, StreamName, Supervisor, SupervisorOptions};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [location, dir, point] = &arguments[..] else {
        panic!("expected location, directory and crash point, got {arguments:?}")
    };
    let point = point.to_owned();
    let crash_hook: FollowUpCrashHook = Arc::new(move |at: FollowUpCrashPoint| {
        if format!("{at:?}") == point {
            kill_self();
        }
    });
    let location = match location.strip_prefix("sqlite:") {
        Some(path) => Location::Sqlite(path.into()),
        None => Location::postgres(location.to_owned()),
    };
    let store = Store::open(&location, Durability::Full).await.unwrap();
    let draft = AgentDraft { id: Some("tidy".into()), name: Some("Tidy".into()), ..AgentDraft::default() };
    let supervisor = Supervisor::new(SupervisorOptions {
        built_in: vec![(draft.into_built_in(), Arc::new(TidyRunner))],
        ..SupervisorOptions::new(store, Clock::system(), dir)
    });
    supervisor.start().await.unwrap();
    let app = App::new(supervisor, ServerSettings::default(), ModelChain::new(Arc::new(OfflineModel), []));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(follow_up::run_with_crash_hook(app.clone(), crash_hook));
    tokio::spawn(async move { axum::serve(listener, server::router(app)).await });
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()).unwrap()).await.unwrap();
}

/// Kills the process with SIGKILL. Never returns.
fn kill_self() {
    Command::new("kill").args(["-9", &std::process::id().to_string()]).status().unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

struct TidyRunner;

impl Runner for TidyRunner {
    fn run<'a>(&'a self, _: &'a AgentRun, recorder: &'a RunRecorder) -> BoxFuture<'a, RunResult> {
        Box::pin(async move {
            recorder.record_start(None);
            recorder.output(StreamName::Stdout, b"All sorted.\n").await;
            RunResult::default()
        })
    }
}
