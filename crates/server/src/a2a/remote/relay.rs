//! Relays the updates of a remote task to the recorder of the run.
//!
//! The text of artifacts becomes the output of the run. Other parts become rich output. A text part with a file name is
//! a file, not text. Status messages become rich output and are also written to stderr.
//!
//! After a reconnection the agent sends the whole task again. Only new content is relayed.

use std::collections::{HashMap, HashSet};

use ::a2a::types::{Artifact, Message, Part, PartContent, StreamResponse, Task, TaskState, TaskStatus};
use model::execution::ExecutionOutcome;
use model::output::{self, ArtifactChunk, RichOutput};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use supervisor::{RunFailure, RunRecorder, RunResult, StreamName};

/// The id of the artifact with the parts of an answer message.
const ANSWER_ARTIFACT: &str = "answer";

/// Relays one remote task.
pub(super) struct UpdateRelay<'a> {
    recorder: &'a RunRecorder,
    /// The ids of the remote task and context.
    pub(super) task: Option<String>,
    pub(super) context: Option<String>,
    artifacts: HashMap<String, RelayedArtifact>,
    /// The ids of the relayed messages.
    relayed_messages: HashSet<String>,
    /// True if the output does not end with a line break.
    is_within_line: bool,
    has_output: bool,
}

/// The relayed part of an artifact. The text is identified by its length and digest, because it may be large.
#[derive(Default)]
struct RelayedArtifact {
    /// The length of the relayed text.
    bytes: usize,
    digest: Sha256,
    /// The number of relayed parts that are not text.
    other_parts: usize,
}

impl RelayedArtifact {
    /// Records text and a number of other parts as relayed.
    fn add(&mut self, text: &str, other_parts: usize) {
        self.bytes += text.len();
        self.digest.update(text);
        self.other_parts += other_parts;
    }

    /// Returns the new part of a text, or `None` if the text does not start with the relayed text.
    fn rest<'t>(&self, text: &'t str) -> Option<&'t str> {
        let (before, rest) = text.split_at_checked(self.bytes)?;
        (Sha256::digest(before) == self.digest.clone().finalize()).then_some(rest)
    }
}

impl<'a> UpdateRelay<'a> {
    /// Returns a relay without relayed content. `task` is the id of a remote task that an earlier attempt started.
    pub(super) fn new(recorder: &'a RunRecorder, task: Option<String>) -> Self {
        Self {
            recorder,
            task,
            context: None,
            artifacts: HashMap::new(),
            relayed_messages: HashSet::new(),
            is_within_line: false,
            has_output: false,
        }
    }

    /// Relays an update and records the ids of the remote task and context. Returns the result if the task has ended or
    /// awaits input. A message is the answer and ends the run with success. An artifact never ends it.
    pub(super) async fn relay(&mut self, update: StreamResponse) -> Option<RunResult> {
        match update {
            StreamResponse::Message(message) => {
                self.context = message.context_id.clone().or(self.context.take());
                self.relay_answer(message).await;
                Some(RunResult::default())
            }
            StreamResponse::Task(task) => self.relay_task(task).await,
            StreamResponse::ArtifactUpdate(event) => {
                self.set_ids(event.task_id, event.context_id);
                let append = event.append == Some(true);
                self.relay_chunk(event.artifact, append, event.last_chunk == Some(true)).await;
                None
            }
            StreamResponse::StatusUpdate(event) => {
                self.set_ids(event.task_id, event.context_id);
                self.relay_status(event.status).await
            }
        }
    }

    /// Relays the new content of a whole task: its artifacts, then its status. The history is ignored. Returns the
    /// result if the task has ended or awaits input, otherwise `None`. Also stores its ids.
    pub(super) async fn relay_task(&mut self, task: Task) -> Option<RunResult> {
        self.set_ids(task.id, task.context_id);
        for artifact in task.artifacts.unwrap_or_default() {
            self.relay_whole(artifact).await;
        }
        self.relay_status(task.status).await
    }

    /// Sets the ids of the remote task and context. Empty ids keep the previous ones.
    fn set_ids(&mut self, task: String, context: String) {
        self.task = Some(task).filter(|id| !id.is_empty()).or(self.task.take());
        self.context = Some(context).filter(|id| !id.is_empty()).or(self.context.take());
    }

