//! The agent loop: queries the model and calls the requested tools until the model requests no more. Enforces all
//! limits, independent of the model.

mod claims;
mod corrections;
mod ending;
mod model_reply;
mod named_values;
mod read_back;
mod release;
mod summary;
mod thoughts;

use std::time::{Duration, Instant};

use model::conversation::ToolCall;
use redact::redact_json;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tools::answer::{self, ToolFailure};
use tools::{
    Consent, HeldCall, HeldCalls, ToolAnswer, ToolArguments, ToolOutcome, ToolSpec, ToolSpecs, Toolbox, call_log,
};
use understand::Intent;

use crate::confirm::{ConfirmationReply, OpenQuestion, read_confirmation};
use crate::response_filter::{DEFAULT_MAX_CHARS, ResponseFilter};
use crate::{
    AgentContext, ChatModel, ErrorType, ModelChain, ModelUsage, Prompt, RequestedCall, ToolCallStatus, ToolStep,
    TurnEvent, TurnRequest, log, own_words, report, wording,
};
pub(crate) use claims::ClaimKind;
use model_reply::{ReplyEnd, fallback_reserve};
use thoughts::ThoughtBuffer;

/// The maximum size of the arguments of a tool call, in bytes.
const MAX_ARGUMENT_BYTES: usize = 64 * 1024;
/// Extra time after the deadline of the turn in which a built-in tool may finish.
const BUILT_IN_TOOL_GRACE: Duration = Duration::from_secs(3);
/// The maximum number of tasks that the record of a tool call contains.
const MAX_RECORDED_TASKS: usize = 50;

/// The limits of a turn (AGENT-4).
#[derive(Clone, Copy, Debug)]
pub struct TurnLimits {
    pub max_tool_calls: usize,
    /// Limits the calls of models and tools. A turn in one transaction is only limited as a whole. Calls of external
    /// tools have their own limit.
    pub time_limit: Duration,
    /// Prose ends with the sentence that exceeds this length.
    pub max_answer_chars: usize,
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self { max_tool_calls: 10, time_limit: Duration::from_secs(30), max_answer_chars: DEFAULT_MAX_CHARS }
    }
}

/// S1's AgentRunner.
#[derive(Clone)]
pub struct AgentRunner {
    pub models: ModelChain,
    pub limits: TurnLimits,
}

/// S1's AgentResult.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AgentResult {
    pub success: bool,
    /// The reply to the user. Never empty.
    pub response: String,
    pub tool_calls: Vec<ToolCall>,
    /// The last failure, as text for the user.
    pub error: Option<String>,
    pub error_type: Option<ErrorType>,
    /// The error code of the tool, if a tool failed.
    pub tool_error: Option<String>,
    /// The calls that wait for a confirmation in the next message.
    #[serde(rename = "held")]
    pub pending: Option<HeldCalls>,
    /// Problems that did not fail the turn.
    pub warnings: Vec<String>,
    /// All calls of provider models.
    #[serde(rename = "asked")]
    pub model_calls: Vec<ModelCallRecord>,
    /// The model that answered. `None` if no model was needed.
    pub answered_by: Option<String>,
    /// The intent that the language engine found.
    pub intent: Intent,
    pub confidence: f64,
}

/// The record of one model call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ModelCallRecord {
    pub model: String,
    pub success: bool,
    pub usage: ModelUsage,
}

impl AgentResult {
    /// Returns the total usage of all model calls, or `None` if no tokens were counted.
    pub fn usage(&self) -> Option<ModelUsage> {
        let mut sum = ModelUsage::default();
        self.model_calls.iter().for_each(|call| sum += call.usage);
        Some(sum).filter(|sum| *sum != ModelUsage::default())
    }

    /// Creates the result of a turn that could not run at all. `text` is both the reply to the user and the error. The
    /// result has no calls, no model, and the intent `Unknown`.
    pub fn failed(error_type: ErrorType, text: &str) -> Self {
        Self {
            success: false,
            response: text.to_owned(),
            tool_calls: Vec::new(),
            error: Some(text.to_owned()),
            error_type: Some(error_type),
            tool_error: None,
            pending: None,
            warnings: Vec::new(),
            model_calls: Vec::new(),
            answered_by: None,
            intent: Intent::Unknown,
            confidence: 0.0,
        }
    }
}

