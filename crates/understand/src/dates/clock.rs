//! Parses times of day: "3pm", "15:30", "half past eight", "noon", and parts of the day such as "in the evening".
//!
//! Conventions of the `dates` module: `i` is the first token of the piece, `lead_start` the first of the prepositions
//! before it, and `parts` are the pieces before it. A parser returns its result and the position after it, or `None` if
//! nothing matches. "A noun follows" means that an ordinary word follows, see [`DateScan::can_end_at`].

use super::names::{self, DayPart};
use super::{DateParts, DatePiece, DateScan, calendar, context};
use crate::lexicon;
use crate::numbers;

/// A time on the clock, possibly without am or pm. The hour is 0 to 23 if `half` is [`DayHalf::Exact`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockTime {
    pub(crate) hour: i8,
    pub(crate) minute: i8,
    pub(crate) second: i8,
    pub(crate) half: DayHalf,
}

/// The half of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DayHalf {
    Am,
    Pm,
    /// Unknown: the hour can be am or pm.
    Open,
    /// A time on the 24-hour clock.
    Exact,
}

/// A time and the end of its words.
type ClockMatch = Option<(ClockTime, usize)>;

/// Returns a time. Without am or pm, 24 becomes 0, and hours of 0 and above 12 are on the 24-hour clock. With am or pm,
/// 13 to 23 are on the 24-hour clock and am or pm has no effect; 0 and 24 yield `None`. Other hours keep `half`.
/// Returns `None` if a value is out of range: hours 0 to 24, minutes and seconds 0 to 59.
fn clock_time(hour: i64, minute: i64, second: i64, half: DayHalf) -> Option<ClockTime> {
    let half = if half == DayHalf::Open && (hour > 12 || hour == 0) { DayHalf::Exact } else { half };
    let in_range = (0..=24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second);
    let said = matches!(half, DayHalf::Am | DayHalf::Pm);
    if !in_range || said && !(1..=12).contains(&hour) && !(13..=23).contains(&hour) {
        return None;
    }
    let half = if said && hour > 12 { DayHalf::Exact } else { half };
    let narrow = |n: i64| i8::try_from(n).ok();
    Some(ClockTime {
        hour: narrow(if hour == 24 { 0 } else { hour })?,
        minute: narrow(minute)?,
        second: narrow(second)?,
        half,
    })
}

/// Returns a time with hour and minute. Returns `None` under the conditions of [`clock_time`].
pub(super) fn minute_time(hour: i64, minute: i64, half: DayHalf) -> Option<ClockTime> {
    clock_time(hour, minute, 0, half)
}

/// Parses a time that needs no context: "3pm", "15:30", "noon". am and pm may be unknown, as in "3:15".
pub(super) fn parse_certain(scan: &DateScan, i: usize) -> ClockMatch {
    parse_named(scan, i).or_else(|| parse_figure(scan, i))
}

/// Parses a time at `i`: a name ("noon"), "half past eight", figures, or words ("seven thirty"). A bare number needs a
/// context: "at 3", "tomorrow 3", "7 tomorrow evening". It follows "at" or a similar word, a day or a part of the day,
/// or precedes a day with a part. "midnight" without a preposition and a day before it does not match if a noun follows
/// ("midnight snack").
pub(crate) fn parse(scan: &DateScan, i: usize, lead_start: usize, parts: &DateParts) -> ClockMatch {
    // In "midnight snack", the time describes the noun.
    let epithet = scan.at(i) == "midnight" && lead_start == i && !parts.names_day() && !scan.can_end_at(i + 1);
    parse_named(scan, i)
        .filter(|_| !epithet)
        .or_else(|| parse_past_or_to(scan, i, lead_start, parts))
        .or_else(|| parse_figures(scan, i, lead_start, parts))
        .or_else(|| parse_spelled(scan, i, lead_start, parts))
}

