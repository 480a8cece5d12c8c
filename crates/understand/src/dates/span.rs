//! Weeks, months, weekends and years, and their beginnings and ends: "next week", "end of the month", "EOM".

use jiff::civil::{Date, Weekday};

use super::day::{self, Which};
use super::names::{self, Part, Unit};
use super::{Day, Piece, Scan, calendar, quarter};
use crate::lexicon;
use crate::numbers;

pub(crate) fn read(scan: &Scan, i: usize, own: usize) -> Option<(Piece, usize)> {
    short(scan, i)
        .or_else(|| edge(scan, i))
        .or_else(|| nth_week_of(scan, i))
        .or_else(|| nth_day_of(scan, i))
        .or_else(|| several_next(scan, i))
        .or_else(|| whole(scan, i, own))
}

fn span(start: Date, end: Date, due: Date) -> Piece {
    Piece::Day(Day::Span { start, end, due })
}

/// "EOM", "month end", "week's end".
fn short(scan: &Scan, i: usize) -> Option<(Piece, usize)> {
    let (unit, len) = match scan.at(i) {
        "eom" | "month-end" => (Unit::Month, 1),
        "eow" => (Unit::Week, 1),
        "eoq" | "quarter-end" => (Unit::Quarter, 1),
        "eoy" | "year-end" => (Unit::Year, 1),
        "midweek" | "mid-week" => return midweek(scan, i),
        "week's" | "month" | "month's" | "quarter" | "quarter's" | "year" | "year's"
            if scan.at(i + 1) == "end" && scan.closes(i + 2) && scan.at(i + 2) != "of" =>
        {
            (names::unit(scan.at(i).trim_end_matches("'s"))?, 2)
        }
        _ => return None,
    };
    let (start, end) = around(scan.today(), unit)?;
    let due = match unit {
        Unit::Week if len == 2 => calendar::in_week_of(start, Weekday::Friday)?,
        _ => calendar::plus_days(end, -1)?,
    };
    Some((span(start, end, due), i + len))
}

/// The Wednesday of this week, or of the next if it is over.
fn midweek(scan: &Scan, i: usize) -> Option<(Piece, usize)> {
    let date = calendar::next(scan.today(), Weekday::Wednesday, true)?;
    scan.closes(i + 1).then_some((Piece::Day(Day::Fixed(date)), i + 1))
}

/// The period of a date: from its first day to the one after its last.
fn around(date: Date, unit: Unit) -> Option<(Date, Date)> {
    match unit {
        Unit::Week => {
            let start = calendar::week_start(date)?;
            Some((start, calendar::plus_days(start, 7)?))
        }
        Unit::Month => Some((date.first_of_month(), calendar::plus_days(date.last_of_month(), 1)?)),
        Unit::Quarter => {
            let start = Date::new(date.year(), (date.month() - 1) / 3 * 3 + 1, 1).ok()?;
            Some((start, calendar::plus_months(start, 3)?))
        }
        Unit::Year => Some((date.first_of_year(), calendar::plus_days(date.last_of_year(), 1)?)),
        _ => None,
    }
}

fn shifted(date: Date, unit: Unit, by: i64) -> Option<Date> {
    match unit {
        Unit::Week => calendar::plus_days(date, by * 7),
        Unit::Month => calendar::plus_months(date.first_of_month(), by),
        Unit::Quarter => calendar::plus_months(date.first_of_month(), by * 3),
        Unit::Year => calendar::plus_months(date.first_of_year(), by * 12),
        _ => None,
    }
}

