//! Several commands in one message, lists of tasks, corrections, and words that resemble dates or commands.

use jiff::civil::date;

use super::{named, now, one};
use crate::{DayOrTime, Intent, MissingSlot, ParsedCommand, StatusFilter, TaskTarget, parse};

fn all(text: &str) -> Vec<ParsedCommand> {
    parse(text, &now()).commands
}

fn intents(text: &str) -> Vec<Intent> {
    all(text).iter().map(|command| command.intent).collect()
}

#[test]
fn commands_are_split() {
    for (text, wanted) in [
        (
            "delete call mom, add buy bread and complete the report",
            vec![Intent::DeleteTask, Intent::CreateTask, Intent::CompleteTask],
        ),
        (
            "First add y1, second add y2, finally show all tasks",
            vec![Intent::CreateTask, Intent::CreateTask, Intent::ListTasks],
        ),
        ("add z1 and then mark it as done", vec![Intent::CreateTask, Intent::CompleteTask]),
        ("add milk, then complete it", vec![Intent::CreateTask, Intent::CompleteTask]),
        ("first delete milk, then show my tasks", vec![Intent::DeleteTask, Intent::ListTasks]),
        ("mark the first as done and the second as high priority", vec![Intent::CompleteTask, Intent::UpdateTask]),
    ] {
        assert_eq!(intents(text), wanted, "{text}");
    }
    let marked = all("add z1 and then mark it as done");
    assert_eq!((marked[0].title.as_deref(), marked[1].target.clone()), (Some("z1"), Some(TaskTarget::It)));
    let both = all("mark the first as done and the second as high priority");
    assert_eq!(
        (both[0].target.clone(), both[1].target.clone()),
        (Some(TaskTarget::Position(1)), Some(TaskTarget::Position(2)))
    );
    assert_eq!(both[1].priority, Some(model::task::Priority::High));
}

#[test]
fn lists_create_several_tasks() {
    for (text, wanted) in [
        ("add these:\n- milk\n- eggs\n- bread", ["milk", "eggs", "bread"]),
        ("add the following tasks:\n1. milk\n2. call mom tomorrow\n3) bread", ["milk", "call mom", "bread"]),
        ("Add tasks:\n* milk\n* eggs\n\n* delete old files", ["milk", "eggs", "delete old files"]),
        ("please add these to my list:\n• milk\n• eggs\n• 2 lemons", ["milk", "eggs", "2 lemons"]),
        ("todos:\n[ ] milk\n[x] eggs\n[ ] bread", ["milk", "eggs", "bread"]),
        ("add these: milk, eggs and bread", ["milk", "eggs", "bread"]),
        ("add milk\n- eggs\n- bread", ["milk", "eggs", "bread"]),
        ("add milk; eggs; bread", ["milk", "eggs", "bread"]),
        ("1. add milk\n2. add eggs\n3. add bread", ["milk", "eggs", "bread"]),
        ("add to my list:\n- milk\n- eggs\n- bread", ["milk", "eggs", "bread"]),
    ] {
        let commands = all(text);
        assert!(commands.iter().all(|command| command.intent == Intent::CreateTask), "{text}");
        let titles: Vec<&str> = commands.iter().filter_map(|command| command.title.as_deref()).collect();
        assert_eq!(titles, wanted, "{text}");
    }
}

#[test]
fn lists_delete_or_complete_several_tasks() {
    for (text, intent) in [
        ("delete these:\n- milk\n- eggs", Intent::DeleteTask),
        ("complete the following:\n1. milk\n2. eggs", Intent::CompleteTask),
    ] {
        let commands = all(text);
        let targets: Vec<Option<TaskTarget>> = commands.iter().map(|command| command.target.clone()).collect();
        assert!(commands.iter().all(|command| command.intent == intent), "{text}");
        assert_eq!(targets, [named("milk"), named("eggs")], "{text}");
    }
}

#[test]
fn several_targets_are_parsed() {
    let names =
        |names: &[&str]| Some(TaskTarget::Several(names.iter().map(|n| TaskTarget::Named((*n).to_owned())).collect()));
    for (text, target) in [
        ("remove buy milk and call mom", names(&["buy milk", "call mom"])),
        ("delete call mom and the report", names(&["call mom", "report"])),
        ("remove pay rent, call mom and water the plants", names(&["pay rent", "call mom", "water the plants"])),
        ("delete buy milk and eggs", named("buy milk and eggs")),
    ] {
        assert_eq!(one(text).target, target, "{text}");
    }
}

#[test]
fn corrections_and_courtesies_are_removed() {
    for (text, intent, target) in [
        ("complete mom, I mean the report", Intent::CompleteTask, "report"),
        ("delete milk, no wait, bread", Intent::DeleteTask, "bread"),
        ("no, delete mom instead", Intent::DeleteTask, "mom"),
        ("oops, I meant delete bread", Intent::DeleteTask, "bread"),
        (
            "please, if it's not too much trouble, would you kindly mark the milk task as completed?",
            Intent::CompleteTask,
            "milk",
        ),
    ] {
        let command = one(text);
        assert_eq!((command.intent, command.target), (intent, named(target)), "{text}");
    }
}

