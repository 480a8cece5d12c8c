//! Recognises delete_task by its verb: "delete the report", "cancel my gym reminder", "take milk off the list".
//!
//! A field as the object is update_task: "remove the due date from the report".

use model::task::Priority;

use super::{Act, Guess, grammar};
use crate::clause::Clause;
use crate::lexicon;
use crate::reading::Field;
use crate::scope;
use crate::update::{Change, tags};
use crate::vocabulary;

pub(super) fn recognise(clause: &Clause, i: usize) -> Guess {
    // "cancel" alone calls off what was asked, not a task.
    if clause.at(i) == "cancel" && i + 1 >= clause.end {
        return None;
    }
    let errand = clause.at(i) == "kill" || clause.at(i) == "drop" && clause.at(i + 1) == "off";
    if errand && !clause.has_noun() {
        return None;
    }
    if tags::spoken(clause, i + 1, lexicon::grammar::FROM_TASK).is_some() {
        return Some((Act::Update(Change::Untag, i + 1, clause.end), 0.9));
    }
    if let Some((field, after)) = cleared_field(clause, i + 1) {
        let end = (after..clause.end).find(|k| clause.at(*k).ends_with("'s")).map_or(clause.end, |k| k + 1);
        return Some((Act::Update(Change::Clear(field), after, end), 0.9));
    }
    if let Some(n) = clause.phrase(i + 1, lexicon::update_task::PRIORITY_CLEARED) {
        return Some((Act::Update(Change::Priority(Priority::Medium), i + 1 + n, clause.end), 0.8));
    }
    if matches!(clause.at(i), "stop" | "undo" | "silence" | "void") {
        let reminding = clause.has_noun() || clause.has(lexicon::delete_task::REMINDING);
        return reminding.then_some((Act::Delete(i + 1, clause.end), 0.8));
    }
    if clause.has_noun()
        && let Some((at, _)) = clause.seek(i + 1, lexicon::delete_task::REPLACED)
    {
        return Some((Act::Update(Change::Replace(at), i + 1, clause.end), 0.7));
    }
    if clause.is_elsewhere() && !is_remind(clause, i + 1) || scope::is_media(clause) || scope::is_thing(clause, i + 1) {
        return None;
    }
    if clause.has(lexicon::delete_task::ALL_NOTIFICATIONS) {
        return None;
    }
    // "empty the bin tonight", "drop the forms off on Tuesday": something to do.
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
    Some((Act::Delete(i + 1, clause.end), confidence))
}

/// "cancel remind for …".
fn is_remind(clause: &Clause, i: usize) -> bool {
    clause.at(i + usize::from(vocabulary::is_article(clause.at(i)))) == "remind"
}

/// "the due date from …": the field to empty and where the task is named.
fn cleared_field(clause: &Clause, i: usize) -> Option<(Field, usize)> {
    let owned = (i..clause.end.min(i + 6)).find(|k| clause.at(*k).ends_with("'s"));
    let i = i + clause
        .phrase(i, lexicon::grammar::ALL)
        .filter(|_| clause.has(lexicon::update_task::CLEARED_PLURALS))
        .unwrap_or(0);
    let article = usize::from(vocabulary::is_article(clause.at(i)) || clause.at(i) == "its");
    let at = owned.map_or(i + article, |k| k + 1);
    let fields = [
        (Field::Due, lexicon::update_task::CLEARED_DATE),
        (Field::Description, lexicon::update_task::CLEARED_NOTES),
        (Field::Recurrence, lexicon::update_task::CLEARED_REPEAT),
        (Field::Tags, lexicon::update_task::CLEARED_TAGS),
    ];
    let (field, n) = fields.iter().find_map(|(field, names)| clause.phrase(at, *names).map(|n| (*field, n)))?;
    // "remove its due date", "remove the due date": of the task in hand.
    if at + n == clause.end && article + usize::from(owned.is_some()) > 0 && !matches!(clause.at(at), "note" | "tag") {
        return Some((field, owned.map_or(clause.end, |_| i)));
    }
    let n = if clause.at(at) == "date" { 1 } else { n };
    let (of, m) = clause.seek(at + n, lexicon::grammar::FROM_TASK).filter(|(of, _)| *of <= at + n + 1)?;
    Some((field, of + m))
}

pub(super) fn recognise_take_off(clause: &Clause, i: usize) -> Guess {
    if tags::spoken(clause, i + 1, lexicon::grammar::FROM_TASK).is_some() {
        return Some((Act::Update(Change::Untag, i + 1, clause.end), 0.9));
    }
    if let Some((field, after)) = cleared_field(clause, i + 1) {
        return Some((Act::Update(Change::Clear(field), after, clause.end), 0.88));
    }
    let (off, _) = clause.seek(i + 1, lexicon::delete_task::TAKE_OFF)?;
    let last = clause.at(off) == "off" && off + 1 >= clause.end;
    (clause.has_noun() || last).then_some((Act::Delete(i + 1, clause.end), 0.9))
}
