//! A linear intent model: hashed words and character n-grams with learnt weights.
//!
//! The guess of the rules is one of its features. Sums use integers, and the exponential function is our own, so
//! results are equal on all platforms. `crates/trainer` produces the weights.

use super::{CommandAction, Guess, no_request};
use crate::clause::Clause;
use crate::command;
use crate::create::CreatePhrasing;
use crate::lexicon;
use crate::tokens::TokenKind;
use crate::update::UpdateKind;
use crate::vocabulary::{self, Noun, Verb};

/// The classes of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntentClass {
    Create,
    List,
    Complete,
    Delete,
    Update,
    /// No command.
    Other,
}

impl IntentClass {
    pub(crate) const ALL: [Self; CLASSES] =
        [Self::Create, Self::List, Self::Complete, Self::Delete, Self::Update, Self::Other];

    /// Returns the class of a guess. A reminder for an existing task is a create, a status check is a listing. No guess
    /// is [`Self::Other`]. Returns `None` for undo, which the model does not classify.
    pub(crate) fn from_guess(guess: &Guess) -> Option<Self> {
        Some(match guess {
            None => Self::Other,
            Some((CommandAction::Undo, _)) => return None,
            Some((CommandAction::Create(..) | CommandAction::Remind(_), _)) => Self::Create,
            Some((CommandAction::List(_) | CommandAction::Check(..), _)) => Self::List,
            Some((CommandAction::Complete(..) | CommandAction::Finished, _)) => Self::Complete,
            Some((CommandAction::Delete(..), _)) => Self::Delete,
            Some((CommandAction::Update(..), _)) => Self::Update,
        })
    }
}

/// The number of classes.
pub const CLASSES: usize = 6;

/// The number of weight buckets, a power of two. Features with equal indexes share weights.
pub const BUCKETS: usize = 1 << 16;

/// A header of [`HEADER_LEN`] bytes, then a signed byte for each class of each bucket.
static WEIGHTS: &[u8] = include_bytes!("weights.bin");

/// The length of the header in bytes: [`MAGIC`], then the number of weight units for one unit of log odds as a
/// little-endian `u32`.
pub const HEADER_LEN: usize = 8;

/// The version of the weights. Must change whenever the features change.
pub const MAGIC: [u8; 4] = *b"adj1";

/// The number of units of a clause that yield features. The rest of a long sentence is ignored.
const MAX_UNITS: usize = 48;

/// The sum of weights for each class.
///
/// The weights of a feature are adjacent, so they are added in two words of four lanes. Each byte is added with an
/// offset of 128. A lane holds 256 of them before a flush.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IntentScores {
    /// The flushed sums.
    sums: [i32; CLASSES],
    /// The lanes of the classes 0, 2 and 4.
    even: u64,
    /// The lanes of the classes 1, 3 and 5.
    odd: u64,
    /// The number of features in the lanes.
    pending: i32,
}

const LANE_MASK: u64 = 0x00ff_00ff_00ff_00ff;

impl IntentScores {
    /// Returns the sums for all features of a clause and of the guess of the rules.
    pub(crate) fn compute(clause: &Clause, guess: &Guess) -> Self {
        let mut scores = Self::default();
        extract_features(clause, guess, |feature| scores.add(feature));
        scores.flush();
        scores
    }

    /// Adds the weights of a feature to the lanes. The index is `feature` modulo [`BUCKETS`]. Flushes the lanes after
    /// 256 features. Not inlined, because it has many call sites.
    #[inline(never)]
    fn add(&mut self, feature: u32) {
        let at = HEADER_LEN + feature as usize % BUCKETS * CLASSES;
        // The last row is too short for 8 bytes. Read it with the bytes before it.
        let row = match WEIGHTS.get(at..at + 8) {
            Some(row) => row.first_chunk().map_or(0, |row| u64::from_le_bytes(*row)),
            None => WEIGHTS.last_chunk().map_or(0, |row| u64::from_le_bytes(*row) >> 16),
        };
        let row = row ^ 0x8080_8080_8080_8080;
        self.even += row & LANE_MASK;
        self.odd += row >> 8 & LANE_MASK;
        self.pending += 1;
        if self.pending == 256 {
            self.flush();
        }
    }

    /// Moves the lanes to the sums and empties them. Removes the offset of the bytes.
    fn flush(&mut self) {
        for (class, sum) in self.sums.iter_mut().enumerate() {
            let lanes = if class % 2 == 0 { self.even } else { self.odd };
            *sum += (lanes >> (class / 2 * 16) & 0xffff) as i32 - 128 * self.pending;
        }
        (self.even, self.odd, self.pending) = (0, 0, 0);
    }

