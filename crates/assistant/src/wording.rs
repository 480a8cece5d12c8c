//! All fixed sentences of the assistant: the Response Format Contract of S1 and the cases that it leaves open. The
//! sentences contain no ids and no jargon. Questions that a later message answers are parsed here too, next to their
//! format.

mod agents;
mod confirmation;

use jiff::Zoned;
use jiff::civil::Date;
use model::due::DueDate;
use model::words;
use serde_json::Value;
use understand::{CommandFilter, DayOrTime, DueFilter, Intent, MissingSlot, ParsedCommand, StatusFilter, TaskTarget};

pub(crate) use agents::*;
pub(crate) use confirmation::*;

/// The maximum number of tasks in a list.
pub(crate) const MAX_LISTED: usize = 20;
/// The maximum number of recurring tasks that are listed with their next due date.
const MAX_DUE_AGAIN: usize = 5;
/// The maximum number of options in a question.
pub(crate) const MAX_OPTIONS: usize = 10;

/// Confirms a new task. `details` are sentences that name the stored values.
pub(crate) fn created(title: &str, details: &[String]) -> String {
    let details: String = details.iter().map(|sentence| format!(" {sentence}")).collect();
    format!("Got it! Added '{title}' to your list.{details} Anything else?")
}

/// Confirms a new task and ends with the question in `details`.
pub(crate) fn created_and_asks(title: &str, details: &[String]) -> String {
    let details: String = details.iter().map(|sentence| format!(" {sentence}")).collect();
    format!("Got it! Added '{title}' to your list.{details}")
}

pub(crate) fn completed(title: &str) -> String {
    format!("Great! I've marked '{title}' as complete.")
}

/// Follows [`completed`] for a recurring task. `when` is the next due date, or `None` after the last occurrence.
pub(crate) fn due_again(when: Option<&str>) -> String {
    match when {
        Some(when) => format!("It's due again {}.", on_day(when)),
        None => "That was the last time.".to_owned(),
    }
}

/// Follows [`completed_several`] for recurring tasks. Takes their titles and next due dates.
pub(crate) fn several_due_again(tasks: &[(&str, String)]) -> String {
    let shown: Vec<_> =
        tasks.iter().take(MAX_DUE_AGAIN).map(|(title, when)| format!("'{title}' {}", on_day(when))).collect();
    let more = tasks.len().saturating_sub(MAX_DUE_AGAIN);
    let shown = if more > 0 { [shown, vec![format!("{more} more later")]].concat() } else { shown };
    format!("Due again: {}.", join_with_and(&shown))
}

pub(crate) fn already_completed(title: &str) -> String {
    format!("'{title}' is already complete.")
}

pub(crate) fn deleted(title: &str) -> String {
    format!("I've removed '{title}' from your tasks.")
}

pub(crate) fn completed_several(count: usize) -> String {
    format!("Great! I've marked {} as complete.", tasks(count))
}

pub(crate) fn deleted_several(count: usize) -> String {
    format!("I've removed {} from your list.", tasks(count))
}

/// Adds "on" before a calendar day: "on Fri 20 Nov at 3pm", but "tomorrow (Wed 18 Nov)".
pub(crate) fn on_day(when: &str) -> String {
    let is_relative = ["today", "tomorrow", "yesterday"].iter().any(|word| when.starts_with(word));
    if is_relative { when.to_owned() } else { format!("on {when}") }
}

pub(crate) fn updated(title: &str, changes: &[String]) -> String {
    format!("Updated! '{title}' now has {}.", join_with_and(changes))
}

/// Names the fields that the tools of an external task list do not support.
pub(crate) fn unsupported_fields(fields: &[&str]) -> String {
    format!("Your list has no place for {}.", fields.join(" or "))
}

/// Adds [`unsupported_fields`] to a sentence, if there are any.
pub(crate) fn with_unsupported_fields(sentence: String, fields: &[&str]) -> String {
    if fields.is_empty() { sentence } else { format!("{sentence}\n{}", unsupported_fields(fields)) }
}

pub(crate) fn reminder_set(title: &str, when: &str) -> String {
    format!("Okay! I'll remind you about '{title}' {when}.")
}

pub(crate) fn reminder_cancelled(title: &str) -> String {
    format!("Okay! I won't remind you about '{title}'. The task stays on your list.")
}

/// Reports that a task has no reminder to cancel. `rings` is true if it rings when it is due.
pub(crate) fn no_reminder(title: &str, rings: bool) -> String {
    match rings {
        true => format!("'{title}' has no reminder of its own. It rings when it is due. Remove its time to stop that."),
        false => format!("There's no reminder for '{title}'."),
    }
}

