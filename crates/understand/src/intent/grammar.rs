//! Phrase structure that several rules share: words that point to a task, definite noun phrases, subjects, passives.

use std::ops::Range;

use crate::clause::Clause;
use crate::lexicon;
use crate::numbers;
use crate::phrases::Phrases;
use crate::vocabulary::{self, Noun};

/// How many tokens "it", "that one", "them" take at `i`.
pub(super) fn pointer(clause: &Clause, i: usize) -> Option<usize> {
    if let Some(n) = bare_noun(clause, i) {
        return Some(n);
    }
    let n = clause.phrase(i, lexicon::grammar::POINTERS).filter(|_| clause.date_at(i).is_none())?;
    let determiner = matches!(clause.at(i), "that" | "this" | "those" | "these" | "both") && n == 1;
    let alone = !clause.words.is_word(i + n)
        || i + n >= clause.end
        || is_small(clause.at(i + n))
        || clause.date_at(i + n).is_some();
    (!determiner || alone).then_some(n)
}

/// "the task", "that reminder", "my to-do": a word for a task that names none.
fn bare_noun(clause: &Clause, i: usize) -> Option<usize> {
    let article = matches!(clause.at(i), "the" | "that" | "my" | "this" | "those" | "these");
    let noun = clause.noun_at(i + 1).filter(|noun| article && noun.noun != Noun::List)?;
    let alone = noun.end >= clause.end
        || !clause.words.is_word(noun.end)
        || is_small(clause.at(noun.end)) && clause.at(noun.end) != "to" && clause.at(noun.end) != "for"
        || matches!(clause.at(noun.end), "to" | "for")
            && clause.date_at(noun.end + 1).or(clause.date_at(noun.end)).is_some();
    alone.then_some(noun.end - i)
}

/// Words that begin no noun.
fn is_small(word: &str) -> bool {
    lexicon::grammar::SMALL_WORDS.contains(word)
}

/// Whether a particular thing is named at `i`: "the …", "my …", a quoted title, a number, "it".
pub(super) fn is_definite(clause: &Clause, i: usize) -> bool {
    let word = clause.at(i);
    lexicon::grammar::DEFINITE.contains(word)
        || clause.words.is_quoted(i)
        || clause.noun_at(i).is_some()
        || numbers::figures(word).is_some()
        || i > clause.start && is_name(clause, i)
}

/// A word with a capital, in a text that does not write all of its words so.
pub(super) fn is_name(clause: &Clause, i: usize) -> bool {
    let capital = |i: usize| clause.words.text(i..i + 1).starts_with(char::is_uppercase);
    capital(i) && i < clause.end && clause.words.text(i..i + 1) != "I" && clause.date_at(i).is_none()
}

/// A word for a task or a reminder, not for a list, in the stretch.
pub(super) fn has_task(clause: &Clause, range: Range<usize>) -> bool {
    clause.nouns_in(range).any(|noun| noun.noun != Noun::List)
}

/// Whether "… one", "the one about …", "the second" or a word for a task stands in the stretch.
pub(super) fn names_entry(clause: &Clause, range: Range<usize>) -> bool {
    has_task(clause, range.clone()) || range.into_iter().any(|i| lexicon::grammar::ENTRY_WORDS.contains(clause.at(i)))
}

/// The passive of one of these participles from `from` on: "has been moved", "needs to be pushed". Where it stands, and
/// its length.
pub(crate) fn passive(clause: &Clause, from: usize, participles: Phrases) -> Option<(usize, usize)> {
    let (at, n) = clause.seek(from + 1, participles)?;
    let be = (from.max(at.saturating_sub(3))..at)
        .find(|k| clause.phrase(*k, lexicon::grammar::PASSIVE_FORMS) == Some(at - k))?;
    Some((be, at + n - be))
}

/// The thing that a remark speaks about: "not feeling [the gym] today", "[the report] is more important".
pub(super) fn subject(clause: &Clause, range: Range<usize>) -> Option<Range<usize>> {
    let opens = |i: &usize| lexicon::grammar::SUBJECT_LEADS.contains(clause.at(*i)) || clause.words.is_quoted(*i);
    let own =
        |i: usize| clause.words.is_word(i) && !is_pronoun(clause.at(i)) && vocabulary::verb(clause.at(i)).is_none();
    let start = range.clone().find(opens).or_else(|| own(range.start).then_some(range.start))?;
    let ends = |i: &usize| {
        lexicon::grammar::VERBS.contains(clause.at(*i))
            || clause.date_at(*i).is_some()
            || !clause.words.is_word(*i) && !clause.words.is_quoted(*i)
    };
    let end = (start + 1..range.end).find(ends).unwrap_or(range.end);
    (end > start).then_some(start..end)
}

pub(super) fn is_pronoun(word: &str) -> bool {
    lexicon::grammar::PRONOUNS.contains(word)
}
