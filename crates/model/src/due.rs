//! Due dates of tasks, and the periods by which tasks are filtered.
//!
//! A due date is a day or a moment. A day has no time zone: the 31st is the 31st in every zone. A moment keeps its
//! offset.

use std::fmt;

use jiff::civil::{Date, DateTime, Weekday};
use jiff::fmt::temporal::Pieces;
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, ToSpan, Zoned};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Invalid;

/// The rule of a violation: the date is well-formed, but cannot be stored.
pub(crate) const OUT_OF_RANGE: &str = "range";
/// The last moment: one at which every offset is still in the year 9999.
const LATEST_TIME: &str = "9999-12-30T22:00:00Z";

/// A due date: a day, or a moment with an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueDate {
    Day(Date),
    Moment { at: Timestamp, offset: Offset },
}

impl DueDate {
    /// Parses `YYYY-MM-DD`, RFC 3339, or a date and time without offset. A time without offset is in the zone of its
    /// annotation (`[Europe/Berlin]`), or else in `zone`. At a clock change, a skipped time moves forward, and of a
    /// repeated time the first is used. A numeric offset has priority over an annotation. Moments are truncated to the
    /// second. Outer spaces are ignored.
    ///
    /// Fails if the text is none of these, or if the zone is unknown, or if a date without time has an offset or a zone.
    /// Fails with the rule `range` if the year is not between 1 and 9999, or if a moment is out of [`LATEST_TIME`].
    pub fn parse(field: &str, text: &str, zone: &TimeZone) -> Result<Self, Invalid> {
        let invalid = || {
            let message = "must be a date such as 2026-01-31, a time such as 2026-01-31T15:00:00+01:00, or words such as \
                           'tomorrow', 'friday 9am' or 'in 2 hours'";
            Invalid::one(field, "date", message)
        };
        let pieces = Pieces::parse(text.trim()).map_err(|_| invalid())?;
        let date = pieces.date();
        if !(1..=9999).contains(&date.year()) {
            return Err(Invalid::one(field, OUT_OF_RANGE, "must have a year between 1 and 9999"));
        }
        let Some(time) = pieces.time() else {
            // A day has no time zone, so an offset or a zone after it is an error.
            let bare = pieces.to_numeric_offset().is_none() && pieces.time_zone_annotation().is_none();
            return if bare { Ok(Self::Day(date)) } else { Err(invalid()) };
        };
        let local = DateTime::from_parts(date, time);
        let zoned = match (pieces.to_numeric_offset(), pieces.to_time_zone()) {
            (Some(offset), _) => offset.to_timestamp(local).map(|at| at.to_zoned(offset.to_time_zone())),
            (None, Ok(Some(named))) => local.to_zoned(named),
            (None, Ok(None)) => local.to_zoned(zone.clone()),
            (None, Err(_)) => return Err(invalid()),
        };
        let out_of_range = || {
            let message = format!("must not be after {LATEST_TIME}, the last time that can be stored");
            Invalid::one(field, OUT_OF_RANGE, message)
        };
        zoned.map(|zoned| Self::from_zoned(&zoned)).map_err(|_| out_of_range())
    }

    /// Returns the moment, truncated to the second.
    pub fn from_zoned(zoned: &Zoned) -> Self {
        let at = Timestamp::from_second(zoned.timestamp().as_second()).unwrap_or(zoned.timestamp());
        Self::Moment { at, offset: zoned.offset() }
    }

    /// Returns the time of a moment, `None` for a day.
    pub fn timestamp(&self) -> Option<Timestamp> {
        match self {
            Self::Day(_) => None,
            Self::Moment { at, .. } => Some(*at),
        }
    }
}

impl fmt::Display for DueDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Day(date) => date.fmt(f),
            Self::Moment { at, offset } => at.display_with_offset(*offset).fmt(f),
        }
    }
}

impl Serialize for DueDate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The serialized form always has an offset, so it does not depend on the zone of a user.
impl<'de> Deserialize<'de> for DueDate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse("due_date", &text, &TimeZone::UTC).map_err(serde::de::Error::custom)
    }
}

