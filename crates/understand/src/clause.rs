//! The tokens of one command in an utterance, and the ones that a rule has consumed.
//!
//! Rules consume dates, tags and courtesies. The remaining tokens form a title or a reference.

use std::ops::Range;

use jiff::Zoned;

use crate::courtesy;
use crate::date_names;
use crate::dates::{self, DateMatch, DateScan};
use crate::lexicon;
use crate::phrases::{Phrases, WordBits};
use crate::scope;
use crate::tokens::TokenizedText;
use crate::vocabulary::{self, Noun};

/// One clause of an utterance.
#[derive(Clone)]
pub(crate) struct Clause<'a> {
    pub(crate) words: &'a TokenizedText<'a>,
    /// The range excludes courtesies at both ends.
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) now: &'a Zoned,
    /// The date expressions in order, without those that are part of a name. They never overlap.
    pub(crate) dates: Vec<DateMatch>,
    nouns: Vec<NounMention>,
    /// True if the clause contains a word of another domain. Always false if the text assumes tasks.
    has_other_domain: bool,
    /// True if the clause contains a word for a plan: a meeting, a game. Always false if the text assumes tasks.
    has_plan: bool,
    /// True if a date is part of a name: "saturday match".
    pub(crate) has_date_name: bool,
    /// True if the clause contains a question mark, or one follows it. A mark directly before another token counts only
    /// at the end.
    pub(crate) is_question: bool,
    /// The start including the courtesies before the clause.
    pub(crate) outer_start: usize,
    /// One flag for each token of `start..end`.
    consumed: Vec<bool>,
    /// The words of the clause and around it. Rejects most phrases without a search.
    bits: WordBits,
}

/// A word for a task, a reminder or a list, with its position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NounMention {
    /// The first token.
    pub(crate) at: usize,
    /// The token after the last one.
    pub(crate) end: usize,
    pub(crate) noun: Noun,
    pub(crate) plural: bool,
}

impl<'a> Clause<'a> {
    /// Analyses a range of tokens. Excludes courtesies and tags before the clause, and courtesies and marks after it.
    /// Finds dates, except those that are part of a name, and nouns. Consumes every "please". A word of another domain
    /// or a plan is recorded unless the text assumes tasks. A question mark directly after the range also makes a
    /// question.
    pub(crate) fn new(words: &'a TokenizedText<'a>, range: Range<usize>, now: &'a Zoned) -> Self {
        let start = courtesy::skip_opening(words, range.start, range.end);
        let start = skip_tags(words, start, range.end);
        let end = courtesy::trim_closing(words, start, range.end);
        let mut consumed = vec![false; end - start];
        for (slot, i) in consumed.iter_mut().zip(start..end) {
            *slot = courtesy::is_please(words.at(i));
        }
        let mut dates = dates::find(DateScan { words, start, end, now });
        let all = dates.len();
        dates.retain(|found| !date_names::is_part_of_name(words, start..end, found));
        let has_date_name = dates.len() < all;
        let has_other_domain =
            !words.assume_tasks && (start..end).any(|i| words.is_one_of(i, lexicon::scope::OTHER_DOMAINS));
        let outer_start = range.start;
        let bits = words.word_bits(outer_start..words.len().min(range.end + 1));
        let plans = !words.assume_tasks && lexicon::scope::PLANS.may_occur_in(&bits);
        let has_plan = plans && (start..end).any(|i| words.is_one_of(i, lexicon::scope::PLANS));
        let is_question = lexicon::grammar::QUESTION_MARK.may_occur_in(&bits)
            && (start..=range.end).any(|i| words.at(i) == "?" && (!words.is_adjacent_to_next(i) || i >= end));
        let mut clause = Self {
            words,
            start,
            end,
            now,
            dates,
            nouns: Vec::new(),
            has_other_domain,
            has_plan,
            has_date_name,
            is_question,
            outer_start,
            consumed,
            bits,
        };
        clause.nouns = clause.find_nouns();
        clause
    }

