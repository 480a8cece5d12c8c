//! Variations of positions, fields, remarks, and the syntax of other tools.

use jiff::civil::date;
use model::task::{Priority, TaskStatus};

use super::{at, named, now, one};
use crate::{ClearableField, DayOrTime, DueFilter, Intent, MissingSlot, StatusFilter, TaskTarget, parse};

#[test]
fn titles_exclude_attributes() {
    for (text, title) in [
        ("add buy milk tomorrow with high priority tagged groceries", "buy milk"),
        ("create a high priority task to call the bank tomorrow morning", "call the bank"),
        ("add \"pay rent\" due on the 1st with tag home and finance", "pay rent"),
        ("new todo: review PR #42 by Friday 5pm", "review PR #42"),
        ("add task: email Sarah about the budget, priority low", "email Sarah about the budget"),
        ("remind me in 2 hours to check the oven", "check the oven"),
        ("add a task called Groceries with description milk, eggs and bread", "Groceries"),
        ("add a task named \"Prepare slides\" due next Tuesday at 10:30, urgent", "Prepare slides"),
        ("can you add walk the dog to my todo list for tonight?", "walk the dog"),
        ("please put \"dentist appointment\" on my list for March 3rd at 2pm", "dentist appointment"),
        ("add for tomorrow at 5pm pick up the kids", "pick up the kids"),
        ("tomorrow at 5pm remind me to call Bob", "call Bob"),
        ("on Friday I need to submit the form, remind me", "submit the form"),
        ("I have to see the vet on Monday. Can you remind me?", "see the vet"),
        ("would you mind adding milk to my list?", "milk"),
        ("buy milk #errands tomorrow !high", "buy milk"),
        (
            "remind me to email bob@example.com about https://example.com/a?b=c tomorrow",
            "email bob@example.com about https://example.com/a?b=c",
        ),
        ("remind me to call 555-1234 at 3", "call 555-1234"),
        ("add pay $1,200 rent on 1/1", "pay $1,200 rent"),
        ("add meet Bob at 3 Main Street tomorrow", "meet Bob at 3 Main Street"),
        ("add watch \"The Day After Tomorrow\" tonight", "watch \"The Day After Tomorrow\""),
        ("remind me to buy a gift for mom's birthday on May 5", "buy a gift for mom's birthday"),
        ("remind me to call Dr. Smith on Monday", "call Dr. Smith"),
        ("remind me that the rent is due on the first", "rent is due"),
        ("set a reminder an hour before the game to order pizza", "order pizza"),
        ("send Bob a reminder about the keys", "the keys"),
        ("remind Bob on Friday to bring the keys", "bring the keys"),
        ("I need to be reminded to lock the shed", "lock the shed"),
        ("pay the electricity bill by Friday", "pay the electricity bill"),
        ("add buy 2 tickets for the 8pm show", "buy 2 tickets for the 8pm show"),
    ] {
        let command = one(text);
        assert_eq!((command.intent, command.title.as_deref()), (Intent::CreateTask, Some(title)), "{text}");
    }
}

#[test]
fn new_tasks_get_the_intended_date() {
    for (text, when) in [
        ("add for tomorrow at 5pm pick up the kids", "2025-12-22T17:00:00"),
        ("tomorrow at 5pm remind me to call Bob", "2025-12-22T17:00:00"),
        ("I have to cook tomorrow. Remind me at 4pm.", "2025-12-22T16:00:00"),
        ("remind me at noon tomorrow to call the plumber", "2025-12-22T12:00:00"),
        ("add a task named \"Prepare slides\" due next Tuesday at 10:30, urgent", "2025-12-23T10:30:00"),
    ] {
        assert_eq!(one(text).when, at(when), "{text}");
    }
    let birthday = one("remind me about mom's birthday on May 5 every year");
    assert_eq!(
        (birthday.when, birthday.recurrence.as_deref()),
        (Some(DayOrTime::Day(date(2026, 5, 5))), Some("FREQ=YEARLY"))
    );
    assert_eq!(one("add call Ann because she leaves tomorrow").when, None);
}