/// Reports that no reminder was set, because the task has no due date.
pub(crate) fn no_due_date_for_reminder(title: &str) -> String {
    format!("'{title}' has no due date, so no reminder is set. When is it due?")
}

/// Reports that no reminder was set, because no time was given.
pub(crate) fn no_reminder_time() -> &'static str {
    "No reminder is set, because you gave no time. When should I remind you?"
}

/// Reports that nothing rings without a server.
pub(crate) fn no_server_rings() -> &'static str {
    "No server runs, so nothing rings until you start adjutant serve."
}

const NOT_FOUND: (&str, &str) = ("I couldn't find a task about '", "' in your list.");

pub(crate) fn not_found(query: &str) -> String {
    format!("{}{query}{}", NOT_FOUND.0, NOT_FOUND.1)
}

/// Parses a sentence of [`not_found`]. Returns the name, or `None` if there is no such sentence.
pub(crate) fn read_not_found(text: &str) -> Option<&str> {
    let line = text.lines().rev().find(|line| line.starts_with(NOT_FOUND.0))?;
    line.strip_prefix(NOT_FOUND.0)?.strip_suffix(NOT_FOUND.1)
}

const AMBIGUOUS: (&str, &str) = ("I found multiple tasks about '", "'. Which one: ");

/// Asks which of several tasks is meant. Names at most [`MAX_OPTIONS`] of them.
pub(crate) fn ambiguous(query: &str, options: &[&str]) -> String {
    let shown: Vec<_> = options.iter().take(MAX_OPTIONS).map(|option| format!("'{option}'")).collect();
    let more = options.len().saturating_sub(MAX_OPTIONS);
    let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    format!("{}{query}{}{}{more}?", AMBIGUOUS.0, AMBIGUOUS.1, shown.join(", "))
}

/// Parses a question of [`ambiguous`]. Returns the query and the options, or `None` if there is no such question.
pub(crate) fn read_ambiguous(text: &str) -> Option<(String, Vec<String>)> {
    let line = text.lines().rev().find(|line| line.starts_with(AMBIGUOUS.0))?;
    let (query, options) = line.strip_prefix(AMBIGUOUS.0)?.split_once(AMBIGUOUS.1)?;
    let options = options.rsplit_once('\'')?.0.strip_prefix('\'')?;
    Some((query.to_owned(), options.split("', '").map(str::to_owned).collect()))
}

const DETAILS: &str = "Could you provide more details about ";

pub(crate) fn missing(slot: MissingSlot) -> String {
    format!("{DETAILS}{}?", slot.description())
}

/// Parses a question of [`missing`]. Returns the missing slot, or `None` if there is no such question.
pub(crate) fn read_missing(text: &str) -> Option<MissingSlot> {
    let line = text.lines().rev().find_map(|line| line.strip_prefix(DETAILS))?;
    let all = [MissingSlot::Title, MissingSlot::Target, MissingSlot::Change, MissingSlot::Time];
    all.into_iter().find(|missing| line.trim_end_matches('?') == missing.description())
}

pub(crate) fn one_at_a_time() -> String {
    "I can change one task at a time. Which one do you mean?".to_owned()
}

/// Describes a repetition: "every 30 minutes, 3 times in all", or "every hour until it's done" without a count.
/// `interval` is in minutes. Returns `None` if it is `None`.
pub(crate) fn repeats(interval: Option<i64>, count: Option<i64>) -> Option<String> {
    let every = match interval? {
        1 => "every minute".to_owned(),
        60 => "every hour".to_owned(),
        1440 => "every day".to_owned(),
        minutes => format!("every {minutes} minutes"),
    };
    Some(match count {
        Some(count) => format!("{every}, {count} times in all"),
        None => format!("{every} until it's done"),
    })
}

/// Confirms an undo. `change` is the kind of the change that was undone, such as `created`, `deleted`, `completed` or
/// `reminded`. Any other kind is "as before". Names a single task by its title, and several by their number.
pub(crate) fn undone(change: &str, titles: &[&str]) -> String {
    let (name, is) = match titles {
        [title] => (format!("'{title}'"), "is"),
        _ => (tasks(titles.len()), "are"),
    };
    let now = match change {
        "created" => "off your list again",
        "deleted" => "back on your list",
        "completed" => "open again",
        "reminded" => "without that reminder",
        _ => "as before",
    };
    format!("Undone! {name} {is} {now}.")
}

/// Rejects an undo, because an external task list does not support it.
pub(crate) fn cannot_undo() -> String {
    "I can't take that back here.".to_owned()
}

