//! What can be told of a task, made from what is kept of its executions and nothing else. Pure: told the same events, two
//! who follow hear the same, and whoever asks later sees what they have heard.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use ::a2a::types::{
    self, Message, Role, StreamResponse, Task, TaskArtifactUpdateEvent, TaskState, TaskStatus, TaskStatusUpdateEvent,
};
use jiff::Timestamp;
use model::execution::{Standing, StateName};
use model::said::{Content, Part, Piece, Said};
use serde_json::{Map, Value};
use store::a2a::Run;
use store::executions::{Event, Kind, OfTask};
use uuid::Uuid;

/// The artifact that is what an agent says.
const OUTPUT: &str = "output";
/// So much of what was said is repeated as a question.
const LONGEST_QUESTION: usize = 64 << 10;

/// What was told of a task so far.
#[derive(Clone, Debug)]
pub(crate) struct Story {
    of: OfTask,
    form: Form,
    state: TaskState,
    at: Timestamp,
    /// That of the status.
    message: Option<Message>,
    history: Vec<Message>,
    artifacts: Vec<types::Artifact>,
    /// Where each of them is.
    places: HashMap<String, usize>,
    run: Told,
    /// The answer, where it is a message.
    answer: Option<Message>,
    /// What was said, where artifacts are left out.
    question: Option<String>,
}

/// What belongs to the story of a task.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Form {
    /// What the agent says meanwhile is not its answer.
    pub(crate) answers_late: bool,
    /// Artifacts are left out.
    pub(crate) in_short: bool,
}

/// What was told of the execution that is at it.
#[derive(Clone, Debug, Default)]
struct Told {
    id: Uuid,
    /// From 1.
    number: usize,
    /// How often it was tried.
    tries: usize,
    /// The artifacts that it began.
    artifacts: HashSet<String>,
    /// Where its output comes from, once there is some.
    output: Option<&'static str>,
}

impl Story {
    /// Nothing is told yet: an execution has to begin.
    pub(crate) fn new(of: OfTask, form: Form) -> Self {
        Self {
            of,
            form,
            state: TaskState::Submitted,
            at: Timestamp::UNIX_EPOCH,
            message: None,
            history: Vec::new(),
            artifacts: Vec::new(),
            places: HashMap::new(),
            run: Told::default(),
            answer: None,
            question: None,
        }
    }

    /// The next execution of the task begins with what it was asked. What the one before said last becomes history.
    pub(crate) fn begin(&mut self, run: &Run, asked: impl IntoIterator<Item = Message>) {
        self.history.extend(self.message.take());
        self.history.extend(asked);
        (self.answer, self.question) = (None, None);
        self.at = run.execution.created_at;
        // One that is not the first has had others before it, whether they are kept or not.
        let least = if run.execution.id == run.task.id { 1 } else { 2 };
        self.run = Told { id: run.execution.id, number: least.max(self.run.number + 1), ..Told::default() };
    }

    /// What was said, for a story without artifacts: it may be the question.
    pub(crate) fn said(&mut self, text: &str) {
        self.question = Some(text.to_owned());
    }

    /// Something has happened in it.
    pub(crate) fn tell(&mut self, event: &Event) -> Option<StreamResponse> {
        match event.kind {
            Kind::State => self.enter(event),
            Kind::Output => self.output(&event.stream, event.text.clone()),
            Kind::Gap => self.output(&event.stream, format!("\n[… {} bytes left out …]\n", event.text)),
            Kind::Said => match serde_json::from_str(&event.text) {
                Ok(said) => self.say(event, said),
                Err(error) => {
                    tracing::error!(event = "event_not_read", execution_id = %self.run.id, error = %error);
                    None
                }
            },
        }
    }

    /// It has ended, as it stands there now, and left these files.
    pub(crate) fn end(&mut self, run: &Run, files: Vec<(String, types::Part)>) -> Vec<StreamResponse> {
        let mut updates = Vec::new();
        if let Some(id) = self.run.output.take().map(|_| self.output_id()) {
            updates.push(self.artifact_update(artifact(id, vec![types::Part::text("")]), true, true));
        }
        for (name, part) in files {
            let id = self.numbered("file", &name);
            let artifact = types::Artifact { name: Some(name), ..artifact(id, vec![part]) };
            self.keep(&artifact, false);
            updates.push(self.artifact_update(artifact, false, true));
        }
        self.at = run.execution.last_state_change();
        self.state = state_of(run.standing());
        let last_words = match run.standing() {
            Standing::Failed => run.execution.error_message().map(str::to_owned),
            Standing::Rejected if self.message.is_none() => run.execution.error_message().map(str::to_owned),
            Standing::Asks | Standing::NeedsAccess if self.message.is_none() => self.said_last(),
            _ => None,
        };
        let last_words = last_words.map(|text| self.spoken("end", vec![types::Part::text(text)]));
        if let Some(message) = last_words.or_else(|| self.answer.clone()) {
            self.speak(message);
        }
        updates.push(self.status_update(self.at));
        updates
    }

