//! Reminders: their requests, lead times, snoozes and management, and references to the last list.

use jiff::civil::time;

use super::{at, named, one};
use crate::{Intent, LeadTime, TaskTarget};

fn minutes(minutes: i64) -> LeadTime {
    LeadTime { minutes, ..LeadTime::default() }
}

fn days(days: i32) -> LeadTime {
    LeadTime { days, ..LeadTime::default() }
}

#[test]
fn requests_for_a_notification_are_marked() {
    // TRUST-2
    for (text, title, about) in [
        ("remind me about the dentist", "dentist", true),
        ("remind me of the dentist tomorrow", "dentist", true),
        ("remind me tomorrow about the taxes", "taxes", true),
        ("ping me about the laundry at 6", "laundry", true),
        ("set a reminder for the passport", "the passport", true),
        ("remind me to call Zoe tomorrow at 9", "call Zoe", false),
        ("set a reminder to call Zoe", "call Zoe", false),
        ("set a reminder for 5pm to call Zoe", "call Zoe", false),
    ] {
        let command = one(text);
        assert!(command.asks_reminder, "{text}");
        assert_eq!((command.title.as_deref(), command.is_about), (Some(title), about), "{text}");
    }
    for text in ["add call Zoe tomorrow at 9", "buy milk", "add buy milk to my reminders"] {
        assert!(!one(text).asks_reminder, "{text}");
    }
}

#[test]
fn lead_times_of_an_event_are_reminders_for_it() {
    // TRUST-2
    for (text, lead, event) in [
        ("remind me 2 hours before the dentist", minutes(120), "dentist"),
        ("remind me half an hour before the call", minutes(30), "call"),
        ("remind me a day before the flight", days(1), "flight"),
        ("ping me 15 min before standup", minutes(15), "standup"),
        ("set a reminder 3 days before the exam", days(3), "exam"),
        ("give me a heads up two weeks ahead of the conference", days(14), "conference"),
        ("remind me 10 minutes prior to the interview", minutes(10), "interview"),
    ] {
        let command = one(text);
        assert_eq!(command.intent, Intent::ScheduleReminder, "{text}");
        assert_eq!((command.before, command.before_target), (Some(lead), named(event)), "{text}");
        assert_eq!((command.title, command.missing), (None, None), "{text}");
    }
    for text in ["remind me 10 minutes before", "remind me half an hour before it", "remind me about it an hour before"]
    {
        assert_eq!(one(text).before_target, Some(TaskTarget::It), "{text}");
    }
}

#[test]
fn lead_times_next_to_a_title_are_no_part_of_it() {
    // TRUST-2
    for (text, title, lead, event) in [
        ("remind me to wax the skis two days before the ski trip", "wax the skis", days(2), named("ski trip")),
        ("remind me to pack an hour before the flight", "pack", minutes(60), named("flight")),
        ("remind me a week before mom's birthday to buy a present", "buy a present", days(7), named("mom's birthday")),
        ("an hour before the meeting remind me to print slides", "print slides", minutes(60), named("meeting")),
        ("remind me about the dentist an hour before", "dentist", minutes(60), None),
        ("set a reminder for the flight 2 hours before", "the flight", minutes(120), None),
    ] {
        let command = one(text);
        assert_eq!(command.title.as_deref(), Some(title), "{text}");
        assert_eq!((command.before, command.before_target), (Some(lead), event), "{text}");
    }
    for text in ["remind me to call Bob before the meeting", "remind me two days before christmas to buy gifts"] {
        assert_eq!(one(text).before, None, "{text}");
    }
}

#[test]
fn lead_times_in_days_have_a_time_of_day() {
    // TRUST-2
    for (text, days, hour) in [
        ("remind me the day before at 6pm", 1, time(18, 0, 0, 0)),
        ("remind me about the trip the day before at 6pm", 1, time(18, 0, 0, 0)),
        ("remind me at 8am the day before the flight", 1, time(8, 0, 0, 0)),
        ("remind me the evening before the exam", 1, time(18, 0, 0, 0)),
        ("remind me the night before", 1, time(20, 0, 0, 0)),
        ("remind me on the morning of the exam", 0, time(9, 0, 0, 0)),
        ("remind me the evening of the party", 0, time(18, 0, 0, 0)),
        ("remind me the night of the show", 0, time(20, 0, 0, 0)),
        ("remind me the day of the trip at 8am", 0, time(8, 0, 0, 0)),
    ] {
        let wanted = LeadTime { days, minutes: 0, time_of_day: Some(hour) };
        assert_eq!(one(text).before, Some(wanted), "{text}");
    }
}

