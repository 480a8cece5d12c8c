//! Recognises complete_task by its verb: "complete the report", "mark it as done", "tick off the milk", "wrap up the
//! budget task", "I finished the report", "note that the lawn is mowed".

use super::{Act, Guess, complete_task_statement, grammar, no_request};
use crate::attributes;
use crate::clause::Clause;
use crate::lexicon;
use crate::scope;
use crate::update::Change;

/// "close out the form", "wrap up the budget task", "resolve the test task", "put a tick next to the bread".
pub(super) fn recognise_wrap_up(clause: &Clause, i: usize) -> Guess {
    if let Some(n) = clause
        .phrase(i, lexicon::complete_task::TICK_BOX)
        .or_else(|| clause.phrase(i, lexicon::complete_task::TICK_OFF).filter(|n| grammar::is_definite(clause, i + n)))
    {
        return (i + n < clause.end && !clause.asked).then_some((Act::Complete(i + n, clause.end), 0.86));
    }
    let n = clause.phrase(i, lexicon::complete_task::WRAP_UP)?;
    let end = clause.seek(i + n, lexicon::grammar::COMMA).map_or(clause.end, |(at, _)| at);
    let entry = grammar::has_task(clause, i + n..end) || clause.at(end.saturating_sub(1)) == "one";
    (entry && !clause.asked && clause.dates.is_empty() && !clause.is_foreign())
        .then_some((Act::Complete(i + n, end), 0.82))
}

pub(super) fn recognise(clause: &Clause, i: usize) -> Guess {
    let noun = clause.has_noun();
    if clause.is_elsewhere() || clause.at(i) == "close" && !noun || scope::is_thing(clause, i + 1) {
        return None;
    }
    if no_request::is_wish(clause, i) && !noun && i + 1 < clause.end {
        return Some((Act::Create(crate::create::Form::Rest, i), 0.7));
    }
    let urgent = (i + 1..clause.end).any(|k| attributes::priority_at(clause, k).is_some());
    if clause.at(i) == "finish" && !noun && (!clause.dates.is_empty() || urgent) {
        return Some((Act::Create(crate::create::Form::Rest, i), 0.6));
    }
    Some((Act::Complete(i + 1, clause.end), if noun { 0.94 } else { 0.82 }))
}

pub(super) fn recognise_mark(clause: &Clause, i: usize) -> Guess {
    let is_mark = matches!(clause.at(i), "mark" | "flag");
    if is_mark && clause.seek(i + 1, lexicon::complete_task::NOT_DONE).is_some() {
        return Some((Act::Update(Change::Reopen, i + 1, clause.end), 0.9));
    }
    if is_mark && let Some((_, priority)) = attributes::closing_priority(clause, i + 1) {
        return Some((Act::Update(Change::Priority(priority), i + 1, clause.end), 0.9));
    }
    if clause.at(i + 1) == "off" || clause.at(i + 1) == "out" && clause.at(i) != "check" {
        return Some((Act::Complete(i + 2, clause.end), 0.93));
    }
    if grammar::pointer(clause, i + 1).is_some_and(|n| clause.at(i + 1 + n) == "out" && i + 2 + n == clause.end) {
        return Some((Act::Complete(i + 1, clause.end - 1), 0.85));
    }
    if let Some(guess) = recognise_marked_done(clause, i) {
        return Some(guess);
    }
    match clause.at(i) {
        "mark"
            if clause
                .dates
                .last()
                .is_some_and(|found| found.parts.repeat.is_some() && found.tokens.end == clause.end) =>
        {
            Some((Act::Update(Change::Any, i + 1, clause.end), 0.75))
        }
        "scratch" if !clause.is_foreign() && i + 1 < clause.end => Some((Act::Delete(i + 1, clause.end), 0.7)),
        "tick" if !clause.is_foreign() && i + 1 < clause.end => Some((Act::Complete(i + 1, clause.end), 0.75)),
        "mark" if clause.has_noun() => Some((Act::Complete(i + 1, clause.end), 0.7)),
        "check" if clause.has_noun() => Some((Act::List(i + 1), 0.85)),
        _ => None,
    }
}

/// "mark … as done", "cross … off the list".
fn recognise_marked_done(clause: &Clause, i: usize) -> Guess {
    let k = (i + 1..clause.end).find(|k| lexicon::complete_task::STATES.contains(clause.at(*k)))?;
    let off = clause.at(k) == "off";
    if !off && clause.at(i) != "mark" {
        return None;
    }
    if clause.at(i + 1) == "as" && !off {
        return Some((Act::Complete(k + 1, clause.end), 0.9));
    }
    let end = if matches!(clause.before(k), "as" | "is" | "to") { k - 1 } else { k };
    Some((Act::Complete(i + 1, if off && k + 1 < clause.end { clause.end } else { end }), 0.94))
}

/// "I finished …", "done with …", "… is done", "the first and third are done".
pub(super) fn recognise_done(clause: &Clause, i: usize) -> Guess {
    if let Some(guess) = complete_task_statement::recognise_alone(clause, i) {
        return Some(guess);
    }
    if let Some(n) = clause.phrase(i, lexicon::complete_task::I_DID) {
        let listing = matches!(clause.at(i), "completed" | "finished")
            && clause.noun_in(i + n..clause.end.min(i + n + 3)).is_some_and(|noun| noun.plural)
            && !grammar::is_definite(clause, i + n)
            || matches!(clause.at(i), "completed" | "finished")
                && clause.noun_at(i + n).is_some_and(|noun| noun.plural);
        let asked = clause.has(lexicon::complete_task::NOT_DEEDS) || clause.words.at(clause.end) == "?";
        let tired = clause.before(i + n) == "with"
            && matches!(clause.at(i), "i'm" | "im" | "i" | "i've")
            && !is_finished_thing(clause, i + n);
        let fits = !listing && !asked && !tired && !clause.is_foreign() && i + n < clause.end;
        let end = clause.seek(i + n, lexicon::grammar::COMMA).map_or(clause.end, |(at, _)| at);
        let fits = fits && clause.at(i + n) != "not";
        return fits.then_some((Act::Complete(i + n, end), 0.85));
    }
    let number = clause.at(i + 1) == "#" || crate::numbers::figures(clause.at(i + 1)).is_some();
    if clause.at(i) == "done" && number {
        return Some((Act::Complete(i + 1, clause.end), 0.8));
    }
    complete_task_statement::recognise_deed(clause, i).or_else(|| complete_task_statement::recognise(clause, i))
}

/// "I'm done with the dishes", "with packing"; not "with men", "with this conversation".
fn is_finished_thing(clause: &Clause, i: usize) -> bool {
    let own = grammar::is_definite(clause, i) || clause.at(i).ends_with("ing") || clause.end - i == 1;
    own && (!lexicon::complete_task::TALK.contains(clause.at(i)) || clause.has_noun())
        && !clause.has(lexicon::complete_task::TALK_THINGS)
}

/// "note that the lawn is mowed", "record that I've paid the rent": news of a task, by whatever it is told.
pub(super) fn recognise_report(clause: &Clause, i: usize) -> Guess {
    let n = clause.phrase(i, lexicon::complete_task::REPORTS)?;
    recognise_done(clause, i + n)
}
