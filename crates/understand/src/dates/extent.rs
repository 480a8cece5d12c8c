//! The duration and the precision of a date expression.

use jiff::Zoned;
use jiff::civil::DateTime;

use super::clock::{ClockTime, DayHalf};
use super::names::DayPart;
use super::{DateMatch, Day, calendar};
use crate::expression::Grain;
use crate::parsed::DayOrTime;

impl DateMatch {
    /// Returns the precision of the expression. A clock time is as precise as its last part that is not zero: hour,
    /// minute or second. A part of the day is an hour. A period without a weekday has the grain of its length. It is a
    /// week from 7 days on, a month from 28, a year from 365. A complete point in time is minutes if its seconds equal
    /// those of now, else seconds. Everything else is a day.
    pub(crate) fn grain(&self, now: &Zoned) -> Grain {
        let parts = &self.parts;
        let clock = parts.clock.map(|clock| (clock.minute, clock.second));
        match (parts.instant, clock, parts.day) {
            (Some(at), _, _) if at.second() == now.second() => Grain::Minute,
            (Some(_), _, _) => Grain::Second,
            (None, Some((0, 0)), _) if parts.shift % 3600 == 0 => Grain::Hour,
            (None, Some((_, 0)), _) => Grain::Minute,
            (None, Some(_), _) => Grain::Second,
            (None, None, _) if self.day_part().is_some() => Grain::Hour,
            (None, None, Some(Day::Span { start, end, .. })) if parts.weekday.is_none() => {
                match end.since(start).map_or(1, |span| span.get_days()) {
                    ..7 => Grain::Day,
                    7..28 => Grain::Week,
                    28..365 => Grain::Month,
                    _ => Grain::Year,
                }
            }
            _ => Grain::Day,
        }
    }

    /// Returns the time span of the expression: a range of times or days, a week, a month, a part of a day. The end is
    /// exclusive. A part of a day lasts from its resolved hour to its usual end on that day; "first thing" is empty.
    /// Returns `None` for a single day or time. This includes a period with a weekday, and a part of the day with a
    /// clock time.
    pub(crate) fn interval(&self, now: &Zoned) -> Option<(DayOrTime, DayOrTime)> {
        let parts = &self.parts;
        if let (Some(last), Some(DayOrTime::Time(start)), None) = (parts.until, self.resolve(now), &parts.zone) {
            return Some((DayOrTime::Time(start), DayOrTime::Time(next_clock_time(start, last, self.day_part())?)));
        }
        if parts.instant.is_some() || parts.clock.is_some() {
            return None;
        }
        if let (1.., Some(DayOrTime::Day(first))) = (parts.days, self.resolve(now)) {
            return Some((DayOrTime::Day(first), DayOrTime::Day(calendar::plus_days(first, parts.days + 1)?)));
        }
        if let Some(part) = self.day_part() {
            let DayOrTime::Time(start) = self.resolve(now)? else { return None };
            return Some((DayOrTime::Time(start), DayOrTime::Time(start.date().at(part.end(), 0, 0, 0))));
        }
        match parts.day {
            Some(Day::Span { start, end, .. }) if parts.weekday.is_none() => {
                Some((DayOrTime::Day(start), DayOrTime::Day(end)))
            }
            _ => None,
        }
    }

    /// Returns the time span from this expression to another: "from Monday to Friday", "3pm until 5". The other one is
    /// resolved as if the start were now. The end is exclusive: the second time, or the day after the last one. From a
    /// day to a period ("until next week"), it is the end of the period. Returns `None` if one of them repeats or has
    /// no date, or if a day leads to a time. The last day may equal the first. A time must lead to a later time or a
    /// later day.
    pub(crate) fn interval_to(&self, other: &Self, now: &Zoned) -> Option<(DayOrTime, DayOrTime)> {
        let rule = self.parts.repeat.is_some() || other.parts.repeat.is_some();
        let start = self.resolve(now).filter(|_| !rule)?;
        // The end is resolved relative to the start.
        let from = now.time_zone().to_zoned(to_datetime(start)).ok()?;
        let end = match (start, other.resolve(&from)?) {
            (DayOrTime::Day(first), DayOrTime::Day(last)) if last >= first => {
                let end = other.interval(&from).map(|(_, end)| end);
                end.or(calendar::plus_days(last, 1).map(DayOrTime::Day))?
            }
            (DayOrTime::Time(first), DayOrTime::Time(last)) if last > first => DayOrTime::Time(last),
            (DayOrTime::Time(first), DayOrTime::Day(last)) if last > first.date() => {
                DayOrTime::Day(calendar::plus_days(last, 1)?)
            }
            _ => return None,
        };
        Some((start, end))
    }

    /// Returns the part of the day of the expression or of its repetition.
    fn day_part(&self) -> Option<DayPart> {
        self.parts.part.or(self.parts.repeat.as_ref().and_then(|repeat| repeat.part))
    }
}

/// Returns the first time after `start` that matches the clock, on the same or the next day. If am or pm is unknown,
/// both count; in the morning, only am does. Returns `None` only beyond the supported range of dates.
fn next_clock_time(start: DateTime, clock: ClockTime, part: Option<DayPart>) -> Option<DateTime> {
    let halves = match (clock.half, part) {
        (DayHalf::Exact, _) => [clock.hour, clock.hour],
        (DayHalf::Am, _) | (DayHalf::Open, Some(DayPart::Morning)) => [clock.hour % 12, clock.hour % 12],
        (DayHalf::Pm, _) => [clock.hour % 12 + 12, clock.hour % 12 + 12],
        (DayHalf::Open, _) => [clock.hour % 12, clock.hour % 12 + 12],
    };
    let today = start.date();
    let times = [today, calendar::plus_days(today, 1)?].into_iter().flat_map(|date| halves.map(|hour| (date, hour)));
    times.map(|(date, hour)| date.at(hour, clock.minute, clock.second, 0)).find(|at| *at > start)
}

fn to_datetime(when: DayOrTime) -> DateTime {
    match when {
        DayOrTime::Day(date) => date.at(0, 0, 0, 0),
        DayOrTime::Time(at) => at,
    }
}
