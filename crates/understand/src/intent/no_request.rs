//! Recognises clauses that ask for nothing: "never mind", "don't delete it", "how do I delete a task?". Questions about
//! one task are list_tasks: "is the report done?".

use super::{Act, Guess, complete_task_past, verb_at};
use crate::clause::Clause;
use crate::lexicon;
use crate::phrases::Phrases;
use crate::vocabulary::{self, Verb};

/// Whether the clause speaks about a change without wanting it: "don't delete …", "how do I delete a task?".
pub(super) fn is_no_request(clause: &Clause) -> bool {
    takes_back(clause)
        || groans(clause)
        || excludes(clause)
        || forbids(clause)
        || asks_how(clause)
        || asks_which(clause)
}

/// "never mind", "forget it": no command, whatever was talked about.
fn takes_back(clause: &Clause) -> bool {
    clause.phrase(clause.start, lexicon::no_request::TAKEN_BACK).is_some_and(|n| clause.start + n == clause.end)
        || clause.words.phrase(clause.opening, lexicon::no_request::CHANGED_MIND).is_some()
}

/// "don't remind me, I know", "don't remind me of how it went"; "don't remind me of the gym" is a command.
fn groans(clause: &Clause) -> bool {
    let Some(at) = clause.phrase(clause.start, lexicon::no_request::DONT_REMIND_ME).map(|n| clause.start + n) else {
        return false;
    };
    !clause.words.is_word(at) || at >= clause.end || clause.phrase(at, lexicon::no_request::GROAN_TAILS).is_some()
}

/// "delete everything except milk": no filter says what is left over, and a wrong one would do harm.
fn excludes(clause: &Clause) -> bool {
    let ends = matches!(verb_at(clause, clause.start), Some(Verb::Delete | Verb::Complete | Verb::Mark | Verb::Move))
        || clause.phrase(clause.start, lexicon::no_request::GET_RID_OF).is_some();
    let many =
        clause.nouns_in(clause.start..clause.end).any(|noun| noun.plural) || clause.has(lexicon::no_request::ALL);
    ends && many && clause.has(lexicon::filters::EXCEPTIONS)
}

/// "don't delete the milk task", "no need to complete it"; not "don't forget to …", "don't remind me".
fn forbids(clause: &Clause) -> bool {
    let start = clause.start;
    // Of "you must not delete …" the courtesy "you must" is cut off.
    let cut = start > clause.opening && clause.at(start) == "not";
    let Some(n) = clause.phrase(start, lexicon::no_request::FORBIDDEN).or(cut.then_some(1)) else { return false };
    let verb = start + n + usize::from(matches!(clause.at(start + n), "yet" | "actually" | "just"));
    match verb_at(clause, verb) {
        Some(Verb::Put | Verb::Take) => clause.has_noun(),
        _ => clause.at(verb) != "stop" && is_change(clause.at(verb)),
    }
}

/// Whether the word is a verb that changes a task, or makes one, by itself.
fn is_change(word: &str) -> bool {
    match vocabulary::verb(word) {
        Some(
            Verb::Add
            | Verb::Delete
            | Verb::Complete
            | Verb::Mark
            | Verb::Change
            | Verb::Rename
            | Verb::Move
            | Verb::Tag
            | Verb::Reopen,
        ) => true,
        Some(Verb::Make) => word == "create",
        _ => false,
    }
}

/// "how do I delete a task?", "have you ever deleted a task?", "should I delete milk?".
fn asks_how(clause: &Clause) -> bool {
    let Some((at, n)) = [clause.opening, clause.start]
        .iter()
        .find_map(|i| Some((*i, clause.words.phrase(*i, lexicon::no_request::HOW)?)))
    else {
        return false;
    };
    let word = clause.words.at(at + n);
    let you = matches!(clause.words.at(at), "have" | "did" | "why");
    let base = word.strip_suffix('d').filter(|_| you).unwrap_or(word);
    let polite = matches!(clause.words.at(at), "is") && clause.has_noun() && !is_general(clause, at + n + 1);
    let got = clause.words.at(at) == "have" && word == "got";
    !polite && (is_change(word) || is_change(base) || got)
}

/// "can you repeat reminders or is that a paid feature": whoever offers another answer wants one.
fn asks_which(clause: &Clause) -> bool {
    let asked = (clause.opening..clause.start).any(|i| matches!(clause.words.at(i), "you" | "u"));
    asked && clause.has(lexicon::no_request::OR_IS_IT)
}

