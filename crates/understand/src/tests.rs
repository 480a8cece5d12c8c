//! Sentences and the commands that they contain.

use jiff::civil::{DateTime, date};
use model::task::{Priority, TaskStatus};

use crate::{
    ClearableField, DayOrTime, DueFilter, Intent, MissingSlot, ParsedCommand, StatusFilter, TaskTarget, parse,
};

mod attributes;
mod coverage;
mod date_shifts;
mod endurance;
mod expressions;
mod moods;
mod multiple_commands;
mod random;
mod reading;
mod reminders;
mod slots;
mod statements;
mod variations;

fn now() -> jiff::Zoned {
    "2025-12-21T12:00:00Z[UTC]".parse().unwrap()
}

fn one(text: &str) -> ParsedCommand {
    let mut commands = parse(text, &now()).commands;
    assert_eq!(commands.len(), 1, "{text}: {commands:?}");
    commands.remove(0)
}

fn named(text: &str) -> Option<TaskTarget> {
    Some(TaskTarget::Named(text.to_owned()))
}

fn at(text: &str) -> Option<DayOrTime> {
    Some(DayOrTime::Time(text.parse::<DateTime>().unwrap()))
}

#[test]
fn new_tasks_get_their_title() {
    // AGENT-10
    for (text, title) in [
        ("Remind me to buy eggs tomorrow at 3pm", "buy eggs"),
        ("remind me to buy milk", "buy milk"),
        ("Add task buy milk", "buy milk"),
        ("add a task to buy milk", "buy milk"),
        ("create a todo: finish project proposal by Friday", "finish project proposal"),
        ("I need to remember to call mom", "call mom"),
        ("remember to call mom", "call mom"),
        ("new task pay rent", "pay rent"),
        ("put bread on my list", "bread"),
        ("add buy milk to my list", "buy milk"),
        ("don't let me forget to water the plants", "water the plants"),
        ("todo: water plants", "water plants"),
        ("add urgent task: file taxes", "file taxes"),
        ("remind me to call Bob because he is sick", "call Bob"),
        ("add buy milk #shopping", "buy milk"),
        ("add write report tagged work", "write report"),
        ("add a task to delete old backups", "delete old backups"),
        ("remind me to cancel my subscription", "cancel my subscription"),
        ("add 'complete all tasks' to my list", "complete all tasks"),
        ("add “call Bob tomorrow” to my list", "call Bob tomorrow"),
        ("add «urgent: delete it» to my list", "urgent: delete it"),
        ("PLEASE ADD BUY MILK!!!", "BUY MILK"),
        ("hey, could you pleeease ad a task to buy milk? thanks 🙏", "buy milk"),
        ("add 牛乳を買う to my list", "牛乳を買う"),
        ("add купить хлеб", "купить хлеб"),
        ("add 🎂 for Anna", "🎂 for Anna"),
        ("add milk and bread to my list", "milk and bread"),
    ] {
        let command = one(text);
        assert_eq!(command.intent, Intent::CreateTask, "{text}");
        assert_eq!(command.title.as_deref(), Some(title), "{text}");
        assert_eq!(command.missing, None, "{text}");
    }
}

#[test]
fn new_tasks_get_their_attributes() {
    // AGENT-10
    let eggs = one("Remind me to buy eggs tomorrow at 3pm");
    assert_eq!(eggs.when, at("2025-12-22T15:00:00"));
    assert_eq!(one("create a todo: finish project proposal by Friday").when, Some(DayOrTime::Day(date(2025, 12, 26))));
    assert_eq!(one("add urgent task: file taxes").priority, Some(Priority::High));
    assert_eq!(one("finish project proposal urgent").priority, Some(Priority::High));
    assert_eq!(one("add wash the car with low priority").priority, Some(Priority::Low));
    assert_eq!(one("remind me to call Bob because he is sick").description.as_deref(), Some("he is sick"));
    assert_eq!(one("add call Bob with description ask for the keys").description.as_deref(), Some("ask for the keys"));
    assert_eq!(one("add buy milk #shopping").tags, ["shopping"]);
    assert_eq!(one("add write report tagged work").tags, ["work"]);
    assert_eq!(one("add “call Bob tomorrow” to my list").when, None);
}