/// A period in which tasks are due, for days and for moments. Ends are exclusive; `None` means no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuePeriod {
    pub from_day: Option<Date>,
    pub to_day: Option<Date>,
    pub from_at: Option<Timestamp>,
    pub to_at: Option<Timestamp>,
}

impl DuePeriod {
    /// Parses a period in the user's calendar. Fails if the text is not a period.
    ///
    /// A period is `today`, `tomorrow`, `this_week` (Monday to Sunday), `overdue`, a date, or an inclusive range of
    /// dates such as `2026-01-01..2026-01-31`. A single date with a time is not accepted; in a range, a time
    /// without `Z` is ignored. One end of a range may be omitted. Overdue are days before today and moments before now.
    /// The case of words and outer spaces are ignored.
    pub fn parse(field: &str, text: &str, now: Timestamp, zone: &TimeZone) -> Result<Self, Invalid> {
        let now = now.to_zoned(zone.clone());
        let today = now.date();
        let invalid = || {
            let message = "must be today, tomorrow, this_week, overdue, a date such as 2026-01-31, a range such as \
                           2026-01-01..2026-01-31, or words such as 'friday' or 'next week'";
            Invalid::one(field, "date", message)
        };
        if let Some((first, last)) = text.trim().split_once("..") {
            return Self::range(first, last, zone).ok_or_else(invalid);
        }
        let days = match text.trim().to_lowercase().as_str() {
            "overdue" => {
                return Ok(Self { from_day: None, to_day: Some(today), from_at: None, to_at: Some(now.timestamp()) });
            }
            "today" => (today, 1),
            "tomorrow" => (today.tomorrow().map_err(|_| invalid())?, 1),
            "this_week" => {
                let since_monday = today.weekday().since(Weekday::Monday);
                (today.checked_sub(i64::from(since_monday).days()).map_err(|_| invalid())?, 7)
            }
            other => match DueDate::parse(field, other, zone) {
                Ok(DueDate::Day(date)) => (date, 1),
                _ => return Err(invalid()),
            },
        };
        Self::days(days.0, days.1, zone).map_err(|_| invalid())
    }

    /// Returns the period from `first` to `last`, both included. An empty text means no limit. A time or numeric offset
    /// after a date is ignored. Returns `None` if a date is malformed or has the offset `Z`, if both are empty, or if
    /// `last` is before `first` or the last day of the calendar.
    fn range(first: &str, last: &str, zone: &TimeZone) -> Option<Self> {
        let day = |text: &str| match text.trim() {
            "" => Some(None),
            text => text.parse::<Date>().ok().map(Some),
        };
        let from_day = day(first)?;
        let last = day(last)?;
        let to_day = match last {
            Some(last) => Some(last.tomorrow().ok()?),
            None => None,
        };
        let instant = |day: Date| day.to_zoned(zone.clone()).ok().map(|start| start.timestamp());
        let from_at = from_day.and_then(instant);
        let to_at = to_day.and_then(instant);
        let ordered = from_day.zip(to_day).is_none_or(|(from, to)| from < to);
        (ordered && (from_day.is_some() || to_day.is_some())).then_some(Self { from_day, to_day, from_at, to_at })
    }

