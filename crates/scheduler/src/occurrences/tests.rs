//! Occurrences of cron expressions, intervals and single times, including the days of daylight saving changes.

use jiff::civil::DateTime;
use model::schedule::ScheduleDraft;
use proptest::prelude::*;

use super::*;

fn settings(draft: ScheduleDraft) -> ScheduleSettings {
    let draft = ScheduleDraft { name: Some("n".into()), agent_id: Some("a".into()), ..draft };
    draft.check(&TimeZone::UTC).unwrap()
}

fn cron(expression: &str, zone: &str) -> OccurrenceRule {
    let draft = ScheduleDraft {
        cron_expression: Some(expression.into()),
        time_zone: Some(zone.into()),
        ..ScheduleDraft::default()
    };
    OccurrenceRule::new(&settings(draft), Timestamp::UNIX_EPOCH).unwrap()
}

fn local(time: Timestamp, zone: &str) -> String {
    time.to_zoned(TimeZone::get(zone).unwrap()).strftime("%m-%d %H:%M%:z").to_string()
}

/// Returns the first occurrences from a local time on, in local time.
fn times(expression: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
    let from: DateTime = from.parse().unwrap();
    let from = from.to_zoned(TimeZone::get(zone).unwrap()).unwrap().timestamp();
    cron(expression, zone)
        .next_n(from - SignedDuration::from_micros(1), count)
        .into_iter()
        .map(|t| local(t, zone))
        .collect()
}

fn violation(expression: &str) -> String {
    let error = OccurrenceRule::check_cron(expression).expect_err(expression);
    assert_eq!((error.violations.len(), error.violations[0].field.as_str()), (1, "cron_expression"), "{expression}");
    error.violations[0].message.clone()
}

#[test]
fn all_expression_forms_are_supported() {
    // SCHED-1
    for (expression, expected) in [
        ("0 17 * * FRI", ["01-02 17:00+00:00", "01-09 17:00+00:00"]),
        ("0 17 * * 5", ["01-02 17:00+00:00", "01-09 17:00+00:00"]),
        ("0 0 * * 7", ["01-04 00:00+00:00", "01-11 00:00+00:00"]),
        ("0 0 * * SAT-SUN", ["01-03 00:00+00:00", "01-04 00:00+00:00"]),
        ("15,45 9 * * *", ["01-01 09:15+00:00", "01-01 09:45+00:00"]),
        ("*/20 8-9 * * *", ["01-01 08:00+00:00", "01-01 08:20+00:00"]),
        ("10-50/20 * * * *", ["01-01 00:10+00:00", "01-01 00:30+00:00"]),
        ("0 9 L * *", ["01-31 09:00+00:00", "02-28 09:00+00:00"]),
        ("0 9 LW * *", ["01-30 09:00+00:00", "02-27 09:00+00:00"]),
        ("0 9 15W * ?", ["01-15 09:00+00:00", "02-16 09:00+00:00"]),
        ("0 9 * * FRI#2", ["01-09 09:00+00:00", "02-13 09:00+00:00"]),
        ("0 9 * * 7#1", ["01-04 09:00+00:00", "02-01 09:00+00:00"]),
        ("0 9 * * 7L", ["01-25 09:00+00:00", "02-22 09:00+00:00"]),
        ("0 9 * * friL", ["01-30 09:00+00:00", "02-27 09:00+00:00"]),
        ("0 0 1 jan,Jul *", ["01-01 00:00+00:00", "07-01 00:00+00:00"]),
        ("30 0 0 1 * *", ["01-01 00:00+00:00", "02-01 00:00+00:00"]),
        ("@daily", ["01-01 00:00+00:00", "01-02 00:00+00:00"]),
        ("@Weekly", ["01-04 00:00+00:00", "01-11 00:00+00:00"]),
        ("@hourly", ["01-01 00:00+00:00", "01-01 01:00+00:00"]),
        // If both the day and the weekday are restricted, either matches. A star with a step is no restriction.
        ("0 0 13 * FRI", ["01-02 00:00+00:00", "01-09 00:00+00:00"]),
        ("0 0 */2 * FRI", ["01-09 00:00+00:00", "01-23 00:00+00:00"]),
    ] {
        assert_eq!(times(expression, "UTC", "2026-01-01T00:00", 2), expected, "{expression}");
    }
    let seconds = cron("*/20 * * * * *", "UTC").next_n(Timestamp::UNIX_EPOCH, 4);
    assert_eq!(seconds.iter().map(|time| time.as_second()).collect::<Vec<_>>(), [20, 40, 60, 80]);
}