/// A period by name: "this week", "the following month", "April", "next year". Its bounds and where it ends.
fn period(scan: &Scan, i: usize) -> Option<(Date, Date, Unit, usize)> {
    let at = i + usize::from(matches!(scan.at(i), "the" | "this") && !matches!(scan.at(i + 1), ""));
    let (by, at) = match day::which(scan.at(at)) {
        Some(Which::Next) => (1, at + 1),
        Some(Which::Last) => (-1, at + 1),
        Some(_) => (0, at + 1),
        None => (0, at),
    };
    if let Some(month) = names::month(scan.at(at)) {
        let (year, end) = year_after(scan, at + 1);
        let first = month_start(scan.today(), month, year, by)?;
        return Some((first, calendar::plus_months(first, 1)?, Unit::Month, end));
    }
    if let Some((start, end, next)) = quarter::read(scan, at, by) {
        return Some((start, end, Unit::Quarter, next));
    }
    let unit = names::unit(scan.at(at))?;
    let after_next = scan.phrase(at + 1, lexicon::spans::AFTER_NEXT);
    let by = if after_next.is_some() { 2 } else { by };
    let (start, end) = around(shifted(scan.today(), unit, by)?, unit)?;
    Some((start, end, unit, at + 1 + after_next.unwrap_or(0)))
}

/// The first day of the month that is meant: of this year, or of the next if the month is over.
fn month_start(today: Date, month: i8, year: Option<i16>, by: i64) -> Option<Date> {
    if let Some(year) = year {
        return Date::new(year, month, 1).ok();
    }
    let this = Date::new(today.year(), month, 1).ok()?;
    let ahead = if this.last_of_month() < today { calendar::plus_months(this, 12)? } else { this };
    match by {
        -1 if this.last_of_month() < today => Some(this),
        -1 => calendar::plus_months(this, -12),
        1 if ahead <= today => calendar::plus_months(ahead, 12),
        _ => Some(ahead),
    }
}

fn year_after(scan: &Scan, i: usize) -> (Option<i16>, usize) {
    match day::year(scan, i + usize::from(scan.at(i) == "/")) {
        (None, _) => (None, i),
        read => read,
    }
}

/// "end of the month", "beginning of next week", "end of today", "middle of May".
pub(super) fn edge(scan: &Scan, i: usize) -> Option<(Piece, usize)> {
    let (edge, at) = match scan.at(i) {
        "end" | "close" => (2, i + 1),
        "beginning" | "start" => (0, i + 1),
        "middle" | "mid" => (1, i + 1),
        "early" | "late" => return early_or_late(scan, i),
        word => return mid(scan, word.strip_prefix("mid-")?, i),
    };
    let at = at + usize::from(scan.at(at) == "of");
    let the = at + usize::from(matches!(scan.at(at), "the" | "my"));
    if edge == 2
        && let Some(len) = scan.phrase(the, lexicon::spans::DAY)
    {
        return Some((Piece::Part(Part::End), the + len));
    }
    if edge == 2
        && let Some((date, end)) = day::alone(scan, at)
    {
        return Some((Piece::PartOf(date, Part::End), end));
    }
    let (start, end, unit, next) = period(scan, at)?;
    let length = end.since(start).ok()?.get_days();
    let third = i64::from(if unit == Unit::Week { 3 } else { (length / 3).max(1) });
    let last = calendar::plus_days(end, -1)?;
    let piece = match edge {
        0 => span(start, calendar::plus_days(start, third)?, start),
        1 => span(start, end, calendar::plus_days(start, if unit == Unit::Month { 14 } else { 2 })?),
        _ if unit == Unit::Week => span(start, end, calendar::in_week_of(start, Weekday::Friday)?),
        _ => span(start, end, last),
    };
    Some((piece, next))
}

/// "early next month", "late in April": the first or the last third.
fn early_or_late(scan: &Scan, i: usize) -> Option<(Piece, usize)> {
    let at = i + 1 + usize::from(scan.at(i + 1) == "in");
    let (start, end, unit, next) = period(scan, at)?;
    let said = next > at + 1 || names::month(scan.at(at)).is_some() || quarter::is_season(scan.at(at));
    if !said || !scan.closes(next) {
        return None;
    }
    let third = (end.since(start).ok()?.get_days() / 3).max(2);
    let early = calendar::plus_days(start, i64::from(third))?;
    let late = calendar::plus_days(end, -i64::from(third))?;
    let week = unit == Unit::Week;
    let piece = match scan.at(i) {
        "early" => span(start, early, start.max(scan.today()).min(calendar::plus_days(early, -1)?)),
        _ if week => span(late, end, calendar::in_week_of(start, Weekday::Friday)?),
        _ => span(late, end, late),
    };
    Some((piece, next))
}

