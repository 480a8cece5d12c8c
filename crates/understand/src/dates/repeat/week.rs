//! Parses repetitions on weekdays: "every Tuesday", "weekdays", "Mon, Wed and Fri", "Monday to Friday".
//!
//! `i` or `at` is the position of the first word. A parser returns its result and the position after it, or `None` if
//! nothing matches.

use jiff::civil::Weekday;

use super::{Repeat, RepeatFrequency, RepeatMatch};
use crate::dates::DateScan;
use crate::dates::names::{self, DayPart, WeekdayForm};
use crate::lexicon;

const WORKDAYS: [Weekday; 5] =
    [Weekday::Monday, Weekday::Tuesday, Weekday::Wednesday, Weekday::Thursday, Weekday::Friday];
pub(super) const WEEKEND: [Weekday; 2] = [Weekday::Saturday, Weekday::Sunday];
const SCHOOL_NIGHTS: [Weekday; 5] =
    [Weekday::Sunday, Weekday::Monday, Weekday::Tuesday, Weekday::Wednesday, Weekday::Thursday];

/// Parses "weekdays", "workdays", "week days", "weekday mornings", "week mornings" at `i`: Monday to Friday. A bare
/// "weekday" or "week" does not match. The word at `i` is not checked before a plural part of the day.
pub(super) fn parse_workdays(scan: &DateScan, i: usize) -> RepeatMatch {
    let end = i + 1 + usize::from(scan.at(i) == "week" && scan.at(i + 1) == "days");
    let repeat = Repeat::weekly(WORKDAYS.to_vec(), 1);
    if let Some((part, true)) = names::day_part(scan.at(end)) {
        return Some((Repeat { part: Some(part), ..repeat }, end + 1));
    }
    (end > i + 1 || matches!(scan.at(i), "weekdays" | "workdays")).then_some((repeat, end))
}

/// Parses "weekend mornings". The word at `i` is "weekend" and is not checked.
pub(super) fn parse_weekend_parts(scan: &DateScan, i: usize) -> RepeatMatch {
    let (part, _) = names::day_part(scan.at(i + 1)).filter(|(_, plural)| *plural)?;
    Some((Repeat { part: Some(part), ..Repeat::weekly(WEEKEND.to_vec(), 1) }, i + 2))
}

/// Parses days after "every", repeated every `interval` weeks. "school night" is Sunday to Thursday at night,
/// "weekday", "business day" and "school day" Monday to Friday, "weekend" Saturday and Sunday. Also parses a list of
/// weekdays, see [`parse_day_list`]. Returns `None` for other words.
pub(super) fn parse_named(scan: &DateScan, at: usize, interval: i64) -> RepeatMatch {
    if let Some(len) = scan.phrase(at, lexicon::repeats::SCHOOL_NIGHTS) {
        let nights = Repeat::weekly(SCHOOL_NIGHTS.to_vec(), interval);
        return Some((Repeat { part: Some(DayPart::Night), ..nights }, at + len));
    }
    if let Some(len) = scan.phrase(at, lexicon::repeats::WORKDAYS) {
        return Some((Repeat::weekly(WORKDAYS.to_vec(), interval), at + len));
    }
    if matches!(scan.at(at), "weekend" | "weekends" | "wknd") {
        return Some((Repeat::weekly(WEEKEND.to_vec(), interval), at + 1));
    }
    let (days, end) = parse_day_list(scan, at, true)?;
    Some((Repeat::weekly(days, interval), end))
}

/// Adds the weekdays after a weekly repetition: "week on Tuesdays and Fridays". The "on" is optional. `end` is the
/// position after the unit. Returns the repetition unchanged, with `end`, if it is not weekly or if no weekday follows.
/// Never returns `None`.
pub(super) fn parse_with_days(scan: &DateScan, end: usize, mut repeat: Repeat) -> RepeatMatch {
    if repeat.frequency == RepeatFrequency::Weekly {
        let at = end + usize::from(scan.at(end) == "on");
        if let Some((days, end)) = parse_day_list(scan, at, true) {
            repeat.days = days;
            return Some((repeat, end));
        }
    }
    Some((repeat, end))
}

