//! The child that a server runs in: its own process group, a small environment, its error output in the log. When it is
//! ended, everything it started goes with it.

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

use super::guard::Signals;
use super::{Transport, outside};

/// What every child is given of our environment: enough to find its programs, its home and its language.
const BASE: [&str; 8] = ["PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL"];
/// How long a child may take to end by itself once its input is closed, then after it was told to.
const CLOSING: Duration = Duration::from_millis(500);
const GRACE: Duration = Duration::from_secs(2);
/// How long it takes at most until what was killed is gone.
const LAST: Duration = Duration::from_secs(2);
/// What an answer needs from the pipe of a child that has ended.
const DRAIN: Duration = Duration::from_millis(200);

const LONGEST_LINE: usize = 2000;
const LINES_PER_SECOND: u32 = 50;

pub(super) struct Process {
    end: DropGuard,
    task: JoinHandle<Option<ExitStatus>>,
    said: Arc<Mutex<String>>,
}

impl Process {
    /// Starts the child. A connection to it is told when it has ended.
    pub(super) fn start(
        server: &Arc<str>,
        transport: &Transport,
        redactor: &Redactor,
        signals: &Arc<Signals>,
    ) -> Result<((ChildStdin, ChildStdout), Self), String> {
        let Transport::Child { command, args, variables, directory } = transport else {
            return Err("is no program".to_owned());
        };
        let mut started = Command::new(command);
        started.args(args).env_clear().envs(environment(variables)).process_group(0).kill_on_drop(true);
        started.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(directory) = directory {
            started.current_dir(directory);
        }
        let mut child = started.spawn().map_err(|error| format!("could not be started ('{command}': {error})"))?;
        let (Some(input), Some(output), Some(errors), Some(group)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take(), Group::of(&child))
        else {
            return Err("ended while it was started".to_owned());
        };
        let said = Arc::new(Mutex::new(String::new()));
        let log = tokio::spawn(pump(server.clone(), redactor.clone(), errors, said.clone()));
        let end = CancellationToken::new();
        let task = tokio::spawn(watch(child, group, log, signals.clone(), end.clone()));
        Ok(((input, output), Self { end: end.drop_guard(), task, said }))
    }

    /// Ends the child and all it started. Says how it ended if it did so by itself.
    pub(super) async fn end(self) -> Option<String> {
        drop(self.end);
        let status = self.task.await.ok().flatten()?;
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let said = if said.is_empty() { said } else { format!("; its last words: {said}") };
        Some(format!("ended ({status}){said}"))
    }
}

fn environment(variables: &[(String, SecretString)]) -> impl Iterator<Item = (String, String)> {
    let is_base = |name: &str| BASE.contains(&name) || name.starts_with("LC_") || name.starts_with("XDG_");
    let base =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let own = variables.iter().map(|(name, value)| (name.clone(), value.expose_secret().to_owned()));
    base.filter(move |(name, _)| is_base(name)).chain(own)
}

/// The one owner of the child.
async fn watch(
    mut child: Child,
    group: Group,
    mut log: JoinHandle<()>,
    signals: Arc<Signals>,
    end: CancellationToken,
) -> Option<ExitStatus> {
    let mut status = tokio::select! {
        status = child.wait() => status.ok(),
        () = end.cancelled() => None,
    };
    if status.is_some() {
        // Something it started may still hold the pipe, so its end says nothing.
        let _ = timeout(DRAIN, signals.lost()).await;
        signals.lose("ended");
    } else {
        status = timeout(CLOSING, child.wait()).await.ok().and_then(Result::ok);
    }
    group.end(&mut child).await;
    if timeout(DRAIN, &mut log).await.is_err() {
        // Something that left the group still holds the pipe.
        log.abort();
    }
    status
}

/// All processes that a child has started and that have not left its group.
struct Group(Pid);

impl Group {
    fn of(child: &Child) -> Option<Self> {
        Some(Self(Pid::from_raw(i32::try_from(child.id()?).ok()?)))
    }

    async fn end(&self, child: &mut Child) {
        for (signal, patience) in [(Signal::SIGTERM, GRACE), (Signal::SIGKILL, LAST)] {
            if self.send(signal) {
                let since = Instant::now();
                while since.elapsed() < patience && self.is_there(child) {
                    sleep(Duration::from_millis(10)).await;
                }
            }
        }
        let _ = child.wait().await;
    }

    fn is_there(&self, child: &mut Child) -> bool {
        // A child that was not waited for is still there.
        let _ = child.try_wait();
        killpg(self.0, None).is_ok()
    }

    fn send(&self, signal: Signal) -> bool {
        killpg(self.0, signal).is_ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Nothing is left after `end`; without it, nobody had the time.
        self.send(Signal::SIGKILL);
    }
}

/// Brings what the child says on its error output to the log, as much as is good for it.
async fn pump(server: Arc<str>, redactor: Redactor, mut errors: ChildStderr, said: Arc<Mutex<String>>) {
    let mut lines = Lines::default();
    let mut chunk = [0; 4096];
    let mut since = Instant::now();
    let mut count = 0;
    while let Ok(read @ 1..) = errors.read(&mut chunk).await {
        lines.add(&chunk[..read], |line| {
            if since.elapsed() >= Duration::from_secs(1) {
                if count > LINES_PER_SECOND {
                    let lines = count - LINES_PER_SECOND;
                    tracing::warn!(event = "mcp_server_log", server = &*server, left_out = lines);
                }
                (since, count) = (Instant::now(), 0);
            }
            count += 1;
            if count <= LINES_PER_SECOND {
                let line = outside(&redactor, line);
                tracing::info!(event = "mcp_server_log", server = &*server, line);
                *said.lock().unwrap_or_else(PoisonError::into_inner) = line;
            }
        });
    }
}

/// Puts chunks together to lines that are not longer than they may be.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn add(&mut self, chunk: &[u8], mut each: impl FnMut(&str)) {
        for part in chunk.split_inclusive(|&byte| byte == b'\n') {
            let room = LONGEST_LINE.saturating_sub(self.0.len());
            self.0.extend_from_slice(&part[..part.len().min(room)]);
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
    fn a_line_of_the_log_is_cut_and_never_grows() {
        let mut lines = Lines::default();
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
        assert_eq!(seen[2].len(), LONGEST_LINE);
        assert!(lines.0.capacity() <= 2 * LONGEST_LINE);
    }

    #[test]
    fn a_child_gets_little_of_our_environment() {
        let own = [("API_KEY".to_owned(), SecretString::from("x"))];
        let given: Vec<_> = environment(&own).map(|(name, _)| name).collect();
        assert!(given.contains(&"PATH".to_owned()) && given.contains(&"API_KEY".to_owned()));
        assert!(!given.iter().any(|name| name.starts_with("CARGO")), "{given:?}");
    }
}
