//! Parses ranges of times or days: "3-4pm", "between 9 and 11", "March 3 to 5".
//!
//! Conventions of the `dates` module: `i` is the first token of the piece, `lead_start` the first of the prepositions
//! before it, and `parts` are the pieces before it. A parser returns its result and the position after it, or `None` if
//! nothing matches. "A noun follows" means that an ordinary word follows, see [`DateScan::can_end_at`].

use super::clock::{self, ClockTime, DayHalf};
use super::names;
use super::{DateParts, DateScan};
use crate::lexicon;
use crate::numbers;

/// Parses two times of one day: "3-4pm", "from 9 to 11", "between 9 and 11", "9 until noon". Returns both and the next
/// position. The context is sure after a day, "from", "between" or "at". Otherwise one time needs am, pm, noon or
/// midnight, or the first needs minutes. "and" links them only after "between". Returns `None` if a noun follows ("5 to
/// 10 people"), and for "to" if a verb such as "move" precedes. If the context is not sure, a multiple of 5 before "to"
/// or "till" counts minutes ("10 to 4pm") and does not match. "5" does so only before 12 or midnight.
pub(crate) fn parse_times(
    scan: &DateScan,
    i: usize,
    lead_start: usize,
    parts: &DateParts,
) -> Option<(ClockTime, ClockTime, usize)> {
    let word = scan.at(i);
    if !word.starts_with(|c: char| c.is_ascii_digit()) && numbers::small_number(word).is_none() {
        return None;
    }
    let lead = if i > lead_start { scan.before(i) } else { "" };
    // "at 5 to 6" is five minutes before six.
    let is_reversed = || {
        let hour = |at: usize| numbers::cardinal(scan.words, at).map(|(n, _)| n);
        hour(i).zip(hour(i + 2)).is_some_and(|(first, second)| first > second)
    };
    let is_end = parts.names_day() && !is_reversed();
    let to_hour = lead == "at" && matches!(scan.at(i + 1), "to" | "till" | "til") && !is_end;
    let to_hour = to_hour && numbers::cardinal(scan.words, i).is_some_and(|(n, _)| matches!(n, 5 | 10 | 20 | 25));
    if to_hour {
        return None;
    }
    let beside = parts.names_day() || matches!(lead, "from" | "between" | "at");
    if let Some((first, second)) = word.split_once('-') {
        let (second, end) = parse_second_time(scan, second, i)?;
        return order_times(parse_clock(first)?, second, beside || has_minutes(first)).map(|(a, b)| (a, b, end));
    }
    let (first, at) = parse_time(scan, i)?;
    let and = scan.at(at) == "and" && lead == "between";
    let link = scan.phrase(at, lexicon::ranges::LINKS).or(and.then_some(1))?;
    if !and && scan.at(at) == "to" && is_change(scan, i) {
        return None;
    }
    let (second, end) = parse_time(scan, at + link)?;
    // "10 to 4pm" is ten minutes before four.
    let minutes = numbers::cardinal(scan.words, i).is_some_and(|(n, _)| n % 5 == 0 && (n > 5 || second.hour % 12 == 0));
    if minutes && !beside && matches!(scan.at(at), "to" | "till" | "til") {
        return None;
    }
    // "5 to 10 people", "read 3 to 4 pages"
    let sure = beside || word.contains(':');
    let (first, second) = order_times(first, second, sure).filter(|_| scan.can_end_at(end))?;
    Some((first, second, end))
}

/// Returns true if a verb of changing precedes `i`, so that "to" leads to a new time and not to an end.
fn is_change(scan: &DateScan, i: usize) -> bool {
    (scan.start..i).any(|at| scan.words.is_one_of(at, lexicon::ranges::CHANGE_VERBS))
}

/// Parses a time in figures, "noon", or a bare hour from 1 to 24 that no unit of time follows.
fn parse_time(scan: &DateScan, i: usize) -> Option<(ClockTime, usize)> {
    clock::parse_certain(scan, i).or_else(|| {
        let (n, len) = numbers::cardinal(scan.words, i).filter(|(n, _)| (1..=24).contains(n))?;
        let (half, end) = clock::parse_half(scan, i + len).unwrap_or((DayHalf::Open, i + len));
        names::time_unit(scan.at(end)).is_none().then(|| Some((clock::minute_time(n, 0, half)?, end)))?
    })
}

