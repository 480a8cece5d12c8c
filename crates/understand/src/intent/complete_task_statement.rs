//! Recognises complete_task in statements: "the laundry's sorted", "eggs bought", "I've called the plumber", "done!".
//!
//! The statement begins at `i`. The rules return the action with its confidence, or `None` if they do not match.
//! Explicit states ("done", "sorted", "taken care of") are surer than participles of chores ("painted"). A definite
//! object begins with "the", "my", "it", a quote, a number, a name or a word for a task.

use super::{CommandAction, Guess, complete_task_past, grammar, verb_at};
use crate::clause::Clause;
use crate::lexicon;
use crate::vocabulary::Noun;

/// Recognises "… is done", "the car's been washed", "tax return filed", "that's the ironing finished". The subject
/// begins at `i`. A command verb or a word that begins no statement ("what", "I", "if", "a") does not match. "that's
/// …", "it's done" and "they're both done" are checked before that rule.
pub(super) fn recognise(clause: &Clause, i: usize) -> Guess {
    if let Some(guess) = recognise_presented(clause, i) {
        return Some(guess);
    }
    if lexicon::complete_task::NOT_STATEMENTS.contains(clause.at(i)) || verb_at(clause, i).is_some() {
        return None;
    }
    recognise_with_verb(clause, i).or_else(|| recognise_bare(clause, i))
}

/// Recognises "that takes care of the claim" (0.7), "they're both done", "it's been painted" (0.8) and "that's the
/// ironing finished" (0.78). "that's …" needs a definite object and a state within six tokens. The last two forms need
/// the end, a date, a mark or a closing remark after the state. They do not match in questions. "that's …" does not
/// match in other domains and plans.
fn recognise_presented(clause: &Clause, i: usize) -> Guess {
    if let Some(n) = clause.phrase(i, lexicon::complete_task::TAKES_CARE_OF) {
        return (i + n < clause.end).then_some((CommandAction::Complete(i + n, clause.end), 0.7));
    }
    if let Some(n) = clause.phrase(i, lexicon::complete_task::BOTH_ARE)
        && let Some(m) = done_length(clause, i + n + filler_length(clause, i + n))
        && closes_statement(clause, i + n + filler_length(clause, i + n) + m)
        && !clause.is_question
    {
        return Some((CommandAction::Complete(i, i + 1), 0.8));
    }
    let n = clause.phrase(i, lexicon::complete_task::THAT_IS)?;
    let from = i + n;
    if !grammar::is_definite(clause, from) {
        return None;
    }
    let k = (from + 1..clause.end.min(from + 7))
        .find(|k| done_length(clause, *k).is_some_and(|m| closes_statement(clause, k + m)))?;
    (!clause.is_out_of_scope() && !clause.is_question).then_some((CommandAction::Complete(from, k), 0.78))
}

/// Returns the number of tokens of a word or participle at `i` that means "done", with its particle ("picked up").
/// Returns `None` for any other word.
fn done_length(clause: &Clause, i: usize) -> Option<usize> {
    complete_task_past::finished_length(clause, i).or_else(|| participle_length(clause, i))
}

/// Returns the number of tokens of a participle of a chore at `i`, with one particle ("picked up"). Any word of five
/// letters or more in "ed" counts, unless it describes a feeling or a change. Past tenses that are no participles
/// ("took") do not count. "called" counts only after "been" and not before "off". Returns `None` for other words and
/// beyond the clause.
fn participle_length(clause: &Clause, i: usize) -> Option<usize> {
    let word = clause.at(i);
    let called = word == "called" && clause.before(i) == "been" && clause.at(i + 1) != "off";
    let deed = called
        || complete_task_past::is_participle(word)
        || complete_task_past::is_deed(word) && !complete_task_past::is_chore(word);
    (deed && i < clause.end).then(|| 1 + complete_task_past::particle_length(clause.at(i + 1)))
}

/// Returns the number of filler tokens at `i` between "is" and "done", or 0.
fn filler_length(clause: &Clause, i: usize) -> usize {
    clause.phrase(i, lexicon::complete_task::FILLERS).unwrap_or(0)
}