/// Parses "noon", "midday", "midnight", "12 noon", "high noon" on the 24-hour clock; midnight is 0:00. "this time"
/// before "tomorrow", "next week" or "on" is the current hour and minute. The words after "this time" are not consumed.
/// Does not check the context.
fn parse_named(scan: &DateScan, i: usize) -> ClockMatch {
    // "this time tomorrow"
    if scan.phrase(i, lexicon::clock::SAME_TIME).is_some() {
        let now = scan.now;
        return Some((clock_time(now.hour().into(), now.minute().into(), 0, DayHalf::Exact)?, i + 2));
    }
    let at = i + usize::from(matches!(scan.at(i), "12" | "high"));
    match scan.at(at).trim_end_matches("ish").trim_end_matches('-') {
        "noon" | "midday" | "noontime" => Some((clock_time(12, 0, 0, DayHalf::Exact)?, at + 1)),
        "midnight" => Some((clock_time(0, 0, 0, DayHalf::Exact)?, at + 1)),
        _ => None,
    }
}

/// Parses "half past eight", "a quarter to 7pm", "20 minutes after three", "10 to noon", "half three" (3:30). Minutes
/// are 1 to 59. Without "minutes", they must be a multiple of 5 and not follow "from". Bare figures before an hour ("5
/// to 10") also need am or pm, "at", a day after them, or to be the whole text. am or pm stays as stated: "a quarter to
/// 12pm" is 23:45. Without an hour, it is the next such time, see [`parse_of_any_hour`]. Returns `None` for an hour
/// with minutes ("30 minutes after 2:15"), which is a distance.
fn parse_past_or_to(scan: &DateScan, i: usize, lead_start: usize, parts: &DateParts) -> ClockMatch {
    let mut at = i + usize::from(scan.at(i) == "a");
    let (minutes, len) = match scan.at(at) {
        "half" => (30, 1),
        "quarter" => (15, 1),
        "minute" if at > i => (1, 0),
        _ => numbers::cardinal(scan.words, at).filter(|(n, _)| (1..60).contains(n))?,
    };
    at += len;
    let unit = names::time_unit(scan.at(at)) == Some(names::TimeUnit::Minute);
    // "from 3 to 4pm" is a time span.
    if !unit && (minutes % 5 != 0 || scan.before(i) == "from") {
        return None;
    }
    at += usize::from(unit);
    let before = match scan.at(at) {
        "past" | "after" => false,
        "to" | "of" | "before" | "till" | "til" => true,
        _ if minutes == 30 && scan.at(i) == "half" => return parse_half_hour(scan, at, parts),
        _ => return None,
    };
    let Some((base, end)) = parse_named(scan, at + 1).or_else(|| parse_hour(scan, at + 1)) else {
        return parse_of_any_hour(scan, lead_start, at + 1, if before { 60 - minutes } else { minutes }, parts);
    };
    if base.minute > 0 {
        return None;
    }
    let (said, end) = parse_half(scan, end).unwrap_or((base.half, end));
    let half = if base.half == DayHalf::Open { said } else { base.half };
    // "call 5 to 10 people" contains no time.
    let figures = numbers::parse_digits(scan.at(i)).is_some() && !unit && !scan.covers_all(i, end);
    let dated = || context::is_free_number(scan, i, lead_start) && context::precedes_day(scan, end, parts);
    if before && figures && half == DayHalf::Open && scan.before(i) != "at" && !parts.names_day() && !dated() {
        return None;
    }
    let total = i64::from(base.hour) * 60 + if before { -minutes } else { minutes };
    let total = total.rem_euclid(24 * 60);
    let hour = if before && base.hour == 1 && half != DayHalf::Exact { 12 } else { total / 60 };
    Some((clock_time(hour, total % 60, 0, half)?, end))
}

