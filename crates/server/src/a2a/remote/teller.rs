//! What an agent elsewhere tells of a task, told on at the desk of our run. The text of its artifacts is the output of the
//! run, whatever else they have is said as it is; its words on how it goes are said, and stand on stderr for whoever watches.
//!
//! The same may be told again, by a task that is read again after a connection was lost: only what is new is told on.

use std::collections::{HashMap, HashSet};

use ::a2a::types::{Artifact, Message, Part, PartContent, StreamResponse, Task, TaskState, TaskStatus};
use model::execution::Outcome;
use model::said::{self, Content, Piece, Said};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use supervisor::{Desk, Ended, Failure, Stream};

/// The id of an artifact that is made of the parts of a message.
const ANSWER: &str = "answer";

/// One task of an agent elsewhere, as far as it was told.
pub(super) struct Teller<'a> {
    desk: &'a Desk,
    /// What the agent calls them.
    pub(super) task: Option<String>,
    pub(super) context: Option<String>,
    artifacts: HashMap<String, Told>,
    /// Ids of messages.
    heard: HashSet<String>,
    /// Whether the output ends within a line.
    within_line: bool,
    has_output: bool,
}

/// What of an artifact was told. Of its text enough to recognise it by: it may be longer than there is room.
#[derive(Default)]
struct Told {
    bytes: usize,
    digest: Sha256,
    others: usize,
}

impl Told {
    fn add(&mut self, text: &str, others: usize) {
        self.bytes += text.len();
        self.digest.update(text);
        self.others += others;
    }

    /// What comes after the text that was told, if it begins with that.
    fn rest<'t>(&self, text: &'t str) -> Option<&'t str> {
        let (before, rest) = text.split_at_checked(self.bytes)?;
        (Sha256::digest(before) == self.digest.clone().finalize()).then_some(rest)
    }
}

impl<'a> Teller<'a> {
    pub(super) fn new(desk: &'a Desk, task: Option<String>) -> Self {
        Self {
            desk,
            task,
            context: None,
            artifacts: HashMap::new(),
            heard: HashSet::new(),
            within_line: false,
            has_output: false,
        }
    }

    /// Tells it on. Something, where that was the end.
    pub(super) async fn hear(&mut self, update: StreamResponse) -> Option<Ended> {
        match update {
            StreamResponse::Message(message) => {
                self.context = message.context_id.clone().or(self.context.take());
                self.answer(message).await;
                Some(Ended::default())
            }
            StreamResponse::Task(task) => self.hear_task(task).await,
            StreamResponse::ArtifactUpdate(event) => {
                self.belongs(event.task_id, event.context_id);
                let append = event.append == Some(true);
                self.artifact(event.artifact, append, event.last_chunk == Some(true)).await;
                None
            }
            StreamResponse::StatusUpdate(event) => {
                self.belongs(event.task_id, event.context_id);
                self.status(event.status).await
            }
        }
    }

    /// The whole task, of which much may have been told.
    pub(super) async fn hear_task(&mut self, task: Task) -> Option<Ended> {
        self.belongs(task.id, task.context_id);
        for artifact in task.artifacts.unwrap_or_default() {
            self.whole(artifact).await;
        }
        self.status(task.status).await
    }

    fn belongs(&mut self, task: String, context: String) {
        self.task = Some(task).filter(|id| !id.is_empty()).or(self.task.take());
        self.context = Some(context).filter(|id| !id.is_empty()).or(self.context.take());
    }

    /// A piece of an artifact, or one that takes the place of what was told.
    async fn artifact(&mut self, artifact: Artifact, append: bool, last: bool) {
        let known = self.artifacts.contains_key(&artifact.artifact_id);
        if known && !append {
            return self.whole(artifact).await;
        }
        let (text, others) = divide(&artifact.parts);
        let told = self.artifacts.entry(artifact.artifact_id.clone()).or_default();
        told.add(&text, others.len());
        self.print(&text, !known).await;
        if !others.is_empty() {
            self.say(&artifact, others, known, last).await;
        }
    }

    /// An artifact from its beginning: what of it was told is not told again.
    async fn whole(&mut self, artifact: Artifact) {
        let (text, others) = divide(&artifact.parts);
        let known = self.artifacts.contains_key(&artifact.artifact_id);
        let told = self.artifacts.entry(artifact.artifact_id.clone()).or_default();
        let before = std::mem::take(told);
        told.add(&text, others.len());
        match before.rest(&text) {
            Some(rest) => self.print(rest, !known).await,
            // It is another text now; what was printed cannot be taken back.
            None => self.print(&text, true).await,
        }
        if others.len() > before.others {
            let new = others.into_iter().skip(before.others).collect();
            self.say(&artifact, new, before.others > 0, true).await;
        }
    }