pub(crate) fn nothing_to_undo() -> String {
    "There's nothing to undo.".to_owned()
}

/// Formats a numbered list with checkboxes, under a heading with the total and the filter. Each line has the completed
/// flag, the title and an optional note. Shows at most [`MAX_LISTED`] lines. `total` is the number of all tasks. If it
/// is greater than [`MAX_LISTED`], adds "and N more". Returns "You have no … tasks." without lines.
pub(crate) fn list(lines: &[(bool, &str, Option<String>)], total: usize, filter: &CommandFilter) -> String {
    let kind = filter_kind(filter);
    if lines.is_empty() {
        return format!("You have no{kind} tasks{}.", filter_scope(filter));
    }
    let noun = if total == 1 { "task" } else { "tasks" };
    let mut text = format!("You have {total}{kind} {noun}{}:", filter_scope(filter));
    for (n, (done, title, note)) in lines.iter().take(MAX_LISTED).enumerate() {
        let mark = if *done { '✓' } else { '☐' };
        text.push_str(&format!("\n{}. {mark} {title}", n + 1));
        if let Some(note) = note {
            text.push_str(&format!(" ({note})"));
        }
    }
    if total > MAX_LISTED {
        text.push_str(&format!("\nand {} more", total - MAX_LISTED));
    }
    text
}

/// Formats a list of open tasks with something in common, such as "repeating".
pub(crate) fn list_of_kind(lines: &[(bool, &str, Option<String>)], kind: &str) -> String {
    if lines.is_empty() {
        return format!("You have no {kind} tasks.");
    }
    let text = list(lines, lines.len(), &CommandFilter::default());
    let noun = if lines.len() == 1 { "task" } else { "tasks" };
    text.replacen(&format!("{} {noun}", lines.len()), &format!("{} {kind} {noun}", lines.len()), 1)
}

pub(crate) fn no_tasks() -> String {
    "You don't have any tasks yet.".to_owned()
}

pub(crate) fn all_done() -> String {
    "You have no open tasks. Everything is done!".to_owned()
}

/// The first words of the note that follows a title in a list. Titles can contain brackets, too.
const NOTE_STARTS: [&str; 10] = [
    " (due ",
    " (overdue since ",
    " (every ",
    " (on the ",
    " (by the rule ",
    " (high priority",
    " (low priority",
    " (tagged ",
    " (rings ",
    " (done ",
];

/// Parses a text of [`list`]. Returns the titles in order, without the notes in brackets. Other lines are ignored. A
/// line with number 1 starts a new list, so only the last list is returned.
pub(crate) fn read_list(text: &str) -> Vec<String> {
    let mut titles = Vec::new();
    for line in text.lines() {
        let Some((number, rest)) = line.split_once(". ") else { continue };
        let title = rest.strip_prefix("☐ ").or_else(|| rest.strip_prefix("✓ "));
        if let (Ok(number), Some(title)) = (number.parse::<usize>(), title) {
            if number == 1 {
                titles.clear();
            }
            let end = NOTE_STARTS.iter().filter_map(|start| title.rfind(start)).min();
            titles.push(title[..end.unwrap_or(title.len())].to_owned());
        }
    }
    titles
}

/// Returns the status, the priority and "overdue", as far as the filter has them: " open high priority overdue". Each
/// word follows a space. Returns an empty string if the filter has none.
fn filter_kind(filter: &CommandFilter) -> String {
    let status = match filter.status {
        Some(StatusFilter::Completed) => " completed",
        Some(StatusFilter::Pending) => " open",
        _ => "",
    };
    let priority = filter.priority.map(|priority| format!(" {} priority", priority.as_str())).unwrap_or_default();
    let overdue = if filter.due == Some(DueFilter::Overdue) { " overdue" } else { "" };
    format!("{status}{priority}{overdue}")
}

/// Returns the due day or range, the tags and the text, as far as the filter has them: " due today tagged home about
/// 'milk'". Returns an empty string if it has none. [`filter_kind`] describes the overdue tasks.
fn filter_scope(filter: &CommandFilter) -> String {
    let mut scope = match filter.due {
        Some(DueFilter::Today) => " due today".to_owned(),
        Some(DueFilter::Tomorrow) => " due tomorrow".to_owned(),
        Some(DueFilter::ThisWeek) => " due this week".to_owned(),
        Some(DueFilter::Day(day)) => format!(" due {}", day.strftime("%A, %-d %B")),
        Some(DueFilter::Between(first, last)) => due_range(first, last),
        Some(DueFilter::Overdue) | None => String::new(),
    };
    if !filter.tags.is_empty() {
        scope.push_str(&format!(" tagged {}", filter.tags.join(", ")));
    }
    if let Some(text) = &filter.text {
        scope.push_str(&format!(" about '{text}'"));
    }
    scope
}

