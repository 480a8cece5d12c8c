//! Recognises a short command behind its object: complete_task ("I've booked the vet, you can tick that off"),
//! update_task ("the ironing won't happen today, move it to Friday"), delete_task ("the gym is closed, delete it") and
//! create_task ("we're out of tea, add it").

use std::ops::Range;

use model::task::Priority;

use super::{Act, Guess, complete_task, delete_task_colloquial, grammar, no_request};
use crate::attributes;
use crate::clause::Clause;
use crate::courtesy;
use crate::create::Form;
use crate::lexicon;
use crate::reading::Field;
use crate::update::Change;

pub(super) fn recognise(clause: &Clause) -> Guess {
    for i in clause.start + 1..clause.end {
        let link = clause.words.is_one_of(i - 1, lexicon::trailing::LINKS) || courtesy::is_please(clause.before(i));
        let bare = matches!(clause.at(i), "tick" | "mark" | "check" | "cross") && !grammar::is_name(clause, i);
        if !link && !bare {
            continue;
        }
        let from = courtesy::after(clause.words, i, clause.end);
        if from >= clause.end || no_request::is_need(clause, from) {
            continue;
        }
        let said = clause.start..if link { i - 1 } else { i };
        let guess = recognise_completion(clause, &said, from)
            .or_else(|| recognise_cleared_field(clause, &said, from))
            .or_else(|| recognise_deletion(clause, &said, from))
            .or_else(|| recognise_change(clause, &said, from))
            .or_else(|| recognise_addition(clause, &said, from));
        if guess.is_some() {
            return guess;
        }
    }
    None
}

/// Whether only words of small weight follow.
fn ends(clause: &Clause, i: usize) -> bool {
    (i..clause.end).all(|k| lexicon::trailing::ENDINGS.contains(clause.at(k)) || !clause.words.is_word(k))
}

/// "…, tick it off", "… so that's done", "…, done".
fn recognise_completion(clause: &Clause, said: &Range<usize>, from: usize) -> Guess {
    let stated = clause.phrase(from, lexicon::trailing::DONE).is_some_and(|n| ends(clause, from + n));
    let verb = lexicon::trailing::COMPLETE_VERBS.contains(clause.at(from));
    let off = usize::from(matches!(clause.at(from + 1), "off" | "out"));
    let pointed = verb.then(|| grammar::pointer(clause, from + 1 + off)).flatten().filter(|n| {
        let after = from + 1 + off + n;
        ends(clause, after) && !matches!(clause.at(from), "strike" | "scratch")
    });
    if !stated && pointed.is_none() || clause.asked && !clause.has(lexicon::grammar::YOU) {
        return None;
    }
    let about = match complete_task::recognise_done(clause, clause.start) {
        Some((Act::Complete(at, to), _)) => Some(at..to.min(said.end)),
        _ => grammar::subject(clause, said.clone()),
    };
    let about = about.filter(|about| !about.is_empty()).unwrap_or(from + 1..from + 2);
    Some((Act::Complete(about.start, about.end), if pointed.is_some() { 0.88 } else { 0.75 }))
}

/// "the fence doesn't need a due date, remove it".
fn recognise_cleared_field(clause: &Clause, said: &Range<usize>, from: usize) -> Guess {
    let verb = lexicon::trailing::CLEAR_VERBS.contains(clause.at(from));
    let field = clause.seek(said.start, lexicon::trailing::CLEARED_DATE).filter(|(at, _)| *at < said.end);
    grammar::pointer(clause, from + 1).filter(|_| verb && field.is_some())?;
    let about = grammar::subject(clause, said.clone())?;
    Some((Act::Update(Change::Clear(Field::Due), about.start, about.end), 0.7))
}

/// "…, delete it", "…, so strike them from the list", "…, delete".
fn recognise_deletion(clause: &Clause, said: &Range<usize>, from: usize) -> Guess {
    let n = delete_task_colloquial::verb_length(clause, from)?;
    let after = from + n;
    let pointed = grammar::pointer(clause, after).is_some_and(|m| ends(clause, after + m));
    let last = after >= clause.end && lexicon::trailing::DELETE_VERBS.contains(clause.at(from));
    if !pointed && !last || clause.asked && !clause.has(lexicon::grammar::YOU) {
        return None;
    }
    let about = grammar::subject(clause, said.clone()).unwrap_or(after..clause.end.min(after + 1));
    Some((Act::Delete(about.start, about.end), 0.85))
}

/// "…, move it to Friday", "… so make it urgent", "…, reopen it".
fn recognise_change(clause: &Clause, said: &Range<usize>, from: usize) -> Guess {
    if !lexicon::trailing::CHANGE_VERBS.contains(clause.at(from)) || clause.asked && !clause.has(lexicon::grammar::YOU)
    {
        return None;
    }
    let its = clause.phrase(from + 1, lexicon::trailing::CHANGED_FIELDS);
    let n = its.or_else(|| grammar::pointer(clause, from + 1))?;
    let after = from + 1 + n;
    let about = grammar::subject(clause, said.clone()).unwrap_or(from + 1..after);
    let update = |change| Some((Act::Update(change, about.start, about.end), 0.82));
    if matches!(clause.at(from), "reopen" | "untick" | "uncheck")
        || clause.phrase(after, lexicon::trailing::BACK_TO_OPEN).is_some()
            && clause.date_at(after + 2).is_none()
            && clause.dates.is_empty()
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
    let relative = clause.seek(after, lexicon::update_task::DISTANCES).is_some()
        || clause.seek(after, lexicon::trailing::SHIFTS).is_some();
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
    let at = i + clause.phrase(i, lexicon::trailing::PRIORITY_LEADS).unwrap_or(0);
    attributes::level(clause.at(at))
}

/// "we're out of tea, add it", "the gutters need cleaning, stick that on the list".
fn recognise_addition(clause: &Clause, said: &Range<usize>, from: usize) -> Guess {
    if said.is_empty() || super::verb_at(clause, clause.start).is_some() {
        return None;
    }
    let whole = clause
        .phrase(from, lexicon::trailing::ADD_IT)
        .is_some_and(|n| clause.is_spent(from + n..clause.end) || clause.at(from) == "can" || ends(clause, from + n));
    let last = clause.at(from) == "add" && from + 1 >= clause.end;
    let pointed = grammar::pointer(clause, from + 1).is_some_and(|n| {
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
