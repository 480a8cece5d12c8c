//! Recognises undo: "undo that", "restore what I deleted", "oops, put it back".

use crate::clause::Clause;
use crate::lexicon;

pub(super) fn is_undo(clause: &Clause) -> bool {
    let start = clause.start;
    let closed = clause.phrase(start, lexicon::undo::UNDO).is_some_and(|n| start + n == clause.end);
    closed || undoes(clause, start) || takes_back(clause, start) || later(clause)
}

/// "undo that", "revert the last thing you did"; not "undo the last paragraph in my document".
fn undoes(clause: &Clause, i: usize) -> bool {
    let verb = lexicon::undo::VERBS.contains(clause.at(i));
    let alone = i + 1 >= clause.end && matches!(clause.at(i), "undo" | "revert");
    let other = || clause.has(lexicon::undo::OTHER_OBJECTS);
    verb && !other()
        && (alone || clause.phrase(i + 1, lexicon::undo::OBJECTS).is_some() || clause.at(i) == "undo")
        && !clause.has_noun()
}

/// "bring back the task I just deleted", "cancel my last action", "change it back to how it was".
fn takes_back(clause: &Clause, i: usize) -> bool {
    let back = clause.phrase(i, lexicon::undo::RESTORE);
    let verb = back.or_else(|| clause.phrase(i, lexicon::undo::CANCEL));
    let deed = verb.is_some_and(|n| own_deed(clause, i + n, back.is_some()) || last_step(clause, i + n, i));
    deed || turned_back(clause, i)
}

/// "what I just deleted", "the one that you removed".
fn own_deed(clause: &Clause, i: usize, back: bool) -> bool {
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

/// "the last command", "my previous change".
fn last_step(clause: &Clause, i: usize, verb: usize) -> bool {
    let Some(n) = clause.phrase(i, lexicon::undo::LAST) else { return false };
    let step = lexicon::undo::STEPS.contains(clause.at(i + n));
    let one = clause.at(i + n) == "one" && matches!(clause.at(verb), "undelete" | "un-delete" | "undo" | "revert");
    (step || one) && i + n + 1 >= clause.end
}

/// "put that back the way it was", "change it back".
fn turned_back(clause: &Clause, i: usize) -> bool {
    let Some(n) = clause.phrase(i + 1, lexicon::undo::IT).filter(|_| lexicon::undo::BACK_VERBS.contains(clause.at(i)))
    else {
        return false;
    };
    let back = usize::from(clause.at(i + 1 + n) == "back");
    let after = i + 1 + n + back;
    let plain = back == 1 && !matches!(clause.at(i), "move" | "set" | "leave" | "turn") && after >= clause.end;
    plain || clause.phrase(after, lexicon::undo::AS_IT_WAS).is_some_and(|m| after + m >= clause.end)
}

/// "I didn't mean to delete that, bring it back", "oops, undo".
fn later(clause: &Clause) -> bool {
    let after = |i: usize| matches!(clause.before(i), "," | "." | "!" | "so" | "no" | "-" | "please" | "wait" | "and");
    let short = clause.end - clause.start <= 12;
    let slip = || clause.has(lexicon::undo::MISTAKES);
    short
        && (clause.start + 1..clause.end).any(|i| {
            let ends = |n: usize| i + n >= clause.end;
            let undo = || clause.at(i) == "undo" && undoes(clause, i);
            let returned = || clause.phrase(i, lexicon::undo::PUT_BACK).is_some_and(ends) || takes_back(clause, i);
            after(i) && (undo() || returned() && slip())
        })
}
