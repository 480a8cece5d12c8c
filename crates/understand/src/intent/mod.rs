//! Decides what a clause asks for, from its verb and what the verb is about.
//!
//! The first command in the clause governs: what comes after "remind me to" is a title, whatever verbs stand in it.

mod adjust;
mod asks;
mod change;
mod erase;
mod finish;
mod fixed;
mod make;
pub(crate) mod model;
mod mood;
mod need;
mod past;
mod question;
mod rest;
mod shape;
mod state;
mod tail;
mod told;
mod undo;

use crate::clause::Clause;
use crate::create::Form;
use crate::lexicon::{self, Verb};
use crate::phrases::{Phrases, phrases};
use crate::scope;
use crate::update::Change;
pub(crate) use make::to_reminder;
use model::Verdict;
pub(crate) use need::is_doing;
pub(crate) use shape::passive;

/// What is asked, and the tokens its object lies in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Act {
    Undo,
    Create(Form, usize),
    List(usize),
    /// A question about one task.
    Check(usize, usize),
    Complete(usize, usize),
    /// "done!": the task in hand.
    Finished,
    Delete(usize, usize),
    Update(Change, usize, usize),
    /// A reminder for a task that exists.
    Remind(usize),
}

/// An act and how sure it is.
pub(crate) type Guess = Option<(Act, f64)>;

pub(crate) fn decide(clause: &Clause) -> Verdict {
    if mood::wants_nothing(clause) || scope::is_code(clause) {
        return Verdict::without_model(None);
    }
    let ruled = by_rules(clause);
    let mut verdict = model::settle(clause, ruled);
    if describes_new(clause, ruled, verdict.guess) {
        verdict = Verdict::without_model(ruled);
    }
    let guess = mood::checked(clause, verdict.guess);
    if guess == verdict.guess { verdict } else { Verdict::without_model(guess) }
}

/// What the rules make of a clause that wants something.
pub(crate) fn by_rules(clause: &Clause) -> Guess {
    if undo::asked(clause) {
        return Some((Act::Undo, 0.97));
    }
    mood::check(clause).or_else(|| asked_for(clause)).or_else(|| added(clause))
}

/// "add edit photos": what is to be done is a task, whatever trade it is of.
fn added(clause: &Clause) -> Guess {
    let body = clause.start + 1;
    let doing = body + 1 < clause.end && (is_doing(clause, body) || verb_at(clause, body).is_some());
    (doing && clause.at(clause.start) == "add").then_some((Act::Create(Form::Add, body), 0.86))
}

/// A command that stands first and is as sure as this is not looked behind.
const SURE: f64 = 0.86;

fn asked_for(clause: &Clause) -> Guess {
    let first = at(clause, clause.start);
    if first.is_some_and(|(_, confidence)| confidence >= SURE) {
        return first;
    }
    let stated = first.filter(|(act, confidence)| *confidence >= 0.7 || !matches!(act, Act::Complete(..)));
    tail::read(clause)
        .or(stated)
        .or_else(|| first.and_then(|_| rest::later(clause)))
        .or(first)
        .or_else(|| question::read(clause))
        .or_else(|| rest::later(clause))
        .or_else(|| told::read(clause))
        .or_else(|| rest::onto_list(clause))
        .or_else(|| rest::without_verb(clause))
        .or_else(|| question::later(clause))
        .or_else(|| asks::fragment(clause))
        .or_else(|| need::read(clause))
        .or_else(|| rest::by_words(clause))
        .or_else(|| rest::of_list(clause))
}

/// "add the report and make it urgent": the model may take what is said of a new task for a change of an old one.
fn describes_new(clause: &Clause, ruled: Guess, settled: Guess) -> bool {
    const MORE: Phrases = phrases!(
        "make it | mark it | mark as | set it | tag it | label it | file it | put it | give it | set the priority | \
         set priority | add a note | add the note | put in the notes | in the notes | in the description | the note | \
         the description | tag : | tags : | note : | notes : | description : | it's urgent | add the detail"
    );
    let create = matches!(ruled, Some((Act::Create(..), sure)) if sure >= 0.85);
    create && matches!(settled, Some((Act::Update(..), _))) && clause.seek(clause.start + 2, MORE).is_some()
}

/// The command that begins at `i`.
fn at(clause: &Clause, i: usize) -> Guess {
    if clause.words.is_quoted(i) {
        return None;
    }
    let fetches = matches!(clause.at(i), "get" | "pull" | "bring" | "open");
    if !fetches && matches!(verb_at(clause, i), Some(Verb::Remind | Verb::Add | Verb::Show)) {
        return adjust::read(clause, i).or_else(|| fixed::read(clause, i)).or_else(|| by_verb(clause, i));
    }
    rest::wanted(clause, i)
        .or_else(|| told::once(clause, i))
        .or_else(|| adjust::read(clause, i))
        .or_else(|| fixed::read(clause, i))
        .or_else(|| erase::read(clause, i))
        .or_else(|| finish::wrap_up(clause, i))
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
        Verb::Rename if scope::is_thing(clause, i + 1) => None,
        Verb::Rename => update(Change::Title, 0.93),
        Verb::Tag if clause.has(phrases!("as | with | one | under")) => {
            Some((Act::Update(Change::Tags, i + 1, clause.end), 0.9))
        }
        Verb::Tag => update(Change::Tags, 0.9),
        Verb::Reopen => update(Change::Reopen, 0.9),
    }
}
