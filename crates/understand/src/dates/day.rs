//! Parses single days: "tomorrow", "next Friday", "Feb 18th", "10/31/2025", "the 21st".
//!
//! Conventions of the `dates` module: `i` is the first token of the piece, `lead_start` the first of the prepositions
//! before it, and `parts` are the pieces before it. A parser returns its result and the position after it, or `None` if
//! nothing matches. "A noun follows" means that an ordinary word follows, see [`DateScan::can_end_at`].

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Weekday};

use super::names::{self, WeekdayForm};
use super::{DateParts, DatePiece, DateScan, Day, calendar, context, range, resolve};
use crate::lexicon;
use crate::numbers;
use crate::parser::DateOrder;

/// Selects one of several days, weeks or months with the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeriodQualifier {
    /// No qualifier: the first one after today.
    Plain,
    /// The current one. For a weekday: the nearest one, which may be today.
    This,
    /// The one of the following period. For a weekday: the one of the next week.
    Next,
    /// The most recent one before today.
    Last,
    /// "Friday after next": a week after [`Self::Plain`].
    AfterNext,
    /// "Friday fortnight": two weeks after [`Self::Plain`].
    Fortnight,
    /// "Friday before last": the one before [`Self::Last`].
    BeforeLast,
}

/// Returns the qualifier of a word: "this" and "current", "next" with "coming", "upcoming", "following" and "nxt",
/// "last" with "past", "previous" and "prior". Returns `None` for any other word.
pub(crate) fn qualifier(word: &str) -> Option<PeriodQualifier> {
    Some(match word {
        "this" | "current" => PeriodQualifier::This,
        "coming" | "upcoming" | "next" | "following" | "nxt" => PeriodQualifier::Next,
        "last" | "past" | "previous" | "prior" => PeriodQualifier::Last,
        _ => return None,
    })
}

/// Parses a day at `i`. Tries a timestamp (a complete point in time), several days of a month, and words such as
/// "today". Then tries a date in figures, a month with a day, a weekday and a day of the month. The first match counts.
/// `lead_start` and `parts` decide if a bare number or an ambiguous name is a day.
pub(crate) fn parse(scan: &DateScan, i: usize, lead_start: usize, parts: &DateParts) -> Option<(DatePiece, usize)> {
    if let Some((at, end)) = parse_iso(scan, i) {
        return Some((DatePiece::Instant(at), end));
    }
    if let Some((day, more, end)) = parse_days_of_month(scan, i) {
        return Some((DatePiece::Days(day, more), end));
    }
    parse_relative(scan, i, parts)
        .or_else(|| parse_numeric(scan, i, lead_start, parts))
        .or_else(|| parse_compact(scan, i, lead_start))
        .or_else(|| parse_month_day(scan, i))
        .or_else(|| parse_day_month(scan, i))
        .map(|(day, end)| (DatePiece::Day(day), end))
        .or_else(|| parse_weekday(scan, i, lead_start, parts))
        .or_else(|| parse_day_of_month(scan, i, lead_start, parts).map(|(day, end)| (DatePiece::Day(day), end)))
}

/// Parses the day that a distance counts from ("3 days before …") and resolves it. It is the edge of a period ("the end
/// of the month"), a day that is counted in one, or any other day, see [`parse_alone`]. Returns the due date and the next
/// position.
pub(crate) fn parse_reference(scan: &DateScan, i: usize) -> Option<(Date, usize)> {
    let named = i + usize::from(scan.at(i) == "the");
    let piece = super::span::parse_edge(scan, named)
        .filter(|(piece, _)| matches!(piece, DatePiece::Day(_)))
        .or_else(|| super::span::parse_nth_day(scan, named));
    match piece {
        Some((piece, end)) => Some((resolve_piece(scan, piece)?, end)),
        None => parse_alone(scan, i),
    }
}

