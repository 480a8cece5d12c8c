//! Days on which clocks are changed, in zones that do it in different ways.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::first;
use crate::{Grain, When, expressions};

/// Zones, and a moment shortly before their clocks go forward or back (or never do).
const CHANGES: &[(&str, &str)] = &[
    ("America/New_York", "2026-03-08T06:00:00Z"),
    ("America/New_York", "2026-11-01T05:00:00Z"),
    ("Europe/Berlin", "2026-03-29T00:00:00Z"),
    ("Europe/Berlin", "2026-10-25T00:00:00Z"),
    ("Asia/Kolkata", "2026-03-29T00:00:00Z"),
    // Half an hour.
    ("Australia/Lord_Howe", "2026-04-04T14:30:00Z"),
    ("Australia/Lord_Howe", "2026-10-03T15:00:00Z"),
    // The 30th of December 2011 was left out.
    ("Pacific/Apia", "2011-12-30T09:30:00Z"),
];

#[test]
fn hours_from_now_are_hours_that_pass() {
    for (zone, start) in CHANGES {
        let start: Timestamp = start.parse().unwrap();
        for quarter in 0..24 {
            let now = start.checked_add((quarter * 15).minutes()).unwrap().to_zoned(TimeZone::get(zone).unwrap());
            for minutes in [1, 20, 45, 90, 240, 1440] {
                let wanted = now.checked_add(minutes.minutes()).unwrap().datetime();
                let found = expressions(&format!("in {minutes} minutes"), &now);
                assert_eq!(found[0].start, Some(When::Time(wanted)), "{now} + {minutes}");
                assert_eq!(found[0].grain, Grain::Minute);
            }
        }
    }
}

#[test]
fn a_day_and_a_time_are_those_of_the_clock_on_the_wall() {
    for (zone, start) in CHANGES {
        let start: Timestamp = start.parse().unwrap();
        for hour in [0, 3, 9] {
            let now = start.checked_add(hour.hours()).unwrap().to_zoned(TimeZone::get(zone).unwrap());
            let tomorrow = now.date().tomorrow().unwrap();
            let found = expressions("tomorrow at 2:30am", &now);
            assert_eq!(found[0].start, Some(When::Time(tomorrow.at(2, 30, 0, 0))), "{now}");
            let found = expressions("in 3 days", &now);
            assert_eq!(found[0].start, Some(When::Day(now.date().checked_add(3.days()).unwrap())), "{now}");
            // Every day of a repetition begins at the same time, gap or not.
            let found = expressions("every day at 2:30am starting tomorrow", &now);
            assert_eq!(found[0].start, Some(When::Time(tomorrow.at(2, 30, 0, 0))), "{now}");
        }
    }
}

#[test]
fn a_repetition_ends_with_the_day_of_the_user() {
    let berlin = "2026-03-11T09:30:00+01:00[Europe/Berlin]";
    let rule = |text: &str| first(berlin, text).1.unwrap();
    assert_eq!(rule("every day at 9 until March 28"), "FREQ=DAILY;UNTIL=20260328T225959Z");
    assert_eq!(rule("every day at 9 until March 29"), "FREQ=DAILY;UNTIL=20260329T215959Z");
    assert_eq!(rule("every day until March 29"), "FREQ=DAILY;UNTIL=20260329");
    assert_eq!(rule("every hour until 5pm"), "FREQ=HOURLY;UNTIL=20260311T160000Z");
}
