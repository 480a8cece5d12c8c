//! Finds tags in words: "file it under taxes", "category: health", "a work task", "\[home\]".
//!
//! Functions here consume no tokens. They return the start of the names, or a name and its end.

use crate::attributes;
use crate::clause::Clause;
use crate::lexicon;
use crate::vocabulary::{self, Noun};

/// Returns true if the word is a common tag.
pub(crate) fn is_common_tag(word: &str) -> bool {
    lexicon::tags::COMMON.contains(word)
}

/// Returns the position after up to three links at `i`, such as a comma, "and" or "also". A remark about the task
/// follows them. Returns `i` if there are none, if four or more follow, or if they reach `to`.
fn skip_links(clause: &Clause, i: usize, to: usize) -> usize {
    let link = |k: &usize| {
        matches!(clause.at(*k), "," | ";" | "." | "and" | "-" | "–" | "—" | "(" | "then" | "also" | "please" | "just")
    };
    (i..to.min(i + 4)).find(|k| !link(k)).unwrap_or(i)
}

/// Returns the start of the tag names that the words at `i` introduce, after up to three links. Accepts "tag it with
/// …", "file it under …", "with the label …" and "tags: …". After a link, also "tag as …", "mark it as health", and a
/// bare "category …". A date or a quoted passage before `i` counts as a link for the last form. Returns `None` if they
/// introduce no names. The name itself is checked only after "mark it as", where it must be a common tag.
pub(crate) fn names_start(clause: &Clause, i: usize, to: usize) -> Option<usize> {
    let at = skip_links(clause, i, to);
    let linked = at > i;
    after_tag_verb(clause, at, linked)
        .or_else(|| after_file_under(clause, at))
        .or_else(|| after_mark_as(clause, at, linked))
        .or_else(|| {
            let open =
                linked || clause.date_at(i.saturating_sub(1)).is_some() || i > 0 && clause.words.is_quoted(i - 1);
            after_tag_noun(clause, at, open)
        })
}

/// Matches "tag it …", "tagged …", "label them …". "tag as …", "label with …" and "categorise under …" need a link
/// before them (`linked`). Returns the start of the names, after "with", "as" or "under" and a noun such as "the tags".
/// Returns `None` otherwise.
fn after_tag_verb(clause: &Clause, at: usize, linked: bool) -> Option<usize> {
    let n = clause
        .phrase(at, lexicon::tags::BARE_VERBS)
        .filter(|_| linked)
        .or_else(|| clause.phrase(at, lexicon::tags::TAG_IT))?;
    let at = at + n;
    let at = at + clause.phrase(at, lexicon::tags::VERB_LINKS).unwrap_or(0);
    Some(skip_tag_noun(clause, at))
}

/// Matches "file it under …", "put it under …", "it goes under …". Returns the start of the names.
fn after_file_under(clause: &Clause, at: usize) -> Option<usize> {
    Some(skip_tag_noun(clause, at + clause.phrase(at, lexicon::tags::FILE_UNDER)?))
}

/// Matches "mark it as health", "it's for work", "make it a work task" after a link (`linked`). Only common tags count.
/// The end, a comma, "and" or a noun must follow. Returns the position of the tag, or `None`.
fn after_mark_as(clause: &Clause, at: usize, linked: bool) -> Option<usize> {
    let at = at + clause.phrase(at, lexicon::tags::MARK_AS).filter(|_| linked)?;
    let at = at + usize::from(vocabulary::is_article(clause.at(at)));
    let alone = clause.is_exhausted(at + 1..clause.end) || matches!(clause.at(at + 1), "," | "and" | "." | ";");
    let noun = clause.noun_at(at + 1).is_some() || lexicon::tags::NOUNS.contains(clause.at(at + 1));
    (is_common_tag(clause.at(at)) && (alone || noun)).then_some(at)
}

/// Matches "with the tags …", "use the label …", "category …". A bare noun needs a new remark (`open`) or a colon or
/// "=" after it. A noun after "add", "set" or "has" needs a new remark. "to", "on", "for", "from" or "in" after the
/// noun prevents the match, because another task follows: "the tag on …". "of", "is", "called" and similar words after
/// the noun are skipped. Returns the start of the names, or `None`.
fn after_tag_noun(clause: &Clause, at: usize, open: bool) -> Option<usize> {
    let before = clause
        .phrase(at, lexicon::tags::NOUN_LEADS)
        .filter(|_| open || !matches!(clause.at(at), "add" | "set" | "has"));
    let word = at + before.unwrap_or(0);
    let word =
        word + usize::from(vocabulary::is_article(clause.at(word)) && before.is_some() || clause.at(word) == "the");
    if !lexicon::tags::NOUNS.contains(clause.at(word)) {
        return None;
    }
    let names = skip_tag_noun(clause, word);
    let marked = matches!(clause.at(word + 1), ":" | "=");
    let names_other_task = matches!(clause.at(names), "to" | "on" | "for" | "from" | "of" | "onto" | "in");
    ((before.is_some() || open || marked) && !names_other_task).then_some(names)
}

