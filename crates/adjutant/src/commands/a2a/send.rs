//! `adjutant a2a send`: sends a message and prints the result. The text of artifacts goes to standard output, progress
//! to standard error.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use ::a2a::client::{A2aClient, TaskUpdates};
use ::a2a::types::{
    Artifact, GetTaskRequest, Message, Part, Role, SendMessageConfiguration, SendMessageRequest, SendMessageResponse,
    StreamResponse, Task, TaskState, TaskStatus,
};
use anyhow::Context;
use futures::StreamExt;
use model::Clock;

use super::{connect, exit_error, print_json, show, state_name};
use crate::cli::{GlobalOptions, SendArgs};
use crate::exit::{ExitError, ExitStatus, read_error};
use crate::output;

/// The time between two polls of a task.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The number of consecutive polls that may fail.
const MAX_FAILED_POLLS: usize = 30;
/// The size limit of a file in bytes.
const MAX_FILE_BYTES: u64 = 100 << 20;

/// Sends the message and waits for the result, at most for `--timeout` seconds without the time to connect, or without
/// a limit. After the timeout, the task is not cancelled. An invalid `--timeout` is found after the connection.
///
/// Fails if the message or `--timeout` is invalid, if the agent cannot be reached, or if the task does not complete.
/// With `--no-wait`, a task that still runs is no failure. Fails with [`ExitStatus::Timeout`] if the time is over.
pub(super) async fn run(global: &GlobalOptions, args: &SendArgs) -> anyhow::Result<()> {
    let request = request(args)?;
    let client = connect(global, &args.at).await?;
    let sent = send(global, args, &client, request);
    let Some(seconds) = args.timeout else { return sent.await };
    let limit = Duration::try_from_secs_f64(seconds)
        .map_err(|_| ExitError::new(ExitStatus::Usage, "--timeout must be a number of seconds"))?;
    match tokio::time::timeout(limit, sent).await {
        Ok(ended) => ended,
        Err(_) => Err(ExitError::new(ExitStatus::Timeout, format!("the task did not end within {seconds} s")).into()),
    }
}

/// Sends the request and prints the result. Streams if the agent can, unless `--no-stream` or `--no-wait` is given, or
/// `--json` without `--stream`. Polls the task after a broken stream. Without streaming, polls until the end, unless
/// `--no-wait` is given: then only the id of an unfinished task is printed.
///
/// With `--json`, prints one document, or every event of a stream. Prints a note if `--stream` is given and the agent
/// cannot stream. Fails if the task fails or needs input or an authorization, if a request fails, or if the stream ends
/// without a task.
async fn send(
    global: &GlobalOptions,
    args: &SendArgs,
    client: &A2aClient,
    request: SendMessageRequest,
) -> anyhow::Result<()> {
    let can_stream = client.card().capabilities.streaming == Some(true);
    if args.stream && !can_stream {
        output::note("this agent does not support streaming; waiting for the end");
    }
    // Programs get one document unless they ask for a stream.
    let streams = can_stream && !args.no_stream && !args.no_wait && (args.stream || !global.json);
    let mut printer = A2aPrinter { events: global.json && args.stream, quiet: global.json, ..A2aPrinter::default() };
    if streams {
        let updates = client.stream(request).await.map_err(exit_error)?;
        if let Some(ended) = printer.follow(updates).await? {
            return ended;
        }
        let Some(id) = printer.task.clone() else {
            return Err(
                ExitError::new(ExitStatus::Unreachable, "the agent closed the connection without a response").into()
            );
        };
        let task = wait(client, &id).await?;
        return printer.update(StreamResponse::Task(task))?.unwrap_or(Ok(()));
    }
    let mut sent = client.send(request).await.map_err(exit_error)?;
    if let SendMessageResponse::Task(task) = &sent
        && !args.no_wait
        && !has_ended(&task.status)
    {
        output::progress(&format!("task {} is {}", task.id, state_name(&task.status.state)));
        sent = SendMessageResponse::Task(wait(client, &task.id).await?);
    }
    if global.json {
        print_json(&sent)?;
        return match sent {
            SendMessageResponse::Task(task) => check_end(&task.status),
            SendMessageResponse::Message(_) => Ok(()),
        };
    }
    match sent {
        SendMessageResponse::Task(task) if args.no_wait && !has_ended(&task.status) => output::print_line(&task.id),
        SendMessageResponse::Task(task) => printer.update(StreamResponse::Task(task))?.unwrap_or(Ok(())),
        SendMessageResponse::Message(message) => printer.update(StreamResponse::Message(message))?.unwrap_or(Ok(())),
    }
}

