//! Lists of tasks: "add these:" or "delete these:" and one task on each line, or one after each comma.

use std::ops::Range;

use crate::courtesy;
use crate::lexicon;
use crate::numbers;
use crate::reading::Intent;
use crate::tokens::{Kind, Words};
use crate::vocabulary::{self, Verb};

/// As many as anybody lists in one message.
const MOST: usize = 50;

/// What is to be done about each, and the stretches that each hold a title, if the text is such a list.
pub(crate) fn items(words: &Words) -> Option<(Intent, Vec<Range<usize>>)> {
    let start = courtesy::after(words, 0, words.len());
    let (intent, body) = heading(words, start)?;
    let broken = (body..words.len()).any(|i| words.kind(i) == Some(Kind::Break));
    let ends = |i: usize| {
        let mark = words.kind(i) == Some(Kind::Break);
        if broken {
            mark
        } else {
            matches!(words.at(i), "," | ";") || words.at(i) == "and" && words.at(i + 1) != "then"
        }
    };
    let mut items = Vec::new();
    let mut from = body;
    for i in (body..words.len()).filter(|i| ends(*i)).chain([words.len()]) {
        let range = after_bullet(words, from, i)..i;
        if (range.clone()).any(|k| words.is_word(k) || words.is_quoted(k)) {
            items.push(range);
        }
        from = i + 1;
    }
    (!items.is_empty() && items.len() <= MOST).then_some((intent, items))
}

/// "add these:", "create the following tasks:", "new tasks:": where the list begins.
fn heading(words: &Words, start: usize) -> Option<(Intent, usize)> {
    let word = words.at(start);
    let adds = matches!(vocabulary::verb(word), Some(Verb::Add)) || matches!(word, "create" | "make" | "put" | "new");
    let intent = match vocabulary::verb(word) {
        Some(Verb::Delete) => Intent::DeleteTask,
        Some(Verb::Complete) => Intent::CompleteTask,
        _ => Intent::CreateTask,
    };
    let adds = adds || intent != Intent::CreateTask;
    let verb = usize::from(adds);
    let lines = words.kind(start + 1) == Some(Kind::Break)
        || words.at(start + 1) == ":" && words.kind(start + 2) == Some(Kind::Break);
    let single =
        lines && matches!(word, "todo" | "to-do" | "reminders" | "shopping" | "groceries" | "errands" | "list");
    if single {
        return Some((Intent::CreateTask, start + 1));
    }
    let plain = lexicon::clauses::BARE_LIST_HEADINGS.contains(word);
    if !adds && !plain {
        return None;
    }
    let placed = intent == Intent::CreateTask && adds && matches!(words.at(start + 1), "to" | "on");
    let n = words
        .phrase(start + verb, lexicon::clauses::LIST_HEADINGS)
        .or_else(|| counted(words, start + verb))
        .or(placed.then_some(0))?;
    let end = start + verb + n;
    let list = (end..end + 6).find(|i| words.at(*i) == ":" || words.kind(*i) == Some(Kind::Break))?;
    (end..list).all(|i| lexicon::clauses::LIST_HEADING_LINKS.contains(words.at(i))).then_some((intent, list + 1))
}

/// "two tasks", "three new things": how many tokens it takes.
fn counted(words: &Words, i: usize) -> Option<usize> {
    let (_, n) = numbers::cardinal(words, i).filter(|(count, _)| (2..=20).contains(count))?;
    let new = n + usize::from(matches!(words.at(i + n), "new" | "more" | "other"));
    lexicon::clauses::COUNTED_THINGS.contains(words.at(i + new)).then_some(new + 1).or((new > n).then_some(new))
}

/// Whether a line that begins at `i` is one more of a list.
pub(crate) fn is_item(words: &Words, i: usize) -> bool {
    let line = i > 0 && words.kind(i - 1) == Some(Kind::Break);
    let bullet = line && matches!(words.at(i), "-" | "*" | "•" | "–" | "+") && words.is_word(i + 1);
    bullet || words.before(i) == ";" && words.len() - i < 40 && short(words, i)
}

/// "add milk; eggs; bread": a word or two after the mark, and no remark.
fn short(words: &Words, i: usize) -> bool {
    let first = courtesy::after(words, 0, words.len());
    let added = vocabulary::verb(words.at(first)) == Some(Verb::Add);
    let end = (i..i + 4).find(|k| words.at(*k) == ";" || *k >= words.len());
    added && end.is_some_and(|end| end > i) && !lexicon::clauses::REMARK_OPENERS.contains(words.at(i))
}

/// The first token behind a bullet or a number: "- milk", "2. eggs", "[ ] bread".
fn after_bullet(words: &Words, from: usize, to: usize) -> usize {
    let mut i = from;
    while i < to && !words.is_word(i) && !words.is_quoted(i) && words.at(i) != "#" && words.at(i) != "$" {
        i += 1;
    }
    // A box that is ticked: "[x] milk".
    if words.at(i) == "x" && words.before(i) == "[" && words.at(i + 1) == "]" {
        return (i + 2).min(to);
    }
    let number = words.at(i).len() <= 2 && words.at(i).bytes().all(|b| b.is_ascii_digit());
    let numbered = number && matches!(words.at(i + 1), "." | ")" | ":" | "-") && i + 2 < to;
    if numbered { i + 2 } else { i }
}