#[test]
fn names_that_look_like_dates_stay_in_the_title() {
    for text in [
        "monday.com review",
        "midnight snack",
        "watch Saturday Night Live",
        "buy the Sunday Times",
        "call April",
        "buy Black Friday deals",
    ] {
        let command = one(&format!("add {text}"));
        assert_eq!((command.title.as_deref(), command.when), (Some(text), None), "{text}");
    }
    let report = one("add finish report by friday");
    assert_eq!(
        (report.title.as_deref(), report.when),
        (Some("finish report"), Some(DayOrTime::Day(date(2025, 12, 26))))
    );
    let live = one("add watch Saturday Night Live on Saturday");
    assert_eq!(live.title.as_deref(), Some("watch Saturday Night Live"));
    assert_eq!(live.when, Some(DayOrTime::Day(date(2025, 12, 27))));
}

#[test]
fn synonyms_for_deleting_and_reopening_are_recognised() {
    for text in ["kill the milk task", "drop the milk task", "get rid of milk", "scratch milk"] {
        let command = one(text);
        assert_eq!((command.intent, command.target), (Intent::DeleteTask, named("milk")), "{text}");
    }
    assert_eq!(one("drop off the parcel tomorrow").intent, Intent::CreateTask);
    for text in ["uncheck milk", "untick milk"] {
        let command = one(text);
        assert_eq!((command.intent, command.target), (Intent::UpdateTask, named("milk")), "{text}");
        assert_eq!(command.status, Some(model::task::TaskStatus::Pending), "{text}");
    }
}

#[test]
fn unsupported_filters_are_not_guessed() {
    for text in [
        "delete everything except milk",
        "remove all tasks that are not urgent",
        "complete all tasks except the report",
    ] {
        assert_eq!(one(text).intent, Intent::Unknown, "{text}");
    }
    for text in ["show tasks without a due date", "show my tasks not tagged home"] {
        let command = one(text);
        assert_eq!(command.intent, Intent::ListTasks, "{text}");
        assert!(command.filter.unsupported && command.filter.due.is_none() && command.confidence < 0.5, "{text}");
    }
    for text in ["show tasks for this week", "show tasks for tomorrow", "show my tasks", "show tasks for Friday"] {
        assert!(!one(text).filter.unsupported, "{text}");
    }
    assert_eq!(one("delete all tasks without a due date").missing, Some(MissingSlot::Target));
    assert_eq!(one("which tasks did I finish?").filter.status, Some(StatusFilter::Completed));
}

#[test]
fn repetitions_are_not_part_of_the_title() {
    assert_eq!(one("remind me to check the oven repeating every hour").title.as_deref(), Some("check the oven"));
    for (text, minutes, count) in [
        ("remind me about the laundry task repeating every hour", 60, None),
        ("set a reminder for the laundry task at 5pm, repeating every hour", 60, None),
        ("set a reminder for the laundry task in 10 minutes repeating every 2 hours 3 times", 120, Some(3)),
    ] {
        let command = one(text);
        assert_eq!((command.intent, command.target), (Intent::ScheduleReminder, named("laundry")), "{text}");
        assert_eq!((command.repeat_interval_minutes, command.repeat_count), (Some(minutes), count), "{text}");
    }
}

#[test]
fn one_verb_can_apply_to_several_commands() {
    use Intent::{CreateTask, ListTasks, UpdateTask};
    for (text, wanted) in [
        ("move the piano lesson to tuesday and the haircut to thursday", vec![UpdateTask; 2]),
        ("make the lease high priority and the bookshelf low priority", vec![UpdateTask; 2]),
        ("tag the lease as legal and the bookshelf as diy", vec![UpdateTask; 2]),
        ("remind me to ring Ada at 2pm and to text Bo at 6pm", vec![CreateTask; 2]),
        ("add a task to ring Ada and another to text Bo", vec![CreateTask; 2]),
        ("add hoover the stairs today plus wash the curtains on friday", vec![CreateTask; 2]),
        ("create three tasks: hoover, dust and mop", vec![CreateTask; 3]),
        ("todo:\n- hoover\n- dust", vec![CreateTask; 2]),
        ("show my garden tasks and then my school tasks", vec![ListTasks; 2]),
        ("I need to ring Ada tomorrow and I also have to text Bo on friday", vec![CreateTask; 2]),
        ("move the desk and the lamp to friday", vec![UpdateTask]),
        ("add buy salt and pepper tomorrow", vec![CreateTask]),
        ("make it high priority and tag it diy", vec![UpdateTask]),
    ] {
        assert_eq!(intents(text), wanted, "{text}");
    }
    let moved = all("move the piano lesson to tuesday and the haircut to thursday");
    assert_eq!((moved[0].target.clone(), moved[1].target.clone()), (named("piano lesson"), named("haircut")));
    assert_ne!(moved[0].when, moved[1].when);
}