    /// The task as it stands. `None` is its whole history.
    pub(crate) fn task(&self, history_length: Option<i32>) -> Task {
        let left_out = match history_length {
            None => 0,
            Some(length) => self.history.len().saturating_sub(usize::try_from(length).unwrap_or(0)),
        };
        let history = &self.history[left_out..];
        let wanted = history_length != Some(0);
        Task {
            id: self.of.id.to_string(),
            context_id: self.of.context_id.clone(),
            status: self.status(self.at),
            artifacts: (!self.artifacts.is_empty()).then(|| self.artifacts.clone()),
            history: wanted.then(|| history.to_vec()),
            metadata: None,
        }
    }

    /// The answer, where it is a message and came before anything else.
    pub(crate) fn answer(&self) -> Option<Message> {
        // There is no task then, as far as the caller knows.
        let answer = self.answer.clone().filter(|_| self.artifacts.is_empty() && self.run.number == 1)?;
        Some(Message { task_id: None, ..answer })
    }

    /// What the last execution has made.
    pub(crate) fn made(&self) -> Vec<types::Artifact> {
        let its = |artifact: &&types::Artifact| self.run.artifacts.contains(&artifact.artifact_id);
        self.artifacts.iter().filter(its).cloned().collect()
    }

    /// Whether more was said than that it waits or is at work.
    pub(crate) fn has_begun(&self) -> bool {
        self.answer.is_some() || !self.artifacts.is_empty() || self.message.is_some()
    }

    fn enter(&mut self, event: &Event) -> Option<StreamResponse> {
        let state = StateName::parse("state", &event.text).ok()?;
        if state.is_end() {
            // What it means is told with the end; after a failure there may be another try.
            return None;
        }
        self.at = event.at;
        if state == StateName::Starting {
            self.run.tries += 1;
            if self.run.tries > 1 {
                // What the try before has said counts no more.
                self.artifacts.retain(|artifact| !self.run.artifacts.contains(&artifact.artifact_id));
                self.run.artifacts.clear();
                let ids = self.artifacts.iter().map(|artifact| artifact.artifact_id.clone());
                self.places = ids.zip(0..).collect();
                (self.run.output, self.answer) = (None, None);
            }
        }
        let first = self.run.number == 1 && self.run.tries == 0;
        let next = if state == StateName::Idle && first { TaskState::Submitted } else { TaskState::Working };
        let changed = next != self.state;
        self.state = next;
        changed.then(|| self.status_update(event.at))
    }

    /// More text of the answer.
    fn output(&mut self, stream: &str, text: String) -> Option<StreamResponse> {
        let stream = match stream {
            // Whoever writes the answer to a file has not said it before.
            "file" => "file",
            "stdout" if !self.form.answers_late && self.run.output != Some("file") => "stdout",
            _ => return None,
        };
        let append = self.run.output == Some(stream);
        self.run.output = Some(stream);
        let id = self.output_id();
        let whole = self.places.get(&id).and_then(|at| self.artifacts.get_mut(*at));
        match whole.and_then(|artifact| artifact.parts.first_mut()).map(|part| &mut part.content) {
            Some(types::PartContent::Text(whole)) if append && !self.form.in_short => whole.push_str(&text),
            _ => self.keep(&artifact(id.clone(), vec![types::Part::text(text.clone())]), false),
        }
        Some(self.artifact_update(artifact(id, vec![types::Part::text(text)]), append, false))
    }

    fn say(&mut self, event: &Event, said: Said) -> Option<StreamResponse> {
        match said {
            Said::Message(parts) => {
                let message = self.spoken(&event.seq.to_string(), parts.into_iter().map(part).collect());
                self.answer = Some(message);
                None
            }
            Said::Status(parts) => {
                let message = self.spoken(&event.seq.to_string(), parts.into_iter().map(part).collect());
                self.speak(message);
                // What is said before it is said to be at work is said at work.
                self.state = TaskState::Working;
                Some(self.status_update(event.at))
            }
            Said::Artifact(piece) => {
                let Piece { artifact_id, name, description, parts, append, last, metadata } = piece;
                let artifact = types::Artifact {
                    name,
                    description,
                    metadata: metadata_of(metadata),
                    ..artifact(artifact_id, parts.into_iter().map(part).collect())
                };
                // What nobody has seen the beginning of begins here.
                let append = append && self.run.artifacts.contains(&artifact.artifact_id);
                self.keep(&artifact, append);
                Some(self.artifact_update(artifact, append, last))
            }
        }
    }

