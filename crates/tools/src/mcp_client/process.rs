//! The child process of a server. It has its own process group and a minimal environment, and its standard error is
//! logged. When it is stopped, its whole process group ends.

use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use redact::Redactor;
use secrecy::{ExposeSecret, SecretString};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::guard::{ConnectionSignals, EXITED};
use super::{McpTransport, quote};

/// The environment variables that every child inherits, in addition to `LC_*` and `XDG_*`.
const INHERITED_VARIABLES: [&str; 8] = ["PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL"];
/// The time for the child to exit after its input is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);
/// The time for the process group to exit after SIGTERM.
const TERM_TIMEOUT: Duration = Duration::from_secs(2);
/// The time for the process group to exit after SIGKILL.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);
/// The time to read the remaining output of a child that has exited.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);

const MAX_LINE_BYTES: usize = 2000;
const MAX_LINES_PER_SECOND: u32 = 50;

/// A running child process. Dropping it ends the child.
pub(super) struct ServerProcess {
    stop: DropGuard,
    task: JoinHandle<Option<ExitStatus>>,
    last_line: Arc<Mutex<String>>,
}

impl ServerProcess {
    /// Starts the child in its own process group, with the environment of [`environment`]. Returns its pipes. Logs its
    /// standard error. Signals the connection when the child exits. Fails with a message if the transport is not a
    /// child, the child cannot be started, or it exits at once.
    pub(super) fn start(
        server: &Arc<str>,
        transport: &McpTransport,
        redactor: &Redactor,
        signals: &Arc<ConnectionSignals>,
    ) -> Result<((ChildStdin, ChildStdout), Self), String> {
        let McpTransport::Child { command, args, variables, directory } = transport else {
            return Err("is not a child process".to_owned());
        };
        let mut process = Command::new(command);
        process.args(args).env_clear().envs(environment(variables)).process_group(0).kill_on_drop(true);
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(directory) = directory {
            process.current_dir(directory);
        }
        let mut child = process.spawn().map_err(|error| format!("could not be started ('{command}': {error})"))?;
        let (Some(input), Some(output), Some(errors), Some(group)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take(), ServerProcessGroup::new(&child))
        else {
            return Err("exited during the start".to_owned());
        };
        let last_line = Arc::new(Mutex::new(String::new()));
        let log = tokio::spawn(log_stderr(server.clone(), redactor.clone(), errors, last_line.clone()));
        let stop = CancellationToken::new();
        let task = tokio::spawn(supervise(child, group, log, signals.clone(), stop.clone()));
        Ok(((input, output), Self { stop: stop.drop_guard(), task, last_line }))
    }

    /// Ends the process group and waits for it. Returns the exit status and the last line on stderr if the child exited
    /// without a signal from us. Returns `None` otherwise.
    pub(super) async fn end(self) -> Option<String> {
        drop(self.stop);
        let status = self.task.await.ok().flatten()?;
        let last_line = self.last_line.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let stderr = if last_line.is_empty() { last_line } else { format!("; last line on stderr: {last_line}") };
        Some(format!("exited ({status}){stderr}"))
    }
}

/// Returns the variables of the child: [`INHERITED_VARIABLES`], `LC_*` and `XDG_*` of this process, then the configured
/// ones, which have priority. Leaves out inherited variables that are not valid Unicode.
fn environment(variables: &[(String, SecretString)]) -> impl Iterator<Item = (String, String)> {
    let is_inherited =
        |name: &str| INHERITED_VARIABLES.contains(&name) || name.starts_with("LC_") || name.starts_with("XDG_");
    let inherited =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let own = variables.iter().map(|(name, value)| (name.clone(), value.expose_secret().to_owned()));
    inherited.filter(move |(name, _)| is_inherited(name)).chain(own)
}

/// Owns the child until it exits or `stop` is cancelled, then ends its process group and the log of its standard error.
/// If the child exits first, ends the connection with the reason [`EXITED`]. After `stop`, the child has
/// [`CLOSE_TIMEOUT`] to exit by itself. Returns the status of a child that exited without a signal from us.
async fn supervise(
    mut child: Child,
    group: ServerProcessGroup,
    mut log: JoinHandle<()>,
    signals: Arc<ConnectionSignals>,
    stop: CancellationToken,
) -> Option<ExitStatus> {
    let mut status = tokio::select! {
        status = child.wait() => status.ok(),
        () = stop.cancelled() => None,
    };
    if status.is_some() {
        // A process that the child started may still hold the pipe, so the pipe may stay open.
        let _ = timeout(DRAIN_TIMEOUT, signals.lost()).await;
        signals.close_with_reason(EXITED);
    } else {
        status = timeout(CLOSE_TIMEOUT, child.wait()).await.ok().and_then(Result::ok);
    }
    group.terminate(&mut child).await;
    if timeout(DRAIN_TIMEOUT, &mut log).await.is_err() {
        // A process that left the group still holds the pipe.
        log.abort();
    }
    status
}