/// Parses a day at `i` without prepositions and other parts, and resolves it. If no day matches, a holiday counts as
/// after a preposition, see [`super::holidays::parse`]. Returns the date and the next position. Of several days, it is
/// the first. A timestamp does not match. Never looks ahead, see [`context`].
pub(crate) fn parse_alone(scan: &DateScan, i: usize) -> Option<(Date, usize)> {
    let alone = DateParts { looks_ahead: true, ..DateParts::default() };
    // "the 4th of July"
    let named = i + usize::from(scan.at(i) == "the");
    let dated = || parse_day_month(scan, named).filter(|_| named > i).map(|(day, end)| (DatePiece::Day(day), end));
    let (piece, end) = dated().or_else(|| parse(scan, i, i, &alone)).or_else(|| {
        super::holidays::parse(scan, i, i.saturating_sub(1), &alone)
            .map(|(d, end)| (DatePiece::Day(Day::Fixed(d)), end))
    })?;
    Some((resolve_piece(scan, piece)?, end))
}

/// Returns the date of a single piece.
fn resolve_piece(scan: &DateScan, piece: DatePiece) -> Option<Date> {
    let mut parts = DateParts::default();
    parts.add(piece);
    resolve::resolve_date(&parts, scan.now)
}

/// A day and the position after it.
type DayMatch = Option<(Day, usize)>;

/// Parses a day relative to today as a fixed date: "today", "tomorrow" (also misspelled), "yesterday". "the next day"
/// is tomorrow; "the day after tomorrow" and "overmorrow" are two days ahead. "today week" and "tomorrow week" are
/// seven days later, unless a noun follows. "the day after" before other words does not match.
fn parse_relative(scan: &DateScan, i: usize, parts: &DateParts) -> DayMatch {
    let today = scan.today();
    if let Some(n) = scan.phrase(i, lexicon::days::NEXT_DAY) {
        return Some((Day::Fixed(calendar::plus_days(today, 1)?), i + n));
    }
    if let Some(n) = scan.phrase(i, lexicon::days::AFTER) {
        if scan.at(i) == "overmorrow" || names::is_tomorrow(scan.at(i + n)) {
            let end = if scan.at(i) == "overmorrow" { i + 1 } else { i + n + 1 };
            return Some((Day::Fixed(calendar::plus_days(today, 2)?), end));
        }
        return None;
    }
    let word = scan.at(i);
    let days = if names::is_today(word) {
        0
    } else if names::is_tomorrow(word) {
        1
    } else if matches!(word, "yesterday" | "yesterday's") {
        -1
    } else {
        return None;
    };
    // "tomorrow week" is a week after tomorrow.
    let more = match scan.at(i + 1) {
        "week" => 7,
        "fortnight" => 14,
        _ => 0,
    };
    let later = days >= 0 && more > 0 && context::can_day_end_at(scan, i + 2, parts);
    let (days, end) = if later { (days + more, i + 2) } else { (days, i + 1) };
    Some((Day::Fixed(calendar::plus_days(today, days)?), end))
}

