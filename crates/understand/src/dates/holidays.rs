//! Parses names of holidays. A name is a date only after "on", "by" and similar words: a Christmas tree is not a date.
//!
//! Holidays of lunar calendars are not supported.
//!
//! Conventions of the `dates` module: `i` is the first token of the piece and `lead_start` the first of the
//! prepositions before it. A parser returns its result and the position after it, or `None` if nothing matches. "A noun
//! follows" means that an ordinary word follows, see [`DateScan::can_end_at`].

use jiff::civil::{Date, Weekday};

use super::{DateParts, DateScan, calendar, context, day};
use crate::lexicon;
use crate::phrases::{PhraseMap, Phrases, phrase_map};
use crate::tokens::TokenizedText;

/// Returns the date of a holiday in a year.
type HolidayRule = fn(i16) -> Option<Date>;

const RULES: &[(HolidayRule, Phrases)] = &[
    (|y| Date::new(y, 1, 1).ok(), lexicon::holidays::NEW_YEARS_DAY),
    (|y| Date::new(y, 1, 6).ok(), lexicon::holidays::EPIPHANY),
    (|y| Date::new(y, 1, 25).ok(), lexicon::holidays::BURNS_NIGHT),
    (|y| Date::new(y, 1, 26).ok(), lexicon::holidays::AUSTRALIA_DAY),
    (|y| Date::new(y, 2, 2).ok(), lexicon::holidays::GROUNDHOG_DAY),
    (|y| Date::new(y, 2, 14).ok(), lexicon::holidays::VALENTINES_DAY),
    (|y| Date::new(y, 2, 29).ok(), lexicon::holidays::LEAP_DAY),
    (|y| Date::new(y, 3, 8).ok(), lexicon::holidays::WOMENS_DAY),
    (|y| Date::new(y, 3, 14).ok(), lexicon::holidays::PI_DAY),
    (|y| Date::new(y, 3, 15).ok(), lexicon::holidays::IDES_OF_MARCH),
    (|y| Date::new(y, 3, 17).ok(), lexicon::holidays::ST_PATRICKS_DAY),
    (|y| Date::new(y, 4, 1).ok(), lexicon::holidays::APRIL_FOOLS_DAY),
    (|y| Date::new(y, 4, 15).ok(), lexicon::holidays::TAX_DAY),
    (|y| Date::new(y, 4, 22).ok(), lexicon::holidays::EARTH_DAY),
    (|y| Date::new(y, 4, 23).ok(), lexicon::holidays::ST_GEORGES_DAY),
    (|y| Date::new(y, 4, 25).ok(), lexicon::holidays::ANZAC_DAY),
    (|y| Date::new(y, 5, 4).ok(), lexicon::holidays::STAR_WARS_DAY),
    (|y| Date::new(y, 5, 5).ok(), lexicon::holidays::CINCO_DE_MAYO),
    (|y| Date::new(y, 6, 14).ok(), lexicon::holidays::FLAG_DAY),
    (|y| Date::new(y, 6, 19).ok(), lexicon::holidays::JUNETEENTH),
    (|y| Date::new(y, 7, 1).ok(), lexicon::holidays::CANADA_DAY),
    (|y| Date::new(y, 7, 4).ok(), lexicon::holidays::INDEPENDENCE_DAY),
    (|y| Date::new(y, 7, 14).ok(), lexicon::holidays::BASTILLE_DAY),
    (|y| Date::new(y, 10, 31).ok(), lexicon::holidays::HALLOWEEN),
    (|y| Date::new(y, 11, 1).ok(), lexicon::holidays::ALL_SAINTS_DAY),
    (|y| Date::new(y, 11, 2).ok(), lexicon::holidays::ALL_SOULS_DAY),
    (|y| Date::new(y, 11, 5).ok(), lexicon::holidays::GUY_FAWKES_NIGHT),
    (|y| Date::new(y, 11, 11).ok(), lexicon::holidays::VETERANS_DAY),
    (|y| Date::new(y, 11, 30).ok(), lexicon::holidays::ST_ANDREWS_DAY),
    (|y| Date::new(y, 12, 6).ok(), lexicon::holidays::ST_NICHOLAS_DAY),
    (|y| Date::new(y, 12, 24).ok(), lexicon::holidays::CHRISTMAS_EVE),
    (|y| Date::new(y, 12, 25).ok(), lexicon::holidays::CHRISTMAS_DAY),
    (|y| Date::new(y, 12, 26).ok(), lexicon::holidays::BOXING_DAY),
    (|y| Date::new(y, 12, 26).ok(), lexicon::holidays::KWANZAA),
    (|y| Date::new(y, 12, 31).ok(), lexicon::holidays::NEW_YEARS_EVE),
    (|y| nth_weekday(y, 1, 3, Weekday::Monday), lexicon::holidays::MLK_DAY),
    (|y| nth_weekday(y, 2, 2, Weekday::Sunday), lexicon::holidays::SUPER_BOWL),
    (|y| nth_weekday(y, 2, 3, Weekday::Monday), lexicon::holidays::PRESIDENTS_DAY),
    (|y| from_easter(y, -47), lexicon::holidays::SHROVE_TUESDAY),
    (|y| from_easter(y, -46), lexicon::holidays::ASH_WEDNESDAY),
    (|y| from_easter(y, -7), lexicon::holidays::PALM_SUNDAY),
    (|y| from_easter(y, -3), lexicon::holidays::MAUNDY_THURSDAY),
    (|y| from_easter(y, -2), lexicon::holidays::GOOD_FRIDAY),
    (|y| from_easter(y, 0), lexicon::holidays::EASTER_SUNDAY),
    (|y| from_easter(y, 1), lexicon::holidays::EASTER_MONDAY),
    (|y| from_easter(y, 39), lexicon::holidays::ASCENSION_DAY),
    (|y| from_easter(y, 49), lexicon::holidays::PENTECOST),
    (|y| from_easter(y, 50), lexicon::holidays::WHIT_MONDAY),
    (|y| nth_weekday(y, 5, 2, Weekday::Sunday), lexicon::holidays::MOTHERS_DAY),
    (|y| Date::new(y, 5, 25).ok()?.nth_weekday(-1, Weekday::Monday).ok(), lexicon::holidays::VICTORIA_DAY),
    (|y| nth_weekday(y, 5, -1, Weekday::Monday), lexicon::holidays::MEMORIAL_DAY),
    (|y| nth_weekday(y, 6, 3, Weekday::Sunday), lexicon::holidays::FATHERS_DAY),
    (|y| nth_weekday(y, 9, 1, Weekday::Monday), lexicon::holidays::LABOR_DAY),
    (|y| nth_weekday(y, 10, 2, Weekday::Monday), lexicon::holidays::COLUMBUS_DAY),
    (|y| calendar::plus_days(nth_weekday(y, 11, 1, Weekday::Monday)?, 1), lexicon::holidays::ELECTION_DAY),
    (|y| nth_weekday(y, 11, 4, Weekday::Thursday), lexicon::holidays::THANKSGIVING),
    (|y| calendar::plus_days(nth_weekday(y, 11, 4, Weekday::Thursday)?, 1), lexicon::holidays::BLACK_FRIDAY),
    (|y| calendar::plus_days(nth_weekday(y, 11, 4, Weekday::Thursday)?, 4), lexicon::holidays::CYBER_MONDAY),
    (|y| calendar::plus_days(nth_weekday(y, 11, 4, Weekday::Thursday)?, 5), lexicon::holidays::GIVING_TUESDAY),
];

