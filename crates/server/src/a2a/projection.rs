//! Computes the state and the updates of a task from the stored events of its executions. Pure.
//!
//! The same events always yield the same updates. A task that is read later equals the sum of its updates.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use ::a2a::types::{
    self, Message, Role, StreamResponse, Task, TaskArtifactUpdateEvent, TaskState, TaskStatus, TaskStatusUpdateEvent,
};
use jiff::Timestamp;
use model::execution::{PublicStatus, StateName};
use model::output::{ArtifactChunk, ContentPart, PartContent, RichOutput};
use serde_json::{Map, Value};
use store::a2a::A2aRun;
use store::executions::{A2aTaskRef, ExecutionEvent, ExecutionEventKind};
use uuid::Uuid;

/// The id of the artifact with the output of the agent.
const OUTPUT_ARTIFACT: &str = "output";
/// The maximum size of a question that is taken from the output, in bytes.
pub(crate) const MAX_QUESTION_BYTES: usize = 64 << 10;

/// The state of a task after the events applied so far.
#[derive(Clone, Debug)]
pub(crate) struct TaskProjection {
    task_ref: A2aTaskRef,
    options: ProjectionOptions,
    state: TaskState,
    /// The time of the last change of the state.
    changed_at: Timestamp,
    /// The message of the status.
    status_message: Option<Message>,
    history: Vec<Message>,
    artifacts: Vec<types::Artifact>,
    /// The index of each artifact by its id.
    artifact_index: HashMap<String, usize>,
    run: RunProjection,
    /// The answer, if it is a message.
    answer: Option<Message>,
    /// The output, if artifacts are omitted. It may contain the question.
    question_text: Option<String>,
}

/// Options of a projection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProjectionOptions {
    /// True if the output before the end is not part of the answer.
    pub(crate) answers_at_end: bool,
    /// True if artifacts are omitted.
    pub(crate) without_artifacts: bool,
    /// True if the history is omitted.
    pub(crate) without_history: bool,
}

impl ProjectionOptions {
    /// Computes only updates and the state. The size of the projection does not grow with the output.
    pub(crate) fn updates_only(self) -> Self {
        Self { without_artifacts: true, without_history: true, ..self }
    }
}

/// The state of the current execution.
#[derive(Clone, Debug, Default)]
struct RunProjection {
    id: Uuid,
    /// The number of the execution within the task, from 1.
    number: usize,
    /// The number of attempts.
    attempts: usize,
    /// The ids of the artifacts of this execution.
    artifacts: HashSet<String>,
    /// The stream of the output, if there is output.
    output: Option<&'static str>,
}

impl TaskProjection {
    /// Returns a projection in the state `Submitted`, without executions, messages and artifacts. [`Self::begin_run`]
    /// must be called first.
    pub(crate) fn new(task_ref: A2aTaskRef, options: ProjectionOptions) -> Self {
        Self {
            task_ref,
            options,
            state: TaskState::Submitted,
            changed_at: Timestamp::UNIX_EPOCH,
            status_message: None,
            history: Vec::new(),
            artifacts: Vec::new(),
            artifact_index: HashMap::new(),
            run: RunProjection::default(),
            answer: None,
            question_text: None,
        }
    }

    /// Begins the next execution with its messages, which are added to the history after the status message of the
    /// previous execution. Clears the status message, the answer and the question. Artifacts and the state of the task
    /// remain. The time of the status becomes the creation time of the execution.
    ///
    /// The execution has the next number, but at least 2 if its id is not that of the task.
    pub(crate) fn begin_run(&mut self, run: &A2aRun, messages: impl IntoIterator<Item = Message>) {
        let previous = self.status_message.take();
        self.add_to_history(previous.into_iter().chain(messages));
        self.answer = None;
        self.question_text = None;
        self.changed_at = run.execution.created_at;
        // Earlier executions may have been deleted, but an execution with another id than the task is not the first.
        let min_number = if run.execution.id == run.task.id { 1 } else { 2 };
        let number = min_number.max(self.run.number + 1);
        self.run = RunProjection { id: run.execution.id, number, ..RunProjection::default() };
    }