/// "mid-April".
fn mid(scan: &Scan, name: &str, i: usize) -> Option<(Piece, usize)> {
    let start = month_start(scan.today(), names::month(name)?, None, 0)?;
    let due = calendar::plus_days(start, 14)?;
    Some((span(start, calendar::plus_months(start, 1)?, due), i + 1))
}

/// "the first week of April", "last week of the month".
fn nth_week_of(scan: &Scan, i: usize) -> Option<(Piece, usize)> {
    let at = i + usize::from(scan.at(i) == "the");
    let (n, len) = numbers::ordinal(scan.words, at)
        .or_else(|| (scan.at(at) == "last").then_some((-1, 1)))
        .filter(|(n, _)| (-1..=5).contains(n))?;
    let at = at + len;
    let of = at + usize::from(scan.at(at) == "week");
    let (start, end, unit, next) = period(scan, of + scan.phrase(of, lexicon::spans::OF)?).filter(|_| of > at)?;
    if !matches!(unit, Unit::Month | Unit::Year) {
        return None;
    }
    let first = if n < 0 { calendar::plus_days(end, -7)? } else { calendar::plus_days(start, (n - 1) * 7)? };
    let last = calendar::plus_days(first, 7)?;
    let due = if first < scan.today() && scan.today() < last { scan.today() } else { first };
    Some((span(first, last.min(end), due), next))
}

/// "12th of next month", "the 15th day of this month", "first Monday of March", "third last day of June".
fn nth_day_of(scan: &Scan, i: usize) -> Option<(Piece, usize)> {
    let (n, len) = numbers::ordinal(scan.words, i)
        .or_else(|| (scan.at(i) == "last").then_some((-1, 1)))
        .or_else(|| numbers::figures(scan.at(i)).map(|n| (n, 1)))
        .filter(|(n, _)| (-1..=31).contains(n) && *n != 0)?;
    let mut at = i + len;
    let from_end = n > 0 && scan.at(at) == "last";
    at += usize::from(from_end);
    let n = if from_end { -n } else { n };
    let weekday = names::weekday(scan.at(at)).map(|(day, _)| day);
    let named_day = matches!(scan.at(at), "day");
    let working = scan.phrase(at, lexicon::spans::WORKDAY);
    at += working.unwrap_or(usize::from(weekday.is_some() || named_day));
    // "the 20th next month"
    let bare = scan.phrase(at, lexicon::spans::MONTH).filter(|_| n > 0 && weekday.is_none());
    let at = at + scan.phrase(at, lexicon::spans::OF).or(bare.map(|_| 0))?;
    let (start, end, unit, next) = period(scan, at)?;
    let named = weekday.is_some() || named_day || working.is_some();
    let year = unit == Unit::Year && n == 1;
    if unit != Unit::Month && !year && !(named_day && (n == 1 || n == -1)) || n == -1 && !named {
        return None;
    }
    if working.is_some() {
        return Some((Piece::Day(Day::Fixed(nth_workday(start, end, n)?)), next));
    }
    // A year that was named is that year.
    let word = if names::month(scan.at(at)).is_some() && next > at + 1 { "" } else { scan.at(at) };
    if let Some(day) = weekday {
        let date = nth_weekday_ahead(scan, start, i8::try_from(n).ok()?, day, word)?;
        return Some((Piece::Day(Day::Fixed(date)), next));
    }
    let date = match n {
        n if n < 0 => calendar::plus_days(end, n)?,
        n => calendar::plus_days(start, n - 1).filter(|d| *d < end)?,
    };
    let date = if year && date < scan.today() { calendar::plus_months(date, 12)? } else { date };
    Some((Piece::Day(Day::Fixed(ahead(scan, date, word))), next))
}

fn nth_weekday_ahead(scan: &Scan, start: Date, n: i8, day: Weekday, word: &str) -> Option<Date> {
    let date = start.nth_weekday_of_month(n, day).ok()?;
    let months = match word {
        "the" => 1,
        word if names::month(word).is_some() && start.year() == scan.today().year() => 12,
        _ => 0,
    };
    if date < scan.today() && months > 0 {
        return calendar::plus_months(start, months)?.nth_weekday_of_month(n, day).ok();
    }
    Some(date)
}

