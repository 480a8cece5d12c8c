//! Recognises undo: "undo that", "restore the deleted task", "oops, put it back".

use crate::clause::Clause;
use crate::lexicon;

/// Returns true if the clause asks for undo, at its start or after a short remark.
pub(super) fn is_undo(clause: &Clause) -> bool {
    let start = clause.start;
    let closed = clause.phrase(start, lexicon::undo::UNDO).is_some_and(|n| start + n == clause.end);
    closed || is_undo_phrase(clause, start) || is_restore(clause, start) || is_later_undo(clause)
}

/// Returns true for "undo that", "revert the last thing you did" at `i`. Returns false next to a word for a task and
/// for other objects: "undo the last paragraph in my document".
fn is_undo_phrase(clause: &Clause, i: usize) -> bool {
    let verb = lexicon::undo::VERBS.contains(clause.at(i));
    let alone = i + 1 >= clause.end && matches!(clause.at(i), "undo" | "revert");
    let other = || clause.has(lexicon::undo::OTHER_OBJECTS);
    verb && !other()
        && (alone || clause.phrase(i + 1, lexicon::undo::OBJECTS).is_some() || clause.at(i) == "undo")
        && !clause.has_noun()
}

/// Returns true for "bring back the task I just deleted", "cancel my last action", "change it back to how it was" at
/// `i`.
fn is_restore(clause: &Clause, i: usize) -> bool {
    let back = clause.phrase(i, lexicon::undo::RESTORE);
    let verb = back.or_else(|| clause.phrase(i, lexicon::undo::CANCEL));
    let deed = verb.is_some_and(|n| is_own_deed(clause, i + n, back.is_some()) || is_last_step(clause, i + n, i));
    deed || is_turned_back(clause, i)
}

/// Returns true for an action of the user or the assistant that ends the clause: "what I just deleted", "the one that
/// you removed". `i` is the position after the verb. `back` is true after a verb of restoring; without it, the object
/// must be "what" or "everything".
fn is_own_deed(clause: &Clause, i: usize, back: bool) -> bool {
    let Some(who) = (i..clause.end.min(i + 6)).find(|k| lexicon::undo::SUBJECTS.contains(clause.at(*k))) else {
        return false;
    };
    let Some(deed) = (who + 1..clause.end).find(|k| !lexicon::undo::ADVERBS.contains(clause.at(*k))) else {
        return false;
    };
    let fits =
        back && lexicon::undo::DELETED.contains(clause.at(deed)) || lexicon::undo::DONE.contains(clause.at(deed));
    let ends = clause.phrase(deed + 1, lexicon::undo::BY_MISTAKE);
    who > i
        && (i..who).all(|k| lexicon::undo::FILLERS.contains(clause.at(k)))
        && fits
        && (back || matches!(clause.at(i), "what" | "whatever" | "everything"))
        && deed + 1 + ends.unwrap_or(0) >= clause.end
}

/// Returns true for "the last command", "my previous change" at `i` at the end of the clause. `verb` is the position of
/// the verb; "the last one" counts only after "undo" and similar verbs.
fn is_last_step(clause: &Clause, i: usize, verb: usize) -> bool {
    let Some(n) = clause.phrase(i, lexicon::undo::LAST) else { return false };
    let step = lexicon::undo::STEPS.contains(clause.at(i + n));
    let one = clause.at(i + n) == "one" && matches!(clause.at(verb), "undelete" | "un-delete" | "undo" | "revert");
    (step || one) && i + n + 1 >= clause.end
}

/// Returns true for "put that back as it was", "change it back" at `i` at the end of the clause. After "move", "set",
/// "leave" and "turn", "as it was" is required.
fn is_turned_back(clause: &Clause, i: usize) -> bool {
    let Some(n) = clause.phrase(i + 1, lexicon::undo::IT).filter(|_| lexicon::undo::BACK_VERBS.contains(clause.at(i)))
    else {
        return false;
    };
    let back = usize::from(clause.at(i + 1 + n) == "back");
    let after = i + 1 + n + back;
    let plain = back == 1 && !matches!(clause.at(i), "move" | "set" | "leave" | "turn") && after >= clause.end;
    plain || clause.phrase(after, lexicon::undo::AS_IT_WAS).is_some_and(|m| after + m >= clause.end)
}

/// Returns true for an undo after a remark: "I didn't mean to delete that, bring it back", "oops, undo". The clause has
/// at most 12 tokens. "bring it back" also needs a word for a mistake.
fn is_later_undo(clause: &Clause) -> bool {
    let after = |i: usize| matches!(clause.before(i), "," | "." | "!" | "so" | "no" | "-" | "please" | "wait" | "and");
    let short = clause.end - clause.start <= 12;
    let slip = || clause.has(lexicon::undo::MISTAKES);
    short
        && (clause.start + 1..clause.end).any(|i| {
            let ends = |n: usize| i + n >= clause.end;
            let undo = || clause.at(i) == "undo" && is_undo_phrase(clause, i);
            let returned = || clause.phrase(i, lexicon::undo::PUT_BACK).is_some_and(ends) || is_restore(clause, i);
            after(i) && (undo() || returned() && slip())
        })
}
