//! Every sentence that the assistant says by itself: S1's Response Format Contract and what it leaves open. No ids, no
//! jargon. Questions that an answer must be matched with can be read back here too, so that form and reading stay one.

mod agents;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use model::due::Due;
use model::task::Priority;
use serde_json::Value;
use tools::{Act, Answer};
use understand::{Command, DueFilter, Filter, Intent, Missing, StatusFilter, Target, When};

pub(crate) use agents::*;

/// How many tasks a list shows.
pub(crate) const SHOWN: usize = 20;
/// How much of an argument a question shows, in characters.
const ARGUMENT: usize = 80;
/// How much of what somebody else's tool answers is shown, in characters.
const RESULT: usize = 400;
/// How many of several completed tasks are said to be due again by name.
const AGAIN: usize = 5;
/// How many options a question offers.
pub(crate) const OPTIONS: usize = 10;

pub(crate) fn created(title: &str) -> String {
    format!("Got it! Added '{title}' to your list. Anything else?")
}

pub(crate) fn completed(title: &str) -> String {
    format!("Great! I've marked '{title}' as complete.")
}

/// After [`completed`], about a task that repeats; `when` it is due again, nothing after the last time.
pub(crate) fn again(when: Option<&str>) -> String {
    match when {
        Some(when) => format!("It's due again {when}."),
        None => "That was the last time.".to_owned(),
    }
}

