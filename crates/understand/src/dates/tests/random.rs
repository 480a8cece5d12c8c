//! Dates in many formats are parsed to the same date, and expressions stay inside of the text.

use jiff::Zoned;
use jiff::civil::{Date, DateTime};
use proptest::prelude::*;

use super::WEDNESDAY;
use crate::{DateOrder, DayOrTime, TimeExpression, UtteranceParser, find_expressions};

fn now() -> Zoned {
    WEDNESDAY.parse().unwrap()
}

fn dates() -> impl Strategy<Value = Date> {
    (2026_i16..2060, 1_i8..=12, 1_i8..=31).prop_filter_map("a day of the calendar", |(y, m, d)| Date::new(y, m, d).ok())
}

fn ordinal(day: i8) -> String {
    let suffix = match day {
        1 | 21 | 31 => "st",
        2 | 22 => "nd",
        3 | 23 => "rd",
        _ => "th",
    };
    format!("{day}{suffix}")
}

/// Returns a date in many formats.
fn written(date: Date) -> Vec<String> {
    let nth = ordinal(date.day());
    let mut formats: Vec<String> = [
        "%Y-%m-%d",
        "%Y/%m/%d",
        "%-m/%-d/%Y",
        "%m/%d/%Y",
        "%m-%d-%Y",
        "%B %-d, %Y",
        "%b %-d %Y",
        "%-d %B %Y",
        "%-d %b %Y",
        "%d-%b-%Y",
        "%A, %B %-d, %Y",
        "%a %-d %b %Y",
        "%A %Y-%m-%d",
        "on %A the %-d of %B %Y",
    ]
    .iter()
    .map(|format| date.strftime(format).to_string())
    .collect();
    let month = date.strftime("%B");
    let year = date.year();
    formats.extend([
        format!("{month} {nth} {year}"),
        format!("the {nth} of {month}, {year}"),
        format!("{nth} {month} {year}"),
    ]);
    formats
}

/// Returns a time of day in many formats.
fn written_times(at: DateTime) -> Vec<String> {
    let mut formats: Vec<String> =
        ["%H:%M", "%-I:%M %p", "%-I:%M%P", "%-I.%M%P"].iter().map(|format| at.strftime(format).to_string()).collect();
    let half = if at.hour() < 12 { "am" } else { "pm" };
    let hour = at.strftime("%-I");
    match at.minute() {
        0 => formats.extend([format!("{hour}{half}"), format!("{hour} o'clock {half}")]),
        15 => formats.push(format!("quarter past {hour} {half}")),
        30 => formats.push(format!("half past {hour} {half}")),
        _ => {}
    }
    formats
}

#[track_caller]
fn only(parser: UtteranceParser, text: &str) -> TimeExpression {
    let mut found = parser.find_expressions(text, &now());
    assert_eq!(found.len(), 1, "{text}: {found:?}");
    let one = found.remove(0);
    assert_eq!(one.text, text, "all of it");
    one
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn dates_round_trip(date in dates()) {
        for text in written(date) {
            assert_eq!(only(UtteranceParser::default(), &text).start, Some(DayOrTime::Day(date)), "{text}");
        }
        let day_first = UtteranceParser { date_order: DateOrder::DayFirst };
        for format in ["%d/%m/%Y", "%-d.%-m.%Y", "%d-%m-%Y", "%Y-%m-%d"] {
            let text = date.strftime(format).to_string();
            assert_eq!(only(day_first, &text).start, Some(DayOrTime::Day(date)), "{text}");
        }
    }

    #[test]
    fn dates_with_times_round_trip(
        date in dates(),
        hour in 0_i8..24,
        minute in prop::sample::select(vec![0_i8, 5, 15, 30, 42, 59]),
        format_index in 0_usize..17,
    ) {
        let at = date.at(hour, minute, 0, 0);
        let formats = written(date);
        let day = &formats[format_index % formats.len()];
        for time in written_times(at) {
            for text in [format!("{day} at {time}"), format!("{time} on {}", day.trim_start_matches("on "))] {
                assert_eq!(only(UtteranceParser::default(), &text).start, Some(DayOrTime::Time(at)), "{text}");
            }
        }
    }

    #[test]
    fn expressions_are_ordered_and_inside_the_text(text in "\\PC{0,120}") {
        check(&text);
    }

    #[test]
    fn any_word_sequence_is_parsed(words in prop::collection::vec(prop::sample::select(WORDS.split(' ').collect::<Vec<_>>()), 0..14)) {
        // AGENT-12
        check(&words.join(" "));
    }
}

