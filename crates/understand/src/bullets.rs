//! Parses lists of tasks: "add these:" or "delete these:" with one task on each line, or separated by commas.

use std::ops::Range;

use crate::courtesy;
use crate::lexicon;
use crate::numbers;
use crate::parsed::Intent;
use crate::tokens::{TokenKind, TokenizedText};
use crate::vocabulary::{self, Verb};

/// The largest number of items in a list.
const MAX_ITEMS: usize = 50;

/// Returns the intent and the token ranges of the items. The heading must begin the text; only courtesies may precede
/// it. Line breaks after the heading separate the items. Without line breaks, commas, semicolons and "and" (not "and
/// then") separate them. Bullets and numbers are excluded, and items without a word or a quoted passage are left out.
/// Returns `None` if the text has no heading, no items, or more than [`MAX_ITEMS`].
pub(crate) fn parse_items(words: &TokenizedText) -> Option<(Intent, Vec<Range<usize>>)> {
    let start = courtesy::skip_opening(words, 0, words.len());
    if let Some(items) = parse_quoted_items(words, start) {
        return Some((Intent::CreateTask, items));
    }
    let (intent, body) = parse_heading(words, start)?;
    let broken = (body..words.len()).any(|i| words.kind(i) == Some(TokenKind::Break));
    let ends = |i: usize| {
        let mark = words.kind(i) == Some(TokenKind::Break);
        if broken {
            mark
        } else {
            matches!(words.at(i), "," | ";") || words.at(i) == "and" && words.at(i + 1) != "then"
        }
    };
    let mut items = Vec::new();
    let mut from = body;
    for i in (body..words.len()).filter(|i| ends(*i)).chain([words.len()]) {
        let range = skip_bullet(words, from, i)..i;
        if (range.clone()).any(|k| words.is_word(k) || words.is_quoted(k)) {
            items.push(range);
        }
        from = i + 1;
    }
    (!items.is_empty() && items.len() <= MAX_ITEMS).then_some((intent, items))
}

/// Returns the quoted titles of "add 'pay rent' and 'buy milk'", at least two. Only links may stand between them, and only
/// a list mention of up to four words after them. Returns `None` for other texts.
fn parse_quoted_items(words: &TokenizedText, start: usize) -> Option<Vec<Range<usize>>> {
    if !words.is_quoted(start + 1) && !words.is_quoted(start + 2) {
        return None;
    }
    let adds = vocabulary::verb(words.at(start)) == Some(Verb::Add) || matches!(words.at(start), "create" | "put");
    let first = start + 1 + usize::from(!words.is_quoted(start + 1));
    let link = |i: usize| matches!(words.at(i), "and" | "," | "&" | "plus");
    let last = (first..words.len()).take_while(|i| words.is_quoted(*i) || link(*i)).last()?;
    let titles: Vec<Range<usize>> = (first..=last).filter(|i| words.is_quoted(*i)).map(|i| i..i + 1).collect();
    let rest = last + 1..words.len();
    let listed = rest.is_empty()
        || rest.len() <= 4
            && matches!(words.at(rest.start), "to" | "on" | "onto" | "in")
            && words.at(words.len() - 1) == "list";
    let led = first == start + 1 || matches!(words.at(start + 1), "tasks" | "todos" | "both" | "the" | "task");
    (adds && led && listed && titles.len() > 1).then_some(titles)
}

