//! What conversations lose beside a flood: chats at 1 and at 8 connections, in turn with nothing else at work and beside an
//! agent that writes without end to somebody who follows it. Program, agent and clients share the machine. What counts is
//! the median of what the rounds say: a machine that others share has its moods. Prints, judges nothing.
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
    let long = Duration::from_secs(seconds.map_or(2, |seconds| seconds.parse().unwrap()));
    let home = Home::new(env!("CARGO_BIN_EXE_adjutant")).with("ADJUTANT_LOG__LEVEL", "info").configured(AGENT);
    let server = Server::start(&home);
    chats(&server.address, CONNECTIONS[1], Duration::from_secs(1)).await;
    for connections in CONNECTIONS {
        let mut rounds = Vec::with_capacity(ROUNDS);
        let mut followed = 0;
        for _ in 0..ROUNDS {
            let alone = chats(&server.address, connections, long).await;
            let flood = Flood::begin(&server.address).await;
            let before = flood.heard();
            let beside = chats(&server.address, connections, long).await;
            followed += flood.heard() - before;
            flood.end().await;
            rounds.push((alone, beside));
        }
        let took = |times: &Vec<Duration>| quantile(&mut times.clone(), 0.5).as_secs_f64() * 1e3;
        let rate = |times: &Vec<Duration>| times.len() as f64 / long.as_secs_f64();
        let [least, slower, most] = spread(rounds.iter().map(|(alone, beside)| took(beside) / took(alone)));
        let [_, fewer, _] = spread(rounds.iter().map(|(alone, beside)| rate(beside) / rate(alone)));
        let [_, quiet, _] = spread(rounds.iter().map(|(alone, _)| took(alone)));
        let [_, quiet_rate, _] = spread(rounds.iter().map(|(alone, _)| rate(alone)));
        println!(
            "{connections} at once: p50 {quiet:.2} ms, {quiet_rate:.0}/s alone; beside a flood p50 {slower:.2} of that ({least:.2} to \
             {most:.2}), rate {fewer:.2}; {:.1} MB/s of the flood were followed",
            followed as f64 / 1e6 / long.as_secs_f64() / ROUNDS as f64,
        );
    }
}

/// The least, the median and the most.
fn spread(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    [values[0], values[values.len() / 2], values[values.len() - 1]]
}

/// Chats one after the other on so many connections, for so long: how long each took.
async fn chats(address: &str, connections: usize, long: Duration) -> Vec<Duration> {
    let mut tasks = Vec::with_capacity(connections);
    for _ in 0..connections {
        let mut connection = connect(address).await;
        tasks.push(tokio::spawn(async move {
            let mut times = Vec::new();
            let end = Instant::now() + long;
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

/// An agent that writes without end, and somebody in a thread of its own who reads all that is told of it.
struct Flood {
    client: reqwest::Client,
    execution: String,
    heard: Arc<AtomicUsize>,
    follower: JoinHandle<()>,
}

impl Flood {
    async fn begin(address: &str) -> Self {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let begun = client.post(format!("http://{address}/api/agents/flood/executions")).json(&json!({"input": ""}));
        let begun: Value = begun.send().await.unwrap().json().await.unwrap();
        let path = format!("/api/executions/{}", begun["id"].as_str().unwrap());
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path}/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        let heard = Arc::new(AtomicUsize::new(0));
        let count = heard.clone();
        let follower = std::thread::spawn(move || {
            let mut chunk = vec![0; 1 << 16];
            while let read @ 1.. = stream.read(&mut chunk).unwrap() {
                count.fetch_add(read, Ordering::Relaxed);
            }
        });
        let flood = Self { client, execution: format!("http://{address}{path}"), heard, follower };
        while flood.heard() < 1 << 20 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        flood
    }

    fn heard(&self) -> usize {
        self.heard.load(Ordering::Relaxed)
    }

    async fn end(self) {
        let cancel = self.client.post(format!("{}/cancel", self.execution)).send().await.unwrap();
        assert!(cancel.status().is_success(), "{}", cancel.status());
        // What is told last is the end.
        self.follower.join().unwrap();
    }
}
