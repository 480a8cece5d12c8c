//! Measures the cost of durable executions. Runs `/bin/true` from the queue to the end, two at a time. Compares that with
//! `posix_spawn`, and with task-spooler (not durable) and pueue if they are installed. Also measures the memory of 1000
//! queued executions and the throughput of output. Prints ratios and checks no limits.
//!
//! Run it with `cargo bench -p supervisor --bench executions`. `BENCH_DIR` selects the disk.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark that cannot run has failed; it prints")]

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use model::{Clock, User};
use serde_json::json;
use store::executions::OwnerScope;
use store::{Durability, Location, Store};
use supervisor::{FollowEvent, RunDraft, RunOrigin, Supervisor, SupervisorOptions, guardian};
use uuid::Uuid;

const RUNS: usize = 1000;
const CONCURRENCY: usize = 2;
/// The number of runs for slow programs.
const SLOW_RUNS: usize = 200;
const MEGABYTES: usize = 100;

fn main() -> ExitCode {
    if let Some(code) = guardian::intercept() {
        return code;
    }
    if std::env::args().nth(1).as_deref() == Some("flood") {
        flood();
        return ExitCode::SUCCESS;
    }
    let start = Instant::now();
    run_concurrently(RUNS, || Command::new("/bin/true").env_clear().status().is_ok());
    let raw = RUNS as f64 / start.elapsed().as_secs_f64();
    println!("{raw:>7.0} /s by posix_spawn, {CONCURRENCY} at a time");
    for (name, rate) in [("task-spooler", task_spooler()), ("pueue", pueue())] {
        match rate {
            Some(rate) => println!("{rate:>7.0} /s by {name}: {:.2} of that", rate / raw),
            None => println!("        {name} is not installed"),
        }
    }
    tokio::runtime::Runtime::new().unwrap().block_on(measure(raw));
    ExitCode::SUCCESS
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(std::env::var("BENCH_DIR").unwrap_or_else(|_| ".".to_owned())).unwrap()
}

/// Returns the runs per second of task-spooler, with one command for each run.
fn task_spooler() -> Option<f64> {
    let folder = folder();
    let tsp = |args: &[&str]| {
        let mut command = Command::new("tsp");
        command.args(args).env("TS_SOCKET", folder.path().join("socket")).env("TMPDIR", folder.path());
        command.stdout(Stdio::null()).status().ok()
    };
    let slots = CONCURRENCY.to_string();
    tsp(&["-S", &slots])?;
    let start = Instant::now();
    run_concurrently(RUNS, || tsp(&["-n", "/bin/true"]).is_some());
    tsp(&["-w"])?;
    let rate = RUNS as f64 / start.elapsed().as_secs_f64();
    tsp(&["-K"])?;
    Some(rate)
}

/// Returns the runs per second of pueue, with one command for each run.
fn pueue() -> Option<f64> {
    let folder = folder();
    let config = folder.path().join("pueue.yml");
    let path = folder.path().display();
    let text = format!(
        "shared:\n  pueue_directory: {path}\n  runtime_directory: {path}\n  use_unix_socket: true\ndaemon: {{}}\nclient: {{}}\n"
    );
    std::fs::write(&config, text).unwrap();
    let command = |program: &str| {
        let mut command = Command::new(program);
        command.arg("--config").arg(&config).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let mut daemon = command("pueued").spawn().ok()?;
    let pueue = |args: &[&str]| command("pueue").args(args).status().is_ok_and(|status| status.success());
    let slots = CONCURRENCY.to_string();
    let ready = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        pueue(&["parallel", &slots])
    });
    let start = Instant::now();
    run_concurrently(SLOW_RUNS, || pueue(&["add", "--", "/bin/true"]));
    let done = ready && pueue(&["wait"]);
    let rate = SLOW_RUNS as f64 / start.elapsed().as_secs_f64();
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    done.then_some(rate)
}

/// Calls a function `count` times on `CONCURRENCY` threads.
fn run_concurrently(count: usize, works: impl Fn() -> bool + Sync) {
    std::thread::scope(|scope| {
        for _ in 0..CONCURRENCY {
            scope.spawn(|| assert!((0..count / CONCURRENCY).all(|_| works())));
        }
    });
}

