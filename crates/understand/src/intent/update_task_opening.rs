//! Recognises update_task by an opening phrase: "add a note to the report: …", "file the receipts under taxes", "buy oat
//! milk is due saturday", "instead of Friday, remind me on Thursday".

use model::task::Priority;

use super::{Act, Guess, verb_at};
use crate::attributes;
use crate::clause::Clause;
use crate::create::Form;
use crate::labels;
use crate::lexicon;
use crate::reading::Field;
use crate::update::{Change, note};
use crate::vocabulary::Verb;

/// "add a note to the report: …".
pub(super) fn recognise_note(clause: &Clause, i: usize) -> Guess {
    note::head(clause, i).map(|start| (Act::Update(Change::Note, start, clause.end), 0.88))
}

/// "file the receipts under taxes" of a task there is, "file scan the receipts under taxes" of a new one.
pub(super) fn recognise_filing(clause: &Clause, i: usize) -> Guess {
    lexicon::update_task::FILE_VERBS.contains(clause.at(i)).then_some(())?;
    let (under, _) = clause.seek(i + 2, lexicon::update_task::UNDER)?;
    let name = under + 1 + usize::from(matches!(clause.at(under + 1), "the" | "my"));
    let closed = name + 1 >= clause.end && labels::is_name(clause, name);
    let known = labels::is_common(clause.at(name)) || matches!(clause.at(i), "file") || clause.has_noun();
    if !closed || !known {
        return None;
    }
    let there = matches!(clause.at(i + 1), "the" | "my" | "that" | "this" | "it") || clause.noun_at(i + 1).is_some();
    if there {
        return Some((Act::Update(Change::Tags, i + 1, clause.end), 0.86));
    }
    let verb = matches!(clause.at(i), "file" | "put" | "stick");
    (verb && super::is_doing(clause, i + 1)).then_some((Act::Create(Form::Rest, i + 1), 0.86))
}

/// "deprioritize …", "the report is urgent", "call it …".
pub(super) fn recognise_statement(clause: &Clause, i: usize) -> Guess {
    let end = clause.end;
    if matches!(clause.at(i), "deprioritize" | "deprioritise") {
        return Some((Act::Update(Change::Priority(Priority::Low), i + 1, end), 0.88));
    }
    if clause.at(i) == "untag" {
        return Some((Act::Update(Change::Clear(Field::Tags), i + 1, end), 0.85));
    }
    if let Some(n) = clause.phrase(i, lexicon::update_task::CALL_IT).filter(|n| i + n < end && clause.dates.is_empty())
    {
        return Some((Act::Update(Change::NewName(i + n), i + 1, i + 2), 0.6));
    }
    if let Some(at) = due_statement(clause, i) {
        return Some((Act::Update(Change::Replace(at), i, end), 0.65));
    }
    let (at, priority) = attributes::closing_priority(clause, i + 1)?;
    // "… and the second as high priority": what goes before is marked, too.
    if clause.at(at) == "as" && at > i && verb_at(clause, i).is_none() && !super::is_doing(clause, i) {
        return Some((Act::Update(Change::Priority(priority), i, end), 0.8));
    }
    let statement = matches!(clause.before(at), "is" | "are")
        && verb_at(clause, i) != Some(Verb::Delete)
        && at <= i + 6
        && !matches!(clause.at(i), "what" | "which" | "who" | "how" | "it" | "this");
    (statement && !clause.is_foreign()).then_some((Act::Update(Change::Priority(priority), i, at - 1), 0.6))
}

/// "buy oat milk is due saturday": where "is due" begins.
fn due_statement(clause: &Clause, i: usize) -> Option<usize> {
    let date = clause.dates.last().filter(|found| found.tokens.end == clause.end)?;
    let it = clause.phrase(i, lexicon::update_task::IT_IS_DUE);
    if let Some(n) = it.filter(|n| matches!(date.tokens.start.abs_diff(i + n), 0 | 1)) {
        return (!clause.asked && i + n <= clause.end).then_some(i);
    }
    let (at, n) = clause.seek(i + 1, lexicon::update_task::IS_DUE)?;
    let closes = date.tokens.start == at + n || date.tokens.start + 1 == at + n;
    let told = clause.has(lexicon::update_task::DUE_STOPS);
    (closes && at <= i + 6 && !clause.asked && !told && !lexicon::update_task::NOT_SUBJECTS.contains(clause.at(i)))
        .then_some(at)
}

/// "Instead of Friday, remind me on Thursday …".
pub(super) fn recognise_instead(clause: &Clause, i: usize) -> Guess {
    let n = clause.phrase(i, lexicon::grammar::INSTEAD_OF)?;
    let about = clause.has_noun() || clause.has(lexicon::update_task::REMIND_FORMS);
    about.then_some((Act::Update(Change::Instead, i + n, clause.end), 0.75))
}
