//! Parses the attributes of a task next to its title: priority, tags, description. Consumes their tokens.

use std::ops::Range;

use model::task::Priority;

use crate::clause::Clause;
use crate::description_phrases;
use crate::intent;
use crate::lexicon;
use crate::phrases::{PhraseMap, Phrases, phrase_map};
use crate::tag_phrases;
use crate::vocabulary;

/// Phrases such as "urgent", "high priority", "low prio", "asap". A trailing "!!" is not a priority.
const PRIORITIES: &[(Priority, Phrases)] = &[
    (Priority::High, lexicon::priority::HIGH),
    (Priority::Low, lexicon::priority::LOW),
    (Priority::Medium, lexicon::priority::MEDIUM),
];

const PRIORITY_PHRASES: PhraseMap<Priority> = phrase_map!(Priority, PRIORITIES);

/// Returns the priority at token `i`, and its number of tokens.
pub(crate) fn priority_at(clause: &Clause, i: usize) -> Option<(Priority, usize)> {
    PRIORITY_PHRASES.phrase(clause.words, i).filter(|(_, n)| i + n <= clause.end)
}

/// Returns the priority that a single lower-case word names after "to" or "as": "to high", "as urgent". Accepts "high",
/// "top", "important", "critical", "medium", "normal", "default", "low", "minor" and similar words. Does not check the
/// words around it. Returns `None` for any other word.
pub(crate) fn priority_level(word: &str) -> Option<Priority> {
    Some(match word {
        "high" | "higher" | "highest" | "top" | "urgent" | "important" | "critical" => Priority::High,
        "medium" | "normal" | "standard" | "default" => Priority::Medium,
        "low" | "lower" | "lowest" | "minor" => Priority::Low,
        _ => return None,
    })
}

/// Returns the start of the first priority at or after `from` that ends the clause, and the priority. Only consumed
/// tokens and marks may follow. Returns `None` if no priority ends the clause.
pub(crate) fn closing_priority(clause: &Clause, from: usize) -> Option<(usize, Priority)> {
    (from..clause.end).find_map(|i| {
        let (priority, n) = priority_at(clause, i)?;
        clause.is_exhausted(i + n..clause.end).then_some((i, priority))
    })
}

/// Consumes the first priority in `from..to` that cannot be part of a title, and returns it. This is a phrase of
/// several words, "asap" or "urgently". A single word counts before "because", a comma, ")" or "-", or if only consumed
/// tokens and marks follow it in the range. At the start, also after "a new" and similar words, it must precede a noun
/// for a task, a colon or an activity. "and it's really" and similar words before it are consumed, too. Ignores
/// consumed tokens and quoted passages. Returns `None` and consumes nothing if there is none.
pub(crate) fn consume_priority(clause: &mut Clause, from: usize, to: usize) -> Option<Priority> {
    for i in from..to {
        if clause.is_consumed(i) || clause.words.is_quoted(i) {
            continue;
        }
        let Some((priority, n)) = priority_at(clause, i) else { continue };
        let compound = n > 1 || matches!(clause.at(i), "asap" | "urgently");
        let first = is_opening(clause, from..i) && precedes_task(clause, i + n);
        let last = clause.is_exhausted(i + n..to) || closes_clause(clause.at(i + n));
        if compound || first || last {
            clause.consume(lead_start(clause, from, i)..i + n);
            return Some(priority);
        }
    }
    None
}

/// Returns the start of "and it's really" and similar words before the priority at `i`, at or after `from`. A copula
/// ("it's", "make it") must begin within five tokens before `i`, with only fillers and consumed tokens after it. "and",
/// commas, "(", semicolons and dashes before it count, also without a copula. Fillers without a copula do not count.
/// Returns `i` if there are none.
fn lead_start(clause: &Clause, from: usize, i: usize) -> usize {
    // "this is super", but not "what it is": the copula must refer to the task.
    let said = (from..i).rev().take(5).find(|k| {
        clause.phrase(*k, lexicon::priority::COPULAS).is_some_and(|n| {
            (k + n..i).all(|m| lexicon::priority::LEADS.contains(clause.at(m)) || clause.is_consumed(m))
        })
    });
    let mut start = said.unwrap_or(i);
    while start > from && matches!(clause.at(start - 1), "and" | "," | "(" | ";" | "-" | "–" | "—") {
        start -= 1;
    }
    start
}

