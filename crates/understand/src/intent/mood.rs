//! How something is said: asked about, forbidden or needed. Only what is asked for changes anything.

use super::{Act, Guess, past, verb_at};
use crate::clause::Clause;
use crate::filter;
use crate::lexicon::{self, Verb};
use crate::phrases::{Phrases, phrases};

/// Whether the clause speaks about a change without wanting it: "don't delete …", "how do I delete a task?".
pub(super) fn wants_nothing(clause: &Clause) -> bool {
    takes_back(clause)
        || groans(clause)
        || excludes(clause)
        || forbids(clause)
        || asks_how(clause)
        || asks_which(clause)
}

/// "never mind", "forget it": no command, whatever was talked about.
fn takes_back(clause: &Clause) -> bool {
    const NOTHING: Phrases = phrases!(
        "never mind | nevermind | nvm | never mind that | forget it | forget about it | forget i asked | \
         forget i said anything | nothing | not now | leave it | leave it be | leave it at that | let it be | drop it"
    );
    const MIND: Phrases =
        phrases!("i changed my mind | i've changed my mind | changed my mind | i have changed my mind");
    clause.phrase(clause.start, NOTHING).is_some_and(|n| clause.start + n == clause.end)
        || clause.words.phrase(clause.opening, MIND).is_some()
}

/// "don't remind me, I know", "don't remind me of how it went"; "don't remind me of the gym" is a command.
fn groans(clause: &Clause) -> bool {
    const KNOWN: Phrases = phrases!("don't remind me | dont remind me | do not remind me | no need to remind me");
    let Some(at) = clause.phrase(clause.start, KNOWN).map(|n| clause.start + n) else { return false };
    !clause.words.is_word(at)
        || at >= clause.end
        || clause.phrase(at, phrases!("of how | how | what | that i")).is_some()
}

/// "delete everything except milk": no filter says what is left over, and a wrong one would do harm.
fn excludes(clause: &Clause) -> bool {
    let ends = matches!(verb_at(clause, clause.start), Some(Verb::Delete | Verb::Complete | Verb::Mark | Verb::Move))
        || clause.phrase(clause.start, phrases!("get rid of")).is_some();
    let many = clause.nouns_in(clause.start..clause.end).any(|noun| noun.plural)
        || clause.has(phrases!("all | everything | every"));
    ends && many && clause.has(filter::EXCEPTIONS)
}

/// "don't delete the milk task", "no need to complete it"; not "don't forget to …", "don't remind me".
fn forbids(clause: &Clause) -> bool {
    const NOT: Phrases = phrases!(
        "don't ever | don't you dare | don't | dont | do not | never | no need to | there's no need to | \
         there is no need to | you should not | you shouldn't | you must not | you mustn't | i don't want to | \
         i don't want you to | i do not want to | i do not want you to | i dont want to | i dont want you to | \
         i didn't want to | i didn't ask you to | i don't need to | i do not need to | i don't need you to | \
         you don't need to | you don't have to | please don't | let's not | can't"
    );
    let start = clause.start;
    let Some(n) = clause.phrase(start, NOT) else { return false };
    let verb = start + n + usize::from(matches!(clause.at(start + n), "yet" | "actually" | "just"));
    match verb_at(clause, verb) {
        Some(Verb::Put | Verb::Take) => clause.has_noun(),
        _ => clause.at(verb) != "stop" && is_change(clause.at(verb)),
    }
}

/// Whether the word is a verb that changes a task, or makes one, by itself.
fn is_change(word: &str) -> bool {
    match lexicon::verb(word) {
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
    const HOW: Phrases = phrases!(
        "how do i | how do you | how can i | how can you | how to | how would i | how should i | how does one | \
         how could i | should i | shall i | do i need to | do i have to | why did you | did you | have you ever | \
         have you | why would i | why should i | what if i | what happens if i | what happens when i | \
         is it possible to | is there a way to | am i able to | do you know how to"
    );
    let Some((at, n)) = [clause.opening, clause.start].iter().find_map(|i| Some((*i, clause.words.phrase(*i, HOW)?)))
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
    asked
        && clause.has(phrases!("or is that | or is it | or is this | or does that | or does it | or do i | or are you"))
}

/// Whether the object at `i` is no particular task: "tasks", "a task".
fn is_general(clause: &Clause, i: usize) -> bool {
    let at = i + usize::from(matches!(clause.at(i), "a" | "an" | "any" | "some"));
    let alone = |end: usize| clause.is_spent(end..clause.end) || matches!(clause.at(end), "as" | "to" | "with");
    clause.noun_at(at).is_some_and(|noun| alone(noun.end) && (noun.plural || at > i))
}

/// A change that is only asked about is none; a polite request ends in a question mark, too.
pub(super) fn checked(clause: &Clause, guess: Guess) -> Guess {
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
    let asks_you = said(phrases!("you | u | we | mind | chance"));
    let general = match act {
        Act::Undo => clause.end <= clause.start + 1,
        _ => is_general(clause, body),
    };
    let told = said(phrases!(", | ; | . | instead of | rather than"))
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
pub(super) fn check(clause: &Clause) -> Guess {
    if clause.is_foreign() {
        return None;
    }
    asks_state(clause).or_else(|| asks_deed(clause))
}

/// "is the report done?"
fn asks_state(clause: &Clause) -> Guess {
    const DONE: Phrases = phrases!(
        "done | complete | completed | finished | done yet | finished yet | completed yet | been done | \
         been completed | been finished | already done | checked off | still open | still pending | pending"
    );
    const VAGUE: Phrases =
        phrases!("it | that | this | everything | all | any | anything | what | i | we | you | they | there");
    let i = clause.start;
    if !matches!(clause.at(i), "is" | "are" | "was" | "were" | "has" | "have") || VAGUE.contains(clause.at(i + 1)) {
        return None;
    }
    let (at, _) = clause.seek(i + 2, DONE).filter(|(at, n)| at + n == clause.end && *at <= i + 8)?;
    let several = clause.nouns_in(i..at).any(|noun| noun.plural);
    (!several).then_some((Act::Check(i + 1, at), 0.82))
}

/// "did I finish the report?", "have I called mom?"
fn asks_deed(clause: &Clause) -> Guess {
    const VAGUE: Phrases = phrases!("it | that | anything | something | everything | today | yesterday | what");
    let i = clause.start;
    let n = clause.phrase(i, phrases!("did i already | did i | have i already | have i | did we | have we"))?;
    let verb = clause.at(i + n);
    let done = match (verb, clause.at(i)) {
        ("finish" | "complete" | "finished" | "completed", _) => true,
        (_, "did") => verb == "add" || super::is_doing(clause, i + n),
        _ => verb == "added" || past::is_chore(verb),
    };
    let object = i + n + 1 + past::particle(clause.at(i + n + 1));
    let several = clause.nouns_in(object..clause.end).any(|noun| noun.plural);
    let fits = done && object < clause.end && !several && !VAGUE.contains(clause.at(object));
    fits.then_some((Act::Check(object, clause.end), 0.8))
}
