//! The product itself: the real program on a free port with a data directory of its own.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reqwest::{Method, Response};
use serde_json::Value;
use tempfile::TempDir;

/// Where an instance lives and what it is told. Survives the processes that are started on it.
pub struct Home {
    program: PathBuf,
    dir: TempDir,
    variables: Vec<(String, String)>,
    config: String,
}

impl Home {
    pub fn new(program: impl AsRef<Path>) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dir = tempfile::tempdir().unwrap();
        Self { program: program.as_ref().to_owned(), dir, variables: Vec::new(), config: String::new() }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A variable for every program that is started here.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Lines for the configuration file.
    #[must_use]
    pub fn configured(mut self, toml: &str) -> Self {
        self.config.push_str(toml);
        self.write_config(&self.config);
        self
    }

    pub fn write_config(&self, toml: &str) {
        std::fs::write(self.path().join("config.toml"), toml).unwrap();
    }

    /// A command that sees this home and nothing of the machine's own configuration.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap_or_default());
        command.env("ADJUTANT_HOME", self.path()).env("TZ", "UTC").envs(self.variables.iter().cloned());
        command.stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran(self.command(arguments).output().unwrap())
    }

    /// Starts the server and waits until it says where it is.
    pub fn serve(&self) -> Server {
        self.serve_with(&["--listen", "127.0.0.1:0"])
    }

    pub fn serve_with(&self, arguments: &[&str]) -> Server {
        let server = self.start(&[&["serve"], arguments].concat());
        assert!(!server.url.is_empty(), "the server did not start: {}", server.raw_log());
        server
    }

    /// Starts a node that only works and waits until it does. It has an address only where it is given one.
    pub fn work_with(&self, arguments: &[&str]) -> Server {
        self.start(&[&["work"], arguments].concat())
    }

    fn start(&self, arguments: &[&str]) -> Server {
        let mut command = self.command(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let mut errors = child.stderr.take().unwrap();
        let kept = log.clone();
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(n @ 1..) = errors.read(&mut chunk) {
                kept.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk[..n]));
            }
        });
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert!(line.contains("is ready"), "it did not start: {line}{}", log.lock().unwrap());
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap_or_default();
        let url = url.trim_end_matches("/health").to_owned();
        // Keeps the pipe open, as a terminal would.
        std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().unwrap();
        Server { child, url, log, client }
    }
}

/// What a command left behind.
pub struct Ran(Output);

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self(output)
    }
}

impl Ran {
    pub fn code(&self) -> i32 {
        self.0.status.code().unwrap_or(-1)
    }

    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out()).unwrap_or_else(|error| panic!("{error}: {}{}", self.out(), self.err()))
    }

    /// The output of a command that must have succeeded.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code(), 0, "{}{}", self.out(), self.err());
        self.out()
    }
}

/// A running server; killed when dropped.
pub struct Server {
    child: Child,
    pub url: String,
    log: Arc<Mutex<String>>,
    pub client: reqwest::Client,
}

impl Server {
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    pub async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().await.unwrap()
    }

    pub async fn post(&self, path: &str, body: &Value) -> Response {
        self.request(Method::POST, path).json(body).send().await.unwrap()
    }

    /// The entries of the JSON log so far.
    pub fn log(&self) -> Vec<Value> {
        let text = self.log.lock().unwrap();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    pub fn raw_log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits for the first entry of this event: the log is written by another process.
    pub async fn logged(&self, event: &str) -> Value {
        self.wait_for_log(event, |entry| entry["event"] == event).await
    }

    /// All entries of one request, once it has completed.
    pub async fn log_of(&self, request: &str) -> Vec<Value> {
        let of_request = |entry: &Value| entry["request_id"] == request;
        self.wait_for_log(request, |entry| of_request(entry) && entry["event"] == "request_completed").await;
        self.log().into_iter().filter(of_request).collect()
    }

    async fn wait_for_log(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..500 {
            if let Some(entry) = self.log().into_iter().find(&wanted) {
                return entry;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no {what} in the log:\n{}", self.raw_log());
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// Ends it at once, as a power cut would.
    pub fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        self.child.wait().unwrap();
    }

    /// Asks it to stop and gives its exit code.
    pub fn stop(&mut self) -> i32 {
        self.signal(Signal::SIGTERM);
        self.wait()
    }

    /// Waits for its end and gives its exit code.
    pub fn wait(&mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
