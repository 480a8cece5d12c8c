//! Says how good a model is, by source, on sentences it has not seen.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::corpus::{Corpus, Sentence};
use crate::learn::{Model, Odds};

/// How many sentences of a source there are, and how many the rules alone and the model get right.
#[derive(Default)]
struct Tally {
    all: usize,
    by_rules: usize,
    by_model: usize,
}

/// What was learnt from is judged by models that had not seen it.
pub(crate) fn print(corpus: &Corpus, unseen: &[(usize, Odds)], model: &Model) -> io::Result<()> {
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    let count = |sentence: &'_ Sentence, scores: &Odds, tally: &mut Tally| {
        let best = (0..scores.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b]));
        tally.all += 1;
        tally.by_rules += usize::from(sentence.by_rules == sentence.class);
        tally.by_model += usize::from(best == Some(sentence.class));
    };
    for (n, scores) in unseen {
        let sentence = &corpus.learnt[*n];
        count(sentence, scores, tallies.entry(&sentence.source).or_default());
    }
    for sentence in &corpus.measured {
        count(sentence, &model.scores(&sentence.features), tallies.entry(&sentence.source).or_default());
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{:24} {:>9} {:>8} {:>8}", "source", "sentences", "rules %", "model %")?;
    for (source, tally) in &tallies {
        let share = |right: usize| 100.0 * right as f64 / tally.all as f64;
        let rules = share(tally.by_rules);
        let model = share(tally.by_model);
        writeln!(out, "{source:24} {:9} {rules:8.2} {model:8.2}", tally.all)?;
    }
    Ok(())
}
