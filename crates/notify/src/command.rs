//! Commands: a program of the operator, started without a shell, with the notification on its input and in variables. It
//! gets none of our own variables but those that say where it is and how people speak there.

use std::process::Stdio;
use std::time::Duration;

use model::notification::Notification;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use redact::redact;
use store::outbox::Claimed;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

use crate::channel::Failure;

const LIMIT: Duration = Duration::from_secs(30);
/// How much of what it complains about is kept, and how long is waited for it after its end.
const LAST_WORDS: usize = 500;
const DRAIN: Duration = Duration::from_millis(200);
/// What a program may need to find its way to a person.
const PASSED_ON: &[&str] = &[
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

/// What is started.
#[derive(Clone, Debug)]
pub struct Program {
    pub command: String,
    pub args: Vec<String>,
    /// After this it is killed with all it has started.
    pub limit: Duration,
}

impl Program {
    pub fn new(command: &str, args: Vec<String>) -> Self {
        Self { command: command.to_owned(), args, limit: LIMIT }
    }

    /// Looks for the program where it would be found.
    pub(crate) fn check(&self) -> Result<String, String> {
        let is_there = |path: std::path::PathBuf| path.is_file();
        let found = if self.command.contains('/') {
            is_there(self.command.clone().into())
        } else {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|dir| is_there(dir.join(&self.command)))
        };
        match found {
            true => Ok("the program is there; it was not started".to_owned()),
            false => Err(format!("there is no program {}", self.command)),
        }
    }

    pub(crate) async fn deliver(&self, delivery: &Claimed) -> Result<(), Failure> {
        let mut command = Command::new(&self.command);
        command.args(&self.args).env_clear().envs(passed_on()).envs(variables(delivery)).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let started = command.spawn();
        let mut child = started.map_err(|error| Failure::for_now(format!("it could not be started: {error}")))?;
        let group = Group::of(&child);
        let input = child.stdin.take();
        let errors = child.stderr.take();
        let payload = delivery.payload.clone();
        let said = tokio::spawn(last_words(errors));
        let told = async {
            if let Some(mut input) = input {
                // One that does not care to read is told by its variables.
                let _ = input.write_all(payload.as_bytes()).await;
            }
        };
        let ended = timeout(self.limit, async { tokio::join!(child.wait(), told).0 }).await;
        let Ok(ended) = ended else {
            drop(group);
            let _ = child.wait().await;
            return Err(Failure::for_now(format!(
                "it took longer than {} seconds and was killed",
                self.limit.as_secs()
            )));
        };
        group.leave_alone();
        let status = ended.map_err(|error| Failure::for_now(format!("it was lost: {error}")))?;
        if status.success() {
            return Ok(());
        }
        let words = timeout(DRAIN, said).await.ok().and_then(Result::ok).unwrap_or_default();
        let words = if words.is_empty() { words } else { format!(": {}", redact(&words)) };
        Err(Failure::for_now(format!("it ended with {status}{words}")))
    }
}

/// The end of what it complains about.
async fn last_words(errors: Option<ChildStderr>) -> String {
    let Some(mut errors) = errors else { return String::new() };
    let mut kept = Vec::new();
    let mut chunk = [0; 4096];
    while let Ok(count @ 1..) = errors.read(&mut chunk).await {
        kept.extend_from_slice(&chunk[..count]);
        let excess = kept.len().saturating_sub(LAST_WORDS);
        kept.drain(..excess);
    }
    String::from_utf8_lossy(&kept).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn passed_on() -> impl Iterator<Item = (std::ffi::OsString, std::ffi::OsString)> {
    let wanted = |name: &str| PASSED_ON.contains(&name) || name.starts_with("LC_") || name.starts_with("XDG_");
    std::env::vars_os().filter(move |(name, _)| name.to_str().is_some_and(wanted))
}

fn variables(delivery: &Claimed) -> Vec<(&'static str, String)> {
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

/// A child and all it has started; killed when this is dropped, also with the task that waits.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw))
    }

    /// It has ended by itself; what it left running was meant to be left.
    fn leave_alone(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}
