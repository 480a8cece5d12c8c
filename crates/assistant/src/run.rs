//! The loop: the model speaks, the tools it asks for are called, until it has nothing more to call. The limits are
//! enforced here, whatever the model does.

mod ask;
mod release;
mod thoughts;

use std::time::{Duration, Instant};

use model::conversation::ToolCall;
use redact::redact_json;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tools::answer::{self, Failure};
use tools::{Act, Answer, Arguments, Consent, Held, Outcome, Spec, Specs, Toolbox, record};
use understand::Intent;

use crate::confirm::{self, Reply};
use crate::screen::{Screen, without_ids};
use crate::{AgentContext, Call, ErrorType, Models, Prompt, Request, Status, Step, TurnEvent, Usage, log, wording};
use ask::{Said, reserve};
use thoughts::Thoughts;

/// The longest arguments that a model may send, in bytes.
const MAX_ARGUMENTS: usize = 64 * 1024;
/// How much later than the turn our own tools may end.
const GRACE: Duration = Duration::from_secs(3);
/// How many tasks of a list are kept in the record of a call.
const RECORDED: usize = 50;

/// What a run must not exceed (AGENT-4).
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub max_tool_calls: usize,
    /// For a model that answers from outside; the built-in one waits for nothing.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_tool_calls: 10, time: Duration::from_secs(30) }
    }
}

/// S1's AgentRunner.
#[derive(Clone)]
pub struct AgentRunner {
    pub models: Models,
    pub limits: Limits,
}

/// S1's AgentResult.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AgentResult {
    pub success: bool,
    /// For the user; never empty.
    pub response: String,
    pub tool_calls: Vec<ToolCall>,
    /// The last failure, in words for the user.
    pub error: Option<String>,
    pub error_type: Option<ErrorType>,
    /// The code of the tool's refusal, where it was a tool that failed.
    pub tool_error: Option<String>,
    /// What waits for the user's next message.
    pub held: Option<Held>,
    /// What the user should know though the turn went well.
    pub warnings: Vec<String>,
    /// Every time an outside model was asked.
    pub asked: Vec<Asked>,
    /// The model that answered; nothing where none had to.
    pub answered_by: Option<String>,
    /// What the language engine takes the message for.
    pub intent: Intent,
    pub confidence: f64,
}

/// A reply of a model.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Asked {
    pub model: String,
    pub success: bool,
    pub usage: Usage,
}

impl AgentResult {
    /// What all replies of outside models cost together; nothing where none was asked.
    pub fn usage(&self) -> Option<Usage> {
        let mut sum = Usage::default();
        self.asked.iter().for_each(|asked| sum += asked.usage);
        Some(sum).filter(|sum| *sum != Usage::default())
    }

    /// For a turn that could not be carried out at all.
    pub fn failed(error_type: ErrorType, words: &str) -> Self {
        Self {
            success: false,
            response: words.to_owned(),
            tool_calls: Vec::new(),
            error: Some(words.to_owned()),
            error_type: Some(error_type),
            tool_error: None,
            held: None,
            warnings: Vec::new(),
            asked: Vec::new(),
            answered_by: None,
            intent: Intent::Unknown,
            confidence: 0.0,
        }
    }
}

impl AgentRunner {
    /// Carries out what the user says and reports events as they happen. Fails only if the database does; everything else
    /// that can go wrong is in the result.
    pub(crate) async fn stream(
        &self,
        context: &AgentContext,
        request: &Request,
        toolbox: &mut Toolbox<'_>,
        watch: &mut (dyn FnMut(TurnEvent) + Send),
    ) -> store::Result<AgentResult> {
        let deadline = match self.models.first().is_immediate() && toolbox.specs().iter().all(Spec::is_ours) {
            true => None,
            false => tokio::time::Instant::now().checked_add(self.limits.time),
        };
        let until = deadline.and_then(|deadline| deadline.checked_sub(reserve(self.limits.time)));
        toolbox.end_by(until);
        let run = Run {
            limits: self.limits,
            ours: self.models.first().is_ours(),
            specs: toolbox.specs().clone(),
            deadline,
            context,
            request,
            toolbox,
            watch,
            screen: Screen::default(),
            thoughts: Thoughts::default(),
            records: Vec::new(),
            calls: 0,
            released: false,
            held: Vec::new(),
            changed: false,
            failure: None,
            warnings: Vec::new(),
            asked: Vec::new(),
            answered_by: None,
        };
        // Whatever is not waiting for the model is put aside: many turns wait for theirs at once, and their size counts.
        match confirm::read(context, &request.message) {
            Reply::Release(held) => Box::pin(run.release(held)).await,
            Reply::OfTitle(title) => Box::pin(run.release_by_title(&title)).await,
            Reply::OfSomething => Ok(run.answer(&wording::confirm_again())),
            Reply::Other => run.converse(&self.models).await,
        }
    }
}

