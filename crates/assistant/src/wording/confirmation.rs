//! The sentences about confirmations: the question, its answers, and the report of a confirmed call. The questions are
//! parsed here too, next to their format.

use jiff::Zoned;
use model::task::Task;
use model::words::task_sentence;
use serde::Deserialize;
use serde_json::Value;
use tools::held::HeldVerb;
use tools::{HeldCall, HeldCalls, ToolAnswer, ToolKind};

use crate::run::ClaimKind;

use super::{
    agent_started, completed_several, deleted, deleted_several, done, join_with_and, not_found, schedule_deleted,
    schedule_resumed, schedule_started, system_error, undone, with_due_again,
};

/// The maximum length of an external tool's result in a reply, in characters.
const MAX_RESULT_CHARS: usize = 400;

/// The maximum number of changed tasks that are named.
const MAX_CHANGED: usize = 5;

const CONFIRM_DELETE: &str = "Do you really want to delete ";

/// Precedes a question that stays open over another message.
const STILL_OPEN: &str = "Still open: ";
/// Precedes a question that is repeated.
const REPEATED: &str = "I need the exact phrase for that.";

/// Asks the user to confirm held calls with their phrase (TRUST-6). Names up to five tasks for each effect, and the new
/// values of a change. If the tool of a single call can be allowed from now on, adds the phrase for that.
pub(crate) fn confirm(held: &HeldCalls, now: &Zoned) -> String {
    let phrase = &held.phrase;
    let actions = join_with_and(&held.actions(now));
    if held.calls.iter().any(|call| call.bulk) {
        return format!("That's a big action. It would {actions}. Confirm with '{phrase}'.");
    }
    if held.calls.iter().any(HeldCall::is_opaque) {
        let allow = match held.allow_phrase() {
            Some(allow) => format!(" To allow this tool from now on, reply '{allow}'."),
            None => String::new(),
        };
        return format!("Do you want me to {actions}?{allow} Reply '{phrase}' to confirm.");
    }
    format!("{CONFIRM_DELETE}{}? Reply '{phrase}' to confirm.", held.title_list())
}

/// Repeats a question after an agreement without the phrase.
pub(crate) fn repeat_question(question: &str) -> String {
    format!("{REPEATED}\n{question}")
}

/// Returns whether the text was made by [`repeat_question`].
pub(crate) fn is_repeated(text: &str) -> bool {
    text.lines().any(|line| line == REPEATED)
}

/// Reminds of a question at the end of an answer to something else.
pub(crate) fn still_open(question: &str) -> String {
    format!("{STILL_OPEN}{question}")
}

/// Returns whether the line was made by [`still_open`].
pub(crate) fn is_still_open(line: &str) -> bool {
    line.starts_with(STILL_OPEN)
}

/// Returns the question of a line that [`still_open`] made. Returns any other line unchanged.
pub(crate) fn without_still_open(line: &str) -> &str {
    line.strip_prefix(STILL_OPEN).unwrap_or(line)
}

/// Replaces an open question by a new one.
pub(crate) fn question_replaced() -> String {
    "My earlier question is closed; nothing of it was done.".to_owned()
}

/// Ends a question after a second agreement without the phrase.
pub(crate) fn not_confirmed() -> String {
    "That's not the phrase either, so I've cancelled it and nothing was changed.".to_owned()
}

/// Confirms that held calls are dropped, before the answer to the rest of the message.
pub(crate) fn dropped(held: Option<&HeldCalls>) -> String {
    let verbs: Vec<_> = held.iter().flat_map(|held| &held.calls).map(|call| call.verb().as_str()).collect();
    match (held, verbs.as_slice()) {
        (Some(held), [verb, rest @ ..])
            if rest.iter().all(|other| other == verb) && !held.calls.iter().any(HeldCall::is_opaque) =>
        {
            format!("Okay, I won't {verb} {}.", held.title_list())
        }
        _ => "Okay, I won't do that.".to_owned(),
    }
}