/// Parses a date in figures with the same mark between them. Month and day are in the order of the user, unless only
/// the other order is possible. Returns `None` if the date does not exist.
/// - Three figures ("12/31/1999", "12-31-99", "2025.6.14") need no context. The year comes first if the first figure
///   has four digits, else last. After a first year, the month precedes the day.
/// - "3/2027" is a whole month, see [`parse_month_of_year`]. "3/3-3/5" yields only the first date.
/// - "4/25" needs the slash and no unit of time after it. It also needs a preposition other than "the", a qualifier
///   such as "next", to be the whole text, or no noun after it. "24/7" counts only after such a preposition, if the day
///   comes first in the order of the user.
fn parse_numeric(scan: &DateScan, i: usize, lead_start: usize, parts: &DateParts) -> DayMatch {
    let word = scan.at(i);
    let mark = ['/', '-', '.'].into_iter().find(|mark| word.contains(*mark))?;
    // The first date of "3/3-3/5".
    let word = word.split_once('-').filter(|(a, b)| a.contains('/') && b.contains('/')).map_or(word, |(a, _)| a);
    let mut fields = word.split(mark);
    let a = fields.next()?;
    let b = fields.next()?;
    let c = fields.next();
    if fields.next().is_some() {
        return None;
    }
    let x = numbers::parse_digits(a)?;
    let y = numbers::parse_digits(b)?;
    let small = |n: i64| i8::try_from(n).ok();
    let Some(c) = c else {
        if a.len().max(b.len()) == 4 {
            return parse_month_of_year(scan, [a, b], mark, i, lead_start);
        }
        let (month, day) = order_month_day(scan, x, y);
        let shaped = mark == '/' && (1..=12).contains(&month) && (1..=31).contains(&day);
        let led = lead_start < i && scan.before(i) != "the";
        let near = led || qualifier(scan.before(i)).is_some() || scan.covers_all(i, i + 1);
        // "24/7" means always, unless a preposition asks for a day.
        let always = word == "24/7" && (scan.words.date_order == DateOrder::MonthFirst || !led);
        let near = near || parts.clock.is_some() || context::can_day_end_at(scan, i + 1, parts);
        let counts = names::time_unit(scan.at(i + 1)).is_some() && !scan.starts_time(i + 1);
        let fits = shaped && !always && near && !counts;
        return if fits { build_day(small(month)?, day, None, i + 1) } else { None };
    };
    let date = if a.len() == 4 {
        Date::new(calendar::parse_year(a)?, small(y)?, small(numbers::parse_digits(c)?)?).ok()
    } else {
        let (month, day) = order_month_day(scan, x, y);
        Date::new(calendar::parse_year(c)?, small(month)?, small(day)?).ok()
    };
    Some((Day::Fixed(date?), i + 1))
}

/// Parses a month in figures, due on its first day: "3/2027", "03-2027", "2027-03", "2027/3", "03.2027". One figure has
/// four digits, the other is 1 to 12. Without a slash, the figures need a preposition, to be the whole text, or no noun
/// after them and no word such as "part" before them. With a period, they need one of the first two.
fn parse_month_of_year(scan: &DateScan, figures: [&str; 2], mark: char, i: usize, lead_start: usize) -> DayMatch {
    let [a, b] = figures;
    let (year, month) = if a.len() == 4 { (a, b) } else { (b, a) };
    let near = lead_start < i && scan.before(i) != "the" || scan.covers_all(i, i + 1);
    let fits = match mark {
        '/' => b.len() == 4 || near || scan.can_end_at(i + 1),
        '-' => near || scan.can_end_at(i + 1) && !scan.words.is_one_of(i.wrapping_sub(1), lexicon::numbers::NUMBERED),
        _ => near,
    };
    let month = numbers::parse_digits(month).filter(|_| month.len() <= 2).and_then(|month| i8::try_from(month).ok())?;
    let start = Date::new(calendar::parse_year(year).filter(|_| fits)?, month, 1).ok()?;
    Some((Day::Span { start, end: calendar::plus_months(start, 1)?, due: start }, i + 1))
}

/// Parses "2027-03-15T14:30" at `i`, with an offset in up to two tokens directly after it. The longest valid text
/// counts. Returns the time in the zone of the user and the position after it. A time with an offset is converted to
/// that zone, a time without one is in it. Returns `None` for less than 15 bytes, without "T" after the date, and for
/// an invalid time.
fn parse_iso(scan: &DateScan, i: usize) -> Option<(DateTime, usize)> {
    let word = scan.at(i);
    if word.len() < 15 || !word.is_char_boundary(10) || !word.get(10..)?.starts_with('t') {
        return None;
    }
    let mut end = i + 1;
    while end < scan.end && scan.words.is_adjacent_to_next(end - 1) && end < i + 3 {
        end += 1;
    }
    (i + 1..=end).rev().find_map(|end| {
        let text = scan.words.text(i..end);
        let moment = text.parse::<Timestamp>().map(|at| at.to_zoned(scan.now.time_zone().clone()).datetime());
        Some((moment.or_else(|_| text.parse()).ok()?, end))
    })
}

