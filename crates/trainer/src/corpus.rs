//! The sentences: ours, and those of public sets whose licences let us learn from them.

use std::fs;
use std::path::Path;

use anyhow::{Context, anyhow};
use jiff::Zoned;
use serde::Deserialize;
use understand::training;

/// Sources that may be learnt from. All others are only measured on.
const PERMISSIVE: [&str; 4] = ["clinc150", "slurp", "ms-todoskill", "home-assistant-intents"];

pub(crate) struct Corpus {
    pub(crate) learnt: Vec<Sentence>,
    /// Never learnt from, and nothing is fitted to them.
    pub(crate) measured: Vec<Sentence>,
}

pub(crate) struct Sentence {
    pub(crate) source: String,
    pub(crate) features: Vec<usize>,
    pub(crate) by_rules: usize,
    pub(crate) class: usize,
}

#[derive(Deserialize)]
struct Row {
    text: String,
    intent: String,
    source: String,
}

impl Corpus {
    pub(crate) fn read(data: &Path, own: &Path, more: Option<&Path>) -> anyhow::Result<Self> {
        let now: Zoned = "2025-12-21T12:00:00Z[UTC]".parse()?;
        let mut corpus = Self { learnt: Vec::new(), measured: Vec::new() };
        let path = data.join("intents.dev.jsonl");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        for line in text.lines() {
            let row: Row = serde_json::from_str(line)?;
            let permitted = PERMISSIVE.contains(&row.source.as_str());
            let sentence = sentence(&row.text, &row.intent, row.source, &now)?;
            if permitted { corpus.learnt.extend(sentence) } else { corpus.measured.extend(sentence) }
        }
        let mut files: Vec<_> = fs::read_dir(own)?.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<_>>()?;
        files.sort();
        for path in files {
            corpus.learnt.extend(table(&path, &now)?);
        }
        if let Some(path) = more {
            corpus.measured.extend(table(path, &now)?);
        }
        Ok(corpus)
    }
}

/// The sentences of a file of ours: an intent, a tab, a sentence.
fn table(path: &Path, now: &Zoned) -> anyhow::Result<Vec<Sentence>> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut sentences = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let (intent, text) = line.split_once('\t').with_context(|| format!("{}:{}: no tab", path.display(), n + 1))?;
        sentences.extend(sentence(text, intent, name.clone(), now)?);
    }
    Ok(sentences)
}

/// `None` where there is nothing for the model to decide.
fn sentence(text: &str, intent: &str, source: String, now: &Zoned) -> anyhow::Result<Option<Sentence>> {
    let class = training::class(intent).ok_or_else(|| anyhow!("{intent:?} of {text:?} is no class"))?;
    let example = training::example(text, now);
    Ok(example.map(|example| Sentence { source, features: example.features, by_rules: example.by_rules, class }))
}
