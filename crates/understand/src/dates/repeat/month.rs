//! Repetitions by the month: "the 15th of each month", "every last Friday", "at the end of every month".

use jiff::civil::Weekday;

use super::{Frequency, Read, Repeat, week};
use crate::dates::names::{self, Form};
use crate::dates::{Parts, Scan};
use crate::lexicon;
use crate::numbers;

/// Which day of a month: of all days, of those with a name, or of those people work on.
enum Place {
    Days(Vec<i8>),
    Weekday(Vec<i8>, Weekday),
    Working(i8),
}

impl Place {
    fn repeat(self) -> Repeat {
        let monthly = Repeat::new(Frequency::Monthly, 1);
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

/// "15th", "1st and 15th", "last day", "first Monday", "last working day".
fn place(scan: &Scan, i: usize) -> Option<(Place, usize)> {
    let (n, len) = position(scan, i)?;
    let at = i + len;
    if let Some(len) = scan.phrase(at, lexicon::repeats::WORKDAYS) {
        return Some((Place::Working(n), at + len));
    }
    let mut days = vec![n];
    let mut end = at + usize::from(scan.at(at) == "day");
    // No month has more days; the limit keeps the time linear where every word may begin such a list.
    for _ in 0..31 {
        let Some((day, next)) = another(scan, end) else { break };
        days.push(day);
        end = next;
    }
    let weekday = names::weekday(scan.at(end)).filter(|(_, form)| *form != Form::Plural || days.len() > 1);
    if let Some((day, _)) = weekday.filter(|_| scan.before(end) != "day") {
        return Some((Place::Weekday(days, day), end + 1));
    }
    Some((Place::Days(days), end))
}

fn position(scan: &Scan, i: usize) -> Option<(i8, usize)> {
    let numbered = || (scan.at(i) == "day").then(|| Some((numbers::figures(scan.at(i + 1))?, 2)))?;
    let (n, len) =
        numbers::ordinal(scan.words, i).or_else(numbered).or_else(|| (scan.at(i) == "last").then_some((-1, 1)))?;
    let n = i8::try_from(n).ok().filter(|n| (-1..=31).contains(n))?;
    Some((n, len))
}

/// "and the 15th" after "the 1st".
fn another(scan: &Scan, end: usize) -> Option<(i8, usize)> {
    let mut at = end;
    while matches!(scan.at(at), "," | "and" | "&" | "the") && at < end + 3 {
        at += 1;
    }
    let (n, len) = position(scan, at).filter(|_| at > end)?;
    let last = n == -1;
    let end = at + len + usize::from(scan.at(at + len) == "day");
    (!last || end > at + len).then_some((n, end))
}

/// "15th of each month", "first Monday of every month"; "the last day of the month" is a date and not read here.
pub(super) fn of_every(scan: &Scan, i: usize) -> Read {
    let (place, end) = place(scan, i)?;
    Some((place.repeat(), end + scan.phrase(end, lexicon::repeats::EACH_MONTH)?))
}

/// "first Monday of the month" after "every".
pub(super) fn nth(scan: &Scan, i: usize) -> Read {
    let (place, end) = place(scan, i)?;
    Some((place.repeat(), end + scan.phrase(end, lexicon::repeats::OF_THE_MONTH)?))
}

/// "first Monday", "last Friday" after "every": of the month. The second and third are read as intervals.
pub(super) fn first_weekday(scan: &Scan, i: usize) -> Read {
    match place(scan, i)? {
        (Place::Weekday(nth, day), end) if nth.len() > 1 || nth == [1] || nth == [-1] => {
            Some((Place::Weekday(nth, day).repeat(), end))
        }
        _ => None,
    }
}

/// "5th", "1st and 15th" after "every": those days of each month.
pub(super) fn days(scan: &Scan, i: usize) -> Read {
    match place(scan, i)? {
        (place @ Place::Days(_), end) if scan.closes(end) => Some((place.repeat(), end)),
        _ => None,
    }
}

/// "second Tuesday", "last day", "1st and 15th" beside a monthly repetition: "monthly on the …".
pub(super) fn beside(scan: &Scan, i: usize, parts: &Parts) -> Read {
    let monthly = parts.repeat.as_ref().filter(|repeat| repeat.frequency == Frequency::Monthly)?;
    let open = monthly.days.is_empty() && monthly.month_days.is_empty();
    match place(scan, i).filter(|_| open)? {
        (Place::Days(days), end)
            if days.len() == 1 && scan.at(i) != "day" && !(days.contains(&-1) && scan.before(end) == "day") =>
        {
            None
        }
        (place, end) => {
            let end = end + scan.phrase(end, lexicon::repeats::OF_THIS_MONTH).unwrap_or(0);
            let interval = monthly.interval;
            Some((Repeat { interval, ..place.repeat() }, end))
        }
    }
}

/// "end of every month", "the beginning of each month".
pub(super) fn edge(scan: &Scan, i: usize) -> Read {
    let day = match scan.at(i) {
        "end" => -1,
        "beginning" | "start" => 1,
        _ => return None,
    };
    let len = scan.phrase(i + 1, lexicon::repeats::OF_EACH_MONTH)?;
    Some((Place::Days(vec![day]).repeat(), i + 1 + len))
}

/// "month end", "end of month" after "every".
pub(super) fn end(scan: &Scan, i: usize) -> Read {
    let len = scan.phrase(i, lexicon::repeats::MONTH_END)?;
    Some((Place::Days(vec![-1]).repeat(), i + len))
}