    /// Relays a chunk of an artifact: text as output, other parts as rich output. `last` marks the rich output as the
    /// last chunk. If `append` is false and the artifact is known, the chunk is the whole artifact and is relayed by
    /// [`Self::relay_whole`].
    async fn relay_chunk(&mut self, artifact: Artifact, append: bool, last: bool) {
        let known = self.artifacts.contains_key(&artifact.artifact_id);
        if known && !append {
            return self.relay_whole(artifact).await;
        }
        let (text, others) = split_parts(&artifact.parts);
        let relayed = self.artifacts.entry(artifact.artifact_id.clone()).or_default();
        relayed.add(&text, others.len());
        self.write_output(&text, !known).await;
        if !others.is_empty() {
            self.write_rich_output(&artifact, others, known, last).await;
        }
    }

    /// Relays the content of a whole artifact that was not relayed before. If the text does not continue the relayed
    /// text, all of it is written again, on a new line. Other parts are compared by their number only. New ones are
    /// marked as the last chunk.
    async fn relay_whole(&mut self, artifact: Artifact) {
        let (text, others) = split_parts(&artifact.parts);
        let known = self.artifacts.contains_key(&artifact.artifact_id);
        let relayed = self.artifacts.entry(artifact.artifact_id.clone()).or_default();
        let previous = std::mem::take(relayed);
        relayed.add(&text, others.len());
        match previous.rest(&text) {
            Some(rest) => self.write_output(rest, !known).await,
            // The text has changed. The previous output cannot be withdrawn.
            None => self.write_output(&text, true).await,
        }
        if others.len() > previous.other_parts {
            let new = others.into_iter().skip(previous.other_parts).collect();
            self.write_rich_output(&artifact, new, previous.other_parts > 0, true).await;
        }
    }

    /// Relays the message of a status. Returns the result if the task has ended or awaits input, otherwise `None`. A
    /// completed task without artifacts has its message as the answer.
    ///
    /// For a failed, cancelled or rejected task the message is not relayed but is the error. The outcome of a rejected
    /// one is `Rejected`. A required authorization is a permanent failure.
    async fn relay_status(&mut self, status: TaskStatus) -> Option<RunResult> {
        let text = status.message.as_ref().map(message_text).unwrap_or_default();
        let reason_or = |default: &str| if text.is_empty() { default.to_owned() } else { text.clone() };
        match status.state {
            TaskState::Completed => {
                // Without artifacts the message is the answer.
                match status.message {
                    Some(message) if self.artifacts.is_empty() => self.relay_answer(message).await,
                    Some(message) => self.relay_status_message(message).await,
                    None => {}
                }
                Some(RunResult::default())
            }
            TaskState::Failed => Some(RunFailure::agent(reason_or("the remote agent reported a failure")).into()),
            TaskState::Canceled => {
                Some(RunFailure::agent(reason_or("the task was cancelled on the remote server")).into())
            }
            TaskState::Rejected => {
                let failure = RunFailure::agent(reason_or("the remote agent rejected the task"));
                Some(RunResult { outcome: Some(ExecutionOutcome::Rejected), ..failure.into() })
            }
            TaskState::AuthRequired => {
                let reason = reason_or("no details were given");
                Some(
                    RunFailure::permanent(format!("the remote agent requires additional authorization: {reason}"))
                        .into(),
                )
            }
            TaskState::InputRequired => {
                if let Some(message) = status.message {
                    self.relay_status_message(message).await;
                }
                Some(RunResult { outcome: Some(ExecutionOutcome::InputRequired), ..RunResult::default() })
            }
            TaskState::Submitted | TaskState::Working | TaskState::Unspecified => {
                if let Some(message) = status.message {
                    self.relay_status_message(message).await;
                }
                None
            }
        }
    }