impl AgentRunner {
    /// Runs the turn and reports events as they happen. A confirmation carries out the held calls without a model. If
    /// these can no longer be identified, the reply asks the user to repeat the request. Any other message goes to the
    /// models.
    ///
    /// The time limit applies unless the first model is immediate and all tools are built in. External tools must end
    /// earlier, to leave time for a reply. Fails only if the database fails in a turn without a deadline. All other
    /// failures are part of the result.
    pub(crate) async fn stream(
        &self,
        context: &AgentContext,
        request: &TurnRequest,
        toolbox: &mut Toolbox<'_>,
        on_event: &mut (dyn FnMut(TurnEvent) + Send),
    ) -> store::Result<AgentResult> {
        let deadline = match self.models.first().is_immediate() && toolbox.specs().iter().all(ToolSpec::is_built_in) {
            true => None,
            false => tokio::time::Instant::now().checked_add(self.limits.time_limit),
        };
        let tool_deadline =
            deadline.and_then(|deadline| deadline.checked_sub(fallback_reserve(self.limits.time_limit)));
        let tool_time = toolbox.max_call_time();
        toolbox.set_deadline(tool_deadline.map(|deadline| deadline + tool_time));
        let reply = read_confirmation(context, &request.message);
        // The text after a refusal is the request of this turn.
        let rest = match &reply {
            ConfirmationReply::RefuseThen(_, rest) => Some(request.with_message(rest.clone(), &context.user)),
            _ => None,
        };
        let request = rest.as_ref().unwrap_or(request);
        let mut filter = ResponseFilter::new(self.limits.max_answer_chars);
        filter.learn_context(context, &request.message);
        let mut run = TurnLoop {
            limits: self.limits,
            is_built_in: self.models.first().is_built_in(),
            specs: toolbox.specs().clone(),
            deadline,
            context,
            request,
            toolbox,
            on_event,
            filter,
            preface: 0,
            abandoned: 0,
            tool_time,
            open: None,
            confirmed: None,
            thoughts: ThoughtBuffer::default(),
            records: Vec::new(),
            calls: 0,
            released: false,
            held: Vec::new(),
            changed: false,
            has_foreign_text: context.history.iter().any(report::is_agent_report),
            failure: None,
            warnings: Vec::new(),
            model_calls: Vec::new(),
            answered_by: None,
        };
        // Only the future that waits for the model is stored inline. Many turns wait at once, so its size matters.
        match reply {
            ConfirmationReply::Release(held) => return Box::pin(run.release(held, &self.models)).await,
            ConfirmationReply::AllowAlways(held) => return Box::pin(run.allow_always(held, &self.models)).await,
            ConfirmationReply::ReleaseByTitle(title) => {
                return Box::pin(run.release_by_title(&title, &self.models)).await;
            }
            ConfirmationReply::Narrow(held) => return Box::pin(run.narrow(held, &self.models)).await,
            ConfirmationReply::UnknownCalls => return Ok(run.answer(&wording::confirm_again())),
            ConfirmationReply::Repeat(question) => return Ok(run.repeat(question)),
            ConfirmationReply::Cancel => return Ok(run.answer(&wording::not_confirmed())),
            ConfirmationReply::Refuse => return Ok(run.answer(&wording::nothing_changed())),
            ConfirmationReply::RefuseThen(held, _) => run.add_preface(&wording::dropped(held.as_ref())),
            ConfirmationReply::Postpone(question) => run.open = Some(question),
            ConfirmationReply::NoQuestion => {}
        }
        run.run_models(&self.models).await
    }
}

/// The state of a running turn.
struct TurnLoop<'a, 'b> {
    limits: TurnLimits,
    /// Set if the current model is built in.
    is_built_in: bool,
    /// The tools at the start of this turn.
    specs: ToolSpecs,
    deadline: Option<tokio::time::Instant>,
    context: &'a AgentContext,
    request: &'a TurnRequest,
    toolbox: &'a mut Toolbox<'b>,
    on_event: &'a mut (dyn FnMut(TurnEvent) + Send),
    filter: ResponseFilter,
    /// The length of the text that precedes the answer of the model, in bytes.
    preface: usize,
    /// The length of the text up to the end of the last provider model that failed, in bytes.
    abandoned: usize,
    thoughts: ThoughtBuffer,
    /// The time by which calls of external tools may still extend the turn.
    tool_time: Duration,
    /// The earlier question that stays open over this turn.
    open: Option<OpenQuestion>,
    /// The sentences about the confirmed calls, if a provider model continues after them.
    confirmed: Option<String>,
    records: Vec<ToolCall>,
    /// The number of calls so far, including held calls.
    calls: usize,
    /// Set if the user has confirmed held calls.
    released: bool,
    /// The calls that wait for a confirmation.
    held: Vec<HeldCall>,
    /// Set if a call has changed data.
    changed: bool,
    /// Set if the model has read text of an external tool or an agent.
    has_foreign_text: bool,
    /// The failure of the last tool call. A later successful call clears it.
    failure: Option<TurnFailure>,
    warnings: Vec<String>,
    model_calls: Vec<ModelCallRecord>,
    answered_by: Option<String>,
}

