//! The sentences about confirmations: the question, its answers, and the report of a confirmed call. The questions are
//! parsed here too, next to their format.

use jiff::Zoned;
use tools::{HeldCall, ToolAnswer, ToolKind};

use super::{
    agent_started, completed_several, deleted, deleted_several, done, join_with_and, not_found, schedule_deleted, schedule_resumed, schedule_started,
    system_error, undone, with_due_again,
};

/// The maximum length of an external tool's result in a reply, in characters.
const MAX_RESULT_CHARS: usize = 400;

const CONFIRM_DELETE: &str = "Do you really want to delete ";

/// Asks the user to confirm held calls with the phrase. With a bulk call, the question names neither tasks nor tools.
/// With calls of external tools, it lists these with their arguments, then the tasks to delete. Otherwise it lists the
/// tasks to delete.
pub(crate) fn confirm(calls: &[HeldCall], phrase: &str) -> String {
    if calls.iter().any(|call| call.bulk) {
        return format!("That's a big action. Confirm with '{phrase}'.");
    }
    let targets = calls.iter().flat_map(|call| &call.targets);
    let titles: Vec<_> = targets.map(|target| format!("'{}'", target.title)).collect();
    if calls.iter().any(HeldCall::is_opaque) {
        let mut actions: Vec<_> = calls.iter().filter(|call| call.is_opaque()).map(HeldCall::describe).collect();
        if !titles.is_empty() {
            actions.push(format!("delete {}", join_with_and(&titles)));
        }
        return format!("Do you want me to {}? Reply '{phrase}' to confirm.", join_with_and(&actions));
    }
    format!("{CONFIRM_DELETE}{}? Reply '{phrase}' to confirm.", join_with_and(&titles))
}

/// Parses a question of [`confirm`] about deletions. Returns the title if it names a single task. Several titles are
/// returned as one text. Returns `None` for any other text.
pub(crate) fn read_confirm(text: &str) -> Option<String> {
    let line = text.lines().rev().find_map(|line| line.strip_prefix(CONFIRM_DELETE))?;
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

/// Answers a confirmation with a wrong phrase.
pub(crate) fn wrong_phrase() -> String {
    "That's not what I asked you to reply, so nothing was changed.".to_owned()
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
        None => format!("Done! {}", shortened(&answer.text(None))),
    }
}

/// Reports the result of a confirmed call. `kind` is the kind of its tool. A call without targets reports its result or
/// its error message, at most [`MAX_RESULT_CHARS`]. An unavailable tool, and any other error of a call with targets
/// except `NOT_FOUND`, becomes the system error. A bulk call reports the number of completed or deleted tasks. A single
/// call with a target is always reported as a deletion.
pub(crate) fn released(call: &HeldCall, kind: Option<ToolKind>, answer: &ToolAnswer, now: &Zoned) -> String {
    let held_title = call.targets.first().map(|target| target.title.as_str()).unwrap_or_default();
    // The task may have been renamed since.
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
        None if call.bulk && call.tool.starts_with("complete") => {
            with_due_again(completed_several(count), answer.data(), now)
        }
        None if call.bulk => deleted_several(count),
        None => deleted(title),
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
