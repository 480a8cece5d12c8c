//! A remark, and then a short command about what it named: "I've booked the vet, you can tick that off", "the ironing
//! won't happen today, move it to Friday", "we're out of tea, add it".

use std::ops::Range;

use model::task::Priority;

use super::{Act, Guess, erase, finish, mood, shape};
use crate::attributes;
use crate::clause::Clause;
use crate::courtesy;
use crate::create::Form;
use crate::phrases::{Phrases, phrases};
use crate::reading::Field;
use crate::update::Change;

const LINKS: Phrases = phrases!(", | so | and | - | – | — | : | ; | ! | . | ? | then | please | but | ) | …");

pub(super) fn read(clause: &Clause) -> Guess {
    for i in clause.start + 1..clause.end {
        let link = clause.words.is_one_of(i - 1, LINKS) || courtesy::is_please(clause.before(i));
        let bare = matches!(clause.at(i), "tick" | "mark" | "check" | "cross") && !shape::is_name(clause, i);
        if !link && !bare {
            continue;
        }
        let from = courtesy::after(clause.words, i, clause.end);
        if from >= clause.end || mood::is_need(clause, from) {
            continue;
        }
        let said = clause.start..if link { i - 1 } else { i };
        let guess = completed(clause, &said, from)
            .or_else(|| cleared(clause, &said, from))
            .or_else(|| deleted(clause, &said, from))
            .or_else(|| changed(clause, &said, from))
            .or_else(|| noted(clause, &said, from));
        if guess.is_some() {
            return guess;
        }
    }
    None
}

/// Whether only words of small weight follow.
fn ends(clause: &Clause, i: usize) -> bool {
    let small = phrases!(
        "off | out | done | as | complete | completed | finished | please | now | from | off the list | my | the | \
         list | to | too | then | for | me | away | lol | ok | thanks | and | of | down | also | on | it | all | \
         tasks | to-do | todo | one | mate | there"
    );
    (i..clause.end).all(|k| small.contains(clause.at(k)) || !clause.words.is_word(k))
}

/// "…, tick it off", "… so that's done", "…, done".
fn completed(clause: &Clause, said: &Range<usize>, from: usize) -> Guess {
    const STATED: Phrases = phrases!(
        "done | that's done | thats done | it's done | its done | that is done | that one's done | that's that done | \
         that's complete | it's complete | it's finished | that's finished | that one's complete | that's sorted | \
         it's sorted | that's off the list | that's off my list | that's one less | consider it done | call it done | \
         it can be marked | it can be ticked | that can be ticked | that can be marked | that can be checked | \
         it can be checked | it can be closed | that can be closed | job done | all done | tick | check | sorted | \
         mission accomplished | that is finished | it is finished | it is done | it's all done | that's all done"
    );
    let stated = clause.phrase(from, STATED).is_some_and(|n| ends(clause, from + n));
    let verb = phrases!("tick | check | cross | mark | close | strike | scratch | complete | finish | resolve")
        .contains(clause.at(from));
    let off = usize::from(matches!(clause.at(from + 1), "off" | "out"));
    let pointed = verb.then(|| shape::pointer(clause, from + 1 + off)).flatten().filter(|n| {
        let after = from + 1 + off + n;
        ends(clause, after) && !matches!(clause.at(from), "strike" | "scratch")
    });
    if !stated && pointed.is_none() || clause.asked && !clause.has(phrases!("you")) {
        return None;
    }
    let about = match finish::done(clause, clause.start) {
        Some((Act::Complete(at, to), _)) => Some(at..to.min(said.end)),
        _ => shape::subject(clause, said.clone()),
    };
    let about = about.filter(|about| !about.is_empty()).unwrap_or(from + 1..from + 2);
    Some((Act::Complete(about.start, about.end), if pointed.is_some() { 0.88 } else { 0.75 }))
}

/// "the fence doesn't need a due date, remove it".
fn cleared(clause: &Clause, said: &Range<usize>, from: usize) -> Guess {
    let verb = phrases!("remove | delete | clear | drop | scrap | take").contains(clause.at(from));
    let dates = phrases!("due date | deadline | a date | due dates");
    let field = clause.seek(said.start, dates).filter(|(at, _)| *at < said.end);
    shape::pointer(clause, from + 1).filter(|_| verb && field.is_some())?;
    let about = shape::subject(clause, said.clone())?;
    Some((Act::Update(Change::Clear(Field::Due), about.start, about.end), 0.7))
}

/// "…, delete it", "…, so strike them from the list", "…, delete".
fn deleted(clause: &Clause, said: &Range<usize>, from: usize) -> Guess {
    let n = erase::verb(clause, from)?;
    let after = from + n;
    let pointed = shape::pointer(clause, after).is_some_and(|m| ends(clause, after + m));
    let last =
        after >= clause.end && phrases!("delete | remove | cancel | erase | bin | scrap").contains(clause.at(from));
    if !pointed && !last || clause.asked && !clause.has(phrases!("you")) {
        return None;
    }
    let about = shape::subject(clause, said.clone()).unwrap_or(after..clause.end.min(after + 1));
    Some((Act::Delete(about.start, about.end), 0.85))
}

