//! Answers questions about all tasks or the last list: the next task, which tasks repeat, the tasks of a topic (TRUST-4).

use jiff::Zoned;
use jiff::civil::Date;
use model::task::{Priority, Task};
use model::words;
use serde_json::Value;
use understand::{CommandFilter, Intent, ParsedCommand, StatusFilter};

use super::property::{AskedProperty, asked_property};
use super::sentence::due_day;
use super::words::{LIST_WORDS, PROPERTY_WORDS, QUESTION_WORDS};
use crate::mentions;
use crate::offline::dialogue::{LastAct, LastExchange, changed_tasks};
use crate::offline::framing::Framing;
use crate::offline::matching::{is_same_word, normalize};
use crate::offline::{OfflinePolicy, PendingCall, commands, continuation, lookup, task_words};
use crate::wording;

/// Answers questions about all tasks or the last list: what comes next, which tasks repeat or have no date, and which of
/// the list comes first.
pub(super) fn about_lists(
    policy: &mut OfflinePolicy<'_>,
    words: &[&str],
    framing: &Framing,
    last: &LastExchange<'_>,
) -> Result<Option<String>, PendingCall> {
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let now = policy.prompt.request.now.clone();
    let of_list = has(&["them", "those", "these"]) || words.starts_with(&["which"]) && has(&["ones"]);
    // "which?", "which ones?"
    if matches!(
        words,
        ["which"]
            | ["which", "ones"]
            | ["which", "one"]
            | ["what", "are", "they"]
            | ["list", "them"]
            | ["show", "them"]
    ) && matches!(last.act, LastAct::Listed)
        || matches!(words, ["show", "it" | "that" | "them" | "me", "again"] | ["show", "me", "it" | "that", "again"])
    {
        let command = ParsedCommand {
            filter: continuation::last_filter(policy, last),
            ..ParsedCommand::new(Intent::ListTasks, 0.9)
        };
        return commands::list(policy, &command);
    }
    let superlative = (has(&["first", "next", "soonest", "earliest"])
        || has(&["most"]) && has(&["urgent", "important", "pressing"]))
        && (words.starts_with(&["which"])
            || words.starts_with(&["what"])
            || words.starts_with(&["whats"])
            || words.starts_with(&["what's"])
            || words.starts_with(&["where"]));
    let is_dated = !policy.prompt.request.parser.find_expressions(&framing.body, &now).is_empty();
    let asks_next = superlative
        && !is_dated
        && (of_list
            || has(&[
                "i", "should", "tackle", "do", "start", "up", "thing", "task", "job", "comes", "due", "one's", "ones",
                "one",
            ])
            || words.len() <= 2)
        && !has(&["run", "runs", "schedule", "reminder"]);
    let asks_after = matches!(
        words,
        ["after", "that"]
            | ["and", "after", "that"]
            | ["whats", "after", "that"]
            | ["what's", "after", "that"]
            | ["what", "then"]
            | ["then"]
    ) && framing.is_question;
    if asks_next || asks_after {
        let history = &policy.prompt.context.history;
        let shown = mentions::last_shown(history);
        let listed = of_list && !shown.is_empty();
        let all = lookup::all_tasks(policy)?;
        let is_shown = |task: &&Value| {
            shown.iter().any(|mention| {
                mention.id.as_ref().is_some_and(|id| task["id"] == *id)
                    || mention.title == task["title"].as_str().unwrap_or_default()
            })
        };
        let mut open: Vec<Task> = all
            .iter()
            .filter(|task| task["status"] != "completed" && (!listed || is_shown(task)))
            .filter_map(|task| task_words::stored_task(task, now.time_zone()))
            .collect();
        let by_priority = has(&["urgent", "important", "pressing"]);
        sort_by_urgency(&mut open, by_priority, &now);
        let at = match &policy.last {
            Some(last) if asks_after => open.iter().position(|task| task.title == last.title).map_or(0, |at| at + 1),
            // After a list that began with the first one.
            None if asks_after => 1,
            _ => 0,
        };
        return Ok(Some(match open.get(at) {
            None if asks_after => "After that, nothing else is open.".to_owned(),
            None => wording::all_done(),
            Some(task) => {
                let values = words::task_values(task, &now).join(", ");
                let values = if values.is_empty() { "no due date".to_owned() } else { values };
                format!("'{}' comes {}: {values}.", task.title, if asks_after { "after that" } else { "first" })
            }
        }));
    }
    let asks_repeating = has(&["repeat", "repeats", "recurring", "repeating", "recur"])
        && (words.starts_with(&["which"])
            || words.starts_with(&["what"])
            || words.starts_with(&["show"])
            || words.starts_with(&["list"]))
        && !has(&["it"]);
    let asks_undated = (has(&["no", "without"]) && has(&["date", "deadline", "dates"])
        || words.windows(2).any(|pair| pair == ["not", "dated"]))
        && (words.len() <= 7 && has(&["stuff", "tasks", "things", "ones", "anything", "everything", "any"])
            || words.starts_with(&["which"])
            || words.starts_with(&["what"])
            || words.starts_with(&["show"])
            || words.starts_with(&["list"]))
        && !has(&["give", "make", "set", "move", "delete", "remove", "mark", "tag"]);
    if asks_repeating || asks_undated {
        let all = lookup::all_tasks(policy)?;
        let is_meant = |task: &&Value| {
            let field = if asks_repeating { "recurrence" } else { "due_date" };
            task["status"] != "completed" && task[field].is_string() == asks_repeating
        };
        let found: Vec<&Value> = all.iter().filter(is_meant).collect();
        let lines: Vec<_> = found.iter().map(|task| task_words::list_line(task, &now)).collect();
        let kind = if asks_repeating { "repeating" } else { "undated" };
        return Ok(Some(wording::list_of_kind(&lines, kind)));
    }
    // "did you add anything just now?"
    if words.starts_with(&["did", "you"])
        && has(&["add", "change", "delete", "do"])
        && has(&["anything", "something", "that", "it"])
    {
        let changed = match last.act {
            LastAct::Changed(_, call) if last.is_recent => changed_tasks(call),
            _ => Vec::new(),
        };
        let titles: Vec<_> = changed.iter().map(|task| format!("'{}'", task.title)).collect();
        return Ok(Some(match titles.as_slice() {
            [] => "No, I didn't change anything.".to_owned(),
            titles => format!("Yes, I changed {}.", words::join_with_and(titles)),
        }));
    }
    if asked_property(words).is_some_and(|asked| asked != AskedProperty::Reminder) {
        return Ok(None);
    }
    topic(policy, words, framing, last)
}

