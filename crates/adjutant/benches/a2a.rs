//! Measures A2A calls: messages to an in-process echo agent, over JSON-RPC with 16 connections. The reference is the same
//! agent with a2a-sdk for Python, which stores tasks in memory; adjutant stores them durably before it responds. The two
//! sides alternate in one run, for tasks and for plain messages, in 1.0 and in 0.3. Then it follows a stream of 1,000
//! updates. Prints calls per second and the ratio. Fails only if the stream loses or repeats an update.
//!
//! `scripts/a2a-peers/setup target/a2a-peers`, then
//! `ADJUTANT_TEST_A2A_PEERS=$PWD/target/a2a-peers cargo bench -p adjutant --bench a2a`

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot run has failed; it prints"
)]

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const CONNECTIONS: usize = 16;
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(3);
const UPDATES: usize = 1000;
/// The time for the reference server to start.
const START_TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let ours = Peer::ours().await;
    let theirs = Peer::theirs().await;
    for (name, kind, version) in [
        ("SendMessage, answered by a task", "echo", "1.0"),
        ("SendMessage, answered by a message", "echo-message", "1.0"),
        ("message/send of 0.3, answered by a task", "echo", "0.3"),
    ] {
        let mut our_rounds = Vec::new();
        let mut their_rounds = Vec::new();
        for _ in 0..ROUNDS {
            our_rounds.push(measure(&ours, kind, version).await);
            their_rounds.push(measure(&theirs, kind, version).await);
        }
        let ours = median(our_rounds);
        let theirs = median(their_rounds);
        println!(
            "{name}: adjutant {:.0}/s with {:.2} ms of CPU each, a2a-sdk {:.0}/s with {:.2} ms, {:.1} times",
            ours.0,
            ours.1,
            theirs.0,
            theirs.1,
            ours.0 / theirs.0
        );
    }
    stream(&ours).await;
}

fn median(mut rounds: Vec<(f64, f64)>) -> (f64, f64) {
    rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    rounds[rounds.len() / 2]
}

/// A server with an echo agent. Killed when dropped.
struct Peer {
    child: Child,
    address: String,
    /// The path of the JSON-RPC interface in the card.
    path: String,
}

