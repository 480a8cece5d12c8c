//! Recognises a short command after its object: complete_task ("I've booked the vet, you can tick that off"),
//! update_task ("the ironing won't happen today, move it to Friday"), delete_task ("the gym is closed, delete it") and
//! create_task ("we're out of tea, add it").
//!
//! In the rules, `remark` is the text before the command, and `from` is the start of the command after courtesies. Each
//! rule returns the action with its confidence, or `None` if it does not match. The task is usually the subject of the
//! remark, see [`grammar::find_subject`].

use std::ops::Range;

use model::task::Priority;

use super::{CommandAction, Guess, complete_task, delete_task_colloquial, grammar, no_request};
use crate::attributes;
use crate::clause::Clause;
use crate::courtesy;
use crate::create::CreatePhrasing;
use crate::lexicon;
use crate::parsed::ClearableField;
use crate::update::UpdateKind;

/// Recognises the first trailing command of the clause. It follows "please" or a link such as a comma, "so", "and" or
/// "but". "tick", "mark", "check" and "cross" in lower case need no link. The first token of the clause begins no
/// trailing command, nor does a verb after "I need to" or "I have to". At each position the order is: completion,
/// cleared due date, deletion, change, addition. Returns `None` if no position matches.
pub(super) fn recognise(clause: &Clause) -> Guess {
    for i in clause.start + 1..clause.end {
        let link = clause.words.is_one_of(i - 1, lexicon::trailing::LINKS) || courtesy::is_please(clause.before(i));
        let bare = matches!(clause.at(i), "tick" | "mark" | "check" | "cross") && !grammar::is_name(clause, i);
        if !link && !bare {
            continue;
        }
        let from = courtesy::skip_opening(clause.words, i, clause.end);
        if from >= clause.end || no_request::is_need(clause, from) {
            continue;
        }
        let remark = clause.start..if link { i - 1 } else { i };
        let guess = recognise_completion(clause, &remark, from)
            .or_else(|| recognise_cleared_field(clause, &remark, from))
            .or_else(|| recognise_deletion(clause, &remark, from))
            .or_else(|| recognise_change(clause, &remark, from))
            .or_else(|| recognise_addition(clause, &remark, from));
        if guess.is_some() {
            return guess;
        }
    }
    None
}

/// Returns true if only closing words and marks follow from `i` on, or nothing.
fn is_closing(clause: &Clause, i: usize) -> bool {
    (i..clause.end).all(|k| lexicon::trailing::ENDINGS.contains(clause.at(k)) || !clause.words.is_word(k))
}

/// Recognises "…, tick it off", "…, cross off that one" (0.88), "… so that's done", "…, done" (0.75). Only closing
/// words ("please", "off the list") may follow. The task is the object of a report at the start of the clause ("I
/// finished …"). Otherwise it is the subject of the remark, else the token after `from`. "strike" and "scratch" with a
/// pronoun do not match. Returns `None` for questions without "you".
fn recognise_completion(clause: &Clause, remark: &Range<usize>, from: usize) -> Guess {
    let stated = clause.phrase(from, lexicon::trailing::DONE).is_some_and(|n| is_closing(clause, from + n));
    let verb = lexicon::trailing::COMPLETE_VERBS.contains(clause.at(from));
    let off = usize::from(matches!(clause.at(from + 1), "off" | "out"));
    let pointed = verb.then(|| grammar::pronoun_length(clause, from + 1 + off)).flatten().filter(|n| {
        let after = from + 1 + off + n;
        is_closing(clause, after) && !matches!(clause.at(from), "strike" | "scratch")
    });
    if !stated && pointed.is_none() || clause.is_question && !clause.has(lexicon::grammar::YOU) {
        return None;
    }
    let about = match complete_task::recognise_done(clause, clause.start) {
        Some((CommandAction::Complete(at, to), _)) => Some(at..to.min(remark.end)),
        _ => grammar::find_subject(clause, remark.clone()),
    };
    let about = about.filter(|about| !about.is_empty()).unwrap_or(from + 1..from + 2);
    Some((CommandAction::Complete(about.start, about.end), if pointed.is_some() { 0.88 } else { 0.75 }))
}

/// Recognises "the fence doesn't need a due date, remove it". Requires a verb of removing with a pronoun, and a due
/// date ("deadline", "a date") and a subject in the remark. Clears the due date of the subject.
fn recognise_cleared_field(clause: &Clause, remark: &Range<usize>, from: usize) -> Guess {
    let verb = lexicon::trailing::CLEAR_VERBS.contains(clause.at(from));
    let field = clause.find_phrase(remark.start, lexicon::trailing::CLEARED_DATE).filter(|(at, _)| *at < remark.end);
    grammar::pronoun_length(clause, from + 1).filter(|_| verb && field.is_some())?;
    let about = grammar::find_subject(clause, remark.clone())?;
    Some((CommandAction::Update(UpdateKind::Clear(ClearableField::Due), about.start, about.end), 0.7))
}

