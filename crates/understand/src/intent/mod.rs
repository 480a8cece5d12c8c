//! Decides what a clause asks for, from its verb and what the verb is about.
//!
//! The first command in the clause governs: what comes after "remind me to" is a title, whatever verbs stand in it.

mod change;
mod finish;
mod fixed;
mod make;
pub(crate) mod model;
mod mood;
mod past;
mod question;
mod rest;

use crate::clause::Clause;
use crate::create::Form;
use crate::lexicon::{self, Verb};
use crate::phrases::{Phrases, phrases};
use crate::update::Change;
pub(crate) use make::to_reminder;
use model::Verdict;
pub(crate) use rest::is_doing;

/// What is asked, and the tokens its object lies in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Act {
    Undo,
    Create(Form, usize),
    List(usize),
    /// A question about one task.
    Check(usize, usize),
    Complete(usize, usize),
    Delete(usize, usize),
    Update(Change, usize, usize),
    /// A reminder for a task that exists.
    Remind(usize),
}

/// An act and how sure it is.
pub(crate) type Guess = Option<(Act, f64)>;

pub(crate) fn decide(clause: &Clause) -> Verdict {
    if mood::wants_nothing(clause) {
        return Verdict::without_model(None);
    }
    let verdict = model::settle(clause, by_rules(clause));
    let guess = mood::checked(clause, verdict.guess);
    if guess == verdict.guess { verdict } else { Verdict::without_model(guess) }
}

/// What the rules make of a clause that wants something.
pub(crate) fn by_rules(clause: &Clause) -> Guess {
    if is_undo(clause) {
        return Some((Act::Undo, 0.97));
    }
    mood::check(clause).or_else(|| asked_for(clause))
}

fn asked_for(clause: &Clause) -> Guess {
    at(clause, clause.start)
        .or_else(|| question::read(clause))
        .or_else(|| rest::later(clause))
        .or_else(|| rest::without_verb(clause))
        .or_else(|| rest::errand(clause))
}

fn is_undo(clause: &Clause) -> bool {
    const UNDO: Phrases = phrases!(
        "undo | undo that | undo it | undo this | undo the last change | undo my last change | \
         undo the last action | undo last change | undo the last one | undo last | undo my last action | \
         undo the deletion | undo delete | undo what you just did | undo what i just did | take that back | \
         take it back | revert that | revert it | revert | revert the last change | revert my last change | \
         revert last change | roll that back | roll back | rollback | roll it back | put it back | bring it back | \
         restore it | reverse that | reverse the last change | i didn't mean that | scratch that | \
         i did not mean that | go back"
    );
    let undo = clause.at(clause.start) == "undo" && !clause.has_noun();
    undo || clause.phrase(clause.start, UNDO).is_some_and(|n| clause.start + n == clause.end)
}

/// The command that begins at `i`.
fn at(clause: &Clause, i: usize) -> Guess {
    if clause.words.is_quoted(i) {
        return None;
    }
    rest::wanted(clause, i)
        .or_else(|| fixed::read(clause, i))
        .or_else(|| finish::done(clause, i))
        .or_else(|| by_verb(clause, i))
}

fn verb_at(clause: &Clause, i: usize) -> Option<Verb> {
    if i < clause.end { lexicon::verb(clause.at(i)) } else { None }
}

fn by_verb(clause: &Clause, i: usize) -> Guess {
    let update =
        |change, confidence| (!clause.is_foreign()).then_some((Act::Update(change, i + 1, clause.end), confidence));
    match verb_at(clause, i)? {
        Verb::Remind => make::remind(clause, i),
        Verb::Add => make::add(clause, i),
        Verb::Put => make::put(clause, i),
        Verb::Make => make::make(clause, i),
        Verb::Show => question::show(clause, i),
        Verb::Delete => finish::delete(clause, i),
        Verb::Take => finish::take_off(clause, i),
        Verb::Complete => finish::complete(clause, i),
        Verb::Mark => finish::mark(clause, i),
        verb @ (Verb::Change | Verb::Move) => change::read(clause, i, verb),
        Verb::Rename => update(Change::Title, 0.93),
        Verb::Tag => update(Change::Tags, 0.9),
        Verb::Reopen => update(Change::Reopen, 0.9),
    }
}