const HOLIDAYS: PhraseMap<HolidayRule> = phrase_map!(HolidayRule, RULES);

/// Returns true if the name of a holiday may begin with the word at `i`.
pub(super) fn may_begin(words: &TokenizedText, i: usize) -> bool {
    words.starts_phrase(i, HOLIDAYS.phrases)
}

/// Returns the `n`-th such weekday of a month, or `None` if there is none. -1 is the last one.
fn nth_weekday(year: i16, month: i8, n: i8, day: Weekday) -> Option<Date> {
    Date::new(year, month, 1).ok()?.nth_weekday_of_month(n, day).ok()
}

fn from_easter(year: i16, days: i64) -> Option<Date> {
    calendar::plus_days(easter(year)?, days)
}

/// Returns Easter Sunday of a year in the Gregorian calendar, with the algorithm of Gauss. Returns `None` if the date
/// is not valid.
fn easter(year: i16) -> Option<Date> {
    let y = i32::from(year);
    let golden = y % 19;
    let century = y / 100;
    let moon = (century - century / 4 - (8 * century + 13) / 25 + 19 * golden + 15) % 30;
    let full = moon - (moon / 28) * (1 - (29 / (moon + 1)) * ((21 - golden) / 11));
    let weekday = (y + y / 4 + full + 2 - century + century / 4) % 7;
    let offset = full - weekday;
    let month = 3 + (offset + 40) / 44;
    let day = offset + 28 - 31 * (month / 4);
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

/// Parses a holiday in a context that makes it a date. The token at `i` is the first of the name, or "next" or "this"
/// directly before the name, which do not change the year. A year may follow the name. The context is one of these:
/// - "next" or "this" is at `i`, or a preposition precedes `i` and the token directly before `i` is not "for", "the" or
///   "of". "the" may precede "new year". No noun follows.
/// - It is the whole text.
/// - It ends the text without a preposition and not after "for". Its last word is explicit ("day", "eve", "night", a
///   weekday as in "Good Friday", "nye"), begins with "20" or is "year". So "Christmas '27" does not match.
/// - A clock time or a part of the day precedes it, and no noun follows. Or one follows it.
///
/// Returns the date, which is the next one from today on or the one in the given year, and the next position.
pub(crate) fn parse(scan: &DateScan, i: usize, lead_start: usize, parts: &DateParts) -> Option<(Date, usize)> {
    let at = i + usize::from(matches!(scan.at(i), "next" | "this"));
    let (date, end) = parse_named(scan, at)?;
    let led = i > lead_start && !matches!(scan.before(i), "for" | "the" | "of") || at > i;
    let is_explicit = lexicon::holidays::LAST_WORDS.contains(scan.before(end))
        || scan.before(end).starts_with("20")
        || scan.before(end) == "year";
    let day = is_explicit && end == scan.end && scan.before(i) != "for" && i == lead_start;
    let led = led || i > lead_start && scan.at(i) == "new" && scan.before(i) == "the";
    let beside = (parts.clock.is_some() || parts.part.is_some() || parts.looks_ahead) && scan.can_end_at(end);
    let timed = || !matches!(scan.before(i), "for" | "my" | "our") && context::precedes_time(scan, end, parts);
    (led && scan.can_end_at(end) || day || scan.covers_all(i, end) || beside || timed()).then_some((date, end))
}

/// Returns the next date of the holiday at `i`, which may be today, and the next position. With a year after the name,
/// it is the date in that year. Does not check the context. Returns `None` if that year, or none of nine years from
/// this one on, has such a day.
pub(crate) fn parse_named(scan: &DateScan, i: usize) -> Option<(Date, usize)> {
    let (rule, len) = HOLIDAYS.phrase(scan.words, i).filter(|(_, len)| i + len <= scan.end)?;
    let (year, end) = day::parse_year(scan, i + len);
    let date = match year {
        Some(year) => rule(year)?,
        None => {
            (0..9).filter_map(|more| rule(scan.today().year().checked_add(more)?)).find(|date| *date >= scan.today())?
        }
    };
    Some((date, end))
}