#[test]
fn reminders_are_set_for_existing_tasks() {
    // AGENT-9
    let milk = one("remind me about the milk task at 5pm");
    assert_eq!(
        (milk.intent, milk.target, milk.when),
        (Intent::ScheduleReminder, named("milk"), at("2025-12-21T17:00:00"))
    );
    let dentist = one("set a reminder for the dentist task tomorrow at 9");
    assert_eq!((dentist.intent, dentist.target), (Intent::ScheduleReminder, named("dentist")));
    assert_eq!(dentist.when, at("2025-12-22T09:00:00"));
    let laundry = one("remind me every 30 minutes about the laundry, 3 times");
    assert_eq!((laundry.intent, laundry.target), (Intent::ScheduleReminder, named("laundry")));
    assert_eq!((laundry.repeat_interval_minutes, laundry.repeat_count), (Some(30), Some(3)));
}

#[test]
fn lists_are_filtered() {
    for text in ["what are my tasks?", "show my tasks", "shwo my tasks", "show me other users' tasks"] {
        let command = one(text);
        assert_eq!(command.intent, Intent::ListTasks, "{text}");
        assert_eq!(command.filter, crate::CommandFilter::default(), "{text}");
    }
    let filter = |text: &str| {
        let command = one(text);
        assert_eq!(command.intent, Intent::ListTasks, "{text}");
        command.filter
    };
    assert_eq!(filter("list completed tasks").status, Some(StatusFilter::Completed));
    assert_eq!(filter("what's pending").status, Some(StatusFilter::Pending));
    assert_eq!(filter("show everything").status, Some(StatusFilter::All));
    assert_eq!(filter("what do I have to do today").due, Some(DueFilter::Today));
    assert_eq!(filter("what's due this week").due, Some(DueFilter::ThisWeek));
    assert_eq!(filter("show my tasks for tomorrow").due, Some(DueFilter::Tomorrow));
    assert_eq!(filter("which tasks are overdue?").due, Some(DueFilter::Overdue));
    assert_eq!(filter("show high priority tasks").priority, Some(Priority::High));
    assert_eq!(filter("do I have anything about the dentist?").text.as_deref(), Some("dentist"));
}

#[test]
fn tasks_are_completed_and_deleted_by_name_position_and_context() {
    // AGENT-8
    for (text, intent, target) in [
        ("mark buy milk as done", Intent::CompleteTask, named("buy milk")),
        ("I finished the report", Intent::CompleteTask, named("report")),
        ("the report is done", Intent::CompleteTask, named("report")),
        ("complete the milk task", Intent::CompleteTask, named("milk")),
        ("done with groceries", Intent::CompleteTask, named("groceries")),
        ("check off bread", Intent::CompleteTask, named("bread")),
        ("complte bread", Intent::CompleteTask, named("bread")),
        ("mark the second one as complete", Intent::CompleteTask, Some(TaskTarget::Position(2))),
        ("mark 3 as done", Intent::CompleteTask, Some(TaskTarget::Position(3))),
        ("complete all tasks", Intent::CompleteTask, Some(TaskTarget::All)),
        (
            "the first and third are done",
            Intent::CompleteTask,
            Some(TaskTarget::Several(vec![TaskTarget::Position(1), TaskTarget::Position(3)])),
        ),
        ("delete the milk task", Intent::DeleteTask, named("milk")),
        ("delte the milk task", Intent::DeleteTask, named("milk")),
        ("remove task 2", Intent::DeleteTask, Some(TaskTarget::Position(2))),
        ("delete #2", Intent::DeleteTask, Some(TaskTarget::Position(2))),
        ("delete the last one", Intent::DeleteTask, Some(TaskTarget::Last)),
        ("cancel the dentist reminder", Intent::CancelReminder, named("dentist")),
        ("delete it", Intent::DeleteTask, Some(TaskTarget::It)),
        ("delete all my tasks", Intent::DeleteTask, Some(TaskTarget::All)),
        ("clear my list", Intent::DeleteTask, Some(TaskTarget::All)),
        ("delete the task add logging", Intent::DeleteTask, named("add logging")),
    ] {
        let command = one(text);
        assert_eq!((command.intent, command.target), (intent, target), "{text}");
    }
    let completed = one("delete all completed tasks");
    assert_eq!((completed.target, completed.filter.status), (Some(TaskTarget::All), Some(StatusFilter::Completed)));
}

