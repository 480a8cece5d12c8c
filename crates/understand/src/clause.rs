//! One command's stretch of an utterance, and which of its tokens have been accounted for.
//!
//! A title or a reference is what is left over when dates, tags and courtesies are taken away.

use std::ops::Range;

use jiff::Zoned;

use crate::courtesy;
use crate::dates::{self, Found, Scan};
use crate::lexicon;
use crate::phrases::{Bits, Phrases};
use crate::scope;
use crate::tokens::Words;
use crate::vocabulary::{self, Noun};

#[derive(Clone)]
pub(crate) struct Clause<'a> {
    pub(crate) words: &'a Words<'a>,
    /// Without the courtesies around it.
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) now: &'a Zoned,
    pub(crate) dates: Vec<Found>,
    nouns: Vec<Named>,
    /// Whether it holds a word of another trade.
    foreign: bool,
    /// Whether it holds a word for a plan: a meeting, a game.
    plan: bool,
    /// Whether a question mark ends it.
    pub(crate) asked: bool,
    /// Where the courtesies before it begin.
    pub(crate) opening: usize,
    taken: Vec<bool>,
    /// Its words and those around it, so that most phrases are known to be absent at a glance.
    bits: Bits,
}

/// A word for a task, a reminder or a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    pub(crate) at: usize,
    pub(crate) end: usize,
    pub(crate) noun: Noun,
    pub(crate) plural: bool,
}

impl<'a> Clause<'a> {
    pub(crate) fn new(words: &'a Words<'a>, range: Range<usize>, now: &'a Zoned) -> Self {
        let start = courtesy::after(words, range.start, range.end);
        let start = after_tags(words, start, range.end);
        let end = courtesy::before(words, start, range.end);
        let mut taken = vec![false; end - start];
        for (slot, i) in taken.iter_mut().zip(start..end) {
            *slot = courtesy::is_please(words.at(i));
        }
        let mut dates = dates::find(Scan { words, start, end, now });
        dates.retain(|found| !is_name(words, start, end, found));
        let foreign = !words.of_tasks && (start..end).any(|i| words.is_one_of(i, lexicon::scope::FOREIGN));
        let opening = range.start;
        let bits = words.bits(opening..words.len().min(range.end + 1));
        let plans = !words.of_tasks && lexicon::scope::PLANS.may_meet(&bits);
        let plan = plans && (start..end).any(|i| words.is_one_of(i, lexicon::scope::PLANS));
        let asked = lexicon::grammar::QUESTION_MARK.may_meet(&bits)
            && (start..=range.end).any(|i| words.at(i) == "?" && (!words.touches_next(i) || i >= end));
        let mut clause =
            Self { words, start, end, now, dates, nouns: Vec::new(), foreign, plan, asked, opening, taken, bits };
        clause.nouns = clause.find_nouns();
        clause
    }

    fn find_nouns(&self) -> Vec<Named> {
        let mut nouns = Vec::new();
        let mut i = self.start;
        while i < self.end {
            let found = vocabulary::noun(self.words, i).filter(|_| !self.is_other_word(i));
            i = match found {
                Some((noun, len, plural)) => {
                    nouns.push(Named { at: i, end: i + len, noun, plural });
                    i + len
                }
                None => i + 1,
            };
        }
        nouns
    }

    /// "list" as a verb, "alert" as a verb, and alerts that are no reminders.
    fn is_other_word(&self, i: usize) -> bool {
        let word = self.at(i);
        if self.before(i) == "#" {
            return true;
        }
        let verb = i == self.start && matches!(word, "list" | "alert") && self.words.is_word(i + 1) && i + 1 < self.end;
        let warning = word.starts_with("alert") || word.starts_with("notification");
        verb && self.at(i + 1) != "of"
            || word == "alert" && matches!(self.at(i + 1), "me" | "us")
            || warning && scope::is_warning(self)
    }

