//! The run, the schedule and the agent that the conversation mentioned last.

use model::conversation::{Message, MessageRole, ToolCall};
use serde_json::Value;

/// The number of replies in which a pronoun may refer to an agent.
const PRONOUN_REPLIES: usize = 8;

/// The object of the newest reply that has one. Both fields are empty if that is a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::offline) struct Focus {
    /// The id of an execution.
    pub(in crate::offline) execution: Option<String>,
    /// The id or the name of a schedule.
    pub(in crate::offline) schedule: Option<String>,
    /// The reply is about a task.
    pub(in crate::offline) is_task: bool,
}

impl Focus {
    /// Returns the object of the newest reply that has one. A report of a run may come late, so a run that was started
    /// after it is preferred. Ids of runs grow with the time.
    pub(in crate::offline) fn of(history: &[Message]) -> Self {
        let mut reported: Option<Self> = None;
        for reply in replies(history) {
            let Some(found) = Self::of_reply(reply) else { continue };
            let is_later = reported.as_ref().is_none_or(|reported| found.execution > reported.execution);
            if is_later {
                reported = Some(found);
            }
            if !crate::report::is_agent_report(reply) {
                break;
            }
        }
        reported.unwrap_or_default()
    }

    fn of_reply(reply: &Message) -> Option<Self> {
        let held = reply.pending.as_ref().and_then(|pending| pending["acts"].as_array()?.last().cloned());
        if let Some(held) = held {
            let tool = held["tool"].as_str().unwrap_or_default();
            let schedule = held["arguments"]["schedule"].as_str().filter(|_| tool.ends_with("_schedule"));
            let is_task = schedule.is_none() && tool.contains("task");
            return Some(Self { schedule: schedule.map(str::to_owned), is_task, execution: None });
        }
        reply.tool_calls.iter().rev().find_map(Self::of_call)
    }

    fn of_call(call: &ToolCall) -> Option<Self> {
        if call.error.is_some() {
            return None;
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        if call.tool_name == "agent_report" {
            return Some(Self { execution: text(&call.parameters["execution_id"]), ..Self::default() });
        }
        let result = &call.result;
        let only = match result["executions"].as_array().map(Vec::as_slice) {
            Some([only]) => only,
            _ => result,
        };
        let only = match result["schedules"].as_array().map(Vec::as_slice) {
            Some([only]) if reply_is_list(call) => {
                return Some(Self { schedule: text(&only["id"]), ..Self::default() });
            }
            _ => only,
        };
        let execution = text(&only["execution_id"]);
        let schedule = text(&only["schedule_id"]);
        if execution.is_some() || schedule.is_some() {
            return Some(Self { execution, schedule, is_task: false });
        }
        let has_tasks = result["tasks"].as_array().is_some_and(|tasks| !tasks.is_empty());
        let is_task = has_tasks || ["task", "next_task", "task_id"].iter().any(|key| !result[*key].is_null());
        is_task.then(|| Self { is_task, ..Self::default() })
    }
}

fn reply_is_list(call: &ToolCall) -> bool {
    call.tool_name == "list_schedules"
}

/// Returns the replies of the assistant, the newest first.
fn replies(history: &[Message]) -> impl Iterator<Item = &Message> {
    history.iter().rev().filter(|message| message.role == MessageRole::Assistant)
}

/// Returns the id of the agent that the newest replies started, scheduled or reported on.
pub(in crate::offline) fn last_agent(history: &[Message]) -> Option<String> {
    let calls = replies(history).take(PRONOUN_REPLIES).flat_map(|reply| reply.tool_calls.iter().rev());
    let ids = calls.filter(|call| call.error.is_none()).filter_map(|call| {
        let only = call.result["executions"].as_array().filter(|list| list.len() == 1).and_then(|list| list.first());
        only.unwrap_or(&call.result)["agent_id"].as_str().map(str::to_owned)
    });
    ids.into_iter().next()
}

/// Returns the schedules of the list that the newest reply with a list of schedules shows.
pub(in crate::offline) fn last_schedule_list(history: &[Message]) -> Vec<String> {
    let lists = replies(history).filter(|reply| reply.content.contains("\n1. "));
    let ids = lists.filter_map(|reply| {
        let list = reply.tool_calls.iter().rev().find_map(|call| call.result["schedules"].as_array())?;
        Some(list.iter().filter_map(|schedule| schedule["id"].as_str().map(str::to_owned)).collect())
    });
    ids.into_iter().next().unwrap_or_default()
}

/// Returns true if a reply of the conversation was about schedules.
pub(in crate::offline) fn has_schedules(history: &[Message]) -> bool {
    replies(history).any(|reply| {
        reply.tool_calls.iter().any(|call| {
            call.result["schedule_id"].is_string() || call.result["schedules"].as_array().is_some_and(|l| !l.is_empty())
        })
    })
}