struct TurnFailure {
    error_type: ErrorType,
    /// The text for the user.
    text: String,
    /// The error code of the tool, if a tool failed.
    code: Option<String>,
}

impl TurnLoop<'_, '_> {
    /// Logs and reports the intent, and lets the models answer. Fails as [`Self::continue_models`] does.
    async fn run_models(self, models: &ModelChain) -> store::Result<AgentResult> {
        let commands = &self.request.utterance.commands;
        let thought = wording::intent_thought(commands);
        if let Some(command) = commands.first().filter(|_| !self.toolbox.is_prefetching()) {
            log::reasoning(&thought, command);
        }
        (self.on_event)(TurnEvent::Thinking { content: thought });
        self.continue_models(models, Vec::new()).await
    }

    /// Alternates between the model and the tools until a reply requests no calls. `steps` are the calls so far. Warns
    /// about unavailable servers first. If a model is unavailable, the next one continues, but not the built-in one
    /// after a tool ran: it would answer a second time. The turn ends with a failure if no model is left, the time
    /// limit passes, or a call exceeds the limit of calls. Earlier changes remain. After confirmed calls, a failure of
    /// the models ends the turn with the sentences about these calls. Fails only as [`Self::call_tool`] does.
    async fn continue_models(mut self, models: &ModelChain, mut steps: Vec<ToolStep>) -> store::Result<AgentResult> {
        self.warn_unavailable_tools();
        let specs = self.specs.clone();
        let mut at = 0;
        while let Some(model) = models.get(at) {
            self.is_built_in = model.is_built_in();
            self.answered_by = Some(model.name().to_owned());
            let next = models.get(at + 1);
            let deadline = self.model_deadline(next.is_some());
            let context = self.context;
            let request = self.request;
            let has_worker = self.toolbox.has_worker();
            let prompt = Prompt { context, request, tools: &specs, steps: &steps, has_worker, deadline };
            let mut step = match self.read_reply(model, prompt).await {
                Ok(ReplyEnd::Final) => return Ok(self.end()),
                Ok(ReplyEnd::Calls(step)) => step,
                Err(failure) => {
                    let is_unavailable = failure.error_type == ErrorType::ModelUnavailable;
                    let can_answer = |next: &dyn ChatModel| !next.is_built_in() || self.records.is_empty();
                    match next.filter(|next| is_unavailable && can_answer(*next)) {
                        Some(next) => self.fall_back(next, &mut steps),
                        None => return Ok(self.end_without_model(failure)),
                    }
                    at += 1;
                    continue;
                }
            };
            for (call, outcome) in &mut step.calls {
                if self.calls >= self.limits.max_tool_calls {
                    let failure = self.too_many_calls();
                    return Ok(self.abort(failure));
                }
                let consent = self.consent(call);
                match Box::pin(self.call_tool(call, consent)).await {
                    Ok(done) => *outcome = done,
                    Err(ToolCallError::TimedOut) => return Ok(self.abort(timeout_failure())),
                    Err(ToolCallError::Store(error)) => return Err(error),
                }
            }
            steps.push(step);
        }
        Ok(self.end())
    }

    /// Returns who decided on a call of the current model. The built-in model only repeats the commands of the user.
    fn consent(&self, call: &RequestedCall) -> Consent {
        let kind = self.specs.iter().find(|spec| spec.name == call.name).and_then(|spec| spec.kind);
        let is_users_word = || match (kind, parse_arguments(&call.arguments)) {
            (Some(kind), Ok(arguments)) => own_words::is_requested(self.request, kind, &arguments, &self.records),
            _ => false,
        };
        if self.is_built_in || is_users_word() {
            Consent::UserRequest
        } else if self.has_foreign_text {
            Consent::AfterForeignText
        } else {
            Consent::ModelDecision
        }
    }