/// Returns true if only "a new" and similar words precede the priority.
fn is_opening(clause: &Clause, range: Range<usize>) -> bool {
    let small = |i: usize| vocabulary::is_article(clause.at(i)) || matches!(clause.at(i), "new" | "me" | "up");
    range.into_iter().all(|i| small(i) || clause.is_exhausted(i..i + 1))
}

/// Returns true for "urgent task …", "urgent: …", "urgent pay rent". Not "urgent care visit".
fn precedes_task(clause: &Clause, i: usize) -> bool {
    let i = i + usize::from(clause.at(i) == "new");
    clause.noun_at(i).is_some() || clause.at(i) == ":" || intent::is_activity(clause, i)
}

fn closes_clause(word: &str) -> bool {
    matches!(word, "because" | "," | ")" | "-")
}

/// Consumes "#work", "tagged work", "with tag work and home", "tags: a, b", "under errands", "\[home\]" in `from..to`.
/// Returns the names in order, in their original spelling and with duplicates, or an empty list. Only "#work" may begin
/// at `from`. "with", "tag" and similar words before "#work" are consumed, too. "#2" is a position and stays.
pub(crate) fn consume_tags(clause: &mut Clause, from: usize, to: usize) -> Vec<String> {
    let mut tags = Vec::new();
    let mut i = if clause.has(lexicon::tags::SIGNS) { from } else { to };
    while i < to {
        if is_hash(clause, i) {
            let lead = lexicon::tags::LEADS.contains(clause.before(i));
            tags.push(clause.words.text(i + 1..i + 2).to_owned());
            clause.consume(i - usize::from(lead && i > from)..i + 2);
            i += 2;
        } else if let Some((name, end)) = tag_phrases::closing_tag(clause, i, to).filter(|_| i > from) {
            tags.push(name);
            clause.consume(i..end);
            i = end;
        } else if let Some(start) = tag_phrases::names_start(clause, i, to).filter(|start| i > from && *start < to) {
            i = consume_tag_list(clause, i, start, to, &mut tags);
        } else {
            i += 1;
        }
    }
    tags
}

/// Returns true for a "#" directly before a word that does not begin with a digit: "#2" is a position.
fn is_hash(clause: &Clause, i: usize) -> bool {
    clause.at(i) == "#"
        && clause.words.is_word(i + 1)
        && clause.words.is_adjacent_to_next(i)
        && clause.at(i + 1).starts_with(|c: char| !c.is_ascii_digit())
}

/// Consumes the words from `lead` on and the names from `start` on: "work", "work and home", "a, b". Adds the names to
/// `tags`. A further name must begin with "#", or a link, a date, a mark or the end must follow it. In "tag it work and
/// call mom", "call" is no tag. A noun such as "tags" or "task" after the names is consumed, too, unless a colon or "="
/// follows it. Returns the next position, after `lead`. Consumes nothing if no name begins at `start`.
fn consume_tag_list(clause: &mut Clause, lead: usize, start: usize, to: usize, tags: &mut Vec<String>) -> usize {
    let hash = |i: usize| i + usize::from(clause.at(i) == "#");
    let link = |i: usize| matches!(clause.at(i), "and" | "," | "&" | "or" | "+" | "/");
    let mut end = start;
    let mut i = start;
    while i < to && tag_phrases::is_tag_name(clause, hash(i)) {
        tags.push(tag_phrases::tag_name(clause, hash(i)));
        end = hash(i) + 1;
        // In "tag it work and call mom", "call mom" is not a tag.
        let next = end + 1 + usize::from(clause.at(end) == "," && clause.at(end + 1) == "and");
        let after = hash(next) + 1;
        let closes = link(after) || clause.is_exhausted(after..after + 1) || clause.date_at(after).is_some();
        let goes_on = link(end) && next < to && (clause.at(next) == "#" || after >= to || closes);
        if !goes_on {
            break;
        }
        i = next;
    }
    let again = matches!(clause.at(end + 1), ":" | "=");
    let word =
        end + usize::from(!again && (lexicon::tags::NOUNS.contains(clause.at(end)) || clause.noun_at(end).is_some()));
    if end > start {
        clause.consume(lead..word);
    }
    word.max(lead + 1)
}