    /// Returns the nouns for tasks, reminders and lists in order. They never overlap. Nouns that do not refer to tasks
    /// are left out, see [`Self::is_not_task_noun`].
    fn find_nouns(&self) -> Vec<NounMention> {
        let mut nouns = Vec::new();
        let mut i = self.start;
        while i < self.end {
            let found = vocabulary::noun(self.words, i).filter(|_| !self.is_not_task_noun(i));
            i = match found {
                Some((noun, len, plural)) => {
                    nouns.push(NounMention { at: i, end: i + len, noun, plural });
                    i + len
                }
                None => i + 1,
            };
        }
        nouns
    }

    /// Returns true if the noun at `i` does not refer to tasks. These are the name of a tag ("#list"), "alert me" and
    /// "alert us". "list" and "alert" at the start before another word are verbs ("list my tasks"), except before "of".
    /// Alerts and notifications do not count in a clause about public warnings.
    fn is_not_task_noun(&self, i: usize) -> bool {
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

    /// Returns the word at `i`. It is empty after the end of the clause and for a quoted passage. Tokens before the
    /// start are returned.
    pub(crate) fn at(&self, i: usize) -> &'a str {
        if i < self.end { self.words.at(i) } else { "" }
    }

    /// Returns the word before `i`. It is empty at the start of the clause and after a quoted passage.
    pub(crate) fn before(&self, i: usize) -> &'a str {
        if i > self.start { self.words.before(i) } else { "" }
    }

    /// Returns the number of tokens of the longest phrase at `i`. Returns `None` if no phrase matches, or if the
    /// longest one exceeds the clause.
    pub(crate) fn phrase(&self, i: usize, phrases: Phrases) -> Option<usize> {
        self.words.phrase(i, phrases).filter(|n| i + n <= self.end)
    }

    /// Marks tokens as consumed. They are excluded from titles and references. Ignores tokens outside of the clause.
    pub(crate) fn consume(&mut self, range: Range<usize>) {
        for i in range {
            if let Some(slot) = i.checked_sub(self.start).and_then(|i| self.consumed.get_mut(i)) {
                *slot = true;
            }
        }
    }

    /// Returns true if the token is consumed or outside of the clause.
    pub(crate) fn is_consumed(&self, i: usize) -> bool {
        i.checked_sub(self.start).and_then(|i| self.consumed.get(i)).copied().unwrap_or(true)
    }

    /// Returns the date expression that covers token `i`.
    pub(crate) fn date_at(&self, i: usize) -> Option<&DateMatch> {
        let after = self.dates.partition_point(|found| found.tokens.end <= i);
        self.dates.get(after).filter(|found| found.tokens.contains(&i))
    }

    /// Returns a copy that takes words of other domains, and plans, for names of tasks.
    pub(crate) fn assuming_tasks(&self) -> Self {
        Self { has_other_domain: false, has_plan: false, ..self.clone() }
    }

    /// Returns true if the first date covers the whole clause.
    pub(crate) fn is_only_date(&self) -> bool {
        self.dates.first().is_some_and(|found| found.tokens.len() >= self.end - self.start)
    }

    /// Returns true if the clause begins the utterance and no word follows it.
    pub(crate) fn is_entire_utterance(&self) -> bool {
        self.outer_start == 0 && (self.end..self.words.len()).all(|i| !self.words.is_word(i))
    }

    /// Returns true if the clause contains a word for a task, a reminder or a list.
    pub(crate) fn has_noun(&self) -> bool {
        !self.nouns.is_empty()
    }

    /// Returns true if the clause contains a word of another domain or a plan, and no word for a task.
    pub(crate) fn is_out_of_scope(&self) -> bool {
        (self.has_other_domain || self.has_plan) && self.nouns.is_empty()
    }

    /// Returns true if the clause contains a word of another domain and no word for a task. Ignores plans, because a
    /// plan may be a task: "cancel the dentist appointment".
    pub(crate) fn is_other_domain(&self) -> bool {
        self.has_other_domain && self.nouns.is_empty()
    }

    /// Returns the noun that begins at `i`.
    pub(crate) fn noun_at(&self, i: usize) -> Option<NounMention> {
        self.nouns_from(i).first().filter(|noun| noun.at == i).copied()
    }

    /// Returns the first noun that begins in the range.
    pub(crate) fn noun_in(&self, range: Range<usize>) -> Option<NounMention> {
        self.nouns_from(range.start).first().filter(|noun| noun.at < range.end).copied()
    }

    /// Yields the nouns that begin in the range.
    pub(crate) fn nouns_in(&self, range: Range<usize>) -> impl Iterator<Item = NounMention> {
        self.nouns_from(range.start).iter().take_while(move |noun| noun.at < range.end).copied()
    }

    /// Returns the nouns that begin at `i` or later. Uses a binary search, because long texts have many nouns.
    fn nouns_from(&self, i: usize) -> &[NounMention] {
        let first = self.nouns.partition_point(|noun| noun.at < i);
        self.nouns.get(first..).unwrap_or_default()
    }

    /// Returns the position and the length of the first phrase at or after `from`. It ends inside of the clause.
    pub(crate) fn find_phrase(&self, from: usize, phrases: Phrases) -> Option<(usize, usize)> {
        if !phrases.may_occur_in(&self.bits) {
            return None;
        }
        (from..self.end).find_map(|i| self.phrase(i, phrases).map(|n| (i, n)))
    }

    /// Returns true if one of the phrases occurs in the clause.
    pub(crate) fn has(&self, phrases: Phrases) -> bool {
        self.find_phrase(self.start, phrases).is_some()
    }

    /// Returns the tokens of a range that are not consumed, in their original spelling. Consumed tokens and the marks
    /// of [`is_trimmed_mark`] are trimmed at both ends; brackets and other signs stay. Consumed tokens in between
    /// become one space, and such marks directly after them are dropped. A single quoted passage loses its quotes and
    /// the white space inside of them. It is returned even if it is consumed, and trimming stops at a quoted passage.
    /// The range is cut at the end of the clause. The text is empty if nothing remains.
    pub(crate) fn remaining_text(&self, range: Range<usize>) -> String {
        let mut range = range.start..range.end.min(self.end);
        while !range.is_empty() && self.is_skipped(range.start) {
            range.start += 1;
        }
        while !range.is_empty() && self.is_skipped(range.end - 1) {
            range.end -= 1;
        }
        if range.len() == 1 && self.words.is_quoted(range.start) {
            return self.words.quoted_text(range.start).to_owned();
        }
        let mut text = String::new();
        let mut i = range.start;
        while i < range.end {
            let mut from = i;
            while i < range.end && !self.is_consumed(i) {
                i += 1;
            }
            // Drop the comma that remains next to a consumed date.
            while !text.is_empty() && from < i && self.is_skipped(from) {
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

    /// Returns true for consumed tokens and for marks that are trimmed. Quoted passages are never skipped.
    fn is_skipped(&self, i: usize) -> bool {
        !self.words.is_quoted(i) && (self.is_consumed(i) || is_trimmed_mark(self.words.at(i)))
    }

    /// Returns true if the range contains only consumed tokens and trimmed marks. Tokens outside of the clause count as
    /// consumed. True for an empty range.
    pub(crate) fn is_exhausted(&self, range: Range<usize>) -> bool {
        range.into_iter().all(|i| self.is_consumed(i) || self.is_skipped(i))
    }
}

/// Returns the position after the tags before the clause: "#school sign the slip". Also skips courtesies after each
/// tag. Returns `start` if no "#" directly precedes it. A name that does not begin with a letter, and a tag without
/// words after it, stay.
fn skip_tags(words: &TokenizedText, start: usize, end: usize) -> usize {
    let mut start = start;
    while words.before(start) == "#"
        && words.is_adjacent_to_next(start - 1)
        && words.at(start).starts_with(char::is_alphabetic)
        && courtesy::skip_opening(words, start + 1, end) < end
    {
        start = courtesy::skip_opening(words, start + 1, end);
    }
    start
}

/// Returns true for marks that are trimmed from both ends of a title.
fn is_trimmed_mark(mark: &str) -> bool {
    mark.len() <= 3 && ".,!?;:-–—…\n*•\"'“”‘’=>~".contains(mark) && !mark.is_empty()
}
