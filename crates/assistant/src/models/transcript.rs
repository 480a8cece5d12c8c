//! The transcript for a provider model: the instructions, the messages, and the tool calls with their results. The wire
//! encodes it.

use std::borrow::Cow;

use model::conversation::MessageRole;
use tools::{ToolOutcome, ToolSpec, ToolSpecs};

use super::accumulator::{CallPart, RecordedReply, ReplyPart};
use crate::{Prompt, ToolStep, report};

/// The constant part of the system prompt. Providers can cache it.
const INSTRUCTIONS: &str = include_str!("instructions.md");

/// The content of a request, except the tools.
pub(super) struct ModelTranscript<'a> {
    pub(super) system: String,
    pub(super) entries: Vec<TranscriptEntry<'a>>,
}

pub(super) enum TranscriptEntry<'a> {
    System(&'a str),
    User(Cow<'a, str>),
    Assistant(&'a str),
    ToolRound(ToolRound<'a>),
}

/// A reply that called tools, with the result of each call.
pub(super) struct ToolRound<'a> {
    pub(super) parts: Cow<'a, [ReplyPart]>,
    pub(super) results: Vec<ToolResult<'a>>,
}

pub(super) struct ToolResult<'a> {
    /// The call id of the provider, or a generated one if the provider sent none.
    pub(super) id: Cow<'a, str>,
    pub(super) name: &'a str,
    pub(super) text: String,
}

impl<'a> ModelTranscript<'a> {
    /// Creates the transcript for the model with this label: the system prompt, the history, the message, and the tool
    /// calls of this turn. Blank messages of the history are left out. Reports of agents are quoted as text of the
    /// user, because they are not words of the assistant. The current message is always included.
    pub(super) fn new(prompt: &Prompt<'a>, model: &str) -> Self {
        let mut entries = Vec::with_capacity(prompt.context.history.len() + prompt.steps.len() + 1);
        for message in prompt.context.history.iter().filter(|message| !message.content.trim().is_empty()) {
            entries.push(match message.role {
                MessageRole::User => TranscriptEntry::User(Cow::Borrowed(&message.content)),
                MessageRole::Assistant if report::is_agent_report(message) => {
                    TranscriptEntry::User(Cow::Owned(report::quote_report(&message.content)))
                }
                MessageRole::Assistant => TranscriptEntry::Assistant(&message.content),
                MessageRole::System => TranscriptEntry::System(&message.content),
            });
        }
        entries.push(TranscriptEntry::User(Cow::Borrowed(&prompt.request.message)));
        let rounds = prompt.steps.iter().enumerate().map(|(n, step)| tool_round(n, step, model, prompt.tools));
        entries.extend(rounds.map(TranscriptEntry::ToolRound));
        Self { system: system_prompt(prompt), entries }
    }

    /// Returns the system prompt with all system messages, for providers that take only one.
    pub(super) fn combined_system(&self) -> Cow<'_, str> {
        let texts = self.entries.iter().filter_map(|entry| match entry {
            TranscriptEntry::System(text) => Some(*text),
            _ => None,
        });
        texts.fold(Cow::Borrowed(self.system.as_str()), |all, text| Cow::Owned(format!("{all}\n\n{text}")))
    }
}

/// Returns the length of the conversation in bytes, for the log.
pub(super) fn prompt_length(prompt: &Prompt<'_>) -> usize {
    let history: usize = prompt.context.history.iter().map(|message| message.content.len()).sum();
    INSTRUCTIONS.len() + history + prompt.request.message.len()
}

/// Returns the instructions, followed by the date, the time and the time zone of the user.
fn system_prompt(prompt: &Prompt<'_>) -> String {
    let now = &prompt.request.now;
    let zone = now.time_zone().iana_name().unwrap_or("the person's time zone");
    format!("{INSTRUCTIONS}\nIt is {}, {} in {zone}.", now.strftime("%A, %Y-%m-%d"), now.strftime("%H:%M"))
}

/// Converts step `n` of the turn for the model with this label. A reply of this model is sent back complete. Of a reply
/// of another model, only the calls are kept. A result without a call id gets `call_N_M` from `n` and its position.
/// `specs` determine the text format of the results.
fn tool_round<'a>(n: usize, step: &'a ToolStep, model: &str, specs: &ToolSpecs) -> ToolRound<'a> {
    let recorded = step.provider_state.as_ref().and_then(|state| state.0.downcast_ref::<RecordedReply>());
    let recorded = recorded.filter(|reply| reply.model == model);
    let parts: Cow<'a, [ReplyPart]> = match recorded {
        Some(reply) => Cow::Borrowed(&reply.parts),
        // The reply of another model. Only its calls are portable.
        None => step.calls.iter().map(|(call, _)| ReplyPart::Call(CallPart::from_requested(call))).collect(),
    };
    let call_id = |at: usize| match recorded.and_then(|reply| reply.calls().nth(at)) {
        Some(call) if !call.id.is_empty() => Cow::Borrowed(call.id.as_str()),
        _ => Cow::Owned(format!("call_{n}_{at}")),
    };
    let results = step.calls.iter().enumerate().map(|(at, (call, outcome))| {
        let spec = specs.iter().find(|spec| spec.name == call.name);
        ToolResult { id: call_id(at), name: &call.name, text: outcome_text(spec, outcome) }
    });
    ToolRound { parts, results: results.collect() }
}

/// Returns the result of a call as text, in the format of S3. A held call gets a note that the user is asked to confirm
/// it.
fn outcome_text(spec: Option<&ToolSpec>, outcome: &ToolOutcome) -> String {
    match outcome {
        ToolOutcome::Done(answer) => answer.text(spec.and_then(|spec| spec.kind)),
        ToolOutcome::Held(_) => {
            "Not done yet: the user is asked to confirm this call, and it runs when they do. Do not call it again."
                .to_owned()
        }
    }
}