/// Sorts by due date, overdue tasks first and undated ones last, then by priority. `by_priority` reverses that.
fn sort_by_urgency(tasks: &mut [Task], by_priority: bool, now: &Zoned) {
    let due = |task: &Task| {
        task.due_date.as_ref().map(|due| (due_day(due, now), due.timestamp())).map_or((Date::MAX, None), |key| key)
    };
    let rank = |task: &Task| match task.priority {
        Priority::High => 0,
        Priority::Medium => 1,
        Priority::Low => 2,
    };
    tasks.sort_by(|a, b| match by_priority {
        true => (rank(a), due(a)).cmp(&(rank(b), due(b))),
        false => (due(a), rank(a)).cmp(&(due(b), rank(b))),
    });
}

/// Lists the open tasks of a topic, which is a tag or a word of their titles: "show me the music stuff", "what else is
/// there for uni?", "and for work?". Returns `None` if no task has it.
fn topic(
    policy: &mut OfflinePolicy<'_>,
    words: &[&str],
    framing: &Framing,
    last: &LastExchange<'_>,
) -> Result<Option<String>, PendingCall> {
    let asks = words.first().is_some_and(|first| {
        matches!(
            *first,
            "show"
                | "list"
                | "what"
                | "whats"
                | "what's"
                | "which"
                | "any"
                | "anything"
                | "how"
                | "is"
                | "are"
                | "do"
                | "give"
        )
    });
    let continues = framing.is_question && framing.continues && matches!(last.act, LastAct::Listed);
    if !asks && !continues {
        return Ok(None);
    }
    let rest: Vec<&str> =
        words.iter().copied().filter(|word| !QUESTION_WORDS.contains(*word) && !LIST_WORDS.contains(*word)).collect();
    let [topic] = rest.as_slice() else { return Ok(None) };
    let topic = topic.trim_start_matches('#').trim_end_matches("'s");
    if PROPERTY_WORDS.contains(topic) || topic.chars().count() < 2 {
        return Ok(None);
    }
    if let Some(tag) = known_tag(policy, topic)? {
        let filter = CommandFilter { tags: vec![tag], status: None::<StatusFilter>, ..CommandFilter::default() };
        let command = ParsedCommand { filter, ..ParsedCommand::new(Intent::ListTasks, 0.9) };
        return commands::list(policy, &command);
    }
    let now = policy.prompt.request.now.clone();
    let request = policy.prompt.request;
    if !request.parser.find_expressions(topic, &now).is_empty() || continues {
        return Ok(None);
    }
    let parsed = request.utterance.commands.first().is_some_and(|command| {
        command.intent == Intent::ListTasks
            && command.filter.text.is_none()
            && command.filter != CommandFilter::default()
    });
    if parsed {
        return Ok(None);
    }
    let has_word = |task: &&Value| {
        let title = normalize(task["title"].as_str().unwrap_or_default());
        task["status"] != "completed" && title.split(' ').any(|word| is_same_word(word, topic))
    };
    let found: Vec<&Value> = lookup::all_tasks(policy)?.iter().filter(has_word).collect();
    if found.is_empty() {
        return Ok(None);
    }
    let lines: Vec<_> = found.iter().map(|task| task_words::list_line(task, &now)).collect();
    let filter = CommandFilter { text: Some(topic.to_owned()), ..CommandFilter::default() };
    Ok(Some(wording::list(&lines, lines.len(), &filter)))
}

/// Returns the tag of an open task that a word names, in its stored spelling.
pub(in crate::offline) fn known_tag(policy: &mut OfflinePolicy<'_>, word: &str) -> Result<Option<String>, PendingCall> {
    let all = lookup::all_tasks(policy)?;
    let open = all.iter().filter(|task| task["status"] != "completed");
    let mut tags = open.flat_map(|task| task["tags"].as_array().into_iter().flatten()).filter_map(Value::as_str);
    Ok(tags.find(|tag| is_same_word(&tag.to_lowercase(), &word.to_lowercase())).map(str::to_owned))
}
