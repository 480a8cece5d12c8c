//! Parses weeks, months, weekends and years, and their beginnings and ends: "next week", "end of the month", "EOM".
//!
//! The result is a period ([`Day::Span`]) with an exclusive end and the due date of a task in it. Conventions of the
//! `dates` module: `i` is the first token of the piece and `lead_start` the first of the prepositions before it. A
//! parser returns its result and the position after it, or `None` if nothing matches. "A noun follows" means that an
//! ordinary word follows, see [`DateScan::can_end_at`].

use jiff::civil::{Date, Weekday};

use super::day::{self, PeriodQualifier};
use super::names::{self, DayPart, TimeUnit};
use super::{DatePiece, DateScan, Day, calendar, offset, quarter};
use crate::lexicon;
use crate::numbers;

/// Parses a period, its beginning, its end, or a day that is counted in it at `i`: "next week", "end of May", "first
/// Monday of March". Tries short forms ("EOM"), edges, counted weeks, counted days, several units and whole periods, in
/// this order.
pub(crate) fn parse(scan: &DateScan, i: usize, lead_start: usize) -> Option<(DatePiece, usize)> {
    parse_short(scan, i)
        .or_else(|| parse_edge(scan, i))
        .or_else(|| parse_nth_week(scan, i))
        .or_else(|| parse_nth_day(scan, i))
        .or_else(|| parse_several(scan, i))
        .or_else(|| parse_whole(scan, i, lead_start))
}

fn span_piece(start: Date, end: Date, due: Date) -> DatePiece {
    DatePiece::Day(Day::Span { start, end, due })
}

/// Parses "EOW", "EOM", "EOQ", "EOY", "month-end", "month end", "week's end": the current period, due on its last day.
/// "week's end" is due on Friday. Two words match only if no noun and no "of" follows. "midweek" is a fixed day, see
/// [`parse_midweek`].
fn parse_short(scan: &DateScan, i: usize) -> Option<(DatePiece, usize)> {
    let (unit, len) = match scan.at(i) {
        "eom" | "month-end" => (TimeUnit::Month, 1),
        "eow" => (TimeUnit::Week, 1),
        "eoq" | "quarter-end" => (TimeUnit::Quarter, 1),
        "eoy" | "year-end" => (TimeUnit::Year, 1),
        "midweek" | "mid-week" => return parse_midweek(scan, i),
        "week's" | "month" | "month's" | "quarter" | "quarter's" | "year" | "year's"
            if scan.at(i + 1) == "end" && scan.can_end_at(i + 2) && scan.at(i + 2) != "of" =>
        {
            (names::time_unit(scan.at(i).trim_end_matches("'s"))?, 2)
        }
        _ => return None,
    };
    let (start, end) = period_around(scan.today(), unit)?;
    let due = match unit {
        TimeUnit::Week if len == 2 => calendar::in_week_of(start, Weekday::Friday)?,
        _ => calendar::plus_days(end, -1)?,
    };
    Some((span_piece(start, end, due), i + len))
}

/// Parses "midweek" at `i`: the Wednesday of this week, or of the next week if it has passed. Returns `None` if a noun
/// follows.
fn parse_midweek(scan: &DateScan, i: usize) -> Option<(DatePiece, usize)> {
    let date = calendar::next_weekday(scan.today(), Weekday::Wednesday, true)?;
    scan.can_end_at(i + 1).then_some((DatePiece::Day(Day::Fixed(date)), i + 1))
}

/// Returns the period that contains a date: its first day and its exclusive end. Weeks begin on Monday. Returns `None`
/// for units other than week, month, quarter and year.
fn period_around(date: Date, unit: TimeUnit) -> Option<(Date, Date)> {
    match unit {
        TimeUnit::Week => {
            let start = calendar::week_start(date)?;
            Some((start, calendar::plus_days(start, 7)?))
        }
        TimeUnit::Month => Some((date.first_of_month(), calendar::plus_days(date.last_of_month(), 1)?)),
        TimeUnit::Quarter => {
            let start = Date::new(date.year(), (date.month() - 1) / 3 * 3 + 1, 1).ok()?;
            Some((start, calendar::plus_months(start, 3)?))
        }
        TimeUnit::Year => Some((date.first_of_year(), calendar::plus_days(date.last_of_year(), 1)?)),
        _ => None,
    }
}

