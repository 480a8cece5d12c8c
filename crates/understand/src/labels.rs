//! Tags that are said in words: "file it under taxes", "category: health", "a work task", "\[home\]".
//!
//! Nothing here takes a token: it says where the names begin, or what the name is and where it ends.

use crate::attributes;
use crate::clause::Clause;
use crate::lexicon;
use crate::vocabulary::{self, Noun};

pub(crate) fn is_common(word: &str) -> bool {
    lexicon::tags::COMMON.contains(word)
}

/// What may stand between what was said before and a remark about the task.
fn after_links(clause: &Clause, i: usize, to: usize) -> usize {
    let link = |k: &usize| {
        matches!(clause.at(*k), "," | ";" | "." | "and" | "-" | "–" | "—" | "(" | "then" | "also" | "please" | "just")
    };
    (i..to.min(i + 4)).find(|k| !link(k)).unwrap_or(i)
}

/// Where the names of the tags begin that the words at `i` lead to: "tag it with …", "under the label …", "tags: …".
pub(crate) fn lead(clause: &Clause, i: usize, to: usize) -> Option<usize> {
    let at = after_links(clause, i, to);
    let linked = at > i;
    told(clause, at, linked).or_else(|| filed(clause, at)).or_else(|| marked(clause, at, linked)).or_else(|| {
        let open = linked || clause.date_at(i.saturating_sub(1)).is_some() || i > 0 && clause.words.is_quoted(i - 1);
        labelled(clause, at, open)
    })
}

/// "tag it …", "tagged …", "categorise as …".
fn told(clause: &Clause, at: usize, linked: bool) -> Option<usize> {
    let n = clause
        .phrase(at, lexicon::tags::BARE_VERBS)
        .filter(|_| linked)
        .or_else(|| clause.phrase(at, lexicon::tags::TAG_IT))?;
    let at = at + n;
    let at = at + clause.phrase(at, lexicon::tags::VERB_LINKS).unwrap_or(0);
    Some(after_word(clause, at))
}

/// "file it under …", "put it under …", "it goes under …".
fn filed(clause: &Clause, at: usize) -> Option<usize> {
    Some(after_word(clause, at + clause.phrase(at, lexicon::tags::FILE_UNDER)?))
}

/// "mark it as health", "make it a work task": only what is plainly a tag.
fn marked(clause: &Clause, at: usize, linked: bool) -> Option<usize> {
    let at = at + clause.phrase(at, lexicon::tags::MARK_AS).filter(|_| linked)?;
    let at = at + usize::from(vocabulary::is_article(clause.at(at)));
    let alone = clause.is_spent(at + 1..clause.end) || matches!(clause.at(at + 1), "," | "and" | "." | ";");
    let noun = clause.noun_at(at + 1).is_some() || lexicon::tags::NOUNS.contains(clause.at(at + 1));
    (is_common(clause.at(at)) && (alone || noun)).then_some(at)
}

/// "with the tags …", "use the label …", "category …"; without a word before it, only where a new remark is `open` or a
/// mark follows.
fn labelled(clause: &Clause, at: usize, open: bool) -> Option<usize> {
    let before = clause
        .phrase(at, lexicon::tags::NOUN_LEADS)
        .filter(|_| open || !matches!(clause.at(at), "add" | "set" | "has"));
    let word = at + before.unwrap_or(0);
    let word =
        word + usize::from(vocabulary::is_article(clause.at(word)) && before.is_some() || clause.at(word) == "the");
    if !lexicon::tags::NOUNS.contains(clause.at(word)) {
        return None;
    }
    let names = after_word(clause, word);
    let marked = matches!(clause.at(word + 1), ":" | "=");
    let elsewhere = matches!(clause.at(names), "to" | "on" | "for" | "from" | "of" | "onto" | "in");
    ((before.is_some() || open || marked) && !elsewhere).then_some(names)
}

/// Skips "the tags:", "category =", "tags should be".
fn after_word(clause: &Clause, at: usize) -> usize {
    let article = at + usize::from(vocabulary::is_article(clause.at(at)));
    if !lexicon::tags::NOUNS.contains(clause.at(article)) {
        // "under my garden", "as 'home'".
        return article;
    }
    article + 1 + clause.phrase(article + 1, lexicon::tags::NAMING).unwrap_or(0)
}

/// Whether the word at `at` can be the name of a tag.
pub(crate) fn is_name(clause: &Clause, at: usize) -> bool {
    clause.words.is_quoted(at)
        || clause.words.is_word(at)
            && !lexicon::tags::NOT_NAMES.contains(clause.at(at))
            && clause.date_at(at).is_none()
            && attributes::priority_at(clause, at).is_none()
}

pub(crate) fn name(clause: &Clause, at: usize) -> String {
    let name = if clause.words.is_quoted(at) { clause.words.inside(at) } else { clause.words.text(at..at + 1) };
    name.to_owned()
}

/// A tag that ends what is said: "to the errands tag", ", freelance tag", "under errands", "\[home\]", "@work". The name
/// and where it ends.
pub(crate) fn closing(clause: &Clause, i: usize, to: usize) -> Option<(String, usize)> {
    let closed = |end: usize| clause.is_spent(end..to) || matches!(clause.at(end), "," | ";" | "." | "(");
    if clause.at(i) == "[" && clause.words.at(i + 2) == "]" && is_name(clause, i + 1) && clause.at(i + 1).len() > 1 {
        return Some((name(clause, i + 1), i + 3));
    }
    if clause.at(i) == "@" && clause.words.touches_next(i) && is_common(clause.at(i + 1)) && closed(i + 2) {
        return Some((name(clause, i + 1), i + 2));
    }
    let link = after_links(clause, i, to);
    let before = clause.phrase(link, lexicon::tags::CLOSING_LEADS);
    let comma = matches!(clause.at(i), "," | "(" | "-" | "–" | "—" | ";" | ".");
    let at = link + before.unwrap_or(0);
    let at = at + usize::from(vocabulary::is_article(clause.at(at)));
    if !is_name(clause, at) || before.is_none() && !comma {
        return None;
    }
    if matches!(clause.at(at + 1), "tag" | "label" | "category") && closed(at + 2) {
        return Some((name(clause, at), at + 2));
    }
    let filed = clause.at(clause.start) == "file";
    let under = clause.before(at) == "under" || clause.phrase(link, lexicon::tags::CLOSING_POSSESSIVES).is_some();
    (under && (filed || is_common(clause.at(at))) && closed(at + 1)).then(|| (name(clause, at), at + 1))
}

/// "#school sign the slip": the tags that stand before the clause.
pub(crate) fn opening(clause: &Clause) -> Vec<String> {
    let words = clause.words;
    let tag = |i: &usize| words.at(*i) == "#" && words.touches_next(*i) && words.is_word(i + 1);
    (clause.opening..clause.start.saturating_sub(1)).filter(tag).map(|i| words.text(i + 1..i + 2).to_owned()).collect()
}

/// "a work task to …": where the name stands that says which kind of task it is.
pub(crate) fn kind(clause: &Clause, from: usize) -> Option<usize> {
    let small = |i: usize| vocabulary::is_article(clause.at(i)) || matches!(clause.at(i), "new" | "me" | "up");
    let at = (from..clause.end).find(|i| !small(*i) && !clause.is_taken(*i))?;
    let noun = clause.noun_at(at + 1).filter(|noun| noun.noun == Noun::Task && !noun.plural)?;
    let told = !clause.is_spent(noun.end..clause.end) && clause.date_at(noun.end).is_none();
    (is_common(clause.at(at)) && at > from && told).then_some(at)
}
