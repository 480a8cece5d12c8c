//! Phrase structure that several rules share: pronouns, definite noun phrases, subjects, passives.

use std::ops::Range;

use crate::clause::Clause;
use crate::lexicon;
use crate::numbers;
use crate::phrases::Phrases;
use crate::vocabulary::{self, Noun};

/// Returns the length of a pronoun or a noun without a name at `i`: "it", "that one", "them", "both", "the task".
/// "that", "this", "those", "these" and "both" must stand alone. They do so before the end, a mark, a date or a
/// function word such as "to". Returns `None` if they belong to a noun ("that report"), inside of a date, and for other
/// words. Lengths are in tokens.
pub(super) fn pronoun_length(clause: &Clause, i: usize) -> Option<usize> {
    if let Some(n) = bare_noun_length(clause, i) {
        return Some(n);
    }
    let n = clause.phrase(i, lexicon::grammar::POINTERS).filter(|_| clause.date_at(i).is_none())?;
    let determiner = matches!(clause.at(i), "that" | "this" | "those" | "these" | "both") && n == 1;
    let alone = !clause.words.is_word(i + n)
        || i + n >= clause.end
        || is_function_word(clause.at(i + n))
        || clause.date_at(i + n).is_some();
    (!determiner || alone).then_some(n)
}

/// Returns the length in tokens of a determiner and a noun without a name at `i`: "the task", "that reminder".
/// Determiners are "the", "my", "that", "this", "those" and "these". The end, a mark or a function word such as "off"
/// must follow. "to" and "for" count only before a date. Returns `None` for lists, and if a name follows ("the task
/// about …").
fn bare_noun_length(clause: &Clause, i: usize) -> Option<usize> {
    let article = matches!(clause.at(i), "the" | "that" | "my" | "this" | "those" | "these");
    let noun = clause.noun_at(i + 1).filter(|noun| article && noun.noun != Noun::List)?;
    let alone = noun.end >= clause.end
        || !clause.words.is_word(noun.end)
        || is_function_word(clause.at(noun.end)) && clause.at(noun.end) != "to" && clause.at(noun.end) != "for"
        || matches!(clause.at(noun.end), "to" | "for")
            && clause.date_at(noun.end + 1).or(clause.date_at(noun.end)).is_some();
    alone.then_some(noun.end - i)
}

/// Returns true for words that cannot begin a noun.
fn is_function_word(word: &str) -> bool {
    lexicon::grammar::SMALL_WORDS.contains(word)
}

/// Returns true if a definite object begins at `i`: "the …", "my …", "it", "all", "everything", "#". A quoted title, a
/// number in digits and a word for a task count, too. So does a capitalised word after the start of the clause. A
/// capitalised date and "I" do not count.
pub(super) fn is_definite(clause: &Clause, i: usize) -> bool {
    let word = clause.at(i);
    lexicon::grammar::DEFINITE.contains(word)
        || clause.words.is_quoted(i)
        || clause.noun_at(i).is_some()
        || numbers::parse_digits(word).is_some()
        || i > clause.start && is_name(clause, i)
}

/// Returns true if the word is capitalized and is not a date.
pub(super) fn is_name(clause: &Clause, i: usize) -> bool {
    let capital = |i: usize| clause.words.text(i..i + 1).starts_with(char::is_uppercase);
    capital(i) && i < clause.end && clause.words.text(i..i + 1) != "I" && clause.date_at(i).is_none()
}

/// Returns true if the range contains a word for a task or a reminder. Lists do not count.
pub(super) fn has_task(clause: &Clause, range: Range<usize>) -> bool {
    clause.nouns_in(range).any(|noun| noun.noun != Noun::List)
}

/// Returns true if the range contains a word for a task or a reminder, or a word for an entry: "… one", "the second".
pub(super) fn names_entry(clause: &Clause, range: Range<usize>) -> bool {
    has_task(clause, range.clone()) || range.into_iter().any(|i| lexicon::grammar::ENTRY_WORDS.contains(clause.at(i)))
}

/// Returns the position and the length of a passive with one of the participles: "has been moved", "needs to be
/// pushed". It begins at or after `from`. A form of "be" or "get" of up to three tokens must directly precede the
/// participle. Only the first participle after `from` is examined. Returns `None` if it has no such form before it.
pub(crate) fn find_passive(clause: &Clause, from: usize, participles: Phrases) -> Option<(usize, usize)> {
    let (at, n) = clause.find_phrase(from + 1, participles)?;
    let be = (from.max(at.saturating_sub(3))..at)
        .find(|k| clause.phrase(*k, lexicon::grammar::PASSIVE_FORMS) == Some(at - k))?;
    Some((be, at + n - be))
}

/// Returns the subject of a remark in the range: "not feeling [the gym] today", "[the report] is more important". It
/// begins with the first "the", "my" or similar word or quote, else with the first token of the range. It ends before a
/// verb such as "is", a connective ("so", "but"), a date or a mark. Without such a word or quote, a range that begins
/// with a pronoun, a command verb or a mark yields `None`. So does an empty range.
pub(super) fn find_subject(clause: &Clause, range: Range<usize>) -> Option<Range<usize>> {
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

/// Returns true if the word is a pronoun.
pub(super) fn is_pronoun(word: &str) -> bool {
    lexicon::grammar::PRONOUNS.contains(word)
}