/// One run under way.
struct Run<'a, 'b> {
    limits: Limits,
    /// Whether the words of the model that is asked are our own.
    ours: bool,
    /// The tools as they are in this turn.
    specs: Specs,
    deadline: Option<tokio::time::Instant>,
    context: &'a AgentContext,
    request: &'a Request,
    toolbox: &'a mut Toolbox<'b>,
    watch: &'a mut (dyn FnMut(TurnEvent) + Send),
    screen: Screen,
    thoughts: Thoughts,
    records: Vec<ToolCall>,
    /// Calls so far, those that were held included.
    calls: usize,
    /// Whether the user has confirmed something.
    released: bool,
    /// What waits for consent.
    held: Vec<Act>,
    /// Whether a call has changed something.
    changed: bool,
    /// The failure that nothing has made good since.
    failure: Option<Broken>,
    warnings: Vec<String>,
    asked: Vec<Asked>,
    answered_by: Option<String>,
}

struct Broken {
    error_type: ErrorType,
    words: String,
    code: Option<String>,
}

impl Run<'_, '_> {
    async fn converse(mut self, models: &Models) -> store::Result<AgentResult> {
        let commands = &self.request.reading.commands;
        let thought = wording::thinking(commands);
        if let Some(command) = commands.first() {
            log::reasoning(&thought, command);
        }
        (self.watch)(TurnEvent::Thinking { content: thought });
        self.tell_missing();
        let mut steps: Vec<Step> = Vec::new();
        let specs = self.specs.clone();
        let mut at = 0;
        while let Some(model) = models.get(at) {
            self.ours = model.is_ours();
            self.answered_by = Some(model.name().to_owned());
            let next = models.get(at + 1);
            let until = self.until(next.is_some());
            let context = self.context;
            let request = self.request;
            let prompt = Prompt { context, request, tools: &specs, steps: &steps, until };
            let mut step = match self.listen(model, prompt).await {
                Ok(Said::End) => return Ok(self.end()),
                Ok(Said::Calls(step)) => step,
                Err(broken) if broken.error_type != ErrorType::ModelUnavailable => return Ok(self.break_off(broken)),
                Err(broken) => {
                    match next {
                        Some(next) if !self.changed || !next.is_ours() => self.fall_back(next, &mut steps),
                        _ => return Ok(self.break_off(broken)),
                    }
                    at += 1;
                    continue;
                }
            };
            for (call, outcome) in &mut step.calls {
                if self.calls >= self.limits.max_tool_calls {
                    let broken = self.too_many();
                    return Ok(self.break_off(broken));
                }
                match Box::pin(self.carry_out(call, Consent::Missing)).await {
                    Ok(done) => *outcome = done,
                    Err(CallError::Late) => return Ok(self.break_off(late())),
                    Err(CallError::Store(error)) => return Err(error),
                }
            }
            steps.push(step);
        }
        Ok(self.end())
    }

