//! `adjutant a2a send`: a message, and what comes of it: the text of artifacts on standard output, how it goes beside it.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use ::a2a::client::{Client, Error, News};
use ::a2a::types::{
    Artifact, GetTaskRequest, Message, Part, Role, SendMessageConfiguration, SendMessageRequest, SendMessageResponse,
    StreamResponse, Task, TaskState, TaskStatus,
};
use anyhow::Context;
use futures::StreamExt;
use model::Clock;

use super::{connect, exit, json, show, word};
use crate::cli::{A2aMessage, Global};
use crate::exit::{Code, Exit, unreadable};
use crate::output;

/// Between two questions how a task is.
const PAUSE: Duration = Duration::from_secs(1);
/// How often in a row an agent may be out of reach meanwhile.
const TRIES: usize = 30;
/// The largest file, in bytes.
const LARGEST: u64 = 100 << 20;

pub(super) async fn run(global: &Global, order: &A2aMessage) -> anyhow::Result<()> {
    let request = request(order)?;
    let client = connect(global, &order.at).await?;
    let sent = carry_out(global, order, &client, request);
    let Some(seconds) = order.timeout else { return sent.await };
    let limit = Duration::try_from_secs_f64(seconds)
        .map_err(|_| Exit::new(Code::Usage, "--timeout must be a number of seconds"))?;
    match tokio::time::timeout(limit, sent).await {
        Ok(ended) => ended,
        Err(_) => Err(Exit::new(Code::Timeout, format!("it did not end within {seconds} s")).into()),
    }
}

async fn carry_out(
    global: &Global,
    order: &A2aMessage,
    client: &Client,
    request: SendMessageRequest,
) -> anyhow::Result<()> {
    let can = client.card().capabilities.streaming == Some(true);
    if order.stream && !can {
        output::note("this agent does not stream: its end is waited for");
    }
    // One answer is easier to read for programs than many events.
    let streams = can && !order.no_stream && !order.no_wait && (order.stream || !global.json);
    let mut printer = Printer { events: global.json && order.stream, quiet: global.json, ..Printer::default() };
    if streams {
        let news = client.stream(request).await.map_err(exit)?;
        if let Some(ended) = printer.follow(news).await? {
            return ended;
        }
        let Some(id) = printer.task.clone() else {
            return Err(Exit::new(Code::Unreachable, "the agent went away before it said anything").into());
        };
        let task = wait(client, &id).await?;
        return printer.hear(StreamResponse::Task(task))?.unwrap_or(Ok(()));
    }
    let mut sent = client.send(request).await.map_err(exit)?;
    if let SendMessageResponse::Task(task) = &sent
        && !order.no_wait
        && !has_ended(&task.status)
    {
        output::aside(&format!("task {} is {}", task.id, word(&task.status.state)));
        sent = SendMessageResponse::Task(wait(client, &task.id).await?);
    }
    if global.json {
        json(&sent)?;
        return match sent {
            SendMessageResponse::Task(task) => verdict(&task.status),
            SendMessageResponse::Message(_) => Ok(()),
        };
    }
    match sent {
        SendMessageResponse::Task(task) if order.no_wait && !has_ended(&task.status) => output::say(&task.id),
        SendMessageResponse::Task(task) => printer.hear(StreamResponse::Task(task))?.unwrap_or(Ok(())),
        SendMessageResponse::Message(message) => printer.hear(StreamResponse::Message(message))?.unwrap_or(Ok(())),
    }
}