    /// Returns the probability of each class in the order of [`IntentClass::ALL`] (softmax). They add up to 1. Requires
    /// flushed sums. The header of the weights contains the scale; 0 counts as 1.
    fn probabilities(&self) -> [f64; CLASSES] {
        let unit =
            WEIGHTS.first_chunk::<HEADER_LEN>().map_or(1, |[.., a, b, c, d]| u32::from_le_bytes([*a, *b, *c, *d]));
        let most = self.sums.iter().copied().max().unwrap_or_default();
        let probabilities = self.sums.map(|sum| approximate_exp(f64::from(sum - most) / f64::from(unit.max(1))));
        let all: f64 = probabilities.iter().sum();
        probabilities.map(|one| one / all)
    }
}

/// A guess with at least this confidence is clear.
const CLEAR_CONFIDENCE: f64 = 0.85;

/// The decision about a clause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntentDecision {
    pub(crate) guess: Guess,
    /// The probability of the guess. `None` if the model was not asked.
    pub(crate) likelihood: Option<f64>,
    /// True if the model recognised a command and the rules did not.
    pub(crate) overruled: bool,
}

impl IntentDecision {
    /// Returns a decision that does not use the model.
    pub(super) fn without_model(guess: Guess) -> Self {
        Self { guess, likelihood: None, overruled: false }
    }
}

/// Evaluates the model and combines it with the guess of the rules. The guess stays if its class is the most probable
/// one, or if the best class does not reach [`required_probability`]. Then the likelihood is the probability of its
/// class, at least 0.5 for a clear guess. Otherwise the action of the best class replaces it, with the probability as
/// its confidence. A command without a rule gets [`command::NEED_CONFIDENCE`] and `overruled`. A create becomes an
/// update if the clause begins with a verb of changing. The model is not asked about undo and about a clause that is
/// only a date.
pub(super) fn apply_model(clause: &Clause, guess: Guess) -> IntentDecision {
    let Some(class) = IntentClass::from_guess(&guess).filter(|_| !clause.is_only_date()) else {
        return IntentDecision::without_model(guess);
    };
    let probabilities = IntentScores::compute(clause, &guess).probabilities();
    let best = IntentClass::ALL
        .into_iter()
        .max_by(|a, b| probabilities[*a as usize].total_cmp(&probabilities[*b as usize]))
        .unwrap_or(class);
    let likely = probabilities[best as usize];
    // No title begins like "change buy milk to buy oat milk".
    let best = if best == IntentClass::Create && class != best && begins_with_change(clause) {
        IntentClass::Update
    } else {
        best
    };
    if best == class || likely < required_probability(clause, guess, best) {
        // A clear guess has a probability of at least one half.
        let least = if guess.is_some_and(|(_, sure)| sure >= CLEAR_CONFIDENCE) { 0.5 } else { 0.0 };
        return IntentDecision { guess, likelihood: Some(probabilities[class as usize].max(least)), overruled: false };
    }
    let overruled = class == IntentClass::Other;
    // A command that no rule recognises was not explicit.
    let sure = if overruled { command::NEED_CONFIDENCE } else { likely };
    IntentDecision {
        guess: action_for_class(clause, best).map(|action| (action, sure)),
        likelihood: Some(likely),
        overruled,
    }
}

/// Returns true if the clause begins with a verb of changing. "make" counts only if the clause mentions a due date.
fn begins_with_change(clause: &Clause) -> bool {
    match super::verb_at(clause, clause.start) {
        Some(Verb::Change | Verb::Move | Verb::Rename | Verb::Reopen) => true,
        Some(Verb::Make) => clause.has(lexicon::grammar::DUE),
        _ => false,
    }
}