/// Returns the next time with these minutes: "quarter past", "half past". It must be the whole text or follow "at", and
/// no word and no date may follow. Returns `None` if a day is named.
fn parse_of_any_hour(scan: &DateScan, lead_start: usize, end: usize, minutes: i64, parts: &DateParts) -> ClockMatch {
    let whole = scan.covers_all(lead_start, end);
    if parts.names_day() || parts.part.is_some() || !(whole || scan.at(lead_start) == "at" && scan.can_end_at(end)) {
        return None;
    }
    let hour = i64::from(scan.now.hour()) + i64::from(i64::from(scan.now.minute()) >= minutes);
    Some((clock_time(hour % 24, minutes, 0, DayHalf::Exact)?, end))
}

/// Returns true if the word can only be a time: "3pm", "15:30". Does not check the values.
pub(crate) fn is_time_figure(word: &str) -> bool {
    let (digits, half) = split_half(word);
    let colon = digits.split_once(':').is_some_and(|(_, m)| m.len() == 2);
    word.starts_with(|c: char| c.is_ascii_digit())
        && (colon && digits.bytes().all(|b| b.is_ascii_digit() || b == b':')
            || half.is_some() && word.ends_with('m') && digits.len() <= 2)
}

/// Parses the hour of "half three" at `at`. Returns half past that hour, or `None` if a noun follows.
fn parse_half_hour(scan: &DateScan, at: usize, parts: &DateParts) -> ClockMatch {
    let (base, end) = parse_hour(scan, at)?;
    context::can_time_end_at(scan, end, parts).then_some((ClockTime { minute: 30, ..base }, end))
}

/// Parses the hour of "half past …": figures of a time ("3pm", "3:15") or a bare hour from 1 to 12.
fn parse_hour(scan: &DateScan, i: usize) -> ClockMatch {
    if let Some((clock, end)) = parse_figure(scan, i) {
        return Some((clock, end));
    }
    let (n, len) = numbers::cardinal(scan.words, i).filter(|(n, _)| (1..=12).contains(n))?;
    Some((clock_time(n, 0, 0, DayHalf::Open)?, i + len))
}

/// Parses "am", "pm", "in the morning", "in the evening", "at night" after an hour, possibly after "o'clock". Evening
/// and night are pm. The half is unknown after a bare "o'clock". Returns `None` for other words.
pub(super) fn parse_half(scan: &DateScan, i: usize) -> Option<(DayHalf, usize)> {
    if let Some(n) = scan.phrase(i, lexicon::clock::O_CLOCK) {
        return parse_half(scan, i + n).or(Some((DayHalf::Open, i + n)));
    }
    if let Some(n) = scan.phrase(i, lexicon::clock::MORNING) {
        return Some((DayHalf::Am, i + n));
    }
    scan.phrase(i, lexicon::clock::AFTERNOON).map(|n| (DayHalf::Pm, i + n))
}

/// Parses figures that can only be a time: "3pm", "3:15", "3:15:30", "15h30", "15h", "330 pm", "8.30pm". The word
/// begins with a digit. A number without minutes (except before "h") and a time with a period need am, pm or "o'clock".
/// Minutes after a colon or a semicolon have two digits. A leading zero without am or pm, and "h", mean the 24-hour
/// clock. "12 at night" is midnight. "in the morning" after "3am" is consumed without effect. Returns `None` for values
/// out of range.
fn parse_figure(scan: &DateScan, i: usize) -> ClockMatch {
    let word = scan.at(i);
    if !word.as_bytes().first().is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let (digits, half) = split_half(word);
    let (half, end) = match half {
        Some(half) => (half, i + 1),
        None => parse_half(scan, i + 1).unwrap_or((DayHalf::Open, i + 1)),
    };
    let said = half != DayHalf::Open || end > i + 1;
    let (hour, minute, second) = if let Some((h, m)) = digits.split_once('h') {
        match numbers::parse_digits(h)? {
            // "1400h"
            n if n > 24 && m.is_empty() => (n / 100, n % 100, 0),
            n => (n, if m.is_empty() { 0 } else { numbers::parse_digits(m)? }, 0),
        }
    } else if digits.contains([':', ';']) {
        let mut fields = digits.split([':', ';']);
        let hour = numbers::parse_digits(fields.next()?)?;
        // "1:1" is a meeting.
        let minute = numbers::parse_digits(fields.next().filter(|minute| minute.len() == 2)?)?;
        (hour, minute, fields.next().map_or(Some(0), numbers::parse_digits)?)
    } else if let Some((h, m)) = digits.split_once('.').filter(|(_, m)| said && m.len() == 2) {
        (numbers::parse_digits(h)?, numbers::parse_digits(m)?, 0)
    } else {
        let n = numbers::parse_digits(digits).filter(|_| said)?;
        if n > 24 { (n / 100, n % 100, 0) } else { (n, 0, 0) }
    };
    let night = matches!(scan.at(end.saturating_sub(1)), "night") && hour == 12;
    let half = if night { DayHalf::Am } else { half };
    let exact = half == DayHalf::Open && digits.starts_with('0') || digits.contains('h');
    let clock = clock_time(hour, minute, second, if exact { DayHalf::Exact } else { half })?;
    let end = if scan.at(end) == "in" { parse_half(scan, end).map_or(end, |(_, e)| e) } else { end };
    Some((clock, end))
}

