//! Slips of the tongue that the speaker mends: "at 5, no, 6", "call John, I mean Joan".
//!
//! The message is written anew without what was taken back, so that no reader has to know of it.

use crate::courtesy;
use crate::lexicon;
use crate::numbers;
use crate::tokens::{Kind, Words};
use crate::vocabulary;

/// The message as it was meant, if something in it is taken back.
pub(crate) fn read(words: &Words) -> Option<String> {
    let (at, end, strong) = (1..words.len()).find_map(|i| marker(words, i))?;
    let before = trimmed(words, at);
    let right = after_marks(words, end);
    let left = replaced(words, before, right, strong)?;
    let from = words.text(0..left);
    let rest = words.text(right..words.len());
    Some(format!("{from} {rest}"))
}

fn marker(words: &Words, i: usize) -> Option<(usize, usize, bool)> {
    if let Some(n) = words.phrase(i, lexicon::corrections::STRONG) {
        return Some((i, i + n, true));
    }
    let n = words.phrase(i, lexicon::corrections::WEAK)?;
    let next = after_marks(words, i + n);
    // "no , wait": the longer way to say it.
    let more = words
        .phrase(next, lexicon::corrections::STRONG)
        .or_else(|| words.phrase(next, lexicon::corrections::WEAK))
        .filter(|_| next < words.len());
    let end = more.map_or(i + n, |m| next + m);
    Some((i, end, false)).filter(|_| words.at(i) != "not")
}

/// Where the words before the marker end.
fn trimmed(words: &Words, at: usize) -> usize {
    let mark = |i: usize| matches!(words.at(i), "," | "." | "-" | "–" | "—" | "…" | ";" | "um" | "uh" | "oh" | "ah");
    let mut end = at;
    while end > 0 && mark(end - 1) {
        end -= 1;
    }
    end
}

fn after_marks(words: &Words, i: usize) -> usize {
    let mark = |i: usize| matches!(words.at(i), "," | "." | "-" | "–" | "—" | "…" | "um" | "uh");
    (i..words.len()).find(|k| !mark(*k)).unwrap_or(words.len())
}

/// What kind of thing a word stands for, as far as mending goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Number,
    Day,
    Level,
}

fn sort(words: &Words, i: usize) -> Option<Sort> {
    let word = words.at(i);
    if words.is_one_of(i, lexicon::corrections::DAYS) {
        Some(Sort::Day)
    } else if words.is_one_of(i, lexicon::corrections::LEVELS) {
        Some(Sort::Level)
    } else {
        let figure = word.starts_with(|c: char| c.is_ascii_digit()) || numbers::unit(word).is_some();
        (figure || matches!(word, "noon" | "midnight")).then_some(Sort::Number)
    }
}

/// Where the part that is taken back begins.
fn replaced(words: &Words, before: usize, right: usize, strong: bool) -> Option<usize> {
    if right >= words.len() || before == 0 {
        return None;
    }
    let near = before.saturating_sub(6)..before;
    let lead =
        usize::from(matches!(words.at(right), "at" | "on" | "by" | "to" | "for" | "in" | "the" | "number" | "#"));
    // "on Tuesday, sorry, on Wednesday": from the same word on.
    let first = words.at(right);
    let same = near.clone().rev().find(|i| words.at(*i) == first && lead == 1 && words.is_word(right + 1));
    if let Some(at) = same.filter(|_| strong || sort(words, right + 1).is_some() || first == "the") {
        return Some(at);
    }
    if let Some(kind) = sort(words, right + if lead == 1 && sort(words, right).is_none() { 1 } else { 0 }) {
        let at = near.rev().find(|i| sort(words, *i) == Some(kind))?;
        let led = lead == 1 && at > 0 && matches!(words.at(at - 1), "at" | "on" | "by" | "to" | "for" | "in");
        return Some(at - usize::from(led));
    }
    if !strong {
        return None;
    }
    named(words, before, right)
}

/// "call John, I mean Joan": as many words as the new name has.
fn named(words: &Words, before: usize, right: usize) -> Option<usize> {
    let ends = |i: usize| {
        words.kind(i) != Some(Kind::Word) && !words.is_quoted(i)
            || lexicon::corrections::VALUE_STOPS.contains(words.at(i))
            || sort(words, i).is_some()
    };
    let end = (right + 1..words.len()).find(|i| ends(*i)).unwrap_or(words.len());
    let start = courtesy::after(words, 0, words.len());
    if vocabulary::verb(words.at(right)).is_some() || words.kind(right) == Some(Kind::Break) {
        return None;
    }
    let article = usize::from(vocabulary::is_article(words.at(right)));
    let from = before.checked_sub((end - right - article).max(1)).filter(|from| *from > start)?;
    let own = from > start + 1 && vocabulary::is_article(words.at(from - 1)) && article == 1;
    Some(from - usize::from(own))
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::tokens::Words;

    #[test]
    fn what_was_taken_back_is_gone() {
        for (text, meant) in [
            ("remind me at 5 no wait 6 to call dad", "remind me at 6 to call dad"),
            ("remind me at 5, no, 6, to call dad", "remind me at 6, to call dad"),
            ("remind me on tuesday sorry wednesday to call", "remind me on wednesday to call"),
            ("remind me tomorrow, actually make that friday, to call", "remind me friday, to call"),
            ("call John, I mean Joan, at 2pm", "call Joan, at 2pm"),
            ("add buy milk, i mean bread", "add buy bread"),
            ("haircut for monday at 4, scratch that, 5 pm", "haircut for monday at 5 pm"),
            ("remove number 3 wait number 4", "remove number 4"),
            ("change it to low, actually medium priority", "change it to medium priority"),
            ("mark the milk, no the bread as done", "mark the bread as done"),
        ] {
            assert_eq!(read(&Words::new(text)).as_deref(), Some(meant), "{text}");
        }
    }

    #[test]
    fn other_words_stay() {
        for text in [
            "remind me to say sorry to Bob",
            "there are no eggs",
            "add no knead bread",
            "what I mean",
            "delete milk, no wait, delete bread",
            "wait for 5 minutes",
        ] {
            assert_eq!(read(&Words::new(text)), None, "{text}");
        }
    }
}