/// The process group of a child: all processes that it started and that have not left the group.
struct ServerProcessGroup(Pid);

impl ServerProcessGroup {
    fn new(child: &Child) -> Option<Self> {
        Some(Self(Pid::from_raw(i32::try_from(child.id()?).ok()?)))
    }

    /// Sends SIGTERM to the group, then SIGKILL if it does not exit within [`TERM_TIMEOUT`]. Waits for the child itself
    /// without a time limit. Has no effect on a group without members.
    async fn terminate(&self, child: &mut Child) {
        for (signal, exit_timeout) in [(Signal::SIGTERM, TERM_TIMEOUT), (Signal::SIGKILL, KILL_TIMEOUT)] {
            if self.send(signal) {
                let since = Instant::now();
                while since.elapsed() < exit_timeout && self.is_running(child) {
                    sleep(Duration::from_millis(10)).await;
                }
            }
        }
        let _ = child.wait().await;
    }

    /// Returns true if the group still has a member. Reaps the child if it has exited.
    fn is_running(&self, child: &mut Child) -> bool {
        // A child that was not waited for still counts as a member of the group.
        let _ = child.try_wait();
        killpg(self.0, None).is_ok()
    }

    fn send(&self, signal: Signal) -> bool {
        killpg(self.0, signal).is_ok()
    }
}

impl Drop for ServerProcessGroup {
    fn drop(&mut self) {
        // Has no effect after `terminate`.
        self.send(Signal::SIGKILL);
    }
}

/// Logs the complete lines on the standard error of the child until its end, redacted. Only the first
/// [`MAX_LINES_PER_SECOND`] lines of a second are logged. The number of the rest is logged with the first line after
/// that second, and not at all if no line follows. Stores the last logged line in `last_line`. A last line without an
/// end is not logged.
async fn log_stderr(server: Arc<str>, redactor: Redactor, mut errors: ChildStderr, last_line: Arc<Mutex<String>>) {
    let mut lines = LogLines::default();
    let mut chunk = [0; 4096];
    let mut since = Instant::now();
    let mut count = 0;
    while let Ok(read @ 1..) = errors.read(&mut chunk).await {
        lines.add(&chunk[..read], |line| {
            if since.elapsed() >= Duration::from_secs(1) {
                if count > MAX_LINES_PER_SECOND {
                    let lines = count - MAX_LINES_PER_SECOND;
                    tracing::warn!(event = "mcp_server_log", server = &*server, left_out = lines);
                }
                (since, count) = (Instant::now(), 0);
            }
            count += 1;
            if count <= MAX_LINES_PER_SECOND {
                let line = quote(&redactor, line);
                tracing::info!(event = "mcp_server_log", server = &*server, line);
                *last_line.lock().unwrap_or_else(PoisonError::into_inner) = line;
            }
        });
    }
}

/// Assembles chunks into lines of a limited length.
#[derive(Default)]
struct LogLines(Vec<u8>);

impl LogLines {
    /// Adds a chunk and calls `each` for every complete line that is not blank, without white space around it. Cuts
    /// lines at [`MAX_LINE_BYTES`]. Keeps an incomplete line for the next chunk. Invalid UTF-8 is replaced.
    fn add(&mut self, chunk: &[u8], mut each: impl FnMut(&str)) {
        for part in chunk.split_inclusive(|&byte| byte == b'\n') {
            let available = MAX_LINE_BYTES.saturating_sub(self.0.len());
            self.0.extend_from_slice(&part[..part.len().min(available)]);
            if part.ends_with(b"\n") {
                let line = String::from_utf8_lossy(&self.0);
                let line = line.trim();
                if !line.is_empty() {
                    each(line);
                }
                self.0.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_are_truncated() {
        let mut lines = LogLines::default();
        let mut seen = Vec::new();
        let mut add = |chunk: &[u8]| lines.add(chunk, |line| seen.push(line.to_owned()));
        add(b"one\ntwo");
        add(b" more\n\n \n");
        for _ in 0..100 {
            add(&[b'x'; 1000]);
        }
        add(b"\nlast\n");
        assert_eq!(seen.len(), 4);
        assert_eq!((seen[0].as_str(), seen[1].as_str(), seen[3].as_str()), ("one", "two more", "last"));
        assert_eq!(seen[2].len(), MAX_LINE_BYTES);
        assert!(lines.0.capacity() <= 2 * MAX_LINE_BYTES);
    }

    #[test]
    fn a_child_inherits_only_a_few_variables() {
        let own = [("API_KEY".to_owned(), SecretString::from("x"))];
        let given: Vec<_> = environment(&own).map(|(name, _)| name).collect();
        assert!(given.contains(&"PATH".to_owned()) && given.contains(&"API_KEY".to_owned()));
        assert!(!given.iter().any(|name| name.starts_with("CARGO")), "{given:?}");
    }
}
