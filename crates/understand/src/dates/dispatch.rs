//! Selects the parsers for a word. Most words begin no date. The remaining ones begin only a few kinds.
//!
//! A parser is skipped for words that it cannot match. Words with digits or hyphens go to all parsers. Names of days
//! and months may be misspelled and are checked separately.

use super::{holidays, names};
use crate::lexicon;
use crate::phrases::{PhraseMap, Phrases, phrase_map};
use crate::tokens::TokenizedText;

/// A set of parsers, in the order of their priority.
pub(super) type ParserSet = u16;

pub(super) const REPEAT: ParserSet = 1;
pub(super) const OFFSET: ParserSet = 1 << 1;
pub(super) const TIMES: ParserSet = 1 << 2;
pub(super) const CLOCK: ParserSet = 1 << 3;
pub(super) const DAILY_EVENT: ParserSet = 1 << 4;
pub(super) const DAY_PART: ParserSet = 1 << 5;
pub(super) const SPAN: ParserSet = 1 << 6;
pub(super) const DAY: ParserSet = 1 << 7;
pub(super) const HOLIDAY: ParserSet = 1 << 8;
const ALL: ParserSet = (1 << 9) - 1;
/// Marks an article, which begins a piece only before a word that does.
const ARTICLE: ParserSet = 1 << 9;

const NAME_PARSERS: ParserSet = REPEAT | SPAN | DAY;

const FIRST_WORD_LISTS: &[(ParserSet, Phrases)] = &[
    (ARTICLE | REPEAT | OFFSET | CLOCK, lexicon::date_starts::INDEFINITE_ARTICLES),
    (ARTICLE | OFFSET | SPAN | DAY, lexicon::date_starts::DEFINITE_ARTICLE),
    (CLOCK | DAY_PART | SPAN | DAY | HOLIDAY, lexicon::date_starts::THIS),
    (OFFSET | SPAN | DAY | HOLIDAY, lexicon::date_starts::NEXT),
    (REPEAT | DAY_PART | SPAN | DAY, lexicon::date_starts::FIRST_OR_LAST),
    (SPAN | DAY, lexicon::date_starts::NEIGHBOURS),
    (REPEAT | OFFSET | TIMES | CLOCK | SPAN | DAY | HOLIDAY, lexicon::date_starts::THREE),
    (REPEAT | OFFSET | TIMES | CLOCK | SPAN | DAY, lexicon::numbers::CARDINALS),
    (REPEAT | SPAN | DAY, lexicon::numbers::ORDINALS),
    (OFFSET | CLOCK, lexicon::date_starts::AMOUNTS),
    (OFFSET | CLOCK | SPAN, lexicon::date_starts::QUARTER),
    (REPEAT | OFFSET | DAY, lexicon::date_starts::DAY),
    (OFFSET | DAY_PART, lexicon::date_starts::NIGHT),
    (REPEAT, lexicon::date_starts::REPEATS),
    (REPEAT | OFFSET | DAY_PART | SPAN, lexicon::date_starts::REPEATS_AND_SPANS),
    (SPAN, lexicon::date_starts::SPANS),
    (DAY_PART | SPAN, lexicon::date_starts::EDGES),
    (CLOCK, lexicon::date_starts::CLOCK),
    (DAY_PART, lexicon::date_starts::PARTS),
    (DAILY_EVENT | DAY_PART, lexicon::date_starts::LUNCHTIME),
    (DAILY_EVENT, lexicon::date_starts::HABITS),
    (DAY, lexicon::date_starts::DAYS),
    (REPEAT | DAY, lexicon::date_starts::SHORT_WEEKDAYS),
    (SPAN | DAY, lexicon::date_starts::SHORT_MONTHS),
    (SPAN | DAY | HOLIDAY, lexicon::date_starts::APRIL),
    (ALL, lexicon::date_starts::PLUS),
];

const FIRST_WORDS: PhraseMap<ParserSet> = phrase_map!(ParserSet, FIRST_WORD_LISTS);

/// Returns the parsers for a piece at `i`. The set is empty (0) if no piece can begin here. An article counts only
/// before another word that begins a piece, or before a unit.
#[inline]
pub(super) fn parsers_for(words: &TokenizedText, i: usize) -> ParserSet {
    let parsers = parsers_for_word(words, i);
    let counted =
        |i: usize| words.is_one_of(i, lexicon::date_starts::COUNTED) || names::time_unit(words.at(i)).is_some();
    if parsers & ARTICLE != 0 && parsers_for_word(words, i + 1) == 0 && !counted(i + 1) { 0 } else { parsers & ALL }
}

/// Returns the parsers for a single word, independent of the next one. A listed word gets the parsers of its first
/// list. The first word of a holiday gets [`HOLIDAY`], a name of a day or month [`NAME_PARSERS`]. Words with digits or
/// hyphens, and listed words with an apostrophe, get all parsers. An article also has the mark [`ARTICLE`]. The set is
/// empty for unknown words and for domain names.
fn parsers_for_word(words: &TokenizedText, i: usize) -> ParserSet {
    // If several lists contain the word, the first one wins.
    let known = FIRST_WORDS.at(words, i).unwrap_or_else(|| if holidays::may_begin(words, i) { HOLIDAY } else { 0 });
    let parsers_found = match (known, words.is_letters(i)) {
        (0, true) => parsers_for_name(words.at(i)),
        (known, true) => known,
        (0, false) if !is_compound(words.at(i)) => parsers_for_name(words.at(i)),
        _ => ALL,
    };
    if parsers_found != 0 && is_domain(words, i) { 0 } else { parsers_found }
}

/// Returns true for words with a digit or a hyphen: "3pm", "twenty-two".
fn is_compound(word: &str) -> bool {
    word.bytes().any(|b| b.is_ascii_digit() || b == b'-')
}

/// Returns the parsers for the name of a day or a month, possibly misspelled. The set is empty for any other word and
/// for words of less than six bytes.
fn parsers_for_name(word: &str) -> ParserSet {
    let name =
        word.len() >= 6 && (names::weekday(word).is_some() || names::is_tomorrow(word) || names::month(word).is_some());
    if name { NAME_PARSERS } else { 0 }
}

/// Returns true for domain names: "monday.com".
fn is_domain(words: &TokenizedText, i: usize) -> bool {
    words.is_adjacent_to_next(i)
        && words.at(i + 1) == "."
        && words.is_adjacent_to_next(i + 1)
        && words.is_one_of(i + 2, lexicon::date_starts::DOMAIN_ENDS)
}
