//! Recognises update_task by an opening phrase: "add a note to the report: …", "file the receipts under taxes", "buy
//! oat milk is due saturday", "instead of Friday, remind me on Thursday".
//!
//! The phrase begins at `i`. The rules return the action with its confidence, or `None` if they do not match.

use model::task::Priority;

use super::{CommandAction, Guess, verb_at};
use crate::attributes;
use crate::clause::Clause;
use crate::create::CreatePhrasing;
use crate::lexicon;
use crate::parsed::ClearableField;
use crate::tag_phrases;
use crate::update::{UpdateKind, note};
use crate::vocabulary::Verb;

/// Recognises "add a note to the report: …" (0.88). A colon, "saying" or a quoted text must follow the task. A note to
/// self does not match.
pub(super) fn recognise_note(clause: &Clause, i: usize) -> Guess {
    note::task_start(clause, i).map(|start| (CommandAction::Update(UpdateKind::Note, start, clause.end), 0.88))
}

/// Recognises "file the receipts under taxes" for an existing task, and "file scan the receipts under taxes" for a new
/// one (0.86). Verbs are "file", "put", "move", "stick", "store", "keep" and "place". The tag must be one word at the
/// end, possibly after "the" or "my". Verbs other than "file" need a common tag or a word for a task. An existing task
/// begins with "the", "my", "that", "this", "it" or a word for a task. A new one needs an activity and "file", "put" or
/// "stick". Returns `None` otherwise.
pub(super) fn recognise_filing(clause: &Clause, i: usize) -> Guess {
    lexicon::update_task::FILE_VERBS.contains(clause.at(i)).then_some(())?;
    let (under, _) = clause.find_phrase(i + 2, lexicon::update_task::UNDER)?;
    let name = under + 1 + usize::from(matches!(clause.at(under + 1), "the" | "my"));
    let closed = name + 1 >= clause.end && tag_phrases::is_tag_name(clause, name);
    let known = tag_phrases::is_common_tag(clause.at(name)) || matches!(clause.at(i), "file") || clause.has_noun();
    if !closed || !known {
        return None;
    }
    let exists = matches!(clause.at(i + 1), "the" | "my" | "that" | "this" | "it") || clause.noun_at(i + 1).is_some();
    if exists {
        return Some((CommandAction::Update(UpdateKind::Tags, i + 1, clause.end), 0.86));
    }
    let verb = matches!(clause.at(i), "file" | "put" | "stick");
    (verb && super::is_activity(clause, i + 1)).then_some((CommandAction::Create(CreatePhrasing::Rest, i + 1), 0.86))
}

/// Recognises stated changes at `i`. "deprioritize …" sets low priority (0.88), and "untag …" clears the tags (0.85).
/// "call it …", "name it …" without a date sets the title (0.6). "… is due saturday" sets the due date (0.65), see
/// [`due_statement`]. "the second as high priority" needs the priority at the end, and no command verb or activity at
/// `i` (0.8). "the report is urgent" needs it within six tokens and at the end (0.6). "what", "which", "who", "how",
/// "it", "this" and verbs of deleting at `i` exclude it. So do other domains and plans.
pub(super) fn recognise_statement(clause: &Clause, i: usize) -> Guess {
    let end = clause.end;
    if matches!(clause.at(i), "deprioritize" | "deprioritise") {
        return Some((CommandAction::Update(UpdateKind::Priority(Priority::Low), i + 1, end), 0.88));
    }
    if clause.at(i) == "untag" {
        return Some((CommandAction::Update(UpdateKind::Clear(ClearableField::Tags), i + 1, end), 0.85));
    }
    if let Some(n) = clause.phrase(i, lexicon::update_task::CALL_IT).filter(|n| i + n < end && clause.dates.is_empty())
    {
        return Some((CommandAction::Update(UpdateKind::NewName(i + n), i + 1, i + n), 0.6));
    }
    if let Some(at) = due_statement(clause, i) {
        return Some((CommandAction::Update(UpdateKind::Replace(at), i, end), 0.65));
    }
    let (at, priority) = attributes::closing_priority(clause, i + 1)?;
    // In "… and the second as high priority", the words before name the task.
    if clause.at(at) == "as" && at > i && verb_at(clause, i).is_none() && !super::is_activity(clause, i) {
        return Some((CommandAction::Update(UpdateKind::Priority(priority), i, end), 0.8));
    }
    let statement = matches!(clause.before(at), "is" | "are")
        && verb_at(clause, i) != Some(Verb::Delete)
        && at <= i + 6
        && !matches!(clause.at(i), "what" | "which" | "who" | "how" | "it" | "this");
    (statement && !clause.is_out_of_scope())
        .then_some((CommandAction::Update(UpdateKind::Priority(priority), i, at - 1), 0.6))
}

/// Returns the position of "is due": "buy oat milk is due saturday". Returns `i` for "it is due …" and "that's due …".
/// The date must follow and end the clause. Otherwise "is due" must begin one to six tokens after `i`. Words such as
/// "remind", "because", "so" or "and" in the clause exclude it. So do first words such as "what", "I", "add" or "task".
/// These words do not exclude "it is due …". Returns `None` for questions.
fn due_statement(clause: &Clause, i: usize) -> Option<usize> {
    let date = clause.dates.last().filter(|found| found.tokens.end == clause.end)?;
    let it = clause.phrase(i, lexicon::update_task::IT_IS_DUE);
    if let Some(n) = it.filter(|n| matches!(date.tokens.start.abs_diff(i + n), 0 | 1)) {
        return (!clause.is_question && i + n <= clause.end).then_some(i);
    }
    let (at, n) = clause.find_phrase(i + 1, lexicon::update_task::IS_DUE)?;
    let closes = date.tokens.start == at + n || date.tokens.start + 1 == at + n;
    let is_stopped = clause.has(lexicon::update_task::DUE_STOPS);
    (closes
        && at <= i + 6
        && !clause.is_question
        && !is_stopped
        && !lexicon::update_task::NOT_SUBJECTS.contains(clause.at(i)))
    .then_some(at)
}

/// Recognises "Instead of Friday, remind me on Thursday …" at `i` (0.75). Requires "instead of" or "rather than" at
/// `i`, and a word for a task, "remind me" or "alert me". Returns `None` otherwise.
pub(super) fn recognise_instead(clause: &Clause, i: usize) -> Guess {
    let n = clause.phrase(i, lexicon::grammar::INSTEAD_OF)?;
    let about = clause.has_noun() || clause.has(lexicon::update_task::REMIND_FORMS);
    about.then_some((CommandAction::Update(UpdateKind::Instead, i + n, clause.end), 0.75))
}