async fn measure(raw: f64) {
    let folder = folder();
    let supervisor = supervisor(folder.path()).await;
    let user = User::local(jiff::tz::TimeZone::UTC);
    run(&supervisor, &user, "true").await;

    let start = Instant::now();
    let clients = (0..CONCURRENCY).map(|_| {
        let supervisor = supervisor.clone();
        let user = user.clone();
        tokio::spawn(async move {
            for _ in 0..RUNS / CONCURRENCY {
                run(&supervisor, &user, "true").await;
            }
        })
    });
    futures::future::join_all(clients).await;
    report("durable, one after the other", raw, start);

    let start = Instant::now();
    let mut ids = Vec::new();
    for _ in 0..RUNS {
        ids.push(submit(&supervisor, &user, "true").await);
    }
    for id in ids {
        supervisor.wait(OwnerScope::AllUsers, id).await.unwrap();
    }
    report("durable, all enqueued first", raw, start);

    // Without a sandbox: two read-write agents that run one execution at a time.
    let start = Instant::now();
    let mut ids = Vec::new();
    for at in 0..RUNS {
        ids.push(submit(&supervisor, &user, if at % 2 == 0 { "alone-1" } else { "alone-2" }).await);
    }
    for id in ids {
        supervisor.wait(OwnerScope::AllUsers, id).await.unwrap();
    }
    report("durable, all enqueued first, read-write", raw, start);

    let before = resident();
    let mut ids = Vec::new();
    for _ in 0..RUNS {
        ids.push(submit(&supervisor, &user, "queued").await);
    }
    println!("{:>7} kB for {RUNS} queued executions", resident().saturating_sub(before));
    for id in ids {
        let store = supervisor.store();
        let now = supervisor.clock().now();
        store
            .transaction(async move |tx| store::executions::cancel(tx, OwnerScope::AllUsers, id, now).await)
            .await
            .unwrap();
    }

    let start = Instant::now();
    let mut child = Command::new(std::env::current_exe().unwrap()).arg("flood").stdout(Stdio::piped()).spawn().unwrap();
    let mut chunk = vec![0; 1 << 16];
    let mut pipe = child.stdout.take().unwrap();
    while pipe.read(&mut chunk).unwrap() > 0 {}
    child.wait().unwrap();
    let plain = MEGABYTES as f64 / start.elapsed().as_secs_f64();
    let before = memory();
    let start = Instant::now();
    let id = submit(&supervisor, &user, "flood").await;
    let mut follower = supervisor.follow(OwnerScope::AllUsers, id, 0);
    let mut followed = 0;
    while let Some(event) = follower.next().await.unwrap() {
        if let FollowEvent::Event(event) = event {
            followed += event.text.len();
        }
    }
    let rate = MEGABYTES as f64 / start.elapsed().as_secs_f64();
    println!("{plain:>7.0} MB/s read from a pipe and discarded");
    println!(
        "{rate:>7.0} MB/s redacted, stored and followed: {:.2} of that; {} MB followed",
        rate / plain,
        followed >> 20
    );
    println!("VmHWM {} MB, {} MB before", memory() >> 10, before >> 10);
    supervisor.stop().await;
}

fn report(name: &str, raw: f64, start: Instant) {
    let rate = RUNS as f64 / start.elapsed().as_secs_f64();
    println!("{rate:>7.0} /s {name}: {:.2} of that", rate / raw);
}

async fn supervisor(folder: &Path) -> Supervisor {
    let drafts: Vec<model::agent::AgentDraft> = serde_json::from_value(json!([
        {"id": "true", "executable_path": "/bin/true", "access_type": "read-only",
            "max_concurrent_executions": CONCURRENCY, "queue_depth": 10_000},
        {"id": "alone-1", "executable_path": "/bin/true", "access_type": "read-write", "queue_depth": 10_000},
        {"id": "alone-2", "executable_path": "/bin/true", "access_type": "read-write", "queue_depth": 10_000},
        {"id": "queued", "executable_path": "/bin/sleep", "args": ["600"], "access_type": "read-write",
            "input_pattern": "stdin", "queue_depth": 10_000},
        {"id": "flood", "executable_path": std::env::current_exe().unwrap(), "args": ["flood"]},
    ]))
    .unwrap();
    let folder = folder.canonicalize().unwrap();
    let store = Store::open(&Location::Sqlite(folder.join("db.sqlite")), Durability::Full).await.unwrap();
    let agents = drafts.into_iter().map(|draft| draft.check().unwrap()).collect();
    let supervisor =
        Supervisor::new(SupervisorOptions { agents, ..SupervisorOptions::new(store, Clock::system(), folder) });
    supervisor.start().await.unwrap();
    supervisor
}

async fn submit(supervisor: &Supervisor, user: &User, agent: &str) -> Uuid {
    let submission = supervisor.prepare(user, agent, RunDraft::default(), RunOrigin::default()).unwrap();
    let queue = supervisor.clone();
    supervisor.store().transaction(async move |tx| queue.enqueue(tx, submission).await).await.unwrap()
}

async fn run(supervisor: &Supervisor, user: &User, agent: &str) {
    let id = submit(supervisor, user, agent).await;
    let ended = supervisor.wait(OwnerScope::AllUsers, id).await.unwrap();
    assert_eq!(ended.ended().unwrap().exit.exit_code, Some(0), "{ended:?}");
}

fn memory() -> u64 {
    kilobytes("VmHWM:")
}

fn resident() -> u64 {
    kilobytes("VmRSS:")
}

fn kilobytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

fn flood() {
    let line = "2026-11-16T09:33:19Z INFO builder: compiled crate number 17 of 342 in 0.42 s, nothing to report\n";
    let chunk = line.repeat((1 << 16) / line.len());
    let mut out = std::io::stdout().lock();
    for _ in 0..(MEGABYTES << 20) / chunk.len() {
        out.write_all(chunk.as_bytes()).unwrap();
    }
}