/// Returns true if a statement can end before `i`: at the end of the clause, or before a date, a mark, "and" or a
/// closing remark.
pub(super) fn closes_statement(clause: &Clause, i: usize) -> bool {
    i >= clause.end || clause.date_at(i).is_some() || clause.phrase(i, lexicon::complete_task::TAILS).is_some()
}

/// Recognises a statement with a form of "be", "get", "have" or "as" in its first nine tokens: "the fence is painted",
/// "the laundry's sorted". "has" and "have" need "been". The state must directly follow, after adverbs such as "all" or
/// "now". The end, a date, a mark or a closing remark must follow it. An explicit state ("done") yields 0.8, a
/// participle 0.64. A participle does not match in questions. With an indefinite subject, it needs "'s" or a verb at
/// most three tokens after `i`. Returns `None` for other domains, and with an indefinite subject and a participle also
/// for plans.
fn recognise_with_verb(clause: &Clause, i: usize) -> Guess {
    for k in i..clause.end.min(i + 9) {
        let word = clause.at(k);
        let be = k > i && matches!(word, "is" | "are" | "was" | "were" | "got" | "has" | "have" | "as");
        let suffix = word.ends_with("'s") && !lexicon::complete_task::NOT_CONTRACTIONS.contains(word);
        if !be && !suffix {
            continue;
        }
        let at = k + 1 + filler_length(clause, k + 1);
        let been = !matches!(word, "has" | "have") || (k + 1..at).any(|m| clause.at(m) == "been");
        if !done_length(clause, at).is_some_and(|n| been && closes_statement(clause, at + n)) {
            continue;
        }
        let sure = complete_task_past::finished_length(clause, at).is_some();
        let other =
            if sure || grammar::is_definite(clause, i) { clause.is_other_domain() } else { clause.is_out_of_scope() };
        let general = !(sure || suffix || k <= i + 3 || grammar::is_definite(clause, i));
        if other || general || clause.is_question && !sure {
            return None;
        }
        return Some((CommandAction::Complete(i, if suffix { k + 1 } else { k }), if sure { 0.8 } else { 0.64 }));
    }
    None
}

/// Recognises statements without a verb: "gym done for today" (0.78), "eggs bought" (0.6). The state is "done" or a
/// similar word, or a known participle of a chore. It follows one to five tokens after `i` and closes the statement.
/// "complete" counts only as the second and last word. Returns `None` if a pronoun or a mark precedes the state, and
/// after "get" or "getting". A date with "by", a repetition, and words of other domains or plans exclude it.
/// Participles also do not match in questions and after plural words for tasks.
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
    let is_not_report =
        !(i..k).all(plain) || clause.is_question && !sure || clause.at(k - 1) == "get" || clause.at(k - 1) == "getting";
    let list = clause.nouns_in(i..k).any(|noun| noun.plural && !sure);
    let timed = clause.dates.iter().any(|found| clause.at(found.tokens.start) == "by" || found.parts.repeat.is_some());
    if is_not_report || list || timed || clause.is_out_of_scope() || sure && k - i > 5 {
        return None;
    }
    Some((CommandAction::Complete(i, k), if sure { 0.78 } else { 0.6 }))
}

