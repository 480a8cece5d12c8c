//! Measures conversations over `/chat/stream`. Each conversation is one message that adds one task, durable before `done`.
//! First a thousand concurrent conversations. Then 64 connections, compared with writing the same rows directly. Then the
//! latency of the first event on an idle server. Then the memory of streams that wait for a slow model. Prints results only.
//!
//! `cargo bench -p adjutant --bench chat [-- --database-url postgres://…]`

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark that cannot run has failed; it prints")]

mod load;

use std::io::BufRead;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use assistant::{ChatModel, ModelChain, ModelError, Prompt, ReplyDelta};
use futures::StreamExt;
use futures::stream::BoxStream;
use model::conversation::{ConversationId, Message, MessageRole};
use model::task::{TaskDraft, TaskLimits};
use model::{Clock, User, UserId};
use store::{Durability, Location, Store};
use testkit::app::Home;
use tokio::io::AsyncReadExt;

use load::{Server, chat, connect, quantile, send};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CONNECTIONS: usize = 64;
const CONCURRENT: usize = 1000;
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(2);
const HOLD_FLAG: &str = "--hold";

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |name: &str| arguments.iter().skip_while(|argument| *argument != name).nth(1).cloned();
    if let Some(address) = after(HOLD_FLAG) {
        return hold(&address).await;
    }
    let home = Home::new(env!("CARGO_BIN_EXE_adjutant")).with_env("ADJUTANT_LOG__LEVEL", "info");
    let postgres = after("--database-url");
    let home = match &postgres {
        Some(url) => home.with_env("ADJUTANT_DATABASE__URL", url),
        None => home,
    };
    let server = Server::start(&home);
    let address = server.address.clone();
    all_at_once(&address, server.child.id()).await;
    let dir = tempfile::tempdir().unwrap();
    let location = match postgres {
        Some(url) => Location::postgres(url),
        None => Location::Sqlite(dir.path().join("raw.db")),
    };
    let raw = Store::open(&location, Durability::Full).await.unwrap();
    sustained(&address, server.child.id(), &raw).await;
    first_event(&address).await;
    drop(server);
    idle_memory().await;
}

/// Starts a thousand conversations at the same time.
async fn all_at_once(address: &str, pid: u32) {
    let mut connections = Vec::with_capacity(CONCURRENT);
    for _ in 0..CONCURRENT {
        connections.push(connect(address).await);
    }
    let cpu = cpu_seconds(pid);
    let began = Instant::now();
    let chats: Vec<_> = connections
        .into_iter()
        .enumerate()
        .map(|(n, mut connection)| {
            tokio::spawn(async move {
                let began = Instant::now();
                chat(&mut connection, &format!("add errand {n}")).await;
                began.elapsed()
            })
        })
        .collect();
    let mut times = Vec::with_capacity(CONCURRENT);
    for chat in chats {
        times.push(chat.await.unwrap());
    }
    let took = began.elapsed();
    let cpu = (cpu_seconds(pid) - cpu) / CONCURRENT as f64;
    println!(
        "{CONCURRENT} at once: all ended in done after {} ms, p50 {} ms, p99 {} ms, {:.0} µs of CPU a chat",
        took.as_millis(),
        quantile(&mut times, 0.5).as_millis(),
        quantile(&mut times, 0.99).as_millis(),
        cpu * 1e6
    );
}

/// Measures chats per second over 64 connections, compared with writing the same rows directly to the store.
async fn sustained(address: &str, pid: u32, raw: &Store) {
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    let mut times = Vec::new();
    let mut cpus = Vec::new();
    for _ in 0..ROUNDS {
        let cpu = cpu_seconds(pid);
        let (rate, mut taken) = over_http(address).await;
        cpus.push((cpu_seconds(pid) - cpu) / taken.len() as f64 * 1e6);
        ours.push(rate);
        times.append(&mut taken);
        theirs.push(directly(raw).await);
    }
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let ours = median(&mut ours);
    let theirs = median(&mut theirs);
    let cpu = median(&mut cpus);
    let p50 = quantile(&mut times, 0.5);
    let p99 = quantile(&mut times, 0.99);
    println!(
        "chats: http {ours:.0}/s / raw store {theirs:.0}/s = {:.2}; p50 {:.1} ms, p99 {:.1} ms, {cpu:.0} µs of CPU a chat",
        ours / theirs,
        p50.as_secs_f64() * 1e3,
        p99.as_secs_f64() * 1e3
    );
}

async fn over_http(address: &str) -> (f64, Vec<Duration>) {
    let stop = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::with_capacity(CONNECTIONS);
    let began = Instant::now();
    for _ in 0..CONNECTIONS {
        let stop = stop.clone();
        let mut connection = connect(address).await;
        tasks.push(tokio::spawn(async move {
            let mut times = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let began = Instant::now();
                chat(&mut connection, "add buy milk").await;
                times.push(began.elapsed());
            }
            times
        }));
    }
    tokio::time::sleep(ROUND).await;
    stop.store(true, Ordering::Relaxed);
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await.unwrap());
    }
    (times.len() as f64 / began.elapsed().as_secs_f64(), times)
}

