//! What is said for politeness before and after a command: "hey, could you please …", "… thanks".

use crate::lexicon;
use crate::tokens::Words;
use crate::vocabulary;

/// The word with letters that are held ("pleeease") written once.
fn collapsed_is(word: &str, wanted: &str) -> bool {
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

#[inline]
pub(crate) fn is_please(word: &str) -> bool {
    matches!(word.as_bytes(), [b'p', b'l', ..] | [b'k', ..]) && asks(word)
}

fn asks(word: &str) -> bool {
    matches!(word, "pls" | "plz" | "kindly" | "plese" | "pleas" | "plase") || collapsed_is(word, "please")
}

/// The first token of `start..end` that is not a mark, a greeting or a courtesy.
pub(crate) fn after(words: &Words, start: usize, end: usize) -> usize {
    let mut i = start;
    // Nobody is as polite as that; the limit keeps the time linear where this is asked at every word.
    for _ in 0..12 {
        if i >= end {
            break;
        }
        if !words.is_word(i) && !words.is_quoted(i) || is_please(words.at(i)) {
            i += 1;
        } else if let Some(n) = opening(words, i).filter(|n| i + n <= end && !opening_is_content(words, i, *n, end)) {
            i += n;
        } else {
            break;
        }
    }
    i
}

fn opening(words: &Words, i: usize) -> Option<usize> {
    words.phrase(i, lexicon::courtesy::OPENINGS).max(words.phrase(i, lexicon::courtesy::SOFTENERS))
}

/// Openings that mean something by themselves: "I need a reminder", "next task", "list to …".
fn opening_is_content(words: &Words, i: usize, n: usize, end: usize) -> bool {
    match words.at(i) {
        "i" if n == 2 && words.at(i + 1) == "need" => !is_please(words.at(i + 2)),
        "yes" | "no" | "nope" => words.at(i + 1) != "," && (i + 2 >= end || !is_reply(words.at(i + 1))),
        "now" => words.at(i + 1) != ",",
        "next" | "first" | "finally" | "second" | "third" | "last" | "lastly" | "secondly" | "thirdly" | "firstly" => {
            words.at(i + 1) != "," && !is_command(words.at(i + 1))
        }
        "mind" | "why" => !words.at(i + n).ends_with("ing") && words.at(i) == "mind",
        "if" | "when" => i + n >= end || words.at(i + n) != "," && words.at(i) == "when",
        "to" => vocabulary::verb(words.at(i + 1)).is_none(),
        _ => i + n >= end,
    }
}

/// Verbs that open a command after "yes" or "no".
fn is_reply(word: &str) -> bool {
    lexicon::courtesy::REPLY_VERBS.contains(word) || is_command(word)
}

/// Verbs that open a command after "first", "second", "finally".
fn is_command(word: &str) -> bool {
    lexicon::courtesy::COMMAND_VERBS.contains(word)
}

/// Where `start..end` ends when courtesies and marks at its end are left out.
pub(crate) fn before(words: &Words, start: usize, end: usize) -> usize {
    let mut end = end;
    while end > start {
        let last = end - 1;
        if !words.is_word(last) && !words.is_quoted(last) && is_closing_mark(words.at(last))
            || is_please(words.at(last))
        {
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

fn is_closing_mark(mark: &str) -> bool {
    lexicon::courtesy::CLOSING_MARKS.contains(mark)
}