    /// The word at `i`; empty outside of the clause.
    pub(crate) fn at(&self, i: usize) -> &'a str {
        if i < self.end { self.words.at(i) } else { "" }
    }

    pub(crate) fn before(&self, i: usize) -> &'a str {
        if i > self.start { self.words.before(i) } else { "" }
    }

    pub(crate) fn phrase(&self, i: usize, phrases: Phrases) -> Option<usize> {
        self.words.phrase(i, phrases).filter(|n| i + n <= self.end)
    }

    pub(crate) fn take(&mut self, range: Range<usize>) {
        for i in range {
            if let Some(slot) = i.checked_sub(self.start).and_then(|i| self.taken.get_mut(i)) {
                *slot = true;
            }
        }
    }

    pub(crate) fn is_taken(&self, i: usize) -> bool {
        i.checked_sub(self.start).and_then(|i| self.taken.get(i)).copied().unwrap_or(true)
    }

    /// The expression of a date that covers token `i`.
    pub(crate) fn date_at(&self, i: usize) -> Option<&Found> {
        let after = self.dates.partition_point(|found| found.tokens.end <= i);
        self.dates.get(after).filter(|found| found.tokens.contains(&i))
    }

    /// The same, with words of other trades taken for names of tasks.
    pub(crate) fn of_tasks(&self) -> Self {
        Self { foreign: false, plan: false, ..self.clone() }
    }

    /// Whether it is a date and nothing else.
    pub(crate) fn is_date(&self) -> bool {
        self.dates.first().is_some_and(|found| found.tokens.len() >= self.end - self.start)
    }

    /// Whether the utterance has no other clause.
    pub(crate) fn is_whole(&self) -> bool {
        self.opening == 0 && (self.end..self.words.len()).all(|i| !self.words.is_word(i))
    }

    pub(crate) fn has_noun(&self) -> bool {
        !self.nouns.is_empty()
    }

    /// Whether a word of another trade stands in it and none for a task.
    pub(crate) fn is_foreign(&self) -> bool {
        (self.foreign || self.plan) && self.nouns.is_empty()
    }

    /// The same, but a plan may be the task that is meant: "cancel the dentist appointment".
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.foreign && self.nouns.is_empty()
    }

    /// The noun that begins at `i`.
    pub(crate) fn noun_at(&self, i: usize) -> Option<Named> {
        self.nouns_from(i).first().filter(|noun| noun.at == i).copied()
    }

    /// The first noun that begins in the stretch.
    pub(crate) fn noun_in(&self, range: Range<usize>) -> Option<Named> {
        self.nouns_from(range.start).first().filter(|noun| noun.at < range.end).copied()
    }

    pub(crate) fn nouns_in(&self, range: Range<usize>) -> impl Iterator<Item = Named> {
        self.nouns_from(range.start).iter().take_while(move |noun| noun.at < range.end).copied()
    }

    /// The nouns that begin at `i` or later. A long text may have many, and every word may ask.
    fn nouns_from(&self, i: usize) -> &[Named] {
        let first = self.nouns.partition_point(|noun| noun.at < i);
        self.nouns.get(first..).unwrap_or_default()
    }

    /// The first place from `from` on where one of these phrases stands; the place and its length.
    pub(crate) fn seek(&self, from: usize, phrases: Phrases) -> Option<(usize, usize)> {
        if !phrases.may_meet(&self.bits) {
            return None;
        }
        (from..self.end).find_map(|i| self.phrase(i, phrases).map(|n| (i, n)))
    }

    pub(crate) fn has(&self, phrases: Phrases) -> bool {
        self.seek(self.start, phrases).is_some()
    }

    /// What is left of a stretch, as it was written; a single quoted passage without its quotes.
    pub(crate) fn rest(&self, range: Range<usize>) -> String {
        let mut range = range.start..range.end.min(self.end);
        while !range.is_empty() && self.is_dropped(range.start) {
            range.start += 1;
        }
        while !range.is_empty() && self.is_dropped(range.end - 1) {
            range.end -= 1;
        }
        if range.len() == 1 && self.words.is_quoted(range.start) {
            return self.words.inside(range.start).to_owned();
        }
        let mut text = String::new();
        let mut i = range.start;
        while i < range.end {
            let mut from = i;
            while i < range.end && !self.is_taken(i) {
                i += 1;
            }
            // A comma that a date leaves behind is no part of the words around it.
            while !text.is_empty() && from < i && self.is_dropped(from) {
                from += 1;
            }
            if from < i {
                if !text.is_empty() {
                    text.push(' ');
                }
                text.push_str(self.words.text(from..i));
            }
            i += 1;
        }
        text
    }

    fn is_dropped(&self, i: usize) -> bool {
        !self.words.is_quoted(i) && (self.is_taken(i) || is_margin(self.words.at(i)))
    }

    /// Whether nothing but marks is left of a stretch.
    pub(crate) fn is_spent(&self, range: Range<usize>) -> bool {
        range.into_iter().all(|i| self.is_taken(i) || self.is_dropped(i))
    }
}

/// "#school sign the slip": a clause begins after the tags that stand before it.
fn after_tags(words: &Words, start: usize, end: usize) -> usize {
    let mut start = start;
    while words.before(start) == "#"
        && words.touches_next(start - 1)
        && words.at(start).starts_with(char::is_alphabetic)
        && courtesy::after(words, start + 1, end) < end
    {
        start = courtesy::after(words, start + 1, end);
    }
    start
}

/// "watch Saturday Night Live": days in a row of capitals that goes on are part of a name. So are "call April" and
/// "Black Friday".
fn is_name(words: &Words, start: usize, end: usize, found: &Found) -> bool {
    let tokens = found.tokens.clone();
    let capital = |i: usize| {
        let mut letters = words.text(i..i + 1).chars();
        letters.next().is_some_and(char::is_uppercase) && letters.next().is_some_and(char::is_lowercase)
    };
    let small = |i: usize| words.text(i..i + 1).starts_with(char::is_lowercase);
    let goes_on = words.is_word(tokens.end) && tokens.end < end && capital(tokens.end);
    let plain = tokens.start > start && small(tokens.start - 1) && !matches!(words.before(tokens.start), "me" | "us");
    let named = tokens.start + usize::from(words.at(tokens.start) == "the")..tokens.end;
    let before = words.before(tokens.start);
    let called = tokens.len() == 1
        && match words.at(tokens.start) {
            "april" | "may" | "june" | "august" => {
                matches!(before, "call" | "meet" | "ask" | "email" | "text" | "tell" | "phone" | "message" | "with")
            }
            day if day.ends_with("day") => {
                matches!(before, "black" | "cyber" | "taco" | "giving" | "palm" | "ash" | "fat" | "bowl" | "casual")
            }
            _ => false,
        };
    called
        || goes_on
            && plain
            && !named.is_empty()
            && named.into_iter().all(capital)
            && !dates::is_small(words.at(tokens.end))
}

/// Marks that are dropped at the ends of a title.
fn is_margin(mark: &str) -> bool {
    mark.len() <= 3 && ".,!?;:-–—…\n*•\"'“”‘’=>~".contains(mark) && !mark.is_empty()
}
