//! Turns commands about tasks into commands about reminders: "snooze it", "cancel the reminder for the dentist", "move
//! the reminder to 5pm", "what are my reminders?".
//!
//! The intents of S4 stay the ones for tasks, see [`Intent::as_str`].

use crate::clause::Clause;
use crate::create::CreatePhrasing;
use crate::lead_time;
use crate::lexicon;
use crate::parsed::{Intent, MissingSlot, ParsedCommand, TaskTarget};
use crate::vocabulary::{self, Noun, Verb};

/// Changes the intent of a command that is about a reminder. Deletions, listings and changes of the date need a word for
/// a reminder, or "snooze", "remind me again". A change of the title or of the priority concerns the task and stays.
pub(crate) fn refine(clause: &mut Clause, command: &mut ParsedCommand) {
    match command.intent {
        Intent::UpdateTask => refine_update(clause, command),
        Intent::DeleteTask if names_reminder(clause) || speaks_of_reminding(clause) => {
            command.intent = Intent::CancelReminder;
            set_bare_target(clause, command);
        }
        Intent::ListTasks if names_reminder(clause) => command.intent = Intent::ListReminders,
        Intent::CreateTask if command.missing == Some(MissingSlot::Title) => refine_untitled(clause, command),
        Intent::CreateTask if command.is_about => refine_plural(command),
        _ => {}
    }
}

/// Returns true if a word for a reminder occurs in the clause.
fn names_reminder(clause: &Clause) -> bool {
    clause.nouns_in(clause.start..clause.end).any(|noun| noun.noun == Noun::Reminder)
}

/// Returns true if "remind", "reminding" or "reminded" occurs in the clause: "stop reminding me about the plants".
fn speaks_of_reminding(clause: &Clause) -> bool {
    (clause.start..clause.end).any(|i| is_reminding(clause.at(i)))
}

fn is_reminding(word: &str) -> bool {
    matches!(word, "remind" | "reminding" | "reminded" | "nagging" | "pinging" | "notifying" | "nudging" | "bugging")
}

/// Takes the task in context as the target where the words after "stop reminding me" name none.
fn set_bare_target(clause: &Clause, command: &mut ParsedCommand) {
    let bare = match &command.target {
        None => true,
        Some(TaskTarget::Named(name)) => {
            is_reminding(name.to_lowercase().split(' ').next().unwrap_or_default()) && clause.end - clause.start <= 4
        }
        _ => false,
    };
    if bare && !command.filter.unsupported {
        command.target = Some(TaskTarget::It);
        command.missing = None;
    }
}

/// Turns a change of the date into a snooze or an update of a reminder. A lead time ("to 1 hour before") is a change,
/// too.
fn refine_update(clause: &mut Clause, command: &mut ParsedCommand) {
    let snoozes = (clause.start..clause.end).any(|i| clause.at(i) == "snooze");
    let other = command.title.is_some()
        || command.description.is_some()
        || command.priority.is_some()
        || command.status.is_some()
        || !command.tags.is_empty()
        || !command.cleared_fields.is_empty();
    if other || !snoozes && !names_reminder(clause) {
        return;
    }
    if command.shift.is_none()
        && let Some(mention) = lead_time::find(clause, clause.start..clause.end)
    {
        command.before = Some(mention.lead);
        command.before_target = mention.event;
        command.missing = command.missing.filter(|missing| *missing == MissingSlot::Target);
    }
    let delays = lexicon::reminders::SNOOZE_VERBS.contains(clause.at(clause.start));
    command.intent =
        if snoozes || delays && command.shift.is_some() { Intent::SnoozeReminder } else { Intent::UpdateReminder };
    if snoozes {
        let unnamed = match &command.target {
            None => true,
            Some(TaskTarget::Named(name)) => matches!(name.as_str(), "for" | "by" | "until" | "till" | "for a" | "me"),
            _ => false,
        };
        if unnamed {
            command.target = Some(TaskTarget::It);
        }
        command.missing = None;
    }
}

/// Turns "remind me about those tomorrow" into a reminder for the tasks of the last list.
fn refine_plural(command: &mut ParsedCommand) {
    let target = match command.title.as_deref() {
        Some("those" | "these" | "them" | "all of them" | "all of those" | "all of these") => TaskTarget::Them,
        Some("both" | "both of them") => TaskTarget::Both,
        _ => return,
    };
    command.title = None;
    command.intent = Intent::ScheduleReminder;
    command.target = Some(target);
    if command.when.is_none() && command.before.is_none() && command.recurrence.is_none() {
        command.missing = Some(MissingSlot::Time);
    }
}

/// Turns "remind me again in 10 minutes", "remind me later" into a snooze, and "remind me 2 hours before the dentist"
/// into a reminder for that task.
fn refine_untitled(clause: &Clause, command: &mut ParsedCommand) {
    if command.before.is_some() {
        let target = command.before_target.clone().unwrap_or(TaskTarget::It);
        command.intent = Intent::ScheduleReminder;
        command.target = Some(target.clone());
        command.before_target = Some(target);
        command.missing = None;
        return;
    }
    let again = command.asks_reminder && clause.has(lexicon::reminders::AGAIN);
    if again {
        command.intent = Intent::SnoozeReminder;
        command.target = Some(TaskTarget::It);
        command.missing = None;
    }
}

/// Returns true if a new task with this phrasing asks for a notification. `body` is the position after the verb.
pub(crate) fn asks_reminder(clause: &Clause, body: usize, phrasing: CreatePhrasing) -> bool {
    let reminder = |range: std::ops::Range<usize>, plural: bool| {
        clause.nouns_in(range).any(|noun| noun.noun == Noun::Reminder && (plural || !noun.plural))
    };
    match phrasing {
        CreatePhrasing::Remind | CreatePhrasing::RemindOther => true,
        CreatePhrasing::Make => reminder(body..clause.end, true),
        CreatePhrasing::Add => reminder(body..clause.end.min(body + 4), false),
        CreatePhrasing::Rest => reminder(clause.outer_start.max(clause.start)..body.max(clause.start + 1), true),
        CreatePhrasing::Preamble => {
            (clause.start..clause.end).any(|i| vocabulary::verb(clause.at(i)) == Some(Verb::Remind))
        }
    }
}

/// Returns true for "remind me about X", "remind me of X", "a reminder for X": X can be an existing task. `body` is the
/// position after the verb. Dates before "about" are skipped.
pub(crate) fn is_about(clause: &Clause, body: usize, phrasing: CreatePhrasing) -> bool {
    let noun = clause.nouns_in(body..clause.end).find(|noun| noun.noun == Noun::Reminder);
    let from = match phrasing {
        CreatePhrasing::Remind => body,
        CreatePhrasing::Make | CreatePhrasing::Add => match noun {
            Some(noun) => noun.end,
            None => return false,
        },
        _ => return false,
    };
    let first = (from..clause.end).find(|i| clause.date_at(*i).is_none() && !clause.is_consumed(*i));
    first.is_some_and(|i| {
        matches!(clause.at(i), "about" | "of" | "regarding" | "concerning")
            || matches!(clause.at(i), "for" | "on") && phrasing != CreatePhrasing::Remind
    })
}
