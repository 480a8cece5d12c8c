//! A node that is killed at a certain point, or one that works until its input ends; only tests start it.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a double of a node")]

use std::io::Read;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use model::Clock;
use model::agent::{AccessType, Agent};
use scheduler::{Options, Point, Scheduler, Silent, Witness};
use store::{Durability, Location, Store};
use supervisor::{Admission, Desk, Ended, Run, Runner, Supervisor};
use tokio_util::sync::CancellationToken;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        // Acts upon what is due, and does not survive that point.
        ["fire", location, dir, now, point] => {
            let point = point.to_owned();
            let witness: Witness = Arc::new(move |at: Point| {
                if format!("{at:?}") == point {
                    die();
                }
            });
            let (_, scheduler) = node(location, dir, Clock::manual(now.parse().unwrap()), Some(witness)).await;
            scheduler.fire_due().await.unwrap();
        }
        ["node", location, dir] => {
            let (supervisor, scheduler) = node(location, dir, Clock::system(), None).await;
            supervisor.work().await.unwrap();
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
        _ => panic!("what does {arguments:?} mean?"),
    }
}

/// Without a warning, and without coming back.
fn die() {
    Command::new("kill").args(["-9", &std::process::id().to_string()]).status().unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

async fn node(location: &str, dir: &str, clock: Clock, witness: Option<Witness>) -> (Supervisor, Scheduler) {
    let location = match location.strip_prefix("sqlite:") {
        Some(path) => Location::Sqlite(path.into()),
        None => Location::Postgres(location.to_owned()),
    };
    let store = Store::open(&location, Durability::Full).await.unwrap();
    let runner: Arc<dyn Runner> = Arc::new(Quick);
    let supervisor = Supervisor::new(supervisor::Options {
        store,
        clock,
        data_dir: dir.into(),
        variables: Arc::new(|_| None),
        admission: Admission::default(),
        agents: Vec::new(),
        built_in: vec![(agent(), runner)],
        guardian: supervisor::guardian::Options::default(),
    });
    let scheduler = Scheduler::new(Options { supervisor: supervisor.clone(), notices: Arc::new(Silent), witness });
    (supervisor, scheduler)
}

fn agent() -> Agent {
    let draft = model::agent::Draft {
        id: Some("many".into()),
        executable_path: Some("/bin/cat".into()),
        access_type: Some(AccessType::ReadOnly),
        max_concurrent_executions: Some(1000),
        queue_depth: Some(100_000),
        ..model::agent::Draft::default()
    };
    draft.check().unwrap()
}

struct Quick;

impl Runner for Quick {
    fn run<'a>(&'a self, _: &'a Run, desk: &'a Desk) -> BoxFuture<'a, Ended> {
        Box::pin(async move {
            desk.started(None);
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ended::default()
        })
    }
}
