//! Daylight saving changes in zones with different rules.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::first;
use crate::{DayOrTime, Grain, find_expressions};

/// Zones, and a time shortly before a clock change, if they have one.
const CHANGES: &[(&str, &str)] = &[
    ("America/New_York", "2026-03-08T06:00:00Z"),
    ("America/New_York", "2026-11-01T05:00:00Z"),
    ("Europe/Berlin", "2026-03-29T00:00:00Z"),
    ("Europe/Berlin", "2026-10-25T00:00:00Z"),
    ("Asia/Kolkata", "2026-03-29T00:00:00Z"),
    // A change of half an hour.
    ("Australia/Lord_Howe", "2026-04-04T14:30:00Z"),
    ("Australia/Lord_Howe", "2026-10-03T15:00:00Z"),
    // 30 December 2011 was skipped.
    ("Pacific/Apia", "2011-12-30T09:30:00Z"),
];

#[test]
fn hour_offsets_are_elapsed_hours() {
    for (zone, start) in CHANGES {
        let start: Timestamp = start.parse().unwrap();
        for quarter in 0..24 {
            let now = start.checked_add((quarter * 15).minutes()).unwrap().to_zoned(TimeZone::get(zone).unwrap());
            for minutes in [1, 20, 45, 90, 240, 1440] {
                let wanted = now.checked_add(minutes.minutes()).unwrap().datetime();
                let found = find_expressions(&format!("in {minutes} minutes"), &now);
                assert_eq!(found[0].start, Some(DayOrTime::Time(wanted)), "{now} + {minutes}");
                assert_eq!(found[0].grain, Grain::Minute);
            }
        }
    }
}

#[test]
fn days_and_times_are_local() {
    for (zone, start) in CHANGES {
        let start: Timestamp = start.parse().unwrap();
        for hour in [0, 3, 9] {
            let now = start.checked_add(hour.hours()).unwrap().to_zoned(TimeZone::get(zone).unwrap());
            let tomorrow = now.date().tomorrow().unwrap();
            let found = find_expressions("tomorrow at 2:30am", &now);
            assert_eq!(found[0].start, Some(DayOrTime::Time(tomorrow.at(2, 30, 0, 0))), "{now}");
            let found = find_expressions("in 3 days", &now);
            assert_eq!(found[0].start, Some(DayOrTime::Day(now.date().checked_add(3.days()).unwrap())), "{now}");
            // A repetition begins at the same time every day, also on a clock change.
            let found = find_expressions("every day at 2:30am starting tomorrow", &now);
            assert_eq!(found[0].start, Some(DayOrTime::Time(tomorrow.at(2, 30, 0, 0))), "{now}");
        }
    }
}

#[test]
fn repetitions_end_with_the_local_day() {
    let berlin = "2026-03-11T09:30:00+01:00[Europe/Berlin]";
    let rule = |text: &str| first(berlin, text).1.unwrap();
    assert_eq!(rule("every day at 9 until March 28"), "FREQ=DAILY;UNTIL=20260328T225959Z");
    assert_eq!(rule("every day at 9 until March 29"), "FREQ=DAILY;UNTIL=20260329T215959Z");
    assert_eq!(rule("every day until March 29"), "FREQ=DAILY;UNTIL=20260329");
    assert_eq!(rule("every hour until 5pm"), "FREQ=HOURLY;UNTIL=20260311T160000Z");
}