/// Writes the same rows: a task, its undo step, a conversation and two messages. Returns the rate per second.
async fn directly(store: &Store) -> f64 {
    let stop = Arc::new(AtomicBool::new(false));
    let began = Instant::now();
    let tasks: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let store = store.clone();
            let stop = stop.clone();
            tokio::spawn(async move {
                let mut count = 0_usize;
                while !stop.load(Ordering::Relaxed) {
                    write(&store).await;
                    count += 1;
                }
                count
            })
        })
        .collect();
    tokio::time::sleep(ROUND).await;
    stop.store(true, Ordering::Relaxed);
    let mut count = 0;
    for task in tasks {
        count += task.await.unwrap();
    }
    count as f64 / began.elapsed().as_secs_f64()
}

async fn write(store: &Store) {
    let clock = Clock::system();
    let draft = TaskDraft { title: "buy milk".into(), ..TaskDraft::default() };
    let task = draft.check(TaskLimits::default(), &clock, &User::local(jiff::tz::TimeZone::UTC)).unwrap();
    let message = |role, content: &str| Message {
        id: clock.id(),
        role,
        content: content.into(),
        timestamp: clock.now(),
        tool_calls: Vec::new(),
        pending: None,
    };
    let answer = "Got it! Added 'buy milk' to your list. Anything else?";
    let exchange = [message(MessageRole::User, "add buy milk"), message(MessageRole::Assistant, answer)];
    let id: ConversationId = clock.id().into();
    let now = clock.now();
    let job = store.owner_transaction(UserId::LOCAL, async move |tx| {
        let mut step = store::undo::UndoStep::begin(tx, UserId::LOCAL).await?;
        store::tasks::create(tx, &mut step, &task).await?;
        store::conversations::append(tx, UserId::LOCAL, &id, &exchange, now).await.map(drop)
    });
    job.await.unwrap();
}

/// Measures the latency of the first event with one client.
async fn first_event(address: &str) {
    let mut connection = connect(address).await;
    let mut times = Vec::new();
    for _ in 0..300 {
        let began = Instant::now();
        send(&mut connection, "add buy milk").await;
        let mut buffer = [0; 4096];
        let read = connection.read(&mut buffer).await.unwrap();
        assert!(String::from_utf8_lossy(&buffer[..read]).contains("event: thinking"));
        times.push(began.elapsed());
    }
    println!("first event when idle: p50 {:.2} ms", quantile(&mut times, 0.5).as_secs_f64() * 1e3);
}

/// A model that never replies.
struct Slow;

impl ChatModel for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn reply<'a>(&'a self, _: Prompt<'a>) -> BoxStream<'a, Result<ReplyDelta, ModelError>> {
        futures::stream::pending().boxed()
    }
}

/// Measures the memory of open streams that wait for their model. The clients run in another process.
async fn idle_memory() {
    let dir = tempfile::tempdir().unwrap();
    let location = Location::Sqlite(dir.path().join("idle.db"));
    let store = Store::open(&location, Durability::Full).await.unwrap();
    let settings =
        server::ServerSettings { request_timeout: Duration::from_secs(600), ..server::ServerSettings::default() };
    let supervisor =
        supervisor::Supervisor::new(supervisor::SupervisorOptions::new(store, Clock::system(), dir.path()));
    let app = server::App::new(supervisor, settings, ModelChain::new(Arc::new(Slow), []));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(server::serve::serve(app, listener));
    let hold_streams = |count: usize| {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([HOLD_FLAG, &address])
            .env("STREAMS", count.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        child
    };
    // The first streams allocate shared memory.
    let mut few = tokio::task::block_in_place(|| hold_streams(50));
    let before = memory();
    let mut many = tokio::task::block_in_place(|| hold_streams(CONCURRENT));
    let each = (memory() - before) / CONCURRENT as f64;
    println!("{CONCURRENT} open streams that wait: {:.1} kB of memory each", each / 1e3);
    let _ = (few.kill(), many.kill());
    let _ = (few.wait(), many.wait());
}

/// Opens streams, reads their first events, prints `ready`, and keeps them open until it is killed.
async fn hold(address: &str) {
    let count: usize = std::env::var("STREAMS").unwrap().parse().unwrap();
    let mut connections = Vec::with_capacity(count);
    for _ in 0..count {
        let mut connection = connect(address).await;
        send(&mut connection, "add buy milk").await;
        let mut buffer = [0; 2048];
        let mut read = 0;
        while !String::from_utf8_lossy(&buffer[..read]).contains("event: thinking") {
            read += connection.read(&mut buffer[read..]).await.unwrap();
        }
        connections.push(connection);
    }
    println!("ready");
    std::future::pending().await
}

/// Returns the user and system time of a process in seconds.
fn cpu_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    ticks as f64 / 100.0
}

/// Returns the resident memory of this process in bytes.
fn memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1024.0
}