/// Returns a date in the period that is `by` periods after the one of `date`. For a week, it is the same weekday. For a
/// month or quarter, it is the first of a month; for a year, its first day. Returns `None` for other units.
fn shift_by(date: Date, unit: TimeUnit, by: i64) -> Option<Date> {
    match unit {
        TimeUnit::Week => calendar::plus_days(date, by * 7),
        TimeUnit::Month => calendar::plus_months(date.first_of_month(), by),
        TimeUnit::Quarter => calendar::plus_months(date.first_of_month(), by * 3),
        TimeUnit::Year => calendar::plus_months(date.first_of_year(), by * 12),
        _ => None,
    }
}

/// Parses a named period: "this week", "the following month", "April", "April 2027", "next year", "Q3". Returns its
/// first day, its exclusive end, its unit and the next position. Without a qualifier, it is the current period, or the
/// next one of that name. "after next" and "after that" after a unit select the second period after the current one ("March after next" a
/// year after the next March),
/// "before last" the second one before it. A season has the unit quarter. Returns `None` for units other than week, month, quarter and year. Does not check the
/// context.
fn parse_period(scan: &DateScan, i: usize) -> Option<(Date, Date, TimeUnit, usize)> {
    let at = i + usize::from(matches!(scan.at(i), "the" | "this") && !matches!(scan.at(i + 1), ""));
    let (by, at) = match day::qualifier(scan.at(at)) {
        Some(PeriodQualifier::Next) => (1, at + 1),
        Some(PeriodQualifier::Last) => (-1, at + 1),
        Some(_) => (0, at + 1),
        None => (0, at),
    };
    if let Some(month) = names::month(scan.at(at)) {
        let (year, end) = parse_year_after(scan, at + 1);
        let first = month_start(scan.today(), month, year, by)?;
        if let Some(n) = scan.phrase(end, lexicon::spans::AFTER_NEXT).filter(|_| year.is_none()) {
            let later = calendar::plus_months(first, 12)?;
            return Some((later, calendar::plus_months(later, 1)?, TimeUnit::Month, end + n));
        }
        return Some((first, calendar::plus_months(first, 1)?, TimeUnit::Month, end));
    }
    if let Some((start, end, next)) = quarter::parse(scan, at, by) {
        return Some((start, end, TimeUnit::Quarter, next));
    }
    let unit = names::time_unit(scan.at(at))?;
    let after_next = scan.phrase(at + 1, lexicon::spans::AFTER_NEXT);
    let before_last = scan.phrase(at + 1, lexicon::days::BEFORE_LAST);
    let by = match (after_next, before_last) {
        (Some(_), _) => 2,
        (None, Some(_)) => -2,
        _ => by,
    };
    let (start, end) = period_around(shift_by(scan.today(), unit, by)?, unit)?;
    Some((start, end, unit, at + 1 + after_next.or(before_last).unwrap_or(0)))
}

/// Returns the first day of a month. `year` takes precedence over `by`. `by` is -1 for the last such month before the
/// current one, 1 for the next one that has not begun. Otherwise it is in this year, or in the next year if the month
/// has passed.
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

/// Parses a year after a month, possibly after a slash. Returns `None` and `i` if no year follows.
fn parse_year_after(scan: &DateScan, i: usize) -> (Option<i16>, usize) {
    match day::parse_year(scan, i + usize::from(scan.at(i) == "/")) {
        (None, _) => (None, i),
        found => found,
    }
}

