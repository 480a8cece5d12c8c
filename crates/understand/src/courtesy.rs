//! Skips polite words before and after a command: "hey, could you please …", "… thanks".

use crate::emoji;
use crate::lexicon;
use crate::tokens::TokenizedText;
use crate::vocabulary;

/// Returns true if the word equals `wanted`, where each letter may be repeated: "pleeease" for "please". The word must
/// contain all letters of `wanted` in order.
fn matches_stretched(word: &str, wanted: &str) -> bool {
    let mut rest = wanted.chars().peekable();
    let mut last = '\0';
    for c in word.chars() {
        if rest.peek() == Some(&c) {
            rest.next();
            last = c;
        } else if c != last {
            return false;
        }
    }
    rest.peek().is_none()
}

/// Returns true for spellings of "please".
#[inline]
pub(crate) fn is_please(word: &str) -> bool {
    matches!(word.as_bytes(), [b'p', b'l', ..] | [b'k', ..]) && is_please_word(word)
}

fn is_please_word(word: &str) -> bool {
    matches!(word, "pls" | "plz" | "kindly" | "plese" | "pleas" | "plase") || matches_stretched(word, "please")
}

/// Returns the first token of `start..end` that is not a mark, "please", a greeting or a courtesy ("can you"). Returns
/// `end` if there is none. Skips at most twelve of them, so one may remain. A greeting with a meaning of its own stays:
/// "no" before another word, "next task". A quoted passage is never skipped.
pub(crate) fn skip_opening(words: &TokenizedText, start: usize, end: usize) -> usize {
    let mut i = start;
    // The limit keeps the run time linear, because callers try every word.
    for _ in 0..12 {
        if i >= end {
            break;
        }
        if !words.is_word(i) && !words.is_quoted(i) || is_please(words.at(i)) {
            i += 1;
        } else if let Some(n) =
            opening_length(words, i).filter(|n| i + n <= end && !opening_is_content(words, i, *n, end))
        {
            i += n;
        } else {
            break;
        }
    }
    i
}

/// Returns the number of tokens of the longest greeting or courtesy at `i`, or `None`.
fn opening_length(words: &TokenizedText, i: usize) -> Option<usize> {
    words.phrase(i, lexicon::courtesy::OPENINGS).max(words.phrase(i, lexicon::courtesy::SOFTENERS))
}

/// Returns true if the opening of `n` tokens at `i` has a meaning and must stay. `end` is the end of the range. "I
/// need" stays except before "please". "yes", "no" and "nope" stay except before a comma, or before a command verb with
/// a further token. "now" stays except before a comma; "next", "first" and similar words also give way to a command
/// verb. "mind" stays except before a word in "ing", and "to" except before a command verb. "if …" and "when …" stay at
/// the end; "when …" also stays except before a comma. "why not" never stays. Other openings stay only if they end the
/// range.
fn opening_is_content(words: &TokenizedText, i: usize, n: usize, end: usize) -> bool {
    match words.at(i) {
        "i" if n == 2 && words.at(i + 1) == "need" => !is_please(words.at(i + 2)),
        "yes" | "no" | "nope" => words.at(i + 1) != "," && (i + 2 >= end || !is_reply_verb(words.at(i + 1))),
        "now" => words.at(i + 1) != ",",
        "next" | "first" | "finally" | "second" | "third" | "last" | "lastly" | "secondly" | "thirdly" | "firstly" => {
            words.at(i + 1) != "," && !is_command_verb(words.at(i + 1))
        }
        "mind" | "why" => !words.at(i + n).ends_with("ing") && words.at(i) == "mind",
        "if" | "when" => i + n >= end || words.at(i + n) != "," && words.at(i) == "when",
        "to" => vocabulary::verb(words.at(i + 1)).is_none(),
        _ => i + n >= end,
    }
}

/// Returns true for verbs that open a command after "yes" or "no".
fn is_reply_verb(word: &str) -> bool {
    lexicon::courtesy::REPLY_VERBS.contains(word) || is_command_verb(word)
}

/// Returns true for verbs that open a command after "first", "second", "finally".
fn is_command_verb(word: &str) -> bool {
    lexicon::courtesy::COMMAND_VERBS.contains(word)
}

/// Returns the end of `start..end` without courtesies ("thanks", "for me"), "please" and closing marks after it. These
/// are punctuation, line breaks, ")", "]", "*", "~" and emoji. A closing phrase at `start` stays, but marks and "please"
/// can leave an empty range. Opening brackets, other marks and an emoji that names a task ("complete 🎂") stay.
pub(crate) fn trim_closing(words: &TokenizedText, start: usize, end: usize) -> usize {
    let mut end = end;
    while end > start {
        let last = end - 1;
        let is_mark = !words.is_word(last) && !words.is_quoted(last) && is_closing_mark(words.at(last));
        if is_mark && !is_emoji_name(words, start, last) || is_please(words.at(last)) {
            end = last;
            continue;
        }
        let longest = (1..=4).rev().filter_map(|n| end.checked_sub(n)).filter(|from| *from > start);
        let cut = longest.into_iter().find(|from| words.phrase(*from, lexicon::courtesy::CLOSINGS) == Some(end - from));
        match cut {
            Some(from) => end = from,
            None => break,
        }
    }
    end
}

/// Returns true if the emoji at `i` is the only word after a command verb at `start`, as in "complete 🎂". Emoji that
/// are common at the end of a sentence name nothing.
fn is_emoji_name(words: &TokenizedText, start: usize, i: usize) -> bool {
    let mark = words.at(i);
    i == start + 1
        && is_command_verb(words.at(start))
        && emoji::is_emoji(mark)
        && !lexicon::courtesy::CLOSING_MARKS.contains(mark)
}

fn is_closing_mark(mark: &str) -> bool {
    lexicon::courtesy::CLOSING_MARKS.contains(mark) || !mark.is_ascii() && emoji::is_emoji(mark)
}