/// Names the tasks that a confirmed call left out.
pub(crate) fn skipped(gone: &[&str], renamed: &[&str]) -> String {
    let quoted = |titles: &[&str]| join_with_and(&titles.iter().map(|title| format!("'{title}'")).collect::<Vec<_>>());
    let mut sentences = Vec::new();
    if !gone.is_empty() {
        let is = if gone.len() == 1 { "is" } else { "are" };
        sentences.push(format!("{} {is} no longer on your list.", quoted(gone)));
    }
    if !renamed.is_empty() {
        let (has, it) = if renamed.len() == 1 { ("has", "it") } else { ("have", "them") };
        sentences.push(format!("{} {has} a new title since I asked, so I left {it} alone.", quoted(renamed)));
    }
    sentences.join(" ")
}

/// Confirms that a tool needs no confirmation from now on.
pub(crate) fn allowed_always(tool: &str) -> String {
    format!("From now on I use {tool} without asking.")
}

/// Parses a question of [`confirm`] about deletions. Returns the title if it names a single task. Several titles are
/// returned as one text. Returns `None` for any other text.
pub(crate) fn read_confirm(text: &str) -> Option<String> {
    let line = text.lines().rev().find_map(|line| without_still_open(line).strip_prefix(CONFIRM_DELETE))?;
    let title = line.rsplit_once("'? Reply '")?.0.strip_prefix('\'')?;
    Some(title.to_owned())
}

/// Parses a question of [`confirm`] in the last line. Returns the phrase, or `None` if there is no such question.
pub(crate) fn read_phrase(text: &str) -> Option<&str> {
    let line = text.lines().next_back()?;
    let phrase = line.strip_suffix("'.").and_then(|line| line.rsplit_once("Confirm with '"));
    phrase.or_else(|| line.strip_suffix("' to confirm.")?.rsplit_once("Reply '")).map(|(_, phrase)| phrase)
}

pub(crate) fn nothing_to_confirm() -> String {
    "There's nothing waiting for your confirmation. What would you like to do?".to_owned()
}

pub(crate) fn confirm_again() -> String {
    "I'm not sure which tasks you mean. Please tell me again what to do.".to_owned()
}

pub(crate) fn nothing_changed() -> String {
    "Okay, nothing was changed.".to_owned()
}