/// Splits "3pm" into "3" and the half of the day. Suffixes are "am", "pm", "a", "p" and "ampm"; no letter may precede
/// them, and the rest may be empty. Removes "ish" and "-ish" first. The half of "7ampm" is unknown. Returns the word
/// without "ish" and `None` if it has no such suffix.
pub(super) fn split_half(word: &str) -> (&str, Option<DayHalf>) {
    let bare = word.strip_suffix("-ish").or_else(|| word.strip_suffix("ish")).unwrap_or(word);
    for (suffix, half) in
        [("ampm", DayHalf::Open), ("am", DayHalf::Am), ("pm", DayHalf::Pm), ("a", DayHalf::Am), ("p", DayHalf::Pm)]
    {
        if let Some(digits) = bare.strip_suffix(suffix).filter(|d| d.bytes().all(|b| !b.is_ascii_alphabetic())) {
            return (digits, Some(half));
        }
    }
    (bare, None)
}

/// Parses a time in figures: "3pm", "8ish" if no noun follows, "7ampm", "0800 hours", or a bare number in context, see
/// [`parse_bare`]. "3a" and "3p" without a colon need a context. They follow "at" or a similar word, a day, a weekday
/// or a repetition, or are the whole text.
fn parse_figures(scan: &DateScan, i: usize, lead_start: usize, parts: &DateParts) -> ClockMatch {
    if scan.at(i).ends_with("ampm") {
        let (digits, _) = split_half(scan.at(i));
        return Some((clock_time(numbers::parse_digits(digits)?, 0, 0, DayHalf::Open)?, i + 1));
    }
    if let Some(value) = parse_figure(scan, i) {
        let doubtful =
            matches!(split_half(scan.at(i)), (d, Some(_)) if !d.contains(':') && scan.at(i).ends_with(['a', 'p']));
        let certain = !doubtful || follows_at(scan, i, lead_start) || parts.names_day() || scan.covers_all(i, i + 1);
        return (certain || context::precedes_day(scan, value.1, parts)).then_some(value);
    }
    parse_roughly(scan, i).or_else(|| parse_military(scan, i)).or_else(|| parse_bare(scan, i, lead_start, parts))
}

/// Parses "8ish", unless a noun follows.
fn parse_roughly(scan: &DateScan, i: usize) -> ClockMatch {
    let word = scan.at(i);
    let hour = numbers::parse_digits(word.strip_suffix("-ish").or_else(|| word.strip_suffix("ish"))?)?;
    scan.can_end_at(i + 1).then_some((clock_time(hour, 0, 0, DayHalf::Open)?, i + 1))
}

