//! Finds phrases of the lexicon that no sentence of a test or of the training data exercises.
//!
//! A phrase is exercised if a lookup finds it during the parsing of one of these sentences. A phrase that a user could
//! write gets a sentence in `tests/utterances/phrases.jsonl`. Any other phrase is deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::now;
use crate::phrases::MATCHED_PHRASES;
use crate::{find_expressions, lexicon, parse};

/// Files with rows that have a `text`.
const ROWS: [&str; 2] = ["tests/utterances/known.jsonl", "tests/utterances/phrases.jsonl"];

/// Folder with files of lines that have an intent, a tab and a sentence.
const TRAINING: &str = "../trainer/sentences";

/// Folders and files of unit tests. Their string literals are sentences.
const TESTS: [&str; 4] = ["src/tests", "src/dates/tests", "src/tests.rs", "src/dates/tests.rs"];

/// Returns the text of a file of the crate, or of each file of a folder.
fn texts(path: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if path.is_file() {
        return vec![fs::read_to_string(path).unwrap()];
    }
    let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.is_file()).map(|path| fs::read_to_string(path).unwrap()).collect()
}

fn sentences() -> BTreeSet<String> {
    let mut sentences = BTreeSet::new();
    for rows in ROWS.into_iter().flat_map(texts) {
        for row in rows.lines() {
            let row: Value = serde_json::from_str(row).unwrap();
            sentences.insert(row["text"].as_str().unwrap().to_owned());
        }
    }
    for rows in texts(TRAINING) {
        sentences.extend(rows.lines().filter_map(|row| Some(row.split_once('\t')?.1.to_owned())));
    }
    for source in TESTS.into_iter().flat_map(texts) {
        // Every second piece between quotation marks is a literal.
        sentences.extend(source.split('"').skip(1).step_by(2).map(str::to_owned));
    }
    sentences
}

/// Phrases that no sentence can exercise, each with the reason.
const EXCEPTIONS: [(&str, &str); 1] = [("zeroth", "keeps the place of each ordinal number equal to its value")];

#[test]
fn every_phrase_is_exercised() {
    MATCHED_PHRASES.take();
    for sentence in &sentences() {
        parse(sentence, &now());
        find_expressions(sentence, &now());
    }
    let mut found = MATCHED_PHRASES.take();
    found.extend(EXCEPTIONS.map(|(phrase, _)| phrase));
    let mut idle: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, list) in lexicon::ALL {
        for phrase in list.iter().filter(|phrase| !found.contains(phrase)) {
            idle.entry(phrase).or_default().push(name);
        }
    }
    assert!(idle.is_empty(), "{} phrases are not exercised: {idle:#?}", idle.len());
}
