//! Prints the accuracy of a model per source, on sentences that it was not trained with.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::corpus::{Corpus, TrainingSentence};
use crate::learn::{ClassScores, IntentModel};

/// The number of sentences of a source, and how many the rules alone and the model classify correctly.
#[derive(Default)]
struct SourceAccuracy {
    total: usize,
    by_rules: usize,
    by_model: usize,
}

/// Prints a table. Training sentences are scored by the models of the cross-validation. Fails if writing to standard
/// output fails.
pub(crate) fn print(corpus: &Corpus, unseen: &[(usize, ClassScores)], model: &IntentModel) -> io::Result<()> {
    let mut accuracies: BTreeMap<&str, SourceAccuracy> = BTreeMap::new();
    let count = |sentence: &'_ TrainingSentence, scores: &ClassScores, accuracy: &mut SourceAccuracy| {
        let best = (0..scores.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b]));
        accuracy.total += 1;
        accuracy.by_rules += usize::from(sentence.by_rules == sentence.class);
        accuracy.by_model += usize::from(best == Some(sentence.class));
    };
    for (n, scores) in unseen {
        let sentence = &corpus.training[*n];
        count(sentence, scores, accuracies.entry(&sentence.source).or_default());
    }
    for sentence in &corpus.evaluation {
        count(sentence, &model.scores(&sentence.features), accuracies.entry(&sentence.source).or_default());
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{:24} {:>9} {:>8} {:>8}", "source", "sentences", "rules %", "model %")?;
    for (source, accuracy) in &accuracies {
        let percent = |correct: usize| 100.0 * correct as f64 / accuracy.total as f64;
        let rules = percent(accuracy.by_rules);
        let model = percent(accuracy.by_model);
        writeln!(out, "{source:24} {:9} {rules:8.2} {model:8.2}", accuracy.total)?;
    }
    Ok(())
}
