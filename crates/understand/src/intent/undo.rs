//! Recognises undo: "undo that", "restore the deleted task", "oops, put it back".

use crate::clause::Clause;
use crate::lexicon;

/// Returns true if the clause asks for undo. It is a fixed command ("take that back", "ctrl z"), or begins with "undo
/// …" or a restoration ("bring back the task I deleted"). An undo after a short remark ("oops, undo") counts, too.
pub(super) fn is_undo(clause: &Clause) -> bool {
    let start = clause.start;
    let closed = clause.phrase(start, lexicon::undo::UNDO).is_some_and(|n| start + n == clause.end);
    closed || is_undo_phrase(clause, start) || is_restore(clause, start) || is_later_undo(clause)
}

/// Returns true for "undo …" and for "revert" alone at `i`. "revert", "reverse" and "unwind" also count before "that",
/// "the last", "what" and similar objects. Returns false if the clause contains a word for a task or an object of
/// another program: "undo the last paragraph in my document".
fn is_undo_phrase(clause: &Clause, i: usize) -> bool {
    let verb = lexicon::undo::VERBS.contains(clause.at(i));
    let alone = i + 1 >= clause.end && matches!(clause.at(i), "undo" | "revert");
    let other = || clause.has(lexicon::undo::OTHER_OBJECTS);
    verb && !other()
        && (alone || clause.phrase(i + 1, lexicon::undo::OBJECTS).is_some() || clause.at(i) == "undo")
        && !clause.has_noun()
}

/// Returns true for the restoration of an action at `i`: "bring back the task I just deleted" ([`is_own_deed`]),
/// "cancel my last action" ([`is_last_step`]), "change it back to how it was" ([`is_turned_back`]). Verbs of restoring
/// are "restore", "bring back", "undelete" and similar ones. "cancel", "ignore", "forget", "discard" and "delete" count
/// with the same objects.
fn is_restore(clause: &Clause, i: usize) -> bool {
    let back = clause.phrase(i, lexicon::undo::RESTORE);
    let verb = back.or_else(|| clause.phrase(i, lexicon::undo::CANCEL));
    let deed = verb.is_some_and(|n| is_own_deed(clause, i + n, back.is_some()) || is_last_step(clause, i + n, i));
    deed || is_turned_back(clause, i)
}

/// Returns true for an action of the user or the assistant that ends the clause: "what I just deleted", "the one that
/// you removed". `i` is the position after the verb. Only words such as "the", "task" or "thing" may precede "I" or
/// "you", at most five. "by mistake", "earlier" and similar words may follow the action. `back` is true after a verb of
/// restoring. Without it, verbs of deleting do not count, and the object must begin with "what", "whatever" or
/// "everything".
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

/// Returns true for "the last command", "my previous change", "that step" at `i` at the end of the clause. `verb` is
/// the position of the verb. "the last one" counts only after "undo", "revert", "undelete" and "un-delete".
fn is_last_step(clause: &Clause, i: usize, verb: usize) -> bool {
    let Some(n) = clause.phrase(i, lexicon::undo::LAST) else { return false };
    let step = lexicon::undo::STEPS.contains(clause.at(i + n));
    let one = clause.at(i + n) == "one" && matches!(clause.at(verb), "undelete" | "un-delete" | "undo" | "revert");
    (step || one) && i + n + 1 >= clause.end
}

/// Returns true for "put that back as it was", "change it how it was", "bring it back" at `i` at the end of the clause.
/// The verb is "put", "bring", "change" or a similar one; the object is "it", "that", "everything" or a similar word.
/// "back" alone suffices except after "move", "set", "leave" and "turn", which need "as it was" or similar words.
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
/// at most 12 tokens. A comma, ".", "!", "-", "so", "no", "and", "please" or "wait" must precede the command. "bring it
/// back" and other restorations also need a word for a mistake ("oops", "wrong") in the clause; "undo" does not.
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
