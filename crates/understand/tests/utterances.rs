//! Measures the engine on our own utterances, slot by slot. Fails if a figure falls below its floor.
//!
//! `cargo test -p understand --test utterances -- --nocapture` prints the figures.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::io::{self, Write};

use jiff::Zoned;
use serde_json::Value;
use understand::parse;

const SLOTS: [&str; 7] = ["title", "description", "due_date", "recurrence", "priority", "tags", "task_ref"];

/// The numbers of correct and of all values, for each slot.
#[derive(Default)]
struct Figures(BTreeMap<String, (usize, usize)>);

impl Figures {
    fn measure(rows: &str) -> Self {
        let now: Zoned = "2025-12-21T12:00:00Z[UTC]".parse().unwrap();
        let mut figures = Self::default();
        for line in rows.lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            let parsed = serde_json::to_value(parse(row["text"].as_str().unwrap(), &now)).unwrap();
            let all_correct = figures.compare_row(&row, &parsed);
            figures.count("whole rows", all_correct);
        }
        figures
    }

    fn compare_row(&mut self, row: &Value, parsed: &Value) -> bool {
        let Some(expected) = row["commands"].as_array() else { return self.compare_command(row, parsed) };
        let actual = parsed["commands"].as_array().map_or(std::slice::from_ref(parsed), Vec::as_slice);
        let is_split = self.count("divided", expected.len() == actual.len());
        is_split
            && expected
                .iter()
                .zip(actual)
                .map(|(row, parsed)| self.compare_command(row, parsed))
                .fold(true, |all, one| all & one)
    }

    fn compare_command(&mut self, row: &Value, parsed: &Value) -> bool {
        let accepted = row["accept"].as_array().map_or(std::slice::from_ref(&row["intent"]), Vec::as_slice);
        let correct = accepted.contains(&parsed["intent"]);
        self.count(&format!("intent {}", row["intent"].as_str().unwrap()), correct);
        let mut all_correct = self.count("intent", correct);
        let params = &parsed["extracted_params"];
        let updates = row["intent"] == "update_task";
        for slot in SLOTS {
            if let Some(expected) = row.get(slot) {
                let name = if updates && slot != "task_ref" { format!("new {slot}") } else { slot.to_owned() };
                all_correct &= self.count(&name, slots_match(slot, expected, &params[slot]));
            }
        }
        for (slot, expected) in row["filter"].as_object().into_iter().flatten() {
            all_correct &= self.count(&format!("filter {slot}"), slots_match(slot, expected, &params["filter"][slot]));
        }
        all_correct
    }

    fn count(&mut self, name: &str, correct: bool) -> bool {
        let (correct_count, all) = self.0.entry(name.to_owned()).or_default();
        *correct_count += usize::from(correct);
        *all += 1;
        correct
    }

    fn print(&self, heading: &str) {
        let mut out = io::stdout().lock();
        writeln!(out, "{heading}").unwrap();
        for (name, (correct, all)) in &self.0 {
            writeln!(out, "  {name:28}{:7.2} %  {correct} of {all}", percentage(*correct, *all)).unwrap();
        }
    }

    fn assert_floors(&self, floors: &[(&str, f64)]) {
        for (name, floor) in floors {
            let (correct, all) = self.0[*name];
            assert!(percentage(correct, all) >= *floor, "{name}: {correct} of {all} is below {floor} %");
        }
    }
}

fn percentage(correct: usize, all: usize) -> f64 {
    100.0 * correct as f64 / all as f64
}

fn slots_match(slot: &str, expected: &Value, actual: &Value) -> bool {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_lowercase();
    match slot {
        "title" | "description" | "task_ref" => normalize_text(&text(expected)) == normalize_text(&text(actual)),
        "recurrence" => rule_parts(&text(expected)) == rule_parts(&text(actual)),
        "tags" => tag_names(expected) == tag_names(actual),
        _ => expected == actual,
    }
}

/// Returns the text without marks and leading function words.
fn normalize_text(text: &str) -> String {
    let text = text.replace('’', "'");
    let words: Vec<_> =
        text.split(|c: char| !c.is_ascii_alphanumeric() && c != '\'').filter(|word| !word.is_empty()).collect();
    let function_words = ["to", "the", "a", "an", "my", "our", "about", "for", "that", "of", "on"];
    let first =
        words.iter().take(words.len().saturating_sub(1)).take_while(|word| function_words.contains(word)).count();
    words[first..].join(" ")
}

fn rule_parts(rule: &str) -> Vec<&str> {
    let mut parts: Vec<_> = rule.split(';').filter(|part| *part != "interval=1").collect();
    parts.sort_unstable();
    parts
}

fn tag_names(tags: &Value) -> Vec<String> {
    let mut names: Vec<_> =
        tags.as_array().into_iter().flatten().filter_map(|tag| Some(tag.as_str()?.to_lowercase())).collect();
    names.sort_unstable();
    names
}

/// Returns the texts of the rows with an incorrect value.
fn incorrect_rows(rows: &str) -> Vec<String> {
    let single = |row: &&str| Figures::measure(row).0["whole rows"].0 == 0;
    rows.lines().filter(single).map(str::to_owned).collect()
}

#[test]
fn rare_phrases_are_parsed_correctly() {
    let wrong = incorrect_rows(include_str!("utterances/phrases.jsonl"));
    assert!(wrong.is_empty(), "{} rows are parsed incorrectly: {wrong:#?}", wrong.len());
}

#[test]
fn known_utterances_meet_their_floors() {
    let figures = Figures::measure(include_str!("utterances/known.jsonl"));
    figures.print("known");
    figures.assert_floors(&[("intent", 96.0), ("title", 93.0), ("task_ref", 85.0), ("whole rows", 90.0)]);
}

#[test]
fn fresh_utterances_meet_their_floors() {
    // AGENT-9
    let figures = Figures::measure(include_str!("utterances/fresh.jsonl"));
    figures.print("fresh");
    figures.assert_floors(&[("intent", 92.0), ("title", 80.0), ("task_ref", 75.0), ("whole rows", 78.0)]);
}
