//! Recognises complete_task in statements: "the laundry's sorted", "eggs bought", "I've called the plumber", "done!".

use super::{Act, Guess, complete_task_past, grammar, verb_at};
use crate::clause::Clause;
use crate::lexicon;
use crate::vocabulary::Noun;

/// "… is done", "the car's been washed", "tax return filed".
pub(super) fn recognise(clause: &Clause, i: usize) -> Guess {
    if let Some(guess) = recognise_presented(clause, i) {
        return Some(guess);
    }
    if lexicon::complete_task::NOT_STATEMENTS.contains(clause.at(i)) || verb_at(clause, i).is_some() {
        return None;
    }
    recognise_with_verb(clause, i).or_else(|| recognise_bare(clause, i))
}

/// "that's the ironing finished", "that takes care of the claim", "they're both done".
fn recognise_presented(clause: &Clause, i: usize) -> Guess {
    if let Some(n) = clause.phrase(i, lexicon::complete_task::TAKES_CARE_OF) {
        return (i + n < clause.end).then_some((Act::Complete(i + n, clause.end), 0.7));
    }
    if let Some(n) = clause.phrase(i, lexicon::complete_task::BOTH_ARE)
        && let Some(m) = done_at(clause, i + n + fill(clause, i + n))
        && closes_statement(clause, i + n + fill(clause, i + n) + m)
        && !clause.asked
    {
        return Some((Act::Complete(i, i + 1), 0.8));
    }
    let n = clause.phrase(i, lexicon::complete_task::THAT_IS)?;
    let from = i + n;
    if !grammar::is_definite(clause, from) {
        return None;
    }
    let k = (from + 1..clause.end.min(from + 7))
        .find(|k| done_at(clause, *k).is_some_and(|m| closes_statement(clause, k + m)))?;
    (!clause.is_foreign() && !clause.asked).then_some((Act::Complete(from, k), 0.78))
}

/// A word or participle that says "done" at `i`, with its particle.
fn done_at(clause: &Clause, i: usize) -> Option<usize> {
    complete_task_past::finished_length(clause, i).or_else(|| participle(clause, i))
}

fn participle(clause: &Clause, i: usize) -> Option<usize> {
    let word = clause.at(i);
    let called = word == "called" && clause.before(i) == "been" && clause.at(i + 1) != "off";
    let deed = called
        || complete_task_past::is_participle(word)
        || complete_task_past::is_deed(word) && !complete_task_past::is_chore(word);
    (deed && i < clause.end).then(|| 1 + complete_task_past::particle_length(clause.at(i + 1)))
}

/// Words between "is" and "done" that change nothing.
fn fill(clause: &Clause, i: usize) -> usize {
    clause.phrase(i, lexicon::complete_task::FILLERS).unwrap_or(0)
}

/// Whether nothing but a time, an "and" or a remark follows.
pub(super) fn closes_statement(clause: &Clause, i: usize) -> bool {
    i >= clause.end || clause.date_at(i).is_some() || clause.phrase(i, lexicon::complete_task::TAILS).is_some()
}

fn recognise_with_verb(clause: &Clause, i: usize) -> Guess {
    for k in i..clause.end.min(i + 9) {
        let word = clause.at(k);
        let be = k > i && matches!(word, "is" | "are" | "was" | "were" | "got" | "has" | "have" | "as");
        let suffix = word.ends_with("'s") && !lexicon::complete_task::NOT_CONTRACTIONS.contains(word);
        if !be && !suffix {
            continue;
        }
        let at = k + 1 + fill(clause, k + 1);
        let been = !matches!(word, "has" | "have") || (k + 1..at).any(|m| clause.at(m) == "been");
        if !done_at(clause, at).is_some_and(|n| been && closes_statement(clause, at + n)) {
            continue;
        }
        let sure = complete_task_past::finished_length(clause, at).is_some();
        let other = if sure || grammar::is_definite(clause, i) { clause.is_elsewhere() } else { clause.is_foreign() };
        let general = !(sure || suffix || k <= i + 3 || grammar::is_definite(clause, i));
        if other || general || clause.asked && !sure {
            return None;
        }
        return Some((Act::Complete(i, if suffix { k + 1 } else { k }), if sure { 0.8 } else { 0.64 }));
    }
    None
}

/// "gym done for today", "eggs bought".
fn recognise_bare(clause: &Clause, i: usize) -> Guess {
    let k = (i + 1..clause.end.min(i + 6)).find(|k| {
        let n = complete_task_past::finished_length(clause, *k).or_else(|| {
            complete_task_past::is_participle(clause.at(*k))
                .then(|| 1 + complete_task_past::particle_length(clause.at(*k + 1)))
        });
        n.is_some_and(|n| closes_statement(clause, *k + n))
            && (clause.at(*k) != "complete" || *k == i + 1 && k + 1 == clause.end)
    })?;
    let plain = |m: usize| clause.words.is_quoted(m) || clause.words.is_word(m) && !grammar::is_pronoun(clause.at(m));
    let sure = complete_task_past::finished_length(clause, k).is_some();
    let told =
        !(i..k).all(plain) || clause.asked && !sure || clause.at(k - 1) == "get" || clause.at(k - 1) == "getting";
    let list = clause.nouns_in(i..k).any(|noun| noun.plural && !sure);
    let timed = clause.dates.iter().any(|found| clause.at(found.tokens.start) == "by" || found.parts.repeat.is_some());
    if told || list || timed || clause.is_foreign() || sure && k - i > 5 {
        return None;
    }
    Some((Act::Complete(i, k), if sure { 0.78 } else { 0.6 }))
}