#[test]
fn invalid_expressions_get_a_precise_message() {
    // SCHED-1
    for (expression, expected) in [
        ("", "5 fields"),
        ("* * * *", "has 4"),
        ("* * * * * * *", "has 7"),
        ("61 * * * *", "has '61' for the minute: must be a number from 0 to 59"),
        ("* 24 * * *", "for the hour: must be a number from 0 to 23"),
        ("* * 0 * *", "for the day: must be a number from 1 to 31"),
        ("* * * 13 *", "for the month: must be a number from 1 to 12, or a name from JAN to DEC"),
        ("* * * * 8", "for the weekday: must be a number from 0 to 7, or a name from SUN to SAT"),
        ("MON * * * *", "for the minute"),
        ("* * * * FRIDAY", "for the weekday"),
        ("1,,2 * * * *", "an empty entry for the minute"),
        ("0 22-2 * * *", "the range ends before it begins"),
        ("*/0 * * * *", "/ must be followed by a number from 1 to 59"),
        ("5/15 * * * *", "a step needs a range, such as 5-59/15"),
        ("-5 * * * *", "for the minute"),
        ("0 0 * * FRI#6", "# must be followed by a number from 1 to 5"),
        ("0 0 * * L", "write 5L or FRIL"),
        ("0 0 L-3 * *", "for the day"),
        ("0 0 L,LW * *", "only one of them"),
        ("0 0 * * +MON", "for the weekday"),
        ("@reboot", "@daily"),
        ("0 0 31 2 *", "never occurs"),
        ("0 0 31 4,6,9,11 *", "never occurs"),
        ("½ * * * *", "for the minute"),
        ("0 0 ? ? *", "for the month"),
    ] {
        let message = violation(expression);
        assert!(message.contains(expected), "{expression}: {message}");
    }
}

#[test]
fn fixed_times_run_once_on_daylight_saving_changes() {
    // SCHED-1: a skipped time runs right after the gap, and of a repeated time the first one runs
    for (zone, expression, from, expected) in [
        ("Europe/Berlin", "30 2 * * *", "2026-03-28T12:00", ["03-29 03:00+02:00", "03-30 02:30+02:00"]),
        ("Europe/Berlin", "15,45 2 * * *", "2026-03-29T00:00", ["03-29 03:00+02:00", "03-30 02:15+02:00"]),
        ("Europe/Berlin", "0 2,3 * * *", "2026-03-29T00:00", ["03-29 03:00+02:00", "03-30 02:00+02:00"]),
        ("Europe/Berlin", "30 2 * * SUN", "2026-03-29T00:00", ["03-29 03:00+02:00", "04-05 02:30+02:00"]),
        ("Europe/Berlin", "0 30 2 * * *", "2026-03-29T00:00", ["03-29 03:00+02:00", "03-30 02:30+02:00"]),
        ("Europe/Berlin", "30 2 * * *", "2026-10-25T00:00", ["10-25 02:30+02:00", "10-26 02:30+01:00"]),
        ("Europe/Berlin", "0 0-6/2 * * *", "2026-10-25T01:00", ["10-25 02:00+02:00", "10-25 04:00+01:00"]),
        ("America/New_York", "30 1 * * *", "2026-11-01T00:00", ["11-01 01:30-04:00", "11-02 01:30-05:00"]),
        ("America/New_York", "30 2 8 3 *", "2026-03-01T00:00", ["03-08 03:00-04:00", "03-08 02:30-05:00"]),
        // Changes of half an hour, and changes at midnight.
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-04T00:00", ["10-04 02:30+11:00", "10-05 02:15+11:00"]),
        ("Australia/Lord_Howe", "45 1 * * *", "2026-04-05T00:00", ["04-05 01:45+11:00", "04-06 01:45+10:30"]),
        ("Africa/Cairo", "30 0 * * *", "2026-04-23T12:00", ["04-24 01:00+03:00", "04-25 00:30+03:00"]),
        ("Africa/Cairo", "@daily", "2026-04-23T12:00", ["04-24 01:00+03:00", "04-25 00:00+03:00"]),
        ("America/Santiago", "0 0 6 9 *", "2026-01-01T00:00", ["09-06 01:00-03:00", "09-06 00:00-04:00"]),
    ] {
        let found = times(expression, zone, from, 2);
        // If the two occurrences are years apart, the second year may have another daylight saving rule.
        let compares_both = !expression.ends_with("3 *") && !expression.ends_with("9 *");
        assert_eq!(found[0], expected[0], "{zone} {expression}");
        assert!(!compares_both || found[1] == expected[1], "{zone} {expression}: {found:?}");
    }
}

