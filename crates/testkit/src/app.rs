//! Runs the real program on a free port with its own data directory.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reqwest::{Method, Response};
use serde_json::Value;
use tempfile::TempDir;

/// The data directory, environment and configuration of an instance. Outlives the processes that use it.
pub struct Home {
    program: PathBuf,
    dir: TempDir,
    /// A directory that agents can see. The data directory is hidden from them.
    shared: TempDir,
    variables: Vec<(String, String)>,
    config: String,
    /// The soft and the hard limit of open files, if they are not those of the test.
    open_files: Option<(u64, u64)>,
}

impl Home {
    /// Creates an empty data directory for this program.
    pub fn new(program: impl AsRef<Path>) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dir = tempfile::tempdir().unwrap();
        let shared = tempfile::tempdir().unwrap();
        // A server of another user can use it too.
        std::fs::set_permissions(shared.path(), PermissionsExt::from_mode(0o777)).unwrap();
        Self {
            program: program.as_ref().to_owned(),
            dir,
            shared,
            variables: Vec::new(),
            config: String::new(),
            open_files: None,
        }
    }

    /// Returns the path of the data directory.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the path of a directory that agents can see.
    pub fn shared(&self) -> &Path {
        self.shared.path()
    }

    /// Sets an environment variable for all processes.
    #[must_use]
    pub fn with_env(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the soft and the hard limit of open files for all processes.
    #[must_use]
    pub fn with_open_files(mut self, soft: u64, hard: u64) -> Self {
        self.open_files = Some((soft, hard));
        self
    }

    /// Adds lines to the configuration file.
    #[must_use]
    pub fn with_config(mut self, toml: &str) -> Self {
        self.config.push_str(toml);
        self.write_config(&self.config);
        self
    }

    /// Replaces the configuration file.
    pub fn write_config(&self, toml: &str) {
        std::fs::write(self.path().join("config.toml"), toml).unwrap();
    }

    /// Returns a command that uses this directory and ignores the configuration of the machine.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = match self.open_files {
            None => Command::new(&self.program),
            Some((soft, hard)) => {
                let mut shell = Command::new("/bin/sh");
                let script = format!("ulimit -Sn {soft} && ulimit -Hn {hard} && exec \"$0\" \"$@\"");
                shell.args(["-c", &script]).arg(&self.program);
                shell
            }
        };
        command
            .args(arguments)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap_or_default());
        command.env("ADJUTANT_HOME", self.path()).env("TZ", "UTC").envs(self.variables.iter().cloned());
        command.stdin(Stdio::null());
        command
    }

    /// Runs a command to its end and returns its output.
    pub fn run(&self, arguments: &[&str]) -> CommandOutput {
        CommandOutput(self.command(arguments).output().unwrap())
    }

    /// Starts the server on a free port and waits until it is ready.
    pub fn serve(&self) -> Server {
        self.serve_with(&["--listen", "127.0.0.1:0"])
    }

    /// Starts the server with these arguments and waits until it is ready.
    pub fn serve_with(&self, arguments: &[&str]) -> Server {
        let server = self.start(&[&["serve"], arguments].concat());
        assert!(!server.url.is_empty(), "the server did not start: {}", server.raw_log());
        server
    }

    /// Starts a worker node and waits until it is ready. It has a URL only if the arguments set a listen address.
    pub fn work_with(&self, arguments: &[&str]) -> Server {
        self.start(&[&["work"], arguments].concat())
    }

    fn start(&self, arguments: &[&str]) -> Server {
        let mut command = self.command(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let mut errors = child.stderr.take().unwrap();
        let collected = log.clone();
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(n @ 1..) = errors.read(&mut chunk) {
                collected.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk[..n]));
            }
        });
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert!(line.contains("is ready"), "the process did not start: {line}{}", log.lock().unwrap());
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap_or_default();
        let url = url.trim_end_matches("/health").to_owned();
        // Keeps the pipe open, like a terminal.
        std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().unwrap();
        Server { child, url, log, client }
    }
}

/// The output and exit status of a command.
pub struct CommandOutput(Output);

impl From<Output> for CommandOutput {
    fn from(output: Output) -> Self {
        Self(output)
    }
}

impl CommandOutput {
    /// Returns the exit code, or -1 if a signal ended the process.
    pub fn code(&self) -> i32 {
        self.0.status.code().unwrap_or(-1)
    }

    /// Returns the standard output.
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    /// Returns the standard error.
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    /// Returns the standard output as JSON. Panics if it is not valid JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out()).unwrap_or_else(|error| panic!("{error}: {}{}", self.out(), self.err()))
    }

    /// Returns the standard output. Panics if the command failed.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code(), 0, "{}{}", self.out(), self.err());
        self.out()
    }
}

/// A running server. It is killed when dropped.
pub struct Server {
    child: Child,
    pub url: String,
    log: Arc<Mutex<String>>,
    pub client: reqwest::Client,
}

impl Server {
    /// Creates a request to a path of the server.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    /// Sends a GET request and returns the response.
    pub async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().await.unwrap()
    }

    /// Sends a POST request with a JSON body and returns the response.
    pub async fn post(&self, path: &str, body: &Value) -> Response {
        self.request(Method::POST, path).json(body).send().await.unwrap()
    }

    /// Returns the entries of the JSON log so far.
    pub fn log(&self) -> Vec<Value> {
        let text = self.log.lock().unwrap();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Returns the text of the log so far.
    pub fn raw_log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits for a log entry with this event and returns the first one. Panics after 5 seconds.
    pub async fn wait_for_event(&self, event: &str) -> Value {
        self.wait_for_log(event, |entry| entry["event"] == event).await
    }

    /// Waits for the end of a request and returns all of its log entries.
    pub async fn request_log(&self, request: &str) -> Vec<Value> {
        let of_request = |entry: &Value| entry["request_id"] == request;
        self.wait_for_log(request, |entry| of_request(entry) && entry["event"] == "request_completed").await;
        self.log().into_iter().filter(of_request).collect()
    }

    async fn wait_for_log(&self, name: &str, matches: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..500 {
            if let Some(entry) = self.log().into_iter().find(&matches) {
                return entry;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no {name} in the log:\n{}", self.raw_log());
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// Kills the process without a shutdown, like a power failure.
    pub fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        self.child.wait().unwrap();
    }

    /// Stops the process with SIGTERM and returns its exit code.
    pub fn stop(&mut self) -> i32 {
        self.signal(Signal::SIGTERM);
        self.wait()
    }

    /// Waits for the end of the process and returns its exit code.
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
