//! Decides which intent a clause has.
//!
//! Each module recognises the intent that it is named after; its first lines list examples. The first command in a
//! clause counts: the words after "remind me to" are a title, whatever verbs stand in it.

mod complete_task;
mod complete_task_past;
mod complete_task_statement;
mod create_task;
mod create_task_implied;
mod create_task_opening;
mod delete_task;
mod delete_task_colloquial;
mod grammar;
mod keywords;
mod later_command;
mod list_tasks;
mod list_tasks_noun;
mod list_tasks_question;
pub(crate) mod model;
mod no_request;
mod trailing_command;
mod undo;
mod update_task;
mod update_task_opening;
mod update_task_phrasal;
mod update_task_statement;

use crate::clause::Clause;
use crate::create::Form;
use crate::lexicon;
use crate::scope;
use crate::update::Change;
use crate::vocabulary::{self, Verb};
pub(crate) use create_task::to_reminder;
pub(crate) use create_task_implied::is_doing;
pub(crate) use grammar::passive;
use model::Verdict;

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
    if no_request::is_no_request(clause) || scope::is_code(clause) {
        return Verdict::without_model(None);
    }
    let ruled = by_rules(clause);
    let mut verdict = model::settle(clause, ruled);
    if describes_new(clause, ruled, verdict.guess) {
        verdict = Verdict::without_model(ruled);
    }
    let guess = no_request::reject_questions(clause, verdict.guess);
    if guess == verdict.guess { verdict } else { Verdict::without_model(guess) }
}

/// What the rules make of a clause that wants something.
pub(crate) fn by_rules(clause: &Clause) -> Guess {
    if undo::is_undo(clause) {
        return Some((Act::Undo, 0.97));
    }
    no_request::recognise_question(clause).or_else(|| asked_for(clause)).or_else(|| added(clause))
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
    trailing_command::recognise(clause)
        .or(stated)
        .or_else(|| first.and_then(|_| later_command::recognise(clause)))
        .or(first)
        .or_else(|| list_tasks::recognise_question(clause))
        .or_else(|| later_command::recognise(clause))
        .or_else(|| update_task_statement::recognise(clause))
        .or_else(|| create_task_implied::recognise_onto_list(clause))
        .or_else(|| list_tasks_noun::recognise_noun(clause))
        .or_else(|| list_tasks::recognise_later_question(clause))
        .or_else(|| list_tasks_question::recognise_fragment(clause))
        .or_else(|| create_task_implied::recognise(clause))
        .or_else(|| keywords::recognise(clause))
        .or_else(|| list_tasks_noun::recognise_own_list(clause))
}

/// "add the report and make it urgent": the model may take what is said of a new task for a change of an old one.
fn describes_new(clause: &Clause, ruled: Guess, settled: Guess) -> bool {
    let create = matches!(ruled, Some((Act::Create(..), sure)) if sure >= 0.85);
    create
        && matches!(settled, Some((Act::Update(..), _)))
        && clause.seek(clause.start + 2, lexicon::create_task::DESCRIPTIONS).is_some()
}

/// The command that begins at `i`.
fn at(clause: &Clause, i: usize) -> Guess {
    if clause.words.is_quoted(i) {
        return None;
    }
    let fetches = matches!(clause.at(i), "get" | "pull" | "bring" | "open");
    if !fetches && matches!(verb_at(clause, i), Some(Verb::Remind | Verb::Add | Verb::Show)) {
        return update_task_phrasal::recognise(clause, i)
            .or_else(|| by_opening(clause, i))
            .or_else(|| by_verb(clause, i));
    }
    later_command::recognise_wanted(clause, i)
        .or_else(|| update_task_statement::recognise_end_of_repeat(clause, i))
        .or_else(|| update_task_phrasal::recognise(clause, i))
        .or_else(|| by_opening(clause, i))
        .or_else(|| delete_task_colloquial::recognise(clause, i))
        .or_else(|| complete_task::recognise_wrap_up(clause, i))
        .or_else(|| complete_task::recognise_done(clause, i))
        .or_else(|| by_verb(clause, i))
}

/// Recognises a command by its opening phrase: "remember to …", "get rid of …", "todo: …".
fn by_opening(clause: &Clause, i: usize) -> Guess {
    update_task_opening::recognise_note(clause, i)
        .or_else(|| update_task_opening::recognise_filing(clause, i))
        .or_else(|| update_task_opening::recognise_statement(clause, i))
        .or_else(|| complete_task::recognise_report(clause, i))
        .or_else(|| create_task_opening::recognise_remember(clause, i))
        .or_else(|| delete_task_colloquial::recognise_get_rid_of(clause, i))
        .or_else(|| update_task_opening::recognise_instead(clause, i))
        .or_else(|| create_task_opening::recognise_label(clause, i))
        .or_else(|| create_task_opening::recognise_reminder_noun(clause, i))
}

fn verb_at(clause: &Clause, i: usize) -> Option<Verb> {
    if i < clause.end { vocabulary::verb(clause.at(i)) } else { None }
}

fn by_verb(clause: &Clause, i: usize) -> Guess {
    let update =
        |change, confidence| (!clause.is_foreign()).then_some((Act::Update(change, i + 1, clause.end), confidence));
    match verb_at(clause, i)? {
        Verb::Remind => create_task::recognise_remind(clause, i),
        Verb::Add => create_task::recognise_add(clause, i),
        Verb::Put => create_task::recognise_put(clause, i),
        Verb::Make => create_task::recognise_make(clause, i),
        Verb::Show => list_tasks::recognise_show(clause, i),
        Verb::Delete => delete_task::recognise(clause, i),
        Verb::Take => delete_task::recognise_take_off(clause, i),
        Verb::Complete => complete_task::recognise(clause, i),
        Verb::Mark => complete_task::recognise_mark(clause, i),
        verb @ (Verb::Change | Verb::Move) => update_task::recognise(clause, i, verb),
        Verb::Rename if scope::is_thing(clause, i + 1) => None,
        Verb::Rename => update(Change::Title, 0.93),
        Verb::Tag if clause.has(lexicon::update_task::TAG_LINKS) => {
            Some((Act::Update(Change::Tags, i + 1, clause.end), 0.9))
        }
        Verb::Tag => update(Change::Tags, 0.9),
        Verb::Reopen => update(Change::Reopen, 0.9),
    }
}
