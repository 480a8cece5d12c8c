//! The state of a conversation, derived from its stored messages: the last exchange that did something, and the tasks
//! that it was about (TRUST-3).

use model::conversation::{Message, MessageRole, ToolCall};
use serde_json::Value;
use tools::{ToolKind, ToolSpecs};

use crate::mentions::TaskMention;
use crate::wording;

/// The number of messages of the assistant that are searched for the last exchange. Small talk lies between.
const MAX_EXCHANGES: usize = 4;

/// The last exchange that has a meaning for the next message.
#[derive(Clone, Copy, Debug)]
pub(super) enum LastAct<'h> {
    /// A call that changed something, the last one of its message.
    Changed(ToolKind, &'h ToolCall),
    /// Calls of this kind wait for a confirmation.
    Held(ToolKind),
    /// A list was shown.
    Listed,
    /// A question about one task was answered.
    Answered,
    /// The assistant found no task with this name, or asked which one was meant.
    Asked,
    Nothing,
}

/// The last exchange: its effect, and the message of the user.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastExchange<'h> {
    pub(super) act: LastAct<'h>,
    pub(super) user: &'h str,
    /// All calls of the message of the assistant.
    pub(super) calls: &'h [ToolCall],
    /// True if no small talk lies between.
    pub(super) is_recent: bool,
}

/// Returns the last exchange that did something, showed a list or answered a question.
pub(super) fn last_exchange<'h>(history: &'h [Message], specs: &ToolSpecs) -> LastExchange<'h> {
    let answers = history.iter().enumerate().rev().filter(|(_, message)| message.role == MessageRole::Assistant);
    for (age, (at, message)) in answers.take(MAX_EXCHANGES).enumerate() {
        let act = act_of(message, specs);
        if let LastAct::Nothing = act {
            continue;
        }
        let before = history[..at].iter().rev().find(|message| message.role == MessageRole::User);
        let user = before.map(|message| message.content.as_str()).unwrap_or_default();
        return LastExchange { act, user, calls: &message.tool_calls, is_recent: age == 0 };
    }
    LastExchange { act: LastAct::Nothing, user: "", calls: &[], is_recent: true }
}

fn act_of<'h>(message: &'h Message, specs: &ToolSpecs) -> LastAct<'h> {
    let kind_of = |name: &str| specs.iter().find(|spec| spec.name == name).filter(|spec| !spec.read_only)?.kind;
    let held = message.pending.as_ref().and_then(|pending| {
        let name = pending["acts"].as_array()?.last()?["tool"].as_str()?;
        kind_of(name)
    });
    if let Some(kind) = held {
        return LastAct::Held(kind);
    }
    let succeeded = message.tool_calls.iter().rev().filter(|call| call.error.is_none());
    if let Some((kind, call)) = succeeded.filter_map(|call| Some((kind_of(&call.tool_name)?, call))).next() {
        return LastAct::Changed(kind, call);
    }
    if wording::read_missing(&message.content).is_some()
        || wording::read_ambiguous(&message.content).is_some()
        || wording::read_not_found(&message.content).is_some()
    {
        return LastAct::Asked;
    }
    if !wording::read_list(&message.content).is_empty() {
        return LastAct::Listed;
    }
    let has_title = message.content.contains('\'') && !message.tool_calls.is_empty();
    let is_empty_list = message.content.starts_with("You have no") && !message.tool_calls.is_empty();
    match (has_title, is_empty_list) {
        (_, true) => LastAct::Listed,
        (true, _) => LastAct::Answered,
        _ => LastAct::Nothing,
    }
}

/// Returns the tasks that a call has changed.
pub(super) fn changed_tasks(call: &ToolCall) -> Vec<TaskMention> {
    let result = &call.result;
    let one = TaskMention::from_task(&result["next_task"]).or(TaskMention::from_task(&result["task"]));
    let of_entry = |entry: &Value| TaskMention::from_task(&entry["task"]).or(TaskMention::from_task(entry));
    let many = result["tasks"].as_array().into_iter().flatten().filter_map(of_entry);
    one.into_iter().chain(many).collect()
}
