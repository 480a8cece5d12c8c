//! A linear model of intents: hashed words and pieces of words with weights that were learnt from examples.
//!
//! It sees what no rule names, and weighs what the rules say: their guess is one of its features. Sums are of whole
//! numbers, and the exponential is our own, so that every machine reads the same. `crates/trainer` makes the weights.

use super::{Act, Guess, no_request};
use crate::clause::Clause;
use crate::command;
use crate::create::Form;
use crate::lexicon;
use crate::tokens::Kind;
use crate::update::Change;
use crate::vocabulary::{self, Noun, Verb};

/// What the model tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Create,
    List,
    Complete,
    Delete,
    Update,
    Other,
}

impl Class {
    pub(crate) const ALL: [Self; CLASSES] =
        [Self::Create, Self::List, Self::Complete, Self::Delete, Self::Update, Self::Other];

    /// What a guess of the rules amounts to; what is no business of the model is `None`.
    pub(crate) fn of(guess: &Guess) -> Option<Self> {
        Some(match guess {
            None => Self::Other,
            Some((Act::Undo, _)) => return None,
            Some((Act::Create(..) | Act::Remind(_), _)) => Self::Create,
            Some((Act::List(_) | Act::Check(..), _)) => Self::List,
            Some((Act::Complete(..) | Act::Finished, _)) => Self::Complete,
            Some((Act::Delete(..), _)) => Self::Delete,
            Some((Act::Update(..), _)) => Self::Update,
        })
    }
}

pub const CLASSES: usize = 6;

/// A power of two: features beyond it share weights.
pub const BUCKETS: usize = 1 << 16;

/// A header (see [`HEADER`]), then a signed byte for each class of each bucket.
static WEIGHTS: &[u8] = include_bytes!("weights.bin");

/// [`MAGIC`], then how many units of weight make one unit of log odds, as a little-endian number of 4 bytes.
pub const HEADER: usize = 8;

/// To be changed with every change of the features.
pub const MAGIC: [u8; 4] = *b"adj1";

/// Words of a clause that are looked at; a sentence that goes on has said what it wants.
const LONGEST: usize = 48;

/// How much speaks for each class.
///
/// The weights of a feature lie side by side, so they are added in two words of four lanes each, every byte as what it
/// is above -128; a lane holds 256 of them before it has to be emptied.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scores {
    sums: [i32; CLASSES],
    even: u64,
    odd: u64,
    pending: i32,
}

const LANES: u64 = 0x00ff_00ff_00ff_00ff;

impl Scores {
    pub(crate) fn of(clause: &Clause, guess: &Guess) -> Self {
        let mut scores = Self::default();
        features(clause, guess, |feature| scores.add(feature));
        scores.empty();
        scores
    }

    /// Apart, because a clause has many kinds of features and all of them end here.
    #[inline(never)]
    fn add(&mut self, feature: u32) {
        let at = HEADER + feature as usize % BUCKETS * CLASSES;
        // Beyond the last row there is nothing; then it is read with what stands before it.
        let row = match WEIGHTS.get(at..at + 8) {
            Some(row) => row.first_chunk().map_or(0, |row| u64::from_le_bytes(*row)),
            None => WEIGHTS.last_chunk().map_or(0, |row| u64::from_le_bytes(*row) >> 16),
        };
        let row = row ^ 0x8080_8080_8080_8080;
        self.even += row & LANES;
        self.odd += row >> 8 & LANES;
        self.pending += 1;
        if self.pending == 256 {
            self.empty();
        }
    }

    fn empty(&mut self) {
        for (class, sum) in self.sums.iter_mut().enumerate() {
            let lanes = if class % 2 == 0 { self.even } else { self.odd };
            *sum += (lanes >> (class / 2 * 16) & 0xffff) as i32 - 128 * self.pending;
        }
        (self.even, self.odd, self.pending) = (0, 0, 0);
    }

    fn odds(&self) -> [f64; CLASSES] {
        let unit = WEIGHTS.first_chunk::<HEADER>().map_or(1, |[.., a, b, c, d]| u32::from_le_bytes([*a, *b, *c, *d]));
        let most = self.sums.iter().copied().max().unwrap_or_default();
        let odds = self.sums.map(|sum| exponential(f64::from(sum - most) / f64::from(unit.max(1))));
        let all: f64 = odds.iter().sum();
        odds.map(|one| one / all)
    }
}