/// Parses "end of the month", "close of next week", "beginning of …", "start of …", "middle of May", "early next
/// month", "mid-April". "of" is optional. The beginning is the first third (three days of a week), due on its first
/// day. The middle is the whole period. It is due on the 15th day of a month, and on the third day of any other period.
/// The end is the whole period, due on its last day, in a week on Friday. "end of the day" and "end of work" are a part
/// of the day without a date. "end of Friday" is that part of this date. Returns `None` if no period follows.
pub(super) fn parse_edge(scan: &DateScan, i: usize) -> Option<(DatePiece, usize)> {
    let (edge, at) = match scan.at(i) {
        "end" | "close" => (2, i + 1),
        "beginning" | "start" => (0, i + 1),
        "middle" | "mid" => (1, i + 1),
        "early" | "late" => return parse_early_or_late(scan, i),
        word => return parse_mid_month(scan, word.strip_prefix("mid-")?, i),
    };
    let at = at + usize::from(scan.at(at) == "of");
    let the = at + usize::from(matches!(scan.at(at), "the" | "my"));
    if edge == 2
        && let Some(len) = scan.phrase(the, lexicon::spans::DAY)
    {
        return Some((DatePiece::Part(DayPart::End), the + len));
    }
    if edge == 2
        && let Some((date, end)) = day::parse_alone(scan, at)
    {
        return Some((DatePiece::PartOf(date, DayPart::End), end));
    }
    let (start, end, unit, next) = parse_period(scan, at)?;
    let length = end.since(start).ok()?.get_days();
    let third = i64::from(if unit == TimeUnit::Week { 3 } else { (length / 3).max(1) });
    let last = calendar::plus_days(end, -1)?;
    let piece = match edge {
        0 => span_piece(start, calendar::plus_days(start, third)?, start),
        1 => span_piece(start, end, calendar::plus_days(start, if unit == TimeUnit::Month { 14 } else { 2 })?),
        _ if unit == TimeUnit::Week => span_piece(start, end, calendar::in_week_of(start, Weekday::Friday)?),
        _ => span_piece(start, end, last),
    };
    Some((piece, next))
}

/// Parses "early next month", "late in April": the first or the last third, at least two days. Requires a qualifier, an
/// article, a year, a month or a season. "early" is due on its first day, or today if it has begun, at most on its last
/// day. "late" is due on its first day, in a week on Friday. Returns `None` if a noun follows.
fn parse_early_or_late(scan: &DateScan, i: usize) -> Option<(DatePiece, usize)> {
    let at = i + 1 + usize::from(scan.at(i + 1) == "in");
    let (start, end, unit, next) = parse_period(scan, at)?;
    let is_explicit = next > at + 1 || names::month(scan.at(at)).is_some() || quarter::is_season(scan.at(at));
    if !is_explicit || !scan.can_end_at(next) {
        return None;
    }
    let third = (end.since(start).ok()?.get_days() / 3).max(2);
    let early = calendar::plus_days(start, i64::from(third))?;
    let late = calendar::plus_days(end, -i64::from(third))?;
    let week = unit == TimeUnit::Week;
    let piece = match scan.at(i) {
        "early" => span_piece(start, early, start.max(scan.today()).min(calendar::plus_days(early, -1)?)),
        _ if week => span_piece(late, end, calendar::in_week_of(start, Weekday::Friday)?),
        _ => span_piece(late, end, late),
    };
    Some((piece, next))
}

/// Parses "mid-April". `name` is the word after the hyphen. The result is the month, due on the 15th.
fn parse_mid_month(scan: &DateScan, name: &str, i: usize) -> Option<(DatePiece, usize)> {
    let start = month_start(scan.today(), names::month(name)?, None, 0)?;
    let due = calendar::plus_days(start, 14)?;
    Some((span_piece(start, calendar::plus_months(start, 1)?, due), i + 1))
}