#[test]
fn reminders_are_snoozed() {
    // TRUST-2
    for (text, target, when) in [
        ("snooze", Some(TaskTarget::It), None),
        ("snooze it for 10 minutes", Some(TaskTarget::It), at("2025-12-21T12:10:00")),
        ("snooze 10 minutes", Some(TaskTarget::It), at("2025-12-21T12:10:00")),
        ("snooze for an hour", Some(TaskTarget::It), at("2025-12-21T13:00:00")),
        ("snooze the dentist until 5", named("dentist"), at("2025-12-21T17:00:00")),
        ("snooze the laundry reminder for 20 min", named("laundry"), at("2025-12-21T12:20:00")),
        ("postpone that reminder by 2 hours", Some(TaskTarget::It), at("2025-12-21T14:00:00")),
        ("remind me again in 10 minutes", Some(TaskTarget::It), at("2025-12-21T12:10:00")),
        ("remind me later", Some(TaskTarget::It), None),
    ] {
        let command = one(text);
        assert_eq!(command.intent, Intent::SnoozeReminder, "{text}");
        assert_eq!((command.target, command.when, command.missing), (target, when, None), "{text}");
    }
}

#[test]
fn reminders_are_cancelled_changed_and_listed() {
    // TRUST-2
    for (text, target) in [
        ("cancel the reminder", Some(TaskTarget::It)),
        ("stop the reminder for the laundry", named("laundry")),
        ("remove the reminder for the dentist", named("dentist")),
        ("delete the dentist reminder", named("dentist")),
        ("don't remind me about the dentist", named("dentist")),
        ("stop reminding me about the plants", named("plants")),
        ("stop reminding me", Some(TaskTarget::It)),
    ] {
        let command = one(text);
        assert_eq!((command.intent, command.target), (Intent::CancelReminder, target), "{text}");
    }
    for (text, target) in [
        ("move the reminder to 5pm", Some(TaskTarget::It)),
        ("change the dentist reminder to 5pm", named("dentist")),
        ("move the reminder for the dentist to 5pm", named("dentist")),
    ] {
        let command = one(text);
        assert_eq!((command.intent, command.target), (Intent::UpdateReminder, target), "{text}");
        assert_eq!(command.when, at("2025-12-21T17:00:00"), "{text}");
    }
    assert_eq!(one("change the dentist reminder to 1 hour before").before, Some(minutes(60)));
    for text in ["what are my reminders?", "list reminders", "show my notifications", "which reminders do I have"] {
        assert_eq!(one(text).intent, Intent::ListReminders, "{text}");
    }
    assert_eq!(one("delete the dentist task").intent, Intent::DeleteTask);
    assert_eq!(one("rename the dentist reminder to call the dentist").intent, Intent::UpdateTask);
}

#[test]
fn pronouns_refer_to_the_last_list() {
    // TRUST-5
    for (text, target) in [
        ("delete them", TaskTarget::Them),
        ("delete them all", TaskTarget::Them),
        ("delete all of them", TaskTarget::Them),
        ("complete those", TaskTarget::Them),
        ("complete all of these", TaskTarget::Them),
        ("delete all of these tasks", TaskTarget::Them),
        ("mark all of those tasks as done", TaskTarget::Them),
        ("delete all those tasks", TaskTarget::Them),
        ("delete every one of them", TaskTarget::Them),
        ("complete each of them", TaskTarget::Them),
        ("delete these all", TaskTarget::Them),
        ("delete those ones", TaskTarget::Them),
        ("delete these ones", TaskTarget::Them),
        ("delete all those", TaskTarget::Them),
        ("delete all these", TaskTarget::Them),
        ("delete all these tasks", TaskTarget::Them),
        ("delete those tasks", TaskTarget::Them),
        ("delete these tasks", TaskTarget::Them),
        ("cancel those reminders", TaskTarget::Them),
        ("cancel these reminders", TaskTarget::Them),
        ("make them low priority", TaskTarget::Them),
        ("move them to friday", TaskTarget::Them),
        ("tag them as home", TaskTarget::Them),
        ("set all of them to high priority", TaskTarget::Them),
        ("delete the rest", TaskTarget::Rest),
        ("delete the rest of them", TaskTarget::Rest),
        ("delete the rest of those", TaskTarget::Rest),
        ("complete the others", TaskTarget::Rest),
        ("delete the other ones", TaskTarget::Rest),
        ("delete the remaining ones", TaskTarget::Rest),
        ("delete the other tasks", TaskTarget::Rest),
        ("delete the remaining tasks", TaskTarget::Rest),
        ("delete all the others", TaskTarget::Rest),
        ("delete all the rest", TaskTarget::Rest),
        ("complete the other one", TaskTarget::Other),
        ("delete the middle one", TaskTarget::Middle),
        ("delete the last two", TaskTarget::LastN(2)),
        ("complete the last three tasks", TaskTarget::LastN(3)),
        ("complete both", TaskTarget::Both),
        ("remind me about those tomorrow", TaskTarget::Them),
    ] {
        assert_eq!(one(text).target, Some(target), "{text}");
    }
    assert_eq!(one("delete all my tasks").target, Some(TaskTarget::All));
    let overdue = one("set all my overdue tasks to today");
    assert_eq!((overdue.intent, overdue.target), (Intent::UpdateTask, Some(TaskTarget::All)));
    assert_eq!(overdue.filter.due, Some(crate::DueFilter::Overdue));
    let two = TaskTarget::Several(vec![TaskTarget::Position(1), TaskTarget::Position(2)]);
    assert_eq!(one("complete the top two").target, Some(two));
}