/// "…, move it to Friday", "… so make it urgent", "…, reopen it".
fn changed(clause: &Clause, said: &Range<usize>, from: usize) -> Guess {
    const VERBS: Phrases = phrases!(
        "move | push | bump | shift | change | set | make | put | update | reschedule | postpone | delay | raise | \
         lower | reopen | untick | uncheck | snooze | do | bring | adjust | switch | defer | fix | correct | extend | \
         mark | have | amend | edit | pull | drag | schedule | increase | decrease"
    );
    if !VERBS.contains(clause.at(from)) || clause.asked && !clause.has(phrases!("you")) {
        return None;
    }
    let its = clause
        .phrase(from + 1, phrases!("its priority | the priority | its due date | the date | the due date | its date"));
    let n = its.or_else(|| shape::pointer(clause, from + 1))?;
    let after = from + 1 + n;
    let about = shape::subject(clause, said.clone()).unwrap_or(from + 1..after);
    let update = |change| Some((Act::Update(change, about.start, about.end), 0.82));
    let back = phrases!(
        "back to pending | back to open | back | to pending | to open | to not done | as pending | as not done | \
         to undone | as open | to do | back to undone"
    );
    if matches!(clause.at(from), "reopen" | "untick" | "uncheck")
        || clause.phrase(after, back).is_some() && clause.date_at(after + 2).is_none() && clause.dates.is_empty()
    {
        return update(Change::Reopen);
    }
    if let Some(priority) = priority(clause, after) {
        return update(Change::Priority(priority));
    }
    match clause.at(from) {
        "raise" | "increase" => return update(Change::Priority(Priority::High)),
        "lower" | "decrease" => return update(Change::Priority(Priority::Low)),
        _ => {}
    }
    let later = clause.dates.iter().any(|found| found.tokens.start >= from);
    let earlier = clause.dates.iter().find(|found| found.tokens.start < from);
    let relative = clause.seek(after, super::change::DISTANCES).is_some()
        || clause.seek(after, phrases!("earlier | later | sooner")).is_some();
    if later && about.end <= from {
        return Some((Act::Update(Change::Replace(said.end), about.start, clause.end), 0.85));
    }
    if later || relative {
        return Some((Act::Update(Change::Due, from + 1, clause.end), 0.82));
    }
    let date = earlier?.tokens.start;
    let bare = !matches!(clause.at(from), "do" | "have" | "mark") && after >= clause.end;
    bare.then_some((Act::Update(Change::Replace(date), about.start.min(date), clause.end), 0.7))
}

/// "to low", "urgent", "as high priority" from `i` on.
fn priority(clause: &Clause, i: usize) -> Option<Priority> {
    if let Some((_, priority)) = attributes::closing_priority(clause, i) {
        return Some(priority);
    }
    let at = i + clause.phrase(i, phrases!("to | as | a")).unwrap_or(0);
    attributes::level(clause.at(at))
}

/// "we're out of tea, add it", "the gutters need cleaning, stick that on the list".
fn noted(clause: &Clause, said: &Range<usize>, from: usize) -> Guess {
    const NOTES: Phrases = phrases!(
        "make a note of it | make a note of that | make a note | note it down | note that down | write it down | \
         write that down | don't let me miss it | don't let me forget it | don't let me forget | \
         create a task for it | create a task for that | make it a task | make that a task | add a task for it | \
         add a task for that | add a task | create a task | make a task for it | make a task for that | \
         can they go on | can it go on | can that go on | they should go on | it should go on | put it down | \
         add please | add to list | add to the list | add to my list"
    );
    if said.is_empty() || super::verb_at(clause, clause.start).is_some() {
        return None;
    }
    let whole = clause
        .phrase(from, NOTES)
        .is_some_and(|n| clause.is_spent(from + n..clause.end) || clause.at(from) == "can" || ends(clause, from + n));
    let last = clause.at(from) == "add" && from + 1 >= clause.end;
    let pointed = shape::pointer(clause, from + 1).is_some_and(|n| {
        let next = clause.at(from + 1 + n);
        let placed = matches!(next, "on" | "down" | "in" | "to" | "for" | "onto");
        match clause.at(from) {
            "add" => next != ":",
            "put" | "stick" | "pop" | "whack" | "chuck" | "throw" | "jot" | "write" | "note" | "bung" | "stick'" => {
                placed
            }
            "save" | "log" | "record" | "capture" => from + 1 + n >= clause.end,
            _ => false,
        }
    });
    (whole || last || pointed).then_some((Act::Create(Form::Preamble, said.end), 0.82))
}