/// Parses "the first week of April", "last week of the year", up to the fifth week. Accepts only a month or a year. "the
/// first weekend of April" is the one with its first Saturday.
/// Weeks are seven days from its first day, and end with it. The last week is its last seven days. The due date is the
/// first day, or today if the week has begun and not ended. A past week does not move. The fifth week of a month with
/// 28 days is empty.
fn parse_nth_week(scan: &DateScan, i: usize) -> Option<(DatePiece, usize)> {
    let at = i + usize::from(scan.at(i) == "the");
    let (n, len) = numbers::ordinal(scan.words, at)
        .or_else(|| (scan.at(at) == "last").then_some((-1, 1)))
        .filter(|(n, _)| (-1..=5).contains(n))?;
    let at = at + len;
    let weekend = matches!(scan.at(at), "weekend" | "week-end");
    let of = at + usize::from(scan.at(at) == "week" || weekend);
    let (start, end, unit, next) = parse_period(scan, of + scan.phrase(of, lexicon::spans::OF)?).filter(|_| of > at)?;
    if !matches!(unit, TimeUnit::Month | TimeUnit::Year) {
        return None;
    }
    if weekend {
        let saturday = start.nth_weekday_of_month(i8::try_from(n).ok()?, Weekday::Saturday).ok()?;
        let friday = calendar::plus_days(saturday, -1)?;
        return Some((span_piece(friday, calendar::plus_days(saturday, 2)?, saturday), next));
    }
    let first = if n < 0 { calendar::plus_days(end, -7)? } else { calendar::plus_days(start, (n - 1) * 7)? };
    let last = calendar::plus_days(first, 7)?;
    let due = if first < scan.today() && scan.today() < last { scan.today() } else { first };
    Some((span_piece(first, last.min(end), due), next))
}

/// Parses a counted day as a fixed date. Returns `None` if the period has no such day.
/// - "12th of next month", "12 of next month", "20th next month", "first Monday of March", "third last day of June":
///   the period is a month. For "first", it may be a year; for "first day" and "last day", any period. "last" needs a
///   day after it, or a month without a name ("the last of the month").
/// - "last working day of the month": any working day counted from the end is the last one. It does not move.
/// - A past day moves by a month if the period begins with "the" ("the month", also "the week"). It moves by a year in
///   a month of this year without a year, and for the first day of any year.
pub(super) fn parse_nth_day(scan: &DateScan, i: usize) -> Option<(DatePiece, usize)> {
    let (n, len) = numbers::ordinal(scan.words, i)
        .or_else(|| (scan.at(i) == "last").then_some((-1, 1)))
        .or_else(|| numbers::parse_digits(scan.at(i)).map(|n| (n, 1)))
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
    let (start, end, unit, next) = parse_period(scan, at)?;
    let named = weekday.is_some() || named_day || working.is_some();
    let year = unit == TimeUnit::Year && n == 1;
    // "the last of the month"
    let is_last_of_month = scan.before(at) == "of" && matches!(scan.at(at), "the" | "this" | "next");
    if unit != TimeUnit::Month && !year && !(named_day && (n == 1 || n == -1)) || n == -1 && !named && !is_last_of_month
    {
        return None;
    }
    if working.is_some() {
        return Some((DatePiece::Day(Day::Fixed(nth_workday(start, end, n)?)), next));
    }
    // An explicit year or month is not moved.
    let explicit = names::month(scan.at(at)).is_some() && next > at + 1 || day::qualifier(scan.at(at + 1)).is_some();
    let word = if explicit { "" } else { scan.at(at) };
    if let Some(day) = weekday {
        let date = nth_weekday_ahead(scan, start, i8::try_from(n).ok()?, day, word)?;
        return Some((DatePiece::Day(Day::Fixed(date)), next));
    }
    let date = match n {
        n if n < 0 => calendar::plus_days(end, n)?,
        n => calendar::plus_days(start, n - 1).filter(|d| *d < end)?,
    };
    let date = if year && date < scan.today() { calendar::plus_months(date, 12)? } else { date };
    Some((DatePiece::Day(Day::Fixed(move_ahead(scan, date, word))), next))
}