#[test]
fn wildcard_expressions_follow_the_wall_clock() {
    // SCHED-1
    let spring = times("*/30 * * * *", "Europe/Berlin", "2026-03-29T01:00", 4);
    assert_eq!(spring, ["03-29 01:00+01:00", "03-29 01:30+01:00", "03-29 03:00+02:00", "03-29 03:30+02:00"]);
    let autumn = times("*/30 * * * *", "Europe/Berlin", "2026-10-25T02:00", 5);
    let expected =
        ["10-25 02:00+02:00", "10-25 02:30+02:00", "10-25 02:00+01:00", "10-25 02:30+01:00", "10-25 03:00+01:00"];
    assert_eq!(autumn, expected);
    let steps = times("0 */2 * * *", "Europe/Berlin", "2026-03-29T00:00", 3);
    assert_eq!(steps, ["03-29 00:00+01:00", "03-29 04:00+02:00", "03-29 06:00+02:00"]);
    let odd = times("*/15 * * * *", "Australia/Lord_Howe", "2026-04-05T01:30", 5);
    let expected =
        ["04-05 01:30+11:00", "04-05 01:45+11:00", "04-05 01:30+10:30", "04-05 01:45+10:30", "04-05 02:00+10:30"];
    assert_eq!(odd, expected);
    let midnight = times("*/30 * 24 4 *", "Africa/Cairo", "2026-04-23T00:00", 2);
    assert_eq!(midnight, ["04-24 01:00+03:00", "04-24 01:30+03:00"]);
}

