//! Recognises complete_task by its verb: "complete the report", "mark it as done", "tick off the milk", "wrap up the
//! budget task", "I finished the report", "note that the lawn is mowed".
//!
//! The rules take the position `i` of the verb. They return the action with its confidence, or `None` if they do not
//! match. A *word for a task* is a noun for a task, a reminder or a list. A *definite* object begins with "the", "my",
//! "it", a quote, a number, a name or such a noun.

use super::{CommandAction, Guess, complete_task_past, complete_task_statement, grammar, no_request};
use crate::attributes;
use crate::clause::Clause;
use crate::lexicon;
use crate::scope;
use crate::update::UpdateKind;

/// Recognises verbs of finishing at `i`. "put a tick next to the bread" needs any object, "close out the form" a
/// definite one (0.86). "wrap up the budget task", "archive …", "close …" (0.82) need a word for a task or a reminder,
/// or "one" at the end. The clause then must contain no date and no word of another domain or plan. Their object ends
/// before a comma. Questions do not match.
pub(super) fn recognise_wrap_up(clause: &Clause, i: usize) -> Guess {
    if let Some(n) = clause
        .phrase(i, lexicon::complete_task::TICK_BOX)
        .or_else(|| clause.phrase(i, lexicon::complete_task::TICK_OFF).filter(|n| grammar::is_definite(clause, i + n)))
    {
        return (i + n < clause.end && !clause.is_question)
            .then_some((CommandAction::Complete(i + n, clause.end), 0.86));
    }
    let n = clause.phrase(i, lexicon::complete_task::WRAP_UP)?;
    let end = clause.find_phrase(i + n, lexicon::grammar::COMMA).map_or(clause.end, |(at, _)| at);
    let entry = grammar::has_task(clause, i + n..end) || clause.at(end.saturating_sub(1)) == "one";
    (entry && !clause.is_question && clause.dates.is_empty() && !clause.is_out_of_scope())
        .then_some((CommandAction::Complete(i + n, end), 0.82))
}

/// Recognises "complete …", "finish …" and "close …" at `i`: 0.94 with a word for a task, else 0.82. Without such a
/// word, "I want to finish …" creates a task (0.7). So does "finish …" with a date or a priority (0.6). Returns `None`
/// for other domains and for objects such as files and photos. "close" needs a word for a task. Other verbs need no
/// object; their range is empty then.
pub(super) fn recognise(clause: &Clause, i: usize) -> Guess {
    let noun = clause.has_noun();
    if clause.is_other_domain() || clause.at(i) == "close" && !noun || scope::is_other_thing(clause, i + 1) {
        return None;
    }
    if no_request::is_wish(clause, i) && !noun && i + 1 < clause.end {
        return Some((CommandAction::Create(crate::create::CreatePhrasing::Rest, i), 0.7));
    }
    let urgent = (i + 1..clause.end).any(|k| attributes::priority_at(clause, k).is_some());
    if clause.at(i) == "finish" && !noun && (!clause.dates.is_empty() || urgent) {
        return Some((CommandAction::Create(crate::create::CreatePhrasing::Rest, i), 0.6));
    }
    Some((CommandAction::Complete(i + 1, clause.end), if noun { 0.94 } else { 0.82 }))
}

/// Recognises "mark …", "check …", "tick …", "cross …" and "scratch …" at `i`. "mark" and "flag" with "as not done"
/// reopen, and with a priority at the end set it (0.9). "tick off …", "cross out …" (0.93) and "tick it out" (0.85)
/// complete; "check out …" does not. "mark … as done" and "cross … off" complete ([`recognise_marked_done`]). "mark …
/// weekly" with the repetition at the end updates (0.75). "scratch …" deletes (0.7) and "tick …" completes (0.75),
/// outside of other domains and plans. With a word for a task, "mark …" completes (0.7) and "check …" lists (0.85). The
/// first match in this order decides. Returns `None` for everything else.
pub(super) fn recognise_mark(clause: &Clause, i: usize) -> Guess {
    let is_mark = matches!(clause.at(i), "mark" | "flag");
    if is_mark && clause.find_phrase(i + 1, lexicon::complete_task::NOT_DONE).is_some() {
        return Some((CommandAction::Update(UpdateKind::Reopen, i + 1, clause.end), 0.9));
    }
    if is_mark && let Some((_, priority)) = attributes::closing_priority(clause, i + 1) {
        return Some((CommandAction::Update(UpdateKind::Priority(priority), i + 1, clause.end), 0.9));
    }
    if clause.at(i + 1) == "off" || clause.at(i + 1) == "out" && clause.at(i) != "check" {
        return Some((CommandAction::Complete(i + 2, clause.end), 0.93));
    }
    if grammar::pronoun_length(clause, i + 1).is_some_and(|n| clause.at(i + 1 + n) == "out" && i + 2 + n == clause.end)
    {
        return Some((CommandAction::Complete(i + 1, clause.end - 1), 0.85));
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
            Some((CommandAction::Update(UpdateKind::Any, i + 1, clause.end), 0.75))
        }
        "scratch" if !clause.is_out_of_scope() && i + 1 < clause.end => {
            Some((CommandAction::Delete(i + 1, clause.end), 0.7))
        }
        "tick" if !clause.is_out_of_scope() && i + 1 < clause.end => {
            Some((CommandAction::Complete(i + 1, clause.end), 0.75))
        }
        "mark" if clause.has_noun() => Some((CommandAction::Complete(i + 1, clause.end), 0.7)),
        "check" if clause.has_noun() => Some((CommandAction::List(i + 1), 0.85)),
        _ => None,
    }
}