/// Returns the `n`-th such weekday of the month that begins with `start`. -1 is the last one. `word` is the first word
/// of the period. After "the", a past day moves to the next month. After the name of a month of this year, it moves to
/// the next year. Returns `None` if the month, or the one it moves to, has no such day.
fn nth_weekday_ahead(scan: &DateScan, start: Date, n: i8, day: Weekday, word: &str) -> Option<Date> {
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

/// Returns the `n`-th day of a period that is not on a weekend, or the last one if `n` is negative. Returns `None` if
/// the period has fewer. `end` is exclusive.
fn nth_workday(start: Date, end: Date, n: i64) -> Option<Date> {
    let length = i64::from(end.since(start).ok()?.get_days());
    let works = |date: &Date| !matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday);
    let mut days = (0..length).filter_map(|more| calendar::plus_days(start, more)).filter(works);
    if n < 0 { days.next_back() } else { days.nth(usize::try_from(n - 1).ok()?) }
}

/// Moves a past day of a month without a year: to the next month if `word` is "the", to the next year if it is the name
/// of a month. `word` is the first word of the period. Returns other days unchanged.
fn move_ahead(scan: &DateScan, date: Date, word: &str) -> Date {
    if date < scan.today() && word == "the" {
        return calendar::plus_months(date, 1).unwrap_or(date);
    }
    let past = date < scan.today() && names::month(word).is_some() && date.year() == scan.today().year();
    if past { calendar::plus_months(date, 12).unwrap_or(date) } else { date }
}

/// Parses "next 3 weeks", "the next two days", "previous 3 minutes", "last 3mins". "few" and "couple" are two. Accepts 1 to 399
/// units. "last" and synonyms count backward, all other qualifiers forward. Units below a day yield a point in time;
/// seconds count as minutes. Days yield a date. Weeks, months, quarters and years yield whole units: "next 2 weeks"
/// begins next Monday and is due on its last day. "previous 3 weeks" ends with the start of last week and is due then.
/// Other units do not match.
fn parse_several(scan: &DateScan, i: usize) -> Option<(DatePiece, usize)> {
    let at = i + usize::from(scan.at(i) == "the");
    let which = day::qualifier(scan.at(at))?;
    let counted = numbers::cardinal(scan.words, at + 1)
        .or_else(|| scan.phrase(at + 1, lexicon::spans::SEVERAL).map(|len| (2, len)))
        .and_then(|(n, len)| Some((n, names::time_unit(scan.at(at + 1 + len))?, at + 2 + len)));
    let tight = || match offset::parse_tight(scan.at(at + 1)) {
        Some(((n, 0), unit)) => Some((n, unit, at + 2)),
        _ => None,
    };
    let (n, unit, end) = counted.or_else(tight).filter(|(n, ..)| (1..400).contains(n))?;
    let sign = if which == PeriodQualifier::Last { -1 } else { 1 };
    match unit {
        TimeUnit::Second | TimeUnit::Minute | TimeUnit::Hour => {
            let seconds = n * sign * if unit == TimeUnit::Hour { 3600 } else { 60 };
            let moved = scan.now.checked_add(jiff::Span::new().try_seconds(seconds).ok()?).ok()?;
            Some((DatePiece::Instant(moved.datetime()), end))
        }
        TimeUnit::Day => Some((DatePiece::Day(Day::Rough(calendar::plus_days(scan.today(), n * sign)?)), end)),
        _ => {
            let (start, _) = period_around(shift_by(scan.today(), unit, sign)?, unit)?;
            let last = shift_by(start, unit, n * sign)?;
            let due = if sign > 0 { calendar::plus_days(last, -1)? } else { start };
            Some((span_piece(start.min(last), start.max(last), due), end))
        }
    }
}

