//! Removes words that the user corrects: "at 5, no, 6", "call John, I mean Joan".
//!
//! Rewrites the message, so that no other parser handles corrections.

use crate::courtesy;
use crate::lexicon;
use crate::numbers;
use crate::tokens::{TokenKind, TokenizedText};
use crate::vocabulary;

/// Returns the corrected message. Only the first marker such as "no" or "I mean" after the first token is applied. The
/// replaced words, the marker and the marks around it are removed. Returns `None` if there is no marker, or if it does
/// not replace any words. Then later markers are not tried.
pub(crate) fn apply(words: &TokenizedText) -> Option<String> {
    let (at, end, strong) = (1..words.len()).find_map(|i| find_marker(words, i))?;
    let before = trim_before(words, at);
    let right = skip_marks(words, end);
    let left = replaced_start(words, before, right, strong)?;
    let from = words.text(0..left);
    let rest = words.text(right..words.len());
    Some(format!("{from} {rest}"))
}

/// Returns the start and the end of the correction marker at `i`, and true if it is strong ("I mean", "make that"). A
/// weak marker ("no", "sorry", "wait") replaces only values and repeated words such as "the". A second marker after it
/// belongs to it: "no, wait"; it stays weak. "not" is not a marker. Returns `None` for other words.
fn find_marker(words: &TokenizedText, i: usize) -> Option<(usize, usize, bool)> {
    if let Some(n) = words.phrase(i, lexicon::corrections::STRONG) {
        return Some((i, i + n, true));
    }
    let n = words.phrase(i, lexicon::corrections::WEAK)?;
    let next = skip_marks(words, i + n);
    // "no , wait": a marker of two parts.
    let more = words
        .phrase(next, lexicon::corrections::STRONG)
        .or_else(|| words.phrase(next, lexicon::corrections::WEAK))
        .filter(|_| next < words.len());
    let end = more.map_or(i + n, |m| next + m);
    Some((i, end, false)).filter(|_| words.at(i) != "not")
}

/// Returns the end of the words before the marker at `at`. Leaves out commas, periods, semicolons, dashes, "…" and the
/// fillers "um", "uh", "oh" and "ah" directly before it. Can be 0.
fn trim_before(words: &TokenizedText, at: usize) -> usize {
    let mark = |i: usize| matches!(words.at(i), "," | "." | "-" | "–" | "—" | "…" | ";" | "um" | "uh" | "oh" | "ah");
    let mut end = at;
    while end > 0 && mark(end - 1) {
        end -= 1;
    }
    end
}

/// Returns the first token from `i` on that is not a mark or a filler such as "um".
fn skip_marks(words: &TokenizedText, i: usize) -> usize {
    let mark = |i: usize| matches!(words.at(i), "," | "." | "-" | "–" | "—" | "…" | "um" | "uh");
    (i..words.len()).find(|k| !mark(*k)).unwrap_or(words.len())
}

/// The kind of value that a correction replaces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CorrectedValueKind {
    Number,
    Day,
    Level,
}

/// Returns the kind of value at `i`: a day or month ("friday", "next"), a level ("high"), or a number. Numbers are
/// words that begin with a digit, number words below twenty, "noon" and "midnight". Returns `None` for other words.
fn value_kind(words: &TokenizedText, i: usize) -> Option<CorrectedValueKind> {
    let word = words.at(i);
    if words.is_one_of(i, lexicon::corrections::DAYS) {
        Some(CorrectedValueKind::Day)
    } else if words.is_one_of(i, lexicon::corrections::LEVELS) {
        Some(CorrectedValueKind::Level)
    } else {
        let figure = word.starts_with(|c: char| c.is_ascii_digit()) || numbers::small_number(word).is_some();
        (figure || matches!(word, "noon" | "midnight")).then_some(CorrectedValueKind::Number)
    }
}

/// Returns the start of the words that the correction replaces. `before` is the end of the words before the marker, and
/// `right` is the start of the new words. First tries a repeated lead within six tokens ("on … on", "the … the"). After
/// a weak marker, this lead must be "the", or a value must follow it. Then tries the last value of the same kind within
/// six tokens. Its preposition is replaced if the new value has one. For a strong marker, a name comes last, see
/// [`replaced_name_start`]. Returns `None` if nothing fits, and for a new value without an old one of its kind.
fn replaced_start(words: &TokenizedText, before: usize, right: usize, strong: bool) -> Option<usize> {
    if right >= words.len() || before == 0 {
        return None;
    }
    let near = before.saturating_sub(6)..before;
    let lead =
        usize::from(matches!(words.at(right), "at" | "on" | "by" | "to" | "for" | "in" | "the" | "number" | "#"));
    // "on Tuesday, sorry, on Wednesday": replaces from the repeated word.
    let first = words.at(right);
    let same = near.clone().rev().find(|i| words.at(*i) == first && lead == 1 && words.is_word(right + 1));
    if let Some(at) = same.filter(|_| strong || value_kind(words, right + 1).is_some() || first == "the") {
        return Some(at);
    }
    if let Some(kind) = value_kind(words, right + if lead == 1 && value_kind(words, right).is_none() { 1 } else { 0 }) {
        let at = near.rev().find(|i| value_kind(words, *i) == Some(kind))?;
        let led = lead == 1 && at > 0 && matches!(words.at(at - 1), "at" | "on" | "by" | "to" | "for" | "in");
        return Some(at - usize::from(led));
    }
    if !strong {
        return None;
    }
    replaced_name_start(words, before, right)
}

/// Returns the start of the replaced name. It has as many words as the new one: "call John, I mean Joan". The new name
/// ends before a mark, a preposition, "and" or a value. Articles do not count, and the old article is replaced if the
/// new name has one. Returns `None` if a command verb or a line break follows the marker. Also returns `None` if the
/// name would include the first word after courtesies.
fn replaced_name_start(words: &TokenizedText, before: usize, right: usize) -> Option<usize> {
    let ends = |i: usize| {
        words.kind(i) != Some(TokenKind::Word) && !words.is_quoted(i)
            || lexicon::corrections::VALUE_STOPS.contains(words.at(i))
            || value_kind(words, i).is_some()
    };
    let end = (right + 1..words.len()).find(|i| ends(*i)).unwrap_or(words.len());
    let start = courtesy::skip_opening(words, 0, words.len());
    if vocabulary::verb(words.at(right)).is_some() || words.kind(right) == Some(TokenKind::Break) {
        return None;
    }
    let article = usize::from(vocabulary::is_article(words.at(right)));
    let from = before.checked_sub((end - right - article).max(1)).filter(|from| *from > start)?;
    let own = from > start + 1 && vocabulary::is_article(words.at(from - 1)) && article == 1;
    Some(from - usize::from(own))
}

#[cfg(test)]
mod tests {
    use super::apply;
    use crate::tokens::TokenizedText;

    #[test]
    fn corrected_words_are_removed() {
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
            assert_eq!(apply(&TokenizedText::new(text)).as_deref(), Some(meant), "{text}");
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
            assert_eq!(apply(&TokenizedText::new(text)), None, "{text}");
        }
    }
}
