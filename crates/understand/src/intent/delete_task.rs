//! Recognises delete_task by its verb: "delete the report", "cancel my gym reminder", "take milk off the list".
//!
//! A field as the object is update_task: "remove the due date from the report". The rules take the position `i` of the
//! verb. They return the action with its confidence, or `None` if they do not match. A *word for a task* is a noun for
//! a task, a reminder or a list.

use model::task::Priority;

use super::{CommandAction, Guess, grammar};
use crate::clause::Clause;
use crate::lexicon;
use crate::parsed::ClearableField;
use crate::scope;
use crate::update::{UpdateKind, tags};
use crate::vocabulary;

/// Recognises "delete …", "remove …", "cancel …" and similar verbs at `i`. A tag with a task ("remove the tag work from
/// …") and a field ("the due date from …") update (0.9). "the priority of …" sets medium priority (0.8). "cancel the
/// reminder and reschedule it" updates, too (0.7). "stop", "undo", "silence" and "void" need a word for a task or
/// "reminding" (0.8). Otherwise it is a deletion: 0.96 with a word for a task, 0.82 for "delete", "remove" and "erase",
/// else 0.7.
///
/// "delete" alone yields an empty range. Returns `None` for "cancel" alone, and for "kill …" and "drop off …" without a
/// word for a task. Other domains and lists, files and photos, and "all notifications" do not match. Chores with a date
/// ("empty the bin tonight") do not match, unless they name a task, an entry or "everything".
pub(super) fn recognise(clause: &Clause, i: usize) -> Guess {
    // "cancel" without an object cancels the dialog, not a task.
    if clause.at(i) == "cancel" && i + 1 >= clause.end {
        return None;
    }
    let errand = clause.at(i) == "kill" || clause.at(i) == "drop" && clause.at(i + 1) == "off";
    if errand && !clause.has_noun() {
        return None;
    }
    if tags::task_lead(clause, i + 1, lexicon::grammar::FROM_TASK).is_some() {
        return Some((CommandAction::Update(UpdateKind::Untag, i + 1, clause.end), 0.9));
    }
    if let Some((field, after)) = cleared_field(clause, i + 1) {
        let end = (after..clause.end).find(|k| clause.at(*k).ends_with("'s")).map_or(clause.end, |k| k + 1);
        return Some((CommandAction::Update(UpdateKind::Clear(field), after, end), 0.9));
    }
    if let Some(n) = clause.phrase(i + 1, lexicon::update_task::PRIORITY_CLEARED) {
        return Some((CommandAction::Update(UpdateKind::Priority(Priority::Medium), i + 1 + n, clause.end), 0.8));
    }
    if matches!(clause.at(i), "stop" | "undo" | "silence" | "void") {
        let reminding = clause.has_noun() || clause.has(lexicon::delete_task::REMINDING);
        return reminding.then_some((CommandAction::Delete(i + 1, clause.end), 0.8));
    }
    if clause.has_noun()
        && let Some((at, _)) = clause.find_phrase(i + 1, lexicon::delete_task::REPLACED)
    {
        return Some((CommandAction::Update(UpdateKind::Replace(at), i + 1, clause.end), 0.7));
    }
    if clause.is_other_domain() && !is_remind(clause, i + 1)
        || scope::is_other_list(clause)
        || scope::is_other_thing(clause, i + 1)
    {
        return None;
    }
    if clause.has(lexicon::delete_task::ALL_NOTIFICATIONS) {
        return None;
    }
    // "empty the bin tonight", "drop the forms off on Tuesday" are errands.
    let chore = lexicon::delete_task::CHORE_VERBS.contains(clause.at(i));
    if chore
        && !clause.has_noun()
        && !clause.dates.is_empty()
        && !grammar::names_entry(clause, i + 1..clause.end)
        && !matches!(clause.at(i + 1), "everything" | "all")
    {
        return None;
    }
    let plain = matches!(clause.at(i), "delete" | "remove" | "erase");
    let confidence = match (clause.has_noun(), plain) {
        (true, _) => 0.96,
        (_, true) => 0.82,
        _ => 0.7,
    };
    Some((CommandAction::Delete(i + 1, clause.end), confidence))
}

/// Returns true for "remind" at `i`, possibly after an article: "cancel remind for …".
fn is_remind(clause: &Clause, i: usize) -> bool {
    clause.at(i + usize::from(vocabulary::is_article(clause.at(i)))) == "remind"
}

/// Returns the field to clear and the start of the task. The object begins at `i`: "the due date from …", "all tags
/// from …". Fields are the due date, the description, the recurrence and the tags. "from", "of", "on" or a similar word
/// must follow within one token. At the end of the clause, "its due date", "the due date" and "the report's due date"
/// need none; "note" and "tag" do. There the start is `i` for a named task, and the end of the clause for the task in
/// context. Returns `None` for other objects.
fn cleared_field(clause: &Clause, i: usize) -> Option<(ClearableField, usize)> {
    let owned = (i..clause.end.min(i + 6)).find(|k| clause.at(*k).ends_with("'s"));
    let i = i + clause
        .phrase(i, lexicon::grammar::ALL)
        .filter(|_| clause.has(lexicon::update_task::CLEARED_PLURALS))
        .unwrap_or(0);
    let article = usize::from(vocabulary::is_article(clause.at(i)) || clause.at(i) == "its");
    let at = owned.map_or(i + article, |k| k + 1);
    let fields = [
        (ClearableField::Due, lexicon::update_task::CLEARED_DATE),
        (ClearableField::Description, lexicon::update_task::CLEARED_NOTES),
        (ClearableField::Recurrence, lexicon::update_task::CLEARED_REPEAT),
        (ClearableField::Tags, lexicon::update_task::CLEARED_TAGS),
    ];
    let (field, n) = fields.iter().find_map(|(field, names)| clause.phrase(at, *names).map(|n| (*field, n)))?;
    // "remove its due date", "remove the due date": refers to the task in context.
    if at + n == clause.end && article + usize::from(owned.is_some()) > 0 && !matches!(clause.at(at), "note" | "tag") {
        return Some((field, owned.map_or(clause.end, |_| i)));
    }
    let n = if clause.at(at) == "date" { 1 } else { n };
    let (of, m) = clause.find_phrase(at + n, lexicon::grammar::FROM_TASK).filter(|(of, _)| *of <= at + n + 1)?;
    Some((field, of + m))
}

/// Recognises "take … off the list" at `i` (0.9). A tag (0.9) or a field (0.88) as the object is update_task: "take the
/// tag work off the report". Requires "off", "out", "from" or "of", and a word for a task in the clause or "off" at the
/// end. Returns `None` otherwise.
pub(super) fn recognise_take_off(clause: &Clause, i: usize) -> Guess {
    if tags::task_lead(clause, i + 1, lexicon::grammar::FROM_TASK).is_some() {
        return Some((CommandAction::Update(UpdateKind::Untag, i + 1, clause.end), 0.9));
    }
    if let Some((field, after)) = cleared_field(clause, i + 1) {
        return Some((CommandAction::Update(UpdateKind::Clear(field), after, clause.end), 0.88));
    }
    let (off, _) = clause.find_phrase(i + 1, lexicon::delete_task::TAKE_OFF)?;
    let last = clause.at(off) == "off" && off + 1 >= clause.end;
    (clause.has_noun() || last).then_some((CommandAction::Delete(i + 1, clause.end), 0.9))
}