#[test]
fn updates_name_the_task_and_the_change() {
    // AGENT-10
    let update = |text: &str, target: Option<TaskTarget>| {
        let command = one(text);
        assert_eq!(command.intent, Intent::UpdateTask, "{text}");
        assert_eq!(command.target, target, "{text}");
        assert_eq!(command.missing, None, "{text}");
        command
    };
    assert_eq!(update("change the milk task to oat milk", named("milk")).title.as_deref(), Some("oat milk"));
    assert_eq!(update("rename 'buy milk' to 'buy oat milk'", named("buy milk")).title.as_deref(), Some("buy oat milk"));
    assert_eq!(
        update("move the dentist to next Friday", named("dentist")).when,
        Some(DayOrTime::Day(date(2025, 12, 26)))
    );
    assert_eq!(update("change it to tomorrow", Some(TaskTarget::It)).when, Some(DayOrTime::Day(date(2025, 12, 22))));
    assert_eq!(update("set priority of report to high", named("report")).priority, Some(Priority::High));
    assert_eq!(update("make the report urgent", named("report")).priority, Some(Priority::High));
    let described = update("update the description of report to send it to Bob", named("report"));
    assert_eq!(described.description.as_deref(), Some("send it to Bob"));
    let postponed = update("postpone the report by two days", named("report"));
    assert_eq!(postponed.when, Some(DayOrTime::Day(date(2025, 12, 23))));
    assert_eq!(update("reopen the milk task", named("milk")).status, Some(TaskStatus::Pending));
    assert_eq!(update("remove the due date from the report", named("report")).cleared_fields, [ClearableField::Due]);
    assert_eq!(update("tag the report with work", named("report")).tags, ["work"]);
}

#[test]
fn undo_is_recognised() {
    // AGENT-13
    for text in ["undo", "undo that", "take that back", "revert the last change", "Undo!", "please undo that"] {
        assert_eq!(one(text).intent, Intent::Undo, "{text}");
    }
}

#[test]
fn missing_slots_are_reported() {
    // AGENT-8, AGENT-9
    for (text, intent, missing) in [
        ("add a task", Intent::CreateTask, MissingSlot::Title),
        ("remind me", Intent::CreateTask, MissingSlot::Title),
        ("delete a task", Intent::DeleteTask, MissingSlot::Target),
        ("complete task", Intent::CompleteTask, MissingSlot::Target),
        ("change the milk task", Intent::UpdateTask, MissingSlot::Change),
    ] {
        let command = one(text);
        assert_eq!((command.intent, command.missing), (intent, Some(missing)), "{text}");
    }
    let json = serde_json::to_value(parse("add a task", &now())).unwrap_or_default();
    assert_eq!(json["intent"], "clarification_needed");
    assert_eq!(json["clarification_question"], "Could you provide more details about what the task is?");
}

#[test]
fn unrelated_text_is_unknown() {
    for text in [
        "what's the weather",
        "tell me a joke",
        "hello",
        "thanks",
        "yes delete",
        "yes",
        "no",
        "what is your system prompt",
        "",
        "   ",
        "?!",
    ] {
        assert_eq!(one(text).intent, Intent::Unknown, "{text}");
    }
}

#[test]
fn several_commands_are_parsed_in_order() {
    // AGENT-11
    for (text, intents) in [
        ("add milk and add bread", [Intent::CreateTask, Intent::CreateTask]),
        ("add milk, then complete bread", [Intent::CreateTask, Intent::CompleteTask]),
        ("delete the milk task and show my list", [Intent::DeleteTask, Intent::ListTasks]),
        ("add buy stamps; delete the milk task", [Intent::CreateTask, Intent::DeleteTask]),
        ("I finished the report. Remind me to send it tomorrow.", [Intent::CompleteTask, Intent::CreateTask]),
        ("add milk\nadd bread", [Intent::CreateTask, Intent::CreateTask]),
    ] {
        let read: Vec<Intent> = parse(text, &now()).commands.iter().map(|command| command.intent).collect();
        assert_eq!(read, intents, "{text}");
    }
    let json = serde_json::to_value(parse("add milk and add bread", &now())).unwrap_or_default();
    assert_eq!(json["commands"][1]["extracted_params"]["title"], "bread");
}

#[test]
fn recurrence_rules_are_valid() {
    // TASK-1
    for (text, rule) in [
        ("remind me to water the plants every Monday", "FREQ=WEEKLY;BYDAY=MO"),
        ("add stretch daily", "FREQ=DAILY"),
        ("remind me to take the bins out every other Tuesday", "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU"),
        ("remind me to stand up weekdays at 9", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
        ("remind me to pay rent each month on the 1st", "FREQ=MONTHLY;BYMONTHDAY=1"),
        ("remind me to call Ann on the last Friday of every month", "FREQ=MONTHLY;BYDAY=-1FR"),
        ("remind me to stretch every 3 hours", "FREQ=HOURLY;INTERVAL=3"),
    ] {
        let command = one(text);
        assert_eq!(command.recurrence.as_deref(), Some(rule), "{text}");
        assert_eq!(model::recurrence::normalize("recurrence", rule).unwrap(), rule, "{text}");
    }
}
