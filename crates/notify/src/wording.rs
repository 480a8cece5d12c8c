//! The texts of notifications about reminders and due tasks.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use model::due::DueDate;
use model::reminder::{Reminder, ReminderStatus};
use model::task::Task;

/// A reminder that is later than this mentions the delay.
const LATE_THRESHOLD: SignedDuration = SignedDuration::from_mins(1);

/// Returns the title of a reminder.
pub(crate) fn reminder_title(task: &Task) -> String {
    format!("Reminder: {}", task.title)
}

/// Returns the title for a due task.
pub(crate) fn due_title(task: &Task) -> String {
    format!("Due now: {}", task.title)
}

/// Returns the text of a reminder that was due at `at`, one line each. Empty if no line applies. `reminder` is its
/// state after this firing. The lines are:
///
/// - the trimmed description of the task, if any, and its due date, if any;
/// - the planned time in `zone`, if `now` is more than a minute later;
/// - "Reminder 2 of 3", if it fires a fixed number of times, more than once;
/// - a note that it repeats until the task is done, if it has no count and is still scheduled.
pub(crate) fn reminder_text(
    task: &Task,
    reminder: &Reminder,
    at: Timestamp,
    now: Timestamp,
    zone: &TimeZone,
) -> String {
    let mut lines = description_lines(task);
    if let Some(due) = &task.due_date {
        lines.push(format!("Due {}.", format_due(due)));
    }
    if now.duration_since(at) > LATE_THRESHOLD {
        lines.push(format!("This reminder is late: it was set for {}.", format_time(&at.to_zoned(zone.clone()))));
    }
    match (reminder.repeat_count, reminder.status) {
        (Some(count), _) if count > 1 => lines.push(format!("Reminder {} of {count}.", reminder.fired_count)),
        (None, ReminderStatus::Scheduled) if reminder.recurrence.is_some() => {
            lines.push("It repeats until you cancel it.".to_owned());
        }
        (None, ReminderStatus::Scheduled) => lines.push("It repeats until the task is done.".to_owned()),
        _ => {}
    }
    lines.join("\n")
}

/// Returns the text for a task that is due at `at`: the trimmed description and the due date, one line each. A later
/// occurrence of its rule is named in `zone`. Empty if the task has neither.
pub(crate) fn due_text(task: &Task, at: Timestamp, zone: &TimeZone) -> String {
    let mut lines = description_lines(task);
    match &task.due_date {
        Some(due) if due.timestamp().is_some_and(|first| first < at) => {
            lines.push(format!("It is still open since {}.", format_due(due).trim_start_matches("on ")));
            lines.push(format!("It is due again on {}.", format_time(&at.to_zoned(zone.clone()))));
        }
        Some(due) => lines.push(format!("It is due {}.", format_due(due))),
        None => {}
    }
    lines.join("\n")
}

/// Returns the trimmed description of a task, or no line if it is empty.
fn description_lines(task: &Task) -> Vec<String> {
    task.description.iter().map(|description| description.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

/// Returns a due date as text: the day, and the time of day in the time zone of its author if it has one.
fn format_due(due: &DueDate) -> String {
    match due {
        DueDate::Day(date) => format!("on {}", date.strftime("%A, %-d %B %Y")),
        DueDate::Moment { at, offset } => format!("on {}", format_time(&at.to_zoned(offset.to_time_zone()))),
    }
}

fn format_time(at: &Zoned) -> String {
    at.strftime("%A, %-d %B %Y at %H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use model::task::{TaskDraft, TaskLimits};
    use model::{Clock, User};

    use super::*;

    #[test]
    fn texts_contain_description_due_date_and_repetition() {
        let clock = Clock::manual("2026-01-10T12:00:00Z".parse().unwrap());
        let user = User::local(TimeZone::get("Europe/Berlin").unwrap());
        let draft = TaskDraft {
            title: "Call the dentist".into(),
            description: Some("Ask for Friday.".into()),
            due_date: Some("2026-01-31T17:00".into()),
            ..TaskDraft::default()
        };
        let task = draft.check(TaskLimits::default(), &clock, &user).unwrap();
        let draft = model::reminder::ReminderDraft {
            task_id: task.id.to_string(),
            remind_at: Some("2026-01-11T09:00".into()),
            repeat_interval_minutes: Some(30),
            repeat_count: Some(3),
            ..Default::default()
        };
        let mut fired = draft.check(&clock, &user, model::reminder::DEFAULT_TIME).unwrap();
        let at = fired.remind_at;
        fired.fire(at);
        let text = |late, fired: &Reminder| reminder_text(&task, fired, at, at + late, &user.time_zone);
        assert_eq!(reminder_title(&task), "Reminder: Call the dentist");
        let expected = "Ask for Friday.\nDue on Saturday, 31 January 2026 at 17:00.\nReminder 1 of 3.";
        assert_eq!(text(SignedDuration::from_secs(60), &fired), expected);
        let expected = "Ask for Friday.\nDue on Saturday, 31 January 2026 at 17:00.\n\
                        This reminder is late: it was set for Sunday, 11 January 2026 at 09:00.\nReminder 1 of 3.";
        assert_eq!(text(SignedDuration::from_secs(61), &fired), expected);
        fired.repeat_count = None;
        assert!(text(SignedDuration::ZERO, &fired).ends_with("It repeats until the task is done."));
        let due = task.due_date.unwrap().timestamp().unwrap();
        let text = due_text(&task, due, &user.time_zone);
        assert_eq!(text, "Ask for Friday.\nIt is due on Saturday, 31 January 2026 at 17:00.");
        let again = due_text(&task, due + SignedDuration::from_hours(24), &user.time_zone);
        let expected = "Ask for Friday.\nIt is still open since Saturday, 31 January 2026 at 17:00.\n\
                        It is due again on Sunday, 1 February 2026 at 17:00.";
        assert_eq!(again, expected);
    }
}
