//! Measures the overhead of conversations over `/chat/stream`. A scripted model replies immediately in the protocol of
//! OpenAI. Each conversation is one message, one tool call that adds a task, and one reply, durable before `done`. First on
//! 1, 16, 64 and 256 connections. Then alternately with a stack of FastAPI, openai-agents and FastMCP, if it is installed.
//! Then the memory of a thousand streams that wait for a slow model. Server, model and clients are three processes.
//!
//! `cargo bench -p adjutant --bench models [-- --seconds 5] [--program PATH]`; for the reference stack first run
//! `scripts/python-peer chat-peer target/chat-peer` and `export ADJUTANT_TEST_CHAT_PEER=$PWD/target/chat-peer`

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark that cannot run has failed; it prints")]

use std::io::BufRead;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use testkit::app::Home;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const CONNECTIONS: [usize; 4] = [1, 16, 64, 256];
const OPEN_STREAMS: usize = 1000;
const WARM_UP: Duration = Duration::from_secs(1);
const ROUNDS: usize = 3;
/// The delay of the slow model, longer than the benchmark.
const SLOW_MODEL_DELAY_MS: &str = "600000";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |name: &str| arguments.iter().skip_while(|argument| *argument != name).nth(1).cloned();
    let seconds = after("--seconds").map_or(5, |seconds| seconds.parse().unwrap());
    let program = after("--program").unwrap_or_else(|| env!("CARGO_BIN_EXE_adjutant").to_owned());
    let llm = build_llm();

    let model = Process::start(Command::new(&llm), "model: ");
    let server = serve(&program, &model.address);
    let mut number = 0;
    load(&server.process.address, CONNECTIONS[1], WARM_UP, &mut number).await;
    for connections in CONNECTIONS {
        let cpu = server.process.cpu();
        let model_cpu = model.cpu();
        let (rate, mut times) =
            load(&server.process.address, connections, Duration::from_secs(seconds), &mut number).await;
        let chats = times.len() as f64;
        println!(
            "{connections:>3} at once: {rate:.0} chats/s, p50 {:.1} ms, p99 {:.1} ms, CPU a chat {:.0} µs, of the model {:.0} µs",
            quantile(&mut times, 0.5).as_secs_f64() * 1e3,
            quantile(&mut times, 0.99).as_secs_f64() * 1e3,
            (server.process.cpu() - cpu) / chats * 1e6,
            (model.cpu() - model_cpu) / chats * 1e6,
        );
    }
    println!("memory after {number} chats: {:.1} MB", server.process.memory() / 1e6);
    match std::env::var_os("ADJUTANT_TEST_CHAT_PEER") {
        Some(dir) => compare(&server.process, Path::new(&dir), &model.address, seconds, &mut number).await,
        None => {
            println!(
                "the reference stack is not installed: scripts/python-peer chat-peer DIR, ADJUTANT_TEST_CHAT_PEER=DIR"
            )
        }
    }
    drop((server, model));

    let mut command = Command::new(&llm);
    command.args(["--delay-ms", SLOW_MODEL_DELAY_MS]);
    let model = Process::start(command, "model: ");
    let server = serve(&program, &model.address);
    waiting_streams(&server.process).await;
}

/// Builds the scripted model, a program of another package, and returns its path.
fn build_llm() -> std::path::PathBuf {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let built = Command::new(cargo)
        .args(["build", "--release", "--quiet", "-p", "adjutant", "-p", "testkit", "--bin", "llm"])
        .status()
        .unwrap();
    assert!(built.success(), "failed to build the scripted model");
    Path::new(env!("CARGO_BIN_EXE_adjutant")).with_file_name("llm")
}

/// A program that prints its address.
struct Process {
    child: Child,
    address: String,
}

impl Process {
    fn start(mut command: Command, prefix: &str) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.split(&format!("{prefix}http://")).nth(1).unwrap().trim().to_owned();
        Self { child, address }
    }

    /// Returns the user and system time of the process and its descendants in seconds.
    fn cpu(&self) -> f64 {
        let all: Vec<_> =
            std::fs::read_dir("/proc").unwrap().filter_map(|entry| process_times(&entry.ok()?.path())).collect();
        let mut family = vec![u64::from(self.child.id())];
        let mut ticks = 0;
        while let Some(id) = family.pop() {
            ticks += all.iter().find(|(own, ..)| *own == id).map_or(0, |(.., ticks)| *ticks);
            family.extend(all.iter().filter(|(_, parent, _)| *parent == id).map(|(own, ..)| *own));
        }
        ticks as f64 / 100.0
    }

    /// Returns the resident memory in bytes.
    fn memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1024.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the id of a process, the id of its parent, and its CPU time in ticks.
fn process_times(process: &Path) -> Option<(u64, u64, u64)> {
    let id = process.file_name()?.to_str()?.parse().ok()?;
    let stat = std::fs::read_to_string(process.join("stat")).ok()?;
    let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |index: usize| fields[index].parse::<u64>().ok();
    Some((id, field(1)?, field(11)? + field(12)?))
}

struct Server {
    process: Process,
    _home: Home,
}