/// Returns the intent and the start of the items after "add these:", "create the following tasks:", "new tasks:",
/// "delete these:". A verb of adding, deleting or completing, or "tasks", "todos" or "to-dos", must be at `start`.
/// After a verb, "these", "the following", "tasks", a counted noun ("three things") or, for new tasks, "to" or "on"
/// must follow. Then a colon or a line break must follow within six tokens, after small words such as "my list" only.
/// "todo", "shopping", "groceries" and similar words directly before a line break, or a colon and a line break, are
/// headings of new tasks, too. For these, the position of that mark is returned. Returns `None` otherwise.
fn parse_heading(words: &TokenizedText, start: usize) -> Option<(Intent, usize)> {
    let word = words.at(start);
    let adds = matches!(vocabulary::verb(word), Some(Verb::Add)) || matches!(word, "create" | "make" | "put" | "new");
    let intent = match vocabulary::verb(word) {
        Some(Verb::Delete) => Intent::DeleteTask,
        Some(Verb::Complete) => Intent::CompleteTask,
        _ => Intent::CreateTask,
    };
    let adds = adds || intent != Intent::CreateTask;
    let verb = usize::from(adds);
    let lines = words.kind(start + 1) == Some(TokenKind::Break)
        || words.at(start + 1) == ":" && words.kind(start + 2) == Some(TokenKind::Break);
    let single =
        lines && matches!(word, "todo" | "to-do" | "reminders" | "shopping" | "groceries" | "errands" | "list");
    if single {
        return Some((Intent::CreateTask, start + 1));
    }
    let plain = lexicon::clauses::BARE_LIST_HEADINGS.contains(word);
    // "delete:" above a list
    if adds && words.at(start + 1) == ":" && words.kind(start + 2) == Some(TokenKind::Break) {
        return Some((intent, start + 3));
    }
    // "I have to do 3 things: …", "3 tasks: …"
    let does = matches!(word, "do" | "have" | "got" | "remember");
    let counted = counted_length(words, start + usize::from(does)).map(|n| start + usize::from(does) + n);
    if let Some(end) = counted.filter(|_| !adds || does)
        && let Some(colon) = (end..end + 4).find(|i| words.at(*i) == ":")
        && (end..colon).all(|i| matches!(words.at(i), "to" | "do" | "for" | "me" | "today" | "tomorrow" | "please"))
    {
        return Some((Intent::CreateTask, colon + 1));
    }
    if !adds && !plain {
        return None;
    }
    let placed = intent == Intent::CreateTask && adds && matches!(words.at(start + 1), "to" | "on");
    let n = words
        .phrase(start + verb, lexicon::clauses::LIST_HEADINGS)
        .or_else(|| counted_length(words, start + verb))
        .or(placed.then_some(0))?;
    let end = start + verb + n;
    let list = (end..end + 6).find(|i| words.at(*i) == ":" || words.kind(*i) == Some(TokenKind::Break))?;
    (end..list).all(|i| lexicon::clauses::LIST_HEADING_LINKS.contains(words.at(i))).then_some((intent, list + 1))
}

/// Returns the number of tokens of "two tasks", "three new things", "two more". The number must be between 2 and 20.
/// Returns `None` for other words.
fn counted_length(words: &TokenizedText, i: usize) -> Option<usize> {
    let (_, n) = numbers::cardinal(words, i).filter(|(count, _)| (2..=20).contains(count))?;
    let new = n + usize::from(matches!(words.at(i + n), "new" | "more" | "other"));
    lexicon::clauses::COUNTED_THINGS.contains(words.at(i + new)).then_some(new + 1).or((new > n).then_some(new))
}

/// Returns true if a further item of a list begins at `i`. It is a line with a bullet and a word. Or it is a short item
/// after a semicolon ([`is_short_item`]), less than 40 tokens before the end of the text.
pub(crate) fn is_item(words: &TokenizedText, i: usize) -> bool {
    let line = i > 0 && words.kind(i - 1) == Some(TokenKind::Break);
    let bullet = line && matches!(words.at(i), "-" | "*" | "•" | "–" | "+") && words.is_word(i + 1);
    bullet || words.before(i) == ";" && words.len() - i < 40 && is_short_item(words, i)
}

/// Returns true for one to three tokens from `i` to the next semicolon or the end: "add milk; eggs; bread". The text
/// must begin with a verb of adding. Words that open a remark ("I", "thanks", "please") do not count.
fn is_short_item(words: &TokenizedText, i: usize) -> bool {
    let first = courtesy::skip_opening(words, 0, words.len());
    let added = vocabulary::verb(words.at(first)) == Some(Verb::Add);
    let end = (i..i + 4).find(|k| words.at(*k) == ";" || *k >= words.len());
    added && end.is_some_and(|end| end > i) && !lexicon::clauses::REMARK_OPENERS.contains(words.at(i))
}

/// Returns the first token of `from..to` after a bullet, a box or a number: "- milk", "2. eggs", "\[ \] bread", "\[x\]
/// milk". All marks are skipped, except "#" and "$". A number has up to two digits; one of ".", ")", ":", "-" and
/// further text must follow it. A quoted passage before such a mark and further text is skipped like a number. Returns
/// `to` if no word or quoted passage follows.
fn skip_bullet(words: &TokenizedText, from: usize, to: usize) -> usize {
    let mut i = from;
    while i < to && !words.is_word(i) && !words.is_quoted(i) && words.at(i) != "#" && words.at(i) != "$" {
        i += 1;
    }
    // A ticked box: "[x] milk".
    if words.at(i) == "x" && words.before(i) == "[" && words.at(i + 1) == "]" {
        return (i + 2).min(to);
    }
    let number = words.at(i).len() <= 2 && words.at(i).bytes().all(|b| b.is_ascii_digit());
    let numbered = number && matches!(words.at(i + 1), "." | ")" | ":" | "-") && i + 2 < to;
    if numbered { i + 2 } else { i }
}
