//! Recognises clauses without a request: "never mind", "don't delete it", "how do I delete a task?". Questions about
//! one task are list_tasks: "is the report done?".

use super::{CommandAction, Guess, complete_task_past, verb_at};
use crate::clause::Clause;
use crate::lexicon;
use crate::phrases::Phrases;
use crate::vocabulary::{self, Verb};

/// Returns true if the clause requests nothing. These are cancellations ("never mind"), complaints ("don't remind me, I
/// know") and bulk changes with an exception ("delete all except milk"). Prohibitions ("don't delete …"), general
/// questions ("how do I delete a task?") and alternatives ("can you … or is that …") count, too.
pub(super) fn is_no_request(clause: &Clause) -> bool {
    is_cancellation(clause)
        || is_complaint(clause)
        || is_exclusion(clause)
        || is_prohibition(clause)
        || is_general_question(clause)
        || offers_alternative(clause)
}

/// Returns true for "never mind", "forget it", "leave it" as the whole clause. Also true for any clause that begins
/// with "I changed my mind", even if a command follows it.
fn is_cancellation(clause: &Clause) -> bool {
    clause.phrase(clause.start, lexicon::no_request::CANCELLATIONS).is_some_and(|n| clause.start + n == clause.end)
        || clause.words.phrase(clause.outer_start, lexicon::no_request::CHANGED_MIND).is_some()
}

/// Returns true for "don't remind me" at the start, followed by the end, a mark, or "how", "of how", "what", "that I":
/// "don't remind me, I know". Returns false for "don't remind me of the gym", which is a command.
fn is_complaint(clause: &Clause) -> bool {
    let Some(at) = clause.phrase(clause.start, lexicon::no_request::DONT_REMIND_ME).map(|n| clause.start + n) else {
        return false;
    };
    !clause.words.is_word(at) || at >= clause.end || clause.phrase(at, lexicon::no_request::COMPLAINT_TAILS).is_some()
}

/// Returns true for "delete everything except milk": a deletion, completion or move with "all", "every" or a plural
/// noun, and an exception. The verb must begin the clause; "get rid of" counts, too. A filter cannot express the
/// exception, and a wrong filter would delete too much.
fn is_exclusion(clause: &Clause) -> bool {
    let ends = matches!(verb_at(clause, clause.start), Some(Verb::Delete | Verb::Complete | Verb::Mark | Verb::Move))
        || clause.phrase(clause.start, lexicon::no_request::GET_RID_OF).is_some();
    let many =
        clause.nouns_in(clause.start..clause.end).any(|noun| noun.plural) || clause.has(lexicon::no_request::ALL);
    ends && many && clause.has(lexicon::filters::EXCEPTIONS)
}

/// Returns true for "don't delete the milk task", "no need to complete it", "you must not delete …". A negation must
/// begin the clause. A verb that changes or creates a task must follow; "yet", "actually" or "just" may stand between.
/// "put" and "take" count only with a word for a task. Returns false for "don't stop", "don't forget to …" and "don't
/// remind me".
fn is_prohibition(clause: &Clause) -> bool {
    let start = clause.start;
    // The courtesy "you must" of "you must not delete …" is already removed.
    let cut = start > clause.outer_start && clause.at(start) == "not";
    let Some(n) = clause.phrase(start, lexicon::no_request::FORBIDDEN).or(cut.then_some(1)) else { return false };
    let verb = start + n + usize::from(matches!(clause.at(start + n), "yet" | "actually" | "just"));
    match verb_at(clause, verb) {
        Some(Verb::Put | Verb::Take) => clause.has_noun(),
        _ => clause.at(verb) != "stop" && is_change(clause.at(verb)),
    }
}

/// Returns true if the word is a verb that changes or creates a task without further words. These are verbs of adding,
/// deleting, completing, marking, changing, renaming, moving, tagging and reopening, and "create". Other verbs of
/// making, "put", "take", "remind" and "show" do not count.
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

