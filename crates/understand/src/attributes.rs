//! What a task gets beside its title: priority, tags, a description. Takes the tokens that say so.

use std::ops::Range;

use model::task::Priority;

use crate::clause::Clause;
use crate::details;
use crate::intent;
use crate::labels;
use crate::lexicon;
use crate::phrases::{Meanings, Phrases, meanings};
use crate::vocabulary;

/// "urgent", "high priority", "low prio", "asap", a trailing "!!" is noise and no priority.
const PRIORITIES: &[(Priority, Phrases)] = &[
    (Priority::High, lexicon::priority::HIGH),
    (Priority::Low, lexicon::priority::LOW),
    (Priority::Medium, lexicon::priority::MEDIUM),
];

const PRIORITY_PHRASES: Meanings<Priority> = meanings!(Priority, PRIORITIES);

/// The priority said at token `i`, and its length.
pub(crate) fn priority_at(clause: &Clause, i: usize) -> Option<(Priority, usize)> {
    PRIORITY_PHRASES.phrase(clause.words, i).filter(|(_, n)| i + n <= clause.end)
}

/// What a word means where a priority is expected: "to high", "as urgent".
pub(crate) fn level(word: &str) -> Option<Priority> {
    Some(match word {
        "high" | "higher" | "highest" | "top" | "urgent" | "important" | "critical" => Priority::High,
        "medium" | "normal" | "standard" | "default" => Priority::Medium,
        "low" | "lower" | "lowest" | "minor" => Priority::Low,
        _ => return None,
    })
}

/// A priority that ends the clause: where it begins, "as" included, and which.
pub(crate) fn closing_priority(clause: &Clause, from: usize) -> Option<(usize, Priority)> {
    (from..clause.end).find_map(|i| {
        let (priority, n) = priority_at(clause, i)?;
        clause.is_spent(i + n..clause.end).then_some((i, priority))
    })
}

/// Takes a priority that stands at the head or the end of the stretch, where it is no part of a title.
pub(crate) fn priority(clause: &mut Clause, from: usize, to: usize) -> Option<Priority> {
    for i in from..to {
        if clause.is_taken(i) || clause.words.is_quoted(i) {
            continue;
        }
        let Some((priority, n)) = priority_at(clause, i) else { continue };
        let compound = n > 1 || matches!(clause.at(i), "asap" | "urgently");
        let first = opens(clause, from..i) && precedes_task(clause, i + n);
        let last = clause.is_spent(i + n..to) || closes_clause(clause.at(i + n));
        if compound || first || last {
            clause.take(led_from(clause, from, i)..i + n);
            return Some(priority);
        }
    }
    None
}

/// Where "and it's really" and its like before a priority begin.
fn led_from(clause: &Clause, from: usize, i: usize) -> usize {
    // "this is super", but not "what it is": something must say of what the priority is.
    let said = (from..i).rev().take(5).find(|k| {
        clause
            .phrase(*k, lexicon::priority::COPULAS)
            .is_some_and(|n| (k + n..i).all(|m| lexicon::priority::LEADS.contains(clause.at(m)) || clause.is_taken(m)))
    });
    let mut start = said.unwrap_or(i);
    while start > from && matches!(clause.at(start - 1), "and" | "," | "(" | ";" | "-" | "–" | "—") {
        start -= 1;
    }
    start
}

/// Whether nothing but "a new" and its like stands before the priority.
fn opens(clause: &Clause, range: Range<usize>) -> bool {
    let small = |i: usize| vocabulary::is_article(clause.at(i)) || matches!(clause.at(i), "new" | "me" | "up");
    range.into_iter().all(|i| small(i) || clause.is_spent(i..i + 1))
}

/// "urgent task …", "urgent: …", "urgent pay rent"; not "urgent care visit".
fn precedes_task(clause: &Clause, i: usize) -> bool {
    let i = i + usize::from(clause.at(i) == "new");
    clause.noun_at(i).is_some() || clause.at(i) == ":" || intent::is_doing(clause, i)
}

fn closes_clause(word: &str) -> bool {
    matches!(word, "because" | "," | ")" | "-")
}