/// Parses "0800 hours", "seventeen hundred hours". The number must have four digits or contain "hundred".
fn parse_military(scan: &DateScan, i: usize) -> ClockMatch {
    let (n, len) = numbers::cardinal(scan.words, i)?;
    let said = scan.at(i).len() == 4 && len == 1 || scan.at(i + 1) == "hundred";
    let fits = said && matches!(scan.at(i + len), "hours" | "hrs" | "h") && n < 2400;
    fits.then(|| Some((clock_time(n / 100, n % 100, 0, DayHalf::Exact)?, i + len + 1)))?
}

/// Returns true if "at", "at about" or a similar word of the prepositions precedes the number at `i`.
fn follows_at(scan: &DateScan, i: usize, lead_start: usize) -> bool {
    i > lead_start && lexicon::clock::LEADS.contains(scan.before(i))
        || i > lead_start + 1 && scan.before(i) == "about" && scan.before(i - 1) == "at"
}

/// Returns true if the number `n` after "by" and similar words is this year or one of the next eleven, and not a time
/// such as 20:30.
fn is_year(scan: &DateScan, i: usize, n: i64) -> bool {
    let this = i64::from(scan.today().year());
    (this..this + 12).contains(&n) && matches!(scan.before(i), "by" | "before" | "until" | "till" | "til" | "after")
}

/// Parses a number without am or pm. Accepts:
/// - After "at" or a similar word: "at 3", "at 3 15", "at 330", "at 5.15". "0330" is on the 24-hour clock. After "by",
///   "before", "until", "till" and "after", this year and the next eleven years are not times.
/// - After a day, a weekday, a repetition or a part of the day: "tomorrow 3", "tomorrow 5.15". A number above 12 after
///   a weekday without a day, and "the 7 of", are days and do not match.
/// - Before a day, if nothing else counts or names something with it: "7 tomorrow evening", "9 on Friday", "4.30 on
///   Friday". See [`context::is_free_number`].
///
/// In the first two cases, no noun and no unit of time may follow, except after a day at the start of the text
/// ("tomorrow 9 dentist"). Hours are 1 to 24, before a day 1 to 12.
fn parse_bare(scan: &DateScan, i: usize, lead_start: usize, parts: &DateParts) -> ClockMatch {
    if follows_at(scan, i, lead_start) && scan.at(i).len() >= 3 && context::can_time_end_at(scan, i + 1, parts) {
        let n = numbers::parse_digits(scan.at(i)).filter(|n| (100..2400).contains(n) && !is_year(scan, i, *n));
        let Some(n) = n else { return parse_dotted(scan, i) };
        let half = if scan.at(i).starts_with('0') { DayHalf::Exact } else { DayHalf::Open };
        return Some((clock_time(n / 100, n % 100, 0, half)?, i + 1));
    }
    if scan.at(i).contains('.')
        && (parts.names_day() && scan.can_end_at(i + 1) || is_before_day(scan, i, i + 1, lead_start, parts))
    {
        return parse_dotted(scan, i);
    }
    // "1830 on Friday"
    let first = i == scan.start && i == lead_start;
    let digits = scan.at(i).len() == 4 && (first || scan.at(i).starts_with('0'));
    if digits && is_before_day(scan, i, i + 1, lead_start, parts) {
        let n = numbers::parse_digits(scan.at(i)).filter(|n| n % 5 == 0 && (100..2400).contains(n))?;
        return Some((clock_time(n / 100, n % 100, 0, DayHalf::Exact)?, i + 1));
    }
    // "Thursday 1400"
    if parts.names_day() && scan.at(i).len() == 4 && scan.can_end_at(i + 1) {
        let n = numbers::parse_digits(scan.at(i)).filter(|n| n % 5 == 0 && (100..2400).contains(n))?;
        return Some((clock_time(n / 100, n % 100, 0, DayHalf::Exact)?, i + 1));
    }
    let hour = numbers::parse_digits(scan.at(i)).filter(|n| (1..=24).contains(n))?;
    let minute = numbers::parse_digits(scan.at(i + 1)).filter(|n| scan.at(i + 1).len() == 2 && *n < 60);
    // "Friday the 7 of May"
    let of_month = scan.at(i + 1) == "of" && scan.before(i) == "the";
    let day_number = parts.weekday.is_some() && parts.day.is_none() && hour > 12 || of_month;
    let beside_day = (parts.names_day() || parts.part.is_some()) && !day_number;
    if follows_at(scan, i, lead_start) || beside_day {
        if let Some(minute) = minute.filter(|_| context::can_time_end_at(scan, i + 2, parts)) {
            return Some((clock_time(hour, minute, 0, DayHalf::Open)?, i + 2));
        }
        let unit_follows = names::time_unit(scan.at(i + 1)).is_some();
        let ends = context::can_time_end_at(scan, i + 1, parts)
            || beside_day && hour <= 12 && context::precedes_name(scan, i, lead_start);
        return (ends && !unit_follows).then_some((clock_time(hour, 0, 0, DayHalf::Open)?, i + 1));
    }
    if let Some(minute) = minute.filter(|_| hour <= 12 && is_before_day(scan, i, i + 2, lead_start, parts)) {
        return Some((clock_time(hour, minute, 0, DayHalf::Open)?, i + 2));
    }
    let dated = precedes_part(scan, i + 1) || hour <= 12 && is_before_day(scan, i, i + 1, lead_start, parts);
    dated.then_some((clock_time(hour, 0, 0, DayHalf::Open)?, i + 1))
}

