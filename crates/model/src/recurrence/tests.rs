//! Tests of recurrence rules. `scripts/recurrence-peer` also compares the occurrences with another implementation.

use jiff::civil::{DateTime, date};
use proptest::prelude::*;

use super::*;

#[test]
fn rules_are_normalized() {
    // TASK-1
    for (given, expected) in [
        ("FREQ=DAILY", "FREQ=DAILY"),
        ("rrule:freq=weekly;byday=mo,we", "FREQ=WEEKLY;BYDAY=MO,WE"),
        ("FREQ=MONTHLY;BYDAY=-1FR;COUNT=12", "FREQ=MONTHLY;BYDAY=-1FR;COUNT=12"),
        ("FREQ=MONTHLY;BYMONTHDAY=1,-1;UNTIL=20270101", "FREQ=MONTHLY;BYMONTHDAY=1,-1;UNTIL=20270101"),
        ("FREQ=YEARLY;UNTIL=20270101T000000Z", "FREQ=YEARLY;UNTIL=20270101T000000Z"),
    ] {
        assert_eq!(normalize("recurrence", given).unwrap(), expected);
    }
}

#[test]
fn invalid_rules_are_rejected_with_the_reason() {
    // TASK-1
    for (given, reason) in [
        ("", "'' is not NAME=VALUE"),
        ("every day", "'EVERY DAY' is not NAME=VALUE"),
        ("FREQ=FORTNIGHTLY", "FREQ cannot be 'FORTNIGHTLY'"),
        ("INTERVAL=2", "FREQ is missing"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL cannot be '0'"),
        ("FREQ=DAILY;INTERVAL=+1", "INTERVAL cannot be '+1'"),
        ("FREQ=DAILY;FREQ=DAILY", "FREQ is given twice"),
        ("FREQ=DAILY;COUNT=2;UNTIL=20270101", "COUNT and UNTIL exclude each other"),
        ("FREQ=WEEKLY;BYDAY=XX", "BYDAY cannot be 'XX'"),
        ("FREQ=WEEKLY;BYDAY=é", "BYDAY cannot be 'é'"),
        ("FREQ=MONTHLY;BYMONTHDAY=0", "BYMONTHDAY cannot be '0'"),
        ("FREQ=MONTHLY;BYMONTHDAY=1,", "BYMONTHDAY cannot be '1,'"),
        ("FREQ=DAILY;BYFOO=1", "BYFOO is not part of an RRULE"),
        ("FREQ=DAILY;UNTIL=20270231", "UNTIL cannot be '20270231'"),
        ("FREQ=DAILY;UNTIL=20270101T000000ZZ", "UNTIL cannot be '20270101T000000ZZ'"),
    ] {
        let message = normalize("recurrence", given).unwrap_err().violations.remove(0).message;
        assert!(message.ends_with(reason), "{given}: {message}");
    }
}

fn first(rule: &str, start: &str, n: usize) -> Vec<String> {
    let rule = RecurrenceRule::parse(rule).unwrap();
    let start = start.parse::<DateTime>().unwrap();
    rule.occurrences(start, start).take(n).map(|time| time.strftime("%Y-%m-%dT%H:%M").to_string()).collect()
}

#[track_caller]
fn days(rule: &str, start: &str, expected: &[&str]) {
    let found = first(rule, &format!("{start}T09:00"), expected.len());
    assert_eq!(found, expected.iter().map(|day| format!("{day}T09:00")).collect::<Vec<_>>(), "{rule}");
}

#[test]
fn every_part_selects_days() {
    // TASK-1
    days("FREQ=WEEKLY;BYDAY=MO,FR", "2026-01-05", &["2026-01-05", "2026-01-09", "2026-01-12"]);
    days("FREQ=MONTHLY", "2026-01-31", &["2026-01-31", "2026-03-31", "2026-05-31"]);
    days("FREQ=MONTHLY;BYMONTHDAY=-1", "2026-01-31", &["2026-01-31", "2026-02-28", "2026-03-31"]);
    days("FREQ=MONTHLY;BYDAY=-1FR", "2026-01-30", &["2026-01-30", "2026-02-27", "2026-03-27"]);
    days("FREQ=YEARLY", "2024-02-29", &["2024-02-29", "2028-02-29", "2032-02-29"]);
    days("FREQ=YEARLY;BYYEARDAY=-1,100", "2026-01-01", &["2026-04-10", "2026-12-31", "2027-04-10"]);
    days("FREQ=YEARLY;BYWEEKNO=1;BYDAY=MO", "2025-01-01", &["2025-12-29", "2027-01-04", "2028-01-03"]);
    days("FREQ=YEARLY;BYWEEKNO=20", "2026-05-13", &["2026-05-13", "2027-05-19", "2028-05-17"]);
    days("FREQ=YEARLY;BYDAY=20MO", "2026-05-18", &["2026-05-18", "2027-05-17"]);
    days("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", "2026-01-30", &["2026-01-30", "2026-02-27", "2026-03-31"]);
    days("FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", "2026-01-01", &["2026-02-13", "2026-03-13", "2026-11-13"]);
    // A list may contain weekdays with and without a position.
    days("FREQ=MONTHLY;BYDAY=2TU,SU", "2026-02-01", &["2026-02-01", "2026-02-08", "2026-02-10", "2026-02-15"]);
    // The start of the week decides which weeks are skipped.
    let weeks = "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU";
    days(&format!("{weeks};WKST=MO"), "1997-08-05", &["1997-08-05", "1997-08-10", "1997-08-19", "1997-08-24"]);
    days(&format!("{weeks};WKST=SU"), "1997-08-05", &["1997-08-05", "1997-08-17", "1997-08-19", "1997-08-31"]);
}

#[test]
fn every_part_selects_times() {
    let times =
        |rule, expected: &[&str]| assert_eq!(first(rule, "2026-01-05T09:00", expected.len()), expected, "{rule}");
    times("FREQ=DAILY;BYHOUR=8,20", &["2026-01-05T20:00", "2026-01-06T08:00", "2026-01-06T20:00"]);
    times("FREQ=HOURLY;INTERVAL=5", &["2026-01-05T09:00", "2026-01-05T14:00", "2026-01-05T19:00", "2026-01-06T00:00"]);
    times("FREQ=MINUTELY;INTERVAL=90", &["2026-01-05T09:00", "2026-01-05T10:30", "2026-01-05T12:00"]);
    times("FREQ=HOURLY;BYDAY=SA;BYHOUR=1", &["2026-01-10T01:00", "2026-01-17T01:00"]);
    times("FREQ=MINUTELY;BYMONTH=3;BYHOUR=5;BYMINUTE=7", &["2026-03-01T05:07", "2026-03-02T05:07"]);
}

#[test]
fn a_rule_that_never_matches_ends() {
    // TASK-1
    // The search stops when no match is possible, or when its budget is used up.
    for rule in [
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=MONTHLY;BYMONTH=4;BYMONTHDAY=31",
        "FREQ=WEEKLY;BYMONTHDAY=31;BYMONTH=6",
        "FREQ=DAILY;BYYEARDAY=366;BYMONTH=1",
        "FREQ=HOURLY;INTERVAL=2;BYHOUR=10",
        "FREQ=MINUTELY;INTERVAL=2;BYMINUTE=1",
        "FREQ=MINUTELY;INTERVAL=9998;BYMINUTE=1",
        "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=300",
        "FREQ=YEARLY;INTERVAL=9999",
    ] {
        assert!(first(rule, "2026-01-05T09:00", 3).len() <= 1, "{rule}");
    }
}

#[test]
fn a_large_set_of_times_is_not_materialized() {
    let all = |max: u32| (0..max).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let rule = format!("FREQ=YEARLY;BYDAY=SU,MO;BYHOUR={};BYMINUTE={};BYSECOND={}", all(24), all(60), all(60));
    let rule = RecurrenceRule::parse(&rule).unwrap();
    let start = date(2026, 1, 1).at(0, 0, 0, 0);
    assert_eq!(
        rule.occurrences(start, date(2026, 12, 31).at(0, 0, 0, 0)).next(),
        Some(date(2027, 1, 3).at(0, 0, 0, 0))
    );
}

#[test]
fn the_search_does_not_visit_the_distant_past() {
    let rule = RecurrenceRule::parse("FREQ=MINUTELY;INTERVAL=7").unwrap();
    let start = date(1990, 1, 1).at(0, 0, 0, 0);
    let from = date(2026, 1, 1).at(0, 0, 0, 0);
    let found = rule.occurrences(start, from).next().unwrap();
    let minutes = start.until((jiff::Unit::Minute, found)).unwrap().get_minutes();
    assert_eq!((minutes % 7, found.date()), (0, from.date()));
}

#[test]
fn the_count_is_reduced() {
    assert_eq!(reduce_count("FREQ=DAILY;COUNT=10;BYHOUR=9", 3), "FREQ=DAILY;COUNT=7;BYHOUR=9");
    assert_eq!(reduce_count("FREQ=DAILY", 3), "FREQ=DAILY");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn no_text_causes_a_panic(text in "\\PC{0,80}") {
        let _ = normalize("recurrence", &text);
    }

    #[test]
    fn occurrences_ascend_from_the_requested_time(
        frequency in "YEARLY|MONTHLY|WEEKLY|DAILY|HOURLY|MINUTELY",
        parts in prop::sample::subsequence(vec![
            "BYMONTH=2,11", "BYWEEKNO=1,53,-1", "BYYEARDAY=1,60,-1", "BYMONTHDAY=1,29,-1", "BYDAY=MO,-1FR,2TU",
            "BYHOUR=0,23", "BYMINUTE=30", "BYSECOND=0,59", "BYSETPOS=1,-1", "WKST=TH", "INTERVAL=3",
        ], 0..=11),
        start in -300_000_000_i64..300_000_000,
        later in 0_i64..100_000_000,
    ) {
        let text = [vec![format!("FREQ={frequency}")], parts.into_iter().map(str::to_owned).collect()].concat().join(";");
        let rule = RecurrenceRule::parse(&text).unwrap();
        let civil = |second: i64| Timestamp::from_second(1_700_000_000 + second).unwrap().to_zoned(jiff::tz::TimeZone::UTC).datetime();
        let (start, from) = (civil(start), civil(start + later));
        let found: Vec<_> = rule.occurrences(start, from).take(20).collect();
        prop_assert!(found.iter().all(|time| *time >= from), "{text}");
        prop_assert!(found.is_sorted_by(|a, b| a < b), "{text}");
        // Skipping ahead finds the same occurrences as iterating from the start.
        if later < 400_000 {
            let counted: Vec<_> = rule.occurrences(start, start).filter(|time| *time >= from).take(found.len()).collect();
            prop_assert_eq!(found, counted, "{}", text);
        }
    }
}
