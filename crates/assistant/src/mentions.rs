//! Finds the tasks that the conversation mentioned: the last list and the last single task.
//!
//! Uses the recorded tool results if the conversation has them, otherwise the texts of the replies.

use model::conversation::{Message, MessageRole};
use serde_json::Value;

use crate::wording;

/// A task that was mentioned. It has no id if only the text of a reply is known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TaskMention {
    pub(crate) id: Option<Value>,
    pub(crate) title: String,
    /// Status at the time of the mention.
    pub(crate) completed: bool,
    /// Due date at the time of the mention.
    pub(crate) due: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) tags: Vec<String>,
    /// Set if the fields are current, and not from an earlier point of the conversation.
    pub(crate) current: bool,
}

impl TaskMention {
    /// Reads a task from the JSON of a tool result and marks it as current. Returns `None` if its title is not a
    /// string. An empty title is accepted. An id must be a string or a number. An empty description and fields of
    /// another type are left out. The task is completed only if its status is `completed`.
    pub(crate) fn from_task(task: &Value) -> Option<Self> {
        let title = task["title"].as_str()?.to_owned();
        let id = Some(&task["id"]).filter(|id| id.is_string() || id.is_number()).cloned();
        let due = task["due_date"].as_str().map(str::to_owned);
        let description = task["description"].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let tags = task["tags"].as_array().into_iter().flatten().filter_map(|tag| tag.as_str().map(str::to_owned));
        let completed = task["status"] == "completed";
        Some(Self { id, title, completed, due, description, tags: tags.collect(), current: true })
    }

    /// Creates a mention with only a title.
    fn titled(title: String) -> Self {
        Self { id: None, title, completed: false, due: None, description: None, tags: Vec::new(), current: false }
    }
}

/// Returns the tasks of the last list that a message of the assistant shows. They come from the last tool result of
/// that message with at least as many titled tasks as shown. It can have more tasks than shown. Without such a result,
/// they have only titles. Returns an empty list if no list was shown. Results of messages without a list are ignored.
pub(crate) fn last_list(history: &[Message]) -> Vec<TaskMention> {
    let answers = history.iter().rev().filter(|message| message.role == MessageRole::Assistant);
    for message in answers {
        let titles = wording::read_list(&message.content);
        if titles.is_empty() {
            continue;
        }
        let lists = message.tool_calls.iter().rev().filter_map(|call| call.result["tasks"].as_array());
        for tasks in lists {
            let tasks: Vec<_> = tasks.iter().filter_map(TaskMention::from_task).collect();
            // The record may belong to a lookup. Its list is then shorter than the one shown.
            if tasks.len() >= titles.len() {
                return tasks;
            }
        }
        return titles.into_iter().map(TaskMention::titled).collect();
    }
    Vec::new()
}

/// Returns the tasks of the last list, or the options of the last question which task is meant, if that is newer.
pub(crate) fn last_shown(history: &[Message]) -> Vec<TaskMention> {
    let answers = history.iter().rev().filter(|message| message.role == MessageRole::Assistant);
    for message in answers {
        if let Some((_, options)) = wording::read_ambiguous(&message.content) {
            return options.into_iter().map(TaskMention::titled).collect();
        }
        if !wording::read_list(&message.content).is_empty() {
            return last_list(std::slice::from_ref(message));
        }
    }
    Vec::new()
}

/// Returns the tasks that the newest message of the assistant with a change has changed. Returns none if a list was shown
/// after it.
pub(crate) fn last_changed(history: &[Message]) -> Vec<TaskMention> {
    let answers = history.iter().rev().filter(|message| message.role == MessageRole::Assistant);
    for message in answers {
        if !wording::read_list(&message.content).is_empty() {
            return Vec::new();
        }
        let mut changed: Vec<TaskMention> = Vec::new();
        for call in message.tool_calls.iter().filter(|call| call.error.is_none()) {
            let of_entry = |entry: &Value| TaskMention::from_task(&entry["task"]).or(TaskMention::from_task(entry));
            let many = call.result["tasks"].as_array().into_iter().flatten().filter_map(of_entry);
            // A lookup has tasks, too, but no single one.
            let is_lookup =
                call.result.get("undone").is_none() && call.result["task"].is_null() && !is_bulk(&call.result);
            if !is_lookup {
                changed.extend(TaskMention::from_task(&call.result["task"]).into_iter().chain(many));
            }
        }
        if !changed.is_empty() {
            return changed;
        }
    }
    Vec::new()
}

