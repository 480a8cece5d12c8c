//! Decides the intent of a clause.
//!
//! Each module recognises the intent in its name; its header lists examples. The first command of a clause decides.
//! Words after "remind me to" are a title, even if they contain other verbs.
//!
//! Conventions of the rules in this module: `i` is the token at which the command or the examined words begin. A
//! `recognise…` function returns the action with its confidence from 0 to 1. It returns `None` if the rule does not
//! match. The positions in an action are token positions; ends are exclusive. No rule changes the clause.
//!
//! Terms of the rules: A *word for a task* is a noun for a task, a reminder or a list. A *definite* object begins with
//! "the", "my" or "it", or with a quote, a number, such a noun or a capitalised word. A clause *of another domain* has
//! a word for weather, music, money and so on, and no word for a task. A *distance* is a unit of time such as "week".

mod complete_task;
mod complete_task_past;
mod complete_task_statement;
mod create_task;
mod create_task_implied;
mod create_task_opening;
mod delete_task;
pub(crate) mod delete_task_colloquial;
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
use crate::create::CreatePhrasing;
use crate::lexicon;
use crate::scope;
use crate::update::UpdateKind;
use crate::vocabulary::{self, Verb};
pub(crate) use create_task::added_reminder_start;
pub(crate) use create_task_implied::is_activity;
pub(crate) use grammar::find_passive;
use model::IntentDecision;

/// The requested action, with the token range or the start of its object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CommandAction {
    Undo,
    /// A new task. The position is the one after the command verb, see [`CreatePhrasing`].
    Create(CreatePhrasing, usize),
    /// A listing. The position is the start of the filters.
    List(usize),
    /// A question about the status of one task.
    Check(usize, usize),
    Complete(usize, usize),
    /// "done!": completes the task in context.
    Finished,
    Delete(usize, usize),
    /// A change. The range contains the task and, for most kinds, the new value.
    Update(UpdateKind, usize, usize),
    /// A reminder for an existing task. The position is the start of its name and the time.
    Remind(usize),
}

/// An action and the confidence of the rule that recognised it. `None` means that the clause contains no command.
pub(crate) type Guess = Option<(CommandAction, f64)>;

/// Decides the intent of a clause with the rules and the model. The guess is `None` without the model for code and for
/// clauses that request nothing ("never mind", "don't delete it"). The model may replace the guess of the rules. An
/// explicit create with a description ("… make it urgent") stays a create if the model prefers an update. Completions,
/// deletions, updates and undo that the clause only asks about become `None` or a status check. A decision that is
/// changed after the model has no likelihood.
pub(crate) fn decide(clause: &Clause) -> IntentDecision {
    if no_request::is_no_request(clause) || scope::is_code(clause) || scope::is_list_of_others(clause) {
        return IntentDecision::without_model(None);
    }
    let ruled = recognise_by_rules(clause);
    let mut decision = model::apply_model(clause, ruled);
    if describes_new(clause, ruled, decision.guess) {
        decision = IntentDecision::without_model(ruled);
    }
    let stated = decision.overruled && matches!(decision.guess, Some((CommandAction::Create(..), _)));
    if stated && scope::is_statement_about_people(clause) {
        return IntentDecision::without_model(None);
    }
    let guess = no_request::reject_questions(clause, decision.guess);
    if guess == decision.guess { decision } else { IntentDecision::without_model(guess) }
}

/// Returns the guess of the rules, without the model. Undo is checked first (confidence 0.97), then questions about the
/// status of one task, then commands and mentioned tasks. "add" before an activity ("add edit photos") is the last
/// resort. Returns `None` if no rule matches.
pub(crate) fn recognise_by_rules(clause: &Clause) -> Guess {
    if undo::is_undo(clause) {
        return Some((CommandAction::Undo, 0.97));
    }
    no_request::recognise_question(clause)
        .or_else(|| recognise_request(clause))
        .or_else(|| recognise_added_task(clause))
}

/// Recognises an added activity in any domain: "add edit photos". Requires "add" as the first word, then a verb of an
/// activity or a command verb, and a further word.
fn recognise_added_task(clause: &Clause) -> Guess {
    let body = clause.start + 1;
    let doing = body + 1 < clause.end && (is_activity(clause, body) || verb_at(clause, body).is_some());
    (doing && clause.at(clause.start) == "add").then_some((CommandAction::Create(CreatePhrasing::Add, body), 0.86))
}

/// A command at the start with at least this confidence ends the search.
const CERTAIN_CONFIDENCE: f64 = 0.86;