/// Parses "Monday", "Monday and Thursday", "Mon, Wed and Fri", "mon/wed/fri", "Monday through Friday". Returns each
/// weekday once, in the order of the text, and the next position. One to three of ",", "and", "&", "/", "every" and
/// "each" separate the days, at most seven. Short names in a row need none, see [`is_short_row`]. `every` is true after
/// "every": then a range may follow "from", and two short names suffice for such a row.
fn parse_day_list(scan: &DateScan, start: usize, every: bool) -> Option<(Vec<Weekday>, usize)> {
    let (first, _) = names::weekday(scan.at(start))?;
    let mut days = vec![first];
    let mut end = start + 1;
    if matches!(scan.at(end), "through" | "thru" | "to" | "-" | "–")
        && (every || scan.before(start) != "from")
        && let Some((last, _)) = names::weekday(scan.at(end + 1))
    {
        return Some((days_between(first, last), end + 2));
    }
    for _ in 0..6 {
        let mut at = end;
        while matches!(scan.at(at), "," | "and" | "&" | "every" | "each" | "/") && at < end + 3 {
            at += 1;
        }
        let bare = |form: WeekdayForm| at > end || form == WeekdayForm::Short && is_short_row(scan, start, every);
        let Some((day, _)) = names::weekday(scan.at(at)).filter(|(_, form)| bare(*form)) else { break };
        if !days.contains(&day) {
            days.push(day);
        }
        end = at + 1;
    }
    Some((days, end))
}

/// Returns true for a sequence of short names without marks at `start`: "mon wed fri". Two names suffice if `every` is
/// true, else three.
fn is_short_row(scan: &DateScan, start: usize, every: bool) -> bool {
    let short = |i: usize| matches!(names::weekday(scan.at(i)), Some((_, WeekdayForm::Short)));
    short(start) && short(start + 1) && (every || short(start + 2))
}

/// Returns the weekdays from `first` to `last`, both included. Continues after Sunday with Monday.
fn days_between(first: Weekday, last: Weekday) -> Vec<Weekday> {
    let mut days = vec![first];
    let mut day = first;
    while day != last {
        day = day.next();
        days.push(day);
    }
    days
}

/// Parses weekdays that repeat without "every": "Mondays", "on Tuesdays and Thursdays", "tuesday afternoons",
/// "tue/thu", "mon-fri", "MWF". One plural in the list suffices, unless the first word ends with "'s". Singular names
/// match if there are more than two, also by a range. Two match with a slash, or in one word with a hyphen. Any number
/// matches before a plural part of the day, which is then set.
pub(super) fn parse_plural(scan: &DateScan, i: usize) -> RepeatMatch {
    if scan.at(i) == "mwf" {
        let days = vec![Weekday::Monday, Weekday::Wednesday, Weekday::Friday];
        return Some((Repeat::weekly(days, 1), i + 1));
    }
    if let Some((first, last)) = scan.at(i).split_once('-')
        && let (Some((first, _)), Some((last, _))) = (names::weekday(first), names::weekday(last))
    {
        return Some((Repeat::weekly(days_between(first, last), 1), i + 1));
    }
    let (days, end) = parse_day_list(scan, i, false)?;
    let plural = |at: usize| names::weekday(scan.at(at)).is_some_and(|(_, form)| form == WeekdayForm::Plural);
    let several = days.len() > 2 || days.len() == 2 && scan.at(i + 1) == "/";
    if several || (i..end).any(plural) && !scan.at(i).ends_with("'s") {
        return Some((Repeat::weekly(days, 1), end));
    }
    let (part, _) = names::day_part(scan.at(end)).filter(|(_, plural)| *plural)?;
    Some((Repeat { part: Some(part), ..Repeat::weekly(days, 1) }, end + 1))
}

/// Parses the excluded weekdays of "every day except Sundays" at `at`. Returns a weekly repetition on the remaining
/// ones, or `None` if none remains.
pub(super) fn parse_except(scan: &DateScan, at: usize) -> RepeatMatch {
    let at = at + usize::from(matches!(scan.at(at), "on" | "for" | "the"));
    let (left_out, end) = parse_named(scan, at, 1)?;
    let days: Vec<Weekday> =
        days_between(Weekday::Monday, Weekday::Sunday).into_iter().filter(|day| !left_out.days.contains(day)).collect();
    (!days.is_empty()).then_some((Repeat::weekly(days, 1), end))
}

/// Returns a repetition on the `nth` day from Monday to Friday of each month. -1 is the last one.
pub(super) fn workday_of_month(nth: i8) -> Repeat {
    Repeat { nth: vec![nth], together: true, days: WORKDAYS.to_vec(), ..Repeat::new(RepeatFrequency::Monthly, 1) }
}