/// Returns true if the last message of the assistant set, moved or snoozed a reminder of one task.
pub(crate) fn is_last_answer_a_change(history: &[Message]) -> bool {
    let last = history.iter().rev().find(|message| message.role == MessageRole::Assistant);
    last.is_some_and(|message| {
        let changed =
            message.tool_calls.iter().filter(|call| call.error.is_none() && call.result["reminder"].is_object());
        changed.count() == 1
    })
}

/// Returns the task that was added last.
pub(crate) fn last_added(history: &[Message]) -> Option<TaskMention> {
    let answers = history.iter().rev().filter(|message| message.role == MessageRole::Assistant);
    let mut calls = answers.flat_map(|message| message.tool_calls.iter().rev());
    calls.find_map(|call| {
        let adds = matches!(call.tool_name.as_str(), "add_task" | "create_todo") && call.error.is_none();
        adds.then(|| TaskMention::from_task(&call.result["task"]))?
    })
}

/// Returns true for the answer of a change of several tasks: its entries contain the task.
fn is_bulk(result: &Value) -> bool {
    result["tasks"].as_array().is_some_and(|tasks| tasks.iter().any(|entry| entry["task"].is_object()))
}

/// Returns the task that the pronoun "it" refers to. Searches the messages of the assistant, the newest first. Each is
/// searched in this order: the last target of its held calls, then the last tool result with a `next_task` or `task`. An
/// earlier question that is still open comes after the tool results. Then follow its list, and the quoted title in its last line. A list with several tasks ends the search. Returns
/// `None` then, or if no message mentions a task.
pub(crate) fn last_task(history: &[Message]) -> Option<TaskMention> {
    let answers = history.iter().rev().filter(|message| message.role == MessageRole::Assistant);
    for message in answers {
        let held = message.pending.as_ref().and_then(|pending| {
            let target = pending["acts"].as_array()?.last()?["targets"].as_array()?.last()?;
            TaskMention::from_task(target)
        });
        // After the completion of a recurring task, "it" refers to its next occurrence.
        let mentioned =
            |result: &Value| TaskMention::from_task(&result["next_task"]).or(TaskMention::from_task(&result["task"]));
        let acted = || message.tool_calls.iter().rev().find_map(|call| mentioned(&call.result));
        // An answer to something else, below which an earlier question is still open.
        let is_postponed = message.pending.as_ref().is_some_and(|pending| pending["postponed"].as_u64() > Some(0));
        let mention = if is_postponed { acted().or(held) } else { held.or_else(acted) };
        if let Some(mention) = mention {
            return Some(mention);
        }
        match last_list(std::slice::from_ref(message)).as_slice() {
            [only] => return Some(only.clone()),
            [] => {}
            // The list has several tasks, so "it" is ambiguous.
            _ => return None,
        }
        if let Some(title) = quoted_title(&message.content) {
            return Some(TaskMention::titled(title));
        }
    }
    None
}

/// Returns the first title between single quotes in the last line of a reply such as "Got it! Added 'buy milk' to your
/// list." An apostrophe inside a word is not a quote. Returns `None` if the line has no quoted text, or if it is empty.
fn quoted_title(text: &str) -> Option<String> {
    let line = text.lines().last()?;
    // An apostrophe follows a letter. An opening quotation mark does not.
    let opens = |at: usize| !line[..at].ends_with(char::is_alphanumeric);
    let start = line.char_indices().find(|(at, c)| *c == '\'' && opens(*at))?.0;
    let rest = &line[start + 1..];
    // An apostrophe inside a title is followed by a letter. A closing quotation mark is not.
    let end = rest.char_indices().filter(|(_, c)| *c == '\'').find(|(at, _)| {
        let next = rest[at + 1..].chars().next();
        next.is_none_or(|c| !c.is_alphanumeric())
    })?;
    Some(rest[..end.0].to_owned()).filter(|title| !title.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_titles_are_found_in_replies() {
        assert_eq!(quoted_title("Got it! Added 'buy milk' to your list. Anything else?").as_deref(), Some("buy milk"));
        assert_eq!(quoted_title("Great! I've marked 'don't panic' as complete.").as_deref(), Some("don't panic"));
        assert_eq!(quoted_title("You don't have any tasks yet."), None);
    }
}