/// Polls until the task has ended or needs input or an authorization, and returns it. Fails after more than
/// [`MAX_FAILED_POLLS`] consecutive transient errors, and at once for other errors.
async fn wait(client: &A2aClient, id: &str) -> anyhow::Result<Task> {
    let mut failures = 0;
    loop {
        let request = GetTaskRequest { id: id.to_owned(), history_length: Some(0), tenant: None };
        match client.get(request).await {
            Ok(task) if has_ended(&task.status) => return Ok(task),
            Ok(_) => failures = 0,
            Err(error) if error.is_transient() && failures < MAX_FAILED_POLLS => failures += 1,
            Err(error) => return Err(exit_error(error).into()),
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Returns true if the task is in a final state or cannot continue without input or an authorization.
fn has_ended(status: &TaskStatus) -> bool {
    status.state.is_terminal() || matches!(status.state, TaskState::InputRequired | TaskState::AuthRequired)
}

/// Fails with `Failed` if the task failed, was rejected or cancelled, with `ConfirmationNeeded` if it needs input, and
/// with `NotAuthorised` if it needs an authorization. The message of the status is part of the error. A task that
/// completed or still runs is no failure.
fn check_end(status: &TaskStatus) -> anyhow::Result<()> {
    let message = status.message.as_ref().map(show::one_line).unwrap_or_default();
    let with_message = |end: &str| if message.is_empty() { end.to_owned() } else { format!("{end}: {message}") };
    let (code, message) = match status.state {
        TaskState::Failed => (ExitStatus::Failed, with_message("the task failed")),
        TaskState::Rejected => (ExitStatus::Failed, with_message("the agent rejected the task")),
        TaskState::Canceled => (ExitStatus::Failed, with_message("the task was cancelled")),
        TaskState::InputRequired => {
            (ExitStatus::ConfirmationNeeded, with_message("the agent needs input (answer with --task)"))
        }
        TaskState::AuthRequired => (ExitStatus::NotAuthorised, with_message("the agent needs an authorization")),
        _ => return Ok(()),
    };
    Err(ExitError::new(code, message).into())
}

/// Prints updates, each part of an artifact once.
#[derive(Default)]
struct A2aPrinter {
    /// Print every event as JSON.
    events: bool,
    /// Print no text and no progress.
    quiet: bool,
    /// The id of the task, once known.
    task: Option<String>,
    /// The printed text by artifact id.
    printed: HashMap<String, String>,
    /// The state of the last status.
    state: Option<TaskState>,
    /// The printed text does not end with a line break.
    within_line: bool,
}

impl A2aPrinter {
    /// Prints updates and returns the outcome of the command. Returns none if the stream ended before the task did.
    /// Also returns none after a transient error if the id of the task is known; the error is shown as progress. Fails
    /// on every other error, and if the output fails.
    async fn follow(&mut self, mut updates: TaskUpdates) -> anyhow::Result<Option<anyhow::Result<()>>> {
        while let Some(update) = updates.next().await {
            match update {
                Ok(update) => {
                    if let Some(ended) = self.update(update)? {
                        return Ok(Some(ended));
                    }
                }
                Err(error) if error.is_transient() && self.task.is_some() => {
                    output::progress(&format!("{error}; polling the task"));
                    return Ok(None);
                }
                Err(error) => return Err(exit_error(error).into()),
            }
        }
        Ok(None)
    }

    /// Prints an update, as JSON if `events` is set. Returns the outcome of the command if this is the last update: a
    /// message, or a task that has ended or needs input or an authorization. Fails if the output fails.
    fn update(&mut self, update: StreamResponse) -> anyhow::Result<Option<anyhow::Result<()>>> {
        if self.events {
            print_json(&update)?;
        }
        match update {
            StreamResponse::Message(message) => {
                self.print(&show::content(&message.parts))?;
                self.end_line()?;
                Ok(Some(Ok(())))
            }
            StreamResponse::Task(task) => {
                self.begin(&task.id);
                for artifact in task.artifacts.iter().flatten() {
                    self.artifact(artifact, false)?;
                }
                self.status(&task.status)
            }
            StreamResponse::ArtifactUpdate(event) => {
                self.begin(&event.task_id);
                self.artifact(&event.artifact, event.append == Some(true))?;
                Ok(None)
            }
            StreamResponse::StatusUpdate(event) => {
                self.begin(&event.task_id);
                self.status(&event.status)
            }
        }
    }

    /// Remembers the first id that is not empty as the id of the task, and announces it unless `quiet` is set. Ignores
    /// later ids.
    fn begin(&mut self, id: &str) {
        if self.task.is_none() && !id.is_empty() {
            self.task = Some(id.to_owned());
            if !self.quiet {
                output::progress(&format!("task {id}"));
            }
        }
    }

    /// Prints the new part of an artifact. `append` means that the event contains only the new part. Without it, the
    /// artifact is compared with its printed text, and printed again if it does not continue that text. A new artifact
    /// starts on a new line.
    fn artifact(&mut self, artifact: &Artifact, append: bool) -> anyhow::Result<()> {
        let text = show::content(&artifact.parts);
        let before = self.printed.get(&artifact.artifact_id).cloned();
        let (new, whole) = match &before {
            Some(before) if append => (text.clone(), format!("{before}{text}")),
            Some(before) => (text.strip_prefix(before.as_str()).unwrap_or(&text).to_owned(), text.clone()),
            None => (text.clone(), text.clone()),
        };
        if before.is_none() {
            self.end_line()?;
        }
        self.printed.insert(artifact.artifact_id.clone(), whole);
        self.print(&new)
    }

    /// Prints a changed state or a message as progress, unless `quiet` is set. Prints nothing for a failed task or a
    /// request for input, because the error contains the message. For a completed task without artifacts, prints no
    /// state, and the message as the answer.
    ///
    /// Returns the outcome of the command, as of [`check_end`], if the task has ended or needs input or an
    /// authorization, else none. Fails if the output fails.
    fn status(&mut self, status: &TaskStatus) -> anyhow::Result<Option<anyhow::Result<()>>> {
        let ended = has_ended(status);
        let message = status.message.as_ref().map(show::one_line).unwrap_or_default();
        let changed = self.state.as_ref() != Some(&status.state) || !message.is_empty();
        self.state = Some(status.state.clone());
        if status.state == TaskState::Completed && self.printed.is_empty() {
            // Without artifacts, the message is the answer.
            let answer = status.message.as_ref().map(|message| show::content(&message.parts)).unwrap_or_default();
            self.print(&answer)?;
        } else if changed && !self.quiet && !matches!(status.state, TaskState::Failed | TaskState::InputRequired) {
            let state = state_name(&status.state);
            output::progress(&if message.is_empty() { state } else { format!("{state}: {message}") });
        }
        if !ended {
            return Ok(None);
        }
        self.end_line()?;
        Ok(Some(check_end(status)))
    }

    /// Prints text to standard output, unless `quiet` is set.
    fn print(&mut self, text: &str) -> anyhow::Result<()> {
        if self.quiet || text.is_empty() {
            return Ok(());
        }
        self.within_line = !text.ends_with('\n');
        output::print(text.as_bytes())
    }

    /// Prints a line break if the printed text does not end with one.
    fn end_line(&mut self) -> anyhow::Result<()> {
        if std::mem::take(&mut self.within_line) { output::print(b"\n") } else { Ok(()) }
    }
}

/// Builds the message from the text (`-` reads standard input), `--data` and `--file`, in this order. `\n` at the end
/// of standard input is removed. Asks for no history. Fails with a usage error if all three are absent, or if data is
/// not JSON. Also fails if standard input is not UTF-8, or if a file cannot be read or is too large.
fn request(args: &SendArgs) -> anyhow::Result<SendMessageRequest> {
    let mut parts = Vec::new();
    match args.message.as_deref() {
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("failed to read standard input")?;
            parts.push(Part::text(text.trim_end_matches('\n')));
        }
        Some(text) => parts.push(Part::text(text)),
        None => {}
    }
    for given in &args.data {
        let value = serde_json::from_str(given)
            .map_err(|error| ExitError::new(ExitStatus::Usage, format!("--data is not JSON: {error}")))?;
        parts.push(Part::data(value));
    }
    for path in &args.file {
        parts.push(file(path)?);
    }
    if parts.is_empty() {
        return Err(ExitError::new(ExitStatus::Usage, "nothing to send: give a MESSAGE, --data or --file").into());
    }
    let message = Message {
        message_id: Clock::system().id().to_string(),
        context_id: args.context.clone(),
        task_id: args.task.clone(),
        role: Role::User,
        parts,
        metadata: None,
        extensions: None,
        reference_task_ids: None,
    };
    let configuration = SendMessageConfiguration {
        accepted_output_modes: None,
        task_push_notification_config: None,
        history_length: Some(0),
        return_immediately: Some(args.no_wait),
    };
    Ok(SendMessageRequest { message, configuration: Some(configuration), metadata: None, tenant: None })
}

/// Reads a file into a part. The media type follows from the extension, `application/octet-stream` if it is unknown.
/// Fails if the file cannot be read or is larger than [`MAX_FILE_BYTES`].
fn file(path: &Path) -> anyhow::Result<Part> {
    let size = std::fs::metadata(path).map_err(|error| read_error(path, &error))?.len();
    if size > MAX_FILE_BYTES {
        return Err(ExitError::new(
            ExitStatus::Refused,
            format!("{} is larger than {MAX_FILE_BYTES} bytes", path.display()),
        )
        .into());
    }
    let bytes = std::fs::read(path).map_err(|error| read_error(path, &error))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default().to_lowercase();
    let media_type = match extension.as_str() {
        "txt" | "log" => "text/plain",
        "md" => "text/markdown",
        "html" | "htm" => "text/html",
        "csv" => "text/csv",
        "json" => "application/json",
        "pdf" => "application/pdf",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "svg" => "image/svg+xml",
        "zip" => "application/zip",
        _ => "application/octet-stream",
    };
    Ok(Part::raw(bytes).with_filename(name).with_media_type(media_type))
}
