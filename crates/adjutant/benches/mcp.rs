//! Measures `tools/call add_task` over HTTP with 16 connections, compared with the same tool in FastMCP and SQLite with the
//! same durability. The two sides alternate in one run. Prints calls per second and the ratio.
//!
//! `scripts/mcp-peers/setup target/mcp-peers`, then
//! `ADJUTANT_TEST_MCP_PEERS=$PWD/target/mcp-peers cargo bench -p adjutant --bench mcp`

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot run has failed; it prints"
)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::app::Home;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const CONNECTIONS: usize = 16;
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(3);
/// The time for the FastMCP server to start.
const START_TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() {
    let home = Home::new(env!("CARGO_BIN_EXE_adjutant")).with_env("ADJUTANT_LOG__LEVEL", "info");
    let server = home.serve();
    let ours = server.url.trim_start_matches("http://").to_owned();
    let dir = tempfile::tempdir().unwrap();
    let other = FastMcpServer::start(dir.path()).await;
    let mut our_rounds = Vec::new();
    let mut other_rounds = Vec::new();
    for _ in 0..ROUNDS {
        our_rounds.push(measure(&ours).await);
        other_rounds.push(measure(&other.address).await);
    }
    let median = |rounds: &mut Vec<f64>| {
        rounds.sort_by(f64::total_cmp);
        rounds[rounds.len() / 2]
    };
    let ours = median(&mut our_rounds);
    let other = median(&mut other_rounds);
    println!("add_task over MCP: adjutant {ours:.0}/s, FastMCP {other:.0}/s, {:.1} times", ours / other);
}

/// The FastMCP server. Killed when dropped.
struct FastMcpServer {
    child: Child,
    address: String,
}

impl FastMcpServer {
    async fn start(dir: &Path) -> Self {
        let peers = std::env::var_os("ADJUTANT_TEST_MCP_PEERS").map(PathBuf::from);
        let peers = peers.expect("run scripts/mcp-peers/setup and set ADJUTANT_TEST_MCP_PEERS to its directory");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/mcp-peers/fastmcp-server.py");
        // The port may be taken by another process before the server binds it.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(peers.join("bin/python"));
        let child = command.arg(script).arg(port.to_string()).arg(dir.join("tasks.db")).spawn().unwrap();
        let other = Self { child, address: format!("127.0.0.1:{port}") };
        let began = Instant::now();
        while TcpStream::connect(&other.address).await.is_err() {
            assert!(began.elapsed() < START_TIMEOUT, "the FastMCP server did not start");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        other
    }
}

impl Drop for FastMcpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the calls per second of one round.
async fn measure(address: &str) -> f64 {
    let stop = Arc::new(AtomicBool::new(false));
    let count = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut connection = Connection::open(address).await;
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
    let tasks: Vec<_> = tasks.into_iter().map(tokio::spawn).collect();
    tokio::time::sleep(ROUND).await;
    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    count.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64()
}

/// A client with little overhead, because it shares the cores with the server.
struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    buffer: Vec<u8>,
}

impl Connection {
    async fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "add_task",
            "arguments": {"title": "pay rent", "priority": "high"},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
            },
        }});
        let body = body.to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\n\
             mcp-name: add_task\r\ncontent-length: {}\r\n\r\n",
            body.len()
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
        let is_valid = response.starts_with(b"HTTP/1.1 200") && has(response, b"\"isError\":false");
        assert!(is_valid, "{}", String::from_utf8_lossy(response));
    }
}

fn has(response: &[u8], part: &[u8]) -> bool {
    response.windows(part.len()).any(|window| window == part)
}

fn is_complete(response: &[u8]) -> bool {
    let Some(head) = response.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let headers = std::str::from_utf8(&response[..head]).unwrap();
    let length = headers.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    response.len() >= head + 4 + length.parse::<usize>().unwrap()
}
