//! Dates, repetitions and tasks in plain English. Every interface uses these functions, so that a value reads the same
//! everywhere. The texts come from stored values, never from an utterance.

mod rule;

use jiff::Zoned;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;

use crate::due::DueDate;
use crate::task::{Priority, Task, TaskStatus};

pub use rule::recurrence_words;

/// Returns the date of a day relative to today: "today (Tue 17 Nov)", "tomorrow (Wed 18 Nov)", "Fri 20 Nov", and "Fri 8
/// Jan 2027" in another year.
pub fn day_words(day: Date, today: Date) -> String {
    match relative_day(day, today) {
        Some(word) => format!("{word} ({})", calendar_day(day, today)),
        None => calendar_day(day, today),
    }
}

/// Returns the date of a day for lists: "today", "tomorrow", "Fri 20 Nov".
pub fn short_day_words(day: Date, today: Date) -> String {
    relative_day(day, today).map_or_else(|| calendar_day(day, today), str::to_owned)
}

fn relative_day(day: Date, today: Date) -> Option<&'static str> {
    match today.until(day).ok()?.get_days() {
        -1 => Some("yesterday"),
        0 => Some("today"),
        1 => Some("tomorrow"),
        _ => None,
    }
}

fn calendar_day(day: Date, today: Date) -> String {
    let format = if day.year() == today.year() { "%a %-d %b" } else { "%a %-d %b %Y" };
    day.strftime(format).to_string()
}

/// Returns a time of day: "3pm", "3:30pm", "3:30:15pm".
pub fn clock_words(time: Time) -> String {
    let format = match (time.minute(), time.second()) {
        (0, 0) => "%-I%P",
        (_, 0) => "%-I:%M%P",
        _ => "%-I:%M:%S%P",
    };
    time.strftime(format).to_string()
}

/// Returns a local time: "tomorrow (Wed 18 Nov) at 3pm".
pub fn time_words(time: DateTime, today: Date) -> String {
    format!("{} at {}", day_words(time.date(), today), clock_words(time.time()))
}

/// Returns a due date: "tomorrow (Wed 18 Nov) at 3pm", or only the day. A moment is shown in the time zone of `now`.
pub fn due_words(due: &DueDate, now: &Zoned) -> String {
    with_time(due, now, day_words)
}

/// Returns a due date for lists: "tomorrow at 3pm".
pub fn short_due_words(due: &DueDate, now: &Zoned) -> String {
    with_time(due, now, short_day_words)
}

fn with_time(due: &DueDate, now: &Zoned, words: fn(Date, Date) -> String) -> String {
    match local(due, now.time_zone()) {
        (day, None) => words(day, now.date()),
        (day, Some(time)) => format!("{} at {}", words(day, now.date()), clock_words(time)),
    }
}

fn local(due: &DueDate, zone: &TimeZone) -> (Date, Option<Time>) {
    match due {
        DueDate::Day(day) => (*day, None),
        DueDate::Moment { at, .. } => {
            let local = at.to_zoned(zone.clone()).datetime();
            (local.date(), Some(local.time()))
        }
    }
}

/// Returns `true` if the day is before today, or if the moment is before now.
pub fn is_overdue(due: &DueDate, now: &Zoned) -> bool {
    match due {
        DueDate::Day(day) => *day < now.date(),
        DueDate::Moment { at, .. } => *at < now.timestamp(),
    }
}

/// Returns the values of a task that differ from the defaults, in a fixed order: "due tomorrow (Wed 18 Nov) at 3pm",
/// "every week", "high priority", "tagged work and home", "note: bring the forms". An open task whose due date has
/// passed is "overdue since …". Returns an empty list for a task with a title only.
pub fn task_values(task: &Task, now: &Zoned) -> Vec<String> {
    values(task, now, due_words)
}

/// Returns the values of a task for a line of a list. Leaves out the note, and has shorter dates.
pub fn short_task_values(task: &Task, now: &Zoned) -> Vec<String> {
    let mut values = values(task, now, short_due_words);
    values.retain(|value| !value.starts_with("note: "));
    values
}

fn values(task: &Task, now: &Zoned, due_words: fn(&DueDate, &Zoned) -> String) -> Vec<String> {
    let mut values = Vec::new();
    if let Some(due) = &task.due_date {
        let is_late = task.status == TaskStatus::Pending && is_overdue(due, now);
        let lead = if is_late { "overdue since" } else { "due" };
        values.push(format!("{lead} {}", due_words(due, now)));
    }
    values.extend(task.recurrence.as_deref().map(recurrence_words));
    if task.priority != Priority::Medium {
        values.push(format!("{} priority", task.priority.as_str()));
    }
    if !task.tags.is_empty() {
        values.push(format!("tagged {}", join_with_and(&task.tags)));
    }
    values.extend(task.description.as_deref().map(|note| format!("note: {note}")));
    values
}

/// Returns a sentence that names the values of a task: "Due tomorrow (Wed 18 Nov) at 3pm, every week, high priority."
/// Returns `None` for a task with a title only.
pub fn task_sentence(task: &Task, now: &Zoned) -> Option<String> {
    let text = task_values(task, now).join(", ");
    let mut characters = text.chars();
    let first = characters.next()?;
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    Some(format!("{}{}{end}", first.to_uppercase(), characters.as_str()))
}

/// Joins a list: "a", "a and b", "a, b and c".
pub fn join_with_and(parts: &[impl AsRef<str>]) -> String {
    let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
    match parts.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests;