    /// Sets the output of the current execution for a projection without artifacts. It is the question if the task
    /// awaits input.
    pub(crate) fn set_question_text(&mut self, text: &str) {
        self.question_text = Some(text.to_owned());
    }

    /// Applies an event of the current execution and returns its update. A gap adds a note with the number of missing
    /// bytes to the output.
    ///
    /// Returns `None` for events that do not change the visible task. These are final, unknown and unchanged states,
    /// stderr, output that is not part of the answer, and answer messages. Rich output that cannot be parsed is logged
    /// and ignored.
    pub(crate) fn apply(&mut self, event: &ExecutionEvent) -> Option<StreamResponse> {
        match event.kind {
            ExecutionEventKind::State => self.apply_state(event),
            ExecutionEventKind::Output => self.append_output(&event.stream, event.text.clone()),
            ExecutionEventKind::Gap => {
                self.append_output(&event.stream, format!("\n[… {} bytes left out …]\n", event.text))
            }
            ExecutionEventKind::RichOutput => match serde_json::from_str(&event.text) {
                Ok(output) => self.apply_rich_output(event, output),
                Err(error) => {
                    tracing::error!(event = "event_not_read", execution_id = %self.run.id, error = %error);
                    None
                }
            },
        }
    }

    /// Ends the execution with its final state and files, which are added as artifacts. Returns the updates in this
    /// order: the end of the output artifact if there is output, one for each file, and the status.
    ///
    /// The status message of a failed execution is its error. Without a status message so far, a rejected execution has
    /// its error, and one that awaits input the end of the output. If there is no such text, it is the answer, if that
    /// is a message. Otherwise the current status message remains.
    pub(crate) fn end_run(&mut self, run: &A2aRun, files: Vec<(String, types::Part)>) -> Vec<StreamResponse> {
        let mut updates = Vec::new();
        if let Some(id) = self.run.output.take().map(|_| self.output_id()) {
            updates.push(self.artifact_update(artifact(id, vec![types::Part::text("")]), true, true));
        }
        for (name, part) in files {
            let id = self.numbered_id("file", &name);
            let artifact = types::Artifact { name: Some(name), ..artifact(id, vec![part]) };
            self.store_artifact(&artifact, false);
            updates.push(self.artifact_update(artifact, false, true));
        }
        self.changed_at = run.execution.last_state_change();
        self.state = task_state(run.public_status());
        let final_text = match run.public_status() {
            PublicStatus::Failed => run.execution.error_message().map(str::to_owned),
            PublicStatus::Rejected if self.status_message.is_none() => run.execution.error_message().map(str::to_owned),
            PublicStatus::InputRequired | PublicStatus::AuthRequired if self.status_message.is_none() => {
                self.last_output()
            }
            _ => None,
        };
        let final_message = final_text.map(|text| self.agent_message("end", vec![types::Part::text(text)]));
        if let Some(message) = final_message.or_else(|| self.answer.clone()) {
            self.set_status_message(message);
        }
        updates.push(self.status_update(self.changed_at));
        updates
    }

    /// Returns the task with its last `history_length` messages. `None` means the whole history. With zero the history
    /// is omitted; a negative length yields an empty one. Artifacts are omitted if there are none.
    pub(crate) fn task(&self, history_length: Option<i32>) -> Task {
        let skipped = match history_length {
            None => 0,
            Some(length) => self.history.len().saturating_sub(usize::try_from(length).unwrap_or(0)),
        };
        let history = &self.history[skipped..];
        let includes_history = history_length != Some(0);
        Task {
            id: self.task_ref.id.to_string(),
            context_id: self.task_ref.context_id.clone(),
            status: self.status(self.changed_at),
            artifacts: (!self.artifacts.is_empty()).then(|| self.artifacts.clone()),
            history: includes_history.then(|| history.to_vec()),
            metadata: None,
        }
    }

    /// Returns the answer, without a task id, if it is a message and the task has one execution and no artifacts.
    pub(crate) fn answer(&self) -> Option<Message> {
        // The caller gets no task in this case, so the message does not name one.
        let has_artifacts = !self.artifacts.is_empty() || !self.run.artifacts.is_empty();
        let answer = self.answer.clone().filter(|_| !has_artifacts && self.run.number == 1)?;
        Some(Message { task_id: None, ..answer })
    }

