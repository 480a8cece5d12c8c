//! A server that is killed at a certain point of telling what came of a run, or serves until its input ends; only tests
//! start it.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a double of a server")]

use std::io::Read;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use assistant::Models;
use assistant::offline::Offline;
use futures::future::BoxFuture;
use model::Clock;
use model::agent::Draft;
use server::results::{self, Point, Witness};
use server::{App, Settings};
use store::{Durability, Location, Store};
use supervisor::{Desk, Ended, Run, Runner, Stream, Supervisor};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [location, dir, point] = &arguments[..] else { panic!("what does {arguments:?} mean?") };
    let point = point.to_owned();
    let witness: Witness = Arc::new(move |at: Point| {
        if format!("{at:?}") == point {
            die();
        }
    });
    let location = match location.strip_prefix("sqlite:") {
        Some(path) => Location::Sqlite(path.into()),
        None => Location::Postgres(location.to_owned()),
    };
    let store = Store::open(&location, Durability::Full).await.unwrap();
    let draft = Draft { id: Some("tidy".into()), name: Some("Tidy".into()), ..Draft::default() };
    let supervisor = Supervisor::new(supervisor::Options {
        built_in: vec![(draft.built_in(), Arc::new(Tidy))],
        ..supervisor::Options::new(store, Clock::system(), dir)
    });
    supervisor.work().await.unwrap();
    let app = App::new(supervisor, Settings::default(), Models::new(Arc::new(Offline), []));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(results::run_before(app.clone(), witness));
    tokio::spawn(async move { axum::serve(listener, server::router(app)).await });
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()).unwrap()).await.unwrap();
}

/// Without a warning, and without coming back.
fn die() {
    Command::new("kill").args(["-9", &std::process::id().to_string()]).status().unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

struct Tidy;

impl Runner for Tidy {
    fn run<'a>(&'a self, _: &'a Run, desk: &'a Desk) -> BoxFuture<'a, Ended> {
        Box::pin(async move {
            desk.started(None);
            desk.output(Stream::Stdout, b"All sorted.\n").await;
            Ended::default()
        })
    }
}
