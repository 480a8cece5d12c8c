//! Measures expressions that were written before the rules that parse them, by kind. Those of `further.jsonl` were written
//! after the rules for the first ones, and measured before any change for them.
//!
//! Each row has a text, its accepted values and an optional RRULE, on Tuesday, 15 June 2027 at 10:20
//! UTC. Expressions are measured alone and inside of "remind me to call mom …". Rows of the kind "sentence" are whole
//! utterances with a title.
//!
//! `cargo test -p understand --lib fresh -- --nocapture` prints the figures and, with `SHOW_WRONG` set, the wrong rows.

use std::collections::BTreeMap;
use std::io::{self, Write};

use jiff::Zoned;
use serde_json::Value;

use crate::DayOrTime;

const NOW: &str = "2027-06-15T10:20:00Z[UTC]";

/// The percentages that must be right.
const ALONE_FLOOR: usize = 95;
const SENTENCE_FLOOR: usize = 94;

/// The number of rows that are right as the whole value, as an utterance and in a sentence, and of all rows.
#[derive(Default)]
struct Kind {
    whole: usize,
    alone: usize,
    in_sentence: usize,
    rows: usize,
}

fn format_due(due: Option<DayOrTime>) -> Option<String> {
    due.map(|due| match due {
        DayOrTime::Day(date) => date.to_string(),
        DayOrTime::Time(at) => at.strftime("%Y-%m-%dT%H:%M").to_string(),
    })
}

/// Returns a description of the first wrong value of the utterance, or `None` if all are right.
fn wrong_value(row: &Value, text: &str, title: Option<&str>) -> Option<String> {
    let now: Zoned = NOW.parse().unwrap();
    let parsed = crate::parse(text, &now);
    let command = &parsed.commands[0];
    let due = format_due(command.when);
    let accepted: Vec<&str> = row["due"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let fits = due.as_deref().map_or(accepted.is_empty(), |due| accepted.contains(&due));
    if !fits || command.recurrence.as_deref() != row["rrule"].as_str() {
        return Some(format!("{due:?} {:?} instead of {accepted:?} {}", command.recurrence, row["rrule"]));
    }
    let bare = |title: &str| title.trim_start_matches("the ").to_lowercase();
    let found = command.title.as_deref().unwrap_or_default();
    title.filter(|title| bare(title) != bare(found)).map(|title| format!("title {found:?} instead of {title:?}"))
}

/// Returns a description of the value as the whole text, or `None` if it is right.
fn wrong_whole(row: &Value, text: &str) -> Option<String> {
    let now: Zoned = NOW.parse().unwrap();
    let accepted: Vec<&str> = row["due"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let Some(when) = crate::parse_when(text, &now, crate::UtteranceParser::default()) else {
        return Some("no value".to_owned());
    };
    let due = format_due(when.due);
    let fits = due.as_deref().map_or(accepted.is_empty(), |due| accepted.contains(&due));
    let fits = fits && when.recurrence.as_deref() == row["rrule"].as_str();
    (!fits).then(|| format!("{due:?} {:?} instead of {accepted:?} {}", when.recurrence, row["rrule"]))
}

#[test]
fn fresh_expressions_meet_their_floors() {
    // AGENT-10
    let mut kinds: BTreeMap<String, Kind> = BTreeMap::new();
    let mut out = io::stdout().lock();
    let show = std::env::var_os("SHOW_WRONG").is_some();
    for line in include_str!("fresh.jsonl").lines().chain(include_str!("further.jsonl").lines()) {
        let row: Value = serde_json::from_str(line).unwrap();
        let name = row["kind"].as_str().unwrap();
        let text = row["text"].as_str().unwrap();
        let carried = match row["title"].as_str() {
            Some(_) => text.to_owned(),
            None => format!("remind me to call mom {text}"),
        };
        let alone = if row["title"].is_null() { wrong_value(&row, text, None) } else { None };
        let carried_title = row["title"].as_str().unwrap_or("call mom");
        let in_sentence = wrong_value(&row, &carried, Some(carried_title));
        let whole = if row["title"].is_null() { wrong_whole(&row, text) } else { None };
        for (mode, wrong) in [("whole", &whole), ("alone", &alone), ("in a sentence", &in_sentence)] {
            if let Some(wrong) = wrong.as_ref().filter(|_| show) {
                writeln!(out, "{name}, {mode}: {text:?}: {wrong}").unwrap();
            }
        }
        let kind = kinds.entry(name.to_owned()).or_default();
        kind.rows += 1;
        kind.whole += usize::from(whole.is_none());
        kind.alone += usize::from(alone.is_none());
        kind.in_sentence += usize::from(in_sentence.is_none());
    }
    let mut all = Kind::default();
    for (name, kind) in &kinds {
        writeln!(
            out,
            "{name:24} whole {:3} alone {:3} in a sentence {:3} of {:3}",
            kind.whole, kind.alone, kind.in_sentence, kind.rows
        )
        .unwrap();
        all.rows += kind.rows;
        all.whole += kind.whole;
        all.alone += kind.alone;
        all.in_sentence += kind.in_sentence;
    }
    writeln!(
        out,
        "{:24} whole {:3} alone {:3} in a sentence {:3} of {:3}",
        "all", all.whole, all.alone, all.in_sentence, all.rows
    )
    .unwrap();
    assert!(all.alone * 100 >= all.rows * ALONE_FLOOR, "alone: {} of {}", all.alone, all.rows);
    assert!(all.in_sentence * 100 >= all.rows * SENTENCE_FLOOR, "in a sentence: {} of {}", all.in_sentence, all.rows);
}