/// Consumes a description in `from..to` and returns its text, which extends to `to`. "description is …", "with the note
/// …", "…, and mention that …" come first, then "because …" and "since I …" (the text begins with "I"), then a remark
/// in brackets. A comma, a semicolon, a period or "and" before it is consumed, too, except before brackets. A quoted
/// text loses its quotes. A priority after a comma at the end is not part of the text. "the description" and
/// "description of" belong to a title. Returns `None` if there is none, if no title precedes it, or if its text is
/// empty. In the last case, its words are consumed.
pub(crate) fn consume_description(clause: &mut Clause, from: usize, to: usize) -> Option<String> {
    let mut positions = if clause.has(lexicon::notes::SIGNS) { from + 1..to } else { to..to };
    let led = positions.find_map(|i| Some((i, description_phrases::text_start(clause, i, from)? - i)));
    // "read the description of the flat" is a title.
    let is_thing =
        |at: usize, n: usize| n == 1 && (vocabulary::is_article(clause.before(at)) || clause.at(at + n) == "of");
    let fits = |at: usize, n: usize| at + n < to && led.is_none_or(|(first, _)| at < first) && !is_thing(at, n);
    let said = clause.find_phrase(from + 1, lexicon::notes::DESCRIPTION_LEADS).filter(|(at, n)| fits(*at, *n));
    let (at, n, whole) = match said.or(led) {
        Some((at, n)) => (at, n, true),
        None => match clause.find_phrase(from + 1, lexicon::notes::REASON_LEADS).filter(|(at, n)| at + n < to) {
            Some((at, n)) => (at, n, false),
            None => return consume_parenthesis(clause, from, to),
        },
    };
    if clause.is_exhausted(from..at) {
        return None;
    }
    let since = !whole && clause.at(at) == "since";
    let start = if since { at + 1 } else { at + n };
    let start = start + usize::from(matches!(clause.at(start), ":" | "that" | "saying" | ","));
    let to = before_priority(clause, start, to);
    let text = if start + 1 == to && clause.words.is_quoted(start) {
        clause.words.quoted_text(start).to_owned()
    } else {
        clause.remaining_text(start..to)
    };
    let before = at.checked_sub(1).filter(|k| matches!(clause.at(*k), "," | "and" | "." | ";")).unwrap_or(at);
    clause.consume(before..to);
    (!text.is_empty()).then_some(text)
}

/// Returns the end of a note without a priority after it: "…, high priority". Returns `to` if no comma or other mark
/// separates them.
fn before_priority(clause: &Clause, start: usize, to: usize) -> usize {
    let (at, _) = closing_priority(clause, start + 1).unwrap_or((to, Priority::Low));
    if at < to && matches!(clause.before(at), "," | ";" | ".") { at - 1 } else { to }
}

/// Consumes a remark in brackets with the brackets and returns its text. Returns `None` if there is none
/// ([`description_phrases::find_parenthesis`]), or if no title precedes it.
fn consume_parenthesis(clause: &mut Clause, from: usize, to: usize) -> Option<String> {
    let (open, close) = description_phrases::find_parenthesis(clause, from, to)
        .filter(|(open, _)| !clause.is_exhausted(from..*open))?;
    let text = clause.remaining_text(open + 1..close);
    clause.consume(open..close + 1);
    Some(text)
}
