//! Every day expression combines with every time expression, in both orders and with the usual connectors, alone and
//! inside of a sentence.

use jiff::Zoned;
use jiff::civil::{Date, Time};

use super::WEDNESDAY;
use crate::{DayOrTime, UtteranceParser, parse, parse_when};

/// Days on Wednesday, 11 March 2026, and whether "on" can precede them.
const DAYS: &[(&str, &str, bool)] = &[
    ("tomorrow", "2026-03-12", false),
    ("tmrw", "2026-03-12", false),
    ("the day after tomorrow", "2026-03-13", false),
    ("friday", "2026-03-13", true),
    ("Sat", "2026-03-14", true),
    ("this Sunday", "2026-03-15", false),
    ("next Tuesday", "2026-03-17", false),
    ("friday week", "2026-03-20", true),
    ("a week on friday", "2026-03-20", false),
    ("the monday after next", "2026-03-23", true),
    ("monday of next week", "2026-03-16", true),
    ("the 20th", "2026-03-20", true),
    ("friday the 20th", "2026-03-20", true),
    ("june 5", "2026-06-05", true),
    ("5 june", "2026-06-05", true),
    ("the 5th of june", "2026-06-05", true),
    ("june 5th, 2027", "2027-06-05", true),
    ("6/5", "2026-06-05", true),
    ("6/5/2027", "2027-06-05", true),
    ("2026-06-05", "2026-06-05", true),
    ("the last day of the month", "2026-03-31", true),
    ("the first monday of june", "2026-06-01", true),
    ("the 5th of next month", "2026-04-05", true),
    ("in 3 days", "2026-03-14", false),
    ("2 weeks from now", "2026-03-25", false),
    ("christmas eve", "2026-12-24", true),
    ("new year's day", "2027-01-01", true),
    ("halloween", "2026-10-31", true),
];

/// Times that need no context, and whether "at" can precede them.
const TIMES: &[(&str, &str, bool)] = &[
    ("9am", "09:00", true),
    ("5 pm", "17:00", true),
    ("5 p.m.", "17:00", true),
    ("3:30pm", "15:30", true),
    ("3.30pm", "15:30", true),
    ("15:00", "15:00", true),
    ("noon", "12:00", true),
    ("midday", "12:00", true),
    ("8 o'clock", "08:00", true),
    ("half past six", "18:30", true),
    ("half seven", "07:30", true),
    ("quarter to five", "16:45", true),
    ("a quarter past 8", "08:15", true),
    ("five past four pm", "16:05", true),
    ("7 in the evening", "19:00", true),
    ("six in the morning", "06:00", true),
    ("two hours after 3pm", "17:00", false),
    ("half an hour before noon", "11:30", false),
    ("around 6pm", "18:00", false),
    ("by 4pm", "16:00", false),
];

/// Times that are times only beside a day.
const BARE_TIMES: &[(&str, &str)] =
    &[("9", "09:00"), ("5", "17:00"), ("4.15", "16:15"), ("ten", "10:00"), ("two thirty", "14:30")];

const PARTS: &[(&str, &str)] = &[
    ("in the morning", "09:00"),
    ("in the afternoon", "15:00"),
    ("in the evening", "18:00"),
    ("first thing", "09:00"),
    ("last thing at night", "22:00"),
    ("at lunchtime", "12:00"),
    ("end of play", "17:00"),
];

fn now() -> Zoned {
    WEDNESDAY.parse().unwrap()
}

/// The combinations that were parsed incorrectly.
#[derive(Default)]
struct Wrong(Vec<String>);

impl Wrong {
    fn compare(
        &mut self,
        text: &str,
        due: Option<DayOrTime>,
        expected: DayOrTime,
        title: Option<(&str, Option<&str>)>,
    ) {
        if due != Some(expected) || title.is_some_and(|(expected, title)| title != Some(expected)) {
            self.0.push(format!("{text}: {due:?} {title:?}"));
        }
    }

    fn compare_sentence(&mut self, sentence: &str, expected: DayOrTime, title: &str) {
        let parsed = parse(sentence, &now());
        let command = &parsed.commands[0];
        self.compare(sentence, command.when, expected, Some((title, command.title.as_deref())));
    }

    /// Compares a text alone and inside of sentences.
    fn check(&mut self, text: &str, day: &str, time: &str) {
        let expected = at(day, time);
        let whole = parse_when(text, &now(), UtteranceParser::default());
        self.compare(text, whole.and_then(|when| when.due), expected, None);
        self.compare_sentence(&format!("remind me to call mom {text}"), expected, "call mom");
        self.compare_sentence(&format!("remind me {text} to call mom"), expected, "call mom");
    }

    #[track_caller]
    fn assert_none(&self) {
        assert!(self.0.is_empty(), "{} combinations are parsed incorrectly: {:#?}", self.0.len(), self.0);
    }
}

fn at(day: &str, time: &str) -> DayOrTime {
    let date: Date = day.parse().unwrap();
    let time: Time = time.parse().unwrap();
    DayOrTime::Time(date.to_datetime(time))
}