/// Parses "20270315" after a preposition or as the whole text. Returns `None` if the date does not exist or its year is
/// not 1970 to 2099.
fn parse_compact(scan: &DateScan, i: usize, lead_start: usize) -> DayMatch {
    let word = scan.at(i);
    let digits = word.len() == 8 && word.bytes().all(|b| b.is_ascii_digit());
    if !digits || !(lead_start < i || scan.covers_all(i, i + 1)) {
        return None;
    }
    let date = Date::strptime("%Y%m%d", word).ok().filter(|date| (1970..2100).contains(&date.year()))?;
    Some((Day::Fixed(date), i + 1))
}

/// Returns month and day of two figures. Uses the order of the user, unless only the other one is possible. Does not
/// check the values.
fn order_month_day(scan: &DateScan, x: i64, y: i64) -> (i64, i64) {
    let day_first = match scan.words.date_order {
        DateOrder::MonthFirst => x > 12,
        DateOrder::DayFirst => y <= 12,
    };
    if day_first { (y, x) } else { (x, y) }
}

/// Returns the day and `end`. Without a year, the day is in the next possible year, and February 29 is valid. Returns
/// `None` if the date does not exist.
fn build_day(month: i8, day: i64, year: Option<i16>, end: usize) -> DayMatch {
    let day = i8::try_from(day).ok().filter(|d| (1..=31).contains(d))?;
    match year {
        Some(year) => Some((Day::Fixed(Date::new(year, month, day).ok()?), end)),
        None => Date::new(2024, month, day).ok().map(|_| (Day::Annual { month, day }, end)),
    }
}

/// Parses a year after a date, possibly after one of ",", "of" and "in". Four digits are 1900 to 2199; "1900 hours"
/// does not match. Other four digits are a year if they are no time of day and no noun follows: "9999", but not "1830"
/// and "2500 stamps". Two digits need an apostrophe ("'27") and are 1970 to 2069. Also accepts "this year", "next year"
/// and "last year". Returns the year and the next position, or `None` and `i` if no year follows.
pub(crate) fn parse_year(scan: &DateScan, i: usize) -> (Option<i16>, usize) {
    let at = i + usize::from(matches!(scan.at(i), "," | "of" | "in"));
    let word = scan.at(at);
    if let Some(year) = calendar::parse_year(word).filter(|_| word.len() == 4 && !scan.at(at + 1).starts_with("hour")) {
        return (Some(year), at + 1);
    }
    if let Some(year) = calendar::parse_distant_year(word).filter(|_| scan.can_end_at(at + 1)) {
        return (Some(year), at + 1);
    }
    if matches!(word, "'" | "’")
        && scan.words.is_adjacent_to_next(at)
        && let Some(year) = calendar::parse_year(scan.at(at + 1)).filter(|_| scan.at(at + 1).len() == 2)
    {
        return (Some(year), at + 2);
    }
    let this = scan.today().year();
    let years = if scan.at(at + 1) == "year" { qualifier(word) } else { None };
    match years {
        Some(PeriodQualifier::This) => (Some(this), at + 2),
        Some(PeriodQualifier::Next) => (this.checked_add(1), at + 2),
        Some(PeriodQualifier::Last) => (this.checked_sub(1), at + 2),
        _ => (None, i),
    }
}

/// Parses "Feb 18", "June twenty first", "march the first", "nov/2", "Oct2". A year may follow, except after the joined
/// form. With a year the result is a fixed date, else a day in the next possible year. Returns `None` if no number from
/// 1 to 31 follows the month, or if the day does not exist. Also `None` if the number counts a unit of time ("March 3
/// weeks").
pub(crate) fn parse_month_day(scan: &DateScan, i: usize) -> DayMatch {
    let word = scan.at(i);
    if let Some(cut) = word.find(|c: char| c.is_ascii_digit()).filter(|cut| *cut >= 3) {
        let name = word.get(..cut)?;
        let digits = word.get(cut..)?;
        return build_day(names::month(name)?, numbers::parse_digits(digits)?, None, i + 1);
    }
    let month = names::month(word)?;
    let mut at = i + 1;
    at += usize::from(matches!(scan.at(at), "." | "/"));
    at += usize::from(scan.at(at) == "the");
    let (day, len) = numbers::ordinal(scan.words, at)
        .or_else(|| numbers::cardinal(scan.words, at))
        .filter(|(n, _)| (1..=31).contains(n))?;
    let counts = names::time_unit(scan.at(at + len)).is_some() && !scan.starts_time(at + len);
    if counts || scan.at(at).contains(':') {
        return None;
    }
    let (year, end) = parse_year(scan, at + len);
    build_day(month, day, year, end)
}