/// Recognises "…, delete it", "…, so strike them from the list", and "delete", "remove", "cancel", "erase", "bin" or
/// "scrap" at the end (0.85). Only closing words may follow the pronoun. The task is the subject of the remark, else
/// the token after the verb. Returns `None` if the command has another object, and for questions without "you".
fn recognise_deletion(clause: &Clause, remark: &Range<usize>, from: usize) -> Guess {
    let n = delete_task_colloquial::verb_length(clause, from)?;
    let after = from + n;
    let pointed = grammar::pronoun_length(clause, after).is_some_and(|m| is_closing(clause, after + m));
    let last = after >= clause.end && lexicon::trailing::DELETE_VERBS.contains(clause.at(from));
    if !pointed && !last || clause.is_question && !clause.has(lexicon::grammar::YOU) {
        return None;
    }
    let about = grammar::find_subject(clause, remark.clone()).unwrap_or(after..clause.end.min(after + 1));
    Some((CommandAction::Delete(about.start, about.end), 0.85))
}

/// Recognises "…, move it to Friday", "… so make it urgent", "…, reopen it" (0.82). The object must be a pronoun or a
/// field ("its date"). "reopen", "untick" and "uncheck" reopen. So do "back", "to open" and similar words after the
/// object, if the clause has no date. A priority at the end or after "to" sets it; "raise" and "lower" alone mean high
/// and low. A date (0.85 with a subject), a distance, "earlier" or "later" in the command is the new date. Without one,
/// a date in the remark is the new date if nothing follows the object (0.7). "do", "have" and "mark" do not accept that
/// date. The task is the subject of the remark, or else the pronoun. Returns `None` without a new value, and for
/// questions without "you".
fn recognise_change(clause: &Clause, remark: &Range<usize>, from: usize) -> Guess {
    if !lexicon::trailing::CHANGE_VERBS.contains(clause.at(from))
        || clause.is_question && !clause.has(lexicon::grammar::YOU)
    {
        return None;
    }
    let its = clause.phrase(from + 1, lexicon::trailing::CHANGED_FIELDS);
    let n = its.or_else(|| grammar::pronoun_length(clause, from + 1))?;
    let after = from + 1 + n;
    let about = grammar::find_subject(clause, remark.clone()).unwrap_or(from + 1..after);
    let update = |change| Some((CommandAction::Update(change, about.start, about.end), 0.82));
    if matches!(clause.at(from), "reopen" | "untick" | "uncheck")
        || clause.phrase(after, lexicon::trailing::BACK_TO_OPEN).is_some()
            && clause.date_at(after + 2).is_none()
            && clause.dates.is_empty()
    {
        return update(UpdateKind::Reopen);
    }
    if let Some(priority) = stated_priority(clause, after) {
        return update(UpdateKind::Priority(priority));
    }
    match clause.at(from) {
        "raise" | "increase" => return update(UpdateKind::Priority(Priority::High)),
        "lower" | "decrease" => return update(UpdateKind::Priority(Priority::Low)),
        _ => {}
    }
    let later = clause.dates.iter().any(|found| found.tokens.start >= from);
    let earlier = clause.dates.iter().find(|found| found.tokens.start < from);
    let relative = clause.find_phrase(after, lexicon::update_task::DISTANCES).is_some()
        || clause.find_phrase(after, lexicon::trailing::SHIFTS).is_some();
    if later && about.end <= from {
        return Some((CommandAction::Update(UpdateKind::Replace(remark.end), about.start, clause.end), 0.85));
    }
    if later || relative {
        return Some((CommandAction::Update(UpdateKind::Due, from + 1, clause.end), 0.82));
    }
    let date = earlier?.tokens.start;
    let bare = !matches!(clause.at(from), "do" | "have" | "mark") && after >= clause.end;
    bare.then_some((CommandAction::Update(UpdateKind::Replace(date), about.start.min(date), clause.end), 0.7))
}

/// Returns the priority at or after `i`: "to low", "urgent", "as high priority". Returns `None` if there is none.
fn stated_priority(clause: &Clause, i: usize) -> Option<Priority> {
    if let Some((_, priority)) = attributes::closing_priority(clause, i) {
        return Some(priority);
    }
    let at = i + clause.phrase(i, lexicon::trailing::PRIORITY_LEADS).unwrap_or(0);
    attributes::priority_level(clause.at(at))
}

/// Recognises "we're out of tea, add it", "the gutters need cleaning, stick that on the list", "…, make a note of it"
/// (0.82). "add" may also end the clause. "put" and similar verbs need "on", "down", "in", "to" or "for" after the
/// pronoun. "save", "log", "record" and "capture" need the end. "add it:" does not match. The remark is the title.
/// Returns `None` if it is empty or the clause begins with a command verb. Questions match.
fn recognise_addition(clause: &Clause, remark: &Range<usize>, from: usize) -> Guess {
    if remark.is_empty() || super::verb_at(clause, clause.start).is_some() {
        return None;
    }
    let whole = clause.phrase(from, lexicon::trailing::ADD_IT).is_some_and(|n| {
        clause.is_exhausted(from + n..clause.end) || clause.at(from) == "can" || is_closing(clause, from + n)
    });
    let last = clause.at(from) == "add" && from + 1 >= clause.end;
    let pointed = grammar::pronoun_length(clause, from + 1).is_some_and(|n| {
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
    (whole || last || pointed).then_some((CommandAction::Create(CreatePhrasing::Preamble, remark.end), 0.82))
}