    /// Calls one tool and keeps the record of it.
    async fn carry_out(&mut self, call: &Call, consent: Consent) -> Result<Outcome, CallError> {
        let name: String = call.name.chars().take(64).collect();
        let arguments = parse(&call.arguments);
        let mut shown = arguments.clone().unwrap_or_default();
        // Whose tasks they are is nothing that a model says (AGENT-3, AGENT-5).
        shown.remove("user_id");
        let called = record::called(&name, &shown);
        let mut shown = Value::Object(shown);
        redact_json(&mut shown);
        let event = |status| TurnEvent::ToolCall { tool_name: name.clone(), arguments: shown.clone(), status };
        // What may be held is not told of before it is known to be carried out.
        let specs = self.specs.clone();
        let spec = specs.iter().find(|spec| spec.name == call.name);
        let may_be_held = consent == Consent::Missing && spec.is_some_and(|spec| spec.destructive);
        if !may_be_held {
            (self.watch)(event(Status::InProgress));
        }
        self.calls += 1;
        let started = Instant::now();
        let outcome = match arguments {
            Err(failure) => Outcome::Done(Answer::failed(failure)),
            Ok(arguments) => {
                let calling = self.toolbox.call(&call.name, arguments, consent);
                // What our own have begun will be done: better late than told to have failed.
                let grace = if spec.is_none_or(Spec::is_ours) { GRACE } else { Duration::ZERO };
                match within(self.deadline.map(|deadline| deadline + grace), calling).await {
                    Some(Ok(outcome)) => outcome,
                    // The transaction is lost, and with it everything of this turn.
                    Some(Err(error)) if self.deadline.is_none() => return Err(CallError::Store(error)),
                    Some(Err(error)) => {
                        log::failed(ErrorType::ToolExecutionFailed.as_str(), &error.to_string(), true);
                        let message = "The tasks cannot be reached right now.";
                        Outcome::Done(Answer::failed(Failure::new(answer::UNAVAILABLE, message)))
                    }
                    None => {
                        (self.watch)(event(Status::Failed));
                        return Err(CallError::Late);
                    }
                }
            }
        };
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let answer = match &outcome {
            Outcome::Done(answer) => answer,
            Outcome::Held(act) => {
                if !self.held.contains(act) {
                    self.held.push(act.clone());
                }
                return Ok(outcome);
            }
        };
        if may_be_held {
            (self.watch)(event(Status::InProgress));
        }
        let mut result = answer.data().clone();
        shorten(&mut result);
        redact_json(&mut result);
        let failed = answer.error().map(|(code, message)| (code.to_owned(), message.to_owned()));
        called.log();
        record::result(&name, failed.is_none(), &result.to_string());
        (self.watch)(event(if failed.is_none() { Status::Completed } else { Status::Failed }));
        let error = failed.as_ref().map(|(code, message)| format!("{code}: {message}"));
        self.records.push(ToolCall { tool_name: name, parameters: shown, result, error, duration_ms });
        self.note(spec.is_some_and(|spec| !spec.read_only), failed);
        Ok(outcome)
    }

    /// What a call means for the end of the turn.
    fn note(&mut self, changes: bool, failed: Option<(String, String)>) {
        self.changed |= failed.is_none() && changes;
        self.failure = failed.filter(|(code, _)| code != answer::NOT_FOUND).map(|(code, message)| {
            let words = match code.as_str() {
                answer::VALIDATION_ERROR => wording::refused(&message),
                _ => wording::trouble().to_owned(),
            };
            let error_type = match code.as_str() {
                answer::UNAVAILABLE => ErrorType::McpUnavailable,
                _ => ErrorType::ToolExecutionFailed,
            };
            Broken { error_type, words, code: Some(code) }
        });
        if let Some(Broken { error_type, words, .. }) = &self.failure {
            let message = match error_type {
                ErrorType::McpUnavailable => wording::mcp_unavailable(&[]),
                _ => words.clone(),
            };
            let error_type = *error_type;
            (self.watch)(TurnEvent::Error { error_type, message, recoverable: true });
        }
    }

    /// Lets words out, as far as they may.
    fn say(&mut self, text: &str) {
        // Once something waits for consent, what another's model says about it may be wrong.
        if self.held.is_empty() || self.ours {
            let piece = self.screen.push(text);
            self.tell(piece);
        }
    }

    fn tell(&mut self, piece: Option<String>) {
        if let Some(delta) = piece {
            let accumulated = self.screen.text().to_owned();
            (self.watch)(TurnEvent::ResponseDelta { delta, accumulated });
        }
    }

    /// Says what was done before it became too much.
    fn too_many(&self) -> Broken {
        Broken { error_type: ErrorType::LimitReached, words: wording::too_many_calls(&self.done()), code: None }
    }

    /// The titles of what has been changed in this turn.
    fn done(&self) -> Vec<String> {
        let changes = |name: &str| self.specs.iter().any(|spec| spec.name == name && !spec.read_only);
        let done = self.records.iter().filter(|call| call.error.is_none() && changes(&call.tool_name));
        done.filter_map(|call| call.result["title"].as_str()).map(|title| format!("'{title}'")).collect()
    }

    /// Ends the turn with these words.
    fn answer(mut self, words: &str) -> AgentResult {
        let piece = self.screen.push(words);
        self.tell(piece);
        self.end()
    }