#[test]
fn a_day_combines_with_a_time_in_both_orders() {
    let mut wrong = Wrong::default();
    // AGENT-10
    for (day, date, takes_on) in DAYS {
        for (time, clock, takes_at) in TIMES {
            // "in 3 days two hours after 3pm" is one distance.
            if day.starts_with("in ") && time.contains("hour") {
                continue;
            }
            wrong.check(&format!("{day} {time}"), date, clock);
            wrong.check(&format!("{day}, {time}"), date, clock);
            wrong.check(&format!("{time} {day}"), date, clock);
            wrong.check(&format!("{time}, {day}"), date, clock);
            if *takes_at {
                wrong.check(&format!("{day} at {time}"), date, clock);
                wrong.check(&format!("at {time} {day}"), date, clock);
            }
            if *takes_on {
                wrong.check(&format!("{time} on {day}"), date, clock);
                wrong.check(&format!("on {day} {time}"), date, clock);
            }
            if *takes_at && *takes_on {
                wrong.check(&format!("on {day} at {time}"), date, clock);
                wrong.check(&format!("at {time} on {day}"), date, clock);
            }
        }
    }
    wrong.assert_none();
}

#[test]
fn a_bare_number_is_a_time_beside_a_day() {
    let mut wrong = Wrong::default();
    for (day, date, takes_on) in DAYS {
        for (time, clock) in BARE_TIMES {
            wrong.check(&format!("{day} at {time}"), date, clock);
            wrong.check(&format!("at {time} {day}"), date, clock);
            if *takes_on {
                wrong.check(&format!("{time} on {day}"), date, clock);
                wrong.check(&format!("on {day} at {time}"), date, clock);
            }
        }
    }
    wrong.assert_none();
}

#[test]
fn a_day_combines_with_a_part_of_the_day() {
    let mut wrong = Wrong::default();
    for (day, date, takes_on) in DAYS {
        for (part, clock) in PARTS {
            wrong.check(&format!("{day} {part}"), date, clock);
            wrong.check(&format!("{day}, {part}"), date, clock);
            if *takes_on {
                wrong.check(&format!("on {day} {part}"), date, clock);
                wrong.check(&format!("{part} on {day}"), date, clock);
            }
        }
    }
    wrong.assert_none();
}

#[test]
fn a_date_before_a_name_leaves_the_name() {
    let mut wrong = Wrong::default();
    // Before a noun, other days can be part of its name: "the 20th anniversary".
    let clear = ["tomorrow", "tmrw", "friday", "Sat", "next Tuesday", "june 5", "5 june", "6/5/2027", "2026-06-05"];
    for (day, date, _) in DAYS.iter().filter(|(day, ..)| clear.contains(day)) {
        for (time, clock, _) in TIMES.iter().take(8) {
            for text in [format!("{day} {time} dentist"), format!("{time} {day} dentist")] {
                wrong.compare_sentence(&text, at(date, clock), "dentist");
            }
        }
    }
    wrong.assert_none();
}

#[test]
fn further_compositions() {
    let mut wrong = Wrong::default();
    for (text, day, time) in [
        ("in an hour & a half", "2026-03-11", "11:00"),
        ("in 2-3 hours", "2026-03-11", "11:30"),
        ("at 5 to 6 tomorrow", "2026-03-12", "17:55"),
        ("0900 tomorrow", "2026-03-12", "09:00"),
        ("1400h tomorrow", "2026-03-12", "14:00"),
        ("on the twenty first at noon", "2026-03-21", "12:00"),
        ("just before noon tomorrow", "2026-03-12", "12:00"),
        ("just after 5pm", "2026-03-11", "17:00"),
        ("right before 3 tomorrow", "2026-03-12", "15:00"),
        ("right after 9 on friday", "2026-03-13", "09:00"),
        ("friday shortly before 6pm", "2026-03-13", "18:00"),
        ("shortly after noon", "2026-03-11", "12:00"),
    ] {
        wrong.check(text, day, time);
    }
    wrong.assert_none();
}

#[test]
fn an_event_of_the_day_is_a_time_only_as_the_whole_text() {
    for (text, time) in [("after work tomorrow", "17:00"), ("tomorrow before bed", "21:00")] {
        let whole = parse_when(text, &now(), UtteranceParser::default()).unwrap();
        assert_eq!(whole.due, Some(at("2026-03-12", time)), "{text}");
    }
    let parsed = parse("remind me to buy eggs after work tomorrow", &now());
    assert_eq!(parsed.commands[0].title.as_deref(), Some("buy eggs after work"));
}

#[test]
fn a_number_beside_a_day_counts_things() {
    for (text, title) in [
        ("read chapter 9 tomorrow", "read chapter 9"),
        ("buy 3 eggs tomorrow", "buy 3 eggs"),
        ("clean room 7 on friday", "clean room 7"),
        ("plan the date night on friday", "plan the date night"),
        ("host the coffee morning on friday", "host the coffee morning"),
        ("attend the parents evening on friday", "attend the parents evening"),
    ] {
        let parsed = parse(text, &now());
        assert_eq!(parsed.commands[0].title.as_deref(), Some(title), "{text}");
        assert!(matches!(parsed.commands[0].when, Some(DayOrTime::Day(_))), "{text}");
    }
}

#[test]
fn words_before_a_time_belong_to_it() {
    for text in ["call mom just before noon", "call mom just after noon", "call mom right before noon"] {
        let parsed = parse(text, &now());
        assert_eq!(parsed.commands[0].title.as_deref(), Some("call mom"), "{text}");
        assert_eq!(parsed.commands[0].when, Some(at("2026-03-11", "12:00")), "{text}");
    }
}
