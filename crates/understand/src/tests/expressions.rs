//! Time expressions of a text.

use super::now;
use crate::{DateOrder, DayOrTime, Grain, TimeExpression, UtteranceParser, find_expressions};

fn only(text: &str) -> TimeExpression {
    let mut found = find_expressions(text, &now());
    assert_eq!(found.len(), 1, "{text}: {found:?}");
    found.remove(0)
}

fn format_time(when: Option<DayOrTime>) -> String {
    match when {
        None => "-".to_owned(),
        Some(DayOrTime::Day(date)) => date.to_string(),
        Some(DayOrTime::Time(at)) => at.to_string(),
    }
}

#[test]
fn time_spans_have_an_end() {
    for (text, start, end, grain) in [
        ("next week", "2025-12-22", "2025-12-29", Grain::Week),
        ("in March", "2026-03-01", "2026-04-01", Grain::Month),
        ("next year", "2026-01-01", "2027-01-01", Grain::Year),
        ("tomorrow morning", "2025-12-22T09:00:00", "2025-12-22T12:00:00", Grain::Hour),
        ("tomorrow 3-4pm", "2025-12-22T15:00:00", "2025-12-22T16:00:00", Grain::Hour),
        ("tomorrow from 9 to 5", "2025-12-22T09:00:00", "2025-12-22T17:00:00", Grain::Hour),
        ("between 11:30 and 1 tomorrow", "2025-12-22T11:30:00", "2025-12-22T13:00:00", Grain::Minute),
        ("Friday 10pm - 2am", "2025-12-26T22:00:00", "2025-12-27T02:00:00", Grain::Hour),
        ("March 3-5", "2026-03-03", "2026-03-06", Grain::Day),
        ("3rd to 5th of March", "2026-03-03", "2026-03-06", Grain::Day),
        ("from Monday to Wednesday", "2025-12-22", "2025-12-25", Grain::Day),
        ("from December 30 until January 2", "2025-12-30", "2026-01-03", Grain::Day),
    ] {
        let found = only(text);
        assert_eq!(
            (format_time(found.start), format_time(found.end), found.grain),
            (start.to_owned(), end.to_owned(), grain),
            "{text}"
        );
    }
}

#[test]
fn points_in_time_have_no_end() {
    for (text, start, grain) in [
        ("tomorrow", "2025-12-22", Grain::Day),
        ("at 5:45pm", "2025-12-21T17:45:00", Grain::Minute),
        ("5pm", "2025-12-21T17:00:00", Grain::Hour),
        ("at 17:45:10", "2025-12-21T17:45:10", Grain::Second),
        ("in 20 seconds", "2025-12-21T12:00:20", Grain::Second),
        ("in 20 minutes", "2025-12-21T12:20:00", Grain::Minute),
    ] {
        let found = only(text);
        assert_eq!((format_time(found.start), found.end, found.grain), (start.to_owned(), None, grain), "{text}");
    }
}

#[test]
fn a_span_in_progress_is_due_at_its_end() {
    let found = only("this month");
    assert_eq!((format_time(found.start), format_time(found.due)), ("2025-12-01".to_owned(), "2025-12-31".to_owned()));
}

#[test]
fn all_expressions_are_serialized() {
    let text = "pay rent on the 1st of every month and call Zoë tomorrow at 5pm";
    let found = serde_json::to_value(find_expressions(text, &now())).unwrap();
    assert_eq!(found[0]["text"], "on the 1st of every month");
    assert_eq!(found[0]["recurrence"], "FREQ=MONTHLY;BYMONTHDAY=1");
    assert_eq!(found[0]["start"], "2026-01-01");
    assert_eq!(found[1]["due_date"], "2025-12-22T17:00:00");
    assert_eq!(found[1]["grain"], "hour");
    assert_eq!(found[1]["end_byte"], text.len());
}

#[test]
fn numeric_dates_follow_the_date_order() {
    let due = |date_order: DateOrder, text: &str| {
        let read = UtteranceParser { date_order }.parse(&format!("add pay rent {text}"), &now());
        format_time(read.commands[0].when)
    };
    for (text, month_first, day_first) in [
        ("on 3/4", "2026-03-04", "2026-04-03"),
        ("on 3/4/2027", "2027-03-04", "2027-04-03"),
        ("by 03-04-27", "2027-03-04", "2027-04-03"),
        ("by 25/12", "2025-12-25", "2025-12-25"),
        ("by 12/25", "2025-12-25", "2025-12-25"),
        ("on 2027-03-04", "2027-03-04", "2027-03-04"),
    ] {
        assert_eq!(due(DateOrder::MonthFirst, text), month_first, "{text}");
        assert_eq!(due(DateOrder::DayFirst, text), day_first, "{text}");
    }
}