#[test]
fn intervals_and_single_times_respect_start_and_end() {
    // SCHED-1
    let created_at: Timestamp = "2026-01-01T10:10:10.5Z".parse().unwrap();
    let every = |start: Option<&str>, end: Option<&str>| {
        let start_at = start.map(Into::into);
        let end_at = end.map(Into::into);
        let draft = ScheduleDraft { every: Some("90m".into()), start_at, end_at, ..ScheduleDraft::default() };
        let times = OccurrenceRule::new(&settings(draft), created_at).unwrap().next_n(created_at, 3);
        times.iter().map(|time| time.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(every(None, None), ["2026-01-01T11:40:10Z", "2026-01-01T13:10:10Z", "2026-01-01T14:40:10Z"]);
    let from = "2026-02-01T00:00:00Z";
    assert_eq!(every(Some(from), None), [from, "2026-02-01T01:30:00Z", "2026-02-01T03:00:00Z"]);
    assert_eq!(every(Some(from), Some("2026-02-01T01:30:00Z")), [from, "2026-02-01T01:30:00Z"]);
    assert_eq!(every(Some("2025-12-31T23:00:00Z"), None)[0], "2026-01-01T11:00:00Z");
    assert!(every(None, Some("2026-01-01T11:00:00Z")).is_empty());

    let draft = ScheduleDraft {
        at: Some("2026-03-29T02:30".into()),
        time_zone: Some("Europe/Berlin".into()),
        ..ScheduleDraft::default()
    };
    let at = OccurrenceRule::new(&settings(draft), created_at).unwrap();
    assert_eq!(at.next_n(created_at, 9).len(), 1);
    assert_eq!(at.next_after(at.next_after(created_at).unwrap()), None);

    let start_at = Some("2026-03-02T00:00:00Z".into());
    let end_at = Some("2026-03-04T00:00:00Z".into());
    let draft = ScheduleDraft { cron_expression: Some("@daily".into()), start_at, end_at, ..ScheduleDraft::default() };
    let times = OccurrenceRule::new(&settings(draft), created_at).unwrap().next_n(created_at, 9);
    assert_eq!(
        times.iter().map(|time| time.to_string()[..10].to_owned()).collect::<Vec<_>>(),
        ["2026-03-02", "2026-03-03", "2026-03-04"]
    );
}

#[test]
fn occurrences_years_away_are_found() {
    // SCHED-1: 29 February, across a century year without one
    let rule = cron("0 0 29 2 *", "Europe/Berlin");
    let times: Vec<_> = rule.next_n("2096-01-01T00:00:00Z".parse().unwrap(), 2).iter().map(|t| t.to_string()).collect();
    assert_eq!(times, ["2096-02-28T23:00:00Z", "2104-02-28T23:00:00Z"]);
    // By the wall clock, across several daylight saving changes.
    let rule = cron("*/30 * 29 2 *", "Europe/Berlin");
    assert_eq!(rule.next_after("2026-03-01T00:00:00Z".parse().unwrap()).unwrap().to_string(), "2028-02-28T23:00:00Z");
}

#[test]
fn jitter_is_deterministic_and_differs_per_occurrence() {
    // SCHED-4
    let max = TimeSpan::from_secs(600);
    let one = Uuid::from_u128(1);
    let two = Uuid::from_u128(2);
    let due = |n: i64| Timestamp::from_second(n * 60).unwrap();
    assert_eq!(apply_jitter(one, due(1), None), due(1));
    let delay = |id, n| apply_jitter(id, due(n), Some(max)).duration_since(due(n));
    assert_eq!(delay(one, 1), delay(one, 1));
    assert!((0..1000).all(|n| delay(one, n) >= SignedDuration::ZERO && delay(one, n) < max.signed_duration()));
    let different: std::collections::HashSet<_> = (0..1000).flat_map(|n| [delay(one, n), delay(two, n)]).collect();
    assert!(different.len() > 1990, "{}", different.len());
    let mean = (0..1000).map(|n| delay(one, n).as_secs()).sum::<i64>() / 1000;
    assert!((250..350).contains(&mean), "{mean}");
}

fn zones() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        "Africa/Cairo",
        "Asia/Kolkata",
    ])
}

fn expressions() -> impl Strategy<Value = String> {
    let field = |max: u32| {
        prop_oneof![
            Just("*".to_owned()),
            (1..20_u32).prop_map(move |step| format!("*/{}", step.min(max))),
            (0..=max).prop_map(|n| n.to_string()),
            (0..=max, 0..=max).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
            (0..=max, 0..=max).prop_map(|(a, b)| format!("{a},{b}")),
        ]
    };
    (field(59), field(23), prop_oneof![Just("*".to_owned()), Just("1-15".to_owned())], field(6))
        .prop_map(|(minute, hour, day, weekday)| format!("{minute} {hour} {day} * {weekday}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn occurrences_ascend_and_the_last_one_is_found(expression in expressions(), zone in zones(), from in 1_767_000_000..1_800_000_000_i64) {
        let rule = cron(&expression, zone);
        let from = Timestamp::from_second(from).unwrap();
        let times = rule.next_n(from, 50);
        prop_assert!(times.is_sorted_by(|a, b| a < b) && times.first().is_none_or(|first| *first > from));
        for (index, time) in times.iter().enumerate() {
            let until = *time + SignedDuration::from_micros(if index % 2 == 0 { 0 } else { 1 });
            prop_assert_eq!(rule.last_within(from, until), Some(*time));
        }
    }

    #[test]
    fn the_parser_never_panics(text in "[0-9*/,#LWa-zA-Z? @+-]{0,30}|\\PC*") {
        drop(OccurrenceRule::check_cron(&text));
    }
}
