//! Tags that are said in words: "file it under taxes", "category: health", "a work task", "\[home\]".
//!
//! Nothing here takes a token: it says where the names begin, or what the name is and where it ends.

use crate::attributes;
use crate::clause::Clause;
use crate::lexicon::{self, Noun};
use crate::phrases::{Phrases, phrases};

/// Parts of a life that people sort their tasks by; beside a task they are a tag even where nothing else says so.
const COMMON: Phrases = phrases!(
    "work | home | personal | family | school | uni | university | college | office | errands | shopping | finance | \
     finances | financial | money | taxes | health | fitness | garden | gardening | house | household | chores | \
     travel | admin | hobby | hobbies | kids | pets | car | career | freelance | business | legal | private | study | \
     studies | marketing | sales | hr | wedding | volunteering | housework | maintenance | backend | frontend"
);

pub(crate) fn is_common(word: &str) -> bool {
    COMMON.contains(word)
}

pub(crate) const WORDS: Phrases = phrases!("tag | tags | label | labels | category | categories | hashtag | hashtags");

/// Words without one of which nothing here is found.
pub(crate) const SIGNS: Phrases = phrases!(
    "# | [ | @ | under | tag | tags | label | labels | category | categories | hashtag | hashtags | tagged | labelled | \
     labeled | categorised | categorized | classified | categorize | categorise | classify | it | this | as | it's"
);

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
    const IT: Phrases = phrases!(
        "tag it | label it | categorize it | categorise it | classify it | tag this | label this | tag that | \
         tag them | label them | tag this one | tagged | labelled | labeled | categorised | categorized | classified"
    );
    const BARE: Phrases = phrases!(
        "tag as | tag with | label as | label with | categorize as | categorise as | categorize under | \
         categorise under | classify as"
    );
    let n = clause.phrase(at, BARE).filter(|_| linked).or_else(|| clause.phrase(at, IT))?;
    let at = at + n;
    let at = at + clause.phrase(at, phrases!("with | as | under | in | to | into")).unwrap_or(0);
    Some(after_word(clause, at))
}

/// "file it under …", "put it under …", "it goes under …".
fn filed(clause: &Clause, at: usize) -> Option<usize> {
    const FILED: Phrases = phrases!(
        "file it under | file this under | file that under | put it under | put this under | store it under | \
         keep it under | stick it under | save it under | list it under | it goes under | goes under | \
         it belongs under | belongs under | filed under | this goes under | and under"
    );
    Some(after_word(clause, at + clause.phrase(at, FILED)?))
}

/// "mark it as health", "make it a work task": only what is plainly a tag.
fn marked(clause: &Clause, at: usize, linked: bool) -> Option<usize> {
    const MARKED: Phrases = phrases!(
        "mark it as | mark it | mark as | mark this as | make it | make this | set it as | it's | it is | this is | it's for | this is for"
    );
    let at = at + clause.phrase(at, MARKED).filter(|_| linked)?;
    let at = at + usize::from(lexicon::is_article(clause.at(at)));
    let alone = clause.is_spent(at + 1..clause.end) || matches!(clause.at(at + 1), "," | "and" | "." | ";");
    let noun = clause.noun_at(at + 1).is_some() || WORDS.contains(clause.at(at + 1));
    (is_common(clause.at(at)) && (alone || noun)).then_some(at)
}

/// "with the tags …", "use the label …", "category …"; without a word before it, only where a new remark is `open` or a
/// mark follows.
fn labelled(clause: &Clause, at: usize, open: bool) -> Option<usize> {
    const BEFORE: Phrases =
        phrases!("with | under | in | use | using | give it | give this | by | has | having | add | set | apply");
    let before = clause.phrase(at, BEFORE).filter(|_| open || !matches!(clause.at(at), "add" | "set" | "has"));
    let word = at + before.unwrap_or(0);
    let word = word + usize::from(lexicon::is_article(clause.at(word)) && before.is_some() || clause.at(word) == "the");
    if !WORDS.contains(clause.at(word)) {
        return None;
    }
    let names = after_word(clause, word);
    let marked = matches!(clause.at(word + 1), ":" | "=");
    let elsewhere = matches!(clause.at(names), "to" | "on" | "for" | "from" | "of" | "onto" | "in");
    ((before.is_some() || open || marked) && !elsewhere).then_some(names)
}

/// Skips "the tags:", "category =", "tags should be".
fn after_word(clause: &Clause, at: usize) -> usize {
    let article = at + usize::from(lexicon::is_article(clause.at(at)));
    if !WORDS.contains(clause.at(article)) {
        // "under my garden", "as 'home'".
        return article;
    }
    let said = phrases!(": | = | should be | is | are | of | called | named | as | to be | with");
    article + 1 + clause.phrase(article + 1, said).unwrap_or(0)
}

/// Whether the word at `at` can be the name of a tag.
pub(crate) fn is_name(clause: &Clause, at: usize) -> bool {
    const OTHERS: Phrases = phrases!(
        "note | notes | due | description | with | and | it | the | priority | to | on | for | a | an | details | \
         that | please | add | remind"
    );
    clause.words.is_quoted(at)
        || clause.words.is_word(at)
            && !OTHERS.contains(clause.at(at))
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
    const BEFORE: Phrases = phrases!("to | under | in | with | on | use | using | give it | add | for | into");
    let link = after_links(clause, i, to);
    let before = clause.phrase(link, BEFORE);
    let comma = matches!(clause.at(i), "," | "(" | "-" | "–" | "—" | ";" | ".");
    let at = link + before.unwrap_or(0);
    let at = at + usize::from(lexicon::is_article(clause.at(at)));
    if !is_name(clause, at) || before.is_none() && !comma {
        return None;
    }
    if matches!(clause.at(at + 1), "tag" | "label" | "category") && closed(at + 2) {
        return Some((name(clause, at), at + 2));
    }
    let filed = clause.at(clause.start) == "file";
    let under = clause.before(at) == "under" || clause.phrase(link, phrases!("under my | under the")).is_some();
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
    let small = |i: usize| lexicon::is_article(clause.at(i)) || matches!(clause.at(i), "new" | "me" | "up");
    let at = (from..clause.end).find(|i| !small(*i) && !clause.is_taken(*i))?;
    let noun = clause.noun_at(at + 1).filter(|noun| noun.noun == Noun::Task && !noun.plural)?;
    let told = !clause.is_spent(noun.end..clause.end) && clause.date_at(noun.end).is_none();
    (is_common(clause.at(at)) && at > from && told).then_some(at)
}