/// Parses a whole period. "the week of May 5" begins on Monday and is due on the named day. "the weekend of May 5" is
/// the same week, due on Saturday. "rest of the year" is the whole year, due on its last day. If no date or period
/// follows "week of" or "rest of", returns `None`. Else tries a weekend, "next fortnight", a year ("in 2027") and a
/// named period ("this week", "in March").
fn parse_whole(scan: &DateScan, i: usize, lead_start: usize) -> Option<(DatePiece, usize)> {
    if let Some(n) = scan.phrase(i, lexicon::spans::WEEK_OF) {
        let (date, end) = day::parse_alone(scan, i + n)?;
        let (start, last) = period_around(date, TimeUnit::Week)?;
        let weekend = matches!(scan.before(i + n - 1), "weekend");
        let due = if weekend { calendar::in_week_of(date, Weekday::Saturday)? } else { date };
        return Some((span_piece(start, last, due), end));
    }
    if let Some(n) = scan.phrase(i, lexicon::spans::REST_OF) {
        let (start, end, _, next) = parse_period(scan, i + n)?;
        return Some((span_piece(start, end, calendar::plus_days(end, -1)?), next));
    }
    parse_weekend(scan, i, lead_start)
        .or_else(|| parse_fortnight(scan, i))
        .or_else(|| parse_numbered_year(scan, i, lead_start))
        .or_else(|| parse_named_period(scan, i, lead_start))
}

/// Parses "in 2027", "by 2030". Requires a preposition and four digits of this or a later year. The current year is due
/// on its last day, except on its first day. A later one is due on its first day. Returns `None` if a noun follows.
fn parse_numbered_year(scan: &DateScan, i: usize, lead_start: usize) -> Option<(DatePiece, usize)> {
    let led = i > lead_start && lexicon::spans::YEAR_LEADS.contains(scan.before(i));
    let is_ahead = |year: &i16| *year >= scan.today().year() && scan.at(i).len() == 4;
    let year = calendar::parse_year(scan.at(i)).filter(|year| is_ahead(year) && led && scan.can_end_at(i + 1))?;
    let (start, end) = period_around(Date::new(year, 1, 1).ok()?, TimeUnit::Year)?;
    let due = if start < scan.today() { calendar::plus_days(end, -1)? } else { start };
    Some((span_piece(start, end, due), i + 1))
}

/// Parses "this weekend", "the weekend", "next weekend", "the weekend after next". The period is Friday to Sunday of
/// this week, of the next week or of the last week. It is due on Saturday, or today if it is Sunday of this week.
/// "coming" and "upcoming" are this week. "after next" is two weeks ahead and "before last" two weeks back, unless "next"
/// or "last" precedes. A bare "weekend" needs a preposition, or to be the whole text. A noun may follow.
fn parse_weekend(scan: &DateScan, i: usize, lead_start: usize) -> Option<(DatePiece, usize)> {
    let at = i + usize::from(scan.at(i) == "the");
    let which = day::qualifier(scan.at(at));
    let at = at + usize::from(which.is_some());
    let stated = day::qualifier(scan.at(at)).filter(|_| which == Some(PeriodQualifier::This)).or(which);
    let at = at + usize::from(stated != which || day::qualifier(scan.at(at)).is_some());
    if !matches!(scan.at(at), "weekend" | "weekend's" | "week-end" | "wknd" | "wkend") {
        return None;
    }
    let after = scan.phrase(at + 1, lexicon::spans::YEAR_AFTER_NEXT);
    let before = scan.phrase(at + 1, lexicon::days::BEFORE_LAST);
    let bare = stated.is_none() && i == lead_start && at == i;
    if bare && after.or(before).is_none() && !scan.covers_all(i, at + 1) {
        return None;
    }
    let weeks = match stated {
        Some(PeriodQualifier::Next) if matches!(scan.before(at), "coming" | "upcoming") => 0,
        Some(PeriodQualifier::Next) => 1,
        Some(PeriodQualifier::Last) => -1,
        _ if after.is_some() => 2,
        _ if before.is_some() => -2,
        _ => 0,
    };
    let saturday = calendar::in_week_of(calendar::plus_days(scan.today(), weeks * 7)?, Weekday::Saturday)?;
    let friday = calendar::plus_days(saturday, -1)?;
    let monday = calendar::plus_days(saturday, 2)?;
    let due = if saturday < scan.today() && weeks == 0 { scan.today() } else { saturday };
    Some((span_piece(friday, monday, due), at + 1 + after.or(before).unwrap_or(0)))
}

