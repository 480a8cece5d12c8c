//! Parses monthly repetitions: "the 15th of each month", "every last Friday", "at the end of every month".
//!
//! Conventions of the `dates` module: `i` is the first token of the piece, and `parts` are the pieces before it. A
//! parser returns its result and the position after it, or `None` if nothing matches. "A noun follows" means that an
//! ordinary word follows, see [`DateScan::can_end_at`].

use jiff::civil::Weekday;

use super::{Repeat, RepeatFrequency, RepeatMatch, week};
use crate::dates::names::{self, WeekdayForm};
use crate::dates::{DateParts, DateScan};
use crate::lexicon;
use crate::numbers;

/// A day of a month: by number, by weekday, or by workday.
enum MonthlyDay {
    /// Days of the month. -1 is the last one.
    Days(Vec<i8>),
    /// Positions of a weekday in the month. -1 is the last one.
    Weekday(Vec<i8>, Weekday),
    /// The position of a day from Monday to Friday in the month. -1 is the last one.
    Working(i8),
}

impl MonthlyDay {
    /// Returns the monthly repetition with interval 1. Positions of a weekday above 5 are dropped. If none remains,
    /// every such weekday of the month counts.
    fn into_repeat(self) -> Repeat {
        let monthly = Repeat::new(RepeatFrequency::Monthly, 1);
        match self {
            Self::Days(month_days) => Repeat { month_days, ..monthly },
            Self::Weekday(mut nth, day) => {
                nth.retain(|n| (-1..=5).contains(n));
                Repeat { nth, days: vec![day], ..monthly }
            }
            Self::Working(n) => week::workday_of_month(n),
        }
    }
}

/// Parses "15th", "1st and 15th", "last day", "day 15", "first Monday", "first and third Monday", "last working day". A
/// bare "last" is the last day. A plural weekday counts only after several positions, "working day" only after a single
/// one. Returns the day and the next position. Returns `None` if neither an ordinal up to 31, nor "day" with a figure,
/// nor "last" begins at `i`. Accepts "0th" and "day 0", although no month has such a day.
fn parse_monthly_day(scan: &DateScan, i: usize) -> Option<(MonthlyDay, usize)> {
    let (n, len) = parse_position(scan, i)?;
    let at = i + len;
    if let Some(len) = scan.phrase(at, lexicon::repeats::WORKDAYS) {
        return Some((MonthlyDay::Working(n), at + len));
    }
    let mut days = vec![n];
    let mut end = at + usize::from(scan.at(at) == "day");
    // No month has more days. The limit keeps the run time linear, because any word may begin such a list.
    for _ in 0..31 {
        let Some((day, next)) = parse_next_day(scan, end) else { break };
        days.push(day);
        end = next;
    }
    let weekday = names::weekday(scan.at(end)).filter(|(_, form)| *form != WeekdayForm::Plural || days.len() > 1);
    if let Some((day, _)) = weekday.filter(|_| scan.before(end) != "day") {
        return Some((MonthlyDay::Weekday(days, day), end + 1));
    }
    Some((MonthlyDay::Days(days), end))
}

/// Parses an ordinal up to 31, "day 15" or "last". "last" is -1. Returns the position in the month and the number of
/// tokens.
fn parse_position(scan: &DateScan, i: usize) -> Option<(i8, usize)> {
    let numbered = || (scan.at(i) == "day").then(|| Some((numbers::parse_digits(scan.at(i + 1))?, 2)))?;
    let (n, len) =
        numbers::ordinal(scan.words, i).or_else(numbered).or_else(|| (scan.at(i) == "last").then_some((-1, 1)))?;
    let n = i8::try_from(n).ok().filter(|n| (-1..=31).contains(n))?;
    Some((n, len))
}

/// Parses "and the 15th" after "the 1st". `end` is the position after the first day. One to three of ",", "and", "&"
/// and "the" must precede. "last" must be followed by "day". Returns the day and the next position.
fn parse_next_day(scan: &DateScan, end: usize) -> Option<(i8, usize)> {
    let mut at = end;
    while matches!(scan.at(at), "," | "and" | "&" | "the") && at < end + 3 {
        at += 1;
    }
    let (n, len) = parse_position(scan, at).filter(|_| at > end)?;
    let last = n == -1;
    let end = at + len + usize::from(scan.at(at + len) == "day");
    (!last || end > at + len).then_some((n, end))
}

