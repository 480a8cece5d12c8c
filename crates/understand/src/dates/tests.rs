//! Date expressions and their values on Sunday, 21 December 2025, at noon.

use jiff::Zoned;

use super::{DateScan, find};
use crate::parsed::DayOrTime;
use crate::tokens::TokenizedText;

mod composed;
mod dispatch;
mod fresh;
mod mixed;
mod month_end;
mod non_dates;
mod numbers;
mod points;
mod random;
mod repeat;
mod zones;

const WEDNESDAY: &str = "2026-03-11T09:30:00Z[UTC]";
const LATE: &str = "2027-02-25T22:45:00Z[UTC]";

/// Returns the value of the first expression of a text, and its rule. Seconds are omitted if they are zero.
fn first(now: &str, text: &str) -> (Option<String>, Option<String>) {
    let found = crate::find_expressions(text, &now.parse().unwrap());
    let Some(found) = found.into_iter().next() else { return (None, None) };
    let due = found.due.map(|due| match due {
        DayOrTime::Day(date) => date.to_string(),
        DayOrTime::Time(at) if at.second() == 0 => at.strftime("%Y-%m-%dT%H:%M").to_string(),
        DayOrTime::Time(at) => at.to_string(),
    });
    (due, found.recurrence)
}

#[track_caller]
fn assert_all_at(now: &str, table: &[(&str, &str)]) {
    for (text, expected) in table {
        assert_eq!(first(now, text), (Some((*expected).to_owned()), None), "{text}");
    }
}

/// Checks texts, their rules, and the first day or time. "-" is no date.
#[track_caller]
fn assert_rules_at(now: &str, table: &[(&str, &str, &str)]) {
    for (text, rule, start) in table {
        let start = Some((*start).to_owned()).filter(|start| start != "-");
        assert_eq!(first(now, text), (start, Some((*rule).to_owned())), "{text}");
    }
}

fn first_at(now: &str, text: &str) -> (Option<String>, Option<String>) {
    let now: Zoned = now.parse().unwrap();
    let words = TokenizedText::new(text);
    let found = find(DateScan { words: &words, start: 0, end: words.len(), now: &now });
    let Some(found) = found.first() else { return (None, None) };
    let when = found.resolve(&now).map(|when| match when {
        DayOrTime::Day(date) => date.to_string(),
        DayOrTime::Time(at) => at.strftime("%Y-%m-%dT%H:%M").to_string(),
    });
    (when, found.rrule())
}

fn first_when(text: &str) -> Option<String> {
    first_at("2025-12-21T12:00:00Z[UTC]", text).0
}

#[track_caller]
fn assert_all(table: &[(&str, &str)]) {
    for (text, expected) in table {
        assert_eq!(first_when(text).as_deref(), Some(*expected), "{text}");
    }
}

#[test]
fn days_by_name() {
    // AGENT-10
    assert_all(&[
        ("today", "2025-12-21"),
        ("tomorrow", "2025-12-22"),
        ("tommorow", "2025-12-22"),
        ("the day after tomorrow", "2025-12-23"),
        ("Monday", "2025-12-22"),
        ("on thrusday", "2025-12-25"),
        ("this Friday", "2025-12-26"),
        ("next Friday", "2025-12-26"),
        ("Friday next week", "2025-12-26"),
        ("Friday after next", "2026-01-02"),
        ("last Friday", "2025-12-19"),
        ("by Christmas", "2025-12-25"),
        ("before Easter", "2026-04-05"),
        ("on new year's eve", "2025-12-31"),
    ]);
}

#[test]
fn days_by_date() {
    assert_all(&[
        ("2026-01-05", "2026-01-05"),
        ("1/5", "2026-01-05"),
        ("12/31/2026", "2026-12-31"),
        ("31.12.2026", "2026-12-31"),
        ("January 5th", "2026-01-05"),
        ("5 Jan", "2026-01-05"),
        ("the 5th of January, 2027", "2027-01-05"),
        ("Dec 20", "2026-12-20"),
        ("the 24th", "2025-12-24"),
        ("on the 3rd", "2026-01-03"),
        ("feb 29", "2028-02-29"),
        ("Friday the 13th", "2026-02-13"),
        ("the first Monday of March", "2026-03-02"),
        ("the last day of February", "2026-02-28"),
    ]);
}

#[test]
fn weeks_and_months() {
    assert_all(&[
        ("this week", "2025-12-21"),
        ("next week", "2025-12-22"),
        ("the week after next", "2025-12-29"),
        ("next month", "2026-01-01"),
        ("in March", "2026-03-01"),
        ("end of the month", "2025-12-31"),
        ("by the end of next month", "2026-01-31"),
        ("EOM", "2025-12-31"),
        ("next weekend", "2025-12-27"),
        ("end of day", "2025-12-21T17:00"),
    ]);
}

