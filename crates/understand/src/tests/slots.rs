//! Target names, new titles, and changes of single tags.

use super::{named, one};
use crate::{ClearableField, DayOrTime, DueFilter, Intent, ParsedCommand, TagOperation, TaskTarget};
use jiff::civil::date;

fn update(text: &str) -> ParsedCommand {
    let command = one(text);
    assert_eq!(command.intent.as_str(), "update_task", "{text}");
    command
}

#[test]
fn target_names_are_trimmed() {
    for (text, target) in [
        ("delete the reminder for yoga on friday", "yoga"),
        ("change the reminder for yoga to friday", "yoga"),
        ("move my next haircut reminder to friday", "haircut"),
        ("delete the bloody tax reminder", "tax"),
        ("remove the maths revision thing", "maths revision"),
        ("delete my alert reminder to pay the sitter", "pay the sitter"),
        ("delete the reminder 30 minutes before the meeting", "meeting"),
        ("delete the reminder from Bob about lunch", "lunch"),
        ("cancel the livestream reminder entirely", "livestream"),
    ] {
        assert_eq!(one(text).target, named(target), "{text}");
    }
}

#[test]
fn positions_have_many_spellings() {
    for (text, target) in [
        ("delete the bottom one", TaskTarget::Last),
        ("delete the last one I added", TaskTarget::Last),
        ("remove the top item", TaskTarget::Position(1)),
        ("delete the task at position 7", TaskTarget::Position(7)),
        ("delete tasks 2-4", TaskTarget::Several([2, 3, 4].map(TaskTarget::Position).to_vec())),
        ("remove both", TaskTarget::Both),
        ("delete both of them", TaskTarget::Both),
    ] {
        assert_eq!(one(text).target, Some(target), "{text}");
    }
}

#[test]
fn remarks_name_the_target() {
    for (text, intent, target) in [
        ("the party got cancelled, so delete that reminder", Intent::CancelReminder, "party"),
        ("The party is off. Delete that reminder.", Intent::CancelReminder, "party"),
        ("I changed my mind about the sourdough, remove it from the list", Intent::DeleteTask, "sourdough"),
        ("I don't have to babysit. Remove the reminder.", Intent::CancelReminder, "babysit"),
    ] {
        let command = one(text);
        assert_eq!((command.intent, command.target), (intent, named(target)), "{text}");
    }
    let moved = update("my midterm got moved to friday, please update the reminder");
    assert_eq!((moved.target, moved.when), (named("midterm"), Some(DayOrTime::Day(date(2025, 12, 26)))));
    assert_eq!(one("I'm tired, delete it").target, Some(TaskTarget::It));
}

#[test]
fn new_titles_are_parsed() {
    for (text, target, title) in [
        ("rename gym to leg day", "gym", "leg day"),
        ("change my reminder to call mom to call dad", "call mom", "call dad"),
        ("change the darts reminder to karaoke reminder", "darts", "karaoke"),
        ("update \"Team lunch\" so it reads \"Team dinner\"", "Team lunch", "Team dinner"),
        ("edit the task book train to say book coach to Leeds", "book train", "book coach to Leeds"),
        ("replace the reminder about golf with a reminder about tennis", "golf", "tennis"),
        ("update my reminder to buy pizza instead of pasta", "pasta", "buy pizza"),
        ("instead of the gym remind me to go swimming", "gym", "go swimming"),
        ("the milk task should be buy oat milk", "milk", "buy oat milk"),
        ("update the report: it should say send the report", "report", "send the report"),
    ] {
        let command = update(text);
        assert_eq!((command.target, command.title.as_deref()), (named(target), Some(title)), "{text}");
    }
    let milks = update("make it buy two milks instead of one");
    assert_eq!((milks.target, milks.title.as_deref()), (Some(TaskTarget::It), Some("buy two milks")));
    assert_eq!(update("change my lunch alert from 10 minutes before to 15 minutes before").title, None);
}

#[test]
fn additions_keep_the_title() {
    for (text, target, added) in [
        ("add milk to my grocery reminder", "grocery", "milk"),
        ("update the reminder for the party to include the cake", "party", "cake"),
        ("modify the groceries reminder and add eggs", "groceries", "eggs"),
    ] {
        let command = update(text);
        assert_eq!((command.target, command.title), (named(target), None), "{text}");
        assert!(command.appends_description && command.description.is_some_and(|text| text.ends_with(added)), "{text}");
    }
}

#[test]
fn single_tags_are_added_and_removed() {
    for (text, tagging, target) in [
        ("add the work tag to the report", TagOperation::Add, "report"),
        ("put the work tag on the report task", TagOperation::Add, "report"),
        ("tag the report with work", TagOperation::Add, "report"),
        ("remove the work tag from the report", TagOperation::Remove, "report"),
        ("take the #work tag off the report", TagOperation::Remove, "report"),
        ("drop the label work from the report task", TagOperation::Remove, "report"),
        ("change the tags of the report to work", TagOperation::Set, "report"),
    ] {
        let command = update(text);
        assert_eq!((command.tag_operation, command.tags.as_slice()), (tagging, &["work".to_owned()][..]), "{text}");
        assert_eq!(command.target, named(target), "{text}");
    }
    assert_eq!(update("remove all tags from the report").cleared_fields, [ClearableField::Tags]);
}

#[test]
fn lists_accept_any_date_range() {
    let days = |first: Option<i8>, last: Option<i8>| {
        Some(DueFilter::Between(first.map(|day| date(2025, 12, day)), last.map(|day| date(2025, 12, day))))
    };
    for (text, due) in [
        ("show tasks for next week", days(Some(22), Some(28))),
        ("show tasks due before friday", days(None, Some(25))),
        ("show tasks due by friday", days(None, Some(26))),
        ("show tasks due after friday", days(Some(27), None)),
        ("show my tasks between tuesday and friday", days(Some(23), Some(26))),
        ("show my tasks from tuesday to friday", days(Some(23), Some(26))),
        ("list tasks due in february", Some(DueFilter::Between(Some(date(2026, 2, 1)), Some(date(2026, 2, 28))))),
        ("show tasks for the day after tomorrow", Some(DueFilter::Day(date(2025, 12, 23)))),
        ("show tasks for this week", Some(DueFilter::ThisWeek)),
    ] {
        let filter = one(text).filter;
        assert_eq!((filter.due, filter.unsupported), (due, false), "{text}");
    }
}
