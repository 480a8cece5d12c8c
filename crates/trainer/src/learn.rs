//! Learns a multinomial logistic regression by stochastic gradient descent with a rate for each bucket (AdaGrad).

use understand::training::{BUCKETS, CLASSES};

use crate::corpus::Sentence;

const SEED: u64 = 20_251_221;
const EPOCHS: usize = 12;
const RATE: f64 = 0.05;
const DECAY: f64 = 2e-5;
const FOLDS: usize = 5;

pub(crate) type Odds = [f64; CLASSES];

pub(crate) struct Model(pub(crate) Vec<Odds>);

impl Model {
    pub(crate) fn scores(&self, features: &[usize]) -> Odds {
        let mut scores = [0.0; CLASSES];
        for weights in features.iter().filter_map(|feature| self.0.get(*feature)) {
            for (score, weight) in scores.iter_mut().zip(weights) {
                *score += weight;
            }
        }
        scores
    }
}

pub(crate) fn softmax(scores: &Odds) -> Odds {
    let most = scores.iter().copied().fold(f64::MIN, f64::max);
    let odds = scores.map(|score| (score - most).exp());
    let all: f64 = odds.iter().sum();
    odds.map(|one| one / all)
}

pub(crate) fn learn<'a>(sentences: impl Iterator<Item = &'a Sentence>) -> Model {
    let mut sentences: Vec<_> = sentences.collect();
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut model = Model(vec![[0.0; CLASSES]; BUCKETS]);
    let mut steps = vec![[1e-3; CLASSES]; BUCKETS];
    for _ in 0..EPOCHS {
        random.shuffle(&mut sentences);
        for sentence in &sentences {
            let mut slope = softmax(&model.scores(&sentence.features));
            slope[sentence.class] -= 1.0;
            for feature in &sentence.features {
                let weights = &mut model.0[*feature];
                let steps = &mut steps[*feature];
                for class in 0..CLASSES {
                    let slope = slope[class] + DECAY * weights[class];
                    steps[class] += slope * slope;
                    weights[class] -= RATE * slope / steps[class].sqrt();
                }
            }
        }
    }
    model
}

/// For each sentence the scores of a model that has not seen it.
pub(crate) fn out_of_fold(sentences: &[Sentence]) -> Vec<(usize, Odds)> {
    let mut scores = Vec::new();
    for fold in 0..FOLDS {
        let others = sentences.iter().enumerate().filter(|(n, _)| n % FOLDS != fold).map(|(_, sentence)| sentence);
        let model = learn(others);
        let own = sentences.iter().enumerate().filter(|(n, _)| n % FOLDS == fold);
        scores.extend(own.map(|(n, sentence)| (n, model.scores(&sentence.features))));
    }
    scores.sort_by_key(|(n, _)| *n);
    scores
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(features: &[usize], class: usize) -> Sentence {
        Sentence { source: String::new(), features: features.to_vec(), by_rules: 0, class }
    }

    #[test]
    fn the_same_sentences_make_the_same_model() {
        let sentences: Vec<_> = (0..60).map(|n| sentence(&[n % 3, 3 + n % 7], n % 3)).collect();
        let one = learn(sentences.iter());
        let other = learn(sentences.iter());
        assert_eq!(one.0, other.0);
        for class in 0..3 {
            let odds = softmax(&one.scores(&[class]));
            assert!(odds[class] > 0.5, "{odds:?}");
        }
    }

    #[test]
    fn every_sentence_is_scored_by_a_model_that_has_not_seen_it() {
        let mut sentences: Vec<_> = (0..40).map(|_| sentence(&[1], 0)).collect();
        sentences[7] = sentence(&[2], 4);
        let unseen = out_of_fold(&sentences);
        assert_eq!(unseen.iter().map(|(n, _)| *n).collect::<Vec<_>>(), (0..40).collect::<Vec<_>>());
        let odds = softmax(&unseen[7].1);
        assert!(odds.iter().all(|one| (one - 1.0 / CLASSES as f64).abs() < 1e-9), "{odds:?}");
    }
}