/// Parses "March 3-5", "3rd to 5th of March", "3-5 March". Returns the first day, the number of further days, and the
/// next position. A year may follow. In the first form, no noun may follow the days. In the other ones, the first day
/// is in figures and "of" is optional. Only the first day must exist. The days must ascend, see [`range::parse_days`].
fn parse_days_of_month(scan: &DateScan, i: usize) -> Option<(Day, i64, usize)> {
    if let Some(month) = names::month(scan.at(i)) {
        let (first, more, end) = range::parse_days(scan, i + 1).filter(|(.., end)| scan.can_end_at(*end))?;
        let (year, end) = parse_year(scan, end);
        return build_day(month, first, year, end).map(|(day, end)| (day, more, end));
    }
    if !scan.at(i).starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (first, more, at) = range::parse_days(scan, i)?;
    let at = at + usize::from(scan.at(at) == "of");
    let (year, end) = parse_year(scan, at + 1);
    build_day(names::month(scan.at(at))?, first, year, end).map(|(day, end)| (day, more, end))
}

/// Parses "18 Feb", "the 1st of March" without the article, "31st Dec 1999", "15Sep", "16. Oct. 2025", "15-Mar-2027". A
/// year may follow, except after the joined form "15Sep". A spelled cardinal needs "of": "two of March". "may" without
/// "of" needs a year after it, or no noun. Returns `None` if the number is not 1 to 31, if no month follows, or if the
/// date does not exist.
pub(crate) fn parse_day_month(scan: &DateScan, i: usize) -> DayMatch {
    let word = scan.at(i);
    if let Some(cut) = word.find(|c: char| c.is_ascii_alphabetic()).filter(|cut| (1..=2).contains(cut))
        && let Some(month) = word.get(cut..).and_then(names::month)
    {
        return build_day(month, numbers::parse_digits(word.get(..cut)?)?, None, i + 1);
    }
    let (day, len) = numbers::ordinal(scan.words, i)
        .or_else(|| numbers::cardinal(scan.words, i))
        .filter(|(n, _)| (1..=31).contains(n))?;
    let mut at = i + len;
    let spelled = numbers::parse_digits(word).is_none() && !word.starts_with(|c: char| c.is_ascii_digit());
    at += usize::from(scan.at(at) == "day");
    let of = scan.at(at) == "of";
    at +=
        usize::from(of || scan.at(at) == "." || matches!(scan.at(at), "-" | "/") && scan.words.is_adjacent_to_next(at));
    if let Some((month, year)) = scan.at(at).split_once('-') {
        return build_day(names::month(month)?, day, Some(calendar::parse_year(year)?), at + 1);
    }
    let month = names::month(scan.at(at)).filter(|_| of || !spelled || numbers::ordinal(scan.words, i).is_some())?;
    if !of
        && names::is_ambiguous(scan.at(at))
        && scan.at(at) == "may"
        && !scan.can_end_at(at + 1)
        && parse_year(scan, at + 1).0.is_none()
    {
        return None;
    }
    at += 1;
    at += usize::from(matches!(scan.at(at), "." | "/") && calendar::parse_year(scan.at(at + 1)).is_some());
    let (year, end) = parse_year(scan, at);
    // "30 June 27": not an hour, and no number of things
    let short = numbers::parse_digits(scan.at(at)).filter(|n| (25..70).contains(n) && scan.at(at).len() == 2);
    if year.is_none() && short.is_some() && !scan.at(at).starts_with('0') && scan.can_end_at(at + 1) {
        return build_day(month, day, calendar::parse_year(scan.at(at)), at + 1);
    }
    build_day(month, day, year, end)
}