/// Parses "15th of each month", "first Monday of every month" at `i`. "the last day of the month" is a date and does
/// not match.
pub(super) fn parse_of_every(scan: &DateScan, i: usize) -> RepeatMatch {
    let (day, end) = parse_monthly_day(scan, i)?;
    Some((day.into_repeat(), end + scan.phrase(end, lexicon::repeats::EACH_MONTH)?))
}

/// Parses "first Monday of the month" after "every".
pub(super) fn parse_nth(scan: &DateScan, i: usize) -> RepeatMatch {
    let (day, end) = parse_monthly_day(scan, i)?;
    Some((day.into_repeat(), end + scan.phrase(end, lexicon::repeats::OF_THE_MONTH)?))
}

/// Parses "first Monday", "last Friday", "first and third Monday" after "every" as days of the month. "second" and
/// "third" alone are intervals and do not match.
pub(super) fn parse_first_weekday(scan: &DateScan, i: usize) -> RepeatMatch {
    match parse_monthly_day(scan, i)? {
        (MonthlyDay::Weekday(nth, day), end) if nth.len() > 1 || nth == [1] || nth == [-1] => {
            Some((MonthlyDay::Weekday(nth, day).into_repeat(), end))
        }
        _ => None,
    }
}

/// Parses "5th", "1st and 15th" after "every", unless a noun follows.
pub(super) fn parse_days(scan: &DateScan, i: usize) -> RepeatMatch {
    match parse_monthly_day(scan, i)? {
        (day @ MonthlyDay::Days(_), end) if scan.can_end_at(end) => Some((day.into_repeat(), end)),
        _ => None,
    }
}

/// Parses "second Tuesday", "last day", "day 15", "1st and 15th", "last working day" after a monthly repetition:
/// "monthly on the …". "of the month" may follow. Keeps its interval. Returns `None` if `parts` has no monthly
/// repetition or if it already has days. A single ordinal ("the 5th") and a bare "last" do not match: the ordinal is a
/// date, and the RRULE includes it.
pub(super) fn parse_beside_monthly(scan: &DateScan, i: usize, parts: &DateParts) -> RepeatMatch {
    let monthly = parts.repeat.as_ref().filter(|repeat| repeat.frequency == RepeatFrequency::Monthly)?;
    let open = monthly.days.is_empty() && monthly.month_days.is_empty();
    match parse_monthly_day(scan, i).filter(|_| open)? {
        (MonthlyDay::Days(days), end)
            if days.len() == 1 && scan.at(i) != "day" && !(days.contains(&-1) && scan.before(end) == "day") =>
        {
            None
        }
        (day, end) => {
            let end = end + scan.phrase(end, lexicon::repeats::OF_THIS_MONTH).unwrap_or(0);
            let interval = monthly.interval;
            Some((Repeat { interval, ..day.into_repeat() }, end))
        }
    }
}

/// Parses "end of every month" as the last day, "beginning of each month" and "start of each month" as the first day.
/// Returns `None` for other words, also for "end of the month".
pub(super) fn parse_edge(scan: &DateScan, i: usize) -> RepeatMatch {
    let day = match scan.at(i) {
        "end" => -1,
        "beginning" | "start" => 1,
        _ => return None,
    };
    let len = scan.phrase(i + 1, lexicon::repeats::OF_EACH_MONTH)?;
    Some((MonthlyDay::Days(vec![day]).into_repeat(), i + 1 + len))
}

/// Parses "month end", "end of month" after "every": the last day.
pub(super) fn parse_month_end(scan: &DateScan, i: usize) -> RepeatMatch {
    let len = scan.phrase(i, lexicon::repeats::MONTH_END)?;
    Some((MonthlyDay::Days(vec![-1]).into_repeat(), i + len))
}