/// The n-th day from Monday to Friday of a stretch, or the last.
fn nth_workday(start: Date, end: Date, n: i64) -> Option<Date> {
    let length = i64::from(end.since(start).ok()?.get_days());
    let works = |date: &Date| !matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday);
    let mut days = (0..length).filter_map(|more| calendar::plus_days(start, more)).filter(works);
    if n < 0 { days.next_back() } else { days.nth(usize::try_from(n - 1).ok()?) }
}

/// A month named without a year means the next one whose day lies ahead.
fn ahead(scan: &Scan, date: Date, word: &str) -> Date {
    if date < scan.today() && word == "the" {
        return calendar::plus_months(date, 1).unwrap_or(date);
    }
    let past = date < scan.today() && names::month(word).is_some() && date.year() == scan.today().year();
    if past { calendar::plus_months(date, 12).unwrap_or(date) } else { date }
}

/// "next 3 weeks", "the next two days", "previous 3 minutes".
fn several_next(scan: &Scan, i: usize) -> Option<(Piece, usize)> {
    let at = i + usize::from(scan.at(i) == "the");
    let which = day::which(scan.at(at))?;
    let (n, len) = numbers::cardinal(scan.words, at + 1)
        .or_else(|| scan.phrase(at + 1, lexicon::spans::SEVERAL).map(|len| (2, len)))
        .filter(|(n, _)| (1..400).contains(n))?;
    let unit = names::unit(scan.at(at + 1 + len))?;
    let end = at + 2 + len;
    let sign = if which == Which::Last { -1 } else { 1 };
    match unit {
        Unit::Second | Unit::Minute | Unit::Hour => {
            let seconds = n * sign * if unit == Unit::Hour { 3600 } else { 60 };
            let moved = scan.now.checked_add(jiff::Span::new().try_seconds(seconds).ok()?).ok()?;
            Some((Piece::Instant(moved.datetime()), end))
        }
        Unit::Day => Some((Piece::Day(Day::Rough(calendar::plus_days(scan.today(), n * sign)?)), end)),
        _ => {
            let (start, _) = around(shifted(scan.today(), unit, sign)?, unit)?;
            let last = shifted(start, unit, n * sign)?;
            let due = if sign > 0 { calendar::plus_days(last, -1)? } else { start };
            Some((span(start.min(last), start.max(last), due), end))
        }
    }
}

/// "this week", "next month", "the weekend", "in March", "next fortnight", "the week of May 5".
fn whole(scan: &Scan, i: usize, own: usize) -> Option<(Piece, usize)> {
    if let Some(n) = scan.phrase(i, lexicon::spans::WEEK_OF) {
        let (date, end) = day::alone(scan, i + n)?;
        let (start, last) = around(date, Unit::Week)?;
        let weekend = matches!(scan.before(i + n - 1), "weekend");
        let due = if weekend { calendar::in_week_of(date, Weekday::Saturday)? } else { date };
        return Some((span(start, last, due), end));
    }
    if let Some(n) = scan.phrase(i, lexicon::spans::REST_OF) {
        let (start, end, _, next) = period(scan, i + n)?;
        return Some((span(start, end, calendar::plus_days(end, -1)?), next));
    }
    weekend(scan, i, own)
        .or_else(|| fortnight(scan, i))
        .or_else(|| numbered_year(scan, i, own))
        .or_else(|| named_period(scan, i, own))
}

/// "in 2027", "by 2030".
fn numbered_year(scan: &Scan, i: usize, own: usize) -> Option<(Piece, usize)> {
    let led = i > own && lexicon::spans::YEAR_LEADS.contains(scan.before(i));
    let ahead = |year: &i16| *year >= scan.today().year() && scan.at(i).len() == 4;
    let year = calendar::year(scan.at(i)).filter(|year| ahead(year) && led && scan.closes(i + 1))?;
    let (start, end) = around(Date::new(year, 1, 1).ok()?, Unit::Year)?;
    let due = if start < scan.today() { calendar::plus_days(end, -1)? } else { start };
    Some((span(start, end, due), i + 1))
}

