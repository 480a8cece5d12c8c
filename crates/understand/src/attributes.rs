//! What a task gets beside its title: priority, tags, a description. Takes the tokens that say so.

use std::ops::Range;

use model::task::Priority;

use crate::clause::Clause;
use crate::intent;
use crate::lexicon;
use crate::phrases::{Meanings, Phrases, meanings, phrases};

/// "urgent", "high priority", "low prio", "asap", a trailing "!!" is noise and no priority.
const PRIORITIES: &[(Priority, Phrases)] = &[
    (
        Priority::High,
        phrases!(
            "set it as high priority | make it high priority | make it urgent | mark it as urgent | \
             mark it urgent | mark it as important | it's urgent | it is urgent | this is urgent | it's important | \
             as high priority | as urgent | as important | as very important | as critical | as top priority | \
             as high-priority | at top priority | at the top priority | with high priority | with a high priority | \
             with top priority | with highest priority | with urgent priority | high priority | high-priority | \
             top priority | top-priority | highest priority | urgent priority | critical priority | \
             priority is high | priority high | priority : high | high prio | prio high | ! high | very urgent | \
             really urgent | super important | super urgent | so important | extremely important | \
             extremely urgent | crucial | vital | top prio | highest prio | prio 1 | priority 1 | priority one | \
             p0 | high-prio | hi pri | high pri | time sensitive | time-sensitive | a higher priority | \
             higher priority | number one priority | priority : urgent | priority : top | urgently | urgent | \
             very important | really important | important | critical | as soon as possible | asap | p1"
        ),
    ),
    (
        Priority::Low,
        phrases!(
            "p3 | p4 | set it as low priority | make it low priority | as low priority | as low-priority | \
             as not urgent | with low priority | with a low priority | low priority | low-priority | \
             lowest priority | priority is low | priority low | priority : low | low prio | prio low | ! low | \
             not urgent | no rush | whenever i can | low-prio | low pri | prio 3 | priority 3 | lowest prio | \
             not important | not very important | not that important | no hurry | not a priority | \
             not very urgent | not that urgent | nothing urgent | when i have time | a lower priority | \
             lower priority"
        ),
    ),
    (
        Priority::Medium,
        phrases!(
            "p2 | as medium priority | with medium priority | with normal priority | medium priority | \
             medium-priority | normal priority | priority medium | priority : medium | ! medium | \
             priority is medium | priority : normal | medium prio | prio medium | prio 2 | priority 2 | med priority | \
             mid priority | moderate priority | with a medium priority | as normal priority"
        ),
    ),
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
    const BEFORE: Phrases = phrases!(
        "and | , | ( | ; | - | – | — | it's | its | is | it | this | that's | super | very | really | so | pretty | \
         quite | extremely | make | mark | as | set | to | priority | with | a | of"
    );
    const SAYS: Phrases =
        phrases!("it's | its | it is | this is | that's | make it | mark it | mark it as | set it to | set it as");
    // "this is super", but not "what it is": something must say of what the priority is.
    let said = (from..i).rev().take(5).find(|k| {
        clause.phrase(*k, SAYS).is_some_and(|n| (k + n..i).all(|m| BEFORE.contains(clause.at(m)) || clause.is_taken(m)))
    });
    let mut start = said.unwrap_or(i);
    while start > from && matches!(clause.at(start - 1), "and" | "," | "(" | ";" | "-" | "–" | "—") {
        start -= 1;
    }
    start
}

/// Whether nothing but "a new" and its like stands before the priority.
fn opens(clause: &Clause, range: Range<usize>) -> bool {
    let small = |i: usize| lexicon::is_article(clause.at(i)) || matches!(clause.at(i), "new" | "me" | "up");
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
    const LEADS: Phrases = phrases!(
        "and tag it with | and tag it as | tag it with | tag it as | tag it | tagged with | tagged as | tagged | \
         with the tags | with the tag | with tags | with tag | with a tag | with the label | with label | labeled | \
         labelled | tags : | tag : | with category | , tag it as | , tag it | , tagged | , tags | , tag | \
         ; tags : | ; tag : | and tag it | and label it | label it as | label it | , label it | , label | \
         under the label | under the tag | under tag | under label | with the labels | with labels | by tag | \
         by the tag | by label | labels : | label : | category : | in the category | in category | and the tags | \
         and the tag | and tags | and tag"
    );
    let mut tags = Vec::new();
    let mut i = from;
    while i < to {
        if clause.at(i) == "#"
            && clause.words.is_word(i + 1)
            && clause.words.touches_next(i)
            && clause.at(i + 1).starts_with(|c: char| !c.is_ascii_digit())
        {
            tags.push(clause.words.text(i + 1..i + 2).to_owned());
            clause.take(i..i + 2);
            i += 2;
        } else if let Some((name, end)) = trailing_tag(clause, i, from, to) {
            tags.push(name);
            clause.take(i..end);
            i = end;
        } else if let Some(n) = clause.phrase(i, LEADS).filter(|n| i > from && i + n < to) {
            i = tag_list(clause, i, i + n, to, &mut tags);
        } else {
            i += 1;
        }
    }
    tags
}

