//! The sentences that answer a question about one task (TRUST-4).

use jiff::Zoned;
use jiff::civil::Date;
use model::due::DueDate;
use model::task::{Priority, Task, TaskStatus};
use model::words;

use super::property::AskedProperty;
use crate::wording;

/// Returns the sentence that answers a question about one task.
pub(super) fn sentence(task: &Task, asked: AskedProperty, day: Option<Date>, now: &Zoned) -> String {
    let title = format!("'{}'", task.title);
    let is_done = task.status == TaskStatus::Completed;
    let done = || {
        let day = task.completed_at.map(|at| at.to_zoned(now.time_zone().clone()).date());
        let when = day.map(|day| format!(" since {}", words::short_day_words(day, now.date()))).unwrap_or_default();
        format!("{title} is done{when}.")
    };
    match asked {
        AskedProperty::Due | AskedProperty::Remaining if is_done => done(),
        AskedProperty::Due | AskedProperty::Remaining => match &task.due_date {
            None => format!("{title} has no due date."),
            Some(due) => {
                let when = words::due_words(due, now);
                let due_day = due_day(due, now);
                let yes = day.map(|day| if day == due_day { "Yes, " } else { "No, " }).unwrap_or_default();
                let late = words::is_overdue(due, now);
                let rule =
                    task.recurrence.as_deref().map(|rule| format!(", and repeats {}", words::recurrence_words(rule)));
                let left = match asked {
                    AskedProperty::Remaining if !late => format!(" ({})", remaining(due, now)),
                    _ => String::new(),
                };
                let text = match late {
                    true => format!("{title} is overdue since {when}"),
                    false => format!("{title} is due {}{left}", wording::on_day(&when)),
                };
                format!("{yes}{text}{}.", rule.unwrap_or_default())
            }
        },
        AskedProperty::Priority => format!("{title} has {} priority.", task.priority.as_str()),
        AskedProperty::Tags => match task.tags.as_slice() {
            [] => format!("{title} has no tags."),
            tags => format!("{title} is tagged {}.", words::join_with_and(tags)),
        },
        AskedProperty::Note => match &task.description {
            None => format!("{title} has no note."),
            Some(note) => format!("The note of {title}: {note}"),
        },
        AskedProperty::Repetition => match &task.recurrence {
            None => format!("No, {title} does not repeat."),
            Some(rule) => {
                let due = task.due_date.as_ref().map(|due| format!(", next {}", words::due_words(due, now)));
                format!("{title} repeats {}{}.", words::recurrence_words(rule), due.unwrap_or_default())
            }
        },
        AskedProperty::Done if is_done => format!("Yes, {}", done()),
        AskedProperty::Done => format!("No, {title} is still open."),
        AskedProperty::Reminder | AskedProperty::Details => match words::task_sentence(task, now) {
            _ if is_done => done(),
            None => format!("{title} is open. It has no due date, note or tags."),
            Some(values) => {
                format!("{title}: {values}{}", if task.priority == Priority::Medium { " Medium priority." } else { "" })
            }
        },
    }
}

pub(super) fn due_day(due: &DueDate, now: &Zoned) -> Date {
    match due {
        DueDate::Day(day) => *day,
        DueDate::Moment { at, .. } => at.to_zoned(now.time_zone().clone()).date(),
    }
}

/// Returns the time until a task is due: "in 3 days", "in 5 hours".
fn remaining(due: &DueDate, now: &Zoned) -> String {
    let plural = |n: i64, unit: &str| format!("in {n} {unit}{}", if n == 1 { "" } else { "s" });
    let days = now.date().until(due_day(due, now)).map(|span| i64::from(span.get_days())).unwrap_or_default();
    match due {
        DueDate::Moment { at, .. } if days == 0 || at.duration_since(now.timestamp()).as_hours() < 24 => {
            let minutes = at.duration_since(now.timestamp()).as_mins();
            if minutes < 120 { plural(minutes, "minute") } else { plural(minutes / 60, "hour") }
        }
        _ if days == 0 => "today".to_owned(),
        _ => plural(days, "day"),
    }
}
