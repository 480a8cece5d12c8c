//! Measures how much one user slows another one down: B creates tasks one at a time, alone and beside A, who creates tasks
//! over 100 connections. Prints the median of B, the ratio, the rate of A, and the answers of `/health/ready` meanwhile.
//! With `ADJUTANT_TEST_POSTGRES`, measures PostgreSQL directly and through a proxy that adds 10 ms to each round trip.
//!
//! `eval "$(scripts/postgres)"; cargo bench -p adjutant --bench fairness`

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark that cannot run has failed; it prints")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::app::{Home, Server};
use testkit::issuer::sign_hs256;
use testkit::proxy::TcpProxy;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SECRET: &str = "a secret of the benchmark with 32 characters";
const USER_A: &str = "00000000-0000-4000-8000-00000000000a";
const USER_B: &str = "00000000-0000-4000-8000-00000000000b";
const CONNECTIONS: usize = 100;
const WARM_UP: Duration = Duration::from_secs(1);
const ROUND: Duration = Duration::from_secs(5);
/// Half of a round trip.
const DELAY: Duration = Duration::from_millis(5);

#[tokio::main]
async fn main() {
    measure("SQLite", None).await;
    if std::env::var_os("ADJUTANT_TEST_POSTGRES").is_some() {
        measure("PostgreSQL", Some(testkit::postgres::create_database().await.unwrap())).await;
        let url = testkit::postgres::create_database().await.unwrap();
        let address = url.split(['@', '/']).nth(3).unwrap().to_owned();
        let proxy = TcpProxy::start_delayed(&address, DELAY).await;
        measure("PostgreSQL at 10 ms", Some(url.replace(&address, &proxy.address))).await;
    }
}

/// Measures B alone and beside A on a new server, and prints a row.
async fn measure(name: &str, database: Option<String>) {
    let home = Home::new(env!("CARGO_BIN_EXE_adjutant"))
        .with_env("ADJUTANT_LOG__LEVEL", "error")
        .with_env("ADJUTANT_SERVER__RATE_LIMIT_PER_MINUTE", "0")
        .with_env("ADJUTANT_SECRET", SECRET)
        .with_env("ADJUTANT_AUTH__JWT_SECRET", "env:ADJUTANT_SECRET");
    let home = match &database {
        Some(url) => home.with_env("ADJUTANT_DATABASE__URL", url),
        None => home,
    };
    let server = home.serve();
    let alone = median(one_at_a_time(&server).await);
    let stop = Arc::new(AtomicBool::new(false));
    let count = Arc::new(AtomicU64::new(0));
    let writers: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let stop = stop.clone();
            let count = count.clone();
            let mut connection = Connection::new(&server, USER_A);
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(connection.create().await, 201);
                    count.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    tokio::time::sleep(WARM_UP).await;
    let before = count.load(Ordering::Relaxed);
    let began = Instant::now();
    let (times, health) = tokio::join!(one_at_a_time(&server), check_health(&server));
    let rate = (count.load(Ordering::Relaxed) - before) as f64 / began.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    let beside = median(times);
    let ratio = beside / alone;
    println!(
        "{name:20} B alone {alone:6.1} ms, beside A {beside:6.1} ms = {ratio:.2}; A {rate:6.0}/s; health {health}"
    );
}

/// Creates tasks as B for a round. Returns the milliseconds of each.
async fn one_at_a_time(server: &Server) -> Vec<f64> {
    let mut connection = Connection::new(server, USER_B);
    let began = Instant::now();
    let mut times = Vec::new();
    while began.elapsed() < ROUND {
        let sent = Instant::now();
        assert_eq!(connection.create().await, 201);
        times.push(sent.elapsed().as_secs_f64() * 1000.0);
    }
    times
}

/// Asks for the health each 100 ms of a round. Returns the number of answers with status 200 and of all.
async fn check_health(server: &Server) -> String {
    let began = Instant::now();
    let mut good = 0;
    let mut all = 0;
    while began.elapsed() < ROUND {
        all += 1;
        good += u32::from(server.get("/health/ready").await.status() == 200);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    format!("{good} of {all}")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A client with little overhead, because it shares the cores with the server.
struct Connection {
    address: String,
    request: Vec<u8>,
    stream: Option<TcpStream>,
}

impl Connection {
    fn new(server: &Server, user: &str) -> Self {
        let address = server.url.trim_start_matches("http://").to_owned();
        let token = sign_hs256(SECRET, &json!({"sub": user, "exp": 4_000_000_000_u32}));
        let body = r#"{"title":"pay rent"}"#;
        let request = format!(
            "POST /api/tasks HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\ncontent-type: \
             application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        Self { address, request: request.into_bytes(), stream: None }
    }

    /// Creates a task and returns the status.
    async fn create(&mut self) -> u16 {
        if self.stream.is_none() {
            let stream = TcpStream::connect(&self.address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            self.stream = Some(stream);
        }
        let stream = self.stream.as_mut().unwrap();
        stream.write_all(&self.request).await.unwrap();
        let mut buffer = vec![0; 4096];
        let mut read = 0;
        while !buffer[..read].ends_with(b"}") {
            let more = stream.read(&mut buffer[read..]).await.unwrap();
            assert!(more > 0, "the connection was closed");
            read += more;
        }
        std::str::from_utf8(&buffer[9..12]).unwrap().parse().unwrap()
    }
}