    /// Returns the period of `count` days from `first`, which start and end at midnight in `zone`. Fails after the end
    /// of the calendar.
    fn days(first: Date, count: i64, zone: &TimeZone) -> Result<Self, jiff::Error> {
        let end = first.checked_add(count.days())?;
        Ok(Self {
            from_day: Some(first),
            to_day: Some(end),
            from_at: Some(first.to_zoned(zone.clone())?.timestamp()),
            to_at: Some(end.to_zoned(zone.clone())?.timestamp()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn berlin() -> TimeZone {
        TimeZone::get("Europe/Berlin").unwrap()
    }

    fn parsed(text: &str) -> Option<String> {
        DueDate::parse("due_date", text, &berlin()).ok().map(|due| due.to_string())
    }

    #[test]
    fn days_stay_days_and_moments_keep_their_offset() {
        // TASK-1
        assert_eq!(parsed("2026-01-31").as_deref(), Some("2026-01-31"));
        assert_eq!(parsed("2026-01-31T15:00:00-05:00").as_deref(), Some("2026-01-31T15:00:00-05:00"));
        assert_eq!(parsed("2026-01-31T15:00:00Z").as_deref(), Some("2026-01-31T15:00:00+00:00"));
        assert_eq!(parsed("2026-07-01T15:00").as_deref(), Some("2026-07-01T15:00:00+02:00"), "in the user's zone");
        assert_eq!(parsed("2026-07-01 15:00:00").as_deref(), Some("2026-07-01T15:00:00+02:00"));
        assert_eq!(parsed("2026-01-31T15:00:00[Asia/Tokyo]").as_deref(), Some("2026-01-31T15:00:00+09:00"));
    }

    #[test]
    fn invalid_dates_are_rejected() {
        for wrong in
            ["", "tomorrow", "2026-02-30", "31.01.2026", "2026-1-1", "2026-01-31T25:00", "-000001-01-01", "15:00"]
        {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_at_the_end_of_the_calendar_are_refused_with_the_reason() {
        // TASK-1
        let message = |text| DueDate::parse("due_date", text, &berlin()).unwrap_err().violations.remove(0).message;
        for late in ["9999-12-31T23:59:59Z", "9999-12-31T00:00", "9999-12-30T22:00:01Z", "9999-12-31T00:00[UTC]"] {
            assert_eq!(
                message(late),
                "must not be after 9999-12-30T22:00:00Z, the last time that can be stored",
                "{late}"
            );
        }
        assert_eq!(message("-000001-01-01"), "must have a year between 1 and 9999");
        assert_eq!(parsed(LATEST_TIME).as_deref(), Some("9999-12-30T22:00:00+00:00"));
        assert_eq!(parsed("9999-12-31").as_deref(), Some("9999-12-31"), "a day needs no moment");
    }

    #[test]
    fn due_dates_round_trip_through_text() {
        for text in ["2026-01-31", "2026-01-31T15:00:00-05:00", "2026-01-31T15:00:00+00:00"] {
            assert_eq!(parsed(text).as_deref(), Some(text));
        }
    }

    #[test]
    fn periods_follow_the_users_calendar() {
        // TASK-1
        // 2026-03-28 23:30 UTC is already Sunday the 29th in Berlin, the day the clocks go forward.
        let now = "2026-03-28T23:30:00Z".parse().unwrap();
        let period = |text| DuePeriod::parse("due", text, now, &berlin()).unwrap();
        let today = period("today");
        assert_eq!(today.from_day.unwrap().to_string(), "2026-03-29");
        assert_eq!(today.to_at.unwrap().duration_since(today.from_at.unwrap()).as_hours(), 23);
        let week = period("this_week");
        assert_eq!(week.from_day.unwrap().to_string(), "2026-03-23");
        assert_eq!(week.to_day.unwrap().to_string(), "2026-03-30");
        assert_eq!(period("overdue").to_at, Some(now));
        assert_eq!(period("2026-05-01").to_day.unwrap().to_string(), "2026-05-02");
        let range = period("2026-05-01..2026-05-31");
        assert_eq!(range.from_day.unwrap().to_string(), "2026-05-01");
        assert_eq!(range.to_day.unwrap().to_string(), "2026-06-01");
        let open = period("2026-05-01..");
        assert!(open.from_at.is_some() && open.to_day.is_none() && open.to_at.is_none());
        assert_eq!(period("..2026-05-31").to_day, range.to_day);
        for text in ["..", "2026-05-02..2026-04-01", "2026-05-01..soon"] {
            assert!(DuePeriod::parse("due", text, now, &berlin()).is_err(), "{text}");
        }
        assert!(DuePeriod::parse("due", "someday", now, &berlin()).is_err());
        assert!(DuePeriod::parse("due", "9999-12-31", now, &berlin()).is_err(), "its end is beyond the calendar");
    }
}