/// Returns " due from Monday, 5 January to Sunday, 11 January", " due from … on" without a last day, or " due by …"
/// without a first day. Returns an empty string without both.
fn due_range(first: Option<Date>, last: Option<Date>) -> String {
    let day = |day: Date| day.strftime("%A, %-d %B").to_string();
    match (first, last) {
        (Some(first), Some(last)) => format!(" due from {} to {}", day(first), day(last)),
        (Some(first), None) => format!(" due from {} on", day(first)),
        (None, Some(last)) => format!(" due by {}", day(last)),
        (None, None) => String::new(),
    }
}

/// Introduces a list that is not filtered as requested.
pub(crate) fn unfiltered() -> String {
    "I can't narrow it down that way, so this is everything open.".to_owned()
}

pub(crate) fn unsupported_filter() -> String {
    "I can't tell which tasks you mean by that. Please name them, or show them to me in a list first.".to_owned()
}

pub(crate) fn capabilities() -> String {
    "I can add, list, complete, change and delete your tasks, remind you of them, run your agents and schedule them. \
     Say undo to take back a change. What would you like to do?"
        .to_owned()
}

pub(crate) fn introduction() -> String {
    format!("I'm adjutant, your assistant for tasks, reminders and agents. {}", capabilities())
}

pub(crate) fn how_are_you() -> String {
    "I'm fine, thanks! What can I do for you?".to_owned()
}

pub(crate) fn goodbye() -> String {
    "Goodbye! Your tasks are saved.".to_owned()
}

pub(crate) fn acknowledged() -> String {
    "Glad to hear it. Anything else?".to_owned()
}

/// Answers a message that contains only quoted or pasted text.
pub(crate) fn quoted_text() -> String {
    "That looks like quoted text, so I didn't carry out anything in it. What should I do with it?".to_owned()
}

/// Asks about a text that could be a task but does not look like one.
pub(crate) fn unsure_about_title(title: &str) -> String {
    format!(
        "I'm not sure what you mean, so nothing was changed. Should \"{title}\" be a new task? Then say: add {title}."
    )
}

/// Asks about a long message in which few clauses are certain.
pub(crate) fn uncertain_message() -> String {
    "I'm not sure what to do with that, so nothing was changed. Please tell me in one or two short sentences."
        .to_owned()
}

pub(crate) fn hello() -> String {
    format!("Hello! {}", capabilities())
}

pub(crate) fn welcome() -> String {
    "You're welcome! Anything else?".to_owned()
}

pub(crate) fn out_of_scope() -> String {
    format!("I'm afraid I can't help with that. {}", capabilities())
}

pub(crate) fn stopped() -> &'static str {
    "I was stopped before I had finished."
}

/// The system error of S1.
pub(crate) fn system_error() -> &'static str {
    "I'm having a bit of trouble right now. Please try again."
}

/// Returns the sentence of S0 that the AI service is unavailable. With a fallback, it adds the model that answers until
/// then. `fallback` is `None` without a fallback model, else it is `true` for the built-in model.
pub(crate) fn model_unavailable(fallback: Option<bool>) -> String {
    let then = match fallback {
        Some(true) => "; until then the built-in assistant answers",
        Some(false) => "; until then another model answers",
        None => "",
    };
    format!("AI service temporarily unavailable. Please try again in a moment{then}.")
}

/// The sentence of S0, with the names of the unavailable servers.
pub(crate) fn mcp_unavailable(servers: &[String]) -> String {
    let which = if servers.is_empty() { String::new() } else { format!(": {}", servers.join(", ")) };
    format!("MCP service temporarily unavailable{which}. Please try again in a moment.")
}

/// Lists the changes that were made before the model failed.
pub(crate) fn partly_done(done: &[String]) -> String {
    format!(
        "I've taken care of {}, but then I lost the thread. Please tell me what is left to do.",
        join_with_and(done)
    )
}

/// Lists the changes of a model that sent no text.
pub(crate) fn done(done: &[String]) -> String {
    match done {
        [] => "Done.".to_owned(),
        done => format!("Done! I've taken care of {}.", join_with_and(done)),
    }
}

pub(crate) fn timed_out() -> &'static str {
    "This is taking longer than expected. Please try again."
}

