//! Trains a multinomial logistic regression by stochastic gradient descent with a learning rate per bucket (AdaGrad).

use understand::training::{BUCKETS, CLASSES};

use crate::corpus::TrainingSentence;

const SEED: u64 = 20_251_221;
const EPOCHS: usize = 12;
const LEARNING_RATE: f64 = 0.05;
const WEIGHT_DECAY: f64 = 2e-5;
const FOLDS: usize = 5;

/// One value per class.
pub(crate) type ClassScores = [f64; CLASSES];

/// The weights of each bucket.
pub(crate) struct IntentModel(pub(crate) Vec<ClassScores>);

impl IntentModel {
    /// Returns the scores of all classes for a sentence with these features.
    pub(crate) fn scores(&self, features: &[usize]) -> ClassScores {
        let mut scores = [0.0; CLASSES];
        for weights in features.iter().filter_map(|feature| self.0.get(*feature)) {
            for (score, weight) in scores.iter_mut().zip(weights) {
                *score += weight;
            }
        }
        scores
    }
}

/// Converts scores to probabilities.
pub(crate) fn softmax(scores: &ClassScores) -> ClassScores {
    let max = scores.iter().copied().fold(f64::MIN, f64::max);
    let exponentials = scores.map(|score| (score - max).exp());
    let sum: f64 = exponentials.iter().sum();
    exponentials.map(|value| value / sum)
}

/// Trains a model. The result is deterministic.
pub(crate) fn train<'a>(sentences: impl Iterator<Item = &'a TrainingSentence>) -> IntentModel {
    let mut sentences: Vec<_> = sentences.collect();
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut model = IntentModel(vec![[0.0; CLASSES]; BUCKETS]);
    let mut squared_gradients = vec![[1e-3; CLASSES]; BUCKETS];
    for _ in 0..EPOCHS {
        random.shuffle(&mut sentences);
        for sentence in &sentences {
            let mut gradients = softmax(&model.scores(&sentence.features));
            gradients[sentence.class] -= 1.0;
            for feature in &sentence.features {
                let weights = &mut model.0[*feature];
                let squared = &mut squared_gradients[*feature];
                for class in 0..CLASSES {
                    let gradient = gradients[class] + WEIGHT_DECAY * weights[class];
                    squared[class] += gradient * gradient;
                    weights[class] -= LEARNING_RATE * gradient / squared[class].sqrt();
                }
            }
        }
    }
    model
}

/// Returns the scores of each sentence by a model that was trained without it (cross-validation).
pub(crate) fn cross_validate(sentences: &[TrainingSentence]) -> Vec<(usize, ClassScores)> {
    let mut scores = Vec::new();
    for fold in 0..FOLDS {
        let training = sentences.iter().enumerate().filter(|(n, _)| n % FOLDS != fold).map(|(_, sentence)| sentence);
        let model = train(training);
        let held_out = sentences.iter().enumerate().filter(|(n, _)| n % FOLDS == fold);
        scores.extend(held_out.map(|(n, sentence)| (n, model.scores(&sentence.features))));
    }
    scores.sort_by_key(|(n, _)| *n);
    scores
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(features: &[usize], class: usize) -> TrainingSentence {
        TrainingSentence { source: String::new(), features: features.to_vec(), by_rules: 0, class }
    }

    #[test]
    fn training_is_deterministic() {
        let sentences: Vec<_> = (0..60).map(|n| sentence(&[n % 3, 3 + n % 7], n % 3)).collect();
        let first = train(sentences.iter());
        let second = train(sentences.iter());
        assert_eq!(first.0, second.0);
        for class in 0..3 {
            let probabilities = softmax(&first.scores(&[class]));
            assert!(probabilities[class] > 0.5, "{probabilities:?}");
        }
    }

    #[test]
    fn cross_validation_excludes_each_sentence_from_its_model() {
        let mut sentences: Vec<_> = (0..40).map(|_| sentence(&[1], 0)).collect();
        sentences[7] = sentence(&[2], 4);
        let unseen = cross_validate(&sentences);
        assert_eq!(unseen.iter().map(|(n, _)| *n).collect::<Vec<_>>(), (0..40).collect::<Vec<_>>());
        let probabilities = softmax(&unseen[7].1);
        let uniform = 1.0 / CLASSES as f64;
        assert!(probabilities.iter().all(|value| (value - uniform).abs() < 1e-9), "{probabilities:?}");
    }
}