#[test]
fn targets_of_all_kinds_are_parsed() {
    let several =
        |places: &[usize]| Some(TaskTarget::Several(places.iter().map(|n| TaskTarget::Position(*n)).collect()));
    let names =
        |names: &[&str]| Some(TaskTarget::Several(names.iter().map(|n| TaskTarget::Named((*n).to_owned())).collect()));
    for (text, intent, target) in [
        ("mark the first two as done", Intent::CompleteTask, several(&[1, 2])),
        ("delete tasks 2 and 4", Intent::DeleteTask, several(&[2, 4])),
        ("complete 1 and 3", Intent::CompleteTask, several(&[1, 3])),
        ("mark milk, bread and eggs as done", Intent::CompleteTask, names(&["milk", "bread", "eggs"])),
        ("delete milk and bread", Intent::DeleteTask, names(&["milk", "bread"])),
        ("delete the task buy milk and eggs", Intent::DeleteTask, named("buy milk and eggs")),
        ("that's done", Intent::CompleteTask, Some(TaskTarget::It)),
        ("set the milk task to done", Intent::CompleteTask, named("milk")),
        ("I already paid the rent", Intent::CompleteTask, named("pay the rent")),
        ("check the laundry off my list", Intent::CompleteTask, named("laundry")),
        ("drop the gym one", Intent::DeleteTask, named("gym")),
        ("delete the one about milk", Intent::DeleteTask, named("milk")),
        ("I don't need the milk task anymore", Intent::DeleteTask, named("milk")),
        ("get rid of the gym task, I already went", Intent::DeleteTask, named("gym")),
        ("the reminder for the party needs to be cancelled", Intent::CancelReminder, named("party")),
        ("delete the reminder for Bob to wash the car", Intent::CancelReminder, named("wash the car")),
        ("delete all of them", Intent::DeleteTask, Some(TaskTarget::Them)),
        ("wipe my list clean", Intent::DeleteTask, Some(TaskTarget::All)),
        ("remove everything from my list", Intent::DeleteTask, Some(TaskTarget::All)),
    ] {
        let command = one(text);
        assert_eq!((command.intent, command.target), (intent, target), "{text}");
    }
}

#[test]
fn bulk_commands_have_a_filter() {
    let filter = |text: &str| {
        let command = one(text);
        assert_eq!(command.target, Some(TaskTarget::All), "{text}");
        command.filter
    };
    assert_eq!(filter("delete all tasks tagged work").tags, ["work"]);
    assert_eq!(filter("delete every task due today").due, Some(DueFilter::Today));
    assert_eq!(filter("mark all overdue tasks as complete").due, Some(DueFilter::Overdue));
    assert_eq!(filter("delete all the high priority tasks").priority, Some(Priority::High));
    assert_eq!(filter("clear completed tasks").status, Some(StatusFilter::Completed));
    assert_eq!(filter("delete tasks about work").text.as_deref(), Some("work"));
    assert_eq!(filter("cancel my reminder for tomorrow").due, Some(DueFilter::Tomorrow));
    assert_eq!(filter("move everything due today to tomorrow").due, Some(DueFilter::Today));
}

#[test]
fn lists_are_searched_by_text() {
    let filter = |text: &str| {
        let command = one(text);
        assert_eq!(command.intent, Intent::ListTasks, "{text}");
        command.filter
    };
    assert_eq!(filter("show me tasks about taxes").text.as_deref(), Some("taxes"));
    assert_eq!(filter("show my passport tasks").text.as_deref(), Some("passport"));
    assert_eq!(filter("show my work tasks").tags, ["work"]);
    assert_eq!(filter("is milk on my list?").text.as_deref(), Some("milk"));
    assert_eq!(filter("show me my #home tasks").tags, ["home"]);
    assert_eq!(filter("can I see the completed ones").status, Some(StatusFilter::Completed));
    assert_eq!(filter("list my low priority todos due this week").priority, Some(Priority::Low));
    assert_eq!(filter("do I have any tasks for Friday?").due, Some(DueFilter::Day(date(2025, 12, 26))));
    for text in [
        "what's on my plate today?",
        "how many tasks do I have left?",
        "what's next?",
        "tasks",
        "list",
        "remind me what I have to do",
    ] {
        filter(text);
    }
}

#[test]
fn every_field_can_be_changed() {
    let update = |text: &str| {
        let command = one(text);
        assert_eq!(command.intent.as_str(), "update_task", "{text}");
        command
    };
    let report = |text: &str| {
        let command = update(text);
        assert_eq!(command.target, named("report"), "{text}");
        command
    };
    assert_eq!(report("change the report's due date to next Monday at 9").when, at("2025-12-22T09:00:00"));
    assert_eq!(report("change the report from Monday to Friday").when, Some(DayOrTime::Day(date(2025, 12, 26))));
    assert_eq!(report("move the report reminder from 3 to 5").when, at("2025-12-21T17:00:00"));
    assert_eq!(report("snooze the report for an hour").when, at("2025-12-21T13:00:00"));
    assert_eq!(report("push the report back a week").when, Some(DayOrTime::Day(date(2025, 12, 28))));
    assert_eq!(report("make the report due Friday").when, Some(DayOrTime::Day(date(2025, 12, 26))));
    assert_eq!(report("make the report repeat every week").recurrence.as_deref(), Some("FREQ=WEEKLY"));
    assert_eq!(report("lower the priority of the report").priority, Some(Priority::Low));
    assert_eq!(report("the report is urgent").priority, Some(Priority::High));
    assert_eq!(report("mark the report as not done").status, Some(TaskStatus::Pending));
    assert_eq!(report("add a note to the report task: ask Bob first").description.as_deref(), Some("ask Bob first"));
    assert_eq!(report("add the tag work to the report").tags, ["work"]);
    assert_eq!(report("add #home to the report").tags, ["home"]);
    assert_eq!(report("untag the report").cleared_fields, [ClearableField::Tags]);
    assert_eq!(report("clear the description of the report").cleared_fields, [ClearableField::Description]);
    assert_eq!(
        report("remind me about the report on Friday instead of Monday").when,
        Some(DayOrTime::Day(date(2025, 12, 26)))
    );
    assert_eq!(update("make that 5pm").target, Some(TaskTarget::It));
    assert_eq!(update("change my reminder to 11pm").target, Some(TaskTarget::It));
    assert_eq!(update("change the priority to high").target, Some(TaskTarget::It));
    assert_eq!(update("rename task 3 to buy bread").title.as_deref(), Some("buy bread"));
    assert_eq!(update("change task 2's title to \"buy bread\"").target, Some(TaskTarget::Position(2)));
    assert_eq!(update("postpone the dentist").missing, Some(MissingSlot::Change));
    let lead = update("change the report alert to 30 minutes before").before;
    assert_eq!(lead.map(|lead| lead.minutes), Some(30));
    let both = update("update \"buy milk\" to due tomorrow with high priority");
    assert_eq!((both.when, both.priority), (Some(DayOrTime::Day(date(2025, 12, 22))), Some(Priority::High)));
}