    /// What the agent says now takes the place of what it said before.
    fn speak(&mut self, message: Message) {
        let before = self.message.replace(message);
        self.history.extend(before);
    }

    /// The end of what was said, as a question.
    fn said_last(&self) -> Option<String> {
        let id = self.output_id();
        let artifact = self.places.get(&id).and_then(|at| self.artifacts.get(*at));
        let said = artifact.and_then(|artifact| artifact.parts.first()?.as_text());
        let text = said.or(self.question.as_deref())?.trim();
        let from = text.len().saturating_sub(LONGEST_QUESTION);
        let from = (from..text.len()).find(|at| text.is_char_boundary(*at))?;
        Some(text[from..].to_owned())
    }

    fn keep(&mut self, piece: &types::Artifact, append: bool) {
        if !self.run.artifacts.contains(&piece.artifact_id) {
            self.run.artifacts.insert(piece.artifact_id.clone());
        }
        if self.form.in_short {
            return;
        }
        match self.places.get(&piece.artifact_id).and_then(|at| self.artifacts.get_mut(*at)) {
            Some(artifact) if append => {
                artifact.parts.extend(piece.parts.iter().cloned());
                for (kept, new) in [(&mut artifact.name, &piece.name), (&mut artifact.description, &piece.description)]
                {
                    if new.is_some() {
                        kept.clone_from(new);
                    }
                }
            }
            Some(artifact) => *artifact = piece.clone(),
            None => {
                self.places.insert(piece.artifact_id.clone(), self.artifacts.len());
                self.artifacts.push(piece.clone());
            }
        }
    }

    fn output_id(&self) -> String {
        match self.run.number {
            1 => OUTPUT.to_owned(),
            number => format!("{OUTPUT}-{number}"),
        }
    }

    fn numbered(&self, kind: &str, name: &str) -> String {
        match self.run.number {
            1 => format!("{kind}:{name}"),
            number => format!("{kind}-{number}:{name}"),
        }
    }

    fn spoken(&self, id: &str, parts: Vec<types::Part>) -> Message {
        Message {
            message_id: format!("{}-{id}", self.run.id),
            context_id: Some(self.of.context_id.clone()),
            task_id: Some(self.of.id.to_string()),
            role: Role::Agent,
            parts,
            metadata: None,
            extensions: None,
            reference_task_ids: None,
        }
    }

    fn status(&self, at: Timestamp) -> TaskStatus {
        TaskStatus { state: self.state.clone(), message: self.message.clone(), timestamp: time(at) }
    }

    fn status_update(&self, at: Timestamp) -> StreamResponse {
        let task_id = self.of.id.to_string();
        let context_id = self.of.context_id.clone();
        StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
            task_id,
            context_id,
            status: self.status(at),
            metadata: None,
        })
    }

    fn artifact_update(&self, artifact: types::Artifact, append: bool, last: bool) -> StreamResponse {
        let task_id = self.of.id.to_string();
        let context_id = self.of.context_id.clone();
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

/// What A2A calls it.
pub(crate) fn state_of(standing: Standing) -> TaskState {
    match standing {
        Standing::Waiting => TaskState::Submitted,
        Standing::Working => TaskState::Working,
        Standing::Asks => TaskState::InputRequired,
        Standing::NeedsAccess => TaskState::AuthRequired,
        Standing::Completed => TaskState::Completed,
        Standing::Failed => TaskState::Failed,
        Standing::Rejected => TaskState::Rejected,
        Standing::Cancelled => TaskState::Canceled,
    }
}

/// What we call it; nothing where any state is meant.
pub(crate) fn standing_of(state: &TaskState) -> Option<Standing> {
    Standing::ALL.iter().copied().find(|standing| state_of(*standing) == *state)
}

/// A part as A2A has it.
pub(crate) fn part(part: Part) -> types::Part {
    let Part { content, media_type, name, metadata } = part;
    let content = match content {
        Content::Text(text) => types::PartContent::Text(text),
        Content::Bytes(bytes) => types::PartContent::Raw(bytes),
        Content::Url(url) => types::PartContent::Url(url),
        Content::Data(value) => types::PartContent::Data(value),
    };
    types::Part { content, filename: name, media_type, metadata: metadata_of(metadata) }
}

fn artifact(artifact_id: String, parts: Vec<types::Part>) -> types::Artifact {
    types::Artifact { artifact_id, name: None, description: None, parts, metadata: None, extensions: None }
}

fn metadata_of(metadata: Map<String, Value>) -> Option<HashMap<String, Value>> {
    (!metadata.is_empty()).then(|| metadata.into_iter().collect())
}

fn time(at: Timestamp) -> Option<chrono::DateTime<chrono::Utc>> {
    chrono::DateTime::from_timestamp_micros(at.as_microsecond())
}
