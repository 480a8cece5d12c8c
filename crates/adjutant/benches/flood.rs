//! Measures the effect of a flood of output on conversations: chats on 1 and on 8 connections, alternately on an idle server
//! and beside a followed agent with unlimited output. Server, agent and clients share the machine. Prints the median of the
//! rounds, because a shared machine is noisy.
//!
//! `cargo bench -p adjutant --bench flood [-- --seconds 2]`

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark that cannot run has failed; it prints")]

mod load;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::app::Home;

use load::{Server, chat, connect, quantile};

const CONNECTIONS: [usize; 2] = [1, 8];
const ROUNDS: usize = 9;
const AGENT: &str = r#"
[[agents]]
id = "flood"
executable_path = "yes"
args = ["2026-11-16T09:33:19Z INFO builder: compiled crate number 17 of 342 in 0.42 s, nothing to report"]
access_type = "read-only"
"#;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let seconds = arguments.iter().skip_while(|argument| *argument != "--seconds").nth(1);
    let duration = Duration::from_secs(seconds.map_or(2, |seconds| seconds.parse().unwrap()));
    let home = Home::new(env!("CARGO_BIN_EXE_adjutant")).with_env("ADJUTANT_LOG__LEVEL", "info").with_config(AGENT);
    let server = Server::start(&home);
    chats(&server.address, CONNECTIONS[1], Duration::from_secs(1)).await;
    for connections in CONNECTIONS {
        let mut rounds = Vec::with_capacity(ROUNDS);
        let mut followed = 0;
        for _ in 0..ROUNDS {
            let alone = chats(&server.address, connections, duration).await;
            let flood = Flood::start(&server.address).await;
            let before = flood.received_bytes();
            let beside = chats(&server.address, connections, duration).await;
            followed += flood.received_bytes() - before;
            flood.stop().await;
            rounds.push((alone, beside));
        }
        let took = |times: &Vec<Duration>| quantile(&mut times.clone(), 0.5).as_secs_f64() * 1e3;
        let rate = |times: &Vec<Duration>| times.len() as f64 / duration.as_secs_f64();
        let [least, slower, most] = spread(rounds.iter().map(|(alone, beside)| took(beside) / took(alone)));
        let [_, fewer, _] = spread(rounds.iter().map(|(alone, beside)| rate(beside) / rate(alone)));
        let [_, quiet, _] = spread(rounds.iter().map(|(alone, _)| took(alone)));
        let [_, quiet_rate, _] = spread(rounds.iter().map(|(alone, _)| rate(alone)));
        println!(
            "{connections} at once: p50 {quiet:.2} ms, {quiet_rate:.0}/s alone; beside a flood p50 {slower:.2} of that ({least:.2} to \
             {most:.2}), rate {fewer:.2}; {:.1} MB/s of the flood were followed",
            followed as f64 / 1e6 / duration.as_secs_f64() / ROUNDS as f64,
        );
    }
}

/// Returns the minimum, the median and the maximum.
fn spread(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    [values[0], values[values.len() / 2], values[values.len() - 1]]
}

/// Runs consecutive chats on each connection for `duration`. Returns the time of each chat.
async fn chats(address: &str, connections: usize, duration: Duration) -> Vec<Duration> {
    let mut tasks = Vec::with_capacity(connections);
    for _ in 0..connections {
        let mut connection = connect(address).await;
        tasks.push(tokio::spawn(async move {
            let mut times = Vec::new();
            let end = Instant::now() + duration;
            while Instant::now() < end {
                let began = Instant::now();
                chat(&mut connection, "add buy milk").await;
                times.push(began.elapsed());
            }
            times
        }));
    }
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await.unwrap());
    }
    times
}

/// An agent with unlimited output, and a thread that follows its events.
struct Flood {
    client: reqwest::Client,
    execution: String,
    received: Arc<AtomicUsize>,
    follower: JoinHandle<()>,
}

impl Flood {
    async fn start(address: &str) -> Self {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let started = client.post(format!("http://{address}/api/agents/flood/executions")).json(&json!({"input": ""}));
        let started: Value = started.send().await.unwrap().json().await.unwrap();
        let path = format!("/api/executions/{}", started["id"].as_str().unwrap());
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path}/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        let received = Arc::new(AtomicUsize::new(0));
        let count = received.clone();
        let follower = std::thread::spawn(move || {
            let mut chunk = vec![0; 1 << 16];
            while let read @ 1.. = stream.read(&mut chunk).unwrap() {
                count.fetch_add(read, Ordering::Relaxed);
            }
        });
        let flood = Self { client, execution: format!("http://{address}{path}"), received, follower };
        while flood.received_bytes() < 1 << 20 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        flood
    }

    fn received_bytes(&self) -> usize {
        self.received.load(Ordering::Relaxed)
    }

    async fn stop(self) {
        let cancel = self.client.post(format!("{}/cancel", self.execution)).send().await.unwrap();
        assert!(cancel.status().is_success(), "{}", cancel.status());
        // The stream of events ends with the execution.
        self.follower.join().unwrap();
    }
}