/// Returns the first match of the rules in the order of their priority. A command at the start with a confidence of at
/// least [`CERTAIN_CONFIDENCE`] wins at once. Otherwise a trailing command ("…, delete it") precedes it. A completion
/// at the start below 0.7 ("… is washed") also gives way to a later command. Without a command at the start, questions,
/// later commands and statements of a change are checked first. Additions to a list, noun phrases, later questions and
/// fragments follow. Mentioned tasks, keywords and the list of the user come last.
fn recognise_request(clause: &Clause) -> Guess {
    let first = recognise_at(clause, clause.start);
    if first.is_some_and(|(_, confidence)| confidence >= CERTAIN_CONFIDENCE) {
        return first;
    }
    let stated =
        first.filter(|(action, confidence)| *confidence >= 0.7 || !matches!(action, CommandAction::Complete(..)));
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

/// Returns true if the model takes a description of a new task for an update: "add the report and make it urgent". The
/// rules must have guessed a create with a confidence of at least 0.85. The clause must contain a descriptive phrase
/// ("make it", "tag it", "note:") after its second token. `ruled` is the guess of the rules, `settled` the one after
/// the model.
fn describes_new(clause: &Clause, ruled: Guess, settled: Guess) -> bool {
    let create = matches!(ruled, Some((CommandAction::Create(..), sure)) if sure >= 0.85);
    create
        && matches!(settled, Some((CommandAction::Update(..), _)))
        && clause.find_phrase(clause.start + 2, lexicon::create_task::DESCRIPTIONS).is_some()
}

/// Recognises the command that begins at `i`. A quoted passage begins no command. Verbs of reminding, adding and
/// showing are checked only as phrasal verbs, opening phrases and command verbs. All other words, and "get", "pull",
/// "bring" and "open", pass more rules. These are wishes ("I need … cancelled"), ends of a repetition, colloquial
/// deletions and reports of completion. The first matching rule wins.
fn recognise_at(clause: &Clause, i: usize) -> Guess {
    if clause.words.is_quoted(i) {
        return None;
    }
    let fetches = matches!(clause.at(i), "get" | "pull" | "bring" | "open");
    if !fetches && matches!(verb_at(clause, i), Some(Verb::Remind | Verb::Add | Verb::Show)) {
        return update_task_phrasal::recognise(clause, i)
            .or_else(|| recognise_opening(clause, i))
            .or_else(|| recognise_verb(clause, i));
    }
    later_command::recognise_wanted(clause, i)
        .or_else(|| update_task_statement::recognise_end_of_repeat(clause, i))
        .or_else(|| update_task_phrasal::recognise(clause, i))
        .or_else(|| recognise_opening(clause, i))
        .or_else(|| delete_task_colloquial::recognise(clause, i))
        .or_else(|| complete_task::recognise_wrap_up(clause, i))
        .or_else(|| complete_task::recognise_done(clause, i))
        .or_else(|| recognise_verb(clause, i))
}

/// Recognises a command by its opening phrase at `i`. The order is: notes ("add a note to …"), filing ("file … under
/// taxes"), stated due dates and priorities. Then reports ("note that … is done"), "remember to …", "get rid of …",
/// "instead of Friday, …", labels ("todo: …"), and "reminder to …".
fn recognise_opening(clause: &Clause, i: usize) -> Guess {
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

/// Returns the command verb at `i`, or `None` if the word is no command verb or beyond the clause.
fn verb_at(clause: &Clause, i: usize) -> Option<Verb> {
    if i < clause.end { vocabulary::verb(clause.at(i)) } else { None }
}

/// Recognises a command by its verb at `i`. "rename" (0.93), "reopen" and "tag" (0.9) update the task after them. The
/// range is empty if nothing follows. They do not match if the clause is about another domain or a plan. "tag" does
/// match there if "as", "with", "one" or "under" occurs. "rename" also needs an object that is no file, photo or
/// similar thing. Other verbs are passed to the rule of their module. Returns `None` if the word is no command verb.
fn recognise_verb(clause: &Clause, i: usize) -> Guess {
    let update = |change, confidence| {
        (!clause.is_out_of_scope()).then_some((CommandAction::Update(change, i + 1, clause.end), confidence))
    };
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
        Verb::Rename if scope::is_other_thing(clause, i + 1) => None,
        Verb::Rename => update(UpdateKind::Title, 0.93),
        Verb::Tag if clause.has(lexicon::update_task::TAG_LINKS) => {
            Some((CommandAction::Update(UpdateKind::Tags, i + 1, clause.end), 0.9))
        }
        Verb::Tag => update(UpdateKind::Tags, 0.9),
        Verb::Reopen => update(UpdateKind::Reopen, 0.9),
    }
}