/// Returns the probability that the class `best` needs to replace the guess. Infinity means that it never replaces it.
/// Without a guess: 0.6 for an entire utterance, 0.9 next to other words. [`IntentClass::Other`] never replaces an
/// explicit add or "remind me", nor a clear guess that creates or names a task. It replaces nothing if the text assumes
/// tasks; else it needs 0.8. "add …" without a word for a task never becomes an update if it is clear. A duty ("I have
/// to …") stays a create. A change with a word for a task never becomes a create; without one it needs 0.8. A deletion
/// or a clear guess needs 0.8, everything else 0.5.
fn required_probability(clause: &Clause, guess: Guess, best: IntentClass) -> f64 {
    let Some((action, sure)) = guess else {
        // Next to a command, a remark usually gives the reason.
        return if clause.is_entire_utterance() { 0.6 } else { 0.9 };
    };
    let clear = sure >= CLEAR_CONFIDENCE;
    let outright =
        matches!(action, CommandAction::Create(CreatePhrasing::Add | CreatePhrasing::Make | CreatePhrasing::Remind, _))
            && sure >= 0.7;
    let creates = matches!(action, CommandAction::Create(..));
    let changes = matches!(action, CommandAction::Update(..) | CommandAction::Delete(..) | CommandAction::Complete(..));
    match best {
        IntentClass::Other if clause.words.assume_tasks || outright || clear && (creates || clause.has_noun()) => {
            f64::INFINITY
        }
        IntentClass::Other => 0.8,
        IntentClass::Update if clear && !clause.has_noun() && clause.at(clause.start) == "add" => f64::INFINITY,
        // "I have to finish the report" is not done yet.
        _ if creates && no_request::is_wish(clause, clause.start) => f64::INFINITY,
        // No title begins like "Change my reminder to …".
        IntentClass::Create if changes && clause.has_noun() => f64::INFINITY,
        IntentClass::Create if changes => 0.8,
        IntentClass::Delete => 0.8,
        _ if clear => 0.8,
        _ => 0.5,
    }
}

/// Returns the action of a class, or `None` for [`IntentClass::Other`]. Prefers the action of the rules without the
/// domain check, if it has the same class. Otherwise a create or a listing uses the whole clause. Completions,
/// deletions and updates use the words to the end of the clause, the first two without a state ("is cancelled"). These
/// begin with the first article or quote among the first four tokens. Without one, they begin after the command verb or at the start.
fn action_for_class(clause: &Clause, class: IntentClass) -> Option<CommandAction> {
    let as_tasks = super::recognise_by_rules(&clause.assuming_tasks());
    if let Some((action, _)) = as_tasks.filter(|_| IntentClass::from_guess(&as_tasks) == Some(class)) {
        return Some(action);
    }
    let start = clause.start;
    let end = clause.end;
    let verb = usize::from(super::verb_at(clause, start).is_some() && start + 1 < end);
    // "a day" is a distance and no object.
    let is_distance = |i: usize| clause.date_at(i).is_some() || crate::lead_time::is_unit(clause, i + 1);
    let object = (start..end.min(start + 4))
        .find(|i| vocabulary::is_article(clause.at(*i)) && !is_distance(*i) || clause.words.is_quoted(*i));
    let object = object.unwrap_or(start + verb);
    // "swim class is cancelled" names "swim class".
    let state = (object + 1..end).find(|i| matches!(clause.at(*i), "is" | "are" | "was" | "were" | "has" | "got"));
    let named = state.filter(|at| verb == 0 && end - at <= 3).unwrap_or(end);
    Some(match class {
        IntentClass::Create => CommandAction::Create(CreatePhrasing::Rest, start),
        IntentClass::List => CommandAction::List(start),
        IntentClass::Complete => CommandAction::Complete(object, named),
        IntentClass::Delete => CommandAction::Delete(object, named),
        IntentClass::Update => CommandAction::Update(UpdateKind::Any, object, end),
        IntentClass::Other => return None,
    })
}

/// Returns an approximation of e to the power of `x`, which must not be positive. Returns 0 below -1024. Precise enough
/// for probabilities.
fn approximate_exp(x: f64) -> f64 {
    let mut power = (1.0 + x / 1024.0).max(0.0);
    for _ in 0..10 {
        power *= power;
    }
    power
}

/// Calls `each` with every feature of a clause, as a hash. Features are its first [`MAX_UNITS`] units including
/// courtesies, and pairs of adjacent units. Words also yield pairs with one unit between them, and character n-grams.
/// The first three units also yield their positions. Then the number of units (up to 12) and of dates (up to 2) follow.
/// The question mark, the domain, the first three nouns, the guess of the rules and a bias come last. A change requires
/// new weights and a new [`MAGIC`].
pub(crate) fn extract_features(clause: &Clause, guess: &Guess, mut each: impl FnMut(u32)) {
    let mut last = BEGIN;
    let mut before = BEGIN;
    let mut n = 0;
    let mut i = clause.outer_start;
    while i < clause.end && n < MAX_UNITS {
        let (unit, next) = unit_at(clause, i);
        each(mix(UNIT, unit));
        each(mix(mix(PAIR, last), unit));
        if n < 3 {
            each(mix(mix(POSITION, n as u32), unit));
        }
        if next == i + 1 && clause.words.kind(i) == Some(TokenKind::Word) {
            character_ngrams(clause.words.at(i), &mut each);
            each(mix(mix(SKIP_PAIR, before), unit));
        }
        (before, last) = (last, unit);
        n += 1;
        i = next;
    }
    each(mix(mix(PAIR, last), END));
    each(mix(LENGTH, (n as u32).min(12)));
    each(mix(DATES, clause.dates.len().min(2) as u32));
    each(mix(QUESTION, u32::from(clause.is_question)));
    each(mix(SCOPE, u32::from(clause.is_out_of_scope()) + 2 * u32::from(clause.is_other_domain())));
    for noun in clause.nouns_in(clause.start..clause.end).take(3) {
        let kind = match noun.noun {
            Noun::Task => 1,
            Noun::Reminder => 2,
            Noun::List => 3,
        };
        each(mix(mix(NOUN, kind), u32::from(noun.plural)));
    }
    rule_features(guess, &mut each);
    each(BIAS);
}

