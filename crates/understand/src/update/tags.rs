//! Tags of an existing task: giving it more of them, and taking some away. Those it has and nobody spoke of stay.

use std::ops::Range;

use crate::clause::Clause;
use crate::lexicon;
use crate::phrases::Phrases;
use crate::reading::{Command, Field, Tagging};
use crate::vocabulary;

/// "the work tag to …", "the label home from …", "#work off …": where the word that leads to the task stands.
pub(crate) fn spoken(clause: &Clause, from: usize, leads: Phrases) -> Option<usize> {
    let word = |i: &usize| matches!(clause.at(*i), "tag" | "tags" | "label" | "labels");
    let article = from + usize::from(vocabulary::is_article(clause.at(from)));
    let hash = clause.at(article) == "#" && clause.words.touches_next(article);
    let tag = (from..clause.end.min(from + 6)).find(word).or(hash.then_some(article + 1))?;
    let near = |i: &usize| clause.phrase(*i, leads).is_some();
    let lead = (tag + 1..clause.end.min(tag + 6)).find(near)?;
    let told = !names(clause, from..lead).is_empty();
    let task = lead + clause.phrase(lead, leads).unwrap_or(0) < clause.end;
    let straight = !(from..lead).any(|i| matches!(clause.at(i), "with" | "as" | "for" | "in"));
    (told && task && straight).then_some(lead)
}

/// "tag the report with work", "tag the report as work", "add the tag work to the report".
pub(super) fn read(clause: &mut Clause, range: Range<usize>, command: &mut Command) -> Range<usize> {
    command.tagging = Tagging::Add;
    let verb = clause.at(clause.start);
    let start = range.start - usize::from(matches!(clause.before(range.start), "tag" | "tags" | "label"));
    if !matches!(verb, "tag" | "label")
        && let Some(lead) = spoken(clause, start, lexicon::tags::ONTO)
    {
        command.tags = names(clause, start..lead);
        return lead + 1..range.end;
    }
    if matches!(clause.at(range.start), "it" | "that" | "this") && clause.words.is_word(range.start + 1) {
        let start = range.start + 1;
        command.tags = names(clause, start + clause.phrase(start, lexicon::tags::AS).unwrap_or(0)..range.end);
        return range.start..start;
    }
    if let Some((at, n)) = clause.seek(range.start, lexicon::tags::VALUE_LEADS) {
        command.tags = names(clause, at + n..range.end);
        return range.start..at;
    }
    let hash = range.clone().find(|i| clause.at(*i) == "#");
    // "tag the milk task shopping", "label the passport one travel".
    let noun = range.clone().find(|i| clause.at(*i) == "one").map(|i| i + 1);
    let noun = noun.or_else(|| clause.noun_in(range.clone()).filter(|noun| !noun.plural).map(|noun| noun.end));
    let named = noun.filter(|end| *end < range.end && *end > range.start + 2 && range.end - *end <= 3);
    let hash = hash.or(named).unwrap_or(range.end);
    command.tags = names(clause, hash..range.end);
    range.start..hash
}

/// "the work tag from the report": that one, and no other.
pub(super) fn removed(clause: &mut Clause, range: Range<usize>, command: &mut Command) -> Range<usize> {
    let Some(lead) = spoken(clause, range.start, lexicon::grammar::FROM_TASK) else {
        command.clear.push(Field::Tags);
        return range;
    };
    command.tagging = Tagging::Remove;
    command.tags = names(clause, range.start..lead);
    lead + clause.phrase(lead, lexicon::grammar::FROM_TASK).unwrap_or(1)..range.end
}

/// The names in a stretch: "work and home", "#work", "the tags 'a' and 'b'".
pub(super) fn names(clause: &Clause, range: Range<usize>) -> Vec<String> {
    let of = |i: usize| if clause.words.is_quoted(i) { clause.words.inside(i) } else { clause.words.text(i..i + 1) };
    let counts = |i: &usize| {
        clause.words.is_quoted(*i) || clause.words.is_word(*i) && !lexicon::tags::NAME_FILLERS.contains(clause.at(*i))
    };
    range.filter(counts).map(|i| of(i).to_owned()).collect()
}