/// Returns true if the number `i..end` is a time because a day follows it.
fn is_before_day(scan: &DateScan, i: usize, end: usize, lead_start: usize, parts: &DateParts) -> bool {
    context::is_free_number(scan, i, lead_start) && context::precedes_day(scan, end, parts)
}

/// Parses "at 5.15". Requires two digits after the period.
fn parse_dotted(scan: &DateScan, i: usize) -> ClockMatch {
    let (hour, minute) = scan.at(i).split_once('.').filter(|(_, minute)| minute.len() == 2)?;
    Some((clock_time(numbers::parse_digits(hour)?, numbers::parse_digits(minute)?, 0, DayHalf::Open)?, i + 1))
}

/// Returns true if a day with a part or "tonight" follows at `i`, possibly after a comma: "tomorrow evening", ", this
/// morning".
fn precedes_part(scan: &DateScan, i: usize) -> bool {
    let i = i + usize::from(scan.at(i) == ",");
    let named = names::is_tomorrow(scan.at(i)) || scan.at(i) == "this" || names::weekday(scan.at(i)).is_some();
    named && names::day_part(scan.at(i + 1)).is_some_and(|(_, plural)| !plural)
        || matches!(scan.at(i), "tonight" | "tonite")
}

/// Parses "seven thirty", "seven-thirty", "three oh five", "three o'clock", "at three". The hour is 1 to 12 in words.
/// "minutes" after the minutes is skipped. am, pm or "o'clock" after them makes it a time in any context. Otherwise it
/// must follow "at", a day or a part of the day, or precede a day with a part. Then no noun or unit of time may follow.
/// Without this context, minutes must follow and the time must be the whole text. From ten on in steps of five, they
/// need only end the text.
fn parse_spelled(scan: &DateScan, i: usize, lead_start: usize, parts: &DateParts) -> ClockMatch {
    let hour = numbers::small_number(scan.at(i))
        .or_else(|| scan.at(i).split_once('-').and_then(|(h, _)| numbers::small_number(h)));
    let hour = hour.filter(|n| (1..=12).contains(n))?;
    let (minute, end) = spelled_minute(scan, i);
    let end = end + usize::from(minute > 0 && names::time_unit(scan.at(end)) == Some(names::TimeUnit::Minute));
    if let Some((half, end)) = parse_half(scan, end) {
        return Some((clock_time(hour, minute, 0, half)?, end));
    }
    // "one tomorrow" can be a thing.
    let dated = || (hour > 1 || minute > 0) && is_before_day(scan, i, end, lead_start, parts);
    let context = follows_at(scan, i, lead_start)
        || parts.names_day()
        || parts.part.is_some()
        || precedes_part(scan, end)
        || dated();
    let whole = minute > 0 && scan.covers_all(i, end) || minute >= 10 && minute % 5 == 0 && end == scan.end;
    let fits =
        context && context::can_time_end_at(scan, end, parts) && names::time_unit(scan.at(end)).is_none() || whole;
    fits.then_some((clock_time(hour, minute, 0, DayHalf::Open)?, end))
}