/// "to the errands tag", "under the home label" at the end.
fn trailing_tag(clause: &Clause, i: usize, from: usize, to: usize) -> Option<(String, usize)> {
    if i <= from || !matches!(clause.at(i), "to" | "under" | "in" | "with" | "on") {
        return None;
    }
    let at = i + 1 + usize::from(matches!(clause.at(i + 1), "the" | "my" | "a"));
    let closes = matches!(clause.at(at + 1), "tag" | "label" | "category") && clause.is_spent(at + 2..to);
    let named = closes && (clause.words.is_word(at) || clause.words.is_quoted(at));
    let name = if clause.words.is_quoted(at) { clause.words.inside(at) } else { clause.words.text(at..at + 1) };
    named.then(|| (name.to_owned(), at + 2))
}

/// "work", "work and home", "a, b".
fn tag_list(clause: &mut Clause, lead: usize, start: usize, to: usize, tags: &mut Vec<String>) -> usize {
    let mut i = start;
    loop {
        let at = i + usize::from(clause.at(i) == "#");
        if at >= to || !(clause.words.is_word(at) || clause.words.is_quoted(at)) || clause.date_at(at).is_some() {
            break;
        }
        let name = if clause.words.is_quoted(at) { clause.words.inside(at) } else { clause.words.text(at..at + 1) };
        tags.push(name.to_owned());
        i = at + 1;
        if matches!(clause.at(i), "and" | "," | "&")
            && i + 1 < to
            && (clause.words.is_word(i + 1) || clause.at(i + 1) == "#")
        {
            i += 1;
        } else {
            break;
        }
    }
    if i > start {
        clause.take(lead..i);
    }
    i.max(lead + 1)
}

/// Takes "because …", "description is …", "with the note …" and gives what was said.
pub(crate) fn description(clause: &mut Clause, from: usize, to: usize) -> Option<String> {
    const EXPLICIT: Phrases = phrases!(
        "with the description of | with a description of | with the description | with a description | \
         with description | and the description is | the description is | description is | description : | \
         with the note | with a note | with note | with notes | with details | with the details | details : | \
         note : | notes : | desc : | comment : | comments : | with comment | with the comment | with a comment | \
         and note that | , note that | with a note that | with the note that | with a note saying | \
         with the note saying | and in the notes put | and in the notes | and put in the notes | in the notes put | \
         in the notes : | in the notes | and add a note that | and add a note saying | and add the note | \
         and the note | details - | description - | notes - | note - | description"
    );
    const REASON: Phrases = phrases!("because of | because | cuz | cause | since i | 'cause");
    let (at, n, whole) = match clause.seek(from + 1, EXPLICIT).filter(|(at, n)| at + n < to) {
        Some((at, n)) => (at, n, true),
        None => clause.seek(from + 1, REASON).filter(|(at, n)| at + n < to).map(|(at, n)| (at, n, false))?,
    };
    if clause.is_spent(from..at) {
        return None;
    }
    let since = !whole && clause.at(at) == "since";
    let start = if since { at + 1 } else { at + n };
    let start = start + usize::from(matches!(clause.at(start), ":" | "that" | "saying" | ","));
    let text = if start + 1 == to && clause.words.is_quoted(start) {
        clause.words.inside(start).to_owned()
    } else {
        clause.rest(start..to)
    };
    let before = at.checked_sub(1).filter(|k| matches!(clause.at(*k), "," | "and" | "." | ";")).unwrap_or(at);
    clause.take(before..to);
    (!text.is_empty()).then_some(text)
}