impl Peer {
    async fn ours() -> Self {
        let mut command = Command::new(testkit::conformance::program());
        let mut child = command.args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).unwrap().trim().to_owned();
        Self { child, address, path: String::new() }.read_card().await
    }

    async fn theirs() -> Self {
        let peers = std::env::var_os("ADJUTANT_TEST_A2A_PEERS").map(PathBuf::from);
        let peers = peers.expect("run scripts/a2a-peers/setup and set ADJUTANT_TEST_A2A_PEERS to its directory");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/a2a-peers/echo.py");
        // The port may be taken by another process before the server binds it.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new(peers.join("v1/bin/python")).arg(script).arg(port.to_string()).spawn().unwrap();
        Self { child, address: format!("127.0.0.1:{port}"), path: String::new() }.read_card().await
    }

    /// Returns the used CPU time in seconds.
    fn cpu(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
        ticks / 100.0
    }

    /// Waits until the server responds, and reads the path from its card.
    async fn read_card(mut self) -> Self {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let url = format!("http://{}/.well-known/agent-card.json", self.address);
        let began = Instant::now();
        let response = loop {
            match client.get(&url).send().await {
                Ok(response) => break response,
                Err(error) => assert!(began.elapsed() < START_TIMEOUT, "{url} did not start: {error}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        let card: Value = response.json().await.unwrap();
        let interfaces = card["supportedInterfaces"].as_array().unwrap();
        let json_rpc = interfaces.iter().find(|interface| interface["protocolBinding"] == "JSONRPC").unwrap();
        let url = json_rpc["url"].as_str().unwrap().trim_start_matches("http://").to_owned();
        self.path = url.find('/').map_or("/", |at| &url[at..]).to_owned();
        self
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the calls per second of one round, and the CPU time of the server per call in milliseconds.
async fn measure(peer: &Peer, kind: &str, version: &str) -> (f64, f64) {
    let stop = Arc::new(AtomicBool::new(false));
    let count = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut connection = Connection::open(peer, kind, version).await;
        // Warm up.
        connection.call().await;
        let stop = stop.clone();
        let count = count.clone();
        tasks.push(async move {
            while !stop.load(Ordering::Relaxed) {
                connection.call().await;
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let began = Instant::now();
    let cpu = peer.cpu();
    let tasks: Vec<_> = tasks.into_iter().map(tokio::spawn).collect();
    tokio::time::sleep(ROUND).await;
    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    let count = count.load(Ordering::Relaxed) as f64;
    (count / began.elapsed().as_secs_f64(), (peer.cpu() - cpu) * 1e3 / count)
}

fn message(id: &str, version: &str) -> Value {
    match version {
        "0.3" => {
            json!({"kind": "message", "role": "user", "messageId": id, "parts": [{"kind": "text", "text": "pay rent"}]})
        }
        _ => json!({"role": "ROLE_USER", "messageId": id, "parts": [{"text": "pay rent"}]}),
    }
}

/// A client with little overhead, because it shares the cores with the server.
struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    buffer: Vec<u8>,
}

impl Connection {
    async fn open(peer: &Peer, kind: &str, version: &str) -> Self {
        let stream = TcpStream::connect(&peer.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let method = if version == "0.3" { "message/send" } else { "SendMessage" };
        let params = json!({"message": message(&format!("{kind}-1"), version)});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let path = &peer.path;
        let address = &peer.address;
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\na2a-version: {version}\r\n\
             content-length: {length}\r\n\r\n"
        );
        Self { stream, request: (head + &body).into_bytes(), buffer: vec![0; 16 * 1024] }
    }

    async fn call(&mut self) {
        self.stream.write_all(&self.request).await.unwrap();
        let mut read = 0;
        while !is_complete(&self.buffer[..read]) {
            let more = self.stream.read(&mut self.buffer[read..]).await.unwrap();
            assert!(more > 0, "the server closed the connection");
            read += more;
        }
        let response = &self.buffer[..read];
        // The response contains the text as the answer of the agent.
        let is_valid =
            response.starts_with(b"HTTP/1.1 200") && has(response, b"\"result\"") && has(response, b"pay rent");
        assert!(is_valid, "{}", String::from_utf8_lossy(response));
    }
}

fn has(answer: &[u8], part: &[u8]) -> bool {
    answer.windows(part.len()).any(|window| window == part)
}

fn is_complete(response: &[u8]) -> bool {
    let Some(head) = response.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let headers = std::str::from_utf8(&response[..head]).unwrap();
    let length = headers.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    response.len() >= head + 4 + length.parse::<usize>().unwrap()
}

/// Follows one artifact in many chunks. Every chunk must arrive once and in order.
async fn stream(peer: &Peer) {
    let client = reqwest::Client::builder().no_proxy().timeout(START_TIMEOUT).build().unwrap();
    let message = message(&format!("tck-count-{UPDATES}-1"), "1.0");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": message}});
    let began = Instant::now();
    let request = client.post(format!("http://{}{}", peer.address, peer.path)).header("a2a-version", "1.0").json(&body);
    let response = request.send().await.unwrap().text().await.unwrap();
    let took = began.elapsed();
    let events = response.lines().filter_map(|line| line.strip_prefix("data:"));
    let events = events.map(|data| serde_json::from_str::<Value>(data).unwrap());
    let chunks = events.filter_map(|event| {
        let chunk = event["result"]["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str()?.trim().to_owned();
        (!chunk.is_empty()).then_some(chunk)
    });
    let chunks = chunks.collect::<Vec<_>>();
    let expected = (1..=UPDATES).map(|n| n.to_string()).collect::<Vec<_>>();
    assert_eq!(chunks, expected, "updates were lost or repeated");
    println!(
        "{UPDATES} updates of one task in a stream: none lost, {:.0} ms, {:.0}/s",
        took.as_secs_f64() * 1e3,
        UPDATES as f64 / took.as_secs_f64()
    );
}
