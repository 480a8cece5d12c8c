//! Which words name a task, what its new title is, and tags that come and go.

use super::{named, one};
use crate::{Command, DueFilter, Field, Intent, Tagging, Target, When};
use jiff::civil::date;

fn update(text: &str) -> Command {
    let command = one(text);
    assert_eq!(command.intent, Intent::UpdateTask, "{text}");
    command
}

#[test]
fn names_are_bare() {
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
fn places_have_many_names() {
    for (text, target) in [
        ("delete the bottom one", Target::Last),
        ("delete the last one I added", Target::Last),
        ("remove the top item", Target::Position(1)),
        ("delete the task at position 7", Target::Position(7)),
        ("delete tasks 2-4", Target::Several([2, 3, 4].map(Target::Position).to_vec())),
        ("remove both", Target::Both),
        ("delete both of them", Target::Both),
    ] {
        assert_eq!(one(text).target, Some(target), "{text}");
    }
}

#[test]
fn a_remark_says_which_task() {
    for (text, intent, target) in [
        ("the party got cancelled, so delete that reminder", Intent::DeleteTask, "party"),
        ("The party is off. Delete that reminder.", Intent::DeleteTask, "party"),
        ("I changed my mind about the sourdough, remove it from the list", Intent::DeleteTask, "sourdough"),
        ("I don't have to babysit. Remove the reminder.", Intent::DeleteTask, "babysit"),
    ] {
        let command = one(text);
        assert_eq!((command.intent, command.target), (intent, named(target)), "{text}");
    }
    let moved = update("my midterm got moved to friday, please update the reminder");
    assert_eq!((moved.target, moved.when), (named("midterm"), Some(When::Day(date(2025, 12, 26)))));
    assert_eq!(one("I'm tired, delete it").target, Some(Target::It));
}

#[test]
fn new_titles_are_said_in_many_ways() {
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
    assert_eq!((milks.target, milks.title.as_deref()), (Some(Target::It), Some("buy two milks")));
    assert_eq!(update("change my lunch alert from 10 minutes before to 15 minutes before").title, None);
}

#[test]
fn additions_leave_the_title_alone() {
    for (text, target, added) in [
        ("add milk to my grocery reminder", "grocery", "milk"),
        ("update the reminder for the party to include the cake", "party", "cake"),
        ("modify the groceries reminder and add eggs", "groceries", "eggs"),
    ] {
        let command = update(text);
        assert_eq!((command.target, command.title), (named(target), None), "{text}");
        assert!(command.adds && command.description.is_some_and(|text| text.ends_with(added)), "{text}");
    }
}

#[test]
fn single_tags_come_and_go() {
    for (text, tagging, target) in [
        ("add the work tag to the report", Tagging::Add, "report"),
        ("put the work tag on the report task", Tagging::Add, "report"),
        ("tag the report with work", Tagging::Add, "report"),
        ("remove the work tag from the report", Tagging::Remove, "report"),
        ("take the #work tag off the report", Tagging::Remove, "report"),
        ("drop the label work from the report task", Tagging::Remove, "report"),
        ("change the tags of the report to work", Tagging::Set, "report"),
    ] {
        let command = update(text);
        assert_eq!((command.tagging, command.tags.as_slice()), (tagging, &["work".to_owned()][..]), "{text}");
        assert_eq!(command.target, named(target), "{text}");
    }
    assert_eq!(update("remove all tags from the report").clear, [Field::Tags]);
}

#[test]
fn lists_are_for_any_stretch_of_days() {
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