/// Recognises a past activity that names the task: "called mom", "I got the milk" (0.62). Verbs of chores need only an
/// object. General verbs ("got", "went") and other words in "ed" need a definite object and "I" or a similar lead.
/// "got" and "did" need no lead in up to six tokens without a date. "I removed …" and similar words need a word for a
/// task. Except for these, the clause has at most ten tokens. The future ("tomorrow", "by") and words such as "but",
/// "remind" or "how" exclude it. After "already", "just", "finally" or "now" (0.68), any past tense counts, without
/// these limits. Words of other domains or plans exclude all but chores with a lead or a definite object. Questions,
/// plural words for tasks and "me" as the object do not match. The object ends before a comma, "so" or a dash.
///
/// "I managed to reach the landlord" (0.66) has at most 14 tokens. Only questions and words such as "but" exclude it.
pub(super) fn recognise_deed(clause: &Clause, i: usize) -> Guess {
    let n = clause.phrase(i, lexicon::complete_task::DEED_LEADS).unwrap_or(0);
    if let Some(m) = clause.phrase(i + n, lexicon::complete_task::MANAGED).filter(|m| n > 0 && i + n + m < clause.end) {
        let fits = !clause.is_question && clause.end - i <= 14 && !excludes_report(clause);
        return fits.then_some((CommandAction::Complete(i + n + m, end_before_comma(clause, i + n + m)), 0.66));
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
    let is_not_report = excludes_report(clause) || !chore && !clause.dates.is_empty() && n == 0 || is_future(clause);
    let past = (chore || plain || other) && !is_not_report && clause.end - i <= 10
        || sure && complete_task_past::is_past(verb);
    let removed = !chore && !sure && n > 0 && clause.has_noun() && !is_not_report;
    // "paid" needs an object, "called" needs a person.
    let fits = (past || removed)
        && object < clause.end
        && (!clause.is_out_of_scope() || chore && (n > 0 || definite))
        && !clause.is_question;
    let named = clause.words.is_word(object) || clause.words.is_quoted(object);
    let listed = clause.noun_in(object..clause.end).is_some_and(|noun| noun.plural) || clause.at(object) == "me";
    (fits && named && !listed)
        .then_some((CommandAction::Complete(object, end_before_comma(clause, object)), if sure { 0.68 } else { 0.62 }))
}

/// Recognises a report about the task in context ([`CommandAction::Finished`]): "done!", "yep did it" (0.75), "task
/// done" (0.72). Only a date may follow it. Also recognises check marks: "\[x\] book flights" (0.8), "essay ✔", "✔
/// essay" (0.75). A task next to "✔" has up to seven tokens. Before the sign, it must not begin with a command verb or
/// an activity. The sign may directly follow the clause. "✔" alone yields an empty range. Returns `None` for questions,
/// except with "\[x\]".
pub(super) fn recognise_alone(clause: &Clause, i: usize) -> Guess {
    let only = |at: usize| {
        at >= clause.end
            || clause.date_at(at).is_some() && clause.dates.last().is_some_and(|found| found.tokens.end >= clause.end)
    };
    if clause.phrase(i, lexicon::complete_task::ALONE).is_some_and(|n| only(i + n)) && !clause.is_question {
        return Some((CommandAction::Finished, 0.75));
    }
    let noun = clause.noun_at(i).filter(|noun| !noun.plural && noun.noun != Noun::List);
    if noun
        .is_some_and(|noun| complete_task_past::finished_length(clause, noun.end).is_some_and(|n| only(noun.end + n)))
        && !clause.is_question
    {
        return Some((CommandAction::Finished, 0.72));
    }
    let boxed = clause.words.before(i) == "]" || clause.at(i) == "x" && clause.at(i + 1) == "]";
    if boxed && (clause.outer_start..i + 2).any(|k| clause.words.at(k) == "x") {
        return Some((CommandAction::Complete(i + if clause.at(i) == "x" { 2 } else { 0 }, clause.end), 0.8));
    }
    let mark = (i..=clause.end.min(clause.words.len()))
        .find(|k| clause.words.phrase(*k, lexicon::complete_task::CHECK_MARKS).is_some())?;
    let about = if mark == i { i + 1..clause.end } else { i..mark.min(clause.end) };
    let fits =
        !about.is_empty() && verb_at(clause, i).is_none() && !super::is_activity(clause, about.start) || mark == i;
    (fits && !clause.is_question && about.len() <= 7).then_some((CommandAction::Complete(about.start, about.end), 0.75))
}

/// Returns the position of the first comma or similar mark after `from`, or the end of the clause.
fn end_before_comma(clause: &Clause, from: usize) -> usize {
    clause.find_phrase(from, lexicon::grammar::CLAUSE_MARKS).map_or(clause.end, |(at, _)| at)
}

/// Returns true if the clause contains words that exclude a report.
fn excludes_report(clause: &Clause) -> bool {
    clause.has(lexicon::complete_task::REQUEST_LEADS)
}

/// Returns true if the clause refers to the future.
fn is_future(clause: &Clause) -> bool {
    clause.has(lexicon::complete_task::FUTURE)
}