/// Returns the minute after the spelled hour at `i` and the next position: "thirty", "oh five", the second half of
/// "seven-thirty". Minutes are 1 to 59, and 1 to 9 after "oh". The minute is 0 if none follows. Figures count only
/// after a hyphen, where the value is not checked.
fn spelled_minute(scan: &DateScan, i: usize) -> (i64, usize) {
    if let Some((_, minute)) = scan.at(i).split_once('-') {
        return numbers::cardinal(&crate::tokens::TokenizedText::new(minute), 0)
            .map_or((0, i + 1), |(n, _)| (n, i + 1));
    }
    if matches!(scan.at(i + 1), "oh" | "o")
        && let Some(minute) = numbers::small_number(scan.at(i + 2)).filter(|n| (1..10).contains(n))
    {
        return (minute, i + 3);
    }
    match numbers::cardinal(scan.words, i + 1) {
        Some((n, len)) if (1..60).contains(&n) && numbers::parse_digits(scan.at(i + 1)).is_none() => (n, i + 1 + len),
        _ => (0, i + 1),
    }
}

fn names_day(word: &str) -> bool {
    names::is_today(word) || names::is_tomorrow(word) || names::weekday(word).is_some()
}

/// Parses a part of the day. "tonight" and "last night" also determine the day. A plural is a repetition and does not
/// match. "eve" counts only after "this", a day or a time. Accepts:
/// - "first thing", not after "the", "my", "a", "is" or "are". Without "in the morning", no noun and no "to" may
///   follow.
/// - "last thing", see [`ends_last_thing`]; "start of business" as the start of the working day.
/// - "EOD", "COB" and "COP" as the end of the working day; "am" and "pm" after a day without a clock time.
/// - A name ("morning") after "this", after a day or a time, or after a preposition if no noun follows.
/// - A name before a time, if that is in figures or the name begins the text.
/// - A name before a day or a time, see [`precedes_rest`].
/// - "early", "late" or "mid" with a name, also as the whole text or before a day. They do not change the result.
pub(crate) fn parse_part(
    scan: &DateScan,
    i: usize,
    lead_start: usize,
    parts: &DateParts,
) -> Option<(DatePiece, usize)> {
    let word = scan.at(i);
    let today = scan.today();
    if matches!(word, "tonight" | "tonite" | "tonight's" | "tonights" | "2nite") {
        return Some((DatePiece::PartOf(today, DayPart::Night), i + 1));
    }
    let half = matches!(word, "am" | "pm") && parts.clock.is_none() && parts.part.is_none();
    if half && (parts.names_day() || i == scan.start && context::precedes_day(scan, i + 1, parts)) {
        return Some((DatePiece::Part(if word == "am" { DayPart::Morning } else { DayPart::Afternoon }), i + 1));
    }
    if let Some(n) = scan.phrase(i, lexicon::clock::FIRST_THING)
        && !matches!(scan.before(i), "the" | "my" | "is" | "are" | "a")
        && ends_thing(scan, i, n, parts)
    {
        return Some((DatePiece::Part(DayPart::First), i + n));
    }
    if let Some(n) = scan.phrase(i, lexicon::clock::LAST_THING)
        && !matches!(scan.before(i), "the" | "my" | "is" | "are" | "a")
        && ends_last_thing(scan, i, n, parts)
    {
        return Some((DatePiece::Part(DayPart::Last), i + n));
    }
    if let Some(n) = scan.phrase(i, lexicon::clock::WORK_START).filter(|n| context::can_time_end_at(scan, i + n, parts))
    {
        return Some((DatePiece::Part(DayPart::First), i + n));
    }
    if matches!(word, "eod" | "cob" | "cop") {
        return Some((DatePiece::Part(DayPart::End), i + 1));
    }
    if let Some(n) = scan.phrase(i, lexicon::clock::LAST_NIGHT) {
        return Some((DatePiece::PartOf(calendar::plus_days(today, -1)?, DayPart::Night), i + n));
    }
    let this = usize::from(matches!(word, "this"));
    let early = usize::from(matches!(scan.at(i + this), "early" | "late" | "mid"));
    let at = i + this + early;
    let name = scan.at(at);
    let (part, plural) = names::day_part(name.strip_prefix("mid-").unwrap_or(name))?;
    let middle = early > 0 || name.starts_with("mid-");
    if plural {
        return None;
    }
    let lead = i > lead_start
        && matches!(
            scan.before(i),
            "the" | "in" | "at" | "on" | "by" | "before" | "during" | "this" | "early" | "late"
        );
    let after_day = parts.names_day() || parts.clock.is_some();
    let beside = DateParts { part: Some(part), looks_ahead: parts.looks_ahead, ..DateParts::default() };
    let before_clock = parse(scan, at + 1, at + 1, &beside).is_some();
    let fits = this > 0
        || after_day
        || middle && (scan.covers_all(i, at + 1) || names_day(scan.at(at + 1)))
        || lead && (scan.can_end_at(at + 1))
        || before_clock && (scan.start == i || is_time_figure(scan.at(at + 1)))
        || precedes_rest(scan, i, at, lead_start, parts);
    let fits = fits && !(part == DayPart::Evening && scan.at(at) == "eve" && this == 0 && !after_day);
    fits.then_some((DatePiece::Part(part), at + 1))
}

