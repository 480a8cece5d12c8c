//! How long what was named lasts and how finely it was named.

use jiff::Zoned;
use jiff::civil::DateTime;

use super::clock::{Clock, Half};
use super::names::Part;
use super::{Day, Found, calendar};
use crate::expression::Grain;
use crate::reading::When;

impl Found {
    /// How finely the expression tells its time.
    pub(crate) fn grain(&self, now: &Zoned) -> Grain {
        let parts = &self.parts;
        let clock = parts.clock.map(|clock| (clock.minute, clock.second));
        match (parts.instant, clock, parts.day) {
            (Some(at), _, _) if at.second() == now.second() => Grain::Minute,
            (Some(_), _, _) => Grain::Second,
            (None, Some((0, 0)), _) => Grain::Hour,
            (None, Some((_, 0)), _) => Grain::Minute,
            (None, Some(_), _) => Grain::Second,
            (None, None, _) if self.part().is_some() => Grain::Hour,
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

    /// The stretch that the expression names: a week, a month, a part of a day. Its end is no part of it.
    pub(crate) fn interval(&self, now: &Zoned) -> Option<(When, When)> {
        let parts = &self.parts;
        if let (Some(last), Some(When::Time(start))) = (parts.until, self.when(now)) {
            return Some((When::Time(start), When::Time(after(start, last, self.part())?)));
        }
        if parts.instant.is_some() || parts.clock.is_some() {
            return None;
        }
        if let (1.., Some(When::Day(first))) = (parts.days, self.when(now)) {
            return Some((When::Day(first), When::Day(calendar::plus_days(first, parts.days + 1)?)));
        }
        if let Some(part) = self.part() {
            let When::Time(start) = self.when(now)? else { return None };
            return Some((When::Time(start), When::Time(start.date().at(part.end(), 0, 0, 0))));
        }
        match parts.day {
            Some(Day::Span { start, end, .. }) if parts.weekday.is_none() => Some((When::Day(start), When::Day(end))),
            _ => None,
        }
    }

    /// The stretch from this expression to another: "from Monday to Friday", "3pm until 5".
    pub(crate) fn to(&self, other: &Self, now: &Zoned) -> Option<(When, When)> {
        let rule = self.parts.repeat.is_some() || other.parts.repeat.is_some();
        let start = self.when(now).filter(|_| !rule)?;
        // The end is looked for from the beginning on.
        let from = now.time_zone().to_zoned(moment(start)).ok()?;
        let end = match (start, other.when(&from)?) {
            (When::Day(first), When::Day(last)) if last >= first => {
                let end = other.interval(&from).map(|(_, end)| end);
                end.or(calendar::plus_days(last, 1).map(When::Day))?
            }
            (When::Time(first), When::Time(last)) if last > first => When::Time(last),
            (When::Time(first), When::Day(last)) if last > first.date() => When::Day(calendar::plus_days(last, 1)?),
            _ => return None,
        };
        Some((start, end))
    }

    fn part(&self) -> Option<Part> {
        self.parts.part.or(self.parts.repeat.as_ref().and_then(|repeat| repeat.part))
    }
}

/// The first time by that clock after another.
fn after(start: DateTime, clock: Clock, part: Option<Part>) -> Option<DateTime> {
    let halves = match (clock.half, part) {
        (Half::Exact, _) => [clock.hour, clock.hour],
        (Half::Am, _) | (Half::Open, Some(Part::Morning)) => [clock.hour % 12, clock.hour % 12],
        (Half::Pm, _) => [clock.hour % 12 + 12, clock.hour % 12 + 12],
        (Half::Open, _) => [clock.hour % 12, clock.hour % 12 + 12],
    };
    let today = start.date();
    let times = [today, calendar::plus_days(today, 1)?].into_iter().flat_map(|date| halves.map(|hour| (date, hour)));
    times.map(|(date, hour)| date.at(hour, clock.minute, clock.second, 0)).find(|at| *at > start)
}

fn moment(when: When) -> DateTime {
    match when {
        When::Day(date) => date.at(0, 0, 0, 0),
        When::Time(at) => at,
    }
}