/// Takes "#work", "tagged work", "with tag work and home", "tags: a, b".
pub(crate) fn tags(clause: &mut Clause, from: usize, to: usize) -> Vec<String> {
    let mut tags = Vec::new();
    let mut i = if clause.has(lexicon::tags::SIGNS) { from } else { to };
    while i < to {
        if is_hash(clause, i) {
            let lead = lexicon::tags::LEADS.contains(clause.before(i));
            tags.push(clause.words.text(i + 1..i + 2).to_owned());
            clause.take(i - usize::from(lead && i > from)..i + 2);
            i += 2;
        } else if let Some((name, end)) = labels::closing(clause, i, to).filter(|_| i > from) {
            tags.push(name);
            clause.take(i..end);
            i = end;
        } else if let Some(start) = labels::lead(clause, i, to).filter(|start| i > from && *start < to) {
            i = tag_list(clause, i, start, to, &mut tags);
        } else {
            i += 1;
        }
    }
    tags
}

fn is_hash(clause: &Clause, i: usize) -> bool {
    clause.at(i) == "#"
        && clause.words.is_word(i + 1)
        && clause.words.touches_next(i)
        && clause.at(i + 1).starts_with(|c: char| !c.is_ascii_digit())
}

/// "work", "work and home", "a, b".
fn tag_list(clause: &mut Clause, lead: usize, start: usize, to: usize, tags: &mut Vec<String>) -> usize {
    let hash = |i: usize| i + usize::from(clause.at(i) == "#");
    let link = |i: usize| matches!(clause.at(i), "and" | "," | "&" | "or" | "+" | "/");
    let mut end = start;
    let mut i = start;
    while i < to && labels::is_name(clause, hash(i)) {
        tags.push(labels::name(clause, hash(i)));
        end = hash(i) + 1;
        // "tag it work and call mom": what is not a name by itself is none.
        let next = end + 1 + usize::from(clause.at(end) == "," && clause.at(end + 1) == "and");
        let after = hash(next) + 1;
        let closes = link(after) || clause.is_spent(after..after + 1) || clause.date_at(after).is_some();
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
        clause.take(lead..word);
    }
    word.max(lead + 1)
}

/// Takes "because …", "description is …", "with the note …" and gives what was said.
pub(crate) fn description(clause: &mut Clause, from: usize, to: usize) -> Option<String> {
    let mut places = if clause.has(lexicon::notes::SIGNS) { from + 1..to } else { to..to };
    let led = places.find_map(|i| Some((i, details::lead(clause, i, from)? - i)));
    // "read the description of the flat" is a title.
    let thing =
        |at: usize, n: usize| n == 1 && (vocabulary::is_article(clause.before(at)) || clause.at(at + n) == "of");
    let fits = |at: usize, n: usize| at + n < to && led.is_none_or(|(first, _)| at < first) && !thing(at, n);
    let said = clause.seek(from + 1, lexicon::notes::DESCRIPTION_LEADS).filter(|(at, n)| fits(*at, *n));
    let (at, n, whole) = match said.or(led) {
        Some((at, n)) => (at, n, true),
        None => match clause.seek(from + 1, lexicon::notes::REASON_LEADS).filter(|(at, n)| at + n < to) {
            Some((at, n)) => (at, n, false),
            None => return aside(clause, from, to),
        },
    };
    if clause.is_spent(from..at) {
        return None;
    }
    let since = !whole && clause.at(at) == "since";
    let start = if since { at + 1 } else { at + n };
    let start = start + usize::from(matches!(clause.at(start), ":" | "that" | "saying" | ","));
    let to = before_priority(clause, start, to);
    let text = if start + 1 == to && clause.words.is_quoted(start) {
        clause.words.inside(start).to_owned()
    } else {
        clause.rest(start..to)
    };
    let before = at.checked_sub(1).filter(|k| matches!(clause.at(*k), "," | "and" | "." | ";")).unwrap_or(at);
    clause.take(before..to);
    (!text.is_empty()).then_some(text)
}

/// "…, high priority" at the end is no part of the note before it.
fn before_priority(clause: &Clause, start: usize, to: usize) -> usize {
    let (at, _) = closing_priority(clause, start + 1).unwrap_or((to, Priority::Low));
    if at < to && matches!(clause.before(at), "," | ";" | ".") { at - 1 } else { to }
}

fn aside(clause: &mut Clause, from: usize, to: usize) -> Option<String> {
    let (open, close) = details::aside(clause, from, to).filter(|(open, _)| !clause.is_spent(from..*open))?;
    let text = clause.rest(open + 1..close);
    clause.take(open..close + 1);
    Some(text)
}