/// After [`completed_several`], about those that repeat: their titles, and when each is due again.
pub(crate) fn several_again(tasks: &[(&str, String)]) -> String {
    let shown: Vec<_> = tasks.iter().take(AGAIN).map(|(title, when)| format!("'{title}' {when}")).collect();
    let more = tasks.len().saturating_sub(AGAIN);
    let shown = if more > 0 { [shown, vec![format!("{more} more later")]].concat() } else { shown };
    format!("Due again: {}.", and(&shown))
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

pub(crate) fn updated(title: &str, changes: &[String]) -> String {
    format!("Updated! '{title}' now has {}.", and(changes))
}

/// Where the tasks are kept by somebody else, who knows less about them.
pub(crate) fn no_place(what: &[&str]) -> String {
    format!("Your list has no place for {}.", what.join(" or "))
}

/// The same after what could be done.
pub(crate) fn but_no_place(done: String, what: &[&str]) -> String {
    if what.is_empty() { done } else { format!("{done}\n{}", no_place(what)) }
}

pub(crate) fn reminder_set(title: &str, when: &str, repeats: Option<&str>) -> String {
    match repeats {
        None => format!("Okay! I'll remind you about '{title}' {when}."),
        Some(repeats) => format!("Okay! I'll remind you about '{title}' {when}, {repeats}."),
    }
}

pub(crate) fn not_found(query: &str) -> String {
    format!("I couldn't find a task about '{query}' in your list.")
}

const AMBIGUOUS: (&str, &str) = ("I found multiple tasks about '", "'. Which one: ");

pub(crate) fn ambiguous(query: &str, options: &[&str]) -> String {
    let shown: Vec<_> = options.iter().take(OPTIONS).map(|option| format!("'{option}'")).collect();
    let more = options.len().saturating_sub(OPTIONS);
    let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    format!("{}{query}{}{}{more}?", AMBIGUOUS.0, AMBIGUOUS.1, shown.join(", "))
}

/// What [`ambiguous`] asked about, and the options it offered.
pub(crate) fn read_ambiguous(text: &str) -> Option<(String, Vec<String>)> {
    let line = text.lines().rev().find(|line| line.starts_with(AMBIGUOUS.0))?;
    let (query, options) = line.strip_prefix(AMBIGUOUS.0)?.split_once(AMBIGUOUS.1)?;
    let options = options.rsplit_once('\'')?.0.strip_prefix('\'')?;
    Some((query.to_owned(), options.split("', '").map(str::to_owned).collect()))
}

const DETAILS: &str = "Could you provide more details about ";

pub(crate) fn missing(what: Missing) -> String {
    format!("{DETAILS}{}?", what.what())
}

/// What [`missing`] asked for.
pub(crate) fn read_missing(text: &str) -> Option<Missing> {
    let line = text.lines().rev().find_map(|line| line.strip_prefix(DETAILS))?;
    let all = [Missing::Title, Missing::Target, Missing::Change, Missing::Time];
    all.into_iter().find(|missing| line.trim_end_matches('?') == missing.what())
}

const REALLY: &str = "Do you really want to delete ";

/// Asks for the phrase that releases what waits.
pub(crate) fn confirm(acts: &[Act], phrase: &str) -> String {
    if acts.iter().any(|act| act.bulk) {
        return format!("That's a big action. Confirm with '{phrase}'.");
    }
    let titles: Vec<_> = acts.iter().flat_map(|act| &act.targets).map(|target| format!("'{}'", target.title)).collect();
    if acts.iter().any(Act::is_other) {
        let mut wishes: Vec<_> = acts.iter().filter(|act| act.is_other()).map(other_act).collect();
        if !titles.is_empty() {
            wishes.push(format!("delete {}", and(&titles)));
        }
        return format!("Do you want me to {}? Reply '{phrase}' to confirm.", and(&wishes));
    }
    format!("{REALLY}{}? Reply '{phrase}' to confirm.", and(&titles))
}

/// "run send_mail (to: Ann, subject: Hello)": what somebody else's tool would be called with.
fn other_act(act: &Act) -> String {
    let shown: Vec<_> = act.arguments.iter().map(|(name, value)| format!("{name}: {}", shortly(value))).collect();
    match shown.is_empty() {
        true => format!("run {}", act.tool),
        false => format!("run {} ({})", act.tool, shown.join(", ")),
    }
}

fn shortly(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.char_indices().nth(ARGUMENT).map_or(text.clone(), |(end, _)| format!("{}…", &text[..end]))
}

/// The title that [`confirm`] asked about, where it was one.
pub(crate) fn read_confirm(text: &str) -> Option<String> {
    let line = text.lines().rev().find_map(|line| line.strip_prefix(REALLY))?;
    let title = line.rsplit_once("'? Reply '")?.0.strip_prefix('\'')?;
    Some(title.to_owned())
}

/// The phrase that [`confirm`] named.
pub(crate) fn read_phrase(text: &str) -> Option<&str> {
    let line = text.lines().next_back()?;
    let phrase = line.strip_suffix("'.").and_then(|line| line.rsplit_once("Confirm with '"));
    phrase.or_else(|| line.strip_suffix("' to confirm.")?.rsplit_once("Reply '")).map(|(_, phrase)| phrase)
}

pub(crate) fn nothing_to_confirm() -> String {
    "There's nothing waiting for your confirmation. What would you like to do?".to_owned()
}

pub(crate) fn other_phrase() -> String {
    "That's not what I asked you to reply, so nothing was changed.".to_owned()
}

pub(crate) fn confirm_again() -> String {
    "I'm not sure which tasks you mean. Please tell me again what to do.".to_owned()
}

pub(crate) fn left_alone() -> String {
    "Okay, nothing was changed.".to_owned()
}

pub(crate) fn one_at_a_time() -> String {
    "I can change one task at a time. Which one do you mean?".to_owned()
}

/// "every 30 minutes, 3 times in all", where it repeats.
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

pub(crate) fn undone(what: &str, titles: &[&str]) -> String {
    let (name, is) = match titles {
        [title] => (format!("'{title}'"), "is"),
        _ => (tasks(titles.len()), "are"),
    };
    let now = match what {
        "created" => "off your list again",
        "deleted" => "back on your list",
        "completed" => "open again",
        "reminded" => "without that reminder",
        _ => "as before",
    };
    format!("Undone! {name} {is} {now}.")
}

/// Where the tasks are kept by somebody else.
pub(crate) fn cannot_undo() -> String {
    "I can't take that back here.".to_owned()
}

pub(crate) fn nothing_to_undo() -> String {
    "There's nothing to undo.".to_owned()
}

/// A numbered list with checkboxes. `extra` follows a title in brackets.
pub(crate) fn list(lines: &[(bool, &str, Option<String>)], total: usize, filter: &Filter) -> String {
    let kind = kind(filter);
    if lines.is_empty() {
        return format!("You have no{kind} tasks{}.", scope(filter));
    }
    let noun = if total == 1 { "task" } else { "tasks" };
    let mut text = format!("You have {total}{kind} {noun}{}:", scope(filter));
    for (n, (done, title, extra)) in lines.iter().take(SHOWN).enumerate() {
        let mark = if *done { '✓' } else { '☐' };
        text.push_str(&format!("\n{}. {mark} {title}", n + 1));
        if let Some(extra) = extra {
            text.push_str(&format!(" ({extra})"));
        }
    }
    if total > SHOWN {
        text.push_str(&format!("\nand {} more", total - SHOWN));
    }
    text
}

pub(crate) fn no_tasks() -> String {
    "You don't have any tasks yet.".to_owned()
}

pub(crate) fn all_done() -> String {
    "You have no open tasks. Everything is done!".to_owned()
}

/// The titles of a list that was shown, in order.
pub(crate) fn read_list(text: &str) -> Vec<String> {
    let mut titles = Vec::new();
    for line in text.lines() {
        let Some((number, rest)) = line.split_once(". ") else { continue };
        let title = rest.strip_prefix("☐ ").or_else(|| rest.strip_prefix("✓ "));
        if let (Ok(number), Some(title)) = (number.parse::<usize>(), title) {
            if number == 1 {
                titles.clear();
            }
            let plain = title.rsplit_once(" (due ").or_else(|| title.rsplit_once(" (high priority"));
            titles.push(plain.map_or(title, |(title, _)| title).to_owned());
        }
    }
    titles
}

/// " completed", " high priority", or nothing.
fn kind(filter: &Filter) -> String {
    let status = match filter.status {
        Some(StatusFilter::Completed) => " completed",
        Some(StatusFilter::Pending) => " open",
        _ => "",
    };
    let priority = filter.priority.map(|priority| format!(" {} priority", priority.as_str())).unwrap_or_default();
    let overdue = if filter.due == Some(DueFilter::Overdue) { " overdue" } else { "" };
    format!("{status}{priority}{overdue}")
}

/// " due today", " about 'milk'", or nothing.
fn scope(filter: &Filter) -> String {
    let mut scope = match filter.due {
        Some(DueFilter::Today) => " due today".to_owned(),
        Some(DueFilter::Tomorrow) => " due tomorrow".to_owned(),
        Some(DueFilter::ThisWeek) => " due this week".to_owned(),
        Some(DueFilter::Day(day)) => format!(" due {}", day.strftime("%A, %B %-d")),
        Some(DueFilter::Between(first, last)) => stretch(first, last),
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

/// " due from Monday, January 5 to Sunday, January 11".
fn stretch(first: Option<Date>, last: Option<Date>) -> String {
    let day = |day: Date| day.strftime("%A, %B %-d").to_string();
    match (first, last) {
        (Some(first), Some(last)) => format!(" due from {} to {}", day(first), day(last)),
        (Some(first), None) => format!(" due from {} on", day(first)),
        (None, Some(last)) => format!(" due by {}", day(last)),
        (None, None) => String::new(),
    }
}

/// Before a list that shows more than was asked for.
pub(crate) fn unfiltered() -> String {
    "I can't narrow it down that way, so this is everything open.".to_owned()
}

pub(crate) fn no_such_filter() -> String {
    "I can't tell which tasks you mean by that. Please name them, or show them to me in a list first.".to_owned()
}

pub(crate) fn capabilities() -> String {
    "I can add, list, complete, change and delete your tasks, and remind you of them. What would you like to do?"
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

/// S1's system error.
pub(crate) fn trouble() -> &'static str {
    "I'm having a bit of trouble right now. Please try again."
}

/// S0's sentence. `ours`: whether the built-in model answers instead, or another one; nothing where none does.
pub(crate) fn model_unavailable(ours: Option<bool>) -> String {
    let then = match ours {
        Some(true) => "; until then the built-in assistant answers",
        Some(false) => "; until then another model answers",
        None => "",
    };
    format!("AI service temporarily unavailable. Please try again in a moment{then}.")
}

/// S0's sentence.
pub(crate) fn mcp_unavailable(servers: &[String]) -> String {
    let which = if servers.is_empty() { String::new() } else { format!(": {}", servers.join(", ")) };
    format!("MCP service temporarily unavailable{which}. Please try again in a moment.")
}

/// What was done before nobody answered any more.
pub(crate) fn half_done(done: &[String]) -> String {
    format!("I've taken care of {}, but then I lost the thread. Please tell me what is left to do.", and(done))
}

/// Where a model says nothing about what it did.
pub(crate) fn done(done: &[String]) -> String {
    match done {
        [] => "Done.".to_owned(),
        done => format!("Done! I've taken care of {}.", and(done)),
    }
}

pub(crate) fn timed_out() -> &'static str {
    "This is taking longer than expected. Please try again."
}

/// `done` are the titles of what was done before it became too much.
pub(crate) fn too_many_calls(done: &[String]) -> String {
    let break_up = "Could you break it into smaller steps?";
    match done {
        [] => format!("That's more than I can do at once. {break_up}"),
        done => format!("That's more than I can do at once. I've only taken care of {} so far. {break_up}", and(done)),
    }
}

pub(crate) fn unchanged(title: &str) -> String {
    format!("'{title}' is like that already.")
}

/// What became of an act that the user agreed to.
pub(crate) fn released(act: &Act, answer: &Answer, today: Date) -> String {
    let asked = act.targets.first().map(|target| target.title.as_str()).unwrap_or_default();
    // It may have been renamed since.
    let title = answer.data()["title"].as_str().unwrap_or(asked);
    if act.is_other() {
        return match answer.error() {
            Some((tools::answer::UNAVAILABLE, _)) => trouble().to_owned(),
            Some((_, message)) => format!("That didn't work: {}", shortened(message)),
            None => format!("Done! {}", shortened(&answer.text(None))),
        };
    }
    let count = answer.data()["count"].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or_default();
    match answer.error() {
        Some(("NOT_FOUND", _)) => not_found(title),
        Some(_) => trouble().to_owned(),
        None if act.bulk && act.tool.starts_with("complete") => {
            with_again(completed_several(count), answer.data(), today)
        }
        None if act.bulk => deleted_several(count),
        None => deleted(title),
    }
}

/// With when the tasks that were completed are due again, where they repeat.
pub(crate) fn with_again(said: String, data: &Value, today: Date) -> String {
    let when = |next: &Value| next["due_date"].as_str().and_then(|due| due_words(due, today));
    if let Some(next) = data.get("next_task") {
        return format!("{said} {}", again(when(next).as_deref()));
    }
    let tasks = data["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let next = tasks.iter().filter_map(|task| Some((task["title"].as_str()?, when(task.get("next_task")?)?)));
    match next.collect::<Vec<_>>().as_slice() {
        [] => said,
        next => format!("{said} {}", several_again(next)),
    }
}

/// A due date as a tool gives it.
pub(crate) fn due_words(due: &str, today: Date) -> Option<String> {
    match Due::parse("due_date", due, &TimeZone::UTC).ok()? {
        Due::Day(day) => Some(when(day, None, today)),
        // As its author's clock showed it.
        Due::Moment { at: moment, offset } => Some(at(offset.to_datetime(moment), today)),
    }
}

fn shortened(text: &str) -> String {
    let text = text.trim();
    text.char_indices().nth(RESULT).map_or(text.to_owned(), |(end, _)| format!("{}…", &text[..end]))
}

/// What the user seems to want, for those who watch.
pub(crate) fn thinking(commands: &[Command]) -> String {
    let wants: Vec<String> = commands.iter().map(want).collect();
    format!("The user wants {}.", and(&wants))
}

/// For those who watch a confirmed act.
pub(crate) fn agreed() -> &'static str {
    "The user has confirmed what was asked about."
}

fn want(command: &Command) -> String {
    let title = command.title.as_deref().map(|title| format!(" '{title}'")).unwrap_or_default();
    let target = match &command.target {
        Some(Target::Named(words)) => format!(" '{words}'"),
        Some(Target::All) => " all that match".to_owned(),
        Some(_) => " one that was mentioned".to_owned(),
        None => String::new(),
    };
    let due = match command.when {
        Some(When::Day(day)) => format!(", date {day}"),
        Some(When::Time(time)) => format!(", time {time}"),
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
        Intent::Undo => "to take back the last change".to_owned(),
        Intent::ClarificationNeeded => "something about tasks that is not clear yet".to_owned(),
        Intent::Unknown => "something else than tasks".to_owned(),
    }
}

/// What a tool refused, in words for people.
pub(crate) fn refused(message: &str) -> String {
    let plain = message.replace("task_id", "task").replace("due_date", "due date").replace("remind_at", "reminder");
    let plain = plain.replace("repeat_interval_minutes", "interval").replace("repeat_count", "number of reminders");
    format!("I couldn't do that: the {}.", plain.trim_end_matches('.'))
}

pub(crate) fn priority(priority: Priority) -> String {
    format!("{} priority", priority.as_str())
}

/// "tomorrow at 3pm", "on Friday", "on January 5 at 9:30am".
pub(crate) fn when(day: Date, time: Option<Time>, today: Date) -> String {
    let days = today.until(day).map(|span| span.get_days()).unwrap_or_default();
    let day = match days {
        0 => "today".to_owned(),
        1 => "tomorrow".to_owned(),
        2..=6 => format!("on {}", day.strftime("%A")),
        _ if day.year() == today.year() => format!("on {}", day.strftime("%A, %B %-d")),
        _ => format!("on {}", day.strftime("%B %-d, %Y")),
    };
    match time {
        None => day,
        Some(time) => format!("{day} at {}", clock(time)),
    }
}

pub(crate) fn at(moment: DateTime, today: Date) -> String {
    when(moment.date(), Some(moment.time()), today)
}

fn clock(time: Time) -> String {
    match time.minute() {
        0 => time.strftime("%-I%P").to_string(),
        _ => time.strftime("%-I:%M%P").to_string(),
    }
}

pub(crate) fn tasks(count: usize) -> String {
    format!("{count} {}", if count == 1 { "task" } else { "tasks" })
}

/// "a", "a and b", "a, b and c".
pub(crate) fn and(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
