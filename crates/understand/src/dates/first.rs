//! Which readers a word concerns: most words begin no date, and of those that do each begins only a few kinds.
//!
//! So a reader is not asked about a word it would refuse. A word with figures or marks in it may be anything and
//! concerns all of them; names of days and months may have slips and are looked at more closely.

use super::{holidays, names};
use crate::phrases::{Meanings, Phrases, meanings, phrases};
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
    (ARTICLE | REPEAT | OFFSET | CLOCK, phrases!("a | an")),
    (ARTICLE | OFFSET | SPAN | DAY, phrases!("the")),
    (CLOCK | PART | SPAN | DAY | FEAST, phrases!("this")),
    (OFFSET | SPAN | DAY | FEAST, phrases!("next")),
    (REPEAT | PART | SPAN | DAY, phrases!("last | first")),
    (SPAN | DAY, phrases!("nxt | past | previous | prior | coming | upcoming | following | current")),
    (
        REPEAT | OFFSET | TIMES | CLOCK | SPAN | DAY,
        phrases!(
            "one | two | four | five | six | seven | eight | nine | ten | eleven | twelve | thirteen | \
             fourteen | fifteen | sixteen | seventeen | eighteen | nineteen | twenty | thirty | forty | fifty | \
             sixty | seventy | eighty | ninety"
        ),
    ),
    (REPEAT | OFFSET | TIMES | CLOCK | SPAN | DAY | FEAST, phrases!("three")),
    (
        REPEAT | SPAN | DAY,
        phrases!(
            "second | third | fourth | fifth | sixth | seventh | eighth | ninth | tenth | eleventh | twelfth | \
             thirteenth | fourteenth | fifteenth | sixteenth | seventeenth | eighteenth | nineteenth | twentieth | \
             thirtieth"
        ),
    ),
    (OFFSET | CLOCK, phrases!("half | couple | few | several | some | another")),
    (OFFSET | CLOCK | SPAN, phrases!("quarter")),
    (REPEAT | OFFSET | DAY, phrases!("day")),
    (OFFSET | PART, phrases!("night")),
    (
        REPEAT,
        phrases!(
            "every | each | evry | ever | evey | evrey | eveyr | once | twice | daily | everyday | nightly | \
             everynight | hourly | weekly | biweekly | fortnightly | alternate | alternating | semiweekly | bi | \
             semimonthly | semiannually | semiannual | biannually | biennially | biennial | mwf | weekday | monthly | \
             bimonthly | quarterly | yearly | annually | annual | weekdays | workdays | weekends | mornings | \
             afternoons | evenings | nights"
        ),
    ),
    (REPEAT | SPAN, phrases!("week | weekend | end | beginning | start")),
    (
        SPAN,
        phrases!(
            "weekend's | wknd | eom | eow | eoy | eoq | close | middle | rest | remainder | midweek | \
             month | month's | year | week's | quarter's | spring | summer | autumn | fall | winter"
        ),
    ),
    (PART | SPAN, phrases!("mid | early | late")),
    (CLOCK, phrases!("noon | midday | noontime | midnight | high")),
    (
        PART,
        phrases!(
            "tonight | tonite | tonight's | tonights | 2nite | am | pm | eod | cob | morning | mornin | morn | \
             morning's | afternoon | afternon | aftenoon | arvo | afternoon's | evening | evenin | eve | evening's | \
             nite | night's"
        ),
    ),
    (HABIT | PART, phrases!("lunchtime")),
    (
        HABIT,
        phrases!(
            "lunch | dinner | dinnertime | breakfast | suppertime | bedtime | work | school | bed | dawn | sunrise | \
             sunset | dusk | supper"
        ),
    ),
    (
        DAY,
        phrases!(
            "overmorrow | today | today's | todays | yesterday | yesterday's | tmrw | tmr | tmw | tomo | todya | \
             tday | tody | tmrrw | tomoz | tmmrw | tmoro"
        ),
    ),
    (REPEAT | DAY, phrases!("mon | tue | tues | wed | weds | thu | thur | thurs | fri | sat | sun")),
    (
        SPAN | DAY,
        phrases!(
            "jan | feb | mar | apr | may | jun | jul | aug | sep | sept | oct | nov | dec | march | june | \
             july | august | aprl | apirl | arpil | jully | juli | agust | augst | augest"
        ),
    ),
    (SPAN | DAY | FEAST, phrases!("april")),
    (ALL, phrases!("+")),
    (FEAST, holidays::FIRST),
];

const FIRST_WORDS: Meanings<Readers> = meanings!(Readers, FIRST);

/// The readers that are asked about a piece at `i`. An article begins one only before a word that does, or before one
/// of those that are counted.
#[inline]
pub(super) fn readers(words: &Words, i: usize) -> Readers {
    let own = alone(words, i);
    let counted =
        |i: usize| words.is_one_of(i, phrases!("pair | dozen | hundred")) || names::unit(words.at(i)).is_some();
    if own & ARTICLE != 0 && alone(words, i + 1) == 0 && !counted(i + 1) { 0 } else { own & ALL }
}

/// The same of the word itself, whatever follows.
fn alone(words: &Words, i: usize) -> Readers {
    // Of a word that stands in two lists the first counts.
    let known = FIRST_WORDS.at(words, i).unwrap_or_default();
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
    const ENDS: Phrases = phrases!("com | org | net | io | co | app | dev | ai | de | uk | eu");
    words.touches_next(i) && words.at(i + 1) == "." && words.touches_next(i + 1) && words.is_one_of(i + 2, ENDS)
}