/// Parses "Friday", "this Monday", "this coming Friday", "last Sunday". "coming" and "upcoming" are treated as "this",
/// "following" as "next". "Friday after next", "Friday after this" and "Friday week" are a week after the next one,
/// with any qualifier before them. Returns a fixed date for "Friday after Thanksgiving", see [`parse_relative_to_day`].
/// The "next" of "Friday next" is skipped and has no effect. A plural does not match. An ambiguous short name without a
/// qualifier needs a context, see [`is_short_weekday`], or a clock time before it.
fn parse_weekday(scan: &DateScan, i: usize, lead_start: usize, parts: &DateParts) -> Option<(DatePiece, usize)> {
    let this = usize::from(
        scan.at(i) == "this" && matches!(scan.at(i + 1), "coming" | "upcoming" | "following" | "past" | "last"),
    );
    let stated = qualifier(scan.at(i + this));
    let at = i + this + usize::from(stated.is_some());
    let (day, form) = names::weekday(scan.at(at))?;
    if form == WeekdayForm::Plural
        || form == WeekdayForm::Short
            && stated.is_none()
            && parts.clock.is_none()
            && !is_short_weekday(scan, i, lead_start, parts)
    {
        return None;
    }
    let end = at + 1;
    if let Some(n) = scan.phrase(end, lexicon::days::LATER_WEEK)
        && (n > 1 || context::can_day_end_at(scan, end + 1, parts))
        && (scan.before(end + n) != "this" || scan.can_end_at(end + n))
    {
        return Some((DatePiece::Weekday(day, PeriodQualifier::AfterNext), end + n));
    }
    if let Some(n) =
        scan.phrase(end, lexicon::days::LATER_FORTNIGHT).filter(|n| context::can_day_end_at(scan, end + n, parts))
    {
        return Some((DatePiece::Weekday(day, PeriodQualifier::Fortnight), end + n));
    }
    if let Some(n) =
        scan.phrase(end, lexicon::days::BEFORE_LAST).filter(|n| context::can_day_end_at(scan, end + n, parts))
    {
        return Some((DatePiece::Weekday(day, PeriodQualifier::BeforeLast), end + n));
    }
    if let Some((date, end)) = parse_relative_to_day(scan, end, day) {
        return Some((DatePiece::Day(Day::Fixed(date)), end));
    }
    let end = end
        + usize::from(
            scan.at(end) == "next" && stated.is_none() && scan.can_end_at(end + 1) && !is_period(scan, end + 1),
        );
    Some((DatePiece::Weekday(day, effective_qualifier(scan.at(i + this), stated)), end))
}

/// Parses the reference of a weekday at `i` after "after", "following" or "before": "after Thanksgiving", "before March
/// 5". It is a holiday that no noun follows, or a day with a month. Returns the nearest such weekday after or before
/// the reference, never the reference itself, and the next position.
fn parse_relative_to_day(scan: &DateScan, i: usize, day: Weekday) -> Option<(Date, usize)> {
    let n = match scan.at(i) {
        "after" | "following" => 1,
        "before" => -1,
        _ => return None,
    };
    let (base, end) =
        super::holidays::parse_named(scan, i + 1).filter(|(_, end)| scan.can_end_at(*end)).or_else(|| {
            let (day, end) = parse_month_day(scan, i + 1).or_else(|| parse_day_month(scan, i + 1))?;
            let parts = DateParts { day: Some(day), ..DateParts::default() };
            Some((resolve::resolve_date(&parts, scan.now)?, end))
        })?;
    Some((base.nth_weekday(n, day).ok()?, end))
}

/// Returns true if the word at `i` is a unit of time or a month.
fn is_period(scan: &DateScan, i: usize) -> bool {
    names::time_unit(scan.at(i)).is_some() || names::month(scan.at(i)).is_some()
}

