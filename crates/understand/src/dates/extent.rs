//! How long what was named lasts and how finely it was named.

use jiff::Zoned;
use jiff::civil::DateTime;

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
        if parts.instant.is_some() || parts.clock.is_some() {
            return None;
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

    fn part(&self) -> Option<super::names::Part> {
        self.parts.part.or(self.parts.repeat.as_ref().and_then(|repeat| repeat.part))
    }
}

fn moment(when: When) -> DateTime {
    match when {
        When::Day(date) => date.at(0, 0, 0, 0),
        When::Time(at) => at,
    }
}