/// Recognises "mark … as done", "cross … off the list" (0.94) and "mark as done …" (0.9) after the verb at `i`. The
/// first of "done", "complete", "finished" and "off" decides. Only "mark" accepts words other than "off". The task
/// stands between the verb and the state, without "as", "is" or "to". After "mark as done", it follows the state. If
/// words follow "off", the range includes them. Returns `None` if no such word follows, and for "done" after another
/// verb.
fn recognise_marked_done(clause: &Clause, i: usize) -> Guess {
    let k = (i + 1..clause.end).find(|k| lexicon::complete_task::STATES.contains(clause.at(*k)))?;
    let off = clause.at(k) == "off";
    if !off && clause.at(i) != "mark" {
        return None;
    }
    if clause.at(i + 1) == "as" && !off {
        return Some((CommandAction::Complete(k + 1, clause.end), 0.9));
    }
    let end = if matches!(clause.before(k), "as" | "is" | "to") { k - 1 } else { k };
    Some((CommandAction::Complete(i + 1, if off && k + 1 < clause.end { clause.end } else { end }), 0.94))
}

/// Recognises reports at `i`: "done!", "I finished …", "done with …", "done 3", "… is done", "the first and third are
/// done". The object of "I finished …" (0.85) ends before a comma. That form excludes "remind me", "it was", a question
/// mark after the clause, "not", other domains and plans. "completed tasks" names a list and does not match. "I'm done
/// with …" needs an object that can be finished, see [`is_finished_thing`]. If "I finished" or a similar phrase begins
/// at `i` and does not fit, nothing else is tried. "done 3" has 0.8. Other reports are passed to
/// [`complete_task_statement`].
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
        let asked = clause.has(lexicon::complete_task::NOT_REPORTS) || clause.words.at(clause.end) == "?";
        let tired = clause.before(i + n) == "with"
            && matches!(clause.at(i), "i'm" | "im" | "i" | "i've")
            && !is_finished_thing(clause, i + n);
        let fits = !listing && !asked && !tired && !clause.is_out_of_scope() && i + n < clause.end;
        let end = clause.find_phrase(i + n, lexicon::grammar::COMMA).map_or(clause.end, |(at, _)| at);
        let fits = fits && clause.at(i + n) != "not";
        return fits.then_some((CommandAction::Complete(i + n, end), 0.85));
    }
    // "resolved it": a deed with a pronoun
    let deed = clause.start + 2 == clause.end
        && matches!(clause.at(i + 1), "it" | "that" | "this" | "them" | "those" | "both")
        && complete_task_past::is_chore_report(clause.at(i));
    if deed && i == clause.start && !clause.is_question {
        return Some((CommandAction::Complete(i + 1, clause.end), 0.75));
    }
    let number = clause.at(i + 1) == "#" || crate::numbers::parse_digits(clause.at(i + 1)).is_some();
    if clause.at(i) == "done" && number {
        return Some((CommandAction::Complete(i + 1, clause.end), 0.8));
    }
    complete_task_statement::recognise_deed(clause, i).or_else(|| complete_task_statement::recognise(clause, i))
}

/// Returns true if the object at `i` can be finished. It is definite ("the dishes"), a word in "ing" ("packing"), or
/// the last token of the clause. "you", "this", "life" and similar objects count only with a word for a task. Returns
/// false if the clause mentions a conversation, a chat or a relationship.
fn is_finished_thing(clause: &Clause, i: usize) -> bool {
    let own = grammar::is_definite(clause, i) || clause.at(i).ends_with("ing") || clause.end - i == 1;
    own && (!lexicon::complete_task::TALK_OBJECTS.contains(clause.at(i)) || clause.has_noun())
        && !clause.has(lexicon::complete_task::TALK_THINGS)
}

/// Recognises a report after an introduction at `i`: "note that the lawn is mowed", "record that I've paid the rent".
pub(super) fn recognise_report(clause: &Clause, i: usize) -> Guess {
    let n = clause.phrase(i, lexicon::complete_task::REPORTS)?;
    recognise_done(clause, i + n)
}
