//! Packs a model into bytes: whole numbers between -127 and 127, and the scale they are in.

use understand::training::MAGIC;

use crate::corpus::Sentence;
use crate::learn::{self, Model, Odds};

/// By what scores are divided so that they say how likely a class is: the one that makes the right classes of unseen
/// sentences likeliest.
pub(crate) fn temperature(sentences: &[Sentence], unseen: &[(usize, Odds)]) -> f64 {
    let loss = |temperature: f64| -> f64 {
        let likelihood = |(n, scores): &(usize, Odds)| {
            learn::softmax(&scores.map(|score| score / temperature))[sentences[*n].class].max(1e-9).ln()
        };
        -unseen.iter().map(likelihood).sum::<f64>()
    };
    let candidates = (10..=60).map(|n| f64::from(n) / 20.0);
    candidates.min_by(|a, b| loss(*a).total_cmp(&loss(*b))).unwrap_or(1.0)
}

pub(crate) fn pack(model: &Model, temperature: f64) -> Vec<u8> {
    let most = model.0.iter().flatten().fold(0.0_f64, |most, weight| most.max(weight.abs()));
    let scale = 127.0 / most.max(1e-9);
    let mut bytes = MAGIC.to_vec();
    bytes.extend(((scale * temperature).round() as u32).max(1).to_le_bytes());
    bytes.extend(model.0.iter().flatten().map(|weight| ((weight * scale).round() as i8).cast_unsigned()));
    bytes
}
