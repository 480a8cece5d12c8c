//! What users read in notifications of reminders and due tasks.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use model::due::Due;
use model::reminder::{Reminder, Status};
use model::task::Task;

/// Later than this is worth a word.
const LATE: SignedDuration = SignedDuration::from_mins(1);

pub(crate) fn reminder_title(task: &Task) -> String {
    format!("Reminder: {}", task.title)
}

pub(crate) fn due_title(task: &Task) -> String {
    format!("Due now: {}", task.title)
}

/// `reminder` as it is after this firing.
pub(crate) fn reminder(task: &Task, reminder: &Reminder, at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let mut lines = about(task);
    if let Some(due) = &task.due_date {
        lines.push(format!("Due {}.", when(due)));
    }
    if now.duration_since(at) > LATE {
        lines.push(format!("This comes late: it was set for {}.", clock(&at.to_zoned(zone.clone()))));
    }
    match (reminder.repeat_count, reminder.status) {
        (Some(count), _) if count > 1 => lines.push(format!("Reminder {} of {count}.", reminder.fired_count)),
        (None, Status::Scheduled) => lines.push("It repeats until the task is done.".to_owned()),
        _ => {}
    }
    lines.join("\n")
}

pub(crate) fn due(task: &Task) -> String {
    let mut lines = about(task);
    if let Some(due) = &task.due_date {
        lines.push(format!("It is due {}.", when(due)));
    }
    lines.join("\n")
}

fn about(task: &Task) -> Vec<String> {
    task.description.iter().map(|description| description.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

/// A moment where its author meant it.
fn when(due: &Due) -> String {
    match due {
        Due::Day(date) => format!("on {}", date.strftime("%A, %-d %B %Y")),
        Due::Moment { at, offset } => format!("on {}", clock(&at.to_zoned(offset.to_time_zone()))),
    }
}

fn clock(at: &Zoned) -> String {
    at.strftime("%A, %-d %B %Y at %H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use model::task::{Draft, Limits};
    use model::{Clock, User};

    use super::*;

    #[test]
    fn it_says_what_one_needs_to_know() {
        let clock = Clock::manual("2026-01-10T12:00:00Z".parse().unwrap());
        let user = User::local(TimeZone::get("Europe/Berlin").unwrap());
        let draft = Draft {
            title: "Call the dentist".into(),
            description: Some("Ask for Friday.".into()),
            due_date: Some("2026-01-31T17:00".into()),
            ..Draft::default()
        };
        let task = draft.check(Limits::default(), &clock, &user).unwrap();
        let draft = model::reminder::Draft {
            task_id: task.id.to_string(),
            remind_at: "2026-01-11T09:00".into(),
            repeat_interval_minutes: Some(30),
            repeat_count: Some(3),
        };
        let mut fired = draft.check(&clock, &user).unwrap();
        let at = fired.remind_at;
        fired.fire(at);
        let said = |late, fired: &Reminder| reminder(&task, fired, at, at + late, &user.time_zone);
        assert_eq!(reminder_title(&task), "Reminder: Call the dentist");
        let expected = "Ask for Friday.\nDue on Saturday, 31 January 2026 at 17:00.\nReminder 1 of 3.";
        assert_eq!(said(SignedDuration::from_secs(60), &fired), expected);
        let expected = "Ask for Friday.\nDue on Saturday, 31 January 2026 at 17:00.\n\
                        This comes late: it was set for Sunday, 11 January 2026 at 09:00.\nReminder 1 of 3.";
        assert_eq!(said(SignedDuration::from_secs(61), &fired), expected);
        fired.repeat_count = None;
        assert!(said(SignedDuration::ZERO, &fired).ends_with("It repeats until the task is done."));
        assert_eq!(due(&task), "Ask for Friday.\nIt is due on Saturday, 31 January 2026 at 17:00.");
    }
}