/// Reports the success of a confirmed call without targets. `kind` is the kind of its tool.
fn released_opaque(kind: Option<ToolKind>, answer: &ToolAnswer) -> String {
    let data = answer.data();
    let text = |key: &str| data[key].as_str().unwrap_or_default();
    match kind {
        Some(ToolKind::RunAgent) => agent_started(text("agent"), data["reports_back"] == true),
        Some(ToolKind::ScheduleAgent) => format!("Okay! I've scheduled '{}' for '{}'.", text("name"), text("agent")),
        Some(ToolKind::ResumeSchedule) => schedule_resumed(text("name"), None),
        Some(ToolKind::DeleteSchedule) => schedule_deleted(text("name")),
        Some(ToolKind::RunSchedule) => schedule_started(data),
        Some(ToolKind::UpdateSchedule) => done(&[format!("'{}'", text("name"))]),
        Some(ToolKind::Undo) => {
            let tasks = data["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
            let titles: Vec<_> = tasks.iter().filter_map(|task| task["title"].as_str()).collect();
            undone(text("undone"), &titles)
        }
        Some(_) if data["title"].is_string() => done(&[format!("'{}'", text("title"))]),
        Some(_) => done(&[]),
        None => match answer.text(None).trim() {
            // Data is not for people.
            text if text.starts_with(['{', '[']) || text.is_empty() => done(&[]),
            text => format!("Done! {}", shortened(text)),
        },
    }
}

/// Reports the result of a confirmed call. `kind` is the kind of its tool. A call without targets reports its result or
/// its error message, at most [`MAX_RESULT_CHARS`]. An unavailable tool, and any other error of a call with targets
/// except `NOT_FOUND`, becomes the system error. A bulk call reports the number of its tasks.
pub(crate) fn released(call: &HeldCall, kind: Option<ToolKind>, answer: &ToolAnswer, now: &Zoned) -> String {
    let held_title = call.targets.first().map(|target| target.title.as_str()).unwrap_or_default();
    let title = answer.data()["title"].as_str().unwrap_or(held_title);
    if call.is_opaque() {
        return match answer.error() {
            Some((tools::answer::UNAVAILABLE, _)) => system_error().to_owned(),
            Some((_, message)) => format!("That didn't work: {}", shortened(message)),
            None => released_opaque(kind, answer),
        };
    }
    let count = answer.data()["count"].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or_default();
    match answer.error() {
        Some(("NOT_FOUND", _)) => not_found(title),
        Some(_) => system_error().to_owned(),
        None => match call.verb() {
            HeldVerb::Complete => with_due_again(completed_several(count), answer.data(), now),
            HeldVerb::Change => changed_several(answer.data(), now),
            HeldVerb::Delete if call.bulk => deleted_several(count),
            HeldVerb::Delete => deleted(title),
        },
    }
}

/// Reports a change of several tasks: the values of a single task, else the number of tasks, with the common values if
/// there are any.
fn changed_several(data: &Value, now: &Zoned) -> String {
    let entries = data["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let tasks: Vec<Task> = entries.iter().filter_map(|entry| Task::deserialize(&entry["task"]).ok()).collect();
    let lines: Vec<Option<String>> = tasks.iter().map(|task| task_sentence(task, now)).collect();
    let names = tasks.iter().take(MAX_CHANGED).map(|task| format!("'{}'", task.title));
    let mut names: Vec<_> = names.collect();
    if tasks.len() > MAX_CHANGED {
        names.push(format!("{} more", tasks.len() - MAX_CHANGED));
    }
    let first = format!("Updated! I've changed {}.", join_with_and(&names));
    match lines.split_first() {
        Some((Some(values), rest)) if rest.iter().all(|other| other.as_ref() == Some(values)) => {
            format!("{first} {values}")
        }
        _ => {
            let shown = tasks.iter().zip(&lines).take(MAX_CHANGED);
            let values = shown.filter_map(|(task, values)| Some(format!("'{}': {}", task.title, values.as_ref()?)));
            std::iter::once(first).chain(values).collect::<Vec<_>>().join("\n")
        }
    }
}

fn shortened(text: &str) -> String {
    let text = text.trim();
    text.char_indices().nth(MAX_RESULT_CHARS).map_or(text.to_owned(), |(end, _)| format!("{}…", &text[..end]))
}

/// The thinking event of a confirmed call.
pub(crate) fn confirmed_thought() -> &'static str {
    "The user has confirmed what was asked about."
}

/// Corrects a language model that claims a change, although nothing was changed.
pub(crate) fn claim_corrected() -> String {
    "To be clear: nothing was changed just now, and no reminder was set.".to_owned()
}

/// Contradicts a claim of this kind that no call made, although something else was changed.
pub(crate) fn kind_corrected(kind: ClaimKind) -> String {
    let text = match kind {
        ClaimKind::Addition => "nothing was added",
        ClaimKind::Completion => "nothing was marked as done",
        ClaimKind::Deletion => "nothing was deleted",
        ClaimKind::Reminder => "no reminder was set for that",
        ClaimKind::Other => "nothing else was changed",
    };
    format!("To be clear: {text} just now.")
}

/// Contradicts a claim about one title. `verb` is the claimed change.
pub(crate) fn title_corrected(title: &str, verb: &str) -> String {
    format!("To be clear: '{title}' was not {verb} just now.")
}

/// Names the time of a reminder that was set, and its repetition.
pub(crate) fn reminder_read_back(title: &str, when: &str, repeats: Option<&str>) -> String {
    let repeats = repeats.map(|repeats| format!(", {repeats}")).unwrap_or_default();
    format!("The reminder about '{title}' is set for {when}{repeats}.")
}

/// Reports that a reminder before the due date is gone, because the due date was moved or removed.
pub(crate) fn reminder_dropped(title: &str) -> String {
    format!("The reminder before '{title}' is gone.")
}

/// Names the fields of a task that were cleared.
pub(crate) fn cleared_fields(fields: &[&str]) -> String {
    format!("It now has {}.", join_with_and(fields))
}

/// Names the next occurrence of a completed task. `values` is a sentence such as "Due tomorrow.".
pub(crate) fn next_read_back(title: &str, values: &str) -> String {
    format!("The next '{title}': {values}")
}

/// Describes the progress of an external tool.
pub(crate) fn tool_progress(tool: &str, report: &str) -> String {
    format!("{tool}: {report}")
}