/// Skips "the tags:", "category =", "tags should be". Without such a noun, only an article is skipped.
fn skip_tag_noun(clause: &Clause, at: usize) -> usize {
    let article = at + usize::from(vocabulary::is_article(clause.at(at)));
    if !lexicon::tags::NOUNS.contains(clause.at(article)) {
        // "under my garden", "as 'home'"
        return article;
    }
    article + 1 + clause.phrase(article + 1, lexicon::tags::NAMING).unwrap_or(0)
}

/// Returns true if the token at `at` can be the name of a tag. It is a quoted passage, or a word that is no function
/// word, date, priority or field ("note", "due").
pub(crate) fn is_tag_name(clause: &Clause, at: usize) -> bool {
    clause.words.is_quoted(at)
        || clause.words.is_word(at)
            && !lexicon::tags::NOT_NAMES.contains(clause.at(at))
            && clause.date_at(at).is_none()
            && attributes::priority_at(clause, at).is_none()
}

/// Returns the tag name at `at`, without quotes.
pub(crate) fn tag_name(clause: &Clause, at: usize) -> String {
    let name = if clause.words.is_quoted(at) { clause.words.quoted_text(at) } else { clause.words.text(at..at + 1) };
    name.to_owned()
}

/// Returns a tag at the end of a phrase, and its end: "to the errands tag", ", freelance tag", "under errands",
/// "\[home\]", "@work". Except after "\[home\]", the end of the range, a comma, a semicolon, a full stop or "(" must
/// follow. "… tag" needs "to", "under", "with" or a similar word, or a mark before it. Only common tags count after
/// "@". After "under", other words count only if the clause begins with "file". A name in brackets has more than one
/// byte. Except after "@", the name must meet [`is_tag_name`]. Returns `None` otherwise.
pub(crate) fn closing_tag(clause: &Clause, i: usize, to: usize) -> Option<(String, usize)> {
    let closed = |end: usize| clause.is_exhausted(end..to) || matches!(clause.at(end), "," | ";" | "." | "(");
    if clause.at(i) == "[" && clause.words.at(i + 2) == "]" && is_tag_name(clause, i + 1) && clause.at(i + 1).len() > 1
    {
        return Some((tag_name(clause, i + 1), i + 3));
    }
    if clause.at(i) == "@" && clause.words.is_adjacent_to_next(i) && is_common_tag(clause.at(i + 1)) && closed(i + 2) {
        return Some((tag_name(clause, i + 1), i + 2));
    }
    let link = skip_links(clause, i, to);
    let before = clause.phrase(link, lexicon::tags::CLOSING_LEADS);
    let comma = matches!(clause.at(i), "," | "(" | "-" | "–" | "—" | ";" | ".");
    let at = link + before.unwrap_or(0);
    let at = at + usize::from(vocabulary::is_article(clause.at(at)));
    if !is_tag_name(clause, at) || before.is_none() && !comma {
        return None;
    }
    if matches!(clause.at(at + 1), "tag" | "label" | "category") && closed(at + 2) {
        return Some((tag_name(clause, at), at + 2));
    }
    let filed = clause.at(clause.start) == "file";
    let under = clause.before(at) == "under" || clause.phrase(link, lexicon::tags::CLOSING_POSSESSIVES).is_some();
    (under && (filed || is_common_tag(clause.at(at))) && closed(at + 1)).then(|| (tag_name(clause, at), at + 1))
}

/// Returns the tags before the clause in order: "#school sign the slip". They are outside of the clause and need not be
/// consumed. A "#" counts only directly before a word. Empty if there are none.
pub(crate) fn opening_tags(clause: &Clause) -> Vec<String> {
    let words = clause.words;
    let tag = |i: &usize| words.at(*i) == "#" && words.is_adjacent_to_next(*i) && words.is_word(i + 1);
    (clause.outer_start..clause.start.saturating_sub(1))
        .filter(tag)
        .map(|i| words.text(i + 1..i + 2).to_owned())
        .collect()
}

/// Returns the position of the tag in "a work task to …". `from` is the position after the command verb. It must be a
/// common tag directly before a singular task. At least one article, "new", "me" or consumed token must precede it. A
/// title, which does not begin with a date, must follow the noun. Returns `None` otherwise.
pub(crate) fn kind_tag(clause: &Clause, from: usize) -> Option<usize> {
    let small = |i: usize| vocabulary::is_article(clause.at(i)) || matches!(clause.at(i), "new" | "me" | "up");
    let at = (from..clause.end).find(|i| !small(*i) && !clause.is_consumed(*i))?;
    let noun = clause.noun_at(at + 1).filter(|noun| noun.noun == Noun::Task && !noun.plural)?;
    let has_title = !clause.is_exhausted(noun.end..clause.end) && clause.date_at(noun.end).is_none();
    (is_common_tag(clause.at(at)) && at > from && has_title).then_some(at)
}