const WORDS: &str = "every other first last 3 31st 29 feb march may sun mon, tuesday wednesdays and to - from between until for \
    weeks month quarter year days 2nd next this the of in on at by 3pm 15:30 9-5 half past quarter noon midnight tomorrow \
    évening 🎂 «x» naïve ½ q3 2027 99999 0 -1 12/31 31/12 13/13 24/7 christmas easter day before after a an business \
    working morning tonight times except weekends daily twice 5x 1h30m + ( ) . ' late early mid end start spring decade \
    20270315 2027-03-15t10:00 am pm eod est europe / berlin fortnight week weekend ago half sat 6/5 eve thing new year's \
    1400 4.30 ish ten before after play each couple 1st 15th ago hence 2.5 999 hours minutes";

fn check(text: &str) {
    let mut last = 0;
    for found in find_expressions(text, &now()) {
        assert!(found.span.start >= last && found.span.start < found.span.end, "{text:?}: {found:?}");
        assert_eq!(text.get(found.span.clone()), Some(found.text.as_str()), "{text:?}");
        if let (Some(DayOrTime::Day(start)), Some(DayOrTime::Day(end))) = (found.start, found.end) {
            assert!(start < end, "{text:?}: {found:?}");
        }
        if let Some(rule) = &found.recurrence {
            assert!(model::recurrence::normalize("recurrence", rule).is_ok(), "{text:?}: {rule}");
        }
        last = found.span.end;
    }
}

#[test]
fn spans_are_byte_offsets() {
    let text = "café 🎂 für Zoë — naïve plan, tomorrow at 5pm «not friday» and again on Friday ☕";
    let found = find_expressions(text, &now());
    let texts: Vec<_> = found.iter().map(|one| &text[one.span.clone()]).collect();
    assert_eq!(texts, ["tomorrow at 5pm", "on Friday"]);
    assert_eq!(found[0].span.start, text.find("tomorrow").unwrap());
    let text = "přijít 明日 every Monday";
    assert_eq!(text[find_expressions(text, &now())[0].span.clone()], *"every Monday");
}

#[test]
fn looking_ahead_is_linear() {
    // AGENT-12
    for phrase in [
        "sat",
        "6/5",
        "9",
        "9 on",
        "morning",
        "morning at",
        "christmas",
        "christmas eve",
        "friday week",
        "half seven",
        "2 hours after",
        "2 days before",
        "the end of",
        "on 20",
        "20th",
        "tomorrow week",
        "9 6/5",
        "am on",
        "ten june 5",
        "a week on sat",
        "5 to 6",
        "early on",
        "after work",
        "the day before the 4th of",
        "4.30",
        "1400",
        "europe/berlin",
        "2 days before 6/5",
        "last thing",
        "first thing on",
        "at 9 two weeks from",
        "evening of the",
        "3pm est",
    ] {
        let reads = |n: usize| {
            crate::tokens::WORD_READS.set(0);
            find_expressions(&format!("{phrase} ").repeat(n), &now());
            crate::tokens::WORD_READS.get()
        };
        let (few, many) = (reads(40), reads(160));
        assert!(many < few * 6, "{phrase}: {few} reads for 40, {many} for 160");
    }
}