    /// Calls one tool, logs it, reports its status and records it. Arguments for events, records and logs have no
    /// `user_id` and are redacted. So are results, and their lists of tasks are cut to [`MAX_RECORDED_TASKS`]. Names
    /// have at most 64 characters there. A held call is only added to the held calls, once, and reports no status.
    /// Every call counts.
    ///
    /// Invalid arguments and failures of the tool become its answer. So does a failure of the database in a turn with a
    /// deadline. Without a deadline, fails with [`ToolCallError::Store`]. Reports `Failed` and fails with
    /// [`ToolCallError::TimedOut`] after the deadline, without a record. A built-in or unknown tool has
    /// [`BUILT_IN_TOOL_GRACE`] more time.
    async fn call_tool(&mut self, call: &RequestedCall, consent: Consent) -> Result<ToolOutcome, ToolCallError> {
        let name: String = call.name.chars().take(64).collect();
        let arguments = parse_arguments(&call.arguments);
        let mut shown = arguments.clone().unwrap_or_default();
        // A model must not choose the user (AGENT-3, AGENT-5).
        shown.remove("user_id");
        let log_entry = call_log::start(&name, &shown);
        let mut shown = Value::Object(shown);
        redact_json(&mut shown);
        let summarized = |status, summary| {
            let arguments = shown.clone();
            TurnEvent::ToolCall { tool_name: name.clone(), arguments, status, summary }
        };
        let event = |status| summarized(status, None);
        // The start of a call that may be held is reported only once it is carried out.
        let specs = self.specs.clone();
        let spec = specs.iter().find(|spec| spec.name == call.name);
        let may_be_held = match consent {
            Consent::Given => false,
            Consent::UserRequest | Consent::ModelDecision => spec.is_some_and(|spec| spec.destructive),
            Consent::AfterForeignText => spec.is_some_and(|spec| !spec.read_only),
        };
        if !may_be_held {
            (self.on_event)(event(ToolCallStatus::InProgress));
        }
        self.calls += 1;
        let started = Instant::now();
        let outcome = match arguments {
            Err(failure) => ToolOutcome::Done(ToolAnswer::failed(failure)),
            Ok(arguments) => {
                // A built-in tool completes its work. A late success is better than a false failure. An external tool
                // has its own limit.
                let grace = if spec.is_none_or(ToolSpec::is_built_in) { BUILT_IN_TOOL_GRACE } else { self.tool_time };
                let deadline = self.deadline.map(|deadline| deadline + grace);
                let (progress, mut reports) = tokio::sync::mpsc::unbounded_channel();
                self.toolbox.set_progress(Some(progress));
                let called = {
                    let mut calling =
                        std::pin::pin!(within(deadline, self.toolbox.call(&call.name, arguments, consent)));
                    loop {
                        tokio::select! {
                            biased;
                            called = &mut calling => break called,
                            Some(report) = reports.recv() => {
                                let content = self.filter.filter_text(&wording::tool_progress(&name, &report));
                                (self.on_event)(TurnEvent::Thinking { content });
                            }
                        }
                    }
                };
                self.toolbox.set_progress(None);
                if spec.is_some_and(|spec| !spec.is_built_in()) {
                    self.extend_deadlines(started.elapsed());
                }
                match called {
                    Some(Ok(outcome)) => outcome,
                    // The whole turn is one transaction, and that transaction is lost.
                    Some(Err(error)) if self.deadline.is_none() => return Err(ToolCallError::Store(error)),
                    Some(Err(error)) => {
                        log::failed(ErrorType::ToolExecutionFailed.as_str(), &error.to_string(), true);
                        let message = "The tasks cannot be reached right now.";
                        ToolOutcome::Done(ToolAnswer::failed(ToolFailure::new(answer::UNAVAILABLE, message)))
                    }
                    None => {
                        (self.on_event)(event(ToolCallStatus::Failed));
                        return Err(ToolCallError::TimedOut);
                    }
                }
            }
        };
        let duration = started.elapsed() + self.toolbox.take_prefetch_time();
        let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let answer = match &outcome {
            ToolOutcome::Done(answer) => answer,
            ToolOutcome::Held(held) => {
                if !self.held.contains(held) {
                    self.held.push(held.clone());
                }
                return Ok(outcome);
            }
        };
        if may_be_held {
            (self.on_event)(event(ToolCallStatus::InProgress));
        }
        let mut result = answer.data().clone();
        self.filter.learn(&shown);
        self.filter.learn(&result);
        truncate_tasks(&mut result);
        redact_json(&mut result);
        let failed = answer.error().map(|(code, message)| (code.to_owned(), message.to_owned()));
        if !self.toolbox.is_prefetching() {
            log_entry.finish(duration);
            call_log::log_result(&name, failed.is_none(), &result.to_string());
        }
        let changes = spec.is_some_and(|spec| !spec.read_only);
        let summary = (changes && failed.is_none()).then(|| summary::stored_summary(&result, &self.request.now));
        let status = if failed.is_none() { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
        (self.on_event)(summarized(status, summary.flatten()));
        let error = failed.as_ref().map(|(code, message)| format!("{code}: {message}"));
        self.records.push(ToolCall { tool_name: name, parameters: shown, result, error, duration_ms });
        self.update_failure(spec.is_some_and(|spec| !spec.read_only), failed);
        self.has_foreign_text |= spec.is_some_and(own_words::returns_foreign_text);
        Ok(outcome)
    }

    /// Extends the turn by the time that an external tool took, as long as there is time left for that.
    fn extend_deadlines(&mut self, taken: Duration) {
        let extension = taken.min(self.tool_time);
        self.tool_time -= extension;
        self.deadline = self.deadline.map(|deadline| deadline + extension);
        let time_limit = self.limits.time_limit;
        let tool_deadline = self.deadline.and_then(|deadline| deadline.checked_sub(fallback_reserve(time_limit)));
        self.toolbox.set_deadline(tool_deadline.map(|deadline| deadline + self.tool_time));
    }

    /// Updates the state of the turn after a call. `changes` is set for tools that change data, and counts only after a
    /// success. `failed` has the code and the message of an error. An error becomes the failure of the turn and a
    /// recoverable `Error` event. A success and `NOT_FOUND` clear the failure, without an event. The type is
    /// `McpUnavailable` for `UNAVAILABLE`, otherwise `ToolExecutionFailed`. The user reads the message only of a
    /// validation error or a quota. Any other text is the system error, but the event of `UNAVAILABLE` has its own sentence.
    fn update_failure(&mut self, changes: bool, failed: Option<(String, String)>) {
        self.changed |= failed.is_none() && changes;
        self.failure = failed.filter(|(code, _)| code != answer::NOT_FOUND).map(|(code, message)| {
            let text = match code.as_str() {
                answer::VALIDATION_ERROR => wording::refused(&message),
                answer::LIMIT_REACHED => wording::limit_reached(&message),
                _ => wording::system_error().to_owned(),
            };
            let error_type = match code.as_str() {
                answer::UNAVAILABLE => ErrorType::McpUnavailable,
                _ => ErrorType::ToolExecutionFailed,
            };
            TurnFailure { error_type, text, code: Some(code) }
        });
        if let Some(TurnFailure { error_type, text, .. }) = &self.failure {
            let message = match error_type {
                ErrorType::McpUnavailable => wording::mcp_unavailable(&[]),
                _ => text.clone(),
            };
            let error_type = *error_type;
            (self.on_event)(TurnEvent::Error { error_type, message, recoverable: true });
        }
    }

    /// Sends text of the model through the filter. Ignores text of a provider model once a call is held.
    fn push_text(&mut self, text: &str) {
        // Once a call is held, the text of a provider model about it may be wrong.
        if self.held.is_empty() || self.is_built_in {
            let piece = self.filter.push(text);
            self.emit_delta(piece);
        }
    }

    fn emit_delta(&mut self, piece: Option<String>) {
        if let Some(delta) = piece {
            let accumulated = self.filter.text().to_owned();
            (self.on_event)(TurnEvent::ResponseDelta { delta, accumulated });
        }
    }
}

enum ToolCallError {
    TimedOut,
    /// The database failed, and the transaction of the turn is lost.
    Store(store::Error),
}

fn timeout_failure() -> TurnFailure {
    TurnFailure { error_type: ErrorType::Timeout, text: wording::timed_out().to_owned(), code: None }
}

/// Waits for `work` until the deadline. Returns `None` if the deadline comes first.
async fn within<T>(deadline: Option<tokio::time::Instant>, work: impl Future<Output = T>) -> Option<T> {
    match deadline {
        None => Some(work.await),
        Some(deadline) => tokio::time::timeout_at(deadline, work).await.ok(),
    }
}

/// Parses the arguments of a call. Blank text means no arguments. Fails with `VALIDATION_ERROR` if the text exceeds
/// [`MAX_ARGUMENT_BYTES`] or is not a JSON object.
fn parse_arguments(arguments: &str) -> Result<ToolArguments, ToolFailure> {
    let failure = |message: &str| ToolFailure::new(answer::VALIDATION_ERROR, message);
    if arguments.len() > MAX_ARGUMENT_BYTES {
        return Err(failure("arguments must not be longer than 64 KiB"));
    }
    if arguments.trim().is_empty() {
        return Ok(ToolArguments::new());
    }
    serde_json::from_str(arguments).map_err(|_| failure("arguments must be a JSON object"))
}

/// Truncates a long task list. The field `count` still has the full number.
fn truncate_tasks(result: &mut Value) {
    if let Some(tasks) = result.get_mut("tasks").and_then(Value::as_array_mut) {
        tasks.truncate(MAX_RECORDED_TASKS);
    }
}