#[test]
fn distances() {
    // AGENT-10
    assert_all(&[
        ("in two weeks", "2026-01-04"),
        ("in 3 days", "2025-12-24"),
        ("a week from tomorrow", "2025-12-29"),
        ("in half an hour", "2025-12-21T12:30"),
        ("in an hour and a half", "2025-12-21T13:30"),
        ("in 90 minutes", "2025-12-21T13:30"),
        ("2 hours from now", "2025-12-21T14:00"),
        ("two days ago", "2025-12-19"),
        ("the day after Christmas", "2025-12-26"),
        ("in 3 months at 9am", "2026-03-21T09:00"),
    ]);
}

#[test]
fn times_of_day() {
    // AGENT-10
    assert_all(&[
        ("at 3pm", "2025-12-21T15:00"),
        ("at 9", "2025-12-21T21:00"),
        ("at 8am", "2025-12-22T08:00"),
        ("tomorrow at 3", "2025-12-22T15:00"),
        ("tomorrow at 9", "2025-12-22T09:00"),
        ("tomorrow 15:30", "2025-12-22T15:30"),
        ("at half past eight tomorrow evening", "2025-12-22T20:30"),
        ("a quarter to seven tomorrow morning", "2025-12-22T06:45"),
        ("noon on Friday", "2025-12-26T12:00"),
        ("at midnight", "2025-12-22T00:00"),
        ("tonight", "2025-12-21T20:00"),
        ("tonight at 7", "2025-12-21T19:00"),
        ("tomorrow morning", "2025-12-22T09:00"),
        ("Friday afternoon at 4", "2025-12-26T16:00"),
        ("this evening", "2025-12-21T18:00"),
        ("in the morning", "2025-12-22T09:00"),
        ("at 5 p.m. on 1/5", "2026-01-05T17:00"),
        ("at seven thirty pm", "2025-12-21T19:30"),
        ("3 o'clock tomorrow", "2025-12-22T15:00"),
    ]);
}

#[test]
fn repetitions() {
    for (text, rule, first) in [
        ("every Monday", "FREQ=WEEKLY;BYDAY=MO", Some("2025-12-22")),
        ("every other Tuesday at 9am", "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU", Some("2025-12-23T09:00")),
        ("Mondays and Thursdays", "FREQ=WEEKLY;BYDAY=MO,TH", Some("2025-12-22")),
        ("monday through friday at 7am", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", Some("2025-12-22T07:00")),
        ("daily", "FREQ=DAILY", None),
        ("every day at 8pm", "FREQ=DAILY", Some("2025-12-21T20:00")),
        ("every day at 8am", "FREQ=DAILY", Some("2025-12-22T08:00")),
        ("every morning", "FREQ=DAILY", Some("2025-12-22T09:00")),
        ("each month on the 1st", "FREQ=MONTHLY;BYMONTHDAY=1", Some("2026-01-01")),
        ("on the 15th of every month", "FREQ=MONTHLY;BYMONTHDAY=15", Some("2026-01-15")),
        ("the first Monday of every month", "FREQ=MONTHLY;BYDAY=1MO", Some("2026-01-05")),
        ("every 3 months", "FREQ=MONTHLY;INTERVAL=3", None),
        ("every 30 minutes", "FREQ=MINUTELY;INTERVAL=30", None),
        ("twice a day", "FREQ=DAILY", None),
        ("annually on May 5", "FREQ=YEARLY", Some("2026-05-05")),
        ("weekdays at 9", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", Some("2025-12-22T09:00")),
    ] {
        let (when, found) = first_at("2025-12-21T12:00:00Z[UTC]", text);
        assert_eq!(found.as_deref(), Some(rule), "{text}");
        assert_eq!(when.as_deref(), first, "{text}");
    }
}

#[test]
fn similar_words_are_not_dates() {
    for text in [
        "buy sun screen",
        "the may flowers",
        "march to the office",
        "second hand shop",
        "buy a christmas tree",
        "1/2 cup of sugar",
        "the first draft",
        "call 5 people",
        "a week",
        "monthlyish",
        "\"tomorrow at 3\"",
        "version 2.5",
        "room 12",
    ] {
        assert_eq!(first_at("2025-12-21T12:00:00Z[UTC]", text), (None, None), "{text}");
    }
}

#[test]
fn hour_offsets_cross_daylight_saving_changes() {
    // Clocks in Berlin go from 2:00 to 3:00.
    assert_eq!(
        first_at("2026-03-29T01:30:00+01:00[Europe/Berlin]", "in one hour").0.as_deref(),
        Some("2026-03-29T03:30")
    );
    assert_eq!(
        first_at("2026-03-28T12:00:00+01:00[Europe/Berlin]", "tomorrow at 3").0.as_deref(),
        Some("2026-03-29T15:00")
    );
}