/// Reports that the limit of tool calls was reached, and asks for smaller steps. `done` has the quoted titles of the
/// changes so far. They are left out if there are none.
pub(crate) fn too_many_calls(done: &[String]) -> String {
    let break_up = "Could you break it into smaller steps?";
    match done {
        [] => format!("That's more than I can do at once. {break_up}"),
        done => format!(
            "That's more than I can do at once. I've only taken care of {} so far. {break_up}",
            join_with_and(done)
        ),
    }
}

pub(crate) fn unchanged(title: &str) -> String {
    format!("'{title}' is like that already.")
}

/// Adds the next due dates of completed recurring tasks to a sentence. A single task has `next_task` in `data`. Without
/// a readable due date there, the text is "That was the last time." Several tasks have it in `tasks`, and those without
/// a readable date are left out. Returns the sentence unchanged if there are none.
pub(crate) fn with_due_again(sentence: String, data: &Value, now: &Zoned) -> String {
    let when = |next: &Value| next["due_date"].as_str().and_then(|due| due_words(due, now));
    if let Some(next) = data.get("next_task") {
        return format!("{sentence} {}", due_again(when(next).as_deref()));
    }
    let tasks = data["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let next = tasks.iter().filter_map(|task| Some((task["title"].as_str()?, when(task.get("next_task")?)?)));
    match next.collect::<Vec<_>>().as_slice() {
        [] => sentence,
        next => format!("{sentence} {}", several_due_again(next)),
    }
}

/// Formats the due date of a tool result: "tomorrow (Wed 18 Nov) at 3pm". Returns `None` if it cannot be parsed.
pub(crate) fn due_words(due: &str, now: &Zoned) -> Option<String> {
    let due = DueDate::parse("due_date", due, now.time_zone()).ok()?;
    Some(words::due_words(&due, now))
}

/// Describes the intents of the user for the thinking event.
pub(crate) fn intent_thought(commands: &[ParsedCommand]) -> String {
    let intents: Vec<String> = commands.iter().map(describe_intent).collect();
    format!("The user wants {}.", join_with_and(&intents))
}

/// Describes one command as the continuation of "The user wants": "to create a task 'milk', date 2026-01-05, priority
/// high". Lists, undo and unclear intents have no details. Completions and deletions have only the target, reminders
/// also the time.
fn describe_intent(command: &ParsedCommand) -> String {
    let title = command.title.as_deref().map(|title| format!(" '{title}'")).unwrap_or_default();
    let target = match &command.target {
        Some(TaskTarget::Named(words)) => format!(" '{words}'"),
        Some(TaskTarget::All) => " all that match".to_owned(),
        Some(_) => " one that was mentioned".to_owned(),
        None => String::new(),
    };
    let due = match command.when {
        Some(DayOrTime::Day(day)) => format!(", date {day}"),
        Some(DayOrTime::Time(time)) => format!(", time {time}"),
        None => String::new(),
    };
    let priority = command.priority.map(|priority| format!(", priority {}", priority.as_str())).unwrap_or_default();
    match command.intent {
        Intent::CreateTask => format!("to create a task{title}{due}{priority}"),
        Intent::ListTasks => "to see tasks".to_owned(),
        Intent::CompleteTask => format!("to complete a task{target}"),
        Intent::DeleteTask => format!("to delete a task{target}"),
        Intent::UpdateTask => format!("to change a task{target}{title}{due}{priority}"),
        Intent::ScheduleReminder => format!("to be reminded of a task{target}{due}"),
        Intent::SnoozeReminder => format!("to snooze a reminder{target}{due}"),
        Intent::CancelReminder => format!("to cancel a reminder{target}"),
        Intent::UpdateReminder => format!("to change a reminder{target}{due}"),
        Intent::ListReminders => "to see reminders".to_owned(),
        Intent::Undo => "to take back the last change".to_owned(),
        Intent::ClarificationNeeded => "something about tasks that is not clear yet".to_owned(),
        Intent::Unknown => "something else than tasks".to_owned(),
    }
}

/// Reports the validation error of a tool, with readable field names.
pub(crate) fn refused(message: &str) -> String {
    let plain = message
        .replace("remind_before_minutes", "reminder")
        .replace("task_id", "task")
        .replace("due_date", "due date")
        .replace("remind_at", "reminder");
    let plain = plain.replace("repeat_interval_minutes", "interval").replace("repeat_count", "number of reminders");
    format!("I couldn't do that: the {}.", plain.trim_end_matches('.'))
}

/// Reports a quota of the user, with the sentence of the tool.
pub(crate) fn limit_reached(sentence: &str) -> String {
    format!("I couldn't do that. {sentence}")
}

pub(crate) fn tasks(count: usize) -> String {
    format!("{count} {}", if count == 1 { "task" } else { "tasks" })
}

pub(crate) use words::join_with_and;