/// Returns the qualifier of a weekday. `word` is the word of `stated`. "this coming Friday" and "upcoming Friday" are
/// the nearest one, "next Friday" is in the next week.
fn effective_qualifier(word: &str, stated: Option<PeriodQualifier>) -> PeriodQualifier {
    match (word, stated) {
        ("coming" | "upcoming", _) => PeriodQualifier::This,
        (_, stated) => stated.unwrap_or(PeriodQualifier::Plain),
    }
}

/// Returns true if the short name at `i` is a day. Unambiguous names always are. An ambiguous one ("sun", "sat") needs
/// a preposition before it; after "the", no noun may follow. Otherwise it needs a figure or a month after it, or no
/// noun and neither "the" nor "my".
fn is_short_weekday(scan: &DateScan, i: usize, lead_start: usize, parts: &DateParts) -> bool {
    if !names::is_ambiguous(scan.at(i)) {
        return true;
    }
    let digit = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let article = matches!(scan.at(i + 1), "the" | "my");
    i > lead_start && (scan.before(i) != "the" || scan.can_end_at(i + 1))
        || context::can_day_end_at(scan, i + 1, parts) && !article
        || digit(scan.at(i + 1))
        || names::month(scan.at(i + 1)).is_some()
        || matches!(scan.at(i + 1), "." | ",")
}

/// Parses "the 21st", "the 27", "Tuesday 19th", "5th at 4". No noun may follow. A weekday counts as context only if no
/// day is known yet.
/// - A number in figures without "th" needs "the" before it, or a weekday if it is above 12. After "on", it needs a clock
///   time before or after it: "8pm on 15".
/// - An ordinal in figures needs "the", a preposition, a weekday or a repetition before it. It needs none as the whole
///   text, before a clock time, or at the start of the text before "at".
/// - A spelled ordinal ("the first") needs a weekday or a repetition before it. After "the" or a preposition, it needs
///   "of the month" after it. After a preposition with "the", it may also stand at the end of the text or before "to".
///   After "on", it may also stand before a clock time.
fn parse_day_of_month(scan: &DateScan, i: usize, lead_start: usize, parts: &DateParts) -> DayMatch {
    let at = i + usize::from(scan.at(i) == "the");
    let word = scan.at(at);
    let in_figures = word.starts_with(|c: char| c.is_ascii_digit());
    let after_weekday = parts.weekday.is_some() && parts.day.is_none();
    let ordinal = numbers::ordinal(scan.words, at);
    let (n, len) = match ordinal {
        Some(value) => value,
        None => {
            let plain = numbers::cardinal(scan.words, at).filter(|_| in_figures || after_weekday)?;
            let the = at > i || scan.before(i) == "the";
            let on = scan.before(i) == "on" && i > lead_start && !parts.names_day();
            let timed = on && (parts.clock.is_some() || context::precedes_clock(scan, at + 1, parts));
            if !(the || timed || after_weekday && plain.0 > 12) || !(in_figures && scan.can_end_at(at + 1)) {
                return None;
            }
            plain
        }
    };
    let day = i8::try_from(n).ok().filter(|d| (1..=31).contains(d))?;
    let end = at + len;
    let end = end + scan.phrase(end, lexicon::days::OF_THE_MONTH).unwrap_or(0);
    let led = at > i || i > lead_start || after_weekday || parts.repeat.is_some();
    let closing = scan.before(at) == "the" && lead_start < i && (end >= scan.end || scan.at(end) == "to");
    let timed = || !parts.names_day() && ordinal.is_some() && context::precedes_time(scan, end, parts);
    let spelled_alone = !closing && !in_figures && !after_weekday && end == at + len && parts.repeat.is_none();
    let on = scan.before(at) == "on" || scan.before(at) == "the" && scan.before(at - 1) == "on";
    let spelled_alone = spelled_alone && !(on && at > lead_start && timed());
    let ends = || scan.can_end_at(end) || in_figures && timed();
    let fits = led && !spelled_alone && ends() || scan.covers_all(i, end) && in_figures;
    let first = in_figures && (lead_start == scan.start && scan.at(end) == "at" || timed());
    (fits || first).then_some((Day::Monthly(day), end))
}
