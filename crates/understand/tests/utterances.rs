//! Measures the engine on utterances of our own, slot by slot, and fails where a figure falls below its floor.
//!
//! `cargo test -p understand --test utterances -- --nocapture` prints the figures.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::io::{self, Write};

use jiff::Zoned;
use serde_json::Value;
use understand::read;

const SLOTS: [&str; 7] = ["title", "description", "due_date", "recurrence", "priority", "tags", "task_ref"];

/// Right ones and all of them, by what is compared.
#[derive(Default)]
struct Figures(BTreeMap<String, (usize, usize)>);

impl Figures {
    fn of(rows: &str) -> Self {
        let now: Zoned = "2025-12-21T12:00:00Z[UTC]".parse().unwrap();
        let mut figures = Self::default();
        for line in rows.lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            let read = serde_json::to_value(read(row["text"].as_str().unwrap(), &now)).unwrap();
            let whole = figures.row(&row, &read);
            figures.count("whole rows", whole);
        }
        figures
    }

    fn row(&mut self, row: &Value, read: &Value) -> bool {
        let Some(wanted) = row["commands"].as_array() else { return self.command(row, read) };
        let given = read["commands"].as_array().map_or(std::slice::from_ref(read), Vec::as_slice);
        let divided = self.count("divided", wanted.len() == given.len());
        divided && wanted.iter().zip(given).map(|(row, read)| self.command(row, read)).fold(true, |all, one| all & one)
    }

    fn command(&mut self, row: &Value, read: &Value) -> bool {
        let accepted = row["accept"].as_array().map_or(std::slice::from_ref(&row["intent"]), Vec::as_slice);
        let right = accepted.contains(&read["intent"]);
        self.count(&format!("intent {}", row["intent"].as_str().unwrap()), right);
        let mut whole = self.count("intent", right);
        let params = &read["extracted_params"];
        let updates = row["intent"] == "update_task";
        for slot in SLOTS {
            if let Some(wanted) = row.get(slot) {
                let name = if updates && slot != "task_ref" { format!("new {slot}") } else { slot.to_owned() };
                whole &= self.count(&name, same(slot, wanted, &params[slot]));
            }
        }
        for (slot, wanted) in row["filter"].as_object().into_iter().flatten() {
            whole &= self.count(&format!("filter {slot}"), same(slot, wanted, &params["filter"][slot]));
        }
        whole
    }

    fn count(&mut self, name: &str, right: bool) -> bool {
        let (rights, all) = self.0.entry(name.to_owned()).or_default();
        *rights += usize::from(right);
        *all += 1;
        right
    }

    fn print(&self, heading: &str) {
        let mut out = io::stdout().lock();
        writeln!(out, "{heading}").unwrap();
        for (name, (right, all)) in &self.0 {
            writeln!(out, "  {name:28}{:7.2} %  {right} of {all}", share(*right, *all)).unwrap();
        }
    }

    fn assert_floors(&self, floors: &[(&str, f64)]) {
        for (name, floor) in floors {
            let (right, all) = self.0[*name];
            assert!(share(right, all) >= *floor, "{name}: {right} of {all} is below {floor} %");
        }
    }
}

fn share(right: usize, all: usize) -> f64 {
    100.0 * right as f64 / all as f64
}

fn same(slot: &str, wanted: &Value, given: &Value) -> bool {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_lowercase();
    match slot {
        "title" | "description" | "task_ref" => plain(&text(wanted)) == plain(&text(given)),
        "recurrence" => parts(&text(wanted)) == parts(&text(given)),
        "tags" => names(wanted) == names(given),
        _ => wanted == given,
    }
}

/// Without marks and the small words in front.
fn plain(text: &str) -> String {
    let text = text.replace('’', "'");
    let words: Vec<_> =
        text.split(|c: char| !c.is_ascii_alphanumeric() && c != '\'').filter(|word| !word.is_empty()).collect();
    let small = ["to", "the", "a", "an", "my", "our", "about", "for", "that", "of", "on"];
    let first = words.iter().take(words.len().saturating_sub(1)).take_while(|word| small.contains(word)).count();
    words[first..].join(" ")
}

fn parts(rule: &str) -> Vec<&str> {
    let mut parts: Vec<_> = rule.split(';').filter(|part| *part != "interval=1").collect();
    parts.sort_unstable();
    parts
}

fn names(tags: &Value) -> Vec<String> {
    let mut names: Vec<_> =
        tags.as_array().into_iter().flatten().filter_map(|tag| Some(tag.as_str()?.to_lowercase())).collect();
    names.sort_unstable();
    names
}

/// Returns the texts of the rows in which something is read wrongly.
fn wrong(rows: &str) -> Vec<String> {
    let single = |row: &&str| Figures::of(row).0["whole rows"].0 == 0;
    rows.lines().filter(single).map(str::to_owned).collect()
}

#[test]
fn sentences_with_every_rare_phrase_are_read_right() {
    let wrong = wrong(include_str!("utterances/phrases.jsonl"));
    assert!(wrong.is_empty(), "{} rows are read wrongly: {wrong:#?}", wrong.len());
}

#[test]
fn utterances_that_the_rules_were_written_with() {
    let figures = Figures::of(include_str!("utterances/known.jsonl"));
    figures.print("known");
    figures.assert_floors(&[("intent", 96.0), ("title", 93.0), ("task_ref", 85.0), ("whole rows", 90.0)]);
}

#[test]
fn utterances_that_nothing_was_fitted_to() {
    let figures = Figures::of(include_str!("utterances/fresh.jsonl"));
    figures.print("fresh");
    figures.assert_floors(&[("intent", 92.0), ("title", 80.0), ("task_ref", 75.0), ("whole rows", 78.0)]);
}