    /// Ends the turn: what the model said, then what must be confirmed.
    fn end(mut self) -> AgentResult {
        let rest = self.screen.finish();
        self.tell(rest);
        let held = Held::of(std::mem::take(&mut self.held));
        if let Some(held) = &held {
            if self.screen.text().is_empty() && self.changed && !self.ours {
                self.add(&wording::done(&self.done()));
            }
            self.add(&wording::confirm(&held.acts, &held.phrase));
        } else if self.screen.text().trim().is_empty() && self.failure.is_none() && self.changed {
            // The model has done what it was asked to and has nothing to say about it.
            self.add(&wording::done(&self.done()));
        } else if self.screen.text().trim().is_empty() {
            let words =
                self.failure.as_ref().map_or_else(|| wording::trouble().to_owned(), |broken| broken.words.clone());
            if self.failure.is_none() {
                self.failure =
                    Some(Broken { error_type: ErrorType::ModelUnavailable, words: words.clone(), code: None });
                let error_type = ErrorType::ModelUnavailable;
                (self.watch)(TurnEvent::Error { error_type, message: words.clone(), recoverable: true });
            }
            self.add(&words);
        }
        self.result(held)
    }

    /// Ends the turn where it must not go on. What has been done so far stays done, and is told.
    fn break_off(mut self, broken: Broken) -> AgentResult {
        let rest = self.screen.finish();
        self.tell(rest);
        let Broken { error_type, words, .. } = &broken;
        let message = match error_type {
            ErrorType::ModelUnavailable => wording::model_unavailable(None),
            _ => words.clone(),
        };
        (self.watch)(TurnEvent::Error { error_type: *error_type, message, recoverable: false });
        let words = words.clone();
        self.add(&words);
        self.failure = Some(broken);
        self.result(None)
    }

    /// Words of our own, on a line of their own.
    fn add(&mut self, words: &str) {
        let line = self.screen.add_line(&without_ids(words));
        self.tell(Some(line));
    }

    fn result(self, held: Option<Held>) -> AgentResult {
        let command = self.request.reading.commands.first();
        let bulk = |call: &ToolCall| call.tool_name.starts_with("complete");
        let (intent, confidence) = match command {
            Some(_) if self.released && self.records.iter().any(bulk) => (Intent::CompleteTask, 1.0),
            Some(_) if self.released => (Intent::DeleteTask, 1.0),
            Some(command) if command.missing.is_some() => (Intent::ClarificationNeeded, command.confidence),
            Some(command) => (command.intent, command.confidence),
            None => (Intent::Unknown, 0.0),
        };
        let (error, error_type, tool_error) = match self.failure {
            Some(Broken { error_type, words, code }) => (Some(words), Some(error_type), code),
            None => (None, None, None),
        };
        AgentResult {
            success: error.is_none(),
            response: self.screen.text().trim_end().to_owned(),
            tool_calls: self.records,
            error,
            error_type,
            tool_error,
            held,
            warnings: self.warnings,
            asked: self.asked,
            answered_by: self.answered_by,
            intent,
            confidence,
        }
    }
}

enum CallError {
    Late,
    Store(store::Error),
}

fn late() -> Broken {
    Broken { error_type: ErrorType::Timeout, words: wording::timed_out().to_owned(), code: None }
}

/// `None` when the deadline comes first.
async fn within<T>(deadline: Option<tokio::time::Instant>, work: impl Future<Output = T>) -> Option<T> {
    match deadline {
        None => Some(work.await),
        Some(deadline) => tokio::time::timeout_at(deadline, work).await.ok(),
    }
}

fn parse(arguments: &str) -> Result<Arguments, Failure> {
    let failure = |message: &str| Failure::new(answer::VALIDATION_ERROR, message);
    if arguments.len() > MAX_ARGUMENTS {
        return Err(failure("arguments must not be that long"));
    }
    if arguments.trim().is_empty() {
        return Ok(Arguments::new());
    }
    serde_json::from_str(arguments).map_err(|_| failure("arguments must be a JSON object"))
}

/// A long list is kept in part; `count` still says how many there were.
fn shorten(result: &mut Value) {
    if let Some(tasks) = result.get_mut("tasks").and_then(Value::as_array_mut) {
        tasks.truncate(RECORDED);
    }
}
