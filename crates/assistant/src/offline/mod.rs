//! The built-in model. It needs no key and no network. A fixed policy uses the language engine to understand the
//! message, looks up tasks, calls tools and formats the reply. It is deterministic: the same conversation leads to the
//! same calls.

mod agents;
mod anchored;
mod clauses;
mod commands;
mod continuation;
mod dialogue;
mod due_times;
mod follow_up;
mod fragment;
mod framing;
mod limited_tools;
mod lookup;
mod matching;
mod questions;
mod reminders;
mod schedules;
mod small_talk;
mod task_words;
mod timing;
mod titles;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::Value;
use tools::{ToolAnswer, ToolArguments, ToolKind, ToolOutcome, ToolSpec};
use understand::{Intent, TaskTarget};

pub(crate) use agents::{requested_run, requests_stop};
pub(crate) use matching::normalize as normalize_words;
pub(crate) use schedules::requests_schedule;

use crate::mentions::{self, TaskMention};
use crate::{ChatModel, ModelError, Prompt, ReplyDelta, RequestedCall, wording};

/// The built-in model.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfflineModel;

impl ChatModel for OfflineModel {
    fn name(&self) -> &str {
        "offline"
    }

    fn is_immediate(&self) -> bool {
        true
    }

    fn is_built_in(&self) -> bool {
        true
    }

    /// Runs the policy once. Yields the reply line by line, or the next tool call without text. Never yields an error.
    fn reply<'a>(&'a self, prompt: Prompt<'a>) -> BoxStream<'a, Result<ReplyDelta, ModelError>> {
        let deltas = match OfflinePolicy::new(prompt).run() {
            Ok(text) => text.split_inclusive('\n').map(|line| ReplyDelta::Text(line.to_owned())).collect(),
            Err(PendingCall(call)) => vec![ReplyDelta::Call(call)],
        };
        stream::iter(deltas.into_iter().map(Ok)).boxed()
    }
}

/// The policy calls tools as if they returned immediately. A call with a result in the transcript gets that result. The
/// first call without a result ends the policy. The agent loop makes that call and then runs the policy again.
struct OfflinePolicy<'a> {
    prompt: Prompt<'a>,
    /// The number of calls that have received their results.
    answered: usize,
    /// The task that "it" refers to at this point.
    last: Option<TaskMention>,
    /// The tasks that "them" refers to, if an earlier clause of the message names them.
    named: Vec<TaskMention>,
    /// With many commands, one list call serves all of them.
    list: TaskListCache<'a>,
}

enum TaskListCache<'a> {
    /// Every name is looked up with its own call.
    PerName,
    /// The next lookup loads the list for all names.
    Requested,
    Loaded(&'a [Value]),
}

/// The reading of a message.
enum Reading {
    Commands(Vec<follow_up::ResolvedCommand>),
    /// The answer to a question.
    Reply(String),
}

/// A call that has no result yet.
struct PendingCall(RequestedCall);

/// The result of a call.
enum CallResult<'a> {
    Done(&'a Value),
    /// The code and the message of an error.
    Refused(&'a str, &'a str),
    /// Waits for a confirmation. The agent loop asks the user.
    Held,
}

impl<'a> OfflinePolicy<'a> {
    fn new(prompt: Prompt<'a>) -> Self {
        let last = mentions::last_task(&prompt.context.history);
        Self { prompt, answered: 0, last, named: Vec::new(), list: TaskListCache::Requested }
    }

    /// Runs the policy and returns the reply, with one line per command. A message about agents or schedules is
    /// answered without the commands. A command that waits for a confirmation has no line. Small talk replaces the line
    /// of a command that applies only if its task exists, if no task is found. With more than two commands that name
    /// tasks, one list serves all lookups. Fails with the first call that has no result yet.
    fn run(mut self) -> Result<String, PendingCall> {
        let utterance = &self.prompt.request.utterance;
        let is_unknown = utterance.commands.iter().all(|command| command.intent == Intent::Unknown);
        if utterance.skipped_quoted_text && is_unknown {
            return Ok(wording::quoted_text());
        }
        if utterance.is_uncertain {
            return Ok(wording::uncertain_message());
        }
        if let Some(text) = agents::answer(&mut self)? {
            return Ok(text);
        }
        if let Some(text) = self.answer_about_agents_in_clauses()? {
            return Ok(text);
        }
        let mut sentences = Vec::new();
        let commands = match self.read_message()? {
            Reading::Reply(text) => return Ok(text),
            Reading::Commands(commands) => commands,
        };
        for resolved in &commands {
            let sentence = commands::run(&mut self, resolved)?;
            let is_not_found = |sentence: &String| match &resolved.command.target {
                Some(TaskTarget::Named(name)) => *sentence == wording::not_found(name),
                _ => false,
            };
            sentences.extend(match sentence {
                Some(sentence) if resolved.only_if_found && is_not_found(&sentence) => {
                    Some(small_talk::answer(&self.prompt))
                }
                sentence => sentence,
            });
        }
        Ok(sentences.join("\n"))
    }