/// Emits the features that describe the guess of the rules. These are its class, its confidence in steps of 0.1, and
/// its phrasing. The phrasing is also combined with the confidence in steps of 0.01. Undo has its own class number.
/// Without a guess, only the class is emitted.
fn rule_features(guess: &Guess, each: &mut impl FnMut(u32)) {
    let class = IntentClass::from_guess(guess).map_or(CLASSES as u32, |class| class as u32);
    each(mix(RULE, class));
    if let Some((action, confidence)) = guess {
        let sure = (confidence * 100.0) as u32;
        each(mix(mix(CONFIDENCE, class), sure / 10));
        let phrasing = match action {
            CommandAction::Create(phrasing, _) => 1 + *phrasing as u32,
            _ => 0,
        };
        each(mix(mix(PHRASING, class), phrasing));
        each(mix(mix(mix(PHRASING, class), phrasing), sure));
    }
}

const UNIT: u32 = 1;
const PAIR: u32 = 2;
const POSITION: u32 = 3;
const SKIP_PAIR: u32 = 4;
const NGRAM: u32 = 5;
const LENGTH: u32 = 6;
const DATES: u32 = 7;
const QUESTION: u32 = 8;
const SCOPE: u32 = 9;
const NOUN: u32 = 10;
const RULE: u32 = 11;
const CONFIDENCE: u32 = 12;
const PHRASING: u32 = 13;
const BIAS: u32 = 14;
const BEGIN: u32 = 15;
const END: u32 = 16;
const DATE: u32 = 17;
const QUOTED: u32 = 18;
const NUMBER: u32 = 19;

/// Returns the hash of the unit at `i`, and the start of the next unit. A date, a quoted passage and a token that
/// begins with a digit are one unit each. Their hash does not depend on the value. A date that repeats differs from
/// other dates. Inside of a date, the rest of the date is the unit. Other tokens are hashed in lower case.
fn unit_at(clause: &Clause, i: usize) -> (u32, usize) {
    if let Some(found) = clause.date_at(i) {
        return (mix(DATE, u32::from(found.parts.repeat.is_some())), found.tokens.end.max(i + 1));
    }
    let word = clause.words.at(i);
    let unit = if clause.words.is_quoted(i) {
        QUOTED
    } else if word.starts_with(|c: char| c.is_ascii_digit()) {
        NUMBER
    } else {
        hash(word.as_bytes())
    };
    (unit, i + 1)
}

/// Emits all n-grams of four bytes of a word. The first four bytes are also emitted as a beginning, and the last three
/// as an end. Emits nothing for words below 4 and above 24 bytes.
fn character_ngrams(word: &str, each: &mut impl FnMut(u32)) {
    let bytes = word.as_bytes();
    if bytes.len() < 4 || bytes.len() > 24 {
        return;
    }
    for (n, piece) in bytes.array_windows::<4>().enumerate() {
        each(mix(NGRAM, hash(piece)));
        if n == 0 {
            each(mix(mix(NGRAM, BEGIN), hash(piece)));
        }
    }
    if let Some(end) = bytes.last_chunk::<3>() {
        each(mix(mix(NGRAM, END), hash(end)));
    }
}

/// Returns the FNV-1a hash.
fn hash(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Returns a hash of a value and the kind of the feature, so that equal values of different kinds differ.
fn mix(kind: u32, value: u32) -> u32 {
    let mixed = (kind.wrapping_mul(0x9e37_79b9) ^ value).wrapping_mul(0x85eb_ca6b);
    (mixed ^ (mixed >> 15)).wrapping_mul(0xc2b2_ae35) ^ (mixed >> 13)
}
