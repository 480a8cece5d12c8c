//! What the conversation so far has put before the user's eyes: the list shown last, and the task spoken of last.
//!
//! Read from the records of the tools where the conversation has them, else from the words of the answers alone.

use model::conversation::{Message, Role};
use serde_json::Value;

use crate::wording;

/// A task that was mentioned; without its id where only words are left of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mention {
    pub(crate) id: Option<Value>,
    pub(crate) title: String,
    /// Whether it was completed when it was mentioned.
    pub(crate) completed: bool,
    /// When it was due then.
    pub(crate) due: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) tags: Vec<String>,
    /// Whether this is how it is now, and not how it was at some time of the conversation.
    pub(crate) current: bool,
}

impl Mention {
    /// A task in the answer of a tool.
    pub(crate) fn of(task: &Value) -> Option<Self> {
        let title = task["title"].as_str()?.to_owned();
        let id = Some(&task["id"]).filter(|id| id.is_string() || id.is_number()).cloned();
        let due = task["due_date"].as_str().map(str::to_owned);
        let description = task["description"].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let tags = task["tags"].as_array().into_iter().flatten().filter_map(|tag| tag.as_str().map(str::to_owned));
        let completed = task["status"] == "completed";
        Some(Self { id, title, completed, due, description, tags: tags.collect(), current: true })
    }

    /// One of which only the title is known.
    fn titled(title: String) -> Self {
        Self { id: None, title, completed: false, due: None, description: None, tags: Vec::new(), current: false }
    }
}

/// The tasks of the list that was shown last, in their order.
pub(crate) fn last_list(history: &[Message]) -> Vec<Mention> {
    let answers = history.iter().rev().filter(|message| message.role == Role::Assistant);
    for message in answers {
        let titles = wording::read_list(&message.content);
        if titles.is_empty() {
            continue;
        }
        let lists = message.tool_calls.iter().rev().filter_map(|call| call.result["tasks"].as_array());
        for tasks in lists {
            let tasks: Vec<_> = tasks.iter().filter_map(Mention::of).collect();
            // A record of another list, such as one that was only looked something up in, has other tasks.
            if tasks.len() >= titles.len() {
                return tasks;
            }
        }
        return titles.into_iter().map(Mention::titled).collect();
    }
    Vec::new()
}

/// The task that was spoken of last: what "it" means.
pub(crate) fn last_task(history: &[Message]) -> Option<Mention> {
    let answers = history.iter().rev().filter(|message| message.role == Role::Assistant);
    for message in answers {
        let asked = message.pending.as_ref().and_then(|pending| {
            let target = pending["acts"].as_array()?.last()?["targets"].as_array()?.last()?;
            Mention::of(target)
        });
        // Of one that repeats and was completed, the next.
        let of = |result: &Value| Mention::of(&result["next_task"]).or(Mention::of(&result["task"]));
        let acted = || message.tool_calls.iter().rev().find_map(|call| of(&call.result));
        if let Some(mention) = asked.or_else(acted) {
            return Some(mention);
        }
        match last_list(std::slice::from_ref(message)).as_slice() {
            [only] => return Some(only.clone()),
            [] => {}
            // Which one of them, nobody can tell.
            _ => return None,
        }
        if let Some(title) = quoted(&message.content) {
            return Some(Mention::titled(title));
        }
    }
    None
}

/// The title in an answer such as "Got it! Added 'buy milk' to your list."
fn quoted(text: &str) -> Option<String> {
    let line = text.lines().last()?;
    // An apostrophe follows a letter, a quotation mark does not.
    let opens = |at: usize| !line[..at].ends_with(char::is_alphanumeric);
    let start = line.char_indices().find(|(at, c)| *c == '\'' && opens(*at))?.0;
    let rest = &line[start + 1..];
    // What follows a title is a word or the end of the sentence; an apostrophe inside one is followed by a letter.
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
    fn a_title_is_found_in_the_words_of_an_answer() {
        assert_eq!(quoted("Got it! Added 'buy milk' to your list. Anything else?").as_deref(), Some("buy milk"));
        assert_eq!(quoted("Great! I've marked 'don't panic' as complete.").as_deref(), Some("don't panic"));
        assert_eq!(quoted("You don't have any tasks yet."), None);
    }
}
