//! Explicit requests, needs, reports, questions and prohibitions.

use super::{at, named, one};
use crate::{Intent, StatusFilter};

#[test]
fn explicit_adds_create_tasks_in_any_domain() {
    // AGENT-10
    for (text, title) in [
        ("add dentist appointment", "dentist appointment"),
        ("add email Bob about the contract", "email Bob about the contract"),
        ("add book flight to Paris", "book flight to Paris"),
        ("add meeting with Bob at noon on Thursday", "meeting with Bob"),
        ("add play tennis with Anna", "play tennis with Anna"),
        ("add text Sarah", "text Sarah"),
        ("add edit photos", "edit photos"),
        ("add \"mend the gate\" high priority #garden #urgent", "mend the gate"),
        ("add call Uber", "call Uber"),
        ("add change tires", "change tires"),
        ("add renew passport within 3 months", "renew passport"),
        ("add vacation from Dec 1 to Dec 10", "vacation"),
        ("add check the weather", "check the weather"),
        ("add order pizza for tonight", "order pizza"),
        ("create dentist appointment", "dentist appointment"),
        ("create pay the phone bill", "pay the phone bill"),
        ("new task email Bob", "email Bob"),
        ("put book a hotel on my list", "book a hotel"),
        ("remind me to transfer money to my account", "transfer money to my account"),
        ("schedule a dentist appointment for tomorrow 9am", "dentist appointment"),
        ("we need to buy milk", "buy milk"),
        ("add listen to the new album", "listen to the new album"),
        ("email Bob tomorrow", "email Bob"),
    ] {
        let command = one(text);
        assert_eq!((command.intent, command.title.as_deref()), (Intent::CreateTask, Some(title)), "{text}");
    }
    let fees = one("add call bank, description is ask about fees");
    assert_eq!((fees.title.as_deref(), fees.description.as_deref()), (Some("call bank"), Some("ask about fees")));
    assert_eq!(one("add meeting with Bob at noon on Thursday").when, at("2025-12-25T12:00:00"));
}

#[test]
fn adds_to_other_lists_are_unknown() {
    for text in [
        "add this song to my playlist",
        "add an event to my calendar",
        "add Anna to my contacts",
        "add an alarm for 7",
        "create a playlist",
        "create a new contact",
        "add a text message",
    ] {
        assert_eq!(one(text).intent, Intent::Unknown, "{text}");
    }
}

#[test]
fn needs_create_tasks_and_complete_none() {
    for (text, title) in [
        ("I need to finish the report", "finish the report"),
        ("I want to finish the report", "finish the report"),
        ("I have to complete the form", "complete the form"),
        ("I'd like to complete the course", "complete the course"),
    ] {
        let command = one(text);
        assert_eq!((command.intent, command.title.as_deref()), (Intent::CreateTask, Some(title)), "{text}");
    }
    assert_eq!(one("I want to complete the milk task").intent, Intent::CompleteTask);
}

#[test]
fn past_chores_are_completed() {
    for (text, target) in [
        ("I called mom", "call mom"),
        ("bought milk", "buy milk"),
        ("I paid the rent", "pay the rent"),
        ("I've watered the plants", "water the plants"),
        ("I've paid the bills", "pay the bills"),
        ("picked up the parcel", "pick up the parcel"),
        ("I removed the milk task", "milk"),
    ] {
        let command = one(text);
        assert_eq!((command.intent, command.target), (Intent::CompleteTask, named(target)), "{text}");
        assert!(command.confidence >= 0.6, "{text}: {}", command.confidence);
    }
}

#[test]
fn questions_change_nothing() {
    for text in [
        "mark milk as done?",
        "complete milk?",
        "finish report?",
        "rename milk to bread?",
        "can I rename the report to essay?",
        "can I undo?",
        "can you undo?",
        "undo?",
        "have you ever deleted a task?",
        "have you got a task for me?",
        "should I delete milk?",
        "should I delete the milk task?",
        "how do I delete a task?",
        "how can I rename a task?",
        "can you delete tasks?",
        "could you delete a task?",
        "can you mark tasks as done?",
        "delete milk? no way!",
        "did you delete milk?",
    ] {
        assert_eq!(one(text).intent, Intent::Unknown, "{text}");
    }
    for (text, words) in [
        ("milk done?", "milk"),
        ("is the report done?", "report"),
        ("is milk done", "milk"),
        ("have I paid the rent?", "rent"),
        ("did I add milk?", "milk"),
        ("did I finish the report?", "report"),
        ("is the milk task completed?", "milk"),
    ] {
        let command = one(text);
        assert_eq!(command.intent, Intent::ListTasks, "{text}");
        assert_eq!(command.filter.text.as_deref(), Some(words), "{text}");
        assert_eq!(command.filter.status, Some(StatusFilter::All), "{text}");
    }
}

#[test]
fn polite_questions_are_requests() {
    for (text, intent) in [
        ("could you please delete the milk task?", Intent::DeleteTask),
        ("could you delete the milk task?", Intent::DeleteTask),
        ("can you add milk?", Intent::CreateTask),
        ("would you mark milk as done?", Intent::CompleteTask),
        ("delete the milk task please?", Intent::DeleteTask),
        ("can you undo that?", Intent::Undo),
        ("can you rename milk to bread?", Intent::UpdateTask),
        ("can you delete all tasks?", Intent::DeleteTask),
    ] {
        assert_eq!(one(text).intent, intent, "{text}");
    }
}

#[test]
fn prohibitions_are_not_executed() {
    for text in [
        "don't delete the milk task",
        "do not complete the milk task",
        "Don't mark milk as done",
        "please don't delete milk",
        "no need to delete the milk task",
        "I don't want to delete the milk task",
        "don't add milk",
        "never mind",
    ] {
        let command = one(text);
        assert_eq!(command.intent, Intent::Unknown, "{text}");
        assert!(command.confidence >= 0.9, "{text}");
    }
    for text in ["don't let me forget to call mom", "don't forget to call mom"] {
        assert_eq!(one(text).title.as_deref(), Some("call mom"), "{text}");
    }
}
