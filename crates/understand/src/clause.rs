//! One command's stretch of an utterance, and which of its tokens have been accounted for.
//!
//! A title or a reference is what is left over when dates, tags and courtesies are taken away.

use std::ops::Range;

use jiff::Zoned;

use crate::dates::{self, Found, Scan};
use crate::lexicon;
use crate::phrases::Phrases;
use crate::tokens::Words;

pub(crate) struct Clause<'a> {
    pub(crate) words: &'a Words<'a>,
    /// Without the courtesies around it.
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) now: &'a Zoned,
    pub(crate) dates: Vec<Found>,
    taken: Vec<bool>,
    offset: usize,
}

impl<'a> Clause<'a> {
    pub(crate) fn new(words: &'a Words<'a>, range: Range<usize>, now: &'a Zoned) -> Self {
        let start = lexicon::after_courtesy(words, range.start, range.end);
        let end = lexicon::before_courtesy(words, start, range.end);
        let mut taken = vec![false; end.saturating_sub(start)];
        for (i, slot) in taken.iter_mut().enumerate() {
            *slot = lexicon::is_please(words.at(start + i));
        }
        let dates = dates::find(Scan { words, start, end, now });
        Self { words, start, end, now, dates, taken, offset: start }
    }

    /// The word at `i`; empty outside of the clause.
    pub(crate) fn at(&self, i: usize) -> &'a str {
        if i < self.end { self.words.at(i) } else { "" }
    }

    pub(crate) fn phrase(&self, i: usize, phrases: Phrases) -> Option<usize> {
        self.words.phrase(i, phrases).filter(|n| i + n <= self.end)
    }

    pub(crate) fn take(&mut self, range: Range<usize>) {
        for i in range {
            if let Some(slot) = i.checked_sub(self.offset).and_then(|i| self.taken.get_mut(i)) {
                *slot = true;
            }
        }
    }

    pub(crate) fn is_taken(&self, i: usize) -> bool {
        i.checked_sub(self.offset).and_then(|i| self.taken.get(i)).copied().unwrap_or(true)
    }

    /// The expression of a date that covers token `i`.
    pub(crate) fn date_at(&self, i: usize) -> Option<&Found> {
        self.dates.iter().find(|found| found.tokens.contains(&i))
    }

    pub(crate) fn has_noun(&self) -> bool {
        lexicon::has_noun(self.words, self.start, self.end)
    }

    /// The first place from `from` on where one of these phrases stands outside of dates; the place and its length.
    pub(crate) fn seek(&self, from: usize, phrases: Phrases) -> Option<(usize, usize)> {
        (from..self.end).find_map(|i| self.phrase(i, phrases).map(|n| (i, n)))
    }

    pub(crate) fn has(&self, phrases: Phrases) -> bool {
        self.seek(self.start, phrases).is_some()
    }

    /// What is left of a stretch, as it was written; a single quoted passage without its quotes.
    pub(crate) fn rest(&self, range: Range<usize>) -> String {
        let mut range = range.start..range.end.min(self.end);
        while range.start < range.end
            && (self.is_taken(range.start) || is_margin(self.words.at(range.start)))
            && !self.words.is_quoted(range.start)
        {
            range.start += 1;
        }
        while range.end > range.start
            && (self.is_taken(range.end - 1) || is_margin(self.words.at(range.end - 1)))
            && !self.words.is_quoted(range.end - 1)
        {
            range.end -= 1;
        }
        if range.len() == 1 && self.words.is_quoted(range.start) {
            return self.words.inside(range.start).to_owned();
        }
        let mut text = String::new();
        let mut i = range.start;
        while i < range.end {
            if self.is_taken(i) {
                i += 1;
                continue;
            }
            let from = i;
            while i < range.end && !self.is_taken(i) {
                i += 1;
            }
            // A comma that a date leaves behind is no part of the words around it.
            let from =
                if text.is_empty() { from } else { (from..i).find(|k| !is_margin(self.words.at(*k))).unwrap_or(i) };
            if from < i {
                if !text.is_empty() {
                    text.push(' ');
                }
                text.push_str(self.words.text(from..i));
            }
        }
        text
    }

    /// Whether nothing but marks is left of a stretch.
    pub(crate) fn is_spent(&self, range: Range<usize>) -> bool {
        range.into_iter().all(|i| {
            self.is_taken(i) || !self.words.is_word(i) && !self.words.is_quoted(i) && is_margin(self.words.at(i))
        })
    }
}

/// Marks that are dropped at the ends of a title.
fn is_margin(mark: &str) -> bool {
    matches!(
        mark,
        "." | ","
            | "!"
            | "?"
            | ";"
            | ":"
            | "-"
            | "–"
            | "—"
            | "…"
            | "\n"
            | "*"
            | "•"
            | "\""
            | "'"
            | "“"
            | "”"
            | "‘"
            | "’"
            | "="
            | ">"
            | "~"
    )
}
