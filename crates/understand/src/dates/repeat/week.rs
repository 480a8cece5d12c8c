//! Repetitions by days of the week: "every Tuesday", "weekdays", "Mon, Wed and Fri", "Monday to Friday".

use jiff::civil::Weekday;

use super::{Frequency, Read, Repeat};
use crate::dates::Scan;
use crate::dates::names::{self, Form, Part};
use crate::lexicon;

const WORKDAYS: [Weekday; 5] =
    [Weekday::Monday, Weekday::Tuesday, Weekday::Wednesday, Weekday::Thursday, Weekday::Friday];
pub(super) const WEEKEND: [Weekday; 2] = [Weekday::Saturday, Weekday::Sunday];
const SCHOOL_NIGHTS: [Weekday; 5] =
    [Weekday::Sunday, Weekday::Monday, Weekday::Tuesday, Weekday::Wednesday, Weekday::Thursday];

/// "weekdays", "week days", "weekday mornings".
pub(super) fn working(scan: &Scan, i: usize) -> Read {
    let end = i + 1 + usize::from(scan.at(i) == "week" && scan.at(i + 1) == "days");
    let repeat = Repeat::weekly(WORKDAYS.to_vec(), 1);
    if let Some((part, true)) = names::part(scan.at(end)) {
        return Some((Repeat { part: Some(part), ..repeat }, end + 1));
    }
    (end > i + 1 || matches!(scan.at(i), "weekdays" | "workdays")).then_some((repeat, end))
}

/// "weekend mornings".
pub(super) fn weekend_parts(scan: &Scan, i: usize) -> Read {
    let (part, _) = names::part(scan.at(i + 1)).filter(|(_, plural)| *plural)?;
    Some((Repeat { part: Some(part), ..Repeat::weekly(WEEKEND.to_vec(), 1) }, i + 2))
}

/// "weekday", "school night", "weekend", "Tuesday and Friday", each `interval` weeks.
pub(super) fn named(scan: &Scan, at: usize, interval: i64) -> Read {
    if let Some(len) = scan.phrase(at, lexicon::repeats::SCHOOL_NIGHTS) {
        let nights = Repeat::weekly(SCHOOL_NIGHTS.to_vec(), interval);
        return Some((Repeat { part: Some(Part::Night), ..nights }, at + len));
    }
    if let Some(len) = scan.phrase(at, lexicon::repeats::WORKDAYS) {
        return Some((Repeat::weekly(WORKDAYS.to_vec(), interval), at + len));
    }
    if matches!(scan.at(at), "weekend" | "weekends" | "wknd") {
        return Some((Repeat::weekly(WEEKEND.to_vec(), interval), at + 1));
    }
    let (days, end) = day_list(scan, at, true)?;
    Some((Repeat::weekly(days, interval), end))
}

/// "week on Tuesdays and Fridays".
pub(super) fn with_days(scan: &Scan, end: usize, mut repeat: Repeat) -> Read {
    if repeat.frequency == Frequency::Weekly {
        let at = end + usize::from(scan.at(end) == "on");
        if let Some((days, end)) = day_list(scan, at, true) {
            repeat.days = days;
            return Some((repeat, end));
        }
    }
    Some((repeat, end))
}

/// "Monday", "Monday and Thursday", "Mon, Wed and Fri", "mon/wed/fri", "Monday through Friday".
fn day_list(scan: &Scan, start: usize, every: bool) -> Option<(Vec<Weekday>, usize)> {
    let (first, _) = names::weekday(scan.at(start))?;
    let mut days = vec![first];
    let mut end = start + 1;
    if matches!(scan.at(end), "through" | "thru" | "to" | "-" | "–")
        && (every || scan.before(start) != "from")
        && let Some((last, _)) = names::weekday(scan.at(end + 1))
    {
        return Some((from_to(first, last), end + 2));
    }
    for _ in 0..6 {
        let mut at = end;
        while matches!(scan.at(at), "," | "and" | "&" | "every" | "each" | "/") && at < end + 3 {
            at += 1;
        }
        let bare = |form: Form| at > end || form == Form::Short && short_row(scan, start, every);
        let Some((day, _)) = names::weekday(scan.at(at)).filter(|(_, form)| bare(*form)) else { break };
        if !days.contains(&day) {
            days.push(day);
        }
        end = at + 1;
    }
    Some((days, end))
}

/// Whether short names stand in a row, as in "mon wed fri".
fn short_row(scan: &Scan, start: usize, every: bool) -> bool {
    let short = |i: usize| matches!(names::weekday(scan.at(i)), Some((_, Form::Short)));
    short(start) && short(start + 1) && (every || short(start + 2))
}

fn from_to(first: Weekday, last: Weekday) -> Vec<Weekday> {
    let mut days = vec![first];
    let mut day = first;
    while day != last {
        day = day.next();
        days.push(day);
    }
    days
}

/// "Mondays", "on Tuesdays and Thursdays", "tuesday afternoons", "tue/thu", "MWF".
pub(super) fn plural(scan: &Scan, i: usize) -> Read {
    if scan.at(i) == "mwf" {
        let days = vec![Weekday::Monday, Weekday::Wednesday, Weekday::Friday];
        return Some((Repeat::weekly(days, 1), i + 1));
    }
    if let Some((first, last)) = scan.at(i).split_once('-')
        && let (Some((first, _)), Some((last, _))) = (names::weekday(first), names::weekday(last))
    {
        return Some((Repeat::weekly(from_to(first, last), 1), i + 1));
    }
    let (days, end) = day_list(scan, i, false)?;
    let plural = |at: usize| names::weekday(scan.at(at)).is_some_and(|(_, form)| form == Form::Plural);
    let several = days.len() > 2 || days.len() == 2 && scan.at(i + 1) == "/";
    if several || (i..end).any(plural) && !scan.at(i).ends_with("'s") {
        return Some((Repeat::weekly(days, 1), end));
    }
    let (part, _) = names::part(scan.at(end)).filter(|(_, plural)| *plural)?;
    Some((Repeat { part: Some(part), ..Repeat::weekly(days, 1) }, end + 1))
}

/// What is left of a week: "every day except Sundays".
pub(super) fn except(scan: &Scan, at: usize) -> Read {
    let at = at + usize::from(matches!(scan.at(at), "on" | "for" | "the"));
    let (left_out, end) = named(scan, at, 1)?;
    let days: Vec<Weekday> =
        from_to(Weekday::Monday, Weekday::Sunday).into_iter().filter(|day| !left_out.days.contains(day)).collect();
    (!days.is_empty()).then_some((Repeat::weekly(days, 1), end))
}

/// The working days as one set, of which the first or the last is meant.
pub(super) fn workday_of_month(nth: i8) -> Repeat {
    Repeat { nth: vec![nth], together: true, days: WORKDAYS.to_vec(), ..Repeat::new(Frequency::Monthly, 1) }
}