/// Returns true for "how do I delete a task?", "have you ever deleted a task?", "should I delete milk?". The question
/// must begin the clause, and a verb of a change must follow directly. A past tense that adds only a "d" ("deleted",
/// not "added") counts after "have", "did" and "why". A question mark is not required. Also true for "have you got …".
/// Returns false for a polite question about a certain task: "is it possible to delete the milk task?".
fn is_general_question(clause: &Clause) -> bool {
    let Some((at, n)) = [clause.outer_start, clause.start]
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

/// Returns true for alternatives after "can you", which ask for an answer: "can you repeat reminders or is that a paid
/// feature".
fn offers_alternative(clause: &Clause) -> bool {
    let asked = (clause.outer_start..clause.start).any(|i| matches!(clause.words.at(i), "you" | "u"));
    asked && clause.has(lexicon::no_request::OR_IS_IT)
}

/// Returns true if the object at `i` names no certain task: "tasks", "a task". A plural, or a singular after "a", "an",
/// "any" or "some", counts. Nothing, "as", "to" or "with" must follow it.
fn is_general(clause: &Clause, i: usize) -> bool {
    let at = i + usize::from(matches!(clause.at(i), "a" | "an" | "any" | "some"));
    let alone = |end: usize| clause.is_exhausted(end..clause.end) || matches!(clause.at(end), "as" | "to" | "with");
    clause.noun_at(at).is_some_and(|noun| alone(noun.end) && (noun.plural || at > i))
}

/// Returns `None` for a completion, deletion, update or undo that the clause only asks about. Returns the guess
/// unchanged for other actions, without a question mark, and for requests. A request contains "please", or "you"
/// follows the clause. "you", "we" or "mind" before a certain task also makes a request ("can you delete the milk?").
/// So does a comma or "instead of" before the task, or "can", "could" or "would" directly before it. A completion with
/// the task at the start becomes a status check with confidence 0.8: "the report is done?".
pub(super) fn reject_questions(clause: &Clause, guess: Guess) -> Guess {
    let (action, _) = guess?;
    if !clause.is_question {
        return guess;
    }
    let body = match action {
        CommandAction::Complete(from, to) if from == clause.start => {
            return Some((CommandAction::Check(from, to), 0.8));
        }
        CommandAction::Complete(from, _) | CommandAction::Delete(from, _) | CommandAction::Update(_, from, _) => from,
        CommandAction::Undo => clause.start + 1,
        _ => return guess,
    };
    let precedes = |phrases: Phrases| (clause.outer_start..body).any(|i| clause.words.phrase(i, phrases).is_some());
    let is_polite = (clause.outer_start..clause.words.len().min(clause.end + 4))
        .any(|i| crate::courtesy::is_please(clause.words.at(i)) || i >= clause.end && clause.words.at(i) == "you");
    let asks_you = precedes(lexicon::no_request::ASKED_PERSON);
    let general = match action {
        CommandAction::Undo => clause.end <= clause.start + 1,
        _ => is_general(clause, body),
    };
    let is_request = precedes(lexicon::no_request::STOPS)
        || matches!(clause.at(clause.start), "can" | "could" | "would") && body <= clause.start + 1;
    (is_polite || asks_you && !general || is_request).then_some(guess).flatten()
}

/// Returns true if a need (see [`is_need`]) or "want to", "like to", "going to" or "wish to" precedes the verb at `i`.
/// The words may be outside of the clause. The subject is not checked.
pub(super) fn is_wish(clause: &Clause, i: usize) -> bool {
    let before = |n: usize| i.checked_sub(n).map_or("", |k| clause.words.at(k));
    is_need(clause, i) || before(1) == "to" && matches!(before(2), "want" | "like" | "going" | "wish")
}

/// Returns true if "need to", "have to", "has to" or "got to" precedes the verb at `i`, or "I"/"we" with "must",
/// "gotta" or "should". The words may be outside of the clause. Returns false after "you have to" and "not have to".
pub(super) fn is_need(clause: &Clause, i: usize) -> bool {
    let before = |n: usize| i.checked_sub(n).map_or("", |k| clause.words.at(k));
    let to = before(1) == "to"
        && matches!(before(2), "need" | "have" | "got" | "has")
        && !matches!(before(3), "you" | "not");
    to || matches!(before(1), "must" | "gotta" | "should") && matches!(before(2), "i" | "we")
}

/// Recognises questions about the status of one task: "is the report done?", "did I finish the report?", "have I called
/// mom?". A question mark is not required. Returns `None` for other domains and plans.
pub(super) fn recognise_question(clause: &Clause) -> Guess {
    if clause.is_out_of_scope() {
        return None;
    }
    recognise_state_question(clause).or_else(|| recognise_deed_question(clause))
}

/// Recognises "is the report done?", "has the report been finished" as a status check (0.82). The first word is "is",
/// "are", "was", "were", "has" or "have". The state ("done", "finished", "pending", …) must end the clause and begin
/// two to eight tokens after the first word. A subject that begins with "it", "that", "everything" or a similar word
/// yields `None`. So do plural words for tasks.
fn recognise_state_question(clause: &Clause) -> Guess {
    let i = clause.start;
    if !matches!(clause.at(i), "is" | "are" | "was" | "were" | "has" | "have")
        || lexicon::list_tasks::VAGUE_SUBJECTS.contains(clause.at(i + 1))
    {
        return None;
    }
    let (at, _) = clause
        .find_phrase(i + 2, lexicon::list_tasks::DONE_STATES)
        .filter(|(at, n)| at + n == clause.end && *at <= i + 8)?;
    let several = clause.nouns_in(i..at).any(|noun| noun.plural);
    (!several).then_some((CommandAction::Check(i + 1, at), 0.82))
}

/// Recognises "did I finish the report?", "have I called mom?", "did we already …" as a status check (0.8). "finish"
/// and "complete" always count. After "did", the verb may be "add" or an activity. After "have", it may be "added" or
/// the past tense of a chore. Requires an object without plural words for tasks. It must not begin with "it",
/// "anything", "today" or a similar word.
fn recognise_deed_question(clause: &Clause) -> Guess {
    let i = clause.start;
    let n = clause.phrase(i, lexicon::list_tasks::DID_I)?;
    let verb = clause.at(i + n);
    let done = match (verb, clause.at(i)) {
        ("finish" | "complete" | "finished" | "completed", _) => true,
        (_, "did") => verb == "add" || super::is_activity(clause, i + n),
        _ => verb == "added" || complete_task_past::is_chore(verb),
    };
    let object = i + n + 1 + complete_task_past::particle_length(clause.at(i + n + 1));
    let several = clause.nouns_in(object..clause.end).any(|noun| noun.plural);
    let fits =
        done && object < clause.end && !several && !lexicon::list_tasks::VAGUE_OBJECTS.contains(clause.at(object));
    fits.then_some((CommandAction::Check(object, clause.end), 0.8))
}