    /// Returns the artifacts of the last execution.
    pub(crate) fn run_artifacts(&self) -> Vec<types::Artifact> {
        let is_of_run = |artifact: &&types::Artifact| self.run.artifacts.contains(&artifact.artifact_id);
        self.artifacts.iter().filter(is_of_run).cloned().collect()
    }

    /// Returns whether the task has an answer, an artifact or a status message.
    pub(crate) fn has_content(&self) -> bool {
        let has_artifacts = !self.artifacts.is_empty() || !self.run.artifacts.is_empty();
        self.answer.is_some() || has_artifacts || self.status_message.is_some()
    }

    /// Applies a state of the execution. Returns an update only if the state of the task changes. It is `Submitted`
    /// while the first execution is queued and was never started, otherwise `Working`. Final and unknown states are
    /// ignored. The start of a retry discards the artifacts and the answer of the previous attempt.
    fn apply_state(&mut self, event: &ExecutionEvent) -> Option<StreamResponse> {
        let state = StateName::parse("state", &event.text).ok()?;
        if state.is_end() {
            // `end_run` reports the end. A retry may follow a failure.
            return None;
        }
        self.changed_at = event.at;
        if state == StateName::Starting {
            self.run.attempts += 1;
            if self.run.attempts > 1 {
                // A retry discards the output of the previous attempt.
                self.artifacts.retain(|artifact| !self.run.artifacts.contains(&artifact.artifact_id));
                self.run.artifacts.clear();
                let ids = self.artifacts.iter().map(|artifact| artifact.artifact_id.clone());
                self.artifact_index = ids.zip(0..).collect();
                self.run.output = None;
                self.answer = None;
            }
        }
        let is_first = self.run.number == 1 && self.run.attempts == 0;
        let next = if state == StateName::Idle && is_first { TaskState::Submitted } else { TaskState::Working };
        let changed = next != self.state;
        self.state = next;
        changed.then(|| self.status_update(event.at))
    }

    /// Appends text to the output artifact and returns the update. Text of the stream `file` replaces earlier text of
    /// stdout. Returns `None` for other streams, and for stdout if only the answer at the end counts or the answer is
    /// in a file.
    fn append_output(&mut self, stream: &str, text: String) -> Option<StreamResponse> {
        let stream = match stream {
            // An answer in a file replaces the output on stdout.
            "file" => "file",
            "stdout" if !self.options.answers_at_end && self.run.output != Some("file") => "stdout",
            _ => return None,
        };
        let append = self.run.output == Some(stream);
        self.run.output = Some(stream);
        let id = self.output_id();
        let whole = self.artifact_index.get(&id).and_then(|at| self.artifacts.get_mut(*at));
        match whole.and_then(|artifact| artifact.parts.first_mut()).map(|part| &mut part.content) {
            Some(types::PartContent::Text(whole)) if append && !self.options.without_artifacts => whole.push_str(&text),
            _ => self.store_artifact(&artifact(id.clone(), vec![types::Part::text(text.clone())]), false),
        }
        Some(self.artifact_update(artifact(id, vec![types::Part::text(text)]), append, false))
    }

    /// Applies a message, a status or an artifact chunk. A message becomes the answer and has no update. A status
    /// becomes the status message and sets the state to working, even if nothing else changes. A chunk adds or extends
    /// an artifact. A chunk that appends to an unknown artifact of this execution starts it.
    fn apply_rich_output(&mut self, event: &ExecutionEvent, output: RichOutput) -> Option<StreamResponse> {
        match output {
            RichOutput::Message(parts) => {
                let message = self.agent_message(&event.seq.to_string(), parts.into_iter().map(part_to_a2a).collect());
                self.answer = Some(message);
                None
            }
            RichOutput::Status(parts) => {
                let message = self.agent_message(&event.seq.to_string(), parts.into_iter().map(part_to_a2a).collect());
                self.set_status_message(message);
                // Output before the `running` event also means that the task is working.
                self.state = TaskState::Working;
                Some(self.status_update(event.at))
            }
            RichOutput::Artifact(chunk) => {
                let ArtifactChunk { artifact_id, name, description, parts, append, last, metadata } = chunk;
                let artifact = types::Artifact {
                    name,
                    description,
                    metadata: optional_metadata(metadata),
                    ..artifact(artifact_id, parts.into_iter().map(part_to_a2a).collect())
                };
                // A chunk without a predecessor starts the artifact.
                let append = append && self.run.artifacts.contains(&artifact.artifact_id);
                self.store_artifact(&artifact, append);
                Some(self.artifact_update(artifact, append, last))
            }
        }
    }