/// Asks until the task has ended or wants something.
async fn wait(client: &Client, id: &str) -> anyhow::Result<Task> {
    let mut lost = 0;
    loop {
        let request = GetTaskRequest { id: id.to_owned(), history_length: Some(0), tenant: None };
        match client.get(request).await {
            Ok(task) if has_ended(&task.status) => return Ok(task),
            Ok(_) => lost = 0,
            Err(error) if error.is_transient() && lost < TRIES => lost += 1,
            Err(error) => return Err(exit(error).into()),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn has_ended(status: &TaskStatus) -> bool {
    status.state.is_terminal() || matches!(status.state, TaskState::InputRequired | TaskState::AuthRequired)
}

/// How the command ends.
fn verdict(status: &TaskStatus) -> anyhow::Result<()> {
    let said = status.message.as_ref().map(show::words).unwrap_or_default();
    let because = |what: &str| if said.is_empty() { what.to_owned() } else { format!("{what}: {said}") };
    let (code, message) = match status.state {
        TaskState::Failed => (Code::Failed, because("the task failed")),
        TaskState::Rejected => (Code::Failed, because("the agent does not want to do this")),
        TaskState::Canceled => (Code::Failed, because("the task was cancelled")),
        TaskState::InputRequired => (Code::ConfirmationNeeded, because("the agent asks (answer with --task)")),
        TaskState::AuthRequired => (Code::NotAuthorised, because("the agent needs to be let in somewhere first")),
        _ => return Ok(()),
    };
    Err(Exit::new(code, message).into())
}

/// What was printed so far.
#[derive(Default)]
struct Printer {
    /// Every event is printed as JSON.
    events: bool,
    /// Nothing is said beside the data.
    quiet: bool,
    task: Option<String>,
    told: HashMap<String, String>,
    state: Option<TaskState>,
    within_line: bool,
}

impl Printer {
    /// Prints what is told. Nothing, where the stream broke before the end.
    async fn follow(&mut self, mut news: News) -> anyhow::Result<Option<anyhow::Result<()>>> {
        while let Some(update) = news.next().await {
            match update {
                Ok(update) => {
                    if let Some(ended) = self.hear(update)? {
                        return Ok(Some(ended));
                    }
                }
                Err(error) if may_be_looked_for(&error) && self.task.is_some() => {
                    output::aside(&format!("{error}; the task is looked for"));
                    return Ok(None);
                }
                Err(error) => return Err(exit(error).into()),
            }
        }
        Ok(None)
    }

    /// The end of the command, where this is the end.
    fn hear(&mut self, update: StreamResponse) -> anyhow::Result<Option<anyhow::Result<()>>> {
        if self.events {
            json(&update)?;
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

    fn begin(&mut self, id: &str) {
        if self.task.is_none() && !id.is_empty() {
            self.task = Some(id.to_owned());
            if !self.quiet {
                output::aside(&format!("task {id}"));
            }
        }
    }

    /// Only what is new of it.
    fn artifact(&mut self, artifact: &Artifact, append: bool) -> anyhow::Result<()> {
        let text = show::content(&artifact.parts);
        let before = self.told.get(&artifact.artifact_id).cloned();
        let (new, whole) = match &before {
            Some(before) if append => (text.clone(), format!("{before}{text}")),
            Some(before) => (text.strip_prefix(before.as_str()).unwrap_or(&text).to_owned(), text.clone()),
            None => (text.clone(), text.clone()),
        };
        if before.is_none() {
            self.end_line()?;
        }
        self.told.insert(artifact.artifact_id.clone(), whole);
        self.print(&new)
    }

    fn status(&mut self, status: &TaskStatus) -> anyhow::Result<Option<anyhow::Result<()>>> {
        let ended = has_ended(status);
        let said = status.message.as_ref().map(show::words).unwrap_or_default();
        let changed = self.state.as_ref() != Some(&status.state) || !said.is_empty();
        self.state = Some(status.state.clone());
        if status.state == TaskState::Completed && self.told.is_empty() {
            // Where there is nothing else, this is the answer.
            let answer = status.message.as_ref().map(|message| show::content(&message.parts)).unwrap_or_default();
            self.print(&answer)?;
        } else if changed && !self.quiet && !matches!(status.state, TaskState::Failed | TaskState::InputRequired) {
            let state = word(&status.state);
            output::aside(&if said.is_empty() { state } else { format!("{state}: {said}") });
        }
        if !ended {
            return Ok(None);
        }
        self.end_line()?;
        Ok(Some(verdict(status)))
    }

    fn print(&mut self, text: &str) -> anyhow::Result<()> {
        if self.quiet || text.is_empty() {
            return Ok(());
        }
        self.within_line = !text.ends_with('\n');
        output::put(text.as_bytes())
    }

    fn end_line(&mut self) -> anyhow::Result<()> {
        if std::mem::take(&mut self.within_line) { output::put(b"\n") } else { Ok(()) }
    }
}

/// The task goes on without us.
fn may_be_looked_for(error: &Error) -> bool {
    error.is_transient()
}

fn request(order: &A2aMessage) -> anyhow::Result<SendMessageRequest> {
    let mut parts = Vec::new();
    match order.message.as_deref() {
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("failed to read standard input")?;
            parts.push(Part::text(text.trim_end_matches('\n')));
        }
        Some(text) => parts.push(Part::text(text)),
        None => {}
    }
    for given in &order.data {
        let value = serde_json::from_str(given)
            .map_err(|error| Exit::new(Code::Usage, format!("--data is not JSON: {error}")))?;
        parts.push(Part::data(value));
    }
    for path in &order.file {
        parts.push(file(path)?);
    }
    if parts.is_empty() {
        return Err(Exit::new(Code::Usage, "nothing to send: give a MESSAGE, --data or --file").into());
    }
    let message = Message {
        message_id: Clock::system().id().to_string(),
        context_id: order.context.clone(),
        task_id: order.task.clone(),
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
        return_immediately: Some(order.no_wait),
    };
    Ok(SendMessageRequest { message, configuration: Some(configuration), metadata: None, tenant: None })
}

fn file(path: &Path) -> anyhow::Result<Part> {
    let size = std::fs::metadata(path).map_err(|error| unreadable(path, &error))?.len();
    if size > LARGEST {
        return Err(Exit::new(Code::Refused, format!("{} is larger than {LARGEST} bytes", path.display())).into());
    }
    let bytes = std::fs::read(path).map_err(|error| unreadable(path, &error))?;
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
