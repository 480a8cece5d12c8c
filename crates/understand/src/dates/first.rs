//! Which readers a word concerns: most words begin no date, and of those that do each begins only a few kinds.
//!
//! So a reader is not asked about a word it would refuse. A word with figures or marks in it may be anything and
//! concerns all of them; names of days and months may have slips and are looked at more closely.

use super::{holidays, names};
use crate::lexicon;
use crate::phrases::{Meanings, Phrases, meanings};
use crate::tokens::Words;

/// A set of readers, in the order in which they are asked.
pub(super) type Readers = u16;

pub(super) const REPEAT: Readers = 1;
pub(super) const OFFSET: Readers = 1 << 1;
pub(super) const TIMES: Readers = 1 << 2;
pub(super) const CLOCK: Readers = 1 << 3;
pub(super) const HABIT: Readers = 1 << 4;
pub(super) const PART: Readers = 1 << 5;
pub(super) const SPAN: Readers = 1 << 6;
pub(super) const DAY: Readers = 1 << 7;
pub(super) const FEAST: Readers = 1 << 8;
const ALL: Readers = (1 << 9) - 1;
/// No reader: the word begins a piece only where a word behind it does.
const ARTICLE: Readers = 1 << 9;

const NAMES: Readers = REPEAT | SPAN | DAY;

const FIRST: &[(Readers, Phrases)] = &[
    (ARTICLE | REPEAT | OFFSET | CLOCK, lexicon::date_starts::INDEFINITE_ARTICLES),
    (ARTICLE | OFFSET | SPAN | DAY, lexicon::date_starts::DEFINITE_ARTICLE),
    (CLOCK | PART | SPAN | DAY | FEAST, lexicon::date_starts::THIS),
    (OFFSET | SPAN | DAY | FEAST, lexicon::date_starts::NEXT),
    (REPEAT | PART | SPAN | DAY, lexicon::date_starts::FIRST_OR_LAST),
    (SPAN | DAY, lexicon::date_starts::NEIGHBOURS),
    (REPEAT | OFFSET | TIMES | CLOCK | SPAN | DAY | FEAST, lexicon::date_starts::THREE),
    (REPEAT | OFFSET | TIMES | CLOCK | SPAN | DAY, lexicon::numbers::CARDINALS),
    (REPEAT | SPAN | DAY, lexicon::numbers::ORDINALS),
    (OFFSET | CLOCK, lexicon::date_starts::AMOUNTS),
    (OFFSET | CLOCK | SPAN, lexicon::date_starts::QUARTER),
    (REPEAT | OFFSET | DAY, lexicon::date_starts::DAY),
    (OFFSET | PART, lexicon::date_starts::NIGHT),
    (REPEAT, lexicon::date_starts::REPEATS),
    (REPEAT | SPAN, lexicon::date_starts::REPEATS_AND_SPANS),
    (SPAN, lexicon::date_starts::SPANS),
    (PART | SPAN, lexicon::date_starts::EDGES),
    (CLOCK, lexicon::date_starts::CLOCK),
    (PART, lexicon::date_starts::PARTS),
    (HABIT | PART, lexicon::date_starts::LUNCHTIME),
    (HABIT, lexicon::date_starts::HABITS),
    (DAY, lexicon::date_starts::DAYS),
    (REPEAT | DAY, lexicon::date_starts::SHORT_WEEKDAYS),
    (SPAN | DAY, lexicon::date_starts::SHORT_MONTHS),
    (SPAN | DAY | FEAST, lexicon::date_starts::APRIL),
    (ALL, lexicon::date_starts::PLUS),
];

const FIRST_WORDS: Meanings<Readers> = meanings!(Readers, FIRST);

/// The readers that are asked about a piece at `i`. An article begins one only before a word that does, or before one
/// of those that are counted.
#[inline]
pub(super) fn readers(words: &Words, i: usize) -> Readers {
    let own = alone(words, i);
    let counted = |i: usize| words.is_one_of(i, lexicon::date_starts::COUNTED) || names::unit(words.at(i)).is_some();
    if own & ARTICLE != 0 && alone(words, i + 1) == 0 && !counted(i + 1) { 0 } else { own & ALL }
}

/// The same of the word itself, whatever follows.
fn alone(words: &Words, i: usize) -> Readers {
    // Of a word that stands in two lists the first counts.
    let known = FIRST_WORDS.at(words, i).unwrap_or_else(|| if holidays::may_begin(words, i) { FEAST } else { 0 });
    let readers = match (known, words.is_letters(i)) {
        (0, true) => by_name(words.at(i)),
        (known, true) => known,
        (0, false) if !is_built(words.at(i)) => by_name(words.at(i)),
        _ => ALL,
    };
    if readers != 0 && is_domain(words, i) { 0 } else { readers }
}

/// "3pm", "twenty-two".
fn is_built(word: &str) -> bool {
    word.bytes().any(|b| b.is_ascii_digit() || b == b'-')
}

/// A long name of a day or a month, perhaps with a slip.
fn by_name(word: &str) -> Readers {
    let name =
        word.len() >= 6 && (names::weekday(word).is_some() || names::is_tomorrow(word) || names::month(word).is_some());
    if name { NAMES } else { 0 }
}

/// "monday.com" is an address.
fn is_domain(words: &Words, i: usize) -> bool {
    words.touches_next(i)
        && words.at(i + 1) == "."
        && words.touches_next(i + 1)
        && words.is_one_of(i + 2, lexicon::date_starts::DOMAIN_ENDS)
}