    /// Answers a command about agents or schedules that stands beside a reason: "I'm on holiday next week, pause it". No
    /// other clause may be a command of its own.
    fn answer_about_agents_in_clauses(&mut self) -> Result<Option<String>, PendingCall> {
        if self.spec(ToolKind::ListAgents).is_none() {
            return Ok(None);
        }
        let request = self.prompt.request;
        let framing = framing::Framing::read(&request.message);
        let parts = framing::clauses(&framing.body);
        let mut texts: Vec<String> = vec![framing.body.clone()];
        if parts.len() > 1 && parts.len() <= 4 {
            texts.extend(parts.iter().rev().map(|part| framing::Framing::read(part).body));
        }
        for text in texts.iter().filter(|text| !text.is_empty() && **text != request.message) {
            let others = parts.iter().filter(|part| framing::trim(part) != text && !text.contains(*part));
            let is_silent = others.clone().all(|part| {
                let commands = request.parser.parse(part, &request.now).commands;
                commands.iter().all(|command| command.intent == Intent::Unknown || command.implied)
            });
            if !is_silent {
                continue;
            }
            let mut inner_request = request.clone();
            inner_request.message.clone_from(text);
            inner_request.utterance = request.parser.parse(text, &request.now);
            let mut inner = OfflinePolicy {
                prompt: Prompt { request: &inner_request, ..self.prompt },
                answered: self.answered,
                last: self.last.clone(),
                named: Vec::new(),
                list: TaskListCache::PerName,
            };
            let reply = agents::answer(&mut inner)?;
            self.answered = inner.answered;
            if reply.is_some() {
                return Ok(reply);
            }
        }
        Ok(None)
    }

    /// Reads the message: as the answer to a question of the assistant, as a question, as the continuation of the last
    /// exchange, or as commands of its own.
    fn read_message(&mut self) -> Result<Reading, PendingCall> {
        // Only the engine knows which words of such a message are quoted.
        let utterance = &self.prompt.request.utterance;
        if utterance.skipped_quoted_text {
            let commands = utterance.commands.iter().cloned().map(follow_up::ResolvedCommand::new);
            return Ok(Reading::Commands(commands.collect()));
        }
        if let Some(answer) = follow_up::answer(&self.prompt) {
            return Ok(Reading::Commands(vec![answer]));
        }
        let framing = framing::Framing::read(&self.prompt.request.message);
        let last = dialogue::last_exchange(&self.prompt.context.history, self.prompt.tools);
        if questions::is_question(&framing)
            && let Some(reply) = questions::answer(self, &framing, &last)?
        {
            return Ok(Reading::Reply(reply));
        }
        if let Some(commands) = anchored::read_statements(self, &framing)? {
            return Ok(Reading::Commands(commands));
        }
        if let Some(commands) = continuation::read(self, &framing, &last)? {
            return Ok(Reading::Commands(commands));
        }
        if let Some(commands) = clauses::read(self, &framing, &last)? {
            return Ok(Reading::Commands(commands));
        }
        if let Some(commands) = anchored::read(self, &framing)? {
            return Ok(Reading::Commands(commands));
        }
        let same_day = clauses::with_known_day(self);
        Ok(Reading::Commands(match same_day {
            Some(utterance) => utterance.commands.into_iter().map(follow_up::ResolvedCommand::new).collect(),
            None => follow_up::commands(&self.prompt, &framing.body),
        }))
    }

    /// Returns the first tool of this kind, or `None` if the user has none.
    fn spec(&self, kind: ToolKind) -> Option<&'a ToolSpec> {
        self.prompt.tools.iter().find(|spec| spec.kind == Some(kind))
    }

    /// Returns the result of this call from the transcript. Results belong to calls by their order, because the policy
    /// repeats the same calls. So neither the tool nor the arguments are compared. Fails with the call itself if it has
    /// not been made yet. Arguments that an external tool does not have are left out of it.
    fn call(&mut self, spec: &ToolSpec, mut arguments: ToolArguments) -> Result<CallResult<'a>, PendingCall> {
        let outcome = self.prompt.steps.iter().flat_map(|step| &step.calls).nth(self.answered);
        let Some((_, outcome)) = outcome else {
            // An external tool may support fewer arguments than the built-in one.
            if !spec.is_built_in() {
                arguments.retain(|name, _| spec.has_argument(name));
            }
            let arguments = Value::Object(arguments).to_string();
            return Err(PendingCall(RequestedCall { name: spec.name.to_string(), arguments }));
        };
        self.answered += 1;
        Ok(match outcome {
            ToolOutcome::Held(_) => CallResult::Held,
            ToolOutcome::Done(answer) => match ToolAnswer::error(answer) {
                Some((code, message)) => CallResult::Refused(code, message),
                None => CallResult::Done(answer.data()),
            },
        })
    }
}