#[test]
fn three_commands_are_parsed() {
    // AGENT-11
    for text in [
        "add milk then delete bread and show my tasks",
        "Add milk. Delete bread. Show tasks.",
        "add milk, delete bread, show tasks",
    ] {
        let intents: Vec<Intent> = parse(text, &now()).commands.iter().map(|command| command.intent).collect();
        assert_eq!(intents, [Intent::CreateTask, Intent::DeleteTask, Intent::ListTasks], "{text}");
    }
}

#[test]
fn other_domains_are_ignored() {
    for text in [
        "play some music",
        "book a flight to Paris",
        "set an alarm for 7",
        "translate hello to french",
        "what time is it",
        "send an email to Bob",
        "delete my account",
        "change my password",
        "cancel my flight",
        "who won the game last night",
        "add this song to my playlist",
        "is there a travel alert for Spain",
        "switch to another voice",
        "cancel",
        "good morning",
        "what should I cook tonight",
        "how are you today",
        "asdf qwer zxcv",
    ] {
        assert_eq!(one(text).intent, Intent::Unknown, "{text}");
    }
}

#[test]
fn states_and_short_forms_are_recognised() {
    for (text, target, status) in [
        ("delete the tasks that are done", TaskTarget::All, Some(StatusFilter::Completed)),
        ("get rid of everything that's done", TaskTarget::All, Some(StatusFilter::Completed)),
        ("purge completed", TaskTarget::All, Some(StatusFilter::Completed)),
    ] {
        let command = one(text);
        assert_eq!((command.intent, command.filter.status), (Intent::DeleteTask, status), "{text}");
        assert_eq!(command.target, Some(target), "{text}");
    }
    for text in ["tick number two", "done 2", "#2 done", "task 2 is done", "mark as done: 2"] {
        let command = one(text);
        assert_eq!((command.intent, command.target), (Intent::CompleteTask, Some(TaskTarget::Position(2))), "{text}");
    }
    let gym = one("add gym mon, wed and fri at 6am");
    assert_eq!(gym.recurrence.as_deref(), Some("FREQ=WEEKLY;BYDAY=MO,WE,FR"));
    let both = one("make it high priority and due tomorrow");
    assert_eq!((both.when, both.priority), (Some(DayOrTime::Day(date(2025, 12, 22))), Some(Priority::High)));
    let renamed = one("rename the dentist task \"call dentist\"");
    assert_eq!((renamed.title.as_deref(), renamed.target), (Some("call dentist"), named("dentist")));
    assert_eq!(one("don't remind me about the movie").intent, Intent::CancelReminder);
    assert_eq!(one("pay rent on the 1st of the month").when, Some(DayOrTime::Day(date(2026, 1, 1))));
}

#[test]
fn priorities_before_the_task_are_parsed() {
    for (text, title, priority) in [
        ("add an urgent task to pay rent tomorrow", "pay rent", Some(Priority::High)),
        ("add an important task to file taxes", "file taxes", Some(Priority::High)),
        ("add urgent pay rent tomorrow", "pay rent", Some(Priority::High)),
        ("add low priority task clean the attic", "clean the attic", Some(Priority::Low)),
        ("create an urgent reminder to pay rent", "pay rent", Some(Priority::High)),
        ("urgent: call mom", "call mom", Some(Priority::High)),
        ("low priority: sort the photos", "sort the photos", Some(Priority::Low)),
        ("add urgent care visit", "urgent care visit", None),
        ("add buy important documents", "buy important documents", None),
    ] {
        let command = one(text);
        assert_eq!((command.intent, command.title.as_deref()), (Intent::CreateTask, Some(title)), "{text}");
        assert_eq!(command.priority, priority, "{text}");
    }
    let sick = one("add a task to call mom because she is sick #family");
    assert_eq!((sick.description.as_deref(), sick.tags.as_slice()), (Some("she is sick"), &["family".to_owned()][..]));
}