/// Returns true if "first thing" of `n` tokens at `i` is a time: with "in the morning", beside a day, or
/// if no noun and no "to" follows.
fn ends_thing(scan: &DateScan, i: usize, n: usize, parts: &DateParts) -> bool {
    n > 2 || parts.names_day() || context::can_time_end_at(scan, i + n, parts) && scan.at(i + n) != "to"
}

/// Returns true if "last thing" of `n` tokens at `i` is a time: with "at night", beside a day, or at the end.
fn ends_last_thing(scan: &DateScan, i: usize, n: usize, parts: &DateParts) -> bool {
    let closed = !scan.words.is_word(i + n) || i + n >= scan.end || scan.at(i + n) == "tonight";
    n > 2 || parts.names_day() || closed || context::precedes_day(scan, i + n, parts)
}

/// Returns true if the part of the day at `at` belongs to the day or the time after it: "morning of the 15th", "evening
/// on Sunday", "afternoon at 7". `i` is the first word of the piece. Inside of a sentence, a noun can form a name with a
/// night or an evening ("date night on Friday"). They need a preposition then, the evening only before a day,
/// other parts only before "on" with a day.
fn precedes_rest(scan: &DateScan, i: usize, at: usize, lead_start: usize, parts: &DateParts) -> bool {
    let free = context::is_free_part(scan, i, lead_start) || scan.at(at + 1) == "of";
    let (named_day, named_time) = match names::day_part(scan.at(at)) {
        _ if free => (true, true),
        Some((DayPart::Night, _)) => (false, false),
        // "parents evening"
        Some((DayPart::Evening, _)) => (false, !scan.before(i).ends_with('s')),
        // "coffee morning on Saturday"
        _ => (scan.at(at + 1) != "on", true),
    };
    named_day && context::precedes_day(scan, at + 1, parts)
        || named_time && context::precedes_clock(scan, at + 1, parts)
}
