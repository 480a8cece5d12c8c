//! Reads the training sentences: our own, and public sets with a permissive licence.

use std::fs;
use std::path::Path;

use anyhow::{Context, anyhow};
use jiff::Zoned;
use serde::Deserialize;
use understand::training;

/// Sources with a licence that permits training. The remaining sources are only used for evaluation.
const PERMISSIVE_SOURCES: [&str; 4] = ["clinc150", "slurp", "ms-todoskill", "home-assistant-intents"];

pub(crate) struct Corpus {
    pub(crate) training: Vec<TrainingSentence>,
    /// Never used for training or for fitting the temperature.
    pub(crate) evaluation: Vec<TrainingSentence>,
}

/// A sentence with its features and its correct class.
pub(crate) struct TrainingSentence {
    pub(crate) source: String,
    pub(crate) features: Vec<usize>,
    /// The class that the rules alone find.
    pub(crate) by_rules: usize,
    pub(crate) class: usize,
}

/// A line of `intents.dev.jsonl`.
#[derive(Deserialize)]
struct CorpusRow {
    text: String,
    intent: String,
    source: String,
}

impl Corpus {
    /// Reads `intents.dev.jsonl` in `data`, all tables in `own`, and an optional table for evaluation. Fails if a file
    /// cannot be read or has an invalid line.
    pub(crate) fn read(data: &Path, own: &Path, evaluation: Option<&Path>) -> anyhow::Result<Self> {
        let now: Zoned = "2025-12-21T12:00:00Z[UTC]".parse()?;
        let mut corpus = Self { training: Vec::new(), evaluation: Vec::new() };
        let path = data.join("intents.dev.jsonl");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        for line in text.lines() {
            let row: CorpusRow = serde_json::from_str(line)?;
            let is_permitted = PERMISSIVE_SOURCES.contains(&row.source.as_str());
            let sentence = sentence(&row.text, &row.intent, row.source, &now)?;
            if is_permitted { corpus.training.extend(sentence) } else { corpus.evaluation.extend(sentence) }
        }
        let mut files: Vec<_> = fs::read_dir(own)?.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<_>>()?;
        files.sort();
        for path in files {
            corpus.training.extend(read_table(&path, &now)?);
        }
        if let Some(path) = evaluation {
            corpus.evaluation.extend(read_table(path, &now)?);
        }
        Ok(corpus)
    }
}

/// Reads a table. Each line has an intent, a tab and a sentence.
fn read_table(path: &Path, now: &Zoned) -> anyhow::Result<Vec<TrainingSentence>> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut sentences = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let (intent, text) =
            line.split_once('\t').with_context(|| format!("{}:{}: the line has no tab", path.display(), n + 1))?;
        sentences.extend(sentence(text, intent, name.clone(), now)?);
    }
    Ok(sentences)
}

/// Extracts the features of a sentence. Returns `None` if the model does not decide about this sentence. Fails if the
/// intent is unknown.
fn sentence(text: &str, intent: &str, source: String, now: &Zoned) -> anyhow::Result<Option<TrainingSentence>> {
    let class = training::class_index(intent).ok_or_else(|| anyhow!("unknown intent {intent:?} of {text:?}"))?;
    let example = training::extract_example(text, now);
    Ok(example.map(|example| TrainingSentence {
        source,
        features: example.features,
        by_rules: example.by_rules,
        class,
    }))
}
