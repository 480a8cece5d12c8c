//! Relative date changes, times without a day, and changes of single fields.

use jiff::civil::{Time, date, time};

use super::{named, one};
use crate::{ClearableField, DateShift, DayOrTime, MissingSlot, ParsedCommand, TaskTarget};

fn update(text: &str) -> ParsedCommand {
    let command = one(text);
    assert_eq!(command.intent.as_str(), "update_task", "{text}");
    command
}

#[test]
fn shifts_are_relative_to_the_old_date() {
    let by = |months, days, minutes| Some(DateShift { months, days, minutes });
    for (text, target, shift) in [
        ("push taxes back two days", named("taxes"), by(0, 2, 0)),
        ("postpone taxes by a week", named("taxes"), by(0, 7, 0)),
        ("move rent one day later", named("rent"), by(0, 1, 0)),
        ("move rent 2 hours earlier", named("rent"), by(0, 0, -120)),
        ("delay it by 3 hours", Some(TaskTarget::It), by(0, 0, 180)),
        ("bring it forward a day", Some(TaskTarget::It), by(0, -1, 0)),
        ("move the dentist up an hour", named("dentist"), by(0, 0, -60)),
        ("push it a week", Some(TaskTarget::It), by(0, 7, 0)),
        ("move rent forward by two days", named("rent"), by(0, -2, 0)),
        ("change the rent to one day earlier", named("rent"), by(0, -1, 0)),
        ("move rent a month later", named("rent"), by(1, 0, 0)),
        ("make it an hour earlier", Some(TaskTarget::It), by(0, 0, -60)),
        ("extend the report by 3 months", named("report"), by(3, 0, 0)),
        ("postpone the report for two weeks", named("report"), by(0, 14, 0)),
        ("delay the report an hour and a half", named("report"), by(0, 0, 90)),
    ] {
        let command = update(text);
        assert_eq!((command.target, command.shift, command.missing), (target, shift, None), "{text}");
    }
}

#[test]
fn absolute_dates_are_not_shifts() {
    for text in [
        "move the report to friday",
        "push the report back to friday",
        "snooze the report for an hour",
        "move the report to in two days",
        "move the report to 5pm",
        "change the report to repeat every 2 days",
    ] {
        assert_eq!(update(text).shift, None, "{text}");
    }
}

#[test]
fn times_without_a_day_set_time_of_day() {
    let at = |hour, minute| -> Option<Time> { Some(time(hour, minute, 0, 0)) };
    for (text, clock) in [
        ("set it to 5pm", at(17, 0)),
        ("move the dentist to 3:30", at(15, 30)),
        ("move the dentist to 5", at(17, 0)),
        ("change the time of the dentist to 9am", at(9, 0)),
        ("remind me about the milk task at 5pm", at(17, 0)),
        ("move the dentist to friday at 5pm", None),
        ("move the dentist to friday", None),
        ("add milk at 5pm", None),
    ] {
        let command = one(text);
        assert_eq!(command.time_of_day, clock, "{text}");
    }
}

#[test]
fn unknown_field_values_do_not_rename() {
    for (text, target) in [
        ("set x priority to 5", "x"),
        ("set the report's priority to banana", "report"),
        ("set the due date of x to banana", "x"),
        ("rename milk", "milk"),
        ("set status of x to banana", "x"),
        ("change the due date of milk", "milk"),
    ] {
        let command = update(text);
        assert_eq!((command.target, command.missing), (named(target), Some(MissingSlot::Change)), "{text}");
        assert_eq!(command.title, None, "{text}");
    }
}

#[test]
fn due_dates_are_set_and_cleared() {
    for (text, day) in [
        ("change buy oat milk to be due friday", date(2025, 12, 26)),
        ("buy oat milk is due saturday", date(2025, 12, 27)),
        ("set buy oat milk due date to friday", date(2025, 12, 26)),
    ] {
        let command = update(text);
        assert_eq!((command.target, command.when), (named("buy oat milk"), Some(DayOrTime::Day(day))), "{text}");
        assert_eq!(command.title, None, "{text}");
    }
    for (text, target) in [
        ("remove the due date", Some(TaskTarget::It)),
        ("remove its due date", Some(TaskTarget::It)),
        ("clear the deadline", Some(TaskTarget::It)),
        ("remove the report's due date", named("report")),
        ("remove the due date of x", named("x")),
    ] {
        let command = update(text);
        assert_eq!((command.target, command.cleared_fields), (target, vec![ClearableField::Due]), "{text}");
    }
    assert_eq!(update("it's due friday").target, Some(TaskTarget::It));
    assert_eq!(update("remove the priority of x").priority, Some(model::task::Priority::Medium));
    let untagged = update("remove all tags from x");
    assert_eq!((untagged.target, untagged.cleared_fields), (named("x"), vec![ClearableField::Tags]));
    for text in ["tag it home", "change its tags to home", "change x's tags to home"] {
        assert_eq!(update(text).tags, ["home"], "{text}");
    }
    assert_eq!(update("add #home to x").tags, ["home"]);
    assert_eq!(update("tag x with home").tags, ["home"]);
}