    async fn status(&mut self, status: TaskStatus) -> Option<Ended> {
        let words = status.message.as_ref().map(words).unwrap_or_default();
        let because = |otherwise: &str| if words.is_empty() { otherwise.to_owned() } else { words.clone() };
        match status.state {
            TaskState::Completed => {
                // Where there is nothing else, this is the answer.
                match status.message {
                    Some(message) if self.artifacts.is_empty() => self.answer(message).await,
                    Some(message) => self.word(message).await,
                    None => {}
                }
                Some(Ended::default())
            }
            TaskState::Failed => Some(Failure::agent(because("the agent says that it failed")).into()),
            TaskState::Canceled => Some(Failure::agent(because("the task was cancelled where it ran")).into()),
            TaskState::Rejected => {
                let failure = Failure::agent(because("the agent does not want to do this"));
                Some(Ended { outcome: Some(Outcome::Rejected), ..failure.into() })
            }
            TaskState::AuthRequired => {
                let why = because("it does not say where");
                Some(Failure::permanent(format!("the agent needs to be let in somewhere first: {why}")).into())
            }
            TaskState::InputRequired => {
                if let Some(message) = status.message {
                    self.word(message).await;
                }
                Some(Ended { outcome: Some(Outcome::Asks), ..Ended::default() })
            }
            TaskState::Submitted | TaskState::Working | TaskState::Unspecified => {
                if let Some(message) = status.message {
                    self.word(message).await;
                }
                None
            }
        }
    }

    /// A message that is all there is to tell.
    async fn answer(&mut self, message: Message) {
        if !self.heard.insert(message.message_id.clone()) {
            return;
        }
        let (text, others) = divide_lines(&message.parts);
        self.print(&text, true).await;
        if !others.is_empty() {
            let piece = Piece { artifact_id: ANSWER.to_owned(), parts: others, last: true, ..Piece::default() };
            self.desk.say(Said::Artifact(piece)).await;
        }
    }

    /// A word on how it goes.
    async fn word(&mut self, message: Message) {
        if message.parts.is_empty() || !self.heard.insert(message.message_id.clone()) {
            return;
        }
        let line = format!("{}\n", words(&message));
        if line.len() > 1 {
            self.desk.output(Stream::Stderr, line.as_bytes()).await;
        }
        self.desk.say(Said::Status(message.parts.iter().map(part).collect())).await;
    }

    async fn print(&mut self, text: &str, begins: bool) {
        if text.is_empty() {
            return;
        }
        if begins && self.has_output && self.within_line {
            self.desk.output(Stream::Stdout, b"\n").await;
        }
        self.desk.output(Stream::Stdout, text.as_bytes()).await;
        self.has_output = true;
        self.within_line = !text.ends_with('\n');
    }

    async fn say(&self, artifact: &Artifact, parts: Vec<said::Part>, append: bool, last: bool) {
        let piece = Piece {
            artifact_id: artifact.artifact_id.clone(),
            name: artifact.name.clone(),
            description: artifact.description.clone(),
            parts,
            append,
            last,
            metadata: artifact.metadata.clone().unwrap_or_default().into_iter().collect(),
        };
        self.desk.say(Said::Artifact(piece)).await;
    }
}

/// The text, and everything that is more: a text with a name is a file.
fn divide(parts: &[Part]) -> (String, Vec<said::Part>) {
    let is_text = |part: &&Part| part.as_text().is_some() && part.filename.is_none();
    let text = parts.iter().filter(is_text).filter_map(Part::as_text).collect();
    (text, parts.iter().filter(|part| !is_text(part)).map(part).collect())
}

/// The same where every part is a paragraph of its own.
fn divide_lines(parts: &[Part]) -> (String, Vec<said::Part>) {
    let texts: Vec<_> = parts.iter().filter(|part| part.filename.is_none()).filter_map(Part::as_text).collect();
    (texts.join("\n"), divide(parts).1)
}

fn words(message: &Message) -> String {
    let parts: Vec<_> = message.parts.iter().map(part).collect();
    said::as_input(&parts).trim().to_owned()
}

fn part(part: &Part) -> said::Part {
    let content = match &part.content {
        PartContent::Text(text) => Content::Text(text.clone()),
        PartContent::Raw(bytes) => Content::Bytes(bytes.clone()),
        PartContent::Url(url) => Content::Url(url.clone()),
        PartContent::Data(value) => Content::Data(value.clone()),
    };
    let metadata: Map<String, Value> = part.metadata.clone().unwrap_or_default().into_iter().collect();
    said::Part { content, media_type: part.media_type.clone(), name: part.filename.clone(), metadata }
}
