//! A test process that runs a node with its guardian. Tests kill or freeze it.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program for tests only")]

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use store::{Durability, Location, Store};
use supervisor::guardian::{self, ChildEvent, Guardian, GuardianOptions, Launch, Stdio};
use supervisor::{Supervisor, VariableLookup};
use uuid::Uuid;

fn main() -> ExitCode {
    if let Some(code) = guardian::intercept() {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["node", agent, file, lease] => node(agent, file, lease.parse().unwrap()),
        ["work", dir] => work(Path::new(dir)),
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

/// Starts an agent and prints its exit to standard output.
#[tokio::main(flavor = "current_thread")]
async fn node(agent: &str, file: &str, lease: u64) {
    let guardian = Guardian::start(GuardianOptions::default()).await.unwrap();
    if lease > 0 {
        guardian.renew(Duration::from_millis(lease)).await;
        let renewed = guardian.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(lease / 4)).await;
                renewed.renew(Duration::from_millis(lease)).await;
            }
        });
    }
    let mut launch = Launch::new(Uuid::from_u128(7), agent, "/");
    launch.args = vec!["runaway".into(), file.into()];
    let mut child = guardian.spawn(launch, Stdio::null().unwrap()).await.unwrap();
    println!("{} {}", guardian.pid().await.unwrap(), child.pid);
    while let Some(event) = child.next().await {
        if let ChildEvent::Exited(exit) = event {
            println!("{:?}", exit.reason);
        }
    }
    // A node that was frozen continues.
    let launch = Launch::new(Uuid::from_u128(8), "/bin/true", "/");
    let again = loop {
        match guardian.spawn(launch.clone(), Stdio::null().unwrap()).await {
            Ok(mut child) => break child.wait().await.reason,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    println!("{again:?}");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// Runs a node with this data directory until its input ends.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn work(dir: &Path) {
    let store = Store::open(&Location::Sqlite(dir.join("db.sqlite")), Durability::Normal).await.unwrap();
    let variables: VariableLookup = Arc::new(|name: &str| (name == "PATH").then(|| "/usr/bin:/bin".to_owned()));
    let drafts: Vec<model::agent::AgentDraft> =
        serde_json::from_slice(&fs::read(dir.join("agents.json")).unwrap()).unwrap();
    let agents =
        drafts.into_iter().map(|draft| supervisor::check::validate_agent(draft, &|name: &str| variables(name)));
    let supervisor = Supervisor::new(supervisor::SupervisorOptions {
        agents: agents.map(Result::unwrap).collect(),
        variables,
        ..supervisor::SupervisorOptions::new(store, model::Clock::system(), dir)
    });
    supervisor.start().await.unwrap();
    println!("ready");
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()).unwrap()).await.unwrap();
    supervisor.stop().await;
}