    /// Replaces the status message. The previous one moves to the history.
    fn set_status_message(&mut self, message: Message) {
        let previous = self.status_message.replace(message);
        self.add_to_history(previous);
    }

    fn add_to_history(&mut self, messages: impl IntoIterator<Item = Message>) {
        if !self.options.without_history {
            self.history.extend(messages);
        }
    }

    /// Drops the artifacts and the history. From now on only updates and the state are computed.
    pub(crate) fn forget_content(&mut self) {
        self.options = self.options.updates_only();
        self.artifacts = Vec::new();
        self.artifact_index = HashMap::new();
        self.history = Vec::new();
    }

    /// Drops the oldest messages of the history, so that at most `bytes` are left. `size` returns the size of one.
    pub(crate) fn shorten_history(&mut self, bytes: usize, size: impl Fn(&Message) -> usize) {
        let mut left = bytes;
        let fits = |message: &&Message| {
            let fits = left.checked_sub(size(message));
            left = fits.unwrap_or(left);
            fits.is_some()
        };
        let kept = self.history.iter().rev().take_while(fits).count();
        self.history.drain(..self.history.len() - kept);
    }

    /// Returns true if the question of a task that awaits input must be set with [`Self::set_question_text`].
    pub(crate) fn lacks_question(&self) -> bool {
        self.options.without_artifacts && self.status_message.is_none()
    }

    /// Returns the end of the output without surrounding whitespace, at most 64 KiB, as the question. Without an output
    /// artifact it uses the text of [`Self::set_question_text`]. Returns `None` if there is neither or the text is
    /// blank.
    fn last_output(&self) -> Option<String> {
        let id = self.output_id();
        let artifact = self.artifact_index.get(&id).and_then(|at| self.artifacts.get(*at));
        let output = artifact.and_then(|artifact| artifact.parts.first()?.as_text());
        let text = output.or(self.question_text.as_deref())?.trim();
        let from = text.len().saturating_sub(MAX_QUESTION_BYTES);
        let from = (from..text.len()).find(|at| text.is_char_boundary(*at))?;
        Some(text[from..].to_owned())
    }

    /// Adds an artifact or replaces the one with the same id. If `append` is true, appends the parts to an existing one
    /// and updates its name and description if they are set; its metadata remain. With `without_artifacts`, only the id
    /// is recorded.
    fn store_artifact(&mut self, chunk: &types::Artifact, append: bool) {
        if !self.run.artifacts.contains(&chunk.artifact_id) {
            self.run.artifacts.insert(chunk.artifact_id.clone());
        }
        if self.options.without_artifacts {
            return;
        }
        match self.artifact_index.get(&chunk.artifact_id).and_then(|at| self.artifacts.get_mut(*at)) {
            Some(artifact) if append => {
                artifact.parts.extend(chunk.parts.iter().cloned());
                for (current, new) in
                    [(&mut artifact.name, &chunk.name), (&mut artifact.description, &chunk.description)]
                {
                    if new.is_some() {
                        current.clone_from(new);
                    }
                }
            }
            Some(artifact) => *artifact = chunk.clone(),
            None => {
                self.artifact_index.insert(chunk.artifact_id.clone(), self.artifacts.len());
                self.artifacts.push(chunk.clone());
            }
        }
    }

    /// Returns the id of the output artifact. From the second execution on, it contains the number of the execution.
    fn output_id(&self) -> String {
        match self.run.number {
            1 => OUTPUT_ARTIFACT.to_owned(),
            number => format!("{OUTPUT_ARTIFACT}-{number}"),
        }
    }

