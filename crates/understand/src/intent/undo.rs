//! Asking to take back what was just done: "undo that", "restore what I deleted", "oops, put it back".

use crate::clause::Clause;
use crate::phrases::{Phrases, phrases};

pub(super) fn asked(clause: &Clause) -> bool {
    const UNDO: Phrases = phrases!(
        "take that back | take it back | put it back | bring it back | restore it | scratch that | go back | \
         rollback | roll back | roll that back | roll it back | i didn't mean that | i did not mean that | \
         i didn't mean to do that | ctrl z | ctrl-z | ctrl + z | control z | cmd z | cmd + z | \
         put it back how it was | put it back the way it was | put that back | bring that back | change it back | \
         go back to how it was | put everything back | unding that | undelete | undelete it | undelete that | \
         reverse that | reverse it | never do that again undo | that was a mistake , undo | un-delete that | \
         un-delete it | un-delete | go back one step | one step back | step back | restore that"
    );
    let start = clause.start;
    let closed = clause.phrase(start, UNDO).is_some_and(|n| start + n == clause.end);
    closed || undoes(clause, start) || takes_back(clause, start) || later(clause)
}

/// "undo that", "revert the last thing you did"; not "undo the last paragraph in my document".
fn undoes(clause: &Clause, i: usize) -> bool {
    const WHAT: Phrases = phrases!(
        "that | it | this | last | the last | my last | your last | the previous | what | everything | all of that | \
         all that | the deletion | the delete | delete | the change | the changes | that last | the most recent | \
         the edit | my previous | previous"
    );
    let verb = phrases!("undo | revert | reverse | unwind").contains(clause.at(i));
    let alone = i + 1 >= clause.end && matches!(clause.at(i), "undo" | "revert");
    let other = || {
        clause.has(phrases!(
            "document | paragraph | code | commit | file | photo | word doc | sentence | slide | car | image | edit in"
        ))
    };
    verb && !other() && (alone || clause.phrase(i + 1, WHAT).is_some() || clause.at(i) == "undo") && !clause.has_noun()
}

/// "bring back the task I just deleted", "cancel my last action", "change it back to how it was".
fn takes_back(clause: &Clause, i: usize) -> bool {
    const BACK: Phrases = phrases!(
        "restore | bring back | get back | give me back | recover | undelete | un-delete | put back | take back | \
         retrieve | reinstate | undo | revert | reverse | roll back | rollback | unremove"
    );
    let back = clause.phrase(i, BACK);
    let verb = back.or_else(|| clause.phrase(i, phrases!("cancel | ignore | forget | discard | delete")));
    let deed = verb.is_some_and(|n| own_deed(clause, i + n, back.is_some()) || last_step(clause, i + n, i));
    deed || turned_back(clause, i)
}

/// "what I just deleted", "the one that you removed".
fn own_deed(clause: &Clause, i: usize, back: bool) -> bool {
    const WHO: Phrases = phrases!("i | you | we | i've | you've | we've");
    const DELETED: Phrases =
        phrases!("deleted | removed | erased | cancelled | canceled | cleared | dropped | lost | scrapped");
    const DONE: Phrases = phrases!("did | done | changed | completed | marked | ticked | checked | said | asked");
    let Some(who) = (i..clause.end.min(i + 6)).find(|k| WHO.contains(clause.at(*k))) else { return false };
    let small = phrases!(
        "what | whatever | the | that | thing | things | one | ones | task | tasks | reminder | item | everything | all | \
         which | last | my | stuff | of"
    );
    let adverbs = phrases!("just | accidentally | mistakenly | wrongly | had | have | only");
    let Some(deed) = (who + 1..clause.end).find(|k| !adverbs.contains(clause.at(*k))) else { return false };
    let fits = back && DELETED.contains(clause.at(deed)) || DONE.contains(clause.at(deed));
    let ends = clause.phrase(
        deed + 1,
        phrases!("by mistake | by accident | accidentally | just now | there | off | earlier | before"),
    );
    who > i
        && (i..who).all(|k| small.contains(clause.at(k)))
        && fits
        && (back || matches!(clause.at(i), "what" | "whatever" | "everything"))
        && deed + 1 + ends.unwrap_or(0) >= clause.end
}

/// "the last command", "my previous change".
fn last_step(clause: &Clause, i: usize, verb: usize) -> bool {
    const LAST: Phrases =
        phrases!("the last | my last | your last | the previous | my previous | that last | last | previous | that");
    const STEP: Phrases = phrases!(
        "command | action | change | changes | step | edit | deletion | delete | operation | request | instruction"
    );
    let Some(n) = clause.phrase(i, LAST) else { return false };
    let step = STEP.contains(clause.at(i + n));
    let one = clause.at(i + n) == "one" && matches!(clause.at(verb), "undelete" | "un-delete" | "undo" | "revert");
    (step || one) && i + n + 1 >= clause.end
}

/// "put that back the way it was", "change it back".
fn turned_back(clause: &Clause, i: usize) -> bool {
    const WAY: Phrases = phrases!(
        "the way it was | the way they were | how it was | how they were | to how it was | to the way it was | \
         to what it was | as it was | like it was | where it was | the way it was before | how it was before | \
         to how it was before | to what it was before | to before"
    );
    let verb = phrases!("put | bring | change | set | turn | switch | move | get | give | take | roll | flip | leave");
    let it = phrases!("it all | it | that | this | them | everything | things | those");
    let Some(n) = clause.phrase(i + 1, it).filter(|_| verb.contains(clause.at(i))) else { return false };
    let back = usize::from(clause.at(i + 1 + n) == "back");
    let after = i + 1 + n + back;
    let plain = back == 1 && !matches!(clause.at(i), "move" | "set" | "leave" | "turn") && after >= clause.end;
    plain || clause.phrase(after, WAY).is_some_and(|m| after + m >= clause.end)
}

/// "I didn't mean to delete that, bring it back", "oops, undo".
fn later(clause: &Clause) -> bool {
    let after = |i: usize| matches!(clause.before(i), "," | "." | "!" | "so" | "no" | "-" | "please" | "wait" | "and");
    let short = clause.end - clause.start <= 12;
    let slip = || {
        clause.has(phrases!(
            "mean to | meant to | mean that | meant that | by accident | accidentally | oops | whoops | by mistake | mistake | \
             wrong | wrong one | never mind | nevermind | my bad | oh no | not what i | changed my mind"
        ))
    };
    let back = phrases!(
        "bring it back | put it back | restore it | bring that back | take it back | take that back | revert | reverse it | restore that"
    );
    short
        && (clause.start + 1..clause.end).any(|i| {
            let ends = |n: usize| i + n >= clause.end;
            let undo = || clause.at(i) == "undo" && undoes(clause, i);
            let returned = || clause.phrase(i, back).is_some_and(ends) || takes_back(clause, i);
            after(i) && (undo() || returned() && slip())
        })
}
