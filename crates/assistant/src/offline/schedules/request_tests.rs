//! Tests of the recognition of messages about schedules.

use super::*;

fn topic(text: &str) -> Option<(ScheduleTopic, ScheduleReference)> {
    find_request(&Words::new(text).without_courtesy()).map(|request| (request.topic, request.reference))
}

fn named(words: &str) -> ScheduleReference {
    ScheduleReference::Named(words.split(' ').map(str::to_owned).collect())
}

#[test]
fn questions_about_schedules_are_recognized() {
    // TRUST-4
    use ScheduleReference::Pronoun;
    use ScheduleTopic::{List, ListPaused, Next, State, Why};
    for (text, expected) in [
        ("What is scheduled?", (List, Pronoun)),
        ("show my schedules", (List, Pronoun)),
        ("what's scheduled this week", (List, Pronoun)),
        ("so is anything else scheduled?", (List, Pronoun)),
        ("which of them are paused", (ListPaused, Pronoun)),
        ("when does that run next?", (Next, Pronoun)),
        ("whens the next run", (Next, Pronoun)),
        ("what time does it start?", (Next, Pronoun)),
        ("when does the nightly run again?", (Next, named("nightly"))),
        ("when did the backup job last run?", (State, named("backup"))),
        ("is nightly still active?", (State, named("nightly"))),
        ("how is the nightly doing?", (State, named("nightly"))),
        ("why didnt the price watch run this morning?", (Why, named("price watch"))),
        ("why did the nightly not happen?", (Why, named("nightly"))),
    ] {
        assert_eq!(topic(text), Some(expected), "{text}");
    }
}

#[test]
fn commands_for_schedules_are_recognized() {
    use ScheduleReference::{All, Position, Pronoun};
    use ScheduleTopic::{Delete, Pause, Rename, Resume, Retime, Run};
    for (text, expected) in [
        ("pause it for now", (Pause, Pronoun)),
        ("pause that schedule while im on holiday", (Pause, Pronoun)),
        ("put the nightly job on hold pls", (Pause, named("nightly"))),
        ("turn the backup off", (Pause, named("backup"))),
        ("pause the second one", (Pause, Position(1))),
        ("pause all schedules", (Pause, All)),
        ("ok switch it back on", (Resume, Pronoun)),
        ("oh right, turn it on again", (Resume, Pronoun)),
        ("resume it again", (Resume, Pronoun)),
        ("get rid of the standup notes schedule", (Delete, named("standup notes"))),
        ("delete the log rotation schedule", (Delete, named("log rotation"))),
        ("and run it now as well", (Run, Pronoun)),
        ("run the nightly now", (Run, named("nightly"))),
        ("just move it to 8am", (Retime, Pronoun)),
        ("make that 6pm", (Retime, Pronoun)),
        ("change the standup notes to weekdays", (Retime, named("standup notes"))),
        ("every other day instead", (Retime, Pronoun)),
        ("rename the nightly to Night backup", (Rename("Night backup".to_owned()), named("nightly"))),
    ] {
        assert_eq!(topic(text), Some(expected), "{text}");
    }
}

#[test]
fn messages_about_tasks_are_not_about_schedules() {
    for text in [
        "show my tasks",
        "remind me at 6pm",
        "add a task to check the train schedule",
        "show tasks about the schedule",
        "buy milk tomorrow",
    ] {
        assert_eq!(topic(text), None, "{text}");
    }
}