    /// Writes the texts of an answer to stdout, one line each and starting on a new line. Its other parts are recorded
    /// as the artifact `answer`. A message with an id that was already relayed is ignored.
    async fn relay_answer(&mut self, message: Message) {
        if !self.relayed_messages.insert(message.message_id.clone()) {
            return;
        }
        let (text, others) = split_lines(&message.parts);
        self.write_output(&text, true).await;
        if !others.is_empty() {
            let chunk = ArtifactChunk {
                artifact_id: ANSWER_ARTIFACT.to_owned(),
                parts: others,
                last: true,
                ..ArtifactChunk::default()
            };
            self.recorder.rich_output(RichOutput::Artifact(chunk)).await;
        }
    }

    /// Records a status message as rich output. Also writes its texts, data and URLs to stderr, one line for each part,
    /// unless they are empty. A message without parts, or with an id that was already relayed, is ignored.
    async fn relay_status_message(&mut self, message: Message) {
        if message.parts.is_empty() || !self.relayed_messages.insert(message.message_id.clone()) {
            return;
        }
        let line = format!("{}\n", message_text(&message));
        if line.len() > 1 {
            self.recorder.output(StreamName::Stderr, line.as_bytes()).await;
        }
        self.recorder.rich_output(RichOutput::Status(message.parts.iter().map(part_from_a2a).collect())).await;
    }

    /// Writes text to stdout. If it starts an artifact and the previous output does not end with a line break, writes
    /// one first. An empty text is ignored.
    async fn write_output(&mut self, text: &str, starts_artifact: bool) {
        if text.is_empty() {
            return;
        }
        if starts_artifact && self.has_output && self.is_within_line {
            self.recorder.output(StreamName::Stdout, b"\n").await;
        }
        self.recorder.output(StreamName::Stdout, text.as_bytes()).await;
        self.has_output = true;
        self.is_within_line = !text.ends_with('\n');
    }

    /// Records parts of an artifact as one chunk, with the id, name, description and metadata of the artifact. The
    /// parts of the artifact itself are not used.
    async fn write_rich_output(&self, artifact: &Artifact, parts: Vec<output::ContentPart>, append: bool, last: bool) {
        let chunk = ArtifactChunk {
            artifact_id: artifact.artifact_id.clone(),
            name: artifact.name.clone(),
            description: artifact.description.clone(),
            parts,
            append,
            last,
            metadata: artifact.metadata.clone().unwrap_or_default().into_iter().collect(),
        };
        self.recorder.rich_output(RichOutput::Artifact(chunk)).await;
    }
}

/// Splits parts into their text and the other parts. A text with a name is a file.
fn split_parts(parts: &[Part]) -> (String, Vec<output::ContentPart>) {
    let is_text = |part: &&Part| part.as_text().is_some() && part.filename.is_none();
    let text = parts.iter().filter(is_text).filter_map(Part::as_text).collect();
    (text, parts.iter().filter(|part| !is_text(part)).map(part_from_a2a).collect())
}

/// Splits parts into their text, one line for each text part, and the other parts. A text with a name is a file.
fn split_lines(parts: &[Part]) -> (String, Vec<output::ContentPart>) {
    let texts: Vec<_> = parts.iter().filter(|part| part.filename.is_none()).filter_map(Part::as_text).collect();
    (texts.join("\n"), split_parts(parts).1)
}

/// Returns the texts, data and URLs of a message without surrounding whitespace, one part per line. Bytes are left out.
fn message_text(message: &Message) -> String {
    let parts: Vec<_> = message.parts.iter().map(part_from_a2a).collect();
    output::parts_to_text(&parts).trim().to_owned()
}

/// Converts a part of A2A with its name and media type. Missing metadata become empty.
fn part_from_a2a(part: &Part) -> output::ContentPart {
    let content = match &part.content {
        PartContent::Text(text) => output::PartContent::Text(text.clone()),
        PartContent::Raw(bytes) => output::PartContent::Bytes(bytes.clone()),
        PartContent::Url(url) => output::PartContent::Url(url.clone()),
        PartContent::Data(value) => output::PartContent::Data(value.clone()),
    };
    let metadata: Map<String, Value> = part.metadata.clone().unwrap_or_default().into_iter().collect();
    output::ContentPart { content, media_type: part.media_type.clone(), name: part.filename.clone(), metadata }
}
