//! Statements, remarks with a trailing command, colloquial verbs, and their near misses.

use super::{named, one};
use crate::{Intent, ParsedCommand, TaskTarget};

fn assert_intent(intent: Intent, texts: &[&str]) {
    let wrong: Vec<(&str, Intent)> = texts
        .iter()
        .map(|text| (*text, one(text).intent))
        .filter(|(_, read)| read.as_str() != intent.as_str())
        .collect();
    assert!(wrong.is_empty(), "not {}: {wrong:?}", intent.as_str());
}

#[test]
fn statements_complete_tasks() {
    assert_intent(
        Intent::CompleteTask,
        &[
            "the hedge is trimmed",
            "my tax return's filed",
            "the windows have been cleaned",
            "lawn mowed",
            "ironing all done",
            "that's the bathroom finished",
            "they're both done",
            "I've posted the parcel",
            "just handed in the essay",
            "finally got round to fixing the gate",
            "I managed to reach the landlord",
            "we picked up the cake, tick it off",
            "the invoices went out this morning so mark that as done",
            "consider it done",
            "all done!",
            "DONE: water the ferns",
            "wrap up the budget task",
            "close out the audit form",
            "put a line through the tailor",
            "log the stretching as completed",
            "change the status of the survey to done",
        ],
    );
    let hedge = one("the hedge is trimmed");
    assert_eq!(hedge.target, named("hedge"));
    assert_eq!(one("all done!").target, Some(TaskTarget::It));
}

#[test]
fn statements_delete_tasks() {
    assert_intent(
        Intent::DeleteTask,
        &[
            "bin the one about the shed",
            "ditch the pottery task",
            "axe the website task",
            "scrap the pottery class",
            "get the leeks off my list",
            "strike the umbrella from my list",
            "the swimming reminder can go",
            "I don't need to call the electrician anymore",
            "no longer need to buy stamps",
            "we don't have to paint the fence after all",
            "you don't have to remind me about the recycling any more",
            "never mind the piano task",
            "the guitar lesson reminder isn't needed",
            "I sold the bike, so delete that task",
            "del 4",
        ],
    );
    assert_eq!(one("ditch the pottery task").target, named("pottery"));
}

#[test]
fn statements_update_tasks() {
    assert_intent(
        Intent::UpdateTask,
        &[
            "the physio is now on thursday",
            "the handover has been moved to friday at 10",
            "the exam got pushed to monday",
            "the ironing can wait until sunday",
            "the fence should be high priority",
            "make that tuesday instead",
            "no, I meant wednesday",
            "tomorrow instead",
            "let's do the shopping on friday instead",
            "plumber -> friday",
            "physio to thursday",
            "put the laundry off until saturday",
            "push back the picnic to sunday",
            "bring the release forward to monday",
            "roll my open tasks over to monday",
            "bump the priority of the visa to high",
            "lower its priority",
            "star the embassy task",
            "take the deadline off the novel",
            "put task 2 back to open",
            "un-tick the gym",
            "one more day for the report",
            "give the essay a deadline of friday",
            "I can't make the gym today, move it to thursday",
            "attach a note to the roof task saying two quotes needed",
            "the weekly review task should no longer repeat",
        ],
    );
    assert_eq!(one("the physio is now on thursday").target, named("physio"));
    assert_eq!(one("physio to thursday").target, named("physio"));
}

#[test]
fn needs_and_plans_create_tasks() {
    assert_intent(
        Intent::CreateTask,
        &[
            "gotta descale the kettle on saturday",
            "I've got to hand the keys in by friday",
            "on monday I have to drop the car at the garage",
            "I'm supposed to submit the form by noon tomorrow",
            "we're out of coffee, add it",
            "the gutters need cleaning, stick that on the list",
            "rotate the tyres next saturday",
            "pop candles on the list",
            "chuck some lemons on my list",
            "capture: idea for the newsletter",
            "give me a nudge at 5 to take the bread out",
            "would you mind reminding me to feed the cat at 8",
            "bug me tomorrow about the invoice",
            "mustn't forget to sign the card",
            "quickly add rice to the list",
        ],
    );
}

#[test]
fn questions_about_open_tasks_list_them() {
    assert_intent(
        Intent::ListTasks,
        &[
            "what's left for today",
            "anything due?",
            "am I behind on anything",
            "what did I get done this week",
            "what do I still have to do",
            "what am I supposed to be doing today",
            "have I missed any deadlines",
            "overdue?",
            "the overdue ones",
            "everything tagged garden",
            "show me the important stuff",
            "good morning, what's due today?",
            "I'm at the shop, what do I have to buy?",
            "how's my week looking",
            "is everything done for today",
        ],
    );
}

#[test]
fn near_misses_stay_unknown() {
    assert_intent(
        Intent::Unknown,
        &[
            "I'm done with this conversation",
            "delete the photo",
            "rename this file to draft",
            "push the button",
            "you remind me of my aunt",
            "this smell reminds me of school",
            "remind me what the capital of Chad is",
            "don't remind me, I know",
            "how do you spell reminder",
            "who invented the to-do list",
            "what does the word chore mean",
            "can you set recurring reminders or is that a paid feature",
            "parties in Miami on Sunday",
            "should I wear a coat today",
            "undo the last paragraph in my document",
            "I love crossing things off lists",
            "add 12 and 30",
        ],
    );
}

#[test]
fn undo_is_recognised_in_statements() {
    assert_intent(
        Intent::Undo,
        &["revert the last thing you did", "ctrl z", "oops, undo that", "put it back how it was"],
    );
}

#[test]
fn reminders_name_existing_tasks() {
    assert_intent(
        Intent::ScheduleReminder,
        &[
            "add a reminder to the visa task for monday 10am",
            "put a reminder on the laundry task for 3pm",
            "remind me about the second one at 6pm",
            "for the gym task, remind me at 7 tomorrow morning",
        ],
    );
}

#[test]
fn guesses_are_less_confident_than_commands() {
    let sure = |text: &str| -> ParsedCommand { one(text) };
    for guess in ["swimming tue thu 7pm", "the boiler on thursday", "dentist"] {
        assert!(sure(guess).confidence < 0.9, "{guess}: {}", sure(guess).confidence);
    }
    for command in ["remind me to buy milk", "delete the milk task", "mark the milk task as done"] {
        assert!(sure(command).confidence >= 0.9, "{command}");
    }
}