/// Whether the object at `i` is no particular task: "tasks", "a task".
fn is_general(clause: &Clause, i: usize) -> bool {
    let at = i + usize::from(matches!(clause.at(i), "a" | "an" | "any" | "some"));
    let alone = |end: usize| clause.is_spent(end..clause.end) || matches!(clause.at(end), "as" | "to" | "with");
    clause.noun_at(at).is_some_and(|noun| alone(noun.end) && (noun.plural || at > i))
}

/// A change that is only asked about is none; a polite request ends in a question mark, too.
pub(super) fn reject_questions(clause: &Clause, guess: Guess) -> Guess {
    let (act, _) = guess?;
    if !clause.asked {
        return guess;
    }
    let body = match act {
        Act::Complete(from, to) if from == clause.start => return Some((Act::Check(from, to), 0.8)),
        Act::Complete(from, _) | Act::Delete(from, _) | Act::Update(_, from, _) => from,
        Act::Undo => clause.start + 1,
        _ => return guess,
    };
    let said = |phrases: Phrases| (clause.opening..body).any(|i| clause.words.phrase(i, phrases).is_some());
    let begged = (clause.opening..clause.words.len().min(clause.end + 4))
        .any(|i| crate::courtesy::is_please(clause.words.at(i)) || i >= clause.end && clause.words.at(i) == "you");
    let asks_you = said(lexicon::no_request::ASKED_PERSON);
    let general = match act {
        Act::Undo => clause.end <= clause.start + 1,
        _ => is_general(clause, body),
    };
    let told = said(lexicon::no_request::STOPS)
        || matches!(clause.at(clause.start), "can" | "could" | "would") && body <= clause.start + 1;
    (begged || asks_you && !general || told).then_some(guess).flatten()
}

/// Whether "I want to", "I'd like to" or a need stands before the verb at `i`.
pub(super) fn is_wish(clause: &Clause, i: usize) -> bool {
    let before = |n: usize| i.checked_sub(n).map_or("", |k| clause.words.at(k));
    is_need(clause, i) || before(1) == "to" && matches!(before(2), "want" | "like" | "going" | "wish")
}

/// Whether "I need to", "I have to" and their like stand before the verb at `i`.
pub(super) fn is_need(clause: &Clause, i: usize) -> bool {
    let before = |n: usize| i.checked_sub(n).map_or("", |k| clause.words.at(k));
    let to = before(1) == "to"
        && matches!(before(2), "need" | "have" | "got" | "has")
        && !matches!(before(3), "you" | "not");
    to || matches!(before(1), "must" | "gotta" | "should") && matches!(before(2), "i" | "we")
}

/// "is the report done?", "did I finish the report?", "have I called mom?": a look at one task.
pub(super) fn recognise_question(clause: &Clause) -> Guess {
    if clause.is_foreign() {
        return None;
    }
    recognise_state_question(clause).or_else(|| recognise_deed_question(clause))
}

/// "is the report done?"
fn recognise_state_question(clause: &Clause) -> Guess {
    let i = clause.start;
    if !matches!(clause.at(i), "is" | "are" | "was" | "were" | "has" | "have")
        || lexicon::list_tasks::VAGUE_SUBJECTS.contains(clause.at(i + 1))
    {
        return None;
    }
    let (at, _) =
        clause.seek(i + 2, lexicon::list_tasks::DONE_STATES).filter(|(at, n)| at + n == clause.end && *at <= i + 8)?;
    let several = clause.nouns_in(i..at).any(|noun| noun.plural);
    (!several).then_some((Act::Check(i + 1, at), 0.82))
}

/// "did I finish the report?", "have I called mom?"
fn recognise_deed_question(clause: &Clause) -> Guess {
    let i = clause.start;
    let n = clause.phrase(i, lexicon::list_tasks::DID_I)?;
    let verb = clause.at(i + n);
    let done = match (verb, clause.at(i)) {
        ("finish" | "complete" | "finished" | "completed", _) => true,
        (_, "did") => verb == "add" || super::is_doing(clause, i + n),
        _ => verb == "added" || complete_task_past::is_chore(verb),
    };
    let object = i + n + 1 + complete_task_past::particle_length(clause.at(i + n + 1));
    let several = clause.nouns_in(object..clause.end).any(|noun| noun.plural);
    let fits =
        done && object < clause.end && !several && !lexicon::list_tasks::VAGUE_OBJECTS.contains(clause.at(object));
    fits.then_some((Act::Check(object, clause.end), 0.8))
}