    /// Returns the id of an artifact. From the second execution on, it contains the number of the execution.
    fn numbered_id(&self, kind: &str, name: &str) -> String {
        match self.run.number {
            1 => format!("{kind}:{name}"),
            number => format!("{kind}-{number}:{name}"),
        }
    }

    /// Returns a message of the agent in this task. Its id consists of the execution id and `id`, which must be unique
    /// within the execution.
    fn agent_message(&self, id: &str, parts: Vec<types::Part>) -> Message {
        Message {
            message_id: format!("{}-{id}", self.run.id),
            context_id: Some(self.task_ref.context_id.clone()),
            task_id: Some(self.task_ref.id.to_string()),
            role: Role::Agent,
            parts,
            metadata: None,
            extensions: None,
            reference_task_ids: None,
        }
    }

    fn status(&self, at: Timestamp) -> TaskStatus {
        TaskStatus { state: self.state.clone(), message: self.status_message.clone(), timestamp: time(at) }
    }

    /// Returns an update with the current state and status message, and `at` as its time.
    fn status_update(&self, at: Timestamp) -> StreamResponse {
        let task_id = self.task_ref.id.to_string();
        let context_id = self.task_ref.context_id.clone();
        StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
            task_id,
            context_id,
            status: self.status(at),
            metadata: None,
        })
    }

    /// Returns an update of an artifact. `append` extends the artifact, otherwise it is replaced. `last` marks its last
    /// chunk.
    fn artifact_update(&self, artifact: types::Artifact, append: bool, last: bool) -> StreamResponse {
        let task_id = self.task_ref.id.to_string();
        let context_id = self.task_ref.context_id.clone();
        StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
            task_id,
            context_id,
            artifact,
            append: Some(append),
            last_chunk: Some(last),
            metadata: None,
        })
    }
}

/// Returns the A2A state of a status. The names are the same, except that `Waiting` is `Submitted`.
pub(crate) fn task_state(status: PublicStatus) -> TaskState {
    match status {
        PublicStatus::Waiting => TaskState::Submitted,
        PublicStatus::Working => TaskState::Working,
        PublicStatus::InputRequired => TaskState::InputRequired,
        PublicStatus::AuthRequired => TaskState::AuthRequired,
        PublicStatus::Completed => TaskState::Completed,
        PublicStatus::Failed => TaskState::Failed,
        PublicStatus::Rejected => TaskState::Rejected,
        PublicStatus::Cancelled => TaskState::Canceled,
    }
}

/// Returns the status of an A2A state, or `None` if the state is unspecified.
pub(crate) fn public_status(state: &TaskState) -> Option<PublicStatus> {
    PublicStatus::ALL.iter().copied().find(|status| task_state(*status) == *state)
}

/// Converts a part to A2A, with its name and media type. Empty metadata are omitted.
pub(crate) fn part_to_a2a(part: ContentPart) -> types::Part {
    let ContentPart { content, media_type, name, metadata } = part;
    let content = match content {
        PartContent::Text(text) => types::PartContent::Text(text),
        PartContent::Bytes(bytes) => types::PartContent::Raw(bytes),
        PartContent::Url(url) => types::PartContent::Url(url),
        PartContent::Data(value) => types::PartContent::Data(value),
    };
    types::Part { content, filename: name, media_type, metadata: optional_metadata(metadata) }
}

fn artifact(artifact_id: String, parts: Vec<types::Part>) -> types::Artifact {
    types::Artifact { artifact_id, name: None, description: None, parts, metadata: None, extensions: None }
}

/// Returns the metadata, or `None` if they are empty.
fn optional_metadata(metadata: Map<String, Value>) -> Option<HashMap<String, Value>> {
    (!metadata.is_empty()).then(|| metadata.into_iter().collect())
}

/// Returns the time with the precision of microseconds, or `None` if it is out of range.
fn time(at: Timestamp) -> Option<chrono::DateTime<chrono::Utc>> {
    chrono::DateTime::from_timestamp_micros(at.as_microsecond())
}
