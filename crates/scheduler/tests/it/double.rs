//! A node that kills itself at a crash point, or that runs until its standard input ends. Only tests start it.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test double of a node")]

use std::io::Read;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use model::Clock;
use model::agent::{AccessType, Agent};
use scheduler::{CrashHook, CrashPoint, DiscardNotices, Scheduler, SchedulerOptions};
use store::{Durability, Location, Store};
use supervisor::{Admission, AgentRun, RunRecorder, RunResult, Runner, Supervisor};
use tokio_util::sync::CancellationToken;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        // Fires the due schedules and kills itself at the crash point.
        ["fire", location, dir, now, point] => {
            let point = point.to_owned();
            let crash_hook: CrashHook = Arc::new(move |at: CrashPoint| {
                if format!("{at:?}") == point {
                    kill_self();
                }
            });
            let (_, scheduler) = node(location, dir, Clock::manual(now.parse().unwrap()), Some(crash_hook)).await;
            scheduler.fire_due().await.unwrap();
        }
        ["node", location, dir] => {
            let (supervisor, scheduler) = node(location, dir, Clock::system(), None).await;
            supervisor.start().await.unwrap();
            let shutdown = CancellationToken::new();
            let worker = scheduler.clone();
            let stop = shutdown.clone();
            let work = tokio::spawn(async move { worker.run(stop).await });
            println!("ready");
            tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()).unwrap()).await.unwrap();
            shutdown.cancel();
            work.await.unwrap();
            supervisor.stop().await;
        }
        _ => panic!("unknown arguments: {arguments:?}"),
    }
}

/// Ends the process with SIGKILL. Does not return.
fn kill_self() {
    Command::new("kill").args(["-9", &std::process::id().to_string()]).status().unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

async fn node(location: &str, dir: &str, clock: Clock, crash_hook: Option<CrashHook>) -> (Supervisor, Scheduler) {
    let location = match location.strip_prefix("sqlite:") {
        Some(path) => Location::Sqlite(path.into()),
        None => Location::postgres(location.to_owned()),
    };
    let store = Store::open(&location, Durability::Full).await.unwrap();
    let runner: Arc<dyn Runner> = Arc::new(QuickRunner);
    let supervisor = Supervisor::new(supervisor::SupervisorOptions {
        store,
        clock,
        data_dir: dir.into(),
        variables: Arc::new(|_| None),
        admission: Admission::default(),
        agents: Vec::new(),
        built_in: vec![(agent(), runner)],
        guardian: supervisor::guardian::GuardianOptions::default(),
    });
    let scheduler = Scheduler::new(SchedulerOptions {
        supervisor: supervisor.clone(),
        notices: Arc::new(DiscardNotices),
        crash_hook,
    });
    (supervisor, scheduler)
}

fn agent() -> Agent {
    let draft = model::agent::AgentDraft {
        id: Some("many".into()),
        executable_path: Some("/bin/cat".into()),
        access_type: Some(AccessType::ReadOnly),
        max_concurrent_executions: Some(1000),
        queue_depth: Some(100_000),
        ..model::agent::AgentDraft::default()
    };
    draft.check().unwrap()
}

/// Ends each run after 20 ms.
struct QuickRunner;

impl Runner for QuickRunner {
    fn run<'a>(&'a self, _: &'a AgentRun, recorder: &'a RunRecorder) -> BoxFuture<'a, RunResult> {
        Box::pin(async move {
            recorder.record_start(None);
            tokio::time::sleep(Duration::from_millis(20)).await;
            RunResult::default()
        })
    }
}
