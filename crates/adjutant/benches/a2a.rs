//! What a call by A2A costs: messages to an agent in the process that repeats them, over JSON-RPC at 16 connections,
//! against the same agent made with Python's a2a-sdk, which keeps its tasks in memory while ours are durable before they are
//! answered. The two sides alternate in one run, for tasks and for plain messages, in 1.0 and in 0.3. Then a stream of 1,000
//! updates, each of which must arrive once. Prints calls a second and the ratio; judges nothing but the stream.
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
/// How long the other server may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let ours = Peer::ours().await;
    let theirs = Peer::theirs().await;
    for (what, kind, version) in [
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
            "{what}: adjutant {:.0}/s with {:.2} ms of CPU each, a2a-sdk {:.0}/s with {:.2} ms, {:.1} times",
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

/// A server with an agent that repeats what it hears; killed when dropped.
struct Peer {
    child: Child,
    address: String,
    /// Where its card says that JSON-RPC is.
    path: String,
}

impl Peer {
    async fn ours() -> Self {
        let mut command = Command::new(testkit::conformance::program());
        let mut child = command.args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).unwrap().trim().to_owned();
        Self { child, address, path: String::new() }.found().await
    }

    async fn theirs() -> Self {
        let peers = std::env::var_os("ADJUTANT_TEST_A2A_PEERS").map(PathBuf::from);
        let peers = peers.expect("run scripts/a2a-peers/setup and set ADJUTANT_TEST_A2A_PEERS to its directory");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/a2a-peers/echo.py");
        // Free now, and taken again at once.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new(peers.join("v1/bin/python")).arg(script).arg(port.to_string()).spawn().unwrap();
        Self { child, address: format!("127.0.0.1:{port}"), path: String::new() }.found().await
    }

    /// Seconds of CPU that it has used.
    fn cpu(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
        ticks / 100.0
    }

    /// Once it answers, and with what its card says.
    async fn found(mut self) -> Self {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let url = format!("http://{}/.well-known/agent-card.json", self.address);
        let began = Instant::now();
        let answer = loop {
            match client.get(&url).send().await {
                Ok(answer) => break answer,
                Err(error) => assert!(began.elapsed() < PATIENCE, "{url} did not start: {error}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        let card: Value = answer.json().await.unwrap();
        let interfaces = card["supportedInterfaces"].as_array().unwrap();
        let spoken = interfaces.iter().find(|interface| interface["protocolBinding"] == "JSONRPC").unwrap();
        let url = spoken["url"].as_str().unwrap().trim_start_matches("http://").to_owned();
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

/// Calls a second, over one round, and milliseconds of CPU that each took on their side.
async fn measure(peer: &Peer, kind: &str, version: &str) -> (f64, f64) {
    let stop = Arc::new(AtomicBool::new(false));
    let count = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut connection = Connection::open(peer, kind, version).await;
        // Before the clock starts.
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

/// A client that does as little as possible: it shares the cores with the server.
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
        while !is_whole(&self.buffer[..read]) {
            let more = self.stream.read(&mut self.buffer[read..]).await.unwrap();
            assert!(more > 0, "the server hung up");
            read += more;
        }
        let answer = &self.buffer[..read];
        // What was sent, and what came back: the text is there as the agent's own.
        let done = answer.starts_with(b"HTTP/1.1 200") && has(answer, b"\"result\"") && has(answer, b"pay rent");
        assert!(done, "{}", String::from_utf8_lossy(answer));
    }
}

fn has(answer: &[u8], part: &[u8]) -> bool {
    answer.windows(part.len()).any(|window| window == part)
}

fn is_whole(answer: &[u8]) -> bool {
    let Some(head) = answer.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let headers = std::str::from_utf8(&answer[..head]).unwrap();
    let length = headers.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    answer.len() >= head + 4 + length.parse::<usize>().unwrap()
}

/// One artifact in many pieces, to one who follows; every piece comes once, in order.
async fn stream(peer: &Peer) {
    let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
    let message = message(&format!("tck-count-{UPDATES}-1"), "1.0");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": message}});
    let began = Instant::now();
    let request = client.post(format!("http://{}{}", peer.address, peer.path)).header("a2a-version", "1.0").json(&body);
    let answer = request.send().await.unwrap().text().await.unwrap();
    let took = began.elapsed();
    let events = answer.lines().filter_map(|line| line.strip_prefix("data:"));
    let events = events.map(|data| serde_json::from_str::<Value>(data).unwrap());
    let pieces = events.filter_map(|event| {
        let piece = event["result"]["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str()?.trim().to_owned();
        (!piece.is_empty()).then_some(piece)
    });
    let pieces = pieces.collect::<Vec<_>>();
    let wanted = (1..=UPDATES).map(|n| n.to_string()).collect::<Vec<_>>();
    assert_eq!(pieces, wanted, "updates were lost or doubled");
    println!(
        "{UPDATES} updates of one task in a stream: none lost, {:.0} ms, {:.0}/s",
        took.as_secs_f64() * 1e3,
        UPDATES as f64 / took.as_secs_f64()
    );
}
