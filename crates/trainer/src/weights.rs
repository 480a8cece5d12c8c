//! Packs a model into bytes: integers from -127 to 127, and their scale.

use understand::training::MAGIC;

use crate::corpus::TrainingSentence;
use crate::learn::{self, ClassScores, IntentModel};

/// Returns the temperature that converts scores to calibrated probabilities. It maximizes the likelihood of the correct
/// classes of unseen sentences.
pub(crate) fn fit_temperature(sentences: &[TrainingSentence], unseen: &[(usize, ClassScores)]) -> f64 {
    let loss = |temperature: f64| -> f64 {
        let likelihood = |(n, scores): &(usize, ClassScores)| {
            learn::softmax(&scores.map(|score| score / temperature))[sentences[*n].class].max(1e-9).ln()
        };
        -unseen.iter().map(likelihood).sum::<f64>()
    };
    let candidates = (10..=60).map(|n| f64::from(n) / 20.0);
    candidates.min_by(|a, b| loss(*a).total_cmp(&loss(*b))).unwrap_or(1.0)
}

/// Returns the content of the weights file.
pub(crate) fn pack(model: &IntentModel, temperature: f64) -> Vec<u8> {
    let max = model.0.iter().flatten().fold(0.0_f64, |max, weight| max.max(weight.abs()));
    let scale = 127.0 / max.max(1e-9);
    let mut bytes = MAGIC.to_vec();
    bytes.extend(((scale * temperature).round() as u32).max(1).to_le_bytes());
    bytes.extend(model.0.iter().flatten().map(|weight| ((weight * scale).round() as i8).cast_unsigned()));
    bytes
}
