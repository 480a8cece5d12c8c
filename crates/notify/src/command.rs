//! The command transport: runs a program of the operator without a shell. The program gets the notification on standard
//! input and in environment variables. From the environment of adjutant it gets only a short list of variables.

use std::process::Stdio;
use std::time::Duration;

use model::notification::Notification;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use redact::redact;
use store::outbox::ClaimedDelivery;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

use crate::channel::DeliveryFailure;

/// The default timeout of a command.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// The size of the kept end of standard error, in bytes.
const MAX_STDERR_BYTES: usize = 500;
/// The time to read standard error after the program has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);
/// The environment variables that the program inherits, besides `LC_*` and `XDG_*`.
const INHERITED_VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "TZ",
    "TMPDIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "DBUS_SESSION_BUS_ADDRESS",
];

/// A program that receives notifications.
#[derive(Clone, Debug)]
pub struct CommandTransport {
    pub command: String,
    pub args: Vec<String>,
    /// After this time the program is killed with all its children.
    pub timeout: Duration,
}

impl CommandTransport {
    /// Creates a transport with the default timeout.
    pub fn new(command: &str, args: Vec<String>) -> Self {
        Self { command: command.to_owned(), args, timeout: DEFAULT_TIMEOUT }
    }

    /// Checks that the program is a file, without checking that it is executable. A name with a slash is a path.
    /// Another name is searched in the `PATH` of adjutant. Returns a description. Fails with a message if no file is
    /// found.
    pub(crate) fn check(&self) -> Result<String, String> {
        let exists = |path: std::path::PathBuf| path.is_file();
        let found = if self.command.contains('/') {
            exists(self.command.clone().into())
        } else {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|dir| exists(dir.join(&self.command)))
        };
        match found {
            true => Ok("the program exists; it was not started".to_owned()),
            false => Err(format!("the program {} does not exist", self.command)),
        }
    }

    /// Runs the program in its own process group, with the payload on standard input, and waits for its end. Standard
    /// output is discarded. Input that the program does not read is ignored. Children that remain after its end are
    /// left running.
    ///
    /// All failures are transient: the program cannot be started, exceeds the timeout, ends with an error, or its
    /// status is unknown. After an error status, the message contains the redacted end of standard error, if any. At
    /// the timeout, or if the future is dropped, the program and its children are killed.
    pub(crate) async fn deliver(&self, delivery: &ClaimedDelivery) -> Result<(), DeliveryFailure> {
        let mut command = Command::new(&self.command);
        command
            .args(&self.args)
            .env_clear()
            .envs(inherited_variables())
            .envs(notification_variables(delivery))
            .process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let started = command.spawn();
        let mut child = started
            .map_err(|error| DeliveryFailure::transient(format!("the program could not be started: {error}")))?;
        let group = ProcessGroup::new(&child);
        let input = child.stdin.take();
        let stderr = child.stderr.take();
        let payload = delivery.payload.clone();
        let stderr = tokio::spawn(read_tail(stderr));
        let write_input = async {
            if let Some(mut input) = input {
                // The program may ignore its input, because the variables contain the notification, too.
                let _ = input.write_all(payload.as_bytes()).await;
            }
        };
        let ended = timeout(self.timeout, async { tokio::join!(child.wait(), write_input).0 }).await;
        let Ok(ended) = ended else {
            drop(group);
            let _ = child.wait().await;
            return Err(DeliveryFailure::transient(format!(
                "the program took longer than {} seconds and was killed",
                self.timeout.as_secs()
            )));
        };
        group.release();
        let status = ended
            .map_err(|error| DeliveryFailure::transient(format!("the status of the program is unknown: {error}")))?;
        if status.success() {
            return Ok(());
        }
        let tail = timeout(DRAIN_TIMEOUT, stderr).await.ok().and_then(Result::ok).unwrap_or_default();
        let tail = if tail.is_empty() { tail } else { format!(": {}", redact(&tail)) };
        Err(DeliveryFailure::transient(format!("the program ended with {status}{tail}")))
    }
}

/// Reads standard error to its end or to the first read error. Returns the last [`MAX_STDERR_BYTES`] bytes as one line,
/// with whitespace collapsed and invalid UTF-8 replaced. Returns an empty text without `stderr`.
async fn read_tail(stderr: Option<ChildStderr>) -> String {
    let Some(mut stderr) = stderr else { return String::new() };
    let mut tail = Vec::new();
    let mut chunk = [0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        tail.extend_from_slice(&chunk[..count]);
        let excess = tail.len().saturating_sub(MAX_STDERR_BYTES);
        tail.drain(..excess);
    }
    String::from_utf8_lossy(&tail).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the inherited environment variables.
fn inherited_variables() -> impl Iterator<Item = (std::ffi::OsString, std::ffi::OsString)> {
    let is_inherited =
        |name: &str| INHERITED_VARIABLES.contains(&name) || name.starts_with("LC_") || name.starts_with("XDG_");
    std::env::vars_os().filter(move |(name, _)| name.to_str().is_some_and(is_inherited))
}

/// Returns the environment variables `ADJUTANT_DELIVERY_ID` and `ADJUTANT_NOTIFICATION_…`: id, kind, title, text,
/// creation time, and the ids of task, execution and schedule. Missing ids are empty. NUL characters in title and text
/// become spaces. If the payload is not a notification, returns only the id of the delivery.
fn notification_variables(delivery: &ClaimedDelivery) -> Vec<(&'static str, String)> {
    let mut variables = vec![("ADJUTANT_DELIVERY_ID", delivery.id.to_string())];
    if let Ok(notification) = serde_json::from_str::<Notification>(&delivery.payload) {
        let id = |id: Option<uuid::Uuid>| id.map(|id| id.to_string()).unwrap_or_default();
        variables.extend([
            ("ADJUTANT_NOTIFICATION_ID", notification.id.to_string()),
            ("ADJUTANT_NOTIFICATION_KIND", notification.kind.to_string()),
            ("ADJUTANT_NOTIFICATION_TITLE", notification.title.replace('\0', " ")),
            ("ADJUTANT_NOTIFICATION_TEXT", notification.text.replace('\0', " ")),
            ("ADJUTANT_NOTIFICATION_TASK_ID", id(notification.task_id)),
            ("ADJUTANT_NOTIFICATION_EXECUTION_ID", id(notification.execution_id)),
            ("ADJUTANT_NOTIFICATION_SCHEDULE_ID", id(notification.schedule_id)),
            ("ADJUTANT_NOTIFICATION_CREATED_AT", notification.created_at.to_string()),
        ]);
    }
    variables
}

/// A process and its children. Dropping this kills all of them.
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    /// Returns the group of a child that leads its own process group. Holds nothing if the child has already been
    /// reaped.
    fn new(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw))
    }

    /// Keeps the children alive. The program has ended by itself and has left them running on purpose.
    fn release(mut self) {
        self.0 = None;
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}