/// Starts the server with its log in a file, because reading the log would cost the benchmark too much CPU.
fn serve(program: &str, model: &str) -> Server {
    let home = Home::new(program)
        .with_env("ADJUTANT_LOG__LEVEL", "info")
        .with_env("ADJUTANT_SERVER__REQUEST_TIMEOUT_SECONDS", "600")
        .with_env("OPENAI_API_KEY", "sk-test")
        .with_env("OPENAI_BASE_URL", &format!("http://{model}/v1"));
    let log = std::fs::File::create(home.path().join("log")).unwrap();
    let mut command = home.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.stderr(log);
    Server { process: Process::start(command, ""), _home: home }
}

/// Alternates with the reference stack, with the same model and clients, so that other load affects both.
async fn compare(ours: &Process, installed: &Path, model: &str, seconds: u64, number: &mut usize) {
    let dir = tempfile::tempdir().unwrap();
    let connections = CONNECTIONS[1];
    let mut command = Command::new(installed.join("bin/python"));
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/chat-peer/app.py"))
        .arg(dir.path())
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap_or_default())
        .env("OPENAI_API_KEY", "sk-test")
        .env("OPENAI_BASE_URL", format!("http://{model}/v1"));
    let peer = Process::start(command, "");
    // The first chats are slower.
    load(&peer.address, connections, 3 * WARM_UP, number).await;
    let mut measured = [("adjutant", ours, Vec::new()), ("the reference stack", &peer, Vec::new())];
    for _ in 0..ROUNDS {
        for (_, process, rounds) in &mut measured {
            let cpu = process.cpu();
            let (rate, times) = load(&process.address, connections, Duration::from_secs(seconds), number).await;
            rounds.push((rate, (process.cpu() - cpu) / times.len() as f64 * 1e3));
        }
    }
    let [ours, peers] = measured.map(|(name, _, mut rounds)| {
        rounds.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (rate, cpu) = rounds[ROUNDS / 2];
        println!(
            "{connections:>3} at once in turn, {name}: {rate:.1} chats/s, CPU a chat {cpu:.2} ms, median of {ROUNDS}"
        );
        (rate, cpu)
    });
    println!("{:.1} times as many chats, {:.1} times less CPU", ours.0 / peers.0, peers.1 / ours.1);
}

/// Runs consecutive chats on each connection for `duration`. Returns the chats per second and the time of each.
async fn load(address: &str, connections: usize, duration: Duration, number: &mut usize) -> (f64, Vec<Duration>) {
    let stop = Arc::new(AtomicBool::new(false));
    let next = Arc::new(AtomicUsize::new(*number));
    let mut open = Vec::with_capacity(connections);
    for _ in 0..connections {
        open.push(connect(address).await);
    }
    let began = Instant::now();
    let chats: Vec<_> = open
        .into_iter()
        .map(|mut connection| {
            let stop = stop.clone();
            let next = next.clone();
            tokio::spawn(async move {
                let mut times = Vec::new();
                let mut buffer = Vec::with_capacity(16 * 1024);
                while !stop.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    send(&mut connection, next.fetch_add(1, Ordering::Relaxed)).await;
                    receive(&mut connection, &mut buffer, b"\r\n0\r\n\r\n").await;
                    times.push(began.elapsed());
                    let response = String::from_utf8_lossy(&buffer);
                    let added =
                        ["\"tools_called\":[\"add_task\"]", "Done, it is on your list.", "\"model\":\"openai:gpt-4o\""];
                    assert!(added.iter().all(|part| response.contains(part)), "{response}");
                }
                times
            })
        })
        .collect();
    tokio::time::sleep(duration).await;
    stop.store(true, Ordering::Relaxed);
    let mut times = Vec::new();
    for chat in chats {
        times.extend(chat.await.unwrap());
    }
    *number = next.load(Ordering::Relaxed);
    (times.len() as f64 / began.elapsed().as_secs_f64(), times)
}

/// Measures the memory of open streams that wait for their model.
async fn waiting_streams(server: &Process) {
    let mut open = Vec::with_capacity(OPEN_STREAMS);
    let mut buffer = Vec::with_capacity(4096);
    let before = server.memory();
    for number in 0..OPEN_STREAMS {
        let mut connection = connect(&server.address).await;
        send(&mut connection, number).await;
        receive(&mut connection, &mut buffer, b"\n\n\r\n").await;
        assert!(String::from_utf8_lossy(&buffer).contains("event: thinking"));
        open.push(connection);
    }
    // All requests to the model are sent by then.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let memory = server.memory();
    let each = (memory - before) / OPEN_STREAMS as f64;
    println!(
        "{OPEN_STREAMS} open streams that wait for the model: {:.1} MB, at rest {:.1} MB, {:.1} kB each",
        memory / 1e6,
        before / 1e6,
        each / 1e3
    );
}

async fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

async fn send(connection: &mut TcpStream, number: usize) {
    let body = format!("{{\"input\":\"add buy milk {number}\"}}");
    let length = body.len();
    let request = format!(
        "POST /chat/stream HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    connection.write_all(request.as_bytes()).await.unwrap();
}

/// Reads until the response ends with `end`.
async fn receive(connection: &mut TcpStream, buffer: &mut Vec<u8>, end: &[u8]) {
    buffer.clear();
    while !buffer.ends_with(end) {
        let read = connection.read_buf(buffer).await.unwrap();
        assert!(read > 0, "the connection was closed: {}", String::from_utf8_lossy(buffer));
    }
}

fn quantile(times: &mut [Duration], at: f64) -> Duration {
    times.sort();
    times[((times.len() - 1) as f64 * at) as usize]
}