/// "I already paid the rent", "called mom", "I managed to reach the landlord": what was done names the task.
pub(super) fn recognise_deed(clause: &Clause, i: usize) -> Guess {
    let n = clause.phrase(i, lexicon::complete_task::DEED_LEADS).unwrap_or(0);
    if let Some(m) = clause.phrase(i + n, lexicon::complete_task::MANAGED).filter(|m| n > 0 && i + n + m < clause.end) {
        let fits = !clause.asked && clause.end - i <= 14 && !wants_more(clause);
        return fits.then_some((Act::Complete(i + n + m, before_comma(clause, i + n + m)), 0.66));
    }
    let sure = matches!(clause.before(i + n), "already" | "just" | "finally" | "now") && n > 0;
    let verb = clause.at(i + n);
    let chore = complete_task_past::is_chore(verb);
    let object = i + n + 1 + complete_task_past::particle_length(clause.at(i + n + 1));
    let definite = grammar::is_definite(clause, object);
    let plain = complete_task_past::is_plain_past(verb)
        && definite
        && (n > 0 || matches!(verb, "got" | "did") && clause.end - i <= 6);
    let other = n > 0 && complete_task_past::is_deed(verb) && definite;
    if !chore && !sure && !plain && !other && !lexicon::complete_task::ENTRY_DEEDS.contains(verb) {
        return None;
    }
    let told = wants_more(clause) || !chore && !clause.dates.is_empty() && n == 0 || future(clause);
    let past = (chore || plain || other) && !told && clause.end - i <= 10 || sure && complete_task_past::is_past(verb);
    let removed = !chore && !sure && n > 0 && clause.has_noun() && !told;
    // "paid" and its like need something that was paid, "called" somebody.
    let fits = (past || removed)
        && object < clause.end
        && (!clause.is_foreign() || chore && (n > 0 || definite))
        && !clause.asked;
    let named = clause.words.is_word(object) || clause.words.is_quoted(object);
    let listed = clause.noun_in(object..clause.end).is_some_and(|noun| noun.plural) || clause.at(object) == "me";
    (fits && named && !listed)
        .then_some((Act::Complete(object, before_comma(clause, object)), if sure { 0.68 } else { 0.62 }))
}

/// "done!", "yep did it", "finished": of the task in hand. "DONE - call the lawyer", "\[x\] book flights", "essay ✔".
pub(super) fn recognise_alone(clause: &Clause, i: usize) -> Guess {
    let only = |at: usize| {
        at >= clause.end
            || clause.date_at(at).is_some() && clause.dates.last().is_some_and(|found| found.tokens.end >= clause.end)
    };
    if clause.phrase(i, lexicon::complete_task::ALONE).is_some_and(|n| only(i + n)) && !clause.asked {
        return Some((Act::Finished, 0.75));
    }
    let noun = clause.noun_at(i).filter(|noun| !noun.plural && noun.noun != Noun::List);
    if noun
        .is_some_and(|noun| complete_task_past::finished_length(clause, noun.end).is_some_and(|n| only(noun.end + n)))
        && !clause.asked
    {
        return Some((Act::Finished, 0.72));
    }
    let boxed = clause.words.before(i) == "]" || clause.at(i) == "x" && clause.at(i + 1) == "]";
    if boxed && (clause.opening..i + 2).any(|k| clause.words.at(k) == "x") {
        return Some((Act::Complete(i + if clause.at(i) == "x" { 2 } else { 0 }, clause.end), 0.8));
    }
    let mark = (i..=clause.end.min(clause.words.len()))
        .find(|k| clause.words.phrase(*k, lexicon::complete_task::CHECK_MARKS).is_some())?;
    let about = if mark == i { i + 1..clause.end } else { i..mark.min(clause.end) };
    let fits = !about.is_empty() && verb_at(clause, i).is_none() && !super::is_doing(clause, about.start) || mark == i;
    (fits && !clause.asked && about.len() <= 7).then_some((Act::Complete(about.start, about.end), 0.75))
}

fn before_comma(clause: &Clause, from: usize) -> usize {
    clause.seek(from, lexicon::grammar::CLAUSE_MARKS).map_or(clause.end, |(at, _)| at)
}

/// What tells that a remark about the past is not meant as news of a task.
fn wants_more(clause: &Clause) -> bool {
    clause.has(lexicon::complete_task::WANTS_MORE)
}

/// Whether a date that has not come yet is named.
fn future(clause: &Clause) -> bool {
    clause.has(lexicon::complete_task::FUTURE)
}