/// From here on, a rule is sure of what it says.
const CLEAR: f64 = 0.85;

/// What is done about a clause, and how likely it is that this was meant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict {
    pub(crate) guess: Guess,
    /// `None` where the model has no say.
    pub(crate) likelihood: Option<f64>,
    /// Whether the rules saw nothing in it.
    pub(crate) overruled: bool,
}

impl Verdict {
    pub(super) fn without_model(guess: Guess) -> Self {
        Self { guess, likelihood: None, overruled: false }
    }
}

/// Asks the model what it thinks of the guess of the rules, and follows it where it is sure enough of something else.
pub(super) fn settle(clause: &Clause, guess: Guess) -> Verdict {
    let Some(class) = Class::of(&guess).filter(|_| !clause.is_date()) else { return Verdict::without_model(guess) };
    let odds = Scores::of(clause, &guess).odds();
    let best = Class::ALL.into_iter().max_by(|a, b| odds[*a as usize].total_cmp(&odds[*b as usize])).unwrap_or(class);
    let likely = odds[best as usize];
    // "change buy milk to buy oat milk": no title begins like this.
    let best = if best == Class::Create && class != best && begins_with_change(clause) { Class::Update } else { best };
    if best == class || likely < needed(clause, guess, best) {
        // What is clear is at least as likely as not, whatever the model thinks.
        let least = if guess.is_some_and(|(_, sure)| sure >= CLEAR) { 0.5 } else { 0.0 };
        return Verdict { guess, likelihood: Some(odds[class as usize].max(least)), overruled: false };
    }
    let overruled = class == Class::Other;
    // What no rule sees was not said in so many words.
    let sure = if overruled { command::NEED } else { likely };
    Verdict { guess: act(clause, best).map(|act| (act, sure)), likelihood: Some(likely), overruled }
}

fn begins_with_change(clause: &Clause) -> bool {
    match super::verb_at(clause, clause.start) {
        Some(Verb::Change | Verb::Move | Verb::Rename | Verb::Reopen) => true,
        Some(Verb::Make) => clause.has(lexicon::grammar::DUE),
        _ => false,
    }
}

/// How likely something else must be than what the rules say. A clear command is hardly ever overruled; what is added
/// outright or names a task is never taken for small talk.
fn needed(clause: &Clause, guess: Guess, best: Class) -> f64 {
    let Some((act, sure)) = guess else {
        // Beside a command, a remark is more often why it is given.
        return if clause.is_whole() { 0.6 } else { 0.9 };
    };
    let clear = sure >= CLEAR;
    let outright = matches!(act, Act::Create(Form::Add | Form::Make | Form::Remind, _)) && sure >= 0.7;
    let creates = matches!(act, Act::Create(..));
    let changes = matches!(act, Act::Update(..) | Act::Delete(..) | Act::Complete(..));
    match best {
        Class::Other if clause.words.of_tasks || outright || clear && (creates || clause.has_noun()) => f64::INFINITY,
        Class::Other => 0.8,
        Class::Update if clear && !clause.has_noun() && clause.at(clause.start) == "add" => f64::INFINITY,
        // "I have to finish the report" is not done yet.
        _ if creates && no_request::is_wish(clause, clause.start) => f64::INFINITY,
        // "Change my reminder to …": no title begins like this.
        Class::Create if changes && clause.has_noun() => f64::INFINITY,
        Class::Create if changes => 0.8,
        Class::Delete => 0.8,
        _ if clear => 0.8,
        _ => 0.5,
    }
}

/// The act of a class: as the rules would read it if it were about tasks, else what is left after the verb.
fn act(clause: &Clause, class: Class) -> Option<Act> {
    let as_tasks = super::by_rules(&clause.of_tasks());
    if let Some((act, _)) = as_tasks.filter(|_| Class::of(&as_tasks) == Some(class)) {
        return Some(act);
    }
    let start = clause.start;
    let end = clause.end;
    let verb = usize::from(super::verb_at(clause, start).is_some() && start + 1 < end);
    let object =
        (start..end.min(start + 4)).find(|i| vocabulary::is_article(clause.at(*i)) || clause.words.is_quoted(*i));
    let object = object.unwrap_or(start + verb);
    Some(match class {
        Class::Create => Act::Create(Form::Rest, start),
        Class::List => Act::List(start),
        Class::Complete => Act::Complete(object, end),
        Class::Delete => Act::Delete(object, end),
        Class::Update => Act::Update(Change::Any, object, end),
        Class::Other => return None,
    })
}