/// Parses the second time of "3-4pm", "3-4 pm" or "11-noon". `second` is the text after the hyphen of the word at `i`.
/// If it has no am or pm, the words after it can provide it. Returns the time and the next position. Returns `None` if
/// it is no time, or if a noun follows directly.
fn parse_second_time(scan: &DateScan, second: &str, i: usize) -> Option<(ClockTime, usize)> {
    let time = match second {
        "noon" | "midday" => clock::minute_time(12, 0, DayHalf::Exact)?,
        "midnight" => clock::minute_time(0, 0, DayHalf::Exact)?,
        second => parse_clock(second)?,
    };
    match clock::parse_half(scan, i + 1).filter(|_| time.half == DayHalf::Open) {
        Some((half, end)) => Some((ClockTime { half, ..time }, end)),
        None => scan.can_end_at(i + 1).then_some((time, i + 1)),
    }
}

/// Parses "3", "3pm", "3:30pm". Minutes have two digits. am or pm is unknown if the word has none. Returns `None` for
/// other words and for values out of range.
fn parse_clock(word: &str) -> Option<ClockTime> {
    let (digits, half) = clock::split_half(word);
    let (hour, minute) = match digits.split_once(':') {
        Some((hour, minute)) => (hour, numbers::parse_digits(minute).filter(|_| minute.len() == 2)?),
        None => (digits, 0),
    };
    let hour = numbers::parse_digits(hour).filter(|hour| (0..=24).contains(hour))?;
    clock::minute_time(hour, minute, half.unwrap_or(DayHalf::Open))
}

fn has_minutes(word: &str) -> bool {
    word.contains(':')
}

/// Returns both times. If only the second has am or pm, the first gets the half that puts it before the second:
/// "11-1pm" begins at 11am. This also replaces the 24-hour clock of the first, except for noon and midnight. Otherwise
/// they stay unchanged. `sure` is true if the context makes them times. Returns `None` if it is false and neither has
/// am or pm or is noon or midnight.
fn order_times(first: ClockTime, second: ClockTime, sure: bool) -> Option<(ClockTime, ClockTime)> {
    // Numbers above 12 may be pages. Noon and midnight are times.
    let has_half = |clock: ClockTime| match clock.half {
        DayHalf::Am | DayHalf::Pm => true,
        DayHalf::Exact => clock.hour % 12 == 0,
        DayHalf::Open => false,
    };
    if !sure && !has_half(first) && !has_half(second) {
        return None;
    }
    if has_half(first) || !matches!(second.half, DayHalf::Am | DayHalf::Pm) {
        return Some((first, second));
    }
    let earlier = (first.hour % 12, first.minute) < (second.hour % 12, second.minute);
    let half = match (earlier, second.half) {
        (true, half) => half,
        (false, DayHalf::Am) => DayHalf::Pm,
        (false, _) => DayHalf::Am,
    };
    Some((ClockTime { half, ..first }, second))
}

/// Parses "3-5", "3 to 5", "3rd to the 5th" as days of a month: figures or ordinals, not "three". Returns the first
/// day, the number of further days, and the next position. Returns `None` if a day is not 1 to 31 or the last is not
/// after the first.
pub(crate) fn parse_days(scan: &DateScan, i: usize) -> Option<(i64, i64, usize)> {
    let day = |n: i64| (1..=31).contains(&n);
    if let Some((first, last)) = scan.at(i).split_once('-') {
        let first = day_number(first)?;
        let last = day_number(last)?;
        return (day(first) && day(last) && first < last).then_some((first, last - first, i + 1));
    }
    let (first, len) = day_number_at(scan, i).filter(|(n, _)| day(*n))?;
    let at = i + len;
    let at = at + scan.phrase(at, lexicon::ranges::LINKS)?;
    let at = at + usize::from(scan.at(at) == "the");
    let (last, len) = day_number_at(scan, at).filter(|(n, _)| day(*n) && *n > first)?;
    Some((first, last - first, at + len))
}

fn day_number(word: &str) -> Option<i64> {
    numbers::parse_digits(word).or_else(|| numbers::ordinal_digits(word))
}

fn day_number_at(scan: &DateScan, i: usize) -> Option<(i64, usize)> {
    numbers::ordinal(scan.words, i).or_else(|| numbers::parse_digits(scan.at(i)).map(|n| (n, 1)))
}
