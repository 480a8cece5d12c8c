//! Measures the overhead of HTTP and of the store: tasks created and read over 64 connections, compared with the same
//! operations called directly, and with a request that does nothing. The two sides alternate in one run. Prints operations
//! per second and the ratio.
//!
//! `cargo bench -p adjutant --bench http [-- --database-url postgres://…]`

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark that cannot run has failed; it prints")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use model::task::{Task, TaskDraft, TaskLimits};
use model::{Clock, User, UserId};
use store::{Durability, Location, Store};
use testkit::app::Home;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const CONNECTIONS: usize = 64;
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() {
    let postgres = std::env::args().skip_while(|argument| argument != "--database-url").nth(1);
    let home = Home::new(env!("CARGO_BIN_EXE_adjutant")).with_env("ADJUTANT_LOG__LEVEL", "info");
    let home = match &postgres {
        Some(url) => home.with_env("ADJUTANT_DATABASE__URL", url),
        None => home,
    };
    let server = home.serve();
    let address = server.url.trim_start_matches("http://").to_owned();

    let dir = tempfile::tempdir().unwrap();
    let location = match postgres {
        Some(url) => Location::postgres(url),
        None => Location::Sqlite(dir.path().join("raw.db")),
    };
    let raw = DirectStore { store: Store::open(&location, Durability::Full).await.unwrap(), clock: Clock::system() };

    let body = r#"{"title":"pay rent","due_date":"2026-01-31","priority":"high","tags":["home"]}"#;
    let create = request("POST", "/api/tasks", body);
    let http = || over_http(&address, create.clone());
    compare("create: http / raw store", http, || directly(&raw, Operation::Create)).await;

    let created = server.post("/api/tasks", &serde_json::from_str(body).unwrap()).await;
    let id = created.json::<serde_json::Value>().await.unwrap()["id"].as_str().unwrap().to_owned();
    let read = request("GET", &format!("/api/tasks/{id}"), "");
    let task = raw.create().await;
    let http = || over_http(&address, read.clone());
    compare("read: http / raw store", http, || directly(&raw, Operation::Read(task.id))).await;
    let live = request("GET", "/health/live", "");
    compare("read / nothing, both http", http, || over_http(&address, live.clone())).await;
}

/// Alternates the two sides, so that other load affects both, and prints the medians.
async fn compare<A: Future<Output = f64>, B: Future<Output = f64>>(
    name: &str,
    first: impl Fn() -> A,
    second: impl Fn() -> B,
) {
    let mut first_rates = Vec::new();
    let mut second_rates = Vec::new();
    for _ in 0..ROUNDS {
        first_rates.push(first().await);
        second_rates.push(second().await);
    }
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let first = median(&mut first_rates);
    let second = median(&mut second_rates);
    println!("{name:26} {first:9.0}/s / {second:9.0}/s = {:.2}", first / second);
}

/// Runs each step repeatedly for a round, all concurrently. Returns the operations per second.
async fn measure<S, F>(steps: impl Iterator<Item = S>) -> f64
where
    S: FnMut() -> F + Send + 'static,
    F: Future<Output = ()> + Send,
{
    let stop = Arc::new(AtomicBool::new(false));
    let count = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let tasks: Vec<_> = steps
        .map(|mut step| {
            let stop = stop.clone();
            let count = count.clone();
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    step().await;
                    count.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    tokio::time::sleep(ROUND).await;
    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    count.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64()
}

/// Sends requests with little overhead, because the client shares the cores with the server.
async fn over_http(address: &str, request: Arc<[u8]>) -> f64 {
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        connections.push(Arc::new(tokio::sync::Mutex::new((stream, vec![0; 4096]))));
    }
    let steps = connections.into_iter().map(|connection| {
        let request = request.clone();
        move || {
            let connection = connection.clone();
            let request = request.clone();
            async move {
                let (stream, buffer) = &mut *connection.lock().await;
                stream.write_all(&request).await.unwrap();
                let mut read = 0;
                while !is_complete(&buffer[..read]) {
                    read += stream.read(&mut buffer[read..]).await.unwrap();
                }
                assert!(buffer.starts_with(b"HTTP/1.1 20"), "{}", String::from_utf8_lossy(&buffer[..read]));
            }
        }
    });
    measure(steps).await
}

fn request(method: &str, path: &str, body: &str) -> Arc<[u8]> {
    let length = body.len();
    let text = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    text.into_bytes().into()
}

fn is_complete(response: &[u8]) -> bool {
    let Some(head) = response.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let headers = std::str::from_utf8(&response[..head]).unwrap();
    let length = headers.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    response.len() >= head + 4 + length.parse::<usize>().unwrap()
}

struct DirectStore {
    store: Store,
    clock: Clock,
}

#[derive(Clone, Copy)]
enum Operation {
    Create,
    Read(uuid::Uuid),
}

impl DirectStore {
    async fn create(&self) -> Task {
        let draft = TaskDraft {
            title: "pay rent".into(),
            due_date: Some("2026-01-31".into()),
            priority: Some("high".into()),
            tags: Some(vec!["home".into()]),
            ..TaskDraft::default()
        };
        let task = draft.check(TaskLimits::default(), &self.clock, &User::local(TimeZone::UTC)).unwrap();
        let stored = task.clone();
        let write = self.store.owner_transaction(UserId::LOCAL, async move |tx| {
            let mut step = store::undo::UndoStep::begin(tx, UserId::LOCAL).await?;
            store::tasks::create(tx, &mut step, &stored).await
        });
        write.await.unwrap();
        task
    }

    async fn read(&self, id: uuid::Uuid) {
        let mut reader = self.store.reader().await.unwrap();
        store::tasks::get(&mut reader, UserId::LOCAL, id).await.unwrap();
    }
}

async fn directly(raw: &DirectStore, operation: Operation) -> f64 {
    let steps = (0..CONNECTIONS).map(|_| {
        let raw = Arc::new(DirectStore { store: raw.store.clone(), clock: raw.clock.clone() });
        move || {
            let raw = raw.clone();
            async move {
                match operation {
                    Operation::Create => drop(raw.create().await),
                    Operation::Read(id) => raw.read(id).await,
                }
            }
        }
    });
    measure(steps).await
}