fn weekend(scan: &Scan, i: usize, own: usize) -> Option<(Piece, usize)> {
    let at = i + usize::from(scan.at(i) == "the");
    let which = day::which(scan.at(at));
    let at = at + usize::from(which.is_some());
    if !matches!(scan.at(at), "weekend" | "weekend's" | "wknd") || which.is_none() && i == own && at == i {
        return None;
    }
    let after = scan.phrase(at + 1, lexicon::spans::YEAR_AFTER_NEXT);
    let weeks = match which {
        Some(Which::Next) => 1,
        Some(Which::Last) => -1,
        _ if after.is_some() => 2,
        _ => 0,
    };
    let saturday = calendar::in_week_of(calendar::plus_days(scan.today(), weeks * 7)?, Weekday::Saturday)?;
    let friday = calendar::plus_days(saturday, -1)?;
    let monday = calendar::plus_days(saturday, 2)?;
    let due = if saturday < scan.today() && weeks == 0 { scan.today() } else { saturday };
    Some((span(friday, monday, due), at + 1 + after.unwrap_or(0)))
}

fn fortnight(scan: &Scan, i: usize) -> Option<(Piece, usize)> {
    (day::which(scan.at(i)) == Some(Which::Next) && scan.at(i + 1) == "fortnight").then_some(())?;
    let start = calendar::plus_days(calendar::week_start(scan.today())?, 14)?;
    Some((span(start, calendar::plus_days(start, 14)?, start), i + 2))
}

fn named_period(scan: &Scan, i: usize, own: usize) -> Option<(Piece, usize)> {
    let at = i + usize::from(scan.at(i) == "the");
    let which = day::which(scan.at(at));
    if names::month(scan.at(at + usize::from(which.is_some()))).is_some() {
        return named_month(scan, at, own, which.is_some());
    }
    if let Some((start, end, next)) = quarter::read(scan, at + usize::from(which.is_some()), by(which)) {
        let led = i > own && lexicon::spans::PERIOD_LEADS.contains(scan.before(i))
            || which.is_some()
            || scan.is_whole(i, next);
        let led = led || scan.at(at).starts_with('q') && next > at + 1;
        let due = if start <= scan.today() { calendar::plus_days(end, -1)? } else { start };
        return (led && scan.closes(next)).then_some((span(start, end, due), next));
    }
    let after_next = scan.phrase(at + 1, lexicon::spans::YEAR_AFTER_NEXT).is_some();
    let this = which.is_none() && at > i && matches!(scan.before(i), "for" | "during" | "in" | "of");
    if which.is_none() && !after_next && !this {
        return None;
    }
    let (start, end, _, next) = period(scan, i)?;
    let inside = start <= scan.today() && scan.today() < end;
    let due = if inside { calendar::plus_days(end, -1)? } else { start };
    Some((span(start, end, due), next))
}

fn by(which: Option<Which>) -> i64 {
    match which {
        Some(Which::Next) => 1,
        Some(Which::Last) => -1,
        _ => 0,
    }
}

/// "March", "in May", "next June", "March 2027", "2027 March".
fn named_month(scan: &Scan, i: usize, own: usize, which: bool) -> Option<(Piece, usize)> {
    let name = i + usize::from(which);
    if day::month_and_day(scan, name).is_some() {
        return None;
    }
    let led = i > own
        && lexicon::spans::MONTH_LEADS.contains(scan.before(i))
        && (!names::is_doubtful(scan.at(name)) || scan.closes(name + 1));
    let whole = scan.is_whole(i, name + 1);
    let (start, end, _, next) = period(scan, i)?;
    let year = next > name + 1;
    let sure = !names::is_doubtful(scan.at(name)) && scan.closes(next);
    if !(which || led || whole || year || sure) {
        return None;
    }
    let due = if !year && start < scan.today() && scan.today() < end { calendar::plus_days(end, -1)? } else { start };
    Some((span(start, end, due), next))
}