/// Parses "next fortnight": the 14 days that begin on the Monday in two weeks.
fn parse_fortnight(scan: &DateScan, i: usize) -> Option<(DatePiece, usize)> {
    (day::qualifier(scan.at(i)) == Some(PeriodQualifier::Next) && scan.at(i + 1) == "fortnight").then_some(())?;
    let start = calendar::plus_days(calendar::week_start(scan.today())?, 14)?;
    Some((span_piece(start, calendar::plus_days(start, 14)?, start), i + 2))
}

/// Parses a month, a quarter, a season, or a unit with a qualifier: "next June", "in Q3", "this summer", "next month",
/// "the year after next". "the week" without a qualifier counts after "for", "during", "in" and "of". No noun may
/// follow a season or quarter. Without a qualifier, it needs a preposition or to be the whole text; for a quarter, a
/// year suffices. The current period is due on its last day, another one on its first. A past quarter or season is due
/// on its last day. Months: see [`parse_named_month`].
fn parse_named_period(scan: &DateScan, i: usize, lead_start: usize) -> Option<(DatePiece, usize)> {
    let at = i + usize::from(scan.at(i) == "the");
    let which = day::qualifier(scan.at(at));
    if names::month(scan.at(at + usize::from(which.is_some()))).is_some() {
        return parse_named_month(scan, at, lead_start, which.is_some());
    }
    if let Some((start, end, next)) = quarter::parse(scan, at + usize::from(which.is_some()), offset_of(which)) {
        let led = i > lead_start && lexicon::spans::PERIOD_LEADS.contains(scan.before(i))
            || which.is_some()
            || scan.covers_all(i, next);
        let led = led || scan.at(at).starts_with('q') && next > at + 1;
        let due = if start <= scan.today() { calendar::plus_days(end, -1)? } else { start };
        return (led && scan.can_end_at(next)).then_some((span_piece(start, end, due), next));
    }
    let after_next = scan.phrase(at + 1, lexicon::spans::YEAR_AFTER_NEXT).is_some()
        || scan.phrase(at + 1, lexicon::days::BEFORE_LAST).is_some();
    let this = which.is_none() && at > i && matches!(scan.before(i), "for" | "during" | "in" | "of");
    if which.is_none() && !after_next && !this {
        return None;
    }
    let (start, end, _, next) = parse_period(scan, i)?;
    let inside = start <= scan.today() && scan.today() < end;
    let due = if inside { calendar::plus_days(end, -1)? } else { start };
    Some((span_piece(start, end, due), next))
}

/// Returns 1 for "next", -1 for "last" and 0 otherwise.
fn offset_of(which: Option<PeriodQualifier>) -> i64 {
    match which {
        Some(PeriodQualifier::Next) => 1,
        Some(PeriodQualifier::Last) => -1,
        _ => 0,
    }
}

/// Parses "March", "in May", "next June", "March 2027". `which` is true if a qualifier precedes the name. Without a
/// qualifier, a preposition and a year, it must be the whole text, or unambiguous with no noun after it. An ambiguous
/// name ("may") after a preposition also needs no noun after it. The current month is due on its last day, except on
/// its first day and with a year. Any other month is due on its first day. A month with a day does not match.
fn parse_named_month(scan: &DateScan, i: usize, lead_start: usize, which: bool) -> Option<(DatePiece, usize)> {
    let name = i + usize::from(which);
    if day::parse_month_day(scan, name).is_some() {
        return None;
    }
    let led = i > lead_start
        && lexicon::spans::MONTH_LEADS.contains(scan.before(i))
        && (!names::is_ambiguous(scan.at(name)) || scan.can_end_at(name + 1));
    let whole = scan.covers_all(i, name + 1);
    let (start, end, _, next) = parse_period(scan, i)?;
    let year = next > name + 1;
    let sure = !names::is_ambiguous(scan.at(name)) && scan.can_end_at(next);
    if !(which || led || whole || year || sure) {
        return None;
    }
    let due = if !year && start < scan.today() && scan.today() < end { calendar::plus_days(end, -1)? } else { start };
    Some((span_piece(start, end, due), next))
}