/// e to the power of a negative number, near enough for odds.
fn exponential(x: f64) -> f64 {
    let mut power = (1.0 + x / 1024.0).max(0.0);
    for _ in 0..10 {
        power *= power;
    }
    power
}

/// Calls `each` with every feature of a clause.
pub(crate) fn features(clause: &Clause, guess: &Guess, mut each: impl FnMut(u32)) {
    let mut last = BEGIN;
    let mut before = BEGIN;
    let mut n = 0;
    let mut i = clause.opening;
    while i < clause.end && n < LONGEST {
        let (unit, next) = unit(clause, i);
        each(mix(UNIT, unit));
        each(mix(mix(PAIR, last), unit));
        if n < 3 {
            each(mix(mix(PLACE, n as u32), unit));
        }
        if next == i + 1 && clause.words.kind(i) == Some(Kind::Word) {
            pieces(clause.words.at(i), &mut each);
            each(mix(mix(GAP, before), unit));
        }
        (before, last) = (last, unit);
        n += 1;
        i = next;
    }
    each(mix(mix(PAIR, last), END));
    each(mix(LENGTH, (n as u32).min(12)));
    each(mix(DATES, clause.dates.len().min(2) as u32));
    each(mix(ASKED, u32::from(clause.asked)));
    each(mix(SCOPE, u32::from(clause.is_foreign()) + 2 * u32::from(clause.is_elsewhere())));
    for noun in clause.nouns_in(clause.start..clause.end).take(3) {
        let kind = match noun.noun {
            Noun::Task => 1,
            Noun::Reminder => 2,
            Noun::List => 3,
        };
        each(mix(mix(NOUN, kind), u32::from(noun.plural)));
    }
    rule(guess, &mut each);
    each(BIAS);
}

/// What the rules make of the clause.
fn rule(guess: &Guess, each: &mut impl FnMut(u32)) {
    let class = Class::of(guess).map_or(CLASSES as u32, |class| class as u32);
    each(mix(RULE, class));
    if let Some((act, confidence)) = guess {
        let sure = (confidence * 100.0) as u32;
        each(mix(mix(SURE, class), sure / 10));
        let form = match act {
            Act::Create(form, _) => 1 + *form as u32,
            _ => 0,
        };
        each(mix(mix(FORM, class), form));
        each(mix(mix(mix(FORM, class), form), sure));
    }
}

const UNIT: u32 = 1;
const PAIR: u32 = 2;
const PLACE: u32 = 3;
const GAP: u32 = 4;
const PIECE: u32 = 5;
const LENGTH: u32 = 6;
const DATES: u32 = 7;
const ASKED: u32 = 8;
const SCOPE: u32 = 9;
const NOUN: u32 = 10;
const RULE: u32 = 11;
const SURE: u32 = 12;
const FORM: u32 = 13;
const BIAS: u32 = 14;
const BEGIN: u32 = 15;
const END: u32 = 16;
const DATE: u32 = 17;
const QUOTED: u32 = 18;
const NUMBER: u32 = 19;

/// The word at `i` as a number, and where the next one begins: a date, a quoted passage and a number are one of their
/// kind, whatever they say.
fn unit(clause: &Clause, i: usize) -> (u32, usize) {
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

/// Three and four characters in a row, and the ends of the word.
fn pieces(word: &str, each: &mut impl FnMut(u32)) {
    let bytes = word.as_bytes();
    if bytes.len() < 4 || bytes.len() > 24 {
        return;
    }
    for (n, piece) in bytes.array_windows::<4>().enumerate() {
        each(mix(PIECE, hash(piece)));
        if n == 0 {
            each(mix(mix(PIECE, BEGIN), hash(piece)));
        }
    }
    if let Some(end) = bytes.last_chunk::<3>() {
        each(mix(mix(PIECE, END), hash(end)));
    }
}

fn hash(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

fn mix(kind: u32, value: u32) -> u32 {
    let mixed = (kind.wrapping_mul(0x9e37_79b9) ^ value).wrapping_mul(0x85eb_ca6b);
    (mixed ^ (mixed >> 15)).wrapping_mul(0xc2b2_ae35) ^ (mixed >> 13)
}
